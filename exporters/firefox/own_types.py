"""Types of markers that the viewer treats by code of its own: their data must have the members that this code reads, of
the kinds that it expects, or the viewer refuses the whole profile, or draws a marker where it was not.

Facts: src/profile-logic/marker-data.ts and process-profile.ts, src/components/tooltip/GCMarker.tsx of the Firefox
Profiler.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import orjson

from traceferry.exporters.json.objects import Member, Values, millis_member
from traceferry.model import Array, MarkerType, Table

MESSAGE, REQUEST, SCREENSHOT = "IPC", "Network", "CompositorScreenshot"
# Types with a member that is an object; in the model, its text.
NESTED = {"GCMinor": "nursery", "GCSlice": "timings", "GCMajor": "timings"}
# These have another shape in Gecko profiles, of which the viewer makes that of processed ones.
NOT_IN_GECKO = ("GCSlice", "GCMajor")
# The last two are allocations in Gecko profiles.
OWN_TYPES = frozenset((MESSAGE, REQUEST, SCREENSHOT, *NESTED, "JS allocation", "Native allocation"))
NEEDED = {
    MESSAGE: {"otherPid", "messageSeqno", "messageType", "direction"},
    REQUEST: {"id", "status"},
    SCREENSHOT: {"windowID"},
} | {name: {key} for name, key in NESTED.items()}
PHASES = {"sending": ("endpoint", "transferStart", "transferEnd"), "receiving": ("endpoint", "transferEnd")}
OPENED, CLOSED = "STATUS_START", ("STATUS_STOP", "STATUS_REDIRECT", "STATUS_CANCEL")
COLLECTED = ("complete", "nursery disabled", "nursery empty")


class Shaped(NamedTuple):
    """Markers of one type. constant, members: of their data, beside the fields or instead of those with these keys;
    lasts: they are intervals, even where none takes any time."""

    table: Table
    constant: dict[str, Any]
    members: Sequence[Member] = ()
    lasts: bool = False


def own_shape(kind: MarkerType, table: Table, start_ts: int, is_gecko: bool) -> tuple[list[Shaped], Table]:
    """Returns the markers that can be written as the viewer's code reads their type, and the others of the table,
    whose type must have another name. start_ts: ns that are 0 in the profile."""
    keys = {field.key for field in kind.fields}
    if not NEEDED.get(kind.name, {""}) <= keys or (is_gecko and kind.name in NOT_IN_GECKO):
        return [], table
    if kind.name in NESTED:
        return _nested(kind.name, table)
    if kind.name == MESSAGE:
        return _messages(table, keys, start_ts)
    if kind.name == REQUEST:
        return _requests(table, start_ts)
    # A picture is an index of a text there.
    return ([], table) if "url" in keys else ([Shaped(table, {})], table.take(slice(0)))


def _nested(name: str, table: Table) -> tuple[list[Shaped], Table]:
    key = NESTED[name]
    texts = [text if isinstance(text, str) and _is_shown(name, text) else "" for text in table[key].tolist()]
    fits = np.array([text != "" for text in texts], bool)
    objects = [orjson.Fragment(text) for text in texts if text]
    return ([Shaped(table.take(fits), {}, [Values(key, objects)])] if objects else []), table.take(~fits)


def _is_shown(name: str, text: str) -> bool:
    try:
        found = orjson.loads(text)
    except ValueError:
        return False
    if not isinstance(found, dict):
        return False
    if name == "GCMinor":
        return found.get("status") in COLLECTED
    has_phases = isinstance(found.get("phase_times"), dict)
    return has_phases if name == "GCSlice" else found.get("status") == "aborted" or (
        found.get("status") == "completed" and has_phases
    )  # fmt: skip


def _messages(table: Table, keys: set[str], start_ts: int) -> tuple[list[Shaped], Table]:
    """The viewer joins up to five markers of one message, by times in their data. Old ones have no phase."""
    phases = table["phase"].tolist() if "phase" in keys else ["endpoint"] * len(table)
    pairs = zip(table["direction"].tolist(), phases, strict=True)
    fits = np.array([phase in PHASES.get(direction, ()) for direction, phase in pairs], bool)
    texts = map(str, table["sync"].tolist()) if "sync" in keys else ("" for _ in phases)
    is_sync = np.array([text.lower() in ("true", "1") for text in texts], bool)
    found = []
    for sync in (False, True):
        rows = table.take(fits & (is_sync == sync))
        found += [Shaped(rows, {"sync": sync} if "sync" in keys else {}, _times(rows, start_ts))] if len(rows) else []
    return found, table.take(~fits)


def _requests(table: Table, start_ts: int) -> tuple[list[Shaped], Table]:
    """A request is two markers: a stop without a start would last from the profile's start."""
    status = table["status"].tolist()
    is_open = np.array([one == OPENED for one in status], bool)
    is_closed = np.array([one in CLOSED for one in status], bool)
    pairs = table.take(np.repeat(np.flatnonzero(is_closed), 2))
    dur, statuses = pairs["dur"].copy(), pairs["status"].copy()
    dur[::2], statuses[::2] = 0, OPENED
    pairs = pairs.replaced(dur=dur, status=statuses)
    found = [Shaped(rows, {}, _times(rows, start_ts), True) for rows in (pairs, table.take(is_open)) if len(rows)]
    return found, table.take(~(is_open | is_closed))


def _times(rows: Table, start_ts: int) -> list[Member]:
    begin: Array = rows["ts"] - start_ts
    return [millis_member("startTime", begin), millis_member("endTime", begin + rows["dur"])]
