"""Options that one would type each time, as environment variables: each counts where its option is not given."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import NamedTuple

from traceferry.common.errors import UsageError
from traceferry.common.patterns import compiled_later
from traceferry.common.suggestions import did_you_mean

# As in PATH, but not in the middle of a URL.
BETWEEN_FOLDERS = compiled_later(r":(?!//)")


class Variable(NamedTuple):
    """option: of the command line; attribute: where its value stands among the arguments; is_list: whether the option
    may be repeated, and the variable holds several, as PATH does."""

    name: str
    option: str
    attribute: str
    is_list: bool


VARIABLES = (
    Variable("TRACEFERRY_SYMBOLS", "--symbols", "symbols", is_list=True),
    Variable("TRACEFERRY_SOURCE_ROOT", "--source-root", "source_root", is_list=True),
    Variable("TRACEFERRY_IN", "--in", "viewer", is_list=False),
)


def fill_in(
    arguments: argparse.Namespace, environment: Mapping[str, str], choices: Mapping[str, tuple[str, ...]]
) -> list[str]:
    """Gives the options of the command that were not given the values of their variables. Returns a line for each.

    Parameters
    ----------
    arguments : argparse.Namespace
        Is changed.
    environment : mapping of str to str
        By name of the variable.
    choices : mapping of str to tuple of str
        What options may be, by attribute; any text where there is none.

    Raises
    ------
    UsageError
        For a value that is not among the choices of its option.
    """
    lines = []
    for variable in VARIABLES:
        value = environment.get(variable.name, "")
        is_open = hasattr(arguments, variable.attribute) and not getattr(arguments, variable.attribute)
        if not value or not is_open:
            continue
        allowed = choices.get(variable.attribute, ())
        if allowed and value not in allowed:
            raise UsageError(f"{variable.name}={value}: not one of {', '.join(allowed)}{did_you_mean(value, allowed)}")
        values = [path for path in BETWEEN_FOLDERS.split(value) if path] if variable.is_list else value
        setattr(arguments, variable.attribute, values)
        lines.append(f"{variable.option} is {value}, of the variable {variable.name}")
    return lines
