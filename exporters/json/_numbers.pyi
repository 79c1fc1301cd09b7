from typing import final

import numpy as np
from numpy.typing import NDArray

LITERAL: int
TEXT: int
INTEGER: int
MILLIS: int
HEX: int
ABSENT: int

@final
class Differences:
    def millis(self, values: NDArray[np.int64]) -> NDArray[np.float64]: ...

class NumberText:
    def ints(self, values: NDArray[np.int32]) -> memoryview: ...
    def longs(self, values: NDArray[np.int64], null: int) -> memoryview: ...
    def millis(self, values: NDArray[np.int64]) -> memoryview: ...
    def differences(self, values: NDArray[np.int64], sums: Differences) -> memoryview: ...
    def texts(self, nth: NDArray[np.int32], texts: NDArray[np.uint8], text_at: NDArray[np.int64]) -> memoryview: ...
    def sample_rows(self, stack: NDArray[np.int32], ts: NDArray[np.int64]) -> memoryview: ...
    def objects(
        self,
        kinds: NDArray[np.uint8],
        needs: NDArray[np.int32],
        columns: NDArray[np.int64],
        texts: NDArray[np.uint8],
        text_at: NDArray[np.int64],
    ) -> memoryview: ...
