"""The readers of the outputs, checked on traces written here byte by byte and on profiles known to load."""

import gzip
import importlib.util
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import pytest
from clients import firefox
from conftest import NO_SHARED, SHARED
from readers import perfetto

EXAMPLES = SHARED / "examples"

# --- Perfetto: a writer of just what the tests need; numbers of its .proto files ---


def varint(number: int) -> bytes:
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


Field = tuple[int, "int | float | str | bytes"]


def message(*fields: Field) -> bytes:
    out = b""
    for number, value in fields:
        if isinstance(value, int):
            out += varint(number << 3) + varint(value)
        elif isinstance(value, float):
            out += varint(number << 3 | 1) + struct.pack("<d", value)
        else:
            data = value.encode() if isinstance(value, str) else value
            out += varint(number << 3 | 2) + varint(len(data)) + data
    return out


def packet(*fields: Field) -> bytes:
    return message((1, message(*fields)))


def descriptor(*fields: Field) -> bytes:
    return packet((60, message(*fields)))


def event(at: int, kind: int, *fields: Field, track: int = 11, sequence: int = 1) -> bytes:
    body = message((9, kind), (11, track), *fields)
    return packet((8, at), (10, sequence), (11, body))


PROCESS = descriptor((1, 10), (3, message((1, 7), (2, "a.out"), (2, "-x"), (6, "demo"), (7, 99))))
THREAD = descriptor((1, 11), (5, 10), (12, -3), (4, message((1, 7), (2, 8), (5, "worker"))))
CLOCK = packet((6, message((1, message((1, 3), (2, 1000))), (2, 3))))
HEAD = CLOCK + PROCESS + THREAD
CLEARED, NEEDS = 1, 2


def test_threads_processes_and_tracks() -> None:
    child = descriptor((1, 12), (5, 11), (2, "Child"), (14, "of a thread"))
    trace = perfetto.parse(HEAD + child)
    assert trace.errors == []
    assert trace.clock_id == perfetto.MONOTONIC
    assert trace.processes == {10: perfetto.Process(10, 7, "demo", ["a.out", "-x"], 99)}
    assert trace.threads == {11: perfetto.Thread(11, 7, 8, "worker")}
    assert trace.tracks[11].rank == -3
    assert (trace.tracks[12].pid, trace.tracks[12].tid, trace.tracks[12].name) == (7, 8, "Child")


def test_slices_nest_and_merge_arguments() -> None:
    nested = message((10, "list"), (12, message((4, -1))), (12, message((11, message((10, "k"), (2, 1))))))
    begin = [
        (23, "outer"), (22, "a"), (22, "b"), (33, message((2, "f.c"), (3, "f"), (4, 12))),
        (4, message((10, "n"), (3, 1 << 63))), (4, message((10, "x"), (5, 0.5))), (4, nested),
        (4, message((10, "p"), (7, 4096))), (4, message((10, "s"), (6, "text"))),
    ]  # fmt: skip
    trace = perfetto.parse(
        HEAD
        + event(10, 1, *begin)
        + event(20, 1, (23, "inner"))
        + event(20, 3, (23, "now"))
        + event(30, 2)
        + event(40, 2, (4, message((10, "n"), (4, -5))))
    )
    assert trace.errors == []
    outer, inner = trace.slices
    assert (outer.pid, outer.tid, outer.ts, outer.dur, outer.depth) == (7, 8, 10, 30, 0)
    assert outer.categories == ("a", "b")
    assert outer.args == {"n": -5, "x": 0.5, "list": [-1, {"k": True}], "p": 4096, "s": "text"}
    assert outer.source == perfetto.Source("f.c", "f", 12)
    assert (inner.name, inner.ts, inner.dur, inner.depth) == ("inner", 20, 10, 1)
    assert [(one.name, one.ts, one.tid) for one in trace.instants] == [("now", 20, 8)]


