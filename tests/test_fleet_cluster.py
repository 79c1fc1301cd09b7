"""Many recordings in a bucket, on worker processes: the same bytes whatever happens on the way, and every recording
that could not be read is named."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

for _needed in ("dask", "distributed", "fsspec", "pyarrow", "s3fs", "moto"):
    pytest.importorskip(
        _needed, reason=f"{_needed} is not installed: pip install 'traceferry[fleet]' s3fs 'moto[server]'"
    )

import psutil
import pyarrow
import zstandard
from clients.s3 import BUCKET, S3
from conftest import REPO
from fleets import recordings
from pyarrow import parquet
from support import NAMELESS

import traceferry
from traceferry.analysis.info.summary import summarize

TRACEFERRY = Path(sys.executable).with_name("traceferry")
PATTERN = f"s3://{BUCKET}/in/{{service}}/{{commit}}/{{host}}.*"
# How many recordings, of which one in DAMAGED is damaged.
SIZES = [20, pytest.param(1000, marks=pytest.mark.large)]
DAMAGED = 20


class Bucket:
    """n recordings in a bucket, and what runs of the command make of them."""

    def __init__(self, n: int) -> None:
        self.n = n
        self.s3 = S3()

    def __enter__(self) -> Bucket:
        self.s3.__enter__()
        for name, data in recordings(self.n, DAMAGED):
            self.s3.put(f"in/{name}", data)
        self.started = 0
        return self

    def __exit__(self, *_: object) -> None:
        self.s3.__exit__()

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, **self.s3.environment}

    def start(self, output: str, *words: object, command: str = "aggregate") -> subprocess.Popen[str]:
        inputs = [PATTERN, "-o", f"s3://{BUCKET}/{output}", "--quiet"]
        more = ["--batch", "--to", "perfetto"] if command == "convert" else ["--by", "service,commit"]
        return subprocess.Popen(
            [str(TRACEFERRY), command, *inputs, *more, *map(str, words)], env=self.environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def run(self, output: str, *words: object, command: str = "aggregate") -> str:
        """Standard error of a run that found damaged recordings and finished."""
        process = self.start(output, *words, command=command)
        _, errors = process.communicate(timeout=1800)
        assert process.returncode == 1, errors
        assert "Traceback" not in errors
        return errors

    def content(self, output: str) -> dict[str, bytes]:
        return self.s3.content(f"{output}/")

    def table(self, output: str, name: str) -> list[dict[str, Any]]:
        tables = [data for path, data in self.content(output).items() if path.startswith(f"{name}/")]
        return [row for data in tables for row in parquet.read_table(pyarrow.BufferReader(data)).to_pylist()]


@pytest.fixture(scope="module", params=SIZES)
def bucket(request: pytest.FixtureRequest) -> Iterator[Bucket]:
    with Bucket(request.param) as filled:
        filled.run("reference", "--workers", 2)
        yield filled


def test_totals_are_the_sum_of_the_recordings(bucket: Bucket, tmp_path: Path) -> None:
    expected: dict[str, int] = dict.fromkeys(("calls", "self_ns", "total_ns", "samples", "total_samples"), 0)
    for name, data in recordings(bucket.n, DAMAGED):
        if ".bad." in name:
            continue
        path = tmp_path / name.replace("/", "-")
        path.write_bytes(data)
        for function in summarize(traceferry.load(path), 10**6)["functions"]["top"]:
            for amount in expected if not NAMELESS.fullmatch(function["name"]) else ():
                expected[amount] += function[amount]
    rows = [row for row in bucket.table("reference", "functions") if not NAMELESS.fullmatch(row["function"])]
    assert {amount: sum(row[amount] for row in rows) for amount in expected} == expected
    assert all(expected.values())


def test_every_damaged_recording_is_named(bucket: Bucket) -> None:
    bad = {name for name, _ in recordings(bucket.n, DAMAGED) if ".bad." in name}
    rows = bucket.table("reference", "recordings")
    assert {row["recording"].partition("/in/")[2] for row in rows if row["status"] != "done"} == bad
    assert len(rows) == bucket.n
    assert {row["status"] for row in rows} == {"done", "damaged"}


@pytest.mark.parametrize(("workers", "partition"), [pytest.param(1, 40, marks=pytest.mark.large), (5, 3)])
@pytest.mark.large
def test_any_workers_and_partitions_give_the_same_bytes(workers: int, partition: int, bucket: Bucket) -> None:
    output = f"w{workers}"
    bucket.run(output, "--workers", workers, "--partition-size", partition)
    assert bucket.content(output) == bucket.content("reference")


@pytest.mark.large
def test_a_server_that_fails_changes_nothing(bucket: Bucket) -> None:
    bucket.s3.fail_every = 20
    try:
        bucket.run("failing", "--workers", 2)
    finally:
        bucket.s3.fail_every = 0
    assert bucket.s3.n_failed > 5
    assert bucket.content("failing") == bucket.content("reference")


def n_parts(bucket: Bucket, output: str) -> int:
    """How many were put: the server is not asked, which has enough to do."""
    parts = (name for name in tuple(bucket.s3.stored) if name.startswith(f"{output}/_parts/"))
    return sum(name.endswith(".part") for name in parts)


def workers_of(process: subprocess.Popen[str]) -> list[psutil.Process]:
    """The processes in which recordings are read."""
    try:
        servers = [p for p in psutil.Process(process.pid).children() if "forkserver" in " ".join(p.cmdline())]
        return [worker for server in servers for worker in server.children()]
    except psutil.NoSuchProcess:
        return []


@pytest.mark.large
def test_workers_that_die_change_nothing(bucket: Bucket) -> None:
    """One is killed after each tenth of the recordings."""
    process = bucket.start("dying", "--workers", 2, "--partition-size", max(bucket.n // 100, 1))
    killed, before = 0, 0
    while process.poll() is None:
        if (now := n_parts(bucket, "dying")) >= before + 8:
            before = now
            killed += kill_a_worker(process)
        time.sleep(0.1)
    assert process.returncode == 1, process.communicate()[1]
    assert killed >= 3
    assert bucket.content("dying") == bucket.content("reference")


def kill_a_worker(process: subprocess.Popen[str]) -> int:
    """How many were killed."""
    for worker in workers_of(process)[:1]:
        worker.kill()
        return 1
    return 0


def test_a_run_that_is_killed_and_resumed_gives_the_same_bytes(bucket: Bucket) -> None:
    """Killed again, each time a little later, until one run ends, which loses a worker."""
    most = 4 if bucket.n > 100 else 1
    n_killed, parts = 0, 0
    while n_killed < most:
        process = bucket.start("resumed", "--workers", 2, "--partition-size", max(bucket.n // 50, 1), "--resume")
        while process.poll() is None and n_parts(bucket, "resumed") < parts + 6:
            time.sleep(0.05)
        assert process.poll() is None
        process.send_signal(signal.SIGKILL)
        process.wait()
        n_killed += 1
        parts = n_parts(bucket, "resumed")
    process = bucket.start("resumed", "--workers", 2, "--partition-size", max(bucket.n // 50, 1), "--resume")
    died = 0
    while process.poll() is None:
        if not died and n_parts(bucket, "resumed") > parts:
            died = kill_a_worker(process)
        time.sleep(0.1)
    errors = process.communicate()[1]
    assert (process.returncode, died, "Traceback" in errors) == (1, 1, False), errors
    assert bucket.content("resumed") == bucket.content("reference")


def test_what_is_done_is_not_done_again(bucket: Bucket) -> None:
    """A run that resumes a whole one reads no recording; then those only whose partition has one that changed."""
    words = "--workers", 1, "--partition-size", max(bucket.n // 50, 1), "--resume"
    bucket.run("again", *words)
    bucket.s3.read.clear()
    bucket.run("again", *words)
    assert bucket.content("again") == bucket.content("reference")
    assert not [name for name in bucket.s3.read if name.startswith("in/")]
    changed, data = next(iter(recordings(bucket.n, DAMAGED)))
    bucket.s3.put(f"in/{changed}", data + b"more")
    bucket.run("again", *words)
    read = {name for name in bucket.s3.read if name.startswith("in/")}
    assert f"in/{changed}" in read
    assert len(read) <= 3 * max(bucket.n // 50, 1)
    bucket.s3.put(f"in/{changed}", data)


@pytest.mark.large
def test_a_cluster_that_runs_already(bucket: Bucket) -> None:
    """As on other machines: a scheduler and a worker that were started by hand."""
    dask = [sys.executable, "-m", "dask"]
    with ended(subprocess.Popen([*dask, "scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard"],
                                stderr=subprocess.PIPE, text=True, env=bucket.environment)) as scheduler:  # fmt: skip
        assert scheduler.stderr is not None
        address = next(line.split()[-1] for line in scheduler.stderr if "Scheduler at:" in line)
        worker = [*dask, "worker", address, "--nthreads", "1", "--no-dashboard"]
        with ended(subprocess.Popen(worker, stderr=subprocess.DEVNULL, env=bucket.environment)):
            bucket.run("elsewhere", "--scheduler", address)
    assert bucket.content("elsewhere") == bucket.content("reference")


@contextmanager
def ended(process: subprocess.Popen[Any]) -> Iterator[subprocess.Popen[Any]]:
    try:
        yield process
    finally:
        process.terminate()
        process.wait(30)


@pytest.mark.large
def test_a_recording_that_needs_too_much_memory_is_named(tmp_path: Path) -> None:
    """It ends each worker that reads it; the others of its partition are read all the same, also where another worker
    takes longer to start than a cluster of Dask waits for it."""
    names = [name for name, _ in recordings(6)]
    for name, data in recordings(6):
        (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "in" / name).write_bytes(data)
    large = tmp_path / "in" / "large.mlpd.zst"
    with large.open("wb") as file, zstandard.ZstdCompressor(level=1).stream_writer(file) as packed:
        packed.write(next(data for name, data in recordings(6) if name.endswith(".mlpd")))
        for _ in range(1000):
            packed.write(bytes(1 << 21))
    command = [str(TRACEFERRY), "aggregate", str(tmp_path / "in"), "-o", str(tmp_path / "out"), "--workers", "1"]
    more = ["--worker-memory", "700MB", "--partition-size", "64", "--decompress-limit", "none"]
    slow = {**os.environ, "DASK_DISTRIBUTED__DEPLOY__LOST_WORKER_TIMEOUT": "10ms"}
    done = subprocess.run([*command, *more], capture_output=True, text=True, timeout=600, env=slow)
    assert done.returncode == 1, done.stderr
    rows = parquet.read_table(tmp_path / "out" / "recordings").to_pylist()
    status = {str(Path(row["recording"]).relative_to(tmp_path / "in")): row["status"] for row in rows}
    assert status == {**dict.fromkeys(names, "done"), "large.mlpd.zst": "killed"}
    assert f"{large}: killed: each worker that read it was ended" in done.stderr


def test_a_folder_that_may_not_be_listed(tmp_path: Path) -> None:
    """What lies beside a recording in it is not looked for: a line for the user, and a loss of the recording. Where
    recordings are searched, it is not taken for an empty one."""
    with S3() as s3:
        for path in sorted((REPO / "fixtures/jit/php82").iterdir()):
            s3.put(f"closed/{path.name}", path.read_bytes())

        def run(pattern: str, output: str) -> subprocess.CompletedProcess[str]:
            command = [str(TRACEFERRY), "aggregate", f"s3://{BUCKET}/{pattern}", "-o", str(tmp_path / output)]
            environment = {**os.environ, **s3.environment}
            return subprocess.run(
                [*command, "--workers", "1"], env=environment, capture_output=True, text=True, timeout=300
            )

        opened = run("closed/perf.data.zst", "opened")
        s3.closed = "closed"
        closed, searched = run("closed/perf.data.zst", "closed"), run("closed/*.zst", "searched")
    line = f"s3://{BUCKET}/closed: may not be listed; files beside its recordings are not seen\n"
    assert (opened.returncode, closed.returncode, searched.returncode) == (0, 0, 2), (opened, closed, searched)
    assert line not in opened.stderr
    assert line in closed.stderr
    assert "Access Denied" in searched.stderr
    losses = [
        json.loads(row["losses"])
        for output in ("opened", "closed")
        for row in parquet.read_table(tmp_path / output / "recordings").to_pylist()
    ]
    assert [loss.get("beside_refused", 0) for loss in losses] == [0, 1]


def test_conversions(bucket: Bucket, tmp_path: Path) -> None:
    """Each recording is what `convert` makes of it; those that are damaged are named."""
    bucket.run("converted", "--workers", 2, command="convert")
    content = bucket.content("converted")
    names = {name for name, _ in recordings(bucket.n, DAMAGED) if ".bad." not in name}
    assert {name.removesuffix(".pftrace") for name in content if name.endswith(".pftrace")} == names
    for name, data in list(recordings(bucket.n, DAMAGED))[:12]:
        path = tmp_path / Path(name).name
        path.write_bytes(data)
        traceferry.save(traceferry.load(path), tmp_path / "out.pftrace")
        assert content[f"{name}.pftrace"] == (tmp_path / "out.pftrace").read_bytes()
