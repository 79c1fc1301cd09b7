"""Real jitdumps against what independent readers say of them, and against the programs that were recorded."""

import struct
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pytest
from builders.jitdump import DEBUG_INFO, LOAD, V8_BIAS, V8_PAD1
from conftest import in_turn
from jit_recordings import (
    CODE_SIZE,
    code_sizes,
    content,
    dumps,
    frame_text,
    func_text,
    live_bytes,
    path_of,
    places_of,
    read,
    stack_text,
    strings_of,
    symbol_text,
    text_of,
    tier_text,
)
from readers import jitdump_expected
from readers.jitdump_expected import Code, Expected, Place
from support import load_checked

import traceferry
from traceferry.importers.perf.recording import DUMP
from traceferry.model import Trace

EXTENDED = dumps("samply-ext/")
V8_DUMPS = [
    "node24/jit-27512.dump", "node24-killed/jit-29317.dump", "node24-switch/jit-29077.dump",
    "node24-functions/jit-27512.dump",
]  # fmt: skip
BIGFP = ["bigfp/jit-22723.dump", "bigfp/jit-22724.dump"]
WITHOUT_LINES = ("php82", "php84", "py313", "py315", "wasmtime")
SMALL = [name for name in dumps() if isinstance(name, str)]


@cache
def trace_of(name: str) -> Trace:
    return read(content(name))


# ---------------------------------------------------------------- facts


class Facts(NamedTuple):
    """report: kind → count; tiers: name → number of code objects, "" for those without one."""

    producer: str
    loads: int
    functions: int
    report: dict[str, int]
    tiers: dict[str, int]


FACTS = {
    "bun-src/jit-10873-10871.dump": Facts("JavaScriptCore", 374, 127, {}, {
        "": 1, "BBQ": 3, "Baseline": 31, "DFG": 42, "DFGOSREntry": 1, "DFGOSRExit": 13, "DFGThunk": 1,
        "ExtraCTIThunk": 34, "FTL": 22, "FTLOSRExit": 3, "FTLThunk": 50, "IC": 114, "LLIntThunk": 12, "OMG": 3,
        "Thunk": 32, "WasmThunk": 12,
    }),
    "erl25/jit-9665.dump": Facts("BEAM", 14857, 7559, {}, {"": 14857}),
    "java17/jit-7180.dump": Facts("HotSpot", 850, 668, {}, {"": 849, "Interpreter": 1}),
    "lli19mc/jit-13217.dump": Facts("LLVM", 3, 3, {"line_bias": 3}, {"": 3}),
    "node24-killed/jit-29317.dump": Facts(
        "V8", 2489, 2440, {"dump_unfinished": 1, "bytecode_lines": 52, "line_bias": 47, "file_name_repaired": 2}, {
            "": 1, "Baseline": 52, "Builtin": 1873, "Interpreter": 511, "Liftoff (wasm)": 3, "Maglev": 11,
            "Maglev (context specialized)": 19, "Turbofan": 8, "Turbofan (context specialized)": 8,
            "Turbofan (wasm)": 3,
        },
    ),
    "node24-switch/jit-29077.dump": Facts(
        "V8", 9959, 2560, {"bytecode_lines": 368, "line_bias": 49, "file_name_repaired": 12}, {
            "": 6, "Baseline": 368, "Builtin": 7492, "Interpreter": 2044, "Maglev": 13,
            "Maglev (context specialized)": 19, "Turbofan": 10, "Turbofan (context specialized)": 7,
        },
    ),
    "node24/jit-27512.dump": Facts(
        "V8", 2600, 2496, {"bytecode_lines": 52, "line_bias": 55, "file_name_repaired": 11}, {
            "": 2, "Baseline": 52, "Builtin": 1873, "Interpreter": 612, "Liftoff (wasm)": 3, "Maglev": 11,
            "Maglev (context specialized)": 21, "Turbofan": 10, "Turbofan (context specialized)": 13,
            "Turbofan (wasm)": 3,
        },
    ),
    "node24-functions/jit-27512.dump": Facts(
        "V8", 216, 112, {"bytecode_lines": 52, "line_bias": 55, "file_name_repaired": 11}, {
            "": 2, "Baseline": 52, "Interpreter": 101, "Liftoff (wasm)": 3, "Maglev": 11,
            "Maglev (context specialized)": 21, "Turbofan": 10, "Turbofan (context specialized)": 13,
            "Turbofan (wasm)": 3,
        },
    ),
    "php82/jit-7884.dump": Facts("PHP", 61, 48, {}, {"": 41, "Tracing JIT": 20}),
    "py313/jit-26854.dump": Facts("CPython", 217, 216, {}, {"": 217}),
    "spidermonkey/jit-13635.dump": Facts("SpiderMonkey", 3328, 1301, {}, {
        "": 22, "Baseline": 69, "BaselineIC": 213, "BaselineICFallback": 33, "BaselineInterpreter": 1199,
        "BlinterpOp": 241, "Interpreter": 1199, "Ion": 44, "Trampoline": 19, "VMWrapper": 289,
    }),
    "wasmtime/jit-9865.dump": Facts("wasmtime", 6, 6, {}, {"": 6}),
}  # fmt: skip