def test_interning_defaults_and_incremental_clock() -> None:
    interned = message(
        (1, message((1, 1), (2, "cat"))), (2, message((1, 1), (2, "name"))),
        (3, message((1, 1), (2, "key"))), (29, message((1, 1), (2, "value"))),
        (4, message((1, 1), (2, "f.c"), (4, 3))),
    )  # fmt: skip
    defaults = message((58, 64), (11, message((11, 11))))
    clocks = message((1, message((1, 3), (2, 5000))), (1, message((1, 64), (2, 100), (3, 1))))
    body = message((9, 1), (10, 1), (3, 1), (34, 1), (4, message((1, 1), (17, 1))))
    steps = [
        packet((10, 5), (13, CLEARED)),
        packet((10, 5), (13, NEEDS), (6, clocks), (59, defaults), (12, interned)),
        packet((10, 5), (13, NEEDS), (8, 30), (11, body)),
        packet((10, 5), (13, NEEDS), (8, 4), (11, message((9, 2)))),
    ]
    trace = perfetto.parse(HEAD + b"".join(steps))
    assert trace.errors == []
    (one,) = trace.slices
    assert (one.track, one.ts, one.dur, one.name, one.categories) == (11, 5030, 4, "name", ("cat",))
    assert one.args == {"key": "value"}
    assert one.source == perfetto.Source("f.c", None, 3)

    again = packet((10, 5), (13, CLEARED), (12, message((2, message((1, 1), (2, "other"))))))
    unknown = packet((10, 5), (13, NEEDS), (8, 6000), (11, message((9, 3), (10, 1), (3, 1), (11, 11))))
    trace = perfetto.parse(HEAD + b"".join(steps) + again + unknown)
    assert trace.errors == ["packet 8: sequence 5: unknown interned category 1"]
    assert trace.instants[0].name == "other"
    assert trace.instants[0].ts == 6000


def test_multiplier_and_clocks_two_snapshots_away() -> None:
    realtime = message((1, message((1, 1), (2, 10**18))), (1, message((1, 3), (2, 2000))))
    scoped = message((1, message((1, 1), (2, 10**18))), (1, message((1, 70), (2, 1), (3, 1), (4, 1000))))
    steps = [packet((6, realtime)), packet((10, 5), (6, scoped))]
    for _ in range(2):
        steps.append(packet((10, 5), (8, 3), (58, 70), (11, message((9, 3), (11, 11)))))
    trace = perfetto.parse(HEAD + b"".join(steps))
    assert trace.errors == []
    assert [one.ts for one in trace.instants] == [5000, 8000]


def test_later_snapshot_holds_from_its_value_on() -> None:
    first = message((1, message((1, 1), (2, 100))), (1, message((1, 3), (2, 1000))))
    second = message((1, message((1, 1), (2, 200))), (1, message((1, 3), (2, 5000))))
    events = [packet((8, at), (58, 1), (11, message((9, 3), (11, 11)))) for at in (90, 150, 200, 250)]
    trace = perfetto.parse(HEAD + packet((6, first)) + packet((6, second)) + b"".join(events))
    assert [one.ts for one in trace.instants] == [990, 1050, 5000, 5050]


def test_states_and_counters() -> None:
    state = descriptor((1, 20), (5, 11), (2, "CPU"), (18, b""))
    counter = descriptor((1, 21), (5, 10), (2, "Heap"), (8, message((3, 3), (4, 10), (5, 1))))
    extra = message((9, 3), (11, 11), (31, 21), (12, 2))
    trace = perfetto.parse(
        HEAD + state + counter
        + event(10, 5, (23, "cpu 1"), track=20) + event(15, 5, (23, "cpu 2"), track=20)
        + event(18, 5, track=20)
        + event(20, 4, (30, 5), track=21) + event(21, 4, (44, -1.5), track=21) + packet((8, 22), (11, extra))
        + event(30, 5, (23, "last"), track=20)
    )  # fmt: skip
    assert trace.errors == []
    assert [(one.value, one.ts, one.dur, one.tid) for one in trace.states] == [
        ("cpu 1", 10, 5, 8), ("cpu 2", 15, 3, 8), ("last", 30, None, 8),
    ]  # fmt: skip
    heap = trace.counters[21]
    assert (heap.name, heap.unit, heap.pid, heap.tid) == ("Heap", 3, 7, None)
    assert heap.values == [(20, 50), (21, 35), (22, 55)]


def test_attributes() -> None:
    one, two = message((1, "tool"), (3, "x")), message((1, "records"), (2, -4))
    trace = perfetto.parse(HEAD + packet((126, message((1, one), (1, two)))))
    assert trace.attributes == {"tool": "x", "records": -4}


def test_sequences_merge_by_time_and_keep_file_order_within_one_time() -> None:
    trace = perfetto.parse(
        HEAD
        + event(10, 1, (23, "a"), sequence=1)
        + event(30, 2, sequence=1)
        + event(20, 1, (23, "b"), sequence=2)
        + event(20, 2, sequence=2)
    )
    assert trace.errors == []
    assert [(one.name, one.dur, one.depth) for one in trace.slices] == [("a", 20, 0), ("b", 0, 1)]


