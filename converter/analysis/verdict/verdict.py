"""The verdict: what concerns most of the recording, in a line, and what to do about it and about what comes next."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from traceferry.analysis.totals.sums_of_trace import SampleTotals
from traceferry.analysis.verdict.case import Advice, Case, Finding, amount
from traceferry.analysis.verdict.findings import OTHER, findings
from traceferry.common.issue_kinds import KINDS, Severity
from traceferry.common.shown_text import encodable, typed
from traceferry.common.units import format_duration
from traceferry.model import Trace

MOST_ADVICE = 3
GOOD = "good"


class Verdict(NamedTuple):
    """The worth of a recording, and the way to a better one.

    Attributes
    ----------
    kind : str
        "good", "no_samples", "names_missing", "stacks_cut", "no_stacks", "functions_missing", "lost", "clock",
        "few_samples", or the kind of an issue of the report, as FORMATS.md lists them.
    severity : "info", "loss" or "error"
        As of issues; "info" where nothing is missing.
    headline : str
        One line.
    share : float or None
        The part of the samples that it concerns, 0 to 1, where it concerns samples.
    advice : tuple of Advice
        At most three, the most useful first.
    more : int
        How many issues of the report with losses or damage are not told here.
    """

    kind: str
    severity: Severity
    headline: str
    share: float | None
    advice: tuple[Advice, ...]
    more: int

    def as_json(self) -> dict[str, Any]:
        """Returns all of it as plain data, with escapes for bytes of file names that are not UTF-8."""
        advice = [{key: encodable(text) for key, text in each._asdict().items()} for each in self.advice]
        return {**self._asdict(), "headline": encodable(self.headline), "advice": advice}

    def lines(self) -> list[str]:
        """Returns the verdict, and a line for each advice, as the commands print them: not yet for a terminal, since
        names of a recording may be in them."""
        return verdict_lines(self.as_json())


def verdict_lines(verdict: dict[str, Any]) -> list[str]:
    """Returns the lines of a verdict as `as_json` has it."""
    n_more = verdict["more"]
    of_more = f"{n_more}{'' if verdict['kind'] == GOOD else ' more'} {'losses' if n_more > 1 else 'loss'}"
    more = f"; {of_more}: --verbose" if n_more else ""
    advice = [
        f"  {each['text']}" + (f": {typed(each['command'])}" if each["command"] else "") for each in verdict["advice"]
    ]
    return [verdict["headline"] + more, *advice]


def verdict_of(trace: Trace, samples: SampleTotals, inputs: Sequence[str] = ()) -> Verdict:
    """Returns the verdict of a trace, after its threads were loaded.

    Parameters
    ----------
    trace : Trace
        With the report of all that was found.
    samples : SampleTotals
        The samples of its first event: of `collect`, or of a `Tally`.
    inputs : sequence of str, default ()
        The files as the user named them, for commands; by default their names without folders.
    """
    case = Case.of(trace, samples, inputs)
    found = sorted(findings(case), key=lambda finding: (finding.rank, -(finding.share or 0)))
    told = {kind for finding in found for kind in finding.covers}
    lossy = [issue for issue in trace.report if issue.severity != "info" and not KINDS[issue.kind].of_output]
    if not found:
        return Verdict(GOOD, "info", _good(case), None, (), len(lossy))
    first = found[0]
    others = [each for finding in found[1:] for each in _named(finding)]
    advice = tuple(_distinct([*first.advice, *others]))[:MOST_ADVICE]
    more = sum(issue.kind not in told for issue in lossy)
    return Verdict(first.kind, first.severity, first.headline, first.share, advice, more)


def _named(finding: Finding) -> list[Advice]:
    """Returns advice that stands below the headline of another finding."""
    if finding.rank != OTHER:
        return list(finding.advice)
    return [advice._replace(text=f"{finding.headline}: {advice.text}") for advice in finding.advice]


def _distinct(advice: Iterable[Advice]) -> list[Advice]:
    """Returns those with commands of their own: of equal ones the first, also where that says for what."""
    kept: list[Advice] = []
    for each in advice:
        if not any(
            each.command == other.command and (each.command or other.text.endswith(each.text)) for other in kept
        ):
            kept.append(each)
    return kept


def _good(case: Case) -> str:
    trace = case.trace
    n_threads = sum(not thread.sample_unit for _, thread in trace.threads)
    held = {"thread": n_threads}
    if not n_threads:
        held["view"] = len(trace.threads)
        held["counter"] = sum(len(process.counters) for process in trace.processes)
        held["heap shot"] = sum(len(process.heap_snapshots) for process in trace.processes)
    parts = [f"{n:,} {what}{'s' if n != 1 else ''}" for what, n in held.items() if n]
    parts.append(format_duration(trace.end_ts - trace.start_ts))
    if case.facts.samples and trace.sampling is not None:
        idle = f", {case.facts.idle:,} of them idle" if case.facts.idle else ""
        parts.insert(0, amount(trace.sampling, case.facts.samples) + idle)
    return f"good recording: {', '.join(parts)}"
