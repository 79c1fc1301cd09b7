"""Drives profiler-cli, the Firefox Profiler's command line client.

`npm ci --prefix tests/clients` installs it with the Node it needs; `available()` says when that was not done.
"""

import contextlib
import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

MODULES = Path(__file__).parent / "node_modules"
NODE = MODULES / "node" / "bin" / "node"
CLI = MODULES / "@firefox-devtools" / "profiler-cli" / "dist" / "profiler-cli.js"

# The longest path of a Unix socket on Linux, with its final zero.
SOCKET_PATH_BYTES = 108
LOAD_SECONDS = 120.0
CALL_SECONDS = 60.0
STOP_SECONDS = 10.0


def available() -> str | None:
    """Why the client cannot be used here, or None."""
    for program in (NODE, CLI):
        if not program.exists():
            return f"{program.name} is not installed: npm ci --prefix tests/clients"
    return None


class ProfilerCliError(RuntimeError):
    """The client failed or took too long; `stderr` is what it said."""

    def __init__(self, arguments: tuple[str, ...], reason: str, stderr: str) -> None:
        super().__init__(f"profiler-cli {' '.join(arguments)}: {reason}\n{stderr}".rstrip())
        self.stderr = stderr


class ProfilerCli:
    """One session with one loaded profile: `with ProfilerCli(path) as cli: cli.threads()`.

    The session directory is its own and short, as the daemon's socket lies in it. Leaving the block, or
    failing to load, always ends the daemon.
    """

    def __init__(
        self, profile: str | Path, *, load_seconds: float = LOAD_SECONDS, call_seconds: float = CALL_SECONDS
    ) -> None:
        self.profile = Path(profile).resolve()
        self.session = "test"
        self._load_seconds = load_seconds
        self._call_seconds = call_seconds
        self._directory: Path | None = None
        self._daemon: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        if reason := available():
            raise RuntimeError(reason)
        # Not the default directory: pytest and macOS set long ones.
        self._directory = Path(tempfile.mkdtemp(prefix="pq-", dir="/tmp"))
        place = self._directory / f"{self.session}.sock"
        if len(os.fsencode(place)) >= SOCKET_PATH_BYTES:
            self._directory.rmdir()
            raise RuntimeError(f"the socket path {place} is too long")
        try:
            self._load()
        except BaseException:
            self.close()
            raise
        return self

    def _load(self) -> None:
        """Starts the daemon as `profiler-cli load` does, which gives it 500 ms: on a busy machine it takes longer."""
        assert self._directory is not None
        words = [str(NODE), str(CLI), "--daemon", str(self.profile), "--session", self.session]
        self._daemon = subprocess.Popen(
            words, env=self._environment(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        deadline = time.monotonic() + self._load_seconds
        while time.monotonic() < deadline:
            answer = {"type": "error", "error": "it ended"}
            if self._daemon.poll() is None:
                answer = self._asked({"type": "status"}, STOP_SECONDS)
            if answer.get("type") == "ready":
                return
            if answer.get("type") == "error":
                raise ProfilerCliError(("load", str(self.profile)), str(answer["error"]), self._log())
            time.sleep(0.05)
        raise ProfilerCliError(("load", str(self.profile)), f"not ready in {self._load_seconds:g} s", self._log())

    @property
    def process_id(self) -> int:
        """The daemon's."""
        assert self._daemon is not None
        return self._daemon.pid

    def _asked(self, message: dict[str, Any], seconds: float) -> dict[str, Any]:
        """The daemon's answer, nothing where it does not listen yet."""
        assert self._directory is not None
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(seconds)
            with contextlib.suppress(OSError, json.JSONDecodeError):
                connection.connect(str(self._directory / f"{self.session}.sock"))
                connection.sendall(json.dumps(message).encode() + b"\n")
                return dict(json.loads(connection.makefile().readline()))
        return {}

    def _log(self) -> str:
        assert self._directory is not None
        with contextlib.suppress(OSError):
            return (self._directory / f"{self.session}.log").read_text()
        return ""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def run(self, *args: str) -> Any:
        """The parsed answer to one command, as a user gives it: a process, which takes a third of a second."""
        output = self.text(*args, "--json")
        try:
            return json.loads(output)
        except json.JSONDecodeError as error:
            raise ProfilerCliError(args, f"no JSON: {error}", output[:1000]) from error

    def text(self, *args: str) -> str:
        """What one command prints."""
        command = [str(NODE), str(CLI), *args, "--session", self.session]
        try:
            done = subprocess.run(
                command, env=self._environment(), capture_output=True, text=True, timeout=self._call_seconds
            )
        except subprocess.TimeoutExpired as error:
            raise ProfilerCliError(args, f"no answer in {self._call_seconds:g} s", "") from error
        if done.returncode:
            raise ProfilerCliError(args, f"exit code {done.returncode}", done.stderr)
        return done.stdout

    def ask(self, command: str, subcommand: str, **options: Any) -> dict[str, Any]:
        """What `run` gives, asked of the daemon itself, as its command does."""
        message = {"command": command, "subcommand": subcommand, **options}
        answer = self._asked({"type": "command", "command": message}, self._call_seconds)
        if answer.get("type") != "success":
            raise ProfilerCliError((command, subcommand), str(answer.get("error", "no answer")), self._log())
        return dict(answer["result"])

    def threads(self) -> list[dict[str, Any]]:
        """threadHandle, name, processName, pid, tid, cpuMs and markerCount of every thread, by handle."""
        return list(self.ask("thread", "list", threadListOptions={"sort": "index", "limit": 0})["threads"])

    def samples(self, thread: str, *, include_idle: bool = False, prefix: Sequence[int] = ()) -> dict[str, Any]:
        """Category breakdown, top functions and heaviest stack; idle samples are left out by default. prefix: only the
        samples whose stacks begin with these functions."""
        return self._of_samples("samples", thread, include_idle, {"includes-prefix": prefix})

    def call_tree(
        self, thread: str, *, include_idle: bool = False, strategy: str = "", most: int | None = None
    ) -> dict[str, Any]:
        """The root of the top-down tree; nodes have name, totalSamples, selfSamples and children. strategy: what is
        counted, as "native-retained-allocations"; time, if it is not given. most: how many nodes are shown."""
        options = {"strategy": strategy} if strategy else {}
        nodes = {"callTreeOptions": {"maxNodes": most}} if most else {}
        answer = self._of_samples("samples-top-down", thread, include_idle, {}, **options, **nodes)
        return dict(answer["regularCallTree"])

    def markers(self, thread: str) -> list[dict[str, Any]]:
        """handle, name, label, start, duration (intervals only), category and markerType of every marker."""
        answer = self.ask("thread", "markers", thread=thread, markerFilters={"list": True})
        return list(answer.get("flatMarkers", []))

    def functions(
        self, thread: str, *, include_idle: bool = False, strategy: str = "", merge: Sequence[int] = ()
    ) -> list[dict[str, Any]]:
        """functionHandle, functionIndex, name, selfSamples and totalSamples of every function; merge: but these, which
        are left out of stacks."""
        options = {"strategy": strategy} if strategy else {}
        answer = self._of_samples("functions", thread, include_idle, {"merge": merge}, functionFilters={}, **options)
        return list(answer["functions"])

    def annotate(self, function: str) -> dict[str, Any]:
        """The whole source of a function of the selected thread, with the samples of each line."""
        return self.ask("function", "annotate", function=function, annotateMode="src", annotateContext="file")

    def _of_samples(
        self, subcommand: str, thread: str, include_idle: bool, filters: dict[str, Sequence[int]], **options: Any
    ) -> dict[str, Any]:
        if include_idle:
            options["includeIdle"] = True
        if chosen := [{"type": kind, "funcIndexes": list(funcs)} for kind, funcs in filters.items() if funcs]:
            options["sampleFilters"] = chosen
        return self.ask("thread", subcommand, thread=thread, **options)

    def close(self) -> None:
        """End the daemon and remove the session directory; may be called again."""
        if self._directory is None:
            return
        if self._daemon is not None:
            # One that is caught in a loop answers nothing (a negative prefixOffset does that).
            self._daemon.kill()
            self._daemon.wait()
        shutil.rmtree(self._directory, ignore_errors=True)
        self._directory = None

    def _environment(self) -> dict[str, str]:
        # Each command is a process: compiled code that Node keeps saves it a third of its time.
        kept = {"NODE_COMPILE_CACHE": str(MODULES / ".compile-cache")}
        return {**os.environ, **kept, "PROFILER_CLI_SESSION_DIR": str(self._directory), "NO_COLOR": "1"}
