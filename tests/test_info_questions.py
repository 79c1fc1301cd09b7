"""What `info` answers about call paths, lines and instructions, and that it bounds and escapes what it prints."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from builders import stacks
from builders.xray import Fdr
from pages import Called, many_paths, sampled
from streams import NS, START

import traceferry
from traceferry.analysis.info import questions
from traceferry.analysis.info.markdown import as_markdown
from traceferry.analysis.info.summary import summarize
from traceferry.analysis.info.threads import threads_lines
from traceferry.apps import cli
from traceferry.common.errors import UsageError


def log(path: Path) -> Path:
    """main (1) calls work (2) twice and help (3), which calls work, too: 100, 200 and 50 ns of work."""
    made = Fdr(frequency=NS)
    records = [made.new_cpu(0, START), made.enter(1, 1)]
    for ns in (100, 200):
        records += [made.enter(2, 0), made.exit(2, ns)]
    records += [made.enter(3, 0), made.enter(2, 10), made.exit(2, 50), made.exit(3, 5), made.exit(1, 35)]
    path.write_bytes(made.buffer(1, pid=1, records=records).bytes())
    return path


@pytest.fixture
def paths(tmp_path: Path) -> questions.Paths:
    return questions.Paths(traceferry.load(log(tmp_path / "app.xray")))


def rows(answer: Any) -> list[tuple[int, str, int, int]]:
    return [(row["depth"], row["name"][-1], row["self"], row["total"]) for row in answer["rows"]]


def test_the_tree(paths: questions.Paths) -> None:
    answer = questions.tree(paths, 10)
    assert rows(answer) == [(0, "1", 35, 400), (1, "2", 300, 300), (1, "3", 15, 65), (2, "2", 50, 50)]
    assert (answer["unit"], answer["whole"], answer["left_out"]) == ("ns", 400, 0)


def test_the_largest_are_kept_and_the_others_counted(paths: questions.Paths) -> None:
    answer = questions.tree(paths, 2)
    assert (rows(answer), answer["left_out"]) == ([(0, "1", 35, 400), (1, "2", 300, 300)], 2)


def test_callees_are_those_of_all_paths_together(paths: questions.Paths) -> None:
    assert rows(questions.callees(paths, "function 3", 10)) == [(0, "3", 15, 65), (1, "2", 50, 50)]
    assert rows(questions.callees(paths, "function 2", 10)) == [(0, "2", 350, 350)]


def test_callers_stand_below_what_they_call(paths: questions.Paths) -> None:
    assert [(depth, name, total) for depth, name, _, total in rows(questions.callers(paths, "function 2", 10))] == [
        (0, "2", 350), (1, "1", 300), (1, "3", 50), (2, "1", 50),
    ]  # fmt: skip


def test_a_recursive_function_is_called_from_outside(tmp_path: Path) -> None:
    made = Fdr(frequency=NS)
    records = [made.new_cpu(0, START), made.enter(1, 1), made.enter(2, 0), made.enter(2, 10), made.exit(2, 20),
               made.exit(2, 5), made.exit(1, 5)]  # fmt: skip
    (tmp_path / "r.xray").write_bytes(made.buffer(1, pid=1, records=records).bytes())
    found = questions.Paths(traceferry.load(tmp_path / "r.xray"))
    assert [(row["name"][-1], row["total"]) for row in questions.callers(found, "function 2", 9)["rows"]] == [
        ("2", 35), ("1", 35),
    ]  # fmt: skip
    assert rows(questions.callees(found, "function 2", 9)) == [(0, "2", 15, 35), (1, "2", 20, 20)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("function", "function: 3 functions have this in their names: function 1, function 2, function 3"),
        ("funktion 2", "funktion 2: no function is called so; did you mean function 2?"),
        ("zzz", "zzz: no function is called so"),
    ],
)
def test_a_name_that_does_not_fit_one_function(paths: questions.Paths, text: str, said: str) -> None:
    with pytest.raises(UsageError) as error:
        paths.functions_called(text)
    assert str(error.value) == said


def test_long_names_are_brief_where_several_fit() -> None:
    long = f"app::Table<{'std::string, ' * 9}int>::insert"
    found = questions.Paths(sampled([(Called(long), Called("insert_sorted"))]))
    with pytest.raises(UsageError, match=r"have this in their names: app::Table<…>::insert, insert_sorted$"):
        found.functions_called("insert")


def test_a_recording_without_call_paths(tmp_path: Path) -> None:
    (tmp_path / "e.xray").write_bytes(Fdr(frequency=NS).bytes())
    with pytest.raises(UsageError, match="no samples, calls or allocations"):
        questions.Paths(traceferry.load(tmp_path / "e.xray"))


@pytest.mark.parametrize("form", [[], ["--markdown"], ["--json"]])
@pytest.mark.parametrize("question", [["--tree"], ["--callers", "function 2"], ["--callees", "function 3"]])
def test_the_command_answers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], form: list[str], question: list[str]
) -> None:
    assert cli.main(["info", str(log(tmp_path / "app.xray")), *question, *form]) == 0
    out = capsys.readouterr().out
    assert "function 2" in out or "function 3" in out
    if form == ["--json"]:
        (answer,) = json.loads(out)["answers"]
        assert answer["question"] == question[0].removeprefix("--")


@pytest.mark.parametrize(
    ("words", "status"),
    [(["--callers", "zzz"], 2), (["--callers", "zzz", "--markdown"], 2), (["--asm", "function 2"], 2)],
)
def test_what_cannot_be_answered(tmp_path: Path, words: list[str], status: int) -> None:
    assert cli.main(["info", str(log(tmp_path / "app.xray")), *words]) == status


def test_escapes_of_a_terminal_are_escaped_in_json_too(tmp_path: Path) -> None:
    from traceferry.apps.cli.info import as_json_text

    evil = {"name": "a\x1b[2J\x9b2J\u202e\U000e0041b", "plain": "\u00e9\n"}
    text = as_json_text(json.dumps(evil, ensure_ascii=False, indent=1).encode())
    assert json.loads(text) == evil
    assert all(char.isprintable() or char == "\n" for char in text)


# ---------------------------------------------------------------- threads


def process(*threads: tuple[int, int], pid: int = 1) -> dict[str, Any]:
    """threads: (number, samples)."""
    made = [
        {"tid": tid, "name": f"t{tid}", "samples": n, "calls": 0, "markers": {}, "allocations": {"count": 0}}
        for tid, n in threads
    ]
    return {"pid": pid, "name": f"p{pid}", "cgroup": None, "threads": made}


def test_threads_by_what_they_have() -> None:
    assert threads_lines([process((1, 5), (2, 90), (3, 0), (4, 5), (5, 0))], 2) == [
        "", "5 threads of process p1 1:", "  samples      %  thread", "       90  90.0%  t2 2",
        "        5   5.0%  t1 1",
        "  1 more thread with 5 samples", "  2 idle threads",
    ]  # fmt: skip


def test_threads_of_several_processes() -> None:
    assert threads_lines([process((1, 1)), process((7, 3), pid=7)], 9)[1:] == [
        "2 threads of 2 processes:", "  samples      %  thread", "        3  75.0%  t7 7 of p7 7",
        "        1  25.0%  t1 1 of p1 1",
    ]  # fmt: skip


def test_idle_processes_are_a_number() -> None:
    assert threads_lines([process((n, 0), pid=n) for n in range(1, 400)], 20)[1:] == [
        "399 threads of 399 processes:", "  399 idle threads",
    ]  # fmt: skip


# ---------------------------------------------------------------- the whole as Markdown


def test_the_whole_report_as_markdown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["info", str(log(tmp_path / "app.xray")), "--markdown"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("### `")
    assert any(line.startswith("**") for line in lines), "the verdict"
    head = next(nth for nth, line in enumerate(lines) if line.endswith("| function |"))
    cells = lines[head].count("|")
    assert [line.count("|") for line in lines[head + 1 : head + 4]] == [cells] * 3, "the same cells in each row"
    assert "`function 2`" in "".join(lines[head:])


EVIL = "a`b|c\n<img src=x>[x](http://x) @you #1 **b**"


def test_nothing_of_a_recording_is_markup() -> None:
    trace = sampled([(Called(EVIL, source=f"/srv/{EVIL}"),)] * 3 + [(Called("main"), Called(EVIL, "Runtime"))] * 3)
    trace.report.note("files_read", 1, where=EVIL, detail=EVIL)
    text = as_markdown(summarize(trace), [trace.func_name(func) for func in range(len(trace.funcs))])
    # Without code spans, each between as many backquotes as begin it, nothing of the name is left.
    outside = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", text)
    assert text.count("img src=x") >= 3
    assert not re.search(r"<img|\]\(|@you|#1|\*\*b|http://", outside)
    assert all(line.count("|") - line.count("\\|") in (0, 4) for line in text.splitlines())


def test_a_report_that_is_too_long_for_a_comment_says_what_is_left_out() -> None:
    trace = many_paths(3000)
    summary, names = summarize(trace, top=10**4), [trace.func_name(func) for func in range(len(trace.funcs))]
    whole = as_markdown(summary, names, limit=1 << 20)
    assert "left out" not in whole
    for limit in (400, 2000, 60_000):
        text = as_markdown(summary, names, limit=limit)
        assert len(text.encode()) <= limit
        assert ("left out" in text) == (limit < len(whole.encode()))


UNITS = {"delay": ("nanoseconds", "1.5s"), "inuse_space": ("bytes", "1.5 GB")}


@pytest.mark.parametrize("name", UNITS)
def test_answers_are_in_the_unit_of_the_samples(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Times that were measured, and bytes of a heap: also of the threads that are not shown."""
    unit, whole = UNITS[name]
    made = stacks.Pprof(((name, unit),))
    location = made.location(("f", "/w/f.go", 0))
    for thread, amount in (("a", 10**9), ("b", 5 * 10**8)):
        made.sample([location], [amount], thread=thread)
    (tmp_path / "x.pb").write_bytes(made.data())
    for question in (["--callers", "f"], ["--tree"]):
        assert cli.main(["info", str(tmp_path / "x.pb"), *question]) == 0
        assert f"of {whole}:" in capsys.readouterr().out
    assert cli.main(["info", str(tmp_path / "x.pb"), "--top", "1"]) == 0
    rest = {"nanoseconds": "500ms", "bytes": "500 MB"}[unit]
    assert f"1 more thread with {rest}" in capsys.readouterr().out
