"""What changed between recordings: planted changes are found by name, chance is not, and gates mean what they say."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders import mono
from builders.jitdump import JitDump
from builders.mono import Log
from conftest import REPO, examples, in_turn
from hypothesis import given
from hypothesis import strategies as st
from streams import fdr

import traceferry
from traceferry.analysis.compare import figures, power, statistics
from traceferry.analysis.compare.alignment import Function
from traceferry.analysis.compare.as_json import as_json
from traceferry.analysis.compare.comparison import Comparison, Options, Row, compare
from traceferry.analysis.compare.factors import METHODS, Factors, Method, factors_of
from traceferry.analysis.compare.gate import evaluate, parse
from traceferry.analysis.compare.headline import verdict_of
from traceferry.analysis.compare.level import Level, at_level, level_of
from traceferry.analysis.compare.markdown import as_markdown
from traceferry.analysis.compare.matching import Renames, matched
from traceferry.analysis.compare.runs import Run
from traceferry.analysis.compare.text import as_text
from traceferry.analysis.compare.trees import diff_tree
from traceferry.analysis.totals.portable import Totals, Tree
from traceferry.apps import cli
from traceferry.common.errors import UsageError
from traceferry.common.markdown import code
from traceferry.model import Array

JAVA = REPO / "fixtures" / "jit" / "java17" / "perf.data.zst"


@pytest.fixture
def run_of(tmp_path: Path) -> Callable[..., Run]:
    """The run of a built recording."""
    made = iter(range(1000))

    def run(recording: Any, name: str = "app") -> Run:
        path = tmp_path / f"{next(made)}" / name
        path.parent.mkdir()
        path.write_bytes(recording.bytes())
        return Run.of(str(path), traceferry.load(path), with_trees=False)

    return run


def run_with(own: Mapping[str, int], with_callees: Mapping[str, int] | None = None, sample_ns: float = 1e6) -> Run:
    """A run of so many samples of each function."""
    seen = own if with_callees is None else with_callees
    amounts = [[0, 0, 0, own.get(name, 0), n] for name, n in seen.items()]
    functions = Totals().functions.of([(name, "", 0, "") for name in seen], np.array(amounts))
    return Run("sampled", replace(Totals(), functions=functions), Tree(), sum(own.values()) * 10**6, None, sample_ns, 0)


def rows(comparison: Comparison, metric: str) -> dict[str, Row]:
    return {row.name: row for table in comparison.tables_named(metric) for row in table.rows}


def changed(comparison: Comparison) -> set[tuple[str, str, str]]:
    """(metric, name, verdict) of everything that changed."""
    return {(table.name, row.name, row.verdict) for table in comparison.tables for row in table.changed}


# ---------------------------------------------------------------- planted changes


def calls(rng: np.random.Generator, b_factor: float = 1.0) -> Any:
    """A run of eight functions: ten rounds, in each of which every function takes some time, B 300 us."""
    speed = 1 + 0.01 * rng.standard_normal()
    words = []
    for _ in range(10):
        for letter in "ABCDEFGH":
            us = 300 * b_factor if letter == "B" else 100
            ns = round(1000 * us * speed * (1 + 0.002 * rng.standard_normal()))
            words.append(f"{letter} {ns} {letter.lower()}")
    return fdr(" ".join(words))


def test_a_regression_of_2_percent_is_ranked_first_and_its_interval_holds_it(run_of: Callable[..., Run]) -> None:
    rng = np.random.default_rng(7)
    first = holds = 0
    for _ in range(6):
        base = [run_of(calls(rng), "app.xray") for _ in range(5)]
        found = compare(base, [run_of(calls(rng, 1.02), "app.xray") for _ in range(5)])
        row = found.tables_named("self")[0].rows[0]
        first += (row.name, row.verdict) == ("function 2", "slower")
        holds += row.low is not None and row.high is not None and row.low < 0.02 < row.high
        assert {verdict for verdict in changed(found) if verdict[0] == "calls"} == set()
    assert first == 6
    assert holds >= 5


def test_the_same_program_has_not_changed(run_of: Callable[..., Run]) -> None:
    rng = np.random.default_rng(8)
    for _ in range(4):
        runs = [run_of(calls(rng), "app.xray") for _ in range(10)]
        found = compare(runs[:5], runs[5:])
        assert changed(found) == set()
        assert {row.verdict for row in rows(found, "self").values()} == {"same"}


def test_a_change_of_everything_is_one_of_the_whole(run_of: Callable[..., Run]) -> None:
    """All functions take 10 % longer: no function did more than the others."""
    rng = np.random.default_rng(9)
    runs = [[run_of(fdr(" ".join(f"{w} {round(n * k * (1 + 0.002 * rng.standard_normal()))} {w.lower()}"
             for w in "ABCDEFGH" for n in (100_000,))), "app.xray") for _ in range(5)] for k in (1.0, 1.1)]  # fmt: skip
    found = compare(*runs)
    assert changed(found) == set()
    assert rows(found, "time")["time of calls"].verdict == "slower"
    as_recorded = compare(*runs, Options(method="none"))
    assert {row.verdict for row in rows(as_recorded, "self").values()} == {"slower"}


def test_samples_in_which_nothing_was_done_are_left_out(tmp_path: Path) -> None:
    """Of a server that waits more than it works, and parses for longer."""
    runs: list[list[Run]] = [[], []]
    for nth, (side, n_parse) in enumerate([(0, 100), (0, 102), (0, 98), (1, 150), (1, 152), (1, 148)]):
        path = tmp_path / f"{nth}.folded"
        path.write_text(f"main;(idle) {45_000 - 20_000 * side}\nmain;parse {50 * n_parse}\nmain;render 15000\n")
        runs[side].append(Run.of(str(path), traceferry.load(path), with_trees=True))
    found = compare(*runs, Options(method="none"))
    assert {name: row.verdict for name, row in rows(found, "self").items()} == {"parse": "slower", "render": "same"}
    assert [round(100 * run.idle, 1) for run in (*runs[0][:1], *runs[1][:1])] == [69.2, 52.6]
    assert found.notes == (
        "samples in which nothing was done are left out: 69.2 % of the base's and 52.6 % of the new side's",
    )


def test_what_samples_of_both_sides_stand_for_is_the_whole(tmp_path: Path) -> None:
    """Collapsed stacks do not say for how long a sample is, and last as long as is made up. Times and numbers were
    compared as one."""
    path = tmp_path / "a.folded"
    path.write_text("main;parse 900\nmain;render 500\n")
    plain = Run.of(str(path), traceferry.load(path), with_trees=False)
    timed = run_with({"parse": 900, "render": 500})
    assert {row.name: row.base for row in compare([plain] * 2, [plain] * 2).whole.rows} == {"samples": 1400}
    for sides in (([plain] * 2, [timed] * 2), ([timed] * 2, [plain] * 2)):
        found = compare(*sides)
        assert found.whole.rows == ()
        note = "samples of some runs say for what they stand, as a time, and those of others do not"
        assert note in found.notes
        with pytest.raises(UsageError, match=f"{note}; neither side has time; they have self, total"):
            evaluate(parse("time > 5%"), found)
        assert verdict_of(found) == "same"


def test_samples_that_are_counted_in_parts_are_compared_with_whole_ones(tmp_path: Path) -> None:
    """A weight of 300.5 makes all weights of a text tenths of a sample: those of the other side were a tenth of it."""
    runs = []
    for nth, amount in enumerate(("300", "300.5", "300.25")):
        path = tmp_path / f"{nth}.folded"
        path.write_text(f"main;f {amount}\nmain;g 100\n")
        runs.append(Run.of(str(path), traceferry.load(path), with_trees=True))
    found = compare(runs[:1], runs[1:2])
    assert found.notes == ()
    assert [(row.name, row.base, row.new) for row in found.whole.rows] == [("samples", 400, 400.5)]
    for metric in ("self", "total"):
        of = rows(found, metric)
        assert [(of[name].base, of[name].new, of[name].amounts) for name in "fg"] == [
            (300, 300.5, (300, 300.5)), (100, 100, (100, 100)),
        ]  # fmt: skip
    (measured,) = diff_tree(compare(runs[:1], runs[1:])).measured
    assert (measured.base.tolist(), measured.new.tolist()) == ([300, 100], [300.375, 100])


def test_rows_of_a_whole_have_their_own_units() -> None:
    found = compare([run_with({"f": 1500}, sample_ns=0)], [run_with({"f": 3000}, sample_ns=0)])
    assert {row.name: figures.base_and_new(row, found.whole, found) for row in found.whole.rows} == {
        "samples": ("1500", "3000"), "duration of the recording": ("1.5s", "3s"),
    }  # fmt: skip
    assert [(row["name"], row.get("unit")) for row in as_json(found)["whole"]["rows"]] == [
        ("duration of the recording", None), ("samples", "samples"),
    ]  # fmt: skip
    with pytest.raises(UsageError, match="counts samples, not bytes"):
        evaluate(parse("time('samples') > 5MB"), found)


def test_samples_that_were_lost_are_told_of() -> None:
    def lossy(**counts: int) -> Run:
        losses = Totals().losses.of([(kind,) for kind in counts], np.array([[n] for n in counts.values()]))
        run = run_with({"f": 900})
        return replace(run, totals=replace(run.totals, losses=losses))

    base, new = [lossy()] * 3, [lossy(lost_samples=100, entry_lost=7)] * 2
    assert compare(base, [*new, *base]).notes == (
        "samples were lost in 2 of 5 runs of the new side, up to 10 % of theirs: the amounts are without them",
    )
    assert (
        compare(new[:1], new)
        .notes[0]
        .startswith(
            "samples were lost in 1 of 1 runs of the base, 10 % of theirs, and in 2 of 2 runs of the new side, up"
        )
    )
    assert compare(base, [lossy(truncated=1), lossy(throttled=3), lossy()]).notes == (
        "recordings are incomplete: 2 of 3 runs of the new side (throttled, truncated); `info` tells more of each",
    )


def test_what_one_side_has_no_names_of_is_neither_new_nor_gone() -> None:
    """f0 to f9 are addresses on the new side, but f5, which both have; `helper` is new."""
    rng = np.random.default_rng(33)

    def side(is_named: bool, more: Mapping[str, int]) -> list[Run]:
        names = [f"f{n}" if is_named or n == 5 else f"app function at 0x{n}f0" for n in range(10)]
        return [run_with({name: int(rng.poisson(900)) for name in names} | more) for _ in range(5)]

    found = compare(side(True, {}), side(False, {}))
    assert changed(found) == set()
    assert figures.verdict(rows(found, "self")["f0"], (5, 5)) == "unknown: the other side may have it without a name"
    assert found.notes == (
        "names are missing for 0 % of the base and 90 % of the new side: what has none matches no function with a "
        "name; --new-symbols FILE gives the program or its symbols",
    )
    outcome = evaluate(parse("self > 5%"), found)
    assert outcome.status == "undecided"
    assert "app function at 0x1f0: unknown: the other side may have it without a name" in outcome.lines
    assert changed(compare(side(True, {}), side(True, {"app function at 0xff0": 500}))) == {
        (table, "app function at 0xff0", "new") for table in ("self", "total")
    }
    assert ("self", "helper", "new") in changed(compare(side(False, {}), side(False, {"helper": 500})))
    assert "--base-symbols FILE" in compare(side(False, {}), side(True, {})).notes[0]


def heap(n_orders: int = 3, pause_ns: int = 1000, n_lines: int = 1) -> Any:
    log = Log(17).buffer(tid=0x7F30)
    log.class_(0x3000, "Order").vtable(0x2000, 0x3000).class_(0x3100, "Line").vtable(0x2100, 0x3100)
    for nth in range(n_orders):
        log.alloc(0x2000, 0x9000 + 64 * nth, 24)
    for nth in range(n_lines):
        log.alloc(0x2100, 0xF000 + 64 * nth, 24)
    for nth in range(4):
        ts = (nth + 1) * 1_000_000_000
        log.gc_event(mono.PRE_STOP_WORLD, ts=ts).gc_event(mono.POST_STOP_WORLD, ts=ts + 10)
        log.gc_event(mono.PRE_START_WORLD, ts=ts + pause_ns).gc_event(mono.POST_START_WORLD, ts=ts + pause_ns + 10)
    return log


def test_an_allocation_is_found_by_its_class(run_of: Callable[..., Run]) -> None:
    found = compare([run_of(heap(3))] * 5, [run_of(heap(4))] * 5)
    assert changed(found) == {("allocated_bytes", "Order", "more"), ("allocated_objects", "Order", "more")}
    order = rows(found, "allocated_bytes")["Order"]
    assert (order.base, order.new, order.is_exact) == (72, 96, True)


def test_what_one_side_allocates_none_of_is_gone(run_of: Callable[..., Run]) -> None:
    """Also where shares of the whole are compared: nothing has no shares."""
    for method in METHODS:
        some, nothing = [run_of(heap(3))] * 5, [run_of(heap(0, n_lines=0))] * 5
        found = compare(some, nothing, Options(method=method))
        order = rows(found, "allocated_bytes")["Order"]
        assert (order.base, order.new, order.verdict, order.change) == (72, 0, "gone", -1)
        back = compare(nothing, some, Options(method=method))
        assert {row.verdict for row in rows(back, "allocated_bytes").values()} == {"new"}


def test_twice_as_many_of_all_classes_are_the_same_shares(run_of: Callable[..., Run]) -> None:
    found = compare([run_of(heap(3))] * 5, [run_of(heap(6, n_lines=2))] * 5, Options(method="whole"))
    assert changed(found) == set()
    assert len(changed(compare(found.sides.base, found.sides.new))) == 4


def test_times_without_noise_have_tests_and_a_new_function_has_one_by_its_calls(run_of: Callable[..., Run]) -> None:
    sides = [[run_of(fdr(stream))] * 5 for stream in ("A 100 a B 300 b", "A 100 a B 360 b C 50 c")]
    found = rows(compare(*sides, Options(method="none")), "self")
    assert {row.name: (row.verdict, row.p is None, row.is_exact) for row in found.values()} == {
        "function 1": ("same", False, False), "function 2": ("slower", False, False),
        "function 3": ("new", False, False),
    }  # fmt: skip


def test_a_time_that_is_anything_needs_more_runs_than_are_counted(run_of: Callable[..., Run]) -> None:
    side = [run_of(fdr(f"A {ns} a")) for ns in (1, 4_000_000_000)]
    row = rows(compare(side, side, Options(method="none")), "self")["function 1"]
    assert (row.verdict, row.runs) == ("unknown", 1_000_000)


def test_a_share_is_of_the_side_with_more_of_it(run_of: Callable[..., Run]) -> None:
    """A has 120 ns of 430, and of 1030; B 310 and 910. Total times are parts of the same wholes, calls of none."""
    found = compare([run_of(fdr("A 100 B 300 b a"))], [run_of(fdr("A 100 B 900 b a"))], Options(method="none"))
    shares = {table.name: {row.name: found.share_of(table, row) for row in table.rows} for table in found.tables}
    assert shares == {
        "self": {"function 1": 120 / 430, "function 2": 910 / 1030},
        "total": {"function 1": 1, "function 2": 910 / 1030},
        "calls": {"function 1": None, "function 2": None},
    }


def test_a_function_that_only_allocates_matches_under_its_new_name(run_of: Callable[..., Run]) -> None:
    def run(name: str, size: int) -> Run:
        log = Log(17).buffer(tid=0x7F30).class_(0x3000, "Order").vtable(0x2000, 0x3000)
        return run_of(log.jit(0x900, name).alloc(0x2000, 0x9000, size, [0x900]))

    renames = Renames(["Shop.Old:*=Shop.New:*"])
    found = compare([run("Shop.Old:Fill ()", 24)], [run("Shop.New:Fill ()", 32)], Options(renames=renames))
    assert {name: (row.base, row.new) for name, row in rows(found, "site_bytes").items()} == {
        "Shop.New:Fill ()": (24, 32)
    }


def test_recordings_of_one_moment_are_compared(run_of: Callable[..., Run]) -> None:
    """They have no times, and so no whole."""
    found = compare(*([run_of(JitDump.v8().load("JS:*f a.js:1:1", 0x1000, n), "jit-1.dump")] for n in (64, 96)))
    assert found.whole.rows == ()
    assert rows(found, "code_size")["f"].differs
    assert "code size by function" in as_text(found, 20)


def test_a_longer_pause_is_found_by_its_kind(run_of: Callable[..., Run]) -> None:
    rng = np.random.default_rng(3)

    def side(ns: int) -> list[Run]:
        return [run_of(heap(pause_ns=round(ns * (1 + 0.01 * rng.standard_normal())))) for _ in range(5)]

    found = compare(side(20_000_000), side(30_000_000))
    assert ("event.p99", "GC pause", "slower") in changed(found)
    assert {name.partition(":")[0] for _, name, _ in changed(found)} == {"GC pause"}
    assert evaluate(parse("gc_pause.p99 > 5ms"), found).status == "failed"
    assert evaluate(parse("gc_pause.p99 > 15ms"), found).status == "passed"


def jitted(*names: tuple[str, int]) -> Any:
    dump = JitDump.v8()
    for nth, (name, size) in enumerate(names):
        dump.load(name, 0x1000 + 0x1000 * nth, size, ts=20 + nth)
    return dump


def test_code_is_found_by_function_and_tier(run_of: Callable[..., Run]) -> None:
    base = jitted(("JS:~f a.js:1:1", 64), ("JS:*f a.js:1:1", 128), ("JS:*g a.js:9:1", 128))
    new = jitted(("JS:~f a.js:1:1", 64), ("JS:*f a.js:1:1", 128), ("JS:~f a.js:1:1", 64), ("JS:*g a.js:9:1", 256))
    sides = [run_of(base, "jit-1.dump")], [run_of(new, "jit-1.dump")]
    found = compare(*sides)
    assert [(t.function[0], t.base, t.new) for t in found.tiers] == [("f", ("Turbofan",), ("Interpreter",))]
    title = "functions that ended in another tier"
    assert f"{title}, as they may by chance:\n  Turbofan → Interpreter  f" in as_text(found, 20)
    found = compare(*(5 * side for side in sides))
    assert f"{title}:\n  Turbofan → Interpreter  f" in as_text(found, 20)
    sizes = rows(found, "code_size")
    assert {name: (row.base, row.new, row.verdict) for name, row in sizes.items()} == {
        "f": (192, 256, "more"), "g": (128, 256, "more"),
    }  # fmt: skip


def test_a_method_of_dotnet_that_stays_in_a_lower_tier_is_no_new_function(run_of: Callable[..., Run]) -> None:
    work = "instance int32 [App] App.Program::Work(int32)"
    base = jitted((f"{work}[QuickJitted]", 64), (f"{work}[OptimizedTier1]", 32))
    new = jitted((f"{work}[QuickJitted]", 64), (f"{work}[OptimizedTier1OSR]", 32))
    found = compare([run_of(base, "jit-1.dump")], [run_of(new, "jit-1.dump")])
    assert [(t.function[0], t.base, t.new) for t in found.tiers] == [
        ("App.Program.Work(int32)", ("OptimizedTier1",), ("OptimizedTier1 (OSR)",))
    ]
    assert set(rows(found, "code_size")) == {"App.Program.Work(int32)"}


# ---------------------------------------------------------------- chance


def now_and_then(rng: np.random.Generator, kind: str) -> Run:
    """Of 120 functions, a third is called now and then; or half have few samples, and some are in every second run."""
    nth = np.arange(120)
    if kind == "calls":
        count = np.where(nth % 3, 5 + nth**2, rng.poisson(np.array([0.1, 0.5, 1, 2, 4])[nth // 3 % 5]))
        amounts = np.stack(
            [count, *[np.rint(count * 700 * np.exp(0.02 * rng.standard_normal(120)))] * 2, 0 * nth, 0 * nth]
        )
    else:
        count = rng.poisson(np.exp(0.06 * nth) * np.where(nth % 12, 1, 2 * (rng.random(120) < 0.5)))
        amounts = np.stack([0 * nth, 0 * nth, 0 * nth, count, count])
    seen = np.flatnonzero(count)
    functions = Totals().functions.of([(f"f{n}", "", 0, "") for n in seen], amounts.T[seen].astype(np.int64))
    return Run("run", replace(Totals(), functions=functions), Tree(), int(count.sum()), None, 0.0, 0)


@pytest.mark.parametrize(("sides", "kind"), in_turn([(1, 1), (1, 5), (2, 2), (3, 3), (5, 5)], ["calls", "samples"]))
def test_rare_functions_are_not_named_where_nothing_changed(kind: str, sides: tuple[int, int]) -> None:
    """At 2 + 2 and 3 + 3 runs nine of ten comparisons named one as new, gone, or taking another time."""
    rng = np.random.default_rng(23)
    found = [compare(*([now_and_then(rng, kind) for _ in range(n)] for n in sides)) for _ in range(8)]
    assert sum(bool(changed(each)) for each in found) == 0


def test_what_is_new_and_gone_is_named_where_runs_prove_it(run_of: Callable[..., Run]) -> None:
    """Of samples: 400 in each of five runs. With three runs, chance could make it, and the verdict says how many do."""
    rng = np.random.default_rng(29)

    def side(n: int, left_out: int) -> list[Run]:
        return [run_with({f"f{i}": int(rng.poisson(400)) for i in range(30) if i != left_out}) for _ in range(n)]

    found = rows(compare(side(5, 7), side(5, 8)), "self")
    assert {name: row.verdict for name, row in found.items() if row.is_changed} == {"f7": "new", "f8": "gone"}
    few = compare(side(3, 7), side(3, 8))
    assert changed(few) == set()
    assert {figures.verdict(rows(few, "self")[name], (3, 3)) for name in ("f7", "f8")} == {
        "unknown: 5 runs each would do"
    }  # fmt: skip


def test_one_run_on_a_side_decides_nothing(run_of: Callable[..., Run]) -> None:
    """However many the other has: it may be the odd one."""
    rng = np.random.default_rng(31)
    base, new = run_of(calls(rng), "a.xray"), [run_of(calls(rng, 3.0), "a.xray") for _ in range(5)]
    for other in (new[:1], new):
        found = compare([base], other)
        assert changed(found) == set()
        assert {row.verdict for row in found.whole.rows} == {"unknown"}
    text = as_text(compare([run_of(heap(3))], [run_of(heap(4))] * 5), 20)
    assert re.search(r"exact .* differs: \d runs each would do  Order", text)


def test_exact_counts_are_tested_as_counts(run_of: Callable[..., Run]) -> None:
    """None becomes one by chance, 500 do not become 510; but where other counts vary within a side, they may."""

    def side(n: int, a: int, b: int, vary: int) -> list[Run]:
        more = [rng.integers(10, 12, 10) if vary else np.full(10, 10) for _ in range(n)]
        return [run_with_calls([a, b, *some.tolist()]) for some in more]

    rng = np.random.default_rng(37)
    for vary, verdicts in {0: ("unknown", "more"), 1: ("unknown", "unknown")}.items():
        found = rows(compare(side(3, 0, 500, vary), side(3, 1, 510, vary)), "calls")
        assert (found["f0"].verdict, found["f1"].verdict) == verdicts


def run_with_calls(counts: Sequence[int]) -> Run:
    amounts = [[n, 100 * n, 100 * n, 0, 0] for n in counts]
    functions = Totals().functions.of([(f"f{i}", "", 0, "") for i in range(len(counts))], np.array(amounts))
    return Run("calls", replace(Totals(), functions=functions), Tree(), 100 * sum(counts), None, 0.0, 0)


@pytest.mark.parametrize("d", [1, 2, 4, 8])
def test_the_prior_of_variances_is_found_with_few_runs(d: int) -> None:
    """Of 300 functions, with 4 degrees of freedom, or all alike; of eleven too little is known to trust it much."""
    rng = np.random.default_rng(41)
    found = {}
    for title, prior, n in (("4", 4.0, 300), ("alike", np.inf, 300), ("few", 4.0, 11)):
        own = 1.0 if prior == np.inf else prior / rng.chisquare(prior, n)
        found[title] = statistics._prior(own * rng.chisquare(d, n) / d, d)
    assert 2 < found["4"][0] < 6
    assert found["4"][1] == pytest.approx(1, rel=0.35)
    assert found["alike"][0] > max(found["4"][0], found["few"][0], 6)


def test_as_many_runs_as_are_asked_for_find_the_change() -> None:
    """In 85 % of comparisons or more, with 200 other functions. By alpha alone, without all the tests, it was 40 %."""
    rng = np.random.default_rng(43)
    hits = []
    for _ in range(20):
        spread = 0.03 * 2 ** rng.uniform(-1, 1, (200, 1))

        def drawn(n: int, change: Array, spread: Array = spread) -> tuple[statistics.Effects, Array]:
            logs = 10 + spread * rng.standard_normal((200, 2 * n))
            logs[:, n:] += change[:, None]
            effects = statistics.of_amounts(np.exp(logs), n, Factors(np.ones(2 * n), "none"))
            return effects, statistics.adjusted(effects.p)

        effects, _ = drawn(3, np.zeros(200))
        wanted = np.fmax(np.abs(effects.change), np.log(1.05))
        family = power.Family(effects.p, 0.01)
        needed = power.runs_needed(wanted, effects.variance, effects.freedom, 4, family.threshold)
        for row in rng.choice(np.flatnonzero(needed < 60), 5).tolist():
            change = np.zeros(200)
            change[row] = wanted[row]
            hits.append(drawn(int(needed[row]), change)[1][row] <= 0.01)
    assert np.mean(hits) >= 0.85
    nothing = power.runs_needed(np.array([np.nan]), np.ones(1), np.ones(1), 1, 0.01)
    assert np.isnan(nothing).all()


def test_one_run_each_is_judged_by_the_poisson_model() -> None:
    """A function of 400 samples, and of 500: 100 are 3.3 times the square root of 900."""
    from scipy.stats import binomtest  # takes longer than most tests: not with each run of any test

    amounts = np.array([[400, 500], [100, 103], [0, 30]], np.float64)
    found = statistics.of_counts(amounts, 1, Factors(np.ones(2), "none"))
    exact = [binomtest(base, base + new).pvalue for base, new in ((400, 500), (100, 103), (0, 30))]
    assert found.p[:2] == pytest.approx(exact[:2], rel=0.02)
    assert found.p[2] == pytest.approx(exact[2], rel=1)
    assert np.exp([found.low[0], found.high[0]]) == pytest.approx([1.25 * 0.8768, 1.25 / 0.8768], rel=0.01)


def test_a_run_without_samples_is_far_from_the_mean_of_its_side() -> None:
    """20 and none: deviance 2 * 20 * ln 2 with two degrees of freedom, whose median is 2 * ln 2: 20 times Poisson's."""
    found = statistics.of_counts(np.array([[20.0, 0, 20, 20]]), 2, Factors(np.ones(4), "none"))
    assert found.variance == pytest.approx([20 * (1 / 20 + 1 / 40)])


