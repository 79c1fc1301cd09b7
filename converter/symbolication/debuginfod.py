"""A client of debuginfod servers, which keep executables and debug files by build id. It reads and fills the folder of
elfutils' own client, so that a file is downloaded once, whichever tool wants it. Only the user's servers are asked.

Sources: the manual pages debuginfod(8), debuginfod-find(1) and debuginfod-client-config(7) of elfutils 0.188.
"""

from __future__ import annotations

import os
import queue
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar
from urllib.error import HTTPError

from traceferry.common.errors import UsageError
from traceferry.common.report import Report
from traceferry.symbolication.build_id import build_id_of, is_same_build

if TYPE_CHECKING:
    from http.client import HTTPResponse

Kind = Literal["debuginfo", "executable"]
Answer = TypeVar("Answer")
# What a download tells: the file's name; the bytes that came since, 0: a server is asked; all its bytes, 0 is unknown.
OnDownload = Callable[[str, int, int], None]

SCHEMES = ("http://", "https://")
# Where the environment says nothing: seconds in which STALL_BYTES must come, as in elfutils; for a whole file; bytes.
STALL_SECONDS, FILE_SECONDS, MOST_BYTES = 90.0, 600.0, 2 << 30
STALL_BYTES = 100 << 10
# A server that is there answers within this time.
ANSWER_SECONDS = 20.0
# How long elfutils remembers that no server has a file.
MISS_SECONDS = 600
CHUNK = 1 << 20
# Servers know build ids of any length; elfutils' have 8 to 64 bytes in practice.
MIN_DIGITS, MAX_DIGITS = 4, 128


