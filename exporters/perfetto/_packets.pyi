from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traceferry.exporters.perfetto.packets import Value

ABSENT: np.int64

def varint(value: int) -> bytes: ...

class Message:
    def __new__(cls, **tags: int) -> Message: ...
    def __call__(self, **values: Value) -> bytes: ...
    def text(self, iid: int, **texts: str | bytes) -> bytes: ...
    def texts(self, name: str, iids: list[int], texts: list[str]) -> list[bytes]: ...
    def rows(self, around: Message, name: str, **columns: Sequence[int]) -> list[bytes]: ...
    def write_rows(self, out: OutputBuffer, around: Message, name: str, **columns: NDArray[Any]) -> None: ...

class Rows:
    def __new__(cls, message: Message, around: Message, name: str, columns: dict[str, Any]) -> Rows: ...

class OutputBuffer:
    def __init__(self, write: Callable[[memoryview], object], size: int = ...) -> None: ...
    def flush(self) -> None: ...

def executions_of(
    cpu: NDArray[np.int32],
    stack: NDArray[np.int32],
    frame: NDArray[np.int32],
    category: NDArray[np.int32],
    modes: NDArray[np.int32],
    n_cpus: int,
    n_modes: int,
) -> NDArray[np.int32]: ...
def mark(indices: NDArray[np.int32], marked: NDArray[np.uint8]) -> None: ...
def write_samples(
    out: OutputBuffer,
    sequence: int,
    task_iid: int,
    start_ts: int,
    ts: NDArray[np.int64],
    weight: NDArray[np.int64],
    followers: NDArray[np.int64],
    execution_iid: NDArray[np.int32],
    stack: NDArray[np.int32],
    callstack_iid: NDArray[np.int32],
) -> None: ...
def write_track_events(
    out: OutputBuffer,
    before: bytes,
    between: bytes,
    head: bytes,
    ts: NDArray[np.int64],
    nth: NDArray[np.int32],
    bodies: list[bytes],
) -> None: ...
def write_task_states(
    out: OutputBuffer,
    sequence: int,
    tid: int,
    start_ts: int,
    ts: NDArray[np.int64],
    states: NDArray[np.uint8],
    cpu: NDArray[np.int32],
    waker: NDArray[np.int64],
) -> None: ...
