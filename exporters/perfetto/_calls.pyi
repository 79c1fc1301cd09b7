import numpy as np
from numpy.typing import NDArray

from traceferry.exporters.perfetto._packets import OutputBuffer

class SliceWriter:
    n_cut: int
    def __init__(
        self,
        out: OutputBuffer,
        note: NDArray[np.uint8],
        note_length: NDArray[np.int32],
        max_depth: int,
        start_ts: int,
    ) -> None: ...
    def set_heads(self, head: NDArray[np.uint8], head_length: NDArray[np.int32], event_at: int) -> None: ...
    def write(
        self,
        ts: NDArray[np.int64],
        frame: NDArray[np.int32],
        flags: NDArray[np.uint8],
        argument_call: NDArray[np.int64],
        argument_iid: NDArray[np.int32],
        argument_value: NDArray[np.uint64],
    ) -> None: ...
