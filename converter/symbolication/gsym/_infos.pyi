from typing import Any, final

from numpy import bool_, dtype, int64, uint8, uint64
from numpy.typing import NDArray

DAMAGES: tuple[str, ...]
IS_CUT: int
IS_OUTSIDE: int
PLACE: dtype[Any]
CALL: dtype[Any]

@final
class Decoder:
    def __new__(
        cls, data: memoryview, big: bool, offset_size: int, n_strings: int, has_path: NDArray[bool_]
    ) -> Decoder: ...
    def info(self, at: int, end: int) -> Info: ...

@final
class Info:
    damage: int
    size: int
    name: int
    def __new__(cls, file: Decoder) -> Info: ...
    @property
    def lengths(self) -> list[int]: ...
    def part(self, type_: int) -> tuple[int, int]: ...
    def rows(self, start: int) -> list[tuple[int, int, int]]: ...
    def nodes(self, start: int) -> list[tuple[int, int, int, int, tuple[tuple[int, int], ...]]]: ...

@final
class Lookup:
    places: NDArray[Any]
    @property
    def calls(self) -> NDArray[Any]: ...
    def __new__(
        cls,
        file: Decoder,
        addresses: NDArray[uint64],
        infos: NDArray[int64],
        starts: NDArray[uint64],
        damage: NDArray[uint8],
        end: int,
    ) -> Lookup: ...
