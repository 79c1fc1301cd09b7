"""Prints the events of a log one by one, for `dump`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

import numpy as np

from traceferry.importers.mono import scan_kernel
from traceferry.importers.mono.decode import (
    FIRST_ITEMS,
    HYBRID,
    REASONS,
    Layout,
    find_buffers,
    header_of,
    read_log,
    room_for,
)
from traceferry.importers.mono.layout import BUFFER_SIZE, MONITOR_EVENTS, Event
from traceferry.importers.mono.state_inlined import B_WIDTH, BAD, BUFFER, DONE, EVENT_AT, ITEMS_FULL, N_ITEMS, ROWS_FULL
from traceferry.io.source import Source

NAMES = {int(event): event.name for event in Event}
MAX_ITEMS = 16
TEXT_LENGTH = 200


def describe_header(source: Source) -> str:
    header = header_of(source)
    return "0 header " + " ".join(f"{key}={value!r}" for key, value in asdict(header).items())


def events(source: Source, offset: int) -> Iterator[str]:
    """Buffers, and the events in them: offset, name, time on the event clock, fields a to d that are not 0, text,
    items."""
    header = header_of(source)
    # Which of its two layouts a log of version 15 has is known only at its end.
    version = header.data_version
    layout = read_log(source).layout if version == HYBRID else Layout(version, version, header.pointer_size)
    tids, buffers, problems = find_buffers(source, header.size)
    for problem in problems:
        if problem.offset >= offset:
            yield f"{problem.offset} ! {problem.kind} {problem.detail}".rstrip()
    state, out, items = layout.state(), np.zeros(8, np.uint64), np.empty(FIRST_ITEMS, np.uint64)
    flat = buffers[buffers[:, 1] > offset].ravel() if len(buffers) else buffers.ravel()
    tids = tids[buffers[:, 1] > offset] if len(buffers) else tids
    printed = -1
    while (stopped := scan_kernel.events(source.data, flat, out, items, state)) != DONE:
        if stopped == ITEMS_FULL:
            items = room_for(items, int(state[N_ITEMS]))
            continue
        row = int(state[BUFFER])
        if row != printed:
            printed = row
            begin, end, time_base, ptr_base, obj_base, method_base = flat[B_WIDTH * row :][:B_WIDTH].tolist()
            yield (
                f"{begin - BUFFER_SIZE} buffer length={end - begin} time_base={time_base} ptr_base={ptr_base:#x} "
                f"obj_base={obj_base:#x} thread={int(tids[row]):#x} method_base={method_base:#x}"
            )
        at = int(state[EVENT_AT])
        if at < offset:
            continue
        if stopped == ROWS_FULL:
            yield _event(source, out.tolist(), items[: int(state[N_ITEMS])].tolist())
        else:
            yield f"{at} ! {REASONS.get(int(state[BAD]), 'damaged')}; the rest of the buffer is skipped"


def _event(source: Source, out: list[int], items: list[int]) -> str:
    at, kind, ts, *fields, text_at = out
    words = [str(at), NAMES.get(kind, "MONITOR" if kind in MONITOR_EVENTS else hex(kind)), f"ts={ts}"]
    words += [f"{name}={value:#x}" for name, value in zip("abcd", fields, strict=True) if value]
    if text_at:
        piece = bytes(source.data[text_at : text_at + TEXT_LENGTH]).split(b"\0")[0]
        words.append(repr(piece.decode("utf-8", "replace")))
    if items:
        more = f" and {len(items) - MAX_ITEMS} more" if len(items) > MAX_ITEMS else ""
        words.append(f"[{' '.join(hex(item) for item in items[:MAX_ITEMS])}{more}]")
    return " ".join(words)
