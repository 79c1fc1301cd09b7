"""Map: whose code a dump is. Its header has the process's own number, which is another one than the recorder's in a
container, where each program is the first: then the process that mapped the dump tells, by what both know."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile
from pathlib import PurePosixPath
from typing import NamedTuple

import numpy as np

from traceferry.common.report import Report
from traceferry.importers.jitdump.decode import Dump
from traceferry.importers.jitdump.layout import may_be_called
from traceferry.model import containing_interval
from traceferry.reading import MappedFile

# How many code objects of a dump are looked for in the memory of a process.
MAX_JUDGED = 256

# How well a dump suits a mapping, the best evidence first; and the numbers of both.
Match = tuple[tuple[bool, float, int, bool, int, int], int, int]


class Owner(NamedTuple):
    """The process of a dump. pid: as the recorder calls it; program: which of those that it ran, as `MappedFile` has
    it; name: of the dump, as it was recorded."""

    pid: int
    program: int
    name: str


def owners(dumps: Sequence[Dump], mapped: Sequence[MappedFile], report: Report) -> list[Owner]:
    """Returns whose each dump is; what no process mapped is of the one that its header names."""
    found = [Owner(dump.header.pid, program_of(dump.header.pid, mapped), dump.name) for dump in dumps]
    free_dumps, free_files = set(range(len(dumps))), set(range(len(mapped)))
    for _, dump, file in sorted(_matches(dumps, mapped), key=lambda match: match[0], reverse=True):
        if dump in free_dumps and file in free_files:
            owner = mapped[file]
            found[dump] = Owner(owner.pid, owner.program, PurePosixPath(owner.path).name)
            free_dumps.remove(dump)
            free_files.remove(file)
    _note_overwritten(mapped, free_files, report)
    return found


def program_of(pid: int, mapped: Sequence[MappedFile]) -> int:
    """Returns the program of a process of which nothing tells when it wrote: the one that mapped the first dump."""
    return next((file.program for file in mapped if file.pid == pid), 0)


def _matches(dumps: Sequence[Dump], mapped: Sequence[MappedFile]) -> Iterator[Match]:
    """Yields each dump with each mapping of its name; one that is called as none of them, of those that its process
    can have given it."""
    of_name: dict[str, list[int]] = {}
    for nth, file in enumerate(mapped):
        of_name.setdefault(PurePosixPath(file.path).name, []).append(nth)
    for nth, dump in enumerate(dumps):
        first_ts = dump.loads[0].ts if dump.loads else 0
        names = [dump.name] if dump.name in of_name else [one for one in of_name if may_be_called(dump.header, one)]
        for other in (other for name in names for other in of_name[name]):
            file = mapped[other]
            n_folders = _n_common_folders(dump.source.place, file.path)
            by_content = file.pid == dump.header.pid, _share_in_memory(dump, file), n_folders
            # A compiler maps its dump before it writes the first load. Of those that are alike, the last of each are of
            # one process, then those before.
            yield (*by_content, file.ts <= first_ts, file.ts, first_ts), nth, other


def _share_in_memory(dump: Dump, file: MappedFile) -> float:
    """Returns which part of the dump's code is in executable memory of the process."""
    loads = dump.loads[:: len(dump.loads) // MAX_JUDGED + 1]
    if not loads or not len(file.memory):
        return 0.0
    begin, end = file.memory.T
    addresses = np.array([load.address for load in loads], np.uint64)
    return float(np.mean(containing_interval(begin, end - begin, addresses) >= 0))


def _n_common_folders(path: str, recorded: str) -> int:
    """Returns how many of the folders next to the file are called the same."""
    folders = zip(*(reversed(PurePosixPath(one).parts[:-1]) for one in (path, recorded)), strict=False)
    return sum(1 for _ in takewhile(lambda names: names[0] == names[1], folders))


def _note_overwritten(mapped: Sequence[MappedFile], without: set[int], report: Report) -> None:
    """Reports mappings of one file by processes that all opened it, without a dump for each. without: numbers of
    mappings that are of no dump."""
    n_of_file: dict[tuple[str, int], int] = {}
    for file in mapped:
        n_of_file[file.path, file.file] = n_of_file.get((file.path, file.file), 0) + (file.ts > 0)
    for nth in sorted(without):
        file = mapped[nth]
        if file.ts > 0 and n_of_file[file.path, file.file] > 1:
            shown = f"{file.path} of process {file.pid}"
            report.note("dump_overwritten", where=shown, detail=shown)
