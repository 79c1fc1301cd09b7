from typing import Self, final

from numpy import int32, int64, uint8, uint16
from numpy.typing import NDArray

from traceferry.native.nodes import NodeTable

@final
class PathWalk:
    def __new__(cls, tree: NodeTable, longest: int) -> Self: ...
    def add(
        self, ts: NDArray[int64], frame: NDArray[int32], flags: NDArray[uint8]
    ) -> tuple[NDArray[int64], NDArray[int32]]: ...
    def end(self) -> tuple[NDArray[int64], NDArray[int32]]: ...

@final
class TimePacker:
    @property
    def n(self) -> int: ...
    @property
    def first_ts(self) -> int: ...
    def add(self, ts: NDArray[int64], path: NDArray[int32]) -> tuple[NDArray[uint16], NDArray[int64]]: ...

def unpack_times(
    packed: NDArray[uint16], long_ns: NDArray[int64], ts: int
) -> tuple[NDArray[int64], NDArray[int64], int]: ...
