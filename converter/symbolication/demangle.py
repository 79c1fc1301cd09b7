"""Names as people write them: those of Rust, OCaml, GHC, Fortran, Pascal, Crystal, and of C++ as LLVM demangles them.

LLVM's demangler of C++ limits nothing. A substitution stands for all that was written before, so that each may double
what is printed: 361 bytes become more than any memory, and then the process ends. It calls itself for each level of a
name, so that 8 kB end a thread. Names that may be of this kind are therefore demangled in a process of their own, whose
memory, time and stack are limited; what that process cannot do keeps the name that the linker uses.
"""

from __future__ import annotations

import importlib
import posixpath
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from traceferry.common.patterns import compiled_later
from traceferry.common.report import Report
from traceferry.files.answers import Answers, checked

if TYPE_CHECKING:
    from traceferry.symbolication.interface import Frames

ITANIUM = ("_Z", "__Z", "___Z")
# macOS has another underscore in front.
MANGLED = (*ITANIUM, "_R", "__R")
# Swift since 4.0 and 4.2 ($S), and since 5 ($s); D.
SWIFT_AND_D = compiled_later(r"_?\$[sS]|_T0|_D(?:[0-9]|main$)")
# In characters. Symbol tables have names of up to 65,536.
MAX_NAME = 1 << 16
# Of 170,000 names of Node.js, LLVM and Clang, none is longer than 1,024, and none becomes more than 13 times as long.
MAX_GROWTH = 64
# What this process demangles itself: names of so many characters, which become at most so many.
OWN_NAME = 1 << 10
OWN_OUTPUT = 1 << 20
# The most that a character stands for, but for substitutions: `y` is "unsigned long long, ", `Ss` is a
# std::basic_string with its three arguments.
EXPANSION = 40
# Substitutions (S_, S1_) and template parameters (T_), each of which repeats what is before; constructors and
# destructors (C1, D0), which repeat one name; expansions of packs and folds, which repeat for each member of a pack.
# These are behind a J, each at least a character long. Most of what looks alike is a part of a word, as in flush.
REPEATING = compiled_later("[ST][0-9A-Z]*_")
NAMING = compiled_later("[CD][0-9I]")
SUBSTITUTION = compiled_later("S[0-9A-Z]*_")
# A conversion operator, and a name for the type to which it converts.
CONVERSION, STANDS_IN = "cv", "ZzConvertedzZ"
STAND_IN = f"{len(STANDS_IN)}{STANDS_IN}"
# How many ends of such a type are tried.
MOST_TRIES = 32
MULTIPLYING = compiled_later("D[pP]|s[pPZ]|f[lrLR]")
PACK = "J"

APART = Path(__file__).with_name("demangle_apart.py")
# How often that process may end before it is not started again; its time on a processor, in s, and s for each byte of
# names; and the time by the clock, where nothing limits the other.
MOST_ENDS = 3
SECONDS, SECONDS_PER_BYTE = 2, 5e-6
CLOCK_SECONDS, CLOCK_FACTOR = 60, 10
# Of a name in the report.
SHOWN = 100


class _Readers(NamedTuple):
    """Demangle names of some languages; None: it is of another."""

    rust: Callable[[str], str | None]
    functional: Callable[[str], str | None]
    procedural: Callable[[str], str | None]


@cache
def _readers() -> _Readers:
    """Imports them with the first name: many recordings have none."""
    from traceferry.symbolication.functional import functional_name
    from traceferry.symbolication.procedural import procedural_name
    from traceferry.symbolication.rust import rust_name

    return _Readers(rust_name, functional_name, procedural_name)