def at_the_level(amounts: Array, n_base: int) -> tuple[Level, statistics.Effects]:
    """The level of samples of functions, and their effects at it."""
    factors = factors_of(amounts, n_base, "typical", is_sampled=True)
    effects = statistics.of_counts(amounts, n_base, factors)
    keys = [(str(nth),) for nth in range(len(amounts))]
    level = level_of(effects, keys, np.ones(len(amounts), bool))
    return level, at_level(effects, level, keys)


def test_a_longer_run_is_brought_to_the_level_of_the_base() -> None:
    """Three times as long, and one function of forty twice as slow: only that one differs."""
    usual = np.arange(100, 140, dtype=np.float64)
    new = 3 * usual
    new[7] *= 2
    amounts = np.stack([usual, new], axis=1)
    level, effects = at_the_level(amounts, 1)
    middle, low, high = level.ratio
    assert middle == pytest.approx(3, rel=0.01)
    assert 2.8 < low < middle < high < 3.2
    assert np.flatnonzero(statistics.adjusted(effects.p) < 0.01).tolist() == [7]
    assert effects.new == pytest.approx(new / 3, rel=0.01)
    assert factors_of(amounts, 1, "whole", is_sampled=True).of_run[1] > 3.05


def test_five_runs_of_noise_name_nothing_and_many_functions_do_not_hide_a_change() -> None:
    """Of 400 functions one is a tenth slower; without it, in 40 trials at most one names any."""
    rng = np.random.default_rng(5)
    share = np.sort(rng.lognormal(0, 2, 400))[::-1]
    wrong = found = 0
    for nth in range(40):
        mean = np.outer(100_000 * share / share.sum(), np.exp(rng.normal(0, 0.03, 10)))
        mean *= np.exp(rng.normal(0, 0.005, mean.shape))
        mean[4, 5:] *= 1.1 if nth % 2 else 1
        _, effects = at_the_level(rng.poisson(mean).astype(np.float64), 5)
        significant = np.flatnonzero(statistics.adjusted(effects.p) <= 0.01).tolist()
        found += nth % 2 == 1 and 4 in significant
        wrong += bool(set(significant) - ({4} if nth % 2 else set()))
    assert found >= 19
    assert wrong <= 1


