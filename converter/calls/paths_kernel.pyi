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
def pack_times(
    ts: NDArray[Any], stack: NDArray[Any], state: NDArray[Any], out: NDArray[Any], long_ns: NDArray[Any]
) -> int: ...
def unpack_times(
    packed: NDArray[Any], long_ns: NDArray[Any], ts: int, out_ts: NDArray[Any], out_ns: NDArray[Any]
) -> int: ...
