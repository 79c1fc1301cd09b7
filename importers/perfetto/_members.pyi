import numpy as np
from numpy.typing import NDArray

def places_of_thread(data: memoryview | bytes, tid: int, n_most: int) -> NDArray[np.int64]: ...
