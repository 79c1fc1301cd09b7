"""Libraries in packs: what names the addresses that a recording has, as GSYM, and the skeleton of the file."""

from __future__ import annotations

import io
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from traceferry.files.answers import Blob, checked
from traceferry.files.source import Source
from traceferry.model import Array, distinct
from traceferry.symbolication.binary import Binary
from traceferry.symbolication.elf import named_functions
from traceferry.symbolication.function_table import FunctionTable, groups_of, joined, table_of
from traceferry.symbolication.gsym import writer
from traceferry.symbolication.gsym.reader import Gsym
from traceferry.symbolication.interface import (
    NOTHING,
    Answer,
    Frames,
    Function,
    Inline,
    Lookup,
    Symbols,
    look_up,
    look_up_apart,
    look_up_nothing,
)
from traceferry.unwinding.skeleton import Skeleton, skeleton_of

# What is kept of code, for those who compare it with instructions that they know.
CODE_SIZE = 16


class PackedBinary(Skeleton):
    """A skeleton with some bytes of the code. code_at: these, by address, relative to the lowest that is loaded."""

    def __init__(self, source: Source, debug_id: str, code_at: Mapping[int, bytes]) -> None:
        super().__init__(source)
        self.debug_id = debug_id
        self._code_at = code_at

    def code(self, address: int, size: int) -> bytes:
        return self._code_at.get(address, b"")[:size]


class PackedSymbols:
    """Answers as the symbols did that a library had when the pack was made. exact: the answers, by address, that GSYM
    cannot hold."""

    def __init__(self, value: Any) -> None:
        self.path, self.name, self.build_id, self.gives = (
            checked(value[key], str) for key in ("path", "name", "build_id", "gives")
        )
        self._gsym = Gsym(Source(self.path, checked(value["gsym"], memoryview)))
        self.base = checked(value["base"], int)
        self._problems = [(checked(offset, int), checked(what, str)) for offset, what in value["problems"]]
        self._exact = {int(address, 16): _answer(*answer) for address, answer in value["exact"].items()}
        self._keys = np.array(sorted(self._exact), np.uint64)

    @property
    def problems(self) -> Sequence[tuple[int, str]]:
        return [*self._problems, *self._gsym.problems]

    def lookup(self, addresses: Array) -> Frames:
        addresses = np.asarray(addresses, np.uint64)
        return look_up_apart(addresses, np.isin(addresses, self._keys), self._look_up_exact, self._gsym.lookup)

    def _look_up_exact(self, addresses: Array) -> Frames:
        return look_up(addresses, lambda address: self._exact.get(address, NOTHING))

    def functions(self) -> Any:
        return self._gsym.functions()


def _answer(start: Any, size: Any, frames: Any) -> Answer:
    found = [(checked(name, str), checked(source, str), checked(line, int)) for name, source, line in frames]
    return Answer(checked(start, int), checked(size, int), found)


class AskedSymbols:
    """Symbols that keep what they were asked. asked: addresses, as linked; whole: whether all functions are wanted."""

    def __init__(self, symbols: Symbols, whole: bool) -> None:
        self.symbols = symbols
        self.whole = whole
        self.path, self.name, self.base, self.build_id = symbols.path, symbols.name, symbols.base, symbols.build_id
        self.asked: list[Array] = []

    @property
    def gives(self) -> str:
        return self.symbols.gives

    @property
    def problems(self) -> Sequence[tuple[int, str]]:
        return self.symbols.problems

    def lookup(self, addresses: Array) -> Frames:
        self.asked.append(np.asarray(addresses, np.uint64))
        return self.symbols.lookup(addresses)

    def functions(self) -> Any:
        return self.symbols.functions()


# ---------------------------------------------------------------- writing


class Used(NamedTuple):
    """The use of a file of symbols by a recording. lookup: of addresses as linked; asked: these; whole: whether
    all functions are wanted."""

    symbols: Symbols
    lookup: Lookup
    asked: Sequence[Array]
    whole: bool = False


