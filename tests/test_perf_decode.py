"""perf.data: bytes into columns. Real recordings against what `perf` 6.1 says about them; everything else from bytes
that are made here, field by field."""

import struct
from collections.abc import Sequence
from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np
import pytest
from conftest import cuts, shared
from support import for_each

from traceferry.common.errors import FormatError
from traceferry.files.source import open_source
from traceferry.importers.perf import sniff
from traceferry.importers.perf._records import SampleType
from traceferry.importers.perf.decode import read
from traceferry.importers.perf.layout import FLAGS
from traceferry.importers.perf.recording import Comm, Exit, Fork, Ksymbol, Mmap, Recording
from traceferry.importers.perf.records import records
from traceferry.importers.perf.tracepoints import decode_field, parse_format
from traceferry.timeline.ticks import Counter

ORDERS = ["<", ">"]
both_orders = for_each("order", {"little": "<", "big": ">"})
ALL_BITS = [bit for bit in SampleType if bit != SampleType.WEIGHT_STRUCT]
KERNEL, USER = (1 << 64) - 128, (1 << 64) - 512


# ---------------------------------------------------------------- recordings


class Facts(NamedTuple):
    """As `perf report --stats` and `perf script -D` print them: periods and callchain entries are sums."""

    records: int
    samples: int
    first_ts: int
    last_ts: int
    period: int
    chain: int
    in_user_mode: int
    comms: int
    forks: int
    exits: int
    maps: int
    switches: int


RECORDINGS = {
    "bigjit": Facts(5186, 5136, 1365169616436, 1374558673676, 5151454224, 159120, 4272, 9, 6, 7, 15, 0),
    "bun-src": Facts(1899, 1856, 1321396790982, 1325425734781, 1861584704, 43815, 1747, 9, 7, 8, 10, 0),
    "erl25": Facts(1346, 1221, 1256073358143, 1260739522380, 1224673989, 3611, 1159, 27, 24, 24, 42, 0),
    "java17": Facts(2463, 2371, 1205681931557, 1211768381095, 2378134339, 36419, 2183, 22, 21, 22, 20, 0),
    "lli19mc": Facts(1159, 1126, 1384919698966, 1389068283432, 1129388134, 2420, 1104, 2, 0, 1, 23, 0),
    "node24": Facts(16004, 15946, 844278405544, 852387922591, 7984975446, 337944, 15330, 9, 6, 7, 17, 0),
    "node24-switch": Facts(5223, 2739, 913819537171, 917948227171, 2747241651, 0, 2654, 12, 9, 10, 21, 2425),
    "php82": Facts(1210, 1156, 1218752798924, 1222821573870, 1159478404, 3326, 1132, 2, 0, 1, 44, 0),
    "spidermonkey": Facts(3240, 1591, 1390757627939, 1396638913556, 1595787319, 34832, 1305, 5, 4, 5, 1627, 0),
    "wasmtime": Facts(1215, 1183, 1262522713293, 1266804799254, 1186559647, 9009, 1160, 2, 2, 3, 18, 0),
}


def recorded(name: str) -> memoryview:
    path = shared(f"captures/jit/{name}")
    return open_source(str(next(path.glob("perf.data*")))).data


@pytest.mark.parametrize("name", RECORDINGS)
def test_recordings(name: str) -> None:
    found = read(recorded(name))
    samples = found.samples
    of = lambda kind: sum(isinstance(task, kind) for task in found.tasks)  # noqa: E731
    assert RECORDINGS[name] == (
        found.n_records, len(samples), samples.ts[0], samples.ts[-1], samples.period.sum(), samples.chain_n.sum(),
        np.count_nonzero(samples.cpumode == 2), of(Comm), of(Fork), of(Exit), len(found.maps), len(found.switches),
    )  # fmt: skip
    assert found.problems == []
    assert (found.byte_order, found.mode) == ("little", "file")
    assert (np.diff(samples.ts) >= 0).all()


def test_a_recording_in_detail() -> None:
    """As `perf script -D`, `perf report --header-only` and `perf buildid-list` print it."""
    found = read(recorded("node24"))
    (event,) = found.events
    samples, features = found.samples, found.features
    first = samples.chain[samples.chain_start[0] :][: samples.chain_n[0]].tolist()
    assert (samples.offset[0], samples.pid[0], samples.tid[0], samples.period[0]) == (0x4618, 27512, 27512, 500751)
    assert (samples.ip[0], samples.cpumode[0], len(first)) == (0xFFFFFFFF82203249, 1, 15)
    assert first[:3] == [KERNEL, 0xFFFFFFFF82203249, 0xFFFFFFFF815A337B]
    assert (samples.cpu[0], samples.addr[0], samples.raw_at[0], samples.user_at[0]) == (-1, 0, -1, -1)
    assert (event.name, event.ids, event.is_freq, event.attr.sample_period) == ("cpu-clock", (146, 147), True, 1997)
    assert event.attr.flags == (
        "disabled", "inherit", "mmap", "comm", "freq", "enable_on_exec", "task", "sample_id_all", "exclude_guest",
        "mmap2", "comm_exec", "use_clockid", "ksymbol", "bpf_event",
    )  # fmt: skip
    assert (event.use_clockid, event.attr.clockid) == (True, 1)
    assert features.clock_data == (1, 1795194471180318000, 844229450789)
    assert (features.hostname, features.arch, features.version) == ("vm", "x86_64", "6.1.192")
    assert (features.n_cpus_online, features.total_mem) == (2, 24684084 * 1024)
    assert features.cmdline[:4] == ("/usr/bin/perf", "record", "-F", "1997")
    node = "/home/dev/sample/npm/node_modules/node/bin/node"
    assert features.build_ids[node] == "bd05d6407047594fc3d31dd4ed4a37fe48c01f93"
    (dump,) = (m for m in found.maps if m.path.endswith(".dump"))
    assert (dump.ts, dump.pid, dump.start, dump.length) == (844351679827, 27512, 0x7F9065050000, 0x1000)
    assert (dump.path, dump.is_exec) == ("/home/dev/sample/node24/jit-27512.dump", True)
    assert found.maps[0].pid == -1
    assert found.maps[0].is_exec


