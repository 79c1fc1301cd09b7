from typing import Self

from numpy import dtype, int32, void
from numpy.typing import NDArray
from typing_extensions import Buffer

from traceferry.native.cursor import Position

ENCODINGS: dict[str, int]
DAMAGE: dict[int, str]
CUT_OFF: tuple[int, int]
N_SELECTED: int
BUFFER: dtype[void]
STEP: dtype[void]

class KnownLists:
    def __new__(cls, n_rows: int) -> Self: ...

class Cursor(Position):
    def __new__(
        cls,
        data: Buffer,
        buffers: NDArray[void],
        steps: NDArray[void],
        starts: NDArray[int32],
        mask: int,
        n_lists: int = 0,
    ) -> Self: ...
