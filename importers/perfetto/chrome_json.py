"""Layout: Chrome's JSON, of which trace_processor gets a copy where it would take several threads or processes for one,
would refuse it because it ends too early, or would leave out events.

It reads numbers of 32 bits, all others as 0, and thread 0 as that of the process's number (CoerceToUint32 and
ParseTraceEventContents of json_trace_tokenizer.cc). Writers that print pthread_self() have larger ones; profiles of
Bazel have a thread 0 for the critical path, and a main thread 1 of process 1. In the copy these have free numbers.
"""

from __future__ import annotations

import heapq
import json
from bisect import bisect_right
from collections.abc import Iterator
from itertools import count, islice
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import orjson

from traceferry.common.errors import FormatError
from traceferry.common.patterns import compiled_later
from traceferry.files.json_text import BYTE_ORDER_MARK, JsonText, Range, is_json, members_seen
from traceferry.importers.perfetto._members import EventNumbers, has_number_apart, places_of, places_of_thread
from traceferry.model import Array

# An event is looked for so far around its thread's number, from so many braces on.
BEFORE, BEHIND, MOST_BRACES = 4096, 8192, 16
# So many events of a thread, and of so many processes, are looked at.
MOST_EVENTS, MOST_PROCESSES = 1000, 16
MOST_NUMBER = (1 << 31) - 1
METADATA, EVENTS, SAMPLE_PHASE = "M", "traceEvents", "P"
# What begins a profile of V8 whose samples are in chunks, and what has all of one, as webpack's ProfilingPlugin writes
# it: of that, trace_processor would have an instant. It gets numbers that no recorder has.
PROFILE, WHOLE, FIRST_WHOLE = "Profile", "CpuProfile", 1 << 48
WHOLE_PROFILE, BEGIN_OF_PROFILE = b'"CpuProfile"', b'"Profile"'
# Phases of old of events that last, and those by which trace_processor knows them.
NEW_PHASES = {b'"S"': b'"b"', b'"F"': b'"e"'}
PHASE_SIZE, BEFORE_PHASE = 3, 16
IS_PHASE = compiled_later(rb'"ph"\s*:\s*\Z')
PIECE = 1 << 16  # numbers
NOT_WHOLE = -(1 << 63)  # what EventNumbers says of a number that has a fraction or too many digits


def has_mark(data: memoryview) -> bool:
    """Whether a byte order mark is in front of the text, which trace_processor does not take for JSON."""
    return is_json(data) and bytes(data[: len(BYTE_ORDER_MARK)]) == BYTE_ORDER_MARK


class Cut(NamedTuple):
    """Text that ends too early. at: where the event that is cut begins, or the end; end: of the last whole event;
    closing: what trace_processor needs behind that."""

    at: int
    end: int
    closing: bytes


def cut_of(data: memoryview) -> Cut | None:
    """Returns where the text ends too early; None: it is whole. A list of events may end without its bracket."""
    if not is_json(data):
        return None
    text, (seen, is_whole) = JsonText(data), members_seen(data)
    try:
        if not seen:
            end, at = text.whole_elements(len(BYTE_ORDER_MARK) if has_mark(data) else 0)
            return Cut(at, end, b"") if 0 <= at < len(data) else None
        if is_whole or EVENTS not in seen or not text.ends_early():
            return None
        end, at = text.whole_elements(seen[EVENTS])
    except FormatError:
        return None
    return Cut(at if at >= 0 else len(data), end, b"]}")


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


class Change(NamedTuple):
    """A part of the text, and what is written in its place."""

    begin: int
    end: int
    text: bytes


def whole_profiles(data: memoryview, numbers: dict[int, int]) -> list[Change]:
    """Returns, for events that have a whole profile of V8, what trace_processor reads: one with which the profile
    begins, and one that has its samples. numbers: those to be written, by `other_numbers`."""
    places = places_of(data, WHOLE_PROFILE) if is_json(data) else []
    if not places:
        return []
    said = {number: replacement for replacement, number in numbers.items()}
    text, events = JsonText(data), _elements(data)
    begins = [event.begin for event in events]
    found: list[Change] = []
    for nth in dict.fromkeys(bisect_right(begins, place) - 1 for place in places):
        if nth >= 0 and (made := _as_chunk(text.parsed(events[nth]), len(found), said)):
            found.append(Change(*events[nth], made))
    return found


def _elements(data: memoryview) -> list[Range]:
    """Returns the events; none of damaged text."""
    text = JsonText(data)
    try:
        root = text.root()
        listed = text.members(root).get(EVENTS) if text.is_object(root) else root
        return text.elements(listed) if listed is not None and text.is_list(listed) else []
    except FormatError:
        return []


