"""The builders of jitdump and perf.data against real dumps and the real perf; the readers of what perf prints."""

import json
import shutil
import struct
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import zstandard
from builders import jitdump, perf_data
from builders.jitdump import Function, Inlined, JitDump
from builders.perf_data import PerfData
from conftest import shared
from readers import jitdump_expected, perf_script

# ---------------------------------------------------------------- real dumps, record for record

DUMPS = [
    "bun-src/jit-10873-10871.dump",
    "erl25/jit-9665.dump.zst",
    "java17/jit-7180.dump.zst",
    "lli19mc/jit-13217.dump",
    "node24/jit-27512.dump.zst",
    "php82/jit-7884.dump",
    "py313/jit-26854.dump",
    "spidermonkey/jit-13635.dump.zst",
    "wasmtime/jit-9865.dump",
    "samply-ext/ext-A-big-s102.dump",
    "samply-ext/ext-A-little-s101.dump",
    "samply-ext/ext-B-little-s103.dump",
    "samply-ext/ext-mixed-little-s104.dump",
]
EXTENDED = [name for name in DUMPS if name.startswith("samply-ext")]


def contents(name: str) -> bytes:
    data = shared(f"captures/jit/{name}").read_bytes()
    return zstandard.ZstdDecompressor().decompressobj().decompress(data) if name.endswith(".zst") else data


class Record(NamedTuple):
    id: int
    ts: int
    payload: bytes


def records_of(data: bytes) -> tuple[str, Iterator[Record]]:
    """The byte order of a dump, and its records."""
    order = "<" if data[:4] == b"DTiJ" else ">"

    def walk() -> Iterator[Record]:
        (at,) = struct.unpack_from(order + "I", data, 8)
        while at + 16 <= len(data):
            record_id, size, ts = struct.unpack_from(order + "IIQ", data, at)
            yield Record(record_id, ts, data[at + 16 : at + size])
            at += size

    return order, walk()


class Cursor:
    """Takes a payload apart."""

    def __init__(self, order: str, payload: bytes) -> None:
        self.order, self.data, self.at = order, payload, 0

    def take(self, fields: str) -> tuple[int, ...]:
        values = struct.unpack_from(self.order + fields, self.data, self.at)
        self.at += struct.calcsize(self.order + fields)
        return values

    def rows(self, number: int, fields: str) -> list[tuple[int, ...]]:
        return [self.take(fields) for _ in range(number)]

    def string(self) -> bytes:
        end = self.data.index(b"\0", self.at)
        text, self.at = self.data[self.at : end], end + 1
        return text

    @property
    def rest(self) -> bytes:
        return self.data[self.at :]


def rebuild(dump: JitDump, record: Record, order: str) -> str:
    """The record once more, from its fields; says as what. A record of any other shape goes through `raw`."""
    fields = Cursor(order, record.payload)
    ts = record.ts
    if record.id == jitdump.LOAD:
        pid, tid, vma, addr, size, index = fields.take("IIQQQQ")
        name, code = fields.string(), fields.rest
        dump.load(
            name, addr, code=code[:size], ts=ts, index=index, pid=pid, tid=tid, vma=vma, trailing=code[size:]
        )  # fmt: skip
        return "load"
    if record.id == jitdump.MOVE:
        pid, tid, vma, old, new, size, index = fields.take("IIQQQQQ")
        dump.move(old, new, size=size, index=index, ts=ts, pid=pid, tid=tid, vma=vma)
        return "move"
    if record.id == jitdump.DEBUG_INFO:
        addr, number = fields.take("QQ")
        try:
            entries = [(*fields.take("QII"), fields.string()) for _ in range(number)]
        except (struct.error, ValueError):
            entries = None
        if entries is not None and not any(fields.rest):
            dump.debug_info(addr, entries, padding=len(fields.rest), ts=ts)  # type: ignore[arg-type]
            return "debug info"
    if record.id == jitdump.UNWINDING_INFO:
        size, header_size, mapped_size = fields.take("QQQ")
        frame, header = fields.rest[: size - header_size], fields.rest[size - header_size : size]
        pad_to = 8 if len(record.payload) % 8 == 0 else 1
        dump.unwinding(frame, header, mapped_size=mapped_size, pad_to=pad_to, ts=ts)
        return "unwinding"
    if record.id == jitdump.CLOSE:
        dump.close(ts)
        return "close"
    if record.id == jitdump.DEBUG_INFO2_A:
        counts = fields.take("8I")
        lists = []
        for number, size in (counts[:2], counts[2:4]):
            lists.append([text.decode() for text in fields.rest[:size].split(b"\0")[:number]])
            fields.at += size
        rows = [fields.rows(*shape) for shape in zip(counts[4:], ("5I", "5I", "2I", "4I"), strict=True)]
        dump.debug_info2_a(*lists, *rows, ts=ts)  # type: ignore[arg-type]
        return "A"
    if record.id == jitdump.TIER:
        return _tier_or_b(dump, record, fields)
    if record.id == jitdump.INLINE_INFO:
        addr, number = fields.take("QQ")
        stack = [(*fields.take("II"), fields.string().decode(), fields.string().decode()) for _ in range(number)]
        dump.inline_info_c(addr, stack, padding=len(fields.rest), ts=ts)  # type: ignore[arg-type]
        return "C"
    if record.id == jitdump.SOURCE:
        path_size, text_size = fields.take("II")
        dump.source(fields.rest[:path_size].decode(), fields.rest[path_size : path_size + text_size], ts=ts)
        return "source"
    dump.raw(record.id, record.payload, ts)
    return "raw"


