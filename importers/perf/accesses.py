"""Map: what samples say of accesses to memory (perf mem, perf record -d -W --phys-data): where the data came from, how
long it took, which pages it is on.

Source: linux/perf_event.h, union perf_mem_data_src and perf_sample_weight; tools/perf/util/mem-events.c for the names.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from traceferry.importers.perf._records import SampleType
from traceferry.importers.perf.recording import Event, Recording
from traceferry.model import Array, MarkerField, TraceBuilder
from traceferry.model.categories import MEMORY_LEVEL

# PERF_MEM_OP_*, from bit 0 of data_src on; here as in the other lists, bit 0 says that nothing is known.
OPERATIONS = ("", "load", "store", "prefetch", "execute")
# PERF_MEM_LVL_*, from bit 5 on: what was asked, before PERF_MEM_LVLNUM_*.
HIT, MISS = 1 << 1, 1 << 2
OLD_LEVELS = {
    1 << 3: "L1", 1 << 4: "LFB", 1 << 5: "L2", 1 << 6: "L3", 1 << 7: "RAM", 1 << 8: "Remote RAM", 1 << 9: "Remote RAM",
    1 << 10: "Remote cache", 1 << 11: "Remote cache", 1 << 12: "I/O", 1 << 13: "Uncached",
}  # fmt: skip
# PERF_MEM_LVLNUM_*
LEVELS = {
    1: "L1", 2: "L2", 3: "L3", 4: "L4", 5: "L2 MHB", 6: "MSC", 7: "L0", 8: "Uncached", 9: "CXL", 10: "I/O",
    11: "any cache", 12: "LFB", 13: "RAM", 14: "PMEM",
}  # fmt: skip
CACHES = {"L0", "L1", "L2", "L3", "L4", "any cache"}
# PERF_MEM_HOPS_*
HOPS = ("", "another core", "another node", "another socket", "another board", "", "", "")
SNOOPS = ("", "none", "hit", "miss", "hit modified")  # PERF_MEM_SNOOP_*, from bit 19 on
MORE_SNOOPS = ("forwarded", "from a peer")  # PERF_MEM_SNOOPX_*, from bit 38 on
TLB = ("", "hit", "miss", "L1", "L2", "hardware walker", "fault handler")  # PERF_MEM_TLB_*, from bit 26 on
BLOCKED = ("", "data", "address")  # PERF_MEM_BLK_*, from bit 40 on
LOCKED = 1 << 1
# The colour of a level: the farther, the warmer.
COLORS = {
    "L0": "green", "L1": "green", "LFB": "lightblue", "L2": "lightblue", "L2 MHB": "lightblue", "L3": "blue",
    "L4": "blue", "MSC": "blue", "any cache": "blue", "RAM": "orange", "Remote cache": "purple", "Remote RAM": "red",
    "CXL": "red", "PMEM": "magenta", "I/O": "brown", "Uncached": "yellow",
}  # fmt: skip
OTHER_COLOR = "grey"


class Source(NamedTuple):
    """One value of data_src in words, "" where it does not say. level: from where the data came; hops: how far away
    that is."""

    operation: str
    level: str
    hops: str
    snoop: str
    tlb: str
    blocked: str
    is_locked: bool


def source_of(value: int) -> Source:
    """Returns what a data_src says. Its bits are the same numbers in both byte orders."""
    return Source(
        _words(value, OPERATIONS),
        _level(value >> 5 & 0x3FFF, value >> 33 & 0xF, bool(value >> 37 & 1)),
        HOPS[value >> 43 & 7],
        " ".join(filter(None, (_words(value >> 19, SNOOPS), _words(value >> 38 << 1, ("", *MORE_SNOOPS))))),
        _words(value >> 26, TLB),
        _words(value >> 40, BLOCKED),
        bool(value >> 24 & LOCKED),
    )


def _words(bits: int, names: tuple[str, ...]) -> str:
    return " ".join(name for nth, name in enumerate(names) if name and bits >> nth & 1)


def _level(old: int, number: int, is_remote: bool) -> str:
    """Returns the level's name; of a miss it is the level that did not have the data."""
    name = LEVELS.get(number, "")
    if not name:
        names = list(dict.fromkeys(name for bit, name in OLD_LEVELS.items() if old & bit))
        name = " or ".join(names)
    if is_remote and name and not name.startswith("Remote"):
        name = "Remote cache" if name in CACHES else f"Remote {name}"
    return f"{name} miss" if name and old & MISS and not old & HIT else name


def has_accesses(event: Event) -> bool:
    return bool(event.sample_type & SampleType.DATA_SRC) and event.can_tell_memory


def latency_of(recording: Recording, event: Event) -> Array | None:
    """int64: for every sample of the recording the cycles that its access took, or its instruction, 0 where it is of
    another event; None where none of the event's tells them."""
    both = SampleType.WEIGHT | SampleType.WEIGHT_STRUCT
    if not event.sample_type & both:
        return None
    samples = recording.samples
    weight = samples.weight
    if event.sample_type & SampleType.WEIGHT_STRUCT:
        weight = weight & np.uint64(0xFFFF_FFFF)  # then instruction latency and the cycles of a stage, 16 bits each
    latency = np.where(samples.event == event.index, np.minimum(weight, np.uint64(1 << 62)), np.uint64(0))
    return latency.astype(np.int64) if latency.any() else None


