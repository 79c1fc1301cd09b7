from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

class Letter(IntEnum):
    COULD_RUN = 1
    HAS_ENDED = 2

class Proof(IntEnum):
    WAITED = 1
    WAITS_HERE = 2

class StateRows:
    ts: NDArray[np.int64]
    state: NDArray[np.uint8]
    cpu: NDArray[np.int32]
    step: NDArray[np.int32]
    wake: NDArray[np.int32]

def states(
    ts: NDArray[np.int64],
    what: NDArray[np.uint8],
    letter: NDArray[np.uint8],
    cpu: NDArray[np.int32],
    letters: NDArray[np.uint8],
    seen: tuple[NDArray[np.int64], NDArray[np.int32]],
    wakes: tuple[NDArray[np.int64], NDArray[np.uint8] | None],
    idle: NDArray[np.int64] | None,
    end: int,
    tells_returns: bool,
) -> StateRows: ...
