"""Map: callstacks, with the functions that are inlined into their frames."""

from __future__ import annotations

import json
from collections import defaultdict
from functools import cache
from pathlib import PurePosixPath
from typing import NamedTuple

import numpy as np

from traceferry.common.patterns import compiled_later
from traceferry.common.shown_text import encodable
from traceferry.importers.perfetto.decode import Tables, dense
from traceferry.model import Array, TraceBuilder
from traceferry.model.categories import KERNEL, OF_V8, OTHER, category_of_file
from traceferry.symbolication.build_id import debug_id_of
from traceferry.symbolication.code_mapping import add_tier
from traceferry.symbolication.tiers import Tier
from traceferry.timeline.stack_profiles import LANGUAGES

# Of scripts, what is known of is a function.
UNNAMED, ANONYMOUS = "[unknown]", "(anonymous)"
KERNEL_MAPPING = ("[kernel.kallsyms]", "/[kernel.kallsyms]", "/kernel", "kernel")
# Types of frames, and our own mappings of jitted code.
IN_KERNEL, IN_JIT, INTERPRETED = "kernel", "jit", "interpreted"
OWN_CODE = compiled_later(r"/?JIT (?:\[(?P<tier>.*)\] )?.+-\d+(?: #\d+)?")
INTERPRETER = "Interpreter"  # a family of tiers
JIT = "JIT"
HEX = compiled_later("(?:[0-9a-fA-F]{2}){8,80}")
Function = tuple[str, str, int]  # name, source, line


class OwnTier(NamedTuple):
    """A tier of a trace of ours: a row of tiers, the category of its frames, and whether they are of scripts."""

    row: int
    category: int
    is_js: bool


Tiers = dict[tuple[str, bool], OwnTier]  # by the name and whether it interprets; that of any interpreter under ""


def own_tiers(trace: TraceBuilder, said: str) -> Tiers:
    """Adds the tiers that a trace of ours tells of, and returns them. What cannot be read is reported."""
    found: Tiers = {}
    try:
        rows = json.loads(said or "[]")
        for name, family, color, category, category_color, is_js in rows:
            tier = add_tier(trace, Tier(*(encodable(str(text)) for text in (name, family, color))))
            of = trace.add_category(encodable(str(category)), encodable(str(category_color)))
            interprets = family == INTERPRETER
            found[str(name), interprets] = OwnTier(tier, of, is_js is True)
            if interprets:
                found.setdefault(("", True), found[str(name), True])
    except (ValueError, TypeError, RecursionError):
        trace.report.note("bad_rows", 1, where="tiers", detail="tiers: 1")
    return found


def add_stacks(trace: TraceBuilder, tables: Tables, tiers: Tiers | None) -> Array:
    """Adds the callstacks. tiers: of a trace of ours. Returns int32: the trace's stack of each callsite, by its number;
    -1 is none."""
    frames = _add_frames(trace, tables, tiers)
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


def _add_frames(trace: TraceBuilder, tables: Tables, tiers: Tiers | None) -> dict[int, list[int]]:
    """Returns the trace's frames of each frame, the outermost function first."""
    libs, paths = _add_libs(trace, tables)
    symbols = _symbols(tables)
    answer = tables["frames"]
    numbers, mappings, addresses, sets = (
        answer[name].numbers(-1).tolist() for name in ("id", "mapping", "rel_pc", "symbol_set_id")
    )
    kinds = answer["type"].texts()
    functions = [
        symbols.get(number) or [(name or UNNAMED, "", 0)]
        for number, name in zip(sets, answer["name"].texts(), strict=True)
    ]
    own = [
        _tier(tiers, paths.get(mapping, ""), kind) if tiers else None
        for mapping, kind in zip(mappings, kinds, strict=True)
    ]
    # A function is one, whatever tiers it runs in.
    scripts = {one[:2] for named, tier in zip(functions, own, strict=True) if tier and tier.is_js for one in named}
    category = cache(lambda *of: trace.add_category(_category(*of, is_ours=tiers is not None)))
    found: dict[int, list[int]] = {}
    for nth, (number, mapping, address) in enumerate(zip(numbers, mappings, addresses, strict=True)):
        lib, tier = libs.get(mapping, -1), own[nth]
        columns_of = {
            "lib": lib,
            "address": address if lib >= 0 else -1,
            "tier": tier.row if tier else -1,
        }
        found[number] = [
            _frame(
                trace, function, function[:2] in scripts,
                category=tier.category if tier else category(
                    paths.get(mapping, ""), kinds[nth], function[1], OF_V8.get(function[0], "")
                ),
                inline_depth=depth, **columns_of,
            )
            for depth, function in enumerate(functions[nth])
        ]  # fmt: skip
    return found


def _tier(tiers: Tiers, path: str, kind: str) -> OwnTier | None:
    """Returns the tier of a frame in a mapping of ours."""
    code, interprets = OWN_CODE.fullmatch(path), kind == INTERPRETED
    known = tiers.get((code["tier"], interprets)) if code and code["tier"] else None
    return known or (tiers.get(("", True)) if interprets else None)


def _frame(trace: TraceBuilder, function: Function, is_js: bool, **columns: int) -> int:
    name, path, line = function
    source = trace.sources.intern(path=trace.strings.intern(encodable(path))) if path else -1
    func = trace.funcs.intern(name=trace.strings.intern(encodable(name)), source=source, is_js=is_js)
    return trace.frames.intern(func=func, line=line, **columns)


def _symbols(tables: Tables) -> dict[int, list[Function]]:
    """Returns the functions of each set of symbols, the outermost first."""
    answer, found = tables["symbols"], defaultdict[int, list[Function]](list)
    rows = zip(
        answer["symbol_set_id"].numbers(-1).tolist(), answer["name"].texts(), answer["source_file"].texts(),
        answer["line_number"].numbers().tolist(), strict=True,
    )  # fmt: skip
    for number, name, path, line in rows:
        found[number].append((name or (ANONYMOUS if path else UNNAMED), path, min(max(line, 0), (1 << 31) - 1)))
    return found


def _add_libs(trace: TraceBuilder, tables: Tables) -> tuple[dict[int, int], dict[int, str]]:
    """Returns (row of `libs`, path) of each mapping that is a file."""
    answer, rows, paths = tables["mappings"], dict[int, int](), dict[int, str]()
    texts = (answer[name].texts() for name in ("name", "build_id"))
    for number, path, build_id in zip(answer["id"].numbers().tolist(), *texts, strict=True):
        paths[number] = path
        if path:
            name = trace.strings.intern(encodable(path.rsplit("/", 1)[-1] or path))
            debug_id = trace.strings.intern(debug_id_of(build_id)) if HEX.fullmatch(build_id) else -1
            code_id = trace.strings.intern(encodable(build_id))
            rows[number] = trace.libs.intern(name=name, code_id=code_id, debug_id=debug_id)
    return rows, paths


def _category(path: str, kind: str, source: str, of_v8: str, *, is_ours: bool) -> str:
    """path: of the mapping; kind: of the frame; of_v8: the category that its name has, if V8's recorder gave it."""
    if of_v8 and not path:
        return of_v8
    if kind == IN_KERNEL or path.startswith(KERNEL_MAPPING):
        return KERNEL
    if kind == IN_JIT and is_ours:
        return LANGUAGES.get(PurePosixPath(source).suffix.lower(), JIT)
    return category_of_file(path) if path else OTHER
