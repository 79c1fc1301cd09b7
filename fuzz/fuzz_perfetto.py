"""Fuzzes what tells traces of Perfetto and others by their beginning, and lists packets: the rest of such traces
is read by trace_processor, of whose tables `tests/test_perfetto_tables.py` makes damaged ones. Run by `make fuzz`.
"""

from __future__ import annotations

from collections.abc import Iterator

from common import fuzz, imported, in_time

NAMES = ("traceferry.importers.perfetto.layout", "traceferry.files.json_text")
# Packets with a time and a sequence, an empty one, one that is longer than the file; text and JSON of others.
TRACES = (
    b"\x0a\x06\x40\x05\x50\x01\x5a\x00",
    b"\x0a\x00\x0a\x02\x40\x05",
    b"\x0a\x7f\x40\x05",
    b"\x0a\x0a" + b"\xff" * 9 + b"\x01",
    b"# tracer: nop\n app-12 (-----) [000] d..1 1.000000: sched_switch: prev_comm=app\n",
    b'{"displayTimeUnit": "ns", "traceEvents": [{"ph": "X", "ts": 1}]}',
    b'[{"name": "a", "ph": "B"}]',
    b"1700000052.25 close(3) = 0\n",
    b'<html><script class="trace-data" type="application/text">\n# tracer: nop\n</script>',
)


def seeds() -> Iterator[tuple[str, bytes]]:
    for nth, data in enumerate(TRACES):
        yield f"trace-{nth}", data


def outcome(data: bytes) -> None:
    from traceferry.importers.perfetto.layout import is_other_trace, is_perfetto_trace, packets

    view = memoryview(data)
    is_trace = is_perfetto_trace(view) or is_other_trace(view)
    assert is_trace in (True, False)
    lines = list(packets(view, 0))
    places = [int(line.split(maxsplit=1)[0], 16) for line in lines]
    assert places == sorted(set(places)), "packets stand one behind the other"
    assert all(place < len(data) for place in places)
    assert list(packets(view, len(data)))[:1] == [line for line in lines if line.endswith(("packet", "there"))][-1:]


if __name__ == "__main__":
    imported(NAMES)
    fuzz("perfetto", seeds, in_time(outcome))
