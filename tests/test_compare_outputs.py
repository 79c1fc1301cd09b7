"""Comparisons in the viewers' formats and as a page: the same differences as in the tables."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from clients import firefox
from pages import Opened, browser, data_of
from readers import perfetto
from streams import fdr

import traceferry
from traceferry.analysis.compare.comparison import Comparison, compare
from traceferry.analysis.compare.runs import Run
from traceferry.analysis.compare.trees import diff_tree
from traceferry.apps.cli import main
from traceferry.exporters.html.comparison import write_comparison
from traceferry.files.output import open_output
from traceferry.model import CALLS, LEAVE, Process, Table, Thread, ThreadData, TraceBuilder
from traceferry.registry import EXPORTERS

SUFFIXES = {"firefox": "diff.json.gz", "perfetto": "diff.pftrace", "html": "diff.html"}
# Nested calls, so that total and self differ; on the new side C takes longer, D is new, E is gone.
BASE = "A 10 B 2000 C 3000 c b E 900 e a A 10 A 500 a a"
NEW = "A 10 B 2000 C 3600 c b D 700 d a A 10 A 400 a a"


@pytest.fixture(scope="module")
def comparison(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    sides: list[list[Run]] = []
    folder = tmp_path_factory.mktemp("recordings")
    for stream in (BASE, NEW):
        sides.append([])
        for nth in range(3):
            path = folder / f"{len(sides)}-{nth}.xray"
            later = " ".join(str(int(word) + nth) if word.isdigit() else word for word in stream.split())
            path.write_bytes(fdr(later).bytes())
            sides[-1].append(Run.of(str(path), traceferry.load(path), with_trees=True))
    return compare(*sides)


@pytest.fixture(scope="module")
def written(comparison: Comparison, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("written")
    for exporter in EXPORTERS:
        if exporter.comparing:
            with open_output(str(folder / SUFFIXES[exporter.name])) as out:
                exporter.comparing()(comparison, out)
    return {name: folder / file for name, file in SUFFIXES.items()}


def by_function(comparison: Comparison) -> dict[str, tuple[float, float]]:
    """Base and new self time of each function, from the tables."""
    (table,) = comparison.tables_named("self")
    return {row.name: (row.base, row.new) for row in table.rows}


def test_the_tree_has_what_the_tables_have(comparison: Comparison) -> None:
    tree = diff_tree(comparison)
    for metric in ("self", "total"):
        (table,) = comparison.tables_named(metric)
        for row in table.rows:
            nodes = [n for n in range(len(tree.parent)) if tree.frames[tree.frame[n]][0] == row.name]
            if metric == "total":
                nodes = [n for n in nodes if not recurses(tree, n, row.name)]
            (measured,) = tree.measured
            having, owns = measured.node, [measured.base, measured.new]
            if metric == "total":
                having, owns = tree.totals(having, *owns)
            amounts = [dict(zip(having, own, strict=True)) for own in owns]
            found = [sum(of.get(n, 0) for n in nodes) for of in amounts]
            assert found == pytest.approx([row.base, row.new]), (metric, row.name)


def recurses(tree: Any, node: int, name: str) -> bool:
    above = tree.parent[node]
    return above >= 0 and (tree.frames[tree.frame[above]][0] == name or recurses(tree, above, name))


def test_joined_nodes_keep_the_sums(comparison: Comparison) -> None:
    tree = diff_tree(comparison)
    for n in range(1, len(tree.parent)):
        small = tree.largest(n)
        assert np.all(small.parent < np.arange(len(small.parent)))
        assert small.n_joined == len(tree.parent) - n
        for before, after in zip(tree.measured, small.measured, strict=True):
            assert after.base.sum() == pytest.approx(before.base.sum())
            assert after.new.sum() == pytest.approx(before.new.sum())


def test_firefox_has_base_new_and_the_comparison_of_each_thread(
    comparison: Comparison, written: dict[str, Path]
) -> None:
    profile = json.loads(gzip.decompress(written["firefox"].read_bytes()))
    assert [t["processType"] for t in profile["threads"]] == ["default", "default", "comparison"]
    base, new, both = (thread["samples"] for thread in profile["threads"])
    assert both["length"] == base["length"] + new["length"]
    assert sum(both["weight"]) == pytest.approx(sum(new["weight"]) - sum(base["weight"]))
    assert both["time"] == sorted(both["time"])
    assert profile["meta"]["initialSelectedThreads"] == [2]


def test_profiler_cli_sees_the_differences_of_the_tables(comparison: Comparison, written: dict[str, Path]) -> None:
    if reason := firefox.available():
        pytest.skip(reason)
    with firefox.ProfilerCli(written["firefox"]) as cli:
        found = {f["name"]: f["selfSamples"] for f in cli.functions("t-2")}
    for name, (base, new) in by_function(comparison).items():
        assert found[name] == pytest.approx((new - base) / 1e6, abs=1e-6), name


def test_profiler_cli_sees_the_difference_of_each_call_path(comparison: Comparison, written: dict[str, Path]) -> None:
    if reason := firefox.available():
        pytest.skip(reason)
    tree = diff_tree(comparison)
    (measured,) = tree.measured
    own = measured.new - measured.base
    paths: list[tuple[str, ...]] = []
    for node, above in enumerate(tree.parent.tolist()):
        paths.append((*(paths[above] if above >= 0 else ()), str(tree.frames[tree.frame[node]][0])))
    self_ = dict(zip(measured.node.tolist(), own.tolist(), strict=True))
    nodes, (amounts,) = tree.totals(measured.node, own)
    total = dict(zip(nodes, amounts, strict=True))
    expected = {path: (total.get(n, 0) / 1e6, self_.get(n, 0) / 1e6) for n, path in enumerate(paths)}
    found: dict[tuple[str, ...], tuple[float, float]] = {}

    def walk(node: dict[str, Any], path: tuple[str, ...]) -> None:
        for child in node["children"]:
            found[*path, child["name"]] = child["totalSamples"], child["selfSamples"]
            walk(child, (*path, child["name"]))

    with firefox.ProfilerCli(written["firefox"]) as cli:
        walk(cli.call_tree("t-2"), ())
    assert found.keys() == expected.keys()
    for path, amounts in expected.items():
        assert found[path] == pytest.approx(amounts, abs=1e-6), path


def test_perfetto_has_them_as_measures_of_one_flamegraph(comparison: Comparison, written: dict[str, Path]) -> None:
    trace = perfetto.read(written["perfetto"])
    assert trace.errors == []
    found: dict[str, dict[str, int]] = {}
    for sample in trace.samples:
        name = perfetto.names_of(sample.callstack)[0]
        of_function = found.setdefault(str(name), {})
        for counter, (_, value) in sample.counters.items():
            of_function[counter] = of_function.get(counter, 0) + value
    for name, (base, new) in by_function(comparison).items():
        assert found[name]["new, ns"] == pytest.approx(new, abs=2), name
        assert found[name]["base, ns"] == pytest.approx(base, abs=2), name
        assert found[name]["grew by, ns"] - found[name]["shrank by, ns"] == pytest.approx(new - base, abs=4)


# ---------------------------------------------------------------- the page


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with browser() as opened:
        yield opened


def test_the_page_holds_the_tables(comparison: Comparison, written: dict[str, Path]) -> None:
    data = data_of(written["html"])
    (table,) = (t for t in data["tables"] if t["metric"] == "self")
    assert {row["name"]: (row["base"], row["new"]) for row in table["rows"]} == by_function(comparison)


NAMED = [("constructor", "a.c", 1), ("toString", "a.c", 1), ("__proto__", "a.c", 1), ("same", "a.c", 10),
         ("same", "b.c", 10), ("other(int) const", "b.c", 10)]  # fmt: skip


def named_run(is_slow: bool, nth: int) -> Run:
    """A call of each function; `same` of a.c may take twice as long."""
    trace = TraceBuilder()
    columns: dict[str, list[int]] = {"ts": [0], "frame": [], "flags": []}
    for name, file, weight in NAMED:
        source = trace.sources.intern(path=trace.strings.intern(file))
        frame = trace.frames.intern(func=trace.funcs.intern(name=trace.strings.intern(name), source=source))
        duration = (10_000 * weight + nth) * (2 if is_slow and (name, file) == ("same", "a.c") else 1)
        columns["ts"] += [columns["ts"][-1] + duration] * 2
        columns["frame"] += [frame, frame]
        columns["flags"] += [0, LEAVE]
    end = columns["ts"].pop()
    data = ThreadData(calls=Table(CALLS, columns))
    trace.processes.append(Process(1, "app", 0, end, [Thread(1, "main", True, 0, end, lambda _: data)]))
    trace.bounds = (0, end)
    return Run.of(f"{nth}", trace, with_trees=True)


def test_a_frame_of_the_page_has_the_verdicts_of_its_own_function(tmp_path: Path, chromium: Any) -> None:
    """Also where two have one name, or a name that every object has."""
    compared = compare(*([named_run(is_slow, nth) for nth in range(4)] for is_slow in (False, True)))
    with open_output(str(tmp_path / "diff.html")) as out:
        write_comparison(compared, out)
    frames = data_of(tmp_path / "diff.html")["frames"]
    found = dict(zip(zip(frames["name"], frames["place"], strict=True), frames["verdicts"], strict=True))
    changed = ["self time slower", "total time slower"]
    assert found == {(name, file): changed if (name, file) == ("same", "a.c") else [] for name, file, _ in NAMED}
    assert dict(zip(frames["name"], frames["short"], strict=True)) == {
        name: "other" if name == "other(int) const" else "" for name, *_ in NAMED
    }
    context = chromium.new_context()
    shown = Opened(context, (tmp_path / "diff.html").as_uri() + "#measure=constructor&threads=map")
    texts = shown.eval(
        "[...page.tree.parent.keys()].map(node => { page.graph.on.select(node); return page.detail.textContent; })"
    )
    assert sum("the function, in all: self time slower, total time slower · a.c" in text for text in texts) == 1
    assert sum("no significant change of the function in all" in text for text in texts) == len(NAMED) - 1
    assert sum(text.startswith("other(int) const") for text in texts) == 1
    labels = shown.eval("[...page.tree.parent.keys()].map(node => page.tree.nameOf(node))")
    assert sum(label.startswith("other") and "(" not in label for label in labels) == 1
    assert shown.problems == []
    context.close()


def test_the_page_in_a_browser(written: dict[str, Path], chromium: Any) -> None:
    context = chromium.new_context(viewport={"width": 1280, "height": 900})
    shown = Opened(context, written["html"].as_uri())
    # The verdict is the title, figures are in cards, and sentences below the title.
    assert re.fullmatch(r"N-N: [a-z ]+", shown.page.inner_text("h1"))
    assert max(len(text) for text in shown.page.locator(".cards dd").all_inner_texts()) < 40
    assert shown.page.inner_text(".what")
    assert " The graph is " in shown.page.inner_text(".facts")
    for mode in ("base", "difference", "new"):
        shown.page.click(f"[data-value={mode}]")
        shown.settle()
        names = shown.eval(
            "page.graph.rows.flat().map(({ node }) => (node < 0 ? 'all' : page.tree.nameOf(node)))", None
        )
        assert any(name.startswith("function 3 ") for name in names)
        assert ("function 4  new" in names) == (mode != "base")
        assert ("function 5  gone" in names) == (mode != "new")
    shown.page.click("a[data-tab=changes]")
    shown.settle()
    assert "function 3" in shown.page.inner_text("#changes")
    assert shown.page.locator("#changes svg.dots").count() > 0
    shown.page.click("a[data-tab=runs]")
    shown.settle()
    assert shown.page.locator("#runs tbody tr").count() >= 6
    assert shown.problems == []
    context.close()


PLACES = {
    "recordings": ["base/1.xray", "base/2.xray", "new/1.xray"],
    "one in each folder": ["base/a/app.xray", "base/b/app.xray", "new/a/app.xray"],
}


@pytest.mark.parametrize("paths", PLACES.values(), ids=PLACES)
@pytest.mark.parametrize("words", [["base", "new"], ["--base", "base", "--new", "new"]], ids=" ".join)
def test_each_recording_of_a_folder_is_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], paths: list[str],
    words: list[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    for path in paths:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_bytes(fdr(BASE).bytes())
    assert main(["compare", *words, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [[run["path"] for run in told[side]] for side in ("base", "new")] == [paths[:2], paths[2:]]


def test_files_of_two_folders_are_told_as_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("base", "new ones"):
        Path(folder).mkdir()
    assert main(["compare", "base/1.xray", "base/2.xray", "new ones/1.xray"]) == 2
    assert "each recording is a run: traceferry compare base 'new ones'\n" in capsys.readouterr().err
    assert main(["compare", "1.xray", "2.xray", "base/1.xray"]) == 2
    assert "for several runs: --base A... --new B...\n" in capsys.readouterr().err


def test_a_folder_without_a_recording_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pyarrow", reason="what tells a data set from a folder needs the extra fleet")
    (tmp_path / "new.xray").write_bytes(fdr(NEW).bytes())
    (tmp_path / "base").mkdir()
    assert main(["compare", str(tmp_path / "base"), str(tmp_path / "new.xray")]) == 2
    assert "a folder without a recording in it" in capsys.readouterr().err
