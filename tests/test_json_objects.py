"""JSON objects out of columns, against orjson's text of the same dicts."""

from io import BytesIO
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceferry.exporters.json import objects
from traceferry.exporters.json._numbers import ABSENT, HEX, INTEGER, LITERAL, MILLIS, TEXT, NumberText
from traceferry.exporters.json.objects import Dicts, Inner, Member, Numbers, ObjectColumns, Texts, Values, millis_member
from traceferry.exporters.json.stream import JsonWriter
from traceferry.files.output import Output

INTEGERS = st.integers(-(2**63) + 1, 2**63 - 1) | st.just(ABSENT)
NS = st.integers(0, objects.EXACT - 1) | st.integers(0, 2_000_000) | st.sampled_from([0, 1, 9, 10, 10**6, ABSENT])


def written(*parts: Any) -> bytes:
    file = BytesIO()
    out = Output(file, gzip=False)
    JsonWriter(out).objects("", parts)
    out.finish()
    return file.getvalue()


@st.composite
def members(draw: st.DrawFn, n: int) -> list[Member]:
    def column(values: st.SearchStrategy[int]) -> Any:
        return np.array(draw(st.lists(values, min_size=n, max_size=n)), np.int64)

    texts = draw(st.lists(st.text(max_size=5), min_size=1, max_size=3, unique=True))
    hexadecimal = column(st.integers(-(2**63), 2**63 - 1)).view(np.uint64)
    inner = (
        Numbers("stack", column(INTEGERS)),
        Numbers("time", np.abs(column(NS.filter(lambda v: v != ABSENT))), MILLIS),
    )
    every: list[Member] = [
        Numbers('a "key"', column(INTEGERS)), Numbers("ms", column(NS), MILLIS), Numbers("hex", hexadecimal, HEX),
        Texts("text", column(st.integers(-1, len(texts) - 1)), texts), Inner("cause", inner, {"tid": 7}),
    ]  # fmt: skip
    return draw(st.permutations(every))[: draw(st.integers(0, len(every)))]


@given(st.data(), st.integers(0, 9))
def test_text_is_that_of_the_dicts(data: st.DataObject, n: int) -> None:
    of = data.draw(members(n))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(objects, "AT_ONCE", 4)
        text = written(ObjectColumns(n, {"type": "x"}, of), ObjectColumns(n, {"type": "y"}, of))
    rows = [row for kind in "xy" for row in ObjectColumns(n, {"type": kind}, of).rows()]
    assert text == orjson.dumps(rows)
    assert len(rows) == 2 * n


def test_members_that_are_not_there() -> None:
    cause = Inner(
        "cause", (Numbers("stack", np.array([ABSENT, 5])), Numbers("time", np.array([1, 2]), MILLIS)), {"t": 1}
    )
    columns = ObjectColumns(2, {"type": "x"}, [Texts("why", np.array([0, -1]), ["slept"]), cause])
    rows = [{"type": "x", "why": "slept"}, {"type": "x", "cause": {"stack": 5, "time": 2e-6, "t": 1}}]
    assert list(columns.rows()) == rows
    assert orjson.loads(written(columns, Dicts(iter(rows)))) == rows * 2


def test_values_that_no_column_holds() -> None:
    columns = ObjectColumns(2, {"type": "x"}, [Values("v", iter([None, 1.5])), millis_member("ms", np.array([-1, 5]))])
    assert orjson.loads(written(columns)) == [
        {"type": "x", "v": None, "ms": -1e-6},
        {"type": "x", "v": 1.5, "ms": 5e-6},
    ]


@pytest.mark.parametrize(
    ("kinds", "needs", "values", "text_at", "said"),
    [
        ([LITERAL, TEXT], [-1, 1], [[0], [3]], [0, 1, 2, 3], "a text beyond the end"),
        ([LITERAL, TEXT], [-1, -1], [[0], [ABSENT]], [0, 1, 2, 3], "a text is absent"),
        ([LITERAL, INTEGER], [-1, 2], [[0], [0]], [0, 1, 2, 3], "no such part"),
        ([LITERAL, 9], [-1, 1], [[0], [0]], [0, 1, 2, 3], "no such part"),
        ([LITERAL, INTEGER], [-1, 1], [[0], [0]], [0, 1, 2, 4], "texts beyond the end"),
        ([LITERAL, INTEGER], [-1, 1], [[0], [0]], [0, 2, 1, 3], "ends before it begins"),
        ([LITERAL, INTEGER], [-1], [[0], [0]], [0, 1, 2, 3], "without a column"),
    ],
)
def test_what_does_not_fit(
    kinds: list[int], needs: list[int], values: list[list[int]], text_at: list[int], said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        NumberText().objects(
            np.array(kinds, np.uint8), np.array(needs, np.int32), np.array(values, np.int64),
            np.frombuffer(b"abc", np.uint8), np.array(text_at, np.int64),
        )  # fmt: skip