def test_context_switches() -> None:
    """As `perf script -D` prints them."""
    switches = read(recorded("node24-switch")).switches
    assert switches.ts[:3].tolist() == [913819952277, 913823961807, 913827955263]
    assert switches.out[:3].tolist() == [True, False, True]
    assert switches.preempt[:3].tolist() == [True, False, True]


@pytest.mark.large
def test_a_million_samples() -> None:
    samples = read(recorded("bigfp")).samples
    assert (len(samples), samples.ts[0], samples.ts[-1]) == (1024357, 1528084576568, 1603750819562)
    assert (samples.tid[0], samples.ip[0], samples.ip[-1]) == (22701, 0xFFFFFFFF81638499, 0xFFFFFFFF8130F775)


# ---------------------------------------------------------------- bytes


def bits(order: str, value: int, width: int, at: int) -> int:
    """A bit field of a u64 as C lays it out."""
    return value << (64 - width - at if order == ">" else at)


def attr(
    order: str = "<",
    sample_type: int = SampleType.IP | SampleType.TID | SampleType.TIME,
    flags: Sequence[str] = ("sample_id_all",),
    *,
    kind: int = 1,
    config: int = 0,
    period: int = 1000,
    read_format: int = 0,
    size: int = 128,
    precise_ip: int = 0,
    branch: int = 0,
    regs_user: int = 0,
    regs_intr: int = 0,
    clockid: int = 0,
) -> bytes:
    word = sum(bits(order, 1, 1, FLAGS.index(flag)) for flag in flags) + bits(order, precise_ip, 2, 15)
    whole = struct.pack(order + "II5Q", kind, size, config, period, sample_type, read_format, word)
    whole += struct.pack(order + "II4Q", 0, 0, 0, 0, branch, regs_user)
    whole += struct.pack(order + "IiQ", 8192, clockid, regs_intr)
    return whole.ljust(size, b"\0")[:size]


def record(order: str, kind: int, body: bytes = b"", misc: int = 0, after: bytes = b"") -> bytes:
    return struct.pack(order + "IHH", kind, misc, 8 + len(body)) + body + after


def sample(order: str, body: bytes, misc: int = 2) -> bytes:
    return record(order, 9, body, misc)


def plain_sample(order: str, ts: int, ip: int = 0x1000, pid: int = 7, tid: int = 8) -> bytes:
    """Of the event that `attr` makes."""
    return sample(order, struct.pack(order + "QIIQ", ip, pid, tid, ts))


