from typing import final

from numpy import int32, int64, uint8, uint32, uint64
from numpy.typing import NDArray

from traceferry.symbolication.gsym.layout import Layout

DAMAGES: tuple[str, ...]
IS_CUT: int
IS_OUTSIDE: int

@final
class Decoder:
    def __new__(cls, data: memoryview, layout: Layout) -> Decoder: ...
    def find(self, addresses: NDArray[uint64]) -> tuple[NDArray[int64], NDArray[uint64], NDArray[uint8]]: ...
    def info(self, at: int, end: int | None = None) -> Info: ...
    def rows(self, info: Info, start: int) -> list[tuple[int, int, int]]: ...
    def nodes(self, info: Info, start: int) -> list[tuple[int, int, int, int, tuple[tuple[int, int], ...]]]: ...

@final
class Info:
    damage: int
    size: int
    name: int
    end: int
    lines: int
    lines_end: int
    inlines: int
    inlines_end: int
    merged: int
    merged_end: int
    call_sites: int
    call_sites_end: int
    def __new__(cls, file: Decoder) -> Info: ...

@final
class Lookup:
    sizes: NDArray[uint64]
    counts: NDArray[int32]
    def __new__(
        cls,
        file: Decoder,
        addresses: NDArray[uint64],
        infos: NDArray[int64],
        starts: NDArray[uint64],
        damage: NDArray[uint8],
    ) -> Lookup: ...
    def frames(self, first: NDArray[int64]) -> tuple[NDArray[uint64], NDArray[uint32], NDArray[int32]]: ...
