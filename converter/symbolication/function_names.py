"""Functions whose names recorders wrote as the linker has them, as perf script --no-demangle does: demangled.

Importers that look addresses up have demangled what they found. These are the names that came with the recordings. Some
only look mangled: functions of scripts and of managed languages keep theirs, and so does what becomes one word, as
`_Z3foo`, which would be a variable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from traceferry.common.patterns import compiled_later
from traceferry.common.report import Report
from traceferry.files.answers import Answers
from traceferry.model import Array, TraceBuilder, distinct
from traceferry.model.categories import LANGUAGE_COLORS

if TYPE_CHECKING:
    from traceferry.symbolication.demangle import Demangler

# How names of C++, Rust (v0; the older ones are as those of C++), Swift and D begin, to their end.
LINKAGE_NAME = compiled_later(
    r"(?:_{1,3}Z[A-Za-z0-9]|_{1,2}R[A-Z]|(?:_?\$[sS]|_T0)(?:s?\d+[A-Za-z_]|S[A-Za-z])|_D\d|_Dmain$)[\w.$@]*"
)
BEGINS = ("_", "$")
# Rust compiled to WebAssembly keeps its names.
NOT_LINKED = LANGUAGE_COLORS.keys() - {"WebAssembly"}
KINDS_TOLD = ("names_kept_mangled", "names_of_other_languages")


def demangle_functions(trace: TraceBuilder, answers: Answers) -> None:
    """Demangles the names of functions. Those that are equal then are one: the frames of all have the first."""
    names = trace.funcs["name"]
    # The time of a recording without such names is that of this line.
    mangled = [name for name in distinct(names).tolist() if _is_linkage_name(trace.strings[name])]
    if not mangled:
        return
    from traceferry.symbolication.demangle import demangler_for

    rows = np.flatnonzero(np.isin(names, mangled) & ~_are_not_linked(trace))
    texts = {name: trace.strings[name] for name in distinct(names[rows]).tolist()}
    demangle = demangler_for(answers, trace.report, "functions")
    demangle.learn(texts.values())
    _note(demangle, trace.report)
    shown = {name: _shown(text, demangle(text)) for name, text in texts.items()}
    changed = names.copy()
    changed[rows] = [trace.strings.intern(shown[name]) for name in names[rows].tolist()]
    trace.funcs.replace("name", changed)
    first = _first_of_equal(trace)
    for table in (trace.frames, trace.code):
        table.replace("func", first[table["func"]])


def _is_linkage_name(text: str) -> bool:
    return text.startswith(BEGINS) and LINKAGE_NAME.fullmatch(text) is not None


def _shown(text: str, demangled: str) -> str:
    return text if demangled.isidentifier() else demangled


def _are_not_linked(trace: TraceBuilder) -> Array:
    """Returns bool: which functions no linker has named."""
    names = [trace.strings[name] in NOT_LINKED for name in trace.categories["name"].tolist()]
    func = trace.frames["func"][np.append(np.array(names, bool), False)[trace.frames["category"]]]
    found = trace.funcs["is_js"].copy()
    found[func[func >= 0]] = True
    return found


def _first_of_equal(trace: TraceBuilder) -> Array:
    """Returns int32: of each function the first that is equal; -1 behind them, for none."""
    rows = zip(*(column.tolist() for column in trace.funcs.columns.values()), strict=True)
    first: dict[tuple[int, ...], int] = {}
    return np.array([*(first.setdefault(row, nth) for nth, row in enumerate(rows)), -1], np.int32)


def _note(demangle: Demangler, report: Report) -> None:
    """Reports names that stay as they are, unless an importer has told of such that it looked up."""
    if not report.places(*KINDS_TOLD):
        demangle.note_kept(report, "functions")
