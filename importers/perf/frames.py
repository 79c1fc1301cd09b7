"""Map: the resolution of addresses become frames of the trace, each once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice, pairwise

import numpy as np

from traceferry.importers.perf.natives import Natives
from traceferry.importers.perf.recording import Mmap
from traceferry.importers.perf.regions import NOTHING
from traceferry.importers.perf.spaces import OF_CODE, OF_FILE, OF_KERNEL, OF_NAME, AddressResolution
from traceferry.libraries.library import MAX_OFFSET, UNKNOWN, Found, Library
from traceferry.model import Array, TraceBuilder, rows_by_key
from traceferry.symbolication.code_mapping import add_tier
from traceferry.symbolication.jit_names import Name, producer_of
from traceferry.symbolication.libraries import unnamed

# One name does not tell who wrote it.
NAMES_ALONE = producer_of([])

Frames = tuple[int, ...]


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
    made = _Maker(trace, natives, maps, resolution).frames(kind, owner, offset, rank)
    number = np.empty(len(by_rank), np.int64)
    number[by_rank] = np.arange(len(by_rank))
    row = np.empty(len(order), np.int64)
    row[order] = number[group]
    count = np.array([min(len(frames), max_frames) for frames in made], np.int64)
    flat = np.array([frame for frames in made for frame in frames[:max_frames]], np.int32)
    begin = np.cumsum(count) - count
    first = np.concatenate(([0], np.cumsum(count[row])))
    return first, flat[np.arange(first[-1]) + np.repeat(begin[row] - first[:-1], count[row])]


@dataclass
class _Maker:
    trace: TraceBuilder
    natives: Natives
    maps: Sequence[Mmap]
    resolution: AddressResolution
    _categories: dict[str, int] = field(default_factory=dict)

    def frames(self, kind: Array, owner: Array, offset: Array, rank: Array) -> list[Frames]:
        """Returns the frames of each distinct (kind, owner, offset), the outermost first. rank: rising, as in
        `AddressResolution`."""
        self._function = self.trace.strings.intern("function")
        self._unknown = self._named(UNKNOWN, "Other")
        makers: dict[int, Callable[[Array, Array, Array], list[Frames]]] = {
            NOTHING: lambda nth, *_: [(self._unknown,)] * len(nth), OF_FILE: self._of_files,
            OF_KERNEL: self._of_kernel, OF_NAME: self._of_names, OF_CODE: self._of_code,
        }  # fmt: skip
        self._found = self._look_up(kind, owner, offset)
        made: list[Frames] = []
        firsts, n_libraries = zip(*self.resolution.libraries, strict=True)
        edges = [*np.searchsorted(rank, firsts).tolist(), len(rank)]
        for (first, last), n in zip(pairwise(edges), n_libraries, strict=True):
            self.natives.enter(n)
            for begin, end in _runs(kind[first:last]):
                rows = np.arange(first + begin, first + end)
                made += makers[int(kind[rows[0]])](rows, owner[rows], offset[rows])
        return made

    def _look_up(self, kind: Array, owner: Array, offset: Array) -> list[tuple[int, Found]]:
        """Returns (address, what is found there) for each file's byte and each of the kernel's: all of a library at
        once."""
        nothing: Found = ([], 0)
        found: list[tuple[int, Found]] = [(address, nothing) for address in offset.tolist()]
        for number, mine in _rows_by_owner(kind == OF_FILE, owner):
            library = self.natives.libraries[number]
            answers = zip(*library.found_at(offset[mine], self.natives.demangle), strict=True)
            for nth, answer in zip(mine.tolist(), answers, strict=True):
                found[nth] = answer
        for number, mine in _rows_by_owner(kind == OF_KERNEL, owner):
            symbols = self.natives.kernel_lookup(self.maps[number], offset[mine])
            for nth, (start, name) in zip(mine.tolist(), symbols, strict=True):
                found[nth] = (found[nth][0], ([(name, "", 0)] if name else [], start))
        return found

    def _of_files(self, rows: Array, owner: Array, _: Array) -> list[Frames]:
        libraries = [self.natives.libraries[number] for number in owner.tolist()]
        answers = self._found[int(rows[0]) : int(rows[-1]) + 1]
        made: list[Frames] = []
        for begin, end in _runs(np.array([library.is_jitted_object for library in libraries])):
            if libraries[begin].is_jitted_object:
                made += [self._of_object(libraries[nth], answers[nth]) for nth in range(begin, end)]
            else:
                made += self._native(libraries[begin:end], answers[begin:end])
        return made

    def _of_object(self, library: Library, answer: tuple[int, Found]) -> Frames:
        """Returns the frames of what `perf inject --jit` made of a dump."""
        _, (frames, _) = answer
        if frames:
            return self._jitted(NAMES_ALONE.parse(frames[0][0]))
        return self._native([library], [answer])[0]

    def _of_kernel(self, rows: Array, owner: Array, _: Array) -> list[Frames]:
        numbers = owner.tolist()
        libraries = {number: self.natives.library_of(self.maps[number]) for number in dict.fromkeys(numbers)}
        return self._native([libraries[number] for number in numbers], self._found[int(rows[0]) : int(rows[-1]) + 1])

    def _native(self, libraries: Sequence[Library], answers: Sequence[tuple[int, Found]]) -> list[Frames]:
        """Returns the frames of addresses in libraries. answers: (the address, what its symbols say). Without a symbol,
        the library's name and the address stand for one."""
        trace, intern = self.trace, self.trace.strings.intern
        # Most are met many times: by library, name and start; by name and source.
        symbols: dict[tuple[int, int, int], int] = {}
        funcs: dict[tuple[str, str], int] = {}
        rows: list[tuple[int, int, int, int, int, int, int]] = []
        for library, (address, (frames, start)) in zip(libraries, answers, strict=True):
            if not frames:
                file = library.name
                frames = [(f"{file} {unnamed(start)}" if start else f"{file}+{address:#x}", "", 0)]
                start = start or address
            lib = symbol = at = -1
            text = intern(frames[0][0])
            category = self._category(library.category)
            if start >= 0 and address < MAX_OFFSET:
                lib, at = library.row, address
                symbol = symbols.setdefault((lib, text, start), len(symbols))
            for depth, (name, source, line) in enumerate(frames):
                func = funcs.get((name, source))
                if func is None:
                    func = funcs[name, source] = len(funcs)
                    intern(name)
                    if source:
                        trace.sources.intern(path=intern(source))
                rows.append((func, line, category, symbol, lib, at, depth))
        symbol_libs, symbol_names, symbol_starts = zip(*symbols, strict=True) if symbols else ((), (), ())
        symbol_rows = [*trace.symbols.intern_all(
            len(symbols), lib=list(symbol_libs), name=list(symbol_names), address=list(symbol_starts)
        ), -1]  # fmt: skip
        func_rows = trace.funcs.intern_all(
            len(funcs), kind=self._function, name=[intern(name) for name, _ in funcs],
            source=[trace.sources.intern(path=intern(source)) if source else -1 for _, source in funcs],
        )  # fmt: skip
        of_func, lines, categories, of_symbol, libs, addresses, depths = map(list, zip(*rows, strict=True))
        made = iter(trace.frames.intern_all(
            len(rows), func=[func_rows[func] for func in of_func], line=lines, category=categories,
            symbol=[symbol_rows[symbol] for symbol in of_symbol], lib=libs, address=addresses, inline_depth=depths,
        ))  # fmt: skip
        return [tuple(islice(made, len(frames) or 1)) for _, (frames, _) in answers]

    def _of_names(self, _: Array, owner: Array, __: Array) -> list[Frames]:
        listed = (self.resolution.names[number] for number in owner.tolist())
        return [
            (self._named(text, category),) if producer is None else self._jitted(producer.parse(text))
            for text, producer, category in listed
        ]

    def _of_code(self, _: Array, owner: Array, offset: Array) -> list[Frames]:
        codes, found = owner.tolist(), []
        reader = self.trace.code_reader(codes[0])
        for code, at in zip(codes, offset.tolist(), strict=True):
            reader = reader if code in reader.rows else self.trace.code_reader(code)
            found.append(reader.frames_at(self.trace, code, at))
        return found

    def _named(self, name: str, category: str) -> int:
        trace, intern = self.trace, self.trace.strings.intern
        func = trace.funcs.intern(name=intern(name), kind=intern("function"))
        return trace.frames.intern(func=func, category=self._category(category))

    def _jitted(self, name: Name) -> Frames:
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


def _rows_by_owner(chosen: Array, owner: Array) -> Iterator[tuple[int, Array]]:
    """Yields (owner, its rows among the chosen ones, rising) of each."""
    rows = np.flatnonzero(chosen)
    for number, nth in rows_by_key(owner[rows]).items():
        yield number, rows[nth]


def _runs(values: Array) -> Iterator[tuple[int, int]]:
    """Ranges of equal values that follow one another."""
    edges = [0, *(np.flatnonzero(values[1:] != values[:-1]) + 1).tolist(), len(values)]
    yield from ((begin, end) for begin, end in pairwise(edges) if end > begin)
