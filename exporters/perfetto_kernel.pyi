from typing import Any

from numpy.typing import NDArray

ARGUMENT_ROOM: int

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
    state: NDArray[Any],
    out: bytearray,
) -> int: ...
