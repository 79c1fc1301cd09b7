"""Options that name files and folders: relative, with .., with a slash at the end, through a link, and with ~."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from builders.jitdump import JitDump
from builders.perf_data import PerfData
from builders.xray import elf_with_instr_map
from streams import fdr
from support import load_checked

from traceferry.apps import cli
from traceferry.common.errors import UsageError
from traceferry.model import Trace

CODE = 0x7000
PROGRAM = elf_with_instr_map([("main", 0x2000, [0, 1])])


@pytest.fixture
def spelled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mapping[str, str]:
    """Ways to name the folder `here/there`, in which everything lies; the working folder is `here`."""
    there = tmp_path / "here" / "there"
    for name in ("root/app", "symbols", "sources", "runs"):
        (there / name).mkdir(parents=True)
    (tmp_path / "link").symlink_to(there)
    (there / "root/app/program").write_bytes(PROGRAM)
    (there / "symbols/program").write_bytes(PROGRAM)
    (there / "sources/a.js").write_text("a()")
    data = PerfData().event().mmap2(5, 5, 0x40_0000, 0x4000, 0, "/app/program").sample(5, 5, ip=0x40_1000)
    (there / "runs/perf.data").write_bytes(data.bytes())
    (there / "runs/app.xray").write_bytes(fdr("A 500 a").bytes())
    dump = JitDump(pid=5).debug_info(CODE, [(CODE, 1, 0, "a.js")]).load("f", CODE)
    (there / "runs/jit-5.dump").write_bytes(dump.bytes())
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("HOME", str(tmp_path / "here"))
    monkeypatch.setenv("USERPROFILE", str(tmp_path / "here"))
    return {
        "absolute": str(there),
        "relative": "there",
        "with a dot": "./there",
        "with a slash at the end": "there/",
        "with ..": "../here/there",
        "with .. behind a link": "../link/../there",
        "through a link": "../link",
        "with ~": "~/there",
    }


def _names(trace: Trace) -> bool:
    return "main" in list(trace.strings)


OPTIONS: dict[str, tuple[str, str, Callable[[Trace], bool]]] = {
    "sysroots": ("root", "runs/perf.data", _names),
    "symbols": ("symbols", "runs/perf.data", _names),
    "embed_sources": ("sources", "runs/jit-5.dump", lambda trace: list(trace.texts) == ["a()"]),
    "source_roots": ("sources", "runs/jit-5.dump", lambda trace: list(trace.texts) == ["a()"]),
}


def test_folders_by_any_name(spelled: Mapping[str, str]) -> None:
    """And the recordings. ~ is a shell's, or the command's, not the library's."""
    for option, (folder, recording, is_found) in OPTIONS.items():
        for how, name in spelled.items():
            if how == "with ~":
                continue
            end = "/" if name.endswith("/") else ""
            trace = load_checked(f"{name.rstrip('/')}/{recording}", **{option: f"{name.rstrip('/')}/{folder}{end}"})
            assert is_found(trace), (option, how)
            assert not is_found(load_checked(f"{name.rstrip('/')}/{recording}")), option


def test_commands_take_any_name(spelled: Mapping[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    """Also where the shell does not replace ~: behind =, and in quotes."""
    commands: dict[str, list[str]] = {
        "--sysroot": ["convert", "{}/runs/perf.data", "--sysroot={}/root", "-o", "{}/out.json", "--report={}/r"],
        "--symbols": ["convert", "{}/runs/perf.data", "--symbols={}/symbols", "-o{}/out.json", "--report", "{}/r"],
        "a file of symbols": ["convert", "{}/runs/perf.data", "--symbols={}/symbols/program", "-o{}/out.json"],
        "compare": [
            "compare", "--base={}/runs/*.xray", "--new={}/runs/app.xray", "--base-symbols={}/symbols",
            "--new-symbols={}/symbols", "--json={}/r", "--markdown={}/m", "--output={}/out.json",
        ],
    }  # fmt: skip
    written: dict[str, set[bytes]] = {}
    for name, words in commands.items():
        for how, folder in spelled.items():
            assert cli.main([word.replace("{}", folder.rstrip("/")) for word in words]) == 0, (name, how)
            out = Path("there/out.json")
            written.setdefault(name, set()).add(out.read_bytes())
            assert b"main" in out.read_bytes(), (name, how)
            out.unlink()
    # What is compared has its path as a name.
    assert [len(outputs) for name, outputs in written.items() if name != "compare"] == [1, 1, 1]
    capsys.readouterr()


def test_a_file_called_as_the_home_folder_is_not_meant(spelled: Mapping[str, str]) -> None:
    os.mkdir("~")
    Path("~/app.xray").write_bytes(fdr("A 500 a").bytes())
    assert cli.main(["info", "~/app.xray"]) == 2
    assert cli.main(["info", "./~/app.xray"]) == 0


@pytest.mark.parametrize("option", ["sysroots", "source_roots", "embed_sources", "symbols"])
def test_a_folder_that_is_not_there(option: str, spelled: Mapping[str, str]) -> None:
    with pytest.raises(UsageError, match="nowhere: "):
        load_checked("there/runs/perf.data", **{option: "nowhere"})