# ---------------------------------------------------------------- a slower machine, or a slower function


def sampled(counts: Array, in_kernel: Sequence[int] = ()) -> list[Run]:
    """Runs with these samples [functions, runs] of functions called f0, f1...; each stands for a millisecond."""

    def function(nth: int) -> Function:
        return (f"f{nth}", "", 0, "function")

    runs = []
    for column in counts.T.tolist():
        seen = [(function(nth), [0, 0, 0, n, n]) for nth, n in enumerate(column) if n]
        totals = replace(Totals(), functions=Totals().functions.of_pairs(seen))
        kernel = frozenset(map(function, in_kernel))
        runs.append(Run("a", totals, Tree(), int(sum(column)) * 10**6, None, 1e6, 0, kernel))
    return runs


def drawn(share: Sequence[float], n_samples: float, rng: np.random.Generator, n_runs: int = 5) -> Array:
    speed = np.exp(0.01 * rng.standard_normal(n_runs))
    return rng.poisson(np.outer(np.array(share) * n_samples, speed))


def dominated(share: float, n_others: int = 12) -> list[float]:
    return [share, *[(1 - share) / n_others] * n_others]


def changed_first(share: Sequence[float], factor: float) -> list[float]:
    return [share[0] * factor, *share[1:]]


@pytest.mark.parametrize(
    ("share", "factor", "n_samples"), [(0.995, 1.5, 100_000), (0.9, 1.3, 20_000), (0.6, 1.2, 20_000), (0.9, 0.6, 5000)]
)
@pytest.mark.parametrize("machine", [0.8, 1.25])
def test_a_change_of_the_hottest_function_is_found(share: float, factor: float, n_samples: int, machine: float) -> None:
    """However much of the whole it has, and whatever the machine does, the others outvote it."""
    rng = np.random.default_rng(21)
    of_base = dominated(share)
    for _ in range(3):
        new = drawn(changed_first(of_base, factor), n_samples * machine, rng)
        found = compare(sampled(drawn(of_base, n_samples, rng)), sampled(new))
        assert {name for metric, name, _ in changed(found) if metric == "self"} == {"f0"}
        row = rows(found, "self")["f0"]
        assert row.low is not None
        assert row.high is not None
        assert row.low < factor - 1 < row.high
        assert evaluate(parse("self('f0') > 5%"), found).status == ("failed" if factor > 1 else "passed")


