import numpy as np
from numpy.typing import NDArray

def stacks_in_turn(
    rows: NDArray[np.int64],
    stacks: NDArray[np.int32],
    first: NDArray[np.int64],
    n_ticks: NDArray[np.int64],
    tick_stacks: NDArray[np.int32],
) -> NDArray[np.int32]: ...
