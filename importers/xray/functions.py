"""Function ids of a log become frames: names, lines, libraries, and categories that colour a chart."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from traceferry.common.errors import FormatError
from traceferry.common.patterns import compiled_later
from traceferry.common.shown_text import encodable
from traceferry.importers.xray.layout import OBJECT_SHIFT
from traceferry.model import Array, TraceBuilder
from traceferry.symbolication.demangle import Demangler, shown_path

if TYPE_CHECKING:
    from traceferry.symbolication.binary import Binary
    from traceferry.symbolication.interface import Symbols

CPP_NAMES = ("std::", "__gnu_cxx::")
CPP_LIBRARY = ("/c++/", "/libcxx/", "/libstdc++")
# Headers and code of what is installed. A program may be built there, too: images of containers have /usr/src/app.
SYSTEM = compiled_later(
    r"/usr/(?:local/)?(?:include|lib\d*|share)/|/opt/(?:.+/)?include/|/nix/store/[^/]+/(?:include|lib|share)/|/lib\d*/"
    r"|/usr/src/(?:debug|linux[^/]*)/|.*/lib/gcc/.*/include/"
)
OWN_COLORS = ("blue", "green", "purple", "yellow", "magenta", "red", "lightred", "brown")
LIBRARY_COLORS = ("orange", "brown", "magenta", "red", "purple", "green")
MAX_FOLDERS = 100
# A function's first bytes can have line 0: sleds do, up to 32 bytes of them, and often the prologue too.
LINE_STEP = 8
LINE_REACH = 256


class Object(NamedTuple):
    """One instrumented binary; its number is the upper part of its functions' ids. symbols: what names its functions,
    itself or another file of its build."""

    number: int
    binary: Binary
    symbols: Symbols
    addresses: list[int]


class Function(NamedTuple):
    """address and object are None where no binary tells. name: demangled, "" where the symbols have none; source: the
    defining file as the symbols name it, "" is unknown; line: 0 is unknown."""

    id: int
    object: Object | None
    address: int | None
    name: str = ""
    source: str = ""
    line: int = 0


def refuse_unused(others: Sequence[Symbols], programs: Sequence[Binary], used: Sequence[Symbols]) -> None:
    """Raises FormatError for files of symbols that name the functions of no program."""
    from traceferry.symbolication.choose import refused_build

    known = {id(one) for one in used}
    unused = [one for one in others if id(one) not in known]
    if not unused:
        return
    if programs:
        raise refused_build(unused[0], programs[0].build_id, programs[0].name)
    message = "as symbols: it has no xray_instr_map, by which functions are numbered; give the program, too"
    raise FormatError(message, path=unused[0].path)


def numbered(programs: Sequence[Binary]) -> list[int]:
    """Returns the numbers of binaries: the executable is object 0; shared objects are 1, 2... in the order given, which
    must be that of their loading. Raises FormatError for a second executable."""
    executables = [one for one in programs if one.is_executable]
    if len(executables) > 1:
        message = (
            f"as symbols: a second executable after {executables[0].path}; of logs of several programs, give --symbols "
            "the folder that holds these: each log takes the one that it is named after"
        )
        raise FormatError(message, path=executables[1].path)
    # A log with one binary has no object numbers, whatever kind of file the binary is.
    following = count(1)
    return [0 if one.is_executable else next(following) for one in programs]


def resolve(ids: Sequence[int], objects: Sequence[Object], demangle: Demangler) -> list[Function]:
    """Returns each id with its name, as far as the objects know it.

    Raises FormatError for an id beyond its object's map: such a binary is not the one that was recorded.
    """
    functions = _placed(ids, objects)
    for one in objects:
        rows = [row for row, function in enumerate(functions) if function.object is one]
        addresses = np.array([functions[row].address for row in rows], np.uint64)
        moved = addresses - np.uint64(one.binary.base) + np.uint64(one.symbols.base)
        names = _definitions(one.symbols, moved, demangle)
        for row, (name, source, line) in zip(rows, names, strict=True):
            functions[row] = functions[row]._replace(name=name, source=source, line=line)
    return functions


def has_main(program: Object, demangle: Demangler) -> bool:
    """Whether the program's own main is instrumented."""
    functions = resolve(range(1, len(program.addresses) + 1), [program], demangle)
    return any(function.name == "main" for function in functions)


