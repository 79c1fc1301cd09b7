"""The stream of records: found in the file, in what is compressed in it, and in the other files of a directory."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from traceferry.files.decompress import ZSTD_MAGIC, Limit, decompress_stream
from traceferry.files.source import release
from traceferry.importers.perf._records import RecordScanner
from traceferry.importers.perf.fields import WINDOW
from traceferry.importers.perf.layout import RECORD_HEADER_SIZE, Header, RecordType
from traceferry.importers.perf.recording import Problem
from traceferry.model import Array

LONG_SAMPLE = 2048
USUAL_SAMPLE = 128  # bytes: for how many offsets there is memory at first
COMPRESSED_TYPES = (RecordType.COMPRESSED, RecordType.COMPRESSED2)


class Span(NamedTuple):
    """Records one after the other; compressed: offsets begin after all that is not; stop: where the last whole one
    ends, once they are found."""

    name: str
    begin: int
    end: int
    compressed: bool = False
    stop: int = 0


@dataclass
class Stream:
    """data: what all offsets refer to: the file, then a directory's other files, then what was compressed; sample_at,
    other_at: int64 offsets of the records, other_type int32 of sideband records; sample_bytes: the size of all
    samples."""

    data: memoryview
    big: bool
    spans: list[Span] = field(default_factory=list)
    sample_at: Array = field(default_factory=lambda: np.zeros(0, np.int64))
    other_at: Array = field(default_factory=lambda: np.zeros(0, np.int64))
    other_type: Array = field(default_factory=lambda: np.zeros(0, np.int32))
    sample_bytes: int = 0
    problems: list[Problem] = field(default_factory=list)


def open_stream(
    data: memoryview, header: Header, begin: int, end: int, extra: Sequence[tuple[str, memoryview]] = ()
) -> Stream:
    """Finds the records that are not compressed. begin, end: where they are in `data`; extra: the other files of a
    directory, which hold nothing else."""
    stream = Stream(data, header.big)
    spans = [Span("data", begin, min(end, len(data)))]
    if extra:
        joined = bytearray(data)
        for name, part in extra:
            begin = _aligned(joined)
            joined += part
            spans.append(Span(name, begin, len(joined)))
        stream.data = memoryview(joined).toreadonly()
    for span in spans:
        _scan(stream, span)
    return stream


def _aligned(data: bytearray) -> int:
    """Fills up to where numbers of 8 bytes may begin."""
    data += bytes(-len(data) % 8)
    return len(data)


def _scan(stream: Stream, span: Span) -> None:
    """Adds the records of the span, and says how it ended where it is not whole."""
    size = max(span.end - span.begin, 0)
    scanner = RecordScanner(stream.data, stream.big, span.begin, size // USUAL_SAMPLE + 64 if size else 1)
    window = WINDOW
    while not scanner.is_bad and scanner.position < span.end:
        begin, end = scanner.position, min(scanner.position + window, span.end)
        scanner.scan(end)
        if end == span.end:
            break
        # The window's end is inside of a record, which may be longer than the window.
        window = WINDOW if scanner.position > begin else 2 * window
        if has_payloads(scanner.n_samples, scanner.sample_bytes):
            release(stream.data, begin, scanner.position)
    stream.spans.append(span._replace(stop=scanner.position))
    stream.sample_at = _joined(stream.sample_at, scanner.sample_at)
    stream.other_at = _joined(stream.other_at, scanner.other_at)
    stream.other_type = _joined(stream.other_type, scanner.other_type)
    stream.sample_bytes += scanner.sample_bytes
    at, left = scanner.position, span.end - scanner.position
    if scanner.is_bad:
        detail = f"{span.name}: a record smaller than its header; {left} bytes are not read"
        stream.problems.append(Problem("bad_record", 1, at, detail))
    elif scanner.is_cut:
        stream.problems.append(Problem("truncated", 1, at, f"{span.name}: the last record of {left} bytes"))


def has_payloads(n_samples: int, n_bytes: int) -> bool:
    """Whether samples are so long that reading their fields alone leaves most of a file's pages unused."""
    return n_bytes > LONG_SAMPLE * n_samples


def _joined(one: Array, other: Array) -> Array:
    return np.concatenate([one, other]) if len(one) else other


# ---------------------------------------------------------------- compression


def decompress(stream: Stream, header: Header, mmap_len: int, limit: Limit) -> None:
    """Adds the records of the COMPRESSED records; those of each span are a zstd stream. mmap_len: of the feature
    COMPRESSED, in bytes: perf reads, and compresses, so much at a time at most. 0 is unknown."""
    is_compressed = np.isin(stream.other_type, COMPRESSED_TYPES)
    if not is_compressed.any():
        return
    offsets = stream.other_at[is_compressed]
    joined = bytearray(stream.data)
    spans: list[Span] = []
    for span in stream.spans:
        inside = offsets[(offsets >= span.begin) & (offsets < span.end)].tolist()
        if inside:
            begin = _aligned(joined)
            _decompress_into(joined, stream, header, inside, mmap_len, limit)
            spans.append(Span(span.name, begin, len(joined), compressed=True))
    stream.data = memoryview(joined).toreadonly()
    for span in spans:
        _scan(stream, span)


def _decompress_into(
    joined: bytearray, stream: Stream, header: Header, offsets: Sequence[int], mmap_len: int, limit: Limit
) -> None:
    payloads = [compressed_payload(stream.data, header, at) for at in offsets]
    at_most = limit.of(sum(map(len, payloads)))
    if mmap_len:
        at_most = min(at_most, mmap_len * len(payloads))
    at = offsets[0]

    def given() -> Iterator[bytes]:
        nonlocal at
        for offset, payload in zip(offsets, payloads, strict=True):
            at = offset
            if payload:
                yield bytes(payload)

    outcome = decompress_stream(given(), joined, at_most)
    if outcome.damage:
        # perf begins one stream, whatever --switch-output makes of it.
        is_continued = bytes(payloads[0][:4]) != ZSTD_MAGIC.to_bytes(4, "little")
        damage = "it continues another file's, as of perf record --switch-output -z, whose first file alone can be read"
        stream.problems.append(Problem("compression_damaged", 1, at, damage if is_continued else outcome.damage))
    if outcome.limited:
        stream.problems.append(Problem("decompress_limited", 1, at, outcome.limited))


def compressed_payload(data: memoryview, header: Header, at: int) -> memoryview:
    kind, _, size = struct.unpack_from(header.order + "IHH", data, at)
    begin, end = at + RECORD_HEADER_SIZE, at + size
    if kind == RecordType.COMPRESSED2 and size >= RECORD_HEADER_SIZE + 8:
        (data_size,) = struct.unpack_from(header.order + "Q", data, begin)
        begin += 8
        end = min(end, begin + data_size)
    return data[begin:end]


# ---------------------------------------------------------------- one record after the other


def record_headers(stream: Stream, span: Span) -> Iterator[tuple[int, int, int, int, int]]:
    """Yields (offset, type, misc, size, bytes of raw data that follow) of each whole record. Where the span ends too
    early, a last one of type -1 has what is left as its size."""
    every = np.sort(np.concatenate((stream.sample_at, stream.other_at)))
    offsets = every[(every >= span.begin) & (every < span.stop)].tolist()
    for at, following in pairwise([*offsets, span.stop]):
        kind, misc, size = struct.unpack_from(">IHH" if stream.big else "<IHH", stream.data, at)
        yield at, kind, misc, size, following - at - size
    if span.stop < span.end:
        yield span.stop, -1, 0, span.end - span.stop, 0
