"""A client of debuginfod servers, which keep executables and debug files by build id. It reads and fills the folder of
elfutils' own client, so that a file is downloaded once, whichever tool wants it. Only the user's servers are asked.

Sources: the manual pages debuginfod(8), debuginfod-find(1) and debuginfod-client-config(7) of elfutils 0.188.
"""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from http.client import HTTPException
from pathlib import Path
from typing import TYPE_CHECKING, Generic, Literal, TypeVar
from urllib.error import HTTPError

from traceferry.common.errors import UsageError
from traceferry.common.report import Report
from traceferry.symbolication.build_id import build_id_of, is_same_build
from traceferry.symbolication.public_servers import DEBUGINFOD

if TYPE_CHECKING:
    from http.client import HTTPResponse

Kind = Literal["debuginfo", "executable"]
Answer = TypeVar("Answer")
# What a download tells: the file's name; the bytes that came since, 0: a server is asked; all its bytes, 0 is unknown.
OnDownload = Callable[[str, int, int], None]

SCHEMES = ("http://", "https://")
# Where the environment says nothing: seconds in which STALL_BYTES must come, as in elfutils; for a whole file; bytes.
STALL_SECONDS, FILE_SECONDS, MOST_BYTES = 90.0, 600.0, 2 << 30
MOST = 1 << 62
STALL_BYTES = 100 << 10
# A server that is there answers within this time. One that says nothing for the first seconds is asked for its front
# page, too: where that does not come either, it is not there.
ANSWER_SECONDS, FIRST_SECONDS, PAGE_SECONDS = 20.0, 2.0, 3.0
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
            f"{DEBUGINFOD} asks those of most distributions"
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


class Servers:
    """The servers of one command, and what they failed in: all recordings share them, so that a server which does not
    answer is waited for once.

    urls: from `servers_of`; failures: what was said of them, by server, by file (its URL), of the cache by its path.
    """

    def __init__(self, urls: Sequence[str], environment: Mapping[str, str] = os.environ) -> None:
        self.urls = tuple(urls)
        self.cache = cache_folder(environment)
        self.stall_seconds = _number(environment, "DEBUGINFOD_TIMEOUT", STALL_SECONDS)
        self.file_seconds = _number(environment, "DEBUGINFOD_MAXTIME", FILE_SECONDS)
        self.most_bytes = int(min(_number(environment, "DEBUGINFOD_MAXSIZE", MOST_BYTES), MOST))
        self.failures: dict[str, str] = {}


class Debuginfod:
    """Finds files by build id, for one recording: in the cache, then at each server in turn. A server that fails once
    is not asked again. on_download: called as bytes come."""

    def __init__(self, servers: Servers, report: Report, on_download: OnDownload | None = None) -> None:
        self._servers = servers
        self._report = report
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
        cache = self._servers.cache
        kept = cache / build_id / kind
        if self._is_kept(kept):
            return str(kept)
        if self._is_known_to_miss(kept) or self._has_failed(str(cache)):
            return ""
        is_certain = True
        for server in self._servers.urls:
            url = f"{server}/buildid/{build_id}/{kind}"
            if self._has_failed(server) or self._has_failed(url):
                is_certain = False
                continue
            try:
                if self._download(server, url, kept, build_id, name):
                    self._report.note("debuginfod_downloads", where=str(kept), detail=f"{name} from {server}")
                    return str(kept)
            except _CacheError as error:
                what = "cannot be written to; DEBUGINFOD_CACHE_PATH names another folder"
                self._failed(str(cache), f"{cache}: {error}: it {what}")
                return ""
            except (OSError, ValueError, HTTPException, _RefusedError) as error:
                is_certain = False
                where = url if isinstance(error, _RefusedError) else server
                self._failed(where, f"{server}: {name}: {_reason(error)}")
        if is_certain:
            with suppress(OSError):
                kept.parent.mkdir(parents=True, exist_ok=True)
                kept.touch()
        return ""

    def _failed(self, where: str, detail: str) -> None:
        self._servers.failures[where] = detail
        self._has_failed(where)

    def _has_failed(self, where: str) -> bool:
        """Whether it did, for this recording or another one; then the report says so."""
        detail = self._servers.failures.get(where)
        if detail is not None and where not in self._report.places("debuginfod_failed"):
            self._report.note("debuginfod_failed", where=where, detail=detail)
        return detail is not None

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
            seconds = int((self._servers.cache / "cache_miss_s").read_text())
        return age < seconds

    # ------------------------------------------------ a server

    def _download(self, server: str, url: str, kept: Path, build_id: str, name: str) -> bool:
        """Downloads a file into the cache; returns whether the server has it. Raises OSError, ValueError or
        HTTPException if the server fails, _RefusedError if what it sends is not taken, _CacheError."""
        begun = time.monotonic()
        self._on_download(name, 0, 0)
        response = _asked(url, f"{server}/")
        if response is None:
            return False
        with response, _new_file(kept) as (path, file):
            self._receive(response, file, begun, name)
            _check_build(path, build_id)
        return True

    def _receive(self, response: HTTPResponse, file: _CacheFile, begun: float, name: str) -> None:
        total = _size_of(response)
        if total > self._servers.most_bytes:
            raise _RefusedError(f"its {total} bytes are more than the {self._servers.most_bytes} that are downloaded")
        done, checked, since = 0, 0, begun
        while chunk := response.read1(CHUNK):
            done += file.write(chunk)
            self._on_download(name, len(chunk), total)
            now = time.monotonic()
            if done > self._servers.most_bytes:
                raise _RefusedError(f"it has more than the {self._servers.most_bytes} bytes that are downloaded")
            if now - begun > self._servers.file_seconds:
                raise TimeoutError(f"it took more than {self._servers.file_seconds:g} s")
            if done - checked >= STALL_BYTES:
                checked, since = done, now
            elif now - since > self._servers.stall_seconds:
                raise TimeoutError(f"less than {STALL_BYTES >> 10} kB came in {self._servers.stall_seconds:g} s")
        if response.length:  # what the server has announced beyond the end
            raise ConnectionError(f"the connection ended {response.length} bytes early")


