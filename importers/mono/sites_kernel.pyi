from typing import Any

from numpy.typing import NDArray

def pairs(
    parent: NDArray[Any],
    number: NDArray[Any],
    node_parent: NDArray[Any],
    node_number: NDArray[Any],
    slots: NDArray[Any],
    found: NDArray[Any],
    s: NDArray[Any],
) -> int: ...
def sites(
    d: memoryview,
    buffers: NDArray[Any],
    steps: NDArray[Any],
    starts: NDArray[Any],
    names: tuple[NDArray[Any], ...],
    open_key: NDArray[Any],
    open_frame: NDArray[Any],
    open_stack: NDArray[Any],
    n_open: NDArray[Any],
    prefix: NDArray[Any],
    frame_of: NDArray[Any],
    slots: NDArray[Any],
    stack_before: NDArray[Any],
    allocation_ts: NDArray[Any],
    allocation_type: NDArray[Any],
    allocation_object: NDArray[Any],
    allocation_size: NDArray[Any],
    allocation_stack: NDArray[Any],
    other_at: NDArray[Any],
    other_row: NDArray[Any],
    other_stack: NDArray[Any],
    moves: NDArray[Any],
    items: NDArray[Any],
    s: NDArray[Any],
) -> int: ...
