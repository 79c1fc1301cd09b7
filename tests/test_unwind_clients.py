"""Unwound stacks in both viewers: every sample, and each function's own and total samples."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from clients.firefox import ProfilerCli
from conftest import one_in
from outputs import saved
from readers import perfetto
from test_jit_clients import Paths, busiest, functions_of, handle_of, needs_client, samples_of, sums, weights_of
from test_unwind_captures import RECORDINGS, loaded

NAMES = RECORDINGS or ["none"]
recordings = pytest.mark.parametrize("name", NAMES)
# A recording is opened in one of the viewers each time, in turn, in the other with the large ones.
in_perfetto, in_firefox = (pytest.mark.parametrize("name", one_in(2, NAMES, first)) for first in (0, 1))


@in_perfetto
def test_perfetto_is_read_to_the_same_samples(name: str, tmp_path: Path) -> None:
    trace = loaded(name)
    read = perfetto.read(saved(trace, tmp_path / "out.pftrace"))
    assert read.errors == []
    found: dict[str, Counter[object]] = {}
    for s in read.samples:
        names = tuple(text or "" for text in s.names)
        found.setdefault(s.source or "", Counter())[s.pid or 0, s.tid or 0, s.ts, s.weight or 0, names] += 1
    assert found == samples_of(trace)


@needs_client
@in_firefox
def test_firefox_adds_up_the_same_functions(name: str, tmp_path: Path) -> None:
    trace = loaded(name)
    thread = busiest(trace)
    with ProfilerCli(saved(trace, tmp_path / "out.json")) as cli:
        functions = functions_of(cli, handle_of(cli.threads(), trace, thread))
    assert functions == sums(weights_of(thread, thread.load(trace).samples), Paths(trace).funcs)


@recordings
def test_cut_stacks_have_a_root_of_their_own(name: str) -> None:
    """None that is cut begins as a complete one does."""
    trace = loaded(name)
    roots = trace.stacks["frame"][trace.stacks["prefix"] < 0].tolist()
    names = {trace.strings[trace.funcs["name"][trace.frames["func"][frame]]] for frame in roots}
    cut = {issue.kind for issue in trace.report} & {"unwinding_truncated", "unwinding_no_information"}
    assert bool(cut) == any(text.startswith(("(truncated stack)", "(no unwind information")) for text in names)
    mixed = loaded(name, keep_cut_stacks_apart=False)
    assert not any(text.startswith(("(truncated", "(no unwind")) for text in mixed.strings)
