"""The command `traceferry symbols`: the files that it makes of each kind of symbols, look-ups, checks, what it says,
and its exit status. The witness of the files is llvm-gsymutil 19."""

import gzip
import io
import json
import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import zstandard
from builders.breakpad import BUILD_ID, SymFile
from builders.dwarf import HIGH_PC, LOW_PC, NAME, SUBPROGRAM, Dwarf, die
from builders.gsym import SHT_PROGBITS, Body, Call, ElfPart, GsymFile, Site, elf
from builders.jitdump import Function, Inlined, JitDump
from jit_recordings import LONG, dumps
from jit_recordings import content as dump_content
from recordings import binaries_of, content, loaded, path_of
from streams import fdr
from support import load_checked
from test_debug_files import BUILD_ID as BUILD_OF_FILES
from test_debug_files import WORK, link_to
from test_debug_files import elf as elf_file
from test_debuginfod import send, server
from test_gsym_writer import PROGRAM, answers, needs_program
from test_symbols_choose import LOGS, functions_of, stripped

from traceferry.apps import cli
from traceferry.apps.cli.symbol_files import AT_ONCE, Files, lookup_json
from traceferry.common.report import Report
from traceferry.files.source import Source, open_source
from traceferry.reading import ImportContext
from traceferry.symbolication import debug_files
from traceferry.symbolication.demangle import Demangler, demangle
from traceferry.symbolication.gsym.reader import Gsym
from traceferry.symbolication.interface import Symbols

CODE = 0x1000
POOL = "19/pool-pie"
POOL_ID = "d32e73ae122ed358853c93cba10eab8e52a67e3e"
POOL_CPP = "/home/dev/samples/progs/pool.cpp"
STDLIB = "/usr/include/stdlib.h"


class Done(NamedTuple):
    status: int
    out: str
    err: str


Run = Callable[..., Done]


def opened(source: Source) -> Symbols:
    return Files(ImportContext(), Report()).open(source)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]) -> Run:
    """`traceferry symbols` with these words, in a folder of its own."""
    monkeypatch.chdir(tmp_path)

    def symbols(*words: str, command: str = "symbols") -> Done:
        capfdbinary.readouterr()
        try:
            status = cli.main([command, *words])
        except SystemExit as exit_of_argparse:
            status = int(exit_of_argparse.code or 0)
        out, err = capfdbinary.readouterr()
        return Done(status, out.decode(errors="replace"), err.decode())

    return symbols


# ---------------------------------------------------------------- what it is made of


def breakpad() -> SymFile:
    """Two levels of inlined calls, one in two pieces; a public name."""
    file = SymFile().code_id().file(0, "/src/a b.c").file(7, "c.h").origin(0, "inner one").origin(3, "deep<int>()")
    file.func(CODE, 0x40, "outer(int)").inline(0, 12, 0, 0, (0x1010, 8), (0x1028, 8)).inline(1, 5, 7, 3, (0x1014, 4))
    file.line(CODE, 0x10, 11, 0).line(0x1010, 8, 100, 7).line(0x1018, 0x10, 13, 0).line(0x1028, 8, 102, 7)
    return file.func(0x1100, 8, "plain").public(0x1200, "_Z4workiPKc")


def jitdump(byte_order: str = "<") -> JitDump:
    """f, with g in two pieces, h inside the second, and code without lines."""
    g, h = Function("g", "b.js"), Function("h", "c.js")
    calls = [Inlined(g, (12, 0), [(4, 4), (12, 4)], [Inlined(h, (22, 0), [(14, 2)])])]
    lines = [(2, "/a.js", 10, 0), (4, "b.js", 20, 0), (8, "/a.js", 11, 0), (12, "b.js", 21, 0), (14, "c.js", 30, 0)]
    dump = JitDump(byte_order=byte_order).inline_tree_a(Function("f", "/a.js"), lines, calls)
    return dump.load("JS:*f /a.js:1:1", CODE, 16).load("stub", CODE + 0x40, 8)


def gsym() -> GsymFile:
    inner = Call("inner", [(0x1020, 0x1024)], "b.h", 7)
    calls = [Call("_Z5outerv", [(0x1018, 0x1028), (0x1034, 0x1036)], "src/a.c", 9, [inner])]
    lines = [(0x1010, "src/a.c", 10), (0x1018, "b.h", 300), (0x1030, "src/a.c", 12)]
    return GsymFile(version=2, order=">").function("main", 0x1010, 0x30, lines, calls).function("label", 0x1080, 0)


