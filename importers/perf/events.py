"""The events of a recording: their attributes, ids and names."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from traceferry.importers.perf._records import LAYOUT, SampleType
from traceferry.importers.perf.fields import CutError, Fields
from traceferry.importers.perf.layout import (
    ATTR_SIZE_VER0,
    BRANCH_COUNTERS,
    BRANCH_HW_INDEX,
    SECTION_SIZE,
    Attr,
    AttrType,
    Header,
    Section,
    read_attr,
)
from traceferry.importers.perf.recording import Event, Features, Problem
from traceferry.model import Array

HARDWARE_NAMES = (
    "cycles", "instructions", "cache-references", "cache-misses", "branches", "branch-misses", "bus-cycles",
    "stalled-cycles-frontend", "stalled-cycles-backend", "ref-cycles",
)  # fmt: skip
SOFTWARE_NAMES = (
    "cpu-clock", "task-clock", "page-faults", "context-switches", "cpu-migrations", "minor-faults", "major-faults",
    "alignment-faults", "emulation-faults", "dummy", "bpf-output", "cgroup-switches",
)  # fmt: skip
CACHE_NAMES = ("L1-dcache", "L1-icache", "LLC", "dTLB", "iTLB", "branch", "node")
CACHE_OPERATIONS = (("load", "loads"), ("store", "stores"), ("prefetch", "prefetches"))
MACHINES = {"exclude_host": "H", "exclude_guest": "G"}
# One u64 each, in this order, at the beginning of a sample. TID is u32 pid, tid; CPU is u32 cpu, res.
SAMPLE_WORDS = (
    SampleType.IDENTIFIER, SampleType.IP, SampleType.TID, SampleType.TIME, SampleType.ADDR, SampleType.ID,
    SampleType.STREAM_ID, SampleType.CPU, SampleType.PERIOD,
)  # fmt: skip
# sample_id: the same at the end of the kernel's other records, if attr.sample_id_all.
SAMPLE_ID_WORDS = (
    SampleType.TID, SampleType.TIME, SampleType.ID, SampleType.STREAM_ID, SampleType.CPU, SampleType.IDENTIFIER,
)  # fmt: skip
ACCESSES = "rwx"  # bits of bp_type
COUNTED = (1 << 62) - 1  # periods above are taken for unknown

Attrs = list[tuple[Attr, tuple[int, ...]]]


def file_attrs(data: memoryview, header: Header, problems: list[Problem]) -> Attrs:
    """Reads the section attrs: attr and the section of its ids, each attr_size long."""
    attrs: Attrs = []
    entry = header.attr_size
    if entry < ATTR_SIZE_VER0 + SECTION_SIZE:
        return []
    ids_left = len(data) // 8  # sections that overlap would hold more
    for at in range(header.attrs.offset, min(header.attrs.end, len(data)) - entry + 1, entry):
        attr = read_attr(data, at, entry - SECTION_SIZE, header.big)
        fields = Fields(data, header.order, at + entry - SECTION_SIZE, at + entry)
        section = Section(*fields.unpack("QQ"))
        n_ids = min(section.size // 8, max(0, len(data) - section.offset) // 8, ids_left)
        ids_left -= n_ids
        if n_ids < section.size // 8:
            problems.append(Problem("bad_record", 1, at, "the ids of an event lie outside the file"))
        ids = Fields(data, header.order, section.offset, len(data)).u64s(n_ids) if n_ids else ()
        attrs.append((attr, ids))
    return attrs


def record_attr(fields: Fields, big: bool) -> tuple[Attr, tuple[int, ...]]:
    """Reads the body of a HEADER_ATTR record: the attr, as long as it says, and the ids."""
    at = fields.at
    _, size = fields.unpack("II")
    size = size or ATTR_SIZE_VER0
    fields.at = at
    if size < ATTR_SIZE_VER0:
        raise CutError(f"an attr of {size} bytes")
    fields.take(size)
    return read_attr(fields.data, at, size, big), fields.u64s(fields.left // 8)


# ---------------------------------------------------------------- names


def default_name(attr: Attr, features: Features) -> str:
    """Returns the name that perf generates."""
    name = _base_name(attr, features)
    modifiers = _modifiers(attr) if attr.type != AttrType.TRACEPOINT else ""
    return f"{name}:{modifiers}" if modifiers else name


def _base_name(attr: Attr, features: Features) -> str:
    config = attr.config
    match attr.type:
        case AttrType.HARDWARE:
            return _nth(HARDWARE_NAMES, config) or "unknown-hardware"
        case AttrType.SOFTWARE:
            return _nth(SOFTWARE_NAMES, config) or "unknown-software"
        case AttrType.TRACEPOINT:
            return features.formats[config].full_name if config in features.formats else f"tracepoint {config}"
        case AttrType.HW_CACHE:
            return _cache_name(config)
        case AttrType.BREAKPOINT:
            accesses = "".join(letter for bit, letter in enumerate(ACCESSES) if attr.bp_type >> bit & 1)
            return f"mem:{attr.config1:#x}:{accesses}"
        case AttrType.RAW:
            return f"raw {config:#x}"
    return f"{features.pmus.get(attr.type, f'pmu {attr.type}')}/config={config:#x}/"


def _nth(names: tuple[str, ...], number: int) -> str:
    return names[number] if number < len(names) else ""


def _cache_name(config: int) -> str:
    cache, operation, result = config & 0xFF, config >> 8 & 0xFF, config >> 16 & 0xFF
    if cache >= len(CACHE_NAMES) or operation >= len(CACHE_OPERATIONS) or result > 1:
        return "invalid-cache"
    one, many = CACHE_OPERATIONS[operation]
    return f"{CACHE_NAMES[cache]}-{one}-misses" if result else f"{CACHE_NAMES[cache]}-{many}"


def _modifiers(attr: Attr) -> str:
    """perf's rule, which says nothing where nothing is unusual."""
    levels = {"exclude_kernel": "k", "exclude_user": "u", "exclude_hv": "h"}
    narrowed = any(flag in attr.flags for flag in levels)
    which = "".join(letter for flag, letter in levels.items() if flag not in attr.flags) if narrowed else ""
    which += "p" * attr.precise_ip
    if "exclude_host" in attr.flags or ("exclude_guest" in attr.flags) == (narrowed or attr.precise_ip > 0):
        which += "".join(letter for flag, letter in MACHINES.items() if flag not in attr.flags)
    return which


