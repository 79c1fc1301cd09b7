from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

class Letter(IntEnum):
    COULD_RUN = 1
    HAS_ENDED = 2

class Proof(IntEnum):
    WAITED = 1
    WAITS_HERE = 2

_Columns = tuple[
    NDArray[np.int64], NDArray[np.uint8], NDArray[np.int32], NDArray[np.uint8], NDArray[np.int32], NDArray[np.int32]
]

class StateRows:
    @property
    def columns(self) -> _Columns: ...
    def put_before(self, columns: _Columns) -> None: ...

def steps_by_thread(
    places: NDArray[np.int32],
    n_threads: int,
    ts: NDArray[np.int64],
    rows: NDArray[np.int64],
    letters: NDArray[np.uint8],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint8], NDArray[np.int32], NDArray[np.uint8]]: ...
def seen_running(
    rows: NDArray[np.int64],
    event: NDArray[np.int32],
    tells_nothing: NDArray[np.uint8],
    ts: NDArray[np.int64],
    cpu: NDArray[np.int32],
) -> tuple[NDArray[np.int64], NDArray[np.int32]]: ...
def states(
    steps: tuple[NDArray[np.int64], NDArray[np.uint8], NDArray[np.uint8], NDArray[np.int32], NDArray[np.int32]],
    letters: NDArray[np.uint8],
    seen: tuple[NDArray[np.int64], NDArray[np.int32]],
    wakes: tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.uint8] | None],
    idle: NDArray[np.int64] | None,
    end: int,
    tells_returns: bool,
) -> StateRows: ...
def scheduling_columns(
    rows: _Columns,
    offset: int,
    reasons: NDArray[np.int32],
    stacks: NDArray[np.int32],
    wakers: NDArray[np.int32],
) -> dict[str, NDArray[Any]]: ...
