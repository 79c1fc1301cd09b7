"""Map: threads of Chrome's JSON that trace_processor takes for one, which its tables do not tell.

It reads thread 0 as that of the process's number (ParseJsonEvent of json_trace_tokenizer.cc), which may be another one:
Bazel's profiles have a thread 0 for the critical path, and a main thread 1 of process 1.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from typing import Any

from traceferry.importers.perfetto._members import places_of_thread

# An event is looked for so far around its thread's number, from so many braces on.
BEFORE, BEHIND, MOST_BRACES = 4096, 8192, 16
# So many events of a thread, and of so many processes, are looked at.
MOST_EVENTS, MOST_PROCESSES, MOST_NUMBER = 1000, 16, (1 << 32) - 1
METADATA = "M"


def merged_threads(data: memoryview) -> list[int]:
    """Returns the processes that have events of a thread 0 and of one that has the process's number."""
    pids = dict.fromkeys(
        event["pid"] for event in _events(data, 0) if isinstance(event.get("pid"), int) and event["pid"] > 0
    )
    return [pid for pid in islice(pids, MOST_PROCESSES) if any(event.get("pid") == pid for event in _events(data, pid))]


def _events(data: memoryview, tid: int) -> Iterator[dict[str, Any]]:
    """Yields events of threads of this number, of some process, but for those that name them."""
    for at in places_of_thread(data, tid, MOST_EVENTS).tolist():
        event = _event_at(data, at)
        if event.get("tid") == tid and event.get("ph") != METADATA:
            yield event


def _event_at(data: memoryview, at: int) -> dict[str, Any]:
    """Returns the innermost object with a member `tid` around a place, {} for none."""
    first = max(at - BEFORE, 0)
    # One character for each byte: names do not matter.
    text = str(bytes(data[first : at + BEHIND]), "latin-1")
    brace = at - first
    for _ in range(MOST_BRACES):
        brace = text.rfind("{", 0, brace)
        if brace < 0:
            break
        try:
            event, end = json.JSONDecoder(strict=False).raw_decode(text, brace)
        except (ValueError, RecursionError):
            continue
        if first + end > at and "tid" in event:
            found: dict[str, Any] = event
            return found
    return {}
