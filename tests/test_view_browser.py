"""`traceferry view` in a real browser: stand-ins for the two viewers, at the viewers' own origins, make the viewers'
requests against a running server. Nothing of the real viewers is loaded, and nothing leaves the machine."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from clients.view import FIREFOX, PERFETTO, View
from jit_recordings import path_of
from pages import CHROMIUM, NO_BROWSER

import traceferry

if CHROMIUM is None:
    pytest.skip(NO_BROWSER, allow_module_level=True)
playwright = pytest.importorskip("playwright.sync_api", reason="the package playwright is not installed")

RECORDING = "samply-ext/ext-mixed-little-s104.dump"
FOREIGN = "https://evil.example"

# What the Firefox Profiler does with the address: it fetches the profile, and asks the symbol server.
FIREFOX_PAGE = """<!doctype html><title>stand-in</title><script>
async function load() {
  const profile = decodeURIComponent(location.pathname.split("/")[2]);
  const response = await fetch(profile, {credentials: "omit"});
  const packed = await response.blob();
  return new Response(packed.stream().pipeThrough(new DecompressionStream("gzip"))).json();
}
async function ask(question, request) {
  const server = new URLSearchParams(location.search).get("symbolServer");
  const body = JSON.stringify(request);
  const response = await fetch(server + question, {body, method: "POST", mode: "cors", credentials: "omit"});
  if (response.status !== 200) throw new Error(response.status);
  return response.json();
}
if (location.pathname.startsWith("/from-post-message/")) {
  window.addEventListener("message", (event) => {
    if (event.data.name === "ready:request") event.source.postMessage({name: "ready:response"}, "*");
    if (event.data.name === "inject-profile") window.received = new Uint8Array(event.data.profile);
  });
}
</script>"""
PERFETTO_PAGE = """<!doctype html><title>stand-in</title><script>
async function load() {
  const url = new URLSearchParams(location.hash.split("?")[1]).get("url");
  const response = await fetch(url);
  return Array.from(new Uint8Array(await (await response.blob()).arrayBuffer()));
}
window.addEventListener("message", (event) => {
  if (event.data === "PING") event.source.postMessage("PONG", "*");
  if (event.data.perfetto) window.received = new Uint8Array(event.data.perfetto.buffer);
});
</script>"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as started:
        options = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-dev-shm-usage"]
        running = started.chromium.launch(executable_path=CHROMIUM, args=options)
        yield running
        running.close()


@pytest.fixture
def context(browser: Any) -> Iterator[Any]:
    """With the viewers' origins served from here; a person has allowed them to reach this machine."""
    opened = browser.new_context()
    opened.route(f"{FIREFOX}/**", lambda route: route.fulfill(body=FIREFOX_PAGE, content_type="text/html"))
    opened.route(f"{PERFETTO}/**", lambda route: route.fulfill(body=PERFETTO_PAGE, content_type="text/html"))
    opened.route(f"{FOREIGN}/**", lambda route: route.fulfill(body="<title>foreign</title>", content_type="text/html"))
    for origin in (FIREFOX, PERFETTO, FOREIGN):
        with suppress(playwright.Error):  # older ones do not ask
            opened.grant_permissions(["local-network-access"], origin=origin)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def view(tmp_path_factory: pytest.TempPathFactory) -> Iterator[View]:
    with View(path_of(RECORDING), folder=tmp_path_factory.mktemp("view")) as running:
        yield running


def said(page: Any) -> Any:
    """What the page tells; the page's policy forbids to evaluate anything there."""
    return playwright.expect(page.locator("#state"))


def converted(folder: Path, suffix: str) -> bytes:
    traceferry.convert(path_of(RECORDING), folder / f"out{suffix}")
    return (folder / f"out{suffix}").read_bytes()


