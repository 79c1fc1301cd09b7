"""The symbol server of `traceferry view`: instructions, sources and names, against GNU objdump, the symbols themselves
and profiler-cli."""

from __future__ import annotations

import gzip
import json
import random
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zstandard
from builders.jitdump import AARCH64, JitDump
from builders.perf_data import PerfData
from clients.firefox import ProfilerCli, available
from clients.view import View
from conftest import NO_SHARED, REPO
from jit_recordings import path_of
from support import for_each

import traceferry
from traceferry.apps.view.disassembly import Instruction, disassemble
from traceferry.apps.view.symbol_server import SymbolServer
from traceferry.common.errors import UsageError
from traceferry.files.source import open_source
from traceferry.model import Trace
from traceferry.symbolication.binary import Binary
from traceferry.symbolication.choose import open_symbols
from traceferry.symbolication.demangle import Demangler, demangle, shown_frames
from traceferry.symbolication.libraries import LibraryFile

POOL = REPO / "fixtures/xray/clang-19/fdr-c19-pie-pool-tsc.xray"
PROGRAM = REPO / "fixtures/xray/clang-19/pool-pie.zst"
RECORDED = ("node24/jit-27512.dump", "java17/jit-7180.dump", "php82/jit-7884.dump", "wasmtime/jit-9865.dump",
            "node24-functions/jit-27512.dump")  # fmt: skip
N_OBJECTS = 1000
needs_objdump = pytest.mark.skipif(
    not (shutil.which("objdump") and shutil.which("as")), reason="GNU binutils are not installed: apt install binutils"
)


def request_of(trace: Trace, lib: int, address: int, size: int = 0, file: str = "") -> dict[str, Any]:
    """Of any of the three questions."""
    name, debug_id = (trace.strings[int(trace.libs[column][lib])] for column in ("name", "debug_id"))
    return {
        "debugName": name, "debugId": debug_id, "name": name, "codeId": None, "startAddress": hex(address),
        "size": hex(size), "moduleOffset": hex(address), "file": file, "continueUntilFunctionEnd": size == 0,
    }  # fmt: skip


def request_of_code(trace: Trace, code: int, **others: Any) -> dict[str, Any]:
    symbol = int(trace.code["symbol"][code])
    lib, address = int(trace.symbols["lib"][symbol]), int(trace.symbols["address"][symbol])
    return request_of(trace, lib, address, int(trace.code["size"][code]), **others)


def asked(server: SymbolServer, question: str, request: Any) -> Any:
    return server.answer(question, json.dumps(request).encode())


def texts(trace: Trace, code: int) -> list[str]:
    answer = asked(SymbolServer(trace), "/asm/v1", request_of_code(trace, code))
    assert "error" not in answer, answer
    return [text for _, text in answer["instructions"]]


def no_names(_: Sequence[int]) -> dict[int, str]:
    return {}


# ---------------------------------------------------------------- instructions

# Text, as objdump writes an instruction: offset, bytes, mnemonic and operands.
LINE = re.compile(r"\s+([0-9a-f]+):\t((?:[0-9a-f]{2} )+)\s*\t?(.*)")
# Data: objdump does not decode it, or shows prefixes without an instruction.
DATA = re.compile(r".*\(bad\).*|(?:rex(?:\.\w+)?|data16|addr32|rep\w*|[c-g]s|es|ss)|lock \w+ [^\[]*")
# Different words for the same: GNU's, capstone's.
SPELLINGS = {
    ("xchg", "nop"), ("popf", "popfq"), ("pushf", "pushfq"), ("repnz", "repne"), ("repz", "rep"), ("repz", "repe"),
    ("xlat", "xlatb"), ("data16", "nop"), ("cs", "nop"), ("pclmulqdq", "pclmulqdq"), ("leave", "leave"),
    ("movabs", "movabs"), ("ins", "insb"), ("ins", "insd"), ("outs", "outsb"), ("outs", "outsd"), ("fwait", "wait"),
}  # fmt: skip
PREFIX = re.compile(r"^(?:\{evex\}|rex(?:\.\w+)?|ds|cs|ss|es|gs|fs|notrack|bnd) ")


