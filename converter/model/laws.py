"""The laws of the model: what every importer promises and every exporter relies on."""

from __future__ import annotations

from bisect import bisect_left

import numpy as np
import orjson

from traceferry.common.shown_text import encodable
from traceferry.model import (
    BRANCH_MISPREDICTED,
    ENTRY_LOST,
    FIELD_DTYPES,
    LEAVE,
    OPEN_AT_END,
    OPEN_AT_START,
    TAIL,
    UNWOUND,
    Array,
    Counter,
    HeapGraph,
    HeapSnapshot,
    MarkerType,
    Process,
    Table,
    ThreadData,
    Trace,
    TraceBuilder,
    distinct,
)


def check(trace: Trace) -> list[str]:
    """Every broken law as text; an empty list is a valid trace. Loads each thread and each heap snapshot once, before
    the global tables are checked: loading may add to them."""
    if trace.clock is None:
        return ["the trace has no clock"]
    trace, broken = trace.opened(), []
    for process, thread in trace.threads:
        broken += _check_thread(trace, thread.load(trace), f"thread {process.pid}/{thread.tid}")
    for process in trace.processes:
        broken += _check_lifetimes(process)
        for nth, snapshot in enumerate(process.heap_snapshots, 1):
            broken += _check_snapshot(trace, process, snapshot, f"heap snapshot {process.pid}/{nth}")
        for counter in process.counters:
            broken += _check_counter(trace, counter)
    return _check_global_tables(trace) + _check_texts(trace) + _check_events(trace) + broken


def _check_texts(trace: Trace) -> list[str]:
    """All names can be written as UTF-8."""
    names = [*trace.strings, *trace.texts, *trace.attributes.values(), *(each.path for each in trace.inputs)]
    for process in trace.processes:
        names += [process.name, *(thread.name for thread in process.threads)]
        names += [counter.name for counter in process.counters]
    names += [detail for issue in trace.report for detail in issue.details]
    return [f"{name!r} cannot be written as UTF-8" for name in names if encodable(name) != name]


def _check_events(trace: Trace) -> list[str]:
    """Names are told apart, and a group's leader leads itself."""
    keys = {event.key for event in trace.events}
    broken = ["two events of one name, unit and kind"] if len(keys) < len(trace.events) else []
    for event in trace.events:
        leads = -1 <= event.leader < len(trace.events) and (event.leader < 0 or trace.events[event.leader].leader < 0)
        broken += [] if leads else [f"event {event.name}: its leader is not one"]
    return broken


def _sizes(trace: Trace) -> dict[str, int]:
    of_tables = {table.spec.name: len(table) for table in trace.global_tables()}
    return {"strings": len(trace.strings), "texts": len(trace.texts)} | of_tables


def _check_global_tables(trace: Trace) -> list[str]:
    broken: list[str] = []
    for growing in trace.global_tables():
        broken += _check_table(growing, _sizes(trace), growing.spec.name)
    prefix = trace.stacks["prefix"]
    if np.any(prefix >= np.arange(len(prefix))):
        broken.append("stacks: a prefix is not smaller than its stack")
    parent = trace.categories["parent"]
    if np.any(parent[parent[parent >= 0]] >= 0):
        broken.append("categories: a parent that has a parent")
    return broken or _check_inlined(trace) + _check_code_mappings(trace)


def _check_inlined(trace: Trace) -> list[str]:
    """An inlined frame stands on the frame that it is inlined into: one level less deep, at the same address."""
    prefix, frame = trace.stacks["prefix"], trace.stacks["frame"]
    depth, lib, address = (trace.frames[name] for name in ("inline_depth", "lib", "address"))
    inlined = np.flatnonzero(depth[frame] > 0)
    below = prefix[inlined]
    if np.any(below < 0):
        return ["stacks: an inlined frame without the frame that it is inlined into"]
    inner, outer = frame[inlined], frame[below]
    if np.any((depth[outer] != depth[inner] - 1) | (lib[outer] != lib[inner]) | (address[outer] != address[inner])):
        return ["stacks: an inlined frame on a frame of another place"]
    return []


