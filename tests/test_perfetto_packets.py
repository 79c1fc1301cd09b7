"""Perfetto's packets as they are encoded, against the protobuf library with Perfetto's own descriptors."""

from collections.abc import Callable
from itertools import accumulate, groupby
from typing import Any

import numpy as np
import pytest
from conftest import REPO
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2", reason="no package perfetto")

import perfetto_fields
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protos

from traceferry.exporters.perfetto import fields as pb
from traceferry.exporters.perfetto._calls import SliceWriter
from traceferry.exporters.perfetto._heap import write_heap_objects
from traceferry.exporters.perfetto._packets import (
    ABSENT,
    Message,
    OutputBuffer,
    executions_of,
    mark,
    varint,
    write_samples,
    write_task_states,
    write_track_events,
)
from traceferry.exporters.perfetto._stacks import CallstackWriter, PhysicalStacks
from traceferry.exporters.perfetto.scheduling import STATES
from traceferry.model import LEAVE, PREEMPTED, RUNNABLE, RUNNING, WAITING, Array

SEQUENCE, START = 300, 1_000_000
INT32, INT64 = st.integers(0, 2**31 - 1), st.integers(0, 2**63 - 1)
ZERO = np.zeros(1, np.uint8)
LENGTHS = st.integers(0, 9).map(lambda n: 1 << 7 * n)  # the first number of one byte, two bytes...
TIMES = st.lists(st.integers(0, 300) | INT32 | LENGTHS.filter(lambda n: n < 2**55), max_size=30).map(
    lambda steps: list(accumulate(steps, initial=START))[1:]
)


def i32(*values: int) -> Array:
    return np.array(values, np.int32)


def i64(*values: int) -> Array:
    return np.array(values, np.int64)


def pieces_of(write: Callable[..., None], *arguments: Any) -> list[bytes]:
    pieces: list[bytes] = []
    write(OutputBuffer(lambda piece: pieces.append(bytes(piece))), *arguments)
    return pieces


def packets_of(write: Callable[..., None], *arguments: Any) -> list[Any]:
    packets = list(protos.Trace.FromString(b"".join(pieces_of(write, *arguments))).packet)
    assert all(packet.trusted_packet_sequence_id == SEQUENCE for packet in packets)
    return packets


def test_fields_are_those_of_the_protos() -> None:
    """Else: python tests/perfetto_fields.py"""
    folder = REPO / "exporters" / "perfetto"
    made = perfetto_fields.texts()
    assert {name: (folder / name).read_text(encoding="utf-8") for name in made} == made


# ---------------------------------------------------------------- fields


@given(st.lists(st.integers(-(2**63), 2**64 - 1) | LENGTHS, max_size=80))
def test_varints(values: list[int]) -> None:
    parsed = protos.StackSample.FromString(pb.StackSample(follower_weights=b"".join(map(varint, values))))
    assert list(parsed.follower_weights) == [value % 2**64 for value in values]


@given(
    st.text(st.characters(exclude_categories=["Cs"])),
    st.lists(st.text(st.characters(exclude_categories=["Cs"]))),
    INT64,
    st.floats(allow_nan=False),
)
def test_fields(text: str, texts: list[str], value: int, number: float) -> None:
    bits = int(np.float64(number).view(np.int64))
    fields = pb.TrackEvent(name=text, categories=texts, flow_ids=value, type=None, double_counter_value=bits)
    event = protos.TrackEvent.FromString(fields)
    assert (event.name, list(event.categories), list(event.flow_ids)) == (text, texts, [value])
    assert event.double_counter_value == number


# ---------------------------------------------------------------- values at a time


