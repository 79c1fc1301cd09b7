"""What `load` returns: a trace that shows itself in notebooks, with tables for data frames."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from traceferry.common.report import n_times
from traceferry.data_tables import Batch, DataColumn, DataTable, Kind, escaped, objects, shown_cell
from traceferry.model import FIELD_DTYPES, Array, MarkerField, Process, Table, Thread, ThreadData, Trace, TraceBuilder
from traceferry.timeline.whole_calls import WholeCalls

# How many of each are listed in a notebook.
LISTED = 10

THREAD_COLUMNS = (
    DataColumn("process", "text", "its name"),
    DataColumn("pid", "int64", "its number"),
    DataColumn("thread", "text", "its name"),
    DataColumn("tid", "int64", "its number"),
)
PLACE_COLUMNS = (
    DataColumn("function", "text", "its name", True),
    DataColumn("file", "text", "that it is in", True),
    DataColumn("line", "int32", "that runs", True),
)
FUNCTION_COLUMNS = (
    DataColumn("function", "text", "its name"),
    DataColumn("file", "text", "that it is in", True),
    DataColumn("line", "int64", "where it begins", True),
    DataColumn("calls", "int64", "how often it was called"),
    DataColumn("total_ns", "int64", "time of its calls with what they call, in ns; recursion counts once"),
    DataColumn("self_ns", "int64", "time of its calls alone, in ns"),
    DataColumn("samples", "int64", "of the first event, in which it ran itself"),
    DataColumn("total_samples", "int64", "of the first event, in which it is in the stack"),
)
SAMPLE_COLUMNS = (
    *THREAD_COLUMNS,
    DataColumn("ts", "int64", "when, in ns on the trace's clock"),
    DataColumn("event", "text", "what was counted"),
    DataColumn("weight", "int64", "how much of it"),
    DataColumn("unit", "text", "of the weight"),
    DataColumn("samples", "int64", "how many samples the row stands for"),
    DataColumn("cpu", "int32", "the processor", True),
    *PLACE_COLUMNS,
    DataColumn("category", "text", "kind of code", True),
    DataColumn("tier", "text", "interpreter, baseline, optimised...", True),
)
STACK_COLUMN = DataColumn("stack", "texts", "the functions, the outermost first")
CALL_COLUMNS = (
    *THREAD_COLUMNS,
    DataColumn("ts", "int64", "when it began, in ns on the trace's clock"),
    DataColumn("dur", "int64", "how long it took, in ns"),
    DataColumn("self_ns", "int64", "how long without what it called, in ns"),
    DataColumn("depth", "int32", "how many calls it is in"),
    DataColumn("calls", "int64", "how many calls the row stands for"),
    DataColumn("is_cut", "bool", "its begin or its end was not recorded"),
    *PLACE_COLUMNS,
)
MARKER_COLUMNS = (
    *THREAD_COLUMNS,
    DataColumn("ts", "int64", "when it began, in ns on the trace's clock"),
    DataColumn("dur", "int64", "how long it took, in ns; 0 is an instant"),
    DataColumn("type", "text", "what happened"),
)
FIELD_KINDS: dict[str, Kind] = {"text": "text", "int64": "int64", "uint64": "uint64", "float64": "float64"}
FIELDS_COLUMN = DataColumn("fields", "text", "what is known of it, as JSON")
STACK_OF_MARKER = DataColumn("function", "text", "where", True)


class LoadedTrace(Trace):
    """A trace as `load` returns it. In a notebook it shows what it holds; its tables are for pandas, polars, pyarrow,
    DuckDB and whatever takes Arrow data, for which they need ``pip install 'traceferry[tables]'``.
    """

    def functions(self) -> DataTable:
        """Sums up each function, over all threads, as ``traceferry info --json`` does.

        Returns
        -------
        DataTable
            function, file, line; calls, total_ns, self_ns; samples and total_samples, of the first event; where there
            are several events, for each its weight by function, as `cache-misses` and `cache-misses_total`.
        """
        taken = {column.name for column in FUNCTION_COLUMNS}
        weights = [
            DataColumn(_free(f"{event.name}{suffix}", taken), "int64", f"{doc}, in {event.unit}")
            for event in (self.events if len(self.events) > 1 else ())
            for suffix, doc in (("", "its own"), ("_total", "with what it calls"))
        ]
        return DataTable((*FUNCTION_COLUMNS, *weights), lambda: _functions(self, weights))

    def samples(self, *, stacks: bool = False) -> DataTable:
        """Lists the samples of all events.

        Parameters
        ----------
        stacks : bool, default False
            With a column `stack`: the functions' names, the outermost first.

        Returns
        -------
        DataTable
            process, pid, thread, tid; ts; event, weight, unit, samples; cpu; function, file, line, category and tier
            of what ran; stack.
        """
        columns = (*SAMPLE_COLUMNS, STACK_COLUMN) if stacks else SAMPLE_COLUMNS
        return self._by_thread(columns, lambda names, data: _samples(names, data, stacks))

    def calls(self) -> DataTable:
        """Lists the calls that were recorded one by one.

        Returns
        -------
        DataTable
            process, pid, thread, tid; ts, dur, self_ns; depth, calls, is_cut; function, file, line. A call comes when
            it has ended; those of a batch are in the order of their beginnings.
        """
        return self._by_thread(CALL_COLUMNS, _calls)

    def markers(self, type: str | None = None) -> DataTable:  # noqa: A002 - the column's name
        """Lists what happened at times: collections, locks, exceptions, loads of code, events.

        Parameters
        ----------
        type : str, optional
            Only those of this type, as "GC pause". Each field is a column then.

        Returns
        -------
        DataTable
            process, pid, thread, tid; ts, dur; type; function, where it is known; fields as JSON, or each field.

        Raises
        ------
        KeyError
            If the recording has no markers of the type. It names those that there are.
        """
        if type is None:
            columns = (*MARKER_COLUMNS, STACK_OF_MARKER, FIELDS_COLUMN)
            return self._by_thread(columns, lambda names, data: _markers(names, data, None, {}))
        fields = self._fields_of(type)
        typed = (*MARKER_COLUMNS, STACK_OF_MARKER, *fields.values())
        return self._by_thread(typed, lambda names, data: _markers(names, data, type, fields))

    def _fields_of(self, name: str) -> dict[str, DataColumn]:
        """Returns the columns of the fields of a type of markers, by their keys."""
        found: dict[str, DataColumn] = {}
        taken = {column.name for column in (*MARKER_COLUMNS, STACK_OF_MARKER)}
        types: set[str] = set()
        for data in _threads_of(self, lambda _, data: iter([data])):
            for marker_type in data.markers:
                types.add(marker_type.name)
                if marker_type.name == name:
                    for field in marker_type.fields:
                        if field.key not in found:
                            kind = FIELD_KINDS[FIELD_DTYPES[field.format]]
                            found[field.key] = DataColumn(_free(field.key, taken), kind, field.label, True)
        if name not in types:
            raise KeyError(f"no markers {name!r}; there are {', '.join(sorted(types)) or 'none'}")
        return found

    def _by_thread(
        self, columns: Iterable[DataColumn], rows: Callable[[Names, ThreadData], Iterator[Batch]]
    ) -> DataTable:
        """Returns the table of the rows of each thread, which has columns that say which thread it is."""
        return DataTable(tuple(columns), lambda: _threads_of(self, rows))

    @property
    def _recorded(self) -> list[Thread]:
        """The threads that are no views of sizes."""
        return [thread for _, thread in self.threads if not thread.sample_unit]

    def __repr__(self) -> str:
        names = ", ".join(shown_cell(process.name) for process in self.processes[:3])
        more = f" and {len(self.processes) - 3} more" if len(self.processes) > 3 else ""
        seconds = (self.end_ts - self.start_ts) / 1e9
        return f"<Trace of {names or 'no process'}{more}: {len(self._recorded)} threads, {seconds:.3f} s>"

    def _repr_html_(self) -> str:
        """Returns a summary as HTML, of at most 16 kB, whatever the recording has for names."""
        lost = [issue for issue in self.report if issue.severity != "info"]
        facts = [
            ("recorded", f"{(self.end_ts - self.start_ts) / 1e9:.3f} s"),
            ("inputs", _listed([f"{i.path}: {i.format} {i.version}" for i in self.inputs])),
            ("processes", _listed([f"{process.name} ({process.pid})" for process in self.processes])),
            ("threads", _listed([thread.name for thread in self._recorded])),
            ("events", _listed([event.name for event in self.events])),
            ("functions", f"{len(self.funcs):,}"),
            ("report", _listed([f"{i.severity}: {i.title}, {n_times(i.count)}" for i in lost])),
        ]  # fmt: skip
        rows = "".join(f"<tr><th>{escaped(name)}</th><td>{text}</td></tr>" for name, text in facts if text)
        return f"<table><caption>{escaped(repr(self))}</caption><tbody>{rows}</tbody></table>"


def _listed(texts: list[str]) -> str:
    """Returns the first of them as HTML, and how many more there are."""
    shown = [escaped(shown_cell(text)) for text in texts[:LISTED]]
    return "<br>".join([*shown, *[f"and {len(texts) - LISTED:,} more"] * (len(texts) > LISTED)])


class Names:
    """The names of what rows of a thread refer to, by the trace's rows. thread: the columns that say which it is."""

    def __init__(self, trace: TraceBuilder) -> None:
        self.trace = trace
        self.process = Process(0, "", 0, 0)
        self.of: Thread

    def of_thread(self, process: Process, thread: Thread) -> Names:
        self.process, self.of = process, thread
        return self

    def thread(self, n: int) -> Batch:
        return {
            "process": np.full(n, self.process.name, object), "pid": np.full(n, self.process.pid, np.int64),
            "thread": np.full(n, self.of.name, object), "tid": np.full(n, self.of.tid, np.int64),
        }  # fmt: skip

    def texts(self, rows: Array) -> Array:
        """Returns the texts of rows of `strings`; None for -1."""
        return _chosen([*self.trace.strings, None], rows)

    def leaves(self, stack: Array) -> Array:
        """Returns the frames in which stacks end; -1 for none."""
        return _of(self.trace.stacks["frame"], stack)

    def functions(self, frame: Array) -> Array:
        return self.texts(_of(self.trace.funcs["name"], _of(self.trace.frames["func"], frame)))

    def places(self, frame: Array) -> Batch:
        """Returns the columns of PLACE_COLUMNS."""
        frames, funcs = self.trace.frames, self.trace.funcs
        func = _of(frames["func"], frame)
        own, declared = _of(frames["source"], frame), _of(funcs["source"], func)
        source = np.where(own >= 0, own, declared)
        line = _of(frames["line"], frame, 0)
        return {
            "function": self.functions(frame),
            "file": self.texts(_of(self.trace.sources["path"], source)),
            "line": _known(line, line > 0),
        }

    def named(self, table: Table, rows: Array) -> Array:
        """Returns the names of rows of `categories` or `tiers`."""
        return self.texts(_of(table["name"], rows))

    def stacks(self, stack: Array) -> Array:
        """Returns for each stack the names of its functions, the outermost first."""
        different, which = np.unique(stack, return_inverse=True)
        prefix = self.trace.stacks["prefix"].tolist()
        functions = self.functions(self.trace.stacks["frame"])
        paths: dict[int, list[Any]] = {-1: []}
        for leaf in different.tolist():
            path = [leaf]
            while path[-1] not in paths and prefix[path[-1]] not in paths:
                path.append(prefix[path[-1]])
            for at in reversed(path):
                if at not in paths:
                    paths[at] = [*paths[prefix[at]], functions[at]]
        return objects([paths[leaf] for leaf in different.tolist()])[which]


