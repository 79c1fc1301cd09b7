"""Stacks of real recordings, frame by frame, as an independent unwinder found them."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import SHARED, shared
from readers.user_stacks import Event, UserStackRecording, read, read_code
from support import load_checked
from zstandard import ZstdDecompressor

import traceferry
from traceferry.files.source import Source
from traceferry.symbolication.binary import Binary
from traceferry.unwinding._unwinder import Flag, Unwinder
from traceferry.unwinding.machine import AARCH64, I386, X86_64, Machine, UserStacks
from traceferry.unwinding.modules import JIT_ADDRESS, Module, jit_module, open_module
from traceferry.unwinding.spaces import NO_MODULE, AddressSpace

RECORDINGS = sorted(path.parent.name for path in (SHARED / "captures/unwind").glob("*/expected.json.zst"))
# perf's register bits → DWARF numbers.
REGISTERS: dict[Machine, dict[int, int]] = {
    X86_64: dict(zip([*range(9), *range(16, 24)], [0, 3, 2, 1, 4, 5, 6, 7, 16, *range(8, 16)], strict=True)),
    I386: dict(zip(range(9), [0, 3, 1, 2, 6, 7, 5, 4, 8], strict=True)),
    AARCH64: {bit: bit for bit in range(33)},
}
MACHINES = {"big32": I386, "arm64-pac": AARCH64}
ENDS = ("end", "truncated", "not_copied", "elsewhere", "no_cfi", "bad_address", "bad_cfa", "lost_register")
HOWS = ("ip", "cfi", "signal", "plt", "fp")
NAMELESS = ("//", "[heap", "[stack", "anon", "/memfd", "/dev/zero")

Frame = tuple[int | None, str]  # link-time address (None: in no module), how it was found
Stack = tuple[str, list[Frame]]


def unpacked(path: Path) -> bytes:
    with path.open("rb") as file:
        return bytes(ZstdDecompressor().stream_reader(file).read())


@dataclass
class Unwound:
    """Unwinds a recording as an importer would: process by process, between changes of its mappings."""

    recording: UserStackRecording
    code: list[Event]
    machine: Machine
    root: Path
    modules: list[Module | None] = field(default_factory=list)
    numbers: dict[str, int] = field(default_factory=dict)
    spaces: defaultdict[int, AddressSpace] = field(default_factory=lambda: defaultdict(AddressSpace))
    stacks: dict[tuple[int, int, int], list[Stack]] = field(default_factory=lambda: defaultdict(list))

    def run(self) -> None:
        events = sorted([*self.recording.events, *self.code], key=lambda event: event.ts)
        for event in events:
            if event.kind == "map" and event["is_exec"] and not str(event["path"]).startswith(NAMELESS):
                self.number(str(event["path"]))
        for event in self.code:
            blob = memoryview(event.values["blob"])  # type: ignore[arg-type]
            self.numbers[f"code {event.order}"] = len(self.modules)
            self.modules.append(jit_module("code", blob[: event["frame_size"]], self.machine, False))
        samples = [event for event in events if event.kind == "sample" and event["abi"]]
        self.unwinder = Unwinder(self.modules, self.columns(samples))
        waiting: defaultdict[int, list[int]] = defaultdict(list)
        nth = 0
        for event in events:
            if event.kind == "sample":
                if event["abi"]:
                    waiting[event.pid].append(nth)
                    nth += 1
                continue
            pid = event["parent"] if event.kind == "fork" else event.pid
            self.flush(samples, waiting.pop(pid, []))
            self.change(event)
        for rows in waiting.values():
            self.flush(samples, rows)

    def number(self, path: str) -> int:
        if path not in self.numbers:
            vdso = "vdso32.so" if self.machine is I386 else "vdso64.so"
            file = self.root / vdso if path == "[vdso]" else self.root / f"{path[1:]}.zst"
            module = None
            if file.is_file():
                data = unpacked(file) if file.suffix == ".zst" else file.read_bytes()
                module = open_module(Binary(Source(path, memoryview(data))))
            self.numbers[path] = len(self.modules)
            self.modules.append(module)
        return self.numbers[path]

    def columns(self, samples: list[Event]) -> UserStacks:
        def column(name: str) -> Any:
            return np.array([event[name] for event in samples], np.int64)

        flags = (column("is_kernel_mode") * Flag.IS_KERNEL_MODE).astype(np.uint8)
        flags |= (column("n_real") < column("size")).astype(np.uint8) * np.uint8(Flag.IS_SHORT_COPY)
        register_of = [REGISTERS[self.machine].get(bit, -1) for bit in self.recording.registers]
        return UserStacks(
            self.machine, False, np.frombuffer(self.recording.data, np.uint8), np.array(register_of, np.int32),
            column("registers_at"), column("dump_at"), column("n_real"), flags,
        )  # fmt: skip

    def change(self, event: Event) -> None:
        if event.kind == "fork":
            self.spaces[event.pid] = self.spaces[event["parent"]].copy()
        elif event.kind == "exec":
            self.spaces[event.pid] = AddressSpace()
        elif event.kind == "code":
            number, start = self.numbers[f"code {event.order}"], event["start"]
            behind = -(-event["size"] // 8) * 8
            self.spaces[event.pid].load(start, start + event["size"], start + behind - JIT_ADDRESS, number)
        elif str(event["path"]).startswith(NAMELESS):
            space = self.spaces[event.pid]
            (space.map_anonymous if event["is_exec"] else space.unmap_anonymous)(event["start"], event["end"])
        elif not event["is_exec"]:
            self.spaces[event.pid].unmap(event["start"], event["end"])
        else:
            number = self.numbers.get(str(event["path"]), NO_MODULE)
            module = self.modules[number] if number >= 0 else None
            bias = module.bias(event["start"], event["offset"]) if module else None
            self.spaces[event.pid].map(event["start"], event["end"], bias or 0, number)

    def flush(self, samples: list[Event], rows: list[int]) -> None:
        if not rows:
            return
        space = self.spaces[samples[rows[0]].pid]
        chains = self.unwinder.unwind(np.array(rows), space)
        starts, ends, bias, module = (column.tolist() for column in space.columns())
        for nth, row in enumerate(rows):
            frames: list[Frame] = []
            for at in range(int(chains.first[nth]), int(chains.first[nth + 1])):
                pc, how = int(chains.pc[at]), HOWS[int(chains.how[at])]
                look = pc if how in ("ip", "signal") else pc - 1
                place = bisect_right(starts, look) - 1
                known = place >= 0 and look < ends[place] and module[place] >= 0
                address = pc - bias[place] & (1 << 64) - 1 if known else None
                is_jit = known and (found := self.modules[module[place]]) is not None and not found.segments
                frames.append((None if is_jit else address, how))
            event = samples[row]
            stack = (ENDS[int(chains.end[nth])], frames)
            self.stacks[event.pid, event["tid"], event.ts].append(stack)


def agrees(own: Frame, expected: list[Any], modules: list[dict[str, Any]]) -> bool:
    """expected: module, address, symbol, x, how. Code of JIT compilers has other addresses there."""
    module, address, _, _, how = expected
    is_file = module >= 0 and not modules[module]["jit"]
    return own[1] == how and (own[0] is None or not is_file or own[0] == address)


def loaded(name: str, **options: Any) -> traceferry.Trace:
    folder = shared("captures/unwind")
    vdso = folder / "root" / ("vdso32.so" if name == "big32" else "vdso64.so")
    recording = folder / name / "perf.data.zst"
    dumps = sorted((folder / name).glob("jit-*.dump.zst"))
    return load_checked([recording, *dumps], sysroots=folder / "root", symbols=vdso, **options)


def physical_frames(trace: traceferry.Trace) -> list[tuple[str, int]]:
    """(library, address) of each row of stacks, ("", -1) for an inlined function."""
    frames, libs = trace.frames, trace.libs
    columns = (frames[name].tolist() for name in ("lib", "address", "inline_depth"))
    named = [
        ("", -1) if depth > 0 else (trace.strings[libs["name"][lib]] if lib >= 0 else "?", address)
        for lib, address, depth in zip(*columns, strict=True)
    ]
    return [named[frame] for frame in trace.stacks["frame"].tolist()]


@pytest.mark.parametrize("name", RECORDINGS or ["none"])
def test_stacks_of_a_trace(name: str) -> None:
    """Each sample's user stack, innermost first: the modules and link-time addresses of what was unwound."""
    trace = loaded(name)
    expected = json.loads(unpacked(shared("captures/unwind") / name / "expected.json.zst"))
    frames, prefix = physical_frames(trace), trace.stacks["prefix"].tolist()
    stacks: dict[tuple[int, int], list[list[tuple[str, int]]]] = defaultdict(list)
    for _, thread in trace.threads:
        samples = thread.load(trace).samples
        for ts, stack in zip(samples["ts"].tolist(), samples["stack"].tolist(), strict=True):
            path = []
            while stack >= 0:
                path.append(frames[stack])
                stack = prefix[stack]
            stacks[thread.tid, ts].append([frame for frame in path if frame[1] >= 0])
    bases: dict[str, int] = {}
    n_compared = 0
    for _, tid, ts, _, numbers in expected["samples"]:
        rows = [expected["frames"][number] for number in numbers]
        own = stacks[tid, ts].pop(0)
        # A signal's frame, below what it interrupted, is returned to at its first byte.
        hows = pairwise([*(row[4] for row in rows), ""])
        is_exact = [how in ("ip", "signal") or caller == "signal" for how, caller in hows]
        wanted = [
            (expected["modules"][module]["name"], address - (not exact))
            for (module, address, *_), exact in zip(rows, is_exact, strict=True)
            if module >= 0 and not expected["modules"][module]["jit"]
        ]
        own = [frame for frame in own if frame[0] in {name for name, _ in wanted}]
        for (module, address), (_, found) in zip(wanted, own, strict=False):
            bases.setdefault(module, address - found)
        n_sure = next((nth for nth, row in enumerate(rows) if row[4] == "fp"), len(wanted))
        assert own[:n_sure] == [(module, address - bases[module]) for module, address in wanted[:n_sure]], (tid, ts)
        n_compared += n_sure
    assert n_compared > 200


