"""`traceferry view`: what is served, to whom, and how it ends. Over real sockets, against the command itself."""

from __future__ import annotations

import asyncio
import gzip
import html
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from clients.view import FIREFOX, PERFETTO, View, ended
from conftest import REPO
from streams import fdr
from support import for_each

import traceferry
from traceferry.api import save_by
from traceferry.apps.view.browser import has_display, leading_file, ssh_line
from traceferry.apps.view.connections import Connections
from traceferry.apps.view.conversion import Conversion, handed_over, viewer_of_file
from traceferry.apps.view.loopback import Peers, listening_socket
from traceferry.apps.view.server import Server
from traceferry.apps.view.site import Site
from traceferry.apps.view.viewers import VIEWERS

POOL = REPO / "fixtures/xray/clang-19/fdr-c19-pie-pool-tsc.xray"
PROGRAM = REPO / "fixtures/xray/clang-19/pool-pie.zst"
RECORDING = fdr("A B b c a", "A 500 a").bytes()


@pytest.fixture(scope="module")
def view(tmp_path_factory: pytest.TempPathFactory) -> Iterator[View]:
    with View(POOL, "--symbols", PROGRAM, folder=tmp_path_factory.mktemp("view")) as running:
        yield running


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    path = tmp_path / "app.xray"
    path.write_bytes(RECORDING)
    return path


# ---------------------------------------------------------------- what is served


def test_the_address_makes_the_viewer_load_the_trace(view: View) -> None:
    assert view.address.startswith(f"{FIREFOX}/from-url/http%3A%2F%2F127.0.0.1%3A{view.port}%2F")
    assert parse_qs(urlsplit(view.address).query) == {"symbolServer": [view.server]}
    assert "pool" not in view.address  # the recording's name
    answer = view.get(view.trace, Origin=FIREFOX)
    assert answer.status == 200
    profile = json.loads(gzip.decompress(answer.body))
    converted = traceferry.load(POOL, symbols=PROGRAM)
    assert {lib["breakpadId"] for lib in profile["libs"]} == {
        converted.strings[index] for index in converted.libs["debug_id"].tolist()
    }


def test_perfetto_loads_from_the_only_port_that_it_may(recording: Path, tmp_path: Path) -> None:
    with View(recording, "--in", "perfetto", folder=tmp_path) as view:
        if view.address.startswith("http://127.0.0.1"):
            pytest.skip("port 9001 is taken on this machine")
        assert view.address.startswith(f"{PERFETTO}/?testing=1#!/?url=http%3A%2F%2F127.0.0.1%3A9001%2F")
        answer = view.get(view.trace, Origin=PERFETTO)
        traceferry.convert(recording, tmp_path / "app.pftrace")
        assert answer.body == (tmp_path / "app.pftrace").read_bytes()


@pytest.fixture
def taken_port() -> Iterator[None]:
    """Port 9001 taken by this process; another test that has it just now is waited for."""
    until = time.monotonic() + 60
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        while True:
            try:
                taken.bind(("127.0.0.1", 9001))
                break
            except OSError:
                if time.monotonic() > until:
                    pytest.skip("port 9001 is taken by another program")
                time.sleep(0.1)
        taken.listen()
        yield


@pytest.mark.usefixtures("taken_port")
def test_where_the_port_is_taken_a_page_hands_the_trace_over(recording: Path, tmp_path: Path) -> None:
    with View(recording, "--in", "perfetto", folder=tmp_path) as view:
        said = view.tells("port 9001 is taken")
        assert "ui.perfetto.dev loads from no other port" in said
        if Path("/proc/net/tcp").exists():
            assert f"by {Path('/proc/self/comm').read_text().strip()} (process {os.getpid()})" in said
        assert view.address.startswith("http://127.0.0.1:")
        assert view.address.endswith("/")


def test_both_traces_are_served_whatever_is_opened(view: View) -> None:
    path = view.path("/trace.pftrace")
    assert view.get(path).body.startswith(b"\x0a")


