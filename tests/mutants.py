"""Changes the code in small ways and runs the tests that execute the changed line: a change that no test notices is
printed. The changes are cosmic-ray's: another operator, number, condition or exception. Run by `make mutants`.

    python tests/mutants.py [-n 100] [--seed 0] [--seconds 20] [--jobs 2] [PART...]

PART: only modules whose path contains it. The sample is the same for the same code and seed. Which test executes which
line is recorded once for each test file, in build/mutants, and again when it or the code has changed. Mutants are made
in a copy of the packages, never in the work tree. Compiled modules are left out: they would have to be built for each
mutant; independent oracles check them.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple

TESTS = Path(__file__).resolve().parent
REPO = TESTS.parent
BUILD = REPO / "build" / "mutants"
COVERAGE = BUILD / "coverage"
FOLDERS = {"traceferry": "converter", "traceferry/importers": "importers", "traceferry/exporters": "exporters"}
MUTATED = ("converter", "exporters")
# None == None as None is None does; a missing @cache costs only time; variables are replaced by random numbers.
LEFT_OUT = ("Eq_Is", "NotEq_IsNot", "Is_Eq", "IsNot_NotEq", "RemoveDecorator", "Variable")
START_SECONDS = 15.0
MAX_TESTS = 150
MEMORY = 6_000_000_000
FILE_SIZE = 1_000_000_000


class Mutant(NamedTuple):
    """path: below the repository; lines: those of the statement that is changed."""

    path: str
    operator: str
    occurrence: int
    lines: range


# ---------------------------------------------------------------- mutants


@cache
def operators() -> dict[str, list[str]]:
    """Kind of what is replaced → the operators that replace it. Those of a kind have the same occurrences."""
    from cosmic_ray.plugins import operator_names

    kinds: dict[str, list[str]] = defaultdict(list)
    for name in operator_names():
        if not any(part in name for part in LEFT_OUT):
            kinds[name.rpartition("_")[0] if name.count("_") > 1 else name].append(name)
    return kinds


def mutants_of(path: str) -> Iterator[tuple[str, int, range]]:
    """(kind, occurrence, lines of the statement) of everything that can be changed."""
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.plugins import get_operator

    made = {kind: get_operator(names[0])() for kind, names in operators().items()}
    seen = dict.fromkeys(made, 0)
    for node in ast_nodes(get_ast((REPO / path).read_text(encoding="utf-8"))):
        for kind, operator in made.items():
            for _ in operator.mutation_positions(node):
                seen[kind] += 1
                if not is_annotation(node):
                    yield kind, seen[kind] - 1, lines_of(node)


def is_annotation(node: Any) -> bool:
    """Types are checked by mypy, and not evaluated."""
    while node.parent is not None:
        parent = node.parent
        if parent.type in ("annassign", "tfpdef") and node is not parent.children[0]:
            return not (parent.type == "annassign" and len(parent.children) > 3 and node is parent.children[3])
        if parent.type == "funcdef" and node is parent.annotation:
            return True
        node = parent
    return False


def lines_of(node: Any) -> range:
    """Of the innermost statement around it; of one that has a body, its head. None for what is executed on import."""
    from parso.tree import search_ancestor

    while node.parent is not None and not node.type.endswith(("_stmt", "funcdef", "classdef")):
        node = node.parent
    if node.parent is None or search_ancestor(node, "funcdef") is None:
        return range(0)
    body = next((child for child in getattr(node, "children", []) if child.type == "suite"), None)
    end = body.start_pos[0] - 1 if body is not None else node.end_pos[0]
    return range(node.start_pos[0], max(end, node.start_pos[0]) + 1)


def mutated(mutant: Mutant) -> str | None:
    """The text of the module; None where it is no Python, or the same."""
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.plugins import get_operator

    text = (REPO / mutant.path).read_text(encoding="utf-8")
    changed: str | None = mutate_code(text, get_operator(mutant.operator)(), mutant.occurrence)
    try:
        compile(changed or "", mutant.path, "exec")
    except SyntaxError:
        return None
    return changed if changed != text else None


def sample(paths: Sequence[str], n: int, seed: int) -> list[Mutant]:
    chosen = random.Random(seed)
    places = [(path, *found) for path in paths for found in mutants_of(path)]
    mutants = []
    for path, kind, occurrence, lines in chosen.sample(places, len(places)):
        mutant = Mutant(path, chosen.choice(operators()[kind]), occurrence, lines)
        if mutated(mutant) is not None:
            mutants.append(mutant)
            if len(mutants) == n:
                break
    return mutants


# ---------------------------------------------------------------- which test executes which line


def collect(jobs: int) -> None:
    """Runs each test file whose record is older than it or than the code."""
    code = max(path.stat().st_mtime for folder in FOLDERS.values() for path in (REPO / folder).rglob("*.py"))
    shared = max(path.stat().st_mtime for path in TESTS.rglob("*.py") if not path.name.startswith(("test_", "mutants")))
    stale = []
    for file in sorted(TESTS.glob("test_*.py")):
        record = COVERAGE / f"{file.stem}.json"
        if not record.exists() or record.stat().st_mtime < max(code, shared, file.stat().st_mtime):
            stale.append(file)
    with ThreadPoolExecutor(jobs) as pool:
        for file, seconds in pool.map(record_of, stale):
            print(f"recorded {file.name}: {seconds:.0f} s", flush=True)


def record_of(file: Path) -> tuple[Path, float]:
    """Which test executes which line, and how long each takes."""
    from coverage import CoverageData

    began, folder = time.monotonic(), COVERAGE / file.stem
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "sitecustomize.py").write_text("import coverage\ncoverage.process_startup()\n", encoding="utf-8")
    sources = [str(REPO / name) for name in MUTATED]
    # A program that a test starts belongs to the test in whose environment it runs.
    (folder / "rc").write_text(
        f"[run]\nparallel = true\ndata_file = {folder}/data\nsource =\n  {sources[0]}\n  {sources[1]}\n"
        "context = ${PYTEST_CURRENT_TEST-}\n",
        encoding="utf-8",
    )
    environment = os.environ | {
        "PYTHONPATH": f"{folder}:{TESTS}", "COVERAGE_PROCESS_START": str(folder / "rc"),
        "MUTANTS_DURATIONS": str(folder / "durations"),
    }  # fmt: skip
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "mutants_plugin", str(file)]
    subprocess.run(command, cwd=REPO, env=environment, capture_output=True)
    executed: dict[str, dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
    for part in folder.glob("data.*"):
        data = CoverageData(str(part))
        data.read()
        for path in data.measured_files():
            for line, contexts in data.contexts_by_lineno(path).items():
                for context in contexts:
                    test = context.strip("|").removesuffix(" (call)").removesuffix(" (setup)")
                    executed[str(Path(path).relative_to(REPO))][test].add(line)
    durations = folder / "durations"
    record = {
        "seconds": json.loads(durations.read_text()) if durations.exists() else {},
        "executed": {path: {test: sorted(lines) for test, lines in of.items()} for path, of in executed.items()},
    }
    (COVERAGE / f"{file.stem}.json").write_text(json.dumps(record), encoding="utf-8")
    shutil.rmtree(folder)
    return file, time.monotonic() - began


class Executed:
    """What `collect` has recorded."""

    def __init__(self, paths: Sequence[str]) -> None:
        self.seconds: dict[str, float] = {}
        self.lines: dict[str, dict[str, set[int]]] = {path: {} for path in paths}
        for record in sorted(COVERAGE.glob("test_*.json")):
            found = json.loads(record.read_text(encoding="utf-8"))
            self.seconds |= found["seconds"]
            for path in paths:
                of_path = found["executed"].get(path, {})
                self.lines[path] |= {test: set(lines) for test, lines in of_path.items() if test in found["seconds"]}

    def tests(self, mutant: Mutant, limit: float) -> list[str]:
        """Those that execute the statement: of each test function the fastest case first, as many as fit into the
        limit, and the fastest anyhow. What is executed on import is every test's that executes anything in the
        module."""
        lines = self.lines[mutant.path]
        at = set(mutant.lines)
        tests = [test for test, of in lines.items() if at & of] or list(lines)
        by_function: dict[str, int] = defaultdict(int)
        ranked = []
        for test in sorted(tests, key=lambda test: (self.seconds[test], test)):
            function = test.partition("[")[0]
            ranked.append((by_function[function], self.seconds[test], test))
            by_function[function] += 1
        chosen: list[str] = []
        for _, seconds, test in sorted(ranked)[:MAX_TESTS]:
            if not chosen or seconds <= limit:
                chosen.append(test)
                limit -= seconds
        return sorted(chosen, key=lambda test: self.seconds[test])


# ---------------------------------------------------------------- running


def site(nth: int) -> Path:
    """A copy of the packages as they are installed, links to every file."""
    folder = BUILD / f"site-{nth}"
    shutil.rmtree(folder, ignore_errors=True)
    for package, source in FOLDERS.items():
        for path in (REPO / source).rglob("*"):
            if path.is_file() and path.parent.name != "__pycache__":
                target = folder / package / path.relative_to(REPO / source)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.symlink_to(path)
    return folder


def put(folder: Path, path: str) -> Path:
    top, _, rest = path.partition("/")
    package = next(name for name, source in FOLDERS.items() if source == top)
    return folder / package / rest


def limited() -> None:
    os.setsid()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_SIZE, FILE_SIZE))


def notices(folder: Path, mutant: Mutant, tests: Sequence[str], seconds: float, nth: int) -> bool:
    """Whether one of the tests fails while the code has the change."""
    text = mutated(mutant)
    assert text is not None
    module = put(folder, mutant.path)
    module.unlink()
    module.write_text(text, encoding="utf-8")
    # Python knows by the time in seconds and the size whether what it has compiled is of this text.
    os.utime(module, (1_000_000_000 + nth, 1_000_000_000 + nth))
    try:
        return fails(folder, tests, seconds)
    finally:
        module.unlink()
        module.symlink_to(REPO / mutant.path)


def fails(folder: Path, tests: Sequence[str], seconds: float) -> bool:
    """Whether one of the tests does, with the packages in the folder; one that takes much longer than usual does,
    too."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--no-header", *tests]
    environment = os.environ | {"PYTHONPATH": str(folder)}
    child = subprocess.Popen(
        command, cwd=REPO, env=environment, preexec_fn=limited, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        return child.wait(timeout=START_SECONDS + 8 * seconds) != 0
    except subprocess.TimeoutExpired:
        return True
    finally:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def difference(mutant: Mutant) -> str:
    before = (REPO / mutant.path).read_text(encoding="utf-8").splitlines()
    after = (mutated(mutant) or "").splitlines()
    nth, old, new = next((n, a, b) for n, (a, b) in enumerate(zip(before, after, strict=False), 1) if a != b)
    return f"{mutant.path}:{nth}\n    - {old.strip()}\n    + {new.strip()}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", nargs="*", help="only modules whose path contains it")
    parser.add_argument("-n", type=int, default=100, help="how many mutants (default: 100)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=20, help="of tests for each mutant (default: 20)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--recorded", action="store_true", help="use the records as they are")
    given = parser.parse_args()
    found = [str(path.relative_to(REPO)) for folder in MUTATED for path in sorted((REPO / folder).rglob("*.py"))]
    paths = [p for p in found if not given.part or any(part in p for part in given.part)]
    print(f"{len(paths)} modules are mutated; what is compiled is left out")
    BUILD.mkdir(parents=True, exist_ok=True)
    if not given.recorded:
        collect(given.jobs)
    executed = Executed(paths)
    mutants = sample(paths, given.n, given.seed)
    sites: SimpleQueue[Path] = SimpleQueue()
    for nth in range(given.jobs):
        sites.put(site(nth))
    chosen = {mutant: executed.tests(mutant, given.seconds) for mutant in mutants}
    needed = sorted({test for tests in chosen.values() for test in tests})
    if needed and fails(site(given.jobs), needed, sum(executed.seconds[test] for test in needed)):
        sys.exit(f"tests fail where nothing is changed: pytest with PYTHONPATH={BUILD}/site-{given.jobs} shows which")

    def survives(numbered: tuple[int, Mutant]) -> tuple[Mutant, int, bool]:
        nth, mutant = numbered
        tests = chosen[mutant]
        if not tests:
            return mutant, 0, True
        folder = sites.get()
        try:
            seconds = sum(executed.seconds[test] for test in tests)
            return mutant, len(tests), not notices(folder, mutant, tests, seconds, nth)
        finally:
            sites.put(folder)

    survivors = 0
    with ThreadPoolExecutor(given.jobs) as pool:
        for mutant, n_tests, survived in pool.map(survives, enumerate(mutants)):
            if survived:
                survivors += 1
                print(f"survived {n_tests} tests: {difference(mutant)}", flush=True)
    killed = len(mutants) - survivors
    print(f"{killed} of {len(mutants)} mutants were noticed: {100 * killed / max(len(mutants), 1):.0f} %")


if __name__ == "__main__":
    main()