@given(TIMES, st.data())
def test_samples(ts: list[int], data: st.DataObject) -> None:
    iids = data.draw(st.lists(INT32, min_size=1, max_size=5))
    n_followers = data.draw(st.integers(1, 6))
    counts = st.lists(st.just(-1) | INT64, min_size=n_followers, max_size=n_followers)
    row = st.tuples(INT64, counts, st.just(0) | INT32, st.integers(-1, len(iids) - 1))
    rows = data.draw(st.lists(row, min_size=len(ts), max_size=len(ts)))
    weight, followers, execution, stack = list(zip(*rows, strict=True)) or [()] * 4
    amounts = np.array(followers, np.int64).reshape(len(ts), n_followers)
    columns = i64(*ts), i64(*weight), amounts, i32(*execution), i32(*stack), i32(*iids)
    packets = packets_of(write_samples, SEQUENCE, 7, START, *columns)
    assert [p.timestamp for p in packets] == [time - START for time in ts]
    samples = [p.stack_sample for p in packets]
    assert [
        (s.primary_weight, s.execution_context_iid, s.callstack_iid, list(s.follower_weights)) for s in samples
    ] == [(w, e, iids[s] if s >= 0 else 0, [c for c in of if c >= 0]) for w, of, e, s in rows]
    counted = [[nth for nth, count in enumerate(of, 1) if count >= 0] for _, of, _, _ in rows]
    assert [list(s.follower_descriptor_iids) for s in samples] == counted
    assert all(s.task_context_iid == 7 for s in samples)


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(0, 5)), max_size=30), st.sampled_from([1, 9])
)
def test_task_states(rows: list[tuple[int, int, int]], scale: int) -> None:
    """TraceProcessor takes no two states at one time, none that runs while it runs, none that stops elsewhere."""
    ts = [START + scale * at for at in accumulate(step for step, _, _ in rows)]
    states = STATES[[state for _, state, _ in rows]]
    cpus, no_wakers = i32(*(cpu for _, _, cpu in rows)), np.full(len(rows), -1)
    packets = packets_of(write_task_states, SEQUENCE, 5, START, i64(*ts), states, cpus, no_wakers)
    names = {0: "INTERRUPTIBLE_SLEEP", RUNNING: "RUNNING", PREEMPTED: "RUNNABLE"}
    lasting = [list(group)[-1] for _, group in groupby(zip(ts, rows, strict=True), key=lambda pair: pair[0])]
    wanted: list[tuple[int, str, int]] = []
    for time, (_, state, cpu) in lasting:
        before = wanted[-1] if wanted else (START - 2, "", 0)
        if state == RUNNING and before[1] == "RUNNING":
            if time - 1 == before[0]:
                continue
            wanted.append((time - 1, "RUNNABLE", before[2]))
        wanted.append((time, names[state], cpu if state == RUNNING else before[2]))
    events = [(p.timestamp + START, p.generic_kernel_task_state_event) for p in packets]
    state_names = protos.GenericKernelTaskStateEvent.TaskStateEnum.Name
    assert [(time, state_names(e.state).removeprefix("TASK_STATE_"), e.cpu) for time, e in events] == wanted
    assert {e.tid for _, e in events} <= {5}


@given(TIMES, st.lists(st.text(max_size=300), min_size=1, max_size=3), st.data())
def test_events_of_a_track(ts: list[int], names: list[str], data: st.DataObject) -> None:
    nth = data.draw(st.lists(st.integers(0, len(names) - 1), min_size=len(ts), max_size=len(ts)))
    before, between = pb.TracePacket(trusted_packet_sequence_id=SEQUENCE), pb.TracePacket(timestamp_clock_id=6)
    bodies = [pb.TrackEvent(name=name) for name in names]
    columns = i64(*ts), i32(*nth), bodies
    packets = packets_of(write_track_events, before, between, pb.TrackEvent(track_uuid=5), *columns)
    shown = [(p.timestamp, p.timestamp_clock_id, p.track_event.track_uuid, p.track_event.name) for p in packets]
    assert shown == [(time, 6, 5, names[i]) for time, i in zip(ts, nth, strict=True)]