def test_the_files_of_both_viewers_are_made_at_once(recording: Path, tmp_path: Path, monkeypatch: Any) -> None:
    together = threading.Barrier(len(VIEWERS), timeout=30)

    def save(*arguments: Any, **options: Any) -> None:
        together.wait()
        save_by(*arguments, **options)

    monkeypatch.setattr("traceferry.apps.view.conversion.save_by", save)
    shown = Conversion("app", traceferry.load(recording), tmp_path)
    with ThreadPoolExecutor() as pool:
        made = list(pool.map(shown.file_for, VIEWERS.values()))
    for path in made:
        traceferry.convert(recording, converted := path.with_name(f"converted-{path.name}"))
        assert path.read_bytes() == converted.read_bytes()


def test_a_range_and_a_condition_are_honoured(view: View) -> None:
    whole = view.get(view.trace)
    size = len(whole.body)
    assert whole.headers["accept-ranges"] == "bytes"
    assert whole.headers["cache-control"] == "no-cache"
    part = view.get(view.trace, Range="bytes=2-5")
    assert (part.status, part.body, part.headers["content-range"]) == (206, whole.body[2:6], f"bytes 2-5/{size}")
    assert view.get(view.trace, Range="bytes=-3").body == whole.body[-3:]
    assert view.get(view.trace, Range=f"bytes={size}-").status == 416
    tag = whole.headers["etag"]
    unchanged = view.get(view.trace, If_None_Match=tag)
    assert (unchanged.status, unchanged.body) == (304, b"")
    assert view.get(view.trace, Range="bytes=2-5", If_Range=tag).status == 206
    changed = view.get(view.trace, Range="bytes=2-5", If_Range='"another"')
    assert (changed.status, changed.body) == (200, whole.body)
    assert view.request("HEAD", view.trace).headers["content-length"] == str(size)


def test_a_file_that_was_converted_before_is_shown_as_it_is(recording: Path, tmp_path: Path) -> None:
    for name, viewer in {"out.json.gz": FIREFOX, "out.json": FIREFOX, "out.pftrace": None}.items():
        traceferry.convert(recording, tmp_path / name)
        with View(tmp_path / name, folder=tmp_path) as view:
            if viewer is None and view.address.startswith("http://127.0.0.1"):
                continue  # port 9001 is taken
            assert view.address.startswith(viewer or PERFETTO)
            # Without a symbol server the Firefox Profiler would ask Mozilla's.
            assert viewer is None or parse_qs(urlsplit(view.address).query) == {"symbolServer": [view.server]}
            # The second is not mistaken for the compressed one beside it.
            assert view.get(view.trace, Accept_Encoding="gzip").body == (tmp_path / name).read_bytes()
            error = view.ask("/asm/v1", {})["error"]
            assert error == "the file was converted before: view the recording itself"


def test_the_first_bytes_tell_the_viewer(tmp_path: Path) -> None:
    cases = {b'{"meta":{},"threads":[]}': "firefox", b'{"traceEvents":[]}': "perfetto", b"[{}": "perfetto",
             b"\x0a\x05abcde": "perfetto"}  # fmt: skip
    for content, viewer in cases.items():
        for packed in (content, gzip.compress(content)):
            (tmp_path / "file").write_bytes(packed)
            assert viewer_of_file(str(tmp_path / "file")).name == viewer


def test_standard_input_is_shown(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "traceferry", "view", "-", "--no-open"]
    environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path)}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(RECORDING)
        process.stdin.close()
        assert b"trace.json.gz" in process.stdout.readline()
        process.terminate()


@pytest.mark.skipif(os.name != "posix", reason="FIFOs are POSIX's")
def test_what_can_be_read_once_is_shown(recording: Path, tmp_path: Path) -> None:
    """As a shell's <(zcat ...), which the type is found out of, too."""
    os.mkfifo(tmp_path / "fifo")
    writer = threading.Thread(target=lambda: (tmp_path / "fifo").write_bytes(RECORDING))
    writer.start()
    with View(tmp_path / "fifo", folder=tmp_path) as view:
        assert view.get(view.trace).status == 200
    writer.join()


# ---------------------------------------------------------------- to whom


FOREIGN = {
    "a page of another origin": {"Origin": "https://evil.example"},
    "a page of a similar origin": {"Origin": "https://profiler.firefox.com.evil.example"},
    "a page without an origin": {"Origin": "null"},
    "another host name, rebound to this machine": {"Host": "evil.example"},
    "another host name with the right port": {"Host": "evil.example:9001"},
    "no host": {"Host": ""},
    "an address that is not spelled out": {"Host": "[::1"},
}


