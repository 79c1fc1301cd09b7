"""The page as a file: what is in it, how large it is, and that nothing of a recording is markup."""

from __future__ import annotations

import base64
import hashlib
import html.parser
import re
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from conftest import NO_SHARED, REPO, SHARED
from pages import HOSTILE, bytes_of, data_of, embedded_in, many_paths, many_threads, named, one_sample

import traceferry
from traceferry import LoadOptions
from traceferry.analysis.info.summary import summarize
from traceferry.exporters.html import embed, page
from traceferry.exporters.html.recording import DETAILS, Detail, PageData
from traceferry.model import COUNTER_VALUES, Clock, Counter, Table, Trace, TraceBuilder

FIXTURES = REPO / "fixtures"
POOL = (FIXTURES / "xray/clang-19/fdr-c19-pie-pool-tsc.xray", FIXTURES / "xray/clang-19/pool-pie.zst")
RECORDINGS = {
    "xray": lambda: traceferry.load(POOL[0], symbols=POOL[1]),
    "jit": lambda: traceferry.load(
        FIXTURES / "jit/bun-src/jit-10873-10871.dump.zst", options=LoadOptions(embed_sources=FIXTURES / "jit/bun-src")
    ),
    "perf": lambda: traceferry.load(FIXTURES / "jit/java17/perf.data.zst"),
    "mono": lambda: traceferry.load(FIXTURES / "mono/mono-6.8/heap.mlpd.zst"),
}


def saved(trace: Trace, folder: Path, **options: Any) -> Path:
    path = folder / "page.html"
    traceferry.save(trace, path, **options)
    return path


PAGES: dict[str, Path] = {}


def pages_of_recordings(folders: pytest.TempPathFactory) -> dict[str, Path]:
    """The page of each recording, made once for all modules that open them."""
    for name, load in RECORDINGS.items():
        if name not in PAGES:
            PAGES[name] = saved(load(), folders.mktemp(name))
    return PAGES


def own_of(data: dict[str, Any], measure: str) -> dict[str, int]:
    """What each function has itself."""
    found: dict[str, int] = {}
    number = [m["name"] for m in data["measures"]].index(measure)
    for series in data["series"]:
        if series["measure"] == number:
            for node, amount in zip(np.cumsum(series["node"]).tolist(), series["amount"], strict=True):
                name = data["funcs"]["name"][data["frames"]["func"][data["nodes"]["frame"][node]]]
                found[name] = found.get(name, 0) + amount
    return found


