"""The command line: what it writes, where, what it reports, and its exit status."""

import gzip
import io
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import zstandard
from builders.perf_data import PerfData
from builders.xray import elf_with_instr_map
from conftest import in_turn
from readers import perfetto
from recordings import binaries_of, content, path_of
from streams import fdr
from support import for_each, load_checked

import traceferry
from traceferry.apps import cli, entry
from traceferry.apps.cli.options import recordings_in

WHOLE = fdr("A B 1000000 b a", "A 500 a")
LOSSY = fdr("A B b c a")
DAMAGED = WHOLE.bytes()[:-8]


class Done(NamedTuple):
    status: int
    out: str
    err: str


PROGRAM = elf_with_instr_map([("main", 0x2000, [0, 1]), ("_Z4workv", 0x3000, [0, 1])])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with app.xray in it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "app.xray").write_bytes(WHOLE.bytes())
    (tmp_path / "lossy.xray").write_bytes(LOSSY.bytes())
    (tmp_path / "app").write_bytes(PROGRAM)
    return tmp_path


@pytest.fixture
def run(folder: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> Callable[..., Done]:
    def main(*arguments: str) -> Done:
        capfdbinary.readouterr()
        try:
            status = cli.main(arguments)
        except SystemExit as exit_of_argparse:
            status = int(exit_of_argparse.code or 0)
        out, err = capfdbinary.readouterr()
        return Done(status, out.decode(errors="replace"), err.decode())

    return main


Run = Callable[..., Done]


def files(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("*")} - {"app.xray", "lossy.xray", "app"}


def is_firefox(data: bytes) -> bool:
    return json.loads(data)["meta"].get("preprocessedProfileVersion") == 70


def is_gecko(data: bytes) -> bool:
    return "presymbolicated" in json.loads(data)["meta"]


def is_perfetto(data: bytes) -> bool:
    return perfetto.parse(data).packets > 0


# ---------------------------------------------------------------- convert: where and what

SUFFIXES = {
    "o.json": is_firefox, "o.json.gz": is_firefox, "o.gecko.json": is_gecko, "o.gecko.json.gz": is_gecko,
    "o.pftrace": is_perfetto, "o.pftrace.gz": is_perfetto, "o.perfetto-trace": is_perfetto,
    "o.perfetto-trace.gz": is_perfetto,
}  # fmt: skip


@pytest.mark.parametrize(("name", "is_right"), SUFFIXES.items(), ids=SUFFIXES)
def test_the_suffix_chooses_the_format(run: Run, folder: Path, name: str, is_right: Callable[[bytes], bool]) -> None:
    assert run("convert", "app.xray", "-o", name).status == 0
    data = (folder / name).read_bytes()
    assert is_right(gzip.decompress(data) if name.endswith(".gz") else data)
    assert files(folder) == {name}


@pytest.mark.parametrize(
    ("to", "name", "is_right"),
    [
        (None, "app.xray.json.gz", is_firefox),
        ("firefox", "app.xray.json.gz", is_firefox),
        ("gecko", "app.xray.gecko.json.gz", is_gecko),
        ("perfetto", "app.xray.pftrace", is_perfetto),
    ],
)
def test_beside_the_input(run: Run, folder: Path, to: str | None, name: str, is_right: Callable[[bytes], bool]) -> None:
    options = ["--to", to] if to else []
    done = run("convert", str(folder / "app.xray"), *options)
    data = (folder / name).read_bytes()
    assert is_right(gzip.decompress(data) if name.endswith(".gz") else data)
    assert name in done.err


@pytest.mark.parametrize("words", [["app.xray", "-oo.json"], ["-o", "o.json", "app.xray"], ["./info", "-oo.json"]])
def test_a_file_is_converted(run: Run, folder: Path, words: list[str]) -> None:
    (folder / "info").write_bytes(WHOLE.bytes())
    assert run(*words).status == 0
    assert is_firefox((folder / "o.json").read_bytes())


FOLDERS = {
    "one recording": ["app.xray"],
    "compressed": ["app.xray.gz"],
    "what was made of it, beside it": ["app.xray", "app.xray.json.gz", "app.xray.pftrace"],
    "other files": ["app.xray", "notes.txt", "app"],
}


@pytest.mark.parametrize("names", FOLDERS.values(), ids=FOLDERS)
def test_a_folder_with_one_recording_is_that(run: Run, folder: Path, names: list[str]) -> None:
    (folder / "run").mkdir()
    for name in names:
        data = gzip.compress(WHOLE.bytes()) if name.endswith(".gz") else WHOLE.bytes()
        (folder / "run" / name).write_bytes(data)
    assert run("info", "run").out == run("info", f"run/{names[0]}").out
    assert run("convert", "run").status == 0
    assert (folder / "run" / f"{names[0]}.json.gz").exists()


def test_without_a_word_there_is_a_short_help(run: Run) -> None:
    done = run()
    assert (done.status, done.out) == (2, "")
    assert [line.split()[0] for line in done.err.splitlines() if line.startswith("  ")] == ["traceferry"] * 3


def test_the_columns_of_the_short_help_stand_below_each_other(run: Run) -> None:
    lines = [line for line in run().err.splitlines() if line.startswith("  ")]
    assert len({re.search(r" {3,}(?=\S)", line[2:]).end() for line in lines}) == 1


def test_help_is_a_word_too(run: Run) -> None:
    assert run("help").out == run("--help").out
    assert run("help", "info").out == run("info", "--help").out


def test_inputs_may_stand_after_options(run: Run, folder: Path) -> None:
    (folder / "second.xray").write_bytes(WHOLE.bytes())
    assert run("convert", "app.xray", "-o", "o.json", "second.xray").status == 0
    apart = run("convert", "-o", "p.json", "app.xray", "second.xray")
    assert (apart.status, (folder / "o.json").read_bytes()) == (0, (folder / "p.json").read_bytes())


def test_the_most_used_options_come_first(run: Run) -> None:
    lines = run("convert", "--help").out.splitlines()
    assert [line for line in lines if line.endswith(":") and line.islower() and not line.startswith(" ")] == [
        "input:", "output:", "selection:", "symbols and sources:", "rare:", "with --batch:", "examples:",
    ]  # fmt: skip
    assert next(line for line in lines if line.startswith("  -")).startswith("  -o OUT, --output OUT")


def test_version(run: Run) -> None:
    from importlib.metadata import version

    assert run("--version") == (0, f"traceferry {traceferry.__version__}\n", "")
    assert traceferry.__version__ == version("traceferry")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "tcsh"])
