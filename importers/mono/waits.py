"""Map: which samples are of threads that waited. At each tick Mono samples every thread, whatever it does; `sample`
only lets the ticks come with the CPU time that all threads use together, so that what waits has as many samples as what
runs."""

from __future__ import annotations

import re

import numpy as np

from traceferry.common.patterns import compiled_later
from traceferry.model import Array, TraceBuilder

FINALIZER = "Finalizer"
# The runtime's own calls in which a thread is until something happens: mcs/class/corlib/System.Threading of Mono.
_WAIT = compiled_later(
    r"\(wrapper managed-to-native\) System\.Threading\."
    r"(?:Thread:(?:Sleep|Join)_?[Ii]nternal|Monitor:Monitor_wait|WaitHandle:(?:Wait|WaitOne|WaitAny|WaitAll|SignalAndWait)_?[Ii]nternal)\b"
)
# As well, but not always: what comes from a socket is copied there, too.
_WAIT_FOR_INPUT = compiled_later(
    r"\(wrapper managed-to-native\) System\.Net\.Sockets\.Socket:(?:Accept|Connect|Poll|Receive\w*|Select)_internal\b"
)
# A signal finds a thread that waits at its system call, which is made again, or behind it.
_SYSTEM_CALL_BYTES = 4


def waiting(trace: TraceBuilder, innermost: Array, addresses: Array, is_of_finalizer: Array) -> Array:
    """Returns bool of each sample: whether its thread waited.

    Where the runtime's own calls wait, all others wait as well: locks, workers without work, the collector's threads.

    Parameters
    ----------
    trace : TraceBuilder
    innermost : int32
        The method of each sample, as a frame; -1 where it has none.
    addresses : uint64
        Where each sample was; 0 is unknown.
    is_of_finalizer : bool
        Which samples are of the thread that runs finalizers. Without a method it has none to run.
    """
    known = _called(trace, innermost, _WAIT)
    has_none_to_run = is_of_finalizer & (innermost < 0)
    places = np.unique(np.append(addresses[known], _commonest(addresses[has_none_to_run])))
    return known | has_none_to_run | _called(trace, innermost, _WAIT_FOR_INPUT) | _are_near(places, addresses)


def _called(trace: TraceBuilder, frames: Array, name: re.Pattern[str]) -> Array:
    used, nth_used = np.unique(frames, return_inverse=True)
    funcs = trace.frames["func"][used].tolist()
    found = [at >= 0 and name.match(trace.func_name(func)) is not None for at, func in zip(used, funcs, strict=True)]
    return np.array(found, bool)[nth_used.reshape(-1)]


def _commonest(values: Array) -> Array:
    distinct, counts = np.unique(values, return_counts=True)
    return distinct[np.argsort(-counts, kind="stable")[:1]]


def _are_near(places: Array, addresses: Array) -> Array:
    places = places[places > 0].astype(np.int64)
    if not len(places):
        return np.zeros(len(addresses), bool)
    behind = np.searchsorted(places, wanted := addresses.astype(np.int64))
    nearest = np.minimum(
        np.abs(wanted - places[np.maximum(behind - 1, 0)]), np.abs(places[np.minimum(behind, len(places) - 1)] - wanted)
    )
    near: Array = nearest <= _SYSTEM_CALL_BYTES
    return near
