"""Names of files that are not UTF-8: shown with escapes, in every output; opened by the bytes that they have."""

import json
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from builders.jitdump import JitDump
from builders.perf_data import PerfData
from readers import perfetto
from streams import fdr
from support import for_each, load_checked

import traceferry
from traceferry.apps import cli
from traceferry.apps.view.conversion import title_of
from traceferry.common.shown_text import encodable
from traceferry.model import TraceBuilder

STRANGE, SEEN = os.fsdecode(b"caf\xe9\xff"), "caf\\xe9\\xff"

pytestmark = pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="names of files are Unicode here")


@pytest.fixture
def recording(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """In a folder of such a name, too."""
    (tmp_path / STRANGE).mkdir()
    monkeypatch.chdir(tmp_path / STRANGE)
    Path(f"{STRANGE}.xray").write_bytes(fdr("A 500 B 1000000 b a").bytes())
    return f"{STRANGE}.xray"


@for_each("suffix", {suffix: suffix for suffix in (".json", ".gecko.json", ".pftrace", ".html")})
def test_every_output_has_the_name_with_escapes(suffix: str, recording: str, tmp_path: Path) -> None:
    output = f"{STRANGE}{suffix}"
    assert cli.main(["convert", recording, "-o", output, "--report", f"{STRANGE}.report", "--quiet"]) == 0
    written = Path(output).read_bytes()
    assert json.loads(Path(f"{STRANGE}.report").read_bytes())["issues"]
    if suffix == ".pftrace":
        assert SEEN in {each.name for each in perfetto.read(Path(output)).processes.values()}
    elif suffix != ".html":
        assert SEEN in json.dumps(json.loads(written)).replace("\\\\", "\\")


COMMANDS: dict[str, list[str]] = {
    "info": ["info", "RECORDING"],
    "info --json": ["info", "--json", "RECORDING"],
    "check": ["check", "RECORDING"],
    "convert, beside the input": ["RECORDING"],
    "compare": ["compare", "RECORDING", "RECORDING"],
    "compare --json": ["compare", "RECORDING", "RECORDING", "--json", "-"],
    "compare, outputs": ["compare", "RECORDING", "RECORDING", "-o", f"{STRANGE}.html", "-o", "c.json"],
    "options that name files": [
        "convert", "RECORDING", "-o", "o.json", "--sysroot", ".", "--embed-sources", f"../{STRANGE}", "--quiet",
    ],
}  # fmt: skip


def test_every_command_takes_such_a_name(recording: str, capsys: pytest.CaptureFixture[str]) -> None:
    for name, words in COMMANDS.items():
        assert cli.main([recording if word == "RECORDING" else word for word in words]) == 0, name
        printed = capsys.readouterr()
        if "--json" in words:
            json.loads(printed.out)
        shows = name not in ("check", "options that name files")
        assert not shows or SEEN in "".join(printed).replace("\\\\", "\\"), name
    assert Path(f"{recording}.json.gz").exists()
    assert cli.main(["info", f"no{STRANGE}"]) == 2
    assert f"no{SEEN}: cannot be read" in capsys.readouterr().err


def test_the_title_of_a_view(recording: str) -> None:
    assert title_of([recording]) == f"{SEEN}.xray"


def test_many_recordings(recording: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A recording, a damaged one, a label, a manifest, and the folder that is written: all have such names."""
    for needed in ("distributed", "pyarrow"):
        pytest.importorskip(needed, reason=f"{needed} is not installed: pip install 'traceferry[fleet]'")
    import distributed
    from pyarrow import parquet

    @contextmanager
    def in_this_process(*_: object) -> Iterator[Any]:
        with distributed.Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=None) as client:
            yield client

    def rows_of(folder: str) -> list[dict[str, Any]]:
        (path,) = (Path(folder) / "recordings").iterdir()
        with path.open("rb") as file:
            rows: list[dict[str, Any]] = parquet.read_table(file).to_pylist()
        return rows

    monkeypatch.setattr("traceferry.apps.fleet.run.cluster", in_this_process)
    monkeypatch.setattr("traceferry.apps.fleet.tasks._settle", lambda: None)  # which is for worker processes
    Path("runs").mkdir()
    shutil.copy(recording, f"runs/{STRANGE}.xray")
    Path(f"runs/bad{STRANGE}.xray").write_bytes(b"no recording")
    pattern, tables, pages = "runs/{host}.xray", f"tables{STRANGE}", f"pages{STRANGE}"
    assert cli.main(["aggregate", pattern, "-o", tables, "--merge", f"{STRANGE}.json"]) == 1
    rows = rows_of(tables)
    assert sorted((row["host"], row["status"]) for row in rows) == [(f"bad{SEEN}", "damaged"), (SEEN, "done")]
    assert f"bad{SEEN}.xray: damaged: " in capsys.readouterr().err
    assert cli.main(["aggregate", pattern, "-o", tables, "--resume", "--quiet"]) == 1
    Path("m.csv").write_bytes(b"recording,host\nruns/caf\xe9\xff.xray,007\n")
    assert cli.main(["convert", "--batch", "--manifest", "m.csv", "-o", pages, "--to", "perfetto"]) == 0
    assert (Path(pages) / "runs" / f"{STRANGE}.xray.pftrace").exists()
    assert [row["host"] for row in rows_of(pages)] == ["007"]


def perf(pid: int, path: str) -> PerfData:
    data = PerfData().event().comm(pid, pid, STRANGE).mmap2(pid, pid, 0x7000, 0x1000, 0, path)
    return data.sample(pid, pid, ip=0x7010)


def test_a_recording_names_files_by_their_bytes(tmp_path: Path) -> None:
    """A jitdump is found at its recorded path; the thread's name comes from the kernel, which cuts anywhere."""
    folder = tmp_path / STRANGE
    folder.mkdir()
    dump = (
        JitDump(pid=5).debug_info(0x7000, [(0x7000, 3, 0, os.fsencode(f"{folder}/a.php"))]).load("jitted", 0x7000, 64)
    )
    (folder / "jit-5.dump").write_bytes(dump.bytes())
    (folder / "a.php").write_text("<?php")
    Path(tmp_path / "perf.data").write_bytes(perf(5, f"{folder}/jit-5.dump").bytes())
    trace = load_checked([tmp_path / "perf.data"], embed_sources=str(tmp_path))
    assert "companion_missing" not in {issue.kind for issue in trace.report}
    assert {thread.name for _, thread in trace.threads} >= {SEEN}
    assert list(trace.texts) == ["<?php"]


def test_a_trace_of_such_names_can_be_saved(tmp_path: Path) -> None:
    (tmp_path / "perf.data").write_bytes(perf(5, f"/tmp/{STRANGE}/lib.so").bytes())
    trace = load_checked([tmp_path / "perf.data"])
    for suffix in (".json", ".pftrace", ".html", ".gecko.json"):
        traceferry.save(trace, tmp_path / f"out{suffix}")
    assert SEEN in (tmp_path / "out.json").read_text().replace("\\\\", "\\")


def test_only_surrogates_are_escaped() -> None:
    assert encodable("plain") == "plain"
    assert encodable("Größe \x1b 函数") == "Größe \x1b 函数"
    assert encodable(STRANGE) == SEEN
    assert encodable("\ud800") == "\\ud800"


def test_names_of_a_trace_can_be_written() -> None:
    trace = TraceBuilder()
    assert trace.strings[trace.strings.intern(STRANGE)] == SEEN
    assert trace.strings.intern(STRANGE) == trace.strings.intern(SEEN) == 0
