"""What `query` writes: values of every type, in every format, of any size."""

import csv
import io
import json
import math
import os
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import examples
from hypothesis import given
from hypothesis import strategies as st
from queries import Run, found, query, trace

from traceferry.apps.cli import main, query_rows
from traceferry.common.errors import FormatError
from traceferry.common.shown_text import aligned, width
from traceferry.exporters.perfetto._packets import varint
from traceferry.trace_processor import _cells, results
from traceferry.trace_processor.results import INTEGER, OTHER_VALUES, Rows

__all__ = ["found", "query", "trace"]

LEAST, MOST = -(1 << 63), (1 << 63) - 1
ESCAPE = "\x1b[31mred\x9b0m\u202e"
COUNTED = "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < {} - 1) "


class FakeBatch:
    """A CellsBatch of rows of Python's values."""

    def __init__(self, rows: list[tuple[Any, ...]]) -> None:
        cells = [cell for row in rows for cell in row]
        kinds = {type(None): 1, int: 2, float: 3, str: 4, bytes: 5}
        self.cells = [bytes(kinds[type(cell)] for cell in cells)]
        self.varint_cells = [b"".join(varint(cell) for cell in cells if isinstance(cell, int))]
        self.float64_cells = [struct.pack("<d", cell) for cell in cells if isinstance(cell, float)]
        self.string_cells = b"".join(cell.encode() + b"\0" for cell in cells if isinstance(cell, str))
        self.blob_cells = [cell for cell in cells if isinstance(cell, bytes)]


def rows_of(names: list[str], *batches: list[tuple[Any, ...]]) -> Rows:
    rows = Rows(names)
    for batch in batches:
        rows.add(FakeBatch(batch), 1)
    return rows


def write(rows: Rows, path: Path) -> Path:
    query_rows.writer_for(str(path), as_json=False, as_csv=False)([rows])
    return path


# ---------------------------------------------------------------- values

cells = st.one_of(
    st.none(), st.integers(LEAST, MOST), st.floats(),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8), st.sampled_from(",\"\n\r"),
)  # fmt: skip


def batches_of(n_columns: int) -> st.SearchStrategy[list[Any]]:
    return st.lists(st.lists(st.tuples(*[cells] * n_columns), min_size=1, max_size=4), max_size=3)


def in_csv(value: object) -> str:
    return "" if value is None else repr(value) if isinstance(value, float) else str(value)


@examples(200)
@given(
    st.integers(1, 3).flatmap(lambda n: st.lists(st.lists(st.tuples(*[cells] * n), min_size=1, max_size=4), max_size=3))
)
def test_csv_is_what_the_csv_module_reads(tmp_path_factory: pytest.TempPathFactory, batches: list[Any]) -> None:
    n = len(batches[0][0]) if batches else 1
    path = write(rows_of([f"c{i}" for i in range(n)], *batches), tmp_path_factory.mktemp("csv") / "x.csv")
    got = list(csv.reader(io.StringIO(path.read_bytes().decode(), newline="")))
    wanted = [
        ["" if c is None else repr(c) if isinstance(c, float) else str(c) for c in row] for b in batches for row in b
    ]
    assert got == [[f"c{i}" for i in range(n)], *wanted]


@examples(100)
@given(st.integers(1, 3).flatmap(lambda n: batches_of(n)))
def test_an_answer_has_the_rows_of_all_batches(batches: list[Any]) -> None:
    n = len(batches[0][0]) if batches else 1
    blobs = [[(*row, b"x%d" % nth) for nth, row in enumerate(batch)] for batch in batches]
    answer = rows_of([f"c{i}" for i in range(n + 1)], *blobs).answer()
    found = zip(*(column.values() for column in answer.columns), strict=True)
    assert list(map(repr, found)) == [repr(row) for batch in blobs for row in batch]


def test_null_and_no_text_are_two_things_in_csv(query: Run, trace: Path, tmp_path: Path) -> None:
    query(trace, "SELECT NULL AS a, '' AS b UNION ALL SELECT 'x', NULL", "-o", tmp_path / "x.csv")
    assert (tmp_path / "x.csv").read_text() == 'a,b\n,""\nx,\n'


