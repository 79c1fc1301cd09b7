"""The records of a recording one by one, in stream order: for `traceferry dump`."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

from traceferry.files.decompress import DEFAULT_LIMIT, Limit
from traceferry.importers.perf._records import SampleType
from traceferry.importers.perf.decode import scan
from traceferry.importers.perf.events import SAMPLE_ID_WORDS, SAMPLE_WORDS, event_table, sample_id_size
from traceferry.importers.perf.fields import CutError, Fields, until_nul
from traceferry.importers.perf.layout import (
    ABI_SIMD,
    BRANCH_COUNTERS,
    BRANCH_HW_INDEX,
    CONTEXTS,
    RECORD_HEADER_SIZE,
    USER_TYPES_FROM,
    Header,
    ReadFormat,
    RecordType,
    feature_name,
    record_name,
)
from traceferry.importers.perf.recording import Event
from traceferry.importers.perf.stream import Span, Stream, record_headers

SHOWN_BYTES = 64
HEX_FIELDS = {
    "ip", "addr", "len", "pgoff", "data_src", "phys_addr", "flags", "transaction", "config", "offset",
    "reference",
}  # fmt: skip
# What comes between the fields of known length and those that a sample ends with; each a u64.
MIDDLE_WORDS = (SampleType.WEIGHT | SampleType.WEIGHT_STRUCT, SampleType.DATA_SRC, SampleType.TRANSACTION)
LAST_WORDS = (SampleType.PHYS_ADDR, SampleType.CGROUP, SampleType.DATA_PAGE_SIZE, SampleType.CODE_PAGE_SIZE)


def records(
    data: memoryview,
    offset: int,
    extra: Sequence[tuple[str, memoryview]] = (),
    limit: Limit = DEFAULT_LIMIT,
) -> Iterator[str]:
    """Yields the records from `offset` on; what was compressed comes after everything that was not.

    Raises FormatError as `decode.read` does.
    """
    found = scan(data, extra, limit)
    printer = _Printer(found.stream, found.header, found.events)
    for span in found.stream.spans:
        for at, kind, misc, size, after in record_headers(found.stream, span):
            if at >= offset:
                yield f"{at:#010x}  {printer.text(span, at, kind, misc, size, after)}"


class _Printer:
    def __init__(self, stream: Stream, header: Header, events: list[Event]) -> None:
        self.stream = stream
        self.header = header
        self.events = events
        self.table = event_table(events)
        self.event_of_id = {number: event for event in reversed(events) for number in event.ids}

    def text(self, span: Span, at: int, kind: int, misc: int, size: int, after: int) -> str:
        if kind < 0:
            return f"cut: {size} bytes of an incomplete record"
        place = f" decompressed from {span.name}" if span.compressed else ""
        words = [f"{record_name(kind)}{place} misc={misc:#x} size={size}"]
        fields = Fields(self.stream.data, self.header.order, at + RECORD_HEADER_SIZE, at + size)
        try:
            for word in self._fields(kind, fields):
                words.append(word)
        except CutError as error:
            words.append(f"cut: {error}")
        return " ".join(words) + (f"; {after} bytes follow" if after else "")

    def _fields(self, kind: int, fields: Fields) -> Iterator[str]:
        if kind == RecordType.SAMPLE:
            event = self._event_of_sample(fields)
            yield from [f"event={event.name}", *_sample(fields, event)] if event else ["event=unknown"]
        elif kind < USER_TYPES_FROM:
            yield from self._kernel_record(kind, fields)
        else:
            yield from _user_record(kind, fields)

    def _event_of_sample(self, fields: Fields) -> Event | None:
        if len(self.events) == 1 or self.table.id_at < 0:
            return self.events[0]
        return self._event_of(fields, fields.at + self.table.id_at)

    def _event_of(self, fields: Fields, id_at: int) -> Event | None:
        number = Fields(fields.data, fields.order, id_at, fields.end).u64()
        return self.event_of_id.get(number) if number else self.events[0]

    def _kernel_record(self, kind: int, fields: Fields) -> Iterator[str]:
        event: Event | None = self.events[0]
        if len(self.events) > 1 and self.table.id_before_end >= 0 and self.table.has_sample_id:
            event = self._event_of(fields, max(fields.at, fields.end - self.table.id_before_end))
        id_size = sample_id_size(event or self.events[0])
        sample_id_at = fields.end - id_size
        body = Fields(fields.data, fields.order, fields.at, sample_id_at)
        yield from _body(kind, body)
        if id_size:
            sample_id = Fields(fields.data, fields.order, sample_id_at, fields.end)
            yield from ("sample_id:", *_words(sample_id, SAMPLE_ID_WORDS, event or self.events[0]))


def _body(kind: int, fields: Fields) -> Iterator[str]:
    body = RecordType(kind).body if kind in RecordType.__members__.values() else None
    if body is None:
        return
    at = fields.take(struct.calcsize("=" + body.fields))
    values = struct.unpack_from(fields.order + body.fields, fields.data, at)
    for name, value in zip(body.names.split(), values, strict=True):
        if isinstance(value, bytes):
            yield f"{name}={value.hex()}"
        else:
            yield f"{name}={value:#x}" if name in HEX_FIELDS else f"{name}={value}"
    if body.text:
        yield f"{body.text}={until_nul(fields.bytes(fields.left))}"


def _user_record(kind: int, fields: Fields) -> Iterator[str]:
    match kind:
        case RecordType.HEADER_FEATURE:
            yield f"{feature_name(fields.u64())} bytes={fields.left}"
        case RecordType.HEADER_BUILD_ID:
            (pid,) = fields.unpack("i")
            yield f"pid={pid} build_id={fields.bytes(20).hex()}"
            fields.take(4)
            yield f"filename={until_nul(fields.bytes(fields.left))}"
        case RecordType.COMPRESSED | RecordType.COMPRESSED2:
            yield f"bytes={fields.left}"
        case _:
            yield from _body(kind, fields)


# ---------------------------------------------------------------- samples


def _words(fields: Fields, words: tuple[int, ...], event: Event) -> Iterator[str]:
    """Yields the words that the event records."""
    for word in words:
        if not word & event.sample_type:
            continue
        if word == SampleType.TID:
            yield "pid={} tid={}".format(*fields.unpack("ii"))
        elif word == SampleType.CPU:
            yield "cpu={}".format(*fields.unpack("I4x"))
        else:
            name = "weight" if word & SampleType.WEIGHT else str(SampleType(word).name).lower()
            value = fields.u64()
            yield f"{name}={value:#x}" if name in HEX_FIELDS else f"{name}={value}"


def _sample(fields: Fields, event: Event) -> Iterator[str]:
    kinds = event.sample_type
    yield from _words(fields, SAMPLE_WORDS, event)
    if kinds & SampleType.READ:
        yield f"read={_read_values(fields, ReadFormat(event.attr.read_format & 31))}"
    if kinds & SampleType.CALLCHAIN:
        yield f"callchain={_callchain(fields)}"
    if kinds & SampleType.RAW:
        yield f"raw={_shown(fields, fields.u32())}"
    if kinds & SampleType.BRANCH_STACK:
        yield _branch_stack(fields, event.attr.branch_sample_type)
    if kinds & SampleType.REGS_USER:
        yield _registers("regs_user", fields, event.attr.sample_regs_user)
    if kinds & SampleType.STACK_USER:
        yield _stack_user(fields)
    yield from _words(fields, MIDDLE_WORDS, event)
    if kinds & SampleType.REGS_INTR:
        yield _registers("regs_intr", fields, event.attr.sample_regs_intr)
    yield from _words(fields, LAST_WORDS, event)
    if kinds & SampleType.AUX:
        yield f"aux={_shown(fields, fields.u64())}"


def _read_values(fields: Fields, read_format: ReadFormat) -> str:
    n_times = (ReadFormat.TOTAL_TIME_ENABLED in read_format) + (ReadFormat.TOTAL_TIME_RUNNING in read_format)
    n_each = 1 + (ReadFormat.ID in read_format) + (ReadFormat.LOST in read_format)
    if ReadFormat.GROUP not in read_format:
        return "/".join(map(str, fields.u64s(n_times + n_each)))
    nr = fields.u64()
    times = fields.u64s(n_times)
    values = fields.u64s(_checked(fields, nr, 8 * n_each) * n_each)
    groups = [values[i : i + n_each] for i in range(0, len(values), n_each)]
    return ",".join("/".join(map(str, group)) for group in [times, *groups] if group)


def _callchain(fields: Fields) -> str:
    nr = fields.u64()
    ips = fields.u64s(_checked(fields, nr, 8))
    return f"{nr}[{' '.join(CONTEXTS.get(ip, f'{ip:#x}') for ip in ips)}]"


def _branch_stack(fields: Fields, branch_sample_type: int) -> str:
    nr = fields.u64()
    hw_idx = f" hw_idx={fields.u64():#x}" if branch_sample_type & BRANCH_HW_INDEX and fields.left >= 8 else ""
    words = 4 if branch_sample_type & BRANCH_COUNTERS else 3
    values = fields.u64s(_checked(fields, nr, 8 * words) * words)[: 3 * nr]
    entries = zip(values[::3], values[1::3], values[2::3], strict=True)
    shown = " ".join(f"{begin:#x}->{end:#x}/{flags:#x}" for begin, end, flags in entries)
    return f"branch_stack={nr}{hw_idx}[{shown}]"


def _registers(name: str, fields: Fields, mask: int) -> str:
    abi = fields.u64()
    values = fields.u64s(mask.bit_count()) if abi else ()
    vectors = ""
    if abi & ABI_SIMD:
        n_vectors, vector_words, n_predicates, predicate_words = fields.unpack("4H")
        fields.take(8 * (n_vectors * vector_words + n_predicates * predicate_words))
        vectors = f" vectors={n_vectors}x{vector_words} predicates={n_predicates}x{predicate_words}"
    return f"{name}={abi}[{' '.join(f'{value:#x}' for value in values)}]{vectors}"


def _stack_user(fields: Fields) -> str:
    size = fields.u64()
    if not size:
        return "stack_user=0"
    fields.take(size)
    return f"stack_user={size} dyn_size={fields.u64()}"


def _shown(fields: Fields, size: int) -> str:
    value = fields.bytes(size)
    return f"{size}[{value[:SHOWN_BYTES].hex()}{'...' if size > SHOWN_BYTES else ''}]"


def _checked(fields: Fields, nr: int, size: int) -> int:
    if nr > fields.left // size:
        raise CutError(f"{nr} times {size} bytes are needed where {fields.left} are left")
    return nr
