"""Map: the parts of a recording, as perf record --switch-output writes them. When perf begins one, it reads what the
program that it runs has mapped; of a program that is gone then, the parts before tell it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from traceferry.importers.perf.recording import Comm, Features, Mmap, Recording
from traceferry.model import distinct

IN_PARTS = "--switch-output"


def is_part(features: Features) -> bool:
    return any(word.startswith(IN_PARTS) for word in features.cmdline)


def add_earlier_maps(recordings: Sequence[Recording]) -> None:
    """Gives each part the mappings of earlier ones, of processes that it samples and of which perf read none in it."""
    parts = [one for one in recordings if is_part(one.features) and one.is_timed and len(one.samples)]
    parts.sort(key=lambda one: int(one.samples.ts[0]))
    for nth, part in enumerate(parts):
        earlier = [one for one in parts[:nth] if one.features.cmdline == part.features.cmdline]
        read = {mapped.pid for mapped in part.maps if mapped.ts == 0}
        lacking = [pid for pid in distinct(part.samples.pid).tolist() if pid not in read]
        added = [mapped for pid in lacking for one in earlier for mapped in _maps_of(pid, one)]
        if added:
            maps = sorted([*added, *part.maps], key=lambda mapped: mapped.ts)
            part.maps = [mapped._replace(order=order) for order, mapped in enumerate(maps)]


def _maps_of(pid: int, recording: Recording) -> Iterator[Mmap]:
    """Yields what a process has mapped since it began its last program, with the build ids of the files."""
    executed = [task.ts for task in recording.tasks if isinstance(task, Comm) and task.pid == pid and task.is_exec]
    begin = max(executed, default=0)
    for mapped in recording.maps:
        if mapped.pid == pid and mapped.ts >= begin:
            build_id = mapped.build_id or recording.features.build_ids.get(mapped.path, "")
            yield mapped._replace(build_id=build_id)
