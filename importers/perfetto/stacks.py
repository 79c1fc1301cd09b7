"""Map: callstacks, with the functions that are inlined into their frames."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from traceferry.common.shown_text import encodable
from traceferry.importers.perfetto.decode import Tables, dense
from traceferry.model import Array, TraceBuilder
from traceferry.model.categories import KERNEL, OTHER, category_of_file

UNNAMED = "[unknown]"
KERNEL_MAPPING = ("[kernel.kallsyms]", "/kernel", "kernel")
Function = tuple[str, str, int]  # name, source, line


def add_stacks(trace: TraceBuilder, tables: Tables) -> Array:
    """Adds the callstacks. Returns int32: the trace's stack of each callsite, by its number; -1 is none."""
    frames = _add_frames(trace, tables)
    callsites = tables["callsites"]
    ids, parents = (dense(callsites[name].numbers(-1), len(callsites)) for name in ("id", "parent_id"))
    # The last one stands for none.
    of_callsite = np.full(int(max(ids.max(initial=-1), parents.max(initial=-1))) + 2, -1, np.int32)
    rows = zip(ids.tolist(), parents.tolist(), callsites["frame_id"].numbers(-1).tolist(), strict=True)
    for callsite, parent, frame in rows:
        if callsite < 0:
            continue
        stack = int(of_callsite[parent])
        for row in frames.get(frame, ()):
            stack = trace.stacks.intern(prefix=stack, frame=row)
        of_callsite[callsite] = stack
    return of_callsite


def _add_frames(trace: TraceBuilder, tables: Tables) -> dict[int, list[int]]:
    """Returns the trace's frames of each frame, the outermost function first."""
    libs, paths = _add_libs(trace, tables)
    symbols = _symbols(tables)
    answer = tables["frames"]
    columns = (answer[name].numbers(-1).tolist() for name in ("id", "mapping", "rel_pc", "symbol_set_id"))
    found: dict[int, list[int]] = {}
    for number, mapping, address, of_symbols, name in zip(*columns, answer["name"].texts(), strict=True):
        lib = libs.get(mapping, -1)
        category = trace.add_category(_category(paths.get(mapping, "")))
        functions = symbols.get(of_symbols) or [(name or UNNAMED, "", 0)]
        found[number] = [
            _frame(trace, function, category, lib, address if lib >= 0 else -1, depth)
            for depth, function in enumerate(functions)
        ]
    return found


def _frame(trace: TraceBuilder, function: Function, category: int, lib: int, address: int, depth: int) -> int:
    name, path, line = function
    source = trace.sources.intern(path=trace.strings.intern(encodable(path))) if path else -1
    func = trace.funcs.intern(name=trace.strings.intern(encodable(name)), source=source)
    return trace.frames.intern(
        func=func, category=category, line=line, lib=lib, address=address, inline_depth=depth
    )  # fmt: skip


def _symbols(tables: Tables) -> dict[int, list[Function]]:
    """Returns the functions of each set of symbols, the outermost first."""
    answer, found = tables["symbols"], defaultdict[int, list[Function]](list)
    rows = zip(
        answer["symbol_set_id"].numbers(-1).tolist(), answer["name"].texts(), answer["source_file"].texts(),
        answer["line_number"].numbers().tolist(), strict=True,
    )  # fmt: skip
    for number, name, path, line in rows:
        found[number].append((name or UNNAMED, path, min(max(line, 0), (1 << 31) - 1)))
    return found


def _add_libs(trace: TraceBuilder, tables: Tables) -> tuple[dict[int, int], dict[int, str]]:
    """Returns (row of `libs`, path) of each mapping that is a file."""
    answer, rows, paths = tables["mappings"], dict[int, int](), dict[int, str]()
    texts = (answer[name].texts() for name in ("name", "build_id"))
    for number, path, build_id in zip(answer["id"].numbers().tolist(), *texts, strict=True):
        paths[number] = path
        if path:
            name = trace.strings.intern(encodable(path.rsplit("/", 1)[-1] or path))
            rows[number] = trace.libs.intern(name=name, code_id=trace.strings.intern(encodable(build_id)))
    return rows, paths


def _category(path: str) -> str:
    if path.startswith(KERNEL_MAPPING):
        return KERNEL
    return category_of_file(path) if path else OTHER
