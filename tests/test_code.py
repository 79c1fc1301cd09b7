"""Where jitted code lay and when, and what an address stood for: against the simplest thing that could be right.

Addresses and times are small numbers, so that everything meets everything.
"""

from typing import NamedTuple, cast

import numpy as np
import pytest
from conftest import examples
from hypothesis import given
from hypothesis import strategies as st

from traceferry.importers.perf import regions
from traceferry.importers.perf._stacks import Paths, StackComposer, collect
from traceferry.importers.perf.regions import (
    ANNOUNCED_LATE_NS,
    BEGINNING,
    JITTED,
    LISTED,
    LOADED,
    MAPPED,
    NEVER,
    NOTHING,
    regions_of,
)
from traceferry.importers.perf.stacks import MAX_FRAMES
from traceferry.model import CodeReader, TraceBuilder
from traceferry.native.nodes import NodeTable
from traceferry.symbolication.code_mapping import CodeMappings, live_bytes
from traceferry.symbolication.code_sizes import by_stretch

many = examples(300)
TOP = 1 << 64


# ---------------------------------------------------------------- places


class Put(NamedTuple):
    code: int
    address: int
    size: int


class Place(NamedTuple):
    code: int
    address: int
    start: int
    end: int


def placed(puts: list[tuple[int, Put]]) -> list[Place]:
    """puts: (ts, what) in the order of time."""
    mappings, trace = CodeMappings(), TraceBuilder()
    for ts, put in puts:
        mappings.put(put.code, put.address, put.size, ts)
    mappings.add_to(trace)
    rows = zip(*(trace.code_mappings[name].tolist() for name in ("code", "address", "start_ts", "end_ts")), strict=True)
    return [Place(*row) for row in rows]


def simulated(puts: list[tuple[int, Put]]) -> list[Place]:
    """Every byte that is put ends whatever has a byte there."""
    places: list[Place] = []
    sizes: list[int] = []
    for ts, put in puts:
        for nth, old in enumerate(places):
            overlaps = old.address < put.address + put.size and put.address < old.address + sizes[nth]
            if old.end < 0 and (old.code == put.code or (overlaps and put.size and sizes[nth])):
                places[nth] = old._replace(end=ts)
        places.append(Place(put.code, put.address, ts, -1))
        sizes.append(put.size)
    return places


SIZE_OF_CODE = [0, 1, 2, 3, 5, 8, 13, 4]


@st.composite
def puts(draw: st.DrawFn, base: int = 0) -> list[tuple[int, Put]]:
    """Loads and moves of eight objects."""
    ts, found = 0, []
    for code in draw(st.lists(st.integers(0, len(SIZE_OF_CODE) - 1), max_size=24)):
        ts += draw(st.integers(0, 2))
        found.append((ts, Put(code, base + draw(st.integers(0, 24)), SIZE_OF_CODE[code])))
    return found


@many
@given(puts())
def test_places(given_puts: list[tuple[int, Put]]) -> None:
    assert placed(given_puts) == simulated(given_puts)


@many
@given(puts(base=TOP - 30))
def test_places_at_the_end_of_memory(given_puts: list[tuple[int, Put]]) -> None:
    """Sizes that reach beyond it are damage, not more."""
    assert placed(given_puts) == simulated(given_puts)


@many
@given(puts())
def test_no_two_places_overlap_at_one_time(given_puts: list[tuple[int, Put]]) -> None:
    places = [p for p in placed(given_puts) if SIZE_OF_CODE[p.code]]
    for nth, a in enumerate(places):
        for b in places[:nth]:
            apart = a.address >= b.address + SIZE_OF_CODE[b.code] or b.address >= a.address + SIZE_OF_CODE[a.code]
            ends = [p.end if p.end >= 0 else NEVER for p in (a, b)]
            assert apart or min(ends) <= max(a.start, b.start)


def test_where_an_object_was_put_last() -> None:
    mappings = CodeMappings()
    mappings.put(3, 10, 4, 0)
    mappings.put(3, 20, 4, 1)
    assert mappings.address_of(3) == 20


LIVES = st.lists(st.tuples(st.integers(0, 9), st.integers(-1, 12), st.integers(0, 50)), max_size=20)


