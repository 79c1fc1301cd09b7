"""Map: the files of the mapped libraries, for what asks for names and machine code after loading."""

from __future__ import annotations

import numpy as np

from traceferry.importers.perf.mappings import ANONYMOUS
from traceferry.importers.perf.natives import Library, Natives
from traceferry.importers.perf.spaces import Memory
from traceferry.symbolication.libraries import LibraryFiles


class MappedLibraries(LibraryFiles):
    """A LibraryReader that knows what each process had mapped."""

    def __init__(self, natives: Natives, memory: Memory) -> None:
        super().__init__({one.row: one.file for one in natives.libraries if one.row >= 0})
        self._natives = natives
        self._memory = memory

    def holder_of(self, pid: int, ts: int, address: int) -> tuple[int, int] | None:
        mapped = self._memory.mapping_at(pid, ts, address)
        if mapped is None or ANONYMOUS.fullmatch(mapped.path):
            return None
        library = self._natives.library_of(mapped)
        if library.row < 0:  # nothing of it was sampled
            self._enter(library)
        relative, is_loaded = library.addresses(np.array([address - mapped.start + mapped.pgoff], np.uint64))
        return (library.row, int(relative[0])) if is_loaded[0] else None

    def _enter(self, library: Library) -> None:
        self._natives.enter(library.number + 1)
        self._files |= {one.row: one.file for one in self._natives.libraries[: library.number + 1]}
