"""Our own Firefox profiles come back as they were written, but for what FORMATS.md lists."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import firefox_profiles as made
import pytest
from conftest import REPO
from support import calls_of, load_checked

import traceferry
from traceferry.model import LEAVE, RUNNING, UNKNOWN, Trace
from traceferry.timeline.off_cpu import ENDED, until_next, why

CAPTURES = REPO.parent / "shared" / "captures"
FIXTURES = [
    "jit/php82/perf.data.zst", "jit/wasmtime/perf.data.zst", "jit/java17/perf.data.zst",
    "xray/clang-19/basic-c19-pie-recurse.xray", "xray/clang-19/fdr-c19-pie-pool-tsc.xray",
]  # fmt: skip
# Captures with what only some have: arguments, wake-ups, several events, allocations, tiers, counters.
WANTED = (
    "xray/**/*.xray", "perf-events/**/*.data", "perf-events/**/*.data.zst", "jit/**/perf.data.zst", "mono/**/*.mlpd",
)  # fmt: skip
SMALL = 400_000  # bytes, which are converted in less than 2 s


def recordings() -> list[Any]:
    own = [pytest.param(REPO / "fixtures" / name, id=name) for name in FIXTURES]
    found = (path for pattern in WANTED for path in sorted(CAPTURES.glob(pattern)) if path.stat().st_size < SMALL)
    return own + [pytest.param(path, id=str(path.relative_to(CAPTURES))) for path in found]


@pytest.mark.parametrize("path", recordings())
def test_our_own_profiles_come_back(path: Path, tmp_path: Path) -> None:
    trace = load_checked(path)
    traceferry.save(trace, tmp_path / "again.json")
    again, before = contents(load_checked(tmp_path / "again.json")), contents(trace)
    # Of many counters those that change are written; views of the heap come back instead of the heap.
    assert {key for key in before if len(key) == 3} <= set(again)
    for key, content in before.items():
        for what, value in content.items() if key in again else ():
            assert again[key][what] == value, (key, what)


def contents(
    trace: Trace, start: int | None = None, what_of: Callable[[Trace, int], Any] | None = None
) -> dict[Any, Any]:
    """What comes back, by thread, and the counters of processes. start: what times are counted from: the trace's;
    what_of: what has to be equal of a frame: everything but its address."""
    what_of = what_of or frame_of
    found: dict[Any, Any] = {}
    start = trace.start_ts if start is None else start
    cache, frames = dict[int, Any]({-1: ()}), dict[int, Any]()
    for process, thread in trace.threads:
        data = thread.load(trace)
        inside = data.trace

        def place(stack: int, inside: Trace = inside) -> Any:
            if stack not in cache or stack >= len(trace.stacks):
                frame = int(inside.stacks["frame"][stack])
                if frame not in frames or frame >= len(trace.frames):
                    frames[frame] = what_of(inside, frame)
                cache[stack] = (*place(int(inside.stacks["prefix"][stack]), inside), frames[frame])
            return cache[stack]

        samples: Counter[Any] = Counter()
        tables = {0: data.samples, **data.other_samples}
        for number, table in tables.items():
            event = trace.events[number] if number < len(trace.events) and not thread.sample_unit else None
            is_one = event is not None and event.unit != "samples" and len(set(table["weight"].tolist())) == 1
            weighs = event is not None and (number > 0 or is_one)
            columns = (table[column].tolist() for column in ("ts", "stack", "weight"))
            name = event.name if event else ""
            for ts, stack, weight in zip(*columns, strict=True):
                samples[name, ts - start, place(stack), weight if weighs or not event else 0] += 1
        times: Counter[str] = Counter()
        for call in calls_of(inside, data):
            times[call.name] += call.end - call.start
        life = thread.start_ts - start, thread.end_ts - start
        key = process.pid, "" if thread.sample_unit else thread.tid, thread.name
        found[key] = {
            "life": life, "samples": samples, "calls": +times, "arguments": arguments(inside, data, start),
            "allocations": [
                (ts - start, size, inside.strings[name], place(stack)) for ts, size, name, stack in
                zip(*(data.allocations[c].tolist() for c in ("ts", "size", "class_name", "stack")), strict=True)
            ],
            "markers": markers(data, start, place), "flows": flows(data, start),
            "scheduling": scheduling(inside, data, thread.end_ts, start),
            "states": states(inside, data, thread.end_ts, start),
        }  # fmt: skip
    for process in trace.processes:
        for counter in process.counters:
            ts, value = counter.values["ts"] - start, counter.values["value"]
            found[process.pid, counter.name] = {"values": [*zip(ts.tolist(), value.tolist(), strict=True)]}
    return found


def frame_of(trace: Trace, frame: int) -> tuple[Any, ...]:
    """What a frame is: function, where it begins and what runs of it, how deep it is inlined, tier, category."""
    row = {column.name: int(trace.frames[column.name][frame]) for column in trace.frames.spec.columns}
    func = {name: int(trace.funcs[name][row["func"]]) for name in ("source", "line", "column", "is_js")}
    names = [
        trace.strings[int(table[column][row[of]])] if row[of] >= 0 else ""
        for of, table, column in (
            ("tier", trace.tiers, "name"), ("tier", trace.tiers, "family"), ("category", trace.categories, "name"),
        )
    ]  # fmt: skip
    parent = int(trace.categories["parent"][row["category"]]) if row["category"] >= 0 else -1
    names.append(trace.strings[int(trace.categories["name"][parent])] if parent >= 0 else "")
    sources = [
        trace.strings[int(trace.sources["path"][one])] if one >= 0 else "" for one in (func["source"], row["source"])
    ]
    place = func["line"], func["column"], row["line"], row["column"], row["inline_depth"], bool(func["is_js"])
    return trace.func_name(row["func"]), *sources, *place, *names


def markers(data: Any, start: int, place: Any) -> Counter[Any]:
    """The markers that are no calls, by type, time, fields and stack."""
    found: Counter[Any] = Counter()
    for kind, table in data.markers.items():
        if kind.name == "Call":
            continue
        keys = [field.key for field in kind.fields]
        for ts, dur, stack, *fields in zip(*(table[c].tolist() for c in ("ts", "dur", "stack", *keys)), strict=True):
            shown = tuple(sorted((k, v) for k, v in zip(keys, fields, strict=True) if v not in ("", 0)))
            found[kind.name, ts - start, dur, place(stack), shown] += 1
    return found


def flows(data: Any, start: int) -> Counter[Any]:
    """What is joined in this thread, by time and type: flows of one row, and to other threads, are lost."""
    joined: defaultdict[int, list[Any]] = defaultdict(list)
    for kind, table in data.markers.items():
        for ts, flow in zip(table["ts"].tolist(), table["flow"].tolist(), strict=True):
            joined[flow].append((ts - start, kind.name))
    for call, flow in zip(data.arguments["call"].tolist(), data.arguments["flow"].tolist(), strict=True):
        joined[flow].append((int(data.calls["ts"][call]) - start, "Call"))
    return Counter(tuple(sorted(rows)) for flow, rows in joined.items() if flow and len(rows) > 1)


def arguments(trace: Trace, data: Any, start: int) -> Counter[Any]:
    """The first arguments of calls, by time and function. Those of calls that are joined are markers."""
    found: Counter[Any] = Counter()
    of_call: defaultdict[int, list[str]] = defaultdict(list)
    table = data.arguments
    for call, position, value in zip(*(table[c].tolist() for c in ("call", "position", "value")), strict=True):
        of_call[call] += [str(value)] if position >= 0 else []
    for call, values in of_call.items():
        assert not data.calls["flags"][call] & LEAVE
        func = int(trace.frames["func"][data.calls["frame"][call]])
        found[int(data.calls["ts"][call]) - start, trace.func_name(func), tuple(values)] += 1
    for kind, rows in data.markers.items():
        if kind.name == "Call":
            keys = [f.key for f in kind.fields if f.key.startswith("arg")]
            for nth in range(len(rows)):
                values = [str(int(rows[key][nth], 0)) for key in keys if rows[key][nth]]
                found[int(rows["ts"][nth]) - start, rows["function"][nth], tuple(values)] += 1
    return found


def scheduling(trace: Trace, data: Any, end_ts: int, start: int) -> list[Any]:
    """The times off the processors, and on them: one after the other on any is one."""
    table, found = data.scheduling, []
    columns = (table[name].tolist() for name in ("ts", "state", "reason", "waker", "stack"))
    for ts, state, reason, waker, stack, dur in zip(*columns, until_next(table, end_ts).tolist(), strict=True):
        # Threads that have ended have no samples of time off the processors, in which profiles have the stacks.
        is_shown = dur > 0 and state not in (RUNNING, UNKNOWN) and trace.strings[reason] not in ENDED
        row = (ts - start, dur, why(state, trace.strings[reason]), waker, functions(trace, stack) if is_shown else [])
        if state == RUNNING and found and found[-1][2] == row[2]:
            row = (found[-1][0], found.pop()[1] + dur, row[2], waker, [])
        if dur or state != RUNNING:
            found.append(row)
    return found


def functions(trace: Trace, stack: int) -> list[str]:
    """The functions of a stack, the leaf first."""
    found = []
    while stack >= 0:
        found.append(trace.func_name(int(trace.frames["func"][trace.stacks["frame"][stack]])))
        stack = int(trace.stacks["prefix"][stack])
    return found


def states(trace: Trace, data: Any, end_ts: int, start: int) -> Any:
    found = defaultdict(list)
    table = data.states
    for ts, track, value in zip(*(table[name].tolist() for name in ("ts", "track", "value")), strict=True):
        found[trace.strings[track]].append((ts - start, trace.strings[value] if value >= 0 else None))
    for rows in found.values():
        if rows and rows[-1] == (end_ts - start, None):
            rows.pop()
    return dict(found)


@pytest.mark.parametrize("name", FIXTURES[:1] + FIXTURES[3:4])
def test_names_of_threads_do_not_tell_what_they_are(name: str, tmp_path: Path) -> None:
    trace = load_checked(REPO / "fixtures" / name)
    traceferry.save(trace, tmp_path / "again.json")
    profile = made.parsed(tmp_path / "again.json")
    for nth, thread in enumerate(profile["threads"]):
        thread["name"] = f"renamed {nth}"
    again = made.loaded(profile, tmp_path, "renamed.json")
    assert [(p.pid, t.tid) for p, t in again.threads] == [(p.pid, t.tid) for p, t in trace.threads]
    assert again.events == trace.events
    assert all(thread.name.startswith("renamed") for _, thread in again.threads)


def test_a_profile_of_ours_of_which_somebody_left_samples_out_is_read(tmp_path: Path) -> None:
    """The viewer lets users hide threads before they publish a profile: then an event's leader may be missing."""
    found = CAPTURES / "perf-events" / "group.data.zst"
    if not found.exists():
        pytest.skip("../shared is not here")
    traceferry.convert(found, tmp_path / "again.json")
    profile = made.parsed(tmp_path / "again.json")
    marked = [nth for nth, thread in enumerate(profile["threads"]) if "event" in thread.get("traceferry", {})]
    assert marked
    for nth, left in enumerate(([one for one in range(len(profile["threads"])) if one in marked], marked[:1])):
        kept = profile | {"threads": [profile["threads"][row] for row in left]}
        assert made.loaded(kept, tmp_path, f"{nth}.json").threads


def test_what_cannot_be_read_of_tiers_is_reported(tmp_path: Path) -> None:
    traceferry.convert(REPO / "fixtures/jit/php82/perf.data.zst", tmp_path / "again.json")
    profile = made.parsed(tmp_path / "again.json")
    profile["meta"]["traceferry"]["tiers"] += [[1, 2], ["a", 0, 0, 0]]
    again = made.loaded(profile, tmp_path, "damaged.json")
    assert [(issue.kind, issue.count) for issue in again.report if "tiers" in issue.detail] == [("bad_rows", 2)]
