"""Layout: how the formats begin that trace_processor reads, and the packets of a Perfetto trace.

A trace is a sequence of fields 1, TracePacket messages, each with its length; a packet's first fields are its content,
field 8 its time and field 10 its sequence: perfetto/protos/perfetto/trace/trace_packet.proto.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from traceferry.common.patterns import compiled_later
from traceferry.files.json_text import BYTE_ORDER_MARK, is_json, is_page, members_seen

PACKET_TAG = 0x0A
OF_TEXT = bytes([9, 10, 13, *range(32, 256)])
MOST_TEXT = 256
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
MAX_VARINT = 10
# Fields of TracePacket are numbered so far; test events from 900 to 1000 and 268435455.
MOST_FIELD = 2000
TIMESTAMP, SEQUENCE = 8, 10
NAMES = {
    1: "ftrace_events", 2: "process_tree", 6: "clock_snapshot", 9: "process_stats", 11: "track_event",
    12: "interned_data", 33: "trace_config", 34: "ftrace_stats", 35: "trace_stats", 37: "profile_packet",
    39: "android_log", 43: "process_descriptor", 44: "thread_descriptor", 45: "system_info", 56: "heap_graph",
    59: "trace_packet_defaults", 60: "track_descriptor", 61: "module_symbols", 66: "perf_sample", 89: "trace_uuid",
    99: "v8_js_code", 126: "trace_attributes", 135: "stack_sample",
}  # fmt: skip
# How files begin that trace_processor tells apart: Fuchsia's magic record; ART's method traces in text and in streams,
# and heap dumps; what `simpleperf report-sample` writes; text of the kernel and of atrace; ninja's log; Instruments'
# XML; Android's dumpstate and its battery history. Source: the importers' `Sniff` in perfetto/src/trace_processor.
MAGICS = (
    b"\x10\x00\x04\x46\x78\x54\x16\x00", b"*version\n", b"SLOW", b"JAVA PROFILE 1.0.", b"SIMPLEPERF", b"# tracer:",
    b"TRACE:\n", b"# ninja log v", b'<?xml version="1.0"?>\n<trace-query-result>', b"9,0,i,vers,",
    b"=" * 56 + b"\n== dumpstate: ",
)  # fmt: skip
# An event of the kernel as text, with or without a header, as of trace-cmd: `app-12 ( 7) [000] d..1 1.25: name: ...`;
# trace_processor wants a blank or the number of processors before it.
SYSTRACE = compiled_later(
    rb"(?:cpus=\d+\s*\n| )[^\n]{0,80}-\d+\s+(?:\([\s\d-]+\)\s+)?\[\d+\]\s+[^\s:]{4,5}\s+\d+\.\d+: +\w+:"
)
# What systrace embeds in a page that draws it, which comes before it. The code of the page, which those of VizTracer
# have, too, has the tag with an escape.
PAGE_DATA = compiled_later(rb"class=.trace-data[^>\\]*>")
# Members of Chrome's traces, and of Perfetto's description of a set of traces.
MEMBERS = {"traceEvents", "perfetto_manifest"}
PHASE, FIRST_OBJECT = b'"ph"', 1 << 16
# pprof's sample types and string tables are fields that packets have, too; its types are two numbers.
PPROF_TYPE = {(1, VARINT), (2, VARINT)}


class Field(NamedTuple):
    """number, kind: of the tag; value: of a number, or the length; at: where the content is; end: behind it."""

    number: int
    kind: int
    value: int
    at: int
    end: int


def varint(data: memoryview, at: int) -> tuple[int, int]:
    """Returns (value, offset behind it). Raises IndexError where it ends early, ValueError where it is too long."""
    value = 0
    for nth in range(MAX_VARINT):
        byte = data[at + nth]
        value |= (byte & 0x7F) << 7 * nth
        if byte < 0x80:
            return value, at + nth + 1
    raise ValueError("a varint of more than 10 bytes")


def field_at(data: memoryview, at: int) -> Field:
    """Reads a field. Raises IndexError where it ends early, ValueError for what is none."""
    tag, content = varint(data, at)
    number, kind = tag >> 3, tag & 7
    if number == 0:
        raise ValueError("a field of number 0")
    match kind:
        case 0:
            value, end = varint(data, content)
            return Field(number, kind, value, content, end)
        case 1 | 5:
            return Field(number, kind, 0, content, content + (8 if kind == FIXED64 else 4))
        case 2:
            length, begin = varint(data, content)
            return Field(number, kind, length, begin, begin + length)
    raise ValueError(f"a field of wire type {kind}")


def is_perfetto_trace(head: memoryview) -> bool:
    """Whether the first packet that is not empty consists of fields that packets have, as far as the head goes. Text
    that begins with an empty line does not: packets have bytes that no text has."""
    if not bytes(head[:MOST_TEXT]).translate(None, OF_TEXT):
        return False
    at = 0
    while bytes(head[at : at + 2]) == bytes((PACKET_TAG, 0)):
        at += 2
    if at and at == len(head):
        return True
    if at == len(head) or head[at] != PACKET_TAG:
        return False
    try:
        packet = field_at(head, at)
        at, n_fields = packet.at, 0
        while at < packet.end:
            if at >= len(head):
                return n_fields > 0
            field = field_at(head, at)
            if field.number > MOST_FIELD or field.end > packet.end or (field.number, field.kind) in PPROF_TYPE:
                return False
            n_fields += 1
            at = field.end
    except IndexError:
        return True
    except ValueError:
        return False
    return at == packet.end and n_fields > 0


def is_other_trace(head: memoryview) -> bool:
    """Whether another format begins here that only trace_processor reads."""
    begin = bytes(head[:FIRST_OBJECT])
    if begin.startswith(MAGICS) or SYSTRACE.match(begin):
        return True
    if is_page(head):
        return PAGE_DATA.search(head) is not None
    if not is_json(head):
        return False
    if begin.removeprefix(BYTE_ORDER_MARK).lstrip()[:1] == b"[":
        return PHASE in begin
    seen, _ = members_seen(head)
    return bool(MEMBERS & set(seen))


def packets(data: memoryview, offset: int) -> Iterator[str]:
    """Yields the packets, each with offset, size, time, sequence and content."""
    at = 0
    while at < len(data):
        try:
            packet = field_at(data, at)
        except (IndexError, ValueError):
            yield f"{at:#010x} not a packet"
            return
        if packet.end > len(data):
            yield f"{at:#010x} size={packet.end - at} cut: {len(data) - at} bytes are there"
            return
        if at >= offset:
            yield _packet(data, at, packet)
        at = packet.end


def _packet(data: memoryview, at: int, packet: Field) -> str:
    words = [f"{at:#010x}", f"size={packet.end - at}"]
    contents: list[str] = []
    place = packet.at
    try:
        while place < packet.end:
            field = field_at(data, place)
            if field.number == TIMESTAMP and field.kind == VARINT:
                words.append(f"ts={field.value}")
            elif field.number == SEQUENCE and field.kind == VARINT:
                words.append(f"sequence={field.value}")
            elif field.kind == BYTES:
                contents.append(NAMES.get(field.number, f"field {field.number}"))
            place = field.end
    except (IndexError, ValueError):
        contents.append("damaged")
    return " ".join([*words, *contents])
