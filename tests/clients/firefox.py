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
            answer = self._asked("status") if self._daemon.poll() is None else {"type": "error", "error": "it ended"}
            if answer.get("type") == "ready":
                return
            if answer.get("type") == "error":
                raise ProfilerCliError(("load", str(self.profile)), str(answer["error"]), self._log())
            time.sleep(0.05)
        raise ProfilerCliError(("load", str(self.profile)), f"not ready in {self._load_seconds:g} s", self._log())

    def _asked(self, message: str) -> dict[str, Any]:
        """The daemon's answer, nothing where it does not listen yet."""
        assert self._directory is not None
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(STOP_SECONDS)
            with contextlib.suppress(OSError, json.JSONDecodeError):
                connection.connect(str(self._directory / f"{self.session}.sock"))
                connection.sendall(json.dumps({"type": message}).encode() + b"\n")
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

    def run(self, *args: str, json: bool = False) -> Any:
        """The output of one command: text, or with `json` the parsed answer."""
        return self._parsed(args) if json else self._call(args, self._call_seconds)

    def _parsed(self, args: tuple[str, ...]) -> Any:
        output = self._call((*args, "--json"), self._call_seconds)
        try:
            return json.loads(output)
        except json.JSONDecodeError as error:
            raise ProfilerCliError(args, f"no JSON: {error}", output[:1000]) from error

    def threads(self) -> list[dict[str, Any]]:
        """threadHandle, name, processName, pid, tid, cpuMs and markerCount of every thread, by handle."""
        answer = self._parsed(("thread", "list", "--sort", "index", "--limit", "0"))
        return list(answer["threads"])

    def samples(self, thread: str, *, include_idle: bool = False) -> dict[str, Any]:
        """Category breakdown, top functions and heaviest stack; idle samples are left out by default."""
        idle = ("--include-idle",) if include_idle else ()
        return dict(self._parsed(("thread", "samples", "--thread", thread, "--limit", "0", *idle)))

    def call_tree(self, thread: str, *, include_idle: bool = False, strategy: str = "") -> dict[str, Any]:
        """The root of the top-down tree; nodes have name, totalSamples, selfSamples and children. strategy: what is
        counted, as "native-retained-allocations"; time, if it is not given."""
        idle = ("--include-idle",) if include_idle else ()
        counted = ("--strategy", strategy) if strategy else ()
        return dict(
            self._parsed(("thread", "samples-top-down", "--thread", thread, *idle, *counted))["regularCallTree"]
        )

    def markers(self, thread: str) -> list[dict[str, Any]]:
        """handle, name, label, start, duration (intervals only), category and markerType of every marker."""
        answer = self._parsed(("thread", "markers", "--thread", thread, "--list", "--limit", "0"))
        return list(answer.get("flatMarkers", []))

    def functions(self, thread: str, *, include_idle: bool = False) -> list[dict[str, Any]]:
        """functionHandle, name, selfSamples and totalSamples of every function."""
        idle = ("--include-idle",) if include_idle else ()
        answer = self._parsed(("thread", "functions", "--thread", thread, "--limit", "0", *idle))
        return list(answer["functions"])

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

    def _call(self, args: tuple[str, ...], seconds: float) -> str:
        command = [str(NODE), str(CLI), *args, "--session", self.session]
        try:
            done = subprocess.run(
                command, env=self._environment(), capture_output=True, text=True, timeout=seconds, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise ProfilerCliError(args, f"no answer in {seconds:g} s", "") from error
        if done.returncode:
            raise ProfilerCliError(args, f"exit code {done.returncode}", done.stderr)
        return done.stdout
