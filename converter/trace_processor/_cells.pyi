import numpy as np
from numpy.typing import NDArray

def integers(packed: NDArray[np.uint8], n: int) -> NDArray[np.int64]: ...
def counts(kinds: NDArray[np.uint8], n_columns: int) -> NDArray[np.int64]: ...
def fill_columns(
    kinds: NDArray[np.uint8],
    packed: NDArray[np.uint8],
    floats: NDArray[np.int64],
    out_kinds: NDArray[np.uint8],
    out_values: NDArray[np.int64],
    first_row: int,
    n_texts: int,
    n_blobs: int,
) -> None: ...
def texts(data: NDArray[np.uint8]) -> tuple[NDArray[np.int32], bytes]: ...
