"""A forked child writes its copies of its parent's buffers too, and continues in its copy of the forking thread's
buffer.

That copy still names the parent as its process. Where the files of both are given, what is the same in both is the
parent's, and what follows it in the child's file is the child's. Which file is whose is told by buffers that a process
began after the fork: these name it. Without them it is guessed from the last records, and the report says so.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence, Set
from functools import cmp_to_key
from pathlib import Path
from typing import NamedTuple

import numpy as np

from traceferry.importers.xray.decode import SCRATCH, Buffer, Columns, decode_pieces, scan_buffer
from traceferry.importers.xray.fdr import FdrFile
from traceferry.importers.xray.layout import Function, Metadata

Identity = tuple[int, int, int]  # pid, tid, first TSC
PIECE = 1 << 16


def separate(files: Sequence[FdrFile]) -> None:
    """Takes out of each file the buffers, or the beginnings of buffers, that an earlier process wrote first."""
    for file in files:
        _drop_repeated(file)
    shared = _shared(files)
    next_pid = 1 + max((max(b.pid or 0, b.tid or 0) for file in files for b in file.buffers), default=0)
    for related in _related(len(files), shared):
        forks = _Forks(files, shared, related)
        pids: dict[int, int] = {}
        for pid, ranked, is_certain in forks.processes():
            guessed = set() if is_certain else {ranked[0]}
            for number in ranked:
                is_own = number == ranked[0]
                taken = forks.take_out(number, pid if is_own else None, pids.keys(), set(ranked[1:]))
                if is_own or not taken.rests:
                    pids[number] = pid
                else:
                    pids[number], next_pid = next_pid, next_pid + 1
                    files[number].problems.add("fork_pid_unknown", 1, taken.rests[0].begin, f"{pids[number]}")
                    # One process that is not named forked another, or the other way round.
                    guessed |= taken.before
                for rest in taken.rests:
                    # The thread that forks is the child's main thread.
                    rest.pid = rest.tid = pids[number]
            for number in sorted(guessed):
                detail = f"process {pids[number]} is {Path(files[number].name).name}"
                files[number].problems.add("fork_guessed", detail=detail)


# ---------------------------------------------------------------- copies of buffers


class _Copies(NamedTuple):
    """The copies of one buffer in several files. of_file: by the file's number; ordered: these numbers, by the bytes of
    the copies; n_common: for each in this order, how many bytes it has in common with the one before it."""

    of_file: dict[int, Buffer]
    ordered: list[int]
    n_common: list[int]

    @classmethod
    def of(cls, files: Sequence[FdrFile], of_file: dict[int, Buffer]) -> _Copies:
        views = {number: files[number].data[buffer.begin : buffer.end] for number, buffer in of_file.items()}
        known: dict[tuple[int, int], int] = {}

        def common(a: int, b: int) -> int:
            if (a, b) not in known:
                known[a, b] = known[b, a] = _common_prefix(views[a], views[b])
            return known[a, b]

        def compared(a: int, b: int) -> int:
            n = common(a, b)
            if n == min(len(views[a]), len(views[b])):
                return len(views[a]) - len(views[b])
            return views[a][n] - views[b][n]

        ordered = sorted(views, key=cmp_to_key(compared))
        return cls(of_file, ordered, [0, *(common(a, b) for a, b in itertools.pairwise(ordered))])

    def most_common(self, number: int, others: Set[int]) -> tuple[int, int] | None:
        """Returns how many bytes a copy has in common with that of another file at most, and this file's number."""
        at = self.ordered.index(number)
        before = zip(self.n_common[at:0:-1], self.ordered[at - 1 :: -1], strict=False)
        after = zip(self.n_common[at + 1 :], self.ordered[at + 1 :], strict=True)
        found = []
        for side in (before, after):
            least = self.of_file[number].size
            for n, other in side:
                least = min(least, n)
                if other in others:
                    found.append((least, other))
                    break
        return max(found, default=None)


def _identity(buffer: Buffer) -> Identity | None:
    if buffer.pid is None or buffer.tid is None or buffer.first_tsc is None:
        return None
    return buffer.pid, buffer.tid, buffer.first_tsc


