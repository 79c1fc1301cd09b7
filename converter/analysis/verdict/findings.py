"""What may be wrong with a recording: each finding with the share of the samples that it concerns, and with advice that
can be followed, made of the recording's own command, runtime and files."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from pathlib import PurePath

from traceferry.analysis.verdict.case import JUDGED, LOST_FROM, NAMES_FROM, Advice, Case, Finding, amount, percent
from traceferry.analysis.verdict.interpreted import interpreted
from traceferry.analysis.verdict.itself import recorder_recorded
from traceferry.analysis.verdict.names import functions, names, of_other_files, unmapped
from traceferry.analysis.verdict.runtimes import CLOCK
from traceferry.analysis.verdict.stacks import callers, no_stacks, stacks
from traceferry.analysis.verdict.threads import switches_filtered, threads_not_recorded
from traceferry.common.issue_kinds import KINDS, STATISTICS_SQL
from traceferry.common.recorder import Command
from traceferry.model import Event, distinct

# The rank of losses that have no finding of their own, and of what is told where nothing is lost.
OTHER, LAST = 5, 6
# Of fewer samples, shares may be off by more than 10 percentage points: twice the standard error of a half.
ENOUGH = 100
OFTEN = "20000"
BUFFER, SWITCHES = "-m", "--switch-events"
LARGE, LARGEST, PAGES_OF_LARGE = "4M", "16M", 1024


def findings(case: Case) -> Iterator[Finding]:
    """Yields what is wrong with a recording, in any order."""
    of_all: tuple[Callable[[Case], Finding | None], ...]
    of_all = (
        _damaged, _no_samples, _few_samples, _counts_only, _clock, threads_not_recorded, names, of_other_files,
        unmapped, functions, interpreted, stacks, callers, no_stacks, _lost, _no_symbols, _stripped, _relisted,
        _switch_missing, switches_filtered, recorder_recorded, _engine_reported,
    )  # fmt: skip
    found = [finding for find in of_all if (finding := find(case)) is not None]
    yield from found
    told = {kind for finding in found for kind in finding.covers} | {
        kind for kinds in JUDGED.values() for kind in kinds
    }
    for kind, issue in case.issues.items():
        if issue.severity != "info" and not KINDS[kind].of_output and kind not in told:
            advice = (Advice(kind, issue.advice),) if issue.advice else ()
            yield Finding(kind, OTHER, issue.severity, issue.title, None, advice, (kind,))


# ---------------------------------------------------------------- the recording as a whole


def _damaged(case: Case) -> Finding | None:
    errors = [issue for issue in case.issues.values() if issue.severity == "error"]
    if not errors:
        return None
    first = errors[0]
    place = f" at offset {first.offset}" if first.offset is not None else ""
    again = Advice(
        "damaged", "what can be read is shown; record again for the rest", case.command.text if case.command else ""
    )
    return Finding("damaged", 0, "error", f"the file is damaged{place}: {first.title}", None, (again,),
                   tuple(issue.kind for issue in errors))  # fmt: skip


def _no_samples(case: Case) -> Finding | None:
    issue = case.issues.get("no_samples")
    if issue is None:
        nothing = Finding("no_samples", 1, "loss", "the recording holds nothing to show", None)
        return nothing if _is_empty(case) else None
    if "lost_samples" in case.issues:
        return None  # there were some: see _lost
    advice = []
    # A number of events between samples says nothing of other events.
    command = case.command.plain.without("-c") if case.command is not None else None
    # perf takes a clock by itself where the processor counts nothing.
    event = (command.value("-e") if command is not None else None) or case.trace.attributes.get("events", "")
    if command is not None and not event.startswith(("cpu-clock", "task-clock")):
        text = "the processor's clock counts on every machine, also on virtual ones"
        advice.append(Advice("no_samples", text, command.with_options({"-e": "cpu-clock"}).text))
    elif command is not None and command.value("-F") is None and not command.is_count:
        text = "sample a program that ends soon more often"
        advice.append(Advice("no_samples", text, command.with_options({"-F": OFTEN}).text))
    if command is not None:
        advice += _where_it_waits("no_samples", case, command)
    why = f": {issue.detail}" if issue.detail else ""
    return Finding("no_samples", 1, "loss", f"the recording has no samples{why}", None, tuple(advice), ("no_samples",))


def _few_samples(case: Case) -> Finding | None:
    """So few that shares are rough: of a program that ended soon, or that waited."""
    n, event, command = case.facts.samples - case.facts.idle, case.trace.sampling, case.command
    if not 0 < n < ENOUGH or event is None or not _is_by_chance(event):
        return None
    advice = _record_more(case, command, event, n * event.interval_ns) if command is not None else []
    points = round(100 / n**0.5)
    besides = f" besides {case.facts.idle:,} idle ones" if case.facts.idle else ""
    headline = f"only {amount(event, n)}{besides}: shares may be off by {points} percentage points"
    return Finding("few_samples", LAST, "info", headline, None, tuple(advice))


def _is_by_chance(event: Event) -> bool:
    """Whether samples are some of what is measured, in time or of a counter: not each of what they count."""
    return event.kind in ("clock", "hardware") or (event.unit == "samples" and event.interval_ns > 0)


def _record_more(case: Case, command: Command, event: Event, sampled_ns: float) -> list[Advice]:
    advice = []
    rate = command.value("-F") or "0"
    if event.period == 0 and rate.isdecimal() and int(rate) < int(OFTEN):
        text = "sample more often, or let the program work for longer"
        advice.append(Advice("few_samples", text, command.with_options({"-F": OFTEN}).text))
    if sampled_ns < (case.trace.end_ts - case.trace.start_ts) / 2:
        advice += _where_it_waits("few_samples", case, command)
    return advice


def _where_it_waits(kind: str, case: Case, command: Command) -> list[Advice]:
    """Returns how to record that, unless it was recorded so."""
    waits = {"-k": "CLOCK_MONOTONIC", "-g": None, SWITCHES: None, "-e": "sched:sched_switch,cpu-clock"}
    # perf leaves the kernel out by itself where a user may not see it, who may not record tracepoints either.
    modifiers = case.trace.sampling.name.partition(":")[2] if case.trace.sampling is not None else ""
    as_root = ", as root" if "u" in modifiers and "k" not in modifiers else ""
    text = f"if it waits more than it runs, record where it waits{as_root}"
    again = command.without("-F").with_options(waits)
    return [Advice(kind, text, again.text)] if set(again.options) != set(command.options) else []


def _counts_only(case: Case) -> Finding | None:
    # Counts may stand beside samples of another input.
    if "counts_only" not in case.issues or case.facts.samples:
        return None
    n_counters = sum(len(process.counters) for process in case.trace.processes)
    headline = (
        f"{n_counters} counter{'s' * (n_counters != 1)} of perf stat, and no samples: no functions, and no stacks"
    )
    advice: tuple[Advice, ...] = ()
    if case.command is not None:
        text = "samples tell which functions the counts are of"
        samples = Advice("counts_only", text, case.command.with_options({"-g": None}).text)
        advice = samples, *_where_it_waits("counts_only", case, case.command)
    return Finding("counts_only", OTHER, "info", headline, None, advice, ("counts_only",))


def _is_empty(case: Case) -> bool:
    trace = case.trace
    recorded = (thread.n_records for _, thread in trace.threads)
    of_processes = (
        bool(process.heap_snapshots) or any(len(counter.values) for counter in process.counters)
        for process in trace.processes
    )  # fmt: skip
    tables = len(trace.code), len(trace.coverage)
    return not (case.facts.samples or any(recorded) or any(of_processes) or any(tables))


def _clock(case: Case) -> Finding | None:
    kinds = [kind for kind in ("clock_differs", "clock_unrelated") if kind in case.issues]
    if not kinds:
        return None
    issue = case.issues[kinds[0]]
    # Which of the inputs lacks a clock that others have, the command of one does not tell.
    is_of_code = issue.kind == "clock_differs" and case.is_perf
    again = Advice("clock", "record samples and code on one clock", case.record_with(CLOCK))
    advice = again if is_of_code else Advice("clock", issue.advice)
    return Finding("clock", 2, "loss", issue.title, None, (advice,), tuple(kinds))


def _lost(case: Case) -> Finding | None:
    issue = case.issues.get("lost_samples")
    if issue is None or not (case.facts.samples or "no_samples" in case.issues):
        return None
    share = issue.count / (issue.count + case.facts.samples)
    if share < LOST_FROM:
        return None
    used = case.command.value(BUFFER) if case.command is not None else None
    larger = _larger(used) if used else LARGE
    advice = Advice("lost", "a larger buffer loses less", case.record_with({BUFFER: larger}))
    headline = f"{percent(share)} of the records were lost: record with {BUFFER} {larger}"
    return Finding("lost", 3, "loss", headline, share, (advice,), (*JUDGED["lost"], "no_samples"))


def _switch_missing(case: Case) -> Finding | None:
    issue = case.issues.get("switch_missing")
    if issue is None:
        return None
    advice: tuple[Advice, ...] = ()
    if case.command is None:
        advice = (Advice("switch_missing", issue.advice),)
    elif not case.command.has(SWITCHES):
        text = "not all kernels record what wakes an idle processor"
        advice = (Advice("switch_missing", text, case.record_with({SWITCHES: None})),)
    return Finding("switch_missing", OTHER, issue.severity, issue.title, None, advice, ("switch_missing",))


def _engine_reported(case: Case) -> Finding | None:
    issue = case.issues.get("engine_reported")
    if issue is None:
        return None
    names, places = shlex.split(case.inputs), case.trace.report.places("engine_reported")
    file = next((name for name in names if any(place.startswith(f"{PurePath(name).name} ") for place in places)), None)
    command = f'traceferry query {case.inputs if file is None else shlex.quote(file)} "{STATISTICS_SQL}"'
    advice = (Advice("engine_reported", "its statistics say more", command),)
    headline = f"{issue.title}: {issue.detail}"
    return Finding("engine_reported", OTHER, issue.severity, headline, None, advice, ("engine_reported",))


def _larger(size: str) -> str:
    """size: of the buffer, or how many pages it has."""
    digits = size.rstrip("BKMG")
    if not digits.isdecimal():
        return LARGEST
    return LARGE if digits == size and int(size) < PAGES_OF_LARGE // 2 else f"{2 * int(digits)}{size[len(digits) :]}"


def _relisted(case: Case) -> Finding | None:
    issue = case.issues.get("map_ambiguous")
    share = case.share(issue.count) if issue is not None else 0.0
    if issue is None or share < NAMES_FROM:
        return None
    headline = f"{percent(share)} of {case.the_samples} may be of other functions: a perf-PID.map lists several there"
    advice = Advice("relisted", issue.advice)
    return Finding("relisted", OTHER, "loss", headline, share, (advice,), JUDGED["relisted"])


def _no_symbols(case: Case) -> Finding | None:
    issue = case.issues.get("no_symbols")
    if issue is None:
        return None
    advice = Advice("no_symbols", "give the program that was recorded", case.read_with("--symbols PROGRAM"))
    return Finding(
        "names_missing", 3, "loss", "functions have numbers instead of names", None, (advice,), ("no_symbols",)
    )


def _stripped(case: Case) -> Finding | None:
    """Functions of programs that are here, whose symbols do not name them."""
    if "function_without_name" not in case.issues or "no_symbols" in case.issues:
        return None
    frames = case.trace.frames
    has_number = case.trace.funcs["number"][frames["func"]] >= 0
    n, n_all = (len(distinct(frames["func"][mine])) for mine in (has_number, slice(None)))
    if not n or n < NAMES_FROM * n_all:
        return None
    libs = distinct(frames["lib"][has_number & (frames["lib"] >= 0)])
    files = " and ".join(case.trace.strings[name] for name in case.trace.libs["name"][libs].tolist())
    which = f"{files or 'the program'} {'are' if len(libs) > 1 else 'is'} stripped"
    made = "what was built, its debug file, or GSYM of one (traceferry symbols FILE -o FILE.gsym)"
    advice = Advice("names_missing", f"{which}: give {made}", case.read_with("--symbols FILE"))
    headline = f"{'' if n == n_all else f'{n:,} of {n_all:,} '}functions have numbers instead of names"
    return Finding("names_missing", 3, "loss", headline, None, (advice,), ("function_without_name",))
