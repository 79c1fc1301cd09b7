"""Real GSYM files against what llvm-gsymutil says of them: what it said when they were recorded, and, where it is
installed, what it says now."""

import json
import random
import re
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zstandard
from conftest import NO_SHARED, SHARED
from test_gsym import Stack, stacks

from traceferry.files.source import open_source
from traceferry.symbolication.gsym.reader import Gsym
from traceferry.symbolication.interface import Function, Inline

FOLDER = SHARED / "captures" / "gsym"
PYTHON = "python3.11.debug.g19.gsym"
# Those before 19 choose others of functions that were merged.
PROGRAM = next((found for n in (19, 22) if (found := shutil.which(f"llvm-gsymutil-{n}"))), None)
needs_program = pytest.mark.skipif(PROGRAM is None, reason="llvm-gsymutil is not installed (Debian: llvm-19)")
ZSTD = b"\x28\xb5\x2f\xfd"


def names(pattern: str) -> list[Any]:
    """The files that match, without .zst, for `parametrize`."""
    found = {str(path.relative_to(FOLDER)).removesuffix(".zst") for path in FOLDER.rglob("*") if path.is_file()}
    chosen = sorted(name for name in found if re.fullmatch(pattern, name))
    return chosen or [pytest.param("", marks=pytest.mark.skip(reason=NO_SHARED))]


def path_of(name: str) -> Path:
    path = FOLDER / name
    return path if path.exists() else FOLDER / f"{name}.zst"


def text_of(name: str) -> str:
    data = path_of(name).read_bytes()
    return (zstandard.ZstdDecompressor().stream_reader(data).read() if data[:4] == ZSTD else data).decode()


@cache
def opened(name: str) -> Gsym:
    return Gsym(open_source(str(path_of(name))))


def told(gsym: Gsym, addresses: list[int]) -> dict[int, Stack]:
    return dict(zip(addresses, stacks(gsym.lookup(np.array(addresses, np.uint64))), strict=True))


# ---------------------------------------------------------------- what was recorded


def expected(lookups: dict[str, Any]) -> dict[int, Any]:
    return {int(address, 16): stack for address, stack in lookups.items()}


def stack_of(frames: list[Any] | None) -> Stack:
    """[function, offset in it, file or None, line or None] of each frame."""
    return [(name, file or "", line or 0) for name, _, file, line in frames or []]


@pytest.mark.parametrize("name", names(r".*(?<!merged-lookup)\.expected\.json"))
def test_recorded_answers(name: str) -> None:
    recorded = expected(json.loads(text_of(name))["lookups"])
    gsym = opened(name.replace(".expected.json", ".gsym"))
    assert told(gsym, list(recorded)) == {address: stack_of(stack) for address, stack in recorded.items()}
    assert gsym.problems == []


@pytest.mark.parametrize("order", ["little", "big"])
def test_version_2_answers_as_version_1(order: str) -> None:
    """No llvm-gsymutil that is released reads version 2; upstream's two files of each order have the same content."""
    if not FOLDER.exists():
        pytest.skip(NO_SHARED)
    old, new = (opened(f"upstream/v{version}-{order}.gsym") for version in (1, 2))
    recorded = expected(json.loads(text_of(f"upstream/v1-{order}.expected.json"))["lookups"])
    assert told(new, list(recorded)) == {address: stack_of(stack) for address, stack in recorded.items()}
    assert list(new.functions()) == list(old.functions())
    assert (new.build_id, new.base) == (old.build_id, old.base)
    for address in (0x4010, 0x4030, 0x4090):
        assert [stacks(frames) for frames in new.merged(address)] == [stacks(frames) for frames in old.merged(address)]
        assert new.call_sites(address) == old.call_sites(address)


CALL_SITES = "CallSites: "


@pytest.mark.parametrize("name", names(r".*\.merged-lookup\.expected\.json"))
def test_recorded_answers_of_merged_functions(name: str) -> None:
    """After the frames stands what a call that returns to the address can have called."""
    gsym = opened(name.replace(".merged-lookup.expected.json", ".gsym"))
    for address, answers in expected(json.loads(text_of(name))["lookups"]).items():
        frames = [[frame for frame in answer if not frame[0].startswith(CALL_SITES)] for answer in answers or []]
        callees = [frame[0].removeprefix(CALL_SITES) for answer in answers or [] for frame in answer[len(frames[0]) :]]
        assert [stacks(f)[0] for f in gsym.merged(address)] == [stack_of(stack) for stack in frames]
        sites = [site for site in gsym.call_sites(address) if site.address == address]
        assert [", ".join(site.callees) for site in sites] == callees


# ---------------------------------------------------------------- what it prints

PRINTED_FRAME = re.compile(r"(?P<name>.*?)(?: \+ \d+)?(?: @ (?P<file>.*):(?P<line>\d+))?(?: \[inlined\])?")


def printed(text: str) -> list[tuple[int, Stack]]:
    """What llvm-gsymutil prints for addresses: an empty line after each."""
    answers: list[tuple[int, Stack]] = []
    for block in text.split("\n\n"):
        if not block.strip():
            continue
        address, _, frames = block.strip("\n").partition(": ")
        stack = [] if frames.startswith("error: ") else [frame_of(line.strip()) for line in frames.splitlines()]
        answers.append((int(address, 16), stack))
    return answers


