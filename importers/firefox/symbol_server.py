"""Map: the names that a symbol server gives: samply's, or Mozilla's.

POST URL/symbolicate/v5: {"jobs": [{"memoryMap": [[debugName, breakpadId]], "stacks": [[[0, address]...]]}]}; the
answer's frames have function, function_offset, file, line, and inlines, innermost first. Source:
src/profile-logic/mozilla-symbolication-api.ts of the Firefox Profiler.
"""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from traceferry.common.errors import UsageError
from traceferry.common.report import Report
from traceferry.importers.firefox.columns import text_of
from traceferry.libraries.library import Found

MOST_ADDRESSES = 10_000
MOST_BYTES = 256 << 20
SECONDS = 60
PATH = "/symbolicate/v5"
SCHEMES = ("http://", "https://")


@dataclass(frozen=True)
class SymbolServer:
    """url: without a slash at its end."""

    url: str
    report: Report

    @classmethod
    def of(cls, url: str, report: Report) -> SymbolServer | None:
        """Returns None for "". Raises UsageError for what is no address of a server."""
        if not url:
            return None
        if not url.startswith(SCHEMES):
            raise UsageError(f"{url}: not the address of a symbol server, as http://127.0.0.1:3000/TOKEN")
        return cls(url.rstrip("/"), report)

    def ask(self, libs: Sequence[Any], wanted: dict[int, list[int]]) -> dict[tuple[int, int], Found]:
        """Returns what is known at (library, address). wanted: the addresses of each library."""
        found: dict[tuple[int, int], Found] = {}
        for batch in _batches(wanted):
            jobs = [
                {"memoryMap": [_identity(libs[number])], "stacks": [[[0, address] for address in addresses]]}
                for number, addresses in batch
            ]
            answer = self._post(orjson.dumps({"jobs": jobs}))
            if answer is None:
                break
            results = answer.get("results")
            for (number, addresses), result in zip(batch, results if isinstance(results, list) else [], strict=False):
                for address, frame in zip(addresses, _frames(result), strict=False):
                    if one := _found(frame, address):
                        found[number, address] = one
        if found:
            self.report.note("symbols_used", where=self.url, detail=self.url)
        return found

    def _post(self, body: bytes) -> dict[str, Any] | None:
        request = urllib.request.Request(self.url + PATH, body, {"Content-Type": "text/plain"})
        try:
            with urllib.request.urlopen(request, timeout=SECONDS) as response:
                data = response.read(MOST_BYTES + 1)
            if len(data) > MOST_BYTES:
                raise ValueError(f"the answer has more than {MOST_BYTES >> 20} MiB")
            answer = orjson.loads(data)
            if not isinstance(answer, dict) or "error" in answer:
                raise ValueError(str(answer.get("error") if isinstance(answer, dict) else "no object")[:200])
            return answer
        except (OSError, ValueError, urllib.error.HTTPError) as error:
            self.report.note("symbol_server_failed", where=self.url, detail=f"{self.url}: {error}")
            return None


def _batches(wanted: dict[int, list[int]]) -> Iterator[list[tuple[int, list[int]]]]:
    """Yields parts with at most as many addresses as a request may have."""
    batch: list[tuple[int, list[int]]] = []
    n = 0
    for number, addresses in wanted.items():
        left = addresses
        while left:
            part, left = left[: MOST_ADDRESSES - n], left[MOST_ADDRESSES - n :]
            batch.append((number, part))
            n += len(part)
            if n == MOST_ADDRESSES:
                yield batch
                batch, n = [], 0
    if batch:
        yield batch


def _identity(lib: Any) -> list[str]:
    held = lib if isinstance(lib, dict) else {}
    return [text_of(held.get("debugName")) or text_of(held.get("name")), text_of(held.get("breakpadId"))]


def _frames(result: Any) -> list[Any]:
    stacks = result.get("stacks") if isinstance(result, dict) else None
    first = stacks[0] if isinstance(stacks, list) and stacks else None
    return first if isinstance(first, list) else []


def _found(frame: Any, address: int) -> Found | None:
    if not isinstance(frame, dict) or not text_of(frame.get("function")):
        return None
    inlines = frame.get("inlines")
    within = [one for one in (inlines if isinstance(inlines, list) else []) if isinstance(one, dict)]
    frames = [(text_of(one.get("function")) or "[unknown]", text_of(one.get("file")), _line(one)) for one in (
        frame, *within[::-1]
    )]  # fmt: skip
    offset = text_of(frame.get("function_offset"))
    start = address
    if offset.startswith("0x") and len(offset) <= 18 and not set(offset[2:].lower()) - set("0123456789abcdef"):
        start = max(address - int(offset, 16), 0)
    return frames, start


def _line(one: dict[str, Any]) -> int:
    line = one.get("line")
    return line if isinstance(line, int) and 0 < line < 1 << 31 else 0
