"""The engine of `query`: where it is from, and what is said when it fails; nothing is left running."""

import hashlib
import http.server
import os
import platform
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from queries import Run, found, query, trace

from traceferry.apps.cli import main
from traceferry.common.errors import FormatError, UsageError
from traceferry.trace_processor import engine
from traceferry.trace_processor.engine import VARIABLE, Engine, find_engine
from traceferry.trace_processor.session import Session

__all__ = ["found", "query", "trace"]

pytestmark = pytest.mark.skipif(os.name == "nt", reason="shell scripts and signals")
ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"


def program(path: Path, text: str) -> str:
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


# ---------------------------------------------------------------- download


class Served:
    """A loopback server with one program; asked: how often."""

    def __init__(self, data: bytes) -> None:
        served = self
        self.asked = 0

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                served.asked += 1
                self.send_response(200 if self.path == "/tp" else 404)
                self.end_headers()
                self.wfile.write(data if self.path == "/tp" else b"")

            def log_message(self, *_: Any) -> None:
                pass

        self.server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/tp"

    def close(self) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, found: str) -> Iterator[Served]:
    """What the package perfetto names as its build is a script on a loopback server, which runs the engine here."""
    if not shutil.which("curl"):
        pytest.skip("curl, which the package perfetto downloads with, is not installed")
    from perfetto.prebuilts.manifests import trace_processor_shell as manifest

    data = f'#!/bin/sh\nexec {found} "$@"\n'.encode()
    server = Served(data)
    build = {
        "file_name": "trace_processor_shell", "url": server.url, "sha256": hashlib.sha256(data).hexdigest(),
        "platform": sys.platform, "machine": [platform.machine().lower()],
    }  # fmt: skip
    monkeypatch.setattr(manifest, "TRACE_PROCESSOR_SHELL_MANIFEST", [build])
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv(VARIABLE)
    path = [folder for folder in os.environ["PATH"].split(os.pathsep) if not Path(folder, engine.PROGRAM).exists()]
    monkeypatch.setenv("PATH", os.pathsep.join(path))
    yield server
    server.close()


def test_download_is_asked_for_and_cached(query: Run, served: Served, trace: Path) -> None:
    error = query(trace, "SELECT 1 AS a", status=2)
    assert all(way in error for way in ("--trace-processor", VARIABLE, "PATH", "--download"))
    assert served.asked == 0
    assert query(trace, "SELECT 1 AS a", "--download") == [{"a": "1"}]
    assert query(trace, "SELECT 2 AS a", "--download") == [{"a": "2"}]
    assert query(trace, "SELECT 3 AS a") == [{"a": "3"}]
    assert served.asked == 1
    assert find_engine().found == "cache of the package perfetto"


def test_download_is_verified(query: Run, served: Served, trace: Path, tmp_path: Path) -> None:
    from perfetto.prebuilts.manifests import trace_processor_shell as manifest

    (build,) = manifest.TRACE_PROCESSOR_SHELL_MANIFEST
    build["sha256"] = "0" * 64
    assert "Checksum mismatch" in query(trace, "SELECT 1", "--download", status=2)
    left = [path for path in (tmp_path / "home").rglob("*") if path.is_file()]
    assert not any(os.access(path, os.X_OK) for path in left)
    build["url"] += "/absent"
    assert "cannot be downloaded" in query(trace, "SELECT 1", "--download", status=2)
    manifest.TRACE_PROCESSOR_SHELL_MANIFEST.clear()
    assert "a build for this machine" in query(trace, "SELECT 1", "--download", status=2)


# ---------------------------------------------------------------- programs that are not it


def elf_of(machine: int) -> bytes:
    """The beginning of a program of another processor (EM_AARCH64 is 183, EM_X86_64 62)."""
    return b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x02\0" + machine.to_bytes(2, "little") + bytes(200)


@pytest.mark.skipif(sys.platform != "linux", reason="ELF")
def test_a_program_of_another_machine(tmp_path: Path, query: Run, trace: Path) -> None:
    (tmp_path / "tp").write_bytes(elf_of(62 if platform.machine() == "aarch64" else 183))
    (tmp_path / "tp").chmod(0o755)
    error = query(trace, "SELECT 1", "--trace-processor", tmp_path / "tp", status=2)
    assert "incomplete, or built for another machine" in error


