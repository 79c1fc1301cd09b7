"""Builds perf.data files, as files and as pipes, in both byte orders, from nothing but `struct` (and zstandard).

Words are those of perf_event.h and of tools/perf. Every record method appends one record and
returns the file, so that calls chain. A record without a time comes STEP after the one before it.

    PerfData().event("cpu-clock", freq=997).comm(7, 7, "app").sample(7, 7, ip=0x4010).bytes()
"""

import builtins
import itertools
import struct
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

import zstandard

STEP = 1000
_U64 = (1 << 64) - 1
GARBAGE = 0xAA
FILE_HEADER_BYTES, PIPE_HEADER_BYTES, ATTR_BYTES = 104, 16, 128

# Event types (perf_event_attr.type), and what software events count (its config).
HARDWARE, SOFTWARE, TRACEPOINT, HW_CACHE, RAW, BREAKPOINT = range(6)
CPU_CYCLES = 0
CPU_CLOCK, TASK_CLOCK, PAGE_FAULTS, CONTEXT_SWITCHES = range(4)
DUMMY = 9

# Clocks (attr.clockid).
REALTIME, MONOTONIC, BOOTTIME, MONOTONIC_RAW = 0, 1, 7, 4

# Record types of the kernel, then those of the perf tool.
MMAP, LOST, COMM, EXIT, THROTTLE, UNTHROTTLE, FORK, READ, SAMPLE, MMAP2, AUX, ITRACE_START = range(1, 13)
LOST_SAMPLES, SWITCH, SWITCH_CPU_WIDE, NAMESPACES, KSYMBOL, BPF_EVENT, CGROUP, TEXT_POKE = range(13, 21)
CALLCHAIN_DEFERRED = 22
HEADER_ATTR, HEADER_EVENT_TYPE, HEADER_TRACING_DATA, HEADER_BUILD_ID, FINISHED_ROUND, ID_INDEX = range(64, 70)
AUXTRACE_INFO, AUXTRACE, EVENT_UPDATE = 70, 71, 78
THREAD_MAP, STAT_CONFIG, STAT, STAT_ROUND = 73, 75, 76, 77
STAT_TAGS = ("aggregation", "interval", "scale")
BPF_METADATA, SCHEDSTAT_CPU, SCHEDSTAT_DOMAIN = 84, 85, 86
HEADER_FEATURE, COMPRESSED, FINISHED_INIT, COMPRESSED2 = 80, 81, 82, 83

# attr.branch_sample_type.
BRANCH_USER, BRANCH_ANY, BRANCH_CALL_STACK = 1 << 0, 1 << 3, 1 << 11
BRANCH_HW_INDEX, BRANCH_COUNTERS = 1 << 17, 1 << 19
# What the ABI of registers has where vector registers follow them.
ABI_SIMD = 4

# The cpumode in a record's misc, and its flags.
KERNEL_MODE, USER_MODE, HYPERVISOR_MODE, GUEST_KERNEL_MODE, GUEST_USER_MODE = range(1, 6)
MMAP_DATA = COMM_EXEC = SWITCH_OUT = 1 << 13
MMAP_BUILD_ID = SWITCH_OUT_PREEMPT = 1 << 14
BUILD_ID_SIZE = 1 << 15
MODES = {
    "kernel": KERNEL_MODE,
    "user": USER_MODE,
    "hypervisor": HYPERVISOR_MODE,
    "guest": GUEST_USER_MODE,
    "guest_kernel": GUEST_KERNEL_MODE,
}

# Markers in a callchain: what follows is of the kernel, of the user...
CONTEXT_HYPERVISOR, CONTEXT_KERNEL, CONTEXT_USER = -32, -128, -512
CONTEXTS = {KERNEL_MODE: CONTEXT_KERNEL, USER_MODE: CONTEXT_USER, HYPERVISOR_MODE: CONTEXT_HYPERVISOR}


def _table(words: str) -> list[str]:
    return words.split()


# The bits of attr.sample_type, from bit 0 on.
SAMPLE_TYPES = _table(
    "IP TID TIME ADDR READ CALLCHAIN ID CPU PERIOD STREAM_ID RAW BRANCH_STACK REGS_USER STACK_USER WEIGHT DATA_SRC"
    " IDENTIFIER TRANSACTION REGS_INTR PHYS_ADDR AUX CGROUP DATA_PAGE_SIZE CODE_PAGE_SIZE WEIGHT_STRUCT"
)
# The one-bit flags of attr, from bit 0 on; precise_ip has two bits.
ATTR_FLAGS = _table(
    "disabled inherit pinned exclusive exclude_user exclude_kernel exclude_hv exclude_idle mmap comm freq inherit_stat"
    " enable_on_exec task watermark precise_ip precise_ip_2 mmap_data sample_id_all exclude_host exclude_guest"
    " exclude_callchain_kernel exclude_callchain_user mmap2 comm_exec use_clockid context_switch write_backward"
    " namespaces ksymbol bpf_event aux_output cgroup text_poke build_id inherit_thread remove_on_exec sigtrap"
)
USUAL_FLAGS = "disabled inherit mmap comm enable_on_exec task sample_id_all exclude_guest mmap2 comm_exec ksymbol"
# The bits of attr.read_format, from bit 0 on.
READ_FORMATS = _table("TOTAL_TIME_ENABLED TOTAL_TIME_RUNNING ID GROUP LOST")

