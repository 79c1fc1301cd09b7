"""The command `traceferry`."""

from __future__ import annotations

import argparse
import atexit
import gc
import io
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any, NoReturn, Protocol, cast

# NumPy's library of linear algebra, of which nothing is used, starts a thread for each processor: a tenth of the CPU
# time of a small conversion.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# Huge pages, which NumPy asks for where an array has 4 MB: where the host of a virtual machine has taken free memory
# back, they take several times as long as small ones (`NUMPY_MADVISE_HUGEPAGE=1 traceferry convert ...` shows it).
os.environ.setdefault("NUMPY_MADVISE_HUGEPAGE", "0")

from traceferry.apps.cli.closed_pipe import drop_what_cannot_be_written
from traceferry.apps.cli.command_parser import CommandParser
from traceferry.apps.cli.environment import VARIABLES, fill_in
from traceferry.apps.cli.options import (
    DONE,
    FAILED,
    PAGE,
    PROGRAM,
    RECORDING,
    VIEWERS,
    look_into_folders,
    share_servers,
    with_values,
)
from traceferry.apps.cli.termination import Terminated, terminable
from traceferry.common.errors import FormatError, UsageError, within_limits
from traceferry.common.patterns import compiled_later
from traceferry.common.shown_text import shown
from traceferry.common.suggestions import did_you_mean


class Command(Protocol):
    """A module of this package that is named after its command."""

    def add_to(self, parser: CommandParser, /) -> None:
        """Adds the options, and what --help says."""

    def run(self, arguments: argparse.Namespace) -> int:
        """Returns the exit status."""


# With what they do, in a line.
COMMANDS = {
    "view": "show recordings in a viewer in the browser",
    "convert": "convert recordings for a viewer (the default command)",
    "info": "summarize a recording",
    "compare": "show what changed between recordings, and fail if it is slower",
    "aggregate": "add up many recordings: tables to query, or one profile of all",
    "query": "run SQL over a recording, in Perfetto's trace_processor",
    "check": "check that a recording is complete and gives a valid trace",
    "pack": "put a recording into one file with what is found for it, to read elsewhere",
    "dump": "print the records of a recording",
    "symbols": "make a GSYM file, look up addresses, compare symbols",
    "formats": "list the formats",
    "completion": "print a completion script for a shell",
}
# As a word of its own, or as the value of an option.
HOME = compiled_later(rf"^(--[\w-]+=|-o)?~(?=/|{re.escape(os.sep)}|$)")
SHORT_HELP = f"""traceferry turns runtime recordings into traces for profiler.firefox.com and ui.perfetto.dev.

  traceferry view {RECORDING}                 show it in the browser
  traceferry {RECORDING} -o out.html          make one page that opens anywhere
  traceferry info {PROGRAM}    print what is in it

`traceferry --help` lists the commands, `traceferry formats` what can be read and written."""
# What the commands of other tools are called, and which of ours does that.
COMMANDS_OF_OTHERS = {
    "report": "info", "stat": "info", "stats": "info", "summary": "info", "account": "info", "annotate": "info",
    "script": "dump", "load": "view", "open": "view", "show": "view", "diff": "compare", "merge": "aggregate",
}  # fmt: skip
RECORDS_NOTHING = (
    "; traceferry records nothing itself: record with perf record -g PROGRAM, or as docs/record says for each runtime"
)
GLOBAL_OPTIONS = ("-h", "--help", "--version")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command; returns the exit status: 0 done; 1 what --fail-on, check or symbols --verify looks for was found,
    or some of many recordings could not be read; 2 nothing was written; 3 a gate of compare failed."""
    _escape_what_cannot_be_encoded()
    arguments = argparse.Namespace()
    try:
        words = _with_command(_with_home(sys.argv[1:] if argv is None else argv))
        if not words:
            for line in SHORT_HELP.splitlines():
                print(shown(line), file=sys.stderr)
            return FAILED
        try:
            arguments = _parsed(with_values(words))
        finally:
            sys.stdout.flush()  # --help and --version end here
        lines = fill_in(arguments, os.environ, {"viewer": (*VIEWERS, PAGE)})
        if getattr(arguments, "verbose", False):
            for line in lines:
                print(shown(line), file=sys.stderr)
        share_servers(arguments)
        look_into_folders(arguments)
        with terminable(), within_limits(), _no_garbage_collection():
            status = arguments.run(arguments)
        sys.stdout.flush()
        return int(status)
    except FormatError as error:
        print(shown(f"traceferry: {error}"), file=sys.stderr)
        for line in error.hex_lines():
            print(shown(f"  {line}"), file=sys.stderr)
    except UsageError as error:
        print(shown(f"traceferry: {error}"), file=sys.stderr)
        for line in error.lines:
            print(shown(f"  {line}"), file=sys.stderr)
    except BrokenPipeError:
        # The reader of the pipe has closed it, as `head` does.
        drop_what_cannot_be_written()
        return FAILED if _is_for_the_status(arguments) else DONE
    except OSError as error:
        is_plain = error.filename is not None and error.strerror is not None
        said = f"{os.fspath(error.filename)}: {error.strerror}" if is_plain else str(error)
        print(shown(f"traceferry: {said}"), file=sys.stderr)
    except KeyboardInterrupt:
        print("traceferry: interrupted", file=sys.stderr)
    except Terminated as signalled:
        signalled.end_process()
    drop_what_cannot_be_written()
    return FAILED


def _is_for_the_status(arguments: argparse.Namespace) -> bool:
    """Whether a command does more than to print: it writes a file, or its exit status is an answer."""
    writes = getattr(arguments, "command", "") == "convert"
    return writes or any(getattr(arguments, name, None) for name in ("fail_on", "verify"))


def _with_home(words: Sequence[str]) -> list[str]:
    """Puts the user's folder in place of ~ where a shell leaves it: in --sysroot=~/root, and in a pattern in quotes."""
    return [HOME.sub(_home_of, word, count=1) if "~" in word else word for word in words]


