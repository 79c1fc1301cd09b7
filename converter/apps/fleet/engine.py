"""Runs a plan on a Dask cluster: a bounded number of tasks at a time, in the order of the files, so that neither client
nor scheduler grows with the number of recordings."""

from __future__ import annotations

import logging
import multiprocessing
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from tempfile import TemporaryDirectory
from typing import Any

import orjson

from traceferry import registry
from traceferry.apps.fleet import storage
from traceferry.apps.fleet.dataset import table_of
from traceferry.apps.fleet.inputs import Recording
from traceferry.apps.fleet.plan import Node, Shard, leaf_of
from traceferry.apps.fleet.tables import FACTS, LAST, file_name
from traceferry.apps.fleet.tasks import Done, Place, finish, leaf, lost_leaf, merge, part_name, retry_name
from traceferry.apps.fleet.work import PASSING, Work
from traceferry.common.errors import FormatError, UsageError

# Tasks that wait at the scheduler, for each worker.
TASKS_PER_WORKER = 3
ASK_EVERY_S = 5.0
# How many workers may end before a task is given up.
DEATHS = 3
# Windows cannot fork.
START_METHOD = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"


@contextmanager
def cluster(workers: int, memory: str, scheduler: str | None) -> Iterator[Any]:
    """A client: of the scheduler at an address, or of worker processes of this machine. memory: of each of those, as
    Dask has it."""
    import dask
    from distributed import Client, LocalCluster

    if scheduler is not None:
        try:
            client = Client(scheduler, set_as_default=False)
        except (OSError, ValueError) as error:
            raise UsageError(f"{scheduler}: no scheduler answers: {error}") from None
        with client:
            yield client
        return
    settings = {
        "distributed.scheduler.allowed-failures": DEATHS,
        # A kernel does not let other threads run: a worker may be silent while it reads a large recording.
        "distributed.scheduler.worker-ttl": None,
        # A worker that ends is started again; where that takes longer than this, the cluster would give up the place.
        "distributed.deploy.lost-worker-timeout": "1h",
        "distributed.worker.memory.target": False,
        "distributed.worker.memory.spill": False,
        "distributed.worker.memory.pause": False,
        "distributed.worker.multiprocessing-method": START_METHOD,
        # By default, a worker gives memory back after each step, to ask for it again in the next. A threshold that is
        # set keeps the other from growing, and the thread that works would have an arena of its own.
        "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": 1 << 27,
        "distributed.nanny.pre-spawn-environ.MALLOC_MMAP_THRESHOLD_": 1 << 25,
        "distributed.nanny.pre-spawn-environ.MALLOC_ARENA_MAX": 1,
        # What watches a worker costs as much as it tells: each look at the stack of its thread stops that.
        "distributed.worker.profile.enabled": False,
        "distributed.admin.tick.interval": "1s",
        "distributed.admin.tick.limit": "1h",
        "distributed.admin.system-monitor.interval": "5s",
    }
    with dask.config.set(settings), ExitStack() as kept:
        _preload()
        scratch = kept.enter_context(TemporaryDirectory(prefix="traceferry-"))
        try:
            local = LocalCluster(
                n_workers=workers, threads_per_worker=1, processes=True, memory_limit=memory, host="127.0.0.1",
                dashboard_address="127.0.0.1:0", local_directory=scratch, silence_logs=logging.CRITICAL,
            )  # fmt: skip
        except (RuntimeError, OSError, ValueError) as error:
            raise UsageError(f"{workers} workers with {memory} of memory cannot be started: {error}") from None
        yield kept.enter_context(Client(kept.enter_context(local), set_as_default=False))


def _preload() -> None:
    """Lets all workers be forks of one process that has imported what they need."""
    from distributed.utils import get_mp_context

    context = get_mp_context()
    if START_METHOD == "forkserver":
        importers = [f"traceferry.importers.{importer.name}" for importer in registry.IMPORTERS]
        context.set_forkserver_preload(["distributed", "traceferry.apps.fleet.tasks", *importers])


@dataclass
class Counts:
    """Numbers of recordings that are done. reused: of those whose results were there."""

    done: int = 0
    failed: int = 0
    reused: int = 0


@dataclass
class Step:
    """A part, or a file, that waits for its children. number: of the file, -1 is a part; is_alone: nothing else is
    given to the workers while it is made."""

    key: str
    parent: Step | None
    number: int = -1
    recordings: Sequence[Recording] = ()
    children: list[str] = field(default_factory=list)
    waits_for: int = 0
    is_alone: bool = False


