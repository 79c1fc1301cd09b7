"""The command that recorded a trace with perf, and the same with other options: what to type next."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import NamedTuple

from traceferry.common.patterns import compiled_later

# The options of perf record that take a word (perf-record(1)), with the long names of those that are changed here.
_TAKING = frozenset("cCDeFGjkmMoprtuw")
_TAKING_LONG = compiled_later(
    "--(?:count|cpu|delay|event|filter|freq|cgroup|branch-filter|clockid|mmap-pages|output|pid|realtime|tid|uid|call-graph"
    "|proc-map-timeout|affinity|max-size|num-thread-synthesize|control|switch-max-files|vmlinux|clang-path|clang-opt|synth)"
)
_SHORT = {"--freq": "-F", "--clockid": "-k", "--mmap-pages": "-m", "--event": "-e", "--output": "-o",
          "--cpu": "-C", "--pid": "-p", "--tid": "-t", "--all-cpus": "-a", "--no-inherit": "-i", "--cgroup": "-G",
          "--delay": "-D", "--count": "-c"}  # fmt: skip
CALL_GRAPH, DWARF, DWARF_MOST = "--call-graph", "dwarf,16384", 65528
# Which leaves out what the program's own functions call.
KERNEL_CALLCHAINS = "--kernel-callchains"
# Which leaves out what perf does itself, of the tracepoints of the -e before it.
EXCLUDE_PERF = "--exclude-perf"
READER = " | traceferry - -o out.html"
# Commands of perf that record what they are for, and hand the options of perf record on to it.
_TOOLS = ("c2c", "kmem", "kvm", "lock", "mem", "sched", "trace")
# Of commands with options of their own, those that mean the same to perf record (perf-stat(1), perf-mem(1), ...).
_SHARED = {
    "stat": "-a -C -D -e -G -i -o -p -t",
    "c2c": "-a -C -c -F -g --call-graph -m -o -p",
    "mem": "-a -C -c -F -g --call-graph -m -o -p",
    "timechart": "-g -p",
}
# Modifiers of an event or of a group with S: it is read with each sample (perf-list(1)).
_READ_AS_GROUP = compiled_later(r":([ukhIGHpPDWeb]*S[ukhIGHpPSDWeb]*)(?=$|[,}])")
# The options that take a word, of commands of which they are not those of perf record: -u and -k of perf c2c take none.
_TAKING_OF = {"stat": frozenset("CDeGIMoprtxb"), "c2c": frozenset("cCDeFGjlmMoprtw")}
_TAKING_LONG_OF_STAT = compiled_later(
    "--(?:cpu|delay|event|cgroup|interval-print|interval-count|metrics|output|pid|repeat|tid|field-separator|control"
    "|cputype|filter|for-each-cgroup|log-fd|pre|post|td-level|timeout|bpf-prog)"
)


class Command(NamedTuple):
    """A `perf record`. options: (name, value), None for those that take none; program: what it runs; is_piped: whether
    it wrote into a pipe, which wants a reader; tool: of `perf sched record`, which chooses the events, "sched";
    is_count: it was a perf stat, of which options that perf record has are here."""

    options: tuple[tuple[str, str | None], ...]
    program: tuple[str, ...]
    is_piped: bool = False
    tool: str = ""
    is_count: bool = False

    @property
    def text(self) -> str:
        """The command, as a shell takes it."""
        words = [word for name, value in self.options for word in _words(name, value)]
        text = shlex.join(["perf", *([self.tool] if self.tool else []), "record", *words, *_separated(self.program)])
        return text + READER if self.is_piped else text

    def value(self, name: str) -> str | None:
        """Returns the last value of an option, None where it is not given."""
        return next((value for option, value in reversed(self.options) if option == name), None)

    def has(self, name: str) -> bool:
        return any(option == name for option, _ in self.options)

    @property
    def is_attached(self) -> bool:
        """Whether it recorded what ran already: a program in it may only say for how long."""
        return any(self.has(name) for name in ("-a", "-p", "-t", "-u", "-G", "-C"))

    def with_options(self, wanted: Mapping[str, str | None]) -> Command:
        """Returns the command with these options, each in the place of what it replaces, or behind the others."""
        kept: list[tuple[str, str | None]] = []
        left = dict(wanted)
        for option in self.options:
            if option[0] in _against(wanted):
                continue
            replaced = next((name for name in wanted if option[0] in _alike(name)), None)
            if replaced is None:
                kept.append(option)
            elif replaced in left:
                kept.append((replaced, left.pop(replaced)))
        return self._replace(options=(*kept, *left.items()))

    @property
    def plain(self) -> Command:
        """The command that records samples of events that are chosen."""
        return self._replace(options=_shared(self.tool, self.options), tool="")

    @property
    def following(self) -> Command:
        """The command that records the threads that a thread starts, too. Before perf 6.13, and Linux 6.12, no event
        that is read as one of a group is of them."""
        options = ((name, _READ_AS_GROUP.sub(_without_read, value or "") if name == "-e" else value)
                   for name, value in self.options if name not in ("-i", "--per-thread"))  # fmt: skip
        return self._replace(options=tuple(options))

    @property
    def excluding_itself(self) -> Command:
        """The command that records no tracepoint of perf itself; the same where a tool of perf chooses the events."""
        options: list[tuple[str, str | None]] = []
        for option in self.options:
            has_events = option[0] == "-e" and not self.tool and not self.has(EXCLUDE_PERF)
            options += [option, (EXCLUDE_PERF, None)] if has_events else [option]
        return self._replace(options=tuple(options))

    def without(self, *names: str) -> Command:
        return self._replace(options=tuple(option for option in self.options if option[0] not in names))

    def running(self, program: Sequence[str]) -> Command:
        return self._replace(program=tuple(program))


def _without_read(modifiers: re.Match[str]) -> str:
    kept = modifiers[1].replace("S", "")
    return f":{kept}" if kept else ""


def _alike(name: str) -> tuple[str, ...]:
    """Returns the options of which a command needs one only."""
    return ("-g", CALL_GRAPH) if name in ("-g", CALL_GRAPH) else (name,)


def _against(wanted: Mapping[str, str | None]) -> tuple[str, ...]:
    """Returns the options with which these would not give whole stacks: callers in the program are left out, or the
    registers to follow a copied stack with."""
    graph = wanted.get(CALL_GRAPH) or ""
    registers = ("--user-regs",) if graph.startswith("dwarf") else ()
    return (KERNEL_CALLCHAINS, *registers) if "-g" in wanted or graph else ()


def _separated(program: tuple[str, ...]) -> tuple[str, ...]:
    return ("--", *program) if program and program[0].startswith("-") else program


def _words(name: str, value: str | None) -> list[str]:
    if value is None:
        return [name]
    is_joined = name.startswith("--") and name != CALL_GRAPH
    return [f"{name}={value}"] if is_joined else [name, value]


def command_of(text: str) -> Command | None:
    """Reads a command line; None where it is no `perf record`."""
    try:
        words = shlex.split(text)
    except ValueError:
        return None
    if len(words) < 2 or not PurePath(words[0]).name.startswith("perf") or "record" not in words[1:3]:
        return None
    rest, tool = words[words.index("record") + 1 :], words[1]
    taking = _TAKING_OF.get(tool, _TAKING), _TAKING_LONG_OF_STAT if tool == "stat" else _TAKING_LONG
    options: list[tuple[str, str | None]] = []
    at = 0
    while at < len(rest) and rest[at].startswith("-") and rest[at] not in ("-", "--"):
        read, n_more = _option(rest[at], rest[at + 1 : at + 2], *taking)
        options += read
        at += 1 + n_more
    program = tuple(rest[at + 1 :] if rest[at : at + 1] == ["--"] else rest[at:])
    if tool in _TOOLS:
        return Command(tuple(options), program, tool=tool)
    return Command(_shared(tool, options), program, is_count=tool == "stat")


def _shared(tool: str, options: Sequence[tuple[str, str | None]]) -> tuple[tuple[str, str | None], ...]:
    """Returns what perf record understands of the options of a command."""
    shared = _SHARED[tool].split() if tool in _SHARED else None
    return tuple(option for option in options if shared is None or option[0] in shared)


def _option(
    word: str, following: Sequence[str], taking: frozenset[str], taking_long: re.Pattern[str]
) -> tuple[list[tuple[str, str | None]], int]:
    """Returns what a word gives, and how many of the following ones belong to it. taking, taking_long: the options that
    take a word."""
    if word.startswith("--"):
        name, equals, value = word.partition("=")
        short = _SHORT.get(name, name)
        if equals:
            return [(short, value)], 0
        return ([(short, following[0])], 1) if taking_long.fullmatch(name) and following else ([(short, None)], 0)
    found: list[tuple[str, str | None]] = []
    for nth, letter in enumerate(word[1:], start=2):
        if letter in taking:
            value = word[nth:]
            return ([*found, (f"-{letter}", value)], 0) if value else ([*found, (f"-{letter}", "".join(following))], 1)
        if letter in "zIS" and word[nth:]:
            return [*found, (f"-{letter}{word[nth:]}", None)], 0
        found.append((f"-{letter}", None))
    return found, 0
