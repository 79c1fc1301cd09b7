"""Every shared recording against what llvm-xray and an independent reader say (shared/captures/EXPECTED.md)."""

import json
import re
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from recordings import binaries_of, content, loaded, names, path_of
from support import Call, all_calls, calls_of, events_of, frame_names, kinds, load_checked, states_of

from traceferry.analysis.info.summary import summarize
from traceferry.model import ENTRY_LOST, LEAVE, OPEN_AT_END, OPEN_AT_START, TAIL, UNWOUND, ThreadData, Trace

LOGS = names(r".*\.xray")
EXPECTED = names(r".*\.xray\.expected\.json|fdr-.*\.expected\.json")
YAML = names(r".*\.yaml")
REENCODED = names(r".*\.v\d.*\.xray")
ORIGINAL = "fdr-c19-pie-pool-tsc.xray"


@pytest.mark.parametrize("log", LOGS)
def test_every_log_obeys_the_laws(log: str) -> None:
    trace = loaded(log)
    assert sum(len(thread.load(trace).calls) for _, thread in trace.threads) > 0
    assert not kinds(trace.report) & {"bad_buffer", "bad_record", "truncated", "clock_frequency_unusable"}
    assert "no_symbols" not in kinds(trace.report)


# ---------------------------------------------------------------- expected.json


def read_expected(name: str) -> tuple[str, dict[str, Any]]:
    """(the log, what is expected of it)"""
    expected = json.loads(content(name))
    return expected["file"], expected


def count(flags: Any, flag: int) -> int:
    return int(np.count_nonzero(flags & flag))


def thread_summary(trace: Trace, data: ThreadData) -> dict[str, Any]:
    """In the words of EXPECTED.md."""
    flags, events = data.calls["flags"], events_of(data)
    depth = np.cumsum(np.where(flags & LEAVE, -1, 1))
    is_unwound = (flags & UNWOUND) != 0
    # Each run of unwound leaves is closed by the next leave: that one closed deeper.
    deeper = int(np.count_nonzero(is_unwound[:-1] & ~is_unwound[1:]))
    exits = count(flags, LEAVE) - count(flags, UNWOUND) - count(flags, OPEN_AT_END)
    orphans = count(flags, OPEN_AT_START) + count(flags, ENTRY_LOST)
    return {
        "enters": len(flags) - count(flags, LEAVE) - orphans,
        "exit": exits - count(flags, TAIL),
        "tail_exit": count(flags, TAIL),
        "custom": len(events.get("Custom event", [])),
        "typed": len(events.get("Typed event", [])),
        "max_depth": int(depth.max(initial=0)),
        "closed_exactly": exits - deeper - orphans,
        "closed_deeper": deeper,
        "closed_above": count(flags, UNWOUND),
        "ignored_exits": orphans,
        "open_at_end": count(flags, OPEN_AT_END),
        "cpus": sorted({int(value.removeprefix("CPU ")) for _, _, value in states_of(trace, data)}),
    }