def _check_code_mappings(trace: Trace) -> list[str]:
    """A mapping ends after it starts, and of one process no two are at one address at one time."""
    mappings = trace.code_mappings
    start, end, address = mappings["start_ts"], mappings["end_ts"], mappings["address"]
    if np.any((end >= 0) & (end < start)):
        return ["code_mappings: one ends before it starts"]
    size, pid = trace.code["size"][mappings["code"]], trace.code["pid"][mappings["code"]]
    end = np.where(end < 0, np.iinfo(np.int64).max, end)
    is_there = (size > 0) & (end > start)
    # Ends come before starts of the same time.
    rows = np.flatnonzero(is_there).tolist()
    events = sorted([(int(end[row]), 0, row) for row in rows] + [(int(start[row]), 1, row) for row in rows])
    held: dict[int, list[tuple[int, int]]] = {}  # of each process, the (address, end) of what is there, rising
    for _, starts, row in events:
        mine = held.setdefault(int(pid[row]), [])
        extent = int(address[row]), int(address[row]) + int(size[row])
        at = bisect_left(mine, extent)
        if not starts:
            del mine[at]
        elif (at and mine[at - 1][1] > extent[0]) or (at < len(mine) and mine[at][0] < extent[1]):
            return [f"code_mappings: two overlap at {extent[0]:#x} of process {pid[row]}"]
        else:
            mine.insert(at, extent)
    return []


def _check_lifetimes(process: Process) -> list[str]:
    """Nothing ends before it starts, and no two threads have one number at one time. Views of sizes are no threads."""
    broken = [] if process.start_ts <= process.end_ts else [f"process {process.pid} ends before it starts"]
    ends: dict[int, int] = {}
    for thread in sorted(process.threads, key=lambda thread: (thread.start_ts, thread.end_ts)):
        name = f"thread {process.pid}/{thread.tid}"
        if thread.end_ts < thread.start_ts:
            broken.append(f"{name} ends before it starts")
        if thread.sample_unit:
            continue
        if thread.start_ts < ends.get(thread.tid, thread.start_ts):
            broken.append(f"{name}: two threads of this number at one time")
        ends[thread.tid] = max(thread.end_ts, ends.get(thread.tid, thread.end_ts))
    return broken


def _check_counter(trace: Trace, counter: Counter) -> list[str]:
    where, ts = f"counter {counter.name}", counter.values["ts"]
    broken = _check_table(counter.values, _sizes(trace), where)
    if len(ts) and (ts.min() < trace.start_ts or ts.max() > trace.end_ts):
        broken.append(f"{where}: a time stamp outside the recording")
    if not np.all(np.isfinite(counter.values["value"])):
        broken.append(f"{where}: a value that is not a finite number")
    return broken


def _check_thread(trace: Trace, data: ThreadData, where: str) -> list[str]:
    broken: list[str] = []
    for table in data.tables():
        pieces = [len(piece) for piece in table.pieces()]
        if sum(pieces) != len(table) or 0 in pieces:
            broken.append(f"{where}: {table.spec.name}: {len(table)} rows in pieces of {pieces}")
        sizes = _sizes(trace) | {"calls": len(data.calls)}
        broken += _check_table(table, sizes, f"{where}: {table.spec.name}")
        ts = table.columns.get("ts")
        if ts is not None and len(ts) and (ts.min() < trace.start_ts or ts.max() > trace.end_ts):
            broken.append(f"{where}: {table.spec.name}: a time stamp outside the recording")
        dur = table.columns.get("dur")
        if ts is not None and dur is not None and np.any((dur < 0) | (dur > trace.end_ts - ts)):
            broken.append(f"{where}: {table.spec.name}: a negative duration, or one that ends after the recording")
    for marker_type, table in data.markers.items():
        texts = [name for name in table.columns if table[name].dtype == object]
        if any(encodable(text) != text for name in texts for text in table[name].tolist()):
            broken.append(f"{where}: {marker_type.name}: a text cannot be written as UTF-8")
        decimals = [name for name in table.columns if table[name].dtype == np.float64]
        if not all(np.all(np.isfinite(table[name])) for name in decimals):
            broken.append(f"{where}: {marker_type.name}: a number that is not finite")
        broken += _check_json(marker_type, table, f"{where}: {marker_type.name}")
    if not broken:
        broken += [f"{where}: {law}" for law in _check_calls(data.calls, data.arguments)]
        broken += [f"{where}: {law}" for law in _check_arguments(trace, data.arguments)]
        broken += [f"{where}: {law}" for law in _check_allocations(data.allocations)]
        broken += [f"{where}: {law}" for law in _check_samples(trace, data)]
        broken += [f"{where}: {law}" for law in _check_branches(trace, data.branches)]
    return broken