def packed_symbols(used: Used, big: bool) -> dict[str, Any]:
    """Returns what PackedSymbols takes. big: the byte order."""
    symbols = used.symbols
    addresses = distinct(np.concatenate([np.zeros(0, np.uint64), *used.asked]))
    found = used.lookup(addresses) if len(addresses) else look_up_nothing(addresses)
    answers = dict(zip(addresses.tolist(), _answers(found), strict=True))
    functions = table_of(functions_of(answers))
    if used.whole:
        functions = with_others(functions, named_functions(symbols))
    out = io.BytesIO()
    writer.write_fitting(out, functions, uuid=_uuid(symbols.build_id), base=symbols.base, big=big)
    read = Gsym(Source(symbols.name, memoryview(out.getvalue())))
    differing = {
        f"{address:x}": [one.start, one.size, [list(frame) for frame in one.frames]]
        for (address, one), now in zip(answers.items(), _answers(read.lookup(addresses)), strict=True)
        if one != now
    }
    return {
        "path": symbols.path,
        "name": symbols.name,
        "build_id": symbols.build_id,
        "base": symbols.base,
        "gives": symbols.gives,
        "problems": [[offset, what] for offset, what in symbols.problems],
        "gsym": Blob(f"{symbols.name}.gsym", out.getvalue()),
        "exact": differing,
    }


def _uuid(build_id: str) -> bytes:
    try:
        return bytes.fromhex(build_id)
    except ValueError:
        return b""


def with_others(functions: FunctionTable, others: FunctionTable) -> FunctionTable:
    """Returns the functions, and those of others that are of other bytes."""
    group = groups_of((functions.start, functions.size), (others.start, others.size))
    is_new = ~np.isin(group[len(functions) :], group[: len(functions)])
    return joined([functions.with_texts_of(others), others.taken(is_new)])


def functions_of(answers: Mapping[int, Answer]) -> list[Function]:
    """Returns functions of which only the addresses are described that have answers."""
    groups: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
    for address, one in answers.items():
        if one.frames and one.start and one.start <= address and (not one.size or address < one.start + one.size):
            groups[one.start, one.size].append(address)
    return [_function(start, size, {at: answers[at] for at in ats}) for (start, size), ats in sorted(groups.items())]


def _function(start: int, size: int, answers: Mapping[int, Answer]) -> Function:
    (name, _), *_ = Counter(one.frames[-1][0] for one in answers.values()).most_common(1)
    lines = [(address, *one.frames[0][1:]) for address, one in sorted(answers.items())]
    inlines = [_inlined(address, one) for address, one in sorted(answers.items()) if len(one.frames) > 1]
    has_lines = any(source or line for _, source, line in lines)
    return Function(name, start, size, lines if has_lines else (), inlines)


def _inlined(address: int, one: Answer) -> Inline:
    """Returns the calls that were inlined at an address: the outermost of them, with the others inside."""
    call: tuple[Inline, ...] = ()
    for (name, _, _), (_, source, line) in zip(one.frames[:-1], one.frames[1:], strict=True):
        call = (Inline(name, ((address, address + 1),), source, line, call),)
    return call[0]


def _answers(found: Frames) -> list[Answer]:
    """Returns each address's answer: the same frames are the same, whatever the order of the texts."""
    texts = [*found.texts, ""]  # index -1
    columns = (found.name.tolist(), found.source.tolist(), found.line.tolist())
    frames = [(texts[name], texts[source], line) for name, source, line in zip(*columns, strict=True)]
    first = found.first.tolist()
    places = zip(first[:-1], first[1:], found.start.tolist(), found.size.tolist(), strict=True)
    return [Answer(start, size, frames[begin:end]) for begin, end, start, size in places]


def packed_binary(
    binary: Binary | None, code_at: Sequence[int] = (), frames: bool = True, used: Array | None = None
) -> dict[str, Any] | None:
    """Returns what `unpacked_binary` takes. code_at: where bytes of the code are wanted; frames: whether call-frame
    information is; used: at which link addresses (uint64), None is everywhere. Raises FormatError if what is wanted
    cannot be read."""
    if binary is None:
        return None
    code = {f"{address:x}": binary.code(address, CODE_SIZE).hex() for address in sorted(code_at)}
    elf = Blob(f"{binary.name}.elf", skeleton_of(binary, frames, used))
    return {"path": binary.path, "debug_id": binary.debug_id, "elf": elf, "code": code}


def unpacked_binary(value: Any) -> PackedBinary | None:
    """Raises FormatError if it is no ELF file."""
    if value is None:
        return None
    code = {int(address, 16): bytes.fromhex(text) for address, text in value["code"].items()}
    source = Source(checked(value["path"], str), checked(value["elf"], memoryview))
    return PackedBinary(source, checked(value["debug_id"], str), code)
