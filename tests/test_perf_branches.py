"""Branches that a processor recorded: as stacks (--call-graph lbr), and as edges (-b). Recordings are built: no such
processor is needed. `perf script`, where it is installed, reads the same files."""

from __future__ import annotations

import shutil
import struct
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from builders.perf_data import (
    BRANCH_CALL_STACK,
    BRANCH_COUNTERS,
    BRANCH_HW_INDEX,
    BRANCH_USER,
    CONTEXT_KERNEL,
    CONTEXT_USER,
    X86_64_REGS,
    PerfData,
)
from test_perf_map import LIB, PID, START, kernel_map, read, recorded, reported, stack, stacks

needs_perf = pytest.mark.skipif(shutil.which("perf") is None, reason="perf is not installed")
LBR = BRANCH_USER | BRANCH_CALL_STACK
KERNEL_ADDRESS = 0xFFFF_FFFF_8100_0010


def at(address: int) -> str:
    return f"libx.so+{address:#x}"


def path(*addresses: int) -> str:
    """The stack of these addresses, the outermost first."""
    return " > ".join(map(at, addresses))


def calls(*pairs: tuple[int, int]) -> list[tuple[int, int, int]]:
    """Branches from and to places of the library."""
    return [(LIB + begin, LIB + end, 0) for begin, end in pairs]


def lbr(order: str = "<", more: int = 0, sample_type: str = "IP|TID|TIME|CALLCHAIN|PERIOD|BRANCH_STACK") -> PerfData:
    return recorded(order, sample_type=sample_type, branch_sample_type=LBR | more, type=0, config=0)


# ---------------------------------------------------------------- as stacks

CALLS = ((0x205, 0x300), (0x105, 0x200), (0x15, 0x100))


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("more", [0, BRANCH_HW_INDEX, BRANCH_COUNTERS, BRANCH_HW_INDEX | BRANCH_COUNTERS])
def test_calls_are_the_users_part(order: str, more: int) -> None:
    """A call is at its own address: the one in front of it may be another function's."""
    data = lbr(order, more).sample(PID, PID, START, LIB + 0x321, [LIB + 0x321, LIB + 0x999], branches=calls(*CALLS))
    trace = read(data)
    assert stack(trace) == path(0x15, 0x105, 0x205, 0x321)
    assert reported(trace) == {}


def test_calls_follow_the_kernels_part() -> None:
    chain = [CONTEXT_KERNEL, KERNEL_ADDRESS, CONTEXT_USER, LIB + 0x321]
    data = kernel_map(lbr()).sample(PID, PID, START, KERNEL_ADDRESS, chain, mode="kernel", branches=calls(*CALLS))
    data.sample(PID, PID, START + 1, KERNEL_ADDRESS, chain[:2], mode="kernel", branches=calls(*CALLS))
    both = stacks(read(data))
    assert both[0].startswith(path(0x15, 0x105, 0x205, 0x321) + " > ")
    assert both[1] == both[0].removeprefix(path(0x15, 0x105, 0x205, 0x321) + " > ")


def test_a_marker_without_an_address_begins_at_the_last_call() -> None:
    data = lbr().sample(PID, PID, START, LIB + 0x321, [CONTEXT_USER], branches=calls(*CALLS))
    assert stack(read(data)) == path(0x15, 0x105, 0x205, 0x300)


def test_calls_without_callchains() -> None:
    data = lbr(sample_type="IP|TID|TIME|BRANCH_STACK").sample(PID, PID, START, LIB + 0x321, branches=calls(*CALLS))
    assert stack(read(data)) == path(0x15, 0x105, 0x205, 0x321)


def test_samples_without_calls_keep_their_chains() -> None:
    data = lbr().sample(PID, PID, START, LIB + 0x10, [LIB + 0x10, LIB + 0x21])
    data.sample(PID, PID, START + 1, LIB + 0x321, branches=calls(*CALLS))
    assert stacks(read(data)) == [path(0x20, 0x10), path(0x15, 0x105, 0x205, 0x321)]