def test_extremes(query: Run, trace: Path, tmp_path: Path) -> None:
    sql = f"SELECT {LEAST} AS least, {MOST} AS most, 9e999 AS inf, -9e999 AS ninf, 1e-320 AS small, 0.1 AS tenth, "
    sql += "1e300 AS big"
    (row,) = query(trace, sql)
    assert (int(row["least"]), int(row["most"])) == (LEAST, MOST)
    assert [float(row[name]) for name in ("inf", "ninf", "small", "tenth", "big")] == [
        math.inf, -math.inf, 1e-320, 0.1, 1e300
    ]  # fmt: skip
    query(trace, sql, "-o", tmp_path / "x.json")
    ((result,),) = (json.loads((tmp_path / "x.json").read_text()),)
    assert result["rows"] == [[LEAST, MOST, None, None, 1e-320, 0.1, 1e300]]


def test_names_that_are_not_utf8(query: Run, trace: Path, tmp_path: Path) -> None:
    sql = "SELECT CAST(x'ff41' AS TEXT) AS a, 'é' AS b"
    assert query(trace, sql) == [{"a": "\ufffdA", "b": "é"}]


def test_two_columns_of_one_name(query: Run, trace: Path, tmp_path: Path) -> None:
    sql = "SELECT 1 AS a, 2 AS a, 3 AS a_1, 4 AS a"
    query(trace, sql, "-o", tmp_path / "x.jsonl")
    assert json.loads((tmp_path / "x.jsonl").read_text()) == {"a": 1, "a_2": 2, "a_1": 3, "a_3": 4}
    query(trace, sql, "-o", tmp_path / "x.csv")
    assert (tmp_path / "x.csv").read_text() == "a,a,a_1,a\n1,2,3,4\n"