class Engine:
    """One run. progress: called with the counts whenever they change."""

    def __init__(self, client: Any, work: Work, place: Place, progress: Callable[[Counts], None]) -> None:
        self.counts = Counts()
        self._client, self._work, self._place = client, work, place
        self._progress = progress
        self._running: dict[Any, Step] = {}
        self._ready: deque[Step] = deque()
        self._suspects: deque[Step] = deque()
        self._known: frozenset[str] = frozenset()
        # Keys of the parts that the files are made of, and of those that the next run must make again.
        self._used: set[str] = set()
        self._passing: set[str] = set()
        self._n_files = 0
        self._asked_at, self._n_threads = -ASK_EVERY_S, 0

    def run(self, shards: Iterator[Shard], resume: bool) -> None:
        """Makes the files of all shards. resume: with the parts and files that are there."""
        from distributed import as_completed

        if resume:
            self._known = frozenset(storage.names_in(self._place.parts))
        pending = as_completed(loop=self._client.loop)
        more = True
        while True:
            while len(self._running) < self._most_running():
                while more and not self._ready:
                    shard = next(shards, None)
                    more = shard is not None
                    if shard is not None:
                        self._begin(shard, resume)
                if not self._ready:
                    break
                self._submit(self._ready.popleft(), pending)
            if not self._running:
                if not self._suspects:
                    return
                self._submit(self._suspects.popleft(), pending)
            future = next(pending)
            step = self._running.pop(future.key)
            self._ended(step, future)
            del future

    def _most_running(self) -> int:
        """The number of workers changes in a cluster, but not often; to ask for it takes time."""
        if time.monotonic() - self._asked_at > ASK_EVERY_S:
            self._asked_at = time.monotonic()
            self._n_threads = sum(self._client.nthreads().values())
        return TASKS_PER_WORKER * max(self._n_threads, 1)

    # ------------------------------------------------------------ what is to do

    def _begin(self, shard: Shard, resume: bool) -> None:
        self._n_files = shard.number + 1
        if resume and self._is_whole(shard):
            for node in shard.parts:
                self._reuse(node)
            return
        self._make_of(Step(shard.key, None, shard.number), shard.parts)
        # The largest first: what is left at the end for some workers, while others have nothing, is small.
        self._ready = deque(sorted(self._ready, key=_n_bytes, reverse=True))

    def _is_whole(self, shard: Shard) -> bool:
        """Whether the files of that number are of this content, and nothing in them is worth another attempt."""
        try:
            table = table_of(self._place.output, LAST, file_name(shard.number), ["status"])
        except FormatError:
            return False
        facts = orjson.loads(table.schema.metadata[FACTS.encode()])
        return facts["key"] == shard.key and PASSING.isdisjoint(table.column("status").to_pylist())

    def _reuse(self, node: Node) -> None:
        self._used.add(node.key)
        for child in node.children:
            self._reuse(child)
        n = len(node.recordings)
        self.counts.done += n
        self.counts.reused += n
        self._progress(self.counts)

    def _add(self, node: Node, parent: Step) -> None:
        if part_name(node.key) in self._known and retry_name(node.key) not in self._known:
            return self._reuse(node)
        self._used.add(node.key)
        parent.waits_for += 1
        self._make_of(Step(node.key, parent, recordings=node.recordings), node.children)

    def _make_of(self, step: Step, parts: Sequence[Node]) -> None:
        """Plans a step: first the parts that it is made of."""
        step.children = [node.key for node in parts]
        for node in parts:
            self._add(node, step)
        if not step.waits_for:
            self._ready.append(step)

    def task_of(self, step: Step) -> tuple[Any, ...]:
        """The function that a worker calls, and its arguments."""
        place = self._place
        if step.number >= 0:
            return finish, self._work, place, step.number, step.key, step.children
        if step.children:
            return merge, place, step.key, step.children, not self._passing.isdisjoint(step.children)
        return leaf, self._work, place, step.key, step.recordings

    def _submit(self, step: Step, pending: Any) -> None:
        task = self.task_of(step)
        name = f"{task[0].__name__}-alone" if step.is_alone else task[0].__name__
        future = self._client.submit(*task, key=f"{name}-{step.key}", pure=False)
        self._running[future.key] = step
        pending.add(future)

    # ------------------------------------------------------------ what has ended

    def _ended(self, step: Step, future: Any) -> None:
        from distributed.scheduler import KilledWorker

        error = future.exception()
        if isinstance(error, KilledWorker) and step.recordings:
            return self._divide(step)
        if isinstance(error, KilledWorker):
            raise UsageError("a worker was ended while it merged results: --worker-memory gives it more memory")
        if error is not None and storage.is_transient(error):
            raise UsageError(f"{self._place.output}: {error}") from None
        if error is not None:
            raise error
        self._count(step, future.result())

    def _count(self, step: Step, done: Done) -> None:
        self.counts.done += done.n_recordings
        self.counts.failed += done.n_failed
        if done.is_passing:
            self._passing.add(step.key)
        self._progress(self.counts)
        parent = step.parent
        if parent is None:
            return
        parent.waits_for -= 1
        if not parent.waits_for:
            # Files first: then parts that wait are few.
            self._ready.appendleft(parent)

    def _divide(self, step: Step) -> None:
        """A recording has ended the workers that read it: each is read by itself. Where that ends workers, too, it is
        read once more while they have nothing else: Dask blames all that was given to a worker, also what it has not
        begun. Then the one that does it again is named."""
        if step.is_alone:
            return self._count(step, lost_leaf(self._place, step.key, step.recordings))
        alone = [list(of_one) for _, of_one in groupby(step.recordings, key=lambda each: each.key)]
        if len(alone) == 1:
            step.is_alone = True
            return self._suspects.append(step)
        place = self._place
        step.recordings = ()
        self._make_of(step, [leaf_of(each, place.by, place.labels, self._work.description) for each in alone])

    # ------------------------------------------------------------ afterwards

    def clean(self, tables: Sequence[str], keep_parts: bool) -> None:
        """Removes files of an earlier run beyond the last, and parts: all, or those that no other run could use."""
        for table in tables:
            folder = storage.joined(self._place.output, table)
            for name in storage.names_in(folder):
                number = name.removeprefix("part-").removesuffix(".parquet")
                if number.isdigit() and int(number) >= self._n_files:
                    storage.remove(storage.joined(folder, name))
        if not keep_parts:
            return storage.remove(self._place.parts)
        kept = {part_name(key) for key in self._used - self._passing}
        for name in storage.names_in(self._place.parts):
            if name not in kept:
                storage.remove(storage.joined(self._place.parts, name))


def _n_bytes(step: Step) -> int:
    return sum(max(recording.size, 0) for recording in step.recordings)