def _chosen(texts: list[Any], rows: Array) -> Array:
    return objects(texts)[rows]


def _of(column: Array, rows: Array, absent: int = -1) -> Array:
    """Returns the values of rows; `absent` for row -1."""
    return np.append(column, column.dtype.type(absent))[rows]


def _threads_of(trace: Trace, rows: Callable[[Names, ThreadData], Iterator[Any]]) -> Iterator[Any]:
    """Loads one thread after the other, and yields what `rows` makes of it."""
    opened = trace.opened()
    for process, thread in opened.threads:
        names = Names(opened).of_thread(process, thread)
        yield from rows(names, thread.load(opened))


def _functions(trace: Trace, weights: list[DataColumn]) -> Iterator[Batch]:
    from traceferry.analysis.info.summary import functions_json
    from traceferry.analysis.totals.collect import collect

    collected = collect(trace)
    top = functions_json(collected, len(collected.trace.funcs), "self")
    if not top:
        return
    for row in top:
        row["function"] = row["name"]
        amounts = [weight[key] for weight in row.get("weights", ()) for key in ("self", "total")]
        row |= {column.name: amount for column, amount in zip(weights, amounts, strict=True)}
    yield {
        c.name: objects([row.get(c.name) for row in top]) if c.nullable or c.kind == "text"
        else np.array([row[c.name] for row in top], np.int64)
        for c in (*FUNCTION_COLUMNS, *weights)
    }  # fmt: skip