@pytest.mark.parametrize("name", FACTS)
def test_facts(name: str) -> None:
    facts, trace = FACTS[name], trace_of(name)
    tiers = Counter(strings_of(trace, "tiers", "name", int(tier)) for tier in trace.code["tier"])
    seen = Facts(
        trace.inputs[0].producer, len(trace.code), len(trace.funcs),
        {issue.kind: issue.count for issue in trace.report}, dict(tiers),
    )  # fmt: skip
    assert seen == facts


@pytest.mark.parametrize(("name", "suffix"), in_turn(dumps(), [".json", ".gecko.json", ".pftrace"]))
def test_every_dump_becomes_every_output(name: str, suffix: str, tmp_path: Path) -> None:
    trace = load_checked(path_of(name))
    traceferry.save(trace, tmp_path / f"out{suffix}")
    assert (tmp_path / f"out{suffix}").stat().st_size > 1000


@pytest.mark.parametrize("name", SMALL)
def test_what_is_counted_agrees(name: str) -> None:
    """Code objects, markers, the code-size view and the counters describe the same bytes."""
    trace = trace_of(name)
    total = int(trace.code["size"].sum())
    assert sum(code_sizes(trace).values()) == total
    threads = [thread for _, thread in trace.threads if thread.name != CODE_SIZE]
    tables = [table for thread in threads for table in thread.load(trace).markers.values()]
    assert sum(map(len, tables)) == len(trace.code)
    assert sum(int(table["size"].sum()) for table in tables) == total
    mappings = trace.code_mappings
    alive = mappings["code"][mappings["end_ts"] < 0]
    counters = {counter: values[-1][1] for counter, values in live_bytes(trace).items()}
    assert counters.pop("JIT code") == int(trace.code["size"][alive].sum())
    with_tier = alive[trace.code["tier"][alive] >= 0]
    assert sum(counters.values()) == int(trace.code["size"][with_tier].sum())


FAMILIES = {
    "node24-functions/jit-27512.dump": {
        "Baseline", "Interpreter", "Liftoff (wasm)", "Maglev", "Turbofan", "Turbofan (wasm)",
    },
    "spidermonkey/jit-13635.dump": {
        "Baseline", "BaselineIC", "BaselineInterpreter", "Interpreter", "Ion", "Trampoline",
    },
}  # fmt: skip


@pytest.mark.parametrize("name", FAMILIES)
def test_varieties_of_a_tier_are_one_counter(name: str) -> None:
    """Maglev with and without a context; SpiderMonkey's fallback stubs and VM wrappers."""
    trace = trace_of(name)
    assert set(live_bytes(trace)) == {"JIT code", *(f"JIT code: {family}" for family in FAMILIES[name])}
    assert len(FAMILIES[name]) < len(trace.tiers)


# ---------------------------------------------------------------- every record, read a second time


class Loaded(NamedTuple):
    """A LOAD as it stands in the file, and the DEBUG_INFO before it: its payload and number of entries."""

    name: str
    ts: int
    address: int
    code: bytes
    lines: bytes
    n_entries: int


def loads_in(data: bytes) -> tuple[str, Iterator[Loaded]]:
    """The byte order, and the whole loads of a dump."""
    order = "<" if data[:4] == b"DTiJ" else ">"

    def walk() -> Iterator[Loaded]:
        (at,) = struct.unpack_from(order + "I", data, 8)
        lines, n_entries = b"", 0
        while at + 16 <= len(data):
            record_id, size, ts = struct.unpack_from(order + "IIQ", data, at)
            if at + size > len(data):
                return
            payload = data[at + 16 : at + size]
            if record_id == DEBUG_INFO:
                (n_entries,) = struct.unpack_from(order + "Q", payload, 8)
                lines = payload[16:]
            if record_id == LOAD:
                address, code_size = struct.unpack_from(order + "QQ", payload, 16)
                end = payload.index(b"\0", 40)
                code = payload[end + 1 : end + 1 + code_size]
                yield Loaded(payload[40:end].decode(), ts, address, code, lines, n_entries)
                lines, n_entries = b"", 0
            at += size

    return order, walk()


