"""Fuzzes the conversion of XRay logs. Run by `make fuzz`.

Seeds are the small fixtures, and their first kilobytes.
"""

from __future__ import annotations

from collections.abc import Iterator

from common import MAX_SIZE, ROOT, run


def seeds() -> Iterator[tuple[str, bytes]]:
    from traceferry.io.source import open_source

    for path in sorted((ROOT / "fixtures" / "xray").rglob("*.xray*")):
        if path.suffix in (".xray", ".zst"):
            data = bytes(open_source(str(path)).data)
            for size in (200, 1000, MAX_SIZE):
                yield f"{path.name}-{size}", data[:size]


if __name__ == "__main__":
    run("xray", seeds)