def _samples(names: Names, data: ThreadData, stacks: bool) -> Iterator[Batch]:
    if names.of.sample_unit:  # a view of sizes
        return
    for row, event in enumerate(names.trace.events):
        table = data.samples_of(row)
        n_samples, done = names.trace.n_samples(data, row), 0
        for piece in () if table is None else table.pieces():
            n, frame, cpu = len(piece), names.leaves(piece["stack"]), piece["cpu"]
            done += n
            frames = names.trace.frames
            yield {
                **names.thread(n), "ts": piece["ts"],
                "event": np.full(n, event.name, object), "weight": piece["weight"],
                "unit": np.full(n, event.unit, object), "samples": n_samples[done - n : done],
                "cpu": _known(cpu, cpu >= 0),
                **names.places(frame),
                "category": names.named(names.trace.categories, _of(frames["category"], frame)),
                "tier": names.named(names.trace.tiers, _of(frames["tier"], frame)),
                **({"stack": names.stacks(piece["stack"])} if stacks else {}),
            }  # fmt: skip


def _calls(names: Names, data: ThreadData) -> Iterator[Batch]:
    calls = WholeCalls()
    for piece in data.calls.pieces():
        whole = calls.add(piece)
        if len(whole["ts"]):
            frame = whole.pop("frame")
            yield {**names.thread(len(frame)), **whole, **names.places(frame)}


