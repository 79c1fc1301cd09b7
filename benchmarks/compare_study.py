"""How well `compare` does: A/A, the same program on both sides, A/B, with a function that takes 2 % longer, and
simulations of a function that changes on a machine that does, too (compare_simulation.py).

    make compare-study

A/A re-drawn: runs are drawn from the samples of real recordings, each function at a speed of its own in each run. A/A
live: fresh recordings. A/B: for each recorder a pool of recordings of each side, made in turn, from which each trial
takes 5 + 5. The recorders are those that are installed: perf, clang with XRay, mono.

perf records with real-time priority where that is allowed: other programs on the machine then disturb less. Runs whose
calls are timed are longer instead: Linux stops a program of real-time priority for 50 ms of each second.
`--reuse` judges the recordings of the last time.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from compare_chance import asked_for, rare, split
from compare_simulation import simulated

import traceferry
from traceferry.analysis.compare.comparison import Comparison, compare
from traceferry.analysis.compare.gate import evaluate, parse
from traceferry.analysis.compare.runs import Run
from traceferry.analysis.totals.portable import Totals, Tree
from traceferry.analysis.totals.sums_of_trace import SampleTotals

REPO = Path(__file__).parents[1]
PROGRAMS = REPO / "fixtures" / "compare" / "programs"
BUILT = REPO / "build" / "compare-study"
REAL = ["jit/java17/perf.data.zst", "jit/php82/perf.data.zst", "jit/wasmtime/perf.data.zst"]
N_RUNS = 5
N_SPLIT = 24
SPEED_SPREAD = 0.02  # of a function, and of a whole run
GATES = ("self > 1%", "total > 1%", "time > 5%")
PLANTED = 0.02
# Of timed calls some seconds: what takes the processor away for a moment is then spread over all functions.
ROUNDS = {"perf": 600, "xray": 1400, "mono": 2400}
Record = Callable[[float, Path, int], Run]
KNOB = {"perf": "hash", "xray": "hash", "mono": "Knob:Hash (ulong)"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--simulated", type=int, default=40, help="trials of each cell of simulations (default: 40)")
    parser.add_argument(
        "--chance", type=int, default=200, help="trials of A/A of each shape, 1 + 1 to 8 + 8 (default: 200)"
    )
    parser.add_argument("--redrawn", type=int, default=200, help="trials of A/A with re-drawn runs (default: 200)")
    parser.add_argument("--live", type=int, default=20, help="trials of A/A with fresh recordings (default: 20)")
    parser.add_argument("--trials", type=int, default=100, help="trials of A/B for each recorder (default: 100)")
    parser.add_argument("--pool", type=int, default=20, help="recordings of each side for A/B (default: 20)")
    parser.add_argument("--recorders", default="perf,xray,mono")
    parser.add_argument("--reuse", action="store_true", help="judge the recordings of the last time")
    options = parser.parse_args()
    BUILT.mkdir(parents=True, exist_ok=True)
    found: dict[str, Any] = {}
    if options.simulated:
        found["simulated"] = simulated(options.simulated)
    if options.chance:
        found |= by_chance(options.chance, options.reuse)
    if options.redrawn:
        found["A/A re-drawn"] = redrawn(options.redrawn)
    for name in options.recorders.split(","):
        record = recorder(name)
        if record is None:
            print(f"{name} is not installed: left out")
            continue
        if options.live and name == "perf":
            found["A/A live, perf"] = live(record, options.live, options.reuse)
        if options.trials:
            found[f"A/B, {name}"] = planted(name, record, options.pool, options.trials, options.reuse)
    (BUILT / "figures.json").write_text(json.dumps(found, indent=1) + "\n")


# ---------------------------------------------------------------- A/A


def judged(comparisons: Sequence[Comparison]) -> dict[str, Any]:
    """In how many trials a function was named, and in how many each gate failed."""
    named = sum(any(t.changed for t in c.tables if t.name in ("self", "total")) for c in comparisons)
    tests = [c.n_tests for c in comparisons]
    failed = {text: sum(evaluate(parse(text), c).status == "failed" for c in comparisons) for text in GATES}
    return {"trials": len(comparisons), "a function named": named, "tests": [min(tests), max(tests)], **failed}


def redrawn(n_trials: int) -> dict[str, Any]:
    rng = np.random.default_rng(1)
    traces = [traceferry.load(REPO / "fixtures" / name) for name in REAL]
    draws = [drawn_from(trace, rng) for trace in traces]
    comparisons = []
    for nth in range(n_trials):
        draw = draws[nth % len(draws)]
        comparisons.append(compare([draw() for _ in range(N_RUNS)], [draw() for _ in range(N_RUNS)]))
    return shown("A/A, 5 + 5 runs re-drawn from real recordings", judged(comparisons))


def drawn_from(trace: Any, rng: np.random.Generator) -> Callable[[], Run]:
    """What draws a run with the functions and stacks of a recording."""
    threads = [t.load(trace).samples["stack"] for _, t in trace.threads if not t.sample_unit]
    stacks = np.concatenate([column[column >= 0] for column in threads])
    names = [trace.func_name(func) for func in range(len(trace.funcs))]

    leaf = trace.frames["func"][trace.stacks["frame"][stacks]]

    def draw() -> Run:
        n = round(len(stacks) * float(np.exp(SPEED_SPREAD * rng.standard_normal())))
        chance = np.exp(SPEED_SPREAD * rng.standard_normal(len(trace.funcs)))[leaf]
        drawn = rng.choice(stacks, n, p=chance / chance.sum())
        totals = SampleTotals(trace)
        totals.add(drawn)
        samples, with_callees = totals.by_func()
        seen = np.flatnonzero(with_callees)
        zeros = np.zeros(len(seen), np.int64)
        amounts = np.stack([zeros, zeros, zeros, samples[seen], with_callees[seen]], axis=1)
        functions = Totals().functions.of([(names[f], "", 0, "") for f in seen.tolist()], amounts)
        return Run("redrawn", replace(Totals(), functions=functions), Tree(), n * 10**6, trace.sampling, 1e6, 0)

    return draw


def by_chance(n_trials: int, reuse: bool) -> dict[str, Any]:
    """Simulated programs with rare functions, and splits of real recordings."""
    found = {f"A/A, {name}": figures for name, figures in rare(n_trials).items()}
    recorders = {"node with perf": _node, "XRay": _xray, "Mono": _mono}
    for name, make in recorders.items():
        record = make()
        if record is not None:
            path = BUILT / f"split-{name.split()[0].lower()}"
            runs = kept(
                path.name, lambda record=record, path=path: [record(0.0, path, 60) for _ in range(N_SPLIT)], reuse
            )
            found[f"A/A, splits of {len(runs)} recordings: {name}"] = split(runs, n_trials)
    found["found with the runs that were asked for"] = asked_for(n_trials)
    return {title: shown(title, figures) for title, figures in found.items()}


def live(record: Record, n_trials: int, reuse: bool) -> dict[str, Any]:
    n = 2 * N_RUNS * n_trials
    runs = kept("live", lambda: [record(0.0, BUILT / "live.data", 100) for _ in range(n)], reuse)
    trials = [runs[at : at + 2 * N_RUNS] for at in range(0, len(runs), 2 * N_RUNS)]
    return shown("A/A, 5 + 5 fresh recordings with perf", judged([compare(t[::2], t[1::2]) for t in trials]))


def kept(name: str, make: Callable[[], Any], reuse: bool) -> Any:
    """What was recorded, this time or the last time."""
    path = BUILT / f"{name}.pickle"
    if not (reuse and path.exists()):
        path.write_bytes(pickle.dumps(make()))
    return pickle.loads(path.read_bytes())


# ---------------------------------------------------------------- A/B


def pools_of(name: str, record: Record, n_pool: int) -> list[list[Run]]:
    """Recordings of the base and of the new side, in turn."""
    pools: list[list[Run]] = [[], []]
    for _ in range(n_pool):
        for side, percent in enumerate((0.0, 100 * PLANTED)):
            pools[side].append(record(percent, BUILT / f"pool-{name}", ROUNDS[name]))
    return pools


def planted(name: str, record: Record, n_pool: int, n_trials: int, reuse: bool) -> dict[str, Any]:
    rng = np.random.default_rng(2)
    pools = kept(f"pools-{name}", lambda: pools_of(name, record, n_pool), reuse)
    first = covered = significant = others = 0
    changes, widths = [], []
    for _ in range(n_trials):
        sides = [[pool[i] for i in rng.choice(len(pool), N_RUNS, replace=False)] for pool in pools]
        found = compare(*sides)
        table = found.tables_named("self")[0]
        row = next(row for row in table.rows if row.name == KNOB[name])
        first += table.rows[0].name == KNOB[name] and row.is_changed
        significant += row.is_changed
        others += any(r.is_changed and r.name != KNOB[name] for r in table.rows)
        if row.low is None or row.high is None or row.change is None:
            raise ValueError(f"{row.name} was not tested")
        covered += row.low <= PLANTED <= row.high
        changes.append(row.change)
        widths.append(row.high - row.low)
    return shown(
        f"A/B, {name}: {KNOB[name]} takes {PLANTED:.0%} longer",
        {
            "trials": n_trials, "recordings of each side": len(pools[0]), "ranked first": first,
            "significant": significant, "interval holds the truth": covered, "another function named": others,
            "median change": f"{np.median(changes):+.3%}", "median width of the interval": f"{np.median(widths):.2%}",
        },
    )  # fmt: skip


# ---------------------------------------------------------------- recorders


def recorder(name: str) -> Record | None:
    """What records a run of the program with the given percentage, and loads it."""
    make = {"perf": _perf, "xray": _xray, "mono": _mono}[name]
    return make()


def _perf() -> Record | None:
    compiler = next((c for c in ("clang++-19", "clang++", "g++", "c++") if shutil.which(c)), None)
    if compiler is None or shutil.which("perf") is None:
        return None
    program = BUILT / "knob"
    subprocess.run([compiler, "-O2", "-g", PROGRAMS / "knob.cpp", "-o", program], check=True)
    real_time = _real_time()

    def record(percent: float, path: Path, rounds: int) -> Run:
        command = [
            *real_time, "perf", "record", "-q", "-F", "49999", "-e", "cpu-clock", "-m", "4M", "-o", path, program,
            str(rounds),
        ]  # fmt: skip
        _run(command, KNOB_PERCENT=str(percent))
        return _loaded(path)

    return record


def _node() -> Record | None:
    if shutil.which("node") is None or shutil.which("perf") is None:
        return None

    def record(percent: float, path: Path, rounds: int) -> Run:
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir()
        command = [
            "perf",
            "record",
            "-q",
            "-k",
            "mono",
            "-e",
            "cpu-clock",
            "-F",
            "4999",
            "-g",
            "-o",
            path / "perf.data",
        ]
        node = ["node", "--perf-prof", "--no-write-protect-code-memory", PROGRAMS / "orders.js", str(5 * rounds)]
        subprocess.run([*command, *node], check=True, cwd=path, capture_output=True)
        return _loaded(path / "perf.data")

    return record


def _xray() -> Record | None:
    compiler = next((c for c in ("clang++-19", "clang++") if shutil.which(c)), None)
    if compiler is None:
        return None
    program = BUILT / "knob-xray"
    flags = ["-O2", "-g", "-fxray-instrument", "-fxray-instruction-threshold=1"]
    subprocess.run([compiler, *flags, PROGRAMS / "knob.cpp", "-o", program], check=True)

    def record(percent: float, path: Path, rounds: int) -> Run:
        _run(
            [program, str(rounds)], KNOB_PERCENT=str(percent),
            XRAY_OPTIONS=f"patch_premain=true xray_mode=xray-basic xray_logfile_base={BUILT}/xray-log.",
            XRAY_BASIC_OPTIONS="func_duration_threshold_us=0",
        )  # fmt: skip
        logs = sorted(BUILT.glob("xray-log.*"), key=lambda log: log.stat().st_mtime)
        found = _loaded(logs[-1], symbols=[str(program)])
        for log in logs:
            log.unlink()
        return found

    return record


def _mono() -> Record | None:
    if shutil.which("mono") is None or shutil.which("mcs") is None:
        return None
    program = BUILT / "Knob.exe"
    subprocess.run(["mcs", f"-out:{program}", PROGRAMS / "Knob.cs"], check=True)

    def record(percent: float, path: Path, rounds: int) -> Run:
        path.unlink(missing_ok=True)
        command = ["mono", f"--profile=log:nodefaults,calls,output={path}", program, str(rounds), str(percent)]
        _run(command)
        return _loaded(path)

    return record


def _run(command: Sequence[str | Path], **environment: str) -> None:
    # One layout of memory: where code and stack happen to be changes the speed of small loops by a tenth.
    first = ["setarch", "-R"] if shutil.which("setarch") else []
    subprocess.run([*first, *command], check=True, env={**os.environ, **environment}, stderr=subprocess.DEVNULL)


def _real_time() -> list[str]:
    """What starts a program with real-time priority, where that is allowed."""
    prefix = ["chrt", "-f", "10"]
    if shutil.which("chrt") and subprocess.run([*prefix, "true"], capture_output=True).returncode == 0:
        return prefix
    return []


def _loaded(path: Path, symbols: Sequence[str] = ()) -> Run:
    return Run.of(str(path), traceferry.load(path, symbols=symbols), with_trees=False)


def shown(title: str, figures: dict[str, Any]) -> dict[str, Any]:
    print(f"{title}:", *(f"{key}: {value}" for key, value in figures.items()), sep="\n  ")
    sys.stdout.flush()
    return figures


if __name__ == "__main__":
    main()
