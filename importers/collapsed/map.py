"""Map: collapsed stacks become samples of the threads and processes that their first names tell."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

import numpy as np

from traceferry.files.source import Source
from traceferry.importers.collapsed.layout import AUSTIN, HEAD, lines_of
from traceferry.model import Event, Input, TraceBuilder
from traceferry.model.categories import KERNEL, category_of_file
from traceferry.timeline.stack_profiles import Place, StackProfile, number_of, samples_of, spread, whole_amounts
from traceferry.timeline.stacks import StackTable

# "fib (w.py:2)" of py-spy, "fib - w.rb:2" of rbspy, "w.py:fib:2" of austin.
PLACES = (
    re.compile(r"(?P<name>.+) \((?P<path>[^()]+?)(?::(?P<line>\d+))?\)"),
    re.compile(r"(?P<name>.+) - (?P<path>[^ ]+):(?P<line>\d+)"),
    re.compile(r"(?P<path>[^:;]*[./\\<][^:;]*):(?P<name>[^:;]+):(?P<line>\d+)"),
)
# In front of the functions: py-spy's and austin's processes and threads, those of stackcollapse-perf.pl with --tid, the
# threads of CPython's profiling.sampling (Lib/profiling/sampling/stack_collector.py, 3.15).
PROCESS = re.compile(r'process (?P<pid>\d+):"(?P<name>.*)"|P(?P<austin>\d+)')
THREAD = re.compile(
    r"thread \((?P<tid>0x[0-9A-Fa-f]+|\d+)\)(?:: (?P<name>.*))?|T(?:\d+:)?(?P<austin>0x[0-9a-f]+|\d+)"
    r"|tid:(?P<python>\d+)"
)
COMMAND = re.compile(r"(?P<name>.+)-(?P<pid>\d+|\?)/(?P<tid>\d+)")
# Of stackcollapse-perf.pl --all and async-profiler's option ann.
SUFFIX = re.compile(r"(?P<name>.+)_\[(?P<kind>[kji01w])\]")
TIERS = {"j": "JIT", "0": "Interpreter", "1": "C1"}
FILE = re.compile(r"\[(?P<path>[^\]]+)\]")
EVENT = Event("samples", "samples")


class Owner(NamedTuple):
    """The owner of stacks: numbers and names, -1 and "" are unknown."""

    pid: int = -1
    process: str = ""
    tid: int = -1
    thread: str = ""


class _Stacks:
    """The stacks of a text. Each name is looked at once, each function in each stack, too."""

    def __init__(self, profile: StackProfile) -> None:
        self._profile = profile
        self._of: dict[tuple[int, str], int] = {}
        self._frame_of: dict[tuple[str, int], int] = {}

    def row(self, names: list[str], first: int) -> int:
        """Returns the trace's stack of the names from `first` on."""
        stack, known, intern = -1, self._of, self._profile.trace.stacks.intern
        depth = 0
        for nth in range(first, len(names)):
            name = names[nth]
            depth = depth + 1 if name.endswith("_[i]") and nth > first else 0
            key = (stack, name)
            found = known.get(key)
            if found is None:
                found = known[key] = intern(prefix=stack, frame=self._frame(name, depth))
            stack = found
        return stack

    def _frame(self, name: str, depth: int) -> int:
        row = self._frame_of.get((name, depth))
        if row is None:
            row = self._frame_of[name, depth] = self._profile.frames.row(place_of(name)._replace(depth=depth))
        return row


def place_of(text: str) -> Place:
    """Returns the function that a name in a stack tells."""
    text = text.strip()
    suffix = SUFFIX.fullmatch(text)
    name, kind = (suffix["name"], suffix["kind"]) if suffix else (text, "")
    if kind == "k":
        return Place(name, category=KERNEL)
    category = "Managed" if kind in TIERS else ""
    if found := next((found for pattern in PLACES if (found := pattern.fullmatch(name))), None):
        line = int(found["line"] or 0)
        if "." in found["path"] or "<" in found["path"]:
            return Place(found["name"], found["path"], line, category=category, tier=TIERS.get(kind, ""))
    if file := FILE.fullmatch(name):
        category = category or (category_of_file(file["path"]) if ".so" in name else "")
    elif re.fullmatch(r"[\w$]+(?:/[\w$]+)+\.[\w$<>]+", name):
        category = category or "Java"
    return Place(name or "[unknown]", category=category, tier=TIERS.get(kind, ""))


def owner_of(names: list[str]) -> tuple[Owner, int]:
    """Returns whose stack it is, and how many names tell so."""
    owner, n = _process(names[0])
    if n < len(names) and (found := _thread(names[n])):
        return owner._replace(tid=found[0], thread=found[1]), n + 1
    return owner, n


@cache
def _process(name: str) -> tuple[Owner, int]:
    if found := PROCESS.fullmatch(name):
        pid = int(found["pid"] or found["austin"])
        return Owner(pid, found["name"] or f"process {pid}"), 1
    if found := COMMAND.fullmatch(name):
        pid, tid = int(found["pid"]) if found["pid"] != "?" else -1, int(found["tid"])
        return Owner(pid, found["name"], tid, found["name"]), 1
    return Owner(), 0


@cache
def _thread(name: str) -> tuple[int, str] | None:
    found = THREAD.fullmatch(name)
    if not found:
        return None
    return number_of(found["tid"] or found["austin"] or found["python"]), found["name"] or name


def to_trace(source: Source, trace: TraceBuilder) -> None:
    """Adds the stacks of a text."""
    head = bytes(source.data[:HEAD]).decode("utf-8", "replace")
    is_austin = bool(AUSTIN.search(head)) or re.match(r"P\d+;T", head) is not None
    profile = StackProfile(trace, Input(source.name, "collapsed", "", "austin" if is_austin else ""))
    stacks, rows, numbers, n_bad, bad_at = _Stacks(profile), dict[Owner, list[tuple[int, int]]](), list[float](), 0, -1
    for line in lines_of(source.data):
        number = float(line.number or "nan")
        if not number >= 0 or number == float("inf"):
            n_bad, bad_at = n_bad + 1, line.offset if bad_at < 0 else bad_at
            continue
        owner, n = owner_of(line.names)
        rows.setdefault(owner, []).append((stacks.row(line.names, n), len(numbers)))
        numbers.append(number)
    amounts, scale = whole_amounts(np.array(numbers or [0.0]) * (1000 if is_austin else 1))
    name = "samples" if scale == 1 else f"1/{scale} of a sample"
    event = profile.add_event(Event("time", "ns", kind="clock") if is_austin else EVENT._replace(name=name))
    place = StackTable(trace).places()
    for owner, mine in rows.items():
        pairs = np.array(mine, np.int64)
        pairs = pairs[np.argsort(place[pairs[:, 0]], kind="stable")]
        amount = amounts[pairs[:, 1]]
        ts, end = spread(amount, 0, int(min(amount.sum(), 1 << 62)) if is_austin else 0)
        process = profile.process(
            owner[:2], owner.process or source.name, owner.pid if owner.pid >= 0 else None, 0, end
        )
        data = samples_of(trace.events, ts, pairs[:, 0], {event: amount})
        thread = owner.thread or process.name
        profile.add_thread(process, thread, owner.tid if owner.tid >= 0 else None, data, len(ts))
    trace.report.note("times_made", len(numbers), where=source.path)
    trace.report.note(
        "bad_rows", n_bad, where=source.path, offset=bad_at, detail=f"{source.path}: lines without a stack"
    )