def test_completion(run: Run, shell: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("shtab", reason="the package shtab is not installed")
    script = run("completion", shell).out
    assert all(word in script for word in ("convert", "min-duration", "fail-on", "embed-sources"))
    monkeypatch.setitem(sys.modules, "shtab", None)
    missing = run("completion", shell)
    assert (missing.status, missing.err) == (
        2, "traceferry: completion needs the package shtab: pip install 'traceferry[completion]'\n",
    )  # fmt: skip


def test_to_wins_over_the_suffix(run: Run, folder: Path) -> None:
    assert run("convert", "app.xray", "-o", "trace.out", "--to", "perfetto").status == 0
    assert is_perfetto((folder / "trace.out").read_bytes())


def test_several_outputs_of_one_reading(run: Run, folder: Path) -> None:
    assert run("convert", "app.xray", "-o", "a.json", "-o", "a.pftrace").status == 0
    for name in ("json", "pftrace"):
        run("convert", "app.xray", "-o", f"b.{name}")
        assert (folder / f"a.{name}").read_bytes() == (folder / f"b.{name}").read_bytes()


TWO_OUTPUTS = {
    "one format": (("convert", "app.xray", "-o", "a.json", "-o", "b.json", "--to", "gecko"), "--to chooses one format"),
    "one file": (("convert", "app.xray", "-o", "a.json", "-o", "a.json"), "it is the same file"),
    "of a fleet": (("convert", "app.xray", "--batch", "-o", "a", "-o", "b"), "--batch needs a folder"),
    "of a query": (("query", "app.xray", "SELECT 1", "-o", "a.csv", "-o", "b.csv"), "-o is given twice: a.csv, b.csv"),
    "of a pack": (("pack", "app.xray", "-o", "a.tfpack", "-o", "b.tfpack"), "-o is given twice"),
}  # fmt: skip


@for_each("case", TWO_OUTPUTS)
def test_two_outputs(case: tuple[tuple[str, ...], str], run: Run, folder: Path) -> None:
    said = run(*case[0])
    assert (said.status, case[1] in said.err, files(folder)) == (2, True, set())


@pytest.mark.parametrize(("to", "is_right"), [("firefox", is_firefox), ("perfetto", is_perfetto)])
def test_standard_output(run: Run, folder: Path, to: str, is_right: Callable[[bytes], bool], capfdbinary: Any) -> None:
    assert cli.main(["convert", "app.xray", "-o", "-", "--to", to]) == 0
    assert is_right(capfdbinary.readouterr().out)
    assert files(folder) == set()


def test_standard_input(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Stdin:
        buffer = io.BytesIO(WHOLE.bytes())

    monkeypatch.setattr("sys.stdin", Stdin)
    assert run("convert", "-", "-o", "o.pftrace").status == 0
    traceferry.convert("app.xray", "other.pftrace")
    names = [[s.name for s in perfetto.read(folder / name).slices] for name in ("o.pftrace", "other.pftrace")]
    assert names[0] == names[1]


@pytest.mark.parametrize(("name", "pack"), [("z.xray.gz", gzip.compress), ("z.xray.zst", zstandard.compress)])
def test_compressed_inputs(run: Run, folder: Path, name: str, pack: Callable[[bytes], bytes]) -> None:
    (folder / name).write_bytes(pack(WHOLE.bytes()))
    assert json.loads(run("info", name, "--json").out)["functions"]["total"] == 2
    assert run("convert", name, "-o", "o.json").status == 0


def test_several_inputs_become_one_trace(run: Run, folder: Path) -> None:
    (folder / "b.xray").write_bytes(fdr((7, "C c")).bytes())
    summary = json.loads(run("info", "app.xray", "b.xray", "--json").out)
    assert [i["path"] for i in summary["inputs"]] == ["app.xray", "b.xray"]
    assert [t["tid"] for p in summary["processes"] for t in p["threads"]] == [1, 2, 7]


def test_symbols(run: Run, folder: Path) -> None:
    """A file, or a folder of them."""
    (folder / "bin").mkdir()
    (folder / "app").rename(folder / "bin" / "app")
    (folder / "bin" / "README").write_text("no binary")
    for symbols in ("bin/app", "bin"):
        done = run("info", "app.xray", "--symbols", symbols, "--json")
        assert [row["name"] for row in json.loads(done.out)["functions"]["top"]] == ["work()", "main"]
        assert done.status == 0


# ---------------------------------------------------------------- convert: which part


def slices_after(run: Run, folder: Path, *options: str) -> list[tuple[int, int | None]]:
    assert run("convert", "app.xray", "-o", "part.pftrace", *options).status == 0
    read = perfetto.read(folder / "part.pftrace")
    first = min((s.ts for s in read.slices if s.tid == 1), default=0)
    return [(s.ts - first, s.dur) for s in read.slices if s.tid == 1]


PARTS = {
    (): [(0, 1_000_030), (10, 1_000_010)],
    ("--min-duration", "1000020ns"): [(0, 1_000_030)],
    ("--min-duration", "1s"): [],
    ("--range", "0,1us"): [(0, 1000), (10, 990)],
    ("--range", "500us,501us"): [(0, 1000), (0, 1000)],
    ("--range", "1ms,"): [(0, 30), (0, 20)],
    ("--range", ",5ns"): [(0, 5)],
}


@pytest.mark.parametrize(("options", "slices"), PARTS.items(), ids=[" ".join(p) or "all" for p in PARTS])
def test_range_and_min_duration(
    run: Run, folder: Path, options: tuple[str, ...], slices: list[tuple[int, int]]
) -> None:
    assert slices_after(run, folder, *options) == slices


@pytest.mark.parametrize(("options", "tids"), [([], [1, 2]), (["2"], [2]), (["0x1"], [1]), (["app", "2"], [1, 2])])
def test_thread(run: Run, folder: Path, options: list[str], tids: list[int]) -> None:
    arguments = ["app.xray", *(word for name in options for word in ("--thread", name))]
    assert run("convert", *arguments, "-o", "part.pftrace").status == 0
    assert sorted({s.tid for s in perfetto.read(folder / "part.pftrace").slices}) == tids
    summary = json.loads(run("info", *arguments, "--json").out)
    assert [t["tid"] for p in summary["processes"] for t in p["threads"]] == tids


# ---------------------------------------------------------------- what it says


def test_report_goes_to_standard_error_and_to_a_file(run: Run, folder: Path) -> None:
    done = run("convert", "lossy.xray", "-o", "o.json", "--report", "report.json", "-v")
    assert done.status == 0
    assert "[entry_lost, 1 time" in done.err
    assert "profiler.firefox.com" in done.err
    report = json.loads((folder / "report.json").read_text())
    assert report["verdict"]["headline"] == done.err.splitlines()[0]
    issues = {issue["kind"]: issue for issue in report["issues"]}
    keys = {"kind", "severity", "count", "offset", "title", "detail", "details", "advice"}
    assert issues["entry_lost"].keys() == keys
    assert (issues["entry_lost"]["severity"], issues["entry_lost"]["count"]) == ("loss", 1)


def test_an_input_given_twice_is_read_once(run: Run, folder: Path) -> None:
    (folder / "link.xray").symlink_to("app.xray")
    once = run("info", "app.xray").out
    assert [line for line in once.splitlines() if "input_repeated" in line] == []
    done = run("info", "app.xray", "link.xray", "./app.xray", "--json")
    (issue,) = (issue for issue in json.loads(done.out)["issues"] if issue["kind"] == "input_repeated")
    assert (issue["count"], issue["detail"]) == (2, "./app.xray, link.xray")
    assert [i["path"] for i in json.loads(done.out)["inputs"]] == ["app.xray"]


@pytest.mark.parametrize("quiet", ["-q", "--quiet"])
def test_quiet(run: Run, folder: Path, quiet: str) -> None:
    done = run("convert", "lossy.xray", "-o", "o.json", quiet)
    assert done == (0, "", "")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "vw"), (["-v"], "viw"), (["--verbose"], "viw"), (["-q"], ""), (["-q", "-v"], ""),
        (["--fail-on", "loss"], "viw"), (["-q", "--fail-on", "loss"], "i"), (["-q", "--fail-on", "damage"], ""),
    ],
)  # fmt: skip
def test_what_a_conversion_says(run: Run, folder: Path, words: list[str], told: str) -> None:
    """v: the verdict; i: the issue that data was lost; w: what was written."""
    said = run("convert", "lossy.xray", "-o", "o.json", *words).err
    marks = {"v": "functions have numbers", "i": "[entry_lost, ", "w": "wrote o.json"}
    assert {letter for letter, mark in marks.items() if mark in said} == set(told)


