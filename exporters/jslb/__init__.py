"""Firefox Profiler, processed format, as JSLB: JSON whose long columns stand beside it, numbers as binary."""

from __future__ import annotations

from collections.abc import Callable

from traceferry.exporters.firefox.profile import write_profile
from traceferry.exporters.jslb.slabs import SlabWriter
from traceferry.files.output import Output
from traceferry.model import TraceBuilder

__all__ = ["write"]


def write(trace: TraceBuilder, out: Output, progress: Callable[[int], None]) -> None:
    """Writes the profile, a thread at a time. progress: called with the number of records done."""
    with SlabWriter(out) as json:
        write_profile(trace, json, progress)