def _home_of(found: re.Match[str]) -> str:
    return f"{found[1] or ''}{os.path.expanduser('~')}"


def _with_command(words: list[str]) -> list[str]:
    """`traceferry FILE` means `traceferry convert FILE`."""
    if not words or words[0] in COMMANDS or words[0] in GLOBAL_OPTIONS:
        return words
    first = words[0]
    if not first.startswith("-") and not os.path.lexists(first):
        if first == "help":
            return [*(word for word in words[1:2] if word in COMMANDS), "--help"]
        raise UsageError(f"{first}: neither a file nor a command{_meant(first)}")
    return ["convert", *words]


def _meant(word: str) -> str:
    if word in ("record", "rec"):
        return RECORDS_NOTHING
    if word in COMMANDS_OF_OTHERS:
        return f"; did you mean {COMMANDS_OF_OTHERS[word]}?"
    return did_you_mean(word, COMMANDS) or f"; commands: {', '.join(COMMANDS)}"


def _escape_what_cannot_be_encoded() -> None:
    """Lets names of a recording be printed whose characters the terminal's encoding lacks."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Switches the collector off: what a command makes lives until its end; to look for garbage takes up to a fifth of
    the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            # To the oldest generation, which is not looked at now; nor, frozen, when the process ends.
            gc.freeze()
            gc.unfreeze()
            gc.enable()
            atexit.register(gc.freeze)


class _Version(argparse.Action):
    """Finds the version out only if it is asked for."""

    def __call__(self, of: argparse.ArgumentParser, *_: Any) -> None:
        from traceferry import __version__

        print(shown(f"traceferry {__version__}"))
        of.exit()


class _AllCommands(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Escapes the message, as CommandParser does."""
        self.exit(FAILED, shown(f"traceferry: {message} (see: traceferry --help)") + "\n")


def _parsed(words: list[str]) -> argparse.Namespace:
    """Asks the parser of the command alone: those of all commands take as long as a small conversion."""
    if words[0] not in COMMANDS or words[0] == "completion":
        return parser().parse_args(words)
    alone = CommandParser(prog=f"traceferry {words[0]}")
    _fill(alone, words[0])
    return alone.parse_args(words[1:])


def _fill(parser: CommandParser, name: str) -> None:
    """Adds to a parser what belongs to this command."""
    command = cast("Command", import_module(f"traceferry.apps.cli.{name}"))
    parser.set_defaults(run=command.run, command=name)
    command.add_to(parser)
    parser.shorten_usage()
    parser.find_commands = _all_commands


def _all_commands() -> Mapping[str, CommandParser]:
    """Returns a parser of each command, to tell which of them has an option."""
    made = {name: CommandParser(prog=f"traceferry {name}") for name in COMMANDS}
    for name, of_one in made.items():
        _fill(of_one, name)
    return made


def parser() -> argparse.ArgumentParser:
    variables = ", ".join(variable.name for variable in VARIABLES)
    of_all = _AllCommands(
        prog="traceferry",
        usage="traceferry [COMMAND] ...",
        description="Turns runtime recordings into traces for profiler.firefox.com and ui.perfetto.dev.\n"
        "`traceferry FILE` means `traceferry convert FILE`; `traceferry COMMAND --help` explains a command.",
        epilog="exit status: 0 done, 1 --fail-on, check or symbols --verify found something, or some of many\n"
        "recordings could not be read, 2 nothing was written, 3 a gate of compare failed\n"
        f"environment: {variables} stand for options that are not given",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    of_all.add_argument("--version", action=_Version, nargs=0, help="print the version")
    commands = of_all.add_subparsers(
        title="commands", required=True, metavar="COMMAND", prog="traceferry", parser_class=CommandParser
    )
    for name, summary in COMMANDS.items():
        of_one = commands.add_parser(name, help=summary)
        _fill(of_one, name)
        of_one.fill_description()  # a script for a shell shows it
    commands.choices["completion"].set_defaults(whole=of_all)
    return of_all