@for_each("headers", FOREIGN)
def test_others_get_nothing(view: View, headers: dict[str, str]) -> None:
    for path in (view.trace, view.path("/"), view.path("/asm/v1")):
        for method in ("GET", "POST", "OPTIONS"):
            answer = view.request(method, path, **headers)
            assert (answer.status, answer.body) in ((403, b""), (400, b""))
            assert not any(name.startswith("access-control") for name in answer.headers)


def test_without_the_prefix_there_is_nothing(view: View) -> None:
    name = view.trace.rpartition("/")[2]
    prefix = view.path()
    another = prefix[:-1] + ("x" if prefix[-1] != "x" else "y")
    paths = [
        "/", "", "/asm/v1", f"/{name}", f"{another}/{name}", prefix, f"{prefix}//{name}", f"{prefix}/x/../{name}",
        f"{prefix}/../../etc/passwd", f"{prefix}/%2e%2e/{name}", f"{prefix}/..%2f..%2fetc/passwd",
        f"{prefix}/{name}/", f"{prefix}/{name}.gz", f"/x/..{prefix}/{name}", f"http://127.0.0.1{prefix}/{name}x",
    ]  # fmt: skip
    for path in paths:
        answer = view.send(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode())
        assert answer.status in (404, 400), path
        assert prefix.encode() not in answer.body
        assert name.encode() not in answer.body


def test_other_methods_are_not_offered(view: View) -> None:
    for method in ("PUT", "DELETE", "PATCH", "TRACE", "CONNECT", "PROPFIND"):
        assert view.request(method, view.trace).status in (400, 404, 405), method
    assert view.request("POST", view.trace, b"x").status == 405
    assert view.get(view.path("/asm/v1")).status == 405


def test_a_body_has_a_limit(view: View) -> None:
    begin = time.monotonic()
    announced = view.request("POST", view.path("/asm/v1"), b"{", Content_Length=str(1 << 40))
    assert announced.status == 413
    sent = view.request("POST", view.path("/asm/v1"), b"x" * (9 << 20))
    assert sent.status in (413, 0)
    assert time.monotonic() - begin < 20
    chunks = b"".join(b"100000\r\n" + b"x" * (1 << 20) + b"\r\n" for _ in range(10)) + b"0\r\n\r\n"
    chunked = view.request("POST", view.path("/asm/v1"), chunks, Transfer_Encoding="chunked", Content_Length="")
    assert chunked.status in (413, 400, 0)


def test_a_preflight_is_answered_for_the_viewers(view: View) -> None:
    private = {"Access_Control_Request_Private_Network": "true"}
    asked = {"Origin": FIREFOX, "Access_Control_Request_Method": "GET"} | private
    answer = view.request("OPTIONS", view.trace, **asked)
    assert answer.status == 204
    assert answer.headers["access-control-allow-origin"] == FIREFOX
    assert answer.headers["access-control-allow-private-network"] == "true"
    assert "GET" in answer.headers["access-control-allow-methods"]
    assert "POST" in view.request("OPTIONS", view.path("/asm/v1"), **asked).headers["access-control-allow-methods"]
    plain = view.request("OPTIONS", view.trace, Origin=PERFETTO, Access_Control_Request_Method="GET")
    assert "access-control-allow-private-network" not in plain.headers


def test_only_an_allowed_origin_may_read(recording: Path, tmp_path: Path) -> None:
    with View(recording, "--allow-origin", "https://profiler.example", folder=tmp_path) as view:
        for origin in ("https://profiler.example", FIREFOX, PERFETTO, f"http://127.0.0.1:{view.port}"):
            answer = view.get(view.trace, Origin=origin)
            assert answer.headers["access-control-allow-origin"] == origin
            assert answer.headers["vary"] == "Origin"
        # As through `ssh -L` with another port at the near end.
        own = {"Host": "localhost:5555", "Origin": "http://localhost:5555"}
        assert view.get(view.trace, **own).status == 200
        assert view.get(view.trace, Origin="http://localhost:5555").status == 403


