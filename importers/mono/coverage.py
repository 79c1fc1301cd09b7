"""Map: code coverage, which data versions 10 to 15 have."""

from __future__ import annotations

from collections import Counter

from traceferry.importers.mono.decode import Log
from traceferry.importers.mono.layout import Event
from traceferry.model import Trace


def add_coverage(trace: Trace, log: Log) -> None:
    """A row of `coverage` for each method. How many of its statements ran is counted from the statements."""
    records, intern = log.records, trace.strings.intern
    methods, statements = records.of(Event.COVERAGE_METHOD), records.of(Event.COVERAGE_STATEMENT)
    covered = Counter(records["number"][statements[records["times"][statements] > 0]].tolist())
    texts = (log.texts(methods, name) for name in ("assembly", "class", "name", "signature", "file"))
    numbers = (records[name][methods].tolist() for name in ("number", "statements"))
    for assembly, class_name, name, signature, path, number, n_statements in zip(*texts, *numbers, strict=True):
        trace.coverage.intern(
            assembly=intern(assembly),
            class_name=intern(class_name),
            method=intern(f"{name} ({signature})"),
            path=intern(path) if path else -1,
            statements=min(n_statements, 1 << 62),
            covered=min(covered[number], n_statements),
        )
