from enum import IntEnum
from typing import Self

import numpy as np
from numpy.typing import NDArray

class Remembered(IntEnum):
    MOST_CHAINS = 16384
    MOST_KEYS = 1048576

class ChainTable:
    def __new__(cls, words: NDArray[np.uint64]) -> Self: ...
