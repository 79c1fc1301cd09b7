"""Map: the resolution of addresses become frames of the trace, each once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from traceferry.importers.perf.native_frames import NativeFrames
from traceferry.importers.perf.natives import Natives
from traceferry.importers.perf.recording import Mmap
from traceferry.importers.perf.regions import NOTHING
from traceferry.importers.perf.spaces import OF_CODE, OF_FILE, OF_KERNEL, OF_NAME, AddressResolution
from traceferry.libraries.library import UNKNOWN
from traceferry.model import Array, TraceBuilder, rows_by_key
from traceferry.symbolication.code_mapping import add_tier
from traceferry.symbolication.function_table import Texts
from traceferry.symbolication.interface import Frames, joined, look_up_nothing, taken
from traceferry.symbolication.jit_names import Name, producer_of

# One name does not tell who wrote it.
NAMES_ALONE = producer_of([])

# Of each address how many frames it has (int64), and the frames of all, the outermost of each first (int32, rows of the
# trace's).
Made = tuple[Array, Array]


def frames_of(
    resolution: AddressResolution, maps: Sequence[Mmap], natives: Natives, trace: TraceBuilder, max_frames: int
) -> tuple[Array, Array]:
    """Returns (first, frames): those of row nth of an `AddressResolution` are frames[first[nth]:first[nth + 1]], the
    outermost first, of which there are at most max_frames. int64 [n + 1]; int32, rows of the trace's frames."""
    columns = (resolution.kind, resolution.owner, resolution.offset)
    order = np.lexsort((resolution.rank, *columns[::-1]))
    sorted_columns = [column[order] for column in columns]
    is_new = np.ones(len(order), bool)
    is_new[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in sorted_columns])
    group = np.cumsum(is_new) - 1
    # Frames are made in the order of spaces and addresses.
    by_rank = np.argsort(resolution.rank[order[is_new]], kind="stable")
    kind, owner, offset = (column[is_new][by_rank] for column in sorted_columns)
    rank = resolution.rank[order[is_new]][by_rank]
    n_frames, made = _Maker(trace, natives, maps, resolution).frames(kind, owner, offset, rank)
    number = np.empty(len(by_rank), np.int64)
    number[by_rank] = np.arange(len(by_rank))
    row = np.empty(len(order), np.int64)
    row[order] = number[group]
    begin, count = np.cumsum(n_frames) - n_frames, np.minimum(n_frames, max_frames)
    first = np.concatenate(([0], np.cumsum(count[row])))
    return first, made[np.arange(first[-1]) + np.repeat(begin[row] - first[:-1], count[row])]


