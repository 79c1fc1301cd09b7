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
    entered: NDArray[Any],
    in_callees: NDArray[Any],
    sums: NDArray[Any],
    state: NDArray[Any],
) -> None: ...
def count_lasting(
    ts: NDArray[Any],
    flags: NDArray[Any],
    limits: NDArray[Any],
    entered: NDArray[Any],
    counts: NDArray[Any],
    state: NDArray[Any],
) -> None: ...
def cut(
    ts: NDArray[Any],
    frame: NDArray[Any],
    flags: NDArray[Any],
    start_ts: int,
    end_ts: int,
    open_ts: NDArray[Any],
    open_frame: NDArray[Any],
    open_flags: NDArray[Any],
    open_row: NDArray[Any],
    out_ts: NDArray[Any],
    out_frame: NDArray[Any],
    out_flags: NDArray[Any],
    out_row: NDArray[Any],
    state: NDArray[Any],
) -> None: ...
def keep_lasting(
    ts: NDArray[Any],
    frame: NDArray[Any],
    flags: NDArray[Any],
    min_ns: int,
    open_ts: NDArray[Any],
    open_frame: NDArray[Any],
    open_flags: NDArray[Any],
    open_row: NDArray[Any],
    out_ts: NDArray[Any],
    out_frame: NDArray[Any],
    out_flags: NDArray[Any],
    out_row: NDArray[Any],
    state: NDArray[Any],
) -> None: ...