def test_no_rows(query: Run, trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, text in {"x.csv": "a,b\n", "x.json": '[{"columns":["a","b"],"rows":[]}]\n', "x.jsonl": ""}.items():
        query(trace, "SELECT 1 AS a, 2 AS b WHERE 0", "-o", tmp_path / name)
        assert (tmp_path / name).read_text() == text
    assert main(["query", "--quiet", str(trace), "CREATE PERFETTO TABLE t AS SELECT 1 AS x"]) == 0
    assert capsys.readouterr().out == ""


def test_comments(query: Run, trace: Path, tmp_path: Path) -> None:
    for name in ("x.csv", "x.json"):
        query(trace, "-- a; b\n/* ; */ ;; SELECT 1 AS a; -- done;\n/* ; */", "-o", tmp_path / name)
    assert (tmp_path / "x.csv").read_text() == "a\n1\n"
    assert json.loads((tmp_path / "x.json").read_text()) == [{"columns": ["a"], "rows": [[1]]}]
    for nothing in ("", " ;; ", "-- only", "/* x"):
        assert "no statement" in query(trace, nothing or ";", status=2)


def test_an_error_leaves_no_file(query: Run, trace: Path, tmp_path: Path) -> None:
    """Also one of a later row."""
    (tmp_path / "x.csv").write_text("before")
    sql = COUNTED.format(100_000) + "SELECT abs(CASE WHEN i = 99999 THEN -9223372036854775808 ELSE i END) FROM n"
    assert "integer overflow" in query(trace, sql, "-o", tmp_path / "x.csv", status=2)
    assert (tmp_path / "x.csv").read_text() == "before"
    assert {path.suffix for path in tmp_path.iterdir()} == {".csv", ".pftrace"}


def test_an_error_of_a_later_row_prints_none(found: str, trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sql = COUNTED.format(100_000) + "SELECT abs(CASE WHEN i = 99999 THEN -9223372036854775808 ELSE i END) FROM n"
    assert main(["query", str(trace), sql]) == 2
    done = capsys.readouterr()
    assert done.out == ""
    assert "line 1 col 1" in done.err


# ---------------------------------------------------------------- Parquet

TYPES: list[tuple[Any, ...]] = [
    (1, 1.5, 'a,"é\n', b"\0\xff", None, 1, MOST),
    (None, None, None, None, None, 2.5, LEAST),
    (-3, math.inf, "", b"", None, None, 0),
]
NAMES = ["integer", "real", "text", "blob", "none", "mixed", "int64"]


@pytest.mark.parametrize("reader", ["pyarrow", "duckdb", "polars"])
def test_parquet(tmp_path: Path, reader: str) -> None:
    """NULL, types and values are those of the answer."""
    module = pytest.importorskip(reader, reason=f"{reader} is not installed")
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    path = write(rows_of(NAMES, TYPES[:1], TYPES[1:]), tmp_path / "x.parquet")
    if reader == "pyarrow":
        import pyarrow.parquet

        table = pyarrow.parquet.read_table(path)
        kinds = ["int64", "double", "string", "binary", "null", "double", "int64"]
        assert [str(field.type) for field in table.schema] == kinds
        got = [tuple(row.values()) for row in table.to_pylist()]
    elif reader == "duckdb":
        got = module.sql(f"SELECT * FROM '{path}'").fetchall()
    else:
        got = module.read_parquet(path).rows()
    assert got == TYPES


def test_parquet_of_what_has_no_one_type(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    from traceferry.common.errors import UsageError

    for values in ([("a",), (1,)], [(1.5,), ((1 << 53) + 1,)], [(b"",), ("a",)]):
        with pytest.raises(UsageError, match=r"column c has .*CAST it"):
            write(rows_of(["c"], values), tmp_path / "x.parquet")
    with pytest.raises(UsageError, match="no columns"):
        write(rows_of([]), tmp_path / "x.parquet")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(UsageError, match="compressed by itself"):
        write(rows_of(["c"]), tmp_path / "x.parquet.gz")


def test_parquet_without_rows(query: Run, trace: Path, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    query(trace, "SELECT 1 AS a WHERE 0", "-o", tmp_path / "x.parquet")
    assert parquet.read_table(tmp_path / "x.parquet").to_pydict() == {"a": []}


# ---------------------------------------------------------------- terminals

WIDE = {"abc": 3, "é": 1, "e\u0301": 1, "中文": 4, "Ｗ": 2, "": 0, "日a": 3}


@pytest.mark.parametrize(("text", "columns"), WIDE.items())
def test_width(text: str, columns: int) -> None:
    assert width(text) == columns


def test_tables_are_aligned_by_what_is_seen() -> None:
    lines = aligned([["name", "x"], ["中文", "1"], ["abcde", "2"], ["e\u0301", "3"]])
    assert lines == ["   name  x", "   中文  1", "  abcde  2", "      e\u0301  3"]


@pytest.fixture
def printed(found: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs the command on a terminal; returns what it prints."""

    def run(*words: object) -> str:
        monkeypatch.setattr("sys.stdout.isatty", lambda: True)
        assert main(["query", "--quiet", *map(str, words)]) == 0
        return capsys.readouterr().out

    return run


@pytest.mark.parametrize("option", [[], ["--csv"], ["--json"]])
def test_no_command_reaches_a_terminal(printed: Run, trace: Path, option: list[str]) -> None:
    text = printed(trace, f"SELECT '{ESCAPE}' AS \"n{ESCAPE}\", 'a' || char(10) || 'b' AS t", *option)
    assert not set(text) & set("\x1b\x9b\u202e")
    assert text.count("red") == 2
    if option == ["--json"]:
        assert json.loads(text) == [{"columns": [f"n{ESCAPE}", "t"], "rows": [[ESCAPE, "a\nb"]]}]


def test_a_table_has_a_thousand_rows(printed: Run, trace: Path) -> None:
    lines = printed(trace, COUNTED.format(1234) + "SELECT i, 'n' || i AS name FROM n").splitlines()
    assert lines[0].split() == ["i", "name"]
    assert lines[1000].split() == ["999", "n999"]
    assert lines[1001:] == ["and 234 rows more: --csv or -o OUT has all"]


def test_long_cells_leave_room_for_others(printed: Run, trace: Path) -> None:
    """A table's only column has its texts whole."""
    long = "SELECT replace(hex(zeroblob(150)), '0', 'é') AS long"
    text, *said = printed(trace, long + ", 2 AS b").splitlines()[1:]
    assert text.split() == ["é" * 99 + "…", "2"]
    assert said == ["cells of more than 100 characters are cut (1): --csv or -o OUT has all"]
    assert printed(trace, long).splitlines()[1:] == ["  " + "é" * 300]


# ---------------------------------------------------------------- sizes


def test_what_is_more_is_kept_in_a_file(
    monkeypatch: pytest.MonkeyPatch, found: str, trace: Path, tmp_path: Path
) -> None:
    """The same rows, in the same order, for each format and more than once."""
    sql = COUNTED.format(30_000) + "SELECT i, i * 0.5 AS half, 'n' || (i % 7) AS name, NULLIF(i % 3, 0) AS m FROM n"
    suffixes = (".csv", ".json", ".jsonl")
    for name, limit in (("whole", results.KEPT_IN_MEMORY), ("spilt", 100_000)):
        monkeypatch.setattr(results, "KEPT_IN_MEMORY", limit)
        for suffix in suffixes:
            assert main(["query", "--quiet", str(trace), sql, "-o", str(tmp_path / f"{name}{suffix}")]) == 0
    for suffix in suffixes:
        assert (tmp_path / f"whole{suffix}").read_bytes() == (tmp_path / f"spilt{suffix}").read_bytes()
    assert len((tmp_path / "spilt.jsonl").read_text().splitlines()) == 30_000


MEASURED = """
import resource, sys
from traceferry.apps.cli import main
status = main(sys.argv[1:])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)
sys.exit(status)
"""


@pytest.mark.large
@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_ten_million_rows_need_little_memory(found: str, trace: Path, tmp_path: Path, suffix: str) -> None:
    sql = COUNTED.format(10_000_000) + "SELECT i, i * 1000003 AS ts, 'name ' || (i % 1000) AS name FROM n"
    words = ["query", "--quiet", str(trace), sql, "-o", str(tmp_path / f"x{suffix}")]
    done = subprocess.run([sys.executable, "-c", MEASURED, *words], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert int(done.stderr.split()[-1]) < 700_000  # kB


@pytest.mark.skipif(os.name == "nt", reason="pipes")
def test_a_pipe_that_is_closed(found: str, trace: Path) -> None:
    sql = COUNTED.format(300_000) + "SELECT i FROM n"
    command = [sys.executable, "-m", "traceferry", "query", "--quiet", str(trace), sql]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        assert [child.stdout.readline() for _ in range(2)] == [b"i\n", b"0\n"]
        child.stdout.close()
        assert child.wait(30) == 0
        assert child.stderr.read() == b""


# ---------------------------------------------------------------- cells of an answer


def packed_numbers(data: bytes) -> np.ndarray:
    return np.frombuffer(data, np.uint8)


@examples(100)
@given(st.lists(st.integers(LEAST, MOST)), st.integers(1, 10))
def test_integers_of_a_packed_field(values: list[int], cut: int) -> None:
    packed, n = packed_numbers(b"".join(map(varint, values))), len(values)
    assert _cells.integers(packed, n).tolist() == values
    damaged = [(packed, n + 1), (np.append(packed, np.uint8(0)), n), (packed[:-cut], n)]
    for data, wanted in damaged if n else damaged[:2]:
        with pytest.raises(ValueError, match="number"):
            _cells.integers(data, wanted)


def test_an_integer_without_end() -> None:
    packed = packed_numbers(b"\x05" + b"\xff" * 20 + b"\x01")
    with pytest.raises(ValueError, match="does not end"):
        _cells.integers(packed, 2)
    kinds, values = np.empty((1, 2), np.uint8), np.empty((1, 2), np.int64)
    with pytest.raises(ValueError, match="does not end"):
        _cells.fill_columns(np.full(2, INTEGER, np.uint8), packed, np.zeros(0, np.int64), kinds, values, 0, 0, 0)
    answer = FakeBatch([(5,), (6,)])
    answer.varint_cells = [packed.tobytes()]
    rows = Rows(["n"])
    rows.add(answer, 1)
    with pytest.raises(FormatError, match=OTHER_VALUES):
        rows.answer()
    with pytest.raises(FormatError, match=OTHER_VALUES):
        next(rows.batches()).integers  # noqa: B018


def test_integers_in_parquet_are_stored_as_differences(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    path = write(rows_of(["n", "t"], [(n * 1000003, "x") for n in range(1000)]), tmp_path / "x.parquet")
    group = parquet.ParquetFile(path).metadata.row_group(0)
    assert ["DELTA_BINARY_PACKED" in group.column(nth).encodings for nth in range(2)] == [True, False]
    assert parquet.read_table(path)["n"].to_pylist() == [n * 1000003 for n in range(1000)]
