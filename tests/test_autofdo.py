"""The profile for compilers: counts by line, what is inlined, calls; llvm-profdata reads it, where it is installed."""

from __future__ import annotations

import random
import re
import shutil
import subprocess
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders.perf_data import BRANCH_ANY, PerfData

import traceferry
from traceferry.exporters.autofdo.profile import base_discriminator, covered, n_copies

CLANG, PROFGEN = (
    next((found for name in names if (found := shutil.which(name))), None)
    for names in (("clang-19", "clang"), ("llvm-profgen-19", "llvm-profgen"))
)
PROFDATA = next((name for name in ("llvm-profdata-19", "llvm-profdata") if shutil.which(name)), None)
COMPILERS = [name for name in ("gcc", "clang-19", "clang") if shutil.which(name)]
PID, BASE, START = 7, 0x5000_0000_0000, 10**9
SOURCE = """\
static inline __attribute__((always_inline)) int twice(int n)
{
    int sum = n;
    for (int i = 0; i < n; i++)
        sum += i * n;
    return sum;
}

__attribute__((noinline)) int leaf(int n)
{
    return n * 3
        + twice(n);
}

int main(int argc, char **argv)
{
    int sum = 0;
    for (int i = 0; i < 100; i++)
        sum += leaf(i + argc);
    return sum;
}
"""
LEAF_LINE, MAIN_LINE, CALL_LINE = 9, 15, 19
# Of each line several straight runs of code, some of them copied.
BRANCHY = """\
static int odd(int n) { return n & 1 ? n * 3 + 1 : n / 2; }
static int twice(int n)
{
    int sum = 0;
    for (int i = 0; i < n; i++) sum += i % 3 ? odd(i) : (i % 5 ? i : -i);
    return sum;
}
__attribute__((noinline)) int leaf(int n, int m)
{
    if (n > 3 && m < 7) return twice(n) + odd(m); else if (n < 0 || m == 2) return odd(n);
    return n * m;
}
__attribute__((noinline)) int filled(int *numbers, int n)
{
    int sum = 0;
    for (int i = 0; i < n; i++) sum += numbers[i] > 3 ? numbers[i] * n : numbers[i] + 7;
    return sum;
}
__attribute__((noinline)) int middle(int n)
{
    int sum = 0;
    while (n-- > 0) sum += leaf(n, n & 7) ? 1 : leaf(sum, n);
    return sum;
}
int main(int argc, char **argv)
{
    int numbers[100], sum = 0;
    for (int i = 0; i < 100; i++) numbers[i] = argc * i;
    for (int i = 0; i < 100; i++) sum += middle(i + argc) + filled(numbers, i);
    return sum;
}
"""
MADE = ("main", "middle", "filled", "leaf")


@pytest.fixture(scope="module", params=COMPILERS or [None])
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    if request.param is None or shutil.which("nm") is None or shutil.which("objdump") is None:
        pytest.skip("no C compiler, nm or objdump is installed")
    folder = tmp_path_factory.mktemp("afdo")
    (folder / "app.c").write_text(SOURCE)
    command = [request.param, "-g", "-O1", "-pie", "-fPIE", "-o", "app", "app.c"]
    subprocess.run(command, check=True, cwd=folder, timeout=60)
    return folder / "app"


@cache
def symbols(program: Path) -> dict[str, tuple[int, int]]:
    """(address, size) of each function."""
    text = subprocess.run(["nm", "-S", str(program)], capture_output=True, text=True, check=True).stdout
    found = re.findall(r"^(\w+) (\w+) [tT] (\w+)$", text, re.MULTILINE)
    return {name: (int(address, 16), int(size, 16)) for address, size, name in found}


def call_of(program: Path, callee: str) -> int:
    """Where main calls it."""
    text = subprocess.run(["objdump", "-d", str(program)], capture_output=True, text=True, check=True).stdout
    found = re.search(rf"^ *([0-9a-f]+):.*call.*<{callee}>$", text, re.MULTILINE)
    assert found is not None
    return int(found[1], 16)


