"""The first line of a comparison: the same in text, Markdown, JSON and the page."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import orjson
import pytest
from test_compare import run_with

from traceferry.analysis.compare.as_json import as_json
from traceferry.analysis.compare.comparison import Options, compare
from traceferry.analysis.compare.gate import evaluate, parse
from traceferry.analysis.compare.headline import headline, verdict_of
from traceferry.analysis.compare.markdown import as_markdown
from traceferry.analysis.compare.runs import Run
from traceferry.analysis.compare.text import as_text
from traceferry.analysis.compare.trees import diff_tree
from traceferry.analysis.totals.portable import Totals
from traceferry.exporters.html.comparison import _shaped
from traceferry.model import Event


def drawn(rng: np.random.Generator, *amounts: float, n: int) -> list[Run]:
    """Runs of functions f0, f1..., with so many samples of 1 ms each on average."""
    return [run_with({f"f{nth}": int(rng.poisson(amount)) for nth, amount in enumerate(amounts)}) for _ in range(n)]


def said(base: Sequence[Run], new: Sequence[Run], *gates: str) -> str:
    comparison = compare(base, new, Options())
    outcomes = [evaluate(parse(gate), comparison) for gate in gates]
    text = headline(comparison, outcomes)
    assert as_text(comparison, 20, outcomes).splitlines()[0] == text
    assert as_json(comparison, outcomes)["headline"] == text
    assert as_json(comparison, outcomes)["verdict"] == verdict_of(comparison, outcomes)
    assert text.split(":")[0].split(";")[0].capitalize() in as_markdown(comparison, outcomes).splitlines()[0]
    return text


def test_one_run_on_each_side_tells_nothing_and_names_the_largest_differences() -> None:
    assert said([run_with({"a": 100, "b": 50, "c": 5})], [run_with({"a": 52, "b": 60, "c": 5})]) == (
        "cannot tell: one run on each side; the largest differences are: a -48ms (-48.0%, 100ms to 52ms), "
        "b +10ms (+20.0%, 50ms to 60ms)"
    )


def test_one_run_on_one_side() -> None:
    runs = [run_with({"a": 100 + n}) for n in range(5)]
    assert said(runs[:1], runs[1:]).startswith("cannot tell: one run on one side; the largest differences are: a +")


@pytest.mark.parametrize("n", [1, 2, 5])
def test_identical_recordings(n: int) -> None:
    runs = [run_with({"a": 100 + nth, "b": 50}) for nth in range(n)]
    assert said(runs, runs) == "identical: both sides have the same calls, samples, times and sizes"
    comparison = compare(runs, runs, Options())
    assert "unknown" not in as_text(comparison, 20) + as_markdown(comparison)
    page = orjson.dumps(_shaped(comparison, as_json(comparison), diff_tree(comparison), 20))
    assert b"unknown" not in page
    assert b'"same"' in page


@pytest.mark.parametrize("amounts", [(2000.0,), (2000.0, 3.0), (2000.0, 40.0, 20.0)])
def test_a_program_that_is_one_function(amounts: tuple[float, ...]) -> None:
    """10 % more of what is nearly all there is, and the same twice: nothing else tells of the machine."""
    rng = np.random.default_rng(7)
    base, new = drawn(rng, *amounts, n=5), drawn(rng, 1.1 * amounts[0], *amounts[1:], n=5)
    assert re.match(r"slower: .*time of samples \+.* f0", said(base, new))
    assert re.match(r"faster: .*time of samples -.* f0", said(new, base))
    assert said(base, drawn(rng, *amounts, n=5)).startswith(("no significant change", "identical"))


def test_what_grew_is_named_not_what_is_large() -> None:
    """A function of 5 % has twice as much; the other one, which is nearly all there is, has as much as before."""
    rng = np.random.default_rng(7)
    base, new = drawn(rng, 20000, 1000, n=5), drawn(rng, 20000, 2000, n=5)
    assert re.match(r"slower: time of samples .*\), nearly all of it in f1, duration of", said(base, new))
    assert "nearly" not in said(base, drawn(rng, 22000, 2000, n=5))


def test_what_makes_up_for_each_other_is_not_why_the_whole_changed() -> None:
    """f0 has a third more, and two others some more and as much less. Few functions do not tell of the machine."""
    rng = np.random.default_rng(7)
    base, new = drawn(rng, 6000, 2000, 2000, n=5), drawn(rng, 8000, 2400, 1600, n=5)
    assert "), nearly all of it in f0, duration of" in said(base, new)
    assert "nearly" not in said(base, drawn(rng, 8000, 2000, 1000, n=5))


def test_a_function_that_differs_in_all_runs_is_told_of_where_the_machine_may_have_done_it() -> None:
    base = [run_with({"f0": 2000 + n, "f1": 100 + n}) for n in range(4)]
    new = [run_with({"f0": 2001 + n, "f1": 203 + n}) for n in range(3)]
    disturbed = run_with({"f0": 2600, "f1": 260})
    assert re.fullmatch(
        r"cannot tell: f1 \+\S+ \(\+\S+%, \S+ to \S+\); or the machine: --normalise none takes it to be the same",
        said(base, [*new, disturbed]),
    )
    assert said(base, base[::-1]).startswith("no significant change")


def test_a_function_of_one_percent_that_quadrupled() -> None:
    """One other takes all the rest, as before, on a machine whose runs differ by a tenth: no level of it, within twice
    and half of as recorded, explains the change."""
    rng = np.random.default_rng(7)

    def runs(small: float, n: int = 4) -> list[Run]:
        return [drawn(rng, 14000 * slow, 400 * slow, small * slow, n=1)[0] for slow in rng.normal(1, 0.05, n)]

    assert said(runs(150), runs(640)).startswith("slower: f2 +")
    assert said(runs(640), runs(150)).startswith("faster: f2 -")
    assert said(runs(150), runs(330)).startswith(("cannot tell: f2 +", "slower: f2"))
    assert said(runs(150), runs(150)).startswith("no significant change")


def test_a_gate_on_the_whole_says_what_that_is() -> None:
    rng = np.random.default_rng(7)
    comparison = compare(drawn(rng, 2000, 3000, n=4), drawn(rng, 3000, 4000, n=4), Options())
    for gate in ("time > 5%", "time('time of samples') > 5%"):
        (line,) = evaluate(parse(gate), comparison).lines
        assert re.match(r"time of samples: [45]\S*s → [67]\S*s, \+", line), line


def test_a_build_in_which_everything_takes_five_times_as_long() -> None:
    """As without optimization: what functions are divided by stands before what they differ by."""
    rng = np.random.default_rng(7)
    amounts = [200.0 + 10 * nth for nth in range(20)]
    slow = [5 * amount for amount in amounts]
    named = said(drawn(rng, *amounts, n=4), drawn(rng, *slow[:19], 4 * slow[19], n=4))
    assert re.search(r"time of samples \+.*, all functions (4\.9|5)\S* times as much, and beyond that, f19 \+", named)
    assert "all functions" not in said(drawn(rng, *amounts, n=4), drawn(rng, *amounts[:19], 1600, n=4))
    one = said(drawn(rng, *amounts, n=1), drawn(rng, *slow[:19], 4 * slow[19], n=1))
    assert re.search(r"differences are: all functions (4\.9|5)\S* times as much, and beyond that, f19 ", one)


def test_what_open_levels_are_divided_by_is_told() -> None:
    """Few small functions prove that the machine was slower, not by how much."""
    rng = np.random.default_rng(7)
    base = drawn(rng, 2000, *[12.0] * 8, n=3)
    comparison = compare(base, drawn(rng, 40000, *[100.0] * 8, n=3), Options())
    table = comparison.tables_named("self")[0]
    assert table.level is not None
    assert table.is_level_open
    ratio = table.level.ratio[0]
    assert ratio > 1.5
    for of in (table, comparison.tables_named("total")[0]):
        for row in of.rows:
            assert row.new == pytest.approx(np.mean(np.array(row.amounts[3:]) / of.factors.of_run[3:]), rel=0.01)
        assert of.factors.of_run[3:].mean() == pytest.approx(ratio, rel=0.1)
    assert f", divided by {ratio:.4g}, which is all that functions prove: " in as_text(comparison, 20, [])


USUAL = {"parse": 3000, "lex": 2000, "emit": 1500, "hash": 1000, "sort": 900, "fold": 800, "link": 700, "scan": 600}


def named(rng: np.random.Generator, amounts: Mapping[str, float], n: int = 5, **total: float) -> list[Run]:
    """Runs with so many samples of each function, and in total those of some others with their callees."""
    runs = []
    for _ in range(n):
        own = {name: int(rng.poisson(amount)) for name, amount in amounts.items()}
        runs.append(run_with(own, own | {name: int(rng.poisson(amount)) for name, amount in total.items()}))
    return runs


def test_a_part_of_a_function_that_became_another_is_no_gain() -> None:
    rng = np.random.default_rng(7)
    split = USUAL | {"parse": 1500, "parse_tail": 1500}
    line = said(named(rng, USUAL), named(rng, split), "self > 5%", "total > 5%")
    assert re.match(r"changed: .*; the whole: time of samples [-+0-9.]+%, .*: same within", line)
    assert "parse -1." in line
    assert "parse_tail +1." in line
    # Three runs do not prove that a function is new.
    assert re.match(r"changed: parse -.*, perhaps parse_tail \+", said(named(rng, USUAL, 3), named(rng, split, 3)))
    assert re.match(r"changed: parse \+.*, perhaps parse_tail -", said(named(rng, split, 3), named(rng, USUAL, 3)))
    slower = USUAL | {"parse": 1500, "parse_tail": 3500}
    assert said(named(rng, USUAL), named(rng, slower), "self > 5%") == "a gate failed: self > 5%"


def test_what_few_runs_do_not_prove_to_be_new_is_told_of_where_the_whole_changed() -> None:
    """With callees, what holds all others has as much more; that tells nothing."""
    rng = np.random.default_rng(7)
    added = USUAL | {"feature_a": 2000, "feature_b": 1500}
    base, new = (named(rng, of, 3, main=sum(of.values())) for of in (USUAL, added))
    line = said(base, new)
    assert re.match(r"slower: time of samples \+.*\), perhaps feature_a \+\S+ \(.*\) and feature_b \+1\S* \(", line)
    assert "main" not in line
    assert re.match(r"faster: time of samples -.*\), perhaps feature_a -\S+ \(.*\) and feature_b -", said(new, base))
    assert "perhaps" not in said(base, base[::-1])


def test_a_slower_machine_is_why_the_whole_changed() -> None:
    rng = np.random.default_rng(7)
    base, new = (named(rng, {name: 3 * slow * n for name, n in USUAL.items()}) for slow in (1, 1.25))
    assert re.fullmatch(r"slower: time of samples \+.*\), all functions 1\.2\d* times as much, dur.*", said(base, new))


def test_a_helper_that_is_no_longer_inlined_is_no_faster_machine() -> None:
    """All functions call it, and have two fifths of what they had; with it the program has as much, or twice as much.
    So it is if the base has a few samples of the helper, and the other way round."""
    rng = np.random.default_rng(7)
    without = {name: 0.4 * n for name, n in USUAL.items()}
    for whole, step in itertools.product((1, 2), (0, 40)):
        base = named(rng, USUAL | {"step": step})
        new = named(rng, without | {"step": whole * sum(USUAL.values()) - sum(without.values())})
        for sides in ((base, new), (new, base)):
            comparison = compare(*sides, Options())
            assert "all functions" not in headline(comparison)
            (table,) = comparison.tables_named("self")
            found = {row.name: row for row in table.rows}
            for side, amount in enumerate((found["step"].base, found["step"].new)):
                amounts = found["step"].amounts
                assert amount == pytest.approx(np.mean((amounts[:5], amounts[5:])[side]), rel=0.01)
            assert {row.verdict for row in found.values()} & {"slower", "faster"}
            assert re.search(
                r"most functions of both sides have [\d.]+ times as much, and the whole [\d.]+ times as much: others "
                r"may do their work now", as_text(comparison, 20, []),
            )  # fmt: skip


def test_a_faster_machine_with_small_new_functions_is_one() -> None:
    """Each of a hundred new functions has little, all together less than what the others lack."""
    rng = np.random.default_rng(7)
    amounts = {f"f{nth}": 200.0 + 10 * nth for nth in range(20)}
    news = {f"new{nth}": 2.0 for nth in range(100)}
    comparison = compare(named(rng, amounts), named(rng, {name: 0.8 * n for name, n in amounts.items()} | news))
    (table,) = comparison.tables_named("self")
    assert table.level is not None
    assert table.level.ratio[0] == pytest.approx(0.8, rel=0.03)
    assert not [row.name for row in table.changed if row.name in amounts]


def test_a_function_that_doubled_on_a_faster_machine() -> None:
    """The whole has more, and nothing came that may do the work of the others."""
    rng = np.random.default_rng(7)
    amounts = {f"f{nth}": 200.0 + 10 * nth for nth in range(20)} | {"main": 9000.0}
    faster = {name: 0.8 * n for name, n in amounts.items()} | {"main": 2 * 0.8 * 9000.0}
    line = said(named(rng, amounts), named(rng, faster))
    assert re.search(r"all functions 0\.[78]\d* times as much, and beyond that, main \+\S+ \(\+(9\d\.\d|10\d)%", line)


def test_what_is_called_from_elsewhere_is_no_gain() -> None:
    rng = np.random.default_rng(8)
    base, new = named(rng, USUAL, run=9000, load=10000), named(rng, USUAL, run=9000, load=500)
    assert re.match(r"changed: with callees load -.*; the whole: time of samples ", said(base, new))
    assert re.match(r"changed: with callees load \+.*; the whole: time of samples ", said(new, base))


def test_the_word_is_that_of_the_whole_where_it_changed() -> None:
    rng = np.random.default_rng(9)
    new = named(rng, USUAL | {"parse": 6000, "scan": 200})
    assert re.match(r"slower: time of samples \+.*, parse \+.*, scan -", said(named(rng, USUAL), new))
    assert re.match(r"slower: .*hash \+", said(named(rng, USUAL), named(rng, USUAL | {"hash": 1300})))
    new = named(rng, USUAL | {"hash": 1300, "helper": 30})
    assert re.match(r"slower: .*hash \+.*, helper \+", said(named(rng, USUAL), new))
    assert re.match(r"changed: helper \+.*; the whole: ", said(named(rng, USUAL), named(rng, USUAL | {"helper": 30})))


def test_numbers_say_nothing_against_times() -> None:
    """More objects of a class, in a program that is slower, or whose times are the same."""
    rng = np.random.default_rng(13)

    def side(n_orders: int, n_hash: int) -> list[Run]:
        classes = Totals().classes.of([("Order",)], np.array([[n_orders, 24 * n_orders, 0, 0]]))
        runs = named(rng, USUAL | {"hash": n_hash})
        return [replace(run, totals=replace(run.totals, classes=classes)) for run in runs]

    assert re.match(r"slower: .*hash \+", said(side(1000, 1000), side(2000, 1300)))
    assert said(side(1000, 1000), side(2000, 1000)) == "changed: Order +24 kB (+100%, 24 kB to 48 kB)"


def test_a_recording_that_only_lasted_longer_is_not_slower() -> None:
    """As while the machine does something else: samples are of CPU time."""
    rng = np.random.default_rng(10)
    base = named(rng, USUAL)
    new = [replace(run, duration_ns=6 * run.duration_ns) for run in named(rng, USUAL)]
    line = said(base, new, "time > 10%")
    assert re.match(r"changed: duration of the recording \+.*; the whole: time of samples ", line)
    assert said(base, new, "time('duration of the recording') > 10%").startswith("a gate failed: time('duration")
    assert said([replace(run, duration_ns=10**12) for run in base],
                named(rng, USUAL | {"parse": 6000})).startswith("slower: time of samples +")  # fmt: skip
    slower = [replace(run, duration_ns=6 * run.duration_ns) for run in named(rng, USUAL | {"hash": 1300})]
    assert re.match(r"slower: .*hash \+.*, duration of the recording \+", said(base, slower))
    classes = Totals().classes.of([("Order",)], np.array([[10, 240, 0, 0]]))
    without = [replace(run, totals=replace(Totals(), classes=classes)) for run in (*base, *new)]
    assert said(without[:5], without[5:], "time > 10%") == "a gate failed: time > 10%"


def test_interrupts_of_a_busy_machine_are_no_slower_program() -> None:
    """They, and the duration, are more alike; the program's functions have what they had."""
    rng = np.random.default_rng(10)
    base, new = (named(rng, USUAL, timer_interrupt=amount) for amount in (20, 90))
    new = [replace(run, duration_ns=6 * run.duration_ns) for run in new]
    assert re.match(
        r"changed: with callees timer_interrupt \+\S+ .*, duration of the recording \+.*; the whole: time of samples ",
        said(base, new),
    )
    assert re.match(r"changed: with callees timer_interrupt -.*, duration of the recording -", said(new, base))