def _tier_or_b(dump: JitDump, record: Record, fields: Cursor) -> str:
    if len(record.payload) >= 32:
        addr, *numbers = fields.take("4Q")
        if 8 * numbers[0] + 28 * numbers[1] < len(record.payload):
            code_offsets, positions = fields.rows(numbers[0], "II"), fields.rows(numbers[1], "iIiIIII")
            strings = [fields.string().decode() for _ in range(numbers[2])]
            dump.debug_info2_b(
                addr, code_offsets, positions, strings, padding=len(fields.rest), ts=record.ts  # type: ignore[arg-type]
            )  # fmt: skip
            return "B"
        fields.at = 0
    tier_id, color_index = fields.take("II")
    dump.tier(tier_id, color_index, fields.string(), ts=record.ts)
    return "tier"


@pytest.mark.parametrize("name", DUMPS)
def test_a_real_dump_is_built_again_byte_for_byte(name: str) -> None:
    data = contents(name)
    order, records = records_of(data)
    _, version, size, elf_mach, pad1, pid, timestamp, flags = struct.unpack_from(order + "6I2Q", data)
    dump = JitDump(
        version, order, pid=pid, elf_mach=elf_mach, timestamp=timestamp, flags=flags, pad1=pad1, header_bytes=size
    )
    built = Counter(rebuild(dump, record, order) for record in records)
    gap = slice(jitdump.HEADER_BYTES, size)
    assert dump.bytes()[: gap.start] == data[: gap.start]
    assert dump.bytes()[gap.stop :] == data[gap.stop :]
    # What went through `raw` is what nobody knows, and V8's corrupted names.
    if name in EXTENDED:
        expected = jitdump_expected.read(shared(f"captures/jit/{name}").with_suffix(".expected.json")).records
        names = {"load": "LOAD", "tier": "TIER", "A": "DEBUG_INFO2_A", "B": "DEBUG_INFO2_B", "C": "INLINE_INFO_C"}
        names |= {"source": "EMBEDDED_SOURCE", "unwinding": "UNWINDING_INFO", "move": "MOVE", "close": "CLOSE"}
        assert {(names | {"raw": "UNKNOWN"})[kind]: number for kind, number in built.items()} == expected
    else:
        assert built["raw"] <= built["debug info"] / 8


