from typing import Any

from numpy.typing import NDArray

def heap_samples(
    stacks: NDArray[Any],
    callstack_iid: NDArray[Any],
    totals: NDArray[Any],
    row: int,
    out: bytearray,
) -> tuple[int, int]: ...
def heap_objects(
    type_id: NDArray[Any],
    size: NDArray[Any],
    offsets: NDArray[Any],
    references: NDArray[Any],
    row: int,
    out: bytearray,
) -> tuple[int, int]: ...
