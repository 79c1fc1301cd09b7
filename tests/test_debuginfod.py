"""The client of debuginfod, against a server on this machine that behaves well, and badly."""

from __future__ import annotations

import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from test_debug_files import BUILD_ID, OTHER_ID, WORK, elf

from traceferry.common.errors import UsageError
from traceferry.common.report import Report
from traceferry.files.source import Source
from traceferry.symbolication import debuginfod
from traceferry.symbolication.binary import Binary
from traceferry.symbolication.debug_files import DebugFiles
from traceferry.symbolication.debuginfod import Debuginfod, Servers, cache_folder, servers_of

FILE = elf(WORK, build_id=BUILD_ID)
BUILD = BUILD_ID.hex()
Answer = Callable[[BaseHTTPRequestHandler], None]


@contextmanager
def server(answer: Answer) -> Iterator[tuple[str, list[str]]]:
    """Yields (the address of a server, the paths that it was asked for)."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            with suppress(OSError):  # the client has left
                answer(self)

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        running.daemon_threads = True
        running.block_on_close = False
        threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True).start()
        try:
            yield f"http://127.0.0.1:{running.server_port}", asked
        finally:
            running.shutdown()


def send(content: bytes, announced: int | None = None) -> Answer:
    """announced: how many bytes are said to come, 0: nothing is said."""

    def answer(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        if announced != 0:
            request.send_header("Content-Length", str(announced or len(content)))
        request.end_headers()
        request.wfile.write(content)

    return answer


def status(number: int) -> Answer:
    return lambda request: request.send_error(number)


def redirect(request: BaseHTTPRequestHandler) -> None:
    request.send_response(302)
    request.send_header("Location", "file:///etc/passwd")
    request.end_headers()


def drip(request: BaseHTTPRequestHandler) -> None:
    request.send_response(200)
    request.end_headers()
    for _ in range(100):
        request.wfile.write(b"x")
        time.sleep(0.05)


def drip_headers(request: BaseHTTPRequestHandler) -> None:
    for nth in range(100):
        request.wfile.write(b"HTTP/1.0 200 OK\r\n" if not nth else f"X-{nth}: 1\r\n".encode())
        time.sleep(0.05)


def find(folder: Path, *urls: str, **environment: str) -> tuple[str, Report]:
    report = Report()
    settings = {"DEBUGINFOD_CACHE_PATH": str(folder), **environment}
    return Debuginfod(Servers(urls, settings), report).find(BUILD, "debuginfo", "libx.so"), report


def failures(report: Report) -> list[str]:
    return [str(issue.detail) for issue in report if issue.kind == "debuginfod_failed"]


def test_a_file_is_downloaded_once_and_kept_where_elfutils_keeps_it(tmp_path: Path) -> None:
    told: list[tuple[str, int, int]] = []
    with server(send(FILE)) as (url, asked):
        report, servers = Report(), Servers([url], {"DEBUGINFOD_CACHE_PATH": str(tmp_path)})
        client = Debuginfod(servers, report, lambda *one: told.append(one))
        found = client.find(BUILD, "debuginfo", "libx.so")
        assert (found, asked) == (str(tmp_path / BUILD / "debuginfo"), [f"/buildid/{BUILD}/debuginfo"])
        assert Path(found).read_bytes() == FILE
        assert sum(n for _, n, _ in told) == len(FILE)
        assert told[0] == ("libx.so", 0, 0)
        assert {(name, total) for name, _, total in told[1:]} == {("libx.so", len(FILE))}
        assert [issue.kind for issue in report] == ["debuginfod_downloads"]
        assert find(tmp_path, url)[0] == found
        assert len(asked) == 1
    assert [path.name for path in (tmp_path / BUILD).iterdir()] == ["debuginfo"]


def test_what_no_server_has_is_remembered(tmp_path: Path) -> None:
    with server(status(404)) as (url, asked):
        assert [find(tmp_path, url)[0] for _ in range(2)] == ["", ""]
        assert len(asked) == 1
        assert (tmp_path / BUILD / "debuginfo").stat().st_size == 0
        (tmp_path / "cache_miss_s").write_text("0")
        assert find(tmp_path, url)[0] == ""
        assert len(asked) == 2


def test_servers_are_asked_in_turn_and_failing_ones_no_longer(tmp_path: Path) -> None:
    with (
        server(status(404)) as (without, _),
        server(status(500)) as (failing, asked),
        server(send(FILE)) as (having, _),
    ):
        report = Report()
        client = Debuginfod(Servers([without, failing, having], {"DEBUGINFOD_CACHE_PATH": str(tmp_path)}), report)
        assert client.find(BUILD, "debuginfo", "libx.so")
        assert client.find(BUILD, "executable", "libx.so")
        assert len(asked) == 1
    assert len(failures(report)) == 1
    assert "500" in failures(report)[0]


BAD: dict[str, tuple[Answer, dict[str, str], str]] = {
    "another build": (send(elf(WORK, build_id=OTHER_ID)), {}, f"the server sent a file of build {OTHER_ID.hex()}"),
    "no ELF": (send(b"<html>sorry</html>"), {}, "the server sent no ELF file with a build id"),
    "nothing": (send(b""), {}, "the server sent no ELF file with a build id"),
    "cut": (send(FILE[:-9], len(FILE)), {}, "the connection ended 9 bytes early"),
    "too large": (send(FILE), {"DEBUGINFOD_MAXSIZE": "100"}, f"its {len(FILE)} bytes are more than the 100"),
    "larger than said": (
        send(FILE, 0), {"DEBUGINFOD_MAXSIZE": "100"}, "more than the 100 bytes",
    ),
    "slow": (drip, {"DEBUGINFOD_TIMEOUT": "1"}, "less than 100 kB came in 1 s"),
    "long": (drip, {"DEBUGINFOD_MAXTIME": "1"}, "it took more than 1 s"),
    "slow headers": (drip_headers, {}, "no answer within 2 s"),
    "no HTTP": (lambda request: request.wfile.write(b"hello\r\n\r\n") and None, {}, "hello"),
    "elsewhere": (
        redirect, {}, "Redirection",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_a_server_that_is_slow_or_lies_costs_a_bounded_wait(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer, environment, wanted = BAD[case]
    for name in ("ANSWER_SECONDS", "FIRST_SECONDS", "PAGE_SECONDS"):
        monkeypatch.setattr(debuginfod, name, 1.0)
    begun = time.monotonic()
    with server(answer) as (url, _):
        found, report = find(tmp_path, url, **environment)
    assert found == ""
    assert time.monotonic() - begun < 5
    assert [wanted in text for text in failures(report)] == [True], failures(report)
    # Nothing is left behind, and nothing is remembered as missing.
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


@contextmanager
def silent() -> Iterator[tuple[str, list[str]]]:
    """Yields (the address of a server that takes connections and never answers, nothing)."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}", []