class Markup(html.parser.HTMLParser):
    """The elements of the page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


# ---------------------------------------------------------------- what is in it


@pytest.mark.parametrize("name", RECORDINGS)
def test_a_page_holds_the_files_for_the_viewers(name: str, tmp_path: Path) -> None:
    """The bytes that the exporters write, and no more than 1.25 times these, compressed, and 300 kB."""
    trace = RECORDINGS[name]()
    path = saved(trace, tmp_path)
    text = path.read_text()
    size = 0
    for part, suffix in (("firefox", "json"), ("perfetto", "pftrace")):
        alone = tmp_path / f"alone.{suffix}"
        traceferry.save(trace, alone)
        traceferry.save(trace, f"{alone}.gz")
        size += Path(f"{alone}.gz").stat().st_size
        assert embedded_in(text, part) == alone.read_bytes()
    assert len(text) <= 1.25 * size + 300_000


@pytest.mark.parametrize("name", RECORDINGS)
def test_a_page_counts_what_info_counts(name: str, tmp_path: Path) -> None:
    trace = RECORDINGS[name]()
    data = data_of(saved(trace, tmp_path))
    info = summarize(RECORDINGS[name](), top=10**9)
    for measure, key in (("time of calls", "self_ns"), ("calls", "calls"), ("samples", "samples")):
        by_name: dict[str, int] = {}
        for row in info["functions"]["top"]:
            by_name[row["name"]] = by_name.get(row["name"], 0) + row[key]
        expected = {name: amount for name, amount in by_name.items() if amount}
        if expected:
            assert own_of(data, measure) == expected
    if info["allocations"]["count"]:
        assert sum(own_of(data, "allocated bytes").values()) == info["allocations"]["bytes"]
        freed = info["allocations"]["freed_bytes"]
        assert sum(own_of(data, "bytes not freed").values()) == info["allocations"]["bytes"] - freed
    for key in ("inputs", "time", "tiers", "code_objects"):
        assert data["info"][key] == info[key]


def test_the_same_recording_makes_the_same_bytes(tmp_path: Path) -> None:
    assert saved(RECORDINGS["mono"](), tmp_path).read_bytes() == saved(RECORDINGS["mono"](), tmp_path).read_bytes()


def test_a_page_without_one_file_or_both(tmp_path: Path) -> None:
    path = saved(RECORDINGS["xray"](), tmp_path, without=["perfetto"])
    assert embedded_in(path.read_text(), "perfetto") is None
    assert [file["name"] for file in data_of(path)["embedded"]] == ["firefox"]
    path = saved(RECORDINGS["xray"](), tmp_path, without=["perfetto", "firefox"])
    assert data_of(path)["embedded"] == []
    with pytest.raises(traceferry.UsageError, match=r"--without gecko: .* html, and it holds firefox, perfetto"):
        saved(RECORDINGS["xray"](), tmp_path, without=["gecko"])
    with pytest.raises(traceferry.UsageError, match=r"--without perfetto: .* firefox, and only a page"):
        traceferry.save(RECORDINGS["xray"](), tmp_path / "out.json", without=["perfetto"])


def test_lines_have_what_the_stacks_have(tmp_path: Path) -> None:
    """Bytes of code by line of a source with text."""
    data = data_of(saved(RECORDINGS["jit"](), tmp_path))
    hottest, names = data["sources"][0], [measure["name"] for measure in data["measures"]]
    assert hottest["path"].endswith("tiers.js")
    assert hottest["text"] == (FIXTURES / "jit/bun-src/tiers.js").read_text()
    heat = {line: (own, total) for line, own, total in dict(hottest["heat"])[names.index("code size")]}
    assert all(0 <= own <= total for own, total in heat.values())
    trace = RECORDINGS["jit"]()
    view = next(thread for _, thread in trace.threads if thread.name == "code size")
    samples, frames = view.load(trace).samples, trace.frames
    leaf = trace.stacks["frame"][samples["stack"]]
    path = trace.sources["path"][trace.funcs["source"][frames["func"][leaf]]]
    on_line_6 = (frames["line"][leaf] == 6) & (path == trace.strings.intern(hottest["path"]))
    assert heat[6][0] == samples["weight"][on_line_6].sum() > 0


def test_text_of_bytes() -> None:
    for n in (0, 1, 12, 13, 14, 4099):
        data = bytes(range(256)) * 17
        text = embed.as_text(data[:n]).decode()
        assert len(text) == embed.text_size(n)
        assert not set(text) & set("<>& \n")
        assert bytes_of(text, n) == data[:n]


SUFFIXES = (".xray", ".mlpd", ".dump", "perf.data")


@pytest.mark.parametrize(
    "root", [FIXTURES, pytest.param(SHARED / "captures", marks=pytest.mark.large)], ids=["fixtures", "shared"]
)
def test_every_recording_makes_a_page(root: Path, tmp_path: Path) -> None:
    """Those that can be read at all; each alone."""
    if not root.exists():
        pytest.skip(NO_SHARED)
    made = 0
    for path in sorted(root.rglob("*")):
        if path.name.removesuffix(".zst").endswith(SUFFIXES):
            try:
                trace = traceferry.load(path)
            except traceferry.FormatError:
                continue
            made += 1
            # The file for one of the viewers is in it.
            without = [("firefox", "perfetto")[made % 2]]
            assert data_of(saved(trace, tmp_path, without=without))["info"]["inputs"], path
    assert made > 20


# ---------------------------------------------------------------- hostile and large


def test_the_policy_allows_its_own_script_and_style_only(tmp_path: Path) -> None:
    text = saved(named(HOSTILE), tmp_path).read_text()
    policy = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)[0]
    scripts = [s for a, s in re.findall(r"<script([^>]*)>(.*?)</script>", text, re.DOTALL) if "text/plain" not in a]
    styles = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    assert len(scripts) == len(styles) == 1
    hashes = [base64.b64encode(hashlib.sha256(t.encode()).digest()).decode() for t in (*scripts, *styles)]
    assert policy == (
        f"default-src 'none'; script-src 'sha256-{hashes[0]}'; style-src 'sha256-{hashes[1]}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def test_nothing_of_a_recording_is_markup(tmp_path: Path) -> None:
    """A page of hostile names has the elements of any other page, and no character of them."""
    harmless, hostile = (saved(named(text), tmp_path).read_text() for text in ("name", HOSTILE))
    names = [
        [(tag, attrs.get("id"), sorted(attrs)) for tag, attrs in Markup(text).tags] for text in (harmless, hostile)
    ]
    assert names[0] == names[1]
    assert "window.hit" not in hostile
    assert "\u2028" not in hostile


def test_names_of_a_megabyte(tmp_path: Path) -> None:
    path = saved(named("n" * 1_000_000), tmp_path, without=["firefox", "perfetto"])
    assert path.stat().st_size < 300_000
    assert data_of(path)["funcs"]["name"][0] == "n" * 1000 + "…"


def test_small_paths_are_joined_where_there_is_no_room(tmp_path: Path) -> None:
    trace = many_paths(60_000)
    path = saved(trace, tmp_path, without=["firefox", "perfetto"])
    data = data_of(path)
    assert path.stat().st_size < 300_000
    assert data["joined"] > 0
    assert (
        next(issue for issue in data["info"]["issues"] if issue["kind"] == "page_narrowed")["count"] == data["joined"]
    )
    assert sum(own_of(data, "samples").values()) == 240_000, "joined, none is lost"
    assert len(data["nodes"]["frame"]) > 1000
    assert [issue.count for issue in trace.report if issue.kind == "page_narrowed"] == [data["joined"]], "and of no try"


@pytest.mark.parametrize(
    ("estimated", "most_tried"), [(lambda size: size, 2), (lambda size: 3.0 * size, 4), (lambda _: 0, 9)]
)
def test_a_page_is_made_few_times_until_it_fits(estimated: Callable[[int], float], most_tried: int) -> None:
    """And with as much detail as there is room for, as if all were tried one after the other."""
    sizes, noise = [300_000 - 20_000 * nth for nth in range(14)], Random(0).randbytes(300_000)
    texts = {size: embed.text_size(len(embed.gzipped(noise[:size]))) for size in sizes}
    for most in [*texts.values(), *(text - 16 for text in texts.values())]:
        tried: list[int] = []

        def made(size: int, tried: list[int] = tried) -> bytes:
            tried.append(size)
            return noise[:size]

        found, data = embed.first_that_fits(sizes, made, estimated, most)
        assert found == next((size for size in sizes if texts[size] <= most), sizes[-1])
        assert data == embed.gzipped(noise[:found])
        assert len(tried) <= most_tried
        assert len(tried) == len(set(tried))


def test_a_page_of_many_threads_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whose call paths are many, and the names in them few."""
    made: list[Detail] = []
    shaped = PageData.shaped
    monkeypatch.setattr(PageData, "shaped", lambda page, detail: [made.append(detail), shaped(page, detail)][1])
    saved(many_threads(2000, n_functions=2000, n_leaves=20), tmp_path, without=["firefox", "perfetto"])
    assert made == [DETAILS[0]]