def test_the_file_names_that_v8_freed() -> None:
    """A real record of Node 24 whose names are gone, from the name that the load still has."""
    order, records = records_of(contents("node24/jit-27512.dump.zst"))
    waiting, found = None, 0
    for record in records:
        if record.id == jitdump.DEBUG_INFO:
            waiting = record
        if record.id != jitdump.LOAD or waiting is None:
            continue
        name = Cursor(order, record.payload[40:]).string().decode()
        info, waiting = waiting, None
        if " " not in name or (file := name.split(" ", 1)[1].rsplit(":", 2)[0].encode()) in info.payload:
            continue
        fields = Cursor(order, info.payload)
        addr, number = fields.take("QQ")
        room = len(info.payload) - 16 - number * (16 + len(file) + 1)
        if not 0 <= room < 8 or file[16:] not in info.payload:
            continue
        freed = info.payload[32:48]
        entries = []
        for _ in range(number):
            at, line, column = fields.take("QII")
            fields.at += len(file) + 1
            entries.append((at - jitdump.V8_BIAS, line, column, file))
        dump = JitDump.v8().debug_info(addr, entries, freed=freed, ts=info.ts)
        assert dump.bytes()[56:] == info.payload
        assert dump.bytes()[:4] == b"DTiJ"
        found += 1
    assert found


# ---------------------------------------------------------------- the extension records, from trees and stacks


def test_a_tree_becomes_the_lists_of_variant_a() -> None:
    outer, middle, leaf = Function("f", "/a.js", 1), Function("g", "/b.js", 5, 2), Function("h", "/a.js", 9, 0, 1)
    tree = [
        Inlined(middle, (2, 4), [(8, 8), (32, 4)], [Inlined(leaf, (6, 1), [(12, 4)])]),
        Inlined(leaf, (3, 0), [(20, 4)]),
    ]
    built = JitDump().inline_tree_a(outer, [(0, "/a.js", 1, 0), (8, "/b.js", 6, 1)], tree, ts=5)
    rows = JitDump().debug_info2_a(
        files=["/a.js", "/b.js"],
        names=["f", "g", "h"],
        functions=[(0, 0, 1, 0, 0), (1, 1, 5, 2, 0), (2, 0, 9, 0, 1)],
        inline_calls=[(0, 2, 1, 2, 4), (1, 1, 2, 6, 1), (0, 1, 2, 3, 0)],
        ranges=[(8, 8), (32, 4), (12, 4), (20, 4)],
        lines=[(0, 0, 1, 0), (8, 1, 6, 1)],
        ts=5,
    )
    assert built.bytes() == rows.bytes()


def test_stacks_become_the_positions_of_variant_b() -> None:
    stacks = {4: [("f", "/a.js", 1, 2)], 8: [("f", "/a.js", 1, 2), ("map", None, 0, 0)]}
    built = JitDump().inline_stacks_b(0x1000, stacks, ts=5)
    rows = JitDump().debug_info2_b(
        0x1000, [(4, 0), (8, 1)], [(-1, 0, 1, 0, 0, 1, 2), (0, 2, -1, 0, 0, 0, 0)], ["f", "/a.js", "map"], ts=5
    )
    assert built.bytes() == rows.bytes()


def test_records_say_wrong_things_when_they_are_told_to() -> None:
    order, records = records_of(
        JitDump()
        .debug_info2_a(["a"], ["f"], [(0, 0, 1, 0, 0)], line_record_count=1 << 30)
        .debug_info(0x1000, [(0x1000, 1, 1, "a"), (0x1004, 2, 1, "a")], same_file_marker=True, count=9)
        .source("/a.js", "text", nul_terminated_variant=True)
        .unknown()
        .bytes()
    )
    a, plain, source, unknown = records
    assert struct.unpack_from(order + "8I", a.payload)[7] == 1 << 30
    assert struct.unpack_from(order + "QQ", plain.payload) == (0x1000, 9)
    assert plain.payload.endswith(b"\xff\0")
    assert source.payload == b"/a.js\0text"
    assert unknown.id == 99
    with pytest.raises(ValueError, match="lines"):
        JitDump().debug_info2_a([], [], [], lines_count=1)


def test_a_move_knows_what_was_loaded() -> None:
    _, records = records_of(JitDump().load("f", 0x1000, 32, index=7).move(0x1000, 0x2000).move(0x2000, 0x3000).bytes())
    _, _, last = records
    assert struct.unpack_from("<QQQQ", last.payload, 16) == (0x2000, 0x3000, 32, 7)


# ---------------------------------------------------------------- the expected.json of the extended dumps


