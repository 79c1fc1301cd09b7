"""Layout: the messages of profile.proto of github.com/google/pprof, by the numbers of their fields, and how the formats
before it begin."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from traceferry.common.errors import FormatError
from traceferry.files.source import Source
from traceferry.importers.pprof._messages import fields
from traceferry.model import Array

# Fields of Profile.
SAMPLE_TYPE, SAMPLE, MAPPING, LOCATION, FUNCTION, TEXT, DROP_FRAMES, KEEP_FRAMES = range(1, 9)
TIME_NS, DURATION_NS, PERIOD_TYPE, PERIOD, COMMENT, DEFAULT_TYPE, DOC_URL = range(9, 16)
NAMES = {
    1: "sample_type", 2: "sample", 3: "mapping", 4: "location", 5: "function", 6: "string_table", 7: "drop_frames",
    8: "keep_frames", 9: "time_nanos", 10: "duration_nanos", 11: "period_type", 12: "period", 13: "comment",
    14: "default_sample_type", 15: "doc_url",
}  # fmt: skip
VARINT, BYTES = 0, 2
MESSAGES = {SAMPLE_TYPE, SAMPLE, MAPPING, LOCATION, FUNCTION, TEXT, PERIOD_TYPE}
# Text of gperftools and Go's debug=1, and gperftools' words: 0, 3, 0, period, 0.
OLD = (
    b"heap profile:", b"heap_v2/", b"growthz", b"--- heapz", b"--- contention", b"--- mutex", b"--- symbol",
    b"--- threadz", b"--- Memory map", b"goroutine profile: total", b"threadcreate profile: total",
)  # fmt: skip
OLD_WORDS = tuple(
    (0).to_bytes(size, order) + (3).to_bytes(size, order) + (0).to_bytes(size, order)
    for size in (4, 8) for order in ("little", "big")
)  # fmt: skip
SAID_OLD = (
    "this is a profile in one of the formats before profile.proto, which are not read: in Go, write it with debug=0; "
    "else go tool pprof -proto PROGRAM FILE > x.pb.gz converts it"
)
JEMALLOC = b"heap_v2/"
SAID_JEMALLOC = "this is a heap profile of jemalloc, which is not read: jeprof --collapsed PROGRAM FILE > x.folded"
SEEN = 4096


def is_old(head: memoryview) -> bool:
    begin = bytes(head[:64])
    return begin.startswith(OLD) or begin.startswith(OLD_WORDS)


def is_profile(head: memoryview) -> bool:
    """Whether its fields, of which any may be first, are a profile's from the start on, and tell what samples count.
    Perfetto's packets begin with the same byte, but in no packet is field 1 a number. One without samples tells how
    long it is, and its first text is empty."""
    begin, has_types, sizes = head[:SEEN], False, dict[int, int]()
    for number, kind, _, at, end in fields(begin, 0, len(begin))[0].tolist():
        is_packed = kind == BYTES and number == COMMENT
        if number not in NAMES or ((kind == BYTES) != (number in MESSAGES) and not is_packed):
            return False
        if number == SAMPLE_TYPE:
            within, stopped = fields(begin, at, end)
            if stopped >= 0 or not len(within) or np.any((within[:, 0] > 2) | (within[:, 1] != VARINT)):
                return False
            has_types = True
        sizes.setdefault(number, end - at)
    return has_types or (DURATION_NS in sizes and sizes.get(TEXT) == 0 and SAMPLE not in sizes)


def checked_fields(source: Source) -> tuple[Array, int]:
    """Returns the fields of the profile, as `fields` does, and where the first damage is, -1: nowhere. Raises
    FormatError for another format."""
    if is_old(source.data):
        is_jemalloc = bytes(source.data[: len(JEMALLOC)]) == JEMALLOC
        raise FormatError(SAID_JEMALLOC if is_jemalloc else SAID_OLD, 0, path=source.path)
    found, stopped = fields(source.data, 0, len(source.data))
    is_empty = stopped < 0 and is_profile(source.data)
    if not is_empty and not np.any((found[:, 0] == SAMPLE_TYPE) & (found[:, 1] == BYTES)):
        at = stopped if stopped >= 0 else len(source.data)
        raise FormatError("this is no profile of pprof: it has no sample types", at, path=source.path)
    return found, stopped


def described(source: Source, offset: int) -> Iterator[str]:
    """Yields the fields from `offset` on, each with offset, size and value."""
    for number, kind, value, at, end in checked_fields(source)[0].tolist():
        if at >= offset:
            said = f"={value}" if kind == VARINT else f" size={end - at}"
            yield f"{at:#010x} {NAMES.get(number, f'field {number}')}{said}"