def entries_of(load: Loaded, order: str) -> list[tuple[int, int, int, str]] | None:
    """(address, line, column, file); None where V8 has overwritten the names."""
    found: list[tuple[int, int, int, str]] = []
    at = 0
    for _ in range(load.n_entries):
        if at + 17 > len(load.lines):
            return None
        address, line, column = struct.unpack_from(order + "QII", load.lines, at)
        end = load.lines.find(b"\0", at + 16)
        file = load.lines[at + 16 : end]
        if end < 0 or any(byte < 0x20 for byte in file):
            return None
        found.append((address, line, column, file.decode("utf-8", "replace")))
        at = end + 1
    return found if len(load.lines) - at < 8 and "\ufffd" not in "".join(entry[3] for entry in found) else None


@pytest.mark.parametrize("name", SMALL)
def test_every_load_and_its_bytes(name: str) -> None:
    trace, (_, loads) = trace_of(name), loads_in(content(name))
    (reader,) = trace.code_readers
    seen = 0
    for code, load in enumerate(loads):
        assert symbol_text(trace, code) == load.name
        assert bytes(reader.bytes_of(code)) == load.code
        assert places_of(trace, code)[0][:2] == (load.address, load.ts) if len(trace.code) < 1000 else True
        seen += 1
    assert seen == len(trace.code)


def is_of_bytecode(load: Loaded, name: str) -> bool:
    """V8's baseline code, whose table is that of its bytecode."""
    return name in V8_DUMPS + BIGFP and load.name.startswith("JS:^") and load.n_entries > 0


@pytest.mark.parametrize("name", [name for name in SMALL if not name.startswith("samply-ext")])
def test_every_line(name: str) -> None:
    """At each entry's address its line, or that of the last entry there; V8's and LLVM's 64 bytes earlier. Baseline
    code of V8 has no lines anywhere."""
    data, trace = content(name), trace_of(name)
    order, loads = loads_in(data)
    (reader,) = trace.code_readers
    (pad1,) = struct.unpack_from(order + "I", data, 16)
    assert (pad1 == V8_PAD1) == (name in V8_DUMPS + BIGFP)
    bias = V8_BIAS if pad1 == V8_PAD1 or name.startswith("lli") else 0
    n_overwritten, n_of_bytecode = 0, 0
    # Looked at in the end: the table of frames grows with each that is asked for.
    found: list[tuple[int, int, str]] = []
    without: list[int] = []
    for code, load in enumerate(loads):
        entries = entries_of(load, order)
        n_overwritten += entries is None
        if is_of_bytecode(load, name):
            n_of_bytecode += 1
            frames = [reader.frames_at(trace, code, offset) for offset in range(0, len(load.code), 7)]
            assert len(set(frames)) == len(frames)
            without += [frame for (frame,) in frames]
            continue
        if entries is None:
            continue
        at = {address - bias - load.address: place for address, *place in entries}
        for offset, (line, column, file) in at.items():
            if 0 <= offset < len(load.code):
                place = f"@{file}:{line}:{column}" if column else f"@{file}:{line}"
                (frame,) = reader.frames_at(trace, code, offset)
                found.append((frame, line, place))
    for frame, line, place in found:
        assert frame_text(trace, frame).endswith(place) if line else not trace.frames["line"][frame]
    assert not trace.frames["line"][without].any()
    assert not trace.frames["column"][without].any()
    assert n_overwritten == count_of(trace, "file_name_repaired")
    assert n_of_bytecode == count_of(trace, "bytecode_lines")
    assert found or name.startswith(WITHOUT_LINES)


def count_of(trace: Trace, kind: str) -> int:
    return sum(issue.count for issue in trace.report if issue.kind == kind)


# ---------------------------------------------------------------- V8's lines and files, against the program


