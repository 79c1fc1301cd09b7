"""Many recordings: which are found, how the work is divided, and that the tables have what `info` has."""

from __future__ import annotations

import asyncio
import gc
import importlib.metadata
import importlib.util
import json
import os
import random
import re
import subprocess
import sys
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pytest
from builders.perf_data import PerfData
from conftest import REPO
from fleets import LIB, START, recordings

for _needed in ("dask", "distributed", "fsspec", "pyarrow", "duckdb"):
    if importlib.util.find_spec(_needed) is None:
        pytest.skip(f"{_needed} is not installed: pip install 'traceferry[fleet]' duckdb", allow_module_level=True)

import distributed
import fsspec
import numpy as np
import pyarrow
from distributed.scheduler import KilledWorker
from pyarrow import csv, parquet
from support import NAMELESS

import traceferry
from traceferry.analysis.compare.comparison import compare
from traceferry.analysis.compare.trees import diff_tree
from traceferry.analysis.info.summary import summarize
from traceferry.analysis.totals.portable import Amounts, Totals, Tree
from traceferry.apps import cli
from traceferry.apps.fleet import storage
from traceferry.apps.fleet.dataset import combinations
from traceferry.apps.fleet.forest import MEASURES
from traceferry.apps.fleet.inputs import Found, Recording, find
from traceferry.apps.fleet.inputs import _inside as inside
from traceferry.apps.fleet.merge import merged_trace
from traceferry.apps.fleet.parts import Share, joined, merged_parts, write_part
from traceferry.apps.fleet.plan import Node, plan
from traceferry.apps.fleet.run import Pool
from traceferry.apps.fleet.run import _with_symbols as with_symbols
from traceferry.apps.fleet.run import run as run_all
from traceferry.apps.fleet.sides import runs_of
from traceferry.apps.fleet.tables import COLUMNS, rows_of, write_tables
from traceferry.apps.fleet.work import Aggregation, Conversion, Reading, Result, result_of, row_of
from traceferry.apps.fleet.work import _names_beside as names_beside
from traceferry.common.errors import FormatError, UsageError
from traceferry.model import laws

FIXTURES = REPO / "fixtures"
TRACEFERRY = Path(sys.executable).with_name("traceferry")
SMALL = 24
WORK = Aggregation(Reading(), tuple(COLUMNS))


def run(*words: object, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [str(TRACEFERRY), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment}, timeout=300)


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


class WorkerEnded(BaseException):
    """A worker process is gone."""


class OneWorker:
    """A client with one worker that does one task after the other. As Dask's scheduler does, it blames all that the
    worker has been given for its end."""

    def __init__(self) -> None:
        self.given: list[tuple[Any, Callable[[], Any]]] = []

    def sync(self, run: Callable[..., Any], *arguments: Any) -> None:
        asyncio.run(run(*arguments))

    def submit(self, *task: Any, pure: bool, priority: int) -> Any:
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        self.given.append((future, partial(*task)))
        if len(self.given) == 1:
            loop.call_later(0.01, self.work)
        return future

    def work(self) -> None:
        while self.given:
            future, task = self.given[0]
            try:
                done = task()
            except WorkerEnded:
                blamed, self.given = self.given, []
                for each, _ in blamed:
                    each.set_exception(KilledWorker("leaf", None, 3))
            else:
                self.given.pop(0)
                future.set_result(done)


