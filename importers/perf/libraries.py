"""Map: the files of the mapped libraries, for what asks for names and machine code after loading."""

from __future__ import annotations

import numpy as np

from traceferry.importers.perf.mappings import is_anonymous
from traceferry.importers.perf.natives import Natives
from traceferry.importers.perf.spaces import Memory
from traceferry.symbolication.libraries import LibraryFiles


class MappedLibraries(LibraryFiles):
    """A LibraryReader that knows what each process had mapped. n_libs: how many libraries the trace has: those of which
    nothing was sampled are not among them, and have numbers from there on."""

    def __init__(self, natives: Natives, memory: Memory, n_libs: int) -> None:
        super().__init__({one.row: one.file for one in natives.libraries if one.row >= 0})
        self._n_libs = n_libs
        self._natives = natives
        self._memory = memory

    def holder_of(self, pid: int, ts: int, address: int) -> tuple[int, int] | None:
        mapped = self._memory.mapping_at(pid, ts, address)
        if mapped is None or is_anonymous(mapped):
            return None
        library = self._natives.library_of(mapped)
        row = library.row
        if row < 0:
            row = self._n_libs + library.number
            self._files.setdefault(row, library.file)
        relative, is_loaded = library.addresses(np.array([address - mapped.start + mapped.pgoff], np.uint64))
        return (row, int(relative[0])) if is_loaded[0] else None
