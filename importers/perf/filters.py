"""Decode: what the recorder's command says of filters, of which the recording itself has nothing.

Source: perf-record(1): --filter is of the last event before it, or of all that its pattern stands for.
"""

from __future__ import annotations

import shlex
from fnmatch import fnmatchcase

from traceferry.common.recorder import command_of
from traceferry.importers.perf.recording import Features


def filter_of(features: Features, tracepoint: str) -> str:
    """Returns the filter of a tracepoint; "" where it has none, or the command is not known."""
    command = command_of(shlex.join(features.cmdline))
    event, found = "", []
    for option, value in command.options if command is not None else ():
        if option == "-e":
            event = (value or "").rpartition(",")[2].strip("{}")
        elif option == "--filter" and fnmatchcase(tracepoint, event):
            found.append(value or "")
    return " && ".join(found)
