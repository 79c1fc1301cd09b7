from typing import Any

from numpy.typing import NDArray

ARGUMENT_ROOM: int

def slices(
    ts: NDArray[Any],
    frame: NDArray[Any],
    flags: NDArray[Any],
    argument_call: NDArray[Any],
    argument_iid: NDArray[Any],
    argument_value: NDArray[Any],
    head: NDArray[Any],
    head_length: NDArray[Any],
    event_at: int,
    note: NDArray[Any],
    note_length: NDArray[Any],
    max_depth: int,
    state: NDArray[Any],
    out: bytearray,
) -> int: ...
def callstacks(
    stacks: NDArray[Any],
    above: NDArray[Any],
    run: NDArray[Any],
    frame_iid: NDArray[Any],
    new_runs: NDArray[Any],
    first_iid: int,
    state: NDArray[Any],
    out: bytearray,
) -> int: ...
def counter_values(
    ts: NDArray[Any],
    bits: NDArray[Any],
    lead: bytes,
    event: bytes,
    state: NDArray[Any],
    out: bytearray,
) -> int: ...
def plain_frames(
    names: NDArray[Any],
    paths: NDArray[Any],
    lines: NDArray[Any],
    kinds: NDArray[Any],
    mappings: NDArray[Any],
    addresses: NDArray[Any],
    iids: NDArray[Any],
    out: bytearray,
) -> int: ...
def samples(
    ts: NDArray[Any],
    stack: NDArray[Any],
    weight: NDArray[Any],
    cpu_ns: NDArray[Any],
    execution_iid: NDArray[Any],
    callstack_iid: NDArray[Any],
    start: int,
    lead: bytearray,
    fields_at: int,
    state: NDArray[Any],
    out: bytearray,
) -> int: ...
def task_states(
    ts: NDArray[Any],
    scheduled: NDArray[Any],
    cpu: NDArray[Any],
    start: int,
    lead: bytearray,
    fields_at: int,
    state: NDArray[Any],
    out: bytearray,
) -> int: ...
def mark(indices: NDArray[Any], marked: NDArray[Any]) -> None: ...
def tally(stack: NDArray[Any], size: NDArray[Any], totals: NDArray[Any]) -> None: ...
def heap_samples(
    stacks: NDArray[Any],
    callstack_iid: NDArray[Any],
    totals: NDArray[Any],
    state: NDArray[Any],
    out: bytearray,
) -> int: ...
def heap_objects(
    type_id: NDArray[Any],
    size: NDArray[Any],
    offsets: NDArray[Any],
    references: NDArray[Any],
    state: NDArray[Any],
    out: bytearray,
) -> int: ...
def reach(
    starts: NDArray[Any],
    offsets: NDArray[Any],
    references: NDArray[Any],
    reached: NDArray[Any],
    begun: NDArray[Any],
    path: NDArray[Any],
) -> int: ...