def test_what_was_asked_for_and_had_no_effect_is_told(run: Run, folder: Path) -> None:
    """Though it is no loss."""
    (folder / "perf.data").write_bytes(PerfData().event().sample(7, 7, 100, 0x40).bytes())
    assert "min_duration_unused" in run("convert", "perf.data", "-o", "o.json", "--min-duration", "1ms").err
    assert "input_repeated" in run("info", "app.xray", "./app.xray").out


@pytest.mark.parametrize("command", [["convert", "{}", "-o", "o.json"], ["info", "{}"], ["info", "{}", "--json"]])
@pytest.mark.parametrize(
    ("name", "plain", "on_loss", "on_damage"),
    [("app.xray", 0, 0, 0), ("lossy.xray", 0, 1, 0), ("damaged.xray", 0, 1, 1), ("none.xray", 2, 2, 2)],
)
def test_exit_status(
    run: Run, folder: Path, command: list[str], name: str, plain: int, on_loss: int, on_damage: int
) -> None:
    (folder / "damaged.xray").write_bytes(DAMAGED)
    words = [part.format(name) for part in command]
    assert [run(*words, *more).status for more in ([], ["--fail-on", "loss"], ["--fail-on", "damage"])] == [
        plain, on_loss, on_damage,
    ]  # fmt: skip


