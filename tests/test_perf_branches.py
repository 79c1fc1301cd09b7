"""Branches that a processor recorded: as stacks (--call-graph lbr), and as edges (-b). Recordings are built: no such
processor is needed. `perf script`, where it is installed, reads the same files."""

from __future__ import annotations

import shutil
import struct
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders.perf_data import (
    BRANCH_ANY,
    BRANCH_CALL_STACK,
    BRANCH_COUNTERS,
    BRANCH_HW_INDEX,
    BRANCH_USER,
    CONTEXT_KERNEL,
    CONTEXT_USER,
    X86_64_REGS,
    PerfData,
)
from support import data_of
from test_perf_map import (
    CODE,
    LIB,
    LIB_SIZE,
    PID,
    START,
    jitdump,
    kernel_map,
    path_text,
    read,
    recorded,
    reported,
    stack,
    stacks,
)

from traceferry.analysis.info.summary import summarize
from traceferry.analysis.info.text import as_text
from traceferry.importers.perf import _branches, branches
from traceferry.model import BRANCH_MISPREDICTED, BRANCH_PREDICTED, BRANCH_UNKNOWN, Trace
from traceferry.timeline.select import select_range

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
    assert reported(read(data)) == {"bad_record": 1, "no_samples": 1}


# ---------------------------------------------------------------- as edges

TYPES = "IP|TID|TIME|CALLCHAIN|PERIOD|BRANCH_STACK"


def taken(order: str = "<", kinds: int = BRANCH_USER | BRANCH_ANY, **options: Any) -> PerfData:
    return recorded(order, sample_type=TYPES, branch_sample_type=kinds, type=0, config=0, **options)


def rows(trace: Trace, tid: int = PID) -> list[tuple[Any, ...]]:
    """(ns since the start, where the run began, from, to, outcome, cycles) of a thread's branches."""
    table = data_of(trace, tid).branches
    texts = ([path_text(trace, stack) for stack in table[name].tolist()] for name in ("start", "from", "to"))
    numbers = (table[name].tolist() for name in ("outcome", "cycles"))
    return list(zip((table["ts"] - START).tolist(), *texts, *numbers, strict=True))


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("more", [0, BRANCH_HW_INDEX | BRANCH_COUNTERS])
def test_branches_are_edges(order: str, more: int) -> None:
    """The oldest first. Between two there is a run of code, unless its end lies in front of its beginning."""
    data = taken(order, BRANCH_ANY | more)
    flags = data.branch_flags
    latest = (LIB + 0x30, LIB + 0x99, flags(True, 65535))
    data.sample(
        PID, PID, START, LIB, branches=[latest, (LIB + 0x28, LIB + 0x20, flags(False)), (LIB + 9, LIB + 0x29, 0)]
    )
    data.sample(PID, PID, START + 5, LIB, branches=[(LIB + 9, KERNEL_ADDRESS, flags(None, 3))])
    trace = read(data)
    assert rows(trace) == [
        (0, "", at(0x9), at(0x29), BRANCH_UNKNOWN, 0),
        (0, "", at(0x28), at(0x20), BRANCH_PREDICTED, 0),
        (0, at(0x20), at(0x30), at(0x99), BRANCH_MISPREDICTED, 65535),
        (5, "", at(0x9), "[unknown]", BRANCH_UNKNOWN, 3),
    ]
    assert reported(trace) == {}


@pytest.mark.parametrize(("kinds", "n_runs"), [(BRANCH_ANY, 1), (BRANCH_ANY | BRANCH_USER, 1), (1 << 4, 0)])
def test_runs_of_code_are_between_branches_of_all_kinds(kinds: int, n_runs: int) -> None:
    data = taken(kinds=kinds).sample(PID, PID, START, LIB, branches=calls((0x28, 0x40), (0x10, 0x20)))
    assert sum(start != "" for _, start, *_ in rows(read(data))) == n_runs


def test_no_run_of_code_goes_on_in_another_library() -> None:
    """Nor for a megabyte."""
    other = LIB + LIB_SIZE
    data = taken().mmap2(PID, PID, other, 0x20_0000, 0, "/nowhere/liby.so", ts=0)
    data.sample(PID, PID, START, LIB, branches=[(other + 0x10, LIB, 0), (LIB + 5, LIB + 0x20, 0)])
    data.sample(PID, PID, START + 1, LIB, branches=[(other + 0x12_0000, LIB, 0), (LIB + 5, other, 0)])
    data.sample(PID, PID, START + 2, LIB, branches=[(other + 0x1000, LIB, 0), (LIB + 5, other, 0)])
    assert [start for _, start, *_ in rows(read(data))] == ["", "", "", "", "", "liby.so+0x0"]