def last_of(program: Path, name: str) -> int:
    """The last instruction of a function that returns: ret is one byte."""
    address, size = symbols(program)[name]
    text = subprocess.run(
        ["objdump", "-d", str(program), f"--start-address={address}", f"--stop-address={address + size}"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    return int(re.findall(r"^ *([0-9a-f]+):.*\bretq?\b", text, re.MULTILINE)[-1], 16)


def recorded(program: Path, **options: Any) -> PerfData:
    data = PerfData(start=START).event(sample_type="IP|TID|TIME|BRANCH_STACK", branch_sample_type=BRANCH_ANY, **options)
    return data.comm(PID, PID, "app", ts=0).mmap2(PID, PID, BASE, 1 << 20, 0, str(program), ts=0)


def exported(data: PerfData, program: Path, tmp_path: Path) -> str:
    (tmp_path / "perf.data").write_bytes(data.bytes())
    trace = traceferry.load(tmp_path / "perf.data", symbols=[program])
    traceferry.save(trace, tmp_path / "app.afdo.txt")
    return profile_of(tmp_path / "app.afdo.txt")


def profile_of(path: Path) -> str:
    """Without the comment that each begins with."""
    comment, _, text = path.read_text().partition("\n")
    assert comment.startswith("# ")
    return text


def with_calls(program: Path, n: int) -> PerfData:
    """A loop in main that calls leaf, which returns: to its entry, and behind the call."""
    call, (entry, _), back = call_of(program, "leaf"), symbols(program)["leaf"], last_of(program, "leaf")
    data = recorded(program)
    for nth in range(n):
        into, out = (BASE + call, BASE + entry, 0), (BASE + back, BASE + call + 5, 0)
        data.sample(PID, PID, START + nth, BASE + call + 5, branches=[out, into])
    return data


def test_counts_of_lines_and_calls(program: Path, tmp_path: Path) -> None:
    """leaf ran from its entry to its return as often as it was called; twice is inlined there."""
    text = exported(with_calls(program, 40), program, tmp_path)
    functions = {
        head.partition(":")[0]: body for head, body in re.findall(r"^(\w\S*)\n((?: .*\n)*)", text, re.MULTILINE)
    }
    heads = dict(re.findall(r"^(\w+):\d+:(\d+)$", text, re.MULTILINE))
    assert heads == {"leaf": "40", "main": "0"}
    assert f" {CALL_LINE - MAIN_LINE}: 40 leaf:40\n" == functions["main"]
    # The line with the multiplication, and within the line of the call what twice has there.
    assert re.search(r"^ 2: 40$|^ 3: 40$", functions["leaf"], re.MULTILINE)
    inlined = re.search(r"^ 3: twice:\d+\n((?:  .*\n)+)", functions["leaf"], re.MULTILINE)
    assert inlined is not None
    assert all(re.fullmatch(r"  [0-6]: 40", line) for line in inlined[1].splitlines())


def walked(program: Path, n: int) -> list[tuple[int, int]]:
    """(from, to) of n branches that the program could take, each condition by chance, from main on and again."""
    text = subprocess.run(
        ["objdump", "-d", "--no-show-raw-insn", str(program)], capture_output=True, text=True, check=True
    ).stdout
    found = re.findall(r"^ +([0-9a-f]+):\t(\S+) *(?:([0-9a-f]+) <)?", text, re.MULTILINE)
    code = {int(at, 16): (name, int(target or "0", 16)) for at, name, target in found}
    following = dict(pairwise(code))
    entries = {symbols(program)[name][0] for name in MADE}
    chance, stack, branches = random.Random(3), list[int](), list[tuple[int, int]]()
    main = at = symbols(program)["main"][0]
    while len(branches) < n:
        name, target = code[at]
        if name.startswith("call"):
            stack.append(following[at])
        elif name.startswith("ret"):
            target = stack.pop() if stack else main
        is_taken = target and (name.startswith(("jmp", "ret")) or (name.startswith("call") and target in entries))
        if is_taken or (name.startswith("j") and not name.startswith("jmp") and chance.random() < 0.5):
            branches.append((at, target))
            at = target
        else:
            if name.startswith("call"):
                stack.pop()
            at = following[at]
    return branches


def test_llvm_profgen_counts_the_same(tmp_path: Path) -> None:
    """Lines with their discriminators, copies of loops, calls and what is inlined; but sums, which it has for each
    instruction, and code of line 0, which it gives to a line far behind the function."""
    perf = shutil.which("perf")
    if CLANG is None or PROFGEN is None or perf is None or not all(map(shutil.which, ("nm", "objdump"))):
        pytest.skip("clang, llvm-profgen, perf, nm or objdump is not installed")
    (tmp_path / "app.c").write_text(BRANCHY)
    flags = ["-O2", "-g", "-fdebug-info-for-profiling", "-pie", "-fPIE"]
    subprocess.run([CLANG, *flags, "-o", "app", "app.c"], check=True, cwd=tmp_path, timeout=60)
    program = tmp_path / "app"
    headers = subprocess.run(["readelf", "-lW", "app"], capture_output=True, text=True, check=True, cwd=tmp_path).stdout
    load = re.search(r"LOAD +0x(\w+) 0x(\w+) 0x\w+ 0x(\w+) 0x\w+ R E", headers)
    assert load is not None
    offset, address, size = (int(number, 16) for number in load.groups())
    data = PerfData(start=START).event(sample_type="IP|TID|TIME|BRANCH_STACK", branch_sample_type=BRANCH_ANY)
    data.comm(PID, PID, "app", ts=0)
    data.mmap2(PID, PID, BASE + (address & ~0xFFF), (size + 0x1FFF) & ~0xFFF, offset & ~0xFFF, str(program), ts=0)
    branches = [(BASE + begin, BASE + end, 0) for begin, end in walked(program, 8000)]
    for nth in range(0, len(branches), 32):
        latest_first = branches[nth : nth + 32][::-1]
        data.sample(PID, PID, START + nth, latest_first[0][1], branches=latest_first)
    text = exported(data, program, tmp_path)
    script = [perf, "script", "--show-mmap-events", "-F", "ip,brstack", "-i", "perf.data"]
    with open(tmp_path / "app.perfscript", "wb") as out:
        subprocess.run(script, stdout=out, stderr=subprocess.DEVNULL, check=True, cwd=tmp_path, timeout=60)
    command = [PROFGEN, "--perfscript=app.perfscript", "--binary=app", "--format=text", "--output=theirs.txt"]
    subprocess.run(command, check=True, cwd=tmp_path, capture_output=True, timeout=60)
    theirs = (tmp_path / "theirs.txt").read_text().splitlines()
    assert comparable(text.splitlines()) == comparable(theirs)
    assert any(re.match(r" +\d+\.\d+: ", line) for line in theirs)


def comparable(lines: list[str]) -> list[str]:
    """Counts by function, without sums, functions in one order."""
    kept = [re.sub(r"^((?: *[\d.]+: )?\w+):\d+", r"\1", line) for line in lines if not re.match(r" +6\d{4}[.:]", line)]
    functions = re.findall(r"^\w.*\n(?: .*\n)*", "".join(f"{line}\n" for line in kept), re.MULTILINE)
    return sorted(functions)


# 5 or 12 bits behind a bit that is 0, or a bit that is 1 for 0; the second number is how often the code was copied.
@pytest.mark.parametrize(
    ("encoded", "base", "copies"),
    [(0, 0, 1), (1, 0, 1), (2, 1, 1), (6, 3, 1), (0xC0, 32, 1), (0xC2, 33, 1), (0x9, 0, 2), (0x402, 1, 4)],
)
def test_what_discriminators_hold(encoded: int, base: int, copies: int) -> None:
    assert (base_discriminator(encoded), n_copies(encoded)) == (base, copies)


def test_totals_are_sums(program: Path, tmp_path: Path) -> None:
    text = exported(with_calls(program, 7), program, tmp_path)
    totals = {name: int(total) for name, total in re.findall(r"^(\w+):(\d+):\d+$", text, re.MULTILINE)}
    for name, body in re.findall(r"^(\w+):\d+:\d+\n((?: .*\n)*)", text, re.MULTILINE):
        assert totals[name] == sum(int(count) for count in re.findall(r"^ +\d+: (\d+)", body, re.MULTILINE))
    assert list(totals) == sorted(totals, key=lambda name: -totals[name])


@pytest.mark.skipif(PROFDATA is None, reason="llvm-profdata is not installed")
def test_llvm_reads_it(program: Path, tmp_path: Path) -> None:
    text = exported(with_calls(program, 40), program, tmp_path)
    shown = subprocess.run(
        [str(PROFDATA), "merge", "--sample", "--text", "-o", "-", "app.afdo.txt"],
        capture_output=True, text=True, check=True, cwd=tmp_path, timeout=60,
    ).stdout  # fmt: skip
    assert sorted(shown.splitlines()) == sorted(text.splitlines())


def test_samples_count_where_no_branches_are_recorded(program: Path, tmp_path: Path) -> None:
    entry, _ = symbols(program)["leaf"]
    data = PerfData(start=START).event(sample_type="IP|TID|TIME")
    data.comm(PID, PID, "app", ts=0).mmap2(PID, PID, BASE, 1 << 20, 0, str(program), ts=0)
    for nth in range(5):
        data.sample(PID, PID, START + nth, BASE + entry)
    assert re.fullmatch(r"leaf:5:0\n \d+: 5\n", exported(data, program, tmp_path)) is not None


def test_code_without_lines_is_left_out(tmp_path: Path) -> None:
    data = recorded(Path("/nowhere/app"))
    data.sample(PID, PID, START, BASE, branches=[(BASE + 0x30, BASE + 1, 0), (BASE + 9, BASE + 0x20, 0)])
    (tmp_path / "perf.data").write_bytes(data.bytes())
    trace = traceferry.load(tmp_path / "perf.data")
    traceferry.save(trace, tmp_path / "app.afdo.txt")
    assert profile_of(tmp_path / "app.afdo.txt") == ""
    assert {issue.kind: issue.count for issue in trace.report}["profile_without_lines"] == 17


def test_runs_cover_addresses() -> None:
    runs = np.array([(10, 14, 3), (12, 20, 5), (30, 30, 1)], np.int64)
    addresses, counts = covered(runs)
    wanted = {address: 3 * (10 <= address <= 14) + 5 * (12 <= address <= 20) for address in range(10, 21)} | {30: 1}
    assert dict(zip(addresses.tolist(), counts.tolist(), strict=True)) == wanted
    assert len(covered(np.zeros((0, 3), np.int64))[0]) == 0