@many
@given(LIVES)
def test_live_bytes(lives: list[tuple[int, int, int]]) -> None:
    """At each change, all that is loaded then."""
    lives = [(start, end if end < 0 else max(start, end), size) for start, end, size in lives]
    columns = [np.array(column, np.int64) for column in zip(*lives, strict=True)] or [np.zeros(0, np.int64)] * 3
    ts, live = live_bytes(*columns)
    assert ts.tolist() == sorted({start for start, _, _ in lives} | {end for _, end, _ in lives if end >= 0})
    assert live.tolist() == [
        sum(size for start, end, size in lives if start <= at and (end < 0 or at < end)) for at in ts.tolist()
    ]


# ---------------------------------------------------------------- what an address stands for


class Span(NamedTuple):
    start: int
    until: int
    layer: int
    frame: int | None


@st.composite
def spans(draw: st.DrawFn) -> list[Span]:
    found = []
    for _ in range(draw(st.integers(0, 7))):
        start = draw(st.sampled_from([BEGINNING, 0, 1, 2, 3, 4, 5, 6]))
        until = max(start, draw(st.sampled_from([NEVER, 1, 2, 3, 4, 5, 6, 7])))
        layer = draw(st.sampled_from([LISTED, MAPPED, LOADED, JITTED]))
        nameless = layer == MAPPED and draw(st.booleans())
        found.append(Span(start, until, layer, None if nameless else draw(st.integers(0, 3))))
    return found


class Version(NamedTuple):
    """frame: None for nothing."""

    start: int
    frame: int | None


def versions_of(given_spans: list[Span], scale: int = 1, first: int = BEGINNING, last: int = NEVER) -> list[Version]:
    """Of one address; others on both sides of it hold nothing."""
    rows = []
    for nth, span in enumerate(given_spans):
        start, until = (t * scale if abs(t) < NEVER else t for t in (span.start, span.until))
        rows.append((4, 6, start, until, span.layer, NOTHING if span.frame is None else 1, nth, 0))
    addresses, times = np.array([3, 5, 6], np.uint64), (np.full(3, t, np.int64) for t in (first, last))
    found, n_left_out = regions.resolved_intervals(regions_of(rows), addresses, *times)
    assert n_left_out == 0
    assert found.key.tolist() == [0, *[1] * (len(found.key) - 2), 2]
    assert (found.region[0], found.region[-1]) == (-1, -1)
    frames = [None if region < 0 else given_spans[region].frame for region in found.region.tolist()]
    return [Version(*row) for row in zip(found.start.tolist(), frames, strict=True)][1:-1]


def frame_at(versions: list[Version], ts: int) -> int | None:
    holding = [version for version in versions if version.start <= ts]
    return (holding[-1] if holding else versions[0]).frame


def holding_at(given_spans: list[Span], ts: int) -> Span | None:
    """Of what holds at a time the highest layer, and there what came last."""
    ordered = sorted(given_spans, key=lambda span: span.start)
    holding = [(span.layer, nth) for nth, span in enumerate(ordered) if span.start <= ts < span.until]
    return ordered[max(holding)[1]] if holding else None


def true_frame_at(given_spans: list[Span], ts: int) -> int | None:
    holding = holding_at(given_spans, ts)
    return holding.frame if holding is not None else None