def servers_of(urls: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    """Returns the servers that these name, "" being those of DEBUGINFOD_URLS.

    Raises UsageError if there are none, or one is no address of http or https.
    """
    words = [word for url in urls for word in (url or environment.get("DEBUGINFOD_URLS", "")).split()]
    # "ima:" directives, which elfutils 0.192 knows, ask for signatures; they are not servers.
    words = [word for word in words if not word.startswith("ima:")]
    if urls and not words:
        raise UsageError(
            "no debuginfod server is named: set DEBUGINFOD_URLS, or write --debuginfod https://SERVER; "
            "https://debuginfod.elfutils.org asks those of most distributions"
        )
    for word in words:
        if not word.startswith(SCHEMES):
            raise UsageError(f"{word}: not a debuginfod server; its address begins with http:// or https://")
    return list(dict.fromkeys(word.rstrip("/").removesuffix("/buildid") for word in words))


def cache_folder(environment: Mapping[str, str]) -> Path:
    """Returns the folder of elfutils' client: its own variable's, else XDG's, else ~/.cache/debuginfod_client."""
    own = environment.get("DEBUGINFOD_CACHE_PATH")
    if own:
        return Path(own)
    xdg = environment.get("XDG_CACHE_HOME")
    return (Path(xdg) if xdg else Path.home() / ".cache") / "debuginfod_client"


class Debuginfod:
    """Finds files by build id: in the cache, then at each server in turn. A server that fails once is not asked again.

    servers: from `servers_of`; environment: of the process; on_download: called as bytes come.
    """

    def __init__(
        self,
        servers: Sequence[str],
        report: Report,
        environment: Mapping[str, str] = os.environ,
        on_download: OnDownload | None = None,
    ) -> None:
        self._servers = list(servers)
        self._report = report
        self._cache = cache_folder(environment)
        self._stall_seconds = _number(environment, "DEBUGINFOD_TIMEOUT", STALL_SECONDS)
        self._file_seconds = _number(environment, "DEBUGINFOD_MAXTIME", FILE_SECONDS)
        self._most_bytes = int(_number(environment, "DEBUGINFOD_MAXSIZE", MOST_BYTES))
        self._on_download = on_download or (lambda *_: None)
        self._answers: dict[tuple[str, Kind], str] = {}

    def find(self, build_id: str, kind: Kind, name: str) -> str:
        """Returns the path of the file of that build; "" where none is found. name: of the library, for messages."""
        if not MIN_DIGITS <= len(build_id) <= MAX_DIGITS or set(build_id) - set("0123456789abcdef"):
            return ""
        if (build_id, kind) not in self._answers:
            self._answers[build_id, kind] = self._found(build_id, kind, name)
        return self._answers[build_id, kind]

    def _found(self, build_id: str, kind: Kind, name: str) -> str:
        kept = self._cache / build_id / kind
        if self._is_kept(kept):
            return str(kept)
        if self._is_known_to_miss(kept):
            return ""
        is_certain = bool(self._servers)
        for server in list(self._servers):
            try:
                if self._download(f"{server}/buildid/{build_id}/{kind}", kept, build_id, name):
                    self._report.note("debuginfod_downloads", where=str(kept), detail=f"{name} from {server}")
                    return str(kept)
            except (OSError, ValueError, HTTPException, _RefusedError) as error:
                is_certain = False
                if not isinstance(error, _RefusedError):
                    self._servers.remove(server)
                self._report.note("debuginfod_failed", where=server, detail=f"{server}: {name}: {_reason(error)}")
        if is_certain:
            with suppress(OSError):
                kept.parent.mkdir(parents=True, exist_ok=True)
                kept.touch()
        return ""

    # ------------------------------------------------ the cache

    def _is_kept(self, kept: Path) -> bool:
        try:
            return kept.stat().st_size > 0 and os.access(kept, os.R_OK)
        except OSError:
            return False

    def _is_known_to_miss(self, kept: Path) -> bool:
        """Whether a client has noted, as an empty file, that no server has it, and that is not long ago."""
        try:
            age = time.time() - kept.stat().st_mtime
        except OSError:
            return False
        seconds = MISS_SECONDS
        with suppress(OSError, ValueError):
            seconds = int((self._cache / "cache_miss_s").read_text())
        return age < seconds

    # ------------------------------------------------ a server

    def _download(self, url: str, kept: Path, build_id: str, name: str) -> bool:
        """Downloads a file into the cache; returns whether the server has it. Raises OSError, ValueError or
        HTTPException if the server fails, _RefusedError if what it sends is not taken."""
        begun = time.monotonic()
        self._on_download(name, 0, 0)
        response = _within(ANSWER_SECONDS, lambda: _answer_of(url))
        if response is None:
            return False
        with response:
            kept.parent.mkdir(parents=True, exist_ok=True)
            handle, path = tempfile.mkstemp(prefix=f"{kept.name}.", dir=kept.parent)
            try:
                with os.fdopen(handle, "w+b") as file:
                    self._receive(response, file, begun, name)
                _check_build(path, build_id)
                os.chmod(path, 0o400)
                os.replace(path, kept)
            except BaseException:
                os.unlink(path)
                raise
        return True

    def _receive(self, response: HTTPResponse, file: Any, begun: float, name: str) -> None:
        total = _size_of(response)
        if total > self._most_bytes:
            raise _RefusedError(f"its {total} bytes are more than the {self._most_bytes} that are downloaded")
        done, checked, since = 0, 0, begun
        while chunk := response.read1(CHUNK):
            done += file.write(chunk)
            self._on_download(name, len(chunk), total)
            now = time.monotonic()
            if done > self._most_bytes:
                raise _RefusedError(f"it has more than the {self._most_bytes} bytes that are downloaded")
            if now - begun > self._file_seconds:
                raise TimeoutError(f"it took more than {self._file_seconds:g} s")
            if done - checked >= STALL_BYTES:
                checked, since = done, now
            elif now - since > self._stall_seconds:
                raise TimeoutError(f"less than {STALL_BYTES >> 10} kB came in {self._stall_seconds:g} s")
        if response.length:  # what the server has announced beyond the end
            raise ConnectionError(f"the connection ended {response.length} bytes early")


class _RefusedError(Exception):
    """Why a file that a server sends is not taken."""


def _answer_of(url: str) -> HTTPResponse | None:
    """Returns the response; None where the server does not have the file. Raises OSError for any other answer."""
    import urllib.request

    handlers = (
        urllib.request.ProxyHandler, urllib.request.HTTPHandler, urllib.request.HTTPSHandler,
        urllib.request.HTTPDefaultErrorHandler, urllib.request.HTTPRedirectHandler, urllib.request.HTTPErrorProcessor,
        urllib.request.UnknownHandler,
    )  # fmt: skip
    opener = urllib.request.OpenerDirector()
    for handler in handlers:
        opener.add_handler(handler())
    request = urllib.request.Request(url, headers={"Accept-Encoding": "identity", "User-Agent": "traceferry"})
    try:
        response: HTTPResponse = opener.open(request, timeout=ANSWER_SECONDS)
    except HTTPError as error:
        error.close()
        if error.code == 404:
            return None
        raise
    return response


def _within(seconds: float, ask: Callable[[], Answer]) -> Answer:
    """Returns the answer. Raises TimeoutError if it takes longer: a socket's timeout ends neither a search for the
    server's name nor headers that come byte by byte."""
    answers: queue.SimpleQueue[tuple[Answer | None, BaseException | None]] = queue.SimpleQueue()

    def run() -> None:
        try:
            answers.put((ask(), None))
        except BaseException as error:
            answers.put((None, error))

    threading.Thread(target=run, daemon=True).start()
    try:
        answer, error = answers.get(timeout=seconds)
    except queue.Empty:
        raise TimeoutError(f"no answer within {seconds:g} s") from None
    if error is not None:
        raise error
    return answer  # type: ignore[return-value]


def _size_of(response: HTTPResponse) -> int:
    """Returns the file's size in bytes as the server announces it, 0 is unknown."""
    announced = (response.headers.get(name, "") for name in ("Content-Length", "X-DEBUGINFOD-SIZE"))
    return max((int(text) for text in announced if text.isascii() and text.isdigit()), default=0)


def _check_build(path: str, build_id: str) -> None:
    from traceferry.files.source import mapped

    with open(path, "rb") as file:
        here = build_id_of(memoryview(mapped(file))) if os.fstat(file.fileno()).st_size else ""
    if not is_same_build(here, build_id):
        raise _RefusedError(f"the server sent {f'a file of build {here}' if here else 'no ELF file with a build id'}")


def _reason(error: Exception) -> str:
    if isinstance(error, HTTPError):
        return f"{error.code} {error.reason}"
    return str(getattr(error, "reason", "") or error) or type(error).__name__


def _number(environment: Mapping[str, str], name: str, default: float) -> float:
    """Returns what a variable says; 0, as for elfutils, is no limit."""
    text = environment.get(name, "")
    return (float(text) or float("inf")) if text.isascii() and text.isdigit() else default
