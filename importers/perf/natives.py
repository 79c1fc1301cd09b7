"""Map: native code. A mapped file's bytes become frames: by its symbols where they are at hand, else by address."""

from __future__ import annotations

import os
import platform
import sys
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from traceferry.errors import FormatError
from traceferry.importers.perf.recording import JITTED_OBJECT, Mmap
from traceferry.io.named_files import open_named
from traceferry.io.source import Source
from traceferry.jit.names import Name, producer_of
from traceferry.jit.places import add_category, add_tier
from traceferry.model import Array, Trace
from traceferry.registry import Options
from traceferry.symbols.build_id import build_id_in, build_id_of, debug_id_of, has_code_at

if TYPE_CHECKING:
    from traceferry.symbols import Binary, Symbols

KERNEL = "[kernel.kallsyms]"
# One name does not tell who wrote it.
NAMES_ALONE = producer_of([])
UNKNOWN = "[unknown]"
CATEGORY_COLORS = {"Native": "blue", "Kernel": "orange", "Other": "grey"}
KALLSYMS = Path("/proc/kallsyms")
KERNEL_NOTES = Path("/sys/kernel/notes")
KERNEL_IMAGE_SYMBOLS = ("_text", "_stext")

# ((name, source, line) of what runs there, the outermost first; where that function starts)
Found = tuple[list[tuple[str, str, int]], int]
NOTHING: Found = ([], 0)


@dataclass
class Library:
    """A mapped file. row: of the trace's libs; symbols: None where they are not at hand; binary: the file itself, None
    where it is not; known: what the symbols say, by address."""

    row: int
    name: str
    symbols: Symbols | None
    binary: Binary | None
    known: dict[int, Found] = field(default_factory=dict)

    def address(self, offset: int) -> int | None:
        """Of a byte of the file, relative to the lowest that is loaded. Without the file it is where linkers put it
        that leave no gaps."""
        return offset if self.binary is None else self.binary.relative(offset)


@dataclass(frozen=True)
class _Local:
    """The file at a recorded path; differs: why it is another one than was recorded, or ""."""

    source: Source | None
    differs: str = ""


