from typing import Any

from numpy.typing import NDArray

def scan(
    data: memoryview,
    start: int,
    big: bool,
    ids: NDArray[Any],
    at: NDArray[Any],
    sizes: NDArray[Any],
    timestamps: NDArray[Any],
) -> int: ...
def loads(
    data: memoryview,
    big: bool,
    begins: NDArray[Any],
    ends: NDArray[Any],
    tids: NDArray[Any],
    addresses: NDArray[Any],
    sizes: NDArray[Any],
    indexes: NDArray[Any],
    name_sizes: NDArray[Any],
    code_at: NDArray[Any],
) -> None: ...
def entries(
    data: memoryview,
    big: bool,
    begins: NDArray[Any],
    ends: NDArray[Any],
    counts: NDArray[Any],
    bases: NDArray[Any],
    reach: int,
    starts: NDArray[Any],
    stops: NDArray[Any],
    is_sorted: NDArray[Any],
    offsets: NDArray[Any],
    lines: NDArray[Any],
    columns: NDArray[Any],
    runs: NDArray[Any],
    run_at: NDArray[Any],
    run_size: NDArray[Any],
) -> int: ...
