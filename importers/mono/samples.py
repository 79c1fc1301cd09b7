"""Map: samples. The managed frames are in the log; where there are none, the addresses are looked up in the code that
was jitted by then, in the native symbols and in the native binaries that the log names."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from traceferry.common.patterns import compiled_later
from traceferry.importers.mono.decode import Log, Records
from traceferry.importers.mono.frames import Frames
from traceferry.importers.mono.layout import Event
from traceferry.importers.mono.threads import ThreadLifetime, ThreadLifetimes
from traceferry.importers.mono.waits import FINALIZER, waiting
from traceferry.model import SAMPLES, WALL_CLOCK, Array, Table, TraceBuilder, containing_interval
from traceferry.model import Event as SampledEvent
from traceferry.timeline.method_table import MethodTable
from traceferry.timeline.stacks import intern_stacks

# sample=N or sample-real=N, N a second.
SAMPLE_OPTION = compiled_later(r"\bsample(?P<mode>-real)?(?:=(?P<frequency>[0-9]{1,9}))?(?=,|$)")
DEFAULT_FREQUENCY = 100
NS = 1_000_000_000
# Symbols are recorded in steps of so many bytes, over the page around a sample.
SYMBOL_STEP = 16
NATIVE = (Event.USYM, Event.UBIN)
# What `sample` counts: ticks of the CPU time of all threads together. `sample-real` counts those of wall time.
PROCESS_CLOCK = "process-clock"


def describe_sampling(trace: TraceBuilder, log: Log) -> None:
    """Describes in the trace what the option string says of samples."""
    option = SAMPLE_OPTION.search(log.header.arguments)
    if not trace.events and log.stats["hits"].any():
        mode, frequency = (option["mode"], option["frequency"]) if option else (None, None)
        event = WALL_CLOCK if mode else PROCESS_CLOCK if option else "samples"
        interval_ns = NS // max(int(frequency or DEFAULT_FREQUENCY), 1) if option else 0
        trace.events = [SampledEvent(event, "count", interval_ns)]


def read_samples(
    trace: TraceBuilder, log: Log, frames: Frames, threads: ThreadLifetimes, shift_ns: int
) -> dict[ThreadLifetime, Table]:
    """Returns SAMPLES of each thread that has some; interns their stacks."""
    if not log.stats["hits"].any():
        return {}
    places = Places(log, frames)
    pieces = [_read(piece, frames, places) for piece in log.pieces(log.stats["hits"] > 0, Event.HIT)]
    ts, tids, addresses, found, n, is_native = map(np.concatenate, zip(*pieces, strict=True))
    rows_of = {life: rows[np.argsort(ts[rows], kind="stable")] for life, rows in threads.by_life(tids, ts)}
    if _is_paced_by_cpu_time(log):
        _show_waits(trace, log, frames, _of_finalizer(rows_of, len(ts)), addresses, found, n, is_native)
    stack = np.empty(len(ts), np.int32)
    for mine in (~is_native, is_native):
        stack[mine] = intern_stacks(trace, found[np.repeat(mine, n)], n[mine])
    samples: dict[ThreadLifetime, Table] = {}
    for life, rows in rows_of.items():
        life.reach(ts[rows], ts[rows])
        columns = {"ts": ts[rows] + shift_ns, "stack": stack[rows], "weight": np.ones(len(rows), np.int64)}
        samples[life] = Table(SAMPLES, columns)
    return samples


def _is_paced_by_cpu_time(log: Log) -> bool:
    option = SAMPLE_OPTION.search(log.header.arguments)
    return option is not None and not option["mode"]


def _of_finalizer(rows_of: dict[ThreadLifetime, Array], n: int) -> Array:
    found = np.zeros(n, bool)
    for life, rows in rows_of.items():
        found[rows] = FINALIZER in life.names
    return found


def _show_waits(
    trace: TraceBuilder, log: Log, frames: Frames, is_of_finalizer: Array, addresses: Array, found: Array, n: Array,
    is_native: Array,
) -> None:  # fmt: skip
    """Puts idle frames into `found` where threads waited."""
    first = np.cumsum(n) - n
    innermost = np.where(is_native | (n == 0), -1, np.append(found, np.int32(-1))[first])
    waits = waiting(trace, innermost, addresses, is_of_finalizer) & (n > 0)
    used, nth_used = np.unique(found[first[waits]], return_inverse=True)
    found[first[waits]] = np.array([frames.idle(frame) for frame in used.tolist()], np.int32)[nth_used.reshape(-1)]
    trace.report.note("waits_sampled", int(waits.sum()), where=log.source.path)


def _read(records: Records, frames: Frames, places: Places) -> tuple[Array, ...]:
    """Returns (int64 ns on the event clock; uint64 thread ids, which are 0 before data version 11; uint64 addresses, 0
    where there is none; int32 frames, those of one sample after those of another, the innermost of each first; how many
    each has; whether addresses told them)"""
    values, lengths = records.lists(np.arange(len(records)))
    n_addresses, ts = records["n_ips"].astype(np.int64), np.repeat(records.ts, lengths)
    nth = np.arange(len(values)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    is_native, is_method = n_addresses == lengths, nth >= np.repeat(n_addresses, lengths)
    of_native = np.repeat(is_native, lengths)
    found = np.empty(len(values), np.int32)
    found[is_method] = frames.methods.at(values[is_method], ts[is_method])
    found[of_native] = places.frames_at(values[of_native], ts[of_native])
    n = np.where(is_native, n_addresses, lengths - n_addresses)
    first = np.append(values, np.uint64(0))[np.cumsum(lengths) - lengths]
    addresses = np.where(n_addresses > 0, first, np.uint64(0))
    return records.ts, records["thread"], addresses, found[is_method | of_native], n, is_native


class Places:
    """The code at addresses: the methods that were jitted, and native code."""

    def __init__(self, log: Log, frames: Frames) -> None:
        records, rows = log.records, frames.code
        self._frames, self._start, self._size = frames, np.sort(records["code"][rows]), records["size"][rows]
        numbers = np.arange(len(rows), dtype=np.int32)
        self._code = MethodTable(records["code"][rows], records.ts[rows], numbers, lambda _: -1)
        symbols, binaries = (
            rows[np.argsort(records["address"][rows], kind="stable")] for rows in map(records.of, NATIVE)
        )
        self._symbols, self._names = records["address"][symbols], log.texts(symbols)
        self._reach = np.array([SYMBOL_STEP if name else 0 for name in self._names], np.uint64)
        self._begin, self._length, self._offset = (records[name][binaries] for name in ("address", "size", "offset"))
        self._files = [path.replace("\\", "/").rpartition("/")[2] for path in log.texts(binaries)]

    def frames_at(self, addresses: Array, ts: Array) -> Array:
        """Returns the frames, int32: of the method that was jitted there last until then, else first; where none was,
        of native code."""
        nearest = np.append(self._start, np.uint64(0))[np.searchsorted(self._start, addresses, side="right") - 1]
        nth = self._code.at(nearest, ts)
        found = np.append(self._frames.code_frames, np.int32(-1))[nth]
        found[addresses - nearest >= np.append(self._size, np.uint64(0))[nth]] = -1
        found[found < 0] = [self._frames.native(name) for name in self._native_names(addresses[found < 0])]
        return found

    def _native_names(self, addresses: Array) -> Iterator[str]:
        """Yields the name of the symbol before an address, if it is near; else of the binary."""
        of_symbol = containing_interval(self._symbols, self._reach, addresses)
        of_binary = containing_interval(self._begin, self._length, addresses)
        for address, symbol, binary in zip(addresses.tolist(), of_symbol.tolist(), of_binary.tolist(), strict=True):
            if symbol >= 0:
                yield self._names[symbol]
            elif binary >= 0:
                yield f"{self._files[binary]}+{address - int(self._begin[binary]) + int(self._offset[binary]):#x}"
            else:
                yield "[native]"
