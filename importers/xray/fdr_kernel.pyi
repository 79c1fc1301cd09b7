from typing import Any

from numpy.typing import NDArray

def decode(
    d: memoryview,
    big: bool,
    version: int,
    state: NDArray[Any],
    id_keys: NDArray[Any],
    id_values: NDArray[Any],
    kind_values: NDArray[Any],
    ticks: NDArray[Any],
    value: NDArray[Any],
    kind: NDArray[Any],
    aux_kind: NDArray[Any],
    aux_row: NDArray[Any],
    aux_ticks: NDArray[Any],
    aux_value: NDArray[Any],
) -> None: ...

STATE_SLOTS: dict[str, int]
STATUS_CODES: dict[str, int]
