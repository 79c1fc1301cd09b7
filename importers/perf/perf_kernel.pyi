from typing import Any

from numpy.typing import NDArray

def walk(
    d: memoryview,
    big: bool,
    state: NDArray[Any],
    counts: NDArray[Any],
    sample_at: NDArray[Any],
    other_at: NDArray[Any],
    other_type: NDArray[Any],
) -> None: ...
def samples(
    d: memoryview,
    big: bool,
    at: NDArray[Any],
    layouts: NDArray[Any],
    id_at: int,
    ids: NDArray[Any],
    id_events: NDArray[Any],
    chain_from: int,
    fields: NDArray[Any],
    found: NDArray[Any],
    chain: NDArray[Any],
    ts: NDArray[Any],
    pid: NDArray[Any],
    tid: NDArray[Any],
    event: NDArray[Any],
    cpu: NDArray[Any],
    period: NDArray[Any],
    addr: NDArray[Any],
    ip: NDArray[Any],
    cpumode: NDArray[Any],
    chain_start: NDArray[Any],
    chain_n: NDArray[Any],
    offset: NDArray[Any],
    raw_at: NDArray[Any],
    raw_size: NDArray[Any],
    user_at: NDArray[Any],
    user_abi: NDArray[Any],
    user_size: NDArray[Any],
    user_n: NDArray[Any],
) -> None: ...

STATE_SLOTS: dict[str, int]
STATUS_CODES: dict[str, int]
FOUND_SLOTS: dict[str, int]
FIELDS_SIZE: int
LAYOUT_WIDTH: int
SAMPLE_ID_SIZE_AT: int
