from typing import Any

from numpy.typing import NDArray

def match(
    ts: NDArray[Any],
    frame: NDArray[Any],
    flags: NDArray[Any],
    out_ts: NDArray[Any],
    out_frame: NDArray[Any],
    out_flags: NDArray[Any],
    stack: NDArray[Any],
    n_open: NDArray[Any],
    marks: NDArray[Any],
    out_marks: NDArray[Any],
    state: NDArray[Any],
) -> None: ...
def close(
    end_ts: int,
    out_ts: NDArray[Any],
    out_frame: NDArray[Any],
    out_flags: NDArray[Any],
    stack: NDArray[Any],
    state: NDArray[Any],
) -> None: ...
def adopt(
    ts: NDArray[Any],
    frame: NDArray[Any],
    flags: NDArray[Any],
    out_ts: NDArray[Any],
    out_frame: NDArray[Any],
    out_flags: NDArray[Any],
    stack: NDArray[Any],
    exact: NDArray[Any],
    enter_at: NDArray[Any],
    marks: NDArray[Any],
    out_marks: NDArray[Any],
    counts: NDArray[Any],
) -> None: ...
def totals(
    ts: NDArray[Any],
    frame: NDArray[Any],
    flags: NDArray[Any],
    func_of_frame: NDArray[Any],
    stack: NDArray[Any],
    active: NDArray[Any],
    entered: NDArray[Any],
    n_calls: NDArray[Any],
    total_ns: NDArray[Any],
    self_ns: NDArray[Any],
) -> None: ...
def long_enough(
    ts: NDArray[Any], flags: NDArray[Any], min_ns: int, stack: NDArray[Any], keep: NDArray[Any]
) -> None: ...
