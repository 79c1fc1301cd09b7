from typing import Any

from numpy.typing import NDArray

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