def frame_of(line: str) -> tuple[str, str, int]:
    match = PRINTED_FRAME.fullmatch(line)
    assert match, line
    return match["name"], match["file"] or "", int(match["line"] or 0)


@pytest.mark.parametrize("name", names(r"llvm-gsymutil/.*\.addrs"))
def test_lists_of_addresses(name: str) -> None:
    answers = printed(text_of(name.replace(".addrs", ".txt")))
    asked = [int(line.split()[0], 16) for line in text_of(name).splitlines()]
    assert [address for address, _ in answers] == asked
    gsym = opened(Path(name).name.replace(".addrs", ".gsym"))
    assert told(gsym, asked) == dict(answers)


# ---------------------------------------------------------------- what it says now


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("gsym")


def plain(name: str, folder: Path) -> Path:
    """The file without its compression."""
    path = folder / Path(name).name
    if not path.exists():
        path.write_bytes(open_source(str(path_of(name))).data)
    return path


def edges(gsym: Gsym) -> Iterator[int]:
    """Of every function: before it, its start, middle, end; where rows and inlined calls begin and end."""
    for function in gsym.functions():
        end = function.start + function.size
        yield from (max(function.start - 1, 0), function.start, function.start + function.size // 2, end - 1, end)
        yield from (address for address, _, _ in function.lines)
        yield from edges_of(function.inlines)


def edges_of(inlines: Any) -> Iterator[int]:
    for inline in inlines:
        for begin, end in inline.ranges:
            yield from (begin, end - 1, end)
        yield from edges_of(inline.children)


VERSION_1 = names(r".*(?<!v2-little)(?<!v2-big)\.gsym")


@needs_program
@pytest.mark.parametrize("name", VERSION_1)
def test_answers_at_every_edge_and_at_random(name: str, folder: Path) -> None:
    gsym, path = opened(name), plain(name, folder)
    chosen = sorted(set(edges(gsym)))
    rng = random.Random(7)
    chosen = rng.sample(chosen, min(len(chosen), 10_000))
    chosen += [rng.randrange(gsym.base, max(chosen) + 64) for _ in range(2000)]
    asked = "".join(f"{address:#x} {path}\n" for address in chosen)
    done = subprocess.run([str(PROGRAM), "--addresses-from-stdin"], input=asked, capture_output=True, text=True)
    answers = printed(done.stdout)
    assert [address for address, _ in answers] == chosen
    assert told(gsym, chosen) == dict(answers)


DUMPED_FUNCTION = re.compile(r'FunctionInfo @ \S+: \[(0x\w+) - (0x\w+)\) "(.*)"')
DUMPED_ROW = re.compile(r"  (0x\w+) (.*):(\d+)")
DUMPED_CALL = re.compile(r"( *)((?:\[0x\w+ - 0x\w+\) ?)+)(.*?)(?: called from (.*):(\d+))?")
DUMPED_RANGE = re.compile(r"\[(0x\w+) - (0x\w+)\)")


def dumped(text: str) -> Iterator[Function]:
    """The functions that llvm-gsymutil dumps; depth is two spaces."""
    for block in text.split("\nFunctionInfo @")[1:]:
        head, *lines = ("FunctionInfo @" + block).splitlines()
        match = DUMPED_FUNCTION.fullmatch(head)
        assert match, head
        start, end, name = int(match[1], 16), int(match[2], 16), match[3]
        rows = [(int(m[1], 16), m[2], int(m[3])) for m in map(DUMPED_ROW.fullmatch, lines) if m]
        calls = [m for m in map(DUMPED_CALL.fullmatch, lines) if m]
        yield Function(name, start, end - start, rows, tuple(below(calls, 1, len(calls), 1)))


def below(calls: list[re.Match[str]], begin: int, end: int, depth: int) -> Iterator[Inline]:
    heads = [i for i in range(begin, end) if len(calls[i][1]) == 2 * depth]
    for head, stop in zip(heads, [*heads[1:], end], strict=False):
        ranges = tuple((int(a, 16), int(b, 16)) for a, b in DUMPED_RANGE.findall(calls[head][2]))
        children = tuple(below(calls, head + 1, stop, depth + 1))
        yield Inline(calls[head][3], ranges, calls[head][4] or "", int(calls[head][5] or 0), children)


# A whole interpreter has five times as many functions as the others have together.
WHOLE = [
    pytest.param(name, marks=pytest.mark.large) if name == PYTHON else name
    for name in VERSION_1
    if "icf" not in str(name) and "upstream" not in str(name)
]


@needs_program
@pytest.mark.parametrize("name", WHOLE)
def test_whole_functions_are_those_that_it_dumps(name: str, folder: Path) -> None:
    """Without call sites and merged functions, which version 19 cannot decode."""
    done = subprocess.run([str(PROGRAM), str(plain(name, folder))], capture_output=True, text=True)
    assert list(opened(name).functions()) == list(dumped(done.stdout))
