from typing import Any

from numpy import float64, int32, int64, uint8
from numpy.typing import NDArray

from traceferry.native.nodes import NodeTable

def whole_numbers(values: NDArray[float64], default: int, most: float) -> tuple[NDArray[int64], int]: ...
def cpu_times(values: NDArray[float64], scale: float) -> NDArray[int64]: ...
def count_outside(indices: NDArray[int64], size: int) -> int: ...
def resolve(
    prefix: NDArray[int64],
    frame: NDArray[int64],
    category: NDArray[int64],
    depth: NDArray[int64],
    place: NDArray[Any],
    counts: bool,
    default: int,
) -> tuple[NDArray[int64], NDArray[int64], int, int]: ...
def intern_stacks(
    table: NodeTable, prefix: NDArray[int64], group: NDArray[int32], first: NDArray[int64], keys: NDArray[int32]
) -> NDArray[int32]: ...
def intern_leaves(
    table: NodeTable, above: NDArray[int32], group: NDArray[int32], first: NDArray[int64], keys: NDArray[int32]
) -> NDArray[int32]: ...
def calls_between(
    parent: NDArray[int32], frame: NDArray[int32], stacks: NDArray[int32], ts: NDArray[int64]
) -> tuple[NDArray[int64], NDArray[int32], NDArray[uint8]]: ...