def _markers(names: Names, data: ThreadData, only: str | None, fields: dict[str, DataColumn]) -> Iterator[Batch]:
    for marker_type, table in data.markers.items():
        for piece in table.pieces() if only in (None, marker_type.name) else ():
            n = len(piece)
            values = {field.key: _field_values(field, piece) for field in marker_type.fields}
            unknown = objects([None] * n)
            yield {
                **names.thread(n), "ts": piece["ts"], "dur": piece["dur"],
                "type": np.full(n, marker_type.name, object),
                "function": names.functions(names.leaves(piece["stack"])),
                **({column.name: values.get(key, unknown) for key, column in fields.items()}
                   if only is not None else {"fields": _as_json(values, n)}),
            }  # fmt: skip


def _field_values(field: MarkerField, table: Table) -> Array:
    """Returns objects; None where the field is optional and unknown."""
    values = table[field.key].tolist()
    return objects([value or None for value in values] if field.optional else values)


def _free(name: str, taken: set[str]) -> str:
    """Returns the name, or where it is taken the name with a number, and takes it."""
    free, n = name, 2
    while free in taken:
        free, n = f"{name}_{n}", n + 1
    taken.add(free)
    return free


def _known(values: Array, is_known: Array) -> Array:
    """Returns objects; None where a value is not known."""
    found = values.astype(object)
    found[~is_known] = None
    return found


def _as_json(values: Batch, n: int) -> Array:
    import json

    rows = ({key: column[i] for key, column in values.items() if column[i] is not None} for i in range(n))
    return objects([json.dumps(row, ensure_ascii=False) for row in rows])
