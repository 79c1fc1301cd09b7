"""The decoded perf.data: columns for frequent records, typed records for the rest, offsets for payloads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from traceferry.common.patterns import compiled_later
from traceferry.importers.perf._records import SampleType
from traceferry.importers.perf.layout import Attr, AttrType
from traceferry.importers.perf.tracepoints import Field, Format, decode_field
from traceferry.model import Array
from traceferry.timeline.ticks import Counter

# What compilers map so that it is in the recording: jit-PID.dump, Bun's jit-TID-PID.dump or jit-TID-PID-RANDOM.
DUMP = compiled_later(r"jit-\d+(-\w+)*(\.dump)?")
# What `perf inject --jit` makes of each code object.
JITTED_OBJECT = compiled_later(r"jitted-\d+-\d+\.so")


@dataclass(frozen=True)
class Problem:
    """A note for the report; kind is a key of traceferry.common.report.KINDS. offset: in the stream."""

    kind: str
    count: int
    offset: int | None = None
    detail: str = ""


COUNTED_AT_ONCE = 1 << 15  # samples
# PERF_COUNT_SW_DUMMY
DUMMY = 9


@dataclass(frozen=True)
class Event:
    """A recorded event. index: its place in the file; name: as perf has it ("cycles:u"); sample_type: those bits
    of attr.sample_type that are known; ids: what records call it."""

    index: int
    name: str
    attr: Attr
    sample_type: int
    ids: tuple[int, ...]
    tracepoint: Format | None

    @property
    def is_freq(self) -> bool:
        """Whether attr.sample_period is samples per second, not the count from sample to sample."""
        return "freq" in self.attr.flags

    @property
    def is_dummy(self) -> bool:
        """Whether it counts nothing: perf adds one for the records beside samples."""
        return self.attr.type == AttrType.SOFTWARE and self.attr.config == DUMMY

    @property
    def can_tell_memory(self) -> bool:
        """Whether DATA_SRC says something: perf record --call-graph dwarf asks for it with every event, and only those
        of the processor's units can tell it, of which a precise one may have the name of a general one."""
        kind = self.attr.type
        return kind not in (AttrType.SOFTWARE, AttrType.TRACEPOINT) and (
            kind != AttrType.HARDWARE or self.attr.precise_ip > 0
        )

    @property
    def use_clockid(self) -> bool:
        """Whether all times are of the clock attr.clockid; else they are of the kernel's sched_clock."""
        return "use_clockid" in self.attr.flags


@dataclass
class Features:
    """The recorder's description of machine and recording; None or empty where missing.

    total_mem: bytes; build_ids: path → hex; clock_data: (clockid, CLOCK_REALTIME in ns, its time in ns) of one moment;
    pmus: attr.type → name; mmap_len: how many bytes a COMPRESSED record stands for at most, 0 is unknown; names_of_ids,
    names_of_indexes: of the events; formats: attr.config → tracepoint; max_branches: how many branches the processor
    records, 0 is unknown; bpf_metadata: what programs of BPF say of themselves; simpleperf: what that says of itself.
    """

    hostname: str = ""
    os_release: str = ""
    version: str = ""
    arch: str = ""
    n_cpus_online: int | None = None
    cpudesc: str = ""
    total_mem: int | None = None
    cmdline: tuple[str, ...] = ()
    build_ids: dict[str, str] = field(default_factory=dict)
    clock_data: tuple[int, int, int] | None = None
    pmus: dict[int, str] = field(default_factory=dict)
    mmap_len: int = 0
    names_of_ids: dict[int, str] = field(default_factory=dict)
    names_of_indexes: dict[int, str] = field(default_factory=dict)
    formats: dict[int, Format] = field(default_factory=dict)
    max_branches: int = 0
    bpf_metadata: dict[str, str] = field(default_factory=dict)
    simpleperf: dict[str, str] = field(default_factory=dict)


