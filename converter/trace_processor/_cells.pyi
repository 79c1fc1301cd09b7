import numpy as np
from numpy.typing import NDArray

def integers(packed: bytes) -> NDArray[np.int64]: ...
def places(kinds: NDArray[np.uint8]) -> NDArray[np.int32]: ...
def column(
    kinds: NDArray[np.uint8],
    place: NDArray[np.int32],
    n_columns: int,
    nth: int,
    kind: int,
    values: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]: ...
def texts(data: NDArray[np.uint8]) -> tuple[NDArray[np.int32], bytes]: ...