def pmu_caps(order: str, n: int) -> bytes:
    texts = b"".join(struct.pack(order + "I", 64) + text.encode().ljust(64, b"\0") for text in ("branches", str(n)))
    return struct.pack(order + "I", 1) + texts


@pytest.mark.parametrize(
    ("most", "n", "n_full"), [(None, 7, 0), (None, 8, 1), (None, 16, 1), (32, 16, 0), (32, 32, 1), (10, 10, 1)]
)
def test_stacks_as_deep_as_the_processor_records(most: int | None, n: int, n_full: int) -> None:
    """How deep that is stands in the recording, or it is what processors have."""
    data = lbr()
    if most is not None:
        data.feature(CPU_PMU_CAPS=pmu_caps("<", most))
    deep = calls(*((0x10 * nth + 5, 0x10 * nth) for nth in range(n)))
    data.sample(PID, PID, START, LIB + 1, branches=deep).sample(PID, PID, START + 1, LIB + 1, branches=deep[:2])
    trace = read(data)
    assert reported(trace) == ({"lbr_full": n_full} if n_full else {})
    assert [text.startswith("(truncated stack) > ") for text in stacks(trace)] == [n_full > 0, False]


def script(data: PerfData, fields: str, folder: Path) -> list[list[str]]:
    """What perf prints of each sample: its lines, in words."""
    (folder / "perf.data").write_bytes(data.bytes())
    command = ["perf", "script", "-i", "perf.data", "-F", fields]
    text = subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder, timeout=60).stdout
    return [part.split() for part in text.split("\n\n") if part.strip()]


@needs_perf
def test_the_same_calls_in_perf_script(tmp_path: Path) -> None:
    data = lbr().feature(ARCH="x86_64", HOSTNAME="here")
    data.sample(PID, PID, START, LIB + 0x321, [LIB + 0x321, LIB + 0x999], branches=calls(*CALLS))
    (found,) = script(data, "ip", tmp_path)
    ours = [int(name.partition("+")[2], 16) for name in reversed(stack(read(data)).split(" > "))]
    # perf begins with the entry of the function that was called last, where the sample itself tells the place.
    assert [int(word, 16) for word in found] == [0x300, *ours[1:]]


# ---------------------------------------------------------------- registers of vectors


@pytest.mark.parametrize("vectors", [(0, 0, 0, 0), (16, 4, 8, 1), (32, 8, 0, 0)])
def test_vector_registers_are_gone_past(vectors: tuple[int, int, int, int]) -> None:
    """PERF_SAMPLE_REGS_ABI_SIMD: the stack is behind them. It is unwound as it would be without them."""
    registers = [0] * X86_64_REGS.bit_count()

    def data(vectors: tuple[int, int, int, int] | None) -> PerfData:
        made = recorded(regs_user=X86_64_REGS, stack_user=64).feature(ARCH="x86_64", HOSTNAME="here")
        made.sample(PID, PID, START, LIB + 0x10, [], regs=registers, stack=bytes(64), vectors=vectors)
        return made.sample(PID, PID, START + 1, LIB + 0x20, [], regs=registers, stack=bytes(64), vectors=vectors)

    wanted, found = read(data(None)), read(data(vectors))
    assert stacks(found) == stacks(wanted)
    assert reported(found) == reported(wanted)
    assert len(stacks(found)) == 2


def test_vector_registers_that_do_not_fit() -> None:
    data = recorded("<", sample_type="IP|TID|TIME|REGS_INTR", regs_intr=1)
    words: Sequence[int] = (LIB, PID | PID << 32, START, 6, 0, 0xFFFF_FFFF)
    data.raw_record(9, 2, struct.pack("<6Q", *words))
    assert reported(read(data)) == {"bad_record": 1}
