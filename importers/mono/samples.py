"""Map: samples. The managed frames are in the log; where there are none, the addresses are looked up in the code that
was jitted by then, in the native symbols and in the native binaries that the log names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath, PureWindowsPath

import numpy as np

from traceferry.importers.mono.decode import Log
from traceferry.importers.mono.frames import Frames, has_code
from traceferry.importers.mono.layout import Event
from traceferry.importers.mono.threads import Lives
from traceferry.importers.mono.walks import Hits, StackTable, read_hits
from traceferry.model import SAMPLES, Array, Table, Trace

# Symbols are recorded in steps of so many bytes, over the page around a sample.
SYMBOL_STEP = 16


def read_samples(trace: Trace, log: Log, frames: Frames, lives: Lives, shift_ns: int) -> dict[int, Table]:
    """SAMPLES by the identity (`id`) of their Life; interns their stacks."""
    if not int(log.stats["hits"].sum()):
        return {}
    stacks = StackTable(trace)
    hits = read_hits(log, frames.methods, stacks)
    stack = hits.stack.copy()
    _add_native_stacks(trace, log, frames, hits, stack)
    return dict(_by_life(hits, stack, lives, shift_ns))


def _by_life(hits: Hits, stack: Array, lives: Lives, shift_ns: int) -> Iterator[tuple[int, Table]]:
    for life, rows in lives.number_of(hits.tid, hits.ts):
        rows = rows[np.argsort(hits.ts[rows], kind="stable")]
        ts = np.clip(hits.ts[rows], life.start_ts, life.end_ts) + shift_ns
        yield id(life), Table(SAMPLES, {"ts": ts, "stack": stack[rows], "weight": np.ones(len(rows), np.int64)})


# ---------------------------------------------------------------- native frames


def _add_native_stacks(trace: Trace, log: Log, frames: Frames, hits: Hits, stack: Array) -> None:
    """Sets the stacks of samples without managed frames."""
    rows = np.flatnonzero((stack < 0) & (hits.n > 0))
    if len(rows) == 0:
        return
    code = _Code(log, frames)
    symbols = _Symbols(log)
    known: dict[tuple[int, ...], int] = {}
    at, n, ts = hits.first[rows].tolist(), hits.n[rows].tolist(), hits.ts[rows].tolist()
    for row, first, length, time in zip(rows.tolist(), at, n, ts, strict=True):
        addresses = hits.addresses[first : first + length][::-1].tolist()
        found = tuple(
            frame if (frame := code.frame_at(address, time)) >= 0 else frames.native(symbols.name_of(address))
            for address in addresses
        )
        if found not in known:
            prefix = -1
            for frame in found:
                prefix = trace.stacks.intern(prefix=prefix, frame=frame)
            known[found] = prefix
        stack[row] = known[found]


class _Code:
    """The methods that were jitted, by address and time."""

    def __init__(self, log: Log, frames: Frames) -> None:
        is_code = has_code(log, frames.jitted)
        rows = frames.jitted[is_code]
        order = np.lexsort((log.records.ts[rows], log.records.b[rows]))
        rows = rows[order]
        self._start, self._size = log.records.b[rows], log.records.c[rows]
        self._ts = log.records.ts[rows]
        self._frame = frames.jitted_frames[is_code][order]

    def frame_at(self, address: int, ts: int) -> int:
        """The latest one jitted there until then, else the first later on; -1 is none."""
        end = int(np.searchsorted(self._start, np.uint64(address), side="right"))
        if end == 0:
            return -1
        start = int(self._start[end - 1])
        first = int(np.searchsorted(self._start, self._start[end - 1]))
        rows = first + np.flatnonzero(self._size[first:end] > np.uint64(address - start))
        if len(rows) == 0:
            return -1
        n_until_then = int(np.searchsorted(self._ts[rows], ts, side="right"))
        return int(self._frame[rows[max(n_until_then - 1, 0)]])


class _Symbols:
    """Names of native code: of the symbol before an address, if it is near; else of the binary."""

    def __init__(self, log: Log) -> None:
        records = log.records
        rows = records.of(Event.USYM)
        rows = rows[np.argsort(records.a[rows], kind="stable")]
        self._address = records.a[rows]
        self._names = [log.text(at) for at in records.text_at[rows].tolist()]
        rows = records.of(Event.UBIN)
        rows = rows[np.argsort(records.a[rows], kind="stable")]
        self._begin, self._offset, self._size = records.a[rows], records.b[rows], records.c[rows]
        self._binaries = [_file_name(log.text(at)) for at in records.text_at[rows].tolist()]

    def name_of(self, address: int) -> str:
        row = int(np.searchsorted(self._address, np.uint64(address), side="right")) - 1
        if row >= 0 and address - int(self._address[row]) < SYMBOL_STEP and self._names[row]:
            return self._names[row]
        row = int(np.searchsorted(self._begin, np.uint64(address), side="right")) - 1
        if row >= 0 and address - int(self._begin[row]) < int(self._size[row]):
            return f"{self._binaries[row]}+{address - int(self._begin[row]) + int(self._offset[row]):#x}"
        return "[native]"


def _file_name(path: str) -> str:
    return PureWindowsPath(path).name if "\\" in path else PurePosixPath(path).name
