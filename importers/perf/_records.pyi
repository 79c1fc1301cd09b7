from enum import IntFlag
from typing import Any, Protocol, Self, final, type_check_only

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

class SampleType(IntFlag):
    IP = 1
    TID = 2
    TIME = 4
    ADDR = 8
    READ = 16
    CALLCHAIN = 32
    ID = 64
    CPU = 128
    PERIOD = 256
    STREAM_ID = 512
    RAW = 1024
    BRANCH_STACK = 2048
    REGS_USER = 4096
    STACK_USER = 8192
    WEIGHT = 16384
    DATA_SRC = 32768
    IDENTIFIER = 65536
    TRANSACTION = 131072
    REGS_INTR = 262144
    PHYS_ADDR = 524288
    AUX = 1048576
    CGROUP = 2097152
    DATA_PAGE_SIZE = 4194304
    CODE_PAGE_SIZE = 8388608
    WEIGHT_STRUCT = 16777216

LAYOUT: np.dtype[np.void]

@final
class RecordScanner:
    position: int
    n_samples: int
    sample_bytes: int
    is_bad: bool
    is_cut: bool
    def __new__(cls, data: Buffer, big: bool, begin: int, n_expected: int) -> Self: ...
    @property
    def sample_at(self) -> NDArray[np.int64]: ...
    @property
    def other_at(self) -> NDArray[np.int64]: ...
    @property
    def other_type(self) -> NDArray[np.int32]: ...
    def scan(self, end: int) -> None: ...

@type_check_only
class Events(Protocol):
    @property
    def layouts(self) -> NDArray[Any]: ...
    @property
    def ids(self) -> NDArray[Any]: ...
    @property
    def id_events(self) -> NDArray[Any]: ...
    @property
    def id_at(self) -> int: ...

@final
class SampleDecoder:
    n_rows: int
    n_chain: int
    n_bad: int
    first_bad: int
    n_no_event: int
    first_no_event: int
    def __new__(
        cls,
        data: Buffer,
        big: bool,
        table: Events,
        columns: dict[str, NDArray[Any]],
        chain: NDArray[np.uint64],
        chain_from: int,
    ) -> Self: ...
    def decode(self, begin: int, end: int) -> None: ...