class Kind(NamedTuple):
    """data: makes the file; says: what look-ups of it print."""

    name: str
    data: Callable[[], bytes]
    says: Mapping[int, str]


KINDS = {
    "elf": Kind(
        "pool-pie",
        lambda: content(POOL),
        {
            0x246CF: "no symbol",
            0x246EA: f"main + 26 at {POOL_CPP}:42",
            0x246F8: f"atoi [inlined] at {STDLIB}:364\n         main + 40 at {POOL_CPP}:42",
        },
    ),
    "breakpad": Kind(
        "app.sym",
        lambda: breakpad().bytes(),
        {
            0xFFF: "no symbol",
            0x1000: "outer(int) + 0 at /src/a b.c:11",
            0x1010: "inner one [inlined] at c.h:100\n        outer(int) + 16 at /src/a b.c:12",
            0x1017: "deep<int>() [inlined] at c.h:100\n        inner one [inlined] at c.h:5\n"
            "        outer(int) + 23 at /src/a b.c:12",
            0x1018: "outer(int) + 24 at /src/a b.c:13",
            0x102F: "inner one [inlined] at c.h:102\n        outer(int) + 47 at /src/a b.c:12",
            0x1030: "outer(int) + 48",
            0x1040: "no symbol",
            0x1107: "plain + 7",
            0x1200: "work(int, char const*) + 0",
        },
    ),
    "jitdump": Kind(
        "jit-1.dump",
        lambda: jitdump().bytes(),
        {
            0x1002: "JS:*f /a.js:1:1 + 2 at /a.js:10",
            0x1004: "g [inlined] at b.js:20\n        JS:*f /a.js:1:1 + 4 at /a.js:12",
            0x1008: "JS:*f /a.js:1:1 + 8 at /a.js:11",
            0x100F: "h [inlined] at c.js:30\n        g [inlined] at b.js:22\n        JS:*f /a.js:1:1 + 15 at /a.js:12",
            0x1010: "no symbol",
            0x1047: "stub + 7",
        },
    ),
    "gsym": Kind(
        "app.gsym",
        lambda: gsym().bytes(),
        {
            0x1010: "main + 0 at src/a.c:10",
            0x1020: "inner [inlined] at b.h:300\n        outer() [inlined] at b.h:7\n        main + 16 at src/a.c:9",
            0x1034: "outer() [inlined] at src/a.c:12\n        main + 36 at src/a.c:9",
            0x1040: "no symbol",
            0x1081: "label + 1",
        },
    ),
}  # fmt: skip
KINDS["jitdump, big-endian"] = KINDS["jitdump"]._replace(data=lambda: jitdump(">").bytes())
KINDS["gsym in an ELF file"] = KINDS["gsym"]._replace(
    name="app", data=lambda: elf(ElfPart(".gsym", SHT_PROGBITS, gsym().bytes()))
)
of_each_kind = pytest.mark.parametrize("kind", KINDS)


def made(run: Run, kind: str) -> Kind:
    """The file, and out.gsym of it."""
    given = KINDS[kind]
    Path(given.name).write_bytes(given.data())
    assert run(given.name, "-o", "out.gsym").status == 0
    return given


def printed(says: Mapping[int, str]) -> str:
    return "".join(f"{address:#x}: {text}\n" for address, text in says.items())


def hexes(addresses: Sequence[int] | Mapping[int, Any]) -> list[str]:
    return [f"{address:#x}" for address in addresses]


@of_each_kind
def test_look_ups_of_each_kind(run: Run, kind: str) -> None:
    given = made(run, kind)
    assert run(given.name, "--lookup", *hexes(given.says)) == Done(0, printed(given.says), "")


def data_as_text(answer: Mapping[str, Any]) -> str:
    """What the command prints of an answer."""
    if answer["function"] is None:
        return "no symbol"
    lines = []
    for frame in answer["frames"]:
        place = f" at {frame['source']}:{frame['line'] or 0}" if frame["source"] else ""
        offset = f" + {int(answer['address'], 16) - int(answer['function']['start'], 16)}"
        lines.append(frame["name"] + (" [inlined]" if frame["inlined"] else offset) + place)
    return ("\n" + " " * len(f"{answer['address']}: ")).join(lines)


def answers_of(symbols: Symbols, source: Source, addresses: list[int]) -> list[dict[str, Any]]:
    asked = [np.array(addresses, np.uint64)]
    return [json.loads(line) for line in "".join(lookup_json(symbols, source, asked, Demangler())).splitlines()]


