"""What all tests share: the recordings in ../shared, the large ones among them, and the viewers' own programs."""

import gc
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from support import load_checked

from traceferry.model import Trace

REPO = Path(__file__).parents[1]
SHARED = Path(os.environ.get("TRACEFERRY_SHARED", REPO.parent / "shared"))
# The folders at the root, by the package that they are installed as.
PACKAGES = {"traceferry": "converter", "traceferry.importers": "importers", "traceferry.exporters": "exporters"}
NO_SHARED = f"no shared recordings in {SHARED.name}/ (set TRACEFERRY_SHARED to their folder)"
NEITHER = "not in {}, and " + NO_SHARED
LARGE = "the recordings marked large take minutes: -m large or TRACEFERRY_LARGE=1 runs them"


def module_of(path: Path) -> str:
    """converter/timeline/balance.py → traceferry.timeline.balance"""
    folder, *rest = path.relative_to(REPO).with_suffix("").parts
    package = next(name for name, where in PACKAGES.items() if where == folder)
    return ".".join([package, *rest]).removesuffix(".__init__")


def path_of(module: str) -> Path:
    """traceferry.timeline.balance → converter/timeline/balance.py"""
    package = max((name for name in PACKAGES if f"{module}.".startswith(f"{name}.")), key=len)
    parts = module.removeprefix(package).strip(".").split(".")
    return REPO.joinpath(PACKAGES[package], *parts).with_suffix(".py")


# ---------------------------------------------------------------- Hypothesis

# "ci" tries the same examples on every run, so that results are reproducible: few, as the suite is run often. "nightly"
# tries new ones, so that 50 seeds try some 30 times as many.
settings.register_profile("ci", derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck))
PROFILE = os.environ.get("TRACEFERRY_HYPOTHESIS", "ci")
FACTOR = float(os.environ.get("TRACEFERRY_EXAMPLES", "0.2" if PROFILE == "nightly" else "0.3"))
for _name, _is_random in (("ci", False), ("nightly", True)):
    settings.register_profile(
        _name, settings.get_profile("ci"), derandomize=not _is_random, max_examples=max(1, round(100 * FACTOR))
    )
settings.load_profile(PROFILE)


def examples(n: int) -> settings:
    """How many examples a property is tried with: FACTOR times as many."""
    return settings(max_examples=max(1, round(n * FACTOR)))


# ---------------------------------------------------------------- cuts


def cuts(size: int, each: int, first: int = 0) -> list[int]:
    """Lengths from `first` on at which the tests cut a file of `size` bytes, the last is `size`: one in 3 * `each`;
    every one in `make large`."""
    step = 1 if os.environ.get("TRACEFERRY_CUTS") == "all" else 3 * each
    return [*range(first, size, step), size]