def _check_branches(trace: Trace, branches: Table) -> list[str]:
    """A branch has an end that is known, an outcome, and no negative time; a run of code goes on in its library."""
    broken: set[str] = set()
    frame, of_frames = trace.stacks["frame"], trace.frames
    for piece in branches.pieces():
        start, begin, end = (piece[name] for name in ("start", "from", "to"))
        if np.any((begin < 0) & (end < 0)):
            broken.add("a branch from nowhere to nowhere")
        if np.any(piece["outcome"] > BRANCH_MISPREDICTED) or np.any(piece["cycles"] < 0):
            broken.add("a branch with another outcome, or negative cycles")
        first, last = frame[start[start >= 0]], frame[begin[start >= 0]]
        if np.any(begin[start >= 0] < 0) or np.any(of_frames["lib"][first] != of_frames["lib"][last]):
            broken.add("a run of code that ends in another library, or nowhere")
        elif np.any(of_frames["address"][first] > of_frames["address"][last]):
            broken.add("a run of code that ends before it begins")
    return sorted(broken)


def _check_samples(trace: Trace, data: ThreadData) -> list[str]:
    """Members of a group have the samples of its leader."""
    broken: list[str] = []
    if trace.sampling is not None and np.any(trace.sampling.n_samples(data.samples) < 0):
        broken.append("a row that stands for fewer than no samples")
    for row, samples in data.other_samples.items():
        if not 1 <= row < len(trace.events):
            broken.append(f"samples of event {row}, which is not one of the other events")
            continue
        leader = trace.events[row].leader
        leading = data.samples_of(leader) if leader >= 0 else None
        if leading is not None and not all(np.array_equal(samples[name], leading[name]) for name in ("ts", "stack")):
            broken.append(f"samples of event {row} are not those of its leader")
    return broken


def _check_table(table: Table, sizes: dict[str, int], where: str) -> list[str]:
    broken: list[str] = []
    n = len(table)
    for column in table.spec.columns:
        values = table[column.name]
        if len(values) != n:
            broken.append(f"{where}.{column.name}: {len(values)} values in a table of {n}")
        elif values.dtype != column.numpy_dtype:
            broken.append(f"{where}.{column.name}: {values.dtype} instead of {column.numpy_dtype}")
        elif column.dtype == "text":
            if not all(isinstance(value, str) for value in values):
                broken.append(f"{where}.{column.name}: a value that is not text")
        elif column.refers_to and n and (values.min() < -1 or values.max() >= sizes[column.refers_to]):
            broken.append(f"{where}.{column.name}: an index outside {column.refers_to}")
        if column.name == table.spec.sorted_by and n and np.any(values[1:] < values[:-1]):
            broken.append(f"{where}.{column.name}: falls")
    return broken


def _check_calls(calls: Table, arguments: Table) -> list[str]:
    leaves = (calls["flags"] & LEAVE) != 0
    depth = np.cumsum(np.where(leaves, -1, 1))
    if len(depth) == 0:
        return ["arguments without calls"] if len(arguments) else []
    if depth.min() < 0 or depth[-1] != 0:
        return ["calls are not balanced"]
    allowed = np.where(leaves, LEAVE | TAIL | UNWOUND | OPEN_AT_END, OPEN_AT_START | ENTRY_LOST)
    if np.any(calls["flags"] & ~allowed):
        return ["a flag of leaves at an enter, or of enters at a leave"]
    enter, leave = pairs(leaves)
    if np.any(calls["frame"][enter] != calls["frame"][leave]):
        return ["a leave has another frame than its enter"]
    if len(arguments) and (arguments["call"].min() < 0 or np.any(leaves[arguments["call"]])):
        return ["an argument of a row that does not enter"]
    return []