@pytest.mark.parametrize("name", RECORDINGS or ["none"])
def test_stacks(name: str) -> None:
    """Frames up to the first one found by frame pointer, and the end where none is."""
    folder = shared("captures/unwind") / name
    expected = json.loads(unpacked(folder / "expected.json.zst"))
    code = [event for dump in sorted(folder.glob("jit-*.dump.zst")) for event in read_code(unpacked(dump))]
    recording = read(unpacked(folder / "perf.data.zst"))
    unwound = Unwound(recording, code, MACHINES.get(name, X86_64), folder.parent / "root")
    unwound.run()
    n_beyond = 0
    for pid, tid, ts, end, numbers in expected["samples"]:
        frames = [expected["frames"][number] for number in numbers]
        own_end, own = unwound.stacks[pid, tid, ts].pop(0)
        n_sure = next((nth for nth, frame in enumerate(frames) if frame[4] == "fp"), len(frames))
        pairs = list(zip(own, frames, strict=False))
        matches = [agrees(mine, theirs, expected["modules"]) for mine, theirs in pairs]
        assert len(own) >= n_sure, (pid, tid, ts, own, frames)
        assert all(matches[:n_sure]), (pid, tid, ts, own, frames)
        whole = len(own) == len(frames) and all(matches) and own_end == end
        if n_sure == len(frames):
            assert whole, (pid, tid, ts, own_end, end, own, frames)
        n_beyond += not whole
    assert not any(unwound.stacks.values())
    assert n_beyond <= len(expected["samples"]) // 100