@pytest.mark.parametrize(("n_others", "n_samples"), [(12, 2000), (2, 50_000), (1, 50_000), (0, 50_000)])
@pytest.mark.parametrize("factor", [1.0, 1.5])
def test_where_machine_and_function_cannot_be_told_apart_it_is_said(
    n_others: int, n_samples: int, factor: float
) -> None:
    """Ten samples in all others, or too few others: as recorded, not decided; never passed."""
    rng = np.random.default_rng(22)
    of_base = dominated(0.995, n_others) if n_others else [1.0]
    sides = [sampled(drawn(share, n_samples, rng)) for share in (of_base, changed_first(of_base, factor))]
    found = compare(*sides)
    row = rows(found, "self")["f0"]
    assert (row.verdict, row.is_level_open) == ("unknown", True)
    assert row.change == pytest.approx(factor - 1, abs=0.1)
    outcome = evaluate(parse("self > 5%"), found)
    assert outcome.status == "undecided"
    assert "f0" in outcome.lines[0]
    assert "machine or function cannot be told apart" in outcome.lines[0]
    assert "--normalise none" in as_text(found, 20)
    assert evaluate(parse("time > 5%"), found).status == ("failed" if factor > 1 else "passed")
    trusted = compare(*sides, Options(method="none"))
    assert rows(trusted, "self")["f0"].is_changed == (factor > 1)


