"""Map: dumps become code objects, mappings, functions, sources and views of their sizes, in the model's terms."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from traceferry.common.shown_text import encodable
from traceferry.importers.jitdump.code import add_code
from traceferry.importers.jitdump.decode import Dump
from traceferry.importers.jitdump.owners import owners
from traceferry.importers.jitdump.sources import SourceTexts
from traceferry.importers.jitdump.views import Processes, add_views
from traceferry.model import Clock, Input, TraceBuilder
from traceferry.reading import ImportContext


def to_trace(dumps: Sequence[Dump], trace: TraceBuilder, context: ImportContext) -> None:
    """Adds the dumps, of one or several processes, to the trace."""
    processes = Processes(trace, context.mapped)
    # What the user says of the clocks moves the samples only afterwards.
    span = context.span if context.options.clock_offset_ns is None else None
    for dump, owner in zip(dumps, owners(dumps, context.mapped, trace.report), strict=True):
        dump.problems.note(trace.report, dump.name)
        if context.span is not None and dump.unfinished is not None:
            # A dump alone shows what its records say; samples are in code whose record was not finished, too.
            dump.loads.append(dump.unfinished)
            trace.report.note("code_unfinished", where=dump.name, offset=dump.unfinished.at)
        texts = SourceTexts(dump, trace, context.embed_sources, context.source_roots)
        code = add_code(dump, owner, trace, texts, context.counter, span)
        trace.inputs.append(
            Input(encodable(Path(dump.source.path).name), "jitdump", str(dump.header.version), code.producer)
        )
        add_views(code, trace, processes)
    if trace.clock is None:
        trace.join_clock(Clock("monotonic"))
