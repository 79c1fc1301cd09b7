"""Map: dumps become code objects, mappings, functions, sources and views of their sizes, in the model's terms."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from traceferry.common.issue_kinds import ENDED_AT_STUBS
from traceferry.common.shown_text import encodable
from traceferry.importers.jitdump.code import add_code, clocks_apart
from traceferry.importers.jitdump.decode import Dump, Load
from traceferry.importers.jitdump.owners import Owner, owners
from traceferry.importers.jitdump.sources import SourceTexts
from traceferry.importers.jitdump.views import Processes, add_views
from traceferry.model import Clock, Input, TraceBuilder
from traceferry.reading import ImportContext
from traceferry.symbolication.jit_names import producer_of


def to_trace(dumps: Sequence[Dump], trace: TraceBuilder, context: ImportContext) -> None:
    """Adds the dumps, of one or several processes, to the trace."""
    processes = Processes(trace, context.mapped)
    # What the user says of the clocks moves the samples only afterwards.
    span = context.span if context.options.clock_offset_ns is None else None
    whose = owners(dumps, context.mapped, trace.report)
    apart = [clocks_apart(dump, _mapped_at(owner, context)) for dump, owner in zip(dumps, whose, strict=True)]
    # Where all dumps are on one clock, the recording is moved to it.
    is_moved = span is not None or 0 in apart
    for dump, owner, apart_ns in zip(dumps, whose, apart, strict=True):
        dump.problems.note(trace.report, dump.name)
        if dump.unfinished is not None and _is_stub_block(dump.unfinished, dump):
            trace.report.note("dump_unfinished", where=dump.name, offset=dump.unfinished.at, advice=ENDED_AT_STUBS)
        elif context.span is not None and dump.unfinished is not None:
            # A dump alone shows what its records say; samples are in code whose record was not finished, too.
            dump.loads.append(dump.unfinished)
            trace.report.note("code_unfinished", where=dump.name, offset=dump.unfinished.at)
        texts = SourceTexts(dump, trace, context.embed_sources, context.source_roots)
        code = add_code(dump, owner, trace, texts, context.counter, span, (apart_ns or 0) if is_moved else 0)
        trace.inputs.append(
            Input(encodable(Path(dump.source.path).name), "jitdump", str(dump.header.version), code.producer)
        )
        add_views(code, trace, processes)
    if trace.clock is None:
        trace.join_clock(Clock("monotonic"))


def _is_stub_block(load: Load, dump: Dump) -> bool:
    """Whether a load is of memory that .NET has set apart for stubs, of which most is not in use."""
    names = [load.name, *(each.name for each in dump.loads)]
    return load.name.startswith("stub ") and producer_of(names).name == "CoreCLR"


def _mapped_at(owner: Owner, context: ImportContext) -> int:
    """Returns when the process first mapped its dump, in ns on the recorder's clock; 0 where nothing tells."""
    times = (file.ts for file in context.mapped if file.pid == owner.pid and Path(file.path).name == owner.name)
    return min(times, default=0)