class Demangler:
    """Demangles names, each once.

    known: names that another library demangled where a pack was made; kept: names that stay as they are in the file,
    because they would become too long, or cannot be demangled within limits; unread: those that another library might
    read, which is not installed; read: those that it read.
    """

    def __init__(self, known: Mapping[str, str] = MappingProxyType({})) -> None:
        self.read: dict[str, str] = {}
        self._known = known
        self.kept: list[str] = []
        self.unread: list[str] = []
        self._shown: dict[str, str] = {}
        self._n_ends = 0

    def __call__(self, name: str) -> str:
        if name not in self._shown:
            self.learn([name])
        return self._shown[name]

    def learn(self, names: Iterable[str]) -> None:
        """Demangles these together, which takes less time than one by one."""
        apart = []
        for name in dict.fromkeys(names):
            if name in self._shown:
                continue
            rust = _readers().rust(name) if name.startswith(MANGLED) else None
            if rust is not None:
                self._enter(name, rust)
            elif SWIFT_AND_D.match(name):
                self._enter(name, self._by_other_library(name))
            elif not name.startswith(ITANIUM) or "\0" in name:
                self._enter(name, _readers().functional(name) or _readers().procedural(name) or name)
            elif is_harmless(name):
                shown = demangled(name)
                self._enter(name, shown if shown != name else self._by_other_library(name))
            else:
                apart.append(name)
        self._learn_apart(apart)

    def note_kept(self, report: Report, where: str) -> None:
        if self.kept:
            shortest = min(self.kept, key=len)
            detail = shortest if len(shortest) <= SHOWN else f"{shortest[:SHOWN]}… ({len(shortest)} characters)"
            report.note("names_kept_mangled", len(self.kept), where=where, detail=detail)
        if self.unread:
            detail = min(self.unread, key=len)[:SHOWN]
            report.note("names_of_other_languages", len(self.unread), where=where, detail=detail)

    def _by_other_library(self, name: str) -> str:
        """Returns a name of Swift or D, or one of C++ that LLVM's demangler refuses, demangled if that is possible."""
        if name in self._known:
            return self._known[name]
        from traceferry.symbolication.d_names import D, d_name

        read = other_demangler()
        if read is None:
            self.unread.append(name)
            return name
        if len(name) > OWN_NAME:
            self.read[name] = name
        else:
            self.read[name] = d_name(name, read) if name.startswith(D) else read(name)
        return self.read[name]

    def _learn_apart(self, names: list[str]) -> None:
        waiting = [name for name in names if len(name) <= MAX_NAME]
        for name in names:
            if len(name) > MAX_NAME:
                self._enter(name, "")
        while waiting and self._n_ends < MOST_ENDS:
            answers = _demangled_apart(waiting)
            for name, answer in zip(waiting, answers, strict=False):
                self._enter(name, answer)
            waiting = waiting[len(answers) :]
            if waiting:
                self._n_ends += 1
                self._enter(waiting.pop(0), "")
        for name in waiting:
            self._enter(name, "")

    def _enter(self, name: str, shown: str) -> None:
        """Keeps a result. shown: "" where there is none."""
        if name and (not shown or len(shown) > MAX_GROWTH * len(name)):
            self.kept.append(name)
            shown = name
        self._shown[name] = shown


def demangler_for(answers: Answers, report: Report, of: str = "") -> Demangler:
    """Returns what demangles for an input: a pack has the names that another library read where it was made. of: what
    is named, of several that an input asks for."""
    made: list[Demangler] = []
    question = f"names of other languages{of and f', {of}'}"
    known = answers.ask(question, report, dict[str, str], lambda _: dict(sorted(made[0].read.items())), _texts)
    made.append(Demangler(known))
    return made[0]


def _texts(value: Any) -> dict[str, str]:
    return {name: checked(shown, str) for name, shown in checked(value, dict).items()}


def demangle(name: str) -> str:
    """Returns a name as people write it; any other name as it is."""
    return Demangler()(name)


def is_harmless(name: str) -> bool:
    """Whether a name cannot become long, nor need much of the stack."""
    if len(name) > OWN_NAME:
        return False
    size = len(name) * (EXPANSION + len(NAMING.findall(name)))
    members = len(name.partition(PACK)[2])
    times = members ** len(MULTIPLYING.findall(name)) if members > 1 else 1
    return size * times << len(REPEATING.findall(name)) <= OWN_OUTPUT


