"""Firefox Profiler, processed format: the tables that all threads share."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from traceferry.exporters.firefox.meta import Categories
from traceferry.exporters.json.stream import JsonWriter
from traceferry.model import Array, Table, Trace, index_of
from traceferry.model.categories import OFF_CPU_COLORS
from traceferry.timeline.paths import CallPaths

# Frame addresses go through an Int32Array.
MAX_ADDRESS = 2**31 - 1
LIBRARY = 1  # the type of a resource


class Stacks:
    """shared.stackTable: the trace's stacks, and the call paths. The trace's keep their indices, but for those that
    were added while calls were written. jobs: threads that may work at it."""

    def __init__(self, trace: Trace, jobs: int = 1) -> None:
        self._trace = trace
        self._jobs = jobs
        self._paths: CallPaths | None = None
        # From the trace's stacks to these. Index -1, none, finds the last element.
        self._index = np.full(1, -1, np.int32)

    def of_calls(self, calls: Table, longest: int) -> Iterator[tuple[Array, Array]]:
        """See `CallPaths.samples`."""
        return self._call_paths().samples(calls, longest, self._jobs)

    def of_column(self, stack: Array) -> Array:
        """Returns the indices here of a column of the trace's stacks."""
        if self._paths is None:
            return stack
        self._call_paths()
        return self._index[stack]

    @property
    def prefix(self) -> Array:
        return self._trace.stacks["prefix"] if self._paths is None else self._call_paths().parent

    @property
    def frame(self) -> Array:
        return self._trace.stacks["frame"] if self._paths is None else self._call_paths().key

    def _call_paths(self) -> CallPaths:
        """Returns the paths, with all stacks that the trace has by now: they may be many, and are hashed only for
        calls."""
        if self._paths is None:
            self._paths = CallPaths()
        known = len(self._index) - 1
        if len(self._trace.stacks) > known:
            stacks = self._trace.stacks
            n_new = len(stacks) - known
            first = self._paths.n
            self._index = np.concatenate((self._index[:-1], np.arange(first, first + n_new), [-1])).astype(np.int32)
            self._paths.append(self._index[stacks["prefix"][known:]], stacks["frame"][known:])
        return self._paths


def write_shared(json: JsonWriter, trace: Trace, stacks: Stacks, categories: Categories) -> None:
    frames, funcs = _with_functions_off_cpu(trace, _with_code(trace, trace.frames))
    has_address = _has_address(trace, frames)
    symbols, symbol_of_frame = _used_symbols(trace, frames, has_address)
    with json.object("shared"):
        _write_stacks(json, stacks)
        _write_frames(json, frames, has_address, symbol_of_frame, categories)
        _write_funcs(json, trace, frames, funcs)
        _write_resources(json, trace)
        _write_symbols(json, trace, symbols)
        _write_sources(json, trace)
        # The trace's strings keep their indices; others have followed.
        json.rows("stringArray", trace.strings)


def _write_stacks(json: JsonWriter, stacks: Stacks) -> None:
    prefix = stacks.prefix
    with json.table("stackTable", len(prefix)):
        json.ints("frame", stacks.frame)
        json.ints("prefixOffset", np.where(prefix < 0, 0, np.arange(len(prefix)) - prefix))


def _write_frames(
    json: JsonWriter, frames: Table, has_address: Array, symbol_of_frame: Array, categories: Categories
) -> None:
    n = len(frames)
    category, subcategory = categories.of_frames(frames)
    # A line of the function's own file stands in the frame, one of another file in the table of locations.
    elsewhere = frames["source"] >= 0
    located = np.flatnonzero(elsewhere & (frames["line"] > 0))
    location = np.full(n, -1, np.int32)
    location[located] = np.arange(len(located))
    with json.table("frameTable", n):
        json.longs("address", np.where(has_address, frames["address"], -1))
        json.longs("lib", np.where(has_address, frames["lib"], -1))
        json.ints("inlineDepth", frames["inline_depth"])
        json.ints("category", category)
        json.ints("subcategory", subcategory)
        json.ints("func", frames["func"])
        json.ints("nativeSymbol", symbol_of_frame)
        json.ints("innerWindowID", np.zeros(n, np.int32))
        json.ints("line", np.where(elsewhere, -1, _null_if_zero(frames["line"])))
        json.ints("column", np.where(elsewhere, -1, _null_if_zero(frames["column"])))
        json.ints("originalLocation", location)
    with json.table("sourceLocationTable", len(located)):
        json.ints("source", frames["source"][located])
        json.ints("line", frames["line"][located])
        json.ints("column", _null_if_zero(frames["column"][located]))


def _write_funcs(json: JsonWriter, trace: Trace, frames: Table, funcs: Table) -> None:
    n = len(funcs)
    with json.table("funcTable", n):
        json.ints("name", _texts(trace, funcs["name"]))
        json.bools("isJS", funcs["is_js"])
        json.bools("relevantForJS", np.zeros(n, bool))
        json.longs("resource", lib_of_func(frames, n))
        json.ints("source", funcs["source"])
        json.ints("lineNumber", _null_if_zero(funcs["line"]))
        json.ints("columnNumber", _null_if_zero(funcs["column"]))
        json.ints("originalLocation", np.full(n, -1, np.int32))


def _write_resources(json: JsonWriter, trace: Trace) -> None:
    """Writes a resource for each library, under the same index."""
    n = len(trace.libs)
    with json.table("resourceTable", n):
        json.ints("name", _texts(trace, trace.libs["name"]))
        json.ints("host", np.full(n, -1, np.int32))
        json.ints("type", np.full(n, LIBRARY, np.int32))


