"""SQL of `query` opens no file: each way that the engine's sources have is tried."""

from pathlib import Path

import pytest
from queries import Run, found, query, trace

from traceferry.common.errors import UsageError
from traceferry.trace_processor.file_access import REFUSED, refuse_file_access

__all__ = ["found", "query", "trace"]

# FILE is one that is not there, READ one that is.
REFUSED_SQL = [
    "ATTACH 'FILE' AS n; CREATE TABLE n.t(a)",
    "SELECT 1; -- x\n attach 'FILE' AS n",
    "/* x */VACUUM INTO 'FILE'",
    "CREATE PERFETTO MACRO m() RETURNS TableOrSubquery AS ATTACH 'FILE' AS n; m!(); CREATE TABLE n.t(a)",
    "SELECT create_function('f()', 'INT', 'ATT' || 'ACH ''FILE'' AS n'); SELECT f()",
    "SELECT \"create_function\"('f()', 'INT', 'ATT' || 'ACH ''FILE'' AS n'); SELECT f()",
    "SELECT [create_function]('f()', 'INT', 'ATT' || 'ACH ''FILE'' AS n'); SELECT f()",
    "SELECT $x('); ATTACH 'FILE' AS n; CREATE TABLE n.t(a); SELECT $x(')",
    "SELECT 1 AS [a'b]; ATTACH 'FILE' AS n; CREATE TABLE n.t(a); SELECT 1 AS [a'b]",
    "SELECT 1 AS `a'b`; ATTACH 'FILE' AS n; CREATE TABLE n.t(a); SELECT 1 AS `a'b`",
    "SELECT 1 AS \"it's\"; ATTACH 'FILE' AS n; CREATE TABLE n.t(a); SELECT 1 AS \"it's\"",
    "SELECT '''' ; ATTACH 'FILE' AS n; CREATE TABLE n.t(a)",
    "\ufeffATTACH 'FILE' AS n; CREATE TABLE n.t(a)",
    "-- x'\rATTACH 'FILE' AS n; -- '\nSELECT 1",
    "PRAGMA writable_schema = 1; INSERT INTO sqlite_schema VALUES ('view', 'v', 'v', 0, 'CREATE VIEW v AS SELECT 1')",
    "SELECT run_metric('android/x.sql', 'a', '; ATT' || 'ACH ''FILE'' AS n')",
    "SELECT create_function('f()', 'INT', 'ATTACH ''FILE'' AS n'); SELECT f()",
    "SELECT import('a.b; ATTACH ''FILE'' AS n; CREATE TABLE n.t(a)')",
    "SELECT import('a.b; ATT' || 'ACH ''FILE'' AS n')",
    "SELECT export_json('FILE')",
    "SELECT __intrinsic_file_write('FILE', x'00')",
    "PRAGMA temp_store_directory = 'FOLDER'",
    "INCLUDE PERFETTO MODULE callstacks.symbolize; SELECT * FROM _callstack_frame_symbolize!((SELECT 'READ' AS f))",
]
# What the engine itself does not have, or refuses.
UNKNOWN_SQL = {
    "SELECT readfile('READ')": "readfile",
    "SELECT writefile('FILE', 'x')": "writefile",
    "SELECT edit('x')": "edit",
    "SELECT fts3_tokenizer('x')": "no such function",
    "CREATE VIRTUAL TABLE t USING csv(filename='READ')": "no such module",
    "CREATE VIRTUAL TABLE t USING fsdir('FOLDER')": "no such module",
    "SELECT * FROM fsdir('FOLDER')": "no such table",
    "CREATE VIRTUAL TABLE t USING zipfile('READ')": "no such module",
    "SELECT * FROM sqlite_dbpage": "no such table",
    "INCLUDE PERFETTO MODULE READ": "syntax error",
    "INCLUDE PERFETTO MODULE ../../x": "syntax error",
    ".read READ": "syntax error",
    ".shell touch FILE": "syntax error",
}


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "secret.csv").write_text("secret")
    return {"FILE": str(tmp_path / "new"), "READ": str(tmp_path / "secret.csv"), "FOLDER": str(tmp_path)}


def named(sql: str, files: dict[str, str]) -> str:
    for word, path in files.items():
        sql = sql.replace(word, path)
    return sql


@pytest.mark.parametrize("sql", REFUSED_SQL)
def test_sql_opens_no_file(query: Run, trace: Path, files: dict[str, str], sql: str) -> None:
    assert " is refused: it " in query(trace, named(sql, files), status=2)
    assert not Path(files["FILE"]).exists()


@pytest.mark.parametrize(("sql", "said"), UNKNOWN_SQL.items())
def test_what_the_engine_does_not_have(query: Run, trace: Path, files: dict[str, str], sql: str, said: str) -> None:
    error = query(trace, named(sql, files), status=2)
    assert said in error
    assert not Path(files["FILE"]).exists()


def test_functions_of_the_engine_that_write_files_are_off(found: str, trace: Path, files: dict[str, str]) -> None:
    """Also where nothing looks at the words."""
    from traceferry.trace_processor.engine import find_engine
    from traceferry.trace_processor.session import Session, SqlError

    with Session(find_engine(), trace) as session:
        for sql in ("SELECT export_json('FILE')", "SELECT __intrinsic_file_write('FILE', x'00')"):
            with pytest.raises(SqlError) as refused:
                session.query(named(sql, files))
            assert "File I/O is disabled" in refused.value.lines[-1]
    assert not Path(files["FILE"]).exists()


def test_modules_open_no_file(query: Run, trace: Path, tmp_path: Path, files: dict[str, str]) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "one.sql").write_text(named("ATTACH 'FILE' AS n;", files))
    sql = "INCLUDE PERFETTO MODULE mine.one"
    assert "one.sql: ATTACH is refused" in query(trace, sql, "--package", tmp_path / "mine", status=2)
    assert "one.sql: ATTACH is refused" in query(trace, sql, "--package", f"{tmp_path}/mine@mine", status=2)


@pytest.mark.parametrize("word", REFUSED)
def test_words_are_refused_but_in_texts_and_comments(word: str) -> None:
    for sql in (f"SELECT {word}", f"SELECT 'a', {word.upper()}", f"'x' \"{word}\"", f"--\n{word}", f"/**/{word}"):
        with pytest.raises(UsageError, match="is refused"):
            refuse_file_access(sql)
    with pytest.raises(UsageError, match="is refused"):
        refuse_file_access(f"SELECT import('a; {word} b')")
    for sql in (f"SELECT '{word}'", f"-- {word}\nSELECT 1", f"/* {word} */ SELECT 1", f"SELECT x{word}", f"'''{word}'"):
        refuse_file_access(sql)


def test_functions_of_text_that_is_certain(query: Run, trace: Path) -> None:
    sql = "SELECT create_function('f(x INT)', 'INT', 'SELECT $x + 1'); SELECT import('slices.with_context');"
    sql += "SELECT f(2) AS n"
    assert query(trace, sql) == [{"n": "3"}]
