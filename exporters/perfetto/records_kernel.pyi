from typing import Any

from numpy.typing import NDArray

def samples(
    ts: NDArray[Any],
    stack: NDArray[Any],
    weight: NDArray[Any],
    cpu_ns: NDArray[Any],
    execution_iid: NDArray[Any],
    callstack_iid: NDArray[Any],
    start: int,
    lead: bytes | bytearray,
    fields_at: int,
    row: int,
    out: bytearray,
) -> tuple[int, int]: ...
def task_states(
    ts: NDArray[Any],
    scheduled: NDArray[Any],
    cpu: NDArray[Any],
    start: int,
    lead: bytes | bytearray,
    fields_at: int,
    row: int,
    runs: bool,
    last_cpu: int,
    last: int,
    out: bytearray,
) -> tuple[int, int, int, int, int]: ...
def counter_values(
    ts: NDArray[Any],
    bits: NDArray[Any],
    lead: bytes | bytearray,
    event: bytes | bytearray,
    row: int,
    out: bytearray,
) -> tuple[int, int]: ...
