from typing import Any

from numpy.typing import NDArray

def fold_stacks(
    prefix: NDArray[Any],
    key_of_stack: NDArray[Any],
    first: int,
    n_nodes: int,
    node_parent: NDArray[Any],
    node_key: NDArray[Any],
    slots: NDArray[Any],
    node_of_stack: NDArray[Any],
) -> int: ...
def add_calls(
    ts: NDArray[Any],
    frame: NDArray[Any],
    flags: NDArray[Any],
    key_of_frame: NDArray[Any],
    ends: NDArray[Any],
    state: NDArray[Any],
    path: NDArray[Any],
    node_parent: NDArray[Any],
    node_key: NDArray[Any],
    slots: NDArray[Any],
    own_ns: NDArray[Any],
    own_calls: NDArray[Any],
    touched: NDArray[Any],
    out_bucket: NDArray[Any],
    out_node: NDArray[Any],
    out_ns: NDArray[Any],
    out_calls: NDArray[Any],
) -> None: ...
def add_to_ancestors(parent: NDArray[Any], amount: NDArray[Any]) -> None: ...
def mark_ancestors(parent: NDArray[Any], node: NDArray[Any], is_marked: NDArray[Any], out: NDArray[Any]) -> int: ...
def add_parts_to_ancestors(parent: NDArray[Any], amount: NDArray[Any]) -> None: ...
def add_to_callers(
    prefix: NDArray[Any],
    func: NDArray[Any],
    row: NDArray[Any],
    of_stack: NDArray[Any],
    child: NDArray[Any],
    sibling: NDArray[Any],
    n_open: NDArray[Any],
    of_row: NDArray[Any],
) -> None: ...