@pytest.mark.parametrize("name", EXTENDED)
def test_the_expected_code_is_that_of_the_dump(name: str) -> None:
    expected = jitdump_expected.read(shared(f"captures/jit/{name}").with_suffix(".expected.json"))
    order, records = records_of(expected.dump.read_bytes())
    assert order == expected.byte_order
    code = {one.record: one for one in expected.code}
    embedded = {source.path for source in expected.sources}
    for number, record in enumerate(records):
        if record.id != jitdump.LOAD:
            continue
        one = code.pop(number)
        _, tid, _, addr, size, index = struct.unpack_from(order + "IIQQQQ", record.payload)
        assert (one.tid, one.size, one.code_index) == (tid, size, index)
        assert one.addresses[0][:2] == (addr, record.ts)
        assert Cursor(order, record.payload[40:]).string().decode() == one.name
        assert one.column_base == {"A": 0, "B": 1, "C": 1, None: None}[one.info]
        for offset, stack in one.probes:
            assert 0 <= offset < size
            assert all(place.file is not None for place in stack) or len(stack) == 1
            if one.info is None:
                assert stack == ((one.name, None, None, None),)
            assert {place.file for place in stack if place.file} <= one.sources.keys()
        for path, source in one.sources.items():
            assert (source is None) == (path in expected.not_embedded)
            assert source is None or expected.sources[source].path == path
    assert not code
    assert not embedded & expected.not_embedded


# ---------------------------------------------------------------- a real perf.data, record for record


def rebuild_perf(data: PerfData, record: bytes) -> str:
    """The record once more, from its fields; says as what. Those of the tool go through `append`."""
    kind, misc, _ = struct.unpack_from("<IHH", record)
    fields, trailer = Cursor("<", record[8:]), 16  # TID and TIME
    if kind in (perf_data.MMAP2, perf_data.COMM, perf_data.FORK, perf_data.EXIT, perf_data.SWITCH):
        tail_pid, tail_tid, ts = struct.unpack_from("<iiQ", record, len(record) - trailer)
    if kind == perf_data.SAMPLE:
        (ip,), (pid, tid), (ts, period) = fields.take("Q"), fields.take("ii"), fields.take("QQ")
        chain = [address for (address,) in fields.rows(*fields.take("Q"), "Q")] if fields.rest else None
        data.sample(pid, tid, ts, ip, chain, period=period, mode=misc)
        return "sample"
    if kind == perf_data.MMAP2:
        (pid, tid), (start, length, pgoff) = fields.take("ii"), fields.take("QQQ")
        major, minor, inode, generation, prot, flags = fields.take("IIQQII")
        path = fields.string().decode()
        data.mmap2(
            pid, tid, start, length, pgoff, path, prot,
            device=(major, minor), inode=inode, generation=generation, flags=flags, misc=misc, ts=ts,
        )  # fmt: skip
        return "mmap2"
    if kind == perf_data.COMM and (tail_pid, tail_tid) == fields.take("ii"):
        data.comm(tail_pid, tail_tid, fields.string().decode(), ts, exec=misc == perf_data.COMM_EXEC)
        return "comm"
    if kind in (perf_data.FORK, perf_data.EXIT):
        (pid, ppid, tid, ptid), (own_ts,) = fields.take("4i"), fields.take("Q")
        if kind == perf_data.FORK:
            data.fork(pid, tid, ppid, ptid, ts, own_ts=own_ts)
        else:
            data.exit(pid, tid, ts, ppid=ppid, ptid=ptid, own_ts=own_ts)
        return "task"
    if kind == perf_data.SWITCH:
        out, preempt = misc & perf_data.SWITCH_OUT, misc & perf_data.SWITCH_OUT_PREEMPT
        data.switch(tail_pid, tail_tid, ts, out=bool(out), preempt=bool(preempt))
        return "switch"
    if kind == perf_data.FINISHED_ROUND:
        data.finished_round()
        return "round"
    data.append(record)
    return "raw"


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("php82", {"freq": 997, "ids": (623, 624)}),
        ("node24-switch", {"freq": 997, "ids": (418, 419), "sample_type": "IP|TID|TIME|PERIOD", "clockid": 4}),
    ],
)
def test_a_real_perf_data_is_built_again_byte_for_byte(name: str, options: dict[str, object]) -> None:
    real = contents(f"{name}/perf.data")
    switch = " context_switch" if name == "node24-switch" else ""
    data = PerfData().event(flags=perf_data.USUAL_FLAGS + " bpf_event" + switch, **options)  # type: ignore[arg-type]
    at, size = struct.unpack_from("<QQ", real, 40)
    end, built = at + size, Counter[str]()
    while at < end:
        (length,) = struct.unpack_from("<H", real, at + 6)
        built[rebuild_perf(data, real[at : at + length])] += 1
        at += length
    again = data.bytes()
    assert again[16:40] == real[16:40]
    assert again[104:end] == real[104:end]
    assert built["raw"] < 20


