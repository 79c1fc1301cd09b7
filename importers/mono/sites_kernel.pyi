from typing import Any

from numpy.typing import NDArray

def enter_stacks(
    stack_prefix: NDArray[Any],
    stack_frame: NDArray[Any],
    n: int,
    slots: NDArray[Any],
) -> None: ...
def sites(
    d: memoryview,
    buffers: NDArray[Any],
    keys: NDArray[Any],
    ids: NDArray[Any],
    frames: NDArray[Any],
    defined_at: NDArray[Any],
    defined_ts: NDArray[Any],
    defined: NDArray[Any],
    open_ids: NDArray[Any],
    open_frames: NDArray[Any],
    open_stacks: NDArray[Any],
    n_open: NDArray[Any],
    stack_prefix: NDArray[Any],
    stack_frame: NDArray[Any],
    slots: NDArray[Any],
    out: NDArray[Any],
    out_stack: NDArray[Any],
    items: NDArray[Any],
    s: NDArray[Any],
) -> int: ...
def hits(
    d: memoryview,
    buffers: NDArray[Any],
    keys: NDArray[Any],
    ids: NDArray[Any],
    frames: NDArray[Any],
    defined_at: NDArray[Any],
    defined_ts: NDArray[Any],
    defined: NDArray[Any],
    stack_prefix: NDArray[Any],
    stack_frame: NDArray[Any],
    slots: NDArray[Any],
    out: NDArray[Any],
    out_stack: NDArray[Any],
    pool: NDArray[Any],
    items: NDArray[Any],
    s: NDArray[Any],
) -> int: ...