@dataclass
class Samples:
    """Columns of all samples, by time; equal times in the order of the stream.

    ts int64 ns (-1 not recorded); pid, tid int32 (-1 not recorded); event int32 (into Recording.events); cpu int32 (-1
    not recorded); period int64 (0 not known); addr, ip uint64 (0 not recorded); cpumode uint8 (header.misc's);
    chain_start int64, chain_n int32: its entries in `chain`; offset int64: of the record in the stream; read_at int64:
    of PERF_SAMPLE_READ's values in the stream, where a group of counters was read (-1 none); raw_at int64,
    raw_size int32: PERF_SAMPLE_RAW's bytes in the stream (-1 none); user_at int64: where in the stream the user's
    registers are (the abi, then they, then the copy of the stack), -1 where none of the stack was copied; user_abi
    uint8: PERF_SAMPLE_REGS_ABI_*, 255 for any that is larger; user_size, user_n int32: how many bytes the copy has, and
    how many of them are of the stack; branch_at int64: where in the stream the first of branch_n (int32) entries of the
    branch stack is, of 24 bytes each, the latest branch first (-1 none); weight, data_src, phys_addr, cgroup,
    data_page_size, code_page_size uint64: as they are recorded (0 not recorded).
    A column that no event records is one value in an array without strides, which takes no memory.

    chain uint64: callchains, innermost first, with the context markers; read-only where it is the stream itself, which
    it is where its numbers lie there as the machine wants them.
    """

    ts: Array
    pid: Array
    tid: Array
    event: Array
    cpu: Array
    period: Array
    addr: Array
    ip: Array
    cpumode: Array
    chain_start: Array
    chain_n: Array
    offset: Array
    read_at: Array
    raw_at: Array
    raw_size: Array
    user_at: Array
    user_abi: Array
    user_size: Array
    user_n: Array
    branch_at: Array
    branch_n: Array
    weight: Array
    data_src: Array
    phys_addr: Array
    cgroup: Array
    data_page_size: Array
    code_page_size: Array
    chain: Array

    def __len__(self) -> int:
        return len(self.ts)

    def n_of_events(self, n_events: int) -> list[int]:
        """Returns how many samples each of so many events has."""
        counts = np.zeros(n_events, np.int64)
        # np.bincount makes int64 of what it counts: of all at once, new memory, which takes longer than counting.
        for at in range(0, len(self), COUNTED_AT_ONCE):
            counts += np.bincount(self.event[at : at + COUNTED_AT_ONCE], minlength=n_events)
        found: list[int] = counts.tolist()
        return found


@dataclass
class Switches:
    """Columns of SWITCH and SWITCH_CPU_WIDE, by time: ts int64; pid, tid, cpu int32 (-1 not recorded); out, preempt
    bool."""

    ts: Array
    pid: Array
    tid: Array
    cpu: Array
    out: Array
    preempt: Array

    def __len__(self) -> int:
        return len(self.ts)


@dataclass
class Losses:
    """Columns of LOST and LOST_SAMPLES, by time: ts int64, of the record that followed; cpu int32 (-1 not recorded)."""

    ts: Array
    cpu: Array


@dataclass
class Deferred:
    """Columns of CALLCHAIN_DEFERRED, by time: ts int64 ns, tid int32, cookie uint64; n int64 addresses from first
    (int64) on in `addresses` (uint64)."""

    ts: Array
    tid: Array
    cookie: Array
    n: Array
    first: Array
    addresses: Array


class Counts(NamedTuple):
    """The counts of perf stat.

    ts: int64, rising: when each of its rounds ended, in ns since the start. Columns of STAT, in the stream's order:
    in_round int64 (into ts; len(ts): that round has no end); event int32 (into Recording.events); cpu int32 (-1: all);
    thread int32 (into threads); value uint64: since the start; enabled, running uint64: ns that the counter should have
    run, and did. threads: (tid, name or "" where it is not known), a tid of -1 is the whole machine; units: (unit, what
    a value is multiplied with to be in it) by the number of an event; is_by_cpu: it was asked for each processor
    apart."""

    ts: Array
    in_round: Array
    event: Array
    cpu: Array
    thread: Array
    value: Array
    enabled: Array
    running: Array
    threads: Sequence[tuple[int, str]]
    units: dict[int, tuple[str, float]]
    is_by_cpu: bool


class Comm(NamedTuple):
    """ts of this and all that follow: 0 before the start (perf made the record up) or not recorded."""

    ts: int
    pid: int
    tid: int
    name: str
    is_exec: bool


