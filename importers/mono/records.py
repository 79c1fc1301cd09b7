"""Prints the events of a log one by one, for `dump`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from traceferry.files.source import Source
from traceferry.importers.mono import decode
from traceferry.importers.mono._cursor import DAMAGE
from traceferry.importers.mono.decode import Records
from traceferry.importers.mono.events import Field, Layout, Program, program_of
from traceferry.importers.mono.layout import BUFFER_SIZE, MONITOR_EVENTS, Event

NAMES = {int(event): event.name for event in Event} | dict.fromkeys(MONITOR_EVENTS, "MONITOR")
MAX_ITEMS = 16
TEXT_LENGTH = 200


def described(source: Source, offset: int) -> Iterator[str]:
    """Yields from `offset` on: the header, buffers, and the events in them: offset, name, time on the event clock,
    fields, lists."""
    header = decode.header_of(source)
    if offset < 4:
        yield "0 header " + " ".join(f"{key}={value!r}" for key, value in header._asdict().items())
    # Which of its two layouts a log of version 15 has is known only at its end.
    layout = Layout(header.data_version, header.data_version, header.pointer_size)
    if header.data_version == decode.HYBRID:
        layout = decode.read_log(source).layout
    program = program_of(layout)
    tids, buffers, problems = decode.find_buffers(source, header.size)
    for problem in problems:
        if problem.offset >= offset:
            yield f"{problem.offset} ! {problem.kind} {problem.detail}".rstrip()
    for nth, (tid, buffer) in enumerate(zip(tids.tolist(), buffers.tolist(), strict=True)):
        begin, end, time_base, ptr_base, obj_base, method_base = buffer
        if end <= max(offset, begin):
            continue
        yield (
            f"{begin - BUFFER_SIZE} buffer length={end - begin} time_base={time_base} ptr_base={ptr_base:#x} "
            f"obj_base={obj_base:#x} thread={tid:#x} method_base={method_base:#x}"
        )
        stats = np.zeros(1, decode.STATS)
        (records,) = decode.read(source, buffers[nth : nth + 1], program, np.zeros(256, np.int32), stats)
        for row in np.flatnonzero(records.at >= offset).tolist():
            yield _event(source, program, records, row)
        reason, bad_at = stats[["bad", "bad_at"]][0].item()
        if reason and bad_at >= offset:
            yield f"{bad_at} ! {DAMAGE[reason]}; the rest of the buffer is skipped"


def _event(source: Source, program: Program, records: Records, row: int) -> str:
    kind, values = int(records.kind[row]), records.values(row).tolist()
    fields = [field for field in program.fields[records.declared[row]] if field.is_kept]
    single = [field for field in fields if not field.is_listed]
    words = [str(records.at[row]), NAMES[kind], f"ts={records.ts[row]}"]
    words += [f"{field.name}={_word(source, field, value)}" for field, value in zip(single, values, strict=False)]
    lists = list(dict.fromkeys(field.name for field in fields if field.is_listed))
    rest = values[len(single) :]
    if kind == Event.HIT:
        n = values[[field.name for field in single].index("n_ips")]
        words += [_list("ips", rest[:n]), _list("methods", rest[n:])]
    elif lists:
        words.append(_list("/".join(lists), rest))
    return " ".join(words)


def _word(source: Source, field: Field, value: int) -> str:
    if field.encoding != "text":
        return hex(value)
    if value == 0:
        return "''"
    piece = bytes(source.data[value : value + TEXT_LENGTH]).split(b"\0")[0]
    return repr(piece.decode("utf-8", "replace"))


def _list(name: str, values: list[int]) -> str:
    more = f" and {len(values) - MAX_ITEMS} more" if len(values) > MAX_ITEMS else ""
    return f"{name}=[{' '.join(hex(value) for value in values[:MAX_ITEMS])}{more}]"
