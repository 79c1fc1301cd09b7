"""Recordings of a whole machine in which the recorder is what was recorded."""

from __future__ import annotations

from traceferry.analysis.verdict.case import Advice, Case, Finding, percent
from traceferry.common.recorder import EXCLUDE_PERF

KIND = "recorder_recorded"
RECORDER = "perf"
# From this part of the samples on.
ITSELF_FROM = 0.2


def recorder_recorded(case: Case) -> Finding | None:
    """Events of the machine that perf causes itself, as it writes what it records of them."""
    event, share = case.trace.sampling, case.programs.share(RECORDER)
    if event is None or event.kind != "tracepoint" or share < ITSELF_FROM:
        return None
    headline = f"{percent(share)} of the samples are of perf itself, which causes them as it writes"
    text = "record less of each, -g in place of copied stacks, or fewer events"
    if case.command is None or case.command.tool or case.command.has(EXCLUDE_PERF):
        return Finding(KIND, 2, "info", headline, share, (Advice(KIND, text),))
    without = Advice(KIND, "perf can leave its own out", case.command.excluding_itself.text)
    return Finding(KIND, 2, "info", headline, share, (without,))