def test_a_level_that_may_be_anything_makes_nothing_significant() -> None:
    """A function is known to 1 %, the others to a factor of two."""
    rng = np.random.default_rng(28)
    share = dominated(0.995, 40)
    p = []
    for _ in range(40):
        amounts = np.concatenate([drawn(share, 1000, rng, 3), drawn(share, 1000, rng, 3)], axis=1).astype(np.float64)
        _, effects = at_the_level(amounts, 3)
        p.append(float(effects.p[0]))
        assert effects.low[0] < 0 < effects.high[0]
    assert min(p) > 0.05
    assert np.median(p) > 0.4


def test_a_slower_machine_is_not_a_slower_function() -> None:
    rng = np.random.default_rng(23)
    for n_functions in (8, 60):
        share = np.sort(rng.lognormal(0, 1, n_functions))[::-1]
        sides = [drawn(share / share.sum(), n, rng) for n in (100_000, 125_000)]
        found = compare(*(sampled(side) for side in sides))
        assert changed(found) == set()
        assert evaluate(parse("self > 50%"), found).status == "passed"
        assert evaluate(parse("time > 5%"), found).status == "failed"


@pytest.mark.parametrize(("n_new", "mean"), [(20, 3.0), (60, 3.0), (100, 1.0), (200, 0.5), (30, 40.0)])
@pytest.mark.parametrize("is_swapped", [False, True])
def test_functions_of_one_side_have_no_vote(n_new: int, mean: float, is_swapped: bool) -> None:
    """Each was a function that has more than twice as many samples, so all others were faster. The largest of those
    that both sides have takes 30 % longer, or does not."""
    rng = np.random.default_rng(31)
    usual = np.array([1000.0, 600, 500, 400, 400, 300, 300, 200, 200, 200, 150, 150])

    def side(slower: float, n_more: int) -> list[Run]:
        amounts = np.concatenate([usual * np.where(np.arange(12) == 0, slower, 1), np.full(n_more, mean)])
        return [run_with({f"f{nth}": n for nth, n in enumerate(rng.poisson(amounts).tolist()) if n}) for _ in range(5)]

    for factor in (1.0, 1.3):
        sides = side(1.0, 0), side(factor, n_new)
        found = compare(*(sides[::-1] if is_swapped else sides))
        common = {name: row.verdict for name, row in rows(found, "self").items() if int(name[1:]) < 12}
        assert {name for name, verdict in common.items() if verdict not in ("same", "unknown")} == (
            {"f0"} if factor > 1 else set()
        )
        change = rows(found, "self")["f0"].change
        assert change is not None
        assert 1 + change == pytest.approx(1 / factor if is_swapped else factor, rel=0.1)


def test_many_new_functions_do_not_make_others_significant() -> None:
    """Of 600 new ones 1 % may be chance: that is six of the sixty that did not change."""
    p = np.concatenate([np.full(600, 1e-9), np.linspace(0.008, 1, 60)])
    alone = np.arange(660) < 600
    families = power.Families(p, alone, 0.01)
    assert (families.rates(p, alone) <= 0.01).tolist() == alone.tolist()
    assert (power.Family(p, 0.01).rates(p) <= 0.01).sum() > 600
    thresholds = families.thresholds(alone)
    assert thresholds[0] > 0.009
    assert thresholds[-1] == pytest.approx(0.01 / 60)


@pytest.mark.parametrize("machine", [0.5, 1.0, 3.0])
def test_functions_that_both_sides_have_by_chance_have_no_vote(machine: float) -> None:
    """Of functions with one sample in every third run those that both sides have do not have more of them on a slower
    machine: there are three hundred, beside ten with more."""
    rng = np.random.default_rng(32)
    usual = np.concatenate([np.full(10, 60.0), np.full(300, 0.3)])
    sides = [[run_with({f"f{nth}": n for nth, n in enumerate(rng.poisson(usual * slow).tolist()) if n})
              for _ in range(3)] for slow in (1.0, machine)]  # fmt: skip
    level = compare(*sides).tables_named("self")[0].level
    assert level is not None
    assert level.n_votes < 20
    assert level.ratio[1] < machine < level.ratio[2]


@pytest.mark.parametrize(("slower", "is_proven"), [(0.2, True), (0.9, False), (1.1, False), (1.3, False), (5.0, True)])
def test_an_open_level_divides_amounts_by_what_is_proven_of_it(slower: float, is_proven: bool) -> None:
    """f0 is 99 % of the whole, and eight others have five samples in a run. All take as much longer: these leave it
    open whether by that, or by nothing."""
    rng = np.random.default_rng(33)
    usual = np.array([4000.0, *[5] * 8])
    base, new = ([run_with({f"f{nth}": n for nth, n in enumerate(rng.poisson(usual * factor).tolist()) if n})
                  for _ in range(5)] for factor in (1.0, slower))  # fmt: skip
    table = compare(base, new).tables_named("self")[0]
    assert table.level is not None
    assert table.is_level_open
    divided_by = table.level.ratio[0]
    if is_proven:
        assert 1 < divided_by < slower or slower < divided_by < 1
    else:
        assert divided_by == 1
    for row in table.rows:
        change = np.mean(row.amounts[5:]) / np.mean(row.amounts[:5]) / divided_by - 1
        assert row.change == pytest.approx(change, rel=0.05, abs=0.05)
        assert row.low is not None
        assert row.high is not None
        assert row.change is not None
        assert row.low < row.change < row.high
        assert row.low < slower - 1 < row.high or row.name != "f0" or is_proven


def test_what_the_kernel_does_by_the_clock_has_no_vote() -> None:
    """f0 takes twice as long, and so twice as many ticks of the clock interrupt it."""
    rng = np.random.default_rng(24)
    share = dominated(0.9, 12)
    ticks = [0.01] * 24
    base, new = (
        drawn([*share, *ticks], 20_000, rng),
        drawn([*changed_first(share, 2), *np.multiply(ticks, 2)], 20_000, rng),
    )
    kernel = range(len(share), len(share) + len(ticks))
    found = compare(sampled(base, kernel), sampled(new, kernel))
    assert rows(found, "self")["f0"].verdict == "slower"
    assert {rows(found, "self")[f"f{nth}"].verdict for nth in range(1, 13)} <= {"same", "unknown"}
    fooled = compare(sampled(base), sampled(new))
    assert rows(fooled, "self")["f0"].verdict != "slower"


