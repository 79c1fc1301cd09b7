from enum import IntEnum
from typing import Self, final

import numpy as np
from numpy.typing import NDArray

from traceferry.native.nodes import NodeTable

class OfMode(IntEnum):
    OWN_SPACE = -1

@final
class Paths:
    node: NDArray[np.int32]
    ts: NDArray[np.int64]
    spaces: NDArray[np.int32]
    addresses: NDArray[np.uint64]
    first_ts: NDArray[np.int64]
    last_ts: NDArray[np.int64]
    longest: int

def collect(
    chain: NDArray[np.uint64],
    start: NDArray[np.int64],
    length: NDArray[np.int32],
    space: NDArray[np.int32],
    ip: NDArray[np.uint64],
    mode: NDArray[np.uint8],
    space_of_mode: NDArray[np.int32],
    ts: NDArray[np.int64],
    n_expected: int = ...,
) -> Paths: ...

@final
class StackComposer:
    n_cut: int
    n_unknown: int
    n_late: int
    def __new__(
        cls,
        first_version: NDArray[np.int64],
        version_from: NDArray[np.int64],
        first_frame: NDArray[np.int64],
        frames: NDArray[np.int32],
        is_unknown: NDArray[np.uint8],
        is_late: NDArray[np.uint8],
        max_frames: int,
        cut_frame: int = -1,
    ) -> Self: ...
    def compose(self, paths: Paths, stacks: NodeTable) -> NDArray[np.int32]: ...
