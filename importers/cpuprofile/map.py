"""Map: a CPU profile of V8 becomes one thread.

The format is `Profiler.Profile` of Chrome's DevTools protocol: nodes of a call tree, the node of each sample, and the
µs between samples. Until Chrome 57 nodes were nested below `head`, and times stood in `timestamps`.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np

from traceferry.common.errors import FormatError
from traceferry.common.shown_text import encodable
from traceferry.files.json_text import JsonText
from traceferry.files.source import Source
from traceferry.model import Array, Clock, Event, Input, TraceBuilder
from traceferry.model.categories import NATIVE, OTHER, RUNTIME
from traceferry.timeline.stack_profiles import Place, StackProfile, samples_of, spread, tree_order

ROOT = "(root)"
CATEGORIES = {"(program)": NATIVE, "(garbage collector)": RUNTIME, "(idle)": OTHER}
NS_OF_US = 1000
MOST_US = 1 << 50
Node = dict[str, Any]


def to_trace(source: Source, trace: TraceBuilder) -> None:
    """Adds the samples. Raises FormatError where there are no nodes."""
    text = JsonText(source.data, source.path)
    root = text.parsed(text.root())
    if "snapshot" in root:
        raise FormatError("this is a heap snapshot of V8, which is not read; --heap-prof samples", 0, path=source.path)
    nodes = _nodes(root)
    if not nodes:
        raise FormatError("the profile has no nodes", 0, path=source.path)
    is_heap = any("selfSize" in node for node in nodes)
    samples, deltas = (_ints(root.get(name)) for name in ("samples", "timeDeltas"))
    is_timed = len(samples) > 0 and not is_heap
    of = Input(source.name, "cpuprofile", "", "V8")
    profile = StackProfile(trace, of, Clock("monotonic") if is_timed else None)
    stacks, offset = _Stacks(profile, nodes), profile.offset_ns
    if not is_timed:
        name, unit = ("allocated", "bytes") if is_heap else ("samples", "samples")
        stack = stacks.of_ids[:-1]
        amount = np.maximum(_ints([node.get("selfSize" if is_heap else "hitCount", 0) for node in nodes]), 0)
        order = tree_order(trace.stacks["prefix"], stack)
        stack, amount = stack[order], amount[order]
        ts, end = spread(amount, 0)
        event = profile.add_event(Event(name, unit))
        trace.report.note("times_made", len(ts), where=source.path)
    else:
        stamps = _ints(root.get("timestamps"))
        start = _start_us(root, len(stamps) > 0)
        us = stamps if len(stamps) else start + np.cumsum(np.clip(deltas, -MOST_US, MOST_US))
        n = min(len(us), len(samples))
        trace.report.note("bad_rows", len(samples) - n, where=source.path, detail="samples without a time")
        order = np.argsort(us[:n], kind="stable")
        trace.report.note("times_sorted", int(np.count_nonzero(us[1:n] < us[: n - 1])), where=source.path)
        ts = np.clip(us[:n][order], -MOST_US, MOST_US) * NS_OF_US + offset
        stack = stacks.of_samples(samples[:n])[order]
        interval = int(np.median(np.diff(ts))) if n > 1 else 0
        last = _ints([root.get("endTime")])[0] * NS_OF_US if not len(stamps) else 0
        end = max(int(last) + offset, int(ts[-1]) + 1 if n else 0)
        event = profile.add_event(Event("samples", "samples", interval))
        amount = np.ones(n, np.int64)
    begin = int(ts[0]) if len(ts) else end
    process = profile.process(0, source.name, None, begin, end)
    data = samples_of(trace.events, ts, stack, {event: amount})
    profile.add_thread(process, text_of(root.get("title")) or "V8", None, data, len(ts))
    trace.report.note("bad_rows", stacks.n_bad, where=f"{source.path} nodes", detail="nodes or samples")


class _Stacks:
    """The stacks of the nodes. of_ids: int32 of each node and, behind them, none."""

    def __init__(self, profile: StackProfile, nodes: list[Node]) -> None:
        self._profile, self._nodes = profile, nodes
        self._row = {_whole(node.get("id")): nth for nth, node in enumerate(nodes)}
        self.n_bad = len(nodes) - len(self._row)
        self._parent = [-1] * len(nodes)
        for nth, node in enumerate(nodes):
            for child in held if isinstance(held := node.get("children"), list) else ():
                self._link(nth, _whole(child))
            if "parent" in node:
                self._link(self._row.get(_whole(node["parent"]), -1), _whole(node.get("id")))
        self.of_ids = np.full(len(nodes) + 1, -1, np.int32)
        for nth in self._parents_first():
            above = int(self.of_ids[self._parent[nth]])
            self.of_ids[nth] = self._stack(nodes[nth], above)

    def _link(self, parent: int, child: int) -> None:
        nth = self._row.get(child, -1)
        if nth >= 0 and parent >= 0 and self._parent[nth] < 0:
            self._parent[nth] = parent
        elif nth < 0 or self._parent[nth] != parent:
            self.n_bad += 1

    def _parents_first(self) -> list[int]:
        """Returns the nodes in an order in which callers come first; those that call themselves in a circle not."""
        below = defaultdict[int, list[int]](list)
        for nth, parent in enumerate(self._parent):
            below[parent].append(nth)
        found = [*below.get(-1, ())]
        for nth in found:
            found += below.get(nth, ())
        self.n_bad += len(self._nodes) - len(found)
        return found

    def _stack(self, node: Node, above: int, line: int = 0) -> int:
        held = node.get("callFrame")
        of: Node = held if isinstance(held, dict) else node
        name, path = text_of(of.get("functionName")), text_of(of.get("url"))
        if name == ROOT and above < 0:
            return -1
        # Lines and columns count from 0 there, in the oldest files from 1.
        first, column = (_whole(of.get(key), -1) + (of is not node) for key in ("lineNumber", "columnNumber"))
        category = CATEGORIES.get(
            name, "WebAssembly" if path.startswith("wasm:") else "JavaScript" if path else RUNTIME
        )
        category = RUNTIME if path.startswith("node:") else category
        place = Place(name or "(anonymous)", path, line or first, 0 if line else column, first, column, category)
        return self._profile.trace.stacks.intern(prefix=above, frame=self._profile.frames.row(place))

    def of_samples(self, ids: Array) -> Array:
        """Returns int32: the stack of each sample. The lines of a node's samples are those of its ticks, in turn: the
        file does not tell which sample had which."""
        known = np.array(sorted(self._row), np.int64)
        rows = np.array([self._row[one] for one in known.tolist()], np.int64)
        place = np.minimum(np.searchsorted(known, ids), len(known) - 1)
        is_known = known[place] == ids
        self.n_bad += int(np.count_nonzero(~is_known))
        row = np.where(is_known, rows[place], len(self._nodes))
        found = self.of_ids[row]
        for nth, node in enumerate(self._nodes):
            ticks = node.get("positionTicks")
            if isinstance(ticks, list) and ticks and self.of_ids[nth] >= 0:
                self._give_lines(found, np.flatnonzero(row == nth), node, int(self.of_ids[self._parent[nth]]), ticks)
        return found

    def _give_lines(self, found: Array, mine: Array, node: Node, above: int, ticks: list[Any]) -> None:
        at = 0
        for tick in (one for one in ticks if isinstance(one, dict)):
            n = min(max(_whole(tick.get("ticks")), 0), len(mine) - at)
            found[mine[at : at + n]] = self._stack(node, above, _whole(tick.get("line")))
            at += n


def _nodes(root: Any) -> list[Node]:
    """Returns the nodes; nested ones with the numbers of those below them."""
    if isinstance(held := root.get("nodes"), list):
        return [node for node in held if isinstance(node, dict)]
    found: list[Node] = [root["head"]] if isinstance(root.get("head"), dict) else []
    for node in found:
        children = held if isinstance(held := node.get("children"), list) else []
        found += [child for child in children if isinstance(child, dict)]
        node["children"] = [child.get("id") for child in children if isinstance(child, dict)]
    return found


def _start_us(root: Node, is_in_seconds: bool) -> int:
    return 0 if is_in_seconds else int(_ints([root.get("startTime")])[0])


def _ints(values: Any) -> Array:
    return np.array([_whole(value) for value in values] if isinstance(values, list) else [], np.int64)


def _whole(value: Any, default: int = 0) -> int:
    return int(value) if isinstance(value, (int, float)) and abs(value) < MOST_US else default


def text_of(value: Any) -> str:
    return encodable(value) if isinstance(value, str) else ""
