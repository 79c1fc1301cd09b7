from typing import Any

from numpy.typing import NDArray

def cover(
    offsets: NDArray[Any],
    references: NDArray[Any],
    candidates: NDArray[Any],
    visited: NDArray[Any],
    path: NDArray[Any],
    chosen: NDArray[Any],
) -> int: ...
def preorder(
    offsets: NDArray[Any],
    references: NDArray[Any],
    entries: NDArray[Any],
    number: NDArray[Any],
    order: NDArray[Any],
    parent: NDArray[Any],
    cursor: NDArray[Any],
) -> int: ...
def invert(
    offsets: NDArray[Any],
    references: NDArray[Any],
    number: NDArray[Any],
    order: NDArray[Any],
    n_reached: int,
    first: NDArray[Any],
    referrer: NDArray[Any],
) -> None: ...
def dominate(
    parent: NDArray[Any],
    first: NDArray[Any],
    referrer: NDArray[Any],
    n_reached: int,
    semi: NDArray[Any],
    label: NDArray[Any],
    ancestor: NDArray[Any],
    path: NDArray[Any],
    dominator: NDArray[Any],
) -> None: ...
def bottom_up(dominator: NDArray[Any], pending: NDArray[Any], order: NDArray[Any]) -> int: ...
def add_up(order: NDArray[Any], dominator: NDArray[Any], size: NDArray[Any]) -> None: ...
def merge_classes(
    order: NDArray[Any],
    dominator: NDArray[Any],
    top: NDArray[Any],
    class_name: NDArray[Any],
    max_depth: int,
    tree_parent: NDArray[Any],
    tree_class: NDArray[Any],
    tree_depth: NDArray[Any],
    slots: NDArray[Any],
    node_of: NDArray[Any],
    state: NDArray[Any],
) -> None: ...
def tally(index: NDArray[Any], size: NDArray[Any], totals: NDArray[Any]) -> None: ...