def test_look_ups_as_data(run: Run) -> None:
    """They say what the text says, and more: linkage names, sizes, merged functions."""
    for name, kind in KINDS.items():
        Path(kind.name).write_bytes(kind.data())
        source = open_source(kind.name)
        answers = answers_of(opened(source), source, list(kind.says))
        assert [data_as_text(answer) for answer in answers] == list(kind.says.values()), name
    body = GsymFile().function("_Z1fv", 0x1000, 8, merged=[Body("_Z1gv", 0x1000, 8)])
    source = Source("app.gsym", memoryview(body.bytes()))
    f, g = {"name": "f()", "linkage_name": "_Z1fv"}, {"name": "g()", "linkage_name": "_Z1gv"}
    assert answers_of(Gsym(source), source, [0x1004]) == [
        {
            "address": "0x1004",
            "function": {**f, "start": "0x1000", "size": 8},
            "frames": [{**f, "source": None, "line": None, "inlined": False}],
            "merged": [g],
            "calls": [],
        }
    ]


def test_look_ups_as_data_have_the_calls_of_the_function() -> None:
    data = GsymFile().function("f", 0x1000, 8, sites=[Site(4, ["g", "h.*"], 1), Site(6, [], 2)]).bytes()
    source = Source("app.gsym", memoryview(data))
    inside, outside = answers_of(Gsym(source), source, [0x1001, 0x2000])
    assert inside["calls"] == [
        {"returns_to": "0x1004", "callees": ["g", "h.*"], "internal": True, "external": False},
        {"returns_to": "0x1006", "callees": [], "internal": False, "external": True},
    ]
    assert outside["calls"] == []


@of_each_kind
def test_a_gsym_file_of_each_kind_says_the_same(run: Run, kind: str) -> None:
    given = made(run, kind)
    assert run("out.gsym", "--lookup", *hexes(given.says)) == Done(0, printed(given.says), "")
    done = run("out.gsym", "--verify", given.name)
    assert done.status == 0
    assert re.fullmatch(r"[1-9]\d* addresses compared, 0 differ\n", done.out)


@of_each_kind
def test_the_same_symbols_give_the_same_bytes(run: Run, kind: str) -> None:
    given = made(run, kind)
    run(given.name, "-o", "again.gsym")
    assert Path("again.gsym").read_bytes() == Path("out.gsym").read_bytes()


@of_each_kind
def test_a_gsym_file_of_a_gsym_file_says_the_same(run: Run, kind: str) -> None:
    given = made(run, kind)
    run("out.gsym", "-o", "out.gsym")
    assert run("out.gsym", "--lookup", *hexes(given.says)).out == printed(given.says)


# ---------------------------------------------------------------- llvm-gsymutil

FRAME = re.compile(r"(?P<name>.*?)(?: \+ (?P<offset>\d+))?(?: @ (?P<place>.*:\d+))?(?P<inlined> \[inlined\])?")


def llvm_says(file: Path, addresses: Sequence[int]) -> dict[int, str]:
    """As `--lookup` prints it."""
    return {
        address: ("\n" + " " * len(f"{address:#x}: ")).join(map(as_printed, frames))
        for address, frames in answers(file, addresses).items()
    }


def as_printed(frame: str) -> str:
    if frame.startswith("error: "):
        return "no symbol"
    match = FRAME.fullmatch(frame)
    assert match, frame
    place = f" at {match['place']}" if match["place"] else ""
    return demangle(match["name"]) + (match["inlined"] or f" + {match['offset'] or 0}") + place


@needs_program
@of_each_kind
def test_llvm_gives_the_same_answers(run: Run, kind: str) -> None:
    given = made(run, kind)
    assert llvm_says(Path("out.gsym"), list(given.says)) == dict(given.says)


@needs_program
@of_each_kind
def test_llvm_verifies_what_was_written(run: Run, kind: str) -> None:
    made(run, kind)
    done = subprocess.run([str(PROGRAM), "--verify", "out.gsym"], capture_output=True, text=True, check=True)
    assert done.stdout.count("\nFunctionInfo @") == n_functions(run("out.gsym").out)
    assert not re.search("^ *error:", done.stdout + done.stderr, re.MULTILINE)


def n_functions(summary: str) -> int:
    match = re.match(r".*: (\d+) functions, ", summary)
    assert match, summary
    return int(match[1])


# Calls without a source, which GSYM does not show, are in the dumps of samply's extensions only.
REAL_DUMPS = [dump for dump in dumps(large=LONG) if not (isinstance(dump, str) and dump.startswith("samply-ext/"))]