def with_levels(stack: Array, recording: Recording, trace: TraceBuilder) -> Array:
    """Returns the stacks of all samples; that of an access ends with the same function in the category of the level
    from which the data came."""
    samples = recording.samples
    tells = np.array([has_accesses(event) for event in recording.events])
    rows = np.flatnonzero(tells[samples.event] & (stack >= 0) & (samples.data_src != 0))
    values, of_value = np.unique(samples.data_src[rows], return_inverse=True)
    names = [source_of(value).level for value in values.tolist()]
    categories = np.array([_category(trace, name) if name else -1 for name in names], np.int64)
    category = categories[of_value.reshape(-1)]
    rows, category = rows[category >= 0], category[category >= 0]
    if not len(rows):
        return stack
    pairs, nth = np.unique(np.stack((stack[rows].astype(np.int64), category), axis=1), axis=0, return_inverse=True)
    of_frames = {name: column.tolist() for name, column in _leaves(trace, pairs[:, 0]).items()}
    of_frames["category"] = pairs[:, 1].tolist()
    frames = trace.frames.intern_all(len(pairs), **of_frames)
    first = trace.stacks.extend(prefix=trace.stacks["prefix"][pairs[:, 0]], frame=np.array(frames, np.int32))
    found = stack.copy()
    found[rows] = first + nth.reshape(-1)
    return found


def _leaves(trace: TraceBuilder, stacks: Array) -> dict[str, Array]:
    frame = trace.stacks["frame"][stacks]
    return {name: column[frame] for name, column in trace.frames.columns.items()}


def _category(trace: TraceBuilder, level: str) -> int:
    color = COLORS.get(level.removesuffix(" miss"), OTHER_COLOR)
    return trace.add_category(f"{MEMORY_LEVEL}{level}", color)


# ---------------------------------------------------------------- as markers


def access_fields(event: Event) -> Iterator[MarkerField]:
    """Yields the fields of an access that the event records."""
    kinds = event.sample_type
    if has_accesses(event):
        for key, label in (
            ("operation", "Operation"), ("level", "Level"), ("hops", "From"), ("snoop", "Snoop"), ("tlb", "TLB"),
            ("blocked", "Blocked by"), ("locked", "Locked"),
        ):  # fmt: skip
            yield MarkerField(key, label, "text", optional=True)
    if kinds & (SampleType.WEIGHT | SampleType.WEIGHT_STRUCT):
        yield MarkerField("latency", "Latency (cycles)", "integer", optional=True)
    if kinds & SampleType.WEIGHT_STRUCT:
        yield MarkerField("instruction_latency", "Instruction latency (cycles)", "integer", optional=True)
        yield MarkerField("stage_cycles", "Cycles of a stage", "integer", optional=True)
    if kinds & SampleType.PHYS_ADDR:
        yield MarkerField("phys_addr", "Physical address", "hex", optional=True)
    for kind, key, label in (
        (SampleType.DATA_PAGE_SIZE, "data_page_size", "Page of the data (bytes)"),
        (SampleType.CODE_PAGE_SIZE, "code_page_size", "Page of the code (bytes)"),
    ):
        if kinds & kind:
            yield MarkerField(key, label, "integer", optional=True)


def access_columns(recording: Recording, event: Event, rows: Array) -> dict[str, Any]:
    """Returns the columns of `access_fields` of these samples."""
    samples, columns = recording.samples, dict[str, Any]()
    values, of_value = np.unique(samples.data_src[rows], return_inverse=True)
    sources = [source_of(value) for value in values.tolist()]
    weight = samples.weight[rows]
    is_parted = bool(event.sample_type & SampleType.WEIGHT_STRUCT)
    latency = weight & np.uint64(0xFFFF_FFFF) if is_parted else np.minimum(weight, np.uint64(1 << 62))
    numbers = {
        "latency": latency, "instruction_latency": weight >> np.uint64(32) & np.uint64(0xFFFF),
        "stage_cycles": weight >> np.uint64(48), "phys_addr": samples.phys_addr[rows],
        "data_page_size": np.minimum(samples.data_page_size[rows], np.uint64(1 << 62)),
        "code_page_size": np.minimum(samples.code_page_size[rows], np.uint64(1 << 62)),
    }  # fmt: skip
    for field in access_fields(event):
        if field.key in numbers:
            columns[field.key] = numbers[field.key].astype(np.uint64 if field.format == "hex" else np.int64)
            continue
        texts = np.array([_text(source, field.key) for source in sources], object)
        columns[field.key] = texts[of_value.reshape(-1)]
    return columns


def _text(source: Source, key: str) -> str:
    if key == "locked":
        return "locked" if source.is_locked else ""
    return str(getattr(source, key))


# ---------------------------------------------------------------- of processes and of the whole


def cgroup_of(recording: Recording, program: Array, number: int) -> str:
    """Returns the path of the control group in which most samples of a program were, "" where none is known. program:
    of each sample; number: the one that is asked for."""
    cgroup = recording.samples.cgroup
    if not recording.cgroups or not cgroup.any():
        return ""
    numbers, counts = np.unique(cgroup[program == number], return_counts=True)
    ranked = sorted(zip(counts.tolist(), numbers.tolist(), strict=True), reverse=True)
    return next((recording.cgroups[number] for _, number in ranked if number in recording.cgroups), "")


def page_sizes(recording: Recording) -> dict[str, str]:
    """Returns how many samples are on pages of each size: of their data, and of their code."""
    found = {}
    for name in ("data_page_size", "code_page_size"):
        column = getattr(recording.samples, name)
        sizes, counts = np.unique(column[column > 0] if column.any() else column[:0], return_counts=True)
        pairs = zip(sizes.tolist(), counts.tolist(), strict=True)
        if len(sizes):
            found[f"{name}s"] = ", ".join(f"{size} bytes: {count}" for size, count in pairs)
    return found
