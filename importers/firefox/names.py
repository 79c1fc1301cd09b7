"""Map: names of addresses in libraries, of profiles whose functions are addresses: of samply's file beside the profile,
of the libraries' files as everywhere, of a symbol server."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from traceferry.common.report import Report
from traceferry.files.source import Source
from traceferry.importers.firefox.columns import text_of
from traceferry.importers.firefox.sidecar import Sidecar
from traceferry.libraries.library import Found, Library
from traceferry.libraries.recorded_files import Recorded
from traceferry.libraries.search import Libraries
from traceferry.model import TraceBuilder
from traceferry.reading import ImportContext
from traceferry.symbolication.build_id import build_id_of_debug_id
from traceferry.symbolication.libraries import LibraryFiles, unnamed

if TYPE_CHECKING:
    from traceferry.importers.firefox.symbol_server import SymbolServer

BREAKPAD_DIGITS = 33
ADVICE = (
    "beside the profile, samply record --unstable-presymbolicate writes a file with its names; --symbols FILE-OR-DIR, "
    "--sysroot DIR and --debuginfod give the libraries; --symbol-server URL asks a server, as of samply load"
)


class _Libraries(Libraries):
    """Libraries of a profile: those without a file are told of by the number of their samples."""

    def _note_nameless(self, library: Library) -> None:
        if library.symbols is not None:
            super()._note_nameless(library)


class Names:
    """Asks what a user has for names, once for each address. lib: as the profile lists it; row: of the trace's libs."""

    def __init__(self, trace: TraceBuilder, context: ImportContext, source: Source) -> None:
        self._trace, self._source = trace, source
        self._libraries = _Libraries(trace, context, source)
        self._sidecar = Sidecar.beside(source, trace.report, context.limit)
        self._server = _server_of(context.options.symbol_server, trace.report)
        self._library_of: dict[int, Library] = {}
        self._found: dict[tuple[int, int], Found] = {}
        self._n_nameless: defaultdict[str, int] = defaultdict(int)

    def of(self, libs: Sequence[Any], rows: Sequence[int], asked: Sequence[tuple[int, int]]) -> list[Found]:
        """Returns what is at (number of the library in `libs`, address): (frames, start of the function), no frames
        where nothing is found."""
        wanted: defaultdict[int, list[int]] = defaultdict(list)
        for number, address in dict.fromkeys(asked):
            if (rows[number], address) not in self._found:
                wanted[number].append(address)
        for number, addresses in wanted.items():
            answers = self._in_sidecar(libs[number], addresses) or self._in_files(libs[number], rows[number], addresses)
            self._found.update(((rows[number], address), one) for address, one in zip(addresses, answers, strict=True))
        if self._server is not None:
            self._ask_server(libs, rows, wanted)
        return [self._found[rows[number], address] for number, address in asked]

    def _in_sidecar(self, lib: Any, addresses: list[int]) -> list[Found]:
        return self._sidecar.found(lib, addresses) if self._sidecar is not None else []

    def _in_files(self, lib: Any, row: int, addresses: list[int]) -> list[Found]:
        library = self._library_of.get(row)
        if library is None:
            library = self._library_of[row] = self._libraries.library(_recorded(lib))
            library.row = row
        asked = np.array(addresses, np.int64).astype(np.uint64)
        found = library.names(asked, self._libraries.demangle)
        return [
            one if one[0] or not one[1] else ([(f"{library.name} {unnamed(one[1])}", "", 0)], one[1]) for one in found
        ]

    def _ask_server(self, libs: Sequence[Any], rows: Sequence[int], wanted: dict[int, list[int]]) -> None:
        assert self._server is not None
        open_ones = {
            number: [address for address in addresses if not self._found[rows[number], address][0]]
            for number, addresses in wanted.items()
        }
        for (number, address), one in self._server.ask(libs, open_ones).items():
            self._found[rows[number], address] = one

    def category_of(self, row: int) -> str:
        """Returns the category of a library's code, "" where it is not known."""
        library = self._library_of.get(row)
        return library.category if library is not None else ""

    # ------------------------------------------------------------ the report

    def add_nameless(self, library: str, n_samples: int) -> None:
        self._n_nameless[library] += n_samples

    def finish(self) -> None:
        """Reports what was used and what is missing, and hands the files on."""
        self._libraries.note_problems()
        files = {row: library.file for row, library in self._library_of.items() if library.symbols is not None}
        if files:
            self._trace.library_readers.append(LibraryFiles(files))
        for name, n in sorted(self._n_nameless.items(), key=lambda item: -item[1]):
            where = f"{self._source.path} {name}"
            self._trace.report.note("not_symbolicated", n, where=where, detail=f"{name}: {n} samples", advice=ADVICE)


def _server_of(url: str, report: Report) -> SymbolServer | None:
    if not url:
        return None
    from traceferry.importers.firefox.symbol_server import SymbolServer

    return SymbolServer.of(url, report)


def _recorded(lib: Any) -> Recorded:
    """Returns a library as a profile names it: by its code id, which is the build id of ELF files."""
    held = lib if isinstance(lib, dict) else {}
    path = text_of(held.get("path")) or text_of(held.get("name")) or text_of(held.get("debugName"))
    code_id, debug_id = text_of(held.get("codeId")).lower(), text_of(held.get("breakpadId"))
    if not _is_hex(code_id):
        code_id = build_id_of_debug_id(debug_id) if _is_hex(debug_id.lower()) else ""
    return Recorded(path.replace("\\", "/").replace("\0", ""), code_id)


def _is_hex(text: str) -> bool:
    """Whether it is a build id, or one of Breakpad's with its age."""
    is_long = (len(text) >= 16 and len(text) % 2 == 0) or len(text) == BREAKPAD_DIGITS
    return is_long and not set(text) - set("0123456789abcdef")