@pytest.mark.parametrize("method", ["typical", "none"])
def test_another_rate_of_sampling_is_no_change(method: Method) -> None:
    """Five times as many samples of the same time."""
    rng = np.random.default_rng(26)
    share = dominated(0.7, 30)
    base = sampled(drawn(share, 10_000, rng))
    new = [replace(run, sample_ns=2e5) for run in sampled(drawn(share, 50_000, rng))]
    found = compare(base, new, Options(method=method))
    assert changed(found) == set()
    assert rows(found, "self")["f0"].change == pytest.approx(0, abs=0.05)
    assert [run.factor for run in found.new] == pytest.approx([1] * 5, abs=0.05)
    table = found.tables_named("self")[0]
    row = next(row for row in table.rows if row.name == "f0")
    assert figures.base_and_new(row, table, found)[0].startswith(("6.", "7."))


def test_runs_are_not_disturbed_by_the_chance_of_few_samples() -> None:
    """All but one of the functions have some eight samples in a run."""
    rng = np.random.default_rng(27)
    for _ in range(20):
        runs = sampled(drawn(dominated(0.9, 24), 2000, rng, 10))
        found = compare(runs[:5], runs[5:])
        assert [run.disturbed for run in (*found.base, *found.new)] == [""] * 10


def test_intervals_hold_and_nothing_else_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A small part of what `make compare-study` simulates."""
    monkeypatch.syspath_prepend(str(REPO / "benchmarks"))
    simulation = import_module("compare_simulation")
    score = simulation.Score()
    of = {"functions": (5, 15, 60), "share": (0.1, 0.9, 0.995)}
    for of_one in simulation.table("functions", "share", of, 12, 25).values():
        score.add(of_one)
    assert score.trials == 96
    assert score.held >= 0.93 * score.n_intervals
    assert score.own_held >= 0.93 * score.n_own
    assert score.wrongly <= max(0.01 * score.named, 1)
    assert score.passed == 0
    assert score.found >= 0.4 * score.changed


def test_of_runs_of_two_lengths_none_is_disturbed() -> None:
    runs = [run_with({"f": n, "g": n}) for n in (26_000, 31_000, 32_000, 26_500)]
    found = compare(runs, [*runs[:2], runs[2], runs[1], runs[2]])
    assert [bool(run.disturbed) for run in (*found.base, *found.new)] == [False] * 4 + [True] + [False] * 4


def test_a_disturbed_run_is_marked_and_can_be_left_out(run_of: Callable[..., Run]) -> None:
    rng = np.random.default_rng(11)
    runs = [run_of(calls(rng), "app.xray") for _ in range(9)]
    slow = run_of(fdr(" ".join(f"{w} {n}00 {w.lower()}" for n, w in zip([9000, 14000] * 4, "ABCDEFGH", strict=True))))
    found = compare([*runs[:4], slow], runs[4:], Options(leaves_out_disturbed=True))
    assert [bool(run.disturbed) for run in (*found.base, *found.new)] == [False] * 4 + [True] + [False] * 5
    assert found.n_runs == (4, 5)
    assert compare([*runs[:4], slow], runs[4:]).n_runs == (5, 5)


# ---------------------------------------------------------------- matching


def names(base: Sequence[Function], new: Sequence[Function], *renames: str) -> list[tuple[Function, Function]]:
    """Which of the base is which of the new side."""
    of_base, of_new = matched(base, new, Renames(renames))
    back = {identity: function for function, identity in of_new.items()}
    return [(function, back[identity]) for function, identity in of_base.items() if identity in back]


def test_functions_match_across_builds() -> None:
    pairs = {
        "moved": (("f", "a.c", 3, ""), ("f", "a.c", 90, "")),
        "another folder": (("g", "/build1/b.c", 1, ""), ("g", "/build2/b.c", 1, "")),
        "a file that one side lacks": (("h", "", 0, ""), ("h", "c.c", 5, "")),
        "a compiler's copy": (("k.constprop.0", "d.c", 0, ""), ("k", "d.c", 1, "")),
        "inlined wherever it is called": (("mix", "f.cpp", 1, ""), ("mix(unsigned int)", "f.cpp", 1, "")),
        "a line in the name": (("fib (app.py:12)", "", 0, ""), ("fib (app.py:15)", "", 0, "")),
        "a line before the name": (("nn/module.py(1501): call", "", 0, ""), ("nn/module.py(1518): call", "", 0, "")),
        "one more argument": (("ns::load(int)", "f.cpp", 9, ""), ("ns::load(int, bool)", "f.cpp", 9, "")),
        "a regular expression of Node.js 20": (("^(?:a|/b)$", "", 0, "regexp"), ("/^(?:a|/b)$/u", "", 0, "regexp")),
        "a builtin": (("Builtins_ArrayMap", "", 0, ""), ("ArrayMap", "", 0, "builtin")),
        "without a kind": (("e", "file:///x.js", 3, "function"), ("e", "file:///x.js", 3, "")),
        "without a kind, beside another file's": (("e", "file:///y.js", 3, "function"), ("e", "/build/y.js", 3, "")),
        "anonymous, without a kind": (("(anonymous)", "z.js", 7, "function"), ("(anonymous)", "z.js", 7, "")),
        "anonymous, without a kind and a file": (("(anonymous)", "", 7, "function"), ("(anonymous)", "", 7, "")),
        "renamed": (("old::run", "e.c", 1, ""), ("young::run", "e.c", 1, "")),
        "anonymous, two lines added above": (("(anonymous)", "x.js", 10, ""), ("(anonymous)", "x.js", 12, "")),
        "anonymous, two more in between": (("(anonymous)", "x.js", 40, ""), ("(anonymous)", "x.js", 44, "")),
    }
    base, new = zip(*pairs.values(), strict=True)
    assert names(base, new, "old::*=young::*") == sorted(pairs.values())


RENAMED = {
    "parse(long)": "read(long)", "parse": "read", "void parse<int>(int)": "void parse<int>(int)", "old::f(int) const":
    "young::f(int) const", "parse.constprop.0": "read.constprop.0", "parse(int) (.cold)": "read(int) (.cold)",
    "Shop.Old:Fill ()": "Shop.New:Fill ()", "reparse(long)": "reparse(long)", "h(char)": "k(char)", "h(int)": "h(int)",
}  # fmt: skip


@pytest.mark.parametrize("name", RENAMED)
def test_a_name_is_given_with_its_arguments_or_without(name: str) -> None:
    """As the first line of a comparison has it, which is without."""
    renames = Renames(
        ["parse=read", "old::*=young::*", "Shop.Old:*=Shop.New:*", "h(char)=k(char)", "each<int>=all<int>"]
    )
    assert renames(name) == RENAMED[name]


def test_a_rename_of_nothing_is_told_of() -> None:
    run = run_with({"parse(long)": 500})
    found = compare([run], [run], Options(renames=Renames(["parse=read", "nosuch=foo"])))
    assert found.notes == ("--rename nosuch=foo: the base has no function or class of that name",)


def test_what_is_ambiguous_is_not_matched() -> None:
    kinds = [("f", "a.c", 1, "function"), ("f", "a.c", 1, "stub")]
    assert names(kinds[:1], kinds[1:]) == []
    assert names(kinds, [("f", "", 0, "")]) == []
    regexps = [("/a/", "", 0, "regexp"), ("/a/g", "", 0, "regexp")]
    assert names([("a", "", 0, "regexp")], regexps) == []
    assert names(regexps, regexps) == [(one, one) for one in regexps]
    assert names([("/a/", "", 0, "")], [("/a/g", "", 0, "")]) == []
    assert names([("f(int)", "a.c", 1, "")], [("f(char)", "a.c", 1, ""), ("f(long)", "a.c", 2, "")]) == []
    assert names([("f", "/x/a.c", 0, "")], [("f", "/y/a.c", 0, ""), ("f", "/z/a.c", 0, "")]) == []


def anonymous(lines: Iterable[int], name: str = "(anonymous)", file: str = "x.js") -> list[Function]:
    return [(name, file, line, "") for line in lines]


def spread(n: int, seed: int = 1) -> list[int]:
    """n lines, 1 to 9 from each to the next."""
    return np.cumsum(np.random.default_rng(seed).integers(1, 10, n)).tolist()


LINES = spread(400)
# Of lines of functions without a name, what each became: 0 is that it is gone, negative ones are new.
EDITS: dict[str, dict[int, int]] = {
    "one line above": {line: line + 1 for line in LINES},
    "ten lines above, a function every ten": {line: line + 10 for line in range(10, 510, 10)},
    "ten lines in the middle": {line: line + 10 * (line > 900) for line in LINES},
    "200 functions above": {**{line: line + 1200 for line in LINES}, **{-line: line for line in spread(200, 2)}},
    "each 20th removed with all but one of its lines": {
        line: (nth % 20 > 0)
        * (line - sum(b - a - 1 for a, b in zip(LINES[:nth:20], LINES[1 : nth + 1 : 20], strict=True)))
        for nth, line in enumerate(LINES)
    },
    "a third seen on one side only": {line: line * (nth % 3 > 0) for nth, line in enumerate(LINES)},
}


@pytest.mark.parametrize("edit", EDITS)
def test_anonymous_functions_are_matched_when_lines_move(edit: str) -> None:
    moved = {old: new for old, new in EDITS[edit].items() if old > 0}
    base, new = anonymous(moved), anonymous({line for line in EDITS[edit].values() if line})
    right = {(a[2], b[2]) for a, b in names(base, new)} & set(moved.items())
    assert len(right) >= 0.99 * sum(new > 0 for new in moved.values())
    assert len(names(base, new)) - len(right) <= 0.01 * len(moved)


def test_thousands_of_anonymous_functions_are_matched() -> None:
    """4,000 in one file took 83 s and 1.7 GB."""
    lines = spread(4000)
    assert {b[2] - a[2] for a, b in names(anonymous(lines), anonymous(line + 1 for line in lines))} == {1}


def test_anonymous_functions_of_one_line_match_in_order() -> None:
    """Also where the whole file is one line; those of other names are others."""
    base = [*anonymous([7], "$_9"), *anonymous([7], "$_10"), *anonymous([7], "lambda at {lambda()#1}")]
    new = [*anonymous([8], "$_11"), *anonymous([8], "$_12"), *anonymous([8], "lambda at {lambda()#2}")]
    assert sorted((a[0], b[0]) for a, b in names(base, new)) == [
        ("$_10", "$_12"), ("$_9", "$_11"), ("lambda at {lambda()#1}", "lambda at {lambda()#2}"),
    ]  # fmt: skip
    assert names(anonymous([1]), anonymous([1])) == [(anonymous([1])[0],) * 2]


def test_files_of_one_name_in_several_folders_stay_apart() -> None:
    def side(build: str, offset: int) -> list[Function]:
        files = [f"{build}/{folder}/index.js" for folder in ("a", "b", "c")]
        return [f for nth, file in enumerate(files) for f in anonymous([5 + nth, 10 * nth + offset], file=file)]

    assert all(a[1].split("/")[-2] == b[1].split("/")[-2] for a, b in names(side("/x", 40), side("/y", 41)))
    assert len(names(side("/x", 40), side("/y", 41))) == 6


def test_functions_with_a_name_tell_where_those_without_are() -> None:
    """Every function is three lines from the next one; of names, five lines were added in front of the second."""
    named = [("f", "x.js", 31, ""), ("g", "x.js", 61, "")], [("f", "x.js", 31, ""), ("g", "x.js", 67, "")]
    base, new = anonymous(range(10, 100, 3)), anonymous([*range(10, 60, 3), *range(67, 106, 3)])
    found = {a[2]: b[2] for a, b in names([*base, *named[0]], [*new, *named[1]]) if not a[0].isalpha()}
    assert {line: found.get(line) for line in (10, 58, 61, 97)} == {10: 10, 58: 58, 61: 67, 97: 103}


def test_an_anonymous_function_that_is_gone_is_not_the_one_at_its_line() -> None:
    """Of 10, 20 and 30 the first is gone, with its ten lines: what is at 10 now was at 20."""
    base, new = anonymous([10, 20, 34, 41]), anonymous([10, 24, 31])
    of_base, of_new = matched(base, new, Renames())
    assert [of_base[f][1:3] for f in base] == [("x.js (base)", 10), ("x.js", 10), ("x.js", 24), ("x.js", 31)]
    assert set(of_new) == set(of_new.values())


# ---------------------------------------------------------------- gates


ERRORS = {
    "": 1, "self": 5, "self 5%": 6, "self > ": 8, "self > x": 8, "self > 5 parsecs": 10, "self > 5% 3": 11,
    "elf > 5%": 1, "gc_pause.p98 > 1ms": 10, "self.p99 > 1ms": 1, "total(main) > 5ms": 7, "total('main' > 5ms": 14,
    "total('') > 5ms": 7,
}  # fmt: skip


@pytest.mark.parametrize("text", ERRORS)
def test_a_mistake_in_an_expression_is_pointed_at(text: str) -> None:
    with pytest.raises(UsageError) as error:
        parse(text)
    assert f"at character {ERRORS[text]}:" in str(error.value)
    assert error.value.lines == (text, " " * (ERRORS[text] - 1) + "^")


def test_gates(run_of: Callable[..., Run]) -> None:
    rng = np.random.default_rng(13)
    found = compare(
        [run_of(calls(rng), "a.xray") for _ in range(5)], [run_of(calls(rng, 1.06), "a.xray") for _ in range(5)]
    )
    for text, status in {
        "self > 5%": "failed", "self > 7%": "passed", "self('function 2') > 5%": "failed",
        "self('function 3') > 5%": "passed", "self('function *') > 100us": "failed", "self > 1ms": "passed",
        "calls > 0": "passed", "calls >= 0": "passed", "total < -5%": "passed", "time > 50%": "passed",
    }.items():  # fmt: skip
        assert evaluate(parse(text), found).status == status, text
    with pytest.raises(UsageError, match="counts ns, not bytes"):
        evaluate(parse("self > 5MB"), found)
    alone = compare(found.sides.base[:1], found.sides.new[:1])
    assert evaluate(parse("self > 5%"), alone).status == "undecided"
    # Four unlike runs: what the interval does not reach is passed, whether the bound itself counts or not.
    few = compare(
        [run_of(calls(rng, factor), "a.xray") for factor in (1, 1.6)],
        [run_of(calls(rng, factor), "a.xray") for factor in (1.1, 1.7)],
    )
    row = next(row for table in few.tables_named("self") for row in table.rows if row.name == "function 2")
    assert row.verdict == "unknown"
    assert row.low is not None
    assert row.high is not None
    assert row.low < 0 < row.high
    for relation in (">", ">="):
        assert evaluate(parse(f"self('function 2') {relation} {90 * row.high:.4f}%"), few).status == "undecided"
        assert evaluate(parse(f"self('function 2') {relation} {110 * row.high:.4f}%"), few).status == "passed"
    for relation in ("<", "<="):
        assert evaluate(parse(f"self('function 2') {relation} {90 * row.low:.4f}%"), few).status == "undecided"
        assert evaluate(parse(f"self('function 2') {relation} {110 * row.low:.4f}%"), few).status == "passed"


NOTHING_OF = {
    "self('nosuch') > 5%": "neither side has self of 'nosuch'; of 1 names, none of them near, the largest are 'parse'",
    "total('parseRow') > 5%": "neither side has total of 'parseRow'; the nearest names are 'parseRows', 'parse'",
    "total('*Row') > 5%": "the nearest names are 'parseRows'",
    "calls > 0": "neither side has calls; they have time, self, total",
    "gc_pause.p99 > 1ms": "neither side has gc_pause.p99; they have no events with that",
    "self > 50ms": "the recordings do not say how much time a sample stands for",
}


@pytest.mark.parametrize("text", NOTHING_OF)
def test_a_gate_that_can_never_fail_is_an_error(text: str) -> None:
    """Each passed, or was not decided, with status 0."""
    run = run_with({"parse": 500}, {"parse": 500, "parseRows": 900}, sample_ns=0)
    with pytest.raises(UsageError) as error:
        evaluate(parse(text), compare([run] * 2, [run] * 2))
    assert NOTHING_OF[text] in str(error.value)


def test_an_event_that_is_not_there_is_an_error_that_names_those_that_are(run_of: Callable[..., Run]) -> None:
    found = compare([run_of(heap())] * 2, [run_of(heap())] * 2)
    for text, there in {
        "nosuch_event.p99 > 1ms": "they have gc_pause.p99", "calls > 0": "gc_pause.count",
        "gc_pause.count('2') > 0": "gc_pause.count of '2'", "self > 5%": "they have time, allocated_bytes",
    }.items():  # fmt: skip
        with pytest.raises(UsageError) as error:
            evaluate(parse(text), found)
        assert there in str(error.value), text


def test_what_a_gate_names_is_undecided_where_it_is_too_rare_to_judge() -> None:
    """`rare` may have become twelve times as slow; it has a thousandth of the whole, of which others have the rest.
    `main` has samples with its callees only."""
    rng = np.random.default_rng(2)
    mean = {f"f{nth}": 3000.0 for nth in range(20)} | {"rare": 4.0, "main": 0.0}
    counts = [{name: int(rng.poisson(value)) for name, value in mean.items()} for _ in range(10)]
    runs = [run_with(own, {name: n + (name == "main") for name, n in own.items()}) for own in counts]
    found = compare(runs[:5], runs[5:], Options(method="none"))
    for text, status in {
        "self > 5%": "passed", "self('rare') > 5%": "undecided", "self('r*') > 5%": "passed",
        "self('f3') > 5%": "passed", "self('f3') > 0.1%": "undecided", "self('main') > 5%": "undecided",
        "self > 0.01%": "undecided", "self > 10ms": "undecided",
    }.items():  # fmt: skip
        assert evaluate(parse(text), found).status == status, (text, evaluate(parse(text), found).lines)


def test_figures_as_text() -> None:
    assert [figures.amount(value, "ns") for value in (-1, 0, 1)] == ["-1ns", "0ns", "1ns"]
    assert [figures.amount(value, "bytes") for value in (-1, 999, 999.6, -1500)] == ["-1 B", "999 B", "1 kB", "-1.5 kB"]
    row = Row(("f",), 100, 101, (100, 101), "same", within=0.05)
    assert figures.verdict(row, (5, 5)) == "same within 5%"
    assert figures.verdict(replace(row, within=None), (5, 5)) == "same"


def test_samples_without_a_caller_are_counted() -> None:
    trace = traceferry.load(JAVA)
    (n,) = (issue.count for issue in trace.report if issue.kind == "callers_missing")
    assert Run.of("java", trace, with_trees=False).callerless == n > 0


def test_samples_are_shown_as_time(run_of: Callable[..., Run]) -> None:
    """A sample of the recording stands for 1.003 ms. Bytes and numbers are shown as they are."""
    run = Run.of("java", traceferry.load(JAVA), with_trees=False)
    found = compare([run], [run])
    row = Row(("f",), 100, 200, (100, 200), "slower")
    assert {table.amounts.unit: figures.base_and_new(row, table, found) for table in found.tables} == {
        "samples": ("100ms", "201ms"), "bytes": ("100 B", "200 B"), "count": ("100", "200"),
    }  # fmt: skip


# ---------------------------------------------------------------- the command


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(17)
    for nth in range(5):
        (tmp_path / f"base{nth}.xray").write_bytes(calls(rng).bytes())
        (tmp_path / f"new{nth}.xray").write_bytes(calls(rng, 1.06).bytes())
    sides = ["compare", "--base", f"{tmp_path}/base*.xray", "--new", f"{tmp_path}/new*.xray"]
    assert cli.main([*sides, "--fail-on", "self > 5%", "--json", str(tmp_path / "out.json")]) == 3
    text = capsys.readouterr().out
    assert "FAILED: self > 5%\n  self of function 2: " in text
    found = json.loads((tmp_path / "out.json").read_text())
    assert (found["version"], found["verdict"], len(found["base"])) == (1, "failed", 5)
    first = next(table for table in found["tables"] if table["metric"] == "self")["rows"][0]
    assert (first["name"], first["verdict"]) == ("function 2", "slower")
    assert first["low"] < 0.06 < first["high"]
    one = ["compare", str(tmp_path / "base0.xray"), str(tmp_path / "new0.xray"), "--fail-on", "calls('f*3') > 5%"]
    assert cli.main([*one, "--quiet"]) == 0
    assert cli.main([*one, "--quiet", "--strict"]) == 0
    assert cli.main([*one, "--quiet", "--strict", "--fail-on", "self('function 3') > 0%"]) == 3
    assert capsys.readouterr().err.startswith("NOT DECIDED: self('function 3') > 0%\n  function 3: ")
    assert cli.main([*sides, "--fail-on", "gc_pause.p99 > 1ms", "--json", str(tmp_path / "none.json")]) == 2
    assert "neither side has gc_pause.p99; they have no events with that" in capsys.readouterr().err
    assert not (tmp_path / "none.json").exists()


def test_what_cannot_be_compared_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "app.xray").write_bytes(fdr("A 500 a").bytes())
    calls_only = str(tmp_path / "app.xray")
    for words, message in {
        (calls_only,): "1 recording is given",
        (calls_only, str(tmp_path / "nothing*")): "no file has such a name",
        (calls_only, str(JAVA)): "nothing to compare",
        (calls_only, calls_only, "--rename", "x"): "write OLD=NEW",
        (calls_only, calls_only, "-o", str(tmp_path / "a.gecko.json")): "gecko has no comparisons",
        (calls_only, calls_only, "-o", calls_only): "app.xray",
    }.items():
        assert cli.main(["compare", *words]) == 2
        assert message in capsys.readouterr().err


def test_inputs_stand_before_and_after_options(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "app.xray").write_bytes(fdr("A 500 a").bytes())
    inputs, page = [str(tmp_path / "app.xray")] * 2, ["-o", str(tmp_path / "y.html")]
    for words in ([inputs[0], *page, inputs[1]], [*page, *inputs], [*inputs, *page]):
        assert cli.main(["compare", *words]) == 0
    assert cli.main(["compare", inputs[0], *page, *inputs]) == 2
    assert "3 recordings are given; two are compared" in capsys.readouterr().err


def test_the_same_recordings_in_another_order_give_the_same_bytes(tmp_path: Path) -> None:
    rng = np.random.default_rng(19)
    paths = [tmp_path / f"{nth}.xray" for nth in range(6)]
    for path in paths:
        path.write_bytes(calls(rng).bytes())
    base, new = ([str(p) for p in part] for part in (paths[:3], paths[3:]))
    outputs = []
    for order in (base, base[::-1]):
        out = tmp_path / "out.md"
        cli.main(["compare", "--base", *order, "--new", *new, "--markdown", str(out), "--quiet"])
        outputs.append(out.read_bytes())
    assert outputs[0] == outputs[1]


# ---------------------------------------------------------------- Markdown


@examples(200)
@given(st.text())
def test_a_name_in_markdown_is_one_code_span_of_one_cell(name: str) -> None:
    span = code(name)
    fence = span[: len(span) - len(span.lstrip("`"))]
    inside = span[len(fence) : -len(fence)]
    assert fence not in inside
    assert span.endswith(fence)
    assert not set("\r\n\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029") & set(span)
    assert "|" not in span.replace("\\|", "")


def test_markdown_is_cut_after_the_largest_changes_and_says_so(run_of: Callable[..., Run]) -> None:
    many = [f"{chr(65 + nth)} {100 * (nth + 1)} {chr(97 + nth)}" for nth in range(26)]
    found = compare([run_of(fdr(" ".join(many)))], [run_of(fdr(" ".join(many + many)))])
    for limit in (1500, 64_000):
        text = as_markdown(found, limit=limit)
        assert len(text.encode()) <= limit
        assert ("more rows are left out" in text) == (limit == 1500)
        assert "| `function 1` | +100% | exact | +1 | 1 | 2 | differs: 4 runs each would do |" in text