def test_damaged_data_is_converted(run: Run, folder: Path) -> None:
    (folder / "damaged.xray").write_bytes(DAMAGED)
    done = run("convert", "damaged.xray", "-o", "o.json", "--fail-on", "damage")
    assert done.status == 1
    assert "truncated" in done.err
    assert is_firefox((folder / "o.json").read_bytes())


def test_check(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "damaged.xray").write_bytes(DAMAGED)
    status, printed, _ = run("check", "app.xray", "--symbols", "app")
    assert (status, printed.splitlines()[0]) == (0, "good recording: 2 threads, 1ms")
    assert printed.splitlines()[-1].startswith("passed: the trace is valid; 1 note on what was repaired or guessed")
    assert "info: " not in printed
    told = run("check", "app.xray", "--symbols", "app", "-v").out
    assert "\ninfo: " in told
    assert told.endswith("\npassed: the trace is valid\n")
    lossy = run("check", "lossy.xray")
    assert lossy.status == 1
    assert lossy.out.splitlines()[-1].startswith("failed: data was lost or damaged")
    assert "entry_lost" in lossy.out
    assert run("check", "lossy.xray", "--fail-on", "damage").status == 0
    assert run("check", "damaged.xray", "--fail-on", "damage").status == 1
    assert run("check", "none.xray").status == 2
    monkeypatch.setattr("traceferry.model.laws.check", lambda _: ["calls are not balanced"])
    broken = run("check", "app.xray")
    assert broken.status == 1
    assert "broken law: calls are not balanced" in broken.out


# ---------------------------------------------------------------- failures

FAILURES = {
    "missing input": (["convert", "none.xray", "-o", "o.json"], "none.xray: cannot be read: No such file"),
    "a folder as input": (["convert", "sub", "-o", "o.json"], "sub: a folder without a recording in it"),
    "empty file": (["convert", "empty", "-o", "o.json"], "empty: the file is empty"),
    "no known format": (["convert", "text", "-o", "o.json"], "text: unrecognised input format"),
    "too short": (["convert", "short.xray", "-o", "o.json"], "short.xray"),
    "unsupported version": (["convert", "v9.xray", "-o", "o.json", "--from", "xray"], "version 9"),
    "unknown suffix": (["convert", "app.xray", "-o", "o.txt"], "o.txt: no output format has this suffix"),
    "speedscope": (
        ["app.xray", "-o", "o.speedscope.json"],
        "speedscope's format is not written: speedscope reads .folded",
    ),
    "Chrome's": (["app.xray", "-o", "o.trace.json.gz"], "format is not written: ui.perfetto.dev reads .pftrace"),
    "V8's": (["app.xray", "-o", "o.cpuprofile"], "V8's format is not written: profiler.firefox.com reads .json.gz"),
    "other compression": (["app.xray", "-o", "o.json.zst"], "not written: each format is also written with .gz"),
    "unknown output format": (["convert", "app.xray", "--to", "svg"], "unknown output format 'svg'"),
    "a mistyped command": (["convrt", "app.xray"], "convrt: neither a file nor a command; did you mean convert?"),
    "a mistyped option": (["convert", "app.xray", "--symbol", "app"], "unknown option; did you mean --symbols?"),
    "an option of another command": (["app.xray", "--in", "page"], "--in: unknown option; traceferry view has it"),
    "a command of another tool": (["report", "app.xray"], "report: neither a file nor a command; did you mean info?"),
    "a recorder": (["record", "app"], "traceferry records nothing itself: record with perf record -g PROGRAM"),
    "an option of another tool": (["compare", "a", "--vs", "b"], "--vs: unknown option; did you mean --new?"),
    "a short word": (["compare", "a", "--vx", "b"], "--vx: unknown option (see"),
    "a mistyped format": (["convert", "app.xray", "--to", "perfeto"], "'perfeto'; did you mean perfetto?"),
    "a mistyped viewer": (["view", "app.xray", "--in", "firefx"], "unknown value 'firefx'; did you mean firefox?"),
    "several recordings in a folder": (["convert", "."], ".: a folder with 4 recordings: name one of app.xray"),
    "neither a file nor a command": (["frobnicate"], "frobnicate: neither a file nor a command; commands: view"),
    "range after the end": (["app.xray", "--range", "9s,"], "the range starts at 9s; the recording lasts 1ms"),
    "duration of centuries": (["app.xray", "--min-duration", "9" * 400], "is not a valid duration: it is longer than"),
    "look-ups only": (["symbols", "app", "--json"], "--json needs --lookup"),
    "unknown input format": (["convert", "app.xray", "--from", "mp3"], "unknown input format 'mp3'"),
    "output in no folder": (["convert", "app.xray", "-o", "no/o.json"], "no/o.json: cannot be written"),
    "output is a folder": (["convert", "app.xray", "-o", "sub.json"], "sub.json: cannot be written"),
    "no format for standard output": (["convert", "app.xray", "-o", "-"], "--to"),
    "no output for standard input": (["convert", "-"], "-o OUT"),
    "bad range": (["convert", "app.xray", "--range", "5"], "'5' is not a valid range"),
    "range backwards": (["convert", "app.xray", "--range", "2s,1s"], "ends before it starts"),
    "bad duration": (["convert", "app.xray", "--min-duration", "5 parsecs"], "'5 parsecs' is not a valid duration"),
    "no such thread": (["convert", "app.xray", "--thread", "ui"], "no thread has the number or name 'ui'; threads: 1"),
    "missing symbols": (["convert", "app.xray", "--symbols", "nothing"], "nothing: cannot be read"),
    "symbols that are none": (["convert", "app.xray", "--symbols", "text"], "text: not a readable ELF"),
    "symbols of another program": (["convert", "app.xray", "--symbols", "other"], "other: as symbols"),
    "report in no folder": (["convert", "app.xray", "-o", "o.json", "--report", "no/r.json"], "no/r.json"),
    "dump without input": (["dump"], "dump needs an input"),
}


