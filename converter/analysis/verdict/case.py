"""A recording as the findings see it, and what a finding is: what may be wrong, and advice that can be followed."""

from __future__ import annotations

import platform
import shlex
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import NamedTuple

from traceferry.analysis.totals.sums_of_trace import SampleTotals
from traceferry.analysis.verdict.facts import Facts, Programs
from traceferry.analysis.verdict.runtimes import keeping_names
from traceferry.common.issue_kinds import Severity
from traceferry.common.recorder import Command, command_of
from traceferry.common.report import Issue
from traceferry.common.units import format_amount
from traceferry.model import BYTES, Event, Trace

# Shares of the samples from which on a finding is worth a line.
NAMES_FROM, STACKS_FROM, LOST_FROM, RUNTIME_FROM = 0.05, 0.2, 0.01, 0.3
# What recorders that name no event call it.
NO_EVENT = "samples"
# Of fewer samples, shares say little.
MOST_FEW = 10
# Kinds of issues that are told, or not, by the share of the samples that they concern.
JUDGED = {
    "names": ("names_missing", "names_partly_missing", "names_not_in_text", "kernel_names_missing", "kernel_elsewhere",
              "code_unrecorded", "not_symbolicated", "build_id_differs", "companion_of_other_run", "companion_empty",
              "dump_unfinished", "dump_damaged"),
    "stacks": ("unwinding_truncated", "unwinding_not_copied", "unwinding_no_information", "unwinding_contradiction",
               "unwinding_other_stack", "lbr_full", "stack_cut", "unwinding_not_done"),
    "lost": ("lost_samples", "throttled"),
    "relisted": ("map_ambiguous",),
    "unmapped": ("code_unmapped",),
}  # fmt: skip


class Advice(NamedTuple):
    """Something that the user can do. kind: of the finding that it is for; text: a sentence without a full stop;
    command: to type next, as a shell takes it, "" where there is none."""

    kind: str
    text: str
    command: str = ""


class Finding(NamedTuple):
    """rank: of two, the one with the lower is told first; covers: the kinds of issues that it tells of."""

    kind: str
    rank: int
    severity: Severity
    headline: str
    share: float | None
    advice: tuple[Advice, ...] = ()
    covers: tuple[str, ...] = ()


class Case(NamedTuple):
    """A recording as the findings see it. command: of perf, None where it is not known, without what would lose the
    same again: where threads were not recorded, the one that records all of them; inputs: as a shell takes them;
    is_pack: whether a pack holds them; is_perf: whether perf recorded it; is_elsewhere: whether that was on another
    machine; programs: what was sampled; program: "" is all of it, facts are otherwise of that one alone; n_busy: the
    samples of all in which something was done."""

    trace: Trace
    facts: Facts
    issues: dict[str, Issue]
    command: Command | None
    inputs: str
    is_pack: bool
    is_perf: bool
    is_elsewhere: bool
    programs: Programs
    n_busy: int
    program: str = ""

    @classmethod
    def of(cls, trace: Trace, samples: SampleTotals, inputs: Sequence[str]) -> Case:
        named, recorded = [name for name in inputs if name != "-"], [each.path for each in trace.inputs]
        host = trace.attributes.get("hostname", "")
        command, programs = command_of(trace.attributes.get("command", "")), Programs(samples)
        facts = programs.whole
        is_pipe = any(each.format == "perf.data" and each.version == "pipe" for each in trace.inputs)
        issues = {issue.kind: issue for issue in trace.report}
        if command is not None and "threads_not_recorded" in issues:
            command = command.following
        if command is not None:
            command = keeping_names(command)._replace(is_piped=is_pipe)
        return cls(
            trace,
            facts,
            issues,
            command,
            shlex.join(named or recorded) or "RECORDING",
            any(PurePath(name).name not in recorded for name in named),
            any(each.format == "perf.data" for each in trace.inputs),
            bool(host) and host != platform.node(),
            programs,
            facts.samples - facts.idle,
        )

    @property
    def deletes_names(self) -> bool:
        """Whether the program was told to delete the names that it was asked for."""
        recorded = command_of(self.trace.attributes.get("command", ""))
        return recorded is not None and keeping_names(recorded) != recorded

    def by_program(self) -> list[Case]:
        """Returns the case of each program that was sampled, and of the processes of one that have no names where
        others have; where there is one, it."""
        parts = self.programs.parts
        return [self._replace(facts=part.facts, program=part.program) for part in parts] or [self]

    def is_unlike_others(self, language: str) -> bool:
        """Whether processes of this program have no functions of a language, of which others have some."""
        return bool(self.program) and not self.facts.languages and language in self.programs.languages

    def share(self, n_samples: int) -> float:
        """Returns the part of the samples in which something was done."""
        busy = self.facts.samples - self.facts.idle
        return n_samples / busy if busy else 0.0

    def share_of_all(self, n_samples: int) -> float:
        """Returns the part of the samples of all programs in which something was done."""
        return n_samples / self.n_busy if self.n_busy else 0.0

    def count(self, kind: str) -> int:
        """Returns how often an issue of the report occurred."""
        issue = self.issues.get(kind)
        return issue.count if issue is not None else 0

    @property
    def the_samples(self) -> str:
        """The words for that of which shares are parts."""
        return "the samples that are not idle" if self.facts.idle else "the samples"

    def record_with(self, options: Mapping[str, str | None]) -> str:
        """Returns the recording's own command with these options, or how one with them begins."""
        command = self.command or Command((), ("PROGRAM",))
        return command.with_options(options).text

    def read_with(self, options: str) -> str:
        return f"traceferry {self.inputs} {options}"

    @property
    def cut_share(self) -> float:
        """The part of the stacks that end too early."""
        return self.n_cut / self.facts.user if self.facts.user else 0.0

    @property
    def n_cut(self) -> int:
        """The stacks that end too early. Of copied stacks the unwinder knows; those with -g are judged by where they
        end."""
        facts = self.facts
        by_place = 0 if self.is_copied else facts.short + facts.adrift + facts.deepest
        return by_place + sum(facts.endings.values())

    @property
    def is_copied(self) -> bool:
        """Whether perf copied the stacks, so that they were unwound."""
        return self.trace.attributes.get("call_graph") == "dwarf"

    @property
    def has_no_stacks(self) -> bool:
        """Whether it was recorded without any."""
        return self.trace.attributes.get("call_graph") == "none" or (
            0 < self.facts.user == self.facts.flat and self.trace.attributes.get("call_graph") is None
        )


def amount(event: Event, n: int) -> str:
    """Returns how much was counted in words."""
    if event.sample_unit != "samples":
        return format_amount(n, event.sample_unit) + (f" of {event.plain_name}" if event.plain_name != BYTES else "")
    return f"{n:,} sample{'s' if n != 1 else ''}" + (f" of {event.name}" if event.name != NO_EVENT else "")


def percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= 0.01 else f"{100 * share:.1f} %"
