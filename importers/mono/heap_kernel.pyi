from typing import Any

from numpy.typing import NDArray

def moves(
    d: memoryview,
    buffers: NDArray[Any],
    out: NDArray[Any],
    items: NDArray[Any],
    s: NDArray[Any],
) -> int: ...
def heap(
    d: memoryview,
    buffers: NDArray[Any],
    objects: NDArray[Any],
    references: NDArray[Any],
    held: NDArray[Any],
    items: NDArray[Any],
    s: NDArray[Any],
) -> int: ...