def test_wakers_are_events_of_ftrace() -> None:
    states = STATES[[WAITING, RUNNABLE, RUNNING, RUNNABLE]]
    columns = i64(*(START + at for at in (0, 5, 9, 12))), states, i32(1, 2, 1, 1), i64(-1, 7, -1, 8)
    waiting, waking, running, runnable = packets_of(write_task_states, SEQUENCE, 5, START, *columns)
    assert [event.generic_kernel_task_state_event.cpu for event in (waiting, running, runnable)] == [0, 1, 1]
    # A thread that runs is not woken.
    assert not waking.HasField("generic_kernel_task_state_event")
    assert not runnable.HasField("ftrace_events")
    (event,) = waking.ftrace_events.event
    assert (waking.ftrace_events.cpu, event.timestamp, event.pid, event.sched_waking.pid) == (2, START + 5, 7, 5)


@given(st.lists(st.tuples(INT32, *[st.none() | INT32] * 5), min_size=1, max_size=20))
def test_rows(rows: list[tuple[int | None, ...]]) -> None:
    names = ("iid", "function_name_id", "mapping_id", "rel_pc", "line_number", "source_path_iid")
    columns = [i64(*(ABSENT if value is None else value for value in column)) for column in zip(*rows, strict=True)]
    pieces: list[bytes] = []
    out = OutputBuffer(lambda piece: pieces.append(bytes(piece)))
    pb.Frame.write_rows(out, pb.InternedData, "frames", **dict(zip(names, columns, strict=True)))
    frames = protos.InternedData.FromString(b"".join(pieces)).frames
    assert list(frames) == [
        protos.Frame(**{name: value for name, value in zip(names, row, strict=True) if value is not None})
        for row in rows
    ]


def test_rows_apart() -> None:
    """Each as `write_rows` writes it."""
    (one, other) = pb.Frame.rows(pb.InternedData, "frames", iid=[1, 300], line_number=[int(ABSENT), 7])
    found = [protos.InternedData.FromString(row).frames for row in (one, other)]
    assert found == [[protos.Frame(iid=1)], [protos.Frame(iid=300, line_number=7)]]


@given(st.integers(0, (1 << 63) - 1), st.text() | st.binary(), st.text(max_size=3))
def test_interned_texts(iid: int, text: str | bytes, other: str) -> None:
    data = protos.InternedData.FromString(pb.InternedData.text(iid, function_names=text, build_ids=other))
    wanted = text if isinstance(text, bytes) else text.encode("utf-8", "replace")
    assert [(one.iid, one.str) for one in data.function_names] == [(iid, wanted)]
    assert [(one.iid, one.str) for one in data.build_ids] == [(iid, other.encode("utf-8", "replace"))]


def test_rows_that_are_refused() -> None:
    out = OutputBuffer(lambda _: None)
    with pytest.raises(ValueError, match="shape"):
        pb.Frame.write_rows(out, pb.InternedData, "frames", iid=OF_ONE, kind=OF_TWO)
    with pytest.raises(KeyError):
        pb.Frame.write_rows(out, pb.InternedData, "frames", nothing=OF_ONE)
    with pytest.raises(KeyError):
        Message(a=8)(b=1)


# ---------------------------------------------------------------- calls

MAX_DEPTH, N_FRAMES = 3, 4


def no_texts(n: int) -> tuple[Any, Any]:
    """Fields of n arguments that are all numbers."""
    return np.zeros(0, np.uint8), np.zeros(n + 1, np.int64)


def slice_writer(out: OutputBuffer) -> SliceWriter:
    """With events of frames that are the longer the higher their number."""
    note = protos.DebugAnnotation(name_iid=99, bool_value=True)
    text = protos.TrackEvent(debug_annotations=[note]).SerializeToString()
    notes = [text if flags & 4 else b"" for flags in range(256)]
    writer = SliceWriter(out, pb.TracePacket(trusted_packet_sequence_id=SEQUENCE), notes, MAX_DEPTH, START)
    events = [protos.TrackEvent(type=1, name_iid=1 + f, categories=["n" * 9 * f]) for f in range(N_FRAMES)]
    writer.set_events([event.SerializeToString() for event in [*events, protos.TrackEvent(type=2)]])
    return writer


