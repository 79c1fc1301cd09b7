"""The builders must write what real runtimes and linkers wrote, apart from bytes that no format uses."""

import io
import json
import struct
from collections.abc import Iterator
from itertools import groupby
from typing import Any, NamedTuple

import pytest
from builders import xray
from conftest import NO_SHARED, SHARED

XRAY = SHARED / "captures" / "xray"
C19_LOGS = ["pool", "pool-tsc", "pool-ring", "recurse", "except", "events", "typed"]
REENCODED = ["v1", "v1-be", "v1stale", "v2", "v3", "v3-be", "v4", "v5-be"]
FDR_LOGS = [
    *(f"logs/fdr-c19-pie-{name}" for name in C19_LOGS),
    *(f"logs/fdr-{name}" for name in ("c14-nopie-pool", "c14-pie-pool-tsc", "c22-dso")),
    *(f"reencoded/fdr-c19-pie-pool-tsc.{name}" for name in REENCODED),
]
BASIC_LOGS = [f"logs/basic-c19-pie-{name}" for name in ("pool", "recurse", "typed")]


def capture(name: str) -> bytes:
    path = XRAY / name
    if not path.exists():
        pytest.skip(f"{path.name}: {NO_SHARED}")
    return path.read_bytes()


# --- FDR: take a log apart, build it again, compare ---


class Record(NamedTuple):
    at: int
    method: str
    args: tuple[Any, ...]
    kwargs: dict[str, int]
    used: int  # bytes that carry meaning; the rest of the record is garbage
    size: int


FUNCTIONS = ("enter", "exit", "tail_exit", "enter_arg")
METADATA = {
    0: ("new_buffer", "i"), 1: ("end_of_buffer", ""), 2: ("new_cpu", "HQ"), 3: ("tsc_wrap", "Q"),
    4: ("walltime", "qi"), 6: ("argument", "Q"), 7: ("extents", "Q"), 9: ("pid", "i"),
}  # fmt: skip
CUSTOM, TYPED = 5, 8


def record_at(log: bytes, at: int, end: int, version: int, big: bool) -> Record:
    """The record at `at`; what does not hold a whole record is raw."""
    order = ">" if big else "<"
    is_metadata = bool(log[at] & (0x80 if big else 1))
    if end - at < (16 if is_metadata else 8):
        return Record(at, "raw", (log[at:end],), {}, end - at, end - at)
    if not is_metadata:
        word, delta = struct.unpack_from(f"{order}II", log, at)
        kind, function = (word >> 28, word & 0xFFFFFFF) if big else (word >> 1 & 7, word >> 4)
        return Record(at, FUNCTIONS[kind], (function, delta), {}, 8, 8)
    kind = log[at] & 0x7F if big else log[at] >> 1
    if kind in (CUSTOM, TYPED):
        return event_at(log, at, end, version, order, kind)
    method, fields = METADATA[kind]
    values = struct.unpack_from(order + fields, log, at + 1)
    return Record(at, method, values, {}, 1 + struct.calcsize(order + fields), 16)


def event_at(log: bytes, at: int, end: int, version: int, order: str, kind: int) -> Record:
    if version == 5:
        fields, names = "ii", ["size", "delta"]
    else:
        fields, names = "iQ", ["size", "tsc"]
    if kind == TYPED:
        fields, names = fields + "H", [*names, "event_type"]
    elif version == 4:
        fields, names = fields + "H", [*names, "cpu"]
    values = dict(zip(names, struct.unpack_from(order + fields, log, at + 1), strict=True))
    size = 16 + values.pop("size")
    if at + size > end:
        return Record(at, "raw", (log[at:end],), {}, end - at, end - at)
    payload = log[at + 16 : at + size]
    args = (values.pop("event_type"), payload) if kind == TYPED else (payload,)
    used = 1 + struct.calcsize(order + fields)
    return Record(at, "typed" if kind == TYPED else "custom", args, values, used, size)


def buffers_of(log: bytes, version: int, big: bool) -> Iterator[tuple[list[Record], int]]:
    """(records, end) of each thread buffer; the BufferExtents record is the first, EndOfBuffer the last."""
    at = 32
    size = struct.unpack_from(">Q" if big else "<Q", log, 16)[0]
    while at < len(log):
        end = at + size if version == 1 else at + 16
        found: list[Record] = []
        while at < end:
            record = record_at(log, at, end, version, big)
            found.append(record)
            at += record.size
            if record.method == "extents":
                end += record.args[0]
            if record.method == "end_of_buffer":
                break
        yield found, end
        at = end