class Fork(NamedTuple):
    """A process where pid is not ppid, else a thread. is_synthesised: the recorder tells of what it found running; the
    memory of such a process is no copy of its parent's."""

    ts: int
    pid: int
    ppid: int
    tid: int
    ptid: int
    is_synthesised: bool = False


class Exit(NamedTuple):
    ts: int
    pid: int
    tid: int


Task = Comm | Fork | Exit


class Mmap(NamedTuple):
    """A mapping, of MMAP or MMAP2. pid -1: of the kernel. is_exec: prot has PROT_EXEC, or MMAP says no data; build_id:
    hex, "" where it is not recorded here; order: among all maps by time; file: u32 major, minor, u64 inode of the file,
    in the recording's byte order, b"" where they are not recorded; is_shared: what one process writes there, its forks
    see, too; generation: u64 of that inode, b"" where it is not recorded. perf writes 0 of what was mapped before."""

    ts: int
    pid: int
    start: int
    length: int
    pgoff: int
    path: str
    is_exec: bool
    build_id: str
    order: int
    file: bytes = b""
    is_shared: bool = False
    generation: bytes = b""


class Ksymbol(NamedTuple):
    """unregister: it goes."""

    ts: int
    address: int
    length: int
    name: str
    unregister: bool


@dataclass
class Recording:
    """mode: "file", "pipe" or "directory"; not_read: what is recorded and not read. counter: of TIME_CONV, which
    converts the processor's counter; stream: what all offsets refer to: the file itself, then the directory's other
    files, then what was compressed. From `switches` on: what
    sideband.py reads, each by time; cgroups: paths by the number that samples have; namespaces: of processes, by pid;
    n_throttled: how often sampling stopped on a CPU because there were too many
    interrupts; cpus: the processors that were recorded, empty where nothing tells; counts: of perf stat.
    """

    byte_order: str
    mode: str
    features: Features
    events: list[Event]
    samples: Samples
    counter: Counter | None
    problems: list[Problem]
    not_read: list[Problem]
    stream: memoryview
    n_records: int
    switches: Switches = field(init=False)
    losses: Losses = field(init=False)
    deferred: Deferred = field(init=False)
    tasks: list[Task] = field(default_factory=list)
    maps: list[Mmap] = field(default_factory=list)
    ksymbols: list[Ksymbol] = field(default_factory=list)
    n_throttled: int = 0
    cpus: frozenset[int] = frozenset()
    counts: Counts | None = None
    cgroups: dict[int, str] = field(default_factory=dict)
    namespaces: dict[int, str] = field(default_factory=dict)

    @cached_property
    def event_names(self) -> list[str]:
        """Returns the name of each event. Several of one name are told apart by their places."""
        same: dict[str, list[int]] = {}
        for nth, event in enumerate(self.events):
            same.setdefault(event.name, []).append(nth)
        names = [event.name for event in self.events]
        for name, events in same.items():
            for place, nth in enumerate(events if len(events) > 1 else (), start=1):
                names[nth] = f"{name} #{place}"
        return names

    @property
    def is_timed(self) -> bool:
        """Whether samples have times: with --per-thread and --no-timestamp perf leaves those of all records out."""
        sampled = [event for event in self.events if not event.is_dummy]
        return not sampled or any(event.sample_type & SampleType.TIME for event in sampled)

    @property
    def order(self) -> str:
        """Returns the byte order for struct and NumPy formats."""
        return ">" if self.byte_order == "big" else "<"

    def field(self, wanted: Field, rows: Array) -> Array:
        """Returns a tracepoint's field of these samples, as `decode_field` has it."""
        return decode_field(wanted, self.stream, *self._raw_of(rows), self.order)

    def _raw_of(self, rows: Array) -> tuple[Array, Array]:
        at = self.samples.raw_at[rows]
        return at, np.where(at < 0, 0, self.samples.raw_size[rows])

    def raw(self, sample: int) -> bytes:
        """Returns what PERF_SAMPLE_RAW holds in this row of samples: a tracepoint's fields. b"" if nothing."""
        at, size = int(self.samples.raw_at[sample]), int(self.samples.raw_size[sample])
        return bytes(self.stream[at : at + size]) if at >= 0 else b""