@given(TIMES, st.data())
def test_slices(ts: list[int], data: st.DataObject) -> None:
    """In pieces, with arguments and notes; what is too deep is left out, with its arguments."""
    n = len(ts)
    frames = data.draw(st.lists(st.integers(0, N_FRAMES - 1), min_size=n, max_size=n))
    flags = data.draw(st.lists(st.sampled_from([0, 4, LEAVE, LEAVE | 4]), min_size=n, max_size=n))
    # No call ends that has not begun.
    depths = [0]
    for i, flag in enumerate(flags):
        flags[i] = flag & ~LEAVE if depths[-1] == 0 else flag
        depths.append(depths[-1] + (-1 if flags[i] & LEAVE else 1))
    arguments = sorted(data.draw(st.lists(st.integers(0, n - 1), max_size=40)) if n else [])
    values = data.draw(st.lists(st.integers(0, 2**64 - 1), min_size=len(arguments), max_size=len(arguments)))
    cut = data.draw(st.integers(0, n))

    def write(out: OutputBuffer) -> None:
        writer = slice_writer(out)
        for part in (slice(0, cut), slice(cut, n)):
            of_part = [(call, value) for call, value in zip(arguments, values, strict=True) if call in range(n)[part]]
            writer.write(
                i64(*ts[part]), i32(*frames[part]), np.array(flags[part], np.uint8),
                i64(*(call - part.start for call, _ in of_part)), i32(*(call + 1 for call, _ in of_part)),
                np.array([value for _, value in of_part], np.uint64), *no_texts(len(of_part)),
            )  # fmt: skip
        deep = [i for i in range(n) if depths[i] >= MAX_DEPTH and not flags[i] & LEAVE]
        assert writer.n_cut == len(deep)

    packets = packets_of(write)
    kept = [i for i in range(n) if max(depths[i], depths[i + 1]) <= MAX_DEPTH]
    assert [START + time for time in accumulate(p.timestamp for p in packets)] == [ts[i] for i in kept]
    for packet, i in zip(packets, kept, strict=True):
        event = packet.track_event
        wanted = (2, 0, []) if flags[i] & LEAVE else (1, 1 + frames[i], ["n" * 9 * frames[i]])
        assert (event.type, event.name_iid, list(event.categories)) == wanted
        found = [(a.name_iid, a.uint_value) for a in event.debug_annotations if a.name_iid != 99]
        assert found == [(call + 1, value) for call, value in zip(arguments, values, strict=True) if call == i]
        assert len(event.debug_annotations) - len(found) == flags[i] >> 2


def test_more_arguments_than_a_piece_has_bytes() -> None:
    n = 30_000

    def write(out: OutputBuffer) -> None:
        writer = slice_writer(out)
        iids, values = np.arange(1, n + 1, dtype=np.int32), np.full(n, 2**64 - 1, np.uint64)
        writer.write(i64(START), i32(0), np.zeros(1, np.uint8), np.zeros(n, np.int64), iids, values, *no_texts(n))

    (packet,) = packets_of(write)
    assert [a.name_iid for a in packet.track_event.debug_annotations] == list(range(1, n + 1))


# ---------------------------------------------------------------- stacks


@st.composite
def forests(draw: st.DrawFn) -> tuple[list[int], list[int], list[int]]:
    """The prefix and frame of each stack, and the inline depth of each frame."""
    inline_depth = draw(st.lists(st.sampled_from([0, 0, 1, 2]), min_size=1, max_size=6))
    n = draw(st.integers(1, 40))
    # Deep ones, too: most grow on the one before.
    prefixes = [draw(st.just(i - 1) | st.integers(-1, i - 1)) for i in range(n)]
    return prefixes, [draw(st.integers(0, len(inline_depth) - 1)) for _ in range(n)], inline_depth


