from numpy import int32, int64
from numpy.typing import NDArray

class LineSizes:
    key_base: NDArray[int32]
    key_file: NDArray[int32]
    key_line: NDArray[int32]
    record: NDArray[int32]
    key: NDArray[int32]
    n_bytes: NDArray[int64]
    def __init__(
        self,
        begins: NDArray[int64],
        ends: NDArray[int64],
        size: NDArray[int64],
        bases: NDArray[int32],
        offsets: NDArray[int32],
        files: NDArray[int32],
        lines: NDArray[int32],
    ) -> None: ...