def end_of_function(text: list[str], line: int, column: int) -> tuple[int, int]:
    """Where the function ends whose parameters begin at line and column: behind its body's closing brace, at the
    bracket that closes around it, or at the line's end. Good enough for tiers.js."""
    depth, had_body = 0, False
    for nth in range(line, len(text) + 1):
        row = text[nth - 1]
        for at in range(column if nth == line else 1, len(row) + 1):
            depth += (row[at - 1] in "([{") - (row[at - 1] in ")]}")
            had_body |= row[at - 1] == "{" and depth == 1
            if depth < 0 or (depth == 0 and had_body and row[at - 1] == "}"):
                return nth, at
        if depth == 0:
            return nth, len(row) + 1
    return len(text), len(text[-1]) + 1


@pytest.mark.parametrize("name", [V8_DUMPS[0], pytest.param(V8_DUMPS[3], marks=pytest.mark.large)])
def test_lines_lie_inside_the_functions_of_the_program(name: str) -> None:
    """tiers.js was recorded: every position of a function's own code is inside it, or, where optimized code has
    inlined another, inside that one. Tables that were read out of step would show lines of anywhere."""
    trace = trace_of(name)
    text = path_of("tiers.js").read_text().split("\n")
    funcs, sources = trace.funcs, trace.sources
    ranges: dict[int, tuple[tuple[int, int], tuple[int, int]]] = {}
    for code in range(len(trace.code)):
        func = int(trace.code["func"][code])
        path = strings_of(trace, "sources", "path", int(funcs["source"][func]))
        if path.endswith("/tiers.js") and symbol_text(trace, code).startswith("JS:"):
            begin = int(funcs["line"][func]), int(funcs["column"][func])
            ranges[func] = begin, ((len(text), 1) if begin == (1, 1) else end_of_function(text, *begin))
    assert len(ranges) > 20
    assert len(sources) > 1
    n = Counter[str]()
    # Looked at in the end: the table of frames grows with each that is asked for.
    asked: list[tuple[int, str, list[tuple[tuple[int, int], tuple[int, int]]]]] = []
    for code in range(len(trace.code)):
        func, name_of_code = int(trace.code["func"][code]), symbol_text(trace, code)
        if func not in ranges:
            continue
        inside = [ranges[func], *(ranges.values() if name_of_code[3] in "+*o" else ())]
        for offset in range(0, int(trace.code["size"][code]), 16):
            (frame,) = trace.code_readers[0].frames_at(trace, code, offset)
            asked.append((frame, name_of_code, inside))
    for frame, name_of_code, inside in asked:
        place = int(trace.frames["line"][frame]), int(trace.frames["column"][frame])
        if place != (0, 0):
            n["own" if inside[0][0] <= place <= inside[0][1] else "inlined"] += 1
            assert any(begin <= place <= end for begin, end in inside), (name_of_code, place)
    assert n["own"] > 2_500
    assert n["inlined"] < n["own"] / 2


@pytest.mark.parametrize("name", [V8_DUMPS[0], V8_DUMPS[3]])
def test_tables_of_bytecode_are_left_out_and_the_others_stay(name: str) -> None:
    """The 52 of baseline code, and no other. Their last entries show what they are: bytecode is far shorter than the
    machine code that is made of it, while the others' tables go on into the second half."""
    trace = trace_of(name)
    order, loads = loads_in(content(name))
    dump = trace.code_readers[0].dump  # type: ignore[attr-defined]
    n = Counter[bool]()
    reach: dict[bool, list[float]] = {True: [], False: []}
    for given, load in zip(dump.loads, loads, strict=True):
        if load.n_entries:
            of_bytecode = is_of_bytecode(load, name)
            n[of_bytecode] += 1
            n_rows = int(dump.lines.stops[given.lines] - dump.lines.starts[given.lines])
            assert n_rows == (0 if of_bytecode else load.n_entries), load.name
            entries = entries_of(load, order)
            if entries is not None:
                last = max(address for address, *_ in entries) - V8_BIAS - load.address
                reach[of_bytecode].append(last / len(load.code))
    assert n == {True: 52, False: 55}
    assert max(reach[True]) < 0.25 < min(reach[False])


@pytest.mark.parametrize("name", [V8_DUMPS[0], V8_DUMPS[3]])
def test_tables_that_are_left_out_still_tell_the_file(name: str) -> None:
    """Where the function's name has none: code of eval, in every tier."""
    trace = trace_of(name)
    codes = {symbol_text(trace, code): code for code in range(len(trace.code))}
    baseline, optimized = codes["JS:^evaldFn :1:18"], codes["JS:*evaldFn :1:18"]
    assert func_text(trace, baseline) == func_text(trace, optimized) == "evaldFn@my-eval-source.js:1:18"
    assert stack_text(trace, baseline, 0) == "evaldFn@my-eval-source.js"