def misfit(ids: Sequence[int], objects: Sequence[Object]) -> str:
    """Returns why these are not the binaries that were recorded, or ""."""
    try:
        _placed(ids, objects)
    except FormatError as error:
        return error.message.removeprefix("as symbols: ")
    return ""


def _placed(ids: Sequence[int], objects: Sequence[Object]) -> list[Function]:
    """Raises FormatError for an id beyond its object's map."""
    by_number = {o.number: o for o in objects}
    with_objects = any(i >> OBJECT_SHIFT for i in ids) and not _is_one_large_map(by_number, ids)
    return [_place(i, by_number, with_objects) for i in ids]


def _is_one_large_map(by_number: dict[int, Object], ids: Sequence[int]) -> bool:
    return 0 in by_number and len(by_number[0].addresses) >= max(ids, default=0)


def _place(function_id: int, by_number: dict[int, Object], with_objects: bool) -> Function:
    number, local = divmod(function_id, 1 << OBJECT_SHIFT) if with_objects else (0, function_id)
    found = by_number.get(number)
    if found is None and not with_objects and len(by_number) == 1:
        found = next(iter(by_number.values()))
    if found is None:
        return Function(function_id, None, None)
    if not 1 <= local <= len(found.addresses):
        raise FormatError(
            f"as symbols: the recording has function {local}, this binary's map ends at {len(found.addresses)}: "
            "it is not the program that was recorded",
            path=found.binary.path,
        )
    return Function(function_id, found, found.addresses[local - 1])


# ---------------------------------------------------------------- names and lines


def _definitions(symbols: Symbols, addresses: Array, demangle: Demangler) -> list[tuple[str, str, int]]:
    """Returns (name, source, line) of the functions that start at these addresses; their lines are the first that are
    not 0."""
    names, sources, lines = _outermost(symbols, addresses)
    missing = np.flatnonzero((names != "") & (lines == 0))
    lines[missing] = _first_lines(symbols, addresses[missing], names[missing])
    demangle.learn(names.tolist())
    columns = zip(names.tolist(), sources.tolist(), lines.tolist(), strict=True)
    return [(demangle(name), shown_path(source), line) for name, source, line in columns]


def _outermost(symbols: Symbols, addresses: Array) -> tuple[Array, Array, Array]:
    """Returns (linkage name, source, line) of the functions themselves, around whatever is inlined there; "" and 0 are
    none."""
    found = symbols.lookup(addresses)
    texts = np.array([*found.texts, ""], object)
    names, sources = np.full((2, len(addresses)), "", object)
    lines = np.zeros(len(addresses), np.int64)
    known = np.flatnonzero(np.diff(found.first))
    outermost = found.first[1:][known] - 1
    names[known], sources[known] = texts[found.name[outermost]], texts[found.source[outermost]]
    lines[known] = found.line[outermost]
    return names, sources, lines


def _first_lines(symbols: Symbols, addresses: Array, names: Array) -> Array:
    """Returns the first line within LINE_REACH that is not 0, of the functions of these names; 0 if there is none.
    Looks every eighth byte up, one of each function, then two, four... at once, and bisects the eight before the first
    that has a line. A line of fewer bytes than eight, with line 0 behind it, may be passed over."""
    lines, reached = np.zeros((2, len(addresses)), np.int64)
    pending = np.arange(len(addresses))
    steps, at_once = np.arange(LINE_STEP, LINE_REACH, LINE_STEP), 1
    while len(pending) and len(steps):
        tried, steps, at_once = steps[:at_once], steps[at_once:], 2 * at_once
        found, _, line = _outermost(symbols, (addresses[pending, None] + tried.astype(np.uint64)).ravel())
        line = line.reshape(len(pending), len(tried))
        is_end = (found.reshape(line.shape) != names[pending, None]) | (line > 0)
        nth = is_end.argmax(axis=1)
        end = np.arange(len(pending)), nth
        lined = np.flatnonzero(is_end[end] & (found.reshape(line.shape)[end] == names[pending]))
        lines[pending[lined]], reached[pending[lined]] = line[end][lined], tried[nth[lined]]
        pending = pending[~is_end[end]]
    lined = np.flatnonzero(lines)
    half = LINE_STEP // 2
    while half:
        before = reached[lined] - half
        found, _, line = _outermost(symbols, addresses[lined] + before.astype(np.uint64))
        usable = (line > 0) & (found == names[lined])
        lines[lined[usable]], reached[lined[usable]] = line[usable], before[usable]
        half //= 2
    return lines


