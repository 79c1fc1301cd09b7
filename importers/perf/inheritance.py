"""Map: the threads that a recording lacks, since its events do not follow those that a thread starts.

Facts: perf_event_open(2), attr.inherit. perf record leaves that out with -i and --per-thread; of events that are read
as a group (:S) before perf 6.13, and on Linux before 6.12 (7e8b255650fc allows both together); and of recordings of
processors (-a, -C), which have every thread that runs there.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from traceferry.common.recorder import command_of
from traceferry.importers.perf._records import SampleType
from traceferry.importers.perf.off_cpu import is_off_cpu
from traceferry.importers.perf.recording import Event, Exit, Fork, Recording
from traceferry.model import Array, distinct

OF_PROCESSORS = ("-a", "-C", "-G")


class NotFollowed(NamedTuple):
    """tids: the threads that were started while it was recorded, and that events do not follow; events: those events;
    is_all: whether they are all that was recorded, so that nothing is known of these threads."""

    tids: frozenset[int]
    events: tuple[Event, ...]
    is_all: bool


NOBODY = NotFollowed(frozenset(), (), False)


def not_followed(recording: Recording) -> NotFollowed:
    """Returns the threads that a recording lacks, NOBODY where it has all or nothing tells."""
    counted = [event for event in recording.events if not event.is_dummy and not is_off_cpu(event)]
    staying = tuple(event for event in counted if "inherit" not in event.attr.flags)
    if not staying or _is_of_processors(recording):
        return NOBODY
    # What an older perf found running as it began, it tells of at the time 0.
    is_timed = bool(recording.events[0].sample_type & SampleType.TIME)
    forks = (task for task in recording.tasks if isinstance(task, Fork) and not task.is_synthesised)
    started = {task.tid for task in forks if task.ts > 0 or not is_timed}
    seen = _sampled(recording, staying)
    is_all = len(staying) == len(counted)
    if is_all:
        seen |= set(distinct(recording.switches.tid).tolist())
        seen |= {task.tid for task in recording.tasks if isinstance(task, Exit)}
    # What has one of these threads, or an idle processor, has them all.
    return NOBODY if not started or started & seen or 0 in seen else NotFollowed(frozenset(started), staying, is_all)


def _is_of_processors(recording: Recording) -> bool:
    command = command_of(shlex.join(recording.features.cmdline))
    return command is not None and any(command.has(option) for option in OF_PROCESSORS)


def _sampled(recording: Recording, events: Sequence[Event]) -> set[int]:
    samples, has_one = recording.samples, np.zeros(len(recording.events), bool)
    has_one[[event.index for event in events]] = True
    tids: Array = distinct(samples.tid[has_one[samples.event]])
    return set(tids.tolist())
