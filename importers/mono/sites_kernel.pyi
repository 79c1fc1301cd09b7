from typing import Any

from numpy.typing import NDArray

WIDTHS: dict[str, int]

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
    keys: NDArray[Any],
    ids: NDArray[Any],
    pointers: NDArray[Any],
    frames: NDArray[Any],
    last: NDArray[Any],
    defined_ts: NDArray[Any],
    n_names: NDArray[Any],
    open_key: NDArray[Any],
    open_frame: NDArray[Any],
    open_stack: NDArray[Any],
    n_open: NDArray[Any],
    prefix: NDArray[Any],
    frame_of: NDArray[Any],
    slots: NDArray[Any],
    stack_before: NDArray[Any],
    allocations: NDArray[Any],
    allocation_stack: NDArray[Any],
    other_at: NDArray[Any],
    other_row: NDArray[Any],
    other_stack: NDArray[Any],
    moves: NDArray[Any],
    items: NDArray[Any],
    s: NDArray[Any],
) -> int: ...