class Natives:
    """Frames of native code, each made once. build_ids: hex, by the recorded path."""

    def __init__(self, trace: Trace, options: Options, build_ids: Mapping[str, str], hostname: str) -> None:
        self._trace = trace
        self._build_ids = build_ids
        self._sources = options.symbols
        self._limit = options.limit
        self._libraries: dict[tuple[str, str], Library] = {}
        self._library_of: dict[int, Library] = {}  # by the mapping's place among all
        self._categories: dict[str, int] = {}
        self._kind = trace.strings.intern("function")
        self._is_this_machine = bool(hostname) and hostname == platform.node()
        self.unknown = self._named(UNKNOWN, "Other")

    # ------------------------------------------------------------ frames

    def prepare(self, mapped: Mmap, addresses: Array) -> None:
        """Looks up all these addresses of a mapping at once. addresses: uint64."""
        library = self._library_at(mapped)
        if library.symbols is not None:
            offsets = (addresses - np.uint64(mapped.start)).tolist()
            loaded = (library.address(offset + mapped.pgoff) for offset in offsets)
            library.known |= _found(library.symbols, [a for a in loaded if a is not None and a not in library.known])

    def of_map(self, mapped: Mmap, address: int) -> tuple[int, ...]:
        """The frames of an address inside a mapping, outermost first, that was prepared."""
        library = self._library_at(mapped)
        if mapped.pid == -1:
            return (self._of_kernel(library, mapped, address),)
        offset = address - mapped.start + mapped.pgoff
        loaded = library.address(offset)
        if loaded is None:
            return (self._at(library, offset, "Native"),)
        return self._of_symbols(library, loaded) or (self._at(library, loaded, "Native"),)

    def _of_symbols(self, library: Library, address: int) -> tuple[int, ...]:
        """address: relative to the lowest that is loaded."""
        trace, intern = self._trace, self._trace.strings.intern
        frames, start = library.known.get(address, NOTHING)
        if not frames:
            return ()
        outermost = frames[0][0]
        if JITTED_OBJECT.fullmatch(library.name):
            return self.jitted(NAMES_ALONE.parse(outermost))
        symbol = trace.symbols.intern(lib=library.row, name=intern(outermost), address=start)
        category = self.category("Native")
        return tuple(
            trace.frames.intern(
                func=trace.funcs.intern(
                    name=intern(name),
                    source=trace.sources.intern(path=intern(source)) if source else -1,
                    kind=self._kind,
                ),
                category=category,
                line=line,
                symbol=symbol,
                lib=library.row,
                address=address,
                inline_depth=depth,
            )
            for depth, (name, source, line) in enumerate(frames)
        )

    def _of_kernel(self, library: Library, mapped: Mmap, address: int) -> int:
        symbol = self._kernel_symbols.at(address) if library.name == KERNEL else None
        if symbol is None:
            return self._at(library, address - mapped.start, "Kernel")
        start, name = symbol
        return self._function(library, name, address - mapped.start, start - mapped.start, "Kernel")

    def _at(self, library: Library, offset: int, category: str) -> int:
        """Without a symbol: the library's name and the place in it."""
        return self._function(library, f"{library.name}+{offset:#x}", offset, offset, category)

    def _function(self, library: Library, name: str, address: int, start: int, category: str) -> int:
        trace, text = self._trace, self._trace.strings.intern(name)
        fits = 0 <= start <= address < 1 << 62
        return trace.frames.intern(
            func=trace.funcs.intern(name=text, kind=self._kind),
            category=self.category(category),
            symbol=trace.symbols.intern(lib=library.row, name=text, address=start) if fits else -1,
            lib=library.row if fits else -1,
            address=address if fits else -1,
        )

    def of_kernel(self, name: str) -> tuple[int, ...]:
        """A program that the kernel compiled, of which only the name is known."""
        return (self._named(name, "Kernel"),)

    def _named(self, name: str, category: str) -> int:
        trace = self._trace
        func = trace.funcs.intern(name=trace.strings.intern(name), kind=self._kind)
        return trace.frames.intern(func=func, category=self.category(category))

    def jitted(self, name: Name) -> tuple[int, ...]:
        """Code of which no more is known than what its compiler calls it."""
        trace, intern = self._trace, self._trace.strings.intern
        func = trace.funcs.intern(
            name=intern(name.function),
            source=trace.sources.intern(path=intern(name.file)) if name.file else -1,
            line=name.line,
            column=name.column,
            is_js=name.is_js,
            kind=intern(name.kind),
        )
        tier = add_tier(trace, name.tier) if name.tier is not None else -1
        return (trace.frames.intern(func=func, category=add_category(trace, name.category), tier=tier),)

    def category(self, name: str) -> int:
        row = self._categories.get(name)
        if row is None:
            intern = self._trace.strings.intern
            row = self._trace.categories.intern(name=intern(name), color=intern(CATEGORY_COLORS[name]))
            self._categories[name] = row
        return row

    # ------------------------------------------------------------ files

    def _library_at(self, mapped: Mmap) -> Library:
        library = self._library_of.get(mapped.order)
        if library is None:
            library = self._library_of[mapped.order] = self._library(mapped)
        return library

    def _library(self, mapped: Mmap) -> Library:
        path = mapped.path
        if mapped.pid == -1:
            path = next((path.removesuffix(s) for s in KERNEL_IMAGE_SYMBOLS if path == KERNEL + s), path)
        build_id = mapped.build_id or self._build_ids.get(path, "")
        library = self._libraries.get((path, build_id))
        if library is None:
            library = self._libraries[path, build_id] = self._open(mapped, path, build_id)
        return library

    def _open(self, mapped: Mmap, path: str, build_id: str) -> Library:
        name = Path(path).name
        symbols, binary = (None, None) if path.startswith("[") else self._find(mapped, path, name, build_id)
        intern = self._trace.strings.intern
        row = self._trace.libs.intern(
            name=intern(name),
            debug_id=intern(debug_id_of(build_id)) if build_id else -1,
            code_id=intern(build_id) if build_id else -1,
            arch=intern(binary.arch) if binary is not None else -1,
        )
        return Library(row, name, symbols, binary)

    def _find(self, mapped: Mmap, path: str, name: str, build_id: str) -> tuple[Symbols | None, Binary | None]:
        """What names the file's code, and the file. The user's files come first; where no build id is recorded, after
        that of the recorded path, if a JIT compiler's code is in it."""
        local = self._local(path, build_id) if build_id else self._jitted_object(mapped)
        own = self._opened(local.source) if local.source is not None else None
        given, refusal = self._given_for(name, build_id)
        found = (given or own) if build_id else (own or given)
        if found is None and (refusal or local.differs):
            detail = refusal or local.differs
            self._trace.report.note("build_id_differs", where=name, detail=f"{name}: {detail}")
        return found, self._binary_of(found, own) if found is not None else None

    def _given_for(self, name: str, build_id: str) -> tuple[Symbols | None, str]:
        """(the user's symbols for a library, why the one of its name is refused)"""
        if not self._given:
            return None, ""
        from traceferry.symbols.choose import matching

        try:
            return matching(self._given, build_id, name), ""
        except FormatError as error:
            return None, error.message

    def _binary_of(self, found: Symbols, own: Symbols | None) -> Binary | None:
        """The ELF file of what was found: itself, or another of that build."""
        from traceferry.symbols.choose import is_same_build
        from traceferry.symbols.elf import ElfSymbols

        of_build = (one for one in self._given if is_same_build(one.build_id, found.build_id))
        files = (one.binary for one in (found, own, *of_build) if isinstance(one, ElfSymbols))
        return next((binary for binary in files if not binary.is_debug_file), None)

    @cached_property
    def _given(self) -> list[Symbols]:
        """What the user gives; files made of binaries before the binaries themselves."""
        opened = [one for source in self._sources if (one := self._opened(source)) is not None]
        if not opened:
            return []
        from traceferry.symbols.elf import ElfSymbols

        return sorted(opened, key=lambda one: isinstance(one, ElfSymbols) and not one.binary.is_debug_file)

    def _local(self, path: str, build_id: str) -> _Local:
        """The file at the recorded path, if it is of that build."""
        here: list[str] = []

        def is_that_build(head: memoryview) -> bool:
            here.append(build_id_of(head))
            return here[0] == build_id

        source = self._open_local(path, is_that_build)
        differs = here and here[0] != build_id
        detail = f"recorded {build_id}, here {here[0] or 'one without a build id'}" if differs else ""
        return _Local(source, detail)

    def _jitted_object(self, mapped: Mmap) -> _Local:
        """What `perf inject` wrote, whose build id it records only if asked to. It maps the file's code, and nothing
        else: another recording's file of that name has code of another size."""
        if not JITTED_OBJECT.fullmatch(Path(mapped.path).name):
            return _Local(None)
        source = self._open_local(mapped.path)
        if source is None or has_code_at(source.data, mapped.pgoff, mapped.pgoff + mapped.length):
            return _Local(source)
        return _Local(None, f"recorded {mapped.length} bytes of code at {mapped.pgoff:#x}, here others")

    def _open_local(self, path: str, is_right: Callable[[memoryview], bool] | None = None) -> Source | None:
        if not os.path.isabs(path):
            return None
        source = open_named(path, self._trace.report, is_right=is_right, limit=self._limit)
        if source is not None:
            source.note_losses(self._trace.report)
        return source

    def _opened(self, source: Source) -> Symbols | None:
        from traceferry.symbols.choose import open_symbols

        try:
            return open_symbols(source)
        except FormatError:
            return None

    def note_problems(self) -> None:
        """Of symbols, once everything was looked up."""
        from traceferry.symbols.choose import note_problems

        for library in self._libraries.values():
            symbols = library.symbols
            if symbols is not None:
                note_problems(self._trace.report, symbols)
                by_offset = int(library.binary is None)
                self._trace.report.note("symbols_by_offset", by_offset, where=symbols.path, detail=symbols.name)

    @cached_property
    def _kernel_symbols(self) -> KernelSymbols:
        """Of the kernel that runs here, if it is the one that was recorded."""
        recorded = self._build_ids.get(KERNEL, "")
        try:
            if self._is_this_machine and recorded and recorded == _running_kernel():
                self._trace.report.note("files_read", where=str(KALLSYMS), detail=str(KALLSYMS))
                return read_kallsyms(KALLSYMS.read_text("ascii", "replace"))
        except OSError:
            pass
        return KernelSymbols([], [])