# Header features, from bit 1 on.
FEATURES = {
    name: number
    for number, name in enumerate(
        _table(
            "TRACING_DATA BUILD_ID HOSTNAME OSRELEASE VERSION ARCH NRCPUS CPUDESC CPUID TOTAL_MEM CMDLINE EVENT_DESC"
            " CPU_TOPOLOGY NUMA_TOPOLOGY BRANCH_STACK PMU_MAPPINGS GROUP_DESC AUXTRACE STAT CACHE SAMPLE_TIME"
            " MEM_TOPOLOGY CLOCKID DIR_FORMAT BPF_PROG_INFO BPF_BTF COMPRESSED CPU_PMU_CAPS CLOCK_DATA HYBRID_TOPOLOGY"
            " PMU_CAPS CPU_DOMAIN_INFO E_MACHINE CLN_SIZE"
        ),
        start=1,
    )
}
# Those of Android's simpleperf.
FEATURES |= {"SIMPLEPERF_META_INFO": 129, "SIMPLEPERF_DEBUG_UNWIND": 130, "SIMPLEPERF_FILE2": 132}
# What follows the last feature in a pipe: the number behind those that the writing perf knows. Of Debian 12's perf, and
# of one that knows them all.
LAST_FEATURES = 32, 35

# The registers of x86-64 that perf records, in the order in which they stand in a sample.
X86_64_REGS = 0xFF0FFF
X86_64_SP, X86_64_IP = 7, 8

# The fields that stand at the beginning of every tracepoint's raw data.
COMMON_FIELDS = (
    ("unsigned short common_type", "H"),
    ("unsigned char common_flags", "B"),
    ("unsigned char common_preempt_count", "B"),
    ("int common_pid", "i"),
)
SCHED_SWITCH = (
    ("char prev_comm[16]", "16s"),
    ("pid_t prev_pid", "i"),
    ("int prev_prio", "i"),
    ("long prev_state", "q"),
    ("char next_comm[16]", "16s"),
    ("pid_t next_pid", "i"),
    ("int next_prio", "i"),
)


class Event(NamedTuple):
    """An event of the file, as `PerfData.event` was told of it."""

    name: str
    type: int
    config: int
    sample_type: frozenset[str]
    ids: tuple[int, ...]
    period: int
    attr: bytes
    fields: tuple[tuple[str, str], ...] = ()
    print_fmt: str = ""
    branch_sample_type: int = 0