@many
@given(spans())
def test_timelines(given_spans: list[Span]) -> None:
    """Times are so far apart that nothing counts as announced late."""
    scale = 2 * ANNOUNCED_LATE_NS
    versions = versions_of(given_spans, scale)
    for ts in range(-1, 9):
        assert frame_at(versions, ts * scale) == true_frame_at(given_spans, ts), ts
        assert frame_at(versions, ts * scale + scale // 4) == true_frame_at(given_spans, ts), ts


@many
@given(spans())
def test_timelines_with_code_announced_late(given_spans: list[Span]) -> None:
    """Everything is within a second: where nothing is, it is the code that comes next, if code comes next."""
    versions = versions_of(given_spans)
    changes = sorted({t for span in given_spans for t in (span.start, span.until) if t < NEVER})
    for ts in range(-1, 9):
        wanted = true_frame_at(given_spans, ts)
        next_change = next((at for at in changes if at > ts), NEVER)
        coming = holding_at(given_spans, next_change)
        if wanted is None and coming is not None and coming.layer == JITTED and coming.start == next_change:
            wanted = coming.frame
        assert frame_at(versions, ts) == wanted, ts


@many
@given(spans(), st.integers(-1, 8), st.integers(0, 4))
def test_timelines_of_the_time_that_is_asked_for(given_spans: list[Span], first: int, n: int) -> None:
    """The same there."""
    whole, part = versions_of(given_spans), versions_of(given_spans, 1, first, first + n)
    for ts in range(first, first + n + 1):
        assert frame_at(part, ts) == frame_at(whole, ts)


@many
@given(spans(), st.sampled_from([1, ANNOUNCED_LATE_NS // 3, 2 * ANNOUNCED_LATE_NS]))
def test_versions_rise(given_spans: list[Span], scale: int) -> None:
    """The kernel searches them."""
    versions = versions_of(given_spans, scale)
    starts = [version.start for version in versions]
    assert starts[0] == BEGINNING
    assert starts == sorted(starts)


def test_many_regions_are_looked_at_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """And where there are more than the budget, the rest holds nothing."""
    rows = [(10 * nth, 10 * nth + 25, nth, NEVER, MAPPED, 1, nth, 0) for nth in range(40)]
    addresses, times = np.arange(0, 400, 7).astype(np.uint64), np.full(58, 100)
    whole, _ = regions.resolved_intervals(regions_of(rows), addresses, times, times)
    assert whole.region.tolist() == [min(int(address) // 10, 39) for address in addresses]
    monkeypatch.setattr(regions, "PAIRS_AT_ONCE", 5)
    parts, _ = regions.resolved_intervals(regions_of(rows), addresses, times, times)
    assert parts.region.tolist() == whole.region.tolist()
    some, n_left_out = regions.resolved_intervals(regions_of(rows), addresses, times, times, budget=50)
    assert 0 < n_left_out < len(addresses)
    kept = len(addresses) - n_left_out
    assert some.region.tolist() == whole.region.tolist()[:kept] + [-1] * n_left_out


# ---------------------------------------------------------------- code sizes


class Halves:
    """A CodeReader of code objects whose second half is inlined."""

    rows = range(2)

    def boundaries(self, code: int) -> list[int]:
        return [0, 8]

    def lines_at(self, _: TraceBuilder, code: int, offset: int) -> tuple[int, ...]:
        return (code, 10 + code) if offset else (code,)

    def function_of(self, _: TraceBuilder, code: int) -> int:
        return code


@pytest.mark.parametrize(
    ("limit", "wanted", "n_simplified"),
    [
        (99, [((0,), 8, 5), ((0, 10), 12, 5), ((1,), 8, 6), ((1, 11), 4, 6)], 0),
        (3, [((0,), 8, 5), ((0, 10), 12, 5), ((1,), 12, 6)], 1),
    ],
)
def test_code_sizes_of_any_reader(
    monkeypatch: pytest.MonkeyPatch, limit: int, wanted: list[tuple[tuple[int, ...], int, int]], n_simplified: int
) -> None:
    """(stack, bytes, time) of each stretch; beyond the limit, the function weighs all that is left."""
    monkeypatch.setattr("traceferry.symbolication.code_sizes.MAX_INLINED_FRAMES", limit)
    trace = TraceBuilder()
    trace.code.extend(
        func=[0] * 3, symbol=[-1] * 3, tier=[-1] * 3, pid=[1] * 3, tid=[1] * 3, size=[20, 12, 0], loaded_at=[5, 6, 7],
        bytes_at=[-1] * 3,
    )  # fmt: skip
    weights = by_stretch(trace, cast(CodeReader, Halves()), range(3), "a dump")
    stacks = trace.stacks
    found = []
    for ts, stack, n_bytes in zip(*(column.tolist() for column in weights), strict=True):
        frames: list[int] = []
        while stack >= 0:
            frames.insert(0, int(stacks["frame"][stack]))
            stack = int(stacks["prefix"][stack])
        found.append((tuple(frames), n_bytes, ts))
    assert found == wanted
    assert sum(issue.count for issue in trace.report if issue.kind == "sizes_simplified") == n_simplified


# ---------------------------------------------------------------- stacks

CONTEXT_OTHER, KERNEL, USER, GUEST = TOP - 32, TOP - 128, TOP - 512, TOP - 2048
ENTRIES = st.sampled_from([KERNEL, USER, GUEST, CONTEXT_OTHER, 0, 1, 2, 3, 4, 5])


class Sample(NamedTuple):
    chain: list[int]
    space: int
    ip: int
    mode: int
    ts: int


SAMPLES = st.lists(
    st.builds(
        Sample, st.lists(ENTRIES, max_size=8), st.integers(3, 4), st.integers(0, 3), st.integers(0, 3),
        st.integers(0, 5),
    ),
    max_size=12,
)  # fmt: skip


OWN_MODE, SPACE_OF_MODE = 3, (0, 1, 2, -1)


def keys_of(sample: Sample) -> list[tuple[int, int]]:
    """(space, address) of each frame, leaf first."""
    keys, space, is_first = [], sample.space, True
    for entry in sample.chain:
        if entry > TOP - 4096:
            space = {KERNEL: 0, USER: sample.space, GUEST: 2}.get(entry, 1)
            is_first = True
        elif entry:
            keys.append((space, entry if is_first else entry - 1))
            is_first = False
    space = sample.space if sample.mode == OWN_MODE else SPACE_OF_MODE[sample.mode]
    return keys or ([(space, sample.ip)] if sample.ip else [])


Columns = tuple[np.ndarray, ...]


def columns_of(samples: list[Sample]) -> Columns:
    lengths = np.array([len(sample.chain) for sample in samples], np.int32)
    return (
        np.array([entry for sample in samples for entry in sample.chain], np.uint64),
        np.concatenate(([0], np.cumsum(lengths)[:-1])).astype(np.int64)[: len(samples)],
        lengths,
        np.array([sample.space for sample in samples], np.int32),
        np.array([sample.ip for sample in samples], np.uint64),
        np.array([sample.mode for sample in samples], np.uint8),
        np.array(SPACE_OF_MODE, np.int32),
        np.array([sample.ts for sample in samples], np.int64),
    )


def keys_in(paths: Paths) -> list[tuple[int, int]]:
    return list(zip(paths.spaces.tolist(), paths.addresses.tolist(), strict=True))


@many
@given(SAMPLES)
def test_collect_finds_every_key_once(samples: list[Sample]) -> None:
    """With the times of its first and last sample."""
    samples.sort(key=lambda sample: sample.ts)
    paths = collect(*columns_of(samples), n_expected=1)
    keys, found = keys_in(paths), list(zip(paths.first_ts.tolist(), paths.last_ts.tolist(), strict=True))
    times = {key: [s.ts for s in samples if key in keys_of(s)] for sample in samples for key in keys_of(sample)}
    assert len(set(keys)) == len(keys)
    assert dict(zip(keys, found, strict=True)) == {key: (min(ts), max(ts)) for key, ts in times.items()}


def frames_of(key: tuple[int, int], version: int) -> list[int]:
    """Some keys have several frames, some change with time."""
    space, address = key
    return [100 * space + 10 * address + version + 1000 * depth for depth in range(1 + (address + version) % 3)]


VERSIONS_AT = [-1, 2, 4]


def always_one_frame(key: tuple[int, int]) -> bool:
    return key[1] % 4 == 0


def frames_at(key: tuple[int, int], version: int) -> list[int]:
    return [500 + key[1]] if always_one_frame(key) else frames_of(key, version)


@many
@given(SAMPLES, st.sampled_from([3, 4, 6, MAX_FRAMES]), st.sampled_from([-1, 9999]))
def test_compose(samples: list[Sample], max_frames: int, cut_frame: int) -> None:
    """Each sample's path, cut at the root by whole addresses, under the frame that says so; each stack once."""
    samples.sort(key=lambda sample: sample.ts)
    paths = collect(*columns_of(samples))
    keys = keys_in(paths)
    n_versions = [1 if always_one_frame(key) else len(VERSIONS_AT) for key in keys]
    versions = [(key, nth) for key, n in zip(keys, n_versions, strict=True) for nth in range(n)]
    frames = [frames_at(*version) for version in versions]
    first = np.concatenate(([0], np.cumsum(n_versions))).astype(np.int64)
    start = np.array([VERSIONS_AT[nth] for _, nth in versions], np.int64)
    first_frame = np.concatenate(([0], np.cumsum([len(f) for f in frames]))).astype(np.int64)
    flat = np.array([frame for some in frames for frame in some], np.int32)
    is_unknown, is_late = (np.array([address % n == 0 for (_, address), _ in versions], np.uint8) for n in (2, 3))
    composer = StackComposer(first, start, first_frame, flat, is_unknown, is_late, max_frames, cut_frame)
    # The table has 1,024 rows at first: it is nearly full.
    stacks, before = NodeTable(), np.arange(-1, 1018, dtype=np.int32)
    stacks.append(before, before + 2)
    out = composer.compose(paths, stacks)
    prefix, frame = stacks.parent, stacks.key
    assert (prefix[: len(before)].tolist(), frame[: len(before)].tolist()) == (before.tolist(), (before + 2).tolist())
    assert len(set(zip(prefix.tolist(), frame.tolist(), strict=True))) == len(prefix)
    assert all(p < i for i, p in enumerate(prefix.tolist()))
    n_cut = n_unknown = n_late = 0
    for sample, row in zip(samples, out.tolist(), strict=True):
        wanted: list[int] = []
        parts = []
        for key in keys_of(sample):
            version = max(nth for nth, at in enumerate(VERSIONS_AT) if at <= sample.ts or nth == 0)
            parts.append(frames_at(key, version))
            n_unknown += key[1] % 2 == 0
            n_late += key[1] % 3 == 0
        for part in parts:
            if len(wanted) + len(part) > max_frames:
                break
            wanted = part + wanted
        if sum(map(len, parts)) > max_frames:
            n_cut += 1
            wanted = [cut_frame] * (cut_frame >= 0) + wanted
        found = []
        while row >= 0:
            found.insert(0, int(frame[row]))
            row = int(prefix[row])
        assert found == wanted
    assert (composer.n_cut, composer.n_unknown, composer.n_late) == (n_cut, n_unknown, n_late)


def test_many_callchains() -> None:
    """Each occurs twice; two processes have the same addresses."""
    n = 20000
    samples = [Sample([USER, 4 * nth + 4, 1], 3 + nth % 2, 0, 2, ts) for ts in (0, 1) for nth in range(n)]
    paths = collect(*columns_of(samples), n_expected=1)
    one = np.arange(n + 3)
    composer = StackComposer(one, one[:-1], one, one[:-1].astype(np.int32), *np.zeros((2, n + 2), np.uint8), 9)
    stacks, keys = NodeTable(), keys_in(paths)
    stack = composer.compose(paths, stacks)
    assert paths.node[:n].tolist() == paths.node[n:].tolist()
    assert stack[:n].tolist() == stack[n:].tolist()
    assert [keys[key] for key in stacks.key[stack[:n]].tolist()] == [(3 + nth % 2, 4 * nth + 4) for nth in range(n)]
    assert [keys[stacks.key[row]] for row in stacks.parent[stack[:2]].tolist()] == [(3, 0), (4, 0)]
    assert set(paths.last_ts.tolist()) == {1}


# ---------------------------------------------------------------- damage

GOOD = [Sample([USER, 1, 2], 2, 0, 2, 0), Sample([], 2, 7, 2, 0)]


@pytest.mark.parametrize(("column", "value"), [(1, -1), (1, 4), (1, 1 << 62), (2, -1), (2, 4), (2, (1 << 31) - 1)])
def test_callchains_outside_the_data(column: int, value: int) -> None:
    columns = columns_of(GOOD)
    columns[column][1] = value
    with pytest.raises(ValueError, match="outside the data"):
        collect(*columns)


def test_keys_that_were_not_collected() -> None:
    paths = collect(*columns_of(GOOD))
    assert keys_in(paths) == [(2, 1), (2, 7)]
    for n_known, node in ((2, 99), (1, 0)):
        one = np.arange(n_known + 1)
        flags = np.zeros((2, n_known), np.uint8)
        composer = StackComposer(one, one[:-1], one, np.zeros(n_known, np.int32), *flags, 9)
        paths.node[-1] = node
        with pytest.raises(ValueError, match="not collected"):
            composer.compose(paths, NodeTable())


def test_versions_and_frames_that_are_not_there() -> None:
    flags, frames, good = np.zeros(2, np.uint8), np.zeros(2, np.int32), np.arange(3)
    for first_version in ([0, 0, 2], [-1, 1, 2], [0, 1, 3]):
        with pytest.raises(ValueError, match="without a version"):
            StackComposer(np.array(first_version), good[:2], good, frames, flags, flags, 9)
    for first_frame, max_frames in (([-1, 1, 2], 9), ([0, 2, 1], 9), ([0, 1, 3], 9), ([0, 2, 2], 1)):
        with pytest.raises(ValueError, match="a version"):
            StackComposer(good, good[:2], np.array(first_frame), frames, flags, flags, max_frames)
