"""Map: callchains as columns, and the user's part of them replaced.

A chain is context markers and addresses, the innermost first. An address behind a marker is exact, any other a return
address. Source: include/uapi/linux/perf_event.h, enum perf_callchain_context.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from traceferry.common.report import Report
from traceferry.importers.perf import _fields
from traceferry.importers.perf.recording import Deferred, Samples
from traceferry.model import Array

# PERF_CONTEXT_USER, PERF_CONTEXT_USER_DEFERRED, PERF_CONTEXT_GUEST.
USER, USER_DEFERRED, GUEST = (np.uint64((1 << 64) - n) for n in (512, 640, 2048))


class Replacement(NamedTuple):
    """New chains, chain[start[i]:start[i] + n[i]], of the samples `rows`."""

    rows: Array
    chain: Array
    start: Array
    n: Array


def chains_of(samples: Samples, rows: Array | slice) -> Array:
    """Returns the recorded chains of these samples, joined."""
    first, n = samples.chain_start[rows].astype(np.int64), samples.chain_n[rows].astype(np.int64)
    at: Array = np.arange(int(n.sum())) + np.repeat(first - (np.cumsum(n) - n), n)
    chains: Array = samples.chain[at]
    return chains


def before_user(samples: Samples, rows: Array) -> tuple[Array, Array, Array]:
    """Returns the recorded chains in front of the user's part, joined; how long each is; how long the user's part is,
    with its marker."""
    n = samples.chain_n[rows].astype(np.int64)
    values = chains_of(samples, rows)
    of, at = ragged(n)
    n_before = n.copy()
    is_user = np.flatnonzero((values == USER) | (values == USER_DEFERRED))
    np.minimum.at(n_before, of[is_user], at[is_user])
    return values[at < n_before[of]], n_before, n - n_before


def ragged(n: Array) -> tuple[Array, Array]:
    """Returns (row, index in it) of each value, for rows of n values."""
    of = np.repeat(np.arange(len(n)), n)
    return of, np.arange(len(of)) - np.repeat(np.cumsum(n) - n, n)


def joined(*parts: tuple[Array, Array]) -> tuple[Array, Array]:
    """Returns (chain, first): row i is chain[first[i]:first[i + 1]], what each of the parts has for it, one behind the
    other. parts: the values of all rows, and how many of them each row has."""
    n = np.stack([n_of_row for _, n_of_row in parts], axis=1)
    ends = np.cumsum(n, dtype=np.int64).reshape(n.shape)
    first = np.append(0, ends[:, -1])
    chain = np.empty(first[-1], np.uint64)
    for (values, n_of_row), start in zip(parts, (ends - n).T, strict=True):
        of, at = ragged(n_of_row)
        chain[start[of] + at] = values
    return chain, first


def with_chains(samples: Samples, replacements: Sequence[Replacement]) -> Samples:
    """Returns the samples with other chains where there are replacements. The recorded ones may lie between the dumps
    of stacks: the needed parts are copied, so that the dumps can be released."""
    length = np.array(samples.chain_n)
    pieces = [chains_of(samples, slice(None))]
    start = np.cumsum(length, dtype=np.int64) - length
    n_before = len(pieces[0])
    for one in replacements:
        pieces.append(one.chain)
        start[one.rows] = n_before + one.start
        length[one.rows] = one.n
        n_before += len(one.chain)
    return replace(samples, chain=np.concatenate(pieces), chain_start=start, chain_n=length)


def with_deferred(samples: Samples, deferred: Deferred, report: Report, where: str) -> Samples:
    """Returns the samples with what the kernel recorded later of the user's part: a chain that ends with USER_DEFERRED
    and a cookie gets the addresses of the next record of its thread with that cookie. Several samples may wait for one
    record."""
    start, n = (np.ascontiguousarray(column) for column in (samples.chain_start, samples.chain_n))
    rows = _fields.deferred(samples.chain, start, n)
    if not len(rows):
        return samples
    last = start[rows] + n[rows] - 1
    found = _next(samples.tid[rows], samples.chain[last], samples.ts[rows], deferred)
    report.note("deferred_missing", int((found < 0).sum()), where=where)
    kernel, n_kernel, _ = before_user(samples, rows)
    n_user, n_markers = np.append(deferred.n, 0)[found], (found >= 0).astype(np.int64)
    of, at = ragged(n_user)
    user = deferred.addresses[deferred.first[found[of]] + at]
    chain, first = joined((kernel, n_kernel), (np.full(n_markers.sum(), USER), n_markers), (user, n_user))
    return with_chains(samples, [Replacement(rows, chain, first[:-1], np.diff(first))])


def _next(tid: Array, cookie: Array, ts: Array, deferred: Deferred) -> Array:
    """Returns the record for each sample, -1 for none."""
    n = len(deferred.n)
    keys = np.stack([np.concatenate((deferred.tid, tid)).astype(np.uint64), np.concatenate((deferred.cookie, cookie))])
    _, key = np.unique(keys, axis=1, return_inverse=True)
    _, time = np.unique(np.concatenate((deferred.ts, ts)), return_inverse=True)
    place = key.reshape(-1).astype(np.int64) * (len(time) + 1) + time.reshape(-1)
    order = np.argsort(place[:n], kind="stable")
    nth = np.searchsorted(place[:n][order], place[n:])
    found = np.append(order, -1)[nth]
    return np.where((found >= 0) & (key.reshape(-1)[found] == key.reshape(-1)[n:]), found, -1)