def without_garbage(log: bytes, version: int, big: bool) -> bytes:
    """The log with zeros where bytes are unused: header, metadata records, tails of version 1."""
    out = bytearray(log)
    out[24:32] = bytes(8)
    for records, end in buffers_of(log, version, big):
        for record in records:
            unused = 16 - record.used if record.method not in ("raw", *FUNCTIONS) else 0
            start = record.at + record.used
            out[start : start + unused] = bytes(unused)
        tail = records[-1].at + records[-1].size
        out[tail:end] = bytes(end - tail)
    return bytes(out)


def rebuilt(log: bytes, version: int, big: bool) -> bytes:
    frequency, buffer_size = struct.unpack_from(">QQ" if big else "<QQ", log, 8)
    fdr = xray.Fdr(version, big, frequency, buffer_size)
    for records, _ in buffers_of(log, version, big):
        preamble = {record.method: record.args for record in records[:4]}
        first = {1: 2, 2: 3}.get(version, 4)
        body = [
            getattr(fdr, record.method)(*record.args, **record.kwargs)
            for record in records[first:]
            if record.method != "end_of_buffer"
        ]
        pid = preamble.get("pid", (0,))[0]
        fdr.buffer(preamble["new_buffer"][0], pid, preamble["walltime"], body)
    return fdr.bytes()


@pytest.mark.parametrize("name", FDR_LOGS)
def test_fdr_equals_real_log(name: str) -> None:
    log = capture(f"{name}.xray")
    big = log[0] == 0
    version = log[1] if big else log[0]

    again = rebuilt(log, version, big)

    assert without_garbage(again, version, big) == without_garbage(log, version, big)
    assert again[24:32] == b"\xaa" * 8
    # Only the typed-event bug of the runtimes cuts a record.
    raw = [one for records, _ in buffers_of(log, version, big) for one in records if one.method == "raw"]
    assert not raw or "typed" in name


@pytest.mark.parametrize("big", [False, True])
@pytest.mark.parametrize("version", [1, 2, 3, 4, 5])
def test_fdr_records_survive(version: int, big: bool) -> None:
    """Every record kind, decoded by the reader above: it reads real logs of these layouts."""
    fdr = xray.Fdr(version, big)
    event = {"tsc": 7, "delta": 8, "cpu": 9}
    stored = {4: ("tsc", "cpu"), 5: ("delta",)}.get(version, ("tsc",))
    records = [
        fdr.new_cpu(3, 1 << 40), fdr.enter(1, 0), fdr.enter_arg(0xFFFFFFF, 5), fdr.argument(1 << 63),
        fdr.custom(b"abc", **event), fdr.typed(77, b"typed", tsc=7, delta=8), fdr.custom(b""),
        fdr.tsc_wrap(1 << 41), fdr.tail_exit(2, 0xFFFFFFFF), fdr.exit(1, 1),
    ]  # fmt: skip

    ((found, end),) = buffers_of(fdr.buffer(-5, 6, (1, 2), records).bytes(), version, big)

    by_method = {record.method: record for record in found}
    assert by_method["new_buffer"].args == (-5,)
    assert by_method["walltime"].args == (1, 2)
    assert ("pid" in by_method) == (version >= 3)
    assert by_method["new_cpu"].args == (3, 1 << 40)
    assert by_method["enter_arg"].args == (0xFFFFFFF, 5)
    assert by_method["argument"].args == (1 << 63,)
    assert by_method["tail_exit"].args == (2, 0xFFFFFFFF)
    assert next(record for record in found if record.method == "custom").kwargs == {
        name: event[name] for name in stored
    }
    assert by_method["typed"].args == (77, b"typed")
    assert end == (32 + 4096 if version == 1 else found[-1].at + found[-1].size)


def test_big_endian_puts_bitfields_first() -> None:
    fdr = xray.Fdr(5, big=True)
    assert fdr.bytes()[:8].hex() == "00050001c0000000"
    assert fdr.exit(0x13, 0x30A6).hex() == "10000013000030a6"
    assert fdr.new_cpu(1, 2)[0] == 0x82


