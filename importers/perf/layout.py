"""Layout of perf.data: the file's header, perf_event_attr and the records, in the words of linux/perf_event.h,
perf.data-file-format.txt and perf's header.h (Linux 6.18).

Fields have the byte order of the machine that recorded. A record is perf_event_header (u32 type, u16 misc, u16 size)
and its body; size counts both.
"""

from __future__ import annotations

import struct
from enum import IntEnum, IntFlag
from typing import NamedTuple

from traceferry.common.errors import FormatError
from traceferry.importers.perf.magic import MAGIC, MAGIC_BIG

# ---------------------------------------------------------------- the file's header

PIPE_HEADER_SIZE = 16  # u64 magic, u64 size
FILE_HEADER_SIZE = 104  # and u64 attr_size; sections attrs, data, event_types; 256 bits adds_features
OLD_HEADER_SIZE = 72  # without the bits, which the first versions did not have
FEATURES_AT = 72
SECTION_SIZE = 16


class Section(NamedTuple):
    """perf_file_section: u64 offset, u64 size"""

    offset: int
    size: int

    @property
    def end(self) -> int:
        return self.offset + self.size


class Header(NamedTuple):
    """perf_file_header or perf_pipe_file_header; features: the numbers of the set bits, none in a pipe."""

    big: bool
    pipe: bool
    size: int
    attr_size: int
    attrs: Section
    data: Section
    features: tuple[int, ...]

    @property
    def order(self) -> str:
        """Returns the byte order for struct and NumPy formats."""
        return ">" if self.big else "<"


def read_header(data: memoryview) -> Header:
    """Reads the header. Raises FormatError where there is no complete one of a known kind."""
    where = "perf_file_header"
    if bytes(data[:8]) not in (MAGIC, MAGIC_BIG):
        raise FormatError("not a perf.data file: the magic number is missing", 0, where)
    if len(data) < PIPE_HEADER_SIZE:
        raise FormatError(f"{len(data)} bytes are too few for a header", 0, where)
    big = bytes(data[:8]) == MAGIC_BIG
    order = ">" if big else "<"
    (size,) = struct.unpack_from(order + "Q", data, 8)
    if size == PIPE_HEADER_SIZE:
        return Header(big, True, size, 0, Section(0, 0), Section(PIPE_HEADER_SIZE, 0), ())
    if size not in (FILE_HEADER_SIZE, OLD_HEADER_SIZE):
        raise FormatError(f"a header of {size} bytes is not supported", 8, where)
    if len(data) < size:
        raise FormatError(f"{len(data)} bytes are too few for a header of {size}", 0, where)
    attr_size, *sections = struct.unpack_from(order + "Q4Q", data, 16)
    features = _set_bits(bytes(data[FEATURES_AT:FILE_HEADER_SIZE]), big) if size == FILE_HEADER_SIZE else ()
    return Header(big, False, size, attr_size, Section(*sections[:2]), Section(*sections[2:]), features)


def _set_bits(bitmap: bytes, big: bool) -> tuple[int, ...]:
    """Returns the bits that are set in an array of unsigned long: of 64 bits, or of 32 on such machines, which differs
    where they are big-endian. Every perf sets HOSTNAME, which tells."""
    order = ">" if big else "<"
    bits = _bits_of(struct.unpack(order + "4Q", bitmap), 64)
    if Feature.HOSTNAME not in bits:
        narrow = _bits_of(struct.unpack(order + "8I", bitmap), 32)
        bits = narrow if Feature.HOSTNAME in narrow else bits
    return bits


def _bits_of(words: tuple[int, ...], width: int) -> tuple[int, ...]:
    return tuple(nth * width + bit for nth, word in enumerate(words) for bit in range(width) if word >> bit & 1)


# Sections after the data, in the order of their numbers, which are from 1 on. In pipes they are HEADER_FEATURE records.
Feature = IntEnum(
    "Feature",
    "TRACING_DATA BUILD_ID HOSTNAME OSRELEASE VERSION ARCH NRCPUS CPUDESC CPUID TOTAL_MEM CMDLINE "
    "EVENT_DESC CPU_TOPOLOGY NUMA_TOPOLOGY BRANCH_STACK PMU_MAPPINGS GROUP_DESC AUXTRACE STAT CACHE "
    "SAMPLE_TIME MEM_TOPOLOGY CLOCKID DIR_FORMAT BPF_PROG_INFO BPF_BTF COMPRESSED CPU_PMU_CAPS CLOCK_DATA "
    "HYBRID_TOPOLOGY PMU_CAPS CPU_DOMAIN_INFO E_MACHINE CLN_SIZE",
)


# Those of Android's simpleperf (system/extras/simpleperf/record_file_format.h).
AndroidFeature = IntEnum(
    "AndroidFeature", "FILE META_INFO DEBUG_UNWIND DEBUG_UNWIND_FILE FILE2 ETM_BRANCH_LIST INIT_MAP", start=128
)


