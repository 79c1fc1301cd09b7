from typing import Any

from numpy.typing import NDArray

def walk_calls(
    ts: NDArray[Any],
    frame: NDArray[Any],
    flags: NDArray[Any],
    longest: int,
    state: NDArray[Any],
    path: NDArray[Any],
    stack_prefix: NDArray[Any],
    stack_frame: NDArray[Any],
    slots: NDArray[Any],
    out_ts: NDArray[Any],
    out_stack: NDArray[Any],
) -> None: ...
def time_calls(
    ts: NDArray[Any],
    flags: NDArray[Any],
    longest: int,
    state: NDArray[Any],
    out_ts: NDArray[Any],
    out_ns: NDArray[Any],
) -> None: ...
