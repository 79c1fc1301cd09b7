"""The parser of a command: its options in groups, the most used first, and what it says of a mistyped one."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from traceferry.common.shown_text import shown
from traceferry.common.suggestions import did_you_mean

# Of the arguments that take any number of words: inputs, those of `compare`, and those of `query`, the last of which is
# SQL.
TAKEN = ("inputs", "recordings", "words")
HELP_WIDTH = 78


class OneOutput(argparse.Action):
    """Refuses a second output: where the last one counted, the first would be missing."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, _: Any = None
    ) -> None:
        given = getattr(namespace, self.dest)
        if given is not None:
            parser.error(f"-o is given twice: {given}, {values}; this command has one output")
        setattr(namespace, self.dest, values)


class CommandParser(argparse.ArgumentParser):
    """The groups stand in --help in this order, without those that are empty. rare: what most people never need."""

    def __init__(self, **options: Any) -> None:
        super().__init__(
            **options, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False, add_help=False
        )
        self.input = self.add_argument_group("input")
        self.output = self.add_argument_group("output")
        self.selection = self.add_argument_group("selection")
        self.symbols = self.add_argument_group("symbols and sources")
        self.rare = self.add_argument_group("rare")
        self.rare.add_argument("-h", "--help", action="help", help="show this help message and exit")
        # What people type for options that are called otherwise, as other tools call them.
        self.synonyms: dict[str, str] = {}
        # In one line: what --help says first.
        self.explanation = ""
        # Makes those of all commands, by name: only a mistyped option needs them.
        self.find_commands: Callable[[], Mapping[str, CommandParser]] = dict

    def format_help(self) -> str:
        self.fill_description()
        return super().format_help()

    def fill_description(self) -> None:
        """Breaks the explanation into lines, when somebody reads it."""
        import textwrap

        self.description = textwrap.fill(self.explanation, HELP_WIDTH)

    def shorten_usage(self) -> None:
        """Leaves the options out of the line of usage: they stand below it, in their groups."""
        inputs = [_usage_of(action) for action in self._get_positional_actions()]
        self.usage = " ".join([self.prog, "[OPTION]...", *inputs])

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Takes inputs after options, too, and refuses unknown options here, where the command is known: argparse does
        so in the parser of all commands."""
        arguments, unknown = super().parse_known_args(args, namespace)
        taken = next((name for name in TAKEN if name in arguments), "")
        if taken and not any(word.startswith("-") and word != "-" for word in unknown):
            setattr(arguments, taken, [*getattr(arguments, taken), *unknown])
            unknown = []
        if unknown:
            self.error(f"{unknown[0]}: {self._reason(unknown[0])}")
        return arguments, unknown

    def error(self, message: str) -> NoReturn:
        """Names the help instead of printing all options. The message is escaped: a word that a shell's pattern made of
        a file's name may stand in it."""
        self.exit(2, shown(f"traceferry: {message} (see: {self.prog} --help)") + "\n")

    def options(self) -> list[str]:
        return [option for action in self._actions for option in action.option_strings]

    def _reason(self, word: str) -> str:
        if not word.startswith("-"):
            return "one argument too many"
        option = word.split("=")[0]
        if option in self.synonyms:
            return f"unknown option; did you mean {self.synonyms[option]}?"
        other = next((name for name, command in self.find_commands().items() if option in command.options()), None)
        if other is not None:
            return f"unknown option; traceferry {other} has it"
        is_long = option.startswith("--")
        return "unknown option" + did_you_mean(
            option, (one for one in self.options() if one.startswith("--") == is_long)
        )

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Names the nearest of the choices, as Python does from 3.14 on."""
        choices: Sequence[Any] = list(action.choices or ())
        if choices and value not in choices:
            known = ", ".join(map(str, choices))
            raise argparse.ArgumentError(
                action, f"unknown value {value!r}{did_you_mean(value, choices)} (known: {known})"
            )


def _usage_of(positional: argparse.Action) -> str:
    name = str(positional.metavar or "|".join(map(str, positional.choices or [positional.dest])))
    if " " in name:
        return name
    return {"*": f"[{name}]...", "+": f"{name}...", "?": f"[{name}]"}.get(str(positional.nargs), name)