def test_a_longer_recording_says_nothing_against_a_faster_function() -> None:
    rng = np.random.default_rng(11)
    base, new = named(rng, USUAL | {"link": 60}), named(rng, USUAL | {"link": 15})
    new = [replace(run, duration_ns=6 * run.duration_ns) for run in new]
    assert re.match(r"faster: link -.*, duration of the recording \+", said(base, new))


def test_runs_are_apart_in_time_not_in_samples() -> None:
    """At another frequency all runs have more samples, each of which is less."""

    def side(counts: Sequence[int], sample_ns: float) -> list[Run]:
        return [replace(run_with({"main": n}, sample_ns=sample_ns), duration_ns=10**9) for n in counts]

    base = side([200, 208, 216, 224], 5e6)
    assert said(base, side([500, 520, 540, 560], 2e6)).startswith("no significant change")
    assert said(base, side([570, 580, 590, 600], 2e6)).startswith("cannot tell: main +")


def test_what_is_new_counts_from_a_hundredth_of_the_whole_on() -> None:
    rng = np.random.default_rng(11)
    for n, status in {40: "passed", 400: "failed"}.items():
        found = compare(named(rng, {name: 30 * n for name, n in USUAL.items()}),
                        named(rng, {name: 30 * n for name, n in USUAL.items()} | {"helper": 30 * n}))  # fmt: skip
        assert ("helper", "new") in {(row.name, row.verdict) for row in found.tables_named("self")[0].rows}
        for text in ("self > 5%", "total > 5%", "self('h*') > 5%"):
            assert evaluate(parse(text), found).status == status, (n, text)
        assert evaluate(parse("self('helper') > 5%"), found).status == "failed"
        assert evaluate(parse("self > 0.1%"), found).status == "failed"