def test_programs_that_do_not_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "ANSWERS_WITHIN_S", 0.5)
    with pytest.raises(UsageError, match="does not tell its version"):
        find_engine(program(tmp_path / "slow", "exec sleep 20"))
    with pytest.raises(UsageError, match="Permission denied"):
        find_engine(str(tmp_path))
    with pytest.raises(UsageError, match="No such file"):
        find_engine(str(tmp_path / "absent"))
    with pytest.raises(UsageError, match="names no version"):
        find_engine(program(tmp_path / "bytes", "printf '\\377\\376'"))


def test_formats_tells_the_engine(found: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["formats"]) == 0
    assert f"{found} ({VARIABLE})" in capsys.readouterr().out


ANSWERS = {
    "nothing": "exit 3",
    "a signal": "kill -9 $$",
    "another text": "echo hello",
    "a length without an end": r"printf '\012\377\377\377\377\377\377\377\377\377\377\377\377'",
    "no message": r"printf '\012\003\377\377\377'; cat >/dev/null",
    "a cut message": r"printf '\012\177\022'",
}


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
def test_answers_that_are_none(tmp_path: Path, found: str, answer: str) -> None:
    path = program(tmp_path / "tp", f'if [ "$1" = --version ]; then echo Perfetto v58.2; exit; fi; {answer}')
    with (
        Session(find_engine(path), tmp_path / "x") as session,
        pytest.raises(FormatError, match=r"trace_processor v58\.2"),
    ):
        session.query("SELECT 1")


# ---------------------------------------------------------------- what ends


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def has_ended(pid: int) -> bool:
    deadline = time.monotonic() + 10
    while is_running(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not is_running(pid)


def test_an_engine_that_is_killed_while_it_answers(found: str, trace: Path) -> None:
    with Session(find_engine(), trace) as session:
        session.query("SELECT 1")
        killer = threading.Timer(0.3, session._child.kill)
        killer.start()
        with pytest.raises(FormatError, match="it ended by signal 9"):
            session.query(ENDLESS)
        killer.join()


def test_a_time_limit_ends_what_has_no_end(query: Run, trace: Path) -> None:
    begin = time.monotonic()
    said = query(trace, ENDLESS, "--time-limit", "300ms", status=2)
    assert "the SQL took longer than 0.3 s, and was ended" in said
    assert time.monotonic() - begin < 20
    assert query(trace, "SELECT 7 AS n", "--time-limit", "1m") == [{"n": "7"}]
    assert "'soon' is not a valid duration" in query(trace, "SELECT 1", "--time-limit", "soon", status=2)


def test_a_busy_engine_is_not_waited_for(found: str, trace: Path) -> None:
    begin = time.monotonic()
    session = Session(find_engine(), trace)
    session.query("SELECT 1")
    os.kill(session._child.pid, signal.SIGSTOP)
    session.__exit__(RuntimeError, RuntimeError("while it is busy"), None)
    assert time.monotonic() - begin < 4
    assert not is_running(session._child.pid)


@pytest.mark.skipif(sys.platform != "linux", reason="prctl")
@pytest.mark.parametrize("sign", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_the_engine_ends_with_the_command(found: str, trace: Path, sign: signal.Signals) -> None:
    """Also in the middle of a statement without an end."""
    command = [sys.executable, "-m", "traceferry", "query", str(trace), ENDLESS]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True) as child:
        children = Path(f"/proc/{child.pid}/task/{child.pid}/children")
        deadline = time.monotonic() + 20
        while not (pids := children.read_text().split()) or "stdio" not in command_of(int(pids[0])):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        time.sleep(0.3)
        child.send_signal(sign)
        child.communicate(timeout=20)
    assert has_ended(int(pids[0]))


def command_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


def test_nothing_of_perfetto_is_imported_for_others(tmp_path: Path) -> None:
    """Other commands start as fast as without this one."""
    text = "import sys; from traceferry.apps.cli import main; main(['info', sys.argv[1]]); print(*sys.modules)"
    recording = Path(__file__).resolve().parent.parent / "fixtures/xray/clang-19/fdr-c19-pie-pool-tsc.xray"
    done = subprocess.run([sys.executable, "-c", text, str(recording)], capture_output=True, text=True, check=True)
    modules = done.stdout.split("\n")[-2].split()
    assert "numpy" in modules
    assert not {"perfetto", "pyarrow", "google.protobuf", "traceferry.trace_processor"} & set(modules)


def test_version_text_is_that_of_the_engine(found: str) -> None:
    said = subprocess.run([found, "--version"], capture_output=True, text=True, check=True).stdout
    assert isinstance(find_engine(), Engine)
    assert f"Perfetto {find_engine().version}" in said
