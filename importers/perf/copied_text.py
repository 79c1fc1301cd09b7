"""Map: code that a program has copied out of its file into huge pages, at the addresses where it was.

Node (--use-largepages), PHP (opcache.huge_code_pages), HHVM, BOLT's --hugify and libraries for it do so at their start:
they map memory of no file over their own text, in whole huge pages. perf reports that memory, or, of a program that
already ran, what lies between the two ends of the text that were left as they are.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from traceferry.importers.perf.mappings import content_of, is_anonymous
from traceferry.importers.perf.recording import Comm, Mmap, Task

HUGE_PAGE = 2 << 20


def with_copied_text(maps: Sequence[Mmap], tasks: Sequence[Task]) -> tuple[list[Mmap], list[Mmap]]:
    """Returns the mappings by time, those of copied text as mappings of their files, and these alone."""
    found, copied = list(maps), []
    pids = {mapped.pid for mapped in maps if _may_be_copied(mapped)}
    if not pids:
        return found, []
    of_pid: dict[int, list[int]] = {pid: [] for pid in pids}
    for nth, mapped in enumerate(maps):
        if mapped.is_exec and mapped.pid in pids:
            of_pid[mapped.pid].append(nth)
    executed: dict[int, list[int]] = {pid: [] for pid in pids}
    for task in tasks:
        if isinstance(task, Comm) and task.is_exec and task.pid in pids:
            executed[task.pid].append(task.ts)
    for pid, rows in of_pid.items():
        for place, nth in enumerate(rows):
            mapped = found[nth]
            if not _may_be_copied(mapped):
                continue
            begun = executed[pid][: bisect_right(executed[pid], mapped.ts)]
            earlier = [one for one in map(found.__getitem__, rows[:place]) if not begun or one.ts >= begun[-1]]
            later = map(found.__getitem__, rows[place + 1 :])
            file = _file_under(earlier, mapped) or _file_around(earlier, list(later), mapped)
            if file is not None:
                found[nth] = mapped._replace(
                    path=file.path, build_id=file.build_id, pgoff=file.pgoff + mapped.start - file.start
                )
                copied.append(found[nth])
    return found, copied


def _may_be_copied(mapped: Mmap) -> bool:
    return (
        mapped.is_exec
        and mapped.pid >= 0
        and mapped.length > 0
        and mapped.start % HUGE_PAGE == mapped.length % HUGE_PAGE == 0
        and is_anonymous(mapped)
    )


def _file_under(earlier: Sequence[Mmap], mapped: Mmap) -> Mmap | None:
    """Returns the file that was mapped where this is, if it was there alone."""
    end = mapped.start + mapped.length
    for one in reversed(earlier):
        if one.start < end and mapped.start < one.start + one.length:
            is_whole = one.start <= mapped.start and end <= one.start + one.length
            return one if is_whole and content_of(one) else None
    return None


def _file_around(earlier: Sequence[Mmap], later: Sequence[Mmap], mapped: Mmap) -> Mmap | None:
    """Returns the file of which parts were found in front of this and behind it."""
    before = next((one for one in reversed(earlier) if one.start + one.length == mapped.start), None)
    behind = next((one for one in later if one.start == mapped.start + mapped.length), None)
    is_one = before is not None and behind is not None and content_of(before) == content_of(behind)
    return before if is_one and before is not None and content_of(before) else None
