"""How far the engine goes: many recordings on many workers that only sleep: run by `make fleet-study`.

The engine, the plan and Dask's scheduler are the real ones; a worker is a thread of this process, which sleeps as long
as a recording takes and hands back what a task hands back. Nothing is read or written. Prints what scheduler and client
cost, and the first limit: how many recordings a second one scheduler can hand out.
"""

from __future__ import annotations

import argparse
import resource
import time
from typing import Any

from common import MB

from traceferry.apps.fleet.engine import Counts, Engine
from traceferry.apps.fleet.inputs import Found, Recording
from traceferry.apps.fleet.plan import plan
from traceferry.apps.fleet.run import MOST_IN_LEAF
from traceferry.apps.fleet.tasks import Done, Place, leaf
from traceferry.apps.fleet.work import Aggregation, Reading

# What the workers of this process would cost it, and those of other machines do not.
SETTINGS = {
    "logging": {"distributed": "critical", "distributed.worker": "critical"},
    "distributed.admin.tick.interval": "10s",
    "distributed.admin.system-monitor.interval": "10s",
    "distributed.worker.profile.enabled": False,
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
}


def slept(seconds: float) -> Done:
    time.sleep(seconds)
    return Done("part")


class Sleeping(Engine):
    """seconds: for a recording; merging: for a part or file."""

    seconds = 0.0
    merging = 0.0

    async def call(self, priority: int, *task: Any) -> Done:
        seconds = len(task[-1]) * self.seconds if task[0] is leaf else self.merging
        return await super().call(priority, slept, seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description="Simulates many recordings on many workers.")
    parser.add_argument("--recordings", type=int, default=100_000)
    parser.add_argument("--workers", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=0.3, help="for one recording (default: 0.3)")
    parser.add_argument("--merging", type=float, default=0.1, help="for merging parts (default: 0.1)")
    arguments = parser.parse_args()
    before = peak()
    found = Found(
        ("commit", "host"),
        tuple(
            Recording((f"s3://perf/c{nth % 50}/{nth}.data",), (f"c{nth % 50}", str(nth)), 50 * MB, f"e{nth}", "")
            for nth in range(arguments.recordings)
        ),
    )
    listed = peak()
    import dask
    from distributed import Client, LocalCluster

    Sleeping.seconds, Sleeping.merging = arguments.seconds, arguments.merging
    with (
        dask.config.set(SETTINGS),
        LocalCluster(
            n_workers=arguments.workers, threads_per_worker=1, processes=False, dashboard_address=None, memory_limit=0
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        started, cpu = time.monotonic(), time.process_time()
        counts: list[Counts] = []
        engine = Sleeping(
            client, Aggregation(Reading(), ()), Place("/nowhere", ("commit",), found.labels), counts.append
        )
        engine.run(plan(found, ("commit",), "", MOST_IN_LEAF), resume=False)
        wall, used = time.monotonic() - started, time.process_time() - cpu
    ideal = arguments.recordings * arguments.seconds / arguments.workers
    print(f"{arguments.recordings} recordings, {arguments.workers} workers, {arguments.seconds} s each")
    print(f"took {wall:.0f} s; {ideal:.0f} s would be ideal: {ideal / wall:.0%} of the workers' time is used")
    print(
        f"client, scheduler and the sleeping workers: {used:.1f} s of CPU, {1e3 * used / arguments.recordings:.2f} ms "
        f"for each recording: one scheduler can hand out {arguments.recordings / used:.0f} recordings/s"
    )
    print(f"memory: {before / MB:.0f} MB at first, {listed / MB:.0f} with the recordings, {peak() / MB:.0f} at most")
    assert counts[-1].done == arguments.recordings


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    main()