def _drop_repeated(file: FdrFile) -> None:
    """A child can write a buffer twice: the longest is kept."""
    longest: dict[Identity, Buffer] = {}
    for buffer in file.buffers:
        identity = _identity(buffer)
        if identity is not None and (identity not in longest or longest[identity].size < buffer.size):
            longest[identity] = buffer
    kept = [b for b in file.buffers if (identity := _identity(b)) is None or longest[identity] is b]
    if len(kept) < len(file.buffers):
        dropped = next(b for b in file.buffers if (identity := _identity(b)) and longest[identity] is not b)
        file.problems.add("duplicate_buffer", len(file.buffers) - len(kept), dropped.begin)
        file.buffers = kept


def _shared(files: Sequence[FdrFile]) -> dict[Identity, _Copies]:
    found: dict[Identity, dict[int, Buffer]] = {}
    for number, file in enumerate(files):
        for buffer in file.buffers:
            identity = _identity(buffer)
            if identity is not None:
                found.setdefault(identity, {})[number] = buffer
    return {identity: _Copies.of(files, of_file) for identity, of_file in found.items() if len(of_file) > 1}


def _related(n_files: int, shared: dict[Identity, _Copies]) -> list[list[int]]:
    """Returns the numbers of files that have buffers in common, in groups."""
    group_of = {number: [number] for number in range(n_files)}
    for copies in shared.values():
        first, *rest = copies.of_file
        for number in rest:
            group, other = group_of[first], group_of[number]
            if group is not other:
                group += other
                group_of.update(dict.fromkeys(other, group))
    return [sorted(group) for number, group in group_of.items() if group[0] == number and len(group) > 1]


# ---------------------------------------------------------------- who is who


class _LastRecords(NamedTuple):
    """The records of a file behind its last fork. The likeliest parent's are the largest: it returns from calls that
    were open at the fork, as a child that exits does not; or it only waits; or it ends last, as one that waits does."""

    n_left: int
    has_none: bool
    last_tick: int


class _Taken(NamedTuple):
    """rests: what a file goes on with behind what others hold, too; before: the files of unnamed processes with which
    it has more in common than with a named one's."""

    rests: list[Buffer]
    before: set[int]


class _Forks:
    """Files of processes that forked one another, which have buffers in common."""

    def __init__(self, files: Sequence[FdrFile], shared: dict[Identity, _Copies], related: Sequence[int]) -> None:
        self._files, self._related = files, related
        self._shared = {identity: copies for identity, copies in shared.items() if copies.ordered[0] in related}

    def processes(self) -> Iterator[tuple[int, list[int], bool]]:
        """Yields, parents first, a pid that buffers name, the files in which it is the last that they name, its own
        first, then those of forks of it that began no buffer; and whether the first is certainly its own."""
        pids = {number: {b.pid for b in self._files[number].buffers if b.pid is not None} for number in self._related}
        n_files = Counter(pid for of_file in pids.values() for pid in of_file)
        # A process is named in its own file and in those of its descendants, which have larger numbers.
        order = sorted(n_files, key=lambda pid: (-n_files[pid], pid))
        place = {pid: nth for nth, pid in enumerate(order)}
        groups: dict[int, list[int]] = {}
        for number in self._related:
            groups.setdefault(max(pids[number], key=place.__getitem__), []).append(number)
        for pid in order:
            if pid in groups:
                yield pid, *self._ranked(pid, groups[pid])

    def _ranked(self, pid: int, group: list[int]) -> tuple[list[int], bool]:
        if len(group) == 1:
            return group, True
        certain = [number for number in group if self._goes_on(pid, number, set(group))]
        records = {number: self._last_records(number, set(group)) for number in group}
        ranked = sorted(group, key=lambda number: (number in certain, records[number]), reverse=True)
        return ranked, len(certain) == 1 or all(last.has_none for last in records.values())

    def _goes_on(self, pid: int, number: int, group: set[int]) -> bool:
        """Whether a file alone has a buffer of the process with records behind a fork: a child has none, since only
        the thread that forks goes on there."""
        file, others = self._files[number], group - {number}
        forked = [
            _parts(file, copies.of_file[number], found[0])[0].last_tick
            for copies in self._forked(number)
            if (found := copies.most_common(number, others)) is not None
        ]
        if not forked:
            return False
        own = (b for b in file.buffers if b.pid == pid and not others & self._files_with(b))
        return any(buffer.max_tick > min(forked) for buffer in own)

    def _files_with(self, buffer: Buffer) -> Set[int]:
        identity = _identity(buffer)
        copies = self._shared.get(identity) if identity is not None else None
        return copies.of_file.keys() if copies is not None else set()

    def _forked(self, number: int) -> Iterator[_Copies]:
        """Yields the copies of buffers in which the file's copy differs from others."""
        for copies in self._shared.values():
            if number in copies.of_file:
                sizes = {copies.of_file[other].size for other in copies.ordered}
                if len(sizes) > 1 or min(copies.n_common[1:]) < min(sizes):
                    yield copies

    def _last_records(self, number: int, group: set[int]) -> _LastRecords:
        file, n_left, has_none = self._files[number], 0, True
        for copies in self._forked(number):
            found = copies.most_common(number, group - {number})
            rest = _parts(file, copies.of_file[number], found[0])[1] if found is not None else None
            if rest is not None:
                n_left, has_none = max(n_left, _n_left(file, rest)), False
        return _LastRecords(n_left, has_none, max((b.max_tick for b in file.buffers), default=-1))

    def take_out(self, number: int, pid: int | None, done: Set[int], unnamed: Set[int]) -> _Taken:
        """Takes out of a file what those files hold that are done, and puts what follows it in the same buffers in
        their place. pid: of the file's process, None where no buffer names it; unnamed: files of such processes."""
        file, kept = self._files[number], list[Buffer]()
        taken = _Taken([], set())
        for buffer in file.buffers:
            identity = _identity(buffer)
            copies = self._shared.get(identity) if identity is not None else None
            found = copies.most_common(number, done) if copies is not None else None
            if copies is not None and found is not None:
                file.problems.add("duplicate_buffer", 1, buffer.begin)
                common, rest = _parts(file, buffer, found[0])
                named = copies.most_common(number, done - unnamed)
                # Records that differ can begin with the same bytes.
                if named is None or _parts(file, buffer, named[0])[0].stopped_at < common.stopped_at:
                    taken.before.add(found[1])
            elif copies is not None and pid is not None and pid != buffer.pid:
                # The file of the process that began the buffer is not there.
                common, rest = _parts(file, buffer, min(copies.n_common[1:]))
                kept.append(common if rest is not None else buffer)
            else:
                common, rest = buffer, None
                kept.append(buffer)
            if rest is not None:
                rest.before = [*_earlier(file, buffer), common]
                kept.append(rest)
                taken.rests.append(rest)
        file.buffers = kept
        return taken


