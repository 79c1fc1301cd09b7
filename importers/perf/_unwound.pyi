from numpy import int32, int64, uint8, uint64
from numpy.typing import NDArray

def with_user_parts(
    chains: tuple[NDArray[uint64], NDArray[int64], NDArray[int32]],
    rows: NDArray[int64],
    stacks: tuple[NDArray[int64], NDArray[uint64], NDArray[uint8]],
    endings: NDArray[uint64],
) -> tuple[NDArray[int64], NDArray[uint64], NDArray[int64], NDArray[int64]]: ...
