"""The documentation as a site (`make docs`): strict, whole, and alone: it asks nobody but who serves it."""

from __future__ import annotations

import functools
import http.server
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import REPO
from pages import browser

pytest.importorskip("mkdocs", reason="mkdocs builds the site (pip install 'traceferry[docs]')")
pytest.importorskip("material", reason="the site's theme is missing (pip install 'traceferry[docs]')")
pytest.importorskip("mkdocstrings", reason="mkdocstrings makes pages of docstrings (pip install 'traceferry[docs]')")

# What a browser loads by itself. Links that a reader clicks may lead anywhere.
LOADED = re.compile(
    r"""<(?:script|img|iframe|source|video|audio|embed)\b[^>]*?\bsrc=["']?(?:https?:)?//[^"'>\s]*"""
    r"""|<link\b(?![^>]*rel=["']?(?:canonical|next|prev)\b)[^>]*?\bhref=["']?(?:https?:)?//[^"'>\s]*"""
)
LOADED_BY_STYLES = re.compile(r"""url\(["']?(?:https?:)?//[^)]*|@import\s+["'](?:https?:)?//[^"']*""")

# Of a step in the browser: other tests may keep the machine busy.
SLOW_MS = 120_000


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    typing = REPO / "build" / "typing"
    if not (typing / "traceferry").exists():
        pytest.skip("build/typing is missing, which `make lint` makes: what the docstrings are read from")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=REPO, capture_output=True, text=True, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def served(site: Path) -> Iterator[str]:
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(site))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    pages = {path: path.read_text("utf-8") for path in site.rglob("*.html")}
    assert len(pages) > 40
    assert {path.name: found for path, text in pages.items() if (found := LOADED.findall(text))} == {}
    styles = {path: path.read_text("utf-8") for path in site.rglob("*.css")}
    assert styles
    assert {path.name: found for path, text in styles.items() if (found := LOADED_BY_STYLES.findall(text))} == {}


def test_every_document_is_a_page(site: Path) -> None:
    pages = [path.relative_to(REPO / "docs") for path in (REPO / "docs").rglob("*.md")]
    pages += [Path(name) for name in ("FORMATS.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md")]
    assert [str(path) for path in pages if not (site / path.with_suffix(".html")).is_file()] == []


def test_the_interface_is_there_with_its_parameters(site: Path) -> None:
    text = re.sub("<[^>]*>", "", (site / "api.html").read_text("utf-8"))
    for word in ("find_symbols", "time_range", "What was recorded. Its report lists", "UsageError"):
        assert word in text


def test_a_search_finds_and_asks_nobody_else(served: str) -> None:
    with browser() as opened:
        page = opened.new_context().new_page()
        page.set_default_timeout(SLOW_MS)
        others: list[str] = []
        page.on("request", lambda request: others.append(request.url) if not request.url.startswith(served) else None)
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(f"{served}/index.html")
        page.locator("input[name=query]").press_sequentially("heapshot")  # it looks at its keys, when it has begun
        page.wait_for_selector(".md-search-result__item a")
        assert "record/mono.html" in page.inner_html(".md-search-result__list")
        page.goto(f"{served}/record/mono.html")
        assert page.inner_text("h1").startswith("Mono")
        assert [url for url in others if not url.startswith(("data:", "blob:"))] == []
        assert errors == []
