"""Map: code coverage, which data versions 10 to 15 have."""

from __future__ import annotations

from collections import Counter

from traceferry.importers.mono.decode import Log
from traceferry.importers.mono.layout import Event
from traceferry.model import Trace


def add_coverage(trace: Trace, log: Log) -> None:
    """A row of `coverage` for each method. How many of its statements ran is counted from the statements."""
    records = log.records
    methods = records.of(Event.COVERAGE_METHOD).tolist()
    if not methods:
        return
    # method number, IL offset, how often it ran, line, column
    statements = [records.items(row).tolist() for row in records.of(Event.COVERAGE_STATEMENT).tolist()]
    covered = Counter(number for number, _, n_times, _, _ in statements if n_times)
    intern = trace.strings.intern
    for row in methods:
        # assembly, class, name, signature, file; token, number, how many statements
        *texts, _, number, n_statements = records.items(row).tolist()
        assembly, class_name, name, signature, path = (log.text(at) for at in texts)
        trace.coverage.intern(
            assembly=intern(assembly),
            class_name=intern(class_name),
            method=intern(f"{name} ({signature})"),
            path=intern(path) if path else -1,
            statements=min(n_statements, 1 << 62),
            covered=min(covered[number], n_statements),
        )