def _write_symbols(json: JsonWriter, trace: Trace, symbols: Table) -> None:
    with json.table("nativeSymbols", len(symbols)):
        json.ints("libIndex", symbols["lib"])
        json.longs("address", symbols["address"])
        json.ints("name", _texts(trace, symbols["name"]))
        json.longs("functionSize", symbols["size"], null=0)


def _write_sources(json: JsonWriter, trace: Trace) -> None:
    table = trace.sources
    n = len(table)
    nulls, ones = np.full(n, -1, np.int32), np.ones(n, np.int32)
    with json.table("sources", n):
        json.ints("id", nulls)
        json.ints("filename", _texts(trace, table["path"]))
        json.ints("startLine", ones)
        json.ints("startColumn", ones)
        json.ints("sourceMapURL", nulls)
        # One at a time: they may be large.
        json.rows("content", (trace.texts[text] if text >= 0 else None for text in table["text"].tolist()), at_once=1)


# ---------------------------------------------------------------- columns


def _texts(trace: Trace, column: Array) -> Array:
    """Returns an index column into the trace's strings; the format has no none."""
    return np.where(column < 0, trace.strings.intern(""), column) if np.any(column < 0) else column


def _null_if_zero(values: Array) -> Array:
    return np.where(values == 0, -1, values)


def _with_code(trace: Trace, frames: Table) -> Table:
    """Returns frames with the address of code: compiled functions whose frame has none, as in the tree of code sizes,
    get the start of their first code object of that tier: without an address, the viewer asks neither for their source
    nor for their instructions. Those that others are inlined into stay without: all of them have to be at one
    address."""
    code, stacks = trace.code, trace.stacks
    first: Array
    keys, first = np.unique(code["func"].astype(np.int64) << 32 | code["tier"] + 1, return_index=True)
    inlined = (frames["inline_depth"][stacks["frame"]] > 0) & (stacks["prefix"] >= 0)
    placeless = (frames["address"] < 0) & (frames["inline_depth"] == 0) & (frames["func"] >= 0)
    placeless[stacks["frame"][stacks["prefix"][inlined]]] = False
    rows = np.flatnonzero(placeless)
    wanted = frames["func"][rows].astype(np.int64) << 32 | frames["tier"][rows] + 1
    nth = index_of(keys, wanted)
    rows, symbol = rows[nth >= 0], code["symbol"][first[nth[nth >= 0]]]
    rows, symbol = rows[symbol >= 0], symbol[symbol >= 0]
    address, lib, symbols = frames["address"].copy(), frames["lib"].copy(), frames["symbol"].copy()
    address[rows], lib[rows] = trace.symbols["address"][symbol], trace.symbols["lib"][symbol]
    symbols[rows] = symbol
    return frames.replaced(address=address, lib=lib, symbol=symbols)


def _with_functions_off_cpu(trace: Trace, frames: Table) -> tuple[Table, Table]:
    """Returns frames and functions, where a function off the processors is another one than where it runs: the viewer
    makes one call node of one function, and gives it no colour where its frames are of different categories."""
    names = trace.categories["name"].tolist()
    is_off = np.array([trace.strings[name] in OFF_CPU_COLORS for name in names] + [False])
    rows = np.flatnonzero(is_off[frames["category"]] & (frames["func"] >= 0))
    if len(rows) == 0:
        return frames, trace.funcs
    key = frames["func"][rows].astype(np.int64) * len(is_off) + frames["category"][rows]
    keys, nth = np.unique(key, return_inverse=True)
    func = frames["func"].copy()
    func[rows] = len(trace.funcs) + nth
    of = np.concatenate((np.arange(len(trace.funcs)), keys // len(is_off)))
    return frames.replaced(func=func), trace.funcs.take(of)


def _has_address(trace: Trace, frames: Table) -> Array:
    known = (frames["lib"] >= 0) & (frames["address"] >= 0)
    fits = known & (frames["address"] <= MAX_ADDRESS)
    beyond = int(np.count_nonzero(known & ~fits))
    trace.report.note("columns_dropped", beyond, where="addresses", detail="addresses beyond 2 GB")
    return fits


def lib_of_func(frames: Table, n_funcs: int) -> Array:
    """Returns the library of each function, that of its first frame with one, -1 is none: it knows none of its own."""
    resource = np.full(n_funcs, -1, np.int32)
    with_lib = np.flatnonzero(frames["lib"] >= 0)[::-1]
    resource[frames["func"][with_lib]] = frames["lib"][with_lib]
    return resource


def _used_symbols(trace: Trace, frames: Table, has_address: Array) -> tuple[Table, Array]:
    """Returns the symbols that frames refer to, and each frame's index into them."""
    symbols = trace.symbols
    usable = (symbols["lib"] >= 0) & (symbols["address"] >= 0) & (symbols["address"] <= MAX_ADDRESS)
    of_frame = np.where(has_address, frames["symbol"], -1)
    used = np.zeros(len(symbols), bool)
    used[of_frame[of_frame >= 0]] = True
    rows = np.flatnonzero(used & usable)
    # Index -1, none, finds the last element.
    new_index = np.full(len(symbols) + 1, -1, np.int32)
    new_index[rows] = np.arange(len(rows))
    return symbols.take(rows), new_index[of_frame]