def test_branches_from_or_to_nowhere() -> None:
    data = taken().sample(PID, PID, START, LIB, branches=[(0, 0, 0), (0, LIB + 1, 0), (LIB + 2, 0, 0)])
    assert [row[1:4] for row in rows(read(data))] == [("", at(2), ""), ("", "", at(1))]


def test_branches_of_threads_and_programs() -> None:
    """Each thread has its own, an address stands for what its program has there."""
    data = taken().comm(8, 8, "other", ts=0).mmap2(8, 8, LIB, LIB_SIZE, 0, "/nowhere/libz.so", ts=0)
    data.sample(8, 8, START, LIB, branches=calls((1, 2))).sample(PID, 9, START, LIB, branches=calls((3, 4)))
    data.sample(PID, PID, START, LIB, branches=calls((5, 6))).sample(PID, PID, START + 1, LIB)
    trace = read(data)
    assert [rows(trace, tid)[0][2:4] for tid in (PID, 8, 9)] == [
        (at(5), at(6)), ("libz.so+0x1", "libz.so+0x2"), (at(3), at(4)),
    ]  # fmt: skip


def test_branches_in_jitted_code() -> None:
    """What is there changes: a branch is in what was there then."""
    dump = jitdump().load("first", CODE, 32, ts=START + 10)
    dump.load("second", CODE, 32, ts=START + 20)
    data = taken().mmap2(PID, PID, 0x10_0000, 4096, 0, "/tmp/jit-7.dump", ts=START)
    for ts in (START + 15, START + 25, START + 26):
        data.sample(PID, PID, ts, CODE, branches=[(CODE + 9, CODE + 1, data.branch_flags(ts == START + 25, 10))])
    trace = read(data, dump)
    assert [row[2:4] for row in rows(trace)] == [("first", "first"), ("second", "second"), ("second", "second")]
    summary = summarize(trace)["branches"]
    assert [(row["function"], row["taken"], row["mispredicted_share"]) for row in summary["functions"]] == [
        ("second", 2, 0.5), ("first", 1, 0.0),
    ]  # fmt: skip
    assert [(edge["from"]["function"], edge["taken"], edge["mean_cycles"]) for edge in summary["edges"]] == [
        ("second", 2, 10.0), ("first", 1, 10.0),
    ]  # fmt: skip


def test_many_samples_are_decoded_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    data = taken()
    for nth in range(9):
        data.sample(PID, PID, START + nth, LIB, branches=calls(*((0x10 * k, 0x10 * k + 1) for k in range(nth % 4))))
    whole = rows(read(data))
    monkeypatch.setattr(branches, "AT_ONCE", 2)
    assert rows(read(data)) == whole
    assert len(whole) == 12
    part = select_range(read(data), START + 2, START + 4)
    assert [row[0] for row in rows(part)] == [2, 2, 3, 3, 3]


@pytest.mark.parametrize("order", "<>")
def test_how_many_there_are_is_known_before(order: str) -> None:
    """Unknown ends, 0, are counted unless both are unknown; the kernel's addresses are of one space."""
    data = taken(order)
    for nth, pid in enumerate((PID, 9, PID)):
        both = [(LIB, 0, 1), (0, LIB + 16, 1), (0, 0, 1), ((1 << 63) + 64 * nth, LIB, 1)]
        data.sample(pid, pid, START + nth, LIB, branches=both[: nth + 2])
    threads = [thread.load(trace).branches for trace in [read(data)] for _, thread in trace.threads]
    assert [len(table) for table in threads] == [len(list(table["ts"])) for table in threads]
    assert sum(map(len, threads)) == 2 + 2 + 3


def test_addresses_of_many_branches() -> None:
    n = 5000
    of_kernel = np.uint64(1 << 63) + np.arange(n, dtype=np.uint64) % np.uint64(7)
    words = np.stack([np.arange(n, dtype=np.uint64), of_kernel, np.zeros(n, np.uint64)], axis=1)
    data, at = np.frombuffer(words.tobytes(), np.uint8), np.arange(0, 24 * n, 24)
    places = data, at, np.ones(n, np.int32)
    spaces, addresses = _branches.addresses(*places, np.full(n, 3, np.int32), 1 << 63, 0, False)
    assert sorted(addresses[spaces == 3].tolist()) == list(range(n))
    assert sorted(addresses[spaces == 0].tolist()) == [(1 << 63) + k for k in range(7)]
    assert np.array_equal(_branches.entries(*places, False), words.T[:2])


