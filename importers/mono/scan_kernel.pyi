from typing import Any

from numpy.typing import NDArray

def scan(
    d: memoryview,
    buffers: NDArray[Any],
    stats: NDArray[Any],
    records: NDArray[Any],
    pool: NDArray[Any],
    items: NDArray[Any],
    kinds: NDArray[Any],
    s: NDArray[Any],
) -> int: ...
def events(
    d: memoryview,
    buffers: NDArray[Any],
    out: NDArray[Any],
    items: NDArray[Any],
    s: NDArray[Any],
) -> int: ...
