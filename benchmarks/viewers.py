"""The real viewers, opened in chromium: how long each takes from opening to its first picture.

Each function opens one file and returns seconds until the file was read, until the viewer had loaded it, until it was
drawn, and the bytes of memory of the largest process that took part. scheme: the viewer's colours, "light" or "dark";
show: does what is to be seen in the picture.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.parse import quote

Times = tuple[float, float, float, int]
Show = Callable[[Any], None]

FLAGS = ("--no-sandbox", "--disable-background-networking", "--disable-dev-shm-usage")
# Two viewers draw with the processor alone; the third asks for a graphics card.
NO_GRAPHICS = (*FLAGS, "--disable-gpu")
SOFTWARE_GRAPHICS = (*FLAGS, "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist")
VIEW = {"width": 1500, "height": 950}
MOST_MS, POLL_MS = 600_000, 100
# A module without content, in place of the engine's: the engine runs as a process of its own.
EMPTY_MODULE = b"\0asm\1\0\0\0"
# Two frames later, what was laid out is drawn.
DRAWN = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))"
# What is drawn is more than the background.
PAINTED = """() => { const canvas = document.querySelector('canvas.flameGraphCanvas');
    if (!canvas || !canvas.width) return false;
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    const first = data[0] << 16 | data[1] << 8 | data[2];
    for (let i = 4; i < data.length; i += 4 * 97)
        if ((data[i] << 16 | data[i + 1] << 8 | data[i + 2]) !== first) return true;
    return false; }"""


class NotThereError(Exception):
    """Which part of a viewer is missing here."""


class NotShownError(Exception):
    """How a viewer failed to show a file: "Target crashed", where its browser has no more memory."""


def engine() -> str:
    found = os.environ.get("PERFETTO_TP_BIN") or shutil.which("trace_processor_shell")
    if not found or not os.access(found, os.X_OK):
        raise NotThereError("PERFETTO_TP_BIN does not name a trace_processor_shell")
    return found


def firefox_picture(profile: Path, picture: Path | None, scheme: str = "light", show: Show | None = None) -> Times:
    """The flame graph in the Firefox Profiler's own front-end."""
    home = os.environ.get("FXP_DIST") or (os.environ.get("FXP", "") and f"{os.environ['FXP']}/build/profiler/dist")
    folder = _folder("FXP_DIST", home)
    with _served(folder, single_page=True, given=profile) as origin, _page(NO_GRAPHICS, scheme) as page:
        began = time.perf_counter()
        address = quote(f"{origin}/given/{profile.name}", safe="")
        page.goto(f"{origin}/from-url/{address}/flame-graph/", wait_until="commit")
        page.wait_for_selector(".profileViewer, .rootMessage:not(:has(.loading))", timeout=MOST_MS)
        if page.query_selector(".profileViewer") is None:
            raise SystemExit(f"the front-end refuses {profile.name}: {page.inner_text('.rootMessage')}")
        loaded = time.perf_counter() - began
        page.wait_for_function(PAINTED, timeout=MOST_MS, polling=POLL_MS)
        page.evaluate(DRAWN)
        drawn = time.perf_counter() - began
        transfer = page.evaluate(
            "() => performance.getEntriesByType('resource').filter(e => e.name.includes('/given/'))"
            ".reduce((sum, e) => sum + e.responseEnd - e.startTime, 0) / 1000"
        )
        return _ended(page, picture, show, transfer, loaded, drawn)


def perfetto_picture(trace: Path, picture: Path | None, scheme: str = "light", show: Show | None = None) -> Times:
    """The timeline in Perfetto's own user interface, which talks to a native engine."""
    folder = _folder("PUI", os.environ.get("PUI", "") and f"{os.environ['PUI']}/dist")
    preferences = PREFERENCES % scheme
    with _served(folder) as origin, _engine_for(origin) as port, _page(SOFTWARE_GRAPHICS, scheme, preferences) as page:
        page.goto(f"{origin}/#!/?rpc_port={port}")
        page.wait_for_selector("input.trace_file", state="attached", timeout=MOST_MS)
        page.wait_for_function("() => typeof window.waitForPerfettoIdle === 'function'", timeout=MOST_MS)
        began = time.perf_counter()
        page.locator("input.trace_file").first.set_input_files(str(trace))
        page.wait_for_function("() => window.app && window.app.trace !== undefined", timeout=MOST_MS)
        loaded = time.perf_counter() - began
        page.evaluate(IDLE)
        drawn = time.perf_counter() - began
        return _ended(page, picture, show, 0.0, loaded, drawn)


