"""Collapsed stacks: a line for each call path, its functions from the outermost on between semicolons, and a number.

What flamegraph.pl, inferno, speedscope and others read. The number is the ns of calls, else of samples, with decimals
where these were counted in parts; a line has one, so other measures are left out. The first name is the process's, as
stackcollapse-perf.pl has it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from traceferry.analysis.totals.series import SAMPLES
from traceferry.exporters.amounts import Amounts
from traceferry.files.output import Output
from traceferry.model import TraceBuilder

# What would end a name, or a line.
REPLACED = str.maketrans({";": ":", "\n": " ", "\r": " "})
PIECE = 1 << 12


def write(trace: TraceBuilder, out: Output, progress: Callable[[int], None]) -> None:
    """Writes the paths in the order of their texts; equal ones of several threads are one."""
    amounts = Amounts(trace, progress)
    names = [name.translate(REPLACED).strip() or "[unknown]" for name in map(trace.func_name, range(len(trace.funcs)))]
    lines: Counter[str] = Counter()
    for thread in amounts.of_threads():
        process = thread.process.rpartition(" (")[0].translate(REPLACED)
        for path, (amount, *_) in thread.amounts:
            if amount:
                functions = [names[func] for func in amounts.paths.of(path)]
                lines[";".join([process, *reversed(functions)])] += amount
    written = sorted(lines.items())
    parts = trace.events[0].parts if amounts.measures[:1] == [SAMPLES] else 1
    for at in range(0, len(written), PIECE):
        text = "".join(f"{path} {_number(n, parts)}\n" for path, n in written[at : at + PIECE])
        out.write(text.encode("utf-8", "replace"))
    trace.report.note("output_empty", int(not written), where="folded", detail="collapsed stacks")
    for measure in amounts.measures[1:]:
        trace.report.note("columns_dropped", 1, where=measure.name, detail=measure.name)


def _number(n: int, parts: int) -> str:
    """Returns n / parts, which is a power of 10, without zeros at its end: 3005 of 10 as 300.5."""
    whole, part = divmod(n, parts)
    return f"{whole}.{part:0{len(str(parts)) - 1}d}".rstrip("0") if part else str(whole)