@pytest.mark.parametrize(("arguments", "message"), FAILURES.values(), ids=FAILURES)
def test_failures_are_one_sentence(run: Run, folder: Path, arguments: list[str], message: str) -> None:
    """Exit status 2; nothing is left behind."""
    for name in ("sub", "sub.json"):
        (folder / name).mkdir()
    (folder / "empty").touch()
    (folder / "text").write_text("This is a text of some length, and no recording at all.\n" * 3)
    (folder / "short.xray").write_bytes(WHOLE.bytes()[:20])
    (folder / "v9.xray").write_bytes(b"\x09" + WHOLE.bytes()[1:])
    (folder / "other").write_bytes(elf_with_instr_map([("only", 0x2000, [0, 1])]))
    before = files(folder)
    done = run(*arguments)
    assert done.status == 2
    assert message in done.err
    assert done.err.startswith("traceferry: ")
    assert "Traceback" not in done.err
    assert len([line for line in done.err.splitlines() if not line.startswith("  ")]) == 1
    assert files(folder) == before


def test_usage_errors_are_exit_status_2(run: Run) -> None:
    """Options are not abbreviated, so that a new one never changes what a script means."""
    for arguments in ([], ["convert"], ["dump", "app.xray", "--offset", "-1"], ["info", "app.xray", "--js"], ["--ver"]):
        assert run(*arguments).status == 2


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_unwritable_folder(run: Run, folder: Path) -> None:
    (folder / "locked").mkdir(mode=0o500)
    done = run("convert", "app.xray", "-o", "locked/o.json")
    assert done.status == 2
    assert "locked/o.json: cannot be written: Permission denied" in done.err


@pytest.mark.parametrize(("error", "said"), [(MemoryError, "memory ran out"), (RecursionError, "nested more deeply")])
@pytest.mark.parametrize(
    "command", [("convert", "-o", "x.json"), ("info",), ("dump",), ("check",), ("view", "--no-open")]
)
def test_exhaustion_is_a_sentence(
    run: Run, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...], error: type[Exception], said: str
) -> None:
    def fail(*_: object) -> None:
        raise error

    for name in ("read", "dump"):
        monkeypatch.setattr(f"traceferry.importers.xray.{name}", fail)
    done = run(command[0], "app.xray", *command[1:])
    assert (done.status, done.err.count("\n")) == (2, 1)
    assert said in done.err


@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory are Linux's")
def test_what_decompresses_to_more_than_the_memory_is_a_sentence(folder: Path) -> None:
    """2 MB of gzip that hold 1.5 GB, in a process of 700 MB."""
    member = gzip.compress(bytes(1 << 26))
    (folder / "bomb.gz").write_bytes(member * 24)
    limited = "import resource, sys; resource.setrlimit(resource.RLIMIT_AS, (700 << 20,) * 2); "
    limited += "from traceferry.apps import cli; sys.exit(cli.main(['info', 'bomb.gz']))"
    done = subprocess.run([sys.executable, "-c", limited], capture_output=True, text=True, timeout=100)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "bomb.gz: memory ran out" in done.stderr