AS_ANOTHER = """
import socket, sys
family = socket.AF_INET6 if sys.argv[2].startswith("::") else socket.AF_INET
with socket.socket(family) as client:
    client.connect((sys.argv[2], int(sys.argv[1])))
    client.sendall(f"GET {sys.argv[3]} HTTP/1.1\\r\\nHost: 127.0.0.1\\r\\nConnection: close\\r\\n\\r\\n".encode())
    print(client.recv(100).split()[1].decode())
"""
NOBODY = 65534


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root starts programs of other users")
def test_other_users_of_the_machine_get_nothing_even_with_the_address(recording: Path, tmp_path: Path) -> None:
    if not Peers().are_known:
        pytest.skip("this system does not tell whose a connection is")

    def asks(view: View, host: str, path: str) -> int:
        command = ["/usr/bin/env", "python3", "-c", AS_ANOTHER, str(view.port), host, path]
        return int(subprocess.run(command, capture_output=True, check=True, user=NOBODY, cwd="/").stdout)

    with View(recording, folder=tmp_path) as view:
        for host in ("127.0.0.1", "::ffff:127.0.0.1"):
            for path in (urlsplit(view.trace).path, view.path("/"), view.path("/asm/v1")):
                assert asks(view, host, path) == 403
        assert "--allow-user" in view.tells("a program of the user")
        assert view.get(view.trace).status == 200
    with View(recording, "--allow-user", str(NOBODY), folder=tmp_path) as view:
        assert asks(view, "127.0.0.1", urlsplit(view.trace).path) == 200
    status, said = ended(recording, "--allow-user", "no such user", folder=tmp_path)
    assert (status, said) == (2, "traceferry: --allow-user no such user: this system has no such user\n")


BROKEN_BODIES = {
    "not gzip": ({"Content_Encoding": "gzip"}, b"garbage"),
    "cut gzip": ({"Content_Encoding": "gzip"}, gzip.compress(b"{}" * 1000)[:-20]),
    "not deflate": ({"Content_Encoding": "deflate"}, b"\xff\xff\xff"),
    "not zstd": ({"Content_Encoding": "zstd"}, b"garbage"),
    "not Brotli": ({"Content_Encoding": "br"}, b"garbage"),
    "an unknown encoding": ({"Content_Encoding": "x-none"}, b"garbage"),
    "broken chunks": ({"Transfer_Encoding": "chunked", "Content_Length": ""}, b"zz\r\ngarbage"),
    "chunks that end early": ({"Transfer_Encoding": "chunked"}, b"5\r\nab"),
    "not JSON": ({}, b"\x00\xff"),
}


def test_a_broken_body_is_the_clients_fault(recording: Path, tmp_path: Path) -> None:
    with View(recording, folder=tmp_path) as view:
        for name, (headers, body) in BROKEN_BODIES.items():
            for path in ("/asm/v1", "/trace.json.gz"):
                for method in ("POST", "GET"):
                    given = {"Content_Length": str(len(body)), "Origin": FIREFOX} | headers
                    given = {key: value for key, value in given.items() if value}
                    status = view.request(method, view.path(path), body, **given).status
                    assert status < 500, (name, path, method)
        with view.connect() as leaving:
            begun = f"POST {view.path('/asm/v1')} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n\r\n"
            leaving.sendall(begun.encode())
        for nonsense in (b"\x16\x03\x01", b"GET / HTTP/1.1\r\nHost: \x1b[31m\r\n\r\n", b"GET \xff HTTP/1.1\r\n\r\n"):
            assert view.send(nonsense + b"\r\n\r\n").status == 400
        for range_ in ("bytes=zz", "bytes=9" + "9" * 30 + "-"):
            assert view.get(view.trace, Range=range_).status == 416
        assert view.get(view.trace).status == 200
        view.stop()
        assert "Traceback" not in view.rest()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits the files of another process")
def test_connections_that_say_nothing_do_not_use_up_the_files(recording: Path, tmp_path: Path) -> None:
    import resource

    with View(recording, folder=tmp_path) as view, ExitStack() as kept:
        resource.prlimit(view.pid, resource.RLIMIT_NOFILE, (200, 200))
        for nth in range(600):
            connection = kept.enter_context(view.connect())
            if nth % 2:
                with suppress(OSError):  # closed as the one that waited longest
                    connection.sendall(b"GET / HT")
        begin = time.monotonic()
        assert view.get(view.trace).status == 200
        assert time.monotonic() - begin < 5


