from typing import Any

from numpy.typing import NDArray

def enter_keys(
    new: NDArray[Any],
    keys: NDArray[Any],
    ids: NDArray[Any],
) -> None: ...
def add_key(
    key: int,
    number: int,
    keys: NDArray[Any],
    ids: NDArray[Any],
) -> None: ...
def frames_of(
    wanted: NDArray[Any],
    ts: NDArray[Any],
    keys: NDArray[Any],
    ids: NDArray[Any],
    frames: NDArray[Any],
    defined_at: NDArray[Any],
    defined_ts: NDArray[Any],
    defined: NDArray[Any],
    found: NDArray[Any],
    s: NDArray[Any],
) -> int: ...
