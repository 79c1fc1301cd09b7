from typing import NamedTuple, Self, final

from numpy import dtype, int32, int64, uint64, void
from numpy.typing import NDArray

from traceferry.heap.deaths import Deaths

FIRST_WITH_PLACES: int
MOST_PLACES: int
SLOT: dtype[void]

class Found(NamedTuple):
    number: NDArray[int64]
    site: NDArray[int32]

@final
class ObjectTracker:
    @property
    def n_events(self) -> int: ...
    @property
    def n_slots(self) -> int: ...
    def __new__(cls, moves_recorded: bool, most: int) -> Self: ...
    def allocate(self, addresses: NDArray[uint64], sizes: NDArray[int64], sites: NDArray[int32]) -> range: ...
    def collect(self, generation: int, old: NDArray[uint64], new: NDArray[uint64]) -> None: ...
    def seen(self, addresses: NDArray[uint64]) -> Found: ...
    def shot(self, addresses: NDArray[uint64], classes: NDArray[int32], class_of: NDArray[int32]) -> Found: ...
    def finish(self, unknown: NDArray[int64]) -> Deaths: ...
