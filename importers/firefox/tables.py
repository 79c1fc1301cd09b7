"""Map: the tables of functions, frames and stacks, of all threads or of one, become rows of the trace."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np

from traceferry.common.patterns import compiled_later
from traceferry.importers.firefox._stacks import intern_leaves, intern_stacks, resolve
from traceferry.importers.firefox.categories import IMPLEMENTATIONS, Categories
from traceferry.importers.firefox.columns import BadRows, Columns, with_none
from traceferry.importers.firefox.known_rows import UNKNOWN, FuncNames, RowMemo
from traceferry.importers.firefox.layout import FrameFlag, FuncFlag
from traceferry.importers.firefox.names import Names
from traceferry.model import Array, TraceBuilder
from traceferry.native.distinct import distinct_with_places, edges_of_places
from traceferry.native.values import are_of
from traceferry.timeline.stacks import StackTable

# Until then frames of callers have the addresses to which calls return.
NUDGED_VERSION = 38
SWAPPED_VERSION = 18
# "work (https://a.example/a.js:12)", as functions of scripts are called before version 4.
OLD_SCRIPT = compiled_later(r"(.*) \((.+):([0-9]{1,9})(?::([0-9]{1,9}))?\)", re.DOTALL)
MAX_LINE = (1 << 31) - 1
FIRST_FRAMES = 1 << 10
FRAME_COLUMNS = (
    "func", "category", "tier", "source", "line", "column", "symbol", "lib", "inline_depth", "address",
)  # fmt: skip
FUNC_COLUMNS = ("name", "source", "line", "column", "is_js", "kind")

NO_ROWS = with_none(np.zeros(0, np.int32))

Members = dict[str, Any]


class Addresses:
    """The frames of the trace whose functions are addresses. lib: by frame, the trace's library of one that stays an
    address, else one of the two below; chains: by frame, the frames that are in its place, the outermost first."""

    NAMED, NOT_ASKED = -1, -2

    def __init__(self) -> None:
        self.lib = np.full(FIRST_FRAMES, self.NOT_ASKED, np.int32)
        self.chains: dict[int, list[int]] = {}

    def reserve(self, n_frames: int) -> None:
        if n_frames > len(self.lib):
            more = np.full(max(n_frames, len(self.lib)), self.NOT_ASKED, np.int32)
            self.lib = np.concatenate((self.lib, more))

    def libs_of(self, frames: Array) -> Array:
        """Returns the library of each frame that stays an address, else something negative."""
        is_known = (frames >= 0) & (frames < len(self.lib))
        return np.where(is_known, self.lib[np.where(is_known, frames, 0)], self.NOT_ASKED)


class LibRows:
    """The rows of the trace's libraries for a list of a profile's, which mostly is one for all threads."""

    def __init__(self, trace: TraceBuilder) -> None:
        self._trace = trace
        self._libs: list[Any] | None = None
        self._rows = np.zeros(0, np.int32)

    def of(self, libs: list[Any]) -> Array:
        """Returns int32: the row of each and, behind them, none."""
        if libs is not self._libs:
            self._libs, self._rows = libs, np.array([*(_add_lib(self._trace, lib) for lib in libs), -1], np.int32)
        return self._rows


class Facts(NamedTuple):
    """The facts with which tables are read. version: of the profile; is_gecko: a Gecko one; stacks: those of all its
    threads, which `publish` adds to the trace; frames, funcs: rows of the trace's; names: of addresses;
    known: what they gave; libs: rows of the trace's."""

    trace: TraceBuilder
    version: int
    is_gecko: bool
    categories: Categories
    bad: BadRows
    stacks: StackTable
    frames: RowMemo
    funcs: RowMemo
    names: Names
    known: Addresses
    func_names: FuncNames
    libs: LibRows


# (int64 [n + 1], int32): frames[first[i]:first[i + 1]] are those of the ith chain, the outermost first.
Chains = tuple[Array, Array]


