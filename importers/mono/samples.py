"""Map: samples. The managed frames are in the log; where there are none, the addresses are looked up in the code that
was jitted by then, in the native symbols and in the native binaries that the log names."""

from __future__ import annotations

from pathlib import PurePosixPath, PureWindowsPath
from typing import NamedTuple

import numpy as np

from traceferry.importers.mono.decode import Log, Records
from traceferry.importers.mono.frames import Frames, has_code
from traceferry.importers.mono.layout import Event
from traceferry.importers.mono.threads import ThreadLifetime, ThreadLifetimes
from traceferry.model import SAMPLES, Array, Table, Trace
from traceferry.stacks import intern_stacks

# Symbols are recorded in steps of so many bytes, over the page around a sample.
SYMBOL_STEP = 16


def read_samples(
    trace: Trace, log: Log, frames: Frames, threads: ThreadLifetimes, shift_ns: int
) -> dict[ThreadLifetime, Table]:
    """SAMPLES of each thread that has some; interns their stacks."""
    if not log.stats["hits"].any():
        return {}
    pieces = [_hits(piece) for piece in log.pieces(log.stats["hits"] > 0, Event.HIT)]
    hits = Hits(*map(np.concatenate, zip(*pieces, strict=True)))
    methods = frames.methods.at(hits.methods, np.repeat(hits.ts, hits.n_methods))
    stack = intern_stacks(trace, methods, hits.n_methods)
    _add_native_stacks(trace, log, frames, hits, stack)
    samples: dict[ThreadLifetime, Table] = {}
    for life, rows in threads.by_life(hits.tid, hits.ts):
        rows = rows[np.argsort(hits.ts[rows], kind="stable")]
        columns = {"ts": hits.ts[rows] + shift_ns, "stack": stack[rows], "weight": np.ones(len(rows), np.int64)}
        samples[life] = Table(SAMPLES, columns)
    return samples


class Hits(NamedTuple):
    """Samples, in the order of the file. ts: int64 ns on the event clock; tid: uint64, 0 before data version 11;
    addresses: uint64, those of one sample after those of another, the leaf first; n: how many each has; methods and
    n_methods: likewise, of the managed frames."""

    ts: Array
    tid: Array
    addresses: Array
    n: Array
    methods: Array
    n_methods: Array


def _hits(records: Records) -> Hits:
    values, lengths = records.lists(np.arange(len(records)))
    n = records["n_ips"].astype(np.int64)
    nth = np.arange(len(values)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    is_address = nth < np.repeat(n, lengths)
    return Hits(records.ts, records["thread"], values[is_address], n, values[~is_address], lengths - n)


# ---------------------------------------------------------------- native frames


def _add_native_stacks(trace: Trace, log: Log, frames: Frames, hits: Hits, stack: Array) -> None:
    """Sets the stacks of samples without managed frames."""
    rows = np.flatnonzero((stack < 0) & (hits.n > 0))
    if len(rows) == 0:
        return
    code, symbols, n = _Code(log, frames), _Symbols(log), hits.n[rows]
    # The addresses of these samples, the outermost first.
    nth = np.arange(n.sum()) - np.repeat(np.cumsum(n) - n, n)
    at = np.repeat(np.cumsum(hits.n)[rows] - 1, n) - nth
    frame_of = np.full(len(hits.addresses), -1, np.int32)
    frame_of[at] = [
        frame if (frame := code.frame_at(address, ts)) >= 0 else frames.native(symbols.name_of(address))
        for address, ts in zip(hits.addresses[at].tolist(), np.repeat(hits.ts[rows], n).tolist(), strict=True)
    ]
    stack[rows] = intern_stacks(trace, frame_of[frame_of >= 0], n)


class _Code:
    """The methods that were jitted, by address and time."""

    def __init__(self, log: Log, frames: Frames) -> None:
        is_code = has_code(log, frames.jitted)
        rows = frames.jitted[is_code]
        order = np.lexsort((log.records.ts[rows], log.records["code"][rows]))
        rows = rows[order]
        self._start, self._size = log.records["code"][rows], log.records["size"][rows]
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
        rows, binaries = (_by_address(records, kind) for kind in (Event.USYM, Event.UBIN))
        self._address, self._names = records["address"][rows], log.texts(rows)
        self._begin, self._offset, self._size = (records[name][binaries] for name in ("address", "offset", "size"))
        self._binaries = [_file_name(path) for path in log.texts(binaries)]

    def name_of(self, address: int) -> str:
        row = int(np.searchsorted(self._address, np.uint64(address), side="right")) - 1
        if row >= 0 and address - int(self._address[row]) < SYMBOL_STEP and self._names[row]:
            return self._names[row]
        row = int(np.searchsorted(self._begin, np.uint64(address), side="right")) - 1
        if row >= 0 and address - int(self._begin[row]) < int(self._size[row]):
            return f"{self._binaries[row]}+{address - int(self._begin[row]) + int(self._offset[row]):#x}"
        return "[native]"


def _by_address(records: Records, kind: Event) -> Array:
    rows = records.of(kind)
    ordered: Array = rows[np.argsort(records["address"][rows], kind="stable")]
    return ordered


def _file_name(path: str) -> str:
    return PureWindowsPath(path).name if "\\" in path else PurePosixPath(path).name
