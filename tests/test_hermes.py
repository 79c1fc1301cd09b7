"""Profiles of Hermes: samples in Chrome's trace format."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from conftest import shared
from support import load_checked

from traceferry.common.errors import FormatError
from traceferry.model import Trace

BUNDLE = "http://localhost:8081/index.bundle?platform=android&dev=true"
FRAMES: dict[str, Any] = {
    "1": {"name": "[root]", "category": "root"},
    "4": {"name": f"inner({BUNDLE}:30:5)", "category": "JavaScript", "parent": 2},
    "2": {"name": f"outer({BUNDLE}:10:3)", "category": "JavaScript", "parent": 1},
    "3": {"name": f"({BUNDLE}:20:1)", "category": "JavaScript", "parent": "2"},
    "5": {"name": "[GC Young Gen]", "category": "Metadata", "parent": 4},
}


def named(what: str, name: str, tid: Any) -> dict[str, Any]:
    return {"name": what, "ph": "M", "pid": 7, "tid": tid, "args": {"name": name}}


def sample(ts: Any, sf: Any, tid: Any = "9", **more: Any) -> dict[str, Any]:
    return {"cpu": "-1", "name": "", "ts": ts, "pid": 7, "tid": tid, "weight": "1", "sf": sf, **more}


def profile(*samples: Any, frames: Any = FRAMES, events: Any = ()) -> dict[str, Any]:
    names = [named("process_name", "app", "-1"), named("thread_name", "mqt_js", "9")]
    return {"traceEvents": [*names, *events], "samples": list(samples), "stackFrames": frames}


def loaded(folder: Path, content: dict[str, Any]) -> Trace:
    path = folder / "hermes.json"
    path.write_text(json.dumps(content))
    return load_checked([str(path)])


def stacks_of(trace: Trace) -> dict[tuple[str, str], list[tuple[int, str, int]]]:
    """(process, thread): (µs, stack from the outermost function on, weight)"""
    found = {}
    for process, thread in trace.threads:
        data = thread.load(trace)
        rows = zip(*(data.samples[name].tolist() for name in ("ts", "stack", "weight")), strict=True)
        found[process.name, thread.name] = [(ts // 1000, path(data.trace, stack), n) for ts, stack, n in rows]
    return found


def path(trace: Trace, stack: int) -> str:
    names: list[str] = []
    while stack >= 0:
        frame = int(trace.stacks["frame"][stack])
        names.append(f"{trace.func_name(int(trace.frames['func'][frame]))}:{trace.frames['line'][frame]}")
        stack = int(trace.stacks["prefix"][stack])
    return " > ".join(reversed(names))


def test_samples_by_thread_and_time(tmp_path: Path) -> None:
    """Numbers may be texts; what is at the root has no other function."""
    samples = (
        sample("3000", 5),
        sample("1000", 2),
        sample(2000, "3", weight=2),
        sample("1500", 4, 10),
        sample("4000", 1),
    )
    assert stacks_of(loaded(tmp_path, profile(*samples))) == {
        ("app", "mqt_js"): [
            (1000, "outer:10", 1), (2000, "outer:10 > (anonymous):20", 2),
            (3000, "outer:10 > inner:30 > [GC Young Gen]:0", 1), (4000, "(root):0", 1),
        ],
        ("app", "thread 10"): [(1500, "outer:10 > inner:30", 1)],
    }  # fmt: skip


def test_how_long_samples_stand_is_of_each_thread(tmp_path: Path) -> None:
    """The mean: where gaps are uneven, the median says less than passed."""
    first = (sample(ts, 2) for ts in (0, 10_000, 180_000))
    second = (sample(ts, 2, tid=10) for ts in (5_000, 95_000))
    (event,) = loaded(tmp_path, profile(*first, *second)).events
    assert (event.name, event.unit, event.interval_ns) == ("samples", "samples", 90_000_000)


def test_a_profile_of_react_native() -> None:
    path = shared("captures/viewers/chrome-json/speedscope--trace-event-simple-with-samples.json")
    (found,) = stacks_of(load_checked([str(path)])).items()
    names = Counter(re.sub(r":\d+", "", stack) for _, stack, _ in found[1])
    assert found[0] == ("hermes", "mqt_js")
    assert names == {"(root)": 3, "function1": 1, "function2 > function3": 1, "[GC Young Gen]": 2}


def test_functions_have_their_files(tmp_path: Path) -> None:
    trace = loaded(tmp_path, profile(sample(1, 3))).opened()
    assert {trace.strings[row] for row in trace.sources["path"].tolist()} == {BUNDLE}
    is_js = {trace.func_name(func): value for func, value in enumerate(trace.funcs["is_js"].tolist())}
    assert is_js == {"(root)": False, "outer": True, "inner": True, "(anonymous)": True, "[GC Young Gen]": False}


BAD = {
    "no time": sample("now", 2),
    "no number": sample(None, 2),
    "no finite one": sample(1e300, 2),
    "an unknown frame": sample(1, 77),
    "no frame": {"ts": 1},
    "no object": 5,
}


@pytest.mark.parametrize("one", BAD.values(), ids=BAD)
def test_samples_that_cannot_be_read_are_counted(tmp_path: Path, one: Any) -> None:
    trace = loaded(tmp_path, profile(sample(1, 2), one))
    assert [(issue.kind, issue.count) for issue in trace.report] == [("bad_rows", 1)]
    assert sum(map(len, stacks_of(trace).values())) == 1


def test_frames_in_a_circle(tmp_path: Path) -> None:
    frames = {"1": {"name": "a", "parent": 2}, "2": {"name": "b", "parent": 1}, "3": {"name": "c", "parent": 3}, "4": 5}
    trace = loaded(tmp_path, profile(*(sample(n, n) for n in (1, 2, 3, 4)), frames=frames))
    assert [row[1] for row in stacks_of(trace)["app", "mqt_js"]] == ["b:0 > a:0", "b:0", "c:0", "(anonymous):0"]


def test_stacks_of_any_depth(tmp_path: Path) -> None:
    frames = {str(n): {"name": f"f{n}", "parent": n - 1} for n in range(20_000)}
    trace = loaded(tmp_path, profile(sample(1, 19_999), frames=frames))
    assert len(trace.opened().stacks) == 20_000


def test_other_events_are_told_of(tmp_path: Path) -> None:
    event = {"ph": "X", "name": "work", "pid": 7, "tid": 9, "ts": 1, "dur": 5}
    trace = loaded(tmp_path, profile(sample(1, 2), events=[event]))
    assert [(issue.kind, issue.count) for issue in trace.report] == [("events_left_out", 1)]


@pytest.mark.parametrize("content", [{"samples": 5, "stackFrames": {}}, {"samples": [], "stackFrames": []}])
def test_what_is_refused(tmp_path: Path, content: dict[str, Any]) -> None:
    with pytest.raises(FormatError, match="samples is no list, or stackFrames no object"):
        loaded(tmp_path, content)


def test_nothing_in_it(tmp_path: Path) -> None:
    assert [issue.kind for issue in loaded(tmp_path, profile()).report] == ["no_samples"]