class _RefusedError(Exception):
    """Why a file that a server sends is not taken."""


class _CacheError(Exception):
    """Why the cache cannot be written."""


class _CacheFile:
    """A file of the cache, to be written. write: raises _CacheError."""

    def __init__(self, handle: int) -> None:
        self._handle = handle

    def write(self, data: bytes) -> int:
        with _refusals():
            view = memoryview(data)
            while len(view):
                view = view[os.write(self._handle, view) :]
        return len(data)


@contextmanager
def _refusals() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise _CacheError(error.strerror or str(error)) from None


@contextmanager
def _new_file(kept: Path) -> Iterator[tuple[str, _CacheFile]]:
    """Yields (the path of a new file beside it, what writes it), which gets its name in the end."""
    with _refusals():
        kept.parent.mkdir(parents=True, exist_ok=True)
        handle, path = tempfile.mkstemp(prefix=f"{kept.name}.", dir=kept.parent)
    try:
        try:
            yield path, _CacheFile(handle)
        finally:
            os.close(handle)
        with _refusals():
            os.chmod(path, 0o400)
            os.replace(path, kept)
    except BaseException:
        os.unlink(path)
        raise


# ---------------------------------------------------------------- a question


def _asked(url: str, page: str) -> HTTPResponse | None:
    """Returns the response; None where the server does not have the file. page: of the server, which has an answer for
    it, whatever that is. Raises OSError for any other answer to the first, and where no answer comes in time."""
    question = _Question(partial(_answer_of, url))
    first = min(FIRST_SECONDS, ANSWER_SECONDS)
    if not question.is_answered(first):
        if not _is_there(page):
            raise TimeoutError(f"no answer within {first + PAGE_SECONDS:g} s")
        if not question.is_answered(ANSWER_SECONDS - first):
            raise TimeoutError(f"no answer within {ANSWER_SECONDS:g} s")
    return question.answer()


def _is_there(page: str) -> bool:
    question = _Question(partial(_answer_of, page))
    if not question.is_answered(PAGE_SECONDS):
        return False
    try:
        response = question.answer()
    except HTTPError:
        return True
    except (OSError, ValueError, HTTPException):
        return False
    if response is not None:
        response.close()
    return True


class _Question(Generic[Answer]):
    """Asks in a thread: a socket's timeout ends neither a search for the server's name nor headers that come byte by
    byte."""

    def __init__(self, ask: Callable[[], Answer]) -> None:
        self._ask = ask
        self._answer: Answer | None = None
        self._error: BaseException | None = None
        self._is_done = threading.Event()
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        try:
            self._answer = self._ask()
        except BaseException as error:
            self._error = error
        self._is_done.set()

    def is_answered(self, seconds: float) -> bool:
        """Waits so long at most."""
        return self._is_done.wait(seconds)

    def answer(self) -> Answer:
        """Returns the answer, or raises what asking raised."""
        if self._error is not None:
            raise self._error
        return self._answer  # type: ignore[return-value]


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