def page_picture(file: Path, picture: Path | None, scheme: str = "light", show: Show | None = None) -> Times:
    """A page of ours, from disk."""
    with _page(NO_GRAPHICS, scheme) as page:
        began = time.perf_counter()
        page.goto(file.resolve().as_uri(), wait_until="commit")
        page.wait_for_selector("html[data-ready]", timeout=MOST_MS)
        loaded = time.perf_counter() - began
        page.evaluate(DRAWN)
        return _ended(page, picture, show, 0.0, loaded, time.perf_counter() - began)


IDLE = "() => Promise.race([waitForPerfettoIdle(200), new Promise(done => setTimeout(done, 10000))])"
PREFERENCES = """{
    localStorage.setItem('perfettoFeatureFlags', JSON.stringify({cspAllowAnyWebsocketPort: 'OVERRIDE_TRUE'}));
    localStorage.setItem('perfettoSettings', JSON.stringify({analyticsEnable: false, theme: '%s'}));
    localStorage.setItem('cookieAck', 'true'); localStorage.setItem('dismissedPanningHint', 'true'); }"""


def _ended(page: Any, picture: Path | None, show: Show | None, transfer: float, loaded: float, drawn: float) -> Times:
    """All but the last are seconds since the viewer was opened, or what of them went by while the file was read."""
    if picture is not None:
        if show is not None:
            show(page)
        page.screenshot(path=picture)
    return transfer, max(loaded - transfer, 0.0), drawn - loaded, _largest_peak()


def _folder(variable: str, path: str) -> Path:
    if not path or not (Path(path) / "index.html").exists():
        raise NotThereError(f"{variable} does not name the folder of a built viewer")
    return Path(path)


@contextmanager
def _page(flags: Sequence[str], scheme: str, script: str = "") -> Iterator[Any]:
    """A page of a browser that was just started and reaches this machine only. script: runs before the page's own."""
    try:
        from playwright.sync_api import Error, sync_playwright
    except ImportError:
        raise NotThereError("the package playwright is not installed (pip install playwright)") from None
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        raise NotThereError("chromium is not installed (apt install chromium)")
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=program, args=list(flags))
        try:
            context = browser.new_context(viewport=VIEW, service_workers="block", color_scheme=scheme)
            context.route(lambda url: url.startswith("http") and "//127.0.0.1:" not in url, lambda route: route.abort())
            if script:
                context.add_init_script(script)
            yield context.new_page()
        except Error as error:
            raise NotShownError(str(error).splitlines()[0].strip()) from None
        finally:
            browser.close()


class _Files(SimpleHTTPRequestHandler):
    """Serves a folder, and one file below /given/. single_page: what is not there is the viewer's own page."""

    def __init__(self, *arguments: Any, single_page: bool, given: Path | None, **others: Any) -> None:
        self._single_page = single_page
        self._given = given
        super().__init__(*arguments, **others)

    def translate_path(self, path: str) -> str:
        if self._given is not None and path.startswith("/given/"):
            return str(self._given)
        found = super().translate_path(path)
        return super().translate_path("/index.html") if self._single_page and not os.path.exists(found) else found

    def do_GET(self) -> None:
        if not self.path.split("?")[0].endswith(".wasm"):
            return super().do_GET()
        self.send_response(200)
        self.send_header("Content-Type", "application/wasm")
        self.send_header("Content-Length", str(len(EMPTY_MODULE)))
        self.end_headers()
        self.wfile.write(EMPTY_MODULE)
        return None

    def log_message(self, *_: Any) -> None: ...


@contextmanager
def _served(folder: Path, single_page: bool = False, given: Path | None = None) -> Iterator[str]:
    handler = partial(_Files, directory=str(folder), single_page=single_page, given=given)
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def _engine_for(origin: str) -> Iterator[int]:
    """The port of an engine that answers pages of the origin."""
    with ThreadingHTTPServer(("127.0.0.1", 0), SimpleHTTPRequestHandler) as free:
        port = free.server_port
    words = ["server", "http", "--port", str(port), "--ip-address", "127.0.0.1", "--additional-cors-origins", origin]
    process = subprocess.Popen([engine(), *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(200):
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/status", data=b"", timeout=5):
                    break
            except URLError:
                time.sleep(0.1)
        yield port
    finally:
        process.terminate()
        process.wait()


def _largest_peak() -> int:
    """Bytes of resident memory at most of one process, of those below this one; 0 where the system does not tell."""
    parents, peaks = dict[int, int](), dict[int, int]()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            text = (folder / "status").read_text()
        except OSError:
            continue
        fields = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
        parents[int(folder.name)] = int(fields["PPid"])
        peaks[int(folder.name)] = int(fields.get("VmHWM", "0 kB").split()[0]) * 1024
    return max((peak for pid, peak in peaks.items() if _is_below(pid, parents)), default=0)


def _is_below(pid: int, parents: dict[int, int]) -> bool:
    while pid in parents:
        pid = parents[pid]
        if pid == os.getpid():
            return True
    return False
