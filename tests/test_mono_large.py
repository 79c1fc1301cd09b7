"""Recordings of two gigabytes: what becomes of them takes no more memory than what becomes of small ones."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from builders import mono
from builders.mono import Log
from conftest import REPO

pytestmark = [
    pytest.mark.large,
    pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="how much memory was used, only Linux tells"),
]

MB = 1_000_000
SIZE = 2_000 * MB
MOST_MEMORY = 1_000 * MB
HEADER = len(Log().bytes())
METHODS = [0x5000 + 64 * nth for nth in range(16)]
CLASS, NURSERY, HEAP, OBJECT_SIZE = 0x2000, 0x100_0000, 0x900_0000, 32
# In each buffer; a real one has 64 KiB.
ROUNDS, N_ALLOCATIONS, N_MOVED = 400, 1200, 16


class Story(NamedTuple):
    """buffer: what comes again and again, always later; calls, allocations: how many are in it."""

    buffer: Callable[[Log], Log]
    calls: int = 0
    allocations: int = 0


def calls(log: Log) -> Log:
    """Every method calls the next one."""
    for _ in range(ROUNDS):
        for method in METHODS:
            log.enter(method)
        for method in reversed(METHODS):
            log.leave(method)
    return log


def allocations(log: Log) -> Log:
    """Objects with their stacks, and a collection that some of them survive, until the next one is moved there."""
    for nth in range(N_ALLOCATIONS):
        log.alloc(CLASS, NURSERY + OBJECT_SIZE * nth, OBJECT_SIZE, METHODS)
    log.gc_event(mono.GC_START).gc_move([(NURSERY + OBJECT_SIZE * n, HEAP + OBJECT_SIZE * n) for n in range(N_MOVED)])
    return log.gc_event(mono.GC_END).gc_event(mono.PRE_START_WORLD)


STORIES = {
    "calls": Story(calls, calls=ROUNDS * len(METHODS)),
    "allocations": Story(allocations, allocations=N_ALLOCATIONS),
}


class Recording(NamedTuple):
    path: Path
    story: Story
    n_buffers: int


@pytest.fixture(scope="module", params=STORIES)
def recording(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recording]:
    story = STORIES[request.param]
    path = tmp_path_factory.mktemp("large") / f"{request.param}.mlpd"
    yield Recording(path, story, write(path, story, SIZE))
    path.unlink()


def write(path: Path, story: Story, size: int) -> int:
    """At least so many bytes. Returns how often the story's buffer is in it."""
    definitions = Log().buffer().type_(CLASS, "App.Node")
    for nth, method in enumerate(METHODS):
        definitions.jit(method, f"App.Program:Method{nth} ()")
    first = definitions.now
    log = story.buffer(Log(start=first).buffer(time_base=first))
    buffer = bytearray(log.bytes()[HEADER:])
    n_buffers = size // len(buffer) + 1
    with path.open("wb") as file:
        file.write(definitions.bytes())
        for nth in range(n_buffers):
            buffer[8:16] = (first + nth * (log.now - first)).to_bytes(8, "little")
            file.write(buffer)
    return n_buffers


class Run(NamedTuple):
    """peak: bytes of resident memory; n_bytes: how much it printed; printed: the last of it."""

    status: int
    peak: int
    n_bytes: int
    printed: bytes


# What wait4 says of a child begins with the memory of the process that started it.
COMMAND = """
import sys
from traceferry.apps.cli import main
status = main(sys.argv[1:])
sys.stdout.flush()
with open("/proc/self/status") as own:
    peak_kb = next(line.split()[1] for line in own if line.startswith("VmHWM"))
print(peak_kb, file=sys.stderr)
sys.exit(status)
"""


def run(*arguments: str) -> Run:
    command = [sys.executable, "-c", COMMAND, *arguments]
    with subprocess.Popen(command, cwd=REPO, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        n_bytes, last = 0, b""
        while piece := child.stdout.read1(1 << 20):
            n_bytes += len(piece)
            last = (last + piece)[-MB:]
        said = child.stderr.read().split()
    return Run(child.returncode, int(said[-1]) * 1024, n_bytes, last)


def test_info(recording: Recording) -> None:
    done = run("info", str(recording.path), "--json")
    said: dict[str, Any] = json.loads(done.printed)
    assert done.status == 0
    (process,) = said["processes"]
    assert sum(thread["calls"] for thread in process["threads"]) == recording.story.calls * recording.n_buffers
    n_allocations = recording.story.allocations * recording.n_buffers
    if n_allocations:
        assert said["allocations"]["count"] == n_allocations
        assert said["allocations"]["bytes"] == n_allocations * OBJECT_SIZE
    assert done.peak < MOST_MEMORY


@pytest.mark.parametrize("output", ["perfetto", "firefox"])
def test_convert(recording: Recording, tmp_path: Path, output: str) -> None:
    """The output is as much longer than that of a short recording as there is more in it."""
    short = tmp_path / "short.mlpd"
    n_short = write(short, recording.story, 20 * MB)
    of_short = run("convert", str(short), "--to", output, "-o", "-", "--quiet")
    done = run("convert", str(recording.path), "--to", output, "-o", "-", "--quiet")
    assert (of_short.status, done.status) == (0, 0)
    assert done.n_bytes / of_short.n_bytes == pytest.approx(recording.n_buffers / n_short, rel=0.25)
    assert done.peak < MOST_MEMORY
