from typing import Any

from numpy.typing import NDArray

def rehash(prefix: NDArray[Any], frame: NDArray[Any], n: int, slots: NDArray[Any]) -> None: ...
def walk_calls(
    ts: NDArray[Any],
    frame: NDArray[Any],
    flags: NDArray[Any],
    state: NDArray[Any],
    path: NDArray[Any],
    stack_prefix: NDArray[Any],
    stack_frame: NDArray[Any],
    slots: NDArray[Any],
    out_ts: NDArray[Any],
    out_stack: NDArray[Any],
) -> None: ...
