"""The two viewers: where they are, and the addresses that make them load what is served here. And the page of our own,
which is served itself.

What stands before "#" is sent to the viewer's host, which has no use for it; so it holds no name of a file, and of this
machine nothing but a port and random letters.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote, urlencode

from traceferry import registry

# The only loopback port that ui.perfetto.dev's content security policy lets it connect to.
PERFETTO_PORT = 9001
# It shows the sources that a trace holds, and is off by default.
SOURCES_PLUGIN = "org.chromium.V8"
# Without it, Perfetto reports its whole address to Google Analytics, also what stands after "#", and also as a copy
# (ui/src/core/analytics_impl.ts and app_impl.ts of v58.2; it has no other effect).
NO_ANALYTICS = "/?testing=1"
# A symbol server that nobody can be. Without one, the Firefox Profiler asks Mozilla's for names of libraries and
# addresses where a profile says that it lacks symbols (src/actions/receive-profile.ts).
NO_SERVER = "http://127.0.0.1:1"
# A copy of a viewer asks nobody but this server; and, as ui.perfetto.dev does, a trace processor of this machine.
COPY_POLICY = (
    "default-src 'self' data: blob: 'unsafe-inline' 'unsafe-eval' 'wasm-unsafe-eval'; "
    f"connect-src 'self' data: blob: http://127.0.0.1:{PERFETTO_PORT} ws://127.0.0.1:{PERFETTO_PORT}"
)


@dataclass(frozen=True)
class Viewer:
    """name: also the exporter's; port: the only one that it can load from, 0 is any."""

    name: str
    origin: str
    port: int = 0

    @property
    def exporter(self) -> registry.Exporter:
        """The exporter of the files that are made for it."""
        return registry.served_page() if self is PAGE else registry.exporter_named(self.name)

    @property
    def title(self) -> str:
        return self.exporter.viewer

    @property
    def suffix(self) -> str:
        """The suffix of the files that are made for it."""
        return self.exporter.default_suffix


FIREFOX = Viewer("firefox", "https://profiler.firefox.com")
PERFETTO = Viewer("perfetto", "https://ui.perfetto.dev", PERFETTO_PORT)
VIEWERS = {viewer.name: viewer for viewer in (FIREFOX, PERFETTO)}
# It shows itself.
PAGE = Viewer("html", "")


def address(viewer: Viewer, origin: str, trace_url: str, symbol_server: str, has_sources: bool) -> str:
    """Returns what opens the viewer with the trace loaded. origin: where the viewer is served; symbol_server: its
    address; has_sources: the trace holds sources."""
    if viewer is FIREFOX:
        return f"{origin}/from-url/{quote(trace_url, safe='')}/" + _firefox_query(symbol_server)
    return f"{origin}{NO_ANALYTICS}#!/?{urlencode({'url': trace_url} | _perfetto_query(has_sources))}"


def receiving_address(viewer: Viewer, origin: str, symbol_server: str, has_sources: bool) -> str:
    """Returns what opens the viewer and lets it wait for a message with the trace."""
    if viewer is FIREFOX:
        return f"{origin}/from-post-message/" + _firefox_query(symbol_server)
    query = urlencode(_perfetto_query(has_sources))
    return f"{origin}{NO_ANALYTICS}#!/" + (f"?{query}" if query else "")


def _firefox_query(symbol_server: str) -> str:
    return f"?{urlencode({'symbolServer': symbol_server})}"


def _perfetto_query(has_sources: bool) -> dict[str, str]:
    return {"enablePlugins": SOURCES_PLUGIN} if has_sources else {}