def test_cut_extents_loses_16_bytes_for_each_typed_event() -> None:
    fdr = xray.Fdr()
    records = [fdr.new_cpu(0, 1), fdr.typed(1, b"xy"), fdr.typed(2, b"z"), fdr.enter(1, 0), fdr.exit(1, 1)]
    whole = len(xray.Fdr().buffer(1, 1, records=records).bytes())

    log = fdr.buffer(1, 1, records=records, cut_extents=True).bytes()

    assert len(log) == whole - 32
    assert struct.unpack_from("<Q", log, 33) == (len(log) - 48,)


def test_buffer_takes_wrong_extents_and_omissions() -> None:
    fdr = xray.Fdr()
    assert struct.unpack_from("<Q", fdr.buffer(1, extents=999).bytes(), 33) == (999,)
    bare = xray.Fdr().buffer(1, walltime=None, omit=["extents", "pid"]).bytes()
    assert bare[32:37] == b"\x01\x01\0\0\0"
    assert len(bare) == 48
    with pytest.raises(ValueError, match="cannot omit"):
        fdr.buffer(1, omit=["end_of_buffer"])


def test_version_1_buffers_have_the_size_of_the_header() -> None:
    fdr = xray.Fdr(1, buffer_size=100)
    log = fdr.buffer(1, stale=b"\x01\x02").bytes()
    assert len(log) == 132
    assert log[80:] == b"\x01\x02" * 26
    with pytest.raises(ValueError, match="bytes more"):
        fdr.buffer(1, records=[fdr.new_cpu(0, 0)] * 5)


# --- basic mode ---


@pytest.mark.parametrize("name", BASIC_LOGS)
def test_basic_equals_real_log(name: str) -> None:
    log = capture(f"{name}.xray")
    basic = xray.Basic(frequency=struct.unpack_from("<Q", log, 8)[0])
    methods = (basic.enter, basic.exit, basic.tail_exit, basic.enter_arg)
    expected = bytearray(log)
    for at in range(32, len(log), 32):
        if log[at] == 0:
            _, cpu, kind, func, tsc, tid, pid = struct.unpack_from("<HBBiQII", log, at)
            methods[kind](func, tsc, tid, pid, cpu)
            expected[at + 24 : at + 32] = b"\xaa" * 8
        else:
            func, tid, pid, value = struct.unpack_from("<iIIQ", log, at + 4)
            basic.argument(func, tid, pid, value)
            expected[at + 2 : at + 4] = b"\xaa" * 2
            expected[at + 24 : at + 32] = b"\xaa" * 8

    assert basic.bytes() == expected


@pytest.mark.parametrize("big", [False, True])
def test_basic_versions(big: bool) -> None:
    order = ">" if big else "<"
    old = xray.Basic(1, big).enter_arg(5, 6, 7, 8, 9).argument(5, 7, 8, 1 << 50).bytes()
    assert struct.unpack_from(f"{order}HH", old) == (1, 0)
    flags = struct.unpack_from(f"{order}I", old, 4)[0]
    assert flags >> 30 == 3 if big else flags & 3 == 3
    assert struct.unpack_from(f"{order}HBBiQII", old, 32) == (0, 9, 3, 5, 6, 7, 0xAAAAAAAA)
    assert struct.unpack_from(f"{order}HxxiIIQ", old, 64) == (1, 5, 7, 0xAAAAAAAA, 1 << 50)
    with pytest.raises(ValueError, match="no tail exits"):
        xray.Basic(1).tail_exit(1, 2, 3)


# --- instrumentation map ---


def elf_of(data: bytes) -> Any:
    return pytest.importorskip("elftools.elf.elffile").ELFFile(io.BytesIO(data))


def words_of(elf: Any) -> dict[int, int]:
    """RELA addends by place."""
    section = elf.get_section_by_name(".rela.dyn")
    if section is None:
        return {}
    return {rela["r_offset"]: rela["r_addend"] for rela in section.iter_relocations()}


def sleds_of(elf: Any) -> list[tuple[int, int, int, int]]:
    """(sled, function, kind, version) of each map entry."""
    section = elf.get_section_by_name("xray_instr_map")
    data, start, size = section.data(), section["sh_addr"], elf.elfclass // 8
    form = struct.Struct((">" if not elf.little_endian else "<") + ("QQBBB" if size == 8 else "IIBBB"))
    addends = words_of(elf)
    found = []
    for at in range(0, len(data), 4 * size):
        sled, function, kind, _, version = form.unpack_from(data, at)
        place = start + at
        if version == 2:
            sled, function = sled + place, function + place + size
        else:
            sled, function = addends.get(place, sled), addends.get(place + size, function)
        mask = (1 << 8 * size) - 1
        found.append((sled & mask, function & mask, kind, version))
    return found


