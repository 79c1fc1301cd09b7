from typing import Any

from numpy.typing import NDArray

WIDTHS: dict[str, int]

def read(
    d: memoryview,
    buffers: NDArray[Any],
    steps: NDArray[Any],
    starts: NDArray[Any],
    columns: NDArray[Any],
    stats: NDArray[Any],
    records: NDArray[Any],
    pool: NDArray[Any],
    sums: tuple[NDArray[Any], ...],
    s: NDArray[Any],
) -> int: ...
def end_calls(
    thread: int,
    end_ts: int,
    sums: tuple[NDArray[Any], ...],
) -> None: ...
def calls(
    d: memoryview,
    buffers: NDArray[Any],
    steps: NDArray[Any],
    starts: NDArray[Any],
    names: tuple[NDArray[Any], ...],
    shift_ns: int,
    open_key: NDArray[Any],
    open_frame: NDArray[Any],
    now: int,
    out_ts: NDArray[Any],
    out_key: NDArray[Any],
    out_frame: NDArray[Any],
    out_flags: NDArray[Any],
    s: NDArray[Any],
) -> int: ...
def enter_names(
    distinct: NDArray[Any],
    numbers: NDArray[Any],
    keys: NDArray[Any],
    ids: NDArray[Any],
) -> None: ...
def find_names(
    wanted: NDArray[Any],
    ts: NDArray[Any],
    names: tuple[NDArray[Any], ...],
    found: NDArray[Any],
) -> int: ...
