"""Perfetto traces: what an independent reader, the protobuf library and trace_processor make of them."""

import json
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from builders.jitdump import JitDump
from builders.xray import elf_with_instr_map
from outputs import NAMES, saved, trace_named
from readers import perfetto
from recordings import loaded
from streams import fdr
from support import Call, calls_of, events_of, frame_names, kinds, load_checked, report_of, states_of

from traceferry.model import ENTRY_LOST, OPEN_AT_END, OPEN_AT_START, UNWOUND, Trace

Load = Callable[..., Trace]
EVERY = pytest.mark.parametrize("name", NAMES)
NOTES = {
    UNWOUND: "unwound", OPEN_AT_END: "open_at_end", OPEN_AT_START: "open_at_start", ENTRY_LOST: "entry_lost",
}  # fmt: skip
STATS = """
SELECT name, idx, value FROM stats WHERE value > 0 AND (severity IN ('error', 'data_loss') OR name IN (
 'track_event_parser_errors', 'track_event_tokenizer_errors', 'track_hierarchy_missing_uuid',
 'tokenizer_skipped_packets', 'interned_data_tokenizer_errors',
 'packet_skipped_seq_needs_incremental_state_invalid', 'flow_step_without_start', 'flow_end_without_start'))
"""


@pytest.fixture
def both(load: Load, tmp_path: Path) -> Callable[[str], tuple[Trace, perfetto.Trace, Path]]:
    """(the trace, what the independent reader reads, the file)"""

    def convert(name: str) -> tuple[Trace, perfetto.Trace, Path]:
        trace = trace_named(name, load)
        path = saved(trace, tmp_path / "out.pftrace")
        return trace, perfetto.read(path), path

    return convert


Both = Callable[[str], tuple[Trace, perfetto.Trace, Path]]


def kept(calls: list[Call], depth: int = 512) -> list[Call]:
    return [call for call in calls if call.depth < depth]


# ---------------------------------------------------------------- the packets


def unknown_fields(message: Any) -> list[str]:
    from google.protobuf.unknown_fields import UnknownFieldSet

    found = [f"{message.DESCRIPTOR.name}.{field.field_number}" for field in UnknownFieldSet(message)]
    for field, value in message.ListFields():
        if field.message_type is not None:
            for one in [value] if hasattr(value, "DESCRIPTOR") else value:
                found += unknown_fields(one)
    return found


@EVERY
def test_every_packet_is_of_the_schema(both: Both, name: str) -> None:
    protos = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2", reason="no package perfetto")
    _, _, path = both(name)
    trace = protos.Trace()
    trace.ParseFromString(path.read_bytes())
    assert len(trace.packet) > 0
    assert [field for packet in trace.packet for field in unknown_fields(packet)] == []
    assert all(packet.trusted_packet_sequence_id for packet in trace.packet)


@EVERY
def test_the_independent_reader_finds_no_error(both: Both, name: str) -> None:
    trace, read, _ = both(name)
    assert read.errors == []
    report_of(trace)


# ---------------------------------------------------------------- what it holds


@EVERY
def test_slices_are_the_calls(both: Both, name: str) -> None:
    """Name, time, duration, depth and arguments, thread by thread."""
    trace, read, _ = both(name)
    slices: dict[tuple[int | None, int | None], list[perfetto.Slice]] = defaultdict(list)
    for one in read.slices:
        slices[one.pid, one.tid].append(one)
    for process, thread in trace.threads:
        data = thread.load(trace)
        wanted = [
            (call.name, call.start, call.end - call.start, call.depth, call.args)
            for call in kept(calls_of(trace, data))
        ]
        assert [
            (s.name, s.ts, s.dur, s.depth, tuple(value for key, value in s.args.items() if key.startswith("arg")))
            for s in slices.pop((process.pid, thread.tid), [])
        ] == wanted
    assert not slices


