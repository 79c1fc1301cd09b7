"""The HTTP server. Every request is checked before anything else: who asks, from which page, for what, and how."""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from socket import socket
from threading import Lock
from weakref import WeakKeyDictionary

from aiohttp import hdrs, web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http_exceptions import BadHttpMessage

from traceferry.apps.view.connections import Connections
from traceferry.apps.view.loopback import Peers, user_named
from traceferry.apps.view.page import page, policy
from traceferry.apps.view.site import Site, content_type
from traceferry.apps.view.symbol_server import QUESTIONS
from traceferry.apps.view.threads import in_thread
from traceferry.apps.view.viewers import COPY_POLICY, PAGE, VIEWERS, Viewer
from traceferry.common.errors import TraceferryError
from traceferry.common.patterns import compiled_later
from traceferry.common.shown_text import shown

HOST = compiled_later(r"(?:127\.0\.0\.1|localhost)(?::\d{1,5})?", re.ASCII)
MAX_BODY = 8 << 20
# For a request's body.
BODY_SECONDS = 60
SHUTDOWN_SECONDS = 0.5
# How long the rest of a refused body is read, so that the client sees the answer.
LINGERING_SECONDS = 1
PREFLIGHT_SECONDS = 600
EXPOSED_HEADERS = "Accept-Ranges, Content-Length, Content-Range, ETag, Last-Modified"
REQUEST_HEADERS = "Content-Type, Range, If-Range, If-None-Match, If-Modified-Since, Cache-Control, Pragma"
PRIVATE_NETWORK = "Access-Control-Request-Private-Network"
# Of no answer may another program make more than it is.
ALWAYS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}
# A changed file under --watch must be seen: asked for again each time, and sent only if it changed.
UNCACHED = {"Cache-Control": "no-cache"}
READS = (hdrs.METH_GET, hdrs.METH_HEAD)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class _File(web.FileResponse):
    """Honours If-Range with an entity tag, too: a part of a file that has changed since is sent whole."""

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter | None:
        if self.prepared:  # the server does so again, and the file would be sent again
            return None
        condition = request.headers.get(hdrs.IF_RANGE, "")
        if condition and request.if_range is None and condition != _entity_tag(self._path):
            headers = request.headers.copy()
            headers.popall(hdrs.RANGE, None)
            request = request.clone(headers=headers)
        return await super().prepare(request)


def _entity_tag(path: Path) -> str:
    """Returns the entity tag that FileResponse makes."""
    with suppress(OSError):
        status = path.stat()
        return f'"{status.st_mtime_ns:x}-{status.st_size:x}"'
    return ""


