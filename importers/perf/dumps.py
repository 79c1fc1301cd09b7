"""Map: the jitdumps that a recording maps, and rows of the trace's tables by dump and process.

All is found in one pass: recordings of a whole machine have many processes, each with a dump of its own."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from traceferry.importers.perf.programs import Programs
from traceferry.importers.perf.recording import DUMP, Mmap, Recording
from traceferry.model import Array, TraceBuilder, rows_by_key

NO_ROWS = np.zeros(0, np.int64)


def dump_name(mapped: Mmap) -> str:
    """ "" where no dump is mapped."""
    name = Path(mapped.path).name if "jit-" in mapped.path else ""
    return name if DUMP.fullmatch(name) else ""


def dumps_by_program(recording: Recording, programs: Programs) -> dict[int, set[str]]:
    """Returns the names of the dumps that each program maps, by its number."""
    found: dict[int, set[str]] = {}
    for mapped in recording.maps:
        name = dump_name(mapped)
        program = programs.at(mapped.pid, mapped.ts) if name else None
        if program is not None:
            found.setdefault(program.number, set()).add(name)
    return found


def code_by_dump(trace: TraceBuilder, code: Array | slice = slice(None)) -> dict[str, Array]:
    """Returns, by the name of the dump, the indices (int64, rising) of what it has among these rows of the trace's
    code: a jitted symbol's library is its dump."""
    found: dict[str, Array] = {}
    for number, rows in rows_by_key(trace.symbols["lib"][trace.code["symbol"][code]]).items():
        name = trace.strings[int(trace.libs["name"][number])]
        found[name] = np.sort(np.concatenate((found[name], rows))) if name in found else rows
    return found