class PerfData:
    """A perf.data file that grows. `builtins.bytes` because the method of that name hides the type in this class.

    `attr_bytes` is the size of perf_event_attr: 128 for perf 6.1; older ones cut it (96, 104, 112, 120).
    """

    def __init__(
        self, byte_order: str = "<", mode: str = "file", *, attr_bytes: int = ATTR_BYTES, start: int = 1_000_000_000
    ) -> None:
        if mode not in ("file", "pipe"):
            raise ValueError(f"no mode {mode}")
        self.mode = mode
        self.attr_bytes = attr_bytes
        self.now = start
        self.events: list[Event] = []
        self._order = byte_order
        self._records = bytearray()
        self._features: dict[int, builtins.bytes] = {}
        self._zstd: Any = None
        self._plain: bytearray | None = None  # the records since begin_compressed

    # ---------------------------------------------------------------- the whole file

    def bytes(self, *, finalized: bool = True) -> builtins.bytes:
        """The whole file. One that is not finalized says data.size 0, and its feature bits are empty promises."""
        if not self.events:
            raise ValueError("a file without events cannot be read by anybody")
        return self._pipe() if self.mode == "pipe" else self._file(finalized)

    def _file(self, finalized: bool) -> builtins.bytes:
        """Header, ids of each event, attrs, data, the table of features, their sections."""
        out = bytearray(FILE_HEADER_BYTES)
        id_sections = []
        for event in self.events:
            id_sections.append((len(out), 8 * len(event.ids)))
            out += self._pack(f"{len(event.ids)}Q", *event.ids)
        attrs_at = len(out)
        for event, section in zip(self.events, id_sections, strict=True):
            out += event.attr + self._pack("QQ", *section)
        data_at = len(out)
        out += self._records

        features = dict(sorted({**self._automatic_features(), **self._features}.items()))
        if finalized:
            at = len(out) + 16 * len(features)
            for payload in features.values():
                out += self._pack("QQ", at, len(payload))
                at += len(payload)
            out += b"".join(features.values())

        bitmap = sum(1 << number for number in features)
        words = [bitmap >> shift & _U64 for shift in (0, 64, 128, 192)]
        attrs = attrs_at, data_at - attrs_at
        data = data_at, len(self._records) if finalized else 0
        out[:FILE_HEADER_BYTES] = self._magic() + self._pack(
            "12Q", FILE_HEADER_BYTES, self.attr_bytes + 16, *attrs, *data, 0, 0, *words
        )
        return builtins.bytes(out)

    def _pipe(self) -> builtins.bytes:
        """Header, and as records: attrs, features, tracing data, names, build ids; then the data."""
        out = bytearray(self._magic() + self._pack("Q", PIPE_HEADER_BYTES))
        for event in self.events:
            out += self._record(HEADER_ATTR, 0, event.attr + self._pack(f"{len(event.ids)}Q", *event.ids))
        features = {**self._automatic_features(), **self._features}
        tracing_data = features.pop(FEATURES["TRACING_DATA"], b"")
        build_ids = features.pop(FEATURES["BUILD_ID"], b"")
        last = next((number for number in LAST_FEATURES if number > max(features, default=0)), LAST_FEATURES[-1])
        for number, payload in [*sorted(features.items()), (last, b"")]:
            out += self._record(HEADER_FEATURE, 0, self._pack("Q", number) + payload)
        if tracing_data:
            tracing_data = _filled(tracing_data, 8)
            out += self._record(HEADER_TRACING_DATA, 0, self._pack("II", len(tracing_data), 0)) + tracing_data
        name_update = 2
        for event in self.events:
            update = self._pack("QQ", name_update, event.ids[0]) + _name(event.name)
            out += self._record(EVENT_UPDATE, 0, update)
        return builtins.bytes(out + build_ids + self._records)

    def _magic(self) -> builtins.bytes:
        return b"PERFILE2" if self._order == "<" else b"2ELIFREP"

    def _pack(self, fields: str, *values: Any) -> builtins.bytes:
        return struct.pack(self._order + fields, *values)

    def _record(self, record_type: int, misc: int, payload: builtins.bytes) -> builtins.bytes:
        return self._pack("IHH", record_type, misc, 8 + len(payload)) + payload

    # ---------------------------------------------------------------- events

    def event(
        self,
        name: str = "cpu-clock",
        type: int = SOFTWARE,  # noqa: A002 - the attr's own word
        config: int = CPU_CLOCK,
        *,
        sample_type: str = "IP|TID|TIME|CALLCHAIN|PERIOD",
        ids: Sequence[int] | None = None,
        freq: int | None = None,
        period: int | None = None,
        clockid: int | None = MONOTONIC,
        flags: str = USUAL_FLAGS,
        precise_ip: int = 0,
        read_format: str = "ID|LOST",
        regs_user: int = 0,
        stack_user: int = 0,
        regs_intr: int = 0,
        branch_sample_type: int = 0,
    ) -> Self:
        """One more event, by a number that counts from 0: its attr, ids (one for each CPU) and name.

        `sample_type` and `read_format` as perf prints them; `flags` by their names in perf_event_attr, `freq` and
        `use_clockid` follow from the options. All events of a file need IDENTIFIER, or equal sample types with ID.
        """
        kinds = frozenset(sample_type.split("|"))
        if regs_user:
            kinds |= {"REGS_USER"}
        if stack_user:
            kinds |= {"STACK_USER"}
        bits = _bits(flags.split(), ATTR_FLAGS) | precise_ip << ATTR_FLAGS.index("precise_ip")
        bits |= _bits(["freq"], ATTR_FLAGS) if freq is not None else 0
        bits |= _bits(["use_clockid"], ATTR_FLAGS) if clockid is not None else 0
        if ids is None:
            first = 101 + sum(len(event.ids) for event in self.events)
            ids = (first, first + 1)
        wakeup, bp_type, config1, config2 = 0, 0, 0, 0
        attr = self._pack(
            "II4Q",
            type,
            self.attr_bytes,
            config,
            freq if freq is not None else period or 0,
            _bits(kinds, SAMPLE_TYPES),
            _bits(read_format.split("|") if read_format else [], READ_FORMATS),
        )
        attr += self._bit_field(bits)
        attr += self._pack("II3Q", wakeup, bp_type, config1, config2, branch_sample_type)
        attr += self._pack("QIiQ", regs_user, stack_user, clockid or 0, regs_intr)
        attr = attr[: self.attr_bytes].ljust(self.attr_bytes, b"\0")
        self.events.append(Event(name, type, config, kinds, tuple(ids), period or 1, attr, (), "", branch_sample_type))
        return self

    def tracepoint(
        self,
        name: str = "sched:sched_switch",
        number: int = 316,
        fields: Sequence[tuple[str, str]] = SCHED_SWITCH,
        print_fmt: str = '"%s:%d ==> %s:%d", REC->prev_comm, REC->prev_pid, REC->next_comm, REC->next_pid',
        *,
        sample_type: str = "IP|TID|TIME|CPU|PERIOD|RAW|IDENTIFIER",
        **options: Any,
    ) -> Self:
        """A tracepoint event: the C declarations of its fields with their `struct` codes ("loc": __data_loc)."""
        self.event(name, TRACEPOINT, number, sample_type=sample_type, period=1, **options)
        self.events[-1] = self.events[-1]._replace(fields=tuple(fields), print_fmt=print_fmt)
        return self

    def _bit_field(self, value: int) -> builtins.bytes:
        """64 one-bit fields: a big-endian compiler begins with the highest bit."""
        data = value.to_bytes(8, "little")
        if self._order == "<":
            return data
        return builtins.bytes(int(f"{byte:08b}"[::-1], 2) for byte in data)

    # ---------------------------------------------------------------- records of the kernel

    def sample(
        self,
        pid: int,
        tid: int,
        ts: int | None = None,
        ip: int = 0,
        chain: Sequence[int] | None = None,
        *,
        event: int = 0,
        cpu: int = 0,
        period: int | None = None,
        mode: str | int = "user",
        event_id: int | None = None,
        addr: int = 0,
        raw: builtins.bytes = b"",
        fields: Mapping[str, Any] | None = None,
        regs: Sequence[int] | None = None,
        regs_abi: int = 2,
        stack: builtins.bytes | None = None,
        stack_used: int | None = None,
        read: Sequence[int] = (),
        branches: Sequence[tuple[int, int, int]] = (),
        vectors: tuple[int, int, int, int] | None = None,
        others: Mapping[str, int] | None = None,
    ) -> Self:
        """A sample with the fields that its event asks for, in the order of perf_event.h.

        `chain`: addresses, leaf first, CONTEXT_* markers included; by default the mode's marker and the ip. A chain
        that begins with no marker gets the mode's. `fields`: the tracepoint's fields by name, in the place of `raw`.
        `regs`: one value for each bit of the event's mask; None: none were saved (ABI 0). `stack`: None for an
        empty dump, whose dyn_size is left out. `others`: the numbers of WEIGHT, DATA_SRC, PHYS_ADDR...
        `branches`: (from, to, flags), the latest first; see `branch_flags`. `vectors`: how many vector registers of how
        many words follow `regs`, and predicate registers; their ABI has a bit more.
        """
        told = self.events[event]
        ts = self._time(ts)
        misc = MODES[mode] if isinstance(mode, str) else mode
        event_id = told.ids[min(cpu, len(told.ids) - 1)] if event_id is None else event_id
        chain = [ip] if chain is None else list(chain)
        if chain and not _is_marker(chain[0]) and misc & 7 in CONTEXTS:
            chain.insert(0, CONTEXTS[misc & 7])
        if fields is not None:
            raw = self._tracepoint_data(told, tid, fields)
        raw += builtins.bytes([GARBAGE]) * (-(4 + len(raw)) % 8)
        registers = self._u64(0) if regs is None else self._u64(regs_abi | ABI_SIMD * (vectors is not None), *regs)
        if vectors is not None and regs is not None:
            n_words = vectors[0] * vectors[1] + vectors[2] * vectors[3]
            registers += self._pack("4H", *vectors) + builtins.bytes([GARBAGE]) * (8 * n_words)
        stack_dump = self._u64(0)
        if stack is not None:
            stack_dump = self._u64(len(stack)) + stack + self._u64(len(stack) if stack_used is None else stack_used)
        words = {name: self._u64(value) for name, value in (others or {}).items()}

        parts = {
            "IDENTIFIER": self._u64(event_id),
            "IP": self._u64(ip),
            "TID": self._pack("ii", pid, tid),
            "TIME": self._u64(ts),
            "ADDR": self._u64(addr),
            "ID": self._u64(event_id),
            "STREAM_ID": self._u64(event_id),
            "CPU": self._pack("II", cpu, 0),
            "PERIOD": self._u64(told.period if period is None else period),
            "READ": self._u64(*read),
            "CALLCHAIN": self._u64(len(chain), *chain),
            "RAW": self._pack("I", len(raw)) + raw,
            "BRANCH_STACK": self._branch_stack(told, branches),
            "REGS_USER": registers,
            "STACK_USER": stack_dump,
            "WEIGHT": words.get("WEIGHT", self._u64(0)),
            "WEIGHT_STRUCT": words.get("WEIGHT_STRUCT", self._u64(0)),
            "DATA_SRC": words.get("DATA_SRC", self._u64(0)),
            "TRANSACTION": words.get("TRANSACTION", self._u64(0)),
            "REGS_INTR": registers,
            "PHYS_ADDR": words.get("PHYS_ADDR", self._u64(0)),
            "CGROUP": words.get("CGROUP", self._u64(0)),
            "DATA_PAGE_SIZE": words.get("DATA_PAGE_SIZE", self._u64(0)),
            "CODE_PAGE_SIZE": words.get("CODE_PAGE_SIZE", self._u64(0)),
            "AUX": self._u64(0),
        }
        return self.raw_record(SAMPLE, misc, b"".join(parts[kind] for kind in parts if kind in told.sample_type))

    def _branch_stack(self, event: Event, branches: Sequence[tuple[int, int, int]]) -> builtins.bytes:
        head = [len(branches), *([_U64] if event.branch_sample_type & BRANCH_HW_INDEX else [])]
        counters = [0] * (len(branches) if event.branch_sample_type & BRANCH_COUNTERS else 0)
        return self._u64(*head, *[word for branch in branches for word in branch], *counters)

    def branch_flags(self, mispredicted: bool | None = None, cycles: int = 0) -> int:
        """The third number of a branch; None: it is not known whether it was predicted."""
        bits = (0, 1, 4) if self._order == "<" else (63, 62, 44)
        return (mispredicted is True) << bits[0] | (mispredicted is False) << bits[1] | cycles << bits[2]

    def mmap(
        self, pid: int, tid: int, start: int, length: int, pgoff: int, path: str, *, misc: int = USER_MODE, **times: Any
    ) -> Self:
        """MMAP, as old perfs write it; the tool still does for the kernel: pid -1, kernel mode."""
        payload = self._pack("ii", pid, tid) + self._u64(start, length, pgoff) + _name(path)
        return self._side_band(MMAP, misc, payload, pid, tid, **times)

    def mmap2(
        self,
        pid: int,
        tid: int,
        start: int,
        length: int,
        pgoff: int,
        path: str,
        prot: int = 5,
        build_id: builtins.bytes | None = None,
        *,
        device: tuple[int, int] = (8, 1),
        inode: int = 4711,
        generation: int = 0,
        flags: int = 2,
        misc: int = USER_MODE,
        **times: Any,
    ) -> Self:
        """MMAP2; a build id takes the place of device and inode, and a flag in misc says so."""
        payload = self._pack("ii", pid, tid) + self._u64(start, length, pgoff)
        if build_id is None:
            payload += self._pack("IIQQ", *device, inode, generation)
        else:
            misc |= MMAP_BUILD_ID
            payload += self._pack("BBH20s", len(build_id), 0, 0, build_id)
        payload += self._pack("II", prot, flags) + _name(path)
        return self._side_band(MMAP2, misc, payload, pid, tid, **times)

    def comm(self, pid: int, tid: int, name: str, ts: int | None = None, exec: bool = False, **times: Any) -> Self:  # noqa: A002
        """COMM: a thread's name; `exec` where a new program gave it."""
        payload = self._pack("ii", pid, tid) + _name(name)
        return self._side_band(COMM, COMM_EXEC if exec else 0, payload, pid, tid, ts=ts, **times)

    def fork(
        self,
        pid: int,
        tid: int,
        ppid: int,
        ptid: int,
        ts: int | None = None,
        *,
        own_ts: int | None = None,
        **times: Any,
    ) -> Self:
        """FORK: a new thread, or with another pid than its parent's a new process. The trailer is the parent's."""
        ts = self._time(ts)
        payload = self._pack("4iQ", pid, ppid, tid, ptid, ts if own_ts is None else own_ts)
        return self._side_band(FORK, 0, payload, ppid, ptid, ts=ts, **times)

    def exit(
        self,
        pid: int,
        tid: int,
        ts: int | None = None,
        *,
        ppid: int | None = None,
        ptid: int | None = None,
        own_ts: int | None = None,
        **times: Any,
    ) -> Self:
        """EXIT of a thread. `own_ts` is the time in the record itself, in real ones a little after the trailer's."""
        ts = self._time(ts)
        parents = pid if ppid is None else ppid, tid if ptid is None else ptid
        payload = self._pack("4iQ", pid, parents[0], tid, parents[1], ts if own_ts is None else own_ts)
        return self._side_band(EXIT, 0, payload, pid, tid, ts=ts, **times)

    def switch(
        self, pid: int, tid: int, ts: int | None = None, *, out: bool, preempt: bool = False, **times: Any
    ) -> Self:
        """SWITCH: the thread of the record's trailer leaves its CPU or gets one."""
        return self._side_band(SWITCH, _switch_misc(out, preempt), b"", pid, tid, ts=ts, **times)

    def switch_cpu_wide(
        self,
        pid: int,
        tid: int,
        other_pid: int,
        other_tid: int,
        ts: int | None = None,
        *,
        out: bool,
        preempt: bool = False,
        **times: Any,
    ) -> Self:
        """SWITCH_CPU_WIDE: the same, and who comes next (`out`) or was there before."""
        payload = self._pack("ii", other_pid, other_tid)
        return self._side_band(SWITCH_CPU_WIDE, _switch_misc(out, preempt), payload, pid, tid, ts=ts, **times)

    def callchain_deferred(
        self, pid: int, tid: int, cookie: int, chain: Sequence[int], ts: int | None = None, *, n: int | None = None
    ) -> Self:
        """CALLCHAIN_DEFERRED: the user's part of this thread's samples with the cookie; n states a wrong length."""
        payload = self._u64(cookie, len(chain) if n is None else n, *chain)
        return self._side_band(CALLCHAIN_DEFERRED, 0, payload, pid, tid, ts=ts)

    def lost(self, number: int, *, event: int = 0, **times: Any) -> Self:
        """LOST: so many records did not fit into the buffer."""
        return self._side_band(LOST, 0, self._u64(self.events[event].ids[0], number), event=event, **times)

    def lost_samples(self, number: int, *, filtered: bool = False, **times: Any) -> Self:
        """LOST_SAMPLES: so many samples; filtered: on purpose, as misc says (PERF_RECORD_MISC_LOST_SAMPLES_BPF)."""
        return self._side_band(LOST_SAMPLES, filtered << 15, self._u64(number), **times)

    def throttle(self, ts: int | None = None, *, on: bool = True, event: int = 0, **times: Any) -> Self:
        """THROTTLE, or its end."""
        ts = self._time(ts)
        event_id = self.events[event].ids[0]
        payload = self._u64(ts, event_id, event_id)
        return self._side_band(THROTTLE if on else UNTHROTTLE, 0, payload, ts=ts, event=event, **times)

    def ksymbol(
        self, addr: int, length: int, name: str, *, kind: int = 1, unregister: bool = False, **times: Any
    ) -> Self:
        """KSYMBOL: a function that the kernel compiled itself (kind 1: of BPF), or its end."""
        payload = self._pack("QIHH", addr, length, kind, int(unregister)) + _name(name)
        return self._side_band(KSYMBOL, KERNEL_MODE, payload, **times)

    def _side_band(
        self,
        record_type: int,
        misc: int,
        payload: builtins.bytes,
        pid: int = 0,
        tid: int = 0,
        *,
        ts: int | None = None,
        cpu: int = 0,
        event: int = 0,
    ) -> Self:
        """A sideband record of the kernel; sample_id_all puts a trailer at its end. Time 0: synthesized."""
        told = self.events[event]
        ts = self._time(ts)
        event_id = told.ids[min(cpu, len(told.ids) - 1)]
        trailer = {
            "TID": self._pack("ii", pid, tid),
            "TIME": self._u64(ts),
            "ID": self._u64(event_id),
            "STREAM_ID": self._u64(event_id),
            "CPU": self._pack("II", cpu, 0),
            "IDENTIFIER": self._u64(event_id),
        }
        payload += b"".join(data for kind, data in trailer.items() if kind in told.sample_type)
        return self.raw_record(record_type, misc, payload)

    def _time(self, ts: int | None) -> int:
        """The record's time; the synthesized ones (0) leave the clock alone."""
        if ts is None:
            ts = self.now + STEP
        if ts:
            self.now = ts
        return ts

    def _u64(self, *values: int) -> builtins.bytes:
        return self._pack(f"{len(values)}Q", *[value & _U64 for value in values])

    # ---------------------------------------------------------------- records of the tool

    def thread_map(self, *threads: tuple[int, str]) -> Self:
        """THREAD_MAP: [(tid, name)], -1 for all."""
        entries = (self._pack("q16s", tid, name.encode()) for tid, name in threads)
        return self.raw_record(THREAD_MAP, 0, self._u64(len(threads)) + b"".join(entries))

    def stat_config(self, **values: int) -> Self:
        """STAT_CONFIG: aggregation (0: of each processor apart), interval in ms, scale."""
        tags = [(STAT_TAGS.index(name), value) for name, value in values.items()]
        words = [word for tag in tags for word in tag]
        return self.raw_record(STAT_CONFIG, 0, self._u64(len(tags), *words))

    def stat_unit(self, event_id: int, unit: str, scale: float) -> Self:
        """EVENT_UPDATE, twice: the unit, and what a count is multiplied with to be in it."""
        self.raw_record(EVENT_UPDATE, 0, self._u64(0, event_id) + _name(unit))
        return self.raw_record(EVENT_UPDATE, 0, self._u64(1, event_id) + self._pack("d", scale))

    def stat(
        self, event_id: int, value: int, enabled: int = 100, running: int = 100, cpu: int = -1, thread: int = 0
    ) -> Self:
        """STAT: all since the start."""
        counts = self._u64(value, enabled, running)
        return self.raw_record(STAT, 0, self._u64(event_id) + self._pack("ii", cpu, thread) + counts)

    def stat_round(self, ts: int, last: bool = False) -> Self:
        """STAT_ROUND: the counts before it are of this time, in ns since the start."""
        return self.raw_record(STAT_ROUND, 0, self._u64(int(last), ts))

    def raw_record(
        self, record_type: int, misc: int = 0, payload: builtins.bytes = b"", size: int | None = None
    ) -> Self:
        """Any record; `size` states a wrong one."""
        size = 8 + len(payload) if size is None else size
        return self.append(self._pack("IHH", record_type, misc, size) + payload)

    def append(self, data: builtins.bytes) -> Self:
        """Add bytes to the data as they are."""
        into = self._records if self._plain is None else self._plain
        into += data
        return self

    def finished_round(self) -> Self:
        """FINISHED_ROUND: every buffer was read once more."""
        return self.raw_record(FINISHED_ROUND)

    def finished_init(self) -> Self:
        """FINISHED_INIT: what comes from here on was not synthesized."""
        return self.raw_record(FINISHED_INIT)

    def id_index(self) -> Self:
        """ID_INDEX: the CPU of each id of each event."""
        entries = [(id_, cpu, cpu, -1) for event in self.events for cpu, id_ in enumerate(event.ids)]
        return self.raw_record(ID_INDEX, 0, self._u64(len(entries), *[word for entry in entries for word in entry]))

    def auxtrace(self, data: builtins.bytes) -> Self:
        """AUXTRACE: the data follows the record and is not counted in its size."""
        return self.raw_record(AUXTRACE, 0, self._pack("3Q4I", len(data), 0, 0, 0, 0, 0, 0)).append(data)

    def bpf_metadata(self, program: str, *entries: tuple[str, str]) -> Self:
        """BPF_METADATA: what a program of BPF says of itself. char prog_name[16]; u64 nr; char key[64], value[256]"""
        payload = self._pack("16sQ", program.encode(), len(entries))
        payload += b"".join(self._pack("64s256s", key.encode(), value.encode()) for key, value in entries)
        return self.raw_record(BPF_METADATA, 0, payload)

    def begin_compressed(self) -> Self:
        """The records from here to `end_compressed` go into the file's one zstd stream."""
        self._plain = bytearray()
        return self

    def end_compressed(self, at: Sequence[int] = (), *, second_version: bool = False) -> Self:
        """Write COMPRESSED records, cut where the plain records have the bytes `at`: in the middle of one, if so told.

        `second_version` writes COMPRESSED2, which says its size and is padded; perf 6.1 does not know it.
        """
        if self._plain is None:
            raise ValueError("nothing was to be compressed")
        plain, self._plain = builtins.bytes(self._plain), None
        self._zstd = self._zstd or zstandard.ZstdCompressor().compressobj()
        cuts = [0, *at, len(plain)]
        for begin, end in itertools.pairwise(cuts):
            data = self._zstd.compress(plain[begin:end]) + self._zstd.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
            if second_version:
                self.raw_record(COMPRESSED2, 0, _filled(self._u64(len(data)) + data, 8))
            else:
                self.raw_record(COMPRESSED, 0, data)
        return self

    # ---------------------------------------------------------------- features

    def feature(self, **values: Any) -> Self:
        """Header features by name. A string is one; CMDLINE takes a list of them, NRCPUS (available, online), CLOCKID
        a resolution in ns, CLOCK_DATA (clockid, wall clock ns, clock ns), SAMPLE_TIME (first, last), BUILD_ID
        [(pid, build id, path)], PMU_MAPPINGS [(type, name)], STAT None. Bytes are put there as they are."""
        for name, value in values.items():
            self._features[FEATURES[name]] = self._feature(name, value)
        return self

    def _feature(self, name: str, value: Any) -> builtins.bytes:
        if value is None:
            return b""
        if isinstance(value, builtins.bytes):
            return value
        if isinstance(value, str):
            return self._string(value)
        if name == "CMDLINE":
            return self._pack("I", len(value)) + b"".join(self._string(argument) for argument in value)
        if name == "NRCPUS":
            return self._pack("II", *value)
        if name == "CLOCK_DATA":
            return self._pack("IIQQ", 1, *value)
        if name == "COMPRESSED":
            return self._pack("5I", *value)
        if name == "PMU_MAPPINGS":
            rows = [self._pack("I", kind) + self._string(pmu) for kind, pmu in value]
            return self._pack("I", len(rows)) + b"".join(rows)
        if name == "BUILD_ID":
            return b"".join(self._build_id(*entry) for entry in value)
        if name in ("TOTAL_MEM", "CLOCKID", "DIR_FORMAT"):
            return self._u64(value)
        if name == "SAMPLE_TIME":
            return self._u64(*value)
        raise ValueError(f"{name} takes bytes")

    def _build_id(self, pid: int, build_id: builtins.bytes, path: str, misc: int = USER_MODE) -> builtins.bytes:
        payload = self._pack("i20sB3x", pid, build_id, len(build_id)) + _name(path, 64)
        return self._record(HEADER_BUILD_ID, misc | BUILD_ID_SIZE, payload)

    def _string(self, text: str) -> builtins.bytes:
        """A perf_header_string: its length counts the padding."""
        data = _name(text, 64)
        return self._pack("I", len(data)) + data

    def _automatic_features(self) -> dict[int, builtins.bytes]:
        """EVENT_DESC; TRACING_DATA where there are tracepoints, COMPRESSED where there is a zstd stream."""
        rows = self._pack("II", len(self.events), self.attr_bytes)
        for event in self.events:
            rows += event.attr + self._pack("I", len(event.ids)) + self._string(event.name) + self._u64(*event.ids)
        features = {FEATURES["EVENT_DESC"]: rows}
        if any(event.print_fmt for event in self.events):
            features[FEATURES["TRACING_DATA"]] = self._tracing_data()
        if self._zstd is not None:
            version, zstd, level, ratio, mmap_bytes = 1, 1, 1, 3, 1 << 20
            features[FEATURES["COMPRESSED"]] = self._pack("5I", version, zstd, level, ratio, mmap_bytes)
        return features

    # ---------------------------------------------------------------- tracepoints

    def _tracing_data(self) -> builtins.bytes:
        """The beginning of a trace.dat: how pages of ftrace look, and the format text of each event."""

        def file(text: str) -> builtins.bytes:
            return self._pack("Q", len(text)) + text.encode()

        header_page = (
            "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
            "\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n"
            "\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n"
            "\tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n"
        )
        systems: dict[str, list[Event]] = {}
        for event in self.events:
            if event.print_fmt:
                systems.setdefault(event.name.partition(":")[0], []).append(event)
        long_bytes, page_bytes, no_ftrace_files, no_kallsyms, no_printk, no_cmdlines = 8, 4096, 0, 0, 0, 0
        out = b"\x17\x08\x44tracing0.6\0" + self._pack("BBI", self._order == ">", long_bytes, page_bytes)
        out += b"header_page\0" + file(header_page) + b"header_event\0" + file("# compressed entry header\n")
        out += self._pack("II", no_ftrace_files, len(systems))
        for system, events in systems.items():
            out += _nul(system) + self._pack("I", len(events)) + b"".join(file(_format_text(event)) for event in events)
        return out + self._pack("IIQ", no_kallsyms, no_printk, no_cmdlines)

    def _tracepoint_data(self, event: Event, pid: int, fields: Mapping[str, Any]) -> builtins.bytes:
        """The raw data: common fields, the event's own at their places, then what the __data_loc fields point to."""
        values = {"common_type": event.config, "common_pid": pid, **fields}
        places = _places(event.fields)
        size = max(offset + length for *_, offset, length in places)
        out, tail = bytearray(size), b""
        for declaration, code, offset, _ in places:
            value = values.get(_field_name(declaration), b"" if code == "16s" or code == "loc" else 0)
            if isinstance(value, str):
                value = value.encode()
            if code == "loc":
                value += b"\0"
                out[offset : offset + 4] = self._pack("I", len(value) << 16 | size + len(tail))
                tail += value
            else:
                struct.pack_into(self._order + code, out, offset, value)
        return builtins.bytes(out) + tail


