"""A Trace as lists that tests can compare: calls, arguments, events, states."""

import functools
import inspect
import re
import tarfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

import traceferry
from traceferry.model import (
    ENTRY_LOST,
    LEAVE,
    OPEN_AT_END,
    OPEN_AT_START,
    TAIL,
    UNWOUND,
    Thread,
    ThreadData,
    Trace,
    TraceBuilder,
    laws,
)

FLAG_WORDS = {
    OPEN_AT_START: "open-at-start", ENTRY_LOST: "entry-lost", TAIL: "tail", UNWOUND: "unwound",
    OPEN_AT_END: "open-at-end",
}  # fmt: skip


class Unprinted(list[Any]):
    """A list that holds too much for the message of a failed test."""

    def __repr__(self) -> str:
        return f"<{len(self)} elements>"


def for_each(name: str, values: Mapping[str, Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Runs one test with each of the values as the argument `name`; a failure says with which.

    Unlike parametrize, this is one test: for values whose names say nothing about what is tested.
    """
    assert values

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def with_each(**others: Any) -> None:
            for label, value in values.items():
                try:
                    test(**{name: value}, **others)
                except Exception as error:
                    error.add_note(f"{name}: {label}")
                    raise

        signature = inspect.signature(test)
        kept = [parameter for key, parameter in signature.parameters.items() if key != name]
        with_each.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]
        return with_each

    return decorate


class Call(NamedTuple):
    """name: of its function; start, end: on the trace's clock; flags: those of its two rows together."""

    name: str
    start: int
    end: int
    depth: int
    flags: int
    args: tuple[int, ...] = ()


AnyTrace = TypeVar("AnyTrace", bound=Trace)


def lawful(trace: AnyTrace) -> AnyTrace:
    """The trace, which obeys the laws."""
    broken = laws.check(trace)
    assert not broken, broken
    return trace


def load_checked(inputs: Any, symbols: Any = (), find_symbols: Any = None, **options: Any) -> Trace:
    """Returns what `traceferry.load` makes, which obeys the laws. options: of LoadOptions."""
    chosen = traceferry.LoadOptions(**options)
    return lawful(traceferry.load(inputs, symbols=symbols, options=chosen, find_symbols=find_symbols))


def load_opened(inputs: Any, **options: Any) -> TraceBuilder:
    """The same, opened: it has all that is added when threads are loaded."""
    return lawful(traceferry.load(inputs, options=traceferry.LoadOptions(**options)).opened())


def thread_of(trace: Trace, tid: int) -> Thread:
    (found,) = (thread for _, thread in trace.threads if thread.tid == tid)
    return found


def data_of(trace: Trace, tid: int) -> ThreadData:
    return thread_of(trace, tid).load(trace)


def frame_names(trace: Trace) -> list[str]:
    return [trace.func_name(int(func)) for func in trace.frames["func"]]


def calls_of(trace: Trace, data: ThreadData) -> list[Call]:
    """In the order of their enters."""
    rows = list(zip(*(data.calls[column].tolist() for column in ("ts", "frame", "flags")), strict=True))
    names = frame_names(data.trace)
    args: dict[int, list[int]] = {}
    for row, value in zip(data.arguments["call"].tolist(), data.arguments["value"].tolist(), strict=True):
        args.setdefault(row, []).append(value)
    calls: list[Call] = []
    open_calls: list[int] = []
    for row, (ts, frame, flags) in enumerate(rows):
        if flags & LEAVE:
            nth = open_calls.pop()
            calls[nth] = calls[nth]._replace(end=ts, flags=calls[nth].flags | flags & ~LEAVE)
            assert calls[nth].name == names[frame]
        else:
            open_calls.append(len(calls))
            calls.append(Call(names[frame], ts, -1, len(open_calls) - 1, flags, tuple(args.get(row, ()))))
    assert not open_calls
    return calls


def all_calls(trace: Trace) -> list[list[Call]]:
    """Of every thread."""
    return [calls_of(trace, thread.load(trace)) for _, thread in trace.threads]


def drawn(trace: Trace, data: ThreadData) -> str:
    """The calls as a picture: a line for each, a dot for each level, times from the recording's start.

    "function 1" is A, and so on.
    """
    lines = []
    for call in calls_of(trace, data):
        letter = chr(ord("A") + int(call.name.removeprefix("function ")) - 1)
        words = [word for flag, word in FLAG_WORDS.items() if call.flags & flag]
        span = f"{call.start - trace.start_ts}-{call.end - trace.start_ts}"
        args = [f"({', '.join(map(str, call.args))})"] if call.args else []
        lines.append(" ".join([f"{'.' * call.depth}{letter}{''.join(args)}", span, *words]))
    return "\n".join(lines)


def events_of(data: ThreadData) -> dict[str, list[dict[str, Any]]]:
    """Marker type → its rows."""
    return {
        marker_type.name: [
            {c.name: as_python(table[c.name][row]) for c in table.spec.columns} for row in range(len(table))
        ]
        for marker_type, table in data.markers.items()
    }


def states_of(trace: Trace, data: ThreadData) -> list[tuple[int, str, str]]:
    """(ts, track, value)"""
    trace = data.trace
    states = data.states
    columns = (states[name].tolist() for name in ("ts", "track", "value"))
    return [(ts, trace.strings[track], trace.strings[value]) for ts, track, value in zip(*columns, strict=True)]


def as_python(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def report_of(trace: Trace) -> dict[str, int]:
    """Kind → count. Loads every thread first: some losses are found only there."""
    for _, thread in trace.threads:
        thread.load(trace)
    return {issue.kind: issue.count for issue in trace.report}


def kinds(report: Iterable[Any]) -> set[str]:
    return {issue.kind for issue in report}


# `info` has one row for all addresses of a library that nothing names, tables of fleets have one for each.
NAMELESS = re.compile(r".+(\+0x[0-9a-f]+| \([0-9]+ addresses without a name\))")


def extract(archive: Path, into: Path) -> None:
    """Unpacks a tar file, safely where this Python can: 3.11 does from its fourth version on."""
    with tarfile.open(archive) as tar:
        tar.extraction_filter = getattr(tarfile, "data_filter", None)
        tar.extractall(into)