def by_objdump(folder: Path, pieces: Sequence[bytes]) -> dict[int, list[Instruction]]:
    """Each piece is a section of its own, so that all are done in one run."""
    folder.mkdir(exist_ok=True)
    (folder / "bytes").write_bytes(b"".join(pieces))
    lines, at = [], 0
    for nth, piece in enumerate(pieces):
        lines.append(f'.section .piece{nth},"ax"\n.incbin "{folder}/bytes",{at},{len(piece)}\n')
        at += len(piece)
    (folder / "pieces.s").write_text("".join(lines))
    subprocess.run(["as", "--64", "-o", folder / "pieces.o", folder / "pieces.s"], check=True)
    command = ["objdump", "-D", "-z", "-M", "intel", "--insn-width=16", str(folder / "pieces.o")]
    found: dict[int, list[Instruction]] = {}
    instructions: list[Instruction] = []
    for line in subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines():
        if section := re.match(r"Disassembly of section \.piece(\d+):", line):
            instructions = found.setdefault(int(section[1]), [])
        elif one := LINE.match(line):
            instructions.append(Instruction(int(one[1], 16), len(one[2].split()), one[3].strip()))
    return found


def until_data(instructions: Sequence[Instruction]) -> Iterator[Instruction]:
    """The instructions in front of the first bytes that are none: what follows data may begin anywhere."""
    for one in instructions:
        if DATA.fullmatch(one.text):
            return
        yield one


def mnemonic(text: str) -> str:
    return PREFIX.sub("", text).split(" ")[0]


def same_mnemonic(gnu: str, ours: str) -> bool:
    # vpclmulhqlqdq is vpclmulqdq with a constant; cmpltss is cmpss with one.
    return gnu == ours or (gnu, ours) in SPELLINGS or re.sub(r"[hl]q[hl]q", "q", gnu) == ours


@needs_objdump
def test_the_instructions_of_a_thousand_code_objects_are_those_of_objdump(tmp_path: Path) -> None:
    """All offsets and lengths; mnemonics but for their spelling. Constants between the instructions end a comparison:
    few objects have any."""
    chosen: list[tuple[Trace, int]] = []
    for name in RECORDED:
        try:
            trace = traceferry.load(path_of(name))
        except pytest.skip.Exception:  # in the shared recordings only
            continue
        chosen += [(trace, code) for code, size in enumerate(trace.code["size"].tolist()) if size]
    chosen = random.Random(1).sample(chosen, min(N_OBJECTS, len(chosen)))
    assert len(chosen) > 500
    servers = {id(trace): SymbolServer(trace) for trace, _ in chosen}
    pieces = [bytes(next(r for r in t.code_readers if code in r.rows).bytes_of(code)) for t, code in chosen]
    expected = by_objdump(tmp_path / "objdump", pieces)
    n_whole = n_instructions = 0
    words: set[tuple[str, str]] = set()
    for nth, (trace, code) in enumerate(chosen):
        answer = asked(servers[id(trace)], "/asm/v1", request_of_code(trace, code))
        offsets = [offset for offset, _ in answer["instructions"]]
        sizes = np.diff([*offsets, len(pieces[nth])]).tolist()
        wanted = list(until_data(expected[nth]))
        got = [Instruction(*one) for one in zip(offsets, sizes, (t for _, t in answer["instructions"]), strict=True)]
        got = got[: len(wanted)]
        assert [one[:2] for one in got] == [one[:2] for one in wanted], (nth, trace.func_name(code))
        words |= {(mnemonic(w.text), mnemonic(g.text)) for w, g in zip(wanted, got, strict=True)}
        n_whole += len(wanted) == len(expected[nth])
        n_instructions += len(wanted)
    assert {pair for pair in words if not same_mnemonic(*pair)} == set()
    assert n_whole > len(chosen) * 0.8
    assert n_instructions > 50 * len(chosen)


