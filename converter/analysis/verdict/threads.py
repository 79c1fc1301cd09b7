"""Threads of which a recording says less than it seems to: those that its events do not follow, and those of which it
has some of the switches."""

from __future__ import annotations

from traceferry.analysis.verdict.case import Advice, Case, Finding
from traceferry.common.recorder import command_of

NOT_RECORDED, FILTERED = "threads_not_recorded", "switches_filtered"


def threads_not_recorded(case: Case) -> Finding | None:
    """Threads that began while perf recorded, and that it did not follow."""
    issue = case.issues.get(NOT_RECORDED)
    if issue is None:
        return None
    threads = "a thread that began" if issue.count == 1 else f"{issue.count:,} threads that began"
    events = f": no {issue.detail} of them" if issue.detail else ""
    headline = f"{threads} during the recording {'is' if issue.count == 1 else 'are'} not in it{events}"
    return Finding(NOT_RECORDED, 2, "loss", headline, None, _with_all_threads(case, issue.advice), (NOT_RECORDED,))


def _with_all_threads(case: Case, otherwise: str) -> tuple[Advice, ...]:
    recorded = command_of(case.trace.attributes.get("command", ""))
    if case.command is None or recorded is None or case.command.options == recorded.options:
        return (Advice(NOT_RECORDED, otherwise),)
    options = [option for option in ("-i", "--per-thread") if recorded.has(option)]
    if options:
        text = f"without {' and '.join(options)} perf follows the threads that a thread starts"
        return (Advice(NOT_RECORDED, text, case.command.text),)
    text = (
        "before perf 6.13, and Linux 6.12, no thread that began later counts for a group that is read at once (:S): "
        "sample each event"
    )
    on_all = recorded.with_options({"-a": None}).text
    return (
        Advice(NOT_RECORDED, text, case.command.text),
        Advice(NOT_RECORDED, "or record the whole machine, where a group has all threads", on_all),
    )


def switches_filtered(case: Case) -> Finding | None:
    """Switches that the recorder's filter left out."""
    issue = case.issues.get(FILTERED)
    if issue is None:
        return None
    advice = Advice(FILTERED, issue.advice)
    if case.command is not None:
        text = "--switch-events has all switches, without their stacks"
        advice = Advice(FILTERED, text, case.record_with({"--switch-events": None}))
    headline = f"{issue.title} ({issue.detail})"
    return Finding(FILTERED, 4, issue.severity, headline, None, (advice,), (FILTERED,))
