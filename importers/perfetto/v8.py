"""Map: whose samples those of V8's profiler are.

A thread of its own sends what the profiler has sampled of another one, and trace_processor takes that for samples of
the thread that sends them. Whom it samples tells the event `Profile`, with which each profile begins: its thread.
trace_processor has no table of these events; but it makes a mapping for each, in their order, which the frames of the
profile's samples have (legacy_v8_cpu_profile_tracker.cc).
"""

from __future__ import annotations

import numpy as np

from traceferry.common.patterns import compiled_later
from traceferry.files.json_text import is_json
from traceferry.files.source import Source
from traceferry.importers.perfetto._packets import threads_at
from traceferry.importers.perfetto.chrome_json import profiles_begun
from traceferry.importers.perfetto.decode import Tables, dense
from traceferry.model import Array, rows_by_key

# What the event has in a Perfetto trace, as JSON; chunks of samples have no such member.
START_TIME = compiled_later(rb'"startTime":\d')
Thread = tuple[int, int]  # numbers of process and thread


def profiles_of(tables: Tables, callsite: Array, is_of_v8: Array) -> Array:
    """Returns int64: the mapping that the innermost frame of each of V8's samples has, which is its profile's; -1: it
    has none, or is another sample."""
    if not is_of_v8.any():
        return np.full(len(callsite), -1, np.int64)
    frame = _looked_up(tables, "callsites", "frame_id", callsite)
    return np.where(is_of_v8, _looked_up(tables, "frames", "mapping", frame), -1)


def _looked_up(tables: Tables, table: str, column: str, ids: Array) -> Array:
    answer = tables[table]
    known, values = dense(answer["id"].numbers(-1), len(answer)), answer[column].numbers(-1)
    found = np.full(int(known.max(initial=-1)) + 2, -1, np.int64)
    found[known[known >= 0]] = values[known >= 0]
    return found[np.where((ids >= 0) & (ids < len(found) - 1), ids, len(found) - 1)]


def threads_profiled(source: Source, tables: Tables, profiles: list[int]) -> dict[int, Thread]:
    """Returns the thread that each profile is of; {} where the trace does not tell. profiles: rising."""
    begun = profiles_begun(source.data) if is_json(source.data) else _begun_in_packets(source.data)
    answer = tables["mappings"]
    nameless = zip(answer["id"].numbers(-1).tolist(), answer["name"].texts(), strict=True)
    # Profiles without samples have a mapping, too.
    for mappings in (profiles, sorted(number for number, name in nameless if not name)):
        if len(mappings) == len(begun):
            return {mapping: thread for mapping, thread in zip(mappings, begun, strict=True) if thread is not None}
    return {}


def _begun_in_packets(data: memoryview) -> list[Thread | None]:
    places = np.array([match.start() for match in START_TIME.finditer(data)], np.int64)
    return threads_at(data, places)


def beside_others(ts: Array, profile: Array, owner: Array) -> set[int]:
    """Returns the profiles during which the same thread has another one, with more samples. ts, profile, owner: of each
    sample; -1 is no profile."""
    spans = [
        (-len(rows), number, int(ts[rows].min()), int(ts[rows].max()), int(owner[rows[0]]))
        for number, rows in rows_by_key(profile).items()
        if number >= 0
    ]
    kept: list[tuple[int, int, int]] = []
    found = set()
    for _, number, first, last, thread in sorted(spans):
        if any(thread == other and first <= end and begin <= last for other, begin, end in kept):
            found.add(number)
        else:
            kept.append((thread, first, last))
    return found