# ---------------------------------------------------------------- perf reads what the builder writes

needs_perf = pytest.mark.skipif(shutil.which("perf") is None, reason="perf is not installed (Debian: linux-perf)")


def perf(*arguments: str | Path, complaint: str = "") -> str:
    """What perf prints; it must say nothing but `complaint` on its standard error."""
    run = subprocess.run(["perf", *map(str, arguments)], capture_output=True, text=True, timeout=60)
    assert (run.returncode, run.stderr.strip()) == (0, complaint), run.stdout[-500:]
    return run.stdout


def script(path: Path, *options: str) -> list[perf_script.Sample]:
    return list(perf_script.samples(perf("script", "-i", path, *options).splitlines()))


def recording(byte_order: str = "<", mode: str = "file", compressed: bool = False) -> PerfData:
    """One of everything that perf 6.1 understands."""
    data = PerfData(byte_order, mode)
    data.event(freq=997, sample_type="IP|TID|TIME|CPU|CALLCHAIN|PERIOD|IDENTIFIER")
    data.event("page-faults", config=perf_data.PAGE_FAULTS, period=1, sample_type="IP|TID|TIME|ADDR|IDENTIFIER")
    data.feature(HOSTNAME="box", OSRELEASE="6.1.0", VERSION="6.1", ARCH="x86_64", NRCPUS=(4, 2), TOTAL_MEM=1234)
    data.feature(CMDLINE=["perf", "record", "a b"], SAMPLE_TIME=(1_000_001_000, 2_000_000_000), CLOCKID=1)
    data.feature(CLOCK_DATA=(perf_data.MONOTONIC, 1_795_194_845_574_297_000, 1_218_623_430_592))
    data.feature(BUILD_ID=[(-1, bytes(range(20)), "/nowhere/app")], PMU_MAPPINGS=[(1, "software")])
    data.id_index().comm(70, 70, "app", ts=0).finished_init()
    if compressed:
        data.begin_compressed()
    data.comm(70, 70, "my app", exec=True)
    data.mmap2(70, 70, 0x400000, 0x1000, 0, "/nowhere/app")
    data.mmap2(70, 70, 0x500000, 0x1000, 0, "/nowhere/with space (1)", build_id=bytes(range(20)))
    data.fork(70, 71, 70, 70).comm(70, 71, "worker 1")
    data.sample(70, 70, ip=0x400010, chain=[0x400010, 0x500020])
    data.sample(
        70, 71, ip=0xFFFF_FFFF_8100_0010, chain=[0xFFFF_FFFF_8100_0010, perf_data.CONTEXT_USER, 0x500020],
        mode="kernel", cpu=1, period=77,
    )  # fmt: skip
    data.finished_round()
    data.sample(70, 70, ip=0x400020, event=1, addr=0x1234)
    if compressed:
        data.end_compressed(at=[13, 200, 300])
    data.exit(70, 71).finished_round()
    return data


def written(tmp_path: Path, data: PerfData, name: str = "perf.data") -> Path:
    (tmp_path / name).write_bytes(data.bytes())
    return tmp_path / name


# perf 6.1 forgets to swap the features and the halves of samples in a pipe of the other byte order.
@needs_perf
@pytest.mark.parametrize(("byte_order", "mode"), [("<", "file"), ("<", "pipe"), (">", "file")])
@pytest.mark.parametrize("compressed", [False, True], ids=["plain", "zstd"])
def test_perf_reads_every_kind_of_file(tmp_path: Path, byte_order: str, mode: str, compressed: bool) -> None:
    samples = script(written(tmp_path, recording(byte_order, mode, compressed)), "-F", "+pid")
    assert [(one.comm, one.pid, one.tid, one.us, one.event, one.period, one.cpu) for one in samples] == [
        ("my app", 70, 70, 1_000_006, "cpu-clock", 1, 0),
        ("worker 1", 70, 71, 1_000_007, "cpu-clock", 77, 1),
        ("my app", 70, 70, 1_000_008, "page-faults", 1, None),
    ]
    assert [[(frame.ip, frame.dso) for frame in one.frames if not frame.ip.startswith("ffff")] for one in samples] == [
        [("10", "/nowhere/app"), ("20", "/nowhere/with space (1)")],
        [("20", "/nowhere/with space (1)")],
        [("400020", "/nowhere/app")],
    ]


