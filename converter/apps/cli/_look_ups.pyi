from typing import final

import numpy as np
from numpy.typing import NDArray

def first_words(lines: bytes, at: int) -> tuple[NDArray[np.uint64], int]: ...

@final
class Pieces:
    def __new__(cls, texts: list[bytes]) -> Pieces: ...

@final
class Answers:
    def __new__(
        cls,
        addresses: NDArray[np.uint64],
        start: NDArray[np.uint64],
        size: NDArray[np.uint64],
        first: NDArray[np.int64],
        name: NDArray[np.int32],
        source: NDArray[np.int32],
        line: NDArray[np.int32],
        n_texts: int,
    ) -> Answers: ...
    def as_text(self, names: Pieces, sources: Pieces, ends: Pieces) -> NDArray[np.uint8]: ...
    def as_json(self, names: Pieces, sources: Pieces, ends: Pieces) -> NDArray[np.uint8]: ...