def test_map_of_a_real_binary_as_the_test_reads_it() -> None:
    """The decoder of these tests agrees with llvm-xray on a linked file."""
    elf = elf_of(capture("bin19/pool-pie"))
    expected = json.loads(capture("logs/fdr-c19-pie-pool.expected.json"))
    functions = [function for function, _ in groupby(sleds_of(elf), key=lambda sled: sled[1])]
    seen = {one["id"]: int(str(one["address"]), 0) for one in expected["functions"]}
    assert seen
    assert {number: functions[number - 1] for number in seen} == seen


@pytest.mark.parametrize("pie", [False, True])
@pytest.mark.parametrize(("version", "relocations"), [(0, False), (0, True), (1, False), (1, True), (2, False)])
@pytest.mark.parametrize("machine", xray.MACHINES)
def test_elf_map_and_symbols(machine: str, version: int, relocations: bool, pie: bool) -> None:
    target = xray.MACHINES[machine]
    functions: list[xray.Function] = [
        ("main", 0x401200, [xray.ENTER, xray.EXIT]),
        ("_Z3foov", 0x401100, [xray.ENTER_ARG, (xray.TAIL_EXIT, 0x401155), xray.CUSTOM_SLED]),
        (None, 0x401300, [xray.ENTER]),
        ("main", 0x401200, [xray.TYPED_SLED]),
    ]
    if relocations and target.relative is None:
        with pytest.raises(ValueError, match="no relative relocation"):
            xray.elf_with_instr_map(functions, machine=machine, version=version, relocations=True)
        return

    data = xray.elf_with_instr_map(functions, machine=machine, version=version, relocations=relocations, pie=pie)

    elf = elf_of(data)
    assert (elf.elfclass, elf.little_endian) == (target.bits, not target.big)
    assert elf["e_type"] == ("ET_DYN" if pie else "ET_EXEC")
    assert sleds_of(elf) == [
        (0x401200, 0x401200, 0, version), (0x401210, 0x401200, 1, version), (0x401100, 0x401100, 3, version),
        (0x401155, 0x401100, 2, version), (0x401120, 0x401100, 4, version), (0x401300, 0x401300, 0, version),
        (0x401200, 0x401200, 5, version),
    ]  # fmt: skip
    symbols = list(elf.get_section_by_name(".symtab").iter_symbols())[1:]
    assert {(one.name, one["st_value"]) for one in symbols} == {("main", 0x401200), ("_Z3foov", 0x401100)}
    assert [segment["p_type"] for segment in elf.iter_segments()] == ["PT_LOAD"]
    for section in elf.iter_sections():
        if section["sh_addr"]:
            assert list(elf.address_offsets(section["sh_addr"])) == [section["sh_offset"]]


@pytest.mark.parametrize("machine", ["x86_64", "s390x", "aarch64", "ppc64", "hexagon", "i386"])
def test_relocated_words(machine: str) -> None:
    """RELA leaves the words zero; i386's REL keeps the addend in them."""
    target = xray.MACHINES[machine]
    elf = elf_of(xray.elf_with_instr_map([("f", 0x1100, [0])], machine=machine, version=0, relocations=True))
    section = elf.get_section_by_name(".rel.dyn" if target.addend_in_place else ".rela.dyn")
    assert {one["r_info_type"] for one in section.iter_relocations()} == {target.relative}
    words = elf.get_section_by_name("xray_instr_map").data()[: target.bits // 4]
    assert any(words) == target.addend_in_place


def test_elf_refuses_what_cannot_be() -> None:
    with pytest.raises(ValueError, match="need no relocations"):
        xray.elf_with_instr_map([("f", 0x1000, [0])], relocations=True)
    with pytest.raises(ValueError, match="32 bits"):
        xray.elf_with_instr_map([("f", 1 << 32, [0])], machine="arm")
    with pytest.raises(ValueError, match="16 MiB"):
        xray.elf_with_instr_map([("f", 0x1000, [0]), ("g", 1 << 30, [0])])