@pytest.mark.parametrize(("at", "n"), [(-1, 1), (1, 2), (0, -1), (25, 1)])
def test_branches_outside_the_data(at: int, n: int) -> None:
    places = np.zeros(48, np.uint8), np.array([at]), np.array([n], np.int32)
    for read_them in (_branches.entries, _branches.count_known):
        with pytest.raises(ValueError, match="branches"):
            read_them(*places, False)
    with pytest.raises(ValueError, match="branches"):
        _branches.addresses(*places, np.zeros(1, np.int32), 1 << 63, 0, False)


def places(**changed: Any) -> _branches.Places:
    """Two addresses, of which the second has a version from 10 ns on."""
    columns = {
        "spaces": np.zeros(2, np.int32), "addresses": np.array([1, 2], np.uint64), "first_version": np.array([0, 1, 3]),
        "start": np.array([0, 0, 10]), "stack": np.array([7, 8, 9], np.int32), "lib": np.zeros(3, np.int32),
        "address": np.zeros(3, np.int64),
    }  # fmt: skip
    return _branches.Places(*(columns | changed).values(), 1 << 63, 0)


def test_what_addresses_stand_for_over_time() -> None:
    data = np.frombuffer(struct.pack("<3Q", 2, 1, 1) + struct.pack("<3Q", 2, 3, 0), np.uint8)
    at, n, space = np.array([0, 24, 0]), np.ones(3, np.int32), np.zeros(3, np.int32)
    of, *columns = places().table(data, at, n, False, np.array([9, 9, 10]), space, np.ones(3, np.uint8))
    assert of.tolist() == [0, 1, 2]
    assert [column.tolist() for column in columns] == [[-1] * 3, [8, 8, 9], [7, -1, 7], [2, 0, 2], [0] * 3]


@pytest.mark.parametrize(
    "changed",
    [{"start": np.zeros(2, np.int64)}, {"first_version": np.array([0, 3])}, {"first_version": np.array([0, 0, 3])},
     {"first_version": np.array([1, 2, 3])}, {"addresses": np.zeros(1, np.uint64)}],
)  # fmt: skip
def test_places_that_do_not_fit(changed: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="Places"):
        places(**changed)


def test_sums_of_branches() -> None:
    """The same whatever the order, and however they come."""
    data = taken()
    for nth in range(40):
        pairs = [(LIB + 16 * (nth % 3), LIB + 16 * (nth % 5), data.branch_flags(nth % 7 == 0, nth % 2))] * (nth % 3)
        data.sample(PID, PID if nth % 2 else 9, START + nth, LIB, branches=pairs)
    trace = read(data)
    found = summarize(trace)["branches"]
    assert found["taken"] == sum(nth % 3 for nth in range(40))
    assert found["mispredicted"] == sum(nth % 3 for nth in range(40) if nth % 7 == 0)
    assert found["mean_cycles"] == 1
    for key in ("edges", "functions"):
        assert sum(row["taken"] for row in found[key]) == found["taken"]
        assert sum(row["mispredicted"] for row in found[key]) == found["mispredicted"]
    assert summarize(read(recorded().sample(PID, PID, START)))["branches"] is None
    text = as_text(summarize(trace))
    assert f"{found['taken']} branches taken, by edge:" in text
    assert "branches by function:" in text


@needs_perf
def test_the_same_branches_in_perf_script(tmp_path: Path) -> None:
    """Their addresses and outcomes; perf prints FROM/TO/OUTCOME/.../CYCLES, the latest first."""
    data = taken().feature(ARCH="x86_64", HOSTNAME="here")
    flags = data.branch_flags
    told = [(0x30, 0x99, flags(True, 12)), (0x28, 0x20, flags(False, 3)), (0x9, 0x29, flags(None))]
    data.sample(PID, PID, START, LIB, branches=[(LIB + begin, LIB + end, word) for begin, end, word in told])
    (found,) = script(data, "brstack", tmp_path)
    theirs = [word.split("/") for word in found]
    outcomes = {"M": BRANCH_MISPREDICTED, "P": BRANCH_PREDICTED, "-": BRANCH_UNKNOWN}
    ours = [(begin, end, outcome, cycles) for _, _, begin, end, outcome, cycles in reversed(rows(read(data)))]
    assert [
        (at(int(word[0], 16) - LIB), at(int(word[1], 16) - LIB), outcomes[word[2]], int(word[5])) for word in theirs
    ] == ours
