from typing import Self

import numpy as np
from numpy.typing import NDArray

class ChainTable:
    def __new__(cls, words: NDArray[np.uint64]) -> Self: ...
