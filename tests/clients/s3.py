"""An S3 server on loopback: moto's, which can be made to fail."""

from __future__ import annotations

import io
import itertools
import threading
from collections import Counter
from collections.abc import Iterable
from typing import Any
from urllib.request import Request, urlopen

import boto3
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

BUCKET = "fleet"
DENIED = b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"
KEYS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_DEFAULT_REGION": "us-east-1"}


class Quiet(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"

    def log(self, *_: Any) -> None:
        pass


class S3:
    """fail_every: of so many requests one fails, in turn with 503 and with a connection that ends early; 0 is none;
    read: how often each object was asked for; stored: what was put; closed: the folder of which the list is refused."""

    def __init__(self, fail_every: int = 0) -> None:
        self.fail_every = fail_every
        self.n_failed = 0
        self.closed: str | None = None
        self.read: Counter[str] = Counter()
        self.stored: set[str] = set()
        self._n_requests = itertools.count(1)
        self._app = DomainDispatcherApplication(create_backend_app)
        self._server = make_server("127.0.0.1", 0, self._answer, threaded=True, request_handler=Quiet)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> S3:
        self._thread.start()
        # All servers of a process have one memory.
        urlopen(Request(f"{self.environment['AWS_ENDPOINT_URL']}/moto-api/reset", method="POST")).close()
        self.client = boto3.client(
            "s3", endpoint_url=self.environment["AWS_ENDPOINT_URL"], aws_access_key_id="test",
            aws_secret_access_key="test", region_name="us-east-1",
        )  # fmt: skip
        self.client.create_bucket(Bucket=BUCKET)
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()

    @property
    def environment(self) -> dict[str, str]:
        return {**KEYS, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self._server.server_port}"}

    def _answer(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        nth = next(self._n_requests)
        if environ["REQUEST_METHOD"] == "GET":
            self.read[environ["PATH_INFO"].removeprefix(f"/{BUCKET}/")] += 1
        if self.closed is not None and f"prefix={self.closed}" in environ.get("QUERY_STRING", ""):
            start_response("403 Forbidden", [("Content-Length", str(len(DENIED)))])
            return [DENIED]
        if not self.fail_every or nth % self.fail_every:
            if environ["REQUEST_METHOD"] == "PUT":
                self.stored.add(environ["PATH_INFO"].removeprefix(f"/{BUCKET}/"))
            return self._app(environ, start_response)  # type: ignore[no-any-return]
        self.n_failed += 1
        if environ["REQUEST_METHOD"] != "GET" or self.n_failed % 2:
            environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
            start_response("503 Service Unavailable", [("Content-Length", "0")])
            return []
        whole = b"".join(self._app(environ, lambda status, headers, *_: start_response(status, headers)))
        return io.BytesIO(whole[: len(whole) // 2])  # less than Content-Length says

    # ------------------------------------------------------------ what is stored

    def put(self, name: str, data: bytes) -> None:
        self.client.put_object(Bucket=BUCKET, Key=name, Body=data)

    def names(self, prefix: str) -> list[str]:
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=prefix)
        return sorted(entry["Key"] for page in pages for entry in page.get("Contents", ()))

    def content(self, prefix: str) -> dict[str, bytes]:
        """By name below the prefix, without the parts of runs."""
        return {
            name.removeprefix(prefix): self.client.get_object(Bucket=BUCKET, Key=name)["Body"].read()
            for name in self.names(prefix)
            if "/_parts/" not in name
        }
