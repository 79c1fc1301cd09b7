"""Layout: Chrome's JSON, of which trace_processor gets a copy where it would take several threads or processes for one.

It reads numbers of 32 bits, all others as 0, and thread 0 as that of the process's number (CoerceToUint32 and
ParseTraceEventContents of json_trace_tokenizer.cc). Writers that print pthread_self() have larger ones; profiles of
Bazel have a thread 0 for the critical path, and a main thread 1 of process 1. In the copy these have free numbers.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import count, islice
from typing import Any, BinaryIO

import numpy as np

from traceferry.files.json_text import BYTE_ORDER_MARK, is_json, members_seen
from traceferry.importers.perfetto._members import EventNumbers, has_number_apart, places_of_thread
from traceferry.model import Array

# An event is looked for so far around its thread's number, from so many braces on.
BEFORE, BEHIND, MOST_BRACES = 4096, 8192, 16
# So many events of a thread, and of so many processes, are looked at.
MOST_EVENTS, MOST_PROCESSES = 1000, 16
MOST_NUMBER = (1 << 31) - 1
METADATA, EVENTS = "M", "traceEvents"
PIECE = 1 << 16  # numbers
NOT_WHOLE = -(1 << 63)  # what EventNumbers says of a number that has a fraction or too many digits


def has_mark(data: memoryview) -> bool:
    """Whether a byte order mark is in front of the text, which trace_processor does not take for JSON."""
    return is_json(data) and bytes(data[: len(BYTE_ORDER_MARK)]) == BYTE_ORDER_MARK


def other_numbers(data: memoryview) -> dict[int, int]:
    """Returns the numbers to be written in place of those that trace_processor cannot tell apart: number: what it
    stands for."""
    if not is_json(data):
        return {}
    merged = merged_threads(data)
    if not merged and not has_number_apart(data):
        return {}
    taken, others = set[int](), {0} if merged else set[int]()
    for begins, ends, values in _pieces(data):
        is_odd = values == NOT_WHOLE
        odd = zip(begins[is_odd].tolist(), ends[is_odd].tolist(), strict=True)
        for number in (*np.unique(values[~is_odd]).tolist(), *(_number(data[begin:end]) for begin, end in odd)):
            (taken if 0 <= number <= MOST_NUMBER else others).add(number)
    free = (number for number in count(1) if number not in taken)
    return dict(zip(free, sorted(others), strict=False))


def write_copy(data: memoryview, numbers: dict[int, int], file: BinaryIO) -> None:
    """Writes the text without a byte order mark. numbers: those to be written, by `other_numbers`."""
    at = len(BYTE_ORDER_MARK) if has_mark(data) else 0
    texts = {said: b"%d" % number for number, said in numbers.items()}
    for begins, ends, values in _pieces(data) if texts else ():
        is_other = (values <= 0) | (values > MOST_NUMBER)
        rows = (column[is_other].tolist() for column in (begins, ends, values))
        parts: list[bytes | memoryview] = []
        for begin, end, value in zip(*rows, strict=True):
            said = value if value != NOT_WHOLE else _number(data[begin:end])
            if said in texts:
                parts += (data[at:begin], texts[said])
                at = end
        file.writelines(parts)
    file.write(data[at:])


def _pieces(data: memoryview) -> Iterator[tuple[Array, Array, Array]]:
    """Yields, of the numbers of events, (where they begin; where they end; what they are)."""
    begin = members_seen(data)[0].get(EVENTS, 0)
    numbers = EventNumbers(data, begin)
    while len((piece := numbers.more(PIECE))[0]):
        yield piece


def _number(text: memoryview) -> int:
    """Returns a number that has a fraction or an exponent, or many digits; 0 for what is none."""
    said = str(text, "ascii")
    try:
        return int(said) if said.lstrip("-").isdigit() else int(float(said))
    except (ValueError, OverflowError):
        return 0


def merged_threads(data: memoryview) -> list[int]:
    """Returns the processes that have events of a thread 0 and of one that has the process's number."""
    pids = dict.fromkeys(
        event["pid"] for event in _events(data, 0) if isinstance(event.get("pid"), int) and event["pid"] > 0
    )
    return [pid for pid in islice(pids, MOST_PROCESSES) if any(event.get("pid") == pid for event in _events(data, pid))]


def _events(data: memoryview, tid: int) -> Iterator[dict[str, Any]]:
    """Yields events of threads of this number, of some process, but for those that name them."""
    for event in events_around(data, places_of_thread(data, tid, MOST_EVENTS).tolist()):
        if event.get("tid") == tid and event.get("ph") != METADATA:
            yield event


def events_around(data: memoryview, places: Iterable[int]) -> Iterator[dict[str, Any]]:
    """Yields the innermost object with a member `tid` around each place, {} for none."""
    for at in places:
        yield _event_at(data, at)


def _event_at(data: memoryview, at: int) -> dict[str, Any]:
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
