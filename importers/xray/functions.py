"""Function ids of a log become frames: names, lines, libraries, and categories that colour a chart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from converter.errors import FormatError
from converter.model import Trace
from importers.xray.instr_map import function_addresses
from importers.xray.layout import OBJECT_SHIFT

if TYPE_CHECKING:
    from converter.symbols import Binary, Symbol

CPP_LIBRARY = ("/c++/", "/libcxx/", "/libstdc++")
SYSTEM = ("/usr/", "/opt/", "/lib/", "/nix/store/")
OWN_COLORS = ("blue", "green", "purple", "yellow", "magenta", "red", "lightred", "brown")
LIBRARY_COLORS = ("orange", "brown", "magenta", "red", "purple", "green")
MAX_FOLDERS = 100


@dataclass(frozen=True)
class Object:
    """One instrumented binary; its number is the upper part of its functions' ids."""

    number: int
    binary: Binary
    addresses: list[int]


@dataclass(frozen=True)
class Function:
    """address and object are None where no binary tells."""

    id: int
    object: Object | None
    address: int | None
    symbol: Symbol | None


def number_objects(binaries: Sequence[Binary]) -> list[Object]:
    """The executable is object 0; shared objects are 1, 2... in the order given, which must be that of their loading.
    Raises FormatError for a binary without an instrumentation map, and for a second executable."""
    executables = [b for b in binaries if b.is_executable]
    if len(executables) > 1:
        error = FormatError(f"as symbols: a second executable besides {executables[0].path}")
        error.path = executables[1].path
        raise error
    shared = [b for b in binaries if not b.is_executable]
    # A log with one binary has no object numbers, whatever kind of file the binary is.
    numbered = list(enumerate(shared, start=1))
    if executables:
        numbered.insert(0, (0, executables[0]))
    return [Object(number, binary, function_addresses(binary)) for number, binary in numbered]


def resolve(ids: Sequence[int], objects: Sequence[Object]) -> list[Function]:
    """Each id with its name, as far as the objects know it.

    Raises FormatError for an id beyond its object's map: such a binary is not the one that was recorded.
    """
    by_number = {o.number: o for o in objects}
    with_objects = any(i >> OBJECT_SHIFT for i in ids) and not _is_one_large_map(by_number, ids)
    return [_resolve_one(i, by_number, with_objects) for i in ids]


def _is_one_large_map(by_number: dict[int, Object], ids: Sequence[int]) -> bool:
    return 0 in by_number and len(by_number[0].addresses) >= max(ids, default=0)


def _resolve_one(function_id: int, by_number: dict[int, Object], with_objects: bool) -> Function:
    number, local = divmod(function_id, 1 << OBJECT_SHIFT) if with_objects else (0, function_id)
    found = by_number.get(number)
    if found is None and not with_objects and len(by_number) == 1:
        found = next(iter(by_number.values()))
    if found is None:
        return Function(function_id, None, None, None)
    if not 1 <= local <= len(found.addresses):
        error = FormatError(
            f"as symbols: the recording has function {local}, this binary's map ends at {len(found.addresses)}: "
            "it is not the program that was recorded"
        )
        error.path = found.binary.path
        raise error
    address = found.addresses[local - 1]
    return Function(function_id, found, address, found.binary.lookup(address))


# ---------------------------------------------------------------- into the model


def intern_frames(trace: Trace, functions: Sequence[Function]) -> list[int]:
    """A frame for each function, in the same order."""
    strings = trace.strings
    categories = _categories(trace, functions)
    frames: list[int] = []
    for function, category in zip(functions, categories, strict=True):
        symbol = function.symbol
        source = trace.sources.intern(path=strings.intern(symbol.source)) if symbol and symbol.source else -1
        name = strings.intern(symbol.name if symbol else _number_name(function.id))
        func = trace.funcs.intern(
            name=name,
            source=source,
            line=symbol.line if symbol else 0,
            number=-1 if symbol else function.id,
        )
        lib, address, native = -1, -1, -1
        if function.object is not None and function.address is not None:
            binary = function.object.binary
            relative = function.address - binary.base
            address = relative if 0 <= relative < 1 << 63 else -1
            lib = trace.libs.intern(
                name=strings.intern(binary.name),
                debug_id=strings.intern(binary.debug_id),
                code_id=strings.intern(binary.code_id),
                arch=strings.intern(binary.arch),
            )
            if address >= 0:
                native = trace.symbols.intern(lib=lib, name=name, address=address)
        frames.append(
            trace.frames.intern(
                func=func,
                category=category,
                line=symbol.line if symbol else 0,
                lib=lib,
                address=address,
                symbol=native,
            )
        )
    return frames


def _number_name(function_id: int) -> str:
    number, local = divmod(function_id, 1 << OBJECT_SHIFT)
    return f"function {local} of object {number}" if number else f"function {local}"


def _categories(trace: Trace, functions: Sequence[Function]) -> list[int]:
    """One category for each shared object; in the executable one for each folder of the program, one for the C++
    library, one for the rest. The folders take colours in the order of their names."""
    names = [_category_name(function) for function in functions]
    folders = sorted({name for kind, name in names if kind == "folder"})
    libraries = sorted({name for kind, name in names if kind == "library"})
    colors = {("folder", name): OWN_COLORS[i % len(OWN_COLORS)] for i, name in enumerate(folders)}
    colors |= {("library", name): LIBRARY_COLORS[i % len(LIBRARY_COLORS)] for i, name in enumerate(libraries)}
    colors |= {("cpp", "C++ library"): "lightblue", ("rest", "Other"): "grey"}
    dropped = {("folder", name) for name in folders[MAX_FOLDERS:]}
    dropped |= {("library", name) for name in libraries[MAX_FOLDERS:]}
    return [
        trace.categories.intern(name=trace.strings.intern(name[1]), color=trace.strings.intern(colors[name]))
        for name in (("rest", "Other") if name in dropped else name for name in names)
    ]


def _category_name(function: Function) -> tuple[str, str]:
    if function.object is not None and function.object.number > 0:
        return "library", function.object.binary.name
    path = function.symbol.source if function.symbol else ""
    if not path:
        return "rest", "Other"
    if function.symbol and (any(part in path for part in CPP_LIBRARY) or _is_std(function.symbol.name)):
        return "cpp", "C++ library"
    if path.startswith(SYSTEM):
        return "rest", "Other"
    folders = path.replace("\\", "/").split("/")[:-1]
    return "folder", "/".join(folders[-2:]) or "."


def _is_std(name: str) -> bool:
    return name.startswith(("std::", "__gnu_cxx::"))
