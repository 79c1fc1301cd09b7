"""The program that a log is named after, and where it may be."""

from __future__ import annotations

import os
from collections.abc import Iterator

from traceferry.common.patterns import compiled_later
from traceferry.files.decompress import COMPRESSED_SUFFIXES
from traceferry.files.source import Source, paths_beside

# The runtime puts the program's name, without folders, and six characters of mkstemp's behind xray_logfile_base, which
# is "xray-log." unless the user sets another; where the whole is too long for it, 256 bytes, it writes no log.
LOG_NAME = compiled_later(r"(?:.*\.)?xray-log\.(.+)\.\w{6}")
OF_OTHER_BASE = compiled_later(r"(.+)\.\w{6}")
SEPARATOR = compiled_later(r"[-_.]")
OWN_SUFFIX = ".xray"

# (path, what the user has named there)
Place = tuple[str, str]


def program_name(file_name: str) -> str:
    """Returns the name of the program that wrote a log of this name, as far as it tells."""
    named = LOG_NAME.fullmatch(file_name.removesuffix(OWN_SUFFIX))
    return named[1] if named else file_name.removesuffix(OWN_SUFFIX)


def names_of_program(file_name: str) -> list[str]:
    """Returns what the program's file may be called, the likeliest first: another base than "xray-log." can be any
    text, which often ends at a mark."""
    other = OF_OTHER_BASE.fullmatch(file_name.removesuffix(OWN_SUFFIX))
    stem = other[1] if other else ""
    endings = [stem[mark.end() :] for mark in SEPARATOR.finditer(stem)]
    return [name for name in dict.fromkeys([program_name(file_name), stem, *endings]) if name]


def places_of_program(source: Source, search_working_folder: bool) -> list[Place]:
    """Returns where there are files of the program's name: beside the log, and in the working folder."""
    return [place for place in _places(source, search_working_folder) if os.path.isfile(place[0])]


def _places(source: Source, search_working_folder: bool) -> Iterator[Place]:
    seen = {os.path.realpath(source.path)}
    for name in names_of_program(source.name):
        for path, beside in paths_beside([source], [os.curdir] if search_working_folder else [], name):
            for each in (path, *(path + suffix for suffix in COMPRESSED_SUFFIXES)):
                real = os.path.realpath(each)
                if real not in seen:
                    seen.add(real)
                    yield os.path.normpath(each), beside
