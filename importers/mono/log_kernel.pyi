from typing import Any

from numpy.typing import NDArray

A = NDArray[Any]

WIDTHS: dict[str, int]

def read(
    d: memoryview, buffers: A, steps: A, starts: A, columns: A, stats: A, records: A, pool: A,
    sums: tuple[A, ...], s: A,
) -> int: ...  # fmt: skip
def end_calls(
    thread: int, end_ts: int, sums: tuple[A, ...],
) -> None: ...  # fmt: skip
def calls(
    d: memoryview, buffers: A, steps: A, starts: A, names: tuple[A, ...], shift_ns: int, open_key: A,
    open_frame: A, now: int, out_ts: A, out_key: A, out_frame: A, out_flags: A, s: A,
) -> int: ...  # fmt: skip
def enter_names(
    distinct: A, numbers: A, keys: A, ids: A,
) -> None: ...  # fmt: skip
def find_names(
    wanted: A, ts: A, names: tuple[A, ...], found: A,
) -> int: ...  # fmt: skip