def feature_name(number: int) -> str:
    for names, prefix in ((Feature, ""), (AndroidFeature, "simpleperf ")):
        if number in names.__members__.values():
            return f"{prefix}{names(number).name}"
    return f"feature {number}"


# ---------------------------------------------------------------- perf_event_attr


# attr.type; higher numbers are PMUs, which PMU_MAPPINGS names.
AttrType = IntEnum("AttrType", "HARDWARE SOFTWARE TRACEPOINT HW_CACHE RAW BREAKPOINT", start=0)

# The flags of attr in their order. Two bits of it are the number precise_ip.
FLAGS = (
    "disabled", "inherit", "pinned", "exclusive", "exclude_user", "exclude_kernel", "exclude_hv", "exclude_idle",
    "mmap", "comm", "freq", "inherit_stat", "enable_on_exec", "task", "watermark", "", "", "mmap_data",
    "sample_id_all", "exclude_host", "exclude_guest", "exclude_callchain_kernel", "exclude_callchain_user", "mmap2",
    "comm_exec", "use_clockid", "context_switch", "write_backward", "namespaces", "ksymbol", "bpf_event",
    "aux_output", "cgroup", "text_poke", "build_id", "inherit_thread", "remove_on_exec", "sigtrap", "defer_callchain",
    "defer_output",
)  # fmt: skip
PRECISE_AT = 15


# attr.read_format, from bit 0 on: GROUP is u64 nr, times, nr times (value, id, lost); else value, times, id, lost.
ReadFormat = IntFlag("ReadFormat", "TOTAL_TIME_ENABLED TOTAL_TIME_RUNNING ID GROUP LOST")

# PERF_SAMPLE_REGS_ABI_SIMD: u16 nr_vectors, vector_qwords, nr_pred, pred_qwords and so many words follow the registers.
ABI_SIMD = 4

# attr.branch_sample_type: PERF_SAMPLE_BRANCH_*.
BRANCH_ANY = 1 << 3
BRANCH_CALL_STACK = 1 << 11
BRANCH_HW_INDEX = 1 << 17
BRANCH_COUNTERS = 1 << 19

ATTR_SIZE_VER0 = 64
# What Attr has of it; perf_event_attr has grown at its end, and what a recorder did not know is 0.
ATTR_FIELDS = "I4x5Q4xIQ8xQQ4xiQ"


class Attr(NamedTuple):
    """perf_event_attr, and what its `bits` say: the names of the flags that are set, and precise_ip. sample_period: or
    sample_freq."""

    type: int
    config: int
    sample_period: int
    sample_type: int
    read_format: int
    bits: int
    bp_type: int
    config1: int
    branch_sample_type: int
    sample_regs_user: int
    clockid: int
    sample_regs_intr: int
    flags: tuple[str, ...]
    precise_ip: int


def read_attr(data: memoryview, at: int, size: int, big: bool) -> Attr:
    """Reads an attr of `size` bytes, all of which are there: 64 at least."""
    layout = struct.Struct((">" if big else "<") + ATTR_FIELDS)
    fields = layout.unpack(bytes(data[at : at + min(size, layout.size)]).ljust(layout.size, b"\0"))
    bits = fields[Attr._fields.index("bits")]
    flags = tuple(name for nth, name in enumerate(FLAGS) if name and _bit_field(bits, nth, 1, big))
    return Attr._make((*fields, flags, _bit_field(bits, PRECISE_AT, 2, big)))


def _bit_field(bits: int, nth: int, width: int, big: bool) -> int:
    """Bit fields are laid out from the most significant bit on big-endian machines."""
    shift = 64 - nth - width if big else nth
    return bits >> shift & ((1 << width) - 1)


# ---------------------------------------------------------------- records


class Body(NamedTuple):
    """The fields of a record of fixed size, with their names; text: that of a NUL-terminated string which follows them,
    padded to 8, "" for none. pid and tid are unsigned in the documents, and -1 in files."""

    fields: str
    names: str
    text: str = ""