@needs_objdump
def test_a_function_of_a_binary_is_read_from_the_file_of_its_build(tmp_path: Path) -> None:
    program = tmp_path / "pool-pie"
    program.write_bytes(zstandard.ZstdDecompressor().stream_reader(PROGRAM.read_bytes()).read())
    trace = traceferry.load(POOL, symbols=program)
    server = SymbolServer(trace)
    n_calls = 0
    for symbol in range(len(trace.symbols)):
        lib, address = int(trace.symbols["lib"][symbol]), int(trace.symbols["address"][symbol])
        answer = asked(server, "/asm/v1", request_of(trace, lib, address))
        size = int(answer["size"], 16)
        command = ["objdump", "-d", "-M", "intel", "--insn-width=16", "--no-show-raw-insn",
                   f"--start-address={address}", f"--stop-address={address + size}", str(program)]  # fmt: skip
        printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        lines = re.findall(r"^ +([0-9a-f]+):\t(.*)", printed, re.MULTILINE)
        assert [address + offset for offset, _ in answer["instructions"]] == [int(at, 16) for at, _ in lines]
        for (_, ours), (_, gnu) in zip(answer["instructions"], lines, strict=True):
            named = re.fullmatch(r"call +[0-9a-f]+ <(\w+)>", gnu.strip())
            if named and "@" not in gnu:
                n_calls += 1
                assert ours == f"call {demangle(named[1])}"
    assert n_calls > 10
    lib = int(trace.symbols["lib"][0])
    without = SymbolServer(traceferry.load(POOL))
    assert "no library" in asked(without, "/asm/v1", request_of(trace, lib, 0x1000))["error"]


# call +11; jump to the start; nothing of x86-64; jump to the jump; return
CALLER = bytes.fromhex("e80b000000 ebf9 06 ebfb c3")
CALLEE = bytes.fromhex("c3")


def test_calls_and_jumps_have_names() -> None:
    dump = JitDump(pid=7)
    dump.load("callee", 0x2010, code=CALLEE).load("caller", 0x2000, code=CALLER)
    trace = traceferry.load(_written(dump))
    assert texts(trace, 1) == ["call callee", "jmp caller", ".byte 0x06", "jmp 0x6", "ret"]


def test_each_compilation_is_read_at_its_own_time() -> None:
    """Another function lies at the target later; what was not there yet has no name."""
    dump = JitDump(pid=7)
    dump.load("old", 0x2010, code=CALLEE).load("caller", 0x2000, code=CALLER)
    dump.load("new", 0x2010, code=CALLEE).load("caller", 0x2000, code=CALLER)
    trace = traceferry.load(_written(dump))
    assert [texts(trace, code)[0] for code in (1, 3)] == ["call old", "call new"]
    dump = JitDump(pid=7).load("caller", 0x2000, code=CALLER).load("late", 0x2010, code=CALLEE)
    trace = traceferry.load(_written(dump))
    assert texts(trace, 0)[0] == "call 0x2010"


def test_a_constant_that_is_an_address_has_the_name_as_a_comment() -> None:
    loads = b"\x49\xba" + (0x7F00_0000_2010).to_bytes(8, "little") + bytes.fromhex("41ffd2c3")
    dump = JitDump(pid=7).load("callee", 0x7F00_0000_2010, code=CALLEE).load("caller", 0x7F00_0000_2000, code=loads)
    assert texts(traceferry.load(_written(dump)), 1)[0] == "movabs r10, 0x7f0000002010  ; callee"


def test_jitted_code_calls_functions_of_libraries_by_name(tmp_path: Path) -> None:
    program = tmp_path / "pool-pie"
    program.write_bytes(zstandard.ZstdDecompressor().stream_reader(PROGRAM.read_bytes()).read())
    symbols = open_symbols(open_source(str(program)))
    function = next(f for f in symbols.functions() if f.size > 16)
    offset = function.start - symbols.base
    base = 0x7F00_0000_0000
    call = b"\xe8" + (base + offset - (base - 0x1000 + 5)).to_bytes(4, "little", signed=True) + b"\xc3"
    dump = JitDump(pid=7).load("caller", base - 0x1000, code=call)
    recording = PerfData(start=10).event("cpu-clock", type=1, config=0)
    loaded = (segment for segment in Binary(open_source(str(program))).segments if segment.type == "PT_LOAD")
    text = next(s for s in loaded if s.address <= function.start < s.address + s.size)
    recording.mmap2(7, 7, base + text.address - symbols.base, text.size, text.offset, str(program))
    recording.sample(7, 7, 2_000_000_000, base + offset + 1)
    path = tmp_path / "perf.data"
    path.write_bytes(recording.bytes())
    trace = traceferry.load([path, _written(dump)], symbols=program)
    assert texts(trace, 0)[0] == f"call {demangle(function.name)}"