@needs_perf
@pytest.mark.parametrize("mode", ["file", "pipe"])
def test_perf_reads_the_features(tmp_path: Path, mode: str) -> None:
    header = perf("report", "--header-only", "-i", written(tmp_path, recording(mode=mode)))
    for line in (
        "# hostname : box",
        "# os release : 6.1.0",
        "# nrcpus online : 2",
        "# nrcpus avail : 4",
        "# total memory : 1234 kB",
        "# cmdline : perf record a b ",
        "# pmu mappings: software = 1",
        "# time of first sample : 1.000001",
        "# clockid frequency: 1000 MHz",
        "# clockid: monotonic (1)",
    ):
        assert line in header.splitlines()
    assert "name = cpu-clock, , id = { 101, 102 }, type = 1, size = 128, { sample_period, sample_freq } = 997" in header
    assert "= 1795194845.574297 (TOD) = 1218.623430592 (monotonic)" in header
    listed = perf("buildid-list", "-i", tmp_path / "perf.data")
    assert f"{bytes(range(20)).hex()} /nowhere/app" in listed


@needs_perf
def test_perf_reads_the_records_about_threads_and_losses(tmp_path: Path) -> None:
    data = PerfData().event(sample_type="IP|TID|TIME|CPU|ID|STREAM_ID", flags=perf_data.USUAL_FLAGS + " context_switch")
    data.mmap(-1, 0, 0xFFFF_FFFF_8100_0000, 0x100000, 0, "[kernel.kallsyms]_text", misc=perf_data.KERNEL_MODE, ts=0)
    data.comm(7, 7, "app").switch(7, 7, out=True, preempt=True).switch(7, 7, out=False)
    data.switch_cpu_wide(7, 7, 8, 9, out=True).lost(5).throttle().throttle(on=False)
    data.ksymbol(0xFFFF_FFFF_A000_0000, 64, "bpf_prog_1").fork(10, 10, 7, 7).exit(10, 10).lost_samples(6)
    complaint = "Warning:\nProcessed 12 events and lost 1 chunks!\n\nCheck IO/CPU overload!"
    complaint += "\n\nWarning:\nProcessed 6 samples and lost 100.00%!"
    said = perf("script", "-D", "-i", written(tmp_path, data), complaint=complaint)
    for words in (
        "PERF_RECORD_MMAP -1/0: [0xffffffff81000000(0x100000) @ 0]: x [kernel.kallsyms]_text",
        "PERF_RECORD_COMM: app:7/7",
        "PERF_RECORD_SWITCH OUT preempt",
        "PERF_RECORD_SWITCH IN",
        "PERF_RECORD_SWITCH_CPU_WIDE OUT          next pid/tid:     8/9",
        "PERF_RECORD_LOST",
        "PERF_RECORD_THROTTLE",
        "PERF_RECORD_UNTHROTTLE",
        "PERF_RECORD_KSYMBOL addr ffffffffa0000000 len 64 type 1 flags 0x0 name bpf_prog_1",
        "PERF_RECORD_FORK(10:10):(7:7)",
        "PERF_RECORD_EXIT(10:10):(10:10)",
        "PERF_RECORD_LOST_SAMPLES",
    ):
        assert words in said


@needs_perf
@pytest.mark.parametrize("mode", ["file", "pipe"])
def test_perf_reads_tracepoints(tmp_path: Path, mode: str) -> None:
    data = PerfData(mode=mode).tracepoint()
    fields = [("char[] name", "loc"), ("u64 value", "Q")]
    data.tracepoint("foo:bar", 400, fields, '"%s %llu", __get_str(name), REC->value')
    data.comm(7, 7, "app")
    data.sample(7, 7, fields={"prev_comm": "app", "prev_pid": 7, "next_comm": "swapper/0"})
    data.sample(7, 7, event=1, fields={"name": "two words", "value": 1 << 63})
    switch, bar = script(written(tmp_path, data))
    assert (switch.event, switch.text) == ("sched:sched_switch", "app:7 ==> swapper/0:0")
    assert (bar.event, bar.text) == ("foo:bar", f"two words {1 << 63}")