def _is_marker(address: int) -> bool:
    """Is this word of a callchain a CONTEXT_*?"""
    return address & _U64 >= _U64 - 4094


def _bits(names: Sequence[str] | frozenset[str], table: Sequence[str]) -> int:
    return sum(1 << table.index(name) for name in names)


def _switch_misc(out: bool, preempt: bool) -> int:
    return (SWITCH_OUT if out else 0) | (SWITCH_OUT_PREEMPT if preempt else 0)


def _filled(data: bytes, to: int) -> bytes:
    return data + bytes(-len(data) % to)


def _nul(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape") + b"\0"


def _name(text: str, to: int = 8) -> bytes:
    return _filled(_nul(text), to)


def _field_name(declaration: str) -> str:
    """`prev_comm` of `char prev_comm[16]`."""
    return declaration.split()[-1].partition("[")[0]


def _places(fields: Sequence[tuple[str, str]]) -> list[tuple[str, str, int, int]]:
    """(declaration, struct code, offset, size) of the common fields and the event's, aligned as C aligns them."""
    places, offset = [], 0
    for declaration, code in (*COMMON_FIELDS, *fields):
        size = 4 if code == "loc" else struct.calcsize("=" + code)
        align = 1 if code.endswith("s") else size
        offset += -offset % align
        places.append((declaration, code, offset, size))
        offset += size
    return places


def _format_text(event: Event) -> str:
    """What the kernel says in events/SYSTEM/NAME/format."""
    lines = []
    for number, (declaration, code, offset, size) in enumerate(_places(event.fields)):
        data_loc = "__data_loc " if code == "loc" else ""
        signed = int(code.islower() and code != "loc" and not code.endswith("s"))
        lines.append(f"\tfield:{data_loc}{declaration};\toffset:{offset};\tsize:{size};\tsigned:{signed};\n")
        if number == len(COMMON_FIELDS) - 1:
            lines.append("\n")
    name = event.name.partition(":")[2]
    return f"name: {name}\nID: {event.config}\nformat:\n{''.join(lines)}\nprint fmt: {event.print_fmt}\n"