def _found(symbols: Symbols, addresses: Sequence[int]) -> dict[int, Found]:
    """Addresses are relative to the lowest that is loaded."""
    from traceferry.symbols.shown import shown_frames

    found = symbols.lookup(np.array([(symbols.base + address) % (1 << 64) for address in addresses], np.uint64))
    frames = [(name or UNKNOWN, source, line) for name, source, line in shown_frames(found)]
    first, start = found.first.tolist(), found.start.tolist()
    return {
        address: (frames[first[nth] : first[nth + 1]][::-1], max(start[nth] - symbols.base, 0))
        for nth, address in enumerate(addresses)
    }


@dataclass(frozen=True)
class KernelSymbols:
    addresses: Sequence[int]
    names: Sequence[str]

    def at(self, address: int) -> tuple[int, str] | None:
        nth = bisect_right(self.addresses, address) - 1
        return (self.addresses[nth], self.names[nth]) if nth >= 0 else None


def read_kallsyms(text: str) -> KernelSymbols:
    """Functions of the kernel itself: a line is `address type name`, and a module's has its name behind."""
    rows: list[tuple[int, str]] = []
    for line in text.splitlines():
        words = line.split()
        if len(words) == 3 and words[1] in "tTwW" and int(words[0], 16):
            rows.append((int(words[0], 16), words[2]))
    rows.sort()
    return KernelSymbols([address for address, _ in rows], [name for _, name in rows])


def _running_kernel() -> str:
    return build_id_in(KERNEL_NOTES.read_bytes(), "<" if sys.byteorder == "little" else ">")
