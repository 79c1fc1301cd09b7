"""Map: collapsed stacks become samples of the threads and processes that their first names tell."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np

from traceferry.common.patterns import compiled_later
from traceferry.files.source import Source
from traceferry.importers.collapsed.layout import HEAD, Lines, text_of
from traceferry.model import NS, Array, Input, TraceBuilder, rows_by_key
from traceferry.model.categories import KERNEL, category_of_file
from traceferry.native.distinct import distinct_with_places
from traceferry.native.texts import TextTable
from traceferry.timeline.stack_profiles import (
    Place,
    StackProfile,
    as_samples,
    n_beyond,
    number_of,
    samples_in_parts,
    samples_of,
    spread,
    whole_amounts,
)
from traceferry.timeline.stacks import StackTable, intern_paths

# "fib (w.py:2)" of py-spy, "fib - w.rb:2" of rbspy, "w.py:fib:2" of austin.
PLACES = (
    compiled_later(r"(?P<name>.+) \((?P<path>[^()]+?)(?::(?P<line>\d+))?\)"),
    compiled_later(r"(?P<name>.+) - (?P<path>[^ ]+):(?P<line>\d+)"),
    compiled_later(r"(?P<path>[^:;]*[./\\<][^:;]*):(?P<name>[^:;]+):(?P<line>\d+)"),
)
# In front of the functions: py-spy's and austin's processes and threads, those of stackcollapse-perf.pl with --tid, the
# threads of CPython's profiling.sampling (Lib/profiling/sampling/stack_collector.py, 3.15).
PROCESS = compiled_later(r'process (?P<pid>\d+):"(?P<name>.*)"|P(?P<austin>\d+)')
THREAD = compiled_later(
    r"thread \((?P<tid>0x[0-9A-Fa-f]+|\d+)\)(?:: (?P<name>.*))?|T(?:\d+:)?(?P<austin>0x[0-9a-f]+|\d+)"
    r"|tid:(?P<python>\d+)"
)
COMMAND = compiled_later(r"(?P<name>.+)-(?P<pid>\d+|\?)/(?P<tid>\d+)")
# Of stackcollapse-perf.pl --all and async-profiler's option ann.
SUFFIX = compiled_later(r"(?P<name>.+)_\[(?P<kind>[kji01w])\]")
TIERS = {"j": "JIT", "0": "Interpreter", "1": "C1"}
FILE = compiled_later(r"\[(?P<path>[^\]]+)\]")
# austin's metrics (3.x): µs, or bytes that came and went.
AUSTIN = compiled_later(r"# austin: \S+(?:\n#[^\n]*)*?\n# mode: (?P<mode>\w+)|# austin: |P\d+;T")
# The end of a line whose number has decimals.
DECIMAL = compiled_later(rb"(?:\.\d+|[eE]-\d+)[ \t\r]*(?:\n|\Z)")
NAMES = {"ns": "time", "bytes": "memory"}
NS_OF_US = 1000


class Owner(NamedTuple):
    """The owner of stacks: numbers and names, -1 and "" are unknown. is_named: the thread has a name of its own."""

    pid: int = -1
    process: str = ""
    tid: int = -1
    thread: str = ""
    is_named: bool = False


class _Names:
    """The names in a text, each once. process, thread, is_inlined: bool, what they can be."""

    def __init__(self, data: memoryview, profile: StackProfile) -> None:
        self._data, self._profile, self._table = data, profile, TextTable(data)
        self._texts: list[str] = []
        self.process = self.thread = self.is_inlined = np.empty(0, bool)
        self._frames: dict[int, int] = {}

    def intern(self, begin: Array, end: Array) -> Array:
        """Returns the numbers of names, int64."""
        numbers = self._table.intern(begin, end).astype(np.int64)
        places = zip(self._table.begin.tolist(), self._table.end.tolist(), strict=True)
        new = [bytes(self._data[at:to]).decode("utf-8", "replace") for at, to in islice(places, len(self._texts), None)]
        self._texts += new
        self.process = np.append(self.process, np.array([_process(name) is not None for name in new], bool))
        self.thread = np.append(self.thread, np.array([_thread(name) is not None for name in new], bool))
        self.is_inlined = np.append(self.is_inlined, np.array([name.endswith("_[i]") for name in new], bool))
        return numbers

    def owner(self, process: int, thread: int) -> Owner:
        """Returns whose stacks those are that begin with these names, -1 is none."""
        owner = (_process(self._texts[process]) if process >= 0 else None) or Owner()
        found = _thread(self._texts[thread]) if thread >= 0 else None
        return owner._replace(tid=found.tid, thread=found.thread, is_named=found.is_named) if found else owner

    def frames(self, numbers: Array, depths: Array) -> Array:
        """Returns int32: the frames of names, so deep inlined."""
        keys, nth = distinct_with_places(depths << 32 | numbers)
        for key in keys.tolist():
            if key not in self._frames:
                place = place_of(self._texts[key & (1 << 32) - 1])._replace(depth=key >> 32)
                self._frames[key] = self._profile.frames.row(place)
        return np.array([self._frames[key] for key in keys.tolist()], np.int32)[nth]


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


def _process(name: str) -> Owner | None:
    if found := PROCESS.fullmatch(name):
        pid = int(found["pid"] or found["austin"])
        return Owner(pid, found["name"] or f"process {pid}")
    if found := COMMAND.fullmatch(name):
        pid, tid = int(found["pid"]) if found["pid"] != "?" else -1, int(found["tid"])
        return Owner(pid, found["name"], tid, found["name"])
    return None


def _thread(name: str) -> Owner | None:
    found = THREAD.fullmatch(name)
    if not found:
        return None
    tid = number_of(found["tid"] or found["austin"] or found["python"])
    return Owner(tid=tid, thread=found["name"] or name, is_named=bool(found["name"]))


def _with_names(owned: dict[Owner, list[Array]]) -> dict[Owner, list[Array]]:
    """Returns the rows of each owner, those of threads before they got their names with the rest of theirs."""
    named = {owner[:3]: owner for owner in reversed(owned) if owner.tid >= 0 and owner.is_named}
    found: dict[Owner, list[Array]] = {}
    for owner, rows in owned.items():
        found.setdefault(owner if owner.is_named else named.get(owner[:3], owner), []).extend(rows)
    return found


class _Rows(NamedTuple):
    """Stacks as lines have them. owner: int64, the names of process and thread, each plus 1, in halves; stack: int32,
    -1 is none; number: float64."""

    owner: Array
    stack: Array
    number: Array


def _rows(lines: Lines, names: _Names, stacks: StackTable) -> _Rows:
    """Returns the lines that are stacks."""
    number = names.intern(lines.begin, lines.end)
    is_stack = ~np.isnan(lines.numbers)
    begin, end = np.append(0, lines.ends[:-1])[is_stack], lines.ends[is_stack]
    has_process = names.process[number[begin]]
    at = begin + has_process
    has_thread = (at < end) & names.thread[number[np.minimum(at, len(number) - 1)]]
    owner = np.where(has_process, number[begin] + 1, 0) << 32
    owner |= np.where(has_thread, number[np.minimum(at, len(number) - 1)] + 1, 0)
    begin = at + has_thread
    # Names of what is no stack, and of owners, are left out.
    change = np.zeros(len(number) + 1, np.int64)
    np.add.at(change, begin, 1)
    np.add.at(change, end, -1)
    is_in = np.cumsum(change)[:-1] > 0
    number = number[is_in]
    lengths = end - begin
    frames = names.frames(number, _depths(names.is_inlined[number], np.cumsum(lengths) - lengths))
    return _Rows(owner, intern_paths(stacks, frames, lengths), lines.numbers[is_stack])


def _depths(is_inlined: Array, firsts: Array) -> Array:
    """Returns int64: how deep each name is inlined. firsts: where stacks begin, whose first name never is."""
    nth = np.arange(len(is_inlined))
    if not np.any(is_inlined):
        return np.zeros(len(nth), np.int64)
    is_inlined = is_inlined.copy()
    is_inlined[firsts[firsts < len(nth)]] = False
    return nth - np.maximum.accumulate(np.where(is_inlined, 0, nth))


def parts_of(sources: Sequence[Source]) -> int:
    """Returns in how many parts the samples of texts are counted that are read together, so that they are of one event:
    as many as the numbers with the most decimals need."""
    texts = (text_of(source.data) for source in sources)
    lines = (of for text in texts if DECIMAL.search(text.data) for of in text.lines())
    return max((whole_amounts(of.numbers)[1] for of in lines if len(of.numbers)), default=1)


def to_trace(source: Source, trace: TraceBuilder, parts: int) -> None:
    """Adds the stacks of a text. parts: in how many a sample is counted at least."""
    text = text_of(source.data)
    austin = AUSTIN.match(bytes(text.data[:HEAD]).decode("utf-8", "replace").lstrip())
    unit = "samples" if austin is None else "bytes" if austin["mode"] == "memory" else "ns"
    profile = StackProfile(trace, Input(source.name, "collapsed", "", "austin" if austin else ""))
    names, stacks, pieces = _Names(text.data, profile), StackTable(trace), list[_Rows]()
    n_bad, bad_at = 0, -1
    for lines in text.lines():
        is_bad = ~np.isfinite(lines.numbers)
        if np.any(is_bad):
            bad_at = text.offset(int(lines.offsets[is_bad][0])) if bad_at < 0 else bad_at
            n_bad += int(np.count_nonzero(is_bad))
            lines.numbers[is_bad] = np.nan
        pieces.append(_rows(lines, names, stacks))
    stacks.publish()
    rows = _Rows(*(np.concatenate(columns) for columns in zip(*pieces, strict=True)))
    # Times are measured in whole ns.
    number = np.rint(rows.number * NS_OF_US) if unit == NS else rows.number
    amounts, scale = whole_amounts(number, parts if unit == "samples" else 1)
    event = profile.add_event(as_samples(NAMES[unit], unit) if unit in NAMES else samples_in_parts(scale))
    place = stacks.places()
    owned: dict[Owner, list[Array]] = {}
    for key, mine in sorted(rows_by_key(rows.owner).items(), key=lambda item: int(item[1][0])):
        owned.setdefault(names.owner((key >> 32) - 1, (key & (1 << 32) - 1) - 1), []).append(mine)
    for owner, of_owner in _with_names(owned).items():
        mine = np.sort(np.concatenate(of_owner))
        mine = mine[np.argsort(place[rows.stack[mine]], kind="stable")]
        amount = amounts[mine]
        ts, end = spread(amount / scale, unit, 0)
        pid = owner.pid if owner.pid >= 0 else None
        process = profile.process(owner[:2], owner.process or source.name, pid, 0, end)
        data = samples_of(trace.events, ts, rows.stack[mine], {event: amount})
        profile.add_thread(process, owner.thread or process.name, owner.tid if owner.tid >= 0 else None, data, len(ts))
    profile.note_empty()
    report, path = trace.report, source.path
    report.note("times_made", len(rows.number), where=path)
    report.note("bad_rows", n_bad, where=path, offset=bad_at, detail=f"{path}: lines without a stack")
    report.note("amounts_cut", n_beyond(number, scale), where=path, detail=f"{path}: numbers of stacks")
    n_below = int(np.count_nonzero(rows.number < 0))
    if unit == "bytes":
        report.note("members_not_read", n_below, where=f"{path} freed", detail="memory that was given back")
    else:
        report.note("below_zero", n_below, where=path, detail=f"{path}: lines")
