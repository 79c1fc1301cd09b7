"""The command `completion`: a script for a shell that completes commands, options and files."""

from __future__ import annotations

import argparse

from traceferry.apps.cli.command_parser import CommandParser
from traceferry.apps.cli.options import DONE, explain
from traceferry.common.errors import UsageError

SHELLS = ("bash", "zsh", "fish", "tcsh")
# What the words of these arguments are; shtab completes them.
FILES = ("INPUT", "SOURCE", "FILE", "FILE-OR-DIR", "FILE.json", "OUT", "OUT.gsym", "DIR")


def add_to(completion: CommandParser) -> None:
    explain(
        completion,
        "Prints a script that completes commands, options and files. Needs the package shtab: "
        "pip install 'traceferry[completion]'.",
        examples="traceferry completion bash > ~/.local/share/bash-completion/completions/traceferry\n"
        "traceferry completion zsh > ~/.zfunc/_traceferry\n"
        "traceferry completion fish > ~/.config/fish/completions/traceferry.fish",
    )
    completion.add_argument("shell", choices=SHELLS, help="the shell")


def run(arguments: argparse.Namespace) -> int:
    """Prints the script. arguments.whole: the parser of all commands."""
    try:
        import shtab
    except ImportError:
        raise UsageError("completion needs the package shtab: pip install 'traceferry[completion]'") from None
    whole = arguments.whole
    for action in _actions(whole):
        if action.metavar in FILES:
            action.complete = shtab.FILE  # type: ignore[attr-defined]
    print(shtab.complete(whole, arguments.shell))
    return DONE


def _actions(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    actions = []
    for action in parser._actions:
        actions.append(action)
        if isinstance(action, argparse._SubParsersAction):
            actions += [inner for sub in action.choices.values() for inner in _actions(sub)]
    return actions
