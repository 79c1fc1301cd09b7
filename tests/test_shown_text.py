"""Names that others wrote, on a terminal: no escape sequence, no line of their own, no turned direction."""

import ast
import json
import re
import shlex
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest
from builders.perf_data import PerfData
from conftest import REPO
from support import for_each

from traceferry.apps import cli
from traceferry.common.markdown import code
from traceferry.common.report import Report
from traceferry.common.shown_text import shown, typed

EVIL = "evil\x1b]0;PWNED\x07\x1b[2J\nerror: forged\r\u202edrawrof\x9b31m\u2028\u200b"
SEEN = "Größe<T*, 'a'>::f\\n 函数 مرحبا 😀 e\u0301"
RAW = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u202e\u200b]")


@for_each(
    "case",
    {
        "a terminal's escape": ("\x1b[31mred", r"\x1b[31mred"),
        "eight-bit escape": ("\x9b31m", r"\x9b31m"),
        "ends of a line": ("a\nb\rc\x85d\u2028e\u2029", r"a\nb\rc\x85d\u2028e\u2029"),
        "tabulator": ("a\tb", r"a\tb"),
        "turned": ("a\u202eb\u2066c\u061cd", r"a\u202eb\u2066c\u061cd"),
        "not seen": ("a\u200bb\xadc\ufeffd\U000e0041", r"a\u200bb\xadc\ufeffd\U000e0041"),
        "a byte that is no UTF-8": (b"a\xff".decode("utf-8", "surrogateescape"), r"a\xff"),
        "half of a pair": ("\ud800", r"\ud800"),
        "what can be seen": (SEEN, SEEN),
    },
)
def test_what_cannot_be_seen_is_escaped(case: tuple[str, str]) -> None:
    given, wanted = case
    assert shown(given) == wanted
    assert code(given) == f"`{wanted}`"


@for_each(
    "words",
    {
        "lines": ["node", "-e", "\nfunction f(){\n  return 'a\\n';\n}\n"],
        "a tabulator": ["./a", "tab\there", "$HOME *", "it's"],
        "bytes and marks": ["./a", b"\xff\n".decode("utf-8", "surrogateescape"), "\x85f\u202e\xad0\U000e0041"],
        "nothing to escape": ["sh", "-c", "a 'b\\n' \"c\""],
    },
)
def test_a_command_with_what_cannot_be_seen_is_typed_as_it_is_shown(words: list[str]) -> None:
    """A shell makes the same words of it."""
    line = typed(shlex.join(words))
    assert shown(line) == line
    shell = ["bash", "-c", f"printf '%s\\0' {line}"]
    given = subprocess.run(shell, capture_output=True, check=True, env={"LC_ALL": "C.UTF-8"}).stdout
    assert given.decode("utf-8", "surrogateescape").split("\0")[:-1] == words


@pytest.fixture
def recording(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Its thread, its library, and the file itself have such names."""
    monkeypatch.chdir(tmp_path)
    data = PerfData().event().comm(5, 5, EVIL[:14]).comm(5, 6, "a\nb\u202e").mmap2(5, 5, 0x1000, 0x1000, 0, f"/{EVIL}")
    for nth in range(20):
        data.sample(5, 5 + nth % 2, ip=0x1100 + nth % 3)
    path = "esc\x1b[31m.perf.data"
    Path(path).write_bytes(data.bytes())
    Path("longer.data").write_bytes(data.sample(5, 5, ip=0x1100).bytes())
    Path("esc.sym").write_text(f"MODULE Linux x86_64 {'0' * 33} {EVIL[:10]}\nFUNC 1000 10 0 evil\x1b[2J\u202ename\n")
    return path


def test_no_command_prints_what_a_terminal_obeys(recording: str, capsys: pytest.CaptureFixture[str]) -> None:
    commands: dict[str, tuple[list[str], str]] = {
        "info": (["info", recording], "evil\\x1b]0;PWNED"),
        "check": (["check", recording], "ed: "),
        "dump": (["dump", recording], "comm=a\\nb\\u202e"),
        "convert": (["convert", recording, "-o", "out\x1b.json"], "wrote out\\x1b.json"),
        "compare": (["compare", recording, "longer.data"], "evil\\x1b]0;PWNED"),
        "a gate": (["compare", recording, recording, "--fail-on", "self('evil\x1b') > 5%"], "self('evil\\x1b')"),
        "Markdown": (["compare", recording, recording, "--markdown"], "Identical"),
        "symbols": (["symbols", "esc.sym", "--lookup", "0x1001"], "evil\\x1b[2J\\u202ename"),
        "a folder": (["symbols", "esc.sym"], "esc.sym"),
        "no such file": (["info", "no\x1bsuch\n"], "no\\x1bsuch\\n"),
        "no such command": (["no\x1bsuch"], "no\\x1bsuch: neither a file nor a command"),
        "an option": (["info", "--no\x1bsuch", recording], "--no\\x1bsuch"),
        "not a recording": (["info", "esc.sym", "--from", "perf\x1b"], "perf\\x1b"),
    }
    for name, (words, wanted) in commands.items():
        with suppress(SystemExit):
            cli.main(words)
        printed = "".join(capsys.readouterr())
        assert wanted in printed, name
        assert RAW.findall(printed) == [], name
        assert not re.search("^error: forged", printed, re.MULTILINE), name


def test_json_has_names_as_they_are(recording: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["info", recording, "--json"]) == 0
    (process,) = json.loads(capsys.readouterr().out)["processes"]
    assert {thread["name"] for thread in process["threads"]} == {EVIL[:14], "a\nb\u202e"}


def test_an_issue_is_one_line() -> None:
    report = Report()
    report.note("files_read", 1, where="x", detail=EVIL)
    (issue,) = report
    assert RAW.findall(issue.as_text()) == []
    assert "\n" not in issue.as_text()
    assert issue.as_json()["detail"] == EVIL


# What gives text for people, without anything that a terminal obeys; and what has nothing of a recording in it.
SHOWN = {"shown", "as_text", "as_json_text", "as_markdown"}
OWN = {"converter/apps/cli/formats.py", "converter/apps/cli/completion.py"}
# Prints what it is given.
PRINTER, PRINTING = "converter/apps/cli/closed_pipe.py", ("print", "print_to_the_end")


def is_shown(argument: ast.expr) -> bool:
    if isinstance(argument, ast.BinOp):
        return is_shown(argument.left) and is_shown(argument.right)
    if not isinstance(argument, ast.Call):
        return isinstance(argument, ast.Constant)
    called = argument.func.attr if isinstance(argument.func, ast.Attribute) else getattr(argument.func, "id", "")
    return called in SHOWN or ast.unparse(argument).startswith(("describe(", "orjson.dumps("))


def test_everything_printed_goes_through_one_function() -> None:
    for path in sorted((REPO / "converter").rglob("*.py")):
        if str(path.relative_to(REPO)) in {*OWN, PRINTER}:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in PRINTING:
                assert all(map(is_shown, node.args)), f"{path.relative_to(REPO)}:{node.lineno}: print(shown(...))"