def demangled(name: str) -> str:
    """Demangles a name of C++ that is harmless; one that is invalid stays as it is."""
    from pycxxfilt import demangle as itanium

    def read(text: str) -> str:
        try:
            return str(itanium(text) or text)
        except ValueError:
            return text

    shown = read(name)
    return with_conversion(name, read) if shown == name and CONVERSION in name else shown


def with_conversion(name: str, read: Callable[[str], str]) -> str:
    """Demangles a conversion operator, as of a class to std::string. LLVM refuses those to types whose arguments have
    arguments themselves, but reads the same type as that of a parameter, with the operator's class in front, to which
    substitutions refer. read: demangles, and returns what it cannot read as it is."""
    for before, of_type, behind in islice(_conversions(name), MOST_TRIES):
        operator = read(f"{before}{CONVERSION}{STAND_IN}{behind}")
        if f"operator {STANDS_IN}" in operator:
            # A function of that class, with that parameter.
            converted = re.search(rf"{STANDS_IN}\((.*)\)", read(f"{before}{STAND_IN}E{of_type}"))
            if converted is not None:
                return operator.replace(STANDS_IN, converted[1])
    return name


def _conversions(name: str) -> Iterator[tuple[str, str, str]]:
    """Yields (what is before the operator; its type, the longest first; what is behind): the type ends where the
    operator does, or the operator's own template arguments begin."""
    for operator in re.finditer(CONVERSION, name):
        ends = [found.start() for found in re.finditer("[EI]", name) if found.start() > operator.end()]
        for end in reversed(ends):
            if not SUBSTITUTION.search(name, end):
                yield name[: operator.start()], name[operator.end() : end], name[end:]


@cache
def other_demangler() -> Callable[[str], str] | None:
    """Returns the function of the library demangle, which reads more languages and is written in Python: it limits the
    depth and length of what it makes, and answers what it cannot read with the name. None where it is not installed."""
    try:
        library = importlib.import_module("demangle")
    except ImportError:
        return None
    read = getattr(library, "demangle", None)  # another package may have the name
    return read if callable(read) else None


def _demangled_apart(names: Sequence[str]) -> list[str]:
    """Returns the first of these names, as far as the process came; "" is one that is too long. Without the site's
    packages Python starts in a third of the time; the one that is needed is named."""
    import subprocess  # which few names need

    import pycxxfilt

    folder = str(Path(pycxxfilt.__file__).parents[1])
    given = b"".join(name.encode("utf-8", "replace") + b"\0" for name in names)
    seconds = SECONDS + SECONDS_PER_BYTE * len(given)
    command = [sys.executable, "-IS", str(APART), str(MAX_GROWTH), str(round(seconds)), folder]
    try:
        run = subprocess.run(
            command, input=given, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False,
            timeout=CLOCK_SECONDS + CLOCK_FACTOR * seconds,
        )  # fmt: skip
        answer = run.stdout
    except subprocess.TimeoutExpired as error:
        answer = error.stdout or b""
    except OSError:
        return []
    return [text.decode("utf-8", "replace") for text in answer.split(b"\0")[:-1]]


def shown_path(path: str) -> str:
    """Returns a path without "." and "..": providers leave them in, or take them out."""
    return posixpath.normpath(path) if "/." in path else path


def shown_frames(found: Frames, demangle: Demangler) -> list[tuple[str, str, int]]:
    """Returns (name, source, line) of every frame, names demangled; "" and 0 are unknown."""
    linkage_names = {nth: found.texts[nth] for nth in set(found.name.tolist()) if nth >= 0}
    demangle.learn(linkage_names.values())
    names = {nth: demangle(name) for nth, name in linkage_names.items()}
    sources: dict[int, str] = {nth: shown_path(found.texts[nth]) for nth in set(found.source.tolist()) if nth >= 0}
    columns = zip(found.name.tolist(), found.source.tolist(), found.line.tolist(), strict=True)
    return [(names.get(name, ""), sources.get(source, ""), line) for name, source, line in columns]