def test_firefox_loads_the_profile_with_source_and_instructions(context: Any, view: View, tmp_path: Path) -> None:
    page = context.new_page()
    page.goto(view.address)
    profile = page.evaluate("load()")
    assert profile == json.loads(gzip.decompress(converted(tmp_path, ".json.gz")))
    symbols, strings = profile["shared"]["nativeSymbols"], profile["shared"]["stringArray"]
    (lib,) = profile["libs"]
    named = {"debugName": lib["debugName"], "debugId": lib["breakpadId"], "name": lib["name"], "codeId": lib["codeId"]}
    request = named | {
        "startAddress": hex(symbols["address"][0]), "size": hex(symbols["functionSize"][0]),
        "continueUntilFunctionEnd": False,
    }  # fmt: skip
    answer = page.evaluate("request => ask('/asm/v1', request)", request)
    assert (answer["startAddress"], answer["arch"]) == (request["startAddress"], "x86_64")
    assert len(answer["instructions"]) > 3
    sources = profile["shared"]["sources"]
    nth = next(nth for nth, text in enumerate(sources["content"]) if text)
    request = named | {"moduleOffset": "0x0", "file": strings[sources["filename"][nth]]}
    assert page.evaluate("request => ask('/source/v1', request)", request)["source"]
    stacks = [[[0, symbols["address"][0]]]]
    request = {"jobs": [{"memoryMap": [[lib["debugName"], lib["breakpadId"]]], "stacks": stacks}]}
    answer = page.evaluate("request => ask('/symbolicate/v5', request)", request)
    assert answer["results"][0]["stacks"][0][0]["function"]


def test_perfetto_loads_the_trace(context: Any, tmp_path: Path) -> None:
    with View(path_of(RECORDING), "--in", "perfetto", folder=tmp_path) as view:
        if view.address.startswith("http://127.0.0.1"):
            pytest.skip("port 9001 is taken on this machine")
        page = context.new_page()
        page.goto(view.address)
        assert bytes(page.evaluate("load()")) == converted(tmp_path, ".pftrace")


def test_a_foreign_page_reads_nothing(context: Any, view: View) -> None:
    page = context.new_page()
    page.goto(f"{FOREIGN}/")
    for request in ("fetch(url)", "fetch(url, {method: 'POST', body: '{}'})", "fetch(url, {headers: {'X-A': '1'}})"):
        said = page.evaluate(f"url => {request}.then(() => 'read', error => error.message)", view.trace)
        assert said == "Failed to fetch"
    # Nor does it see that there is something.
    opaque = page.evaluate(
        "url => fetch(url, {mode: 'no-cors'}).then(r => r.type + r.status, error => error.message)", view.trace
    )
    assert opaque == "Failed to fetch"


def test_the_page_hands_the_trace_to_either_viewer(context: Any, view: View, tmp_path: Path) -> None:
    page = context.new_page()
    page.goto(f"{view.server}/")
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    for name, suffix in {"firefox": ".json.gz", "perfetto": ".pftrace"}.items():
        with context.expect_page() as opened:
            page.click(f"#{name}")
        said(page).to_have_text("The viewer has the trace.")
        viewer = opened.value
        viewer.wait_for_function("window.received !== undefined")
        assert bytes(viewer.evaluate("Array.from(window.received)")) == converted(tmp_path, suffix)
        assert str(view.port) not in viewer.url
        assert parse_qs(urlsplit(viewer.url).query) == (
            {"symbolServer": ["http://127.0.0.1:1"]} if name == "firefox" else {"testing": ["1"]}
        )
        viewer.close()
    with context.expect_page() as opened:
        page.check("#firefox-asks")
        page.click("#firefox")
    assert parse_qs(urlsplit(opened.value.url).query) == {"symbolServer": [view.server]}
    assert errors == []


def test_the_page_says_what_went_wrong(context: Any, tmp_path: Path) -> None:
    with View(path_of(RECORDING), folder=tmp_path) as view:
        page = context.new_page()
        page.goto(f"{view.server}/")
        page.evaluate("window.open = () => null")
        page.click("#firefox")
        said(page).to_contain_text("did not let Firefox Profiler open")
        page.reload()
        view.stop()
        page.click("#firefox")
        said(page).to_have_text("Failed to fetch")
