"""The work of `traceferry symbols`: makes GSYM files, looks addresses up, compares files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice, pairwise
from typing import Any, NamedTuple

import numpy as np

from traceferry import registry
from traceferry.apps.cli._look_ups import Answers, Pieces
from traceferry.common.errors import FormatError, UsageError
from traceferry.common.report import Report
from traceferry.common.shown_text import shown
from traceferry.files.output import open_output
from traceferry.files.pack import inputs_of
from traceferry.files.source import Source
from traceferry.loading import load_sources
from traceferry.model import Array, TraceBuilder, distinct
from traceferry.reading import ImportContext
from traceferry.symbolication.binary import Binary
from traceferry.symbolication.choose import SymbolIndex, open_symbols
from traceferry.symbolication.code_symbols import CodeSymbols
from traceferry.symbolication.debug_files import stripped_binary
from traceferry.symbolication.demangle import Demangler, shown_path
from traceferry.symbolication.elf import ElfSymbols, named_functions
from traceferry.symbolication.gsym import writer as gsym_writer
from traceferry.symbolication.gsym.infos import CallSite
from traceferry.symbolication.gsym.layout import EXTERNAL_CALL, INTERNAL_CALL
from traceferry.symbolication.gsym.reader import Gsym
from traceferry.symbolication.interface import Frames, Symbols

DEBUG_SECTIONS = (".debug_", ".zdebug_")
AT_ONCE = 1 << 17
MAX_ADDRESS = (1 << 64) - 1
MERGED, CALL_SITES = "merged functions", "call sites"  # parts of a GSYM file

NOTHING_MORE = b',"merged":[],"calls":[]}\n'

Shown = tuple[str, str, int]  # a frame: name, source, line


class Files:
    """Opens files of symbols and recordings. context: what the options name; report: gets what is found and lost."""

    def __init__(self, context: ImportContext, report: Report) -> None:
        self._context = context
        self._report = report
        self._debug_files = context.debug_files(report)

    def open(self, source: Source, at_ns: int | None = None) -> Symbols:
        """Opens a file of symbols, or a recording with code objects, or a pack of one. at_ns: of a recording, the time
        after its start whose code counts; None: what was loaded last. Raises FormatError for anything else."""
        try:
            symbols = open_symbols(source, self._debug_files.beside())
            if at_ns is not None:
                raise UsageError(f"{source.path}: only a recording's code has a time: --at does not apply here")
            return self._named(symbols)
        except FormatError as no_symbols:
            sources = inputs_of(source)
            try:
                for one in sources:
                    registry.detect(one)
            except FormatError:
                raise no_symbols from None
        trace = TraceBuilder()
        load_sources(sources, trace, self._context)
        if not len(trace.code):
            raise UsageError(f"{source.path}: the recording has no jitted code")
        return CodeSymbols(trace, None if at_ns is None else trace.start_ts + at_ns)

    def _named(self, symbols: Symbols) -> Symbols:
        """Returns what names the functions of a binary without debug information: the user's files, else its debug
        file, else its own symbols."""
        binary = stripped_binary(symbols)
        if binary is None:
            return symbols
        given = self._given.matching(symbols.build_id, symbols.name)
        found = given or self._debug_files.debug_symbols(binary, os.path.abspath(symbols.path), symbols.name)
        if found is None:
            return symbols
        self._report.note("symbols_used", where=found.path, detail=f"{symbols.name}: {found.gives} of {found.path}")
        return found

    @cached_property
    def _given(self) -> SymbolIndex[Symbols]:
        opened: list[Symbols] = []
        for source in self._context.symbols:
            try:
                opened.append(open_symbols(source, self._debug_files.beside()))
            except FormatError as error:
                self._report.note("symbols_unused", where=source.path, detail=f"{source.path}: {error.message}")
        return SymbolIndex(sorted(opened, key=lambda one: isinstance(one, ElfSymbols) and not one.binary.is_debug_file))


# ---------------------------------------------------------------- what it is


def describe(symbols: Symbols, source: Source) -> Iterator[str]:
    """Yields text: build id, numbers of functions and lines, sizes."""
    n_functions = n_lines = n_inlined = 0
    for function in symbols.functions():
        n_functions += 1
        n_lines += len(function.lines)
        n_inlined += len(function.inlines)
    yield f"{symbols.name}: {n_functions} functions, {n_lines} lines, {n_inlined} functions inlined directly into them"
    yield f"build id {symbols.build_id or 'unknown'}, lowest address {symbols.base:#x}"
    for what, size in _parts(symbols, source).items():
        yield f"{size:>12}  bytes of {what}"


def _parts(symbols: Symbols, source: Source) -> dict[str, int]:
    if isinstance(symbols, Gsym):
        return symbols.sizes()
    of_elf = {"debug information": debug_bytes(symbols.binary)} if isinstance(symbols, ElfSymbols) else {}
    return {**of_elf, "the file": len(source.data)}


def debug_bytes(binary: Binary) -> int:
    """Returns how many bytes of an ELF file are debug information; 0 where its sections are unreadable."""
    return sum(section.size for section in binary.sections if section.name.startswith(DEBUG_SECTIONS))


# ---------------------------------------------------------------- making


def make_gsym(symbols: Symbols, source: Source, output: str) -> str:
    """Writes all functions of the symbols as GSYM; returns a summary as text. Raises UsageError if the output cannot be
    written."""
    big = isinstance(symbols, ElfSymbols) and not symbols.binary.little_endian
    uuid = bytes.fromhex(symbols.build_id)
    with open_output(output) as out:
        written = gsym_writer.write(out, named_functions(symbols), uuid=uuid, base=symbols.base, big=big)
    text = f"wrote {output}: {written.n_functions} functions, {written.n_bytes} bytes"
    kind, size = _said_before(symbols, source)
    if size:
        text += f"; {kind} {size} bytes, {size / written.n_bytes:.1f} times as many"
    if written.n_left_out:
        text += f"; left out {written.n_left_out} functions without a name or outside the loaded addresses"
    return text


def _said_before(symbols: Symbols, source: Source) -> tuple[str, int]:
    """Returns what of the input says the same, and in how many bytes."""
    if isinstance(symbols, ElfSymbols):
        return "DWARF has", debug_bytes(symbols.binary)
    return ("", 0) if isinstance(symbols, CodeSymbols) else (f"{symbols.name} has", len(source.data))


# ---------------------------------------------------------------- looking up


def lookup_text(symbols: Symbols, source: Source, addresses: Iterable[Array], demangle: Demangler) -> Iterator[str]:
    """Yields the frames of each address (uint64, in any order) as text, the innermost first, a line each; a piece for
    each array of addresses."""
    with_merged = _gsym_with(MERGED, symbols, source)
    for asked in addresses:
        found = symbols.lookup(asked)
        names = Pieces([shown(demangle(name)).encode() for name in _texts_of_names(found, demangle)])
        ends = [b""]
        if with_merged:
            ends = [_merged_as_text(with_merged, address, demangle) for address in asked.tolist()]
        sources = Pieces([shown(text).encode() for text in [*found.texts, ""]])
        yield _answers(asked, found).as_text(names, sources, Pieces(ends)).tobytes().decode()


def _merged_as_text(symbols: Gsym, address: int, demangle: Demangler) -> bytes:
    lead = " " * len(f"{address:#x}: ")
    others = symbols.merged(address)[1:]
    return "".join(f"{lead}or, merged with it, {shown(demangle(_outermost(other)))}\n" for other in others).encode()


def lookup_json(symbols: Symbols, source: Source, addresses: Iterable[Array], demangle: Demangler) -> Iterator[str]:
    """Yields what `lookup_text` says of each address as an object of JSON, a line each:

    {"address": "0x1234", "function": {"name", "linkage_name", "start": "0x1200", "size"} or null,
     "frames": [{"name", "linkage_name", "source", "line", "inlined"}, ...], "merged": [{"name", "linkage_name"}, ...],
     "calls": [{"returns_to": "0x1210", "callees": [...], "internal", "external"}, ...]}

    frames: the innermost first; a source or line of null is unknown, as are a start and size that the symbols do not
    tell. merged: functions that a linker merged with this one. calls: of the function, as far as they were written
    down, with names or patterns of what is called.
    """
    import orjson

    with_merged, with_calls = _gsym_with(MERGED, symbols, source), _gsym_with(CALL_SITES, symbols, source)
    for asked in addresses:
        found = symbols.lookup(asked)
        # What is between the braces of an object.
        names = Pieces([orjson.dumps(_named(name, demangle))[1:-1] for name in _texts_of_names(found, demangle)])
        ends = [NOTHING_MORE]
        if with_merged or with_calls:
            is_found = (np.diff(found.first) > 0).tolist()
            ends = [
                _more_as_json(with_merged if is_held else None, with_calls if is_held else None, address, demangle)
                for address, is_held in zip(asked.tolist(), is_found, strict=True)
            ]
        sources = Pieces([orjson.dumps(text or None) for text in [*found.texts, ""]])
        yield _answers(asked, found).as_json(names, sources, Pieces(ends)).tobytes().decode()


def _more_as_json(with_merged: Gsym | None, with_calls: Gsym | None, address: int, demangle: Demangler) -> bytes:
    """Returns what is behind the frames of an address, to the end of its line."""
    import orjson

    others = with_merged.merged(address)[1:] if with_merged else []
    calls = with_calls.call_sites(address) if with_calls else []
    more = {
        "merged": [_named(_outermost(other), demangle) for other in others],
        "calls": [_call(site) for site in calls],
    }
    return b"," + orjson.dumps(more, option=orjson.OPT_APPEND_NEWLINE)[1:]


def _named(linkage_name: str, demangle: Demangler) -> dict[str, str]:
    return {"name": demangle(linkage_name), "linkage_name": linkage_name}


def _answers(asked: Array, found: Frames) -> Answers:
    return Answers(
        asked, found.start, found.size, found.first, found.name, found.source, found.line, len(found.texts)
    )  # fmt: skip


def _texts_of_names(found: Frames, demangle: Demangler) -> list[str]:
    """Returns the texts, "" in place of each that is no function's name; "" behind them stands for what is unknown.
    They are demangled together."""
    is_name = np.zeros(len(found.texts) + 1, bool)
    is_name[found.name] = True
    demangle.learn(text for text, is_one in zip(found.texts, is_name.tolist(), strict=False) if is_one)
    return [text if is_one else "" for text, is_one in zip([*found.texts, ""], is_name.tolist(), strict=True)]


def _gsym_with(part: str, symbols: Symbols, source: Source) -> Gsym | None:
    """Returns the symbols if they are a GSYM file that holds data of that type. Sizes are read by another reader:
    damage elsewhere in the file does not concern the look-ups."""
    return symbols if isinstance(symbols, Gsym) and Gsym(source).sizes()[part] else None


def _call(site: CallSite) -> dict[str, Any]:
    return {
        "returns_to": f"{site.address:#x}", "callees": list(site.callees),
        "internal": bool(site.flags & INTERNAL_CALL), "external": bool(site.flags & EXTERNAL_CALL),
    }  # fmt: skip


def _names_of(frames: Frames) -> list[str]:
    """Returns the names of the functions."""
    return [frames.texts[name] for name in distinct(frames.name).tolist() if name >= 0]


def _outermost(frames: Frames) -> str:
    return frames.texts[int(frames.name[-1])]


def as_text(address: int, found: Sequence[Shown]) -> str:
    """Returns the frames of one address as text."""
    lead = f"{address:#x}: "
    lines = [shown(f"{name} at {source}:{line}" if source else name) for name, source, line in found]
    return lead + ("\n" + " " * len(lead)).join(lines or ["no symbol"])


def frames_by_address(frames: Frames) -> Iterator[list[Shown]]:
    """Yields the frames of each address, the innermost first."""
    texts = [*frames.texts, ""]
    names, sources = ([texts[i] for i in column.tolist()] for column in (frames.name, frames.source))
    rows = list(zip(names, sources, frames.line.tolist(), strict=True))
    yield from (rows[begin:end] for begin, end in pairwise(frames.first.tolist()))


# ---------------------------------------------------------------- checking


class Difference(NamedTuple):
    """An address at which two files differ."""

    address: int
    mine: Sequence[Shown]
    other: Sequence[Shown]


def verify(symbols: Symbols, other: Symbols, demangle: Demangler) -> tuple[int, list[Difference]]:
    """Compares both at the start, middle and end of each function of `symbols`; returns how many addresses, and the
    differences."""
    n_compared, differences = 0, list[Difference]()
    functions = symbols.functions()
    while bunch := list(islice(functions, AT_ONCE)):
        ends = (at for f in bunch for at in (f.start, f.start + f.size // 2, f.start + max(f.size, 1) - 1))
        addresses = np.array(sorted({at for at in ends if at <= MAX_ADDRESS}), np.uint64)
        n_compared += len(addresses)
        differences += _differences(symbols, other, addresses, demangle)
    return n_compared, differences


def _differences(symbols: Symbols, other: Symbols, addresses: Array, demangle: Demangler) -> Iterator[Difference]:
    """Yields differences. Names are compared as people write them: of a constructor's two symbols at one address, each
    file keeps one. Paths are compared without what goes up again: a/../b is b."""
    found = symbols.lookup(addresses), other.lookup(addresses)
    demangle.learn(name for frames in found for name in _names_of(frames))
    both = zip(*(frames_by_address(frames) for frames in found), strict=True)
    for address, (mine, wanted) in zip(addresses.tolist(), both, strict=True):
        one, two = _comparable(mine, demangle), _comparable(wanted, demangle)
        if one != two:
            yield Difference(address, one, two)


def _comparable(frames: Sequence[Shown], demangle: Demangler) -> list[Shown]:
    return [(demangle(name), shown_path(source), line) for name, source, line in frames]