PROCESSORS = {
    "arm64": ("04000094 40000034 e0ffff54 2000028b c0035fd6",
              ["bl 0x1010", "cbz w0, 0x100c", "b.eq 0x1004", "add x0, x1, x2", "ret"], (0, 4, 8, 12, 16)),
    "arm": ("020000eb 0000000a 020081e0 1eff2fe1",
            ["bl 0x1010", "beq 0x100c", "add r0, r1, r2", "bx lr"], (0, 4, 8, 12)),
    "thumb": ("00f006f8 00d0 8818 7047", ["bl 0x1010", "beq 0x1008", "adds r0, r1, r2", "bx lr"], (0, 4, 6, 8)),
    "riscv64": ("ef000001 6304b500 3385c500 11a0 8280",
                ["jal 0x1010", "beq a0, a1, 0x100c", "add a0, a1, a2", "c.j 0x1010", "c.jr ra"], (0, 4, 8, 12, 14)),
    "x86": ("e80b000000 8b442404 ebf5 c3", ["call 0x1010", "mov eax, dword ptr [esp + 4]", "jmp 0x1000", "ret"],
            (0, 5, 9, 11)),
    "s390x": ("c0e500000008 07fe", ["brasl %r14, 0x1010", "br %r14"], (0, 6)),
}  # fmt: skip


def test_other_processors() -> None:
    """As llvm-objdump reads them. Targets are named, whether they are written as addresses or as distances."""
    for arch, (code, expected, offsets) in PROCESSORS.items():
        data = bytes.fromhex(code)
        named: list[int] = []

        def names(targets: Sequence[int], named: list[int] = named) -> dict[int, str]:
            named += targets
            return {target: f"{target:#x}" for target in targets}

        found = disassemble(data, arch, 0x1000, names)
        assert [(one.offset, one.text) for one in found] == list(zip(offsets, expected, strict=True)), arch
        assert sum(one.size for one in found) == len(data)
        assert 0x1010 in named


def test_data_between_instructions_does_not_end_them() -> None:
    noise = random.Random(3).randbytes(4096)
    for arch in ("x86_64", "x86", "arm64", "arm", "thumb", "riscv64", "s390x"):
        found = disassemble(noise, arch, 0, no_names)
        assert [one.offset for one in found] == np.cumsum([0, *(one.size for one in found[:-1])]).tolist()
        assert sum(one.size for one in found) >= len(noise) - 3
        assert any(one.text.startswith(".byte") for one in found)
    with pytest.raises(UsageError, match="code of the processor loongarch64 cannot be disassembled"):
        disassemble(noise, "loongarch64", 0, no_names)


def test_what_has_no_bytes_says_so() -> None:
    trace = traceferry.load(_written(JitDump(pid=7, elf_mach=AARCH64).load("f", 0x2000, code=bytes(4))))
    server = SymbolServer(trace)
    request = request_of_code(trace, 0)
    assert asked(server, "/asm/v1", request | {"debugId": "0"})["error"].startswith("the recording has no library")
    beyond = asked(server, "/asm/v1", request | {"startAddress": "0x4000"})
    assert "there is no file of the recorded build of" in beyond["error"]
    damaged = [{"debugName": 1}, {"size": 5}, {"startAddress": "-0x1"}, {"size": "x"}]
    for broken in ({}, [], *(request | change for change in damaged)):
        assert asked(server, "/asm/v1", broken)["error"]
    assert server.answer("/asm/v1", b"\xff")["error"].startswith("the request is not valid JSON")


def test_any_recording_can_be_asked() -> None:
    """Also one whose compiler tells only the sizes of its code, or one without libraries."""
    numbers = dict.fromkeys(("startAddress", "size", "moduleOffset"), "0x0")
    unknown = {"debugName": "x", "debugId": "0", "file": "f"} | numbers
    for recording in (REPO / "fixtures/mono/mono-6.8/heap.mlpd.zst", POOL):
        server = SymbolServer(traceferry.load(recording))
        for question in ("/asm/v1", "/source/v1"):
            assert asked(server, question, unknown)["error"] == "the recording has no library x with id 0"
        (result,) = asked(server, "/symbolicate/v5", {"memoryMap": [["x", "0"]], "stacks": [[[0, 1]]]})["results"]
        assert result["found_modules"] == {"x/0": False}


