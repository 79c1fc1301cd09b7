from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from traceferry.exporters.perfetto._packets import OutputBuffer

class Rows:
    def __new__(cls, texts: Sequence[bytes], width: int) -> Rows: ...

class SliceWriter:
    n_cut: int
    def __init__(
        self, out: OutputBuffer, lead: bytes, notes: Sequence[bytes], max_depth: int, start_ts: int
    ) -> None: ...
    def set_events(self, events: Sequence[bytes]) -> None: ...
    def write(
        self,
        ts: NDArray[np.int64],
        frame: NDArray[np.int32],
        flags: NDArray[np.uint8],
        argument_call: NDArray[np.int64],
        argument_iid: NDArray[np.int32],
        argument_value: NDArray[np.uint64],
        text: NDArray[np.uint8],
        text_at: NDArray[np.int64],
    ) -> None: ...
