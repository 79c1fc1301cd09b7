"""pprof: the profile of `go tool pprof` and of what reads its format, profile.proto.

A sample type for each measure: samples, the weights of each event, the time of calls and their number, allocations,
sizes. A sample is a call path of a thread, whose name and process are labels. The field numbers are those of
github.com/google/pprof, proto/profile.proto.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from traceferry.analysis.totals.series import SAMPLES, Measure, unit_of
from traceferry.exporters.amounts import Amounts
from traceferry.files.output import Output
from traceferry.model import Strings, TraceBuilder

# Fields of Profile, then those of the messages in it.
TYPES, STACKS, LOCATION, FUNCTION, STRING_TABLE, TIME_NANOS, DURATION_NANOS = 1, 2, 4, 5, 6, 9, 10
PERIOD_TYPE, PERIOD, COMMENT, DEFAULT_SAMPLE_TYPE = 11, 12, 13, 14
TYPE, UNIT = 1, 2
LOCATION_ID, VALUE, LABEL, LABEL_KEY, LABEL_TEXT = 1, 2, 3, 1, 2
ID, LINE, LINE_FUNCTION, LINE_LINE = 1, 4, 1, 2
# Without a system_name (3): a name that equals it is for pprof one to demangle, of which it drops <...> and (...).
NAME, FILENAME, START_LINE = 2, 4, 5
# What pprof calls units.
UNITS = {"ns": "nanoseconds"}


def write(trace: TraceBuilder, out: Output, progress: Callable[[int], None]) -> None:
    """Writes samples, thread by thread, then the functions that they have, and all texts."""
    amounts = Amounts(trace, progress)
    texts = Strings()
    texts.intern("")
    named = {measure: texts.intern(_name_of(trace, measure)) for measure in amounts.measures}
    for measure in amounts.measures:
        unit = texts.intern(_unit_of(trace, measure))
        out.write(_message(TYPES, _number(TYPE, named[measure]) + _number(UNIT, unit)))
    if not amounts.measures:
        # Who reads it knows a profile by its types.
        out.write(_message(TYPES, _number(TYPE, texts.intern("samples")) + _number(UNIT, texts.intern("count"))))
    used = np.zeros(len(trace.funcs), bool)
    labels = [texts.intern(name) for name in ("process", "thread")]
    for thread in amounts.of_threads():
        said = b"".join(
            _message(LABEL, _number(LABEL_KEY, key) + _number(LABEL_TEXT, texts.intern(text)))
            for key, text in zip(labels, (thread.process, thread.thread), strict=True)
            if text
        )
        for path, values in thread.amounts:
            functions = list(amounts.paths.of(path))
            used[functions] = True
            locations = _packed(LOCATION_ID, (func + 1 for func in functions))
            out.write(_message(STACKS, locations + _packed(VALUE, values) + said))
    trace.report.note("output_empty", int(not used.any()), where="pprof", detail="pprof")
    for func in np.flatnonzero(used).tolist():
        _write_function(trace, out, texts, func)
    if amounts.measures:
        out.write(_number(DEFAULT_SAMPLE_TYPE, named[amounts.measures[0]]))
    sampling = trace.sampling
    if sampling is not None and sampling.interval_ns:
        period = _number(TYPE, texts.intern(sampling.name)) + _number(UNIT, texts.intern("nanoseconds"))
        out.write(_message(PERIOD_TYPE, period) + _number(PERIOD, sampling.interval_ns))
    out.write(_number(TIME_NANOS, trace.unix_start_ns or 0) + _number(DURATION_NANOS, trace.end_ts - trace.start_ts))
    for each in trace.inputs:
        out.write(_number(COMMENT, texts.intern(f"{each.path}: {each.producer}")))
    for text in texts:
        out.write(_message(STRING_TABLE, text.encode("utf-8", "replace")))


def _name_of(trace: TraceBuilder, measure: Measure) -> str:
    """Returns the name of a measure: of one that counts samples, the event's own where that counts nothing else."""
    sampling = trace.sampling
    if measure == SAMPLES and sampling is not None and sampling.unit == "samples":
        return sampling.plain_name
    return measure.name.replace(" ", "_")


def _unit_of(trace: TraceBuilder, measure: Measure) -> str:
    unit = unit_of(trace, measure)
    return UNITS.get(unit, unit)


def _write_function(trace: TraceBuilder, out: Output, texts: Strings, func: int) -> None:
    """Writes a function, and the one location that it has."""
    source, line = int(trace.funcs["source"][func]), int(trace.funcs["line"][func])
    path = trace.strings[int(trace.sources["path"][source])] if source >= 0 else ""
    name = texts.intern(trace.func_name(func))
    place = _number(LINE_FUNCTION, func + 1) + _number(LINE_LINE, line)
    out.write(_message(LOCATION, _number(ID, func + 1) + _message(LINE, place)))
    fields = {ID: func + 1, NAME: name, FILENAME: texts.intern(path), START_LINE: line}
    out.write(_message(FUNCTION, b"".join(_number(field, value) for field, value in fields.items())))


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    written = bytearray()
    while value > 0x7F:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    written.append(value)
    return bytes(written)


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value) if value else b""


def _message(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(content)) + content


def _packed(field: int, values: Iterable[int]) -> bytes:
    return _message(field, b"".join(map(_varint, values)))