def test_a_failure_while_writing_leaves_nothing(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from traceferry.files.output import Output

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    (folder / "o.json").write_text("an older output")
    monkeypatch.setattr(Output, "write", fail)
    done = run("convert", "app.xray", "-o", "o.json")
    assert done.status == 2
    assert "No space left on device" in done.err
    assert files(folder) == {"o.json"}
    assert (folder / "o.json").read_text() == "an older output"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize("is_unbuffered", [False, True], ids=["buffered", "unbuffered"])
@pytest.mark.parametrize("words", ["convert {} -o - --to firefox", "info {}", "--version"])
def test_a_full_device(folder: Path, words: str, is_unbuffered: bool) -> None:
    command = [sys.executable, "-m", "traceferry", *words.format(folder / "app.xray").split()]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1" if is_unbuffered else ""}
    repo = Path(traceferry.__file__).parents[1]
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, check=False, cwd=repo, env=environment
        )
    assert done.returncode == 2
    *_, last = done.stderr.splitlines()
    assert last.endswith("No space left on device")
    assert "Traceback" not in done.stderr


def test_format_errors_show_the_place(run: Run, folder: Path) -> None:
    """Offset, record, and the bytes around it in hex."""
    (folder / "v9.xray").write_bytes(b"\x09" + WHOLE.bytes()[1:])
    done = run("info", "v9.xray", "--from", "xray")
    assert done.status == 2
    first, *lines = done.err.splitlines()
    assert "v9.xray" in first
    assert "at offset 0" in first
    assert "XRayFileHeader" in first
    shown = bytes.fromhex("".join(line.split("  ")[-1] for line in lines).replace(" ", ""))
    assert shown == (folder / "v9.xray").read_bytes()[:32]


def test_an_unknown_file_with_the_suffix_is_pointed_to_from(run: Run, folder: Path) -> None:
    (folder / "odd.xray").write_bytes(b"x" * 100)
    assert "--from xray" in run("info", "odd.xray").err


# ---------------------------------------------------------------- info