# ---------------------------------------------------------------- into the model


def keep_objects(trace: TraceBuilder, of_files: Sequence[Object]) -> None:
    """Reports what the binaries gave, and keeps them for those who look up code."""
    objects = list({(one.number, one.binary.path): one for one in of_files}.values())
    for one in objects:
        trace.attributes[f"object_{one.number}"] = encodable(f"{one.binary.name} {one.binary.build_id}".strip())
    if objects:
        from traceferry.symbolication.choose import note_use
        from traceferry.symbolication.libraries import LibraryFile, LibraryFiles

        for one in objects:
            note_use(trace.report, one.binary.name, one.symbols, one.binary)
        of_debug_id = {one.binary.debug_id: LibraryFile(one.symbols, one.binary) for one in objects}
        debug_ids = [trace.strings[index] for index in trace.libs["debug_id"].tolist()]
        files = {lib: of_debug_id[debug_id] for lib, debug_id in enumerate(debug_ids) if debug_id in of_debug_id}
        trace.library_readers.append(LibraryFiles(files))


def intern_frames(trace: TraceBuilder, functions: Sequence[Function]) -> list[int]:
    """Returns a frame for each function, in the same order."""
    strings = trace.strings
    categories = _categories(trace, functions)
    frames: list[int] = []
    for function, category in zip(functions, categories, strict=True):
        source = trace.sources.intern(path=strings.intern(function.source)) if function.source else -1
        name = strings.intern(function.name or _number_name(function.id))
        number = -1 if function.name else function.id
        func = trace.funcs.intern(name=name, source=source, line=function.line, number=number)
        lib, address, native = -1, -1, -1
        if function.object is not None and function.address is not None:
            binary = function.object.binary
            relative = function.address - binary.base
            address = relative if 0 <= relative < 1 << 63 else -1
            lib = trace.libs.intern(
                name=strings.intern(binary.name),
                debug_id=strings.intern(binary.debug_id),
                code_id=strings.intern(binary.build_id),
                arch=strings.intern(binary.arch),
            )
            if address >= 0:
                native = trace.symbols.intern(lib=lib, name=name, address=address)
        placed = {"lib": lib, "address": address, "symbol": native}
        frames.append(trace.frames.intern(func=func, category=category, line=function.line, **placed))
    return frames


def _number_name(function_id: int) -> str:
    number, local = divmod(function_id, 1 << OBJECT_SHIFT)
    return f"function {local} of object {number}" if number else f"function {local}"


def _categories(trace: TraceBuilder, functions: Sequence[Function]) -> list[int]:
    """Returns one category for each shared object; in the executable one for each folder of the program, one for the
    C++ library, one for the rest. The folders take colours in the order of their names."""
    names = [_category_name(function) for function in functions]
    folders = sorted({name for kind, name in names if kind == "folder"})
    libraries = sorted({name for kind, name in names if kind == "library"})
    colors = {("folder", name): OWN_COLORS[i % len(OWN_COLORS)] for i, name in enumerate(folders)}
    colors |= {("library", name): LIBRARY_COLORS[i % len(LIBRARY_COLORS)] for i, name in enumerate(libraries)}
    colors |= {("cpp", "C++ library"): "lightblue", ("rest", "Other"): "grey"}
    dropped = {("folder", name) for name in folders[MAX_FOLDERS:]}
    dropped |= {("library", name) for name in libraries[MAX_FOLDERS:]}
    return [
        trace.add_category(name[1], colors[name])
        for name in (("rest", "Other") if name in dropped else name for name in names)
    ]


def _category_name(function: Function) -> tuple[str, str]:
    if function.object is not None and function.object.number > 0:
        return "library", function.object.binary.name
    path = function.source
    if not path:
        return "rest", "Other"
    if any(part in path for part in CPP_LIBRARY) or function.name.startswith(CPP_NAMES):
        return "cpp", "C++ library"
    if SYSTEM.match(path):
        return "rest", "Other"
    folders = path.replace("\\", "/").split("/")[:-1]
    return "folder", "/".join(folders[-2:]) or "."
