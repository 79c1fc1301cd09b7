"""A plugin of pytest for `mutants.py`: tells coverage which test runs, and writes how many seconds of CPU
time each took, with the programs that it started."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import coverage
import pytest

_seconds: dict[str, float] = {}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    recording = coverage.Coverage.current()
    if recording is not None:
        recording.switch_context(item.nodeid)
    began = sum(os.times()[:4])
    try:
        return (yield)
    finally:
        _seconds[item.nodeid] = sum(os.times()[:4]) - began
        if recording is not None:
            recording.switch_context("")


def pytest_sessionfinish() -> None:
    Path(os.environ["MUTANTS_DURATIONS"]).write_text(json.dumps(_seconds), encoding="utf-8")
