"""`view --in page`, a page whose server has more sources and the instructions, and `view x.html`, without a server."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from builders.xray import Fdr
from clients.view import View
from conftest import REPO
from jit_recordings import path_of
from pages import Axe, browser, embedded_in, reached_by_tab
from streams import NS, START
from test_page import RECORDINGS

import traceferry
from traceferry.apps import cli
from traceferry.exporters.html.recording import DETAILS, PageData

RECORDING = "node24/jit-27512.dump"
SAMPLED = REPO / "fixtures" / "jit/java17/perf.data.zst"


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The addresses that a browser was told, and what is in them."""
    from traceferry.apps.view import browser

    addresses: list[str] = []

    def open_browser(address: str) -> bool:
        addresses.append(Path(unquote(urlsplit(address).path)).read_text(encoding="utf-8")[:15].lower())
        return True

    monkeypatch.setattr(browser, "open_browser", open_browser)
    monkeypatch.setattr(browser, "has_display", lambda: True)
    return addresses


def log(folder: Path) -> Path:
    made = Fdr(frequency=NS)
    records = [made.new_cpu(0, START), made.enter(1, 1), made.exit(1, 100)]
    path = folder / "app.xray"
    path.write_bytes(made.buffer(1, pid=1, records=records).bytes())
    return path


@pytest.mark.parametrize(("words", "n_opened"), [([], 1), (["--no-open"], 0)])
def test_a_page_that_was_made_before(tmp_path: Path, opened: list[str], words: list[str], n_opened: int) -> None:
    page = tmp_path / "a b.html"
    assert cli.main(["convert", str(log(tmp_path)), "-o", str(page), "-q"]) == 0
    assert cli.main(["view", str(page), *words]) == 0
    assert len(opened) == n_opened


def test_a_page_that_was_made_before_is_not_watched(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "made.html"
    assert cli.main(["convert", str(log(tmp_path)), "-o", str(page), "-q"]) == 0
    assert cli.main(["view", str(page), "--watch"]) == 2
    assert "--watch needs the recording" in capsys.readouterr().err


def test_a_page_needs_no_copy_of_a_viewer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["view", str(log(tmp_path)), "--in", "page", "--viewer", str(tmp_path)]) == 2
    assert "a page needs none" in capsys.readouterr().err


# ---------------------------------------------------------------- a page that is served


