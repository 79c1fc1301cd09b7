"""Outputs that are too large for a viewer: the advice names options that the command takes and that are enough."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from builders.xray import Fdr
from streams import NS, START
from support import load_checked
from test_select import calls_table, in_pieces, trace_of

import traceferry
from traceferry import registry
from traceferry.common.errors import UsageError
from traceferry.common.units import parse_duration, parse_range
from traceferry.model import ALLOCATIONS, LEAVE, SAMPLES, Table, ThreadData
from traceferry.reading import LoadOptions
from traceferry.timeline import advice
from traceferry.timeline.advice import what_would_fit

# So many calls of so many ns each, one after the other.
CALLS = {20: 4000, 200: 400, 2_000: 40, 999_700: 4}


def log() -> Fdr:
    made = Fdr(frequency=NS)
    records = [made.new_cpu(0, START)]
    for ns, n in CALLS.items():
        records += [made.enter(1, 1), made.exit(1, ns)] * n
    return made.buffer(1, pid=1, records=records)


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    path = tmp_path / "app.xray"
    path.write_bytes(log().bytes())
    return path


@pytest.mark.parametrize(
    ("share", "wanted"),
    [
        (1.0, "--max-events 3999, which sums short calls, --min-duration 32ns or --range 0,84.4us"),
        (0.11, "--max-events 439, which sums short calls, --min-duration 316ns or --range 0,9.24us"),
        (0.012, "--max-events 47, which sums short calls, --min-duration 316ns or --range 0,1us"),
        (0.002, "--max-events 7, which sums short calls, --min-duration 3.16us or --range 0,167ns"),
        (0.0001, "--max-events 0, which sums short calls, --min-duration 1ms or --range 0,8ns"),
    ],
)
def test_the_shortest_duration_that_is_enough(recording: Path, share: float, wanted: str) -> None:
    """4444 calls in 4.2 ms, 4000 of them in the first 84 us; a tenth of what the viewer takes stays free."""
    assert what_would_fit(load_checked(recording), 1_000_000, int(1_000_000 * share)) == f"{wanted} would fit"


def test_a_recording_without_calls_is_cut_in_time(tmp_path: Path) -> None:
    path = tmp_path / "empty.xray"
    path.write_bytes(Fdr(frequency=NS).bytes())
    assert what_would_fit(load_checked(path), 100, 50) == "--range 0,1ns would fit"


def test_rows_of_every_kind_count() -> None:
    """Calls, samples and allocations are alike: a third each, one kind after the other."""
    calls = calls_table([(ts, 0, LEAVE * (ts % 2)) for ts in range(100)])
    samples = Table(SAMPLES, {"ts": np.arange(100, 200), "stack": np.zeros(100)})
    allocations = Table(ALLOCATIONS, {"ts": np.arange(200, 300), "stack": np.zeros(100)})
    trace = trace_of(ThreadData(calls=calls, samples=samples, allocations=allocations))
    trace.bounds = (0, 300)
    assert [what_would_fit(trace, 90, limit) for limit in (50, 75)] == [
        "--max-events 25, which sums short calls, --min-duration 10ns or --range 0,150ns would fit",
        "--max-events 37, which sums short calls, --min-duration 10ns or --range 0,225ns would fit",
    ]  # fmt: skip


def test_what_lies_behind_the_rows_that_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest counts as spread evenly over the rest of the time."""
    rows = [(ts, 0, LEAVE * (ts % 2)) for ts in range(40_000)]
    trace = trace_of(ThreadData(calls=in_pieces(calls_table(rows), 100)))
    trace.bounds = (0, 40_000)
    monkeypatch.setattr(advice, "ROWS_LOOKED_AT", 2_000)
    times = [what_would_fit(trace, 9000, limit).split("--range 0,")[1] for limit in (250, 5000, 9900)]
    assert [parse_duration(time.removesuffix(" would fit")) / 40_000 for time in times] == [
        pytest.approx(share, abs=0.003) for share in (0.025, 0.5, 0.99)
    ]


@pytest.mark.parametrize("suffix", [".json", ".pftrace", ".gecko.json"])
def test_the_advice_helps(recording: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str) -> None:
    output = tmp_path / f"out{suffix}"
    assert [issue for issue in traceferry.convert(recording, output) if issue.kind == "output_too_large"] == []
    limit = output.stat().st_size // 2
    monkeypatch.setattr(registry, "EXPORTERS", tuple(e._replace(viewer_limit=limit) for e in registry.EXPORTERS))
    report = traceferry.convert(recording, output)
    (issue,) = (issue for issue in report if issue.kind == "output_too_large")
    assert re.fullmatch(r"0\.0 GB for \S+, uncompressed", issue.detail)
    assert not report.lossy
    longer = re.escape("write .jslb.gz; or ") if suffix == ".json" else ""
    match = re.fullmatch(
        longer + r"--max-events (\d+), which sums short calls, --min-duration (\S+) or --range (\S+) would fit",
        issue.advice,
    )
    assert match
    narrower = (
        LoadOptions(max_events=int(match[1])),
        LoadOptions(min_duration_ns=parse_duration(match[2])),
        LoadOptions(time_range=parse_range(match[3])),
    )
    for options in narrower:
        after = traceferry.convert(recording, output, options=options)
        assert [issue for issue in after if issue.kind == "output_too_large"] == []
        assert output.stat().st_size <= limit


def test_ranges_outside_the_recording(recording: Path) -> None:
    for time_range in ((10**9, None), (None, -1), (10, 5)):
        with pytest.raises(UsageError, match=r"the range .*; the recording lasts 4\.\d+ms"):
            load_checked(recording, time_range=time_range)