@needs_perf
def test_perf_reads_registers_and_stacks(tmp_path: Path) -> None:
    data = PerfData().event(
        sample_type="IP|TID|TIME|ADDR|CALLCHAIN|DATA_SRC|PERIOD", regs_user=perf_data.X86_64_REGS, stack_user=8192
    )
    registers = list(range(0x100, 0x100 + perf_data.X86_64_REGS.bit_count()))
    data.comm(7, 7, "app").sample(7, 7, ip=0x40, chain=[], regs=registers, stack=bytes(8192), stack_used=64)
    data.sample(7, 7, ip=0x40, chain=[], mode="kernel")
    said = perf("script", "-D", "-i", written(tmp_path, data))
    assert ".... AX    0x0000000000000100" in said
    assert ".... R15   0x0000000000000113" in said
    assert "ustack: size 64, offset 0x" in said


@needs_perf
def test_perf_reads_the_attrs_of_its_younger_days(tmp_path: Path) -> None:
    data = PerfData(attr_bytes=104).event(freq=99).comm(7, 7, "app").sample(7, 7, ip=0x40)
    (sample,) = script(written(tmp_path, data))
    assert sample.comm == "app"


def test_a_file_that_was_not_finished() -> None:
    """As perf leaves it when it is killed; perf itself reads nothing of such a file."""
    data = recording()
    whole, unfinished = data.bytes(), data.bytes(finalized=False)
    at, size = struct.unpack_from("<QQ", whole, 40)
    assert struct.unpack_from("<QQ", unfinished, 40) == (at, 0)
    assert unfinished[at:] == whole[at : at + size]
    assert unfinished[72:104] == whole[72:104]


def test_compressed_records_are_one_stream() -> None:
    """Cut inside a record, continued after others, and once in the newer version with its size."""
    inner = PerfData().event().comm(7, 7, "app").sample(7, 7, ip=1).sample(7, 7, ip=2)
    data = PerfData().event().begin_compressed().comm(7, 7, "app").sample(7, 7, ip=1).end_compressed(at=[3])
    data.finished_round().begin_compressed().sample(7, 7, ip=2).end_compressed(second_version=True)
    records, stream = data._records, zstandard.ZstdDecompressor().decompressobj()
    at, plain, types = 0, b"", []
    while at < len(records):
        kind, _, size = struct.unpack_from("<IHH", records, at)
        payload = bytes(records[at + 8 : at + size])
        if kind == perf_data.COMPRESSED2:
            (length,) = struct.unpack_from("<Q", payload)
            payload = payload[8 : 8 + length]
        if kind != perf_data.FINISHED_ROUND:
            plain += stream.decompress(payload)
        types.append(kind)
        at += size
    assert types == [81, 81, perf_data.FINISHED_ROUND, 83]
    assert plain == inner._records


# ---------------------------------------------------------------- both together: perf inject --jit


@needs_perf
def test_perf_inject_takes_the_dump(tmp_path: Path) -> None:
    code = b"\x90" * 64
    path = tmp_path / "jit-7.dump"
    dump = JitDump(pid=7).debug_info(0x10000, [(0x10000, 3, 1, "/a.js"), (0x10010, 4, 1, "/a.js")])
    dump.unwinding().load("JS:*hot (now) /a.js:1:1", 0x10000, code=code, ts=2_000_000_000, index=1)
    dump.load("second", 0x20000, code=code, ts=3_000_000_000, index=2).move(0x20000, 0x30000, ts=4_000_000_000)
    path.write_bytes(dump.close().bytes())

    data = PerfData().event(freq=997).comm(7, 7, "node", ts=1_000_000_000, exec=True)
    data.mmap2(7, 7, 0x70000, 0x1000, 0, str(path), ts=1_500_000_000)
    data.sample(7, 7, 2_500_000_000, 0x10010, [0x10010, 0x10020])
    data.sample(7, 7, 3_500_000_000, 0x20008).sample(7, 7, 4_500_000_000, 0x30008)
    injected = tmp_path / "injected.data"
    perf("inject", "--jit", "-i", written(tmp_path, data), "-o", injected)
    samples = script(injected)
    assert [[frame[1:] for frame in sample.frames] for sample in samples] == [
        [
            ("JS:*hot (now) /a.js:1:1", 0x10, str(tmp_path / "jitted-7-1.so")),
            ("JS:*hot (now) /a.js:1:1", 0x20, str(tmp_path / "jitted-7-1.so")),
        ],
        [("second", 8, str(tmp_path / "jitted-7-2.so"))],
        [("second", 8, str(tmp_path / "jitted-7-2.so"))],
    ]