class RecordType(IntEnum):
    """PERF_RECORD_*: below 64 the kernel's (perf makes some like them), from 64 on perf's own. body: how they begin."""

    body: Body | None

    def __new__(cls, number: int, body: Body | None = None) -> RecordType:
        member = int.__new__(cls, number)
        member._value_, member.body = number, body
        return member

    MMAP = 1, Body("iiQQQ", "pid tid addr len pgoff", "filename")
    LOST = 2, Body("QQ", "id lost")
    COMM = 3, Body("ii", "pid tid", "comm")
    EXIT = 4, Body("iiiiQ", "pid ppid tid ptid time")
    THROTTLE = 5, Body("QQQ", "time id stream_id")
    UNTHROTTLE = 6, Body("QQQ", "time id stream_id")
    FORK = 7, Body("iiiiQ", "pid ppid tid ptid time")
    READ = 8, Body("ii", "pid tid")  # read_format
    SAMPLE = 9
    # inode: u32 maj, min; u64 ino, ino_generation; or the build id.
    MMAP2 = 10, Body("iiQQQ24sII", "pid tid addr len pgoff inode prot flags", "filename")
    AUX = 11, Body("QQQ", "aux_offset aux_size flags")
    ITRACE_START = 12, Body("ii", "pid tid")
    LOST_SAMPLES = 13, Body("Q", "lost")
    SWITCH = 14, Body("", "")
    SWITCH_CPU_WIDE = 15, Body("ii", "next_prev_pid next_prev_tid")
    NAMESPACES = 16, Body("iiQ", "pid tid nr_namespaces")  # {u64 dev, inode}[nr]
    KSYMBOL = 17, Body("QIHH", "addr len ksym_type flags", "name")
    BPF_EVENT = 18, Body("HHI8s", "type flags id tag")
    CGROUP = 19, Body("Q", "id", "path")
    TEXT_POKE = 20, Body("QHH", "addr old_len new_len")  # bytes
    AUX_OUTPUT_HW_ID = 21, Body("Q", "hw_id")
    CALLCHAIN_DEFERRED = 22, Body("QQ", "cookie nr")  # u64 ips[nr]
    HEADER_ATTR = 64, Body("IIQ", "type attr_size config")  # the rest of attr; u64 ids[]
    HEADER_EVENT_TYPE = 65
    HEADER_TRACING_DATA = 66  # u32 size; after the record: so many bytes, padded to 8
    HEADER_BUILD_ID = 67  # i32 pid; u8 build_id[20], size, 3 pad; filename
    FINISHED_ROUND = 68
    ID_INDEX = 69, Body("Q", "nr")  # {u64 id, idx, cpu, tid}[nr]
    AUXTRACE_INFO = 70
    AUXTRACE = 71, Body("QQQIII", "size offset reference idx tid cpu")  # u32 pad; after the record: size bytes
    AUXTRACE_ERROR = 72
    THREAD_MAP = 73, Body("Q", "nr")  # {u64 pid; char comm[16]}[nr]
    CPU_MAP = 74
    STAT_CONFIG = 75, Body("Q", "nr")  # {u64 tag, value}[nr]
    STAT = 76, Body("QiiQQQ", "id cpu thread val ena run")  # since the start
    STAT_ROUND = 77, Body("QQ", "type time")  # 0 of an interval, 1 the last; ns since the start
    EVENT_UPDATE = 78, Body("QQ", "type id")  # what the type says
    TIME_CONV = 79, Body("QQQ", "time_shift time_mult time_zero")  # more behind them
    HEADER_FEATURE = 80  # u64 feature; what its section would hold
    COMPRESSED = 81  # the next bytes of a zstd stream
    FINISHED_INIT = 82
    COMPRESSED2 = 83  # u64 data_size; the next bytes of a zstd stream, padded
    BPF_METADATA = 84
    SCHEDSTAT_CPU = 85
    SCHEDSTAT_DOMAIN = 86


RECORD_HEADER_SIZE = 8
USER_TYPES_FROM = 64


def record_name(number: int) -> str:
    return RecordType(number).name if number in RecordType.__members__.values() else f"type {number}"


# header.misc
MISC_CPUMODE_MASK = 7  # 0 unknown, 1 kernel, 2 user, 3 hypervisor, 4 guest kernel, 5 guest user
KERNEL_MODE, USER_MODE = 1, 2
MISC_MMAP_DATA = MISC_COMM_EXEC = MISC_FORK_EXEC = MISC_SWITCH_OUT = 1 << 13
MISC_SWITCH_OUT_PREEMPT = MISC_MMAP_BUILD_ID = 1 << 14
MISC_LOST_SAMPLES_BPF = 1 << 15  # perf's filter (perf record --filter, in BPF) left them out
MISC_BUILD_ID_SIZE = 1 << 15  # HEADER_BUILD_ID: the byte after the id says how long it is

PROT_EXEC = 4
MAP_SHARED = 1
KSYMBOL_UNREGISTER = 1
BUILD_ID_SIZE = 20

# EVENT_UPDATE types
UPDATE_UNIT, UPDATE_SCALE, UPDATE_NAME, UPDATE_CPUS = range(4)

# STAT_CONFIG tags
STAT_CONFIG_AGGREGATION = 0

# Entries of a callchain that are not addresses: they say what the entries after them are.
CONTEXTS = {
    (1 << 64) - 32: "hv", (1 << 64) - 128: "kernel", (1 << 64) - 512: "user", (1 << 64) - 640: "user-deferred",
    (1 << 64) - 2048: "guest", (1 << 64) - 2176: "guest-kernel", (1 << 64) - 2560: "guest-user",
}  # fmt: skip