@pytest.mark.parametrize("name", V8_DUMPS)
def test_repaired_files_are_those_of_the_names(name: str) -> None:
    """Every frame of a function that has file, line and column in its name shows a file that the program has."""
    trace = trace_of(name)
    order, loads = loads_in(content(name))
    paths = {strings_of(trace, "sources", "path", row) for row in range(len(trace.sources))}
    assert all(path.isprintable() for path in paths)
    n_repaired = 0
    for code, load in enumerate(loads):
        if load.n_entries and entries_of(load, order) is None:
            n_repaired += 1
            words, _, _ = load.name.rsplit(":", 2)
            frames = [trace.code_readers[0].frames_at(trace, code, offset)[0] for offset in range(0, len(load.code), 8)]
            files = {seen_place(trace, frame)[1] for frame in frames}
            assert len(files) == 1
            assert words.endswith(f" {files.pop()}")
            assert any(int(trace.frames["line"][frame]) for frame in frames) != is_of_bytecode(load, name)
    assert n_repaired == count_of(trace, "file_name_repaired")


# ---------------------------------------------------------------- the sources beside a dump


def test_sources_that_bun_wrote_are_embedded_when_asked() -> None:
    """The paths in the dump are those of another machine; the files lie beside it, in fixtures/jit the program too."""
    path = path_of("bun-src/jit-10873-10871.dump")
    trace = load_checked(path, embed_sources=path.parent)
    texts = trace.sources["text"].tolist()
    names = [Path(strings_of(trace, "sources", "path", row)).name for row in range(len(texts))]
    embedded = {name: trace.texts[text] for name, text in zip(names, texts, strict=True) if text >= 0}
    written = [f"source-{n}-10871.js" for n in (2, 3, 4, 5)] + ["tiers.js"] * path.with_name("tiers.js").exists()
    assert embedded == {name: path.with_name(name).read_text() for name in written}
    assert set(load_checked(path).sources["text"].tolist()) == {-1}


# ---------------------------------------------------------------- what dumps are called


@pytest.mark.parametrize("name", [name.split("/")[-1] for name in SMALL if not name.startswith("samply-ext")] + [
    "jit-1.dump", "jit-9-7.dump", "jit-9-7-Xy_3.dump", "jit-10873-10871", "jit-9-7-Xy_3", "jit-1",
])  # fmt: skip
def test_a_recording_that_maps_such_a_file_refers_to_it(name: str) -> None:
    """V8, SpiderMonkey and others: jit-PID.dump. Bun: jit-TID-PID.dump, and in newer versions without a suffix."""
    assert DUMP.fullmatch(name)


@pytest.mark.parametrize(
    "name",
    ["jit.dump", "jit-.dump", "jit-x.dump", "jit-1.so", "jit-1.dump.zst", "jitted-1-2.so", "libjit-1.dump", "jit-1 2",
     "jit-1-.dump", "jit-1.dump/x"],
)  # fmt: skip
def test_other_files_are_none(name: str) -> None:
    assert not DUMP.fullmatch(name)


# ---------------------------------------------------------------- a producer that was killed


def test_a_killed_producer_keeps_all_its_loads() -> None:
    name = "node24-killed/jit-29317.dump"
    trace = trace_of(name)
    assert len(trace.code) == 2489
    (issue,) = (issue for issue in trace.report if issue.kind == "dump_unfinished")
    data = content(name)
    assert issue.offset is not None
    assert 0 < len(data) - issue.offset < struct.unpack_from("<I", data, issue.offset + 4)[0]


# ---------------------------------------------------------------- samply's extensions


@cache
def expected_of(name: str) -> Expected:
    wanted = name.removesuffix(".dump") + ".expected.json"
    with TemporaryDirectory() as folder:
        unpacked = Path(folder) / path_of(name).name
        unpacked.write_bytes(content(wanted))
        return jitdump_expected.read(unpacked)