@dataclass
class _Maker:
    trace: TraceBuilder
    natives: Natives
    maps: Sequence[Mmap]
    resolution: AddressResolution
    _categories: dict[str, int] = field(default_factory=dict)

    def frames(self, kind: Array, owner: Array, offset: Array, rank: Array) -> Made:
        """Returns the frames of each distinct (kind, owner, offset). rank: rising, as in `AddressResolution`."""
        self._function = self.trace.strings.intern("function")
        self._unknown = self._named(UNKNOWN, "Other")
        makers: dict[int, Callable[[Array, Array, Array], Made]] = {
            NOTHING: lambda nth, *_: _made([(self._unknown,)] * len(nth)), OF_FILE: self._of_files,
            OF_KERNEL: lambda nth, *_: self._native(int(nth[0]), int(nth[-1]) + 1), OF_NAME: self._of_names,
            OF_CODE: self._of_code,
        }  # fmt: skip
        self._look_up(kind, owner, offset)
        made: list[Made] = [_made([])]
        firsts, n_libraries = zip(*self.resolution.libraries, strict=True)
        edges = [*np.searchsorted(rank, firsts).tolist(), len(rank)]
        for (first, last), n in zip(pairwise(edges), n_libraries, strict=True):
            self.natives.enter(n)
            for begin, end in _runs(kind[first:last]):
                rows = np.arange(first + begin, first + end)
                made.append(makers[int(kind[rows[0]])](rows, owner[rows], offset[rows]))
        n_frames, frames = zip(*made, strict=True)
        return np.concatenate(n_frames), np.concatenate(frames)

    def _look_up(self, kind: Array, owner: Array, offset: Array) -> None:
        """Looks up each file's byte and each of the kernel's: all of a library at once."""
        address, library = offset.copy(), np.full(len(kind), -1, np.int64)
        nothing = look_up_nothing(np.zeros(1, np.uint64))
        parts, which, n = [nothing], np.zeros(len(kind), np.int64), 1

        def add(mine: Array, found: Frames, number: int) -> None:
            nonlocal n
            parts.append(found)
            library[mine], which[mine] = number, np.arange(n, n + len(mine))
            n += len(mine)

        for number, mine in _rows_by_owner(kind == OF_FILE, owner):
            address[mine], found = self.natives.libraries[number].found_at(offset[mine], self.natives.demangle)
            add(mine, found, number)
        for number, mine in _rows_by_owner(kind == OF_KERNEL, owner):
            symbols = self.natives.kernel_lookup(self.maps[number], offset[mine])
            add(mine, _of_symbols(symbols), self.natives.library_of(self.maps[number]).number)
        found = taken(joined(parts), which)
        is_object = np.array([*(one.is_jitted_object for one in self.natives.libraries), False], bool)[library]
        # What `perf inject --jit` made of a dump.
        self._is_object = is_object & (kind == OF_FILE) & (np.diff(found.first) > 0)
        self._found = found
        rows = np.flatnonzero((library >= 0) & ~self._is_object)
        self._natives = NativeFrames(rows, address[rows], taken(found, rows), library[rows], self.natives.libraries)

    def _of_files(self, rows: Array, _: Array, __: Array) -> Made:
        made: list[Made] = []
        first = int(rows[0])
        for begin, end in _runs(self._is_object[first : first + len(rows)]):
            if self._is_object[first + begin]:
                made.append(_made([self._of_object(row) for row in range(first + begin, first + end)]))
            else:
                made.append(self._native(first + begin, first + end))
        n_frames, frames = zip(*made, strict=True)
        return np.concatenate(n_frames), np.concatenate(frames)

    def _of_object(self, row: int) -> tuple[int, ...]:
        outermost = int(self._found.name[self._found.first[row + 1] - 1])
        return self._jitted(NAMES_ALONE.parse(self._found.texts[outermost]))

    def _native(self, begin: int, end: int) -> Made:
        """Returns the frames of addresses in libraries. Without a symbol, the library's name and the address stand for
        one."""
        return self._natives.made(begin, end, self.trace, self._category)

    def _of_names(self, _: Array, owner: Array, __: Array) -> Made:
        listed = (self.resolution.names[number] for number in owner.tolist())
        return _made(
            (self._named(text, category),) if producer is None else self._jitted(producer.parse(text))
            for text, producer, category in listed
        )

    def _of_code(self, _: Array, owner: Array, offset: Array) -> Made:
        codes, found = owner.tolist(), []
        reader = self.trace.code_reader(codes[0])
        for code, at in zip(codes, offset.tolist(), strict=True):
            reader = reader if code in reader.rows else self.trace.code_reader(code)
            found.append(reader.frames_at(self.trace, code, at))
        return _made(found)

    def _named(self, name: str, category: str) -> int:
        trace, intern = self.trace, self.trace.strings.intern
        func = trace.funcs.intern(name=intern(name), kind=intern("function"))
        return trace.frames.intern(func=func, category=self._category(category))

    def _jitted(self, name: Name) -> tuple[int, ...]:
        """Code of which no more is known than what its compiler calls it."""
        trace, intern = self.trace, self.trace.strings.intern
        func = trace.funcs.intern(
            name=intern(self.natives.demangle(name.function)),
            source=trace.sources.intern(path=intern(name.file)) if name.file else -1,
            line=name.line,
            column=name.column,
            is_js=name.is_js,
            kind=intern(name.kind),
        )
        tier = add_tier(trace, name.tier) if name.tier is not None else -1
        return (trace.frames.intern(func=func, category=trace.add_category(name.category), tier=tier),)

    def _category(self, name: str) -> int:
        row = self._categories.get(name)
        if row is None:
            row = self._categories[name] = self.trace.add_category(name)
        return row


def _made(frames: Iterable[Sequence[int]]) -> Made:
    of_addresses = list(frames)
    n_frames = np.array([len(one) for one in of_addresses], np.int64)
    return n_frames, np.array([frame for one in of_addresses for frame in one], np.int32)


def _of_symbols(symbols: Sequence[tuple[int, str]]) -> Frames:
    """Returns the frames of (start, name), "" is none. A start below 0 is one from 2^63 on."""
    names = Texts()
    name = np.array([names.number(name) for _, name in symbols], np.int32)
    start = np.array([start % (1 << 64) for start, _ in symbols], np.uint64)
    first, name = np.concatenate(([0], np.cumsum(name >= 0))), name[name >= 0]
    source, line = (np.full(len(name), none, np.int32) for none in (-1, 0))
    return Frames(first, name, source, line, start, np.zeros_like(start), names.held)


def _rows_by_owner(chosen: Array, owner: Array) -> Iterator[tuple[int, Array]]:
    """Yields (owner, its rows among the chosen ones, rising) of each."""
    rows = np.flatnonzero(chosen)
    for number, nth in rows_by_key(owner[rows]).items():
        yield number, rows[nth]


def _runs(values: Array) -> Iterator[tuple[int, int]]:
    """Ranges of equal values that follow one another."""
    edges = [0, *(np.flatnonzero(values[1:] != values[:-1]) + 1).tolist(), len(values)]
    yield from ((begin, end) for begin, end in pairwise(edges) if end > begin)