def physical(stack: int, forest: tuple[list[int], list[int], list[int]]) -> list[tuple[int, ...]]:
    prefixes, frames, inline_depth = forest
    if stack < 0:
        return []
    before = physical(prefixes[stack], forest)
    if before and inline_depth[frames[stack]]:
        return [*before[:-1], (*before[-1], frames[stack])]
    return [*before, (frames[stack],)]


@given(forests(), st.data())
def test_callstacks(forest: tuple[list[int], list[int], list[int]], data: st.DataObject) -> None:
    """Each is its physical frames from the root on; of a deep one the middle is left out."""
    prefixes, frames, inline_depth = forest
    n, cut = len(frames), data.draw(st.integers(0, len(frames)))
    kept, inner = 3, 2
    max_depth = kept + inner + 1
    stacks = PhysicalStacks(kept)
    writer = CallstackWriter(stacks, max_depth, inner)
    writer.cut_iid = writer.n_frames = 1
    number_of: dict[tuple[int, ...], int] = {}
    written: dict[int, list[int]] = {}

    def take(piece: memoryview) -> None:
        new = writer.new_frames().tolist()
        for number, frame in enumerate(new, start=writer.n_frames - len(new) + 1):
            number_of[stacks.chain(frame)] = number
        written.update((c.iid, list(c.frame_ids)) for c in protos.InternedData.FromString(bytes(piece)).callstacks)

    for part in (slice(0, cut), slice(cut, n)):
        stacks.append(i32(*prefixes[part]), i32(*frames[part]), i32(*inline_depth))
        asked = data.draw(st.lists(st.integers(-1, stacks.n_stacks - 1), max_size=10))
        writer.write(OutputBuffer(take), i32(*asked))
        for stack in asked:
            whole = [number_of[frame] for frame in physical(stack, forest)]
            shown = whole if len(whole) <= max_depth else [*whole[:kept], writer.cut_iid, *whole[-inner:]]
            assert (written[int(writer.iids[stack])] if stack >= 0 else []) == shown
    assert stacks.count_deeper(np.arange(n, dtype=np.int32), 2) == sum(len(physical(s, forest)) > 2 for s in range(n))
    assert len(written) == np.count_nonzero(writer.iids)
    assert sorted(number_of.values()) == list(range(2, writer.n_frames + 1))


def test_many_physical_frames() -> None:
    """So many that the table of them grows."""
    n = 5000
    stacks = PhysicalStacks(3)
    for _ in range(2):
        stacks.append(np.full(n, -1, np.int32), np.arange(n, dtype=np.int32), np.zeros(n, np.int32))
    assert (stacks.n_stacks, stacks.n_frames) == (2 * n, n)
    assert [stacks.chain(frame) for frame in range(n)] == [(frame,) for frame in range(n)]


# ---------------------------------------------------------------- heaps


def heap_graph() -> Any:
    """The class of a HeapGraph, which the package does not have: of what is written of it."""
    field = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="heap_graph.proto", syntax="proto2")
    node = file.message_type.add(name="HeapGraphObject")
    for name, number, many in (
        ("id", 1, False), ("type_id", 2, False), ("self_size", 3, False), ("reference_object_id", 5, True),
        ("id_delta", 7, False),
    ):  # fmt: skip
        label = field.LABEL_REPEATED if many else field.LABEL_OPTIONAL
        node.field.add(name=name, number=number, type=field.TYPE_UINT64, label=label).options.packed = many
    graph = file.message_type.add(name="HeapGraph")
    graph.field.add(
        name="objects", number=2, type=field.TYPE_MESSAGE, type_name="HeapGraphObject", label=field.LABEL_REPEATED
    )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("HeapGraph"))


HEAP_GRAPH = heap_graph()


def objects_of(types: Array, size: Array, references: list[list[int]]) -> list[tuple[int, int, int, list[int]]]:
    """As they are read again: their ids, types, sizes and references; of pieces that stand each for itself."""
    offsets = i64(*accumulate(map(len, references), initial=0))
    read = []
    for piece in pieces_of(write_heap_objects, types, size, offsets, i32(*(r for row in references for r in row))):
        last = 0
        for one in HEAP_GRAPH.FromString(piece).objects:
            assert one.HasField("id") == (last == 0)
            last = one.id or last + one.id_delta
            read.append((last, one.type_id, one.self_size, list(one.reference_object_id)))
    return read


