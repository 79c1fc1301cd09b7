"""Profiles of others against independent counts, in the other viewer, with names of a program built here, and beside
the recordings that they were made from."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections import Counter
from math import ceil
from pathlib import Path
from typing import Any

import firefox_profiles as made
import pytest
from conftest import REPO
from firefox_profiles import path_of
from queries import Run, found, query  # noqa: F401  # fixtures
from support import load_checked

import traceferry
from traceferry.apps.cli import main

SAMPLES = """SELECT thread.name AS name, COUNT(*) AS n FROM stack_sample AS sample
JOIN stack_sample_task_context AS task ON task.id = sample.task_context_id JOIN thread USING (utid)
LEFT JOIN process USING (upid) WHERE sample.callsite_id IS NOT NULL GROUP BY utid"""
# All that is asked of a trace, in one question: each takes the engine, which reads the trace.
ASKED = f"""SELECT 'samples' AS what, name, n FROM ({SAMPLES})
UNION ALL SELECT 'slices', name, COUNT(*) FROM slice GROUP BY name
UNION ALL SELECT 'problems', name, value FROM stats WHERE severity IN ('error', 'data_loss') AND value > 0"""
RECORDING = REPO / "fixtures" / "jit" / "php82" / "perf.data.zst"


def marker_names(trace: traceferry.Trace) -> Counter[str]:
    counts: Counter[str] = Counter()
    for _, thread in trace.threads:
        for kind, table in thread.load(trace).markers.items():
            counts.update(table[kind.named_by].tolist() if kind.named_by else [kind.name] * len(table))
    return counts


@pytest.mark.parametrize("entry", made.entries("firefox", "firefox-ladder", "gecko"), ids=lambda entry: entry["file"])
def test_markers_by_name_are_those_that_others_count(entry: dict[str, Any]) -> None:
    path = path_of(entry)
    counts, contents = marker_names(load_checked(path)), entry["contents"]
    phases = contents.get("marker_phases", {})
    # Starts and ends are one marker: of a name that has both, up to half remain.
    has_pairs = (
        entry["kind"] == "gecko" or contents.get("version") in ("none", 24) or phases.get("2") or phases.get("3")
    )
    for name, n in contents.get("top_markers", {}).items():
        assert (ceil(n / 2) if has_pairs else n) <= counts[name] <= n, name


# ---------------------------------------------------------------- in Perfetto


@pytest.mark.parametrize(
    "entry",
    [one for one in made.entries("firefox", "gecko") if "systing" not in one["file"]],
    ids=lambda entry: entry["file"],
)
def test_a_profile_in_perfetto_has_its_samples_and_markers(entry: dict[str, Any], tmp_path: Path, query: Run) -> None:  # noqa: F811
    trace = load_checked(path_of(entry))
    traceferry.save(trace, tmp_path / "p.pftrace")
    # By name: after an exec there are two processes of one number, of which one gets another, and its own as a suffix.
    stacks = [(thread.name, thread.load(trace).samples["stack"]) for _, thread in trace.threads]
    expected = sorted((name, int((stack >= 0).sum())) for name, stack in stacks if (stack >= 0).any())
    answers: dict[str, list[tuple[str, int]]] = {"samples": [], "slices": [], "problems": []}
    for row in query(tmp_path / "p.pftrace", ASKED):
        answers[row["what"]].append((row["name"], int(row["n"])))
    assert sorted((re.sub(r" \([0-9]+\)$", "", name), n) for name, n in answers["samples"]) == expected
    assert sum(n for _, n in answers["slices"]) == sum(marker_names(trace).values())
    assert answers["problems"] == []


# ---------------------------------------------------------------- names of a program built here

PROGRAM = """
#include <stdint.h>
static inline __attribute__((always_inline)) uint64_t inlined(uint64_t n) {
    uint64_t sum = 0;
    for (uint64_t i = 0; i < n; i++)
        sum += i * n ^ sum >> 3;
    return sum;
}
__attribute__((noinline)) uint64_t outer(uint64_t n) { return inlined(n) + 1; }
int main(int count, char **words) { return (int)outer(count * 1000) & 1; }
"""


def run(*words: object) -> str:
    return subprocess.run([str(word) for word in words], check=True, capture_output=True, text=True).stdout


def built(folder: Path) -> Path:
    """A program without debug information, which is in a file beside it; what it shares with another is in a third."""
    for name in ("gcc", "objcopy", "dwz", "nm", "readelf"):
        if not shutil.which(name):
            pytest.skip(f"{name} is not installed")
    (folder / "p.c").write_text(PROGRAM)
    (folder / "q.c").write_text(PROGRAM.replace("1000", "1001"))
    for name in "pq":
        run("gcc", "-O2", "-g", "-Wl,--build-id", folder / f"{name}.c", "-o", folder / name)
        run("objcopy", "--only-keep-debug", folder / name, folder / f"{name}.debug")
        run("strip", folder / name)
        run("objcopy", f"--add-gnu-debuglink={folder / name}.debug", folder / name)
    run("dwz", "-m", folder / "common.debug", folder / "p.debug", folder / "q.debug")
    # dwz has changed the file, and with it the check sum in the link.
    run("objcopy", "--remove-section=.gnu_debuglink", folder / "p")
    run("objcopy", f"--add-gnu-debuglink={folder / 'p.debug'}", folder / "p")
    return folder / "p"


def test_a_program_with_split_and_joined_debug_files_has_all_names(tmp_path: Path) -> None:
    program = built(tmp_path)
    assert ".gnu_debugaltlink" in run("readelf", "-SW", tmp_path / "p.debug")
    symbols = [line.split() for line in run("nm", "-S", tmp_path / "p.debug").splitlines()]
    outer = next((int(line[0], 16), int(line[1], 16)) for line in symbols if line[-1] == "outer")
    build_id = run("readelf", "-n", program).split("Build ID: ")[1].split()[0]
    addresses = [outer[0] + nth for nth in range(outer[1])]
    given = made.profile()
    given["meta"]["symbolicated"] = False
    given["libs"][0] |= {"name": "p", "path": str(program), "debugName": "p", "codeId": build_id}
    thread, n = given["threads"][0], len(addresses)
    thread["stringArray"] += [hex(address) for address in addresses]
    first = len(thread["stringArray"]) - n
    none: list[None] = [None] * n
    thread["funcTable"] = {
        "name": list(range(first, first + n)), "isJS": [False] * n, "relevantForJS": [False] * n, "resource": [0] * n,
        "fileName": none, "lineNumber": none, "columnNumber": none, "length": n,
    }  # fmt: skip
    thread["frameTable"] = {
        "address": addresses, "inlineDepth": [0] * n, "category": [0] * n, "subcategory": [0] * n,
        "func": list(range(n)), "nativeSymbol": none, "innerWindowID": [0] * n, "line": none, "column": none,
        "length": n,
    }  # fmt: skip
    thread["stackTable"] = {"prefix": none, "frame": list(range(n)), "length": n}
    thread["samples"] = {"stack": list(range(n)), "time": list(range(n)), "length": n}
    thread["markers"] |= {"data": [None] * 5}
    trace = load_checked(made.written(given, tmp_path / "profile.json"), symbols=[tmp_path])
    data = trace.threads[0][1].load(trace)
    paths = {made.func_path(trace, stack) for stack in data.samples["stack"].tolist()}
    assert paths == {("outer",), ("outer", "inlined")}
    assert not [issue for issue in trace.report if issue.kind == "not_symbolicated"]
    lines = {int(line) for line in trace.frames["line"].tolist()}
    assert lines <= {0, *range(3, 11)}
    assert lines >= {5, 9}


# ---------------------------------------------------------------- profiles beside recordings


def test_compare_and_aggregate_say_of_profiles_what_they_say_of_recordings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    profile = tmp_path / "p.json.gz"
    traceferry.convert(RECORDING, profile)
    shorter = tmp_path / "shorter.json.gz"
    assert main(["convert", str(RECORDING), "--range", "0s,50ms", "-o", str(shorter), "--quiet"]) in (0, 1)

    def printed(*words: object) -> Any:
        status = main([str(word) for word in words])
        return status, json.loads(capsys.readouterr().out)

    gate = "total('*') > 10%"
    same = printed("compare", profile, profile, "--json", "--fail-on", gate)
    assert same[0] == printed("compare", RECORDING, RECORDING, "--json", "--fail-on", gate)[0]
    of_profiles, of_both = (
        printed("compare", one, shorter, "--json", "--fail-on", gate) for one in (profile, RECORDING)
    )
    assert of_profiles[0] == of_both[0]
    assert of_profiles[1]["gates"] == of_both[1]["gates"] != []
