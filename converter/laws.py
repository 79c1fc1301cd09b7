"""The laws of the model: what every importer promises and every exporter relies on."""

from __future__ import annotations

import numpy as np

from converter.model import LEAVE, Array, Table, ThreadData, Trace


def check(trace: Trace) -> list[str]:
    """Every broken law in words; an empty list is a valid trace. Loads each thread once."""
    if trace.clock is None:
        return ["the trace has no clock"]
    broken: list[str] = []
    sizes = _sizes(trace) | {t.spec.name: len(t) for t in trace.global_tables()}
    for growing in trace.global_tables():
        broken += _check_table(growing.table(), sizes, growing.spec.name)
    prefix = trace.stacks["prefix"]
    if np.any(prefix >= np.arange(len(prefix))):
        broken.append("stacks: a prefix is not smaller than its stack")
    if not broken:
        broken += _check_inlined(trace)
    for process, thread in trace.threads:
        broken += _check_thread(trace, thread.load(), sizes, f"thread {process.pid}/{thread.tid}")
    sizes = _sizes(trace)
    for process in trace.processes:
        for counter in process.counters:
            broken += _check_table(counter.values, sizes, f"counter {counter.name}")
    return broken


def _sizes(trace: Trace) -> dict[str, int]:
    return {"strings": len(trace.strings), "texts": len(trace.texts)}


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


def _check_thread(trace: Trace, data: ThreadData, sizes: dict[str, int], where: str) -> list[str]:
    sizes = sizes | _sizes(trace) | {"stacks": len(trace.stacks), "calls": len(data.calls)}
    broken: list[str] = []
    for table in data.tables():
        broken += _check_table(table, sizes, f"{where}: {table.spec.name}")
        ts = table.columns.get("ts")
        if ts is not None and len(ts) and (ts.min() < trace.start_ts or ts.max() > trace.end_ts):
            broken.append(f"{where}: {table.spec.name}: a time stamp outside the recording")
    if not broken:
        broken += [f"{where}: {law}" for law in _check_calls(data.calls, data.arguments)]
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
                broken.append(f"{where}.{column.name}: a value that is no text")
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
    enter, leave = pairs(leaves)
    if np.any(calls["frame"][enter] != calls["frame"][leave]):
        return ["a leave has another frame than its enter"]
    if len(arguments) and (arguments["call"].min() < 0 or np.any(leaves[arguments["call"]])):
        return ["an argument of a row that does not enter"]
    return []


def pairs(leaves: Array) -> tuple[Array, Array]:
    """(enter rows, leave rows) of a balanced stream, pair by pair: at one depth, enters and leaves alternate."""
    depth = np.cumsum(np.where(leaves, -1, 1)) + leaves
    order = np.argsort(depth, kind="stable")
    return order[0::2], order[1::2]