# ---------------------------------------------------------------- the reader of what perf prints


@pytest.mark.parametrize("name", ["node24", "java17", "php82", "wasmtime"])
def test_the_script_of_a_recording_and_its_expected_stacks(name: str, tmp_path: Path) -> None:
    folder = shared(f"captures/jit/{name}")
    path = folder / "script.jit.txt"
    if not path.exists():
        path = tmp_path / "script.jit.txt"
        path.write_bytes(contents(f"{name}/script.jit.txt.zst"))
    samples = perf_script.read(path)
    expected = json.loads((folder / "expected.json").read_text())
    assert len(samples) == expected["samples"]
    assert sum(len(sample.frames) for sample in samples) == expected["frames"]
    assert Counter(sample.event for sample in samples) == expected["events"]
    assert sum(not sample.frames for sample in samples) == expected["samples_without_stack"]
    for stack in perf_script.expected_stacks(folder / "expected.json"):
        sample = samples[stack.index]
        assert (sample.pid, sample.tid, sample.us) == (stack.pid, stack.tid, stack.us)
        assert [frame.plain() for frame in sample.frames] == [frame.plain() for frame in stack.frames]


@pytest.mark.parametrize(
    ("line", "comm", "pid", "tid", "us", "event", "text"),
    [
        ("node 7/8   844.278405: cpu-clock: ", "node", 7, 8, 844_278_405, "cpu-clock", ""),
        ("V8 Worker 3  7/9 [001] 1.000002:  250000 cycles:u: ", "V8 Worker 3", 7, 9, 1_000_002, "cycles:u", ""),
        ("ls 13347   794.610827123:     250000          cpu-clock: ", "ls", None, 13347, 794_610_827, "cpu-clock", ""),
        ("  :-1    -1 0.000001: foo:bar: a:7 ==> b", ":-1", None, -1, 1, "foo:bar", "a:7 ==> b"),
    ],
)
def test_the_first_line_of_a_sample(
    line: str, comm: str, pid: int | None, tid: int, us: int, event: str, text: str
) -> None:
    (sample,) = perf_script.samples([line])
    assert (sample.comm, sample.pid, sample.tid, sample.us, sample.event) == (comm, pid, tid, us, event)
    assert sample.text == text


@pytest.mark.parametrize(
    ("line", "frame"),
    [
        ("\t  21b0 memset+0xb0 (/lib/ld.so)", ("21b0", "memset", 0xB0, "/lib/ld.so")),
        ("\t 0 [unknown] ([unknown])", ("0", "[unknown]", None, "[unknown]")),
        ("\t 9 [unknown] (/tmp/x (deleted))", ("9", "[unknown]", None, "/tmp/x (deleted)")),
        ("\t 9 f(int, g (*)(char))+0x1f (/tmp/x (deleted))", ("9", "f(int, g (*)(char))", 31, "/tmp/x (deleted)")),
        ("\t 9 JS:*a+0x2 (b) /a b.js:1:1+0x3 (/j.so)", ("9", "JS:*a+0x2 (b) /a b.js:1:1", 3, "/j.so")),
        ("\t 9 inner (inlined)", ("9", "inner", None, "inlined")),
    ],
)
def test_a_frame(line: str, frame: tuple[str, str, int | None, str]) -> None:
    assert perf_script.frame_of(line) == frame


def test_a_line_that_is_nothing_is_an_error() -> None:
    with pytest.raises(ValueError, match="line 2"):
        list(perf_script.samples(["a 1 1.000001: e:", "\tno frame"]))
    with pytest.raises(ValueError, match="line 1"):
        list(perf_script.samples(["no sample"]))
