"""Addresses from text, and answers as text and JSON, against plain Python."""

import json
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceferry.apps.cli._look_ups import Answers, Pieces, first_words

TEXTS = ["f", "g(int)", "", 'a"b\\c', "ü"]
ADDRESS = st.integers(0, 2**64 - 1)
FRAME = st.tuples(st.integers(-1, len(TEXTS) - 1), st.integers(-1, len(TEXTS) - 1), st.integers(-(2**31), 2**31 - 1))


class Found(NamedTuple):
    address: int
    start: int
    size: int
    frames: list[tuple[int, int, int]]


FOUND = st.builds(Found, ADDRESS, st.just(0) | ADDRESS, st.just(0) | ADDRESS, st.lists(FRAME, max_size=4))


def answers_of(found: list[Found]) -> Answers:
    address, start, size = (np.array([one[nth] for one in found], np.uint64) for nth in range(3))
    first = np.cumsum([0, *(len(one.frames) for one in found)], dtype=np.int64)
    rows = np.array([row for one in found for row in one.frames], np.int32).reshape(-1, 3)
    name, source, line = (np.ascontiguousarray(column) for column in rows.T)
    return Answers(address, start, size, first, name, source, line, len(TEXTS))


@given(st.lists(FOUND, max_size=5))
def test_text(found: list[Found]) -> None:
    wanted = []
    for address, start, _, frames in found:
        lines = []
        for nth, (name, source, line) in enumerate(frames):
            what = [*TEXTS, ""][name] + (" [inlined]" if nth < len(frames) - 1 else f" + {address - start}")
            lines.append(what + (f" at {TEXTS[source]}:{line}" if source >= 0 else ""))
        lead = f"{address:#x}: "
        wanted.append(lead + ("\n" + " " * len(lead)).join(lines or ["no symbol"]) + "\n(end)\n")
    texts = Pieces([text.encode() for text in [*TEXTS, ""]])
    assert bytes(answers_of(found).as_text(texts, texts, Pieces([b"(end)\n"]))).decode() == "".join(wanted)


@given(st.lists(FOUND, max_size=5))
def test_json(found: list[Found]) -> None:
    names = [b'"name":' + json.dumps(text).encode() for text in [*TEXTS, "?"]]
    sources = [json.dumps(text or None).encode() for text in [*TEXTS, ""]]
    ends = [f',"nth":{nth}}}\n'.encode() for nth in range(len(found))] or [b""]
    lines = bytes(answers_of(found).as_json(Pieces(names), Pieces(sources), Pieces(ends))).splitlines()
    for nth, (line, (address, start, size, frames)) in enumerate(zip(lines, found, strict=True)):
        shown = [
            {"name": [*TEXTS, "?"][name], "source": [*TEXTS, ""][source] or None, "line": at or None, "inlined": True}
            for name, source, at in frames
        ]
        function = None
        if shown:
            shown[-1]["inlined"] = False
            begin = f"{start:#x}" if start or size else None
            function = {"name": shown[-1]["name"], "start": begin, "size": size or None}
        assert json.loads(line) == {"address": f"{address:#x}", "function": function, "frames": shown, "nth": nth}


LINES = st.lists(
    st.sampled_from(["0x1f", "0XaB", "ffffffffffffffff", "0", " ", "\t", "\r", "words", "0x", "1_0", "+1", "\x1c", "é"])
    | st.text("0x1fg \t", max_size=20),
    max_size=6,
).map("".join)


@given(st.lists(LINES, max_size=6).map("\n".join))
def test_first_words(text: str) -> None:
    """The kernel reads what it reads as Python does, and stops where a line is not so; never elsewhere."""
    lines, at, found = text.encode(), 0, list[int]()
    while at < len(lines):
        read, at = first_words(lines, at)
        found += read.tolist()
        if at < len(lines):
            end = lines.find(b"\n", at) % (len(lines) + 1)
            (word, *_) = lines[at:end].decode().split(maxsplit=1) or ["é"]
            assert not word.isascii() or len(word) > 16 or not _is_plain(word)
            found, at = [*found, -1], end + 1
    words = [line.split(maxsplit=1)[0] for line in text.split("\n") if line.strip() or not line.isascii()]
    assert [n for n in found if n >= 0] == [int(w, 16) for w in words if _is_plain(w) and len(w) <= 16 and w.isascii()]


def _is_plain(word: str) -> bool:
    digits = word[2:] if word[:2] in ("0x", "0X") else word
    return bool(digits) and all(c in "0123456789abcdefABCDEF" for c in digits)


@pytest.mark.parametrize("columns", [([0, 1], [5]), ([0, 2], [0]), ([1, 1], [0])], ids=["text", "last", "first"])
def test_columns_that_do_not_fit(columns: tuple[list[int], list[int]]) -> None:
    first, name = np.array(columns[0], np.int64), np.array(columns[1], np.int32)
    one = np.ones(1, np.uint64)
    with pytest.raises(ValueError, match="Answers: "):
        Answers(one, one, one, first, name, name, name, len(TEXTS))
    whole = Answers(one, one, one, np.array([0, 1]), np.zeros(1, np.int32), np.zeros(1, np.int32), name, len(TEXTS))
    with pytest.raises(ValueError, match="not as many texts"):
        whole.as_text(Pieces([b""]), Pieces([b""]), Pieces([b""]))
    texts = Pieces([b""] * (len(TEXTS) + 1))
    with pytest.raises(ValueError, match="an end for each"):
        whole.as_json(texts, texts, Pieces([]))
