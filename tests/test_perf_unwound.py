"""Callchains of samples whose stacks were unwound, against plain Python."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceferry.importers.perf._unwound import with_user_parts

KERNEL, USER, DEFERRED, GUEST = ((1 << 64) - n for n in (128, 512, 640, 2048))

Frame = tuple[int, bool]
# What was recorded of a sample, the frames of its stack and what stands at the end of it, 0 is nothing.
Stack = tuple[list[int], list[Frame], int]

ENTRIES = st.lists(st.sampled_from([KERNEL, USER, DEFERRED, 1, 2, 3]), max_size=6)
FRAMES = st.lists(st.tuples(st.integers(10, 20), st.booleans()), max_size=4)
STACKS = st.lists(st.tuples(ENTRIES, FRAMES, st.sampled_from([0, 99])), max_size=5)


def made(stacks: list[Stack], rows: list[int] | None = None) -> dict[int, list[int]]:
    """Returns the new chains by sample."""
    recorded = [chain for chain, _, _ in stacks]
    n = np.array([len(chain) for chain in recorded], np.int32)
    start = np.cumsum(n, dtype=np.int64) - n
    frames = [frames for _, frames, _ in stacks]
    first = np.cumsum([0, *map(len, frames)], dtype=np.int64)
    pc = np.array([address for of_one in frames for address, _ in of_one], np.uint64)
    is_exact = np.array([exact for of_one in frames for _, exact in of_one], np.uint8)
    endings = np.array([ending for _, _, ending in stacks], np.uint64)
    chain = np.array([entry for one in recorded for entry in one], np.uint64)
    of = np.arange(len(stacks)) if rows is None else np.array(rows, np.int64)
    nth, found, begin, size = with_user_parts((chain, start, n), of, (first, pc, is_exact), endings)
    columns = zip(of[nth].tolist(), begin.tolist(), size.tolist(), strict=True)
    return {row: found[at : at + length].tolist() for row, at, length in columns}


def test_the_users_part_is_what_was_unwound() -> None:
    stack = [KERNEL, 1, USER, 2], [(10, True), (11, False)], 0
    assert made([stack]) == {0: [KERNEL, 1, USER, 10, 11]}


def test_behind_it_is_why_it_ends() -> None:
    assert made([([], [(10, True), (11, False)], 99)]) == {0: [USER, 10, 11, GUEST, 99]}


def test_a_recorded_caller_is_better_than_none() -> None:
    assert made([([USER, 1, 2], [(1, True)], 0), ([USER, 1], [(1, True)], 0), ([USER], [], 0)]) == {1: [USER, 1]}


def test_samples_and_stacks_outside_the_data_are_refused() -> None:
    with pytest.raises(ValueError, match="a sample that is not there"):
        made([([], [(10, True)], 0)], rows=[1])
    nothing = np.zeros(0, np.uint64), np.zeros(0, np.int64), np.zeros(0, np.int32)
    with pytest.raises(ValueError, match="not a stack for each sample"):
        with_user_parts(nothing, np.zeros(1, np.int64), (nothing[1], nothing[0], np.zeros(0, np.uint8)), nothing[0])


@given(STACKS)
def test_chains_are_those_of_plain_python(stacks: list[Stack]) -> None:
    wanted = {}
    for row, (recorded, frames, ending) in enumerate(stacks):
        at = next((nth for nth, entry in enumerate(recorded) if entry in (USER, DEFERRED)), len(recorded))
        user = [entry for address, exact in frames for entry in ([USER] * exact + [address])]
        if len(frames) > 1 or (len(frames) == 1 and len(recorded) - at <= 2):
            wanted[row] = recorded[:at] + user + ([GUEST, ending] if ending else [])
    assert made(stacks) == wanted
