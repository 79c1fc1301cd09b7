"""perf: times that threads waited and ran, against perf sched timehist on recordings of our own."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from recordings import SHARED
from support import load_checked

from traceferry.model import RUNNABLE, RUNNING, UNKNOWN, Trace
from traceferry.timeline.off_cpu import durations

ROW = re.compile(r"\s*(\d+\.\d+) \[(\d+)\]\s+(.*?)\[(\d+)(?:/\d+)?\]\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)")
PROGRAM = """
import os, threading, time
def work(n):
    for _ in range(n):
        sum(range(20000)); time.sleep(0.0005)
threads = [threading.Thread(target=work, args=(20,)) for _ in range(3)]
[one.start() for one in threads]
[one.join() for one in threads]
"""


CHANNELS = """
#include <condition_variable>
#include <mutex>
#include <thread>
#include <unistd.h>
std::mutex mutex;
std::condition_variable came;
int n = 0;
void taker() {
    for (int i = 0; i < 200; i++) {
        std::unique_lock<std::mutex> held(mutex);
        came.wait(held, [] { return n > 0; });
        n--;
    }
}
int main() {
    std::thread one(taker), other(taker);
    for (int i = 0; i < 400; i++) {
        usleep(200);
        { std::lock_guard<std::mutex> held(mutex); n++; }
        came.notify_one();
    }
    one.join();
    other.join();
}
"""
WORKERS = """
const { Worker, isMainThread, parentPort } = require('worker_threads');
if (isMainThread) {
  const worker = new Worker(__filename);
  let n = 0;
  worker.on('message', () => worker.postMessage(++n < 200 ? n : -1));
  worker.postMessage(0);
} else {
  const cell = new Int32Array(new SharedArrayBuffer(4));
  parentPort.on('message', (m) => {
    if (m < 0) process.exit(0);
    Atomics.wait(cell, 0, 0, 1);
    parentPort.postMessage(1);
  });
}
"""


def program(language: str, folder: Path) -> list[str]:
    """A command whose threads wait for each other."""
    tool = {"python": "python3", "c++": "g++", "node": "node"}[language]
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed")
    if language == "python":
        return [tool, "-c", PROGRAM]
    if language == "node":
        (folder / "workers.js").write_text(WORKERS)
        return [tool, str(folder / "workers.js")]
    (folder / "channels.cpp").write_text(CHANNELS)
    subprocess.run([tool, "-pthread", folder / "channels.cpp", "-o", folder / "channels"], check=True)
    return [str(folder / "channels")]


@pytest.mark.skipif(shutil.which("perf") is None or os.name != "posix" or os.getuid() != 0, reason="perf, as root")
@pytest.mark.parametrize("language", ["python", "c++", "node"])
def test_waits_are_those_of_timehist(language: str, tmp_path: Path) -> None:
    """Between two switches that both tell of, perf sched timehist has the same times, to its microsecond."""
    data = tmp_path / "perf.data"
    command = ["perf", "record", "-q", "-a", "-m", "2M", "-k", "CLOCK_MONOTONIC", "-o", str(data)]
    command += ["-e", "sched:sched_switch,sched:sched_waking", "--", "taskset", "1", *program(language, tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode or not data.exists():
        pytest.skip(f"perf records no tracepoints here: {done.stderr[:100]}")
    printed = subprocess.run(
        ["perf", "sched", "timehist", "-i", str(data)], capture_output=True, text=True, timeout=60, check=False
    ).stdout
    told = subprocess.run(
        ["perf", "script", "-i", str(data), "--ns", "-G", "-F", "cpu,time,event,trace"],
        capture_output=True, text=True, timeout=60, check=False,
    ).stdout  # fmt: skip
    causes = compared(load_checked(data), printed, told)
    # Every row that differs has one of two causes.
    assert set(causes) <= {"same", "its start is not recorded", "its wait begins before the recording", "first of all"}
    assert causes["same"] > 50


SWITCHED = re.compile(r"\[(\d+)\]\s+(\d+)\.(\d+):\s+sched:sched_switch:.*prev_pid=(\d+).*next_pid=(\d+)")


def compared(trace: Trace, printed: str, told: str) -> Counter[str]:
    """Counts the rows of perf sched timehist by why they differ from our own. told: what perf script prints of the
    switches. timehist takes the last switch of the processor for the start of a run, whatever it switched to."""
    before: dict[tuple[int, int, int], tuple[int, int] | None] = {}
    last: dict[int, tuple[int, int]] = {}
    for m in SWITCHED.finditer(told):
        cpu, at, prev, after = int(m[1]), int(m[2]) * 10**9 + int(m[3]), int(m[4]), int(m[5])
        before[cpu, at // 1000, prev] = last.get(cpu)
        last[cpu] = at, after
    ours = runs_of(trace)
    causes: Counter[str] = Counter()
    for m in (m for line in printed.splitlines() if (m := ROW.match(line))):
        tid, at = int(m[4]), round(float(m[1]) * 1e6)
        wait, delay, run = (float(m[nth]) for nth in (5, 6, 7))
        then = before[int(m[2]), at, tid]
        found = ours.get((tid, at))
        if then is None:
            causes["first of all"] += 1
        elif then[1] != tid:
            causes["its start is not recorded"] += abs((at - then[0] / 1000) / 1000 - run) < 0.0021 or run == 0
        elif found is None:
            causes["we have no such row"] += 1
        elif abs(found[2] - run) > 0.0021:
            causes["another run"] += 1
        elif wait == 0 and found[0] is None:
            causes["its wait begins before the recording"] += 1
        else:
            is_same = found[0] is not None and abs(found[0] - wait) < 0.0021 and abs(found[1] - delay) < 0.0021
            causes["same" if is_same else "another wait"] += 1
    return causes


def runs_of(trace: Trace) -> dict[tuple[int, int], tuple[float | None, float, float]]:
    """Returns, by thread and the microsecond at which it left its processor, ms: how long it had waited, how much of
    that it could have run, and how long it ran. What a number ran before it executed another program counts."""
    rows: dict[int, list[tuple[int, int]]] = {}
    for _, thread in trace.threads:
        table = thread.load(trace).scheduling
        rows.setdefault(thread.tid, []).extend(zip(table["ts"].tolist(), table["state"].tolist(), strict=True))
    found = {}
    for tid, states in rows.items():
        left = woken = went_on = None
        for nth, (ts, state) in enumerate(sorted(states, key=lambda one: one[0])):
            if state == RUNNING:
                went_on = went_on or ts
                continue
            if state == RUNNABLE:
                woken = ts
                continue
            if went_on is not None:
                wait = (went_on - left) / 1e6 if left is not None else None
                delay = (went_on - woken) / 1e6 if woken is not None else 0.0
                found[tid, ts // 1000] = wait, delay, (ts - went_on) / 1e6
            left, woken, went_on = None if nth == 0 or state == UNKNOWN else ts, None, None
    return found


def test_the_capture_has_all_its_waits() -> None:
    folder = SHARED / "captures" / "perf-events"
    if not folder.exists():
        pytest.skip("the captures are not here")
    trace = load_checked(folder / "sched.data.zst")
    left_out = [issue.count for issue in trace.report if issue.kind == "switches_left_out"]
    assert left_out == [473]
    for _, thread in trace.threads:
        rows = thread.load(trace).scheduling
        assert sum(durations(rows, thread.end_ts)) == thread.end_ts - thread.start_ts