@pytest.fixture
def aggregate(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """The command in this process, without workers of its own: for what it writes, whoever works."""
    monkeypatch.setattr("traceferry.apps.fleet.run.cluster", lambda *_: nullcontext(OneWorker()))
    monkeypatch.setattr("traceferry.apps.fleet.tasks._settle", lambda: None)  # which is for worker processes

    def aggregated(*words: object) -> None:
        assert cli.main(["aggregate", *map(str, words), "--quiet"]) == 0

    return aggregated


# ---------------------------------------------------------------- what is found


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in (
        "web/c1/a.xray", "web/c1/b.xray", "web/c2/a.xray", "db/c1/a.mlpd", "db/c1/notes.txt", "jit/perf.data",
        "jit/jit-7.dump", "jit/perf-7.map", "dumps/jit-8.dump.zst", "folder/rec/data", "folder/rec/data.0",
        "folder/rec/data.10", "folder/rec/data.2", "folder/.hidden/x.xray",
    ):  # fmt: skip
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(name.encode())
    return tmp_path


def found(tree: Path, *patterns: str) -> list[tuple[str, ...]]:
    """(labels..., the files without the folder of all)"""
    return [
        (*each.labels, *(str(Path(url).relative_to(tree)) for url in each.urls))
        for each in find([str(tree / pattern) for pattern in patterns]).recordings
    ]


PATTERNS: dict[str, list[tuple[str, ...]]] = {
    "web/c1/a.xray": [("web/c1/a.xray",)],
    "*/c1/a.*": [("db/c1/a.mlpd",), ("web/c1/a.xray",)],
    "web/**/*.xray": [("web/c1/a.xray",), ("web/c1/b.xray",), ("web/c2/a.xray",)],
    "web/c[2-3]/?.xray": [("web/c2/a.xray",)],
    "{service}/c1/a.*": [("db", "db/c1/a.mlpd"), ("web", "web/c1/a.xray")],
    "{service}/{commit}/{host}.xray": [
        ("c1", "a", "web", "web/c1/a.xray"), ("c1", "b", "web", "web/c1/b.xray"), ("c2", "a", "web", "web/c2/a.xray"),
    ],
    "web/{x}1/{y}.xray": [("c", "a", "web/c1/a.xray"), ("c", "b", "web/c1/b.xray")],
    "jit": [("jit/perf.data",)],
    "jit/*": [("jit/perf.data",)],
    "jit/*.dump": [("jit/jit-7.dump",)],
    "dumps": [("dumps/jit-8.dump.zst",)],
    "folder": [("folder/rec/data", "folder/rec/data.0", "folder/rec/data.2", "folder/rec/data.10")],
}  # fmt: skip


@pytest.mark.parametrize("pattern", PATTERNS)
def test_patterns(pattern: str, tree: Path) -> None:
    assert found(tree, pattern) == PATTERNS[pattern]


def test_what_a_folder_holds_besides_recordings_is_told(tree: Path) -> None:
    """The program that recordings are named after; what convert may have written; not a profile of another tool."""
    folder = tree / "mixed"
    folder.mkdir()
    files = {
        "app": b"\x7fELF\2\1",
        "xray-log.app.A1b2C3": b"x",
        "a.speedscope.json": b"{}",
        "a.pb.gz": b"",
        "b.pb.gz": b"",
    }
    for name, data in files.items():
        (folder / name).write_bytes(data)
    assert found(tree, "mixed") == [("mixed/a.speedscope.json",), ("mixed/xray-log.app.A1b2C3",)]
    assert find([str(folder)]).notes == (
        f"{folder}/app: a program or library, which names the functions of a recording",
        f"left out: a.pb.gz may be what convert wrote: name such files by their suffix, '{folder}/*.pb.gz', "
        "and 1 more like it",
    )


def test_a_recording_that_two_patterns_match_is_one(tree: Path) -> None:
    assert found(tree, "web/c1/*", "web/*/a.xray") == [("web/c1/a.xray",), ("web/c1/b.xray",), ("web/c2/a.xray",)]


def test_inputs_that_overlap(tree: Path) -> None:
    everything = found(tree, "web")
    assert found(tree, "web", "web/c1/*", "web/c1/a.xray", "web/../web//./c1", "./web") == everything


def linked(tree: Path) -> None:
    """To a file from another folder, to a folder, to the folder that it is in, to nothing, and to itself."""
    links = {"db/c1/l.xray": "web/c1/a.xray", "links": "web", "web/c2/up": "web", "web/c1/gone.xray": "nowhere"}
    for name, to in {**links, "web/c1/self.xray": "web/c1/self.xray"}.items():
        (tree / name).symlink_to(tree / to)


def test_links_are_followed_in_folders_and_patterns_alike(tree: Path) -> None:
    linked(tree)
    of_web = [(name, f"web/c1/{name}.xray") for name in ("a", "b", "gone", "self")]
    assert found(tree, "web/c1/{name}.xray") == of_web
    assert found(tree, "web/c1") == [(name,) for _, name in of_web]
    assert found(tree, "links/*/a.xray") == [("links/c1/a.xray",), ("links/c2/a.xray",)]
    assert found(tree, "links") == found(tree, "links/**/*") == [
        *((name.replace("web", "links"),) for _, name in of_web), ("links/c2/a.xray",),
    ]  # fmt: skip
    sizes = {Path(each.urls[0]).name: each.size for each in find([str(tree / "web/c1")]).recordings}
    assert sizes == {"a.xray": 13, "b.xray": 13, "gone.xray": -1, "self.xray": -1}


def test_a_recording_is_found_once_under_all_its_labels(tree: Path) -> None:
    linked(tree)
    twice = find([str(tree / "{service}/c1/a.xray"), str(tree / "{service}/c1/l.xray"), str(tree / "{service}/c1/b.*")])
    names = [(each.labels, Path(each.urls[0]).relative_to(tree).as_posix()) for each in twice.recordings]
    assert names == [
        (("db",), "db/c1/l.xray"), (("links",), "links/c1/a.xray"), (("links",), "links/c1/b.xray"),
        (("web",), "web/c1/a.xray"), (("web",), "web/c1/b.xray"),
    ]  # fmt: skip
    assert len({each.key for each in twice.recordings}) == 2
    assert twice.notes == ()
    once = find([str(tree)])
    keys = [each.key for each in once.recordings]
    assert len(keys) == len(set(keys))
    assert str(tree / "web/c1/a.xray") in {each.urls[0] for each in once.recordings}
    assert f"{tree}/db/c1/l.xray: the same file as {tree}/web/c1/a.xray, which is taken once" in once.notes


def test_a_change_beside_a_recording_changes_its_identity(tree: Path) -> None:
    """A jitdump or a map that appears, changes or goes; whatever the way in which the recording was named."""
    (tree / "m.csv").write_text("recording\njit/perf.data\n")
    ways: dict[str, Callable[[], Found]] = {
        "a file": lambda: find([str(tree / "jit/perf.data")]),
        "a folder": lambda: find([str(tree / "jit")]),
        "a pattern": lambda: find([str(tree / "*/perf.data")]),
        "a manifest": lambda: find([], str(tree / "m.csv")),
    }

    def identities() -> list[str]:
        return [recording.identity for way in ways.values() for recording in way().recordings]

    seen = [identities()]
    for name, content in {"jit-9.dump": b"1", "perf-9.map.gz": b"2", "jit-7.dump": b"changed", ".notes": b"4"}.items():
        (tree / "jit" / name).write_bytes(content)
        (tree / "web/c1" / name).write_bytes(content)
        seen.append(identities())
    (tree / "jit/jit-9.dump").unlink()
    seen.append(identities())
    assert [len(set(each)) for each in seen] == [1] * 6
    assert seen[3] == seen[4]
    assert len({each[0] for each in seen}) == 5


def test_a_folder_that_perf_wrote_is_one_recording(tree: Path) -> None:
    """Of a pattern, too. What belongs to it lies beside it, not in it."""
    wanted = [("folder/rec/data", "folder/rec/data.0", "folder/rec/data.2", "folder/rec/data.10")]
    assert found(tree, "folder/*") == found(tree, "folder/r?c/data*") == wanted
    assert found(tree, "folder/{name}") == [("rec", *wanted[0])]
    [before] = find([str(tree / "folder")]).recordings
    (tree / "folder/rec/jit-1.dump").write_bytes(b"")
    (tree / "folder/jit-2.dump").write_bytes(b"")
    [after] = find([str(tree / "folder/*/data*")]).recordings
    assert before.identity != after.identity


def test_what_was_written_before_is_no_recording(tree: Path) -> None:
    for name in ("stats/recordings/part-00000.parquet", "web/functions/part-00012.parquet", "web/c1/a.xray.json.gz",
                 "web/b.html", "web/c2/a.xray.gecko.json", "web/a.pftrace", "web/_parts/a.part"):  # fmt: skip
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_bytes(b"")
    (tree / "web/part-00000.parquet").write_bytes(b"")
    mine = [("web/c1/a.xray",), ("web/c1/b.xray",), ("web/c2/a.xray",), ("web/part-00000.parquet",)]
    assert found(tree, "web") == found(tree, "web/**") == mine
    assert found(tree, "web/*.html") == [("web/b.html",)]
    with pytest.raises(UsageError, match=r"no recording has such a name$"):
        found(tree, "stats")
    (tree / "profiles").mkdir()
    (tree / "profiles/a.json.gz").write_bytes(b"")
    with pytest.raises(UsageError, match=r"no recording has such a name; a\.json\.gz may be .*/profiles/\*\.json\.gz'"):
        found(tree, "profiles")


def test_a_name_with_the_characters_of_patterns(tree: Path) -> None:
    (tree / "a[1]{b}*.xray").write_bytes(b"")
    assert found(tree, "a[1]{b}*.xray") == [("a[1]{b}*.xray",)]


INSIDE = {
    "../runs/x": "runs/x", "a/../../b": "b", "/etc/x": "etc/x", "a/./b//c/": "a/b/c", "..": "", "../../..": "",
    "a/..b/...": "a/..b/...", "a/b/../../../../c": "c",
}  # fmt: skip


def test_outputs_stay_inside_of_their_folder(tmp_path: Path) -> None:
    (tmp_path / "job").mkdir()
    names = [*INSIDE, "memory://b/../../x", "zip://../x::memory://b/y.zip"]
    (tmp_path / "job/m.jsonl").write_text("".join(json.dumps({"recording": name}) + "\n" for name in names))
    for recording in find([], str(tmp_path / "job/m.jsonl")).recordings:
        assert not {"", ".", ".."} & set(recording.path.split("/")) or recording.path == ""
    assert {name: inside(name) for name in INSIDE} == INSIDE


def test_two_recordings_that_would_become_one_file(tmp_path: Path) -> None:
    of = Found((), tuple(Recording((url,), (), 1, "", inside(url)) for url in ("../runs/x", "runs/x")))
    work = Conversion(Reading(), str(tmp_path), "firefox", ".json")
    with pytest.raises(UsageError, match=r"\.\./runs/x and runs/x would both become .*/runs/x\.json"):
        run_all(of, (), work, str(tmp_path), Pool(1))


def test_a_recording_of_several_labels_is_added_up_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is a row for each label, and in the sums of each; where the tables do not have the label, once."""
    monkeypatch.setattr("traceferry.apps.fleet.run.cluster", in_this_process)
    monkeypatch.setattr("traceferry.apps.fleet.tasks._settle", lambda: None)  # which is for worker processes
    recording = FIXTURES / "mono/mono-6.8/calls.mlpd.zst"
    (tmp_path / "m.csv").write_text(f"recording,week\n{recording},1\n{recording},2\n")
    of = find([], str(tmp_path / "m.csv"))
    for by, factor in (((), 1), (("week",), 2)):
        output = tmp_path / f"by{len(by)}"
        run_all(of, by, WORK, str(output), Pool(1), leaf_size=1, quiet=True)
        rows = parquet.read_table(output / "recordings").to_pylist()
        assert [(row["week"], row["status"]) for row in rows] == [("1", "done"), ("2", "done")]
        calls = sum(parquet.read_table(output / "functions").column("calls").to_pylist())
        assert calls == factor * sum(result_of(WORK, of.recordings[0], of.labels).totals.tree.column(("calls",)))


@pytest.mark.parametrize(
    ("patterns", "message"),
    [
        (["*.none"], "no recording has such a name"),
        (["none.xray"], "no such file or folder"),
        (["fifo"], "not a regular file"),
        (["{a}/c1/a.xray", "web/{b}/a.xray"], "different labels: .*: a, .*: b"),
    ],
)
def test_inputs_that_cannot_be(patterns: list[str], message: str, tree: Path) -> None:
    os.mkfifo(tree / "fifo")
    with pytest.raises(UsageError, match=message):
        found(tree, *patterns)


MANIFESTS: dict[str, Callable[[Path, dict[str, list[Any]]], object]] = {
    "m.csv": lambda path, columns: csv.write_csv(pyarrow.table(columns), str(path)),
    "m.parquet": lambda path, columns: parquet.write_table(pyarrow.table(columns), str(path)),
    "m.jsonl": lambda path, columns: path.write_text(
        "\n".join(json.dumps(dict(zip(columns, row, strict=True))) for row in zip(*columns.values(), strict=True))
    ),
}


@pytest.mark.parametrize("name", MANIFESTS)
def test_a_manifest_names_recordings_and_labels(name: str, tree: Path) -> None:
    columns = {"recording": ["web/c1/a.xray", str(tree / "db/c1/a.mlpd"), "gone.xray"], "week": [3, 4, 4]}
    MANIFESTS[name](tree / name, columns)
    listed = find([], str(tree / name))
    assert listed.labels == ("week",)
    assert [(r.labels, Path(r.urls[0]).relative_to(tree).as_posix(), r.size) for r in listed.recordings] == [
        (("3",), "web/c1/a.xray", 13), (("4",), "db/c1/a.mlpd", 12), (("4",), "gone.xray", -1),
    ]  # fmt: skip


def test_a_store_that_cannot_be_asked() -> None:
    with pytest.raises(UsageError, match=r"nosuch://x/\*: .*nosuch"):
        find(["nosuch://x/*"])


def test_a_manifest_may_name_a_folder_that_perf_wrote(tree: Path) -> None:
    os.mkfifo(tree / "fifo")
    (tree / "m.csv").write_text("recording\nfolder/rec\nfolder\nfifo\n")
    of = find([], str(tree / "m.csv"))
    assert sorted(len(each.urls) for each in of.recordings) == [1, 1, 4]
    rows = [result_of(WORK, each, ()).row for each in of.recordings if len(each.urls) == 1]
    assert {row["status"] for row in rows} == {"refused"}


def test_a_manifest_may_name_the_files_of_one_recording(tree: Path) -> None:
    (tree / "m.jsonl").write_text('{"recording": ["web/c1/a.xray", "web/c1/b.xray"]}\n')
    assert [len(each.urls) for each in find([], str(tree / "m.jsonl")).recordings] == [2]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n", "no column 'recording'"),
        ("recording\n", "lists no recordings"),
        ("", "lists no recordings"),
        ("recording\na,b\n", "row 1 has more values than there are columns"),
        ("recording,a\n,1\n", "row 1 has no recording"),
    ],
)
def test_manifests_that_cannot_be(text: str, message: str, tree: Path) -> None:
    (tree / "m.csv").write_text(text)
    with pytest.raises(UsageError, match=message):
        find([], str(tree / "m.csv"))


# ---------------------------------------------------------------- how the work is divided


def many(n: int) -> Found:
    return Found(
        ("host", "week"),
        tuple(Recording((f"/r/{i}",), (f"h{i}", f"w{i % 3}"), 1, f"e{i}", str(i)) for i in range(n)),
    )


def leaves(nodes: Iterator[Node] | list[Node]) -> Iterator[Node]:
    for node in nodes:
        yield from leaves(list(node.children)) if node.children else [node]


def shards(of: Found, by: tuple[str, ...], size: int, description: str = "d") -> list[Any]:
    return list(plan(of, by, description, size))


@pytest.mark.parametrize("by", [(), ("week",), ("host",)])
def test_files_do_not_depend_on_the_size_of_leaves(by: tuple[str, ...]) -> None:
    plans = [shards(many(1000), by, size) for size in (1, 7, 32)]
    assert len({tuple(shard.key for shard in each) for each in plans}) == 1
    for each in plans:
        inside = [r.urls[0] for shard in each for leaf in leaves(list(shard.parts)) for r in leaf.recordings]
        assert sorted(inside) == sorted(f"/r/{i}" for i in range(1000))
        assert all(len(shard.parts) <= 16 for shard in each)


def test_a_new_recording_changes_one_leaf() -> None:
    before, after = ({n.key for s in shards(many(n), (), 8) for n in leaves(list(s.parts))} for n in (500, 501))
    assert len(before - after) <= 1
    assert len(after - before) <= 2


def test_results_are_known_by_content_options_and_labels() -> None:
    first = shards(many(9), (), 4)[0].key
    of = many(9)
    changed = Found(of.labels, (*of.recordings[:-1], Recording(("/r/8",), ("h8", "w2"), 1, "other", "8")))
    assert len({first, shards(changed, (), 4)[0].key, shards(of, (), 4, "e")[0].key,
                shards(of, ("week",), 4)[0].key}) == 4  # fmt: skip


# ---------------------------------------------------------------- totals


def shares(n: int, folder: Path) -> list[Share]:
    """Of recordings in memory, each by itself."""
    found = []
    for name, data in recordings(n):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        labels = tuple(Path(name).parts[:2])
        recording = Recording((str(path),), labels, len(data), "", name)
        result = result_of(WORK, recording, ("service", "commit"))
        assert result.row["status"] == "done", result.row
        row = {"service": labels[0], "commit": labels[1], **result.row}
        found.append(Share(labels, result.totals, (row,)))
    return found


def listed(share: Share) -> dict[str, list[Any]]:
    """All tables, as lists."""
    found: dict[str, list[Any]] = {}
    for table in COLUMNS:
        for name, values in rows_of(table, share, ("service", "commit")).items():
            found[f"{table}.{name}"] = list(values)
    return found


def test_parts_merge_to_the_same_in_any_grouping(tmp_path: Path) -> None:
    each = [Share((), share.totals, share.rows) for share in shares(SMALL, tmp_path)]
    whole = listed(joined(each))
    for nth, groups in enumerate(([each[:5], each[5:]], [each[::2], each[1::2]], [[share] for share in each[::-1]])):
        paths = []
        for number, group in enumerate(groups):
            paths.append(tmp_path / f"{nth}-{number}")
            write_part(paths[-1], [joined(group)])
        [together] = merged_parts(paths)
        assert listed(together) == whole


@pytest.fixture(scope="module")
def data_set(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of real recordings of each format, by program: `aggregate` has written it."""
    folder = tmp_path_factory.mktemp("fleet")
    patterns = [FIXTURES / "mono" / "{program}" / "[chs]*.mlpd.zst", FIXTURES / "jit" / "{program}" / "*.data.zst",
                FIXTURES / "xray" / "{program}" / "fdr-*-p*.xray"]  # fmt: skip
    done = run("aggregate", *patterns, "-o", folder / "out", "--by", "program", "--workers", 2, "--quiet")
    assert (done.returncode, done.stderr) == (0, "")
    return folder / "out"


@pytest.fixture(scope="module")
def infos(data_set: Path) -> dict[str, list[dict[str, Any]]]:
    """By program: what `info --json` has of each recording."""
    by_program: dict[str, list[dict[str, Any]]] = {}
    with pytest.MonkeyPatch.context() as patched:
        # The workers see the debug files of this machine.
        patched.setattr("traceferry.symbolication.debug_files.SYSTEM", os.sep)
        for row in parquet.read_table(data_set / "recordings").to_pylist():
            by_program.setdefault(row["program"], []).append(summarize(traceferry.load(row["recording"]), 10**6))
    # The work on each recording ends with a look for garbage, through all of this.
    gc.collect()
    gc.freeze()
    return by_program


AMOUNTS = ("calls", "self_ns", "total_ns", "samples", "total_samples")


def test_functions_have_the_sums_of_what_info_says(data_set: Path, infos: dict[str, list[dict[str, Any]]]) -> None:
    expected: Counter[Any] = Counter()
    for program, summaries in infos.items():
        for summary in summaries:
            for function in summary["functions"]["top"]:
                for amount in AMOUNTS if not NAMELESS.fullmatch(function["name"]) else ():
                    expected[program, function["name"], amount] += function[amount]
    got: Counter[Any] = Counter()
    for row in parquet.read_table(data_set / "functions").to_pylist():
        for amount in AMOUNTS if not NAMELESS.fullmatch(row["function"]) else ():
            got[row["program"], row["function"], amount] += row[amount]
    assert +got == +expected
    assert {key[2] for key in +got} == set(AMOUNTS)


def test_each_event_has_the_sums_of_what_info_says(tmp_path: Path) -> None:
    """In the tables and in the profile of all; of two recordings, of which one has an event more."""
    for nth in range(2):
        kinds = "IP|TID|TIME|CALLCHAIN|PERIOD|IDENTIFIER"
        data = PerfData(start=START).event("cycles", 0, 0, period=1000, sample_type=kinds)
        data.event("page-faults", 1, 2, period=3, sample_type=kinds)
        if nth:
            data.event("cache-misses", 0, 3, period=7, sample_type=kinds)
        data.comm(7, 7, "server", ts=START).mmap2(7, 7, LIB, 0x10000, 0, "/usr/lib/libserver.so", ts=START)
        for at in range(30):
            chain = [LIB + 16 * (at % 5), LIB + 0x100]
            event = at % (2 + nth)
            data.sample(7, 7, START + at, chain[0], chain, event=event, period=(1000, 3, 7)[event])
        (tmp_path / f"{nth}.data").write_bytes(data.bytes())
    out, profile = tmp_path / "out", tmp_path / "all.json"
    done = run("aggregate", tmp_path / "{nth}.data", "-o", out, "--by", "nth", "--merge", profile, "--quiet")
    assert done.returncode == 0, done.stderr
    expected: Counter[Any] = Counter()
    for nth in range(2):
        for event in summarize(traceferry.load(tmp_path / f"{nth}.data"))["events"]["recorded"]:
            expected.update({(str(nth), event["name"], key): event[key] for key in ("samples", "weight")})
    tables = {name: parquet.read_table(out / name).to_pylist() for name in ("events", "functions", "recordings")}
    got = Counter(
        {(row["nth"], row["event"], key): row[key] for row in tables["events"] for key in ("samples", "weight")}
    )
    assert got == expected
    told = {(row["nth"], each["event"], key): each[key] for row in tables["recordings"]
            for each in json.loads(row["events"]) for key in ("samples", "weight")}  # fmt: skip
    assert told == dict(expected)
    weights: Counter[Any] = Counter()
    for row in tables["functions"]:
        weights[row["nth"], row["event"], "weight"] += row["weight"]
        # Samples are those of the main event, so that their sum is how many there are.
        weights["samples"] += row["samples"]
    assert weights.pop("samples") == sum(expected[str(nth), "cycles", "samples"] for nth in range(2))
    assert weights == Counter({key: n for key, n in expected.items() if key[2] == "weight"})
    of_profile: Counter[Any] = Counter()
    for thread in json.loads(profile.read_text())["threads"]:
        of_profile[thread["name"].partition(": ")[2]] += sum(thread["samples"]["weight"])
    assert of_profile["page-faults"] == sum(expected[str(nth), "page-faults", "weight"] for nth in range(2)) > 0
    assert of_profile["cache-misses"] == expected["1", "cache-misses", "weight"] > 0
    runs = runs_of(str(out), True)
    found = compare(runs[:1], runs[1:])
    (faults,) = found.tables_named("page-faults")
    assert sum(row.amounts[0] for row in faults.rows) == expected["0", "page-faults", "weight"]
    assert faults.amounts.per_sample is not None
    assert faults.amounts.per_sample.tolist() == [3, 3]
    assert "cache-misses: recorded by the new side only, and not compared" in found.notes


def test_allocations_markers_and_losses_have_the_sums_of_what_info_says(
    data_set: Path, infos: dict[str, list[dict[str, Any]]]
) -> None:
    expected: Counter[Any] = Counter()
    for summary in (each for of in infos.values() for each in of):
        for process in summary["processes"]:
            for thread in process["threads"]:
                expected.update({("marker", name): n for name, n in thread["markers"].items()})
                expected["bytes"] += thread["allocations"]["bytes"]
                expected["allocations"] += thread["allocations"]["count"]
        for issue in summary["issues"]:
            if issue["severity"] != "info":
                expected["loss", issue["kind"]] += issue["count"]
    got: Counter[Any] = Counter()
    for row in parquet.read_table(data_set / "markers").to_pylist():
        got["marker", row["marker"]] += row["count"]
        assert sum(row["bucket_count"]) == row["count"]
    for row in parquet.read_table(data_set / "allocations").to_pylist():
        got["bytes"] += row["bytes"]
        got["allocations"] += row["count"]
    for row in parquet.read_table(data_set / "losses").to_pylist():
        got["loss", row["loss"]] += row["count"]
    assert +got == +expected


def test_stacks_add_up_to_functions(data_set: Path) -> None:
    """A tree: parents come before their children in one combination, and own amounts add up to the functions'."""
    own: Counter[Any] = Counter()
    for row in parquet.read_table(data_set / "stacks").to_pylist():
        assert row["parent"] is None or row["parent"] < row["node"]
        assert (row["parent"] is None) == (row["depth"] == 0)
        for name, amount in (("self_ns", "time_ns"), ("calls", "calls"), ("samples", "samples"), ("weight", "weight")):
            own[row["program"], row["process"], row["thread"], row["function"], row["tier"], name] += row[amount]
    functions: Counter[Any] = Counter()
    for row in parquet.read_table(data_set / "functions").to_pylist():
        for name in ("self_ns", "calls", "samples", "weight"):
            functions[row["program"], row["process"], row["thread"], row["function"], row["tier"], name] += row[name]
    assert +own == +functions


def test_a_data_set_is_read_back_as_it_was_written(data_set: Path) -> None:
    for combination in combinations(str(data_set)):
        share = Share(tuple(combination.labels.values()), combination.totals, tuple(combination.recordings))
        tables = {table: parquet.read_table(data_set / table).to_pylist() for table in COLUMNS}
        for table, of_table in tables.items():
            mine = [row for row in of_table if row["program"] == combination.labels["program"]]
            again = rows_of(table, share, ("program",) if table == "recordings" else ())
            for name, values in again.items():
                if name in COLUMNS[table]:
                    assert list(values) == [row[name] for row in mine], (table, name)


def written(folder: Path, *shares: Share) -> str:
    """A data set of combinations of the label `program`, without recordings but one of each."""
    row = row_of(Recording((str(folder / "r"),), (), 1, "", "r"))
    named = [Share(each.labels, each.totals, ({**row, "program": each.labels[0]},)) for each in shares]
    for table, path in write_tables(folder, named, ("program",), ("program",), "key", tuple(COLUMNS)).items():
        storage.put(path, str(folder / "set" / table / "part-00000.parquet"))
    return str(folder / "set")


def test_a_site_of_which_only_the_file_is_known_is_read_back(tmp_path: Path) -> None:
    none = Totals()
    sites = {("", "/src/a.c", 7, "", "Node"): [2, 64, 0, 0], ("f", "", 0, "", "Node"): [1, 32, 0, 0]}
    totals = replace(
        none,
        sites=none.sites.of([*sites], [*sites.values()]),
        classes=none.classes.of([("Node",)], [[5, 160, 0, 0]]),
    )
    [found] = combinations(written(tmp_path, Share(("p",), totals, ())))
    assert dict(zip(found.totals.sites.keys, found.totals.sites.amounts.tolist(), strict=True)) == sites
    assert found.totals.classes.amounts.tolist() == [[5, 160, 0, 0]]


# ---------------------------------------------------------------- what is done with a data set


@pytest.mark.parametrize("suffix", [".json.gz", ".gecko.json", ".pftrace", ".html"])
def test_one_profile_of_all_in_every_format(suffix: str, data_set: Path, tmp_path: Path) -> None:
    trace = merged_trace(str(data_set), "runs")
    assert laws.check(trace) == []
    traceferry.save(trace, tmp_path / f"all{suffix}")
    assert (tmp_path / f"all{suffix}").stat().st_size > 10_000


def test_the_profile_has_the_amounts_of_the_tables(data_set: Path) -> None:
    """Of calls, samples and allocations, by process of the profile."""
    trace = merged_trace(str(data_set), "runs")
    got: Counter[Any] = Counter()
    for process, thread in trace.threads:
        program = re.match(r"program=(\S+) ", process.name)[1]  # type: ignore[index]
        data = thread.load(trace)
        if len(data.calls):
            got[program, "ns"] += thread.end_ts
        got[program, thread.sample_unit] += int(data.samples["weight"].sum())
    expected: Counter[Any] = Counter()
    for row in parquet.read_table(data_set / "stacks").to_pylist():
        in_time = row["unit"] == "ns"
        expected[row["program"], "ns"] += row["time_ns"] + in_time * row["weight"]
        expected[row["program"], "samples"] += 0 if in_time and row["weight"] else row["samples"]
        expected[row["program"], "bytes"] += row["allocated_bytes"] + (row["unit"] == "bytes") * row["weight"]
    assert {k: v for k, v in got.items() if k[1]} == +expected


def test_the_profile_has_heaps_in_bytes(tmp_path: Path, aggregate: Callable[..., None]) -> None:
    """What is counted in bytes is a view of sizes, called after what was counted."""
    aggregate(REPO / "fixtures/stacks/go-heap.pb.gz", "-o", tmp_path / "heaps")
    threads = [thread for _, thread in merged_trace(str(tmp_path / "heaps"), "heaps").threads]
    units = {thread.name.rpartition(": ")[2]: thread.sample_unit for thread in threads}
    assert units == {"inuse_space": "bytes", "inuse_objects": "count", "alloc_space": "bytes", "alloc_objects": "count"}


def test_threads_and_processes_of_the_profile_have_numbers_of_their_own(tmp_path: Path) -> None:
    """Also where a combination of labels has more than 100 threads."""
    n = 150
    frames = [("app", f"thread {'abcdefghij'[k % 10]}{'x' * (k // 10)}", "", "count") for k in range(n)]
    own = np.zeros((2 * n, len(MEASURES)), np.int64)
    own[n:, MEASURES.index("samples")] = 1 + np.arange(n)
    forest = Tree.of(
        [*frames, ("f", "", 0, "", "", "", False)],
        np.array([-1] * n + list(range(n)), np.int32),
        np.array([*range(n), *[n] * n], np.int32),
        [(name,) for name in MEASURES],
        Amounts.of_columns(own),
    )
    shares = [Share((program,), replace(Totals(), tree=forest), ()) for program in ("p", "q", "r")]
    trace = merged_trace(written(tmp_path, *shares), "runs")
    numbers = [thread.tid for _, thread in trace.threads] + [process.pid for process in trace.processes]
    assert len(numbers) == len(set(numbers)) == 3 * n + 3
    assert laws.check(trace) == []


def test_two_data_sets_are_compared(data_set: Path, tmp_path: Path) -> None:
    """Each combination of labels is a run. A data set and itself are the same."""
    done = run("compare", data_set, data_set, "--json", "--quiet", "-o", tmp_path / "d.html", "--fail-on", "self > 1%")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    verdicts = Counter(row["verdict"] for table in found["tables"] for row in table["rows"])
    assert not verdicts.keys() & {"slower", "faster", "new", "gone"}
    programs = {row["program"] for row in parquet.read_table(data_set / "recordings").to_pylist()}
    assert len(found["base"]) == len(programs)


def test_samples_in_which_nothing_was_done_are_counted_apart(
    tmp_path: Path, aggregate: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    sides = []
    for side, n_idle in (("base", 900), ("new", 300)):
        (tmp_path / side).mkdir()
        for nth in range(2):
            text = f"main;(idle) {n_idle}\nmain;parse {100 + nth}\n"
            (tmp_path / side / f"{nth}.folded").write_text(text)
        aggregate(tmp_path / side / "*.folded", "-o", tmp_path / f"{side}.data")
        rows = parquet.read_table(tmp_path / f"{side}.data" / "recordings").to_pylist()
        assert sorted((row["samples"], row["idle_samples"]) for row in rows) == [(100, n_idle), (101, n_idle)]
        names = {row["function"] for row in parquet.read_table(tmp_path / f"{side}.data" / "functions").to_pylist()}
        assert names == {"main", "parse"}
        sides.append(tmp_path / f"{side}.data")
    assert cli.main(["compare", *map(str, sides), "--json", "--quiet"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [note.partition(": ")[0] for note in found["notes"]] == ["samples in which nothing was done are left out"]


def test_samples_of_unlike_frequencies_are_compared_by_their_time(
    tmp_path: Path, aggregate: Callable[..., None]
) -> None:
    """`hot` and `cold` have as much on both sides, in recordings at 1000 and at 1000 or 50 Hz. By the number of samples
    it was twenty times less, and significant."""
    sides = []
    for side, interval in (("base", 10**6), ("new", 20 * 10**6)):
        (tmp_path / side).mkdir()
        for nth in range(3):
            for name, step in (("hot", interval), ("cold", 10**6)):
                n = (2000 + 10 * nth) * 10**6 // step
                # As perf script prints them.
                samples = (
                    f"app 7/7 {1 + k * step / 1e9:.9f}: {step} cpu-clock: \n\t1000 {name}+0x0 (/app)\n"
                    for k in range(n)
                )
                (tmp_path / side / f"{name}-{nth}.txt").write_text("\n".join(samples))
            aggregate(tmp_path / side / f"*-{nth}.txt", "-o", tmp_path / f"{side}-{nth}")
        sides.append([str(tmp_path / f"{side}-{nth}") for nth in range(3)])
    runs = [[run for url in of for run in runs_of(url, True)] for of in sides]
    found = compare(*runs)
    for row in found.tables_named("self")[0].rows:
        assert row.change == pytest.approx(0, abs=0.02)
        assert row.verdict in ("same", "unknown")
    (whole,) = (row for row in found.whole.rows if row.name == "time of samples")
    assert whole.change == pytest.approx(0, abs=0.02)
    tree = diff_tree(found).measured
    assert sum(of.new.sum() for of in tree) == pytest.approx(sum(of.base.sum() for of in tree), rel=0.02)


ASKED = "import duckdb, json, sys; json.dump(duckdb.sql(sys.stdin.read()).fetchall(), sys.stdout, default=str)"


def asked(query: str) -> list[list[Any]]:
    """What DuckDB answers, in a process of its own: at the end of one in which objects live on, as those of pytest and
    those that commands leave, it prints that they are lost."""
    done = subprocess.run([sys.executable, "-c", ASKED], input=query, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return list(json.loads(done.stdout))


QUERIES = re.findall(r"```sql\n(.*?)```", (REPO / "docs" / "fleet.md").read_text(), re.S)


@pytest.mark.parametrize("query", QUERIES, ids=[text.splitlines()[0][:60] for text in QUERIES])
def test_the_questions_of_the_documentation(query: str, data_set: Path) -> None:
    """They are of a data set by service and commit, which `program` stands for."""
    text = query.replace("stats/", f"{data_set}/").replace("service", "program").replace(" commit", " 'x' AS commit", 1)
    text = text.replace("program, commit, function, n", "program, function, n")
    text = text.replace("BY program, commit", "BY program")
    assert len(asked(text)) > 0


def test_there_are_five_questions() -> None:
    assert len(QUERIES) >= 5


def test_the_most_expensive_functions_are_those_of_info(data_set: Path, infos: dict[str, list[dict[str, Any]]]) -> None:
    expected: Counter[Any] = Counter()
    for summary in (summary for of in infos.values() for summary in of):
        for event in summary["events"]["recorded"][:1]:
            for function in summary["functions"]["top"] if event["unit"] == "ns" else ():
                expected[function["name"]] += function["samples"] * event["weight"] / event["samples"]
    rows = asked(QUERIES[0].replace("stats/", f"{data_set}/").replace(", file", ""))
    named = [(name, n) for name, n in expected.items() if not NAMELESS.fullmatch(name)]
    found = [(name, weight) for name, _, unit, weight, *_ in rows if unit == "ns" and not NAMELESS.fullmatch(name)]
    wanted = sorted(named, key=lambda row: -row[1])[:5]
    assert [name for name, _ in found[:5]] == [name for name, _ in wanted]
    assert [weight for _, weight in found[:5]] == pytest.approx([weight for _, weight in wanted])


def test_the_99th_percentile_is_that_of_all_durations(data_set: Path) -> None:
    durations: dict[str, list[int]] = {}
    for row in parquet.read_table(data_set / "recordings").to_pylist():
        trace = traceferry.load(row["recording"])
        for _, thread in trace.threads:
            for marker_type, table in thread.load(trace).markers.items():
                durations.setdefault(marker_type.name, []).extend(table["dur"].tolist())
    rows = asked(QUERIES[2].replace("stats/", f"{data_set}/"))
    assert {marker for marker, _ in rows} == {name for name, of in durations.items() if of}
    for marker, found in rows:
        in_order = sorted(max(ns, 0) for ns in durations[marker])
        exact = in_order[-(-99 * len(in_order) // 100) - 1]
        assert found <= exact <= found * 65 / 64, marker
    assert max(found for _, found in rows) > 10**6


# ---------------------------------------------------------------- runs


class Unsteady:
    """Of each recording a row; those in `failing` cannot be reached. read: those that were asked for. Of the class: a
    worker gets a copy of the object."""

    tables, description = tuple(COLUMNS), "unsteady"
    failing: ClassVar[set[str]] = set()
    read: ClassVar[list[str]] = []

    def of(self, recording: Recording, labels: Sequence[str]) -> Result:
        self.read.append(recording.urls[0])
        if recording.urls[0] in self.failing:
            raise ConnectionError("reset")
        return Result(row_of(recording))


@contextmanager
def in_this_process(*_: object) -> Iterator[Any]:
    with distributed.Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=None) as client:
        yield client


def test_what_could_not_be_reached_is_tried_again_by_the_next_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where its part was merged with others: 20 recordings are more leaves than are merged at once."""
    monkeypatch.setattr("traceferry.apps.fleet.run.cluster", in_this_process)
    monkeypatch.setattr("traceferry.apps.fleet.tasks._settle", lambda: None)  # which is for worker processes
    names = [f"/r/{nth:02}" for nth in range(20)]
    recordings = Found((), tuple(Recording((name,), (), 1, "", name) for name in names))
    read, output = Unsteady.read, str(tmp_path / "out")

    def statuses(failing: set[str]) -> dict[str, str]:
        read.clear()
        monkeypatch.setattr(Unsteady, "failing", failing)
        run_all(recordings, (), Unsteady(), output, Pool(1), leaf_size=1, resume=True, quiet=True)
        rows = parquet.read_table(tmp_path / "out" / "recordings").to_pylist()
        return {row["recording"]: row["status"] for row in rows}

    bad = {names[7], names[18]}
    assert statuses(bad) == dict.fromkeys(names, "done") | dict.fromkeys(bad, "unavailable")
    assert sorted(read) == names
    assert statuses(set()) == dict.fromkeys(names, "done")
    assert bad <= set(read)
    assert len(read) <= 2 * 3
    statuses(set())
    assert read == []


class Fatal(Unsteady):
    """Those in `failing` end the worker that reads them."""

    def of(self, recording: Recording, labels: Sequence[str]) -> Result:
        if recording.urls[0] in self.failing:
            raise WorkerEnded
        return Result(row_of(recording))


def test_what_waited_at_a_worker_that_ended_is_not_to_blame(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    worker = OneWorker()
    monkeypatch.setattr("traceferry.apps.fleet.run.cluster", lambda *_: nullcontext(worker))
    monkeypatch.setattr("traceferry.apps.fleet.tasks._settle", lambda: None)  # which is for worker processes
    names = [f"/r/{nth}" for nth in range(8)]
    bad = {names[0], names[4]}
    monkeypatch.setattr(Fatal, "failing", bad)
    recordings = Found((), tuple(Recording((name,), (), 1, "", name) for name in names))
    counts = run_all(recordings, (), Fatal(), str(tmp_path / "out"), Pool(1), leaf_size=4, quiet=True)
    rows = parquet.read_table(tmp_path / "out" / "recordings").to_pylist()
    statuses = {row["recording"]: row["status"] for row in rows}
    assert statuses == dict.fromkeys(names, "done") | dict.fromkeys(bad, "killed")
    assert (counts.done, counts.failed, counts.reused) == (8, 2, 0)


class ShuffledWorker(OneWorker):
    """A client whose tasks end in a random order."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.rng = random.Random(seed)

    def work(self) -> None:
        if self.given:
            future, task = self.given.pop(self.rng.randrange(len(self.given)))
            future.set_result(task())
            asyncio.get_running_loop().call_later(0.001, self.work)


def test_a_merged_profile_does_not_depend_on_the_order_in_which_parts_finish(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("traceferry.apps.fleet.tasks._settle", lambda: None)  # which is for worker processes
    for name, content in recordings(12):
        (tmp_path / "runs" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "runs" / name).write_bytes(content)
    outputs = []
    for seed in range(2):
        worker = ShuffledWorker(seed)
        monkeypatch.setattr("traceferry.apps.fleet.run.cluster", lambda *_, worker=worker: nullcontext(worker))
        merged = tmp_path / f"{seed}.json"
        words = ["aggregate", tmp_path / "runs", "--merge", merged, "--partition-size", 1 + seed, "--quiet"]
        assert cli.main([str(word) for word in words]) == 0
        outputs.append(merged.read_bytes())
    assert len(set(outputs)) == 1


def test_nothing_but_damaged_recordings(tmp_path: Path) -> None:
    (tmp_path / "a.mlpd").write_bytes(b"no recording")
    done = run("aggregate", tmp_path / "a.mlpd", "-o", tmp_path / "o", "--merge", tmp_path / "m.json", "--workers", 1)
    assert done.returncode == 1, done
    assert f"{tmp_path}/a.mlpd: damaged: unrecognised input format" in done.stderr
    assert "Traceback" not in done.stderr


# ---------------------------------------------------------------- files elsewhere, and what goes wrong


def test_what_lies_beside_a_remote_recording_is_found(tmp_path: Path) -> None:
    """A recording in a bucket with the code of its JIT compiler beside it."""
    fs = fsspec.filesystem("memory")
    for path in sorted((FIXTURES / "jit" / "php82").iterdir()):
        fs.pipe_file(f"/bucket/php/{path.name}", path.read_bytes())
    found = find(["memory://bucket/{what}/*.data.zst"])
    [there] = found.recordings
    here = Recording(
        (str(FIXTURES / "jit/php82/perf.data.zst"),), there.labels, there.size, "", "",
    )  # fmt: skip
    remote, local = (result_of(WORK, each, found.labels) for each in (there, here))
    assert remote.row["recording"] == "memory:///bucket/php/perf.data.zst"
    tables = [rows_of("functions", Share((), each.totals, ()), ()) for each in (remote, local)]
    assert [list(map(str, tables[0][name])) for name in tables[0]] == [
        list(map(str, tables[1][name])) for name in tables[1]
    ]
    assert any(tables[0]["tier"])
    own = {name: value for name, value in remote.row.items() if name != "recording"}
    assert own == {name: local.row[name] for name in own}


FAILING: dict[str, tuple[bytes | None, str, str]] = {
    "damaged.mlpd": (b"", "damaged", "the file is empty"),
    "unknown.xray": (b"no recording", "damaged", "unrecognised input format"),
    "app": (b"\x7fELF\2\1" + bytes(10) + b"\3\0", "refused", "this is a program or library (ELF)"),
    "gone.xray": (None, "missing", "no such file"),
}


@pytest.mark.parametrize("name", FAILING)
def test_a_recording_that_cannot_be_read_is_a_row(name: str, tmp_path: Path) -> None:
    data, status, reason = FAILING[name]
    if data is not None:
        (tmp_path / name).write_bytes(data)
    recording = Recording((str(tmp_path / name),), (), len(data or b""), "", name)
    row = result_of(WORK, recording, ()).row
    assert row["status"] == status
    assert reason in row["reason"]
    assert set(row) == set(COLUMNS["recordings"])


@pytest.mark.parametrize(("error", "said"), [(MemoryError, "memory ran out"), (RecursionError, "nested more deeply")])
def test_exhaustion_is_the_failure_of_one_recording(
    error: type[Exception], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> Result:
        raise error

    monkeypatch.setattr(Aggregation, "of", fail)
    row = result_of(WORK, Recording(("x.xray",), (), 1, "", ""), ()).row
    assert row["status"] == "out of memory"
    assert said in row["reason"]


def test_an_error_of_the_program_is_a_row_that_says_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise KeyError("stack")

    monkeypatch.setattr("traceferry.apps.fleet.work.forest_of", broken)
    path = FIXTURES / "mono/mono-6.8/calls.mlpd.zst"
    row = result_of(WORK, Recording((str(path),), (), 1, "", ""), ()).row
    assert row["status"] == "failed"
    assert re.fullmatch(r"KeyError: 'stack' \(test_fleet\.py:\d+\)", row["reason"])


@pytest.mark.parametrize("pattern", ["zip://*.data.zst::", "zip://deep/{what}/*.data.zst::"])
def test_recordings_in_an_archive(pattern: str, tmp_path: Path) -> None:
    """With the code of their JIT compilers beside them."""
    with zipfile.ZipFile(tmp_path / "runs.zip", "w") as archive:
        for path in sorted((FIXTURES / "jit" / "php82").iterdir()):
            archive.write(path, path.name)
            archive.write(path, f"deep/php/{path.name}")
    found = find([f"{pattern}{tmp_path}/runs.zip"])
    [recording] = found.recordings
    result = result_of(WORK, recording, found.labels)
    assert result.row["status"] == "done", result.row
    assert any(rows_of("functions", Share((), result.totals, ()), ())["tier"])


def test_symbols_by_label() -> None:
    [path] = sorted((FIXTURES / "xray/clang-19").glob("fdr-c19-pie-pool-tsc.xray"))
    symbols = f"{FIXTURES}/xray/{{compiler}}/pool-pie.zst"
    work = Aggregation(Reading((symbols,)), tuple(COLUMNS))
    result = result_of(work, Recording((str(path),), ("clang-19",), 1, "", ""), ("compiler",))
    assert result.row["status"] == "done", result.row
    assert "main" in rows_of("functions", Share((), result.totals, ()), ())["function"]


def test_symbols_that_a_label_chooses_are_a_part_of_the_content(tmp_path: Path) -> None:
    of = Found(("commit",), tuple(Recording((name,), (name,), 1, "", "") for name in ("a", "b")))
    texts = [str(tmp_path / "{commit}/app"), str(tmp_path / "all")]
    seen = []
    for name in ("a/app", "b/app", "all"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"x")
        seen.append([each.identity for each in with_symbols(of, texts).recordings])
    (a1, b1), (a2, b2), (a3, b3) = seen
    assert (a1 == a2 == a3, b1 == b2, b2 == b3) == (True, False, True)
    assert with_symbols(of, texts[1:]) == of


NAMES = {
    "s3://b/x.data": "x.data", "https://h/x.data?sig=a/b": "x.data", "s3://b/what?": "what?", "s3://b/..": "recording",
    "s3://b/x/": "recording", "zip://deep/x.mlpd::s3://b/y.zip": "x.mlpd",
}  # fmt: skip


def test_names_of_copies() -> None:
    assert {url: storage.name_of(url) for url in NAMES} == NAMES
    long = f"x.data?{'s' * 300}"
    assert inside(f"h/{long}/{long}") == "h/x.data/x.data"
    assert inside("h/get?file=1") == "h/get?file=1"


ANSWERS = {401: False, 403: False, 404: False, 408: True, 410: False, 429: True, 500: True, 503: True}


def test_which_answers_of_a_server_are_worth_another_request() -> None:
    aiohttp = pytest.importorskip("aiohttp", reason="aiohttp is not installed")
    for status, again in ANSWERS.items():
        assert storage.is_transient(aiohttp.ClientResponseError(None, (), status=status)) == again, status


def test_a_folder_that_may_not_be_listed_has_nothing_beside(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error of the program, or of the network, is none of that kind."""
    for error, is_refused in ((PermissionError("no"), True), (KeyError("program"), False), (OSError("network"), False)):

        def listed(_: str, error: Exception = error) -> list[str]:
            raise error

        monkeypatch.setattr(storage, "names_in", listed)
        if is_refused:
            assert names_beside(f"memory://{error}", 0) is None
        else:
            with pytest.raises(type(error)):
                names_beside(f"memory://{error}", 0)


def test_an_error_of_the_network_is_tried_again() -> None:
    errors = iter([ConnectionError("reset"), TimeoutError(), storage.ShortReadError("short")])

    def action() -> str:
        for error in errors:
            raise error
        return "read"

    assert storage.retrying(action) == "read"


def test_a_missing_file_is_not_tried_again() -> None:
    tried = []

    def action() -> None:
        tried.append(1)
        raise FileNotFoundError("gone")

    with pytest.raises(FileNotFoundError):
        storage.retrying(action)
    assert len(tried) == 1


def test_a_copy_that_is_too_short_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "FIRST_PAUSE_S", 0.001)
    fsspec.filesystem("memory").pipe_file("/b/x", b"12345")
    storage.fetch("memory://b/x", tmp_path / "x", 5)
    assert (tmp_path / "x").read_bytes() == b"12345"
    with pytest.raises(storage.ShortReadError, match="5 of 6 bytes"):
        storage.fetch("memory://b/x", tmp_path / "y", 6)
    assert not (tmp_path / "y").exists()


def test_a_local_file_appears_once_it_is_whole(tmp_path: Path) -> None:
    storage.write(str(tmp_path / "a/b"), b"old")
    with pytest.raises(TypeError):
        storage.write(str(tmp_path / "a/b"), None)  # type: ignore[arg-type]
    assert files_of(tmp_path) == {"a/b": b"old"}


def test_a_data_set_of_another_version_is_refused(data_set: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("traceferry.apps.fleet.dataset.VERSION", 2)
    with pytest.raises(FormatError, match="has version 1, this program reads 2"):
        next(combinations(str(data_set)))


def test_usage(tmp_path: Path, tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    refused = {
        ("aggregate", tree / "web"): "nothing would be written: -o FOLDER",
        ("aggregate", "-o", tmp_path / "o"): "no recordings are given",
        ("aggregate", tree / "{a}/c1/*", "--by", "b", "-o", tmp_path / "o"): "--by b: no such label; the inputs have",
        ("aggregate", tree / "{calls}/c1/*", "-o", tmp_path / "o"): "a label must not be called calls",
        ("aggregate", tree / "web", "--merge", "x.txt"): "x.txt: no output format has this suffix",
        ("aggregate", tree / "web", "--merge", "x.html", "--scheduler", "tcp://h"): "--scheduler needs a folder",
        ("aggregate", tree / "{a}/c1/*", "--symbols", "{b}/x", "-o", tmp_path / "o"): "{b}: no such label; the inp",
        ("convert", __file__, "--workers", "2"): "--workers works with --batch only",
        ("convert", __file__, "--resume"): "--resume works with --batch only",
        ("convert", "--batch", tree / "web", "-o", tmp_path / "o", "--fail-on", "loss"): "--fail-on does not work with",
        ("aggregate", tree / "web", "--worker-memory", "lots", "-o", tmp_path / "o"): "lots of memory cannot be st",
        ("convert", "--batch", tree / "web"): "--batch needs a folder for its outputs",
        ("convert", "--quiet"): "no input is given",
    }
    for words, message in refused.items():
        assert cli.main([str(word) for word in words]) == 2, words
        assert message in capsys.readouterr().err, words


def test_a_scheduler_that_does_not_answer(tmp_path: Path, tree: Path) -> None:
    words = "aggregate", tree / "web", "-o", tmp_path / "o", "--scheduler", "tcp://127.0.0.1:1"
    done = run(*words, DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT="1s")
    assert (done.returncode, "no scheduler answers" in done.stderr) == (2, True), done


def test_the_manifest_for_kubernetes_obeys_the_schema_of_the_operator() -> None:
    """As far as that can be known without a cluster."""
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    try:
        files = importlib.metadata.files("dask-kubernetes") or []
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("the schema is not there: pip install --no-deps dask-kubernetes")
    [path] = [file for file in files if str(file).endswith("crds/daskjob.yaml")]
    [version] = yaml.load(path.read_text(), yaml.CSafeLoader)["spec"]["versions"]
    schema = closed(version["schema"]["openAPIV3Schema"])
    manifest = yaml.safe_load((REPO / "docs" / "fleet" / "kubernetes.yaml").read_text())
    validator = jsonschema.Draft202012Validator(schema)  # jsonschema.validate would check the schema first: seconds
    validator.validate(manifest)
    manifest["spec"]["job"]["spec"]["containers"][0]["argz"] = []
    with pytest.raises(jsonschema.ValidationError, match="argz"):
        validator.validate(manifest)


def closed(schema: Any) -> Any:
    """The schema, with unknown fields refused, as Kubernetes reports them."""
    if isinstance(schema, list):
        return [closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    inner = {key: closed(value) for key, value in schema.items()}
    if "properties" in schema and "x-kubernetes-preserve-unknown-fields" not in schema:
        known = {**inner["properties"], "apiVersion": {}, "kind": {}, "metadata": {}}
        inner |= {"properties": known, "additionalProperties": False}
    if schema.get("x-kubernetes-int-or-string"):
        return {"type": ["integer", "string"]}
    return inner