@pytest.mark.parametrize("n", [0, 1, embed.CHUNK - 1, embed.CHUNK, 3 * embed.CHUNK + 1])
def test_compressing_ends_where_there_is_no_room(n: int) -> None:
    noise = Random(0).randbytes(n)
    packed = embed.gzipped(noise)
    assert embed.gzipped_within(noise, len(packed)) == (packed, len(packed))
    found, size = embed.gzipped_within(noise, len(packed) - 1)
    assert found is None
    assert size == pytest.approx(len(packed), rel=0.1)


def test_more_counters_than_there_is_room_for(tmp_path: Path) -> None:
    trace = one_sample()
    for nth in range(30_000):
        values = Table(COUNTER_VALUES, {"ts": [0, 5], "value": [nth, nth * 7919 % 1009]})
        trace.processes[0].counters.append(Counter(f"counter {nth * 6151 % 99_991}", "", "count", values))
    path = saved(trace, tmp_path, without=["firefox", "perfetto"])
    assert path.stat().st_size < 300_000
    data = data_of(path)
    listed = data["info"]["processes"][0]["counters"]
    cut = next(issue["count"] for issue in data["info"]["issues"] if issue["kind"] == "page_counters_cut")
    assert len(listed) > 1000
    assert len(listed) + cut == 30_000


def test_thousands_of_threads(tmp_path: Path) -> None:
    path = saved(many_threads(3_000), tmp_path, without=["firefox", "perfetto"])
    assert len(data_of(path)["info"]["processes"][0]["threads"]) == 3_000
    assert sum(own_of(data_of(path), "samples").values()) == 6_000


def test_times_beyond_64_bits(tmp_path: Path) -> None:
    """Of a damaged recording. They end at the limit, and the report says so."""
    trace = one_sample()
    trace.clock = Clock("monotonic", 2**63)
    trace.bounds = (-(2**62) * 2, 2**63 - 1)
    time = data_of(saved(trace, tmp_path, without=["firefox", "perfetto"]))["info"]["time"]
    assert time["duration_ns"] == 2**63 - 1
    assert "sums_saturated" in [issue.kind for issue in trace.report]


@pytest.mark.parametrize("trace", [TraceBuilder(), one_sample()], ids=["empty", "one sample"])
def test_next_to_nothing(trace: Trace, tmp_path: Path) -> None:
    assert data_of(saved(trace, tmp_path))["info"]["issues"] == []


def test_a_file_that_is_too_large_is_named_by_its_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "MOST_EMBEDDED", 5_000)
    trace = RECORDINGS["xray"]()
    data = data_of(saved(trace, tmp_path))
    firefox = next(file for file in data["embedded"] if file["name"] == "firefox")
    command = "traceferry convert fdr-c19-pie-pool-tsc.xray -o fdr-c19-pie-pool-tsc.xray.json.gz"
    assert (firefox["size"], firefox["command"]) == (None, command)
    assert "profile_not_embedded" in [issue["kind"] for issue in data["info"]["issues"]]
    assert own_of(data, "calls")


def test_scripts_are_compacted_line_by_line() -> None:
    """Which is safe, since no text goes over several lines."""
    scripts = page.script_of(page.SCRIPTS)
    assert not [line for line in scripts.splitlines() if line.count("`") % 2]
    found = page.compacted(scripts)
    assert len(found) < 0.85 * len(scripts)
    code = [line.strip() for line in scripts.splitlines() if not re.match(r" *(//|/\*|\*)|$", line)]
    assert found.splitlines() == code
