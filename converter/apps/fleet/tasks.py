"""What workers do: leaves are read, parts are merged, files are written. All of it goes through the output's folder of
parts; only numbers come back."""

from __future__ import annotations

import gc
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from traceferry.analysis.totals.portable import Totals
from traceferry.apps.fleet import storage
from traceferry.apps.fleet.inputs import Recording
from traceferry.apps.fleet.parts import Share, joined, merged_parts, write_part
from traceferry.apps.fleet.tables import LAST, file_name, write_tables
from traceferry.apps.fleet.work import DONE, PASSING, Result, Work, killed, result_of
from traceferry.common.shown_text import encodable

PARTS = "_parts"
# How the name of a part ends: another run takes it as it is; it has recordings that are worth another attempt.
FINAL, RETRY = ".part", ".retry"


@dataclass(frozen=True)
class Place:
    """The place of results, and what they are called by. output: URL of a folder; by: names of the labels that the
    tables have, labels: of all."""

    output: str
    by: tuple[str, ...]
    labels: tuple[str, ...]

    @property
    def parts(self) -> str:
        return storage.joined(self.output, PARTS)

    def part(self, name: str) -> str:
        return storage.joined(self.parts, name)

    def file(self, table: str, number: int) -> str:
        return storage.joined(storage.joined(self.output, table), file_name(number))


@dataclass(frozen=True)
class Done:
    """The outcome of a task. part: the name of the part that it wrote; n_failed: recordings of which there are no
    results."""

    part: str = ""
    n_failed: int = 0


def leaf(work: Work, place: Place, key: str, recordings: Sequence[Recording]) -> Done:
    """Reads the recordings and writes the part."""
    _settle()
    return _leaf(place, key, ((each, result_of(work, each, place.labels)) for each in recordings))


def lost_leaf(place: Place, key: str, recordings: Sequence[Recording]) -> Done:
    """Writes the part of a recording, with each of its labels, that ends each worker that reads it."""
    return _leaf(place, key, ((each, killed(each)) for each in recordings))


def _leaf(place: Place, key: str, results: Iterable[tuple[Recording, Result]]) -> Done:
    """Writes the part. A recording that is there for several labels which the tables do not have is a row for each, and
    is added up once."""
    added: set[tuple[str, tuple[str, ...]]] = set()
    shares: dict[tuple[str, ...], list[Share]] = {}
    n_failed, is_passing = 0, False
    for recording, result in results:
        n_failed += result.row["status"] != DONE
        is_passing |= result.row["status"] in PASSING
        share = _share(result, recording, place)
        if (recording.key, share.labels) in added:
            share = replace(share, totals=Totals())
        added.add((recording.key, share.labels))
        shares.setdefault(share.labels, []).append(share)
    name = _write(place, key, (joined(shares[labels]) for labels in sorted(shares)), is_passing)
    return Done(name, n_failed)


def _share(result: Result, recording: Recording, place: Place) -> Share:
    columns = [place.labels.index(name) for name in place.by]
    labels = [encodable(label) for label in recording.labels]
    row = dict(zip(place.labels, labels, strict=True)) | result.row
    return Share(tuple(labels[column] for column in columns), result.totals, (row,))


def merge(place: Place, key: str, names: Sequence[str]) -> Done:
    """names: of the parts that become one."""
    with _fetched(place, names) as paths:
        return Done(_write(place, key, merged_parts(paths), any(name.endswith(RETRY) for name in names)))


def finish(work: Work, place: Place, number: int, key: str, names: Sequence[str]) -> Done:
    """Writes the files of a number. That of the recordings, which says of which content they are, comes last."""
    with _fetched(place, names) as paths, TemporaryDirectory(prefix="traceferry-") as here:
        tables = write_tables(Path(here), merged_parts(paths), place.by, place.labels, key, work.tables)
        storage.remove(place.file(LAST, number))
        for table in sorted(tables, key=lambda name: name == LAST):
            storage.put(tables[table], place.file(table, number))
    gc.collect()
    return Done()


def _write(place: Place, key: str, shares: Iterable[Share], is_passing: bool) -> str:
    """Returns the name of the part."""
    name = f"{key}{RETRY if is_passing else FINAL}"
    with TemporaryDirectory(prefix="traceferry-") as here:
        path = Path(here) / "part"
        write_part(path, shares)
        storage.put(path, place.part(name))
    return name


@contextmanager
def _fetched(place: Place, names: Sequence[str]) -> Iterator[list[Path]]:
    """The files of parts on this machine."""
    with TemporaryDirectory(prefix="traceferry-") as here:
        yield [storage.brought(place.part(name), Path(here)) for name in names]


@cache
def _settle() -> None:
    """Once in each process: what is imported by now is not looked at for garbage again, which each recording would pay
    for; copies of recordings go where Dask removes what a worker that was killed leaves."""
    from distributed import get_worker

    gc.collect()
    gc.freeze()
    with suppress(ValueError):  # not in a worker
        tempfile.tempdir = get_worker().local_directory
