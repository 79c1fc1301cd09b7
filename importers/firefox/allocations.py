"""Map: what was allocated and freed, from either of a thread's tables or from both."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from traceferry.heap.class_names import UNKNOWN_CLASS
from traceferry.importers.firefox._stacks import intern_leaves
from traceferry.importers.firefox.columns import BadRows, Columns
from traceferry.importers.firefox.markers import Rows as Markers
from traceferry.importers.firefox.times import Times
from traceferry.model import ALLOCATIONS, Array, Table, TraceBuilder
from traceferry.timeline.stacks import StackTable

JS, NATIVE = "JS allocation", "Native allocation"
NO_SIZE = -(1 << 62)  # in the place of one


class Rows(NamedTuple):
    """Allocations by time. stack: of the thread's stacks, -1 is none; size: negative is freed, and what is 0 is not
    here; address: -1 is unknown; n_left_out: without a time or a size; n_unmatched: in the table
    of JavaScript's objects alone, where there is one of native allocations, which those are a part of."""

    ts: Array
    stack: Array
    size: Array
    address: Array
    class_name: list[str]
    n_left_out: int
    n_unmatched: int = 0

    def in_time(self) -> Rows:
        order = np.argsort(self.ts, kind="stable")
        names = [self.class_name[row] for row in order.tolist()]
        return Rows(self.ts[order], self.stack[order], self.size[order], self.address[order], names, self.n_left_out)


def read_allocations(members: dict[str, Any], path: str, n_stacks: int, times: Times, bad: BadRows) -> Rows | None:
    """Returns the native allocations, with the classes of those that are in the other table, too; else the others."""
    found = {
        name: _read(Columns(members[name], f"{path}.{name}", bad), n_stacks, times)
        for name in ("nativeAllocations", "jsAllocations")
        if isinstance(members.get(name), dict)
    }
    return _joined(found.get("nativeAllocations"), found.get("jsAllocations"))


def of_markers(markers: Markers) -> Rows | None:
    """Returns the allocations that are markers, as in Gecko profiles."""
    made: dict[str, Rows] = {}
    for kind in (NATIVE, JS):
        rows = markers.type.rows_of(kind)
        if len(rows):
            data = [markers.data[row] for row in rows.tolist()]
            size = np.array([_whole(one.get("size"), NO_SIZE) for one in data], np.int64)
            address = np.array([_whole(one.get("memoryAddress"), -1) for one in data], np.int64)
            names = [one["className"] if isinstance(one.get("className"), str) else "" for one in data]
            has_size = size != NO_SIZE
            kept = np.flatnonzero(has_size & (size != 0))
            made[kind] = Rows(
                markers.ts[rows][kept], markers.stack[rows][kept], size[kept], address[kept],
                [names[nth] for nth in kept.tolist()], int(np.count_nonzero(~has_size)),
            ).in_time()  # fmt: skip
    return _joined(made.get(NATIVE), made.get(JS))


def _read(table: Columns, n_stacks: int, times: Times) -> Rows:
    ms = table.floats("time")
    weight = table.ints("weight" if "weight" in table else "duration" if "duration" in table else "size", NO_SIZE)
    is_known = ~np.isnan(ms) & (weight != NO_SIZE)
    rows = np.flatnonzero(is_known & (weight != 0))
    names = table.values("className")
    return Rows(
        times.on_clock(ms[rows]), table.index("stack", n_stacks)[rows], weight[rows],
        table.ints("memoryAddress")[rows],
        [names[row] if isinstance(names[row], str) else "" for row in rows.tolist()],
        int(np.count_nonzero(~is_known)),
    ).in_time()  # fmt: skip


def _joined(native: Rows | None, js: Rows | None) -> Rows | None:
    if native is None or js is None:
        return native or js
    named: defaultdict[tuple[int, int, int], list[str]] = defaultdict(list)
    for key, name in zip(_keys(js), js.class_name, strict=True):
        named[key].append(name)
    for names in named.values():
        names.reverse()
    names = [found.pop() if (found := named.get(key)) else "" for key in _keys(native)]
    return native._replace(class_name=names, n_unmatched=sum(map(len, named.values())))


def _keys(rows: Rows) -> Iterator[tuple[int, int, int]]:
    return zip(rows.ts.tolist(), rows.size.tolist(), rows.stack.tolist(), strict=True)


def _whole(value: Any, default: int) -> int:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1 << 62
    return int(value) if is_number else default


def objects_of(rows: Rows) -> tuple[Array, Array]:
    """Returns (the number of each row's object, -1 is unknown; the row that allocated it). An object is at its address
    until that is freed, with the same size."""
    number, made_by = np.full(len(rows.ts), -1), np.arange(len(rows.ts))
    living: dict[int, int] = {}
    n = 0
    for row, (address, size) in enumerate(zip(rows.address.tolist(), rows.size.tolist(), strict=True)):
        if address < 0:
            continue
        if size > 0:
            living[address] = row
            number[row] = n
            n += 1
        elif (before := living.pop(address, -1)) >= 0 and int(rows.size[before]) == -size:
            number[row], made_by[row] = number[before], before
    return number, made_by


def table_of(trace: TraceBuilder, rows: Rows, stacks: Array, first_object: int) -> Table:
    """Returns ALLOCATIONS. stacks: the trace's of each of the thread's and, behind them, none; first_object: what the
    numbers of this thread's objects begin with."""
    from traceferry.heap.views import class_frame  # few profiles have allocations

    intern = trace.strings.intern
    number, made_by = objects_of(rows)
    names = [rows.class_name[row] for row in made_by.tolist()]
    stack = stacks[rows.stack[made_by]]
    leaf = np.append(trace.stacks["frame"], -1)[stack] if len(trace.stacks) else np.full(len(stack), -1)
    func_of_leaf = np.append(trace.frames["func"], -1)[leaf]
    name_of_func = np.append(trace.funcs["name"], -1)
    class_of = {name: intern(name) if name else -1 for name in dict.fromkeys(names)}
    class_name = np.array([class_of[name] for name in names], np.int32)
    is_at_leaf = (class_name >= 0) & (name_of_func[func_of_leaf] == class_name)
    needs = (class_name >= 0) & ~is_at_leaf | (stack < 0)
    wanted = sorted({names[row] for row in np.flatnonzero(needs).tolist()})
    frames = {name: class_frame(trace, intern(name or UNKNOWN_CLASS)) for name in wanted}
    keys = np.array([frames[names[row]] for row in np.flatnonzero(needs).tolist()], np.int32)
    table = StackTable(trace)
    first = np.concatenate(([0], np.cumsum(needs)))
    found = intern_leaves(
        table, np.ascontiguousarray(stack, np.int32), np.arange(len(stack), dtype=np.int32), first, keys
    )
    table.publish()
    columns = {
        "ts": rows.ts, "size": rows.size, "class_name": class_name, "stack": found,
        "object": np.where(number >= 0, number + first_object, -1),
    }  # fmt: skip
    return Table(ALLOCATIONS, columns)
