"""Map: native code. A mapped file's bytes become frames: by its symbols where they are at hand, else by address."""

from __future__ import annotations

import platform
import sys
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from converter.build_id import build_id_in, build_id_of, debug_id_of
from converter.code import add_category, add_tier
from converter.errors import FormatError, UsageError
from converter.jit_names import Name, producer_of
from converter.model import Trace
from converter.registry import Options
from converter.source import Source, open_source
from importers.perf.recording import JITTED_OBJECT, Mmap

if TYPE_CHECKING:
    from converter.symbols import Binary

KERNEL = "[kernel.kallsyms]"
# One name does not tell who wrote it.
NAMES_ALONE = producer_of([])
UNKNOWN = "[unknown]"
CATEGORY_COLORS = {"Native": "blue", "Kernel": "orange", "Other": "grey"}
KALLSYMS = Path("/proc/kallsyms")
KERNEL_NOTES = Path("/sys/kernel/notes")
KERNEL_IMAGE_SYMBOLS = ("_text", "_stext")


@dataclass
class Library:
    """A mapped file. row: of the trace's libs; binary: None where its symbols are not at hand."""

    row: int
    name: str
    binary: Binary | None


class Natives:
    """Frames of native code, each made once. build_ids: hex, by the recorded path."""

    def __init__(self, trace: Trace, options: Options, build_ids: Mapping[str, str], hostname: str) -> None:
        self._trace = trace
        self._build_ids = build_ids
        self._symbols = options.symbols
        self._libraries: dict[tuple[str, str], Library] = {}
        self._library_of: dict[int, Library] = {}  # by the mapping's place among all
        self._categories: dict[str, int] = {}
        self._kind = trace.strings.intern("function")
        self._is_this_machine = bool(hostname) and hostname == platform.node()
        self.unknown = self._named(UNKNOWN, "Other")

    # ------------------------------------------------------------ frames

    def of_map(self, mapped: Mmap, address: int) -> tuple[int, ...]:
        """The frames of an address inside a mapping, outermost first."""
        is_kernel = mapped.pid == -1
        library = self._library_of.get(mapped.order)
        if library is None:
            library = self._library_of[mapped.order] = self._library(mapped)
        if is_kernel:
            return (self._of_kernel(library, mapped, address),)
        offset = address - mapped.start + mapped.pgoff
        if library.binary is not None:
            relative = library.binary.relative(offset)
            found = self._of_symbols(library, relative) if relative is not None else ()
            if found:
                return found
            offset = relative if relative is not None else offset
        return (self._at(library, offset, "Native"),)

    def _of_symbols(self, library: Library, address: int) -> tuple[int, ...]:
        assert library.binary is not None
        trace, intern = self._trace, self._trace.strings.intern
        found = library.binary.frames_at(address)
        if not found:
            return ()
        if JITTED_OBJECT.fullmatch(library.name):
            return self.jitted(NAMES_ALONE.parse(found[0].name))
        symbol = trace.symbols.intern(lib=library.row, name=intern(found[0].name), address=found[0].start)
        category = self.category("Native")
        return tuple(
            trace.frames.intern(
                func=trace.funcs.intern(
                    name=intern(frame.name),
                    source=trace.sources.intern(path=intern(frame.source)) if frame.source else -1,
                    kind=self._kind,
                ),
                category=category,
                line=frame.line,
                symbol=symbol,
                lib=library.row,
                address=address,
                inline_depth=depth,
            )
            for depth, frame in enumerate(found)
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

    def _library(self, mapped: Mmap) -> Library:
        path = mapped.path
        if mapped.pid == -1:
            path = next((path.removesuffix(s) for s in KERNEL_IMAGE_SYMBOLS if path == KERNEL + s), path)
        build_id = mapped.build_id or self._build_ids.get(path, "")
        library = self._libraries.get((path, build_id))
        if library is None:
            library = self._libraries[path, build_id] = self._open(path, build_id)
        return library

    def _open(self, path: str, build_id: str) -> Library:
        name = Path(path).name
        binary = None if path.startswith("[") else self._binary(path, name, build_id)
        intern = self._trace.strings.intern
        row = self._trace.libs.intern(
            name=intern(name),
            debug_id=intern(debug_id_of(build_id)) if build_id else -1,
            code_id=intern(build_id) if build_id else -1,
            arch=intern(binary.arch) if binary is not None else -1,
        )
        return Library(row, name, binary)

    def _binary(self, path: str, name: str, build_id: str) -> Binary | None:
        """The user's file with that build id, or the recorded path's; without an id, the user's by name."""
        of_name = next((source for source in self._symbols if source.name == name), None)
        local = self._local(path) if build_id or JITTED_OBJECT.fullmatch(name) else None
        if not build_id:
            return self._opened(local or of_name)
        found = next((s for s in (*self._symbols, local) if s is not None and build_id_of(s.data) == build_id), None)
        other = of_name or local
        if found is None and other is not None:
            here = build_id_of(other.data) or "one without a build id"
            self._trace.report.note("build_id_differs", where=name, detail=f"{name}: recorded {build_id}, here {here}")
        return self._opened(found)

    def _local(self, path: str) -> Source | None:
        try:
            return open_source(path) if Path(path).is_file() else None
        except (UsageError, FormatError, OSError, ValueError):
            return None

    def _opened(self, source: Source | None) -> Binary | None:
        if source is None:
            return None
        from converter.symbols import Binary

        try:
            return Binary(source)
        except FormatError:
            return None

    @cached_property
    def _kernel_symbols(self) -> KernelSymbols:
        """Of the kernel that runs here, if it is the one that was recorded."""
        recorded = self._build_ids.get(KERNEL, "")
        try:
            if self._is_this_machine and recorded and recorded == _running_kernel():
                return read_kallsyms(KALLSYMS.read_text("ascii", "replace"))
        except OSError:
            pass
        return KernelSymbols([], [])


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
