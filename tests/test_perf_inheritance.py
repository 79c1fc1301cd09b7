"""perf: threads that a recording lacks, since its events do not follow those that a thread starts."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from builders.perf_data import DUMMY, PAGE_FAULTS, USUAL_FLAGS, PerfData
from support import lawful

from traceferry.files.source import Source
from traceferry.model import TraceBuilder
from traceferry.reading import ImportContext
from traceferry.registry import importer_named

TYPE = "IDENTIFIER|IP|TID|TIME|CPU|PERIOD"
STAYS = USUAL_FLAGS.replace("inherit ", "")
PID, FIRST, SECOND = 7, 8, 9


def loaded(data: PerfData) -> TraceBuilder:
    trace = TraceBuilder()
    source = Source("perf.data", memoryview(data.bytes()))
    importer_named("perf").module.read([source]).add_to(trace, ImportContext())
    trace.sort()
    return lawful(trace)


def recorded(flags: str = STAYS, others: str = STAYS, command: str = "perf record -g ./app") -> PerfData:
    """A program whose main thread is sampled, and starts two others. flags, others: of cpu-clock and of page-faults."""
    data = PerfData().event(sample_type=TYPE, flags=flags).event("dummy", config=DUMMY, sample_type=TYPE, flags=flags)
    data.event("page-faults", config=PAGE_FAULTS, sample_type=TYPE, flags=others)
    data.feature(CMDLINE=command.split()).comm(PID, PID, "app").sample(PID, PID)
    return data.fork(PID, FIRST, PID, PID).fork(PID, SECOND, PID, PID).sample(PID, PID)


@pytest.mark.parametrize(
    ("more", "n_missing", "tids"),
    [
        (lambda data: data, 2, [PID]),
        (lambda data: data.sample(PID, SECOND), 0, [PID, FIRST, SECOND]),
        (lambda data: data.sample(PID, SECOND, event=2), 0, [PID, FIRST, SECOND]),
        (lambda data: data.exit(PID, FIRST), 0, [PID, FIRST, SECOND]),
        (lambda data: data.switch(PID, FIRST, out=True), 0, [PID, FIRST, SECOND]),
        (lambda data: data.sample(0, 0), 0, [0, PID, FIRST, SECOND]),
    ],
    ids=["nothing more", "a sample", "a sample of another event", "its end", "its switch", "an idle processor"],
)
def test_threads_that_no_event_follows(more: Callable[[PerfData], PerfData], n_missing: int, tids: list[int]) -> None:
    trace = loaded(more(recorded()))
    assert sum(issue.count for issue in trace.report if issue.kind == "threads_not_recorded") == n_missing
    assert sorted(thread.tid for _, thread in trace.threads) == tids


@pytest.mark.parametrize(
    "data",
    [
        recorded(USUAL_FLAGS, USUAL_FLAGS),
        recorded(command="perf record -a ./app"),
        recorded(command="perf record -C 0 ./app"),
    ],
    ids=["they follow", "-a", "-C"],
)
def test_recordings_that_have_every_thread(data: PerfData) -> None:
    trace = loaded(data)
    assert not [issue for issue in trace.report if issue.kind == "threads_not_recorded"]
    assert sorted(thread.tid for _, thread in trace.threads) == [PID, FIRST, SECOND]


def test_an_event_that_does_not_follow_beside_one_that_does() -> None:
    trace = loaded(recorded(USUAL_FLAGS, STAYS).sample(PID, FIRST))
    (issue,) = (issue for issue in trace.report if issue.kind == "threads_not_recorded")
    assert (issue.count, issue.detail) == (2, "page-faults")
    assert sorted(thread.tid for _, thread in trace.threads) == [PID, FIRST, SECOND]


def test_threads_that_ran_when_an_older_perf_began() -> None:
    """It tells of them at the time 0, as of a fork."""
    data = PerfData().event(sample_type=TYPE, flags=STAYS).comm(PID, PID, "app", ts=0).fork(PID, FIRST, PID, PID, ts=0)
    trace = loaded(data.sample(PID, PID))
    assert not [issue for issue in trace.report if issue.kind == "threads_not_recorded"]