class Stacks(NamedTuple):
    """The stacks of the trace of each stack of a table, int32: as a sample has it, and as the place of a call."""

    sampled: Array
    called: Array
    libs: list[Any]


def texts_of(members: Members) -> list[str]:
    """Returns the strings of a thread or of the shared tables."""
    found = members.get("stringArray")
    if not isinstance(found, list):
        table = members.get("stringTable")
        found = table.get("_array") if isinstance(table, dict) else table
    if not isinstance(found, list):
        return []
    return found if are_of(found, str) else [text if isinstance(text, str) else "" for text in found]


def add_tables(facts: Facts, members: Members, path: str, texts: list[str], libs: list[Any]) -> Stacks:
    """Adds what the stacks of some tables refer to. path: of the members, for the report; libs: of the profile or of
    the thread."""
    return _Tables(facts, members, path, texts, libs).stacks()


class _Tables:
    def __init__(self, facts: Facts, members: Members, path: str, texts: list[str], libs: list[Any]) -> None:
        self._facts, self._trace, self._members, self._path, self._texts = facts, facts.trace, members, path, texts
        self._libs = libs
        self._lib_rows = facts.libs.of(libs)
        self._frames, self._funcs = self._columns("frameTable"), self._columns("funcTable")
        self._locations = self._columns("sourceLocationTable")
        self._symbols = self._columns("nativeSymbols")
        self._source_rows = self._sources()

    def _columns(self, name: str) -> Columns:
        return Columns(self._members.get(name), f"{self._path}.{name}".lstrip("."), self._facts.bad)

    def _string(self, index: int) -> str:
        return self._texts[index] if 0 <= index < len(self._texts) else ""

    # ------------------------------------------------------------ stacks

    def stacks(self) -> Stacks:
        table, frames = self._columns("stackTable"), self._frames
        if not table.n and not frames.n:
            return Stacks(NO_ROWS, NO_ROWS, self._libs)
        own, prefix = table.index("frame", frames.n), self._prefix(table)
        self._needs_unknown = bool((own < 0).any() or (frames.index("func", self._funcs.n) < 0).any())
        category, subcategory = self._categories(table, own)
        lib, address, symbol = self._places()
        flags = frames.ints("flags", 0) if "flags" in frames else None
        depth = frames.ints("inlineDepth", 0) if flags is None else (flags & FrameFlag.INLINED)
        place = np.ascontiguousarray(np.stack((lib, address), axis=1))
        # Both of a frame's are one number here, so that they are inherited together.
        width = int(subcategory.max(initial=-1)) + 2
        both = np.where(category < 0, -1, category * width + subcategory + 1)
        default = self._facts.categories.default * width
        found, depths, n_prefixes, n_inlined = resolve(prefix, own, both, depth, place, flags is not None, default)
        table.bad("prefix", n_prefixes)
        frames.bad("inlineDepth", n_inlined)
        group, caller, leaf = self._chains(own, found // width, found % width - 1, depths, (lib, address, symbol))
        stack_table = self._facts.stacks
        called = intern_stacks(stack_table, prefix, group, *caller)
        sampled = called
        if leaf is not caller:
            above = with_none(called)[prefix]
            sampled = intern_leaves(stack_table, above, group, *leaf)
        return Stacks(with_none(sampled), with_none(called), self._libs)

    def _prefix(self, table: Columns) -> Array:
        if "prefixOffset" not in table:
            return table.ints("prefix").copy()
        offset = table.ints("prefixOffset", 0)
        rows = np.arange(table.n)
        # A negative one leads to a later stack, which `resolve` counts.
        return np.where(offset == 0, -1, np.where(np.abs(offset) < 1 << 40, rows - offset, table.n))

    def _categories(self, stacks: Columns, own: Array) -> tuple[Array, Array]:
        """Returns (category, subcategory) of each frame, -1 is the caller's; in some profiles only stacks have one."""
        frames, known = self._frames, self._facts.categories
        if not known.are_listed:
            is_js = with_none(self._funcs_are_js(), False)[frames.index("func", self._funcs.n)]
            return np.where(is_js, known.javascript, known.default), np.full(frames.n, -1)
        category = frames.index("category", len(known), frames.flagged(FrameFlag.CATEGORY))
        subcategory = frames.ints("subcategory")
        if "category" not in frames and "category" in stacks:
            of_stack, within = stacks.index("category", len(known)), stacks.ints("subcategory")
            category, subcategory = np.full(frames.n, -1), np.full(frames.n, -1)
            has_frame = own >= 0
            category[own[has_frame]], subcategory[own[has_frame]] = of_stack[has_frame], within[has_frame]
        return category, np.clip(subcategory, -1, 1 << 16)

    # ------------------------------------------------------------ frames

    def _places(self) -> tuple[Array, Array, Array]:
        """Returns (library, address, native symbol) of each frame, -1 is none."""
        frames, funcs, n_libs = self._frames, self._funcs, len(self._libs)
        has_address = frames.flagged(FrameFlag.ADDRESS)
        lib = frames.index("lib", n_libs, has_address) if "lib" in frames else self._libs_of_resources()
        address = frames.ints("address") if has_address is None else np.where(has_address, frames.ints("address"), -1)
        if "address" not in frames and "address" in funcs:
            address = with_none(funcs.ints("address"))[frames.index("func", funcs.n)]
        symbol = frames.index("nativeSymbol", self._symbols.n, frames.flagged(FrameFlag.SYMBOL))
        is_placed = (lib >= 0) & (address >= 0)
        return np.where(is_placed, lib, -1), np.where(is_placed, address, -1), symbol

    def _libs_of_resources(self) -> Array:
        # In old profiles its columns are as long as they have to be.
        resources = Columns(self._members.get("resourceTable"), "", BadRows())
        of_func = self._funcs.index("resource", resources.n, self._funcs.flagged(FuncFlag.RESOURCE))
        lib = with_none(resources.index("lib", len(self._libs)))
        return with_none(lib[of_func])[self._frames.index("func", self._funcs.n)]

    def _chains(
        self, own: Array, category: Array, subcategory: Array, depth: Array, place: tuple[Array, Array, Array]
    ) -> tuple[Array, Chains, Chains]:
        """Returns (the number of each stack's chain; the chains of frames of the trace, as a caller, and as what a
        sample shows)."""
        if not len(own):
            nothing = np.zeros(1, np.int64), np.zeros(0, np.int32)
            return np.zeros(0, np.int32), nothing, nothing
        width = int(subcategory.max(initial=-1)) + 2
        keys = ((own + 1) * (len(self._facts.categories) + 1) + category) * width + subcategory + 1
        keys = keys * (int(depth.max(initial=0)) + 1) + depth
        first, group = _groups(keys)
        frame = own[first]
        lib, address, symbol = (with_none(column)[frame] for column in place)
        category_row, tier = self._facts.categories.rows(category[first], subcategory[first])
        source, line, column = (with_none(values, none)[frame] for values, none in self._lines())
        columns: dict[str, Array] = {
            "func": self._func_rows(place)[frame],
            "category": category_row,
            "tier": np.where(tier >= 0, tier, self._tiers()[frame]),
            "source": source, "line": line, "column": column,
            "symbol": self._symbol_rows()[symbol],
            "lib": self._lib_rows[lib],
            "inline_depth": depth[first],
        }  # fmt: skip
        is_nameless = with_none(self._is_address, False)[self._frames.index("func", self._funcs.n)]
        is_nameless = with_none(is_nameless, False)[frame] & (lib >= 0) & (depth[first] == 0)
        if not self._facts.is_gecko and self._facts.version >= NUDGED_VERSION:
            leaf = self._named(columns | {"address": address}, lib, is_nameless)
            return group, leaf, leaf
        nudged = np.where(address > 0, address - 1, address)
        # What is inlined is at the address of what it is inlined into, which is below it as a caller.
        exact = np.where(depth[first] > 0, nudged, address)
        caller, leaf = (self._named(columns | {"address": one}, lib, is_nameless) for one in (nudged, exact))
        return group, caller, leaf

    def _named(self, columns: dict[str, Array], lib: Array, is_nameless: Array) -> Chains:
        """Returns the chains of rows of `frames`. Those without a name get the frames that the address has."""
        trace, names = self._trace, self._facts.names
        rows = self._facts.frames.rows(len(lib), dict(columns))
        if not is_nameless.any():
            return np.arange(len(rows) + 1), rows
        known = self._facts.known
        known.reserve(len(trace.frames))
        asked = np.flatnonzero(is_nameless)
        asked = asked[known.lib[rows[asked]] == known.NOT_ASKED]
        places = list(zip(lib[asked].tolist(), columns["address"][asked].tolist(), strict=True))
        answers = names.of(self._libs, self._lib_rows.tolist(), places) if places else []
        known.lib[rows[asked]] = columns["lib"][asked]
        for nth, (frames, start) in zip(asked.tolist(), answers, strict=True):
            row = int(rows[nth])
            if frames and row not in known.chains:
                one = {name: int(values[nth]) for name, values in columns.items()}
                known.chains[row] = add_frames(trace, frames, start, one)
                known.lib[row] = known.NAMED
        if not (known.lib[rows[is_nameless]] == known.NAMED).any():
            return np.arange(len(rows) + 1), rows
        is_own = ~is_nameless
        chains = [
            [row] if own else known.chains.get(row, [row]) for row, own in zip(rows.tolist(), is_own, strict=True)
        ]
        first = np.concatenate(([0], np.cumsum([len(chain) for chain in chains]))).astype(np.int64)
        return first, np.array([row for chain in chains for row in chain], np.int32)

    def _tiers(self) -> Array:
        """Returns the tier of each frame and, behind them, none: until version 53 a column of its own says it."""
        frames, known = self._frames, self._facts.categories
        if "implementation" not in frames or (not self._facts.is_gecko and self._facts.version >= 54):
            return np.full(frames.n + 1, -1, np.int32)
        names = [self._string(i) for i in frames.index("implementation", len(self._texts)).tolist()]
        return np.array(
            [*(known.tier(IMPLEMENTATIONS[name]) if name in IMPLEMENTATIONS else -1 for name in names), -1], np.int32
        )

    def _lines(self) -> list[tuple[Array, int]]:
        """Returns source, where it is not the function's, line and column of each frame, each with what is none."""
        frames = self._frames
        line, column = _place(frames, "line", "column", FrameFlag.LINE, FrameFlag.COLUMN)
        source = np.full(frames.n, -1)
        location = self._originals(frames, FrameFlag.LOCATION)
        if location is not None:
            has = location >= 0
            at = location[has]
            of_location, *place = self._location_columns()
            own = with_none(self._func_sources())[frames.index("func", self._funcs.n)[has]]
            source[has] = np.where(of_location[at] == own, -1, of_location[at])
            line[has], column[has] = (values[at] for values in place)
        return [(source, -1), (line, 0), (column, 0)]

    def _originals(self, table: Columns, flag: int) -> Array | None:
        """Returns the location of each row, -1 is none; None: none has one. flag: what says that there is one."""
        if "originalLocation" not in table:
            return None
        found = table.index("originalLocation", self._locations.n, table.flagged(flag))
        return found if found.max(initial=-1) >= 0 else None

    def _location_columns(self) -> tuple[Array, Array, Array]:
        table = self._locations
        source = self._source_rows[table.index("source", len(self._source_rows) - 1)]
        line, column = (np.clip(table.ints(name, 0), 0, MAX_LINE) for name in ("line", "column"))
        return source, line, column

    # ------------------------------------------------------------ functions

    def _funcs_are_js(self) -> Array:
        flagged = self._funcs.flagged(FuncFlag.IS_JS)
        return self._funcs.bools("isJS") if flagged is None else flagged

    def _func_sources(self) -> Array:
        """Returns the row of `sources` of each function."""
        funcs = self._funcs
        if "source" in funcs:
            return self._source_rows[funcs.index("source", len(self._source_rows) - 1, funcs.flagged(FuncFlag.SOURCE))]
        files = funcs.index("fileName", len(self._texts))
        if files.max(initial=-1) < 0:
            return np.full(funcs.n, -1, np.int32)
        first, group = _groups(files)
        rows = np.empty(len(first), np.int32)
        for nth in np.argsort(first).tolist():
            rows[nth] = self._add_source(self._string(int(files[first[nth]])))
        return rows[group]

    def _func_rows(self, place: tuple[Array, Array, Array]) -> Array:
        """Returns the trace's function of each frame and, behind them, an unknown one."""
        trace, funcs, intern = self._trace, self._funcs, self._trace.strings.intern
        number = funcs.index("name", len(self._texts))
        line, column = _place(funcs, "lineNumber", "columnNumber", FuncFlag.LINE, FuncFlag.COLUMN)
        source, is_js = self._func_sources(), self._funcs_are_js()
        location = self._originals(funcs, FuncFlag.LOCATION)
        if self._facts.version < SWAPPED_VERSION and not self._facts.is_gecko:
            line, column = np.where(column > 0, column, line), np.where(column > 0, line, column)
        if location is not None:
            has = location >= 0
            of_location = self._location_columns()
            source = source.copy()
            source[has], line[has], column[has] = (values[location[has]] for values in of_location)
        texts = [*self._texts, ""]
        names = list(map(texts.__getitem__, number.tolist()))
        is_old = self._facts.version < 4 and not self._facts.is_gecko
        if is_old:
            names = self._old_scripts(names, is_js, source, line, column)
        name_rows, self._is_address = self._named_funcs(names, place)
        used = self._frames.index("func", funcs.n)
        rows = self._facts.funcs.rows(funcs.n, {
            "name": name_rows, "source": source, "line": line, "column": column, "is_js": is_js,
            "kind": intern("function"),
        })  # fmt: skip
        unknown = -1
        if self._needs_unknown:
            unknown = trace.funcs.intern(name=intern(UNKNOWN), kind=intern("function"))
        return with_none(with_none(rows, unknown)[used], unknown)

    def _old_scripts(self, names: list[str], is_js: Array, source: Array, line: Array, column: Array) -> list[str]:
        """Returns the names without the places that follow them."""
        found = list(names)
        for nth in np.flatnonzero(is_js & (source < 0)).tolist():
            if place := OLD_SCRIPT.fullmatch(names[nth]):
                found[nth], source[nth] = place[1], self._add_source(place[2])
                line[nth], column[nth] = int(place[3]), int(place[4] or 0)
        return found

    def _named_funcs(self, names: list[str], place: tuple[Array, Array, Array]) -> tuple[Array, Array]:
        """Returns the trace's string of each function, and which are only addresses."""
        lib, address, symbol = place
        func = self._frames.index("func", self._funcs.n)
        placed = np.flatnonzero((lib >= 0) & (func >= 0))[::-1]
        first = np.full(self._funcs.n, -1)
        first[func[placed]] = placed
        own = self._funcs.ints("address") if "address" in self._funcs else np.full(self._funcs.n, -1)
        of_symbol = with_none(self._symbols.ints("address", 0))[with_none(symbol)[first]]
        begin = np.where(own >= 0, own, np.where(of_symbol >= 0, of_symbol, with_none(address)[first]))
        libs = np.where(first >= 0, self._lib_rows[with_none(lib)[first]], -1)
        return self._facts.func_names.rows(names, libs, begin)

    # ------------------------------------------------------------ sources, libraries, symbols

    def _sources(self) -> Array:
        """Returns the trace's source of each row of the profile's and, behind them, none."""
        table = self._columns("sources")
        if not table.n:
            return NO_ROWS
        names, contents = table.index("filename", len(self._texts)).tolist(), table.values("content")
        rows = [
            self._add_source(self._string(name), content if isinstance(content, str) else None)
            for name, content in zip(names, contents, strict=True)
        ]
        return np.array([*rows, -1], np.int32)

    def _add_source(self, path: str, text: str | None = None) -> int:
        if not path and text is None:
            return -1
        trace = self._trace
        return trace.sources.intern(
            path=trace.strings.intern(path), text=-1 if text is None else trace.texts.intern(text)
        )

    def _symbol_rows(self) -> Array:
        table, intern = self._symbols, self._trace.strings.intern
        if not table.n:
            return NO_ROWS
        lib, address = table.index("libIndex", len(self._libs)), table.ints("address")
        names = [intern(self._string(i)) for i in table.index("name", len(self._texts)).tolist()]
        rows = self._trace.symbols.intern_all(
            table.n, lib=self._lib_rows[lib].tolist(), name=names, address=np.maximum(address, 0).tolist(),
            size=np.maximum(table.ints("functionSize", 0), 0).tolist(),
        )  # fmt: skip
        return np.array([*rows, -1], np.int32)


def _groups(keys: Array) -> tuple[Array, Array]:
    """Returns (int64: the first row of each key, in their order; int32: the number of each row's key)."""
    values, group = distinct_with_places(keys)
    first, _ = edges_of_places(group, len(values))
    return first, group


def add_frames(trace: TraceBuilder, frames: list[tuple[str, str, int]], start: int, like: dict[str, int]) -> list[int]:
    """Returns the frames of an address, the outermost first: (name, source, line) of each; start: of the outermost
    function; like: columns of the frame without a name."""
    intern = trace.strings.intern
    symbol = trace.symbols.intern(lib=like["lib"], name=intern(frames[0][0]), address=max(start, 0))
    rows: list[int] = []
    for depth, (name, source, line) in enumerate(frames):
        func = trace.funcs.intern(
            name=intern(name), source=trace.sources.intern(path=intern(source)) if source else -1,
            kind=intern("function"),
        )  # fmt: skip
        own = {"func": func, "source": -1, "line": line, "column": 0, "symbol": symbol, "inline_depth": depth}
        rows.append(trace.frames.intern(**(like | own)))
    return rows


def _place(table: Columns, line: str, column: str, has_line: int, has_column: int) -> tuple[Array, Array]:
    """Returns line and column of each row, 0 is unknown. has_line, has_column: the flags that say that there is one."""
    found = []
    for name, flag in ((line, has_line), (column, has_column)):
        values, used = np.clip(table.ints(name, 0), 0, MAX_LINE), table.flagged(flag)
        found.append(values if used is None else np.where(used, values, 0))
    return found[0], found[1]


def _add_lib(trace: TraceBuilder, lib: Any) -> int:
    held = lib if isinstance(lib, dict) else {}

    def text(*names: str) -> str:
        return next((held[name] for name in names if isinstance(held.get(name), str)), "")

    intern = trace.strings.intern
    name = text("debugName", "name", "pdbName").replace("\\", "/").rpartition("/")[2]
    code_id = text("codeId")
    return trace.libs.intern(
        name=intern(text("name").replace("\\", "/").rpartition("/")[2] or name or "[unknown library]"),
        debug_id=intern(text("breakpadId")),
        code_id=intern(code_id) if code_id else -1,
        arch=intern(text("arch")) if text("arch") else -1,
    )
