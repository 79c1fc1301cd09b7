from numpy import float64, int64, uint8
from numpy.typing import NDArray

def rows(
    n_columns: int,
    kinds: NDArray[uint8],
    integers: NDArray[int64],
    floats: NDArray[float64],
    text: NDArray[uint8],
    blobs: list[bytes],
) -> bytes: ...
