from typing import Any

from numpy.typing import NDArray

A = NDArray[Any]

def lists(numbers: A, ends: A, nodes: tuple[A, ...], found: A, nth: int) -> int: ...
def sites(
    d: memoryview, buffers: A, steps: A, starts: A, method_names: tuple[A, ...], type_names: tuple[A, ...],
    stack_nodes: tuple[A, ...], pair_nodes: tuple[A, ...], open_calls: tuple[A, ...], allocations: tuple[A, ...],
    others: tuple[A, ...], moves: A, items: A, s: A,
) -> int: ...  # fmt: skip
