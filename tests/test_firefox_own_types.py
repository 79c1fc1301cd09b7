"""Markers of types that the Firefox Profiler treats by code of its own: others' profiles that hold them are shown as
they were, and markers that only are called so do no harm."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import firefox_profiles as made
import pytest
from clients import firefox
from support import load_checked

import traceferry
from traceferry.model import Trace

PICTURE = "data:image/jpeg;base64,AAAA"
NURSERY = {"status": "complete", "reason": "FULL", "bytes_used": 9, "phase_times": {"Total": 5, "Sweep": 2}}
SLICE = {"slice": 0, "pause": 1.5, "phase_times": {"mark": 1500.0}}
MAJOR = {"status": "completed", "total_time": 2.5, "phase_times": {"sweep": 10.0}, "mmu_20ms": 0.4, "mmu_50ms": 0.5}
MESSAGE = {
    "type": "IPC", "otherPid": 8, "messageType": "PContent::Msg_A", "side": "parent", "phase": "endpoint",
    "direction": "sending", "sync": False,
}  # fmt: skip
REQUEST = {"type": "Network", "id": 1, "URI": "http://x/"}
# (ms, data): instants, or intervals where the end is not None.
MARKERS: list[tuple[float, float | None, dict[str, Any]]] = [
    (1, None, MESSAGE | {"messageSeqno": 1, "startTime": 1, "endTime": 1}),
    (2, None, MESSAGE | {"messageSeqno": 2, "startTime": 2, "endTime": 2, "sync": True}),
    (3, None, MESSAGE | {"messageSeqno": 3, "startTime": 3, "endTime": 3, "direction": "sideways"}),
    (1, 2, REQUEST | {"status": "STATUS_START", "startTime": 1, "endTime": 2}),
    (2, 4, REQUEST | {"status": "STATUS_STOP", "startTime": 2, "endTime": 4, "requestStart": 2.5}),
    (3, 3.5, REQUEST | {"status": "STATUS_STOP", "id": 2, "startTime": 3, "endTime": 3.5}),
    (3, 3.5, REQUEST | {"status": "STATUS_START", "id": 3, "startTime": 3, "endTime": 3.5}),
    (3, 3.5, REQUEST | {"status": "other", "id": 4}),
    (1, 1.5, {"type": "GCMinor", "nursery": NURSERY}),
    (2, 2.5, {"type": "GCMinor", "nursery": "nothing"}),
    (2, 2.5, {"type": "GCSlice", "timings": SLICE}),
    (2, 2.5, {"type": "GCMajor", "timings": MAJOR}),
    (2, 2.5, {"type": "GCMajor", "timings": {"status": "odd"}}),
    (1, None, {"type": "CompositorScreenshot", "windowID": "0x1", "windowWidth": 8, "windowHeight": 6, "url": 8}),
    (2, None, {"type": "CompositorScreenshot", "windowID": "0x1", "windowWidth": 8, "windowHeight": 6, "url": 8}),
]


def profile() -> dict[str, Any]:
    given = made.profile()
    thread = given["threads"][0]
    thread["stringArray"] += [PICTURE, *(data["type"] for _, _, data in MARKERS)]
    begin, end, data = zip(*MARKERS, strict=True)
    n = len(MARKERS)
    thread["markers"] = {
        "name": list(range(9, 9 + n)), "startTime": begin, "endTime": end,
        "phase": [int(one is not None) for one in end], "category": [0] * n, "data": data, "length": n,
    }  # fmt: skip
    return given


def markers(trace: Trace) -> Counter[Any]:
    found: Counter[Any] = Counter()
    for _, thread in trace.threads:
        for kind, table in thread.load(trace).markers.items():
            keys = [field.key for field in kind.fields]
            columns = [table[key].tolist() for key in ("ts", "dur", *keys)]
            for ts, dur, *fields in zip(*columns, strict=True):
                shown = {key: value for key, value in zip(keys, fields, strict=True) if value not in ("", 0)}
                found[kind.name, ts, dur, tuple(sorted(shown.items()))] += 1
    return found


@pytest.mark.parametrize("suffix", [".json", ".jslb"])
def test_they_come_back(suffix: str, tmp_path: Path) -> None:
    trace = made.loaded(profile(), tmp_path, "first.json")
    assert {kind for kind, *_ in markers(trace)} == {data["type"] for _, _, data in MARKERS}
    traceferry.save(trace, tmp_path / f"second{suffix}")
    assert markers(load_checked(tmp_path / f"second{suffix}")) == markers(trace)


def written(tmp_path: Path) -> tuple[dict[str, list[dict[str, Any]]], dict[str, Any]]:
    """Returns the data of markers by their type in the file, and the schemas."""
    traceferry.save(made.loaded(profile(), tmp_path, "first.json"), tmp_path / "second.json")
    second = made.parsed(tmp_path / "second.json")
    found: dict[str, list[dict[str, Any]]] = {}
    for data in second["threads"][0]["markers"]["data"]:
        found.setdefault(data["type"], []).append(data)
    return found, {schema["name"]: schema for schema in second["meta"]["markerSchema"]}


def test_they_have_the_members_that_the_viewer_reads(tmp_path: Path) -> None:
    found, schemas = written(tmp_path)
    assert [(one["sync"], one["startTime"], one["endTime"]) for one in found["IPC"]] == [(False, 1, 1), (True, 2, 2)]
    requests = [(one["id"], one["status"], one["startTime"], one["endTime"]) for one in found["Network"]]
    assert requests == [
        (1, "STATUS_START", 1, 1), (1, "STATUS_STOP", 1, 4), (2, "STATUS_START", 3, 3), (2, "STATUS_STOP", 3, 3.5),
        (3, "STATUS_START", 3, 3.5),
    ]  # fmt: skip
    assert [one.get("requestStart") for one in found["Network"]] == [2.5, 2.5, None, None, None]
    assert found["GCMinor"][0]["nursery"] == NURSERY
    assert found["GCSlice"][0]["timings"] == SLICE
    assert found["GCMajor"][0]["timings"] == MAJOR
    # A nested value that is shown as a text breaks what shows it.
    for name, key in (("GCMinor", "nursery"), ("GCSlice", "timings"), ("GCMajor", "timings")):
        assert next(field for field in schemas[name]["fields"] if field["key"] == key)["hidden"] is True
    assert [one["picture_bytes"] for one in found["CompositorScreenshot"]] == [len(PICTURE)] * 2
    assert all("url" not in one for one in found["CompositorScreenshot"])


def test_those_that_lack_them_have_another_type(tmp_path: Path) -> None:
    found, schemas = written(tmp_path)
    others = {name: schema["traceferry"]["type"] for name, schema in schemas.items() if "traceferry" in schema}
    assert others == {"IPC 2": "IPC", "Network 2": "Network", "GCMinor 2": "GCMinor", "GCMajor 2": "GCMajor"}
    assert all(len(found[name]) == 1 for name in others)


@pytest.mark.parametrize("suffix", [".json", ".jslb", ".gecko.json"])
def test_the_viewer_shows_them(suffix: str, tmp_path: Path) -> None:
    if reason := firefox.available():
        pytest.skip(reason)
    traceferry.save(made.loaded(profile(), tmp_path, "first.json"), tmp_path / f"second{suffix}")
    with firefox.ProfilerCli(tmp_path / f"second{suffix}") as cli:
        shown = Counter((one["name"], one["start"], one.get("duration", 0)) for one in cli.markers("t-0"))
    # The request without a stop lasts to the end; the one without a start does not begin with the profile.
    wanted = {("IPCOut", 1, 0): 1, ("SyncIPCOut", 2, 0): 1, ("IPC", 3, 0): 1, ("Network", 1, 3): 1}
    assert shown >= Counter(wanted | {("Network", 3, 0.5): 2, ("Network", 3, 2): 1, ("GCMajor", 2, 0.5): 2})


def test_garbage_collections_of_gecko_profiles_are_as_in_processed_ones(tmp_path: Path) -> None:
    given = made.gecko()
    timings = (
        {"pause": 1.5, "times": {"mark": 1.5}},
        MAJOR | {"totals": {"sweep": 0.01}, "mmu_20ms": 40, "mmu_50ms": 50},
    )
    timings[1].pop("phase_times")
    given["threads"][0]["markers"]["data"] = [
        [3, 1, 2, 1, 0, {"type": kind, "timings": one}]
        for kind, one in zip(("GCSlice", "GCMajor"), timings, strict=True)
    ]
    traceferry.save(made.loaded(given, tmp_path, "first.json"), tmp_path / "second.json")
    data = made.parsed(tmp_path / "second.json")["threads"][0]["markers"]["data"]
    assert [one["timings"] for one in data] == [{"pause": 1.5, "phase_times": {"mark": 1500.0}}, MAJOR]
