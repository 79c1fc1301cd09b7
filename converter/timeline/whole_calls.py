"""Calls with begin, length and own time, made of enters and leaves."""

from __future__ import annotations

import numpy as np

from traceferry.model import Array, Table
from traceferry.native.call_flags import ENTRY_LOST, LEAVE, OPEN_AT_END, OPEN_AT_START


class WholeCalls:
    """Takes the pieces of a thread's table of CALLS one after the other; keeps the calls that are still open."""

    def __init__(self) -> None:
        self._open = {name: np.empty(0, np.int64) for name in ("ts", "frame", "flags", "count", "self_ns")}
        self._last_ts = 0

    def add(self, piece: Table) -> dict[str, Array]:
        """Returns the calls that end in the piece, in the order of their beginnings.

        Returns int64: ts (ns, the begin), dur and self_ns (ns), frame (row of frames), calls (how many it stands for);
        depth: int32, how many calls it is in; is_cut: bool, its begin or its end was not recorded.
        """
        n_open, n = len(self._open["ts"]), len(piece)
        counts = piece.counts()
        new = {
            "ts": piece["ts"], "frame": piece["frame"], "flags": piece["flags"],
            "count": np.ones(n, np.int64) if counts is None else counts, "self_ns": np.zeros(n, np.int64),
        }  # fmt: skip
        rows = {name: np.concatenate((kept, new[name].astype(np.int64))) for name, kept in self._open.items()}
        is_leave = np.concatenate((np.zeros(n_open, bool), (piece["flags"] & LEAVE).astype(bool)))
        n_inside = np.cumsum(np.where(is_leave, -1, 1))
        depth = np.where(is_leave, n_inside, n_inside - 1)

        # Those of one depth are enters and leaves in turn.
        order = np.argsort(depth, kind="stable")
        follows = np.append(depth[order][1:] == depth[order][:-1], False)
        has_ended = ~is_leave[order] & follows
        leave = np.full(len(order), -1)
        leave[order[has_ended]] = order[np.flatnonzero(has_ended) + 1]

        # What passes after a row belongs to the innermost call that is open then. The open ones have theirs until the
        # last piece's end.
        at = np.concatenate((np.full(n_open, self._last_ts), piece["ts"]))
        passed = np.diff(at, append=at[-1:])
        enters = order[~is_leave[order]]
        inside = np.flatnonzero(n_inside > 0)
        place = np.searchsorted(depth[enters] * len(at) + enters, (n_inside[inside] - 1) * len(at) + inside, "right")
        np.add.at(rows["self_ns"], enters[place - 1], passed[inside])

        self._open = {name: values[~is_leave & (leave < 0)] for name, values in rows.items()}
        self._last_ts = int(at[-1])
        begin = np.flatnonzero(leave >= 0)
        end = leave[begin]
        flags, end_flags = rows["flags"][begin], rows["flags"][end]
        return {
            "ts": rows["ts"][begin], "dur": rows["ts"][end] - rows["ts"][begin], "self_ns": rows["self_ns"][begin],
            "depth": depth[begin].astype(np.int32), "calls": rows["count"][begin],
            "is_cut": ((flags & (OPEN_AT_START | ENTRY_LOST)) | (end_flags & OPEN_AT_END)).astype(bool),
            "frame": rows["frame"][begin],
        }  # fmt: skip