# ---------------------------------------------------------------- all events together


class EventTable(NamedTuple):
    """The events as records refer to them: layouts of LAYOUT, ids uint64 rising and id_events int32; id_at:
    the offset of the id in a sample, behind the header; id_before_end: how many bytes before the end of another record
    it is; -1: nowhere; and whether there is a sample_id at all, as the first event
    says."""

    layouts: Array
    ids: Array
    id_events: Array
    id_at: int
    id_before_end: int
    has_sample_id: bool


def make_events(attrs: Attrs, features: Features, updated_names: dict[int, str]) -> list[Event]:
    events: list[Event] = []
    for nth, (attr, ids) in enumerate(attrs):
        named = next((names[i] for names in (updated_names, features.names_of_ids) for i in ids if i in names), "")
        name = named or features.names_of_indexes.get(nth, "") or default_name(attr, features)
        sample_type = attr.sample_type & (2 * SampleType.WEIGHT_STRUCT - 1)
        tracepoint = features.formats.get(attr.config) if attr.type == AttrType.TRACEPOINT else None
        events.append(Event(nth, name, attr, sample_type, ids, tracepoint))
    return events


def event_table(events: list[Event]) -> EventTable:
    event_of_id: dict[int, int] = {}
    for event in events:
        for number in event.ids:
            event_of_id.setdefault(number, event.index)
    ids = np.array(list(event_of_id), np.uint64)
    order = np.argsort(ids)
    first = events[0].sample_type
    word = next((word for word in (SampleType.IDENTIFIER, SampleType.ID) if word & first), None)
    return EventTable(
        np.array([_layout(event) for event in events], LAYOUT),
        ids[order],
        np.array(list(event_of_id.values()), np.int32)[order],
        -1 if word is None else words_size(first, SAMPLE_WORDS[: SAMPLE_WORDS.index(word)]),
        -1 if word is None else words_size(first, SAMPLE_ID_WORDS[SAMPLE_ID_WORDS.index(word) :]),
        "sample_id_all" in events[0].attr.flags,
    )


def _layout(event: Event) -> tuple[int, ...]:
    attr = event.attr
    branches = attr.branch_sample_type
    return (
        event.sample_type,
        attr.read_format,
        attr.sample_regs_user.bit_count(),
        attr.sample_regs_intr.bit_count(),
        bool(branches & BRANCH_HW_INDEX),
        bool(branches & BRANCH_COUNTERS),
        0 if event.is_freq or attr.sample_period > COUNTED else attr.sample_period,
        sample_id_size(event),
        words_size(event.sample_type, SAMPLE_WORDS),
    )


def words_size(sample_type: int, words: tuple[SampleType, ...]) -> int:
    return 8 * sum(1 for word in words if word & sample_type)


def sample_id_size(event: Event) -> int:
    return words_size(event.sample_type, SAMPLE_ID_WORDS) if "sample_id_all" in event.attr.flags else 0