@pytest.mark.parametrize(
    ("packets", "message_part"),
    [
        (event(5, 2), "track 11: END without BEGIN at 5"),
        (event(5, 1, (23, "f")), "slice 'f' begun at 5 is left open"),
        (event(5, 1) + event(4, 2), "time goes back from 5 to 4 at an END: negative duration"),
        (event(5, 3) + event(4, 3), "packet 4: sequence 1: time goes back from 5 to 4"),
        (event(5, 3, (10, 4)), "sequence 1: unknown interned event name 4"),
        (event(5, 3, (34, 4)), "unknown interned source location 4"),
        (event(5, 3, (4, message((1, 4), (2, 1)))), "unknown interned annotation name 4"),
        (event(5, 3, (4, message((10, "k"), (17, 4)))), "unknown interned string value 4"),
        (event(5, 3, track=99), "track 99 has no descriptor"),
        (descriptor((1, 12), (5, 98)) + event(5, 3), "track 12: ancestor 98 has no descriptor"),
        (descriptor((1, 12), (5, 13)) + descriptor((1, 13), (5, 12)), "cycle"),
        (descriptor((1, 11), (4, message((1, 7), (2, 9)))), "track 11: tid changes from 8 to 9"),
        (event(1, 1) * 513 + event(2, 2) * 513, "track 11: 1 slices are deeper than 512"),
        (packet((8, 1), (10, 3), (13, NEEDS), (11, message((9, 3), (11, 11)))), "never cleared"),
        (packet((8, 1), (58, 6), (11, message((9, 3), (11, 11)))), "no clock snapshot leads from clock 6"),
        (packet((12, message((2, message((1, 1), (2, "x")))))), "without a sequence id"),
        (packet((10, 3), (12, message((2, message((1, 0), (2, "x")))))), "event name 0 is not a valid id"),
        (event(5, 3, (23, b"\xff")), "not UTF-8"),
        (event(5, 3, *[(4, message((10, "k"), (2, 1)))] * 2), "'k' is given twice"),
        (event(5, 4, (30, 1)), "track 11 has no counter descriptor"),
        (event(5, 5, (23, "s")), "an event of state on a thread track"),
        (packet((11, message((9, 3), (11, 11)))), "without timestamp"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_errors(packets: bytes, message_part: str) -> None:
    errors = perfetto.parse(HEAD + packets).errors
    assert any(message_part in error for error in errors), errors


def test_reinterning_another_value_is_an_error() -> None:
    def names(text: str) -> bytes:
        return packet((10, 3), (12, message((2, message((1, 1), (2, text))))))

    assert perfetto.parse(HEAD + names("a") * 2).errors == []
    assert "changes from 'a' to 'b'" in perfetto.parse(HEAD + names("a") + names("b")).errors[0]


@pytest.mark.parametrize("data", [HEAD[:-1], HEAD + b"\x12\x00", HEAD + b"\x0a", packet() + b"\x0a\x02\x0b\x00"])
def test_malformed(data: bytes) -> None:
    with pytest.raises(perfetto.MalformedTrace):
        perfetto.parse(data)


def test_compression(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = HEAD + event(1, 1, (23, "f")) + event(3, 2)
    path = tmp_path / "t.pftrace.gz"
    path.write_bytes(gzip.compress(data))
    assert perfetto.read(path) == perfetto.parse(data)
    inside = perfetto.parse(packet((50, zlib.compress(data))))
    assert inside == perfetto.parse(data)

    assert perfetto.main([str(path)]) == 0
    assert "thread 7/8 'worker': 1 slices" in capsys.readouterr().out
    path.write_bytes(gzip.compress(HEAD + event(1, 2)))
    assert perfetto.main([str(path)]) == 1


def test_example_traces(tmp_path: Path) -> None:
    """proto.py writes them with the perfetto package; trace_processor loaded them without error."""
    script = EXAMPLES / "perfetto" / "proto.py"
    if not script.exists():
        pytest.skip(f"{script.name}: {NO_SHARED}")
    if importlib.util.find_spec("perfetto") is None:
        pytest.skip("the package perfetto is not installed: make installs it")
    subprocess.run([sys.executable, script, tmp_path], check=True, capture_output=True, timeout=60)

    traces = {path.stem: perfetto.read(path) for path in tmp_path.glob("*.pftrace")}

    assert len(traces) == 9
    slices = traces["a_slices"]
    assert [(one.name, one.ts - 10**12, one.dur, one.depth) for one in slices.slices] == [
        ("Main()", 100, 200, 0), ("Foo(int)", 150, 25, 1),
    ]  # fmt: skip
    assert slices.slices[1].args == {"arg0": 7, "str": "hello"}
    assert slices.slices[1].source == perfetto.Source("/src/foo.cc", "Foo(int)", 42)
    assert [(one.value, one.dur) for one in slices.states] == [("mark", 50), ("sweep", 50)]
    assert [value for _, value in slices.counters[200].values] == [1000, 4000]
    assert [one.ts - 10**12 for one in traces["f_callstacks"].instants] == [100, 200, 300]
    # It writes the counter and the state one after the other on one sequence.
    assert len(slices.errors) == 1
    assert "sequence 11: time goes back" in slices.errors[0]
    assert all(trace.errors == [] for name, trace in traces.items() if name != "a_slices")


# --- Firefox Profiler ---


def example_profile(name: str) -> Path:
    if reason := firefox.available():
        print(reason)
        pytest.skip(reason)
    path = EXAMPLES / "firefox" / name
    if not path.exists():
        pytest.skip(f"{name}: {NO_SHARED}")
    return path


def test_firefox_full_profile() -> None:
    with firefox.ProfilerCli(example_profile("full-v70.json")) as cli:
        assert [(one["threadHandle"], one["name"]) for one in cli.threads()] == [
            ("t-0", "node"), ("t-1", "xray-worker"),
        ]  # fmt: skip
        assert {one["name"]: one["selfSamples"] for one in cli.functions("t-0")} == {
            "inner": 26, "hot": 19, "hot [graph]": 10, "(anonymous)": 3, "main": 0,
        }  # fmt: skip
        assert cli.samples("t-0")["weightType"] == "samples"
        assert len(cli.markers("t-0")) == 8
        assert cli.markers("t-1") == []
        assert "xray-worker" in cli.text("profile", "info", "--all")
        assert cli.run("profile", "meta")["type"] == "profile-meta"
        with pytest.raises(firefox.ProfilerCliError, match="Unknown thread t-99"):
            cli.samples("t-99")


def test_the_daemon_answers_as_the_command_does() -> None:
    with firefox.ProfilerCli(example_profile("full-v70.json")) as cli:
        thread = ("--thread", "t-0", "--limit", "0", "--include-idle")
        assert cli.threads() == cli.run("thread", "list", "--sort", "index", "--limit", "0")["threads"]
        assert cli.samples("t-0", include_idle=True) == cli.run("thread", "samples", *thread)
        assert cli.markers("t-0") == cli.run("thread", "markers", "--thread", "t-0", "--list")["flatMarkers"]
        functions = cli.run("thread", "functions", *thread, "--merge", "f-0")["functions"]
        assert cli.functions("t-0", include_idle=True, merge=[0]) == functions != cli.functions("t-0")
        tree = cli.run("thread", "samples-top-down", "--thread", "t-0", "--max-lines", "2")["regularCallTree"]
        assert cli.call_tree("t-0", most=2) == tree
        prefix = cli.run("thread", "samples", *thread, "--includes-prefix", "f-0")
        assert cli.samples("t-0", include_idle=True, prefix=[0]) == prefix
        words = ("function", "annotate", "f-0", "--mode", "src", "--context", "file")
        cli.run("thread", "select", "t-0")
        assert cli.annotate("f-0") == cli.run(*words)


def test_firefox_tracing_profile() -> None:
    with firefox.ProfilerCli(example_profile("tracing-ms.json")) as cli:
        assert cli.samples("t-0")["weightType"] == "tracing-ms"
        tree = cli.call_tree("t-0")
        assert tree["totalSamples"] == 15
        assert [one["name"] for one in tree["children"]] == ["main"]
        assert [(one["start"], one["duration"]) for one in cli.markers("t-1")] == [(40, 10)]


def test_firefox_daemon_ends(tmp_path: Path) -> None:
    """Also after a failed load."""
    profile, broken = example_profile("tracing-ms.json"), tmp_path / "broken.json"
    broken.write_text("{")
    failed = firefox.ProfilerCli(broken)
    with pytest.raises(firefox.ProfilerCliError, match="Profile load failed"):
        failed.__enter__()
    with firefox.ProfilerCli(profile) as cli:
        directory = cli._directory
    cli.close()
    for daemon in (failed._daemon, cli._daemon):
        assert daemon is not None
        assert daemon.returncode is not None
    assert directory is not None
    assert not directory.exists()
