"""Names of D that the library demangle does not read as they are: https://dlang.org/spec/abi.html#name_mangling.

The type of a function may be a back reference, Q and how far in front of that it stands, to one that is the same; and
compilers write behind names what copy of a function it is, as .isra.0 and .cold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice

from traceferry.common.patterns import compiled_later

D = "_D"
_COPY = compiled_later(r"(?:\.[a-z_]+|\.\d+)+$")
# M: of a member, with what is said of its object.
_TYPE_ELSEWHERE = compiled_later(r"(?P<before>_D.+?)(?P<of_member>(?:M(?:[Oxy]|Ng)*)?)Q(?P<distance>[A-Z]*[a-z])")
# How types of functions begin: D's, C's, Windows', C++'s and Objective C's calls.
_CALLS = "FUWRY"
# How many ends of a type are tried.
MOST_TRIES = 64


def d_name(name: str, read: Callable[[str], str]) -> str:
    """Returns a name of D as people write it, or as it is. read: demangles, and returns what it cannot read as it
    is."""
    copy = _COPY.search(name)
    mangled = name[: copy.start()] if copy is not None else name
    shown = next((shown for one in _spellings(mangled) if (shown := read(one)) != one), None)
    if shown is None:
        return name
    return f"{shown} ({copy[0]})" if copy is not None else shown


def _spellings(name: str) -> Iterator[str]:
    """Yields names that mean the same: with the type of the function in the place of the reference to it, and without
    one."""
    yield name
    found = _TYPE_ELSEWHERE.fullmatch(name)
    if found is None:
        return
    before, distance = found["before"] + found["of_member"], 0
    for letter in found["distance"]:
        distance = 26 * distance + ord(letter.upper()) - ord("A")
    at = len(before) - distance
    if at < 0 or before[at : at + 1] not in _CALLS:
        return
    # It ends where the whole is a name. Its own references would count from another place.
    for end in islice(range(at + 3, len(before) + 1), MOST_TRIES):
        if "Q" in before[at:end]:
            break
        yield before + before[at:end]
    yield f"{found['before']}Z"
