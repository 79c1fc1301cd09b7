"""Map: states of tracks, and what waiting threads waited for, as states; the log of Android as markers."""

from __future__ import annotations

from collections import Counter as Counting
from collections import defaultdict
from collections.abc import Callable, Set
from typing import Any

import numpy as np

from traceferry.common.shown_text import encodable
from traceferry.importers.perfetto.decode import Tables
from traceferry.importers.perfetto.heaps import Span
from traceferry.model import STATES, Array, MarkerField, MarkerType, Table, TraceBuilder, rows_by_key

LOG = MarkerType(
    "Log", "Android's log",
    (MarkerField("tag", "Tag", "text"), MarkerField("message", "Message", "text", optional=True),
     MarkerField("priority", "Priority", "text", optional=True)),
    "{message}", ("tag", "priority"), category="Log", named_by="tag",
)  # fmt: skip
# android/log.h
PRIORITIES = {2: "verbose", 3: "debug", 4: "info", 5: "warning", 6: "error", 7: "fatal"}
# The track of what a thread waits for.
WAIT = "Wait"
Rows = dict[int, list[tuple[int, int, int]]]  # of each thread: (time, track, value)


def read_states(
    trace: TraceBuilder, tables: Tables, span: Span, owner_of: Callable[[int, int], int], left_out: Set[int]
) -> dict[int, Table]:
    """Returns STATES of each thread. owner_of: the thread of a utid and a upid; left_out: tracks that are none."""
    found: Rows = defaultdict(list)
    _add_tracks(trace, tables, span, owner_of, left_out, found)
    _add_waits(trace, tables, span, found)
    made: dict[int, Table] = {}
    for owner, rows in ((owner, rows) for owner, rows in found.items() if rows):
        rows.sort(key=lambda row: row[0])
        ts, track, value = zip(*rows, strict=True)
        columns: dict[str, Any] = {"ts": np.array(ts, np.int64), "track": np.array(track, np.int32)}
        made[owner] = Table(STATES, columns | {"value": np.array(value, np.int32)})
    return made


def _add_tracks(
    trace: TraceBuilder, tables: Tables, span: Span, owner_of: Callable[[int, int], int], left_out: Set[int],
    found: Rows,
) -> None:  # fmt: skip
    tracks, answer = tables["state_tracks"], tables["track_states"]
    intern, names = trace.strings.intern, Counting[tuple[int, str]]()
    values = [intern(encodable(value)) if value else -1 for value in answer["value"].texts()]
    ts, dur = answer["ts"].numbers(), answer["dur"].numbers(-1)
    rows_of = rows_by_key(answer["track_id"].numbers(-1))
    columns = (tracks[name].numbers(-1).tolist() for name in ("id", "utid", "upid"))
    for number, utid, upid, name, kind in zip(*columns, tracks["name"].texts(), tracks["type"].texts(), strict=True):
        if number in left_out:
            continue
        owner, title = owner_of(utid, upid), encodable(name or kind)
        names[owner, title] += 1
        nth = names[owner, title]
        track = intern(title if nth == 1 else f"{title} ({nth})")
        rows = rows_of.get(number, np.zeros(0, np.int64))
        found[owner] += _with_ends(ts[rows], dur[rows], [(track, values[row]) for row in rows.tolist()], span)


def _with_ends(ts: Array, dur: Array, facts: list[tuple[int, int]], span: Span) -> list[tuple[int, int, int]]:
    """Returns rows, with one without a value at each end at which none begins. dur: -1 lasts to the end."""
    made: list[tuple[int, int, int]] = []
    begins = [span.of(one) for one in ts.tolist()]
    for nth, (begin, lasts, (track, value)) in enumerate(zip(begins, dur.tolist(), facts, strict=True)):
        made.append((begin, track, value))
        end = span.end if lasts < 0 else min(begin + lasts, span.end)
        if end < (begins[nth + 1] if nth + 1 < len(begins) else span.end):
            made.append((end, track, -1))
    return made


def _add_waits(trace: TraceBuilder, tables: Tables, span: Span, found: Rows) -> None:
    """Adds what the kernel says of threads that wait: the function in which they do, and whether for a device."""
    answer = tables["waits"]
    intern = trace.strings.intern
    track, ts, dur = intern(WAIT), answer["ts"].numbers(), answer["dur"].numbers(-1)
    texts = [
        intern(encodable(function) + " (I/O)" * (io == 1 and bool(function)) or "I/O")
        for function, io in zip(answer["blocked_function"].texts(), answer["io_wait"].numbers().tolist(), strict=True)
    ]
    for utid, rows in rows_by_key(answer["utid"].numbers()).items():
        found[utid] += _with_ends(ts[rows], dur[rows], [(track, texts[row]) for row in rows.tolist()], span)


def read_logs(tables: Tables, span: Span, owner_of: Callable[[int, int], int]) -> dict[int, Table]:
    """Returns the markers of LOG of each thread."""
    answer = tables["logs"]
    owner = np.array([owner_of(utid, -1) for utid in answer["utid"].numbers(-1).tolist()], np.int64)
    ts = np.clip(answer["ts"].numbers() + span.offset_ns, span.start, span.end)
    texts = {"tag": answer["tag"].texts(), "message": answer["msg"].texts()}
    texts["priority"] = [PRIORITIES.get(number, "") for number in answer["prio"].numbers(-1).tolist()]
    columns = {name: np.array([encodable(text) for text in of] + [None], object)[:-1] for name, of in texts.items()}
    made: dict[int, Table] = {}
    for one, unsorted in rows_by_key(owner).items():
        rows = unsorted[np.argsort(ts[unsorted], kind="stable")]
        instants = {"ts": ts[rows], "dur": np.zeros(len(rows), np.int64), "stack": np.full(len(rows), -1, np.int32)}
        held = {name: column[rows] for name, column in columns.items()}
        made[one] = Table(LOG.spec, {**instants, "flow": np.zeros(len(rows), np.int64), **held})
    return made
