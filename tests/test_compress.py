"""Gzip in blocks: one member that any reader takes, and the same bytes for any number of threads."""

from __future__ import annotations

import gzip
import os
import threading
import zlib
from pathlib import Path

import numpy as np
import pytest
from conftest import REPO

import traceferry
from traceferry.files.compress import BLOCK, WINDOW, Gzip
from traceferry.files.output import MOST_JOBS, default_jobs, open_output

SIZES = [0, 1, WINDOW, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 5 * BLOCK + 12345]
LOG = REPO / "fixtures" / "xray" / "clang-19" / "fdr-c19-pie-pool-tsc.xray"


def made(data: bytes, jobs: int, piece: int = 300_000) -> bytes:
    packer = Gzip(jobs)
    pieces = [packer.compress(data[at : at + piece]) for at in range(0, len(data), piece)]
    return b"".join([*pieces, packer.flush()])


def some(n: int) -> bytes:
    """Text of numbers, as outputs are."""
    numbers = np.random.default_rng(n).integers(0, 1000, n // 3 + 1)
    return ",".join(map(str, numbers.tolist())).encode()[:n].ljust(n, b"0")


@pytest.mark.parametrize("n", SIZES)
def test_one_member_with_what_was_given(n: int) -> None:
    data = some(n)
    packed = made(data, 1)
    reader = zlib.decompressobj(31)
    assert reader.decompress(packed) == data
    assert reader.eof
    assert not reader.unused_data
    assert gzip.decompress(packed) == data
    assert all(made(data, jobs) == packed for jobs in (2, 3, 8)), "the same bytes for any number of jobs"


@pytest.mark.parametrize("piece", [1000, BLOCK, 3 * BLOCK + 1])
def test_pieces_do_not_matter(piece: int) -> None:
    data = some(3 * BLOCK)
    assert made(data, 2, piece) == made(data, 1)


def test_blocks_refer_to_those_before() -> None:
    """Bytes that are random take no more than once, where the second half repeats the end of the first."""
    random = os.urandom(WINDOW)
    data = bytes(BLOCK - WINDOW) + random + random
    assert len(made(data, 1)) < 1.2 * WINDOW


def test_nothing_is_left_of_an_output_that_fails(tmp_path: Path) -> None:
    before = threading.active_count()

    def fail() -> None:
        with open_output(str(tmp_path / "out.gz"), jobs=2) as out:
            out.write(some(4 * BLOCK))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert threading.active_count() == before
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("suffix", [".json.gz", ".pftrace.gz"])
def test_outputs_do_not_depend_on_jobs(tmp_path: Path, suffix: str) -> None:
    trace = traceferry.load(LOG)
    outputs = [tmp_path / f"{jobs}{suffix}" for jobs in (1, 4)]
    for jobs, output in zip((1, 4), outputs, strict=True):
        traceferry.save(trace, output, jobs=jobs)
    assert outputs[0].read_bytes() == outputs[1].read_bytes()


def test_as_many_jobs_as_processors() -> None:
    assert 1 <= default_jobs() <= MOST_JOBS
