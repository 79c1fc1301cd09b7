"""Recordings with copies of user stacks (`perf record --call-graph dwarf`), of every container that perf writes."""

import random
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from builders.perf_data import X86_64_REGS, PerfData

import traceferry
from traceferry.importers.perf import samples, stream, unwinding

SAMPLE_TYPE = "IDENTIFIER|IP|TID|TIME|CPU|PERIOD|CALLCHAIN"
CODE, STACK = 0x7F00_0000_0000, 0x7FFF_0000_0000
N_REGISTERS = X86_64_REGS.bit_count()
BP, SP, IP = 6, 7, 8
# Callers, innermost first: found by frame pointers, since the file with the call-frame information is missing.
CALLERS = (CODE + 0x40, CODE + 0x80, CODE + 0xC0)


def stack(size: int) -> bytes:
    """A frame for each caller: the frame pointer of the next one, and the return address."""
    frames = b"".join(struct.pack("<QQ", STACK + 16 * (nth + 1), caller) for nth, caller in enumerate((*CALLERS, 0)))
    return frames + random.Random(size).randbytes(size - len(frames))


def recorded(data: PerfData, n: int, dump: bytes, pids: tuple[int, ...] = (7,)) -> PerfData:
    if not data.events:
        event(data)
    for pid in pids:
        data.comm(pid, pid, f"app-{pid}").mmap2(pid, pid, CODE, 0x1000, 0, "/nowhere/app")
    for nth in range(n):
        registers = [0] * N_REGISTERS
        registers[BP], registers[SP], registers[IP] = STACK, STACK, CODE + nth % 16
        pid = pids[nth % len(pids)]
        data.sample(pid, pid, ip=registers[IP], chain=[], regs=registers, stack=dump)
    return data


def chains(path: Path) -> list[tuple[int, int, list[int]]]:
    """(tid, ts, addresses of the frames in their library, the leaf's first) of each sample."""
    trace = traceferry.load([str(path)])
    stacks, frames = trace.stacks, trace.frames
    found = []
    for _, thread in trace.threads:
        for piece in thread.load(trace).samples.pieces():
            for ts, at in zip(piece["ts"].tolist(), piece["stack"].tolist(), strict=True):
                addresses = []
                while at >= 0:
                    addresses.append(int(frames["address"][stacks["frame"][at]]))
                    at = int(stacks["prefix"][at])
                found.append((thread.tid, ts, addresses))
    return sorted(found)


def peak_of(path: Path) -> int:
    """Bytes of resident memory, at most."""
    code = (
        "import sys, traceferry; traceferry.load([sys.argv[1]]);"
        "print(next(line for line in open('/proc/self/status') if line.startswith('VmHWM')))"
    )
    said = subprocess.run([sys.executable, "-c", code, str(path)], check=True, capture_output=True, text=True).stdout
    return int(said.split()[1]) * 1024


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads its peak of memory from /proc")
def test_memory_does_not_grow_with_the_dumps(tmp_path: Path) -> None:
    """A mapped file's pages are given back after each piece that was read. 180 MB more of dumps: it was 180 MB more."""
    peaks = []
    for size in (1024, 61440):
        path = tmp_path / f"{size}.data"
        path.write_bytes(recorded(PerfData(), 3000, stack(size)).bytes())
        peaks.append(peak_of(path))
    assert peaks[1] - peaks[0] < 70_000_000


def event(data: PerfData) -> PerfData:
    data.event(sample_type=SAMPLE_TYPE, regs_user=X86_64_REGS, stack_user=8192)
    return data.feature(ARCH="x86_64")


def records(data: PerfData) -> bytes:
    """What follows the header, as in the numbered files of a folder."""
    whole = data.bytes()
    at, size = struct.unpack_from("<QQ", whole, 40)
    return whole[at : at + size]


def compressed(*, second_version: bool = False, mode: str = "file") -> PerfData:
    """Each record holds at most 64 KB of the compressed stream: it is cut inside of registers and stacks."""
    data = event(PerfData(mode=mode)).begin_compressed()
    recorded(data, 40, stack(8192), (7, 8))
    return data.end_compressed(range(900, 40 * 8192, 30_011), second_version=second_version)


def write_folder(path: Path) -> None:
    """As `perf record --threads`: the main file, and one for each reader."""
    path.mkdir()
    (path / "data").write_bytes(event(PerfData()).bytes())
    (path / "data.0").write_bytes(records(recorded(event(PerfData()), 40, stack(8192), (7, 8))))
    (path / "data.1").write_bytes(b"")


def test_every_container_gives_the_same_stacks(tmp_path: Path) -> None:
    """Of files, pipes and folders, plain and compressed, cut in the middle of registers and of stacks."""
    written = {
        "file": recorded(PerfData(), 40, stack(8192), (7, 8)),
        "pipe": recorded(PerfData(mode="pipe"), 40, stack(8192), (7, 8)),
        "compressed": compressed(),
        "compressed, second version": compressed(second_version=True),
        "compressed pipe": compressed(mode="pipe"),
    }
    for name, data in written.items():
        (tmp_path / name).write_bytes(data.bytes())
    write_folder(tmp_path / "folder")
    wanted = chains(tmp_path / "file")
    assert len(wanted) == 40
    assert {tid for tid, _, _ in wanted} == {7, 8}
    callers = [caller - 1 - CODE for caller in CALLERS]
    assert all(addresses[0] < 16 and addresses[1:] == callers for _, _, addresses in wanted)
    for name in [*written, "folder"]:
        assert chains(tmp_path / name) == wanted, name


def test_a_file_whose_build_id_was_not_recorded(tmp_path: Path) -> None:
    """perf records build ids at its end, of the files that its samples are in, and none in pipes and folders."""
    path = tmp_path / "perf.data"
    dump = stack(64).replace(struct.pack("<Q", STACK + 16), struct.pack("<Q", 1))
    path.write_bytes(recorded(PerfData(), 1, dump).bytes())
    (issue,) = (issue for issue in traceferry.load([str(path)]).report if issue.kind == "unwinding_no_information")
    assert issue.details == ("app: without a recorded build id only a file given with --symbols or --sysroot is used",)


def test_a_window_that_ends_inside_of_a_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows of any size give the same records, also one that is smaller than a record."""
    path = tmp_path / "perf.data"
    path.write_bytes(recorded(PerfData(), 40, stack(8192), (7, 8)).bytes())
    wanted = chains(path)
    for size in (8, 4096, 8192, 20_001, 1 << 17):
        for module in (stream, samples, unwinding):
            monkeypatch.setattr(module, "WINDOW", size)
        assert chains(path) == wanted, size
