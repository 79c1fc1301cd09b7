from typing import Any

from numpy.typing import NDArray

A = NDArray[Any]

def pairs(
    parent: A, number: A, node_parent: A, node_number: A, slots: A, found: A, s: A,
) -> int: ...  # fmt: skip
def sites(
    d: memoryview, buffers: A, steps: A, starts: A, names: tuple[A, ...], open_key: A, open_frame: A,
    open_stack: A, n_open: A, prefix: A, frame_of: A, slots: A, stack_before: A, allocation_ts: A,
    allocation_type: A, allocation_object: A, allocation_size: A, allocation_stack: A, other_at: A,
    other_row: A, other_stack: A, moves: A, items: A, s: A,
) -> int: ...  # fmt: skip
