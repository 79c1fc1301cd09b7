import numpy as np
from numpy.typing import NDArray

def distinct_with_places(values: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int32]]: ...
