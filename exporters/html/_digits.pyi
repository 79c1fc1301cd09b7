import numpy as np
from numpy.typing import NDArray

def pairs_of(data: bytes | memoryview, pairs: NDArray[np.uint16]) -> bytes: ...
