"""A forked child writes its copies of its parent's buffers too, and continues in its copy of the forking thread's
buffer.

That copy still names the parent as its process. Where the files of both are given, what is the same in both is the
parent's, and what follows it in the child's file is the child's.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from traceferry.importers.xray.decode import SCRATCH, Buffer, Columns, decode_pieces, scan_buffer
from traceferry.importers.xray.fdr import FdrFile
from traceferry.importers.xray.layout import Metadata

Identity = tuple[int, int, int]  # pid, tid, first TSC
PIECE = 1 << 20


def separate(files: Sequence[FdrFile]) -> None:
    """Takes out of each file the buffers, or the beginnings of buffers, that an earlier process wrote first.

    The parent is the file without a process id of its own besides; else, as a child's copies of its parent's other
    threads stop at the fork, the file that has more of them.
    """
    shared = _shared_identities(files)
    if not shared:
        return
    own_pids = [_own_pid(file, shared) for file in files]
    order = sorted(range(len(files)), key=lambda i: (own_pids[i] is not None, -_size(files[i], shared), i))
    first: dict[Identity, tuple[FdrFile, Buffer]] = {}
    next_pid = 1 + max(max(b.pid or 0, b.tid or 0) for file in files for b in file.buffers)
    for i in order:
        file, child_pid = files[i], own_pids[i]
        kept: list[Buffer] = []
        for buffer in file.buffers:
            identity = _identity(buffer)
            if identity is None or identity not in first:
                if identity is not None:
                    first[identity] = (file, buffer)
                kept.append(buffer)
                continue
            file.problems.add("duplicate_buffer", 1, buffer.begin)
            rest = _rest(file, buffer, *first[identity])
            if rest is not None:
                if child_pid is None:
                    child_pid, next_pid = next_pid, next_pid + 1
                    file.problems.add("fork_pid_unknown", 1, rest.begin, f"{child_pid}")
                # The thread that forks is the child's main thread.
                rest.pid = rest.tid = child_pid
                kept.append(rest)
        file.buffers = kept


def _identity(buffer: Buffer) -> Identity | None:
    if buffer.pid is None or buffer.tid is None or buffer.first_tsc is None:
        return None
    return buffer.pid, buffer.tid, buffer.first_tsc


def _shared_identities(files: Sequence[FdrFile]) -> set[Identity]:
    seen: set[Identity] = set()
    shared: set[Identity] = set()
    for file in files:
        own = {identity for b in file.buffers if (identity := _identity(b)) is not None}
        shared |= own & seen
        seen |= own
    return shared


def _size(file: FdrFile, shared: set[Identity]) -> int:
    return sum(b.end - b.begin for b in file.buffers if _identity(b) in shared)


def _own_pid(file: FdrFile, shared: set[Identity]) -> int | None:
    """Returns a pid that only the file's own buffers have: those that the child began after the fork."""
    parents = {identity[0] for identity in shared}
    own = sorted({b.pid for b in file.buffers if b.pid is not None} - parents)
    return own[0] if own else None


def _rest(file: FdrFile, buffer: Buffer, other_file: FdrFile, other: Buffer) -> Buffer | None:
    """Returns as a buffer of its own what follows the records that both buffers have; None where nothing does."""
    n_common = _common_prefix(file.data[buffer.begin : buffer.end], other_file.data[other.begin : other.end])
    if buffer.begin + n_common >= buffer.end:
        return None
    scratch = Columns.empty(SCRATCH, SCRATCH)
    common = Buffer(buffer.begin, buffer.begin + n_common, base_tick=buffer.base_tick)
    scan_buffer(file.data, file.header, common, file.ids, scratch)
    event_at = _cut_event(file, common)
    if event_at is not None:
        # The first difference lies in an event's payload: the event is the child's.
        common = Buffer(buffer.begin, event_at, base_tick=buffer.base_tick)
        scan_buffer(file.data, file.header, common, file.ids, scratch)
    rest = Buffer(common.stopped_at, buffer.end, base_tick=common.last_tick, truncated=buffer.truncated)
    scan_buffer(file.data, file.header, rest, file.ids, scratch)
    rest.first_tsc = common.last_tick
    return rest if rest.n_rows or rest.n_aux else None


def _cut_event(file: FdrFile, common: Buffer) -> int | None:
    """Returns the offset of an event whose payload the buffer cuts: the last metadata record that is decoded."""
    if common.status != "cut" or common.stopped_at != common.end or common.n_aux == 0:
        return None
    *_, last = decode_pieces(file.data, file.header, [common], file.ids, SCRATCH)
    if len(last.aux_kind) == 0 or last.aux_kind[-1] not in (Metadata.CUSTOM_EVENT, Metadata.TYPED_EVENT):
        return None
    return int(last.aux_value[-1])


def _common_prefix(a: memoryview, b: memoryview) -> int:
    """Returns how many bytes are the same."""
    n = min(len(a), len(b))
    for at in range(0, n, PIECE):
        end = min(at + PIECE, n)
        differs = np.frombuffer(a[at:end], np.uint8) != np.frombuffer(b[at:end], np.uint8)
        if differs.any():
            return at + int(differs.argmax())
    return n