# ---------------------------------------------------------------- names


def test_names_are_those_of_the_symbols_with_what_is_inlined() -> None:
    trace = traceferry.load(POOL, symbols=PROGRAM)
    server, symbols = SymbolServer(trace), open_symbols(open_source(str(PROGRAM)))
    lib = int(trace.symbols["lib"][0])
    request = request_of(trace, lib, 0)
    rng = random.Random(5)
    starts = trace.symbols["address"].tolist()
    addresses = sorted({rng.choice(starts) + rng.randrange(200) for _ in range(2000)})
    module = [request["debugName"], request["debugId"]]
    job = {"memoryMap": [module], "stacks": [[[0, address] for address in addresses]]}
    answer = asked(server, "/symbolicate/v5", {"jobs": [job]})
    (result,) = answer["results"]
    assert result["found_modules"] == {"/".join(module): True}
    found = LibraryFile(symbols, None).lookup(np.array(addresses, np.uint64))
    frames, first = shown_frames(found, Demangler()), found.first.tolist()
    n_inlined = 0
    for nth, frame in enumerate(result["stacks"][0]):
        expected = frames[first[nth] : first[nth + 1]]  # the innermost first
        assert (frame["frame"], frame["module"], int(frame["module_offset"], 16)) == (nth, module[0], addresses[nth])
        named = [(one["function"], one.get("file", ""), one.get("line", 0)) for one in frame.get("inlines", [])]
        if "function" in frame:
            named.append((frame["function"], frame.get("file", ""), frame.get("line", 0)))
            assert addresses[nth] - int(frame["function_offset"], 16) == found.start[nth]
        assert named == expected
        n_inlined += len(named) > 1
    assert n_inlined > 100


def test_names_of_jitted_code_have_their_inlined_functions() -> None:
    trace = traceferry.load(path_of("samply-ext/ext-mixed-little-s104.dump")).opened()
    server = SymbolServer(trace)
    n_inlined = 0
    for reader in trace.code_readers:
        for code in list(reader.rows)[:40]:
            request = request_of_code(trace, code)
            start = int(request["startAddress"], 16)
            offsets = [o for o in reader.boundaries(code) if o < int(trace.code["size"][code])]
            module = [request["debugName"], request["debugId"]]
            job = {"memoryMap": [module], "stacks": [[[0, start + offset] for offset in offsets]]}
            # The old form, without "jobs".
            (result,) = asked(server, "/symbolicate/v5", job)["results"]
            for offset, frame in zip(offsets, result["stacks"][0], strict=True):
                rows = reader.frames_at(trace, code, offset)
                names = [trace.func_name(int(trace.frames["func"][row])) for row in rows]
                assert [*(one["function"] for one in frame.get("inlines", [])), frame["function"]] == names[::-1]
                n_inlined += len(names) > 1
    assert n_inlined > 20


@for_each("job", {
    "not a job": 5, "no stacks": {"memoryMap": []}, "no modules": {"stacks": []},
    "a module without an id": {"memoryMap": [["a"]], "stacks": []},
    "a frame that is a number": {"memoryMap": [], "stacks": [[5]]},
    "an address beyond 2^63": {"memoryMap": [], "stacks": [[[0, 1 << 63]]]},
    "a text for a stack": {"memoryMap": [], "stacks": ["abc"]},
})  # fmt: skip
def test_damaged_requests_have_an_error(job: Any) -> None:
    server = SymbolServer(traceferry.load(_written(JitDump(pid=7).load("f", 0x2000, code=CALLEE))))
    assert set(asked(server, "/symbolicate/v5", {"jobs": [job]})) == {"error"}


# ---------------------------------------------------------------- sources


def test_a_source_comes_from_the_recording_first() -> None:
    trace = traceferry.load(path_of("samply-ext/ext-mixed-little-s104.dump"))
    server = SymbolServer(trace)
    n_read = 0
    for code in range(len(trace.code)):
        source = int(trace.funcs["source"][trace.code["func"][code]])
        if source >= 0 and trace.sources["text"][source] >= 0:
            path = trace.strings[int(trace.sources["path"][source])]
            answer = asked(server, "/source/v1", request_of_code(trace, code, file=path))
            # A file that was embedded twice has two texts: the code's own is shown.
            assert answer["source"] == trace.texts[int(trace.sources["text"][source])]
            n_read += 1
    assert n_read > 20


