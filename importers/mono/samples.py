"""Map: samples. The managed frames are in the log; where there are none, the addresses are looked up in the code that
was jitted by then, in the native symbols and in the native binaries that the log names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from traceferry.importers.mono.decode import Log, Records
from traceferry.importers.mono.frames import Frames
from traceferry.importers.mono.layout import Event
from traceferry.importers.mono.names import Names
from traceferry.importers.mono.threads import ThreadLifetime, ThreadLifetimes
from traceferry.importers.mono.walks import intern_stacks
from traceferry.model import SAMPLES, Array, Sampling, Table, Trace, holders

# sample=N or sample-real=N, N a second.
SAMPLE_OPTION = re.compile(r"\bsample(?P<mode>-real)?(?:=(?P<frequency>[0-9]{1,9}))?(?=,|$)")
DEFAULT_FREQUENCY = 100
NS = 1_000_000_000
# Symbols are recorded in steps of so many bytes, over the page around a sample.
SYMBOL_STEP = 16
NATIVE = (Event.USYM, Event.UBIN)


def describe_sampling(trace: Trace, log: Log) -> None:
    """What the option string says of samples."""
    option = SAMPLE_OPTION.search(log.header.arguments)
    if trace.sampling is None and log.stats["hits"].any():
        mode, frequency = (option["mode"], option["frequency"]) if option else (None, None)
        event = "wall-clock" if mode else "cpu-clock" if option else "samples"
        interval_ns = NS // max(int(frequency or DEFAULT_FREQUENCY), 1) if option else 0
        trace.sampling = Sampling(event, "count", interval_ns)


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
    is_native = (stack < 0) & (hits.n > 0)
    of_native = np.repeat(is_native, hits.n)
    found = _frames_at(log, frames, hits.addresses[of_native], np.repeat(hits.ts, hits.n)[of_native])
    stack[is_native] = intern_stacks(trace, found, hits.n[is_native])
    samples: dict[ThreadLifetime, Table] = {}
    for life, rows in threads.by_life(hits.tid, hits.ts):
        rows = rows[np.argsort(hits.ts[rows], kind="stable")]
        ts = hits.ts[rows]
        life.reach(ts, ts)
        columns = {"ts": ts + shift_ns, "stack": stack[rows], "weight": np.ones(len(rows), np.int64)}
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


def _frames_at(log: Log, frames: Frames, addresses: Array, ts: Array) -> Array:
    """int32. Of the method that was jitted there last until then, else first; where none was, of native code."""
    records, rows = log.records, frames.code
    start = np.sort(records["code"][rows])
    nearest = np.append(start, np.uint64(0))[np.searchsorted(start, addresses, side="right") - 1]
    there = Names(records["code"][rows], records.ts[rows], np.arange(len(rows), dtype=np.int32), lambda _: -1)
    nth = there.at(nearest, ts)
    found = np.append(frames.code_frames, np.int32(-1))[nth]
    found[addresses - nearest >= np.append(records["size"][rows], np.uint64(0))[nth]] = -1
    native = found < 0
    found[native] = [frames.native(name) for name in _native_names(log, addresses[native])]
    return found


def _native_names(log: Log, addresses: Array) -> Iterator[str]:
    """Of the symbol before an address, if it is near; else of the binary."""
    records = log.records
    symbols, binaries = (rows[np.argsort(records["address"][rows], kind="stable")] for rows in map(records.of, NATIVE))
    names, files = log.texts(symbols), [path.replace("\\", "/").rpartition("/")[2] for path in log.texts(binaries)]
    reach = np.array([SYMBOL_STEP if name else 0 for name in names], np.uint64)
    of_symbol = holders(records["address"][symbols], reach, addresses)
    of_binary = holders(records["address"][binaries], records["size"][binaries], addresses)
    begin, offset = (records[name][binaries].tolist() for name in ("address", "offset"))
    for address, symbol, binary in zip(addresses.tolist(), of_symbol.tolist(), of_binary.tolist(), strict=True):
        if symbol >= 0:
            yield names[symbol]
        elif binary >= 0:
            yield f"{files[binary]}+{address - begin[binary] + offset[binary]:#x}"
        else:
            yield "[native]"