def shape(value: Any) -> Any:
    """The types of a JSON value; of a list, those of its first element."""
    if isinstance(value, dict):
        return {key: shape(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [shape(value[0])] if value else []
    return type(value).__name__


def test_info_json_is_the_interface(run: Run) -> None:
    """The keys and types that scripts rely on. More may come, none may go."""
    log, (program,) = path_of("fdr-c19-pie-events.xray"), binaries_of("fdr-c19-pie-events.xray")
    done = run("info", str(log), "--symbols", str(program), "--json")
    found = shape(json.loads(done.out))
    function = {
        "name": "str", "file": "str", "calls": "int", "total_ns": "int", "self_ns": "int", "samples": "int",
    }  # fmt: skip
    thread = {
        "tid": "int", "name": "str", "samples": "int", "calls": "int",
        "allocations": {"count": "int", "bytes": "int"},
    }  # fmt: skip
    assert found.keys() == {
        "inputs", "time", "processes", "events", "functions", "allocations", "markers", "coverage", "branches",
        "intervals", "title",
        "accesses", "scheduling", "code_objects", "tiers", "sources", "issues", "verdict", "costs",
    }  # fmt: skip
    assert found["inputs"] == [dict.fromkeys(("path", "format", "version", "producer"), "str")]
    assert found["time"] == {"clock": "str", "duration_ns": "int", "unix_start_ns": "NoneType"}
    (process,) = found["processes"]
    keys = {"pid", "name", "cgroup", "namespaces", "threads", "views", "counters", "heap_snapshots"}
    assert process.keys() == keys
    assert process["threads"][0].items() >= thread.items()
    assert set(process["threads"][0]["markers"].values()) == {"int"}
    assert found["functions"].keys() == {"total", "top", "samples", "sample_unit", "self_ns"}
    assert found["functions"]["top"][0].items() >= function.items()
    assert (found["code_objects"], found["sources"]) == ("int", "int")
    summary = json.loads(done.out)
    assert summary["time"]["duration_ns"] == 3_407_609_197
    assert [t["calls"] for p in summary["processes"] for t in p["threads"]] == [73, 12, 12]
    assert summary["processes"][0]["threads"][0]["markers"] == {"Custom event": 6}


def test_info_json_of_a_lossy_log(run: Run) -> None:
    issues = json.loads(run("info", "lossy.xray", "--json").out)["issues"]
    assert {issue["kind"] for issue in issues} >= {"entry_lost", "no_symbols"}
    assert all(issue.keys() >= {"kind", "severity", "count", "offset", "advice"} for issue in issues)


def test_recursion_counts_once_in_total(run: Run, folder: Path) -> None:
    """calls counts enters; a recursive function's total_ns counts its outermost activation only."""
    (folder / "r.xray").write_bytes(fdr("A B A a b a").bytes())
    top = {row["name"]: row for row in json.loads(run("info", "r.xray", "--json").out)["functions"]["top"]}
    a, b = top["function 1"], top["function 2"]
    assert (a["calls"], a["total_ns"], a["self_ns"]) == (2, 50, 30)
    assert (b["calls"], b["total_ns"], b["self_ns"]) == (1, 30, 20)


def test_info_for_people(run: Run) -> None:
    text = run("info", "app.xray", "--symbols", "app").out
    for words in ("app.xray: LLVM XRay", "of process app 1:", "work"):
        assert words in text


def test_top(run: Run) -> None:
    assert len(json.loads(run("info", "app.xray", "--json", "--top", "1").out)["functions"]["top"]) == 1


SORTED = {
    (): ["function 2", "function 1"],
    ("--sort", "self"): ["function 2", "function 1"],
    ("--sort", "total"): ["function 1", "function 2"],
    ("--sort", "calls"): ["function 1", "function 2"],
}


@pytest.mark.parametrize(("options", "names"), SORTED.items(), ids=[" ".join(o) or "none" for o in SORTED])
def test_sort(run: Run, options: tuple[str, ...], names: list[str]) -> None:
    top = json.loads(run("info", "app.xray", "--json", *options).out)["functions"]["top"]
    assert [row["name"] for row in top] == names


# ---------------------------------------------------------------- dump and formats


def test_dump_shows_every_record_with_its_offset(run: Run, folder: Path) -> None:
    (folder / "events.xray").write_bytes(content("fdr-c19-pie-events.xray"))
    lines = run("dump", "events.xray").out.splitlines()
    kinds = [line.split()[1] for line in lines]
    counts = {kind: kinds.count(kind) for kind in set(kinds)}
    assert counts == {
        "XRayFileHeader": 1, "BufferExtents": 3, "NewBuffer": 3, "Walltime": 3, "Pid": 3, "NewCPUId": 4,
        "TSCWrap": 2, "CustomEvent": 12, "CallArgument": 15, "Enter": 82, "EnterArg": 15, "Exit": 93, "TailExit": 4,
    }  # fmt: skip
    offsets = [int(line.split()[0], 16) for line in lines]
    assert offsets == sorted(set(offsets))
    assert any("payload=6576656e74" in line for line in lines)


@pytest.mark.parametrize("offset", ["48", "0x30"])
def test_dump_from_an_offset(run: Run, offset: str) -> None:
    lines = run("dump", "app.xray", "--offset", offset, "--limit", "2").out.splitlines()
    assert [line.split()[:2] for line in lines] == [["0x00000030", "NewBuffer"], ["0x00000040", "Walltime"]]


def test_dump_of_basic_mode(run: Run, folder: Path) -> None:
    (folder / "basic.xray").write_bytes(content("basic-c19-pie-recurse.xray"))
    lines = run("dump", "basic.xray").out.splitlines()
    assert "basic version=3" in lines[0]
    assert len(lines) == 1 + (len(content("basic-c19-pie-recurse.xray")) - 32) // 32


def test_dump_of_damaged_data_ends_with_words(run: Run, folder: Path) -> None:
    (folder / "cut.xray").write_bytes(WHOLE.bytes()[:-3])
    done = run("dump", "cut.xray")
    assert done.status == 0
    assert "cut" in done.out.splitlines()[-1]


COMMAND = [sys.executable, "-m", "traceferry"]


def test_a_reader_that_closes_the_pipe(folder: Path) -> None:
    """As `| head` does: what was asked for is printed, and no message. A conversion, though, has failed."""
    (folder / "long.xray").write_bytes(fdr(" ".join(["A", "a"] * 20_000)).bytes())
    for command, status in ((["dump", "long.xray"], 0), (["long.xray", "-o", "-", "--to", "firefox", "--quiet"], 2)):
        with subprocess.Popen([*COMMAND, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            assert len(process.stdout.read(10)) == 10
            process.stdout.close()
            assert (process.stderr.read(), process.wait()) == (b"", status)


ANSWERS = [
    ("compare app.xray longer.xray --fail-on 'calls > 0' --strict -o diff.html", 3),
    ("compare app.xray longer.xray --fail-on 'calls > 0' --strict --json", 3),
    ("compare app.xray app.xray --fail-on 'calls > 0' --strict", 0),
    ("info lossy.xray --fail-on loss", 1),
    ("info app.xray --fail-on loss", 0),
    ("info lossy.xray --json --fail-on loss", 1),
    ("info lossy.xray --tree --fail-on loss", 1),
    ("check lossy.xray", 1),
    ("check app.xray", 0),
    ("symbols app --verify other", 1),
    ("symbols app --lookup 0x1000 --verify app", 0),
    ("info lossy.xray", 0),
]


@pytest.mark.parametrize(
    ("command", "status", "is_both"),
    in_turn([pytest.param(*answer) for answer in ANSWERS], [False, True]),
)
def test_a_status_that_is_an_answer_does_not_depend_on_the_reader(
    folder: Path, command: str, status: int, is_both: bool
) -> None:
    """As `| grep -q gate` closes the pipe at the first line."""
    (folder / "longer.xray").write_bytes(fdr("A B 1000000 b B 5 b a", "A 500 a").bytes())
    (folder / "other").write_bytes(elf_with_instr_map([("another", 0x1000, [0, 1])]))
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as out:
        done = subprocess.run(
            [*COMMAND, *shlex.split(command)], stdout=out, stderr=out if is_both else subprocess.PIPE, check=False
        )
    assert done.returncode == status
    assert is_both or b"Broken pipe" not in done.stderr
    assert (folder / "diff.html").exists() == ("diff.html" in command)


def test_a_terminal_that_lacks_characters(folder: Path) -> None:
    (folder / "app").write_bytes(elf_with_instr_map([("größe→", 0x2000, [0, 1]), ("f", 0x3000, [0, 1])]))
    environment = {**os.environ, "PYTHONIOENCODING": "latin-1"}
    info = ["info", "app.xray", "--symbols", "app"]
    for command, words in ((["dump", "--model"], b"-> strings"), (info, b"gr\xf6\xdfe\\u2192")):
        done = subprocess.run([*COMMAND, *command], capture_output=True, check=False, env=environment)
        assert (done.returncode, done.stderr) == (0, b"")
        assert words in done.stdout


def test_dump_model(run: Run) -> None:
    from traceferry.model import GLOBAL_TABLES, THREAD_TABLES

    text = run("dump", "--model").out
    for table in (*GLOBAL_TABLES, *THREAD_TABLES):
        assert f"  {table.name}: {table.doc}" in text


def test_formats(run: Run) -> None:
    text = run("formats").out
    for words in ("xray", "firefox", "gecko", "perfetto", ".pftrace", ".gecko.json"):
        assert words in text


@pytest.mark.parametrize("command", [[], *([name] for name in cli.COMMANDS)])
def test_help(run: Run, command: list[str]) -> None:
    done = run(*command, "--help")
    assert done.status == 0
    assert done.out.startswith("usage: traceferry")
    assert not command or f"\n  traceferry {command[0].removeprefix('convert')}".rstrip() in done.out


# ---------------------------------------------------------------- the library


def test_convert_returns_the_report(folder: Path) -> None:
    report = traceferry.convert("lossy.xray", "o.json")
    assert {issue.kind for issue in report} >= {"entry_lost"}


def test_load_takes_one_thread_or_several(folder: Path) -> None:
    for wanted, tids in (("2", [2]), (["2"], [2]), (["1", "2"], [1, 2])):
        assert [thread.tid for _, thread in load_checked("app.xray", threads=wanted).threads] == tids


def test_library_errors(folder: Path) -> None:
    with pytest.raises(traceferry.UsageError):
        load_checked([])
    with pytest.raises(traceferry.UsageError):
        load_checked("none.xray")
    (folder / "text").write_text("no recording " * 10)
    with pytest.raises(traceferry.FormatError) as caught:
        load_checked("text")
    assert (caught.value.path, caught.value.offset) == ("text", 0)
    with pytest.raises(traceferry.UsageError):
        traceferry.save(load_checked("app.xray"), "o.unknown")
    assert issubclass(traceferry.FormatError, traceferry.TraceferryError)


def test_progress_counts_every_record(folder: Path) -> None:
    trace = load_checked("app.xray")
    done: list[int] = []
    traceferry.save(trace, "o.json", progress=done.append)
    assert sum(done) == sum(thread.n_records for _, thread in trace.threads) == 6


FOLDERS = {
    "of LTTng": (("ctf/metadata", "/* CTF 1.8 */"), "ctf", "of metadata, this is a trace of LTTng (CTF)"),
    "of Instruments": (("run.trace/form.template", "x"), "run.trace", "recording of Instruments"),
    "of anything": (("notes/a", "x"), "notes", "a folder without a recording in it (none of .dump, .data"),
}  # fmt: skip


@for_each("case", FOLDERS)
def test_folders_without_a_recording(case: tuple[tuple[str, str], str, str], run: Run, folder: Path) -> None:
    (name, text), path, said = case
    (folder / name).parent.mkdir()
    (folder / name).write_text(text)
    done = run("info", path)
    assert (done.status, said in done.err) == (2, True)


STRACE = b"1762000000.000001 getpid() = 7 <0.000002>\n" * 3
SAMPLED = PerfData().event("cpu-clock", freq=997).comm(7, 7, "app").sample(7, 7, ip=0x4010).bytes()
OF_RECORDERS = {
    "of XRay, beside its program": ({"app": PROGRAM, "xray-log.app.A1b2C3": WHOLE.bytes()}, ["xray-log.app.A1b2C3"]),
    "compressed": ({"xray-log.app.A1b2C3.gz": gzip.compress(WHOLE.bytes())}, ["xray-log.app.A1b2C3.gz"]),
    "beside what convert wrote": ({"xray-log.app.A1b2C3": WHOLE.bytes(), "o.json": b"{}"}, ["xray-log.app.A1b2C3"]),
    "of perf record --timestamp-filename": ({"perf.data.2026112812004512": SAMPLED}, ["perf.data.2026112812004512"]),
    "perf's last but one": ({"perf.data": SAMPLED, "perf.data.old": SAMPLED}, ["perf.data"]),
    "jitted code beside samples": ({"jit-7.dump": b"", "perf.data.old": SAMPLED}, ["perf.data.old"]),
    "of strace -ff": ({"trace.7": STRACE, "trace.8": STRACE}, ["trace.7", "trace.8"]),
    "text": ({"numbers": b"main;work 7\n"}, []),
}  # fmt: skip


@for_each("case", OF_RECORDERS)
def test_recordings_in_a_folder_without_suffixes(case: tuple[dict[str, bytes], list[str]], tmp_path: Path) -> None:
    files, recordings = case
    folder = tmp_path / "-".join(files)
    folder.mkdir()
    for name, data in files.items():
        (folder / name).write_bytes(data)
    assert recordings_in(str(folder)) == [str(folder / name) for name in recordings]


def test_an_interrupt_while_modules_are_imported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr("builtins.__import__", interrupted)
    status = entry.main()
    monkeypatch.undo()
    assert (status, capsys.readouterr().err) == (2, "traceferry: interrupted\n")