@pytest.mark.parametrize("name", EXTENDED)
class TestExtended:
    """The four dumps give exactly their expected.json; what it leaves undecided (None) is not compared."""

    def codes(self, name: str) -> Iterator[tuple[int, Code]]:
        expected = expected_of(name)
        assert len(trace_of(name).code) == len(expected.code)
        yield from enumerate(expected.code)

    def test_loads(self, name: str) -> None:
        trace = trace_of(name)
        for row, code in self.codes(name):
            load = trace.code_readers[0].dump.loads[row]  # type: ignore[attr-defined]
            assert (load.nth, load.index) == (code.record, code.code_index)
            assert symbol_text(trace, row) == code.name
            assert (int(trace.code["tid"][row]), int(trace.code["size"][row])) == (code.tid, code.size)

    def test_records(self, name: str) -> None:
        expected, trace = expected_of(name), trace_of(name)
        assert trace.code_readers[0].dump.n_records == sum(expected.records.values())  # type: ignore[attr-defined]
        unknown = {issue.kind: issue.count for issue in trace.report}.get("unknown_record", 0)
        assert unknown == expected.records.get("UNKNOWN", 0)

    def test_places(self, name: str) -> None:
        trace = trace_of(name)
        for row, code in self.codes(name):
            wanted = [(a.addr, a.from_ns, -1 if a.to_ns is None else a.to_ns) for a in code.addresses]
            assert places_of(trace, row) == wanted, code.name

    def test_tiers(self, name: str) -> None:
        """A load without a record has the tier of its name's prefix, or none."""
        trace = trace_of(name)
        n_from_prefix = 0
        for row, code in self.codes(name):
            text = tier_text(trace, row)
            if code.tier is not None:
                color = {None: "grey", "lightgreen": "green", "gray": "grey", "darkgray": "darkgrey"}.get(
                    code.tier.color, code.tier.color
                )
                assert text == f"{code.tier.name or f'tier {code.tier.id}'} {color}"
            else:
                assert text.startswith("Turbofan ") if code.name.startswith("JS:*") else text == ""
                n_from_prefix += bool(text)
        assert n_from_prefix > 0

    def test_every_probe(self, name: str) -> None:
        trace = trace_of(name)
        n = 0
        for row, code in self.codes(name):
            for probe in code.probes:
                frames = trace.code_readers[0].frames_at(trace, row, probe.offset)
                assert len(frames) == len(probe.stack), (code.name, probe)
                for frame, place in zip(frames, probe.stack, strict=True):
                    if place.file is not None:
                        wanted = (place.function, *code.model_place(place))
                        assert seen_place(trace, frame) == wanted, (code.name, probe)
                        n += 1
                    elif code.info == "A":
                        assert trace.func_name(int(trace.frames["func"][frame])) == place.function
        assert n > 1000

    def test_sources(self, name: str) -> None:
        """For each path that a code object's frames can have, the text that it shows."""
        trace, expected = trace_of(name), expected_of(name)
        texts = trace.code_readers[0].texts  # type: ignore[attr-defined]
        shown = 0
        for row, code in self.codes(name):
            wanted = {path: None if nth is None else expected.sources[nth].text for path, nth in code.sources.items()}
            for path, text in wanted.items():
                source = int(trace.sources["text"][texts.row(trace, path, code.record)])
                assert (trace.texts[source] if source >= 0 else None) == text
            for probe in code.probes:
                frames = trace.code_readers[0].frames_at(trace, row, probe.offset)
                for frame, place in zip(frames, probe.stack, strict=True):
                    if place.file:
                        assert text_of(trace, frame) == wanted[place.file]
                        shown += wanted[place.file] is not None
        assert shown > 500

    def test_bytes_are_shared_among_the_stacks(self, name: str) -> None:
        """Inlined frames nest: the view's call paths are those of the probes."""
        trace = trace_of(name)
        sizes = code_sizes(trace)
        assert sum(sizes.values()) == int(trace.code["size"].sum())
        for row, code in self.codes(name):
            if code.info is not None:
                for probe in code.probes:
                    assert stack_text(trace, row, probe.offset) in sizes


def seen_place(trace: Trace, frame: int) -> tuple[str, str, int | None, int | None]:
    frames, funcs = trace.frames, trace.funcs
    func, own = int(frames["func"][frame]), int(frames["source"][frame])
    file = strings_of(trace, "sources", "path", own if own >= 0 else int(funcs["source"][func]))
    line, column = int(frames["line"][frame]), int(frames["column"][frame])
    return trace.func_name(func), file, line or None, column or None


def test_places_of_the_expected_file_are_the_model_s() -> None:
    """The reader's own words: line 0 and column 0 are unknown."""
    code: Any = jitdump_expected.Code(0, "f", 0, 1, 4, (), None, "A", 0, {}, (), False)
    assert code.model_place(Place("f", "/a.js", 3, 0)) == ("/a.js", 3, 1)
    assert code.model_place(Place("f", "/a.js", 0, 5)) == ("/a.js", None, None)