def test_a_served_page_may_ask_its_server_and_one_from_disk_nobody(tmp_path: Path) -> None:
    made = tmp_path / "made.html"
    assert cli.main(["convert", str(path_of(RECORDING)), "-o", str(made), "-q"]) == 0
    assert "connect-src" not in made.read_text()
    assert embedded_in(made.read_text(), "code") is None
    with View(path_of(RECORDING), "--in", "page", folder=tmp_path) as view:
        answer = view.get(view.address)
    text = answer.body.decode()
    assert (answer.status, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert answer.headers["content-security-policy"] == "frame-ancestors 'none'"
    assert "connect-src 'self'; " in text
    assert embedded_in(text, "firefox") == embedded_in(made.read_text(), "firefox")


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with browser() as opened:
        yield opened


def rows_of(page: Any, tab: str) -> list[list[str]]:
    page.wait_for_selector(f"#{tab} .source tbody tr")
    found: list[list[str]] = page.eval_on_selector_all(
        f"#{tab} tbody tr", "rows => rows.map(row => [...row.cells].map(cell => cell.textContent))"
    )
    return found


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[View]:
    with View(SAMPLED, "--in", "page", folder=tmp_path_factory.mktemp("served")) as view:
        yield view


def test_instructions_and_their_amounts_come_from_the_server(served: View, chromium: Any) -> None:
    """The amounts are those of the samples that end at each address."""
    trace = traceferry.load(SAMPLED).opened()
    at: Counter[tuple[str, int, int]] = Counter()
    for _, thread in trace.threads:
        for stack in thread.load(trace).samples["stack"].tolist():
            frame = int(trace.stacks["frame"][stack]) if stack >= 0 else -1
            symbol = int(trace.frames["symbol"][frame]) if frame >= 0 else -1
            if symbol >= 0:
                name, start = trace.strings[int(trace.symbols["name"][symbol])], int(trace.symbols["address"][symbol])
                at[name, start, int(trace.frames["address"][frame])] += 1
    asked: list[str] = []
    page = chromium.new_context().new_page()
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{served.address}#tab=instructions&code=1")
    page.wait_for_selector("html[data-ready]")
    rows = rows_of(page, "instructions")
    name = page.inner_text("#instructions .name")
    page.context.close()
    assert all(text for _, _, _, text in rows)
    shown = {int(address, 16): int(own) for own, _, address, _ in rows if own}
    # A function that was compiled twice has two codes of one name.
    first = int(rows[0][2], 16)
    assert shown == {address: n for (symbol, start, address), n in at.items() if (symbol, start) == (name, first)}
    assert any(url.endswith("/asm/v1") for url in asked)
    assert all(url.startswith((served.server, "data:", "blob:")) for url in asked)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_instructions_and_sources_by_keyboard_and_without_findings_of_axe(
    scheme: str, served: View, chromium: Any
) -> None:
    page = chromium.new_context(color_scheme=scheme).new_page()
    page.goto(f"{served.address}#tab=instructions&code=1")
    page.wait_for_selector("html[data-ready]")
    axe = Axe(page)
    for tab, chooser, table in (
        ("instructions", "Machine code", "Instructions"), ("source", "Source file", "Source"),
    ):  # fmt: skip
        page.evaluate("(tab) => traceferryPage.state.go({ tab })", tab)
        rows = rows_of(page, tab)
        titles = page.eval_on_selector_all(f"#{tab} option", "all => all.map(one => one.textContent)")
        assert titles[1] == {"instructions": "Hot.collatz(long)", "source": "java/util/TimSort.java"}[tab]
        assert page.query_selector(f"#{tab} tr.hot.centre"), "the warmest row is in sight"
        assert axe.findings() == [], tab
        if scheme == "dark":
            continue
        reached = reached_by_tab(page)
        assert all(outline != "none" for outline, _ in reached), reached
        assert [text for _, text in reached][-3:] == [chooser, "Weight of lines", table]
        page.focus(f"#{tab} [aria-label='{chooser}']")
        page.keyboard.press("ArrowDown")
        page.wait_for_function(
            "([tab, text]) => { const body = document.querySelector(`#${tab} tbody`);"
            " return body !== null && body.textContent !== text; }",
            arg=[tab, "".join("".join(row) for row in rows)],
        )
        focused = page.evaluate("document.activeElement.getAttribute('aria-label')")
        assert focused == chooser, "the next key goes on from there"
    page.context.close()


def test_a_served_page_is_made_again_when_the_recording_changes(tmp_path: Path) -> None:
    recording = log(tmp_path)
    with View(recording, "--in", "page", "--watch", folder=tmp_path) as view:
        before = embedded_in(view.get(view.address).body.decode(), "data")
        made = Fdr(frequency=NS)
        records = [made.new_cpu(0, START), made.enter(1, 1), made.exit(1, 100), made.enter(2, 1), made.exit(2, 100)]
        recording.write_bytes(made.buffer(1, pid=1, records=records).bytes())
        view.tells("reload the page")
        after = embedded_in(view.get(view.address).body.decode(), "data")
    assert before is not None
    assert after is not None
    assert before != after


@pytest.mark.parametrize("name", ["xray", "mono", "jit"])
def test_code_without_samples(name: str) -> None:
    """Of calls, what is called; of what has no machine code, nothing."""
    trace = RECORDINGS[name]().opened()
    page = PageData.of(trace, lambda _: None, is_served=True)
    code = page.code(DETAILS[0])
    assert (len(code["codes"]) > 0) == (name == "xray")
    assert len(code["of_func"]) == len(page.shaped(DETAILS[0])["funcs"]["name"]) - 1
    assert all(-1 <= nth < len(code["codes"]) for nth in code["of_func"])


def test_sources_that_are_not_in_the_recording_come_from_the_server(tmp_path: Path, chromium: Any) -> None:
    """Where it has them; otherwise the page says why, and shows the lines that have anything."""
    source = tmp_path / "src" / "app.py"
    source.parent.mkdir()
    source.write_text("first\nsecond\nthe seventh is further down\n\n\n\nseventh\n")
    folded = tmp_path / "app.speedscope.json"
    frames = [{"name": "work", "file": "/build/app.py", "line": 7}]
    profile = {"type": "sampled", "name": "main", "unit": "none", "startValue": 0, "endValue": 2,
               "samples": [[0], [0]], "weights": [1, 1]}  # fmt: skip
    schema = "https://www.speedscope.app/file-format-schema.json"
    folded.write_text(json.dumps({"$schema": schema, "shared": {"frames": frames}, "profiles": [profile]}))
    for words, text, said in (
        (["--source-root", source.parent], "seventh", ""), ([], "", "give its folder with --source-root"),
    ):  # fmt: skip
        with View(folded, "--in", "page", *words, folder=tmp_path) as view:
            page = chromium.new_context().new_page()
            page.goto(f"{view.address}#tab=source")
            page.wait_for_selector("html[data-ready]")
            lines = {row[2]: row for row in rows_of(page, "source")}
            assert lines["7"][3] == text
            assert lines["7"][0] == "2"
            assert said in page.inner_text("#source")
            page.context.close()