class Server:
    """opens: where the opening address leads to."""

    def __init__(self, site: Site, peers: Peers, opens: str) -> None:
        self._site = site
        self._peers = peers
        self._opens = opens
        self._connections = Connections()
        # Users who were refused, and of whom that was said.
        self._told: set[int] = set()
        self._is_welcome: WeakKeyDictionary[asyncio.Transport, bool] = WeakKeyDictionary()
        # What answers questions keeps what it has read: one question at a time.
        self._asking = Lock()
        self._origins = {*(viewer.origin for viewer in VIEWERS.values()), *site.allowed_origins}

    @asynccontextmanager
    async def running(self, listening: socket) -> AsyncIterator[None]:
        application = web.Application(client_max_size=MAX_BODY)
        application.router.add_route("*", "/{path:.*}", self._handle)
        runner = web.AppRunner(
            application, access_log=None, shutdown_timeout=SHUTDOWN_SECONDS, lingering_time=LINGERING_SECONDS,
            auto_decompress=False, logger=_logger(),
        )  # fmt: skip
        await runner.setup()
        assert runner.server is not None
        tasks = [
            asyncio.create_task(self._connections.accept(listening, runner.server)),
            asyncio.create_task(self._connections.watch()),
        ]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await runner.cleanup()

    # ------------------------------------------------------------ checks

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        if request.transport is None:  # closed in the meantime
            return _refusal(web.HTTPBadRequest.status_code)
        with self._connections.answering(request.transport):
            try:
                response = await self._answered(request, request.transport)
                # Sent now: after this the connection waits for the next request.
                await response.prepare(request)
                await response.write_eof()
            except ConnectionError:  # the client has gone
                return _refusal(web.HTTPBadRequest.status_code)
            return response

    async def _answered(self, request: web.Request, transport: asyncio.Transport) -> web.StreamResponse:
        """Answers a request. A refusal has no body, and no header that lets a page read it."""
        host, origin = request.headers.get(hdrs.HOST, ""), request.headers.get(hdrs.ORIGIN)
        is_known = origin is None or origin == f"http://{host}" or origin in self._origins
        if HOST.fullmatch(host) is None or not is_known:
            return _refusal(web.HTTPForbidden.status_code)
        found = self._route(request.raw_path.partition("?")[0])
        if found is None:
            return _refusal(web.HTTPNotFound.status_code)
        if not await self._is_from_a_welcome_user(transport):
            return _refusal(web.HTTPForbidden.status_code)
        methods, handler = found
        if request.method == hdrs.METH_OPTIONS and origin is not None:
            response: web.StreamResponse = _preflight(request, methods)
        elif request.method not in methods:
            return _refusal(web.HTTPMethodNotAllowed.status_code, {hdrs.ALLOW: ", ".join(methods)})
        else:
            response = await handler(request)
        response.headers.update(ALWAYS)
        if origin is not None:
            response.headers[hdrs.ACCESS_CONTROL_ALLOW_ORIGIN] = origin
            response.headers[hdrs.ACCESS_CONTROL_EXPOSE_HEADERS] = EXPOSED_HEADERS
        response.headers[hdrs.VARY] = hdrs.ORIGIN
        return response

    async def _is_from_a_welcome_user(self, transport: asyncio.Transport) -> bool:
        """Asked of the system once for each connection, after all other checks: it is the most work."""
        known = self._is_welcome.get(transport)
        if known is None:
            client, server = transport.get_extra_info("peername"), transport.get_extra_info("sockname")
            known = await in_thread(lambda: self._peers.is_welcome(client, server[1]))
            self._is_welcome[transport] = known
            for user in self._peers.refused - self._told:
                self._told.add(user)
                name = user_named(user)
                said = f"a program of the user {name} was refused; --allow-user {name} lets it in"
                print(shown(said), file=sys.stderr, flush=True)
        return known

    def _route(self, path: str) -> tuple[tuple[str, ...], Handler] | None:
        """Returns the methods that a path has, and what answers. Paths are compared, never looked up on disk."""
        site = self._site
        viewer = site.viewer_of_path(path)
        if viewer is not None:
            return READS, lambda request: self._trace(viewer)
        if path == f"{site.prefix}/":
            return READS, self._page
        if path == site.opening_path and self._peers.are_known:
            return READS, self._open
        question = path.removeprefix(site.prefix)
        if path != question and question in QUESTIONS:
            return (hdrs.METH_POST,), lambda request: self._answer(request, question)
        file = site.viewer_file(path)
        return None if file is None else (READS, lambda request: _viewer_file(file))

    # ------------------------------------------------------------ answers

    async def _trace(self, viewer: Viewer) -> web.StreamResponse:
        """Sends the trace, converted now if this is the first time."""
        try:
            path = await in_thread(lambda: self._site.conversion.file_for(viewer))
        except (TraceferryError, OSError) as error:
            return web.Response(status=500, text=str(error))
        if viewer is PAGE:
            # The other rules are in the page.
            headers = {hdrs.CONTENT_TYPE: content_type(path), "Content-Security-Policy": "frame-ancestors 'none'"}
        else:
            # The viewers tell compressed files by their content.
            headers = {hdrs.CONTENT_TYPE: "application/octet-stream"}
        return _File(path, headers=headers | UNCACHED)

    async def _answer(self, request: web.Request, question: str) -> web.StreamResponse:
        if request.headers.get(hdrs.CONTENT_ENCODING, "identity") != "identity":  # no viewer compresses a question
            return _refusal(web.HTTPUnsupportedMediaType.status_code)
        if (request.content_length or 0) > MAX_BODY:
            return _refusal(web.HTTPRequestEntityTooLarge.status_code)
        try:
            async with asyncio.timeout(BODY_SECONDS):
                body = await request.read()
        except TimeoutError:
            return _refusal(web.HTTPRequestTimeout.status_code)
        except web.HTTPRequestEntityTooLarge:
            return _refusal(web.HTTPRequestEntityTooLarge.status_code)
        except web.RequestPayloadError:  # cut, or not in chunks as it says
            return _refusal(web.HTTPBadRequest.status_code)
        answer = await in_thread(lambda: self._symbols(question, body))
        return web.Response(body=answer, content_type="application/json", headers=UNCACHED)

    def _symbols(self, question: str, body: bytes) -> bytes:
        import orjson

        with self._asking:
            symbols = self._site.symbols()
            if symbols is None:
                return orjson.dumps({"error": "the file was converted before: view the recording itself"})
            return orjson.dumps(symbols.answer(question, body))

    async def _open(self, _: web.Request) -> web.StreamResponse:
        """Leads the browser of a welcome user on to the address that others must not see."""
        return web.Response(status=303, headers={hdrs.LOCATION: self._opens, "Cache-Control": "no-store"})

    async def _page(self, request: web.Request) -> web.StreamResponse:
        nonce = secrets.token_urlsafe(16)
        text = page(self._site.conversion.title, self._site.buttons(), nonce)
        headers = {"Content-Security-Policy": policy(nonce)} | UNCACHED
        return web.Response(text=text, content_type="text/html", headers=headers)


def _logger() -> logging.Logger:
    """Returns a logger for what goes wrong here. What is wrong with others' requests is told to them, and not in the
    user's terminal."""
    logger = logging.getLogger("traceferry.apps.view")
    logger.addFilter(lambda record: not (record.exc_info and isinstance(record.exc_info[1], BadHttpMessage)))
    return logger


async def _viewer_file(path: Path) -> web.StreamResponse:
    headers = {hdrs.CONTENT_TYPE: content_type(path), "Content-Security-Policy": COPY_POLICY}
    return _File(path, headers=headers | UNCACHED)


def _refusal(status: int, headers: dict[str, str] | None = None) -> web.Response:
    """Refuses a request and ends the connection, so that what else a client sends is not read."""
    response = web.Response(status=status, headers={**ALWAYS, **(headers or {})})
    response.force_close()
    return response


def _preflight(request: web.Request, methods: tuple[str, ...]) -> web.Response:
    headers: dict[str, str] = {
        hdrs.ACCESS_CONTROL_ALLOW_METHODS: ", ".join(methods),
        hdrs.ACCESS_CONTROL_ALLOW_HEADERS: REQUEST_HEADERS,
        hdrs.ACCESS_CONTROL_MAX_AGE: str(PREFLIGHT_SECONDS),
    }
    if request.headers.get(PRIVATE_NETWORK) == "true":
        headers["Access-Control-Allow-Private-Network"] = "true"
    return web.Response(status=204, headers=headers)