@EVERY
def test_notes_on_calls_without_records_of_their_own(both: Both, name: str) -> None:
    trace, read, _ = both(name)
    wanted = Counter(
        (call.name, note)
        for process, thread in trace.threads
        for call in kept(calls_of(trace, thread.load(trace)))
        for flag, note in NOTES.items()
        if call.flags & flag
    )
    assert Counter((s.name, note) for s in read.slices for note in NOTES.values() if s.args.get(note)) == wanted


@pytest.mark.parametrize("n", [512, 513, 1500])
def test_many_instants_at_one_time(n: int, tmp_path: Path) -> None:
    """trace_processor takes them for nested ones: what is deeper than it keeps is a ns later."""
    dump = JitDump(pid=7, start=1000)
    for nth in range(n):
        dump.load(f"f{nth}", 64 * nth + 64, ts=5000)
    (tmp_path / "jit-7.dump").write_bytes(dump.bytes())
    trace = load_checked(tmp_path / "jit-7.dump")
    read = perfetto.read(saved(trace, tmp_path / "out.pftrace"))
    at = Counter((i.track, i.ts) for i in read.instants)
    assert at.total() == n
    assert max(at.values()) == 512
    assert {ts for _, ts in at} == {5000 + nth for nth in range((n + 511) // 512)}
    assert report_of(trace).get("moved_apart", 0) == n - 512


def test_many_intervals_at_one_time(tmp_path: Path) -> None:
    """Those that a track cannot hold above each other go to further ones."""
    text = {"type": "Text", "name": "x"}
    rows = [[0, 10, 20, 1, 0, text] for _ in range(1500)]
    thread = {
        "name": "Main", "processType": "default", "pid": 1, "tid": 1, "registerTime": 0, "unregisterTime": None,
        "frameTable": {"schema": {"location": 0}, "data": []},
        "samples": {"schema": {"stack": 0, "time": 1}, "data": []},
        "stackTable": {"schema": {"prefix": 0, "frame": 1}, "data": []}, "stringTable": ["interval"],
        "markers": {
            "schema": {"name": 0, "startTime": 1, "endTime": 2, "phase": 3, "category": 4, "data": 5}, "data": rows,
        },
    }  # fmt: skip
    meta = {
        "version": 27, "startTime": 0, "interval": 1, "stackwalk": 1, "processType": 0, "product": "x",
        "categories": [{"name": "Other", "color": "grey", "subcategories": ["Other"]}], "markerSchema": [],
    }  # fmt: skip
    profile = {"meta": meta, "libs": [], "threads": [thread], "pausedRanges": [], "processes": []}
    (tmp_path / "profile.json").write_text(json.dumps(profile))
    read = perfetto.read(saved(load_checked(tmp_path / "profile.json"), tmp_path / "out.pftrace"))
    assert sorted(Counter(s.track for s in read.slices).values()) == [476, 512, 512]
    assert max(s.depth for s in read.slices) == 511


@EVERY
def test_instants_are_the_events(both: Both, name: str) -> None:
    trace, read, _ = both(name)
    found = sorted((i.tid, i.ts, i.name, sorted(i.args.items())) for i in read.instants)
    names = {"data": "data", "size": "size_bytes", "event_type": "event_type"}
    wanted = sorted(
        (thread.tid, row["ts"], kind, sorted((names[k], v) for k, v in row.items() if k in names))
        for _, thread in trace.threads
        for kind, rows in events_of(thread.load(trace)).items()
        for row in rows
    )
    assert found == wanted
    # Below the thread's calls, not among them.
    assert all(read.tracks[i.track].name == i.name for i in read.instants)
    assert {i.track for i in read.instants}.isdisjoint(s.track for s in read.slices)


@EVERY
def test_states_are_the_cpus(both: Both, name: str) -> None:
    """Until the thread's end, where an empty one ends the last."""
    trace, read, _ = both(name)
    wanted = []
    for _, thread in trace.threads:
        states = [(thread.tid, ts, value) for ts, _, value in states_of(trace, thread.load(trace))]
        wanted += [*states, (thread.tid, thread.end_ts, "")] if states else []
    assert sorted((s.tid, s.ts, s.value) for s in read.states) == sorted(wanted)


@EVERY
def test_threads_and_processes(both: Both, name: str) -> None:
    trace, read, _ = both(name)
    assert sorted((p.pid, p.name) for p in read.processes.values()) == sorted((p.pid, p.name) for p in trace.processes)
    threads = sorted(read.threads.values(), key=lambda t: read.tracks[t.uuid].rank or 0)
    # The viewer shows "thread 7 7" otherwise.
    assert [(t.pid, t.tid, t.name or f"thread {t.tid}") for t in threads] == [
        (p.pid, t.tid, t.name) for p, t in trace.threads
    ]
    assert [t.name for t in threads if t.name and t.name == f"thread {t.tid}"] == []


@EVERY
def test_clock_and_provenance(both: Both, name: str) -> None:
    trace, read, _ = both(name)
    assert trace.clock is not None
    assert read.clock_id == {"realtime": 1, "monotonic": 3, "boot": 6, "tsc": 6}[trace.clock.kind]
    assert read.attributes.items() >= {**trace.attributes, "converted_by": "traceferry"}.items()
    assert trace.inputs[0].path in str(read.attributes["inputs"])


def test_source_locations_and_categories(both: Both) -> None:
    trace, read, _ = both("fdr-c19-pie-events.xray")
    assert all(s.source and s.source.file and s.source.line and s.source.function == s.name for s in read.slices)
    frames = frame_names(trace)
    categories = {
        frames[i]: trace.strings[int(trace.categories["name"][c])] for i, c in enumerate(trace.frames["category"])
    }
    assert all(s.categories == (categories[s.name or ""],) for s in read.slices)


# ---------------------------------------------------------------- limits


def test_what_is_too_deep_is_cut_and_reported(both: Both) -> None:
    trace, read, _ = both("deep")
    assert len(read.slices) == 512
    assert report_of(trace)["depth_cut"] == 600 - 512
    assert next(issue.severity for issue in trace.report if issue.kind == "depth_cut") == "info"
    # The recording lost nothing: exit status 0.
    assert not trace.report.lossy


def test_arguments_of_calls_that_are_cut_do_not_move(load: Load, tmp_path: Path) -> None:
    from builders.xray import Fdr

    log = Fdr(frequency=10**9)
    calls = [log.enter(1, 1)] * 510 + [log.enter_arg(2, 1) + log.argument(n) for n in range(5)]
    trace = load(log.buffer(1, records=[log.new_cpu(0, 1000), *calls]))
    read = perfetto.read(saved(trace, tmp_path / "out.pftrace"))
    assert [s.args["arg0"] for s in read.slices if "arg0" in s.args] == [0, 1]


@pytest.mark.parametrize("n_functions", [100, 200, 20_000])
def test_many_functions(load: Load, tmp_path: Path, n_functions: int) -> None:
    """Interned ids of one, two and three bytes."""
    from builders.xray import Fdr

    log = Fdr(frequency=10**9)
    calls = b"".join(log.enter(n, 1) + log.exit(n, 1) for n in range(1, n_functions + 1))
    trace = load(log.buffer(1, records=[log.new_cpu(0, 1000), calls]))
    read = perfetto.read(saved(trace, tmp_path / "out.pftrace"))
    assert [s.name for s in read.slices] == [f"function {n}" for n in range(1, n_functions + 1)]
    assert [s.args["function_id"] for s in read.slices] == list(range(1, n_functions + 1))


@pytest.mark.parametrize("delta", [0, 1, 127, 128, 2**14, 2**21, 2**28 - 1, 2**28, 2**32 - 1])
def test_times_of_every_length(load: Load, tmp_path: Path, delta: int) -> None:
    from builders.xray import Fdr

    log = Fdr(frequency=10**9)
    calls = [log.enter(1, 0), log.enter(2, delta), log.exit(2, delta), log.exit(1, delta)]
    trace = load(log.buffer(1, records=[log.new_cpu(0, 1000), *calls]))
    read = perfetto.read(saved(trace, tmp_path / "out.pftrace"))
    assert [(s.ts - read.slices[0].ts, s.dur) for s in read.slices] == [(0, 3 * delta), (delta, delta)]


def test_nameless_functions_keep_their_id(both: Both) -> None:
    _, read, _ = both("gaps")
    assert {(s.name, s.args["function_id"]) for s in read.slices} == {
        ("function 1", 1), ("function 2", 2), ("function 3", 3), ("function 4", 4),
    }  # fmt: skip


def test_named_functions_have_no_id(load: Load, tmp_path: Path) -> None:
    program = tmp_path / "app"
    program.write_bytes(elf_with_instr_map([("main", 0x2000, [0, 1])], pie=False))
    trace = load(fdr("A a"), symbols=program)
    (only,) = perfetto.read(saved(trace, tmp_path / "out.pftrace")).slices
    assert (only.name, only.args) == ("main", {})


# ---------------------------------------------------------------- trace_processor


@EVERY
def test_trace_processor_finds_no_error(both: Both, trace_processor: Callable[[Path], Any], name: str) -> None:
    """And the same slices, arguments, instants, states, lines and threads."""
    trace, read, path = both(name)
    with trace_processor(path) as processor:
        slices = list(
            processor.query(
                "SELECT slice.name AS name, slice.ts AS ts, slice.dur AS dur, slice.depth AS depth, slice.category AS "
                "category, thread.tid AS tid FROM slice JOIN thread_track ON slice.track_id = thread_track.id "
                "JOIN thread USING (utid) ORDER BY slice.id"
            )
        )
        assert all(row.dur >= 0 for row in slices)
        wanted = Counter((s.name, s.ts, s.dur, s.depth, s.categories[0], s.tid) for s in read.slices)
        wanted += Counter((i.name, i.ts, 0, None, i.categories[0], i.tid) for i in read.instants)
        instants = {i.name for i in read.instants}
        found = Counter(
            (r.name, r.ts, r.dur, None if r.name in instants else r.depth, r.category, r.tid) for r in slices
        )
        assert found == wanted
        n_args = sum(len(s.args) for s in (*read.slices, *read.instants))
        of_slices = "SELECT count(*) AS n FROM slice JOIN args USING (arg_set_id) WHERE key"
        (row,) = processor.query(f"{of_slices} GLOB 'debug.*'")
        assert row.n == n_args
        (row,) = processor.query(f"{of_slices} = 'source.line_number' AND int_value > 0")
        assert row.n == sum(s.source is not None and bool(s.source.line) for s in read.slices)
        states = list(processor.query("SELECT ts, value FROM __intrinsic_state ORDER BY ts"))
        assert Counter((r.ts, r.value) for r in states) == Counter((s.ts, s.value) for s in read.states)
        names = {(r.tid, r.name) for r in processor.query("SELECT tid, name FROM thread WHERE tid != 0")}
        # Where a thread has no name, the viewer makes one of its number.
        assert names >= {(t.tid, None if t.name == f"thread {t.tid}" else t.name) for _, t in trace.threads}
        # Last, so that what is read is compared first.
        assert [(row.name, row.value) for row in processor.query(STATS)] == []


@pytest.mark.large
def test_trace_processor_reads_small5m(tmp_path: Path, trace_processor: Callable[[Path], Any]) -> None:
    trace = loaded("small5m-fdr-c19-pie-bigmix.xray")
    path = saved(trace, tmp_path / "out.pftrace")
    with trace_processor(path) as processor:
        assert [(row.name, row.value) for row in processor.query(STATS)] == []
        (row,) = processor.query("SELECT count(*) AS n, min(dur) AS least FROM slice")
        assert row.n == sum(len(thread.load(trace).calls) // 2 for _, thread in trace.threads)
        assert row.least >= 0
    assert "depth_cut" not in kinds(trace.report)