def test_a_silent_connection_ends_and_a_slow_download_does_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("traceferry.apps.view.connections.LOOK_SECONDS", 0.05)
    (tmp_path / "out.json").write_bytes(b"{" + b" " * 20_000_000)
    site = Site(handed_over(str(tmp_path / "out.json"), "out", VIEWERS["firefox"], tmp_path / "."), [], None, {}, [])
    listening = listening_socket(0)
    port = listening.getsockname()[1]

    async def run() -> tuple[bytes, int]:
        server = Server(site, Peers(), "")
        server._connections = Connections(silence=0.3)
        async with server.running(listening):
            silent, _ = await asyncio.open_connection("127.0.0.1", port)
            reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 16)
            writer.write(f"GET {site.prefix}/trace HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode())
            await asyncio.sleep(1)
            size = 0
            while piece := await reader.read(1 << 20):
                size += len(piece)
            return await silent.read(), size

    silent, size = asyncio.run(run())
    assert silent == b""
    assert size > 20_000_000


def test_slow_clients_hold_up_nobody(view: View) -> None:
    size = len(view.get(view.trace).body)
    host = "Host: 127.0.0.1\r\n"
    begun = (
        "GET / HT",
        f"GET {view.path('/x')} HTTP/1.1\r\nHost: ",
        f"POST {view.path('/asm/v1')} HTTP/1.1\r\n{host}Content-Length: 99\r\n\r\n{{",
        f"GET {view.path('/' + view.trace.rpartition('/')[2])} HTTP/1.1\r\n{host}\r\n",
    )
    slow = [view.connect() for _ in range(200)]
    try:
        for nth, connection in enumerate(slow):
            connection.sendall(begun[nth % len(begun)].encode())
        begin = time.monotonic()
        assert len(view.get(view.trace).body) == size
        assert view.ask("/asm/v1", {})["error"]
        assert time.monotonic() - begin < 5
    finally:
        for connection in slow:
            connection.close()


@pytest.mark.skipif(shutil.which("ss") is None, reason="ss is not installed: apt install iproute2")
def test_it_listens_on_loopback_only(view: View) -> None:
    lines = subprocess.run(["ss", "-ltnpH"], capture_output=True, text=True, check=True).stdout.splitlines()
    own = [line.split()[3] for line in lines if f"pid={view.pid}," in line]
    assert own == [f"127.0.0.1:{view.port}"]


def test_the_page_may_do_nothing_but_its_own(view: View) -> None:
    answer = view.get(view.path("/"))
    assert b"Open in profiler.firefox.com" in answer.body
    assert b"Open in ui.perfetto.dev" in answer.body
    assert answer.headers["content-security-policy"].startswith("default-src 'none'; script-src 'nonce-")
    assert view.get(view.path("/")).headers["content-security-policy"] != answer.headers["content-security-policy"]


def test_a_copy_of_a_viewer_is_served_from_disk(recording: Path, tmp_path: Path) -> None:
    folder = tmp_path / "viewer"
    (folder / "v1").mkdir(parents=True)
    (folder / "index.html").write_text("<title>viewer</title>")
    (folder / "v1" / "engine.wasm").write_bytes(b"\0asm")
    (tmp_path / "secret.txt").write_text("secret")
    with View(recording, "--viewer", folder, folder=tmp_path) as view:
        assert view.address.startswith(f"http://127.0.0.1:{view.port}/from-url/http%3A%2F%2F127.0.0.1%3A{view.port}%2F")
        for path in ("/", "/index.html", "/from-url/http%3A%2F%2Fx/calltree/"):
            assert view.get(path).body == b"<title>viewer</title>"
        assert view.get("/v1/engine.wasm").headers["content-type"] == "application/wasm"
        policy = view.get("/?testing=1").headers["content-security-policy"]
        assert set(re.findall(r"\w+://[^ ;]+", policy)) == {"http://127.0.0.1:9001", "ws://127.0.0.1:9001"}
        assert "*" not in policy
        for path in ("/../secret.txt", "/v1/../../secret.txt", "/%2e%2e/secret.txt", "//secret.txt", "/v1/missing.js"):
            assert b"secret" not in view.get(path).body
        assert view.get("/", Host="evil.example").status == 403
    status, said = ended(recording, "--viewer", tmp_path, folder=tmp_path)
    assert (status, said) == (2, f"traceferry: {tmp_path}: not the folder of a viewer: it has no index.html\n")


# ---------------------------------------------------------------- its life


def test_ctrl_c_ends_it_and_the_cache_is_gone(recording: Path, tmp_path: Path) -> None:
    with View(recording, folder=tmp_path) as view:
        (used,) = (view.cache / "traceferry" / "view").iterdir()
        assert used.stat().st_mode & 0o777 == 0o700
        with view.connect() as connection:
            connection.sendall(b"GET / HT")
            assert view.stop() == 0
    assert list((view.cache / "traceferry" / "view").iterdir()) == []
    with View(recording, folder=tmp_path) as view:
        assert view.stop(signal.SIGTERM) == -signal.SIGTERM
    assert list((view.cache / "traceferry" / "view").iterdir()) == []


def test_what_a_killed_one_has_left_goes_with_the_next(recording: Path, tmp_path: Path) -> None:
    with View(recording, folder=tmp_path) as living:
        with View(recording, folder=tmp_path) as killed:
            killed.stop(signal.SIGKILL)
        folders = killed.cache / "traceferry" / "view"
        assert len(list(folders.iterdir())) == 2
        with View(recording, folder=tmp_path):
            assert len(list(folders.iterdir())) == 2
            assert living.get(living.trace).status == 200


def test_watch_converts_again_what_changes(recording: Path, tmp_path: Path) -> None:
    with View(recording, "--watch", folder=tmp_path) as view:
        before = view.get(view.trace)
        recording.write_bytes(fdr("A B C D d c b a").bytes())
        view.tells("converted again in")
        after = view.get(view.trace, If_None_Match=before.headers["etag"])
        assert after.status == 200
        assert after.body != before.body
        recording.write_bytes(b"nothing of the kind")
        assert "unrecognised input format" in view.tells("what was converted before is still shown")
        assert view.get(view.trace).body == after.body
        recording.unlink()
        assert "not there any more" in view.tells("what was converted before is still shown")
        assert view.get(view.trace).body == after.body
        recording.write_bytes(RECORDING)
        view.tells("converted again in")
        assert view.get(view.trace).body == before.body
        (running,) = (view.cache / "traceferry" / "view").iterdir()
        assert len([path for path in running.iterdir() if path.is_dir()]) == 1


def test_without_a_display_it_says_how_to_get_there(recording: Path, tmp_path: Path) -> None:
    with View(recording, folder=tmp_path, opens=True, SSH_CONNECTION="10.0.0.9 50000 10.0.0.1 2222") as view:
        view.tells("there is no display here")
        assert f"ssh -N -p 2222 -L {view.port}:127.0.0.1:{view.port} " in view.tells("ssh")


def a_browser(folder: Path, line: str) -> str:
    """For $BROWSER."""
    path = folder / "browser"
    path.write_text(f"#!/bin/sh\n{line}\n")
    path.chmod(0o755)
    return f"{path} %s"


def opened_by(view: View, file: Path) -> str:
    """The address that the browser got."""
    end = time.monotonic() + 10
    while not (file.exists() and file.read_text().endswith("\n")):
        assert time.monotonic() < end, view.told
        time.sleep(0.02)
    return file.read_text().strip()


def test_the_browser_gets_an_address_that_leads_this_user_on(recording: Path, tmp_path: Path) -> None:
    browser = a_browser(tmp_path, f'echo "$1" > {tmp_path}/opened')
    with View(recording, folder=tmp_path, opens=True, BROWSER=browser) as view:
        said = view.tells("if the browser keeps profiler.firefox.com from this machine")
        assert f"http://127.0.0.1:{view.port}" in said
        opened = opened_by(view, tmp_path / "opened")
        assert view.path().strip("/") not in opened
        if opened.startswith("file:"):
            pytest.skip("this system does not tell whose a connection is")
        answer = view.get(opened)
        assert (answer.status, answer.headers["location"], answer.body) == (303, view.address, b"")
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert view.get(opened, Origin="https://evil.example").status == 403
    with View(recording, folder=tmp_path, opens=True, BROWSER="/nowhere/browser") as view:
        view.tells("no browser could be started: open the address above in one")
        assert view.get(view.trace).status == 200


def test_where_nobody_tells_who_asks_a_private_file_leads_on(tmp_path: Path) -> None:
    address = 'https://viewer.example/"><script>x</script>?a=1&b=2'
    path = Path(leading_file(tmp_path, address).removeprefix("file://"))
    assert path.stat().st_mode & 0o777 == 0o600
    assert f'content="0; url={html.escape(address)}"' in path.read_text()
    with pytest.raises(FileExistsError):
        leading_file(tmp_path, address)


def test_without_tables_of_sockets_the_browser_gets_that_file(recording: Path, tmp_path: Path) -> None:
    start = "import traceferry.apps.view.loopback as p; p.TABLES = (); from traceferry.apps.cli import main; main()"
    browser = a_browser(tmp_path, f'echo "$1" > {tmp_path}/opened')
    with View(recording, folder=tmp_path, opens=True, BROWSER=browser, start=start) as view:
        opened = opened_by(view, tmp_path / "opened")
        page = Path(opened.removeprefix("file://"))
        assert page.is_relative_to(view.cache)
        assert page.stat().st_mode & 0o777 == 0o600
        assert html.escape(view.address) in page.read_text()
        assert view.get(f"http://127.0.0.1:{view.port}/open-").status == 404
        assert view.get(view.trace).status == 200
    assert not page.exists()


def test_a_browser_in_the_foreground_holds_up_nothing(recording: Path, tmp_path: Path) -> None:
    browser = a_browser(tmp_path, f"echo $$ > {tmp_path}/opened; exec sleep 60")
    for number, status in ((signal.SIGTERM, -signal.SIGTERM), (signal.SIGINT, 0)):
        with View(recording, folder=tmp_path, opens=True, BROWSER=browser) as view:
            view.tells("Ctrl-C ends it")
            running = int(opened_by(view, tmp_path / "opened"))
            begin = time.monotonic()
            assert view.stop(number) == status
            assert time.monotonic() - begin < 10
            os.kill(running, signal.SIGKILL)
            (tmp_path / "opened").unlink()


def test_what_has_a_display(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER", "SSH_CONNECTION"):
        monkeypatch.delenv(name, raising=False)
    assert not has_display()
    assert ssh_line(9001).startswith("ssh -N -L 9001:127.0.0.1:9001 ")
    monkeypatch.setenv("WAYLAND_DISPLAY", "wayland-0")
    assert has_display()


def test_what_cannot_be_shown_ends_with_one_sentence(recording: Path, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("Neither a recording nor anything else.\n")
    (tmp_path / "empty.json").write_bytes(b"")
    (tmp_path / "out.json").write_text("{}")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        cases: list[tuple[tuple[str | Path, ...], str]] = [
            ((tmp_path / "missing.xray",), "missing.xray: cannot be read: No such file or directory"),
            ((tmp_path / "text",), "unrecognised: neither a recording (see: traceferry formats) nor a converted file"),
            ((tmp_path / "empty.json",), "unrecognised"),
            ((recording, "--range", "9s,"), "the range starts at 9s; the recording lasts"),
            ((recording, "--port", str(port)), f"port {port} is taken"),
            ((recording, "--source-root", tmp_path / "none"), "none: not a folder of source files"),
            ((tmp_path / "out.json", "--range", "1s,"), "out.json: not a recording, so --range has nothing to"),
        ]
        for words, sentence in cases:
            status, said = ended(*words, folder=tmp_path)
            assert (status, said.count("traceferry: ")) == (2, 1), said
            assert sentence in said
    assert list((tmp_path / "cache" / "traceferry" / "view").iterdir()) == []


def test_a_conversion_imports_nothing_of_a_server() -> None:
    code = (
        "import sys; from traceferry.apps import cli; cli.main(['formats']); import traceferry.api; "
        "print(sorted({'aiohttp', 'capstone', 'asyncio', 'traceferry.apps.view'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