def far_cuts(size: int, first: int) -> list[int]:
    """Lengths of a longer file, evenly from `first` on, the last is `size`: 20; 60 in `make large`."""
    n = 60 if os.environ.get("TRACEFERRY_CUTS") == "all" else 20
    return [*range(first, size, max(size // n, 1)), size]


def ends_and_one_in(n: int, names: Sequence[str], first: int) -> list[str]:
    """The first and the last of the names, and one in n of all, from `first` on; all in `make large`."""
    if os.environ.get("TRACEFERRY_CUTS") == "all":
        return [*names]
    return [name for nth, name in enumerate(names) if nth in (0, len(names) - 1) or (nth - first) % n == 0]


# ---------------------------------------------------------------- shared recordings


def shared(name: str) -> Path:
    """A file or folder of the shared recordings; skips the test where there is none."""
    path = SHARED / name
    if not path.exists():
        pytest.skip(f"{name}: {NO_SHARED}")
    return path


def or_skipped(cases: Iterable[Any], reason: str = NO_SHARED) -> list[Any]:
    """The cases of a test, which is skipped with a reason where there are none: their recordings are not there."""
    return [*cases] or [pytest.param(None, marks=pytest.mark.skip(reason=reason), id="none")]


# ---------------------------------------------------------------- the marker `large`


def one_in(n: int, cases: Iterable[Any], first: int = 0) -> list[Any]:
    """Cases of which one in n, from `first` on, runs each time, the others with those marked large. Those that are
    marked large themselves, or skipped, do not count."""
    numbers, found = count(-first), []
    for case in map(as_param, cases):
        is_marked = any(mark.name in ("large", "skip") for mark in case.marks)
        found.append(case if is_marked or next(numbers) % n == 0 else marked_large(case))
    return found


def in_turn(cases: Iterable[Any], others: Sequence[Any]) -> list[Any]:
    """Every case with every one of the others, for two arguments: each time a case with one of them, the next case with
    the next; the other pairs with those marked large."""
    n = len(others)
    rows = [
        one_in(n, [pytest.param(*case.values, other, marks=case.marks) for other in others], nth % n)
        for nth, case in enumerate(map(as_param, cases))
    ]
    return [pair for row in rows for pair in row]


def as_param(case: Any) -> Any:
    return case if isinstance(case, type(pytest.param())) else pytest.param(case)


def marked_large(case: Any) -> Any:
    return pytest.param(*case.values, marks=(*case.marks, pytest.mark.large), id=case.id)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "large: needs a minute or a gigabyte; " + LARGE)
    # Tests keep what they compare. Each look for garbage goes through it, which was a tenth of the time of some.
    gc.set_threshold(20_000, 10, 10)
    # A shell's background command ignores Ctrl-C, and so would every command that the tests start.
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _with_large(config: pytest.Config) -> bool:
    return "large" in config.option.markexpr or os.environ.get("TRACEFERRY_LARGE", "0") not in ("", "0")


# Their fixtures take long. Workers of pytest-xdist take tests from the end of each other's lists, and would make such
# fixtures again: what comes first stays together.
FIRST = ("test_fleet_cluster.py", "test_fleet_names.py", "test_fleet.py", "test_site.py")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.path.name not in FIRST)
    if _with_large(config):
        return
    large = [item for item in items if item.get_closest_marker("large")]
    if large:
        config.hook.pytest_deselected(items=large)
        items[:] = [item for item in items if item not in large]


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()


def skipped(reports: Iterable[pytest.TestReport | pytest.CollectReport]) -> Counter[str]:
    """Reason → how many tests were skipped for it. Recordings that are not there are one reason, whatever their names;
    a module that is skipped as a whole counts once, and is named."""
    reasons: Counter[str] = Counter()
    for report in reports:
        assert isinstance(report.longrepr, tuple)
        reason = NO_SHARED if NO_SHARED in report.longrepr[2] else report.longrepr[2].removeprefix("Skipped: ")
        reasons[reason if "::" in report.nodeid else f"all of {report.nodeid}: {reason}"] += 1
    return reasons


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    for reason, n in skipped(terminalreporter.stats.get("skipped", ())).most_common():
        terminalreporter.write_line(f"skipped {n}: {reason}")
    if not _with_large(config):
        terminalreporter.write_line(f"left out: {LARGE}")


# ---------------------------------------------------------------- fixtures


@pytest.fixture(scope="module", autouse=True)
def _settled() -> Iterator[None]:
    """What a module leaves, recordings that it keeps among it, is not looked at for garbage again: in a process with
    thousands of tests that would be most of the work of some."""
    yield
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def _frozen_by_nobody_else() -> Iterator[None]:
    """A command that is called here would thaw, when it ends, what a process of its own does not have: all of the
    above, which `compare` looks through for garbage once for each recording."""
    kept = {name: getattr(gc, name) for name in ("isenabled", "enable", "disable")}
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("traceferry.apps.cli.gc", SimpleNamespace(freeze=int, unfreeze=int, **kept))
        yield


@pytest.fixture(scope="session", autouse=True)
def _no_debug_files_of_this_machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What a test finds does not depend on the packages with debug files that are installed here."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("traceferry.symbolication.debug_files.SYSTEM", str(tmp_path_factory.mktemp("system")))
        yield


@pytest.fixture
def load(tmp_path: Path) -> Callable[..., Trace]:
    """Loads logs that are given as bytes, or as anything with a method `bytes` that makes them. Checks the laws."""

    numbers = count()

    def load_logs(*logs: Any, name: str = "app.xray", **options: Any) -> Trace:
        paths = []
        for log in logs:
            folder = tmp_path / f"log-{next(numbers)}"
            folder.mkdir()
            paths.append(folder / name)
            paths[-1].write_bytes(log if isinstance(log, bytes) else log.bytes())
        return load_checked(paths, **options)

    return load_logs


# The client looks this often whether its trace_processor has started; its own pauses are of a second each.
STARTED_SECONDS = 0.02
START_SECONDS = 60


@pytest.fixture(scope="session")
def trace_processor() -> Iterator[Callable[[Path], Any]]:
    """Opens a trace in trace_processor; skips where it cannot be started."""
    missing = "the package perfetto is not installed (pip install perfetto)"
    perfetto = pytest.importorskip("perfetto.trace_processor", reason=missing)
    binary = os.environ.get("PERFETTO_TP_BIN")
    failed: list[str] = []

    def open_trace(path: Path) -> Any:
        if failed:
            pytest.skip(failed[0])
        looks = round(START_SECONDS / STARTED_SECONDS)
        config = perfetto.TraceProcessorConfig(bin_path=binary, unique_port=True, load_timeout=looks)
        if binary:
            return perfetto.TraceProcessor(trace=str(path), config=config)
        try:
            return perfetto.TraceProcessor(trace=str(path), config=config)
        except Exception as error:  # whatever a download without a network raises
            failed.append(f"trace_processor cannot be downloaded ({type(error).__name__}); set PERFETTO_TP_BIN")
            pytest.skip(failed[0])

    with pytest.MonkeyPatch.context() as patched:
        pauses = SimpleNamespace(sleep=lambda _: time.sleep(STARTED_SECONDS))
        patched.setattr("perfetto.trace_processor.shell.time", pauses)
        yield open_trace
