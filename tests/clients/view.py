"""Drives `traceferry view` as a process of its own, and talks to it over sockets."""

import json
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, Self
from urllib.parse import parse_qs, unquote, urlsplit

START_SECONDS = 60.0
ANSWER_SECONDS = 30.0
FIREFOX = "https://profiler.firefox.com"
PERFETTO = "https://ui.perfetto.dev"


class Answer(NamedTuple):
    """headers: their names in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class View:
    """`with View(recording, folder=tmp_path) as view: view.get(view.trace)`. folder: for its cache; start: the program,
    which calls `main`."""

    def __init__(
        self, *words: str | Path, folder: Path, opens: bool = False, start: str = "", **environment: str
    ) -> None:
        program = [sys.executable, *(["-c", start] if start else ["-m", "traceferry"])]
        command = [*program, "view", *map(str, words), *([] if opens else ["--no-open"])]
        self.cache = folder / "cache"
        shown_by = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
        plain = {name: value for name, value in os.environ.items() if name not in shown_by}
        self._process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1, cwd=folder,
            env=plain | {"XDG_CACHE_HOME": str(self.cache)} | environment,
        )  # fmt: skip
        self.told: list[str] = []
        self._errors: queue.Queue[str] = queue.Queue()
        self.address = ""
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self._errors.put(line.rstrip("\n"))

    def __enter__(self) -> Self:
        assert self._process.stdout is not None
        self.address = self._process.stdout.readline().strip()
        assert self.address, self.rest()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    # ------------------------------------------------------------ what it says

    def tells(self, part: str, seconds: float = ANSWER_SECONDS) -> str:
        """The next line on standard error that has this part."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                line = self._errors.get(timeout=max(end - time.monotonic(), 0.01))
            except queue.Empty:
                break
            self.told.append(line)
            if part in line:
                return line
        raise AssertionError(f"{part!r} was not said in {seconds:g} s, but: {self.told}")

    def rest(self) -> str:
        """Everything on standard error, once the process has ended."""
        self._process.wait(START_SECONDS)
        time.sleep(0.1)
        while not self._errors.empty():
            self.told.append(self._errors.get())
        return "\n".join(self.told)

    def stop(self, number: int = signal.SIGINT) -> int:
        """The exit status."""
        if self._process.poll() is None:
            self._process.send_signal(number)
        try:
            return self._process.wait(ANSWER_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            raise

    @property
    def pid(self) -> int:
        return self._process.pid

    # ------------------------------------------------------------ addresses

    @property
    def trace(self) -> str:
        """The trace's URL, from the viewer's address."""
        parts = urlsplit(self.address)
        if "from-url" in parts.path:
            return unquote(parts.path.split("/")[2])
        if parts.path.endswith(".html"):  # our own page
            return self.address
        return parse_qs(parts.fragment.partition("?")[2])["url"][0]

    @property
    def server(self) -> str:
        """What all paths begin with."""
        return self.trace.rpartition("/")[0]

    @property
    def port(self) -> int:
        return urlsplit(self.trace).port or 0

    def path(self, of: str = "") -> str:
        return urlsplit(self.server).path + of

    # ------------------------------------------------------------ requests

    def get(self, path: str, **headers: str) -> Answer:
        return self.request("GET", path, **headers)

    def ask(self, question: str, request: Any) -> Any:
        """Of the symbol server, as the Firefox Profiler asks."""
        headers = {"Origin": FIREFOX, "Content-Type": "text/plain;charset=UTF-8"}
        answer = self.request("POST", self.path(question), json.dumps(request).encode(), **headers)
        assert answer.status == 200
        return answer.json

    def request(self, method: str, path: str, body: bytes = b"", **headers: str) -> Answer:
        """path: sent as it is; headers: `_` stands for `-`."""
        named = {"Host": f"127.0.0.1:{self.port}", "Connection": "close"}
        named |= {name.replace("_", "-"): value for name, value in headers.items()}
        if body:
            named.setdefault("Content-Length", str(len(body)))
        path = urlsplit(path).path if path.startswith("http") else path
        lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in named.items()), "", ""]
        return self.send("\r\n".join(lines).encode() + body)

    def send(self, data: bytes) -> Answer:
        """Everything that comes until the server closes the connection."""
        with self.connect() as connection:
            # It may answer before it has read everything.
            with suppress(BrokenPipeError, ConnectionResetError):
                connection.sendall(data)
            return answer_of(connection)

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), ANSWER_SECONDS)


def answer_of(connection: socket.socket) -> Answer:
    received = b""
    while True:
        try:
            piece = connection.recv(1 << 16)
        except ConnectionResetError:
            break
        if not piece:
            break
        received += piece
    head, _, body = received.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = dict(line.lower().split(": ", 1)[:1] + line.split(": ", 1)[1:] for line in lines)
    return Answer(int(first.split()[1]) if first else 0, headers, body)


def ended(*words: str | Path, folder: Path) -> tuple[int, str]:
    """(exit status, standard error) of a view that does not come to show anything."""
    command: Sequence[str] = [sys.executable, "-m", "traceferry", "view", *map(str, words), "--no-open"]
    environment = os.environ | {"XDG_CACHE_HOME": str(folder / "cache")}
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=START_SECONDS, env=environment, cwd=folder, check=False
    )
    assert done.stdout == ""
    return done.returncode, done.stderr