def test_why_what_is_new_does_not_count_is_said() -> None:
    rng = np.random.default_rng(12)
    usual = {name: 30 * n for name, n in USUAL.items()}
    found = compare(named(rng, usual), named(rng, usual | {"parse": 45_000, "parse_tail": 45_000}))
    outcome = evaluate(parse("self > 5%"), found)
    assert (outcome.status, outcome.lines) == (
        "passed", ("self: parse_tail did not count: new, and others have as much less",)
    )  # fmt: skip
    assert evaluate(parse("self('parse_tail') > 5%"), found).status == "failed"


def test_time_off_the_cpu_that_changed_by_more_is_in_the_line() -> None:
    def side(ms: int, n: int) -> list[Run]:
        amounts = [[round(ms * 1e6 * (1 + 0.01 * nth)), 0] for nth in range(4)]
        rows = [Totals().threads.of([("app", "worker N")], np.array([[1, 0, 0, 0, *of]])) for of in amounts]
        runs = named(np.random.default_rng(ms), USUAL | {"parse": n}, 4)
        return [replace(run, totals=replace(run.totals, threads=of))
                for run, of in zip(runs, rows, strict=True)]  # fmt: skip

    line = said(side(500, 3000), side(9000, 1500))
    assert re.search(r"changed: time of samples -.*, parse -.*, off_cpu of app / worker N \+8\.63s \(\+1700%", line)
    assert "off_cpu" not in said(side(500, 3000), side(600, 1500))


