from typing import Any

from numpy.typing import NDArray

def mark(indices: NDArray[Any], marked: NDArray[Any]) -> None: ...
def slices(
    ts: NDArray[Any],
    frame: NDArray[Any],
    flags: NDArray[Any],
    argument_call: NDArray[Any],
    argument_iid: NDArray[Any],
    argument_value: NDArray[Any],
    head: NDArray[Any],
    head_length: NDArray[Any],
    event_at: int,
    note: NDArray[Any],
    note_length: NDArray[Any],
    max_depth: int,
    row: int,
    first_argument: int,
    depth: int,
    last: int,
    cut: int,
    out: bytearray,
) -> tuple[int, int, int, int, int, int]: ...
