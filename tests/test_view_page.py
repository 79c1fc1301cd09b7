"""`view --in page` and `view x.html`: a page in the browser, without a server."""

from __future__ import annotations

import time
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from builders.xray import Fdr
from streams import NS, START

from traceferry.apps import cli


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


def test_a_recording_as_a_page(
    tmp_path: Path, opened: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is there until Ctrl-C, and then it is gone."""

    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", interrupt)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cli.main(["view", str(log(tmp_path)), "--in", "page"]) == 0
    assert opened == ["<!doctype html>"]
    address = capsys.readouterr().out.strip()
    assert address.startswith("file:///")
    assert address.endswith("/recording.html")
    assert not Path(unquote(urlsplit(address).path)).exists()


@pytest.mark.parametrize(("words", "n_opened"), [([], 1), (["--no-open"], 0)])
def test_a_page_that_was_made_before(tmp_path: Path, opened: list[str], words: list[str], n_opened: int) -> None:
    page = tmp_path / "a b.html"
    assert cli.main(["convert", str(log(tmp_path)), "-o", str(page), "-q"]) == 0
    assert cli.main(["view", str(page), *words]) == 0
    assert len(opened) == n_opened


def test_a_page_is_not_watched(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["view", str(log(tmp_path)), "--in", "page", "--watch"]) == 2
    assert "--watch does not work with --in page" in capsys.readouterr().err
