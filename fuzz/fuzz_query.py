"""Fuzzes what makes rows of the answers of trace_processor. Run by `make fuzz`.

An input is an answer, TraceProcessorRpc, as the engine sends it. Any bytes give rows that every format can be written
of, or a FormatError.
"""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from common import fuzz, imported, in_time

NAMES = (
    "traceferry.trace_processor.results",
    "traceferry.trace_processor.protocol",
    "traceferry.trace_processor.arrow",
    "traceferry.apps.cli.query_rows",
)
# Whole integers in kinds that have none, a cell without a kind, columns that rows do not fill.
ANSWERS: list[tuple[list[bytes], list[int], list[int], list[float], bytes, list[bytes]]] = [
    ([b"a"], [2], [1], [], b"", []),
    ([b"a", b"a"], [1, 2, 3, 4, 5, 1], [-(1 << 63)], [1.5], b"x\0", [b"\xff"]),
    ([b"\xff"], [4, 4], [], [], b'\xff,"\n\0\0', []),
    ([b"a", b"b"], [2, 3, 4], [1], [float("nan")], b"x\0", []),
    ([b"a"], [2, 2], [1], [], b"", []),
    ([b"a"], [4], [], [], b"x", []),
    ([], [2], [1], [], b"", []),
]


def seeds() -> Iterator[tuple[str, bytes]]:
    from traceferry.exporters.perfetto._packets import varint
    from traceferry.trace_processor.protocol import messages

    for nth, (names, cells, integers, floats, text, blobs) in enumerate(ANSWERS):
        answer = messages()["TraceProcessorRpc"]()
        result = answer.query_result
        result.column_names.extend(names)
        for _ in range(1 + nth % 2):
            batch = result.batch.add()
            batch.cells.append(bytes(cells))
            batch.varint_cells.append(b"".join(map(varint, integers)))
            batch.float64_cells.append(struct.pack(f"<{len(floats)}d", *floats))
            batch.string_cells = text
            batch.blob_cells.extend(blobs)
        yield f"answer-{nth}", answer.SerializeToString()


def outcome(data: bytes) -> None:
    from traceferry.common.errors import FormatError, UsageError
    from traceferry.trace_processor import results
    from traceferry.trace_processor.protocol import parsed
    from traceferry.trace_processor.results import Rows

    try:
        answer = parsed("TraceProcessorRpc", data)
    except FormatError:
        return
    result = answer.query_result
    rows = Rows([name.decode("utf-8", "replace") for name in result.column_names])
    results.KEPT_IN_MEMORY = len(data) // 2
    with suppress(FormatError):
        for batch in result.batch:
            rows.add(batch, len(data) // 2)
    try:
        assert len(rows.answer()) == rows.n_rows or not rows.names
    except FormatError:  # a number that does not end
        return
    written = {suffix: io.BytesIO() for suffix in (".csv", ".json", ".jsonl", ".parquet")}
    for suffix, sink in written.items():
        with suppress(UsageError):
            write(rows, suffix, sink)
    ((read),) = json.loads(written[".json"].getvalue())
    assert len(read["rows"]) == rows.n_rows
    assert written[".jsonl"].getvalue().count(b"\n") == rows.n_rows


def write(rows: Any, suffix: str, sink: io.BytesIO) -> None:
    from traceferry.apps.cli.query_rows import BY_SUFFIX
    from traceferry.files.output import Output

    out = Output(sink, gzip=False)
    BY_SUFFIX[suffix]([rows], out)
    out.finish()


if __name__ == "__main__":
    imported(NAMES)
    fuzz("query", seeds, in_time(outcome))