def test_names_are_short() -> None:
    tree = f"std::_Rb_tree<int, {'std::pair<int const, int>, ' * 9}std::less<int>>::_M_erase(std::_Rb_tree_node<int>*)"
    text = said([run_with({tree: 100, "f(int)": 50})], [run_with({tree: 52, "f(int)": 80})])
    assert "are: std::_Rb_tree<…>::_M_erase -48ms (-48.0%, 100ms to 52ms), f +30ms (" in text


def test_a_gate_that_failed() -> None:
    rng = np.random.default_rng(7)
    base, new = drawn(rng, 2000, n=5), drawn(rng, 2600, n=5)
    assert said(base, new, "self('f0') > 500%").startswith("slower: ")
    assert said(base, new, "self > 5%", "total > 5%").startswith(("a gate failed: self > 5%", "slower"))


def test_unlike_inputs_are_told_of() -> None:
    base, new = (replace(run_with({"a": 100}), formats=frozenset([name])) for name in ("perf.data", "mono"))
    assert said([base], [new]).endswith("; unlike inputs: the base is of the format perf.data, the new side of mono")
    assert "unlike" not in said([base], [replace(new, formats=base.formats | {"jitdump"})])


def test_unlike_rates_of_samples_are_told_of() -> None:
    """Those that were asked for, which all runs of a side have; measured ones tell how busy the machine was."""

    def side(*interval_us: int) -> list[Run]:
        clocks = [Event("cpu-clock", "ns", 1000 * us, "clock") for us in interval_us]
        return [replace(run_with({"a": 5000 // us}, sample_ns=1000.0 * us), sampling=clock)
                for us, clock in zip(interval_us, clocks, strict=True)]  # fmt: skip

    assert said(side(10, 10, 10), side(50, 50, 50)).endswith(
        "; unlike inputs: cpu-clock: a sample is of 10us in the base and of 50us on the new side; times are compared, "
        "of which one side has fewer samples"
    )
    assert "unlike" not in said(side(10, 11, 12), side(20, 21, 25))
    assert "unlike" not in said(side(10, 10, 10), side(10, 10, 10))


def measured(rng: np.random.Generator, amounts: Mapping[str, float], unit: str) -> list[Run]:
    """Runs whose samples are amounts of the unit, of which those of parse_tail vary a lot."""
    runs = []
    for _ in range(5):
        noise = {name: (0.3 if name == "parse_tail" else 0.002) * rng.standard_normal() for name in amounts}
        own = {name: int(amount * 1e6 * (1 + noise[name])) for name, amount in amounts.items()}
        runs.append(replace(run_with(own, own), sampling=Event(f"delay ({unit})", "samples"), sample_ns=0.0))
    return runs


@pytest.mark.parametrize(("unit", "name"), [("bytes", "bytes"), ("ns", "time")])
def test_the_verdict_of_measured_amounts_follows_the_whole(unit: str, name: str) -> None:
    """What parse has less another function may have more."""
    rng = np.random.default_rng(7)
    base, new = USUAL | {"parse_tail": 1500}, USUAL | {"parse": 1500, "parse_tail": 3000}
    line = said(measured(rng, base, unit), measured(rng, new, unit))
    assert re.match(rf"changed: parse -1\.5 ?G?[Bs] .*; the whole: {name} \+0\.50%, .*: unknown", line)


@pytest.mark.parametrize("is_swapped", [False, True])
@pytest.mark.parametrize(
    ("load", "shares", "verdict"),
    [
        (500, (0.9, 0.0), "unknown"),
        (500, (0.9, 0.87), "changed"),
        (500, (0.0, 0.9), "changed"),
        (500, (0.3, 0.0), "changed"),
        (9000, (0.9, 0.0), "unknown"),
    ],
)
def test_what_callees_hide_on_one_side_is_no_gain(
    load: float, shares: tuple[float, float], verdict: str, is_swapped: bool
) -> None:
    """Stacks lack the caller of functions without a frame pointer, as of those that load calls: it has so many samples
    in the base, and 10,000 of 10,500 on the new side. shares: of the samples without a caller, in base and new."""
    rng = np.random.default_rng(8)
    sides = [
        [replace(run, callerless=int(share * run.n_samples)) for run in named(rng, USUAL, run=10_000, load=samples)]
        for samples, share in zip((load, 10_000), shares, strict=True)
    ]
    comparison = compare(*(sides[::-1] if is_swapped else sides), Options())
    row = next(row for row in comparison.tables_named("total")[0].rows if row.name == "load")
    is_told = any(note.startswith("the caller is missing from ") for note in comparison.notes)
    assert is_told == (abs(shares[0] - shares[1]) > 0.05)
    assert ("unknown" if row.may_be_hidden else "changed") == verdict
    assert row.is_changed == (verdict == "changed")
    assert ("load" in headline(comparison)) == row.is_changed
    if row.may_be_hidden:
        assert "unknown: its callees hide their callers on one side  load" in as_text(comparison, 99, [])
        for gate in ("total('load') > 5%", "total('load') < -5%"):
            assert evaluate(parse(gate), comparison).status == "undecided"
