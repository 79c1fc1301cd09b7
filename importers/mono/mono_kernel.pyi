from typing import Any

from numpy.typing import NDArray

def scan(
    d: memoryview,
    buffers: NDArray[Any],
    stats: NDArray[Any],
    records: NDArray[Any],
    pool: NDArray[Any],
    items: NDArray[Any],
    kinds: NDArray[Any],
    s: NDArray[Any],
) -> int: ...
def enter_keys(
    new: NDArray[Any],
    keys: NDArray[Any],
    ids: NDArray[Any],
) -> None: ...
def add_key(
    key: int,
    number: int,
    keys: NDArray[Any],
    ids: NDArray[Any],
) -> None: ...
def frames_of(
    wanted: NDArray[Any],
    ts: NDArray[Any],
    keys: NDArray[Any],
    ids: NDArray[Any],
    frames: NDArray[Any],
    defined_at: NDArray[Any],
    defined_ts: NDArray[Any],
    defined: NDArray[Any],
    found: NDArray[Any],
    s: NDArray[Any],
) -> int: ...
def calls(
    d: memoryview,
    buffers: NDArray[Any],
    keys: NDArray[Any],
    ids: NDArray[Any],
    frames: NDArray[Any],
    defined_at: NDArray[Any],
    defined_ts: NDArray[Any],
    defined: NDArray[Any],
    shift_ns: int,
    out_ts: NDArray[Any],
    out_key: NDArray[Any],
    out_frame: NDArray[Any],
    out_flags: NDArray[Any],
    items: NDArray[Any],
    s: NDArray[Any],
) -> int: ...
def enter_stacks(
    stack_prefix: NDArray[Any],
    stack_frame: NDArray[Any],
    n: int,
    slots: NDArray[Any],
) -> None: ...
def sites(
    d: memoryview,
    buffers: NDArray[Any],
    keys: NDArray[Any],
    ids: NDArray[Any],
    frames: NDArray[Any],
    defined_at: NDArray[Any],
    defined_ts: NDArray[Any],
    defined: NDArray[Any],
    open_ids: NDArray[Any],
    open_frames: NDArray[Any],
    open_stacks: NDArray[Any],
    n_open: NDArray[Any],
    stack_prefix: NDArray[Any],
    stack_frame: NDArray[Any],
    slots: NDArray[Any],
    out: NDArray[Any],
    out_stack: NDArray[Any],
    items: NDArray[Any],
    s: NDArray[Any],
) -> int: ...
def hits(
    d: memoryview,
    buffers: NDArray[Any],
    keys: NDArray[Any],
    ids: NDArray[Any],
    frames: NDArray[Any],
    defined_at: NDArray[Any],
    defined_ts: NDArray[Any],
    defined: NDArray[Any],
    stack_prefix: NDArray[Any],
    stack_frame: NDArray[Any],
    slots: NDArray[Any],
    out: NDArray[Any],
    out_stack: NDArray[Any],
    pool: NDArray[Any],
    items: NDArray[Any],
    s: NDArray[Any],
) -> int: ...
def moves(
    d: memoryview,
    buffers: NDArray[Any],
    out: NDArray[Any],
    items: NDArray[Any],
    s: NDArray[Any],
) -> int: ...
def heap(
    d: memoryview,
    buffers: NDArray[Any],
    objects: NDArray[Any],
    references: NDArray[Any],
    held: NDArray[Any],
    items: NDArray[Any],
    s: NDArray[Any],
) -> int: ...
def events(
    d: memoryview,
    buffers: NDArray[Any],
    out: NDArray[Any],
    items: NDArray[Any],
    s: NDArray[Any],
) -> int: ...