def _as_chunk(event: Any, nth: int, said: dict[int, int]) -> bytes | None:
    """Returns the events that say the same as one with a whole profile; None if it is none."""
    try:
        profile, start = event["args"]["data"]["cpuProfile"], {key: event[key] for key in ("pid", "tid", "ts")}
        samples, deltas, nodes = (list(profile[key]) for key in ("samples", "timeDeltas", "nodes"))
        begin = {"startTime": int(profile["startTime"])}
    except (KeyError, TypeError, ValueError, OverflowError):
        return None
    if event.get("name") != WHOLE:
        return None
    start |= {key: said.get(start[key], start[key]) for key in ("pid", "tid")}
    start |= {"ph": SAMPLE_PHASE, "cat": event.get("cat", ""), "id": hex(FIRST_WHOLE + nth)}
    n = min(len(samples), len(deltas))
    data = {"cpuProfile": {"nodes": nodes, "samples": samples[:n]}, "timeDeltas": deltas[:n]}
    made = ({"name": PROFILE, "args": {"data": begin}}, {"name": "ProfileChunk", "args": {"data": data}})
    return b",".join(orjson.dumps(start | one) for one in made)


def old_phases(data: memoryview) -> Array:
    """Returns int64: the offsets, rising, of phases that trace_processor leaves out without a word."""
    if not is_json(data):
        return np.zeros(0, np.int64)
    places = (place for phase in NEW_PHASES for place in places_of(data, phase))
    return np.array(sorted(place for place in places if _is_phase(data, place)), np.int64)


def _is_phase(data: memoryview, place: int) -> bool:
    return IS_PHASE.search(data[max(place - BEFORE_PHASE, 0) : place]) is not None


def write_copy(
    data: memoryview, numbers: dict[int, int], profiles: list[Change], phases: Array, file: BinaryIO
) -> None:
    """Writes the text without a byte order mark. numbers: those to be written, by `other_numbers`; profiles: those that
    take the place of whole ones; phases: those by `old_phases`."""
    at = len(BYTE_ORDER_MARK) if has_mark(data) else 0
    for begin, end, text in heapq.merge(_renumbered(data, numbers), profiles, _with_new_phases(data, phases)):
        if begin >= at:
            file.write(data[at:begin])
            file.write(text)
            at = end
    file.write(data[at:])


def _with_new_phases(data: memoryview, phases: Array) -> Iterator[Change]:
    for begin in phases[phases < len(data)].tolist():
        end = begin + PHASE_SIZE
        yield Change(begin, end, NEW_PHASES[bytes(data[begin:end])])


def _renumbered(data: memoryview, numbers: dict[int, int]) -> Iterator[Change]:
    texts = {said: b"%d" % number for number, said in numbers.items()}
    for begins, ends, values in _pieces(data) if texts else ():
        is_other = (values <= 0) | (values > MOST_NUMBER)
        rows = (column[is_other].tolist() for column in (begins, ends, values))
        for begin, end, value in zip(*rows, strict=True):
            said = value if value != NOT_WHOLE else _number(data[begin:end])
            if said in texts:
                yield Change(begin, end, texts[said])


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


def profiles_begun(data: memoryview) -> list[tuple[int, int] | None]:
    """Returns (process, thread) of the profiles of V8, in their order; None where the event that begins it, or has all
    of it, does not tell."""
    found: dict[tuple[Any, str], tuple[int, int] | None] = {}
    whole = whole_profiles(data, {})
    begins = [one.begin for one in whole]
    for at in sorted([*places_of(data, WHOLE_PROFILE), *places_of(data, BEGIN_OF_PROFILE)]):
        nth = bisect_right(begins, at) - 1
        text = JsonText(memoryview(b"[%b]" % whole[nth].text)) if nth >= 0 and at < whole[nth].end else None
        event = text.parsed(text.elements(text.root())[0]) if text else event_around(data, at)
        if (event.get("name"), event.get("ph")) != (PROFILE, SAMPLE_PHASE):
            continue
        process, thread, number = (event.get(key) for key in ("pid", "tid", "id"))
        if isinstance(process, int) and isinstance(thread, int):
            found.setdefault((process, str(number)), (process, thread))
    return list(found.values())


def merged_threads(data: memoryview) -> list[int]:
    """Returns the processes that have events of a thread 0 and of one that has the process's number."""
    pids = dict.fromkeys(
        event["pid"] for event in _events(data, 0) if isinstance(event.get("pid"), int) and event["pid"] > 0
    )
    return [pid for pid in islice(pids, MOST_PROCESSES) if any(event.get("pid") == pid for event in _events(data, pid))]


def _events(data: memoryview, tid: int) -> Iterator[dict[str, Any]]:
    """Yields events of threads of this number, of some process, but for those that name them."""
    for event in (event_around(data, at) for at in places_of_thread(data, tid, MOST_EVENTS).tolist()):
        if event.get("tid") == tid and event.get("ph") != METADATA:
            yield event


def event_around(data: memoryview, at: int) -> dict[str, Any]:
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