@given(st.lists(st.tuples(INT32, INT64, st.lists(st.integers(0, 200))), max_size=20))
def test_heap_objects(rows: list[tuple[int, int, list[int]]]) -> None:
    references = [[r % len(rows) for r in row[2]] for row in rows]
    read = objects_of(i32(*(row[0] for row in rows)), i64(*(row[1] for row in rows)), references)
    wanted = zip(rows, references, strict=True)
    assert read == [(i, t, s, [r + 1 for r in refs]) for i, ((t, s, _), refs) in enumerate(wanted, start=1)]


def test_objects_of_more_than_a_piece() -> None:
    """Of all objects together, and of one, which refers to all others."""
    n = 100_000
    references = [[i] for i in range(n)]
    references[n // 2] = list(range(n))
    read = objects_of(np.ones(n, np.int32), np.full(n, 1 << 40), references)
    assert [one[0] for one in read] == list(range(1, n + 1))
    assert [one[3] for one in read] == [[r + 1 for r in row] for row in references]


# ---------------------------------------------------------------- what is refused

ONE, TWO, OF_ONE, OF_TWO = i32(0), i32(0, 0), i64(START), i64(START, START)
FOLLOWERS = np.zeros((1, 1), np.int64)


@pytest.mark.parametrize(
    ("write", "arguments"),
    [
        (write_samples, (SEQUENCE, 1, START, OF_TWO, OF_ONE, FOLLOWERS, TWO, TWO, ONE)),
        (write_samples, (SEQUENCE, 1, START, OF_ONE, OF_ONE, np.zeros((1, 7), np.int64), ONE, ONE, ONE)),
        (write_samples, (SEQUENCE, 1, START + 1, OF_ONE, OF_ONE, FOLLOWERS, ONE, ONE, ONE)),
        (write_samples, (SEQUENCE, 1, START, OF_ONE, OF_ONE, FOLLOWERS, ONE, i32(1), ONE)),
        (write_task_states, (SEQUENCE, 1, START, OF_TWO, ZERO, TWO, OF_ONE)),
        (write_task_states, (SEQUENCE, 1, START + 1, OF_ONE, ZERO, ONE, OF_ONE)),
        (write_task_states, (SEQUENCE, 1, START, OF_ONE, ZERO, ONE, OF_TWO)),
        (write_task_states, (SEQUENCE, 1, START, OF_ONE, STATES[[RUNNING]], i32(-1), OF_ONE)),
        (write_track_events, (b"", b"", b"", OF_TWO, ONE, [b""])),
        (write_track_events, (b"", b"", b"", OF_ONE, i32(1), [b""])),
        (write_track_events, (b"", b"", b"", OF_ONE, i32(-1), [b""])),
        (write_heap_objects, (ONE, OF_ONE, i64(0), ONE)),
        (write_heap_objects, (i32(-1), OF_ONE, i64(0, 0), ONE)),
        (write_heap_objects, (ONE, i64(-1), i64(0, 0), ONE)),
        (write_heap_objects, (ONE, OF_ONE, i64(0, 2), ONE)),
        (write_heap_objects, (ONE, OF_ONE, i64(-1, 1), ONE)),
        (write_heap_objects, (ONE, OF_ONE, i64(0, 1), i32(1))),
        (write_heap_objects, (ONE, OF_ONE, i64(0, 1), i32(-1))),
    ],
)
def test_columns_that_are_refused(write: Callable[..., None], arguments: tuple[Any, ...]) -> None:
    with pytest.raises(ValueError, match=write.__name__):
        pieces_of(write, *arguments)


@pytest.mark.parametrize("index", [-1, 2])
def test_an_index_that_is_refused(index: int) -> None:
    with pytest.raises(ValueError, match="beyond the end"):
        mark(i32(index), np.zeros(2, np.uint8))


def test_stacks_that_are_refused() -> None:
    stacks = PhysicalStacks(3)
    for prefix, frame in ((0, 0), (-1, 1), (-1, -1)):
        with pytest.raises(ValueError, match="append"):
            stacks.append(i32(prefix), i32(frame), i32(0))
    with pytest.raises(IndexError):
        stacks.chain(stacks.n_frames)
    with pytest.raises(ValueError, match="write"):
        pieces_of(CallstackWriter(stacks, 3, 1).write, i32(stacks.n_stacks))


def test_arguments_that_are_fields() -> None:
    """Long ones too; numbers may stand between them."""
    texts = ["a", "", "long" * 100_000]
    annotations = [pb.DebugAnnotation(name=f"{i}", string_value=text) for i, text in enumerate(texts)]
    fields = [pb.TrackEvent(debug_annotations=one) for one in annotations]
    text_at = i64(0, len(fields[0]), len(fields[0]), *np.cumsum([len(f) for f in fields])[1:])
    iids, values = i32(0, 7, 0, 0), np.array([0, 8, 0, 0], np.uint64)

    def write(out: OutputBuffer) -> None:
        text = np.frombuffer(b"".join(fields), np.uint8)
        rows = np.zeros(4, np.int64)
        slice_writer(out).write(i64(START), i32(0), np.zeros(1, np.uint8), rows, iids, values, text, text_at)

    (packet,) = packets_of(write)
    found = [(a.name or a.name_iid, a.string_value or a.uint_value) for a in packet.track_event.debug_annotations]
    assert found == [("0", "a"), (7, 8), ("1", 0), ("2", texts[2])]


def test_slices_that_are_refused() -> None:
    writer = slice_writer(OutputBuffer(lambda piece: None))
    none = i64(), i32(), np.array([], np.uint64), *no_texts(0)
    for ts, frame in ((START - 1, 0), (START, N_FRAMES), (START, -1)):
        with pytest.raises(ValueError, match="write"):
            writer.write(i64(ts), i32(frame), np.zeros(1, np.uint8), *none)
    for text_at in (i64(0), i64(0, 9), i64(-1, 0), i64(1, 0)):
        with pytest.raises(ValueError, match="write"):
            writer.write(
                i64(START), i32(0), np.zeros(1, np.uint8), i64(0), i32(0), np.zeros(1, np.uint64),
                np.zeros(1, np.uint8), text_at,
            )  # fmt: skip
    for events in ([b"x" * 80], [b"x" * 300]):
        with pytest.raises(ValueError, match=r"too long|range"):
            writer.set_events(events)
    with pytest.raises(ValueError, match="flags"):
        SliceWriter(OutputBuffer(lambda piece: None), b"", [b""], MAX_DEPTH, START)


@given(st.lists(st.tuples(st.integers(-2, 5), st.integers(-1, 3)), max_size=20))
def test_executions_are_processors_and_modes(samples: list[tuple[int, int]]) -> None:
    cpu, stack = np.array(samples, np.int32).reshape(-1, 2).T
    frame, category, modes = (np.array(one, np.int32) for one in ([2, 0, 1, 0], [0, 1, -1], [1, 2, 0]))
    expected = [
        (processor + 1 if 0 <= processor < 4 else 0) * 3 + (int(modes[category[frame[of]]]) if of >= 0 else 0)
        for processor, of in samples
    ]
    assert executions_of(cpu, stack, frame, category, modes, 4, 3).tolist() == expected


def test_executions_of_stacks_that_are_not_there_are_refused() -> None:
    one, two = np.zeros(1, np.int32), np.zeros(2, np.int32)
    with pytest.raises(IndexError, match="stack 7 of 1"):
        executions_of(one, one + 7, one, one, two, 4, 3)
    with pytest.raises(ValueError, match="different lengths"):
        executions_of(two, one, one, one, two, 4, 3)