def _check_arguments(trace: Trace, arguments: Table) -> list[str]:
    """A format is one of those of marker fields, and texts have the formats of texts."""
    text, flow, position = (arguments[name] for name in ("text", "flow", "position"))
    names = {row: trace.strings[row] for row in distinct(arguments["format"]).tolist() if row >= 0}
    broken = [f"an argument of the format {name!r}" for name in names.values() if name not in FIELD_DTYPES]
    of_numbers = [row for row, name in names.items() if FIELD_DTYPES.get(name, "text") != "text"]  # type: ignore[call-overload]
    if np.any(np.isin(arguments["format"], of_numbers) & (text >= 0)):
        broken.append("an argument with a text that has the format of a number")
    if np.any((position < 0) & (flow == 0)):
        broken.append("an argument without a position")
    return broken


def _check_json(marker_type: MarkerType, table: Table, where: str) -> list[str]:
    """Texts of the format json are JSON, or empty where the value is not known."""
    broken = []
    for field in marker_type.fields:
        if field.format == "json":
            try:
                for text in table[field.key].tolist():
                    orjson.loads(text or "null")
            except orjson.JSONDecodeError:
                broken.append(f"{where}.{field.key}: a text that is not JSON")
    return broken


def _check_allocations(allocations: Table) -> list[str]:
    """An object is allocated once and freed once, with the same size, class and stack; a range may hold one of both."""
    known = allocations.take(allocations["object"] >= 0)
    is_free = known["size"] < 0
    allocated, freed = known.take(~is_free), known.take(is_free)
    broken = ["an allocation without a stack"] if np.any(allocations["stack"] < 0) else []
    for table, what in ((allocated, "allocated"), (freed, "freed")):
        if len(distinct(table["object"])) != len(table):
            broken.append(f"an object that is {what} twice")
    if broken:
        return broken
    _, ours, theirs = np.intersect1d(allocated["object"], freed["object"], assume_unique=True, return_indices=True)
    allocated, freed = allocated.take(ours), freed.take(theirs)
    differs = {
        "with another class_name": allocated["class_name"] != freed["class_name"],
        "with another stack": allocated["stack"] != freed["stack"],
        "with another size": allocated["size"] != -freed["size"],
        "before it is allocated": allocated["ts"] > freed["ts"],
    }
    return [f"an object that is freed {how}" for how, is_broken in differs.items() if np.any(is_broken)]


def _check_snapshot(trace: TraceBuilder, process: Process, snapshot: HeapSnapshot, where: str) -> list[str]:
    graph = snapshot.load(trace)
    sizes = _sizes(trace) | {"heap_objects": len(graph.objects)}
    broken: list[str] = []
    for table in (graph.objects, graph.roots):
        broken += _check_table(table, sizes, f"{where}: {table.spec.name}")
    if not process.start_ts <= snapshot.start_ts <= snapshot.end_ts <= process.end_ts:
        broken.append(f"{where}: a time outside the process's, or an end before the start")
    return broken + [f"{where}: {law}" for law in _check_graph(graph)]


def _check_graph(graph: HeapGraph) -> list[str]:
    n, offsets, references = len(graph.objects), graph.offsets, graph.references
    types = f"offsets are {offsets.dtype} and references {references.dtype}, not int64 and int32"
    divides = len(offsets) == n + 1 and offsets[0] == 0 and offsets[-1] == len(references)
    known = graph.objects["object"][graph.objects["object"] >= 0]
    broken = {
        types: offsets.dtype != np.int64 or references.dtype != np.int32,
        f"offsets that do not divide the references among {n} objects": not divides or np.any(np.diff(offsets) < 0),
        "a reference to no object": np.any((references < 0) | (references >= n)),
        "a root that is not an object": np.any(graph.roots["object"] < 0),
        "an object of negative size": np.any(graph.objects["size"] < 0),
        "an object that is listed twice": len(distinct(known)) != len(known),
    }
    return [law for law, is_broken in broken.items() if is_broken]


def pairs(leaves: Array) -> tuple[Array, Array]:
    """(enter rows, leave rows) of a balanced stream, pair by pair: at one depth, enters and leaves alternate."""
    depth = np.cumsum(np.where(leaves, -1, 1)) + leaves
    order = np.argsort(depth, kind="stable")
    return order[0::2], order[1::2]