def text(value: str) -> bytes:
    whole = value.encode() + b"\0"
    return whole.ljust(-(-len(whole) // 8) * 8, b"\0")


def string(order: str, value: str) -> bytes:
    """perf_header_string"""
    return struct.pack(order + "I", 64) + value.encode().ljust(64, b"\0")


def file(
    order: str,
    data: bytes,
    attrs: Sequence[bytes] = (),
    ids: Sequence[Sequence[int]] = (),
    features: dict[int, bytes] | None = None,
    *,
    data_size: int | None = None,
) -> bytes:
    """A file: header, ids, attrs, data, features."""
    attrs = attrs or [attr(order)]
    ids = ids or [()] * len(attrs)
    features = {} if features is None else features
    head, at = b"", 104
    sections = []
    for numbers in ids:
        sections.append((at + len(head), 8 * len(numbers)))
        head += struct.pack(f"{order}{len(numbers)}Q", *numbers)
    attrs_at = at + len(head)
    for one, section in zip(attrs, sections, strict=True):
        head += one + struct.pack(order + "QQ", *section)
    data_at = at + len(head)
    entry = len(attrs[0]) + 16
    header = b"PERFILE2" if order == "<" else b"2ELIFREP"
    header += struct.pack(order + "QQ", 104, entry)
    header += struct.pack(order + "6Q", attrs_at, entry * len(attrs), data_at, 0, 0, 0)
    header = header[:48] + struct.pack(order + "Q", len(data) if data_size is None else data_size) + header[56:]
    bitmap = sum(1 << number for number in features)
    header += struct.pack(order + "4Q", *(bitmap >> 64 * i & (1 << 64) - 1 for i in range(4)))
    end = data_at + len(data) + 16 * len(features)
    table, tail = b"", b""
    for _, content in sorted(features.items()):
        table += struct.pack(order + "QQ", end + len(tail), len(content))
        tail += content
    return header + head + data + table + tail


def pipe(order: str, data: bytes, *attrs: bytes) -> bytes:
    header = (b"PERFILE2" if order == "<" else b"2ELIFREP") + struct.pack(order + "Q", 16)
    return header + b"".join(record(order, 64, one) for one in attrs or [attr(order)]) + data


def opened(data: bytes, *extra: tuple[str, bytes]) -> Recording:
    return read(memoryview(data), [(name, memoryview(part)) for name, part in extra])


def kinds(found: Recording) -> dict[str, int]:
    return {problem.kind: problem.count for problem in found.problems}


def chain_of(found: Recording, row: int = 0) -> list[int]:
    samples = found.samples
    return list(map(int, samples.chain[samples.chain_start[row] :][: samples.chain_n[row]]))


# ---------------------------------------------------------------- samples


def field(order: str, bit: SampleType) -> bytes:
    """What a sample holds for this bit; the numbers are told apart by their bit."""
    number = 0x1000 + int(bit)
    q = lambda *values: struct.pack(f"{order}{len(values)}Q", *values)  # noqa: E731
    match bit:
        case SampleType.TID | SampleType.CPU:
            return struct.pack(order + "II", number, number + 1)
        case SampleType.READ:
            return q(5, 6)  # value, id
        case SampleType.CALLCHAIN:
            return q(3, KERNEL, 0xFFFFFFFF81000000, 1 << 63)
        case SampleType.RAW:
            return struct.pack(order + "I", 12) + b"raw payload."
        case SampleType.BRANCH_STACK:
            return q(2, 0xFF, *range(6))  # nr, hw_idx
        case SampleType.REGS_USER:
            return q(2, 1, 2, 3)  # abi
        case SampleType.REGS_INTR:
            return q(2, 1)
        case SampleType.STACK_USER:
            return q(16, 1, 2, 9)  # size, bytes, dyn_size
        case SampleType.AUX:
            return q(8, 1)
        case _:
            return q(number)


FIELD_ORDER = [
    "IDENTIFIER", "IP", "TID", "TIME", "ADDR", "ID", "STREAM_ID", "CPU", "PERIOD", "READ", "CALLCHAIN", "RAW",
    "BRANCH_STACK", "REGS_USER", "STACK_USER", "WEIGHT", "DATA_SRC", "TRANSACTION", "REGS_INTR", "PHYS_ADDR",
    "CGROUP", "DATA_PAGE_SIZE", "CODE_PAGE_SIZE", "AUX",
]  # fmt: skip
assert sorted(FIELD_ORDER) == sorted(str(bit.name) for bit in ALL_BITS)


def attr_of(order: str, sample_type: int) -> bytes:
    return attr(order, sample_type, read_format=4, branch=1 << 17, regs_user=0b1011, regs_intr=0x100)


def body_of(order: str, sample_type: int) -> bytes:
    return b"".join(field(order, SampleType[name]) for name in FIELD_ORDER if SampleType[name] & sample_type)


@both_orders
@pytest.mark.parametrize("bit", ALL_BITS, ids=lambda bit: str(bit.name))
def test_each_bit_takes_its_bytes(order: str, bit: SampleType) -> None:
    """Exactly: with 8 fewer the sample does not fit."""
    body = body_of(order, bit)
    attrs = [attr_of(order, bit)]
    whole = opened(file(order, sample(order, body), attrs))
    assert (len(whole.samples), kinds(whole)) == (1, {} if bit == SampleType.TIME else {"time_unknown": 1})
    short = opened(file(order, sample(order, body[:-8]) + sample(order, body), attrs))
    assert len(short.samples) == 1
    assert kinds(short)["bad_record"] == 1


@both_orders
@pytest.mark.parametrize("bit", ALL_BITS, ids=lambda bit: str(bit.name))
def test_without_each_bit(order: str, bit: SampleType) -> None:
    """All fields but one, at their places."""
    kept = sum(ALL_BITS) - bit
    found = opened(file(order, sample(order, body_of(order, kept)), [attr_of(order, kept)], [[0x1000 + 0x10000]]))
    assert kinds(found) == ({"time_unknown": 1} if bit == SampleType.TIME else {})
    samples = found.samples
    has = lambda name: SampleType[name] != bit  # noqa: E731
    assert samples.ip[0] == (0x1001 if has("IP") else 0)
    assert samples.pid[0] == (0x1002 if has("TID") else -1)
    assert samples.tid[0] == (0x1003 if has("TID") else -1)
    assert samples.ts[0] == (0x1004 if has("TIME") else -1)
    assert samples.addr[0] == (0x1008 if has("ADDR") else 0)
    assert samples.cpu[0] == (0x1080 if has("CPU") else -1)
    assert samples.period[0] == (0x1100 if has("PERIOD") else 1000)
    assert chain_of(found) == ([KERNEL, 0xFFFFFFFF81000000, 1 << 63] if has("CALLCHAIN") else [])
    assert found.raw(0) == (b"raw payload." if has("RAW") else b"")
    assert samples.raw_size[0] == (12 if has("RAW") else -1)
    assert (samples.user_at[0] >= 0) == (has("STACK_USER") and has("REGS_USER"))


@both_orders
@pytest.mark.parametrize("read_format", range(32))
def test_read_formats(order: str, read_format: int) -> None:
    n_times, n_each = (read_format & 3).bit_count(), 1 + (read_format >> 2 & 1) + (read_format >> 4 & 1)
    words = [3] + [0] * n_times + [1] * n_each * 3 if read_format & 8 else [0] * (n_times + n_each)
    kinds_of = SampleType.TIME | SampleType.READ | SampleType.CALLCHAIN
    body = struct.pack(f"{order}{1 + len(words)}Q", 5, *words) + struct.pack(order + "QQ", 1, 0x1234)
    found = opened(file(order, sample(order, body), [attr(order, kinds_of, read_format=read_format)]))
    assert chain_of(found) == [0x1234]
    assert opened(file(order, sample(order, body[:-8]), [attr(order, kinds_of, read_format=read_format)])).problems


@pytest.mark.parametrize(
    ("bit", "words"),
    [
        (SampleType.CALLCHAIN, [1 << 60]),
        (SampleType.CALLCHAIN, [(1 << 64) - 1]),
        (SampleType.CALLCHAIN, [2, 0]),
        (SampleType.READ, [1 << 61]),
        (SampleType.RAW, [(1 << 64) - 1]),
        (SampleType.BRANCH_STACK, [1 << 60, 0]),
        (SampleType.BRANCH_STACK, [(1 << 64) // 24 + 1, 0, 0, 0, 0]),
        (SampleType.REGS_USER, [2, 0]),
        (SampleType.STACK_USER, [1 << 63, 0, 0]),
        (SampleType.STACK_USER, [(1 << 64) - 8, 0, 0]),
        (SampleType.STACK_USER, [16, 0, 0]),
        (SampleType.AUX, [(1 << 64) - 1, 0]),
    ],
    ids=lambda value: str(getattr(value, "name", value)),
)
@both_orders
def test_counts_that_the_record_cannot_hold(order: str, bit: SampleType, words: list[int]) -> None:
    """The record is a problem; the next one is read."""
    event = attr(order, SampleType.TIME | bit, read_format=8, branch=1 << 17, regs_user=7)
    bad = sample(order, struct.pack(f"{order}{1 + len(words)}Q", 5, *words))
    empty = {SampleType.RAW: 1, SampleType.BRANCH_STACK: 2}.get(bit, 1)
    good = sample(order, struct.pack(f"{order}{1 + empty}Q", 6, *[0] * empty))
    found = opened(file(order, bad + good, [event]))
    assert found.samples.ts.tolist() == [6]
    (problem,) = found.problems
    assert (problem.kind, problem.count) == ("bad_record", 1)
    assert problem.offset == found.samples.offset[0] - len(bad)


def test_a_missing_branch_stack_may_lack_hw_idx() -> None:
    event = attr("<", SampleType.TIME | SampleType.BRANCH_STACK | SampleType.REGS_USER, branch=1 << 17, regs_user=1)
    with_it = sample("<", struct.pack("<5Q", 1, 0, 0xFF, 2, 3))
    without = sample("<", struct.pack("<4Q", 2, 0, 2, 3))
    assert opened(file("<", with_it + without, [event])).samples.ts.tolist() == [1, 2]


@both_orders
def test_by_time_and_stable(order: str) -> None:
    data = b"".join(plain_sample(order, ts, ip) for ts, ip in [(5, 1), (3, 2), (5, 3), (3, 4), (1, 5)])
    samples = opened(file(order, data)).samples
    assert samples.ts.tolist() == [1, 3, 3, 5, 5]
    assert samples.ip.tolist() == [5, 2, 4, 1, 3]
    assert np.diff(samples.offset).tolist() == [-96, 64, -96, 64]


def test_callchains_where_numbers_are_not_aligned() -> None:
    """TRACING_DATA records of pipes are 12 bytes long: what follows is read in place no more, but copied."""
    event = attr("<", SampleType.TIME | SampleType.CALLCHAIN)
    chains = b"".join(sample("<", struct.pack(f"<QQ{n}Q", ts, n, *range(n))) for ts, n in [(9, 3), (4, 0), (2, 5)])
    moved = opened(pipe("<", record("<", 66, struct.pack("<I", 5), after=b"12345678") + chains, event))
    for found in (moved, opened(pipe("<", chains, event)), opened(file("<", chains, [event]))):
        assert [chain_of(found, row) for row in range(3)] == [[0, 1, 2, 3, 4], [], [0, 1, 2]]


def test_numbers_that_are_none() -> None:
    kinds_of = SampleType.TID | SampleType.TIME | SampleType.CPU | SampleType.PERIOD
    huge = (1 << 64) - 1
    body = struct.pack("<iiQIIQ", -1, -1, huge, 0xFFFFFFFF, 0, huge)
    found = opened(file("<", sample("<", body), [attr("<", kinds_of)]))
    row = [int(getattr(found.samples, name)[0]) for name in ("pid", "tid", "ts", "cpu", "period")]
    assert row == [-1, -1, -1, -1, 0]
    assert kinds(found) == {"time_unknown": 1}


# ---------------------------------------------------------------- events


@both_orders
@pytest.mark.parametrize("identifier", [True, False])
def test_ids_choose_the_event(order: str, identifier: bool) -> None:
    common = SampleType.TID | SampleType.TIME | (SampleType.IDENTIFIER if identifier else SampleType.ID)
    attrs = [attr(order, common), attr(order, common | SampleType.CPU)]

    def one(number: int, ts: int, cpu: bool) -> bytes:
        body = struct.pack(order + "IIQ", 1, 2, ts)
        ident = struct.pack(order + "Q", number)
        rest = struct.pack(order + "II", 6, 0) if cpu else b""
        return sample(order, (ident + body if identifier else body + ident) + rest)

    comm = struct.pack(order + "II", 1, 2) + text("name")
    trailer = struct.pack(order + "IIQ", 1, 2, 77)
    if identifier:
        trailer += struct.pack(order + "IIQ", 6, 0, 21)
    else:
        trailer += struct.pack(order + "QII", 21, 6, 0)
    # Without IDENTIFIER the id is looked for where the first event has it.
    others = record(order, 3, comm + trailer) if identifier else b""
    data = one(10, 1, False) + one(21, 2, True) + one(0, 3, False) + one(99, 4, False) + others
    found = opened(file(order, data, attrs, [[10, 11], [20, 21]]))
    assert found.samples.event.tolist() == [0, 1, 0]
    assert found.samples.cpu.tolist() == [-1, 6, -1]
    assert [problem.kind for problem in found.problems] == ["unknown_event_id"]
    if identifier:
        assert found.tasks == [Comm(77, 1, 2, "name", False)]


@pytest.mark.parametrize("size", [64, 72, 80, 96, 104, 112, 120, 128, 136])
@both_orders
def test_attr_sizes(order: str, size: int) -> None:
    event = attr(order, flags=("sample_id_all", "use_clockid"), size=size, clockid=4)
    found = opened(file(order, plain_sample(order, 5), [event]))
    assert found.samples.ts.tolist() == [5]
    assert (found.events[0].use_clockid, found.events[0].attr.clockid) == (True, 4 if size >= 96 else 0)
    ids = struct.pack(order + "QQ", 3, 4)
    assert opened(pipe(order, plain_sample(order, 5), event + ids)).events[0].ids == (3, 4)


@both_orders
@pytest.mark.parametrize("flag", [flag for flag in FLAGS if flag])
def test_each_flag(order: str, flag: str) -> None:
    (event,) = opened(file(order, b"", [attr(order, flags=[flag])])).events
    assert (event.attr.flags, event.attr.precise_ip) == ((flag,), 0)


@both_orders
def test_precise_ip(order: str) -> None:
    """perf itself takes 1 for 2, and forgets to swap clockid and prot, where the bytes are of the other order."""
    for value in range(4):
        (event,) = opened(file(order, b"", [attr(order, flags=["freq"], precise_ip=value)])).events
        assert (event.attr.precise_ip, event.attr.flags, event.is_freq) == (value, ("freq",), True)


@pytest.mark.parametrize(
    ("kind", "config", "flags", "name"),
    [
        (0, 0, ["exclude_kernel", "exclude_hv"], "cycles:u"),
        (0, 5, ["exclude_guest"], "branch-misses"),
        (0, 99, ["exclude_guest"], "unknown-hardware"),
        (1, 0, ["exclude_user"], "cpu-clock:kh"),
        (1, 9, [], "dummy:HG"),
        (1, 0, ["exclude_user", "exclude_guest"], "cpu-clock:khH"),
        (2, 300, [], "tracepoint 300"),
        (3, 0x10000, ["exclude_guest"], "L1-dcache-load-misses"),
        (3, 0x00102, ["exclude_guest"], "LLC-stores"),
        (3, 0xFF, ["exclude_guest"], "invalid-cache"),
        (4, 0xC0, ["exclude_guest"], "raw 0xc0"),
        (5, 0, ["exclude_guest"], "mem:0x0:"),
        (9, 1, ["exclude_guest"], "pmu 9/config=0x1/"),
    ],
)
def test_names_that_nobody_wrote(kind: int, config: int, flags: list[str], name: str) -> None:
    (event,) = opened(file("<", b"", [attr("<", flags=flags, kind=kind, config=config)])).events
    assert event.name == name


# ---------------------------------------------------------------- the other records


@both_orders
def test_every_record_of_the_kernel(order: str) -> None:
    event = attr(order, SampleType.TID | SampleType.TIME | SampleType.CPU)
    times = iter(range(100, 200))

    def made(kind: int, body: bytes, misc: int = 0) -> bytes:
        return record(order, kind, body + struct.pack(order + "IIQII", 7, 8, next(times), 3, 0), misc)

    def p(layout: str, *values: Any) -> bytes:
        return struct.pack(order + layout, *values)

    inode = p("B3x20s", 20, bytes(range(20)))
    data = b"".join(
        [
            made(1, p("iIQQQ", -1, 0, 0xFFFFFFFF81000000, 1 << 63, 5) + text("[kernel.kallsyms]_text"), 1),
            made(1, p("IIQQQ", 7, 8, 0x1000, 0x100, 0) + text("//anon"), 2 | 1 << 13),
            made(2, p("QQ", 1, 41)),
            made(3, p("II", 7, 8) + text("näme"), 1 << 13),
            made(4, p("IIIIQ", 7, 1, 8, 1, 5)),
            made(5, p("QQQ", 1, 2, 3)),
            made(6, p("QQQ", 1, 2, 3)),
            made(7, p("IIIIQ", 9, 7, 9, 8, 5)),
            made(8, p("IIQ", 7, 8, 1)),
            made(10, p("IIQQQ", 7, 8, 0x2000, 0x200, 3) + inode + p("II", 5, 2) + text("/bin/x"), 2 | 1 << 14),
            made(10, p("IIQQQIIQQII", 7, 8, 0x3000, 0x300, 4, 1, 2, 3, 4, 3, 2) + text("/data"), 2),
            made(13, p("Q", 1)),
            made(14, b"", 1 << 13 | 1 << 14),
            made(15, p("ii", 70, -1)),
            made(17, p("QIHH", 0xFFFFFFFFA0000000, 64, 1, 1) + text("bpf_prog")),
        ]
    )
    found = opened(file(order, data, [event]))
    assert found.maps == [
        Mmap(100, -1, 0xFFFFFFFF81000000, 1 << 63, 5, "[kernel.kallsyms]_text", True, "", 0),
        Mmap(101, 7, 0x1000, 0x100, 0, "//anon", False, "", 1),
        Mmap(109, 7, 0x2000, 0x200, 3, "/bin/x", True, bytes(range(20)).hex(), 2),
        Mmap(110, 7, 0x3000, 0x300, 4, "/data", False, "", 3, p("IIQ", 1, 2, 3), generation=p("Q", 4)),
    ]
    assert found.tasks == [Comm(103, 7, 8, "näme", True), Exit(104, 7, 8), Fork(107, 9, 7, 9, 8)]
    assert found.n_throttled == 1
    assert found.ksymbols == [Ksymbol(114, 0xFFFFFFFFA0000000, 64, "bpf_prog", True)]
    s = found.switches
    assert list(zip(s.ts, s.pid, s.tid, s.cpu, s.out, s.preempt, strict=True)) == [
        (112, 7, 8, 3, True, True), (113, 7, 8, 3, False, False),
    ]  # fmt: skip
    assert kinds(found) == {"lost_samples": 42}
    assert found.n_records == 15


def test_without_sample_id() -> None:
    """Only forks and exits have a time then."""
    fork = record("<", 7, struct.pack("<IIIIQ", 9, 7, 9, 8, 55))
    comm = record("<", 3, struct.pack("<II", 9, 9) + text("x"))
    found = opened(file("<", fork + comm, [attr("<", flags=())]))
    assert found.tasks == [Comm(0, 9, 9, "x", False), Fork(55, 9, 7, 9, 8)]


@pytest.mark.parametrize("kind", [1, 2, 3, 4, 5, 7, 10, 13, 14, 15, 17])
@both_orders
def test_bodies_that_are_too_short(order: str, kind: int) -> None:
    for size in range(0, 72, 8):
        found = opened(file(order, record(order, kind, bytes(size)) + plain_sample(order, 3)))
        assert len(found.samples) == 1
        assert set(kinds(found)) <= {"bad_record"}


# ---------------------------------------------------------------- the file


@both_orders
def test_features(order: str) -> None:
    def p(layout: str, *values: Any) -> bytes:
        return struct.pack(order + layout, *values)

    build_id = p("IHHi", 0, 2 | 1 << 15, 8 + 4 + 24 + 16, -1) + b"\xab" * 20 + p("B3x", 16) + text("/lib/x.so")
    features = {
        2: build_id,
        3: string(order, "host"),
        4: string(order, "6.18"),
        7: p("II", 8, 4),
        10: p("Q", 100),
        11: p("I", 2) + string(order, "perf") + string(order, "record"),
        12: p("III", 1, 128, 0)[:8] + attr(order) + p("I", 1) + string(order, "my-event:u") + p("Q", 5),
        16: p("I", 1) + p("I", 9) + string(order, "msr"),
        17: p("I", 1) + string(order, "{a,b}") + p("II", 0, 2),
        21: p("QQ", 5, 9),
        23: p("Q", 1),
        29: p("IIQQ", 1, 4, 10**18, 10**12),
        250: b"unknown",
    }
    found = opened(file(order, plain_sample(order, 5), ids=[[5]], features=features))
    f = found.features
    assert (f.hostname, f.os_release, f.n_cpus_online) == ("host", "6.18", 4)
    assert (f.total_mem, f.cmdline, f.pmus) == (102400, ("perf", "record"), {9: "msr"})
    assert f.clock_data == (4, 10**18, 10**12)
    assert f.build_ids == {"/lib/x.so": "ab" * 16}
    assert found.events[0].name == "my-event:u"
    assert (f.version, f.cpudesc) == ("", "")
    assert found.problems == []


def test_features_that_lie() -> None:
    many = struct.pack("<I", 0xFFFFFFFF)
    for number in range(2, 30):
        for content in (b"", many, many * 2, struct.pack("<II", 1, 0xFFFFFFFF) * 20, b"\xff" * 300):
            found = opened(file("<", plain_sample("<", 5), features={3: string("<", "host"), number: content}))
            assert found.samples.ts.tolist() == [5]
            assert set(kinds(found)) <= {"bad_record"}


@both_orders
def test_pipes(order: str) -> None:
    def p(layout: str, *values: Any) -> bytes:
        return struct.pack(order + layout, *values)

    kinds_of = SampleType.IDENTIFIER | SampleType.TIME
    data = b"".join(
        [
            record(order, 80, p("Q", 3) + string(order, "host")),
            record(order, 78, p("QQ", 2, 6) + text("renamed")),
            record(order, 67, p("i", 7) + b"\xcd" * 20 + p("I", 0) + text("/lib/y.so")),
            record(order, 79, p("QQQ", 10, 20, 30)),
            record(order, 71, p("QQQIIII", 11, 0, 0, 0, 0, 0, 0), after=b"\xff" * 11),
            sample(order, p("QQ", 6, 5)),
            sample(order, p("QQ", 5, 4)),
            record(order, 68),
        ]
    )
    found = opened(pipe(order, data, attr(order, kinds_of) + p("Q", 5), attr(order, kinds_of) + p("Q", 6)))
    assert (found.mode, found.byte_order) == ("pipe", "little" if order == "<" else "big")
    assert found.samples.ts.tolist() == [4, 5]
    assert found.samples.event.tolist() == [0, 1]
    assert [event.name for event in found.events] == ["cpu-clock:HG", "renamed"]
    assert found.features.hostname == "host"
    assert found.features.build_ids["/lib/y.so"] == "cd" * 20
    assert found.counter == Counter(10, 20, 30)
    assert found.problems == []


@both_orders
@pytest.mark.parametrize("kind", [81, 83])
@pytest.mark.parametrize("size", [1, 13, 50, 10_000])
def test_compressed(order: str, kind: int, size: int) -> None:
    """One zstd stream over all payloads, and records that lie across them."""
    zstandard = pytest.importorskip("zstandard")
    inner = b"".join(plain_sample(order, 100 - nth, ip=nth) for nth in range(40))
    compressor = zstandard.ZstdCompressor().compressobj()
    packed = b"".join(
        compressor.compress(inner[at : at + 100]) + compressor.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
        for at in range(0, len(inner), 100)
    )
    data = plain_sample(order, 1, ip=77)
    for at in range(0, len(packed), size):
        part = packed[at : at + size]
        body = struct.pack(order + "Q", len(part)) + part + bytes(-len(part) % 8) if kind == 83 else part
        data += record(order, kind, body)
    for whole in (file(order, data), file(order, data, data_size=0), pipe(order, data)):
        found = opened(whole)
        assert found.samples.ip.tolist() == [77, *reversed(range(40))]
        assert set(kinds(found)) <= {"unfinalized"}
        at = int(found.samples.offset[1])
        assert bytes(found.stream[at : at + 8]) == struct.pack(order + "IHH", 9, 2, 32)


@pytest.mark.parametrize("kind", [81, 83])
def test_damaged_compression(kind: int) -> None:
    """What comes before it is kept."""
    zstandard = pytest.importorskip("zstandard")
    packed = zstandard.compress(plain_sample("<", 3))
    data = b""
    for part in (packed, packed, b"no zstd", packed):
        data += record("<", kind, struct.pack("<Q", len(part)) + part if kind == 83 else part)
    found = opened(file("<", data + plain_sample("<", 1)))
    assert found.samples.ts.tolist() == [1, 3, 3]
    assert kinds(found) == {"compression_damaged": 1}


def test_a_stream_that_begins_in_another_file() -> None:
    """perf record --switch-output -z flushes the stream at the end of a file, and goes on with it in the next."""
    zstandard = pytest.importorskip("zstandard")
    compressor, packed = zstandard.ZstdCompressor().compressobj(), []
    for ts in (3, 4):
        packed.append(compressor.compress(plain_sample("<", ts)))
        packed[-1] += compressor.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
    first, second = (opened(file("<", record("<", 81, part) + plain_sample("<", 5))) for part in packed)
    assert (first.samples.ts.tolist(), first.problems) == ([3, 5], [])
    (problem,) = second.problems
    assert second.samples.ts.tolist() == [5]
    assert (problem.kind, problem.detail[:31]) == ("compression_damaged", "it continues another file's, as")


def test_directories() -> None:
    """data and data.N: the latter hold records and nothing else."""
    main = file("<", plain_sample("<", 5, ip=1))
    found = opened(main, ("data.0", plain_sample("<", 3, ip=2)), ("data.1", plain_sample("<", 4, ip=3)[:20]))
    assert found.mode == "directory"
    assert found.samples.ip.tolist() == [2, 1]
    (problem,) = found.problems
    assert (problem.kind, problem.detail[:7]) == ("truncated", "data.1:")


def test_unfinalized() -> None:
    features = {3: string("<", "host")}
    whole = file("<", plain_sample("<", 5) + plain_sample("<", 6), features=features, data_size=0)
    cut = whole[: whole.index(struct.pack("<QIIQ", 0x1000, 7, 8, 6)) + 4]
    found = opened(cut)
    assert (found.samples.ts.tolist(), found.features.hostname) == ([5], "")
    assert kinds(found) == {"truncated": 1, "unfinalized": 1}


def test_a_file_that_is_cut_says_so_once() -> None:
    whole = file("<", plain_sample("<", 5) + plain_sample("<", 6), features={3: string("<", "host")})
    second_at = whole.index(struct.pack("<QIIQ", 0x1000, 7, 8, 6)) - 8
    for size in (second_at, second_at + 4, len(whole) - 80):
        found = opened(whole[:size])
        assert kinds(found) == {"truncated": 1}
        assert found.samples.ts.tolist()[0] == 5


def test_sizes_below_a_header_end_the_stream() -> None:
    for size in range(8):
        bad = struct.pack("<IHH", 9, 0, size)
        found = opened(file("<", plain_sample("<", 5) + bad + plain_sample("<", 6)))
        assert found.samples.ts.tolist() == [5]
        assert kinds(found) == {"bad_record": 1}


def test_unknown_records_are_counted() -> None:
    data = record("<", 40) + record("<", 99, bytes(8)) + record("<", 0xFFFFFFFF) + record("<", 40)
    found = opened(file("<", data + plain_sample("<", 5)))
    assert [(p.kind, p.count, p.detail) for p in found.problems] == [
        ("unknown_record", 2, "type 40"),
        ("unknown_record", 1, "type 99"),
        ("unknown_record", 1, f"type {0x7FFFFFFF}"),
    ]
    assert found.n_records == 5


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"PERFILE3" + bytes(96), "magic"),
        (b"PERFILE2", "too few"),
        (b"PERFILE2" + struct.pack("<Q", 104), "too few"),
        (b"PERFILE2" + struct.pack("<Q", 99) + bytes(99), "is not supported"),
        (b"PERFILE2" + struct.pack("<Q", 16), "no event"),
        (b"PERFILE2" + struct.pack("<Q", 104) + bytes(88), "no event"),
    ],
)
def test_what_cannot_be_read(data: bytes, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        opened(data)


def test_sniff() -> None:
    assert sniff(memoryview(file("<", b"")))
    assert sniff(memoryview(pipe(">", b"")))
    assert not sniff(memoryview(b"PERFILE"))
    assert not sniff(memoryview(b"JiTD" + bytes(100)))


# ---------------------------------------------------------------- tracepoints

FORMAT = """name: sched_switch
ID: 300
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;
\tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;
\tfield:__data_loc char[] where;\toffset:28;\tsize:4;\tsigned:0;
\tfield:__rel_loc char[] there;\toffset:32;\tsize:4;\tsigned:0;
\tfield:unsigned long args[2];\toffset:40;\tsize:16;\tsigned:0;

print fmt: "prev_comm=%s", REC->prev_comm
"""


def payload(order: str) -> bytes:
    """A multiple of 8 less 4, so that the size before it makes it one."""
    fixed = struct.pack(order + "H2xi16siIIxxxxQQ", 300, 9, b"na\0me", -5, 6 << 16 | 56, 4 << 16 | 30, 1, 2)
    return (fixed + b"hello\0" + b"\0\0\0\0" + b"you\0").ljust(76, b"\0")


def tracing_data(order: str) -> bytes:
    def sized(value: bytes) -> bytes:
        return struct.pack(order + "Q", len(value)) + value

    out = b"\x17\x08\x44tracing0.6\0" + bytes([order == ">", 8]) + struct.pack(order + "I", 4096)
    out += b"header_page\0" + sized(b"field: u64 timestamp;") + b"header_event\0" + sized(b"")
    out += struct.pack(order + "I", 1) + sized(b"name: function\nID: 1\n")
    return out + struct.pack(order + "I", 1) + b"sched\0" + struct.pack(order + "I", 1) + sized(FORMAT.encode())


@both_orders
def test_tracepoints(order: str) -> None:
    raw = payload(order)
    one = sample(order, struct.pack(order + "QI", 5, len(raw)) + raw)
    event = attr(order, SampleType.TIME | SampleType.RAW, kind=2, config=300)
    content = tracing_data(order)
    padded = content + bytes(-len(content) % 8)
    piped = record(order, 66, struct.pack(order + "I", len(content)), after=padded)
    for whole in (file(order, one, [event], features={1: content}), pipe(order, piped + one, event)):
        found = opened(whole)
        assert found.problems == []
        assert found.events[0].name == "sched:sched_switch"
        tracepoint = found.events[0].tracepoint
        assert tracepoint is not None
        data, at = np.frombuffer(found.stream, np.uint8), found.samples.raw_at[[0, 0]]
        sizes = np.array([found.samples.raw_size[0], 28])
        assert {field.name: decode_field(field, data, at, sizes, order).tolist() for field in tracepoint.fields} == {
            "prev_comm": ["na", "na"], "prev_pid": [-5, -5], "where": ["hello", ""], "there": ["you", ""],
            "args": ["0x1, 0x2", ""],
        }  # fmt: skip


@pytest.mark.parametrize(
    ("declared", "size", "signed", "raw", "shown"),
    [
        ("unsigned long args[6]", 12, 0, struct.pack("<6H", 1, 2, 3, 4, 5, 255), "0x1, 0x2, 0x3, 0x4, 0x5, 0xff"),
        ("unsigned long args[2]", 8, 0, struct.pack("<2I", 1, 1 << 31), "0x1, 0x80000000"),  # of a 32-bit machine
        ("long sysctl_mem[3]", 24, 1, struct.pack("<3q", 1, -2, 3), "1, -2, 3"),
        ("u32 buf[2]", 8, 0, struct.pack("<2I", 7, 8), "0x7, 0x8"),
        ("int values[N]", 8, 1, struct.pack("<2i", -7, 8), "-7, 8"),
        ("__u8 saddr[4]", 4, 0, bytes([10, 0, 0, 1]), "0a000001"),
        ("struct in6_addr address", 16, 0, bytes(16), "00" * 16),
        ("char comm[8]", 8, 0, b"a\0junk\0\0", "a"),
        ("__data_loc u64[] addrs", 4, 0, struct.pack("<IQQ", 16 << 16 | 4, 5, 1 << 40), "0x5, 0x10000000000"),
        ("__data_loc unsigned int[] lengths", 4, 0, struct.pack("<III", 8 << 16 | 4, 5, 6), "0x5, 0x6"),
        ("__data_loc s16[] deltas", 4, 1, struct.pack("<Ihh", 4 << 16 | 4, -5, 6), "-5, 6"),
        ("__data_loc u64[] cut", 4, 0, struct.pack("<I", 3 << 16 | 4) + b"abc", "616263"),
        ("__data_loc u8[] buf", 4, 0, struct.pack("<I", 2 << 16 | 4) + b"ab", "6162"),
        ("__data_loc u64[] none", 4, 0, struct.pack("<I", 4), ""),
    ],
)  # fmt: skip
def test_arrays_of_tracepoints(declared: str, size: int, signed: int, raw: bytes, shown: str) -> None:
    line = f"\tfield:{declared};\toffset:0;\tsize:{size};\tsigned:{signed};"
    tracepoint = parse_format("x", f"name: y\nID: 3\n{line}\n")
    assert tracepoint is not None
    data = np.frombuffer(raw, np.uint8)
    (field,) = tracepoint.fields
    assert decode_field(field, data, np.array([0]), np.array([len(raw)]), "<").tolist() == [shown]


def test_tracing_data_that_is_cut() -> None:
    content = tracing_data("<")
    event = attr("<", SampleType.TIME, kind=2, config=300)
    for size in range(len(content)):
        found = opened(file("<", record("<", 68), [event], features={1: content[:size], 3: string("<", "host")}))
        assert set(kinds(found)) == {"bad_record"}
        assert (found.events[0].tracepoint, found.features.hostname) == (None, "host")


def test_formats_that_are_none() -> None:
    assert parse_format("x", "") is None
    assert parse_format("x", "name: y\nID: z\n") is None
    assert parse_format("x", f"name: y\nID: {'3' * 5000}\n") is None
    # In which a name was looked for from each character to the end: 6 s for 8 kB.
    endless = parse_format("x", f"name: y\nID: 3\n\tfield:{'a' * 1_000_000}!;\toffset:0;\tsize:4;")
    assert endless is not None
    assert endless.fields == ()
    assert parse_format("x", "name: y\nID: 3\n\tfield:;\toffset:0;\tsize:4;") is not None


# ---------------------------------------------------------------- any bytes


def small(order: str, piped: bool) -> bytes:
    """Something of everything."""
    kinds_of = SampleType.IDENTIFIER | SampleType.TIME | SampleType.CALLCHAIN | SampleType.RAW
    attrs = [attr(order, kinds_of, kind=2, config=300), attr(order, kinds_of)]
    raw = payload(order)
    data = b"".join(
        sample(order, struct.pack(order + "QQQQQI", number, ts, 2, USER, ts, len(raw)) + raw)
        for number, ts in [(5, 9), (6, 3), (5, 4)]
    )
    trailer = struct.pack(order + "QQ", 8, 6)
    data += record(order, 3, struct.pack(order + "II", 1, 2) + text("name") + trailer)
    data += record(order, 10, struct.pack(order + "IIQQQ24sII", 1, 2, 3, 4, 5, b"", 5, 0) + text("/x") + trailer)
    data += record(order, 15, struct.pack(order + "II", 1, 2) + trailer, 1 << 13)
    if piped:
        content = tracing_data(order)
        padded = content + bytes(-len(content) % 8)
        data = record(order, 66, struct.pack(order + "I", len(content)), after=padded) + data
        ids = [struct.pack(order + "Q", number) for number in (5, 6)]
        return pipe(order, data, *(one + number for one, number in zip(attrs, ids, strict=True)))
    features = {1: tracing_data(order), 3: string(order, "host"), 21: struct.pack(order + "QQ", 3, 9)}
    return file(order, data, attrs, [[5], [6]], features)


@both_orders
@pytest.mark.parametrize("piped", [False, True], ids=["file", "pipe"])
def test_cut_anywhere(order: str, piped: bool) -> None:
    whole = small(order, piped)
    n_samples = 0
    for size in cuts(len(whole), 5):
        try:
            found = opened(whole[:size])
        except FormatError:
            assert n_samples == 0
            continue
        assert len(found.samples) >= n_samples
        n_samples = len(found.samples)
        assert isinstance(list(records(memoryview(whole[:size]), 0)), list)
    assert n_samples == 3
    assert kinds(opened(whole)) == {}


@both_orders
@pytest.mark.parametrize("piped", [False, True], ids=["file", "pipe"])
def test_bytes_changed(order: str, piped: bool) -> None:
    whole = small(order, piped)
    for at in cuts(len(whole) - 1, 3, 8):
        # Each of the three values at every second byte.
        for value in (0, 0xFF) if at % 2 else (whole[at] ^ 0x80,):
            changed = whole[:at] + bytes([value]) + whole[at + 1 :]
            try:
                assert isinstance(opened(changed), Recording)
            except FormatError:
                continue


def columns(found: Recording) -> list[Any]:
    tables: tuple[Any, ...] = (found.samples, found.switches)
    lists = [getattr(table, column.name).tolist() for table in tables for column in fields(table)]
    return [*lists, found.tasks, found.maps, found.n_records, found.problems]


# ---------------------------------------------------------------- dump


def test_dump() -> None:
    lines = list(records(memoryview(small("<", False)), 0))
    assert [line.split()[1] for line in lines] == ["SAMPLE", "SAMPLE", "SAMPLE", "COMM", "MMAP2", "SWITCH_CPU_WIDE"]
    assert "event=sched:sched_switch identifier=5 time=9 callchain=2[user 0x9] raw=76[" in lines[0]
    assert lines[3].endswith("pid=1 tid=2 comm=name sample_id: time=8 identifier=6")
    assert list(records(memoryview(small("<", False)), int(lines[2].split()[0], 16))) == lines[2:]


def test_dump_shows_every_field() -> None:
    everything = sum(ALL_BITS)
    (line,) = records(memoryview(file("<", sample("<", body_of("<", everything)), [attr_of("<", everything)])), 0)
    for bit in ALL_BITS:
        name = "pid" if bit == SampleType.TID else str(bit.name).lower()
        assert f" {name}=" in line
    assert "cut" not in line
