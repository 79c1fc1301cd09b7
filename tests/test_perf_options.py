"""perf record's options, typed here: each gives a valid trace that has what was asked for, or a sentence why not."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import one_in
from support import load_checked

from traceferry.model import Trace

PROGRAM = ["python3", "-c", "import time\nfor _ in range(30): sum(range(20000)); time.sleep(0.0005)"]
Shown = Callable[[Trace], object]


def details(trace: Trace, kind: str) -> str:
    return "; ".join(issue.detail for issue in trace.report if issue.kind == kind)


def has_samples(trace: Trace) -> object:
    return any(len(thread.load(trace).samples) for _, thread in trace.threads)


def has_scheduling(trace: Trace) -> object:
    return any(len(thread.load(trace).scheduling) for _, thread in trace.threads)


# By option: what has to be there.
SHOWN: dict[str, Shown] = {
    "record -e cpu-clock,dummy": has_samples,
    "record -e {cpu-clock,page-faults}:S": lambda t: [e.leader for e in t.events] == [-1, 0],
    "record -e cpu-clock -e page-faults": lambda t: len(t.events) == 2,
    "record -e cpu-clock -d": has_samples,
    "record -e cpu-clock -W": has_samples,
    "record -e cpu-clock --phys-data": has_samples,
    "record -e cpu-clock --code-page-size": has_samples,
    "record -e cpu-clock --all-cgroups": lambda t: any(process.cgroup for process in t.processes),
    "record -e cpu-clock --namespaces": lambda t: any("pid:[" in process.namespaces for process in t.processes),
    "record -e cpu-clock --switch-events": has_scheduling,
    "record -e cpu-clock -a -g": has_samples,
    "record -e cpu-clock --sample-cpu": lambda t: any(
        (thread.load(t).samples["cpu"] >= 0).any() for _, thread in t.threads
    ),
    "record -e cpu-clock -I": lambda t: "registers at the interrupt" in details(t, "sample_parts_not_read"),
    "record -e cpu-clock --user-regs=ip,sp": has_samples,
    "record -e cpu-clock --transaction": lambda t: "transactions" in details(t, "sample_parts_not_read"),
    "record -e cpu-clock -s": has_samples,
    "record -e cpu-clock --tail-synthesize --overwrite": has_samples,
    "record -e cpu-clock -z": has_samples,
    "record -e cpu-clock -R": has_samples,
    "record -e dummy": lambda t: "its event is dummy" in details(t, "no_samples"),
    "record -C 0 -e sched:sched_switch,sched:sched_waking": lambda t: (
        has_scheduling(t) and (os.cpu_count() == 1 or "processors 0 of" in details(t, "processors_left_out"))
    ),
    "record -e raw_syscalls:*": lambda t: t.threads,
    "stat record": lambda t: t.processes[0].counters,
    "stat record -a -A -I 50 -e cpu-clock,context-switches": lambda t: any(
        counter.name == "cpu-clock: CPU 0" for counter in t.processes[0].counters
    ),
    "sched record": has_scheduling,
    "trace record": lambda t: t.threads,
    "lock record": lambda t: t.threads or details(t, "no_samples"),
    "kvm stat record": lambda t: t.threads or details(t, "no_samples"),
}


@pytest.mark.skipif(shutil.which("perf") is None or os.name != "posix" or os.getuid() != 0, reason="perf, as root")
@pytest.mark.parametrize("words", one_in(4, SHOWN))
def test_what_perf_records(words: str, tmp_path: Path) -> None:
    data = tmp_path / "perf.data"
    command = ["perf", *words.split(), "-o", str(data), *PROGRAM]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode or not data.exists() or not data.stat().st_size:
        pytest.skip(f"perf does not record it here: {done.stderr.strip()[-80:]}")
    assert SHOWN[words](load_checked(data))
