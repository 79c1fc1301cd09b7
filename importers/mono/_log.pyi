from typing import Any, Self

from numpy import dtype, int32, int64, uint8, uint64, void
from numpy.typing import NDArray

from traceferry.importers.mono._cursor import Cursor
from traceferry.native.nodes import NodeTable
from traceferry.timeline._running import RunningSums
from traceferry.timeline.method_table import MethodTable

OPEN_CALL: dtype[void]
RECORD: dtype[void]
STATISTICS: tuple[str, ...]

class EventReader:
    def __new__(
        cls, cursor: Cursor, columns: NDArray[int32], stats: NDArray[uint64], sums: RunningSums, most: int = 0
    ) -> Self: ...
    def read(self, n_buffers: int) -> bool: ...
    def take(self) -> tuple[NDArray[void], NDArray[uint64]]: ...

class CallReader:
    @property
    def n_ignored(self) -> int: ...
    def __new__(cls, cursor: Cursor, methods: MethodTable, shift_ns: int, max_ts: int) -> Self: ...
    def read(
        self, n_buffers: int, out_ts: NDArray[int64], key: NDArray[int32], frame: NDArray[int32], flags: NDArray[uint8]
    ) -> tuple[int, bool]: ...

class SiteReader:
    @property
    def wants_nodes(self) -> bool: ...
    def __new__(
        cls, cursor: Cursor, methods: MethodTable, types: MethodTable, is_sited: NDArray[uint8], room: int
    ) -> Self: ...
    def read(self, n_buffers: int, stacks: NodeTable, pairs: NodeTable) -> bool: ...
    def found(self) -> tuple[Any, ...]: ...
