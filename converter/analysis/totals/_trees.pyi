from typing import Self, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from traceferry.native.nodes import NodeTable

_Int32: TypeAlias = NDArray[np.int32]
_Int64: TypeAlias = NDArray[np.int64]

def fold_stacks(prefix: _Int32, key_of_stack: _Int32, first: int, nodes: NodeTable, node_of_stack: _Int32) -> None: ...

@final
class CallAmounts:
    ends: _Int64
    def __new__(cls, ends: _Int64, nodes: NodeTable) -> Self: ...
    def add(
        self,
        ts: _Int64,
        frame: _Int32,
        flags: NDArray[np.uint8],
        key_of_frame: _Int32,
        counts: _Int64 | None = None,
    ) -> tuple[_Int32, _Int32, _Int64, _Int64]: ...
    def rest(self) -> tuple[_Int32, _Int32, _Int64, _Int64]: ...

def add_to_ancestors(parent: _Int32, amount: NDArray[np.int64 | np.float64]) -> None: ...
def mark_ancestors(parent: _Int32, node: _Int32, is_marked: NDArray[np.uint8], out: _Int32) -> int: ...
def inclusive_by_row(prefix: _Int32, func: _Int32, row: _Int32, own: _Int64, n_rows: int) -> _Int64: ...
