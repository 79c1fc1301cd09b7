"""Fuzzing with options: what a user can choose is chosen by the input's checksum, so that each input has its own."""

from __future__ import annotations

import hashlib
import io
import zlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from common import NARROWED_OUTPUTS, ROOT

if TYPE_CHECKING:
    from traceferry.files.source import Source
    from traceferry.model import Trace
    from traceferry.reading import Companion, ImportContext, Reading
    from traceferry.registry import ImporterModule

Change = Callable[["ImportContext", int], "ImportContext"]
Before = Callable[["Trace", "ImportContext"], None]


class WithOptions:
    """An importer whose traces are also narrowed and written; options: what the checksum of the input makes of the
    usual options; before: adds other inputs' traces first, as `traceferry.load` does."""

    def __init__(self, importer: ImporterModule, options: Change, before: Before = lambda *_: None) -> None:
        self.sniff, self.dump = importer.sniff, importer.dump
        self._importer, self._options, self._before = importer, options, before

    def read(self, sources: Sequence[Source]) -> _Reading:
        choice = zlib.crc32(sources[0].data)
        return _Reading(self._importer.read(sources), choice, self._options, self._before)


class _Reading:
    def __init__(self, reading: Reading, choice: int, options: Change, before: Before) -> None:
        self._reading, self._choice, self._options, self._before = reading, choice, options, before
        self.counter = reading.counter

    @property
    def companions(self) -> Sequence[Companion]:
        return self._reading.companions

    def add_to(self, trace: Trace, context: ImportContext) -> None:

        assert all(isinstance(one.path, str) for one in self.companions)
        chosen = self._options(context, self._choice)
        chosen = chosen._replace(counter=self.counter or chosen.counter)
        self._before(trace, chosen)
        self._reading.add_to(trace, chosen)
        trace.attributes["narrowed"] = narrowed(trace, self._choice)


def narrowed(trace: Trace, choice: int) -> str:
    """A digest of what is written of some threads, a range or long calls of the trace, or of all three."""
    from traceferry.common.errors import UsageError
    from traceferry.files.output import Output
    from traceferry.model.laws import check
    from traceferry.registry import exporter_named
    from traceferry.timeline.select import select_lasting, select_range, select_threads

    trace.sort()
    threads = [thread for _, thread in trace.threads]
    try:
        if choice & 1 and threads:
            trace = select_threads(trace, [threads[choice // 16 % len(threads)].name])
        if choice & 2:
            span = max(trace.end_ts - trace.start_ts, 1)
            trace = select_range(trace, trace.start_ts + choice % span, trace.end_ts - (choice >> 8) % span)
        if choice & 4:
            trace = select_lasting(trace, choice >> 4)
    except UsageError as error:
        return str(error)
    broken = check(trace)
    assert not broken, broken
    sink = io.BytesIO()
    out = Output(sink, gzip=False)
    write = exporter_named(NARROWED_OUTPUTS[(choice >> 3) % len(NARROWED_OUTPUTS)]).writer()
    write(trace.opened(), out, lambda _: None)
    out.finish()
    return hashlib.sha256(sink.getvalue()).hexdigest()


def symbol_files(name: str) -> list[bytes]:
    """One small file of each format, of the library `name`."""
    from builders.breakpad import SymFile
    from builders.gsym import SHT_PROGBITS, ElfPart, GsymFile, elf

    breakpad = SymFile("0" * 33, name=name).file(0, "/a.c").origin(0, "inner")
    breakpad.func(0, 0x40, "outer").inline(0, 3, 0, 0, (4, 8)).line(0, 0x40, 7, 0).public(0x40, "_Z3fooi")
    gsyms = []
    for base in (0, (1 << 64) - 0x2000):
        gsym = GsymFile(address_size=8, base=base, uuid=b"")
        gsym.function("outer", base, 0x40)
        gsyms.append(gsym.function("_Z3fooi", base + 0x40, 0x100).bytes())
    return [breakpad.bytes(), *gsyms, elf(ElfPart(".gsym", SHT_PROGBITS, gsyms[0]))]


__all__ = ["ROOT", "WithOptions", "symbol_files"]