@pytest.mark.parametrize("name", EXPECTED)
def test_threads_as_expected(name: str) -> None:
    log, expected = read_expected(name)
    trace = loaded(log)
    found = {(process.pid, thread.tid): thread for process, thread in trace.threads}
    assert found.keys() == {(thread["pid"], thread["tid"]) for thread in expected["threads"]}
    frequency = int(expected["header"]["cycle_frequency"])
    for wanted in expected["threads"]:
        thread = found[wanted["pid"], wanted["tid"]]
        mine = thread_summary(trace, thread.load(trace))
        wanted["enters"] = wanted["enter"] + wanted["enter_arg"]
        assert mine == {key: wanted[key] for key in mine}
        first, last = (int(wanted[key]) * 10**9 // frequency for key in ("first_tsc", "last_tsc"))
        assert thread.end_ts - thread.start_ts == last - first
    assert abs(trace.end_ts - trace.start_ts - expected["time"]["duration_ns"]) <= 1


@pytest.mark.parametrize("name", EXPECTED)
def test_functions_as_expected(name: str) -> None:
    log, expected = read_expected(name)
    trace = loaded(log)
    of_name: dict[str, list[Call]] = defaultdict(list)
    for call in sorted((call for calls in all_calls(trace) for call in calls), key=lambda c: c.start):
        of_name[call.name].append(call)
    wanted_names = [function["name"] for function in expected["functions"] if function["calls"]]
    assert sorted(of_name) == sorted(set(wanted_names))
    for function in expected["functions"]:
        if wanted_names.count(function["name"]) != 1:
            continue
        calls = of_name[function["name"]]
        closed = [call for call in calls if not call.flags & (UNWOUND | OPEN_AT_END)]
        assert len(calls) == function["calls"], function["name"]
        assert len(closed) == function["closed_calls"], function["name"]
        assert sum(bool(call.flags & TAIL) for call in calls) == function["tail_exits"], function["name"]
        first = [None if call not in closed else call.end - call.start for call in calls[:3]]
        for mine, wanted in zip(first, function["first_durations_ns"], strict=True):
            assert mine == pytest.approx(wanted, abs=1), function["name"]
        total = sum(call.end - call.start for call in closed)
        assert total == pytest.approx(function["total_ns_closed"], abs=len(closed)), function["name"]
        args = [list(map(str, call.args)) for call in calls if call.args][: len(function["first_args"])]
        assert args == function["first_args"], function["name"]


@pytest.mark.parametrize("name", EXPECTED)
def test_events_as_expected(name: str) -> None:
    log, expected = read_expected(name)
    trace = loaded(log)
    first_tsc = {thread["tid"]: int(thread["first_tsc"]) for thread in expected["threads"]}
    frequency = int(expected["header"]["cycle_frequency"])
    mine: dict[int, list[tuple[int, str, int | None, str]]] = {}
    types: Counter[str] = Counter()
    size = 0
    for _, thread in trace.threads:
        events = events_of(thread.load(trace))
        rows = [("custom", row) for row in events.get("Custom event", [])]
        rows += [("typed", row) for row in events.get("Typed event", [])]
        size += sum(len(payload_of(row["data"])) for _, row in rows)
        types.update(str(row["event_type"]) for kind, row in rows if kind == "typed")
        mine[thread.tid] = sorted(
            (row["ts"] - thread.start_ts, kind, row.get("event_type"), row["data"]) for kind, row in rows
        )
    wanted: dict[int, list[tuple[int, str, int | None, str]]] = defaultdict(list)
    for event in expected["events"]["first"]:
        since = int(event["tsc"]) * 10**9 // frequency - first_tsc[event["tid"]] * 10**9 // frequency
        wanted[event["tid"]].append((since, event["kind"], event["type"], shown(bytes.fromhex(event["hex"]))))
    for tid, rows in wanted.items():
        assert mine[tid][: len(rows)] == sorted(rows)
    assert dict(types) == expected["events"]["typed_types"]
    assert size == expected["events"]["payload_bytes"]


def shown(payload: bytes) -> str:
    """Text where it is printable UTF-8, else hex."""
    try:
        text = payload.decode()
    except UnicodeDecodeError:
        return payload.hex()
    return text if text.isprintable() else payload.hex()


def payload_of(data: str) -> bytes:
    return bytes.fromhex(data) if re.fullmatch("([0-9a-f]{2})+", data) else data.encode()


# ---------------------------------------------------------------- llvm-xray's yaml


class Record(NamedTuple):
    kind: str
    function: str
    tsc: int
    args: tuple[int, ...] = ()


YAML_RECORD = re.compile(
    r"- \{ type: \d+, func-id: \d+, function: (?P<function>'(?:[^']|'')*'|[^,]*), "
    r"(?:args: \[ (?P<args>[^]]*) \], )?cpu: \d+, thread: (?P<thread>\d+), process: (?P<process>\d+), "
    r"kind: (?P<kind>[a-z-]+), tsc: (?P<tsc>\d+), data: (?P<data>.*) \}$"
)
KINDS = {
    "function-enter": "enter", "function-enter-arg": "enter", "function-exit": "exit",
    "function-tail-exit": "tail exit",
}  # fmt: skip


def read_yaml(name: str) -> tuple[int, dict[int, list[Record]]]:
    """(frequency, records of each thread in the order of their time stamps): llvm-xray keeps the file's order."""
    lines = content(name).decode(errors="replace").splitlines()
    frequency = next(int(line.split()[1]) for line in lines if "cycle-frequency" in line)
    threads: dict[int, list[Record]] = defaultdict(list)
    for line in lines[lines.index("records:") + 1 :]:
        match = YAML_RECORD.search(line)
        if match is None:
            assert line == "...", line
            continue
        if match["kind"] in KINDS:
            function = match["function"].strip("'").replace("''", "'")
            args = tuple(int(a) for a in (match["args"] or "").split(",") if a.strip())
            threads[int(match["thread"])].append(Record(KINDS[match["kind"]], function, int(match["tsc"]), args))
    return frequency, {tid: sorted(records, key=lambda r: r.tsc) for tid, records in threads.items()}


def recorded(trace: Trace, data: ThreadData, zero: int) -> list[Record]:
    """The rows that stand for a record of the file; tsc holds ns since `zero`."""
    of_frame = frame_names(trace)
    args: dict[int, list[int]] = defaultdict(list)
    for call, value in zip(data.arguments["call"].tolist(), data.arguments["value"].tolist(), strict=True):
        args[call].append(value)
    rows = zip(*(data.calls[column].tolist() for column in ("ts", "frame", "flags")), strict=True)
    not_recorded = UNWOUND | OPEN_AT_END | OPEN_AT_START | ENTRY_LOST
    return [
        Record(
            "tail exit" if flags & TAIL else "exit" if flags & LEAVE else "enter",
            of_frame[frame], ts - zero, tuple(args.get(row, ())),
        )
        for row, (ts, frame, flags) in enumerate(rows)
        if not flags & not_recorded
    ]  # fmt: skip


def log_of_yaml(name: str) -> str:
    return f"{Path(name).stem}.xray"


@pytest.mark.parametrize("name", YAML)
def test_records_as_llvm_xray_reads_them(name: str) -> None:
    """Every record of every thread: kind, function, time and arguments."""
    frequency, wanted = read_yaml(name)
    trace = loaded(log_of_yaml(name))
    mine = {thread.tid: thread for _, thread in trace.threads}
    assert mine.keys() == wanted.keys()
    first = min(record.tsc for records in wanted.values() for record in records) * 10**9 // frequency
    zero = min(int(thread.load(trace).calls["ts"][0]) for thread in mine.values())
    for tid, records in wanted.items():
        in_ns = [record._replace(tsc=record.tsc * 10**9 // frequency - first) for record in records]
        assert recorded(trace, mine[tid].load(trace), zero) == in_ns


# ---------------------------------------------------------------- where llvm-xray is wrong


def test_llvm_xray_cuts_binary_payloads() -> None:
    """Section 7: its yaml ends a binary payload at what it cannot print; here it is whole."""
    name = "fdr-c19-pie-events.yaml"
    lines = [line for line in content(name).decode(errors="replace").splitlines() if "custom-event" in line]
    in_yaml = [re.search(r"data: (.*) \}", line)[1] for line in lines]  # type: ignore[index]
    trace = loaded(log_of_yaml(name))
    rows = [row for _, t in trace.threads for row in events_of(t.load(trace)).get("Custom event", [])]
    assert len(in_yaml) == len(rows) == 12
    binary = [row for row in rows if re.fullmatch("[0-9a-f]{96}", row["data"])]
    assert len(binary) == 1
    assert binary[0]["size"] == 48
    assert sorted(f"'{r['data']}'" for r in rows if r not in binary) == sorted(
        text for text in in_yaml if text.startswith("'event #")
    )


def test_llvm_xray_refuses_typed_events() -> None:
    """Section 6: the cut extents make it refuse the whole log; all records in front of the cut are here."""
    log, expected = read_expected("fdr-c19-pie-typed.expected.json")
    assert any("Failed loading" in error for error in expected["llvm_errors"])
    trace = loaded(log)
    assert "cut_record" in kinds(trace.report)
    assert sum(len(calls) for calls in all_calls(trace)) == sum(f["calls"] for f in expected["functions"])


def test_llvm_xray_cannot_resolve_shared_objects() -> None:
    """Section 6: it prints '#16777217' for the functions of LLVM 20's shared objects; here they have names."""
    trace = loaded("fdr-c22-dso.xray")
    called = {call.name for calls in all_calls(trace) for call in calls}
    assert "main" in called
    assert not [name for name in called if name.startswith(("function", "#"))]
    assert {trace.strings[int(name)] for name in trace.libs["name"]} == {"dso_main", "libdso.so"}


def test_llvm_xray_reads_wrapped_rings_in_file_order() -> None:
    """Section 7: in file order this one has 7 exits without entry and 2 open calls, in order of time 5 and none."""
    trace = loaded("fdr-c19-pie-pool-ring.xray")
    flags = np.concatenate([thread.load(trace).calls["flags"] for _, thread in trace.threads])
    assert count(flags, OPEN_AT_START) + count(flags, ENTRY_LOST) == 5
    assert count(flags, OPEN_AT_END) == 0
    assert trace.report.lossy


def test_llvm_xray_reads_stale_tails() -> None:
    """Section 6: of the version 1 log with stale tails it reads 9,702 records; 2,718 are real."""
    trace = loaded("fdr-c19-pie-pool-tsc.v1stale.xray")
    data = [thread.load(trace) for _, thread in trace.threads]
    assert sum(len(d.calls) for d in data) == 2718


# ---------------------------------------------------------------- the same log in other versions


def without_names_of_processes(trace: Trace) -> dict[int, tuple[list[Call], list[tuple[int, str, str]]]]:
    """Calls and states of each thread, on a clock that starts with the recording."""
    zero = trace.start_ts
    return {
        thread.tid: (
            [c._replace(start=c.start - zero, end=c.end - zero) for c in calls_of(trace, thread.load(trace))],
            [(ts - zero, track, value) for ts, track, value in states_of(trace, thread.load(trace))],
        )
        for _, thread in trace.threads
    }


@pytest.mark.parametrize("log", REENCODED)
def test_every_version_and_byte_order_gives_the_same_calls(log: str) -> None:
    mine = loaded(log)
    assert without_names_of_processes(mine) == without_names_of_processes(loaded(ORIGINAL))
    version = re.search(r"v(\d)", log)[1]  # type: ignore[index]
    assert summarize(mine)["inputs"][0]["version"] == f"FDR {version}"
    assert ("pid_unknown" in kinds(mine.report)) == (version in "12")


def test_basic_mode_leaves_out_what_is_too_deep() -> None:
    """Section 4: 132 enters of 190, because frames deeper than 64 are dropped by the recorder."""
    trace = loaded("basic-c19-pie-recurse.xray")
    (calls,) = all_calls(trace)
    assert len(calls) == 132
    assert max(call.depth for call in calls) == 63


# ---------------------------------------------------------------- several files of one recording


@pytest.mark.parametrize("order", [1, -1], ids=["parent first", "child first"])
def test_parent_and_forked_child(order: int) -> None:
    """Each buffer once, two processes on one clock, each thread once."""
    logs = [path_of("fork-parent.xray"), path_of("fork-child.xray")][::order]
    trace = load_checked(logs, symbols=binaries_of("fork-parent.xray"))
    threads = [(process.pid, thread.tid) for process, thread in trace.threads]
    assert len(set(threads)) == len(threads)
    assert len(trace.processes) == 2
    assert "clock_unrelated" not in kinds(trace.report)