def test_a_source_on_disk_needs_its_folder_and_its_name_in_the_trace(tmp_path: Path) -> None:
    root, other = tmp_path / "root", tmp_path / "other"
    for folder in (root / "src", other):
        folder.mkdir(parents=True)
    (root / "src" / "a.js").write_text("in the root")
    (root / "b.js").write_text("moved")
    (other / "secret.js").write_text("secret")
    (root / "link.js").symlink_to(other / "secret.js")
    paths = [
        str(root / "src" / "a.js"), "/build/7/src/a.js", "/build/b.js",
        str(other / "secret.js"), "/build/link.js", "/build/missing.js", "../other/secret.js",
    ]  # fmt: skip
    dump = JitDump(pid=7)
    for nth, path in enumerate(paths):
        address = 0x1000 * (nth + 1)
        dump.debug_info(address, [(address, 1, 1, path)]).load(f"f{nth}", address, code=CALLEE)
    trace = traceferry.load(_written(dump))
    server, blind = SymbolServer(trace, [str(root)]), SymbolServer(trace)
    expected = ["in the root", "in the root", "moved", None, None, None, None]
    for code, (path, text) in enumerate(zip(paths, expected, strict=True)):
        request = request_of_code(trace, code, file=path)
        assert asked(server, "/source/v1", request).get("source") == text, path
        assert "give its folder with --source-root" in asked(blind, "/source/v1", request)["error"]
    unnamed = asked(server, "/source/v1", request_of_code(trace, 0, file=str(root / "b.js")))
    assert unnamed["error"] == f"the recording does not name a source file {root / 'b.js'}"


# ---------------------------------------------------------------- the viewer's own client

SHOWN = {
    "node24/perf.data": "tiers.js",
    "java17/perf.data": "Hot.java",
}


@pytest.mark.skipif(available() is not None, reason=str(available()))
@pytest.mark.parametrize("name", [*SHOWN, "samply-ext/ext-A-big-s102.dump", "samply-ext/ext-mixed-little-s104.dump"])
def test_profiler_cli_shows_source_and_instructions(name: str, tmp_path: Path) -> None:
    """As a person does: the profile from the running server, then a function of it with its source."""
    recording = path_of(name)
    roots = (tmp_path / "src",)
    roots[0].mkdir()
    if name in SHOWN:
        source = path_of(SHOWN[name]) if SHOWN[name] == "tiers.js" else path_of(name).parent.parent / SHOWN[name]
        if not source.exists():
            pytest.skip(f"{SHOWN[name]}: {NO_SHARED}")
        shutil.copy(source, roots[0])
    with View(recording, "--source-root", roots[0], folder=tmp_path) as view:
        profile = tmp_path / "profile.json.gz"
        content = view.get(view.trace).body
        profile.write_bytes(content)
        with ProfilerCli(profile) as cli:
            annotated = _annotated(cli, view.server, json.loads(gzip.decompress(content)), SHOWN.get(name, ""))
    asm = annotated["asmAnnotations"]
    assert any(line["sourceText"] for line in annotated["srcAnnotation"]["lines"]), annotated
    assert any(one["instructions"] and one["fetchError"] is None for one in asm)


def _annotated(cli: ProfilerCli, server: str, profile: Any, file: str) -> Any:
    """Of the busiest function whose source is this file, or has a text."""
    shared = profile["shared"]
    names = [shared["stringArray"][name] for name in shared["sources"]["filename"]]
    texts = shared["sources"]["content"]
    good = {nth for nth, name in enumerate(names) if (name.endswith(file) if file else texts[nth])}
    for thread in cli.threads():
        for function in cli.functions(thread["threadHandle"]):
            handle = function["functionHandle"]
            if shared["funcTable"]["source"][int(handle.removeprefix("f-"))] in good:
                cli.ask("thread", "select", thread=thread["threadHandle"])
                options = ("--mode", "all", "--context", "2", "--symbol-server", server)
                return cli.run("function", "annotate", handle, *options)
    raise AssertionError("no function has a source")


def _written(dump: JitDump) -> Path:
    from tempfile import mkdtemp

    path = Path(mkdtemp()) / "jit-7.dump"
    path.write_bytes(dump.bytes())
    return path