@pytest.mark.parametrize("dump", REAL_DUMPS)
def test_real_dumps(run: Run, dump: str) -> None:
    Path("jit.dump").write_bytes(dump_content(dump))
    assert run("jit.dump", "-o", "out.gsym").status == 0
    assert run("jit.dump", "--verify", "out.gsym").out.endswith("addresses compared, 0 differ\n")


@needs_program
@pytest.mark.parametrize("dump", REAL_DUMPS)
def test_llvm_says_of_real_dumps_what_we_say(run: Run, dump: str) -> None:
    Path("jit.dump").write_bytes(dump_content(dump))
    run("jit.dump", "-o", "out.gsym")
    functions = Gsym(open_source("out.gsym")).functions()
    all_of_them = sorted({at for f in functions for at in (f.start, f.start + f.size // 2, f.start + f.size)})
    addresses = all_of_them[:: 1 + len(all_of_them) // 3000]
    Path("addresses").write_text("\n".join(hexes(addresses)))
    with open("addresses") as given, pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stdin", given)
        assert run("jit.dump", "--lookup", "-").out == printed(llvm_says(Path("out.gsym"), addresses))


# ---------------------------------------------------------------- the words of a look-up


@pytest.mark.parametrize(
    ("words", "stdin", "asked"),
    [
        (["0x1000"], "", [0x1000]),
        (["1000", "0X1010"], "", [0x1000, 0x1010]),
        (["0x1010", "0x1000", "0x1010"], "", [0x1010, 0x1000, 0x1010]),
        (["-"], "0x1000\n\n1017 what stands behind\n", [0x1000, 0x1017]),
        (["0xfff", "-", "0x1040"], "0x1018\n", [0xFFF, 0x1018, 0x1040]),
        (["-"], "+0x1000 \n\u00a01018\n 0x00000000000001010\r\n\t\n0x1000", [0x1000, 0x1018, 0x1010, 0x1000]),
        (["-"], "", []),
    ],
    ids=["one", "without 0x", "in the order given", "standard input", "both", "as Python reads it", "none"],
)
def test_addresses(run: Run, monkeypatch: pytest.MonkeyPatch, words: list[str], stdin: str, asked: list[int]) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(stdin))
    file = made(run, "breakpad")
    wanted = "".join(printed({address: file.says[address]}) for address in asked)
    assert run(file.name, "--lookup", *words) == Done(0, wanted, "")


def test_many_addresses(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """More than are looked up at once."""
    file = made(run, "breakpad")
    monkeypatch.setattr("sys.stdin", io.StringIO("0x1000\n0x1018\n" * AT_ONCE))
    lines = run(file.name, "--lookup", "-").out.splitlines()
    assert lines == [f"{address:#x}: {file.says[address]}" for address in (0x1000, 0x1018)] * AT_ONCE


@pytest.mark.parametrize("address", [0, (1 << 64) - 2])
@of_each_kind
def test_the_ends_of_memory(run: Run, kind: str, address: int) -> None:
    """A public name, or a label, lasts until the next one."""
    file = made(run, kind)
    last = {"app.sym": "work(int, char const*)", "app.gsym": "label", "app": "label"}.get(file.name)
    found = run(file.name, "--lookup", f"{address:#x}").out
    assert found.startswith(f"{address:#x}: {(address and last) or 'no symbol'}")


MISTAKES = {
    "no number": (["app.sym", "--lookup", "main"], "'main' is not a valid address: write it in hex"),
    "no number, after a good one": (["app.sym", "--lookup", "0x1000", "0x"], "'0x' is not a valid address"),
    "more than 64 bits": (["app.sym", "--lookup", "0x10000000000000000"], "more than 64 bits"),
    "no number on standard input": (["app.sym", "--lookup", "-"], "'words' is not a valid address"),
    "no time": (["jit-1.dump", "--at", "soon"], "'soon' is not a valid duration"),
    "a time of what has none": (["app.sym", "--at", "1s"], "only a recording's code has a time"),
    "no file": (["none"], "none: cannot be read"),
    "no file to verify with": (["app.sym", "--verify", "none"], "none: cannot be read"),
    "no symbols": (["notes.txt"], "notes.txt: not a readable ELF, GSYM, Breakpad, Mach-O, PE or PDB file"),
    "no symbols to verify with": (["app.sym", "--verify", "notes.txt"], "notes.txt: not a readable ELF"),
    "a recording without code": (["app.xray"], "app.xray: the recording has no jitted code"),
    "a damaged file": (["cut.gsym"], "the data ends before its sections"),
    "a folder that is not there": (["app.sym", "-o", "none/o.gsym"], "none/o.gsym: cannot be written"),
    "a folder": (["app.sym", "-o", "."], ".: cannot be written"),
    "a build id that is too long": (["long.sym", "-o", "o.gsym"], "a build id of 32 bytes does not fit"),
    "no source": ([], "SOURCE"),
    "no address": (["app.sym", "--lookup"], "--lookup"),
    "a limit below 0": (["app.sym", "--verify", "app.sym", "--limit", "-1"], "--limit"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes(run: Run, monkeypatch: pytest.MonkeyPatch, mistake: str) -> None:
    """Exit status 2, a message, nothing written."""
    inputs = {
        "app.sym": breakpad().bytes(),
        "long.sym": SymFile().code_id("ab" * 32).func(CODE, 8, "f").bytes(),
        "cut.gsym": gsym().bytes()[:20],
        "jit-1.dump": jitdump().bytes(),
        "app.xray": fdr("A a").bytes(),
        "notes.txt": b"nothing",
    }
    for name, data in inputs.items():
        Path(name).write_bytes(data)
    monkeypatch.setattr("sys.stdin", io.StringIO("words\n"))
    words, message = MISTAKES[mistake]
    done = run(*words)
    assert done.status == 2
    assert message in done.err
    assert done.out == ""
    assert {path.name for path in Path().rglob("*")} == inputs.keys()


# ---------------------------------------------------------------- damage


@pytest.mark.parametrize("words", [[], ["--lookup", "0x1000"], ["-o", "out.gsym"], ["--verify", "app.sym"]])
def test_damage_is_said(run: Run, words: list[str]) -> None:
    """Exit status 1: all else is there."""
    whole = breakpad().bytes()
    Path("app.sym").write_bytes(whole + b"FUNC x\n")
    done = run("app.sym", *words)
    assert done.status == 0
    assert f"app.sym: damaged at offset {len(whole)}: invalid record of a Breakpad symbol file" in done.err
    Path("app.sym").write_bytes(whole)
    undamaged = run("app.sym", *words)
    assert undamaged.status == 0
    assert "damaged" not in undamaged.err


def test_a_damaged_function_of_gsym_is_lost_and_no_other(run: Run) -> None:
    file = gsym()
    file.string_at("label", 1 << 20)
    Path("app.gsym").write_bytes(file.bytes())
    done = run("app.gsym", "--lookup", "0x1010", "0x1080")
    assert done.out == "0x1010: main + 0 at src/a.c:10\n0x1080: no symbol\n"
    assert "a string in it is outside the string table" in done.err
    assert done.status == 0


# ---------------------------------------------------------------- code of recordings


def reused() -> JitDump:
    """f, then g on the same bytes, then h beside them; 100 ns apart."""
    dump = JitDump(start=5000)
    for nth, (name, address) in enumerate([("f", CODE), ("g", CODE), ("h", CODE + 0x40)]):
        dump.load(name, address, 16, ts=5000 + 100 * nth)
    return dump


TIMES = {
    "": ["g", "h"], "0": ["f"], "99ns": ["f"], "100ns": ["g"], "199ns": ["g"], "200ns": ["g", "h"], "1s": ["g", "h"],
}  # fmt: skip


@pytest.mark.parametrize("time", TIMES)
def test_the_code_of_a_time(run: Run, time: str) -> None:
    """Counted from the recording's start; without a time, what was loaded last."""
    Path("jit-1.dump").write_bytes(reused().bytes())
    at = ["--at", time] if time else []
    run("jit-1.dump", *at, "-o", "out.gsym")
    names = [function.name for function in Gsym(open_source("out.gsym")).functions()]
    assert names == TIMES[time]
    names += ["no"] * (2 - len(names))
    wanted = [f"{address:#x}: {name} " for address, name in zip((CODE, CODE + 0x40), names, strict=True)]
    found = run("jit-1.dump", *at, "--lookup", f"{CODE:#x}", f"{CODE + 0x40:#x}").out.splitlines()
    assert all(line.startswith(lead) for line, lead in zip(found, wanted, strict=True))


def test_calls_without_a_source_are_not_in_gsym(run: Run) -> None:
    """So the format has it: llvm-gsymutil shows no such frame either."""
    dump = JitDump().inline_stacks_b(CODE, {0: [("f", None, 0, 0), ("g", "b.js", 7, 1)]}).load("f", CODE)
    Path("jit-1.dump").write_bytes(dump.bytes())
    run("jit-1.dump", "-o", "out.gsym")
    assert run("jit-1.dump", "--lookup", "0x1000").out == "0x1000: g [inlined] at b.js:7\n        f + 0\n"
    assert run("out.gsym", "--lookup", "0x1000").out == "0x1000: f + 0 at b.js:7\n"


def test_a_pack_has_the_code_of_its_recording(run: Run) -> None:
    Path("jit-1.dump").write_bytes(reused().bytes())
    assert run("jit-1.dump", "-o", "app.tfpack", "--quiet", command="pack").status == 0
    for words in (["--lookup", "0x1000", "0x1040"], ["--at", "0", "--lookup", "0x1000", "--json"], ["-o", "-"]):
        one, other = (run(name, *words) for name in ("jit-1.dump", "app.tfpack"))
        assert one.out == other.out != ""
    whole = zstandard.ZstdDecompressor().decompressobj().decompress(Path("app.tfpack").read_bytes())
    Path("bad.tfpack").write_bytes(whole[:-2000])
    assert "damaged pack" in run("bad.tfpack").err


# ---------------------------------------------------------------- debug files


@pytest.mark.parametrize("how", ["beside", "a folder", "a file", "a sysroot", "a server"])
def test_a_stripped_file_is_named_by_its_debug_file(run: Run, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which the text names; its answers, and its GSYM, are those of the debug file."""
    debug = elf_file(WORK, build_id=BUILD_OF_FILES)
    Path("libx.so").write_bytes(elf_file(build_id=BUILD_OF_FILES, more=link_to("libx.debug", debug)))
    Path("apart/usr/lib/debug/.build-id/" + BUILD_OF_FILES.hex()[:2]).mkdir(parents=True)
    apart = Path("apart/usr/lib/debug/.build-id") / BUILD_OF_FILES.hex()[:2] / f"{BUILD_OF_FILES.hex()[2:]}.debug"
    apart.write_bytes(debug)
    Path("one").mkdir()
    Path("one/other.debug").write_bytes(debug)
    monkeypatch.setenv("DEBUGINFOD_CACHE_PATH", "cache")
    words, place = {
        "beside": ([], "libx.debug"),
        "a folder": (["--symbols", "one"], "one/other.debug"),
        "a file": (["--symbols", "one/other.debug"], "one/other.debug"),
        "a sysroot": (["--sysroot", "apart"], f"{BUILD_OF_FILES.hex()[2:]}.debug"),
        "a server": (["--debuginfod"], f"cache/{BUILD_OF_FILES.hex()}/debuginfo"),
    }[how]
    assert run("libx.so", "--lookup", "0x1820").out == "0x1820: no symbol\n"
    if how == "beside":
        monkeypatch.setattr(debug_files, "SYSTEM", "/")
        Path("libx.debug").write_bytes(debug)
    with server(send(debug)) as (url, _):
        monkeypatch.setenv("DEBUGINFOD_URLS", url)
        done = run("libx.so", *words, "--lookup", "0x1820", "-o", "out.gsym")
    assert done.out == run("one/other.debug", "--lookup", "0x1820").out != "0x1820: no symbol\n"
    assert place in done.err
    assert "work" in [function.name for function in Gsym(open_source("out.gsym")).functions()]


def test_symbols_of_another_build_and_in_vain(run: Run) -> None:
    Path("libx.so").write_bytes(elf_file(build_id=BUILD_OF_FILES))
    Path("libx.so.debug").write_bytes(elf_file(WORK, build_id=bytes(20)))
    Path("other.debug").write_bytes(elf_file(WORK, build_id=bytes(19) + b"1"))
    assert "its build id is" in run("libx.so", "--symbols", "libx.so.debug").err
    assert "gave nothing" in run("libx.so", "--symbols", "other.debug").err


# ---------------------------------------------------------------- checking


def test_a_file_that_was_changed_differs(run: Run) -> None:
    """Exit status 1, and what both say."""
    made(run, "elf")
    data = Path("out.gsym").read_bytes()
    assert data.count(b"\0main\0") == 1
    Path("out.gsym").write_bytes(data.replace(b"\0main\0", b"\0mine\0"))
    done = run("out.gsym", "--verify", "pool-pie")
    ends = [0x246D0, 0x246D0 + 417 // 2, 0x246D0 + 416]
    *shown, last = done.out.splitlines()
    mine = [line for line in shown if line.startswith("0x")]
    other = [line for line in shown if line.startswith("  pool-pie has ")]
    assert [line.partition(":")[0] for line in mine] == hexes(ends)
    assert [line.replace("  pool-pie has ", "") for line in other] == [line.replace("mine", "main") for line in mine]
    assert re.fullmatch(r"[1-9]\d+ addresses compared, 3 differ", last)
    assert done.status == 1


CHANGES: dict[str, tuple[Callable[[bytes], bytes], int]] = {
    "nothing": (lambda file: file, 0),
    "a name": (lambda file: file.replace(b" plain\n", b" other\n"), 3),
    "a line": (lambda file: file.replace(b"1000 10 11 0", b"1000 10 12 0"), 1),
    "a source": (lambda file: file.replace(b"FILE 7 c.h", b"FILE 7 d.h"), 0),
    "a path that goes up again": (lambda file: file.replace(b"/src/a b.c", b"/src/x/../a b.c"), 0),
    "a line of a call": (lambda file: file.replace(b"INLINE 0 12", b"INLINE 0 19"), 0),
    "a function that is not there": (lambda file: file.replace(b"FUNC 1100 8", b"FUNC 1180 8"), 3),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_differs(run: Run, change: str) -> None:
    """Compared is at the start, middle and end of each function: three bytes of each of size 8 or more."""
    make, n_differ = CHANGES[change]
    Path("app.sym").write_bytes(breakpad().bytes())
    Path("other.sym").write_bytes(make(breakpad().bytes()))
    done = run("app.sym", "--verify", "other.sym")
    assert done.out.splitlines()[-1].endswith(f" addresses compared, {n_differ} differ")
    assert done.status == (1 if n_differ else 0)


@pytest.mark.parametrize(("limit", "n_shown"), [([], 20), (["--limit", "3"], 3), (["--limit", "0"], 0)])
def test_so_many_differences_are_printed(run: Run, limit: list[str], n_shown: int) -> None:
    for name, line in (("app.sym", 1), ("other.sym", 2)):
        file = SymFile().file(1, "a.c")
        for nth in range(10):
            file.func(CODE + 16 * nth, 16, f"f{nth}").line(CODE + 16 * nth, 16, line, 1)
        Path(name).write_bytes(file.bytes())
    lines = run("app.sym", "--verify", "other.sym", *limit).out.splitlines()
    assert len(lines) == 2 * n_shown + 1
    assert lines[-1] == "30 addresses compared, 30 differ"


def test_made_and_verified_at_once(run: Run) -> None:
    Path("app.sym").write_bytes(breakpad().bytes())
    done = run("app.sym", "-o", "out.gsym", "--lookup", "0x1107", "--verify", "app.sym")
    assert done.out == "0x1107: plain + 7\n7 addresses compared, 0 differ\n"
    assert Path("out.gsym").exists()


# ---------------------------------------------------------------- sizes


def test_the_size_of_debug_information(run: Run) -> None:
    dwarf = Dwarf().unit(*(die(SUBPROGRAM, {NAME: f"f{n}", LOW_PC: CODE + n, HIGH_PC: 1}) for n in range(40)))
    Path("app").write_bytes(dwarf.elf())
    debug, file = sum(map(len, dwarf.sections.values())), len(dwarf.elf())
    assert f"\n{debug:>12}  bytes of debug information\n{file:>12}  bytes of the file\n" in run("app").out
    done = run("app", "-o", "out.gsym")
    size = Path("out.gsym").stat().st_size
    times = f"{debug / size:.1f}"
    assert done == Done(
        0, "", f"wrote out.gsym: 40 functions, {size} bytes; DWARF has {debug} bytes, {times} times as many\n"
    )


SAID_BEFORE = {
    "elf": r"; DWARF has 123640 bytes, 1\.8 times as many",
    "breakpad": rf"; app\.sym has {len(breakpad().bytes())} bytes, \d+\.\d times as many",
    "gsym": rf"; app\.gsym has {len(gsym().bytes())} bytes, \d+\.\d times as many",
    "jitdump": "",
}


@pytest.mark.parametrize("kind", SAID_BEFORE)
def test_what_is_said_of_a_file_that_was_made(run: Run, kind: str) -> None:
    given = made(run, kind)
    done = run(given.name, "-o", "out.gsym")
    size = Path("out.gsym").stat().st_size
    assert re.fullmatch(rf"wrote out\.gsym: \d+ functions, {size} bytes{SAID_BEFORE[kind]}\n", done.err)
    assert done.out == ""


SUMMARIES = {
    "elf": ("pool-pie: 763 functions, 483 lines, 69 functions inlined directly", POOL_ID, 0),
    "breakpad": ("app.sym: 3 functions, 5 lines, 1 functions inlined directly", BUILD_ID, 0),
    "jitdump": ("jit-1.dump: 2 functions, 7 lines, 1 functions inlined directly", None, CODE),
    "gsym": ("app.gsym: 2 functions, 3 lines, 1 functions inlined directly", "01234567", CODE),
}


@pytest.mark.parametrize("kind", SUMMARIES)
def test_summaries(run: Run, kind: str) -> None:
    first, build_id, base = SUMMARIES[kind]
    done = run(made(run, kind).name)
    lines = done.out.splitlines()
    assert (done.status, lines[0]) == (0, f"{first} into them")
    assert lines[1].endswith(f"lowest address {base:#x}")
    assert build_id is None or lines[1].startswith(f"build id {build_id}, ")


@of_each_kind
def test_parts_of_a_gsym_file_are_the_whole(run: Run, kind: str) -> None:
    made(run, kind)
    sizes = re.findall(r"^ *(\d+)  bytes of (.*)$", run("out.gsym").out, re.MULTILINE)
    assert sum(int(size) for size, _ in sizes) == Path("out.gsym").stat().st_size
    assert ("48", "header") in sizes


def test_what_does_not_fit_is_counted(run: Run) -> None:
    Path("app.sym").write_bytes(SymFile().func(CODE, 1 << 32, "huge").func(CODE, 8, "f").bytes())
    done = run("app.sym", "-o", "out.gsym")
    assert "wrote out.gsym: 1 functions" in done.err
    assert "left out 1 functions without a name or outside the loaded addresses" in done.err


# ---------------------------------------------------------------- where to


def test_to_standard_output(run: Run, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    made(run, "breakpad")
    capfdbinary.readouterr()
    assert cli.main(["symbols", "app.sym", "-o", "-"]) == 0
    assert capfdbinary.readouterr().out == Path("out.gsym").read_bytes()


def test_compressed(run: Run) -> None:
    made(run, "breakpad")
    run("app.sym", "-o", "o.gsym.gz")
    assert gzip.decompress(Path("o.gsym.gz").read_bytes()) == Path("out.gsym").read_bytes()
    assert run("o.gsym.gz", "--lookup", "0x1107").out == "0x1107: plain + 7\n"


@pytest.mark.parametrize("path", ["c:\\src\\a.c", "c:\\src/a.c", "/src\\x/a.c", "a.c", "/a.c", "src/", "a\\b"])
def test_paths_stay_what_they_are(run: Run, path: str) -> None:
    """Readers put the separator between folder and name that the folder itself has."""
    Path("app.sym").write_bytes(SymFile().file(1, path).func(CODE, 8, "f").line(CODE, 8, 3, 1).bytes())
    run("app.sym", "-o", "out.gsym")
    assert run("out.gsym", "--lookup", "0x1000").out == f"0x1000: f + 0 at {path}:3\n"


def test_a_zero_does_not_end_a_text(run: Run) -> None:
    Path("app.sym").write_bytes(SymFile().func(CODE, 8, "a\0b").bytes())
    run("app.sym", "-o", "out.gsym")
    assert run("out.gsym", "--lookup", "0x1000").out == "0x1000: a\ufffdb + 0\n"


# ---------------------------------------------------------------- with recordings


@pytest.mark.parametrize("log", LOGS)
def test_a_log_has_the_names_and_lines_of_the_binary(run: Run, tmp_path: Path, log: str) -> None:
    """Clones of a function too, which only the symbol table tells from it."""
    symbols: list[str] = []
    for path in binaries_of(log):
        name = path.name.removesuffix(".zst")
        assert run(str(path), "-o", f"{name}.gsym").status == 0
        compiler = re.sub("[a-z]+-?", "", path.parent.name)
        symbols += [f"{name}.gsym", str(stripped(f"{compiler}/{name}", tmp_path))]
    found = functions_of(load_checked(path_of(log), symbols=symbols))
    assert found == functions_of(loaded(log))
    assert any(line for _, _, line in found)


def test_symbols_of_another_build_are_refused(run: Run, tmp_path: Path) -> None:
    made(run, "gsym")
    log = path_of("fdr-c19-pie-pool.xray")
    options = ["--symbols", str(stripped(POOL, tmp_path)), "--symbols", "app.gsym"]
    done = run(str(log), *options, "-o", "o.json", command="convert")
    assert done.status == 2
    assert POOL_ID in done.err
    assert "01234567" in done.err
    assert not Path("o.json").exists()
