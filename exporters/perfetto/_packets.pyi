from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

def varint(value: int) -> bytes: ...
def integer(tag: int, value: int) -> bytes: ...
def fixed64(tag: int, value: int) -> bytes: ...
def text(tag: int, value: str) -> bytes: ...
def message(tag: int, *parts: bytes | memoryview) -> bytes: ...

class OutputBuffer:
    def __init__(self, write: Callable[[memoryview], object]) -> None: ...
    def flush(self) -> None: ...

def mark(indices: NDArray[np.int32], marked: NDArray[np.uint8]) -> None: ...
def write_counter(
    out: OutputBuffer, sequence: int, clock: int, track: int, ts: NDArray[np.int64], values: NDArray[np.float64]
) -> None: ...
def write_samples(
    out: OutputBuffer,
    sequence: int,
    task_iid: int,
    start_ts: int,
    ts: NDArray[np.int64],
    weight: NDArray[np.int64],
    cpu_ns: NDArray[np.int64],
    execution_iid: NDArray[np.int32],
    stack: NDArray[np.int32],
    callstack_iid: NDArray[np.int32],
) -> None: ...
def write_task_states(
    out: OutputBuffer,
    sequence: int,
    tid: int,
    start_ts: int,
    ts: NDArray[np.int64],
    states: NDArray[np.uint8],
    cpu: NDArray[np.int32],
) -> None: ...
