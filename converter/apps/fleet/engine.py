"""Runs a plan on a Dask cluster."""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import groupby
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

import orjson
from distributed.scheduler import KilledWorker

from traceferry import registry
from traceferry.apps.fleet import storage
from traceferry.apps.fleet.dataset import table_of
from traceferry.apps.fleet.plan import Node, Shard, leaf_of
from traceferry.apps.fleet.tables import FACTS, LAST, file_name
from traceferry.apps.fleet.tasks import FINAL, Done, Place, finish, leaf, lost_leaf, merge
from traceferry.apps.fleet.work import PASSING, Work
from traceferry.common.errors import FormatError, UsageError

Part: TypeAlias = asyncio.Task[str | None]

# Leaves that Dask has at a time: more than one scheduler can keep workers busy with.
MOST_LEAVES = 2000
FIRST = 1 << 62  # a priority above the bytes of any leaf
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


class Engine:
    """One run. progress: called with the counts whenever they change.

    Each part is a coroutine that waits for the parts that it is made of; workers do what takes time. Leaves are begun
    in the order of the files, and a bounded number of them is with Dask at a time, so that neither client nor scheduler
    grows with the number of recordings.
    """

    def __init__(self, client: Any, work: Work, place: Place, progress: Callable[[Counts], None]) -> None:
        self.counts = Counts()
        self._client, self._work, self._place = client, work, place
        self._progress = progress
        # By their keys: names of the parts that are there; those that the files are made of; leaves that ended workers.
        self._parts: dict[str, str] = {}
        self._used: set[str] = set()
        self._suspects: set[str] = set()
        # Files that wait for suspects, and whether these are given to workers, one after the other.
        self._left: list[Shard] = []
        self._is_alone = False
        self._n_files = 0

    def run(self, shards: Iterable[Shard], resume: bool) -> None:
        """Makes the files of all shards. resume: with the parts and files that are there."""
        there = storage.names_in(self._place.parts) if resume else []
        self._parts = {name.removesuffix(FINAL): name for name in there if name.endswith(FINAL)}
        self._client.sync(self._run, shards, resume)

    async def _run(self, shards: Iterable[Shard], resume: bool) -> None:
        self._room = asyncio.Semaphore(MOST_LEAVES)
        try:
            await self._make(shards, resume)
            self._is_alone = True
            while self._left:
                left, self._left = self._left, []
                await self._make(left, resume=False)
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None

    async def _make(self, shards: Iterable[Shard], resume: bool) -> None:
        async with asyncio.TaskGroup() as self._tasks:
            for shard in shards:
                self._n_files = max(self._n_files, shard.number + 1)
                if resume and await asyncio.to_thread(self._is_whole, shard):
                    for node in shard.parts:
                        self._reuse(node)
                else:
                    self._tasks.create_task(self._file(shard, [await self._begin(node) for node in shard.parts]))

    def _is_whole(self, shard: Shard) -> bool:
        """Whether the files of that number are of this content, and nothing in them is worth another attempt."""
        try:
            table = table_of(self._place.output, LAST, file_name(shard.number), ["status"])
        except FormatError:
            return False
        facts = orjson.loads(table.schema.metadata[FACTS.encode()])
        return facts["key"] == shard.key and PASSING.isdisjoint(table.column("status").to_pylist())

    def _reuse(self, node: Node) -> None:
        for child in node.children:
            self._reuse(child)
        if node.key not in self._used:
            self._used.add(node.key)
            self.counts.reused += len(node.recordings)
            self._count(node)

    def _count(self, node: Node, n_failed: int = 0) -> None:
        self.counts.done += len(node.recordings)
        self.counts.failed += n_failed
        self._progress(self.counts)

    # ------------------------------------------------------------ what is made

    async def _begin(self, node: Node) -> Part:
        """Returns the task that makes a part, once there was room for its leaves. Its result is the part's name; None
        where it waits for a suspect."""
        children: list[Part] = []
        if node.key in self._parts:
            self._reuse(node)
        elif node.children:
            children = [await self._begin(child) for child in node.children]
        else:
            await self._room.acquire()
        part = self._tasks.create_task(self._part(node, children))
        if self._is_alone:
            await part
        return part

    async def _part(self, node: Node, children: Sequence[Part]) -> str | None:
        self._used.add(node.key)
        if node.key not in self._parts:
            await (self._merge(node, children) if children else self._read(node))
        return self._parts.get(node.key)

    async def _read(self, node: Node) -> None:
        """Makes a leaf. Recordings that have ended the workers that read them are each read by itself. One that ends
        workers, too, is read once more while they have nothing else: Dask blames all that was given to a worker, also
        what it has not begun. If it does it again, its row says so."""
        place, was_suspect = self._place, node.key in self._suspects
        of_each = [list(of_one) for _, of_one in groupby(node.recordings, key=lambda each: each.key)]
        try:
            if len(of_each) == 1 or not was_suspect:
                # The largest first: what is left at the end for some workers, while others have nothing, is small.
                size = sum(max(recording.size, 0) for recording in node.recordings)
                return self._has_read(node, await self.call(size, leaf, self._work, place, node.key, node.recordings))
        except KilledWorker:
            self._suspects.add(node.key)
        finally:
            self._room.release()
        if len(of_each) > 1:
            leaves = [leaf_of(each, place.by, place.labels, self._work.description) for each in of_each]
            await self._merge(node, [await self._begin(each) for each in leaves])
        elif was_suspect:
            self._has_read(node, await asyncio.to_thread(lost_leaf, place, node.key, node.recordings))

    def _has_read(self, node: Node, done: Done) -> None:
        self._parts[node.key] = done.part
        self._count(node, done.n_failed)

    async def _merge(self, node: Node, children: Sequence[Part]) -> None:
        names = [await child for child in children]
        if None not in names:
            self._parts[node.key] = (await self._merging(merge, self._place, node.key, names)).part

    async def _file(self, shard: Shard, parts: Sequence[Part]) -> None:
        names = [await part for part in parts]
        if None in names:
            self._left.append(shard)
        else:
            await self._merging(finish, self._work, self._place, shard.number, shard.key, names)

    async def _merging(self, *task: Any) -> Done:
        """Goes before leaves: then parts that wait are few."""
        try:
            return await self.call(FIRST, *task)
        except KilledWorker:
            message = "a worker was ended while it merged results: --worker-memory gives it more memory"
            raise UsageError(message) from None

    async def call(self, priority: int, *task: Any) -> Done:
        """task: the function that a worker calls, and its arguments."""
        try:
            done: Done = await self._client.submit(*task, pure=False, priority=priority)
        except Exception as error:
            if storage.is_transient(error):
                raise UsageError(f"{self._place.output}: {error}") from None
            raise
        return done

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
        kept = {f"{key}{FINAL}" for key in self._used}
        for name in storage.names_in(self._place.parts):
            if name not in kept:
                storage.remove(storage.joined(self._place.parts, name))