def test_a_server_that_never_answers_is_waited_for_once(tmp_path: Path) -> None:
    """For a few seconds, by all recordings of a command; each of their reports says so."""
    said = []
    with silent() as (dead, _), server(status(404)) as (url, asked):
        servers = Servers([dead, url], {"DEBUGINFOD_CACHE_PATH": str(tmp_path)})
        begun = time.monotonic()
        for build_id in (BUILD, OTHER_ID.hex()):
            report = Report()
            assert Debuginfod(servers, report).find(build_id, "debuginfo", "libx.so") == ""
            said.append(failures(report))
        assert time.monotonic() - begun < debuginfod.FIRST_SECONDS + debuginfod.PAGE_SECONDS + 2
        assert len(asked) == 2
    assert said == [[f"{dead}: libx.so: no answer within 5 s"]] * 2


def test_a_server_that_searches_for_long_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As those do that ask other servers, if their front page comes."""
    monkeypatch.setattr(debuginfod, "FIRST_SECONDS", 0.2)

    def search(request: BaseHTTPRequestHandler) -> None:
        if request.path == "/":
            status(404)(request)
            return
        time.sleep(1)
        send(FILE)(request)

    with server(search) as (url, asked):
        assert find(tmp_path, url)[0]
        assert asked == [f"/buildid/{BUILD}/debuginfo", "/"]


def test_what_is_refused_is_not_downloaded_again(tmp_path: Path) -> None:
    with server(send(FILE)) as (url, asked):
        servers = Servers([url], {"DEBUGINFOD_CACHE_PATH": str(tmp_path), "DEBUGINFOD_MAXSIZE": "100"})
        reports = [Report(), Report()]
        assert [Debuginfod(servers, one).find(BUILD, "debuginfo", "libx.so") for one in reports] == ["", ""]
        assert len(asked) == 1
        assert Debuginfod(servers, Report()).find(OTHER_ID.hex(), "debuginfo", "libx.so") == ""
        assert len(asked) == 2
    assert failures(reports[0]) == failures(reports[1]) != []


def test_a_cache_that_cannot_be_written_is_no_fault_of_the_server(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with server(send(FILE)) as (url, asked):
        servers = Servers([url], {"DEBUGINFOD_CACHE_PATH": str(tmp_path / "file")})
        for build_id in (BUILD, OTHER_ID.hex()):
            report = Report()
            assert Debuginfod(servers, report).find(build_id, "debuginfo", "libx.so") == ""
            assert ["DEBUGINFOD_CACHE_PATH" in text for text in failures(report)] == [True]
        assert len(asked) == 1


def test_servers_are_not_asked_for_what_the_kernel_made_in_memory(tmp_path: Path) -> None:
    vdso = Binary(Source("[vdso]", memoryview(FILE)))
    with server(status(404)) as (url, asked):
        client = Debuginfod(Servers([url], {"DEBUGINFOD_CACHE_PATH": str(tmp_path)}), Report())
        files = DebugFiles(Report(), server=client)
        assert files.debug_file(vdso, "[vdso]", "[vdso]") is None
        assert not asked
        assert files.debug_file(vdso, "/usr/lib/libx.so", "libx.so") is None
        assert len(asked) == 1


def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    found, report = find(tmp_path, url)
    assert (found, len(failures(report))) == ("", 1)


@pytest.mark.parametrize("build_id", ["", "ab", "../../../etc/passwd", "AB" * 20, "ab" * 65])
def test_only_build_ids_are_asked_for(tmp_path: Path, build_id: str) -> None:
    with server(send(FILE)) as (url, asked):
        servers = Servers([url], {"DEBUGINFOD_CACHE_PATH": str(tmp_path)})
        assert Debuginfod(servers, Report()).find(build_id, "debuginfo", "x") == ""
        assert not asked


def test_servers_come_from_the_option_or_the_environment() -> None:
    environment = {"DEBUGINFOD_URLS": "https://one/ http://two/buildid ima:enforcing https://one"}
    assert servers_of([""], environment) == ["https://one", "http://two"]
    assert servers_of(["https://three"], environment) == ["https://three"]
    assert servers_of([], environment) == []
    for urls in ([""], ["file:///srv"], ["server"]):
        with pytest.raises(UsageError):
            servers_of(urls, {})


def test_the_cache_is_that_of_elfutils(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    assert cache_folder({}) == tmp_path / ".cache" / "debuginfod_client"
    assert cache_folder({"XDG_CACHE_HOME": "/x"}) == Path("/x/debuginfod_client")
    assert cache_folder({"XDG_CACHE_HOME": "/x", "DEBUGINFOD_CACHE_PATH": "/y"}) == Path("/y")


@pytest.mark.skipif(not shutil.which("debuginfod-find"), reason="elfutils' debuginfod-find is not installed")
def test_elfutils_uses_what_was_downloaded(tmp_path: Path) -> None:
    with server(send(FILE)) as (url, asked):
        found, _ = find(tmp_path, url)
        environment = {"DEBUGINFOD_URLS": url, "DEBUGINFOD_CACHE_PATH": str(tmp_path)}
        run = subprocess.run(
            ["debuginfod-find", "debuginfo", BUILD],
            env=environment,
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
        )
        assert run.stdout.strip() == found
        assert len(asked) == 1