def _earlier(file: FdrFile, buffer: Buffer) -> list[Buffer]:
    """Returns the buffers of the same thread that the file has of before."""
    start, same = buffer.first_tsc or 0, (buffer.pid, buffer.tid)
    earlier = [(b.first_tsc, nth, b) for nth, b in enumerate(file.buffers) if (b.pid, b.tid) == same]
    return [b for first_tsc, _, b in sorted(earlier, key=lambda one: (one[0] or 0, one[1])) if (first_tsc or 0) < start]


# ---------------------------------------------------------------- parts of a buffer


def _parts(file: FdrFile, buffer: Buffer, n_common: int) -> tuple[Buffer, Buffer | None]:
    """Returns as buffers of their own the records in so many first bytes, which another copy also has, and what follows
    them; None where nothing does."""
    scratch = Columns.empty(SCRATCH, SCRATCH)
    common = Buffer(buffer.begin, buffer.begin + n_common, base_tick=buffer.base_tick)
    scan_buffer(file.data, file.header, common, file.ids, scratch)
    event_at = _cut_event(file, common)
    if event_at is not None:
        # The first difference lies in an event's payload: the event is the child's.
        common = Buffer(buffer.begin, event_at, base_tick=buffer.base_tick)
        scan_buffer(file.data, file.header, common, file.ids, scratch)
    if buffer.begin + n_common >= buffer.end:
        return common, None
    common.end = common.stopped_at
    rest = Buffer(common.end, buffer.end, base_tick=common.last_tick, truncated=buffer.truncated)
    scan_buffer(file.data, file.header, rest, file.ids, scratch)
    rest.first_tsc = common.last_tick
    return common, rest if rest.n_rows or rest.n_aux else None


def _n_left(file: FdrFile, rest: Buffer) -> int:
    """Returns how many of the calls that were open before its first record it returns from."""
    n_left = depth = 0
    enters = file.ids.kinds[[Function.ENTER, Function.ENTER_ARG]]
    for columns in decode_pieces(file.data, file.header, [rest], file.ids, SCRATCH):
        if len(columns.kind):
            depths = depth + np.cumsum(np.where(np.isin(columns.kind, enters), 1, -1))
            n_left, depth = max(n_left, -int(depths.min())), int(depths[-1])
    return n_left


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