def test_stacks_through_code_arenas_that_the_kernel_merged() -> None:
    """CPython's second arena lies right below its first, and is reported as one mapping over both: each stack reaches
    the beginning of its thread or program, but where too little of it was recorded, or in a module that only a machine
    with this build of CPython has."""
    trace = loaded("python313-merged")
    reported = {issue.kind: (issue.count, issue.details) for issue in trace.report}
    _, missing = reported.get("unwinding_no_information", (0, ()))
    assert all(detail.startswith("_json.") for detail in missing)
    assert reported["unwinding_truncated"][0] <= 5


def test_frames_of_jitted_code_are_named_by_its_dump() -> None:
    """Interpreted, baseline, optimised and builtin ones, as their compiler calls them. Where a builtin has no frame,
    what is expected lacks its caller, which frame pointers skip."""
    trace = loaded("node24")
    expected = json.loads(unpacked(shared("captures/unwind") / "node24" / "expected.json.zst"))
    frames = trace.frames
    dumps = {row for row, name in enumerate(trace.libs["name"].tolist()) if trace.strings[name].startswith("jit-")}
    columns = (frames[name].tolist() for name in ("lib", "symbol", "inline_depth"))
    symbols = [
        trace.strings[trace.symbols["name"][symbol]] if lib in dumps and depth <= 0 else ""
        for lib, symbol, depth in zip(*columns, strict=True)
    ]
    of_stack, prefix = trace.stacks["frame"].tolist(), trace.stacks["prefix"].tolist()
    found: dict[tuple[int, int], list[list[str]]] = defaultdict(list)
    for _, thread in trace.threads:
        samples = thread.load(trace).samples
        for ts, stack in zip(samples["ts"].tolist(), samples["stack"].tolist(), strict=True):
            path = []
            while stack >= 0:
                path.append(symbols[of_stack[stack]])
                stack = prefix[stack]
            found[thread.tid, ts].append([name for name in path if name])
    n_named = n_with_caller = 0
    for _, tid, ts, _, numbers in expected["samples"]:
        rows = [expected["frames"][number] for number in numbers]
        wanted = [row[2] for row in rows if row[0] >= 0 and expected["modules"][row[0]]["jit"]]
        own = found[tid, ts].pop(0)
        if own != wanted:
            assert own[:1] + own[2:] == wanted, (tid, ts)
            n_with_caller += 1
        n_named += len(wanted)
    assert n_named > 1000
    assert n_with_caller == 13
