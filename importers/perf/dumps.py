"""Map: the jitdumps that a recording maps, and rows of the trace's tables by dump.

A dump is known by its name and its process: in containers, the dumps of several processes have one name. All is found
in one pass: recordings of a whole machine have many processes, each with a dump of its own."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np

from traceferry.importers.perf.mappings import memory_without_files
from traceferry.importers.perf.programs import Programs
from traceferry.importers.perf.recording import DUMP, Comm, Fork, Mmap, Recording, Task
from traceferry.model import Array, TraceBuilder, rows_by_key
from traceferry.reading import MappedFile

NO_ROWS = np.zeros(0, np.int64)
NO_MEMORY = np.zeros((0, 2), np.uint64)

# The name of a dump, and the process that it is of.
Key = tuple[str, int]


def dump_name(mapped: Mmap) -> str:
    """ "" where no dump is mapped."""
    name = Path(mapped.path).name if "jit-" in mapped.path else ""
    return name if DUMP.fullmatch(name) else ""


def mapped_dumps(recordings: Sequence[Recording]) -> list[MappedFile]:
    """Returns the dumps that processes mapped, each process with each of its dumps once, in the order of the
    recordings."""
    maps = [mapped for recording in recordings for mapped in recording.maps if dump_name(mapped)]
    # By path, process and file: the first mapping.
    first: dict[tuple[str, int, bytes], Mmap] = {}
    n_of_name: dict[str, int] = {}
    files_at: dict[str, dict[bytes, int]] = {}
    for mapped in maps:
        files = files_at.setdefault(mapped.path, {})
        files.setdefault(mapped.file, len(files))
        if first.setdefault((mapped.path, mapped.pid, mapped.file), mapped) is mapped:
            n_of_name[dump_name(mapped)] = n_of_name.get(dump_name(mapped), 0) + 1
    shared = [mapped for mapped in first.values() if n_of_name[dump_name(mapped)] > 1]
    memory = _memory_of({mapped.pid for mapped in shared}, recordings)
    begun = _programs_begun({mapped.pid for mapped in first.values()}, recordings)
    return [
        MappedFile(
            path, pid, files_at[path][file], mapped.ts, memory.get(pid, NO_MEMORY), bisect_right(begun[pid], mapped.ts)
        )
        for (path, pid, file), mapped in first.items()
    ]


def _programs_begun(pids: Collection[int], recordings: Sequence[Recording]) -> dict[int, list[int]]:
    """Returns when each of these processes began to run another program, rising: what had its number before ended
    then."""
    begun: dict[int, list[int]] = {pid: [] for pid in pids}
    for recording in recordings if pids else ():
        for task in recording.tasks:
            if task.pid in begun and ((isinstance(task, Comm) and task.is_exec) or _begins_process(task)):
                begun[task.pid].append(task.ts)
    return {pid: sorted(times) for pid, times in begun.items()}


def _begins_process(task: Task) -> bool:
    return isinstance(task, Fork) and task.pid != task.ppid and not task.is_synthesised


def _memory_of(pids: Collection[int], recordings: Sequence[Recording]) -> dict[int, Array]:
    """Returns where these processes had executable memory of no file."""
    maps: dict[int, list[Mmap]] = {pid: [] for pid in pids}
    for recording in recordings if pids else ():
        for mapped in recording.maps:
            if mapped.pid in maps and mapped.is_exec:
                maps[mapped.pid].append(mapped)
    return {pid: memory_without_files(mine) for pid, mine in maps.items()}


def dumps_by_program(recording: Recording, programs: Programs, known: Collection[Key]) -> dict[int, set[Key]]:
    """Returns the dumps that each program maps, by its number. known: all dumps. A process that had mapped another's
    dump when the recording began is a fork of it, of which nothing else tells."""
    found: dict[int, set[Key]] = {}
    if not known:
        return found
    maps = [mapped for mapped in recording.maps if dump_name(mapped)]
    owners: dict[tuple[str, bytes], set[Key]] = {}
    for mapped in maps:
        if (key := (dump_name(mapped), mapped.pid)) in known:
            owners.setdefault((mapped.path, mapped.file), set()).add(key)
    for mapped in maps:
        key = dump_name(mapped), mapped.pid
        program = programs.at(mapped.pid, mapped.ts)
        if program is not None:
            inherited = owners.get((mapped.path, mapped.file), set()) if mapped.ts == 0 else set()
            found.setdefault(program.number, set()).update({key} if key in known else inherited)
    return found


def code_by_dump(trace: TraceBuilder, code: Array | slice = slice(None)) -> dict[Key, Array]:
    """Returns, by dump, the indices (int64, rising) of what it has among these rows of the trace's code: a jitted
    symbol's library is its dump."""
    found: dict[Key, Array] = {}
    libs, pids = trace.symbols["lib"][trace.code["symbol"][code]], trace.code["pid"][code]
    for number, rows in rows_by_key(libs.astype(np.int64) << 32 | pids).items():
        key = trace.strings[int(trace.libs["name"][number >> 32])], number & 0xFFFFFFFF
        found[key] = np.sort(np.concatenate((found[key], rows))) if key in found else rows
    return found
