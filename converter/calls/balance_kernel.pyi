from typing import Any

from numpy.typing import NDArray

SEARCHED_MOST: int
STATE_SLOTS: dict[str, int]
ORPHAN_COLUMNS: dict[str, int]

def balance(
    ts: NDArray[Any],
    key: NDArray[Any],
    frame: NDArray[Any],
    flags: NDArray[Any],
    marks: NDArray[Any],
    inserted: NDArray[Any],
    open_key: NDArray[Any],
    open_frame: NDArray[Any],
    open_row: NDArray[Any],
    n_open: NDArray[Any],
    lists: NDArray[Any],
    orphans: NDArray[Any],
    out_ts: NDArray[Any],
    out_frame: NDArray[Any],
    out_flags: NDArray[Any],
    out_marks: NDArray[Any],
    state: NDArray[Any],
) -> int: ...
def close(
    end_ts: int,
    open_frame: NDArray[Any],
    open_row: NDArray[Any],
    lists: NDArray[Any],
    orphans: NDArray[Any],
    out_ts: NDArray[Any],
    out_frame: NDArray[Any],
    out_flags: NDArray[Any],
    state: NDArray[Any],
) -> None: ...
