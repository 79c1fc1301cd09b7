"""A whole run: recordings are found, the plan is made and carried out, and what is left over is removed."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from traceferry.apps.fleet import storage
from traceferry.apps.fleet.engine import Counts, Engine, cluster
from traceferry.apps.fleet.inputs import LABEL, Found, Recording
from traceferry.apps.fleet.plan import key_of, plan
from traceferry.apps.fleet.tables import COLUMNS, RECORDINGS
from traceferry.apps.fleet.tasks import Place
from traceferry.apps.fleet.work import Aggregation, Conversion, Work
from traceferry.common.errors import UsageError
from traceferry.common.shown_text import shown
from traceferry.common.units import format_duration

# Recordings of a leaf, at most, unless the user says so.
MOST_IN_LEAF = 32
LEAVES_PER_WORKER = 8
LOG_EVERY_S = 30.0
IGNORES_CASE = sys.platform in ("win32", "darwin")


@dataclass(frozen=True)
class Pool:
    """workers: processes on this machine; memory: of each, as 4GiB or auto; scheduler: the address of a cluster that
    runs already, which is used instead."""

    workers: int
    memory: str = "auto"
    scheduler: str | None = None


def run(
    found: Found, by: Sequence[str], work: Work, output: str, pool: Pool, *, leaf_size: int | None = None,
    resume: bool = False, quiet: bool = False,
) -> Counts:  # fmt: skip
    """Does the work for all recordings; the output gets the tables. Raises UsageError if the output has some already
    and resume is not set."""
    unknown = [name for name in by if name not in found.labels]
    if unknown:
        known = ", ".join(found.labels) or "none"
        raise UsageError(f"--by {','.join(unknown)}: no such label; the inputs have: {known}")
    taken = [name for name in found.labels if any(name in columns for columns in COLUMNS.values())]
    if taken:
        raise UsageError(f"a label must not be called {taken[0]}: a column of the tables is")
    output = storage.absolute(output)
    if not resume and storage.names_in(storage.joined(output, RECORDINGS)):
        raise UsageError(f"{output}: holds the results of an earlier run; --resume continues or updates it")
    if isinstance(work, Aggregation | Conversion):
        found = _with_symbols(found, work.reading.symbols)
    if isinstance(work, Conversion):
        _check_outputs(work, found)
        # Where a recording's file is, is a part of what is made of it.
        of_outputs = (replace(each, identity=f"{each.identity} {each.path}") for each in found.recordings)
        found = replace(found, recordings=tuple(of_outputs))
    place = Place(output, tuple(by), found.labels)
    size = leaf_size or _leaf_size(len(found.recordings), pool.workers)
    shards = plan(found, by, work.description, size)
    with cluster(pool.workers, pool.memory, pool.scheduler) as client, Meter(len(found.recordings), quiet) as meter:
        engine = Engine(client, work, place, meter)
        engine.run(shards, resume)
        engine.clean(work.tables, keep_parts=resume)
    return engine.counts


def _leaf_size(n_recordings: int, workers: int) -> int:
    """A power of two, so that a few more recordings leave it as it was."""
    wanted = max(n_recordings // (LEAVES_PER_WORKER * max(workers, 1)), 1)
    return int(min(1 << (wanted.bit_length() - 1), MOST_IN_LEAF))


def _with_symbols(found: Found, symbols: Sequence[str]) -> Found:
    """Returns the recordings, whose identities change with the symbols that their labels choose."""
    texts = [text for text in symbols if LABEL.search(text)]
    if not texts:
        return found
    identities = cache(storage.identities)
    recordings = []
    for recording in found.recordings:
        of_label = dict(zip(found.labels, recording.labels, strict=True))
        urls = [LABEL.sub(lambda label: of_label[label[1]], text) for text in texts]  # noqa: B023 - used at once
        identity = f"{recording.identity} symbols:{key_of([identities(url) for url in urls])}"
        recordings.append(replace(recording, identity=identity))
    return replace(found, recordings=tuple(recordings))


def _check_outputs(work: Conversion, found: Found) -> None:
    """Raises UsageError for recordings of which one file would replace the other's, also where names in capitals are
    the same; and for a recording of which different labels make different files."""
    of: dict[str, Recording] = {}
    for recording in found.recordings:
        output = work.output_of(recording)
        other = of.setdefault(output.casefold() if IGNORES_CASE else output, recording)
        if other.key != recording.key:
            both = f"{other.urls[0]} and {recording.urls[0]}"
            raise UsageError(f"{both} would both become {output}: name a folder or a pattern that has both")
        if other is not recording and any(LABEL.search(text) for text in work.reading.symbols):
            raise UsageError(f"{recording.urls[0]}: has several labels, with symbols of each: which become {output}?")


class Meter:
    """Shows how far a run is: a bar on a terminal, else a line each half minute."""

    def __init__(self, total: int, quiet: bool) -> None:
        self._total, self._quiet = total, quiet
        self._bar: Any = None
        self._started = self._said = time.monotonic()

    def __enter__(self) -> Meter:
        if not self._quiet and sys.stderr.isatty():
            from tqdm import tqdm

            self._bar = tqdm(total=self._total, unit=" recordings", leave=False)
        return self

    def __call__(self, counts: Counts) -> None:
        if self._bar is not None:
            self._bar.n = counts.done
            self._bar.set_postfix_str(f"{counts.failed} failed", refresh=False)
            self._bar.update(0)
        elif not self._quiet and time.monotonic() - self._said >= LOG_EVERY_S:
            self._said = time.monotonic()
            print(shown(self._line(counts)), file=sys.stderr, flush=True)

    def _line(self, counts: Counts) -> str:
        elapsed = time.monotonic() - self._started
        rate = (counts.done - counts.reused) / elapsed
        left = format_duration(round((self._total - counts.done) / rate * 1e9)) if rate else "unknown"
        return f"{counts.done} of {self._total} recordings, {rate:.1f}/s, {left} left, {counts.failed} failed"

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()
