"""Code that programs copy into huge pages, at the addresses where it was, is their file's."""

from __future__ import annotations

import pytest

from traceferry.importers.perf.copied_text import with_copied_text
from traceferry.importers.perf.recording import Comm, Mmap

MB = 1 << 20
PID = 7
ANON, HUGETLB = "//anon", "/anon_hugepage (deleted)"
Map = tuple[int, int, str]  # begin and end in MB, path

# The mappings of a program by time, and what they then are: the path and the offset in the file in MB.
CASES: dict[str, tuple[list[Map], list[str]]] = {
    "over a part of its text": ([(5, 20, "/a"), (6, 18, ANON)], ["/a 0", "/a 1"]),
    "and made read-only then": ([(5, 20, "/a"), (6, 18, ANON), (6, 18, ANON)], ["/a 0", "/a 1", "/a 1"]),
    "over all of it": ([(6, 18, "/a"), (6, 18, HUGETLB)], ["/a 0", "/a 0"]),
    "in two parts": ([(5, 20, "/a"), (6, 8, ANON), (8, 18, ANON)], ["/a 0", "/a 1", "/a 3"]),
    "a program that ran before the recording": (
        [(5, 6, "/a"), (6, 18, ANON), (18, 20, "/a+13")], ["/a 0", "/a 1", "/a 13"]),
    "such a one, of two programs": ([(5, 6, "/a"), (6, 18, ANON), (18, 20, "/b")], ["/a 0", ANON, "/b 0"]),
    "such a one, with another part behind": ([(5, 6, "/a"), (6, 18, ANON), (18, 20, "/a+1")], ["/a 0", ANON, "/a 1"]),
    "no whole huge pages": ([(5, 20, "/a"), (7, 9, ANON)], ["/a 0", ANON]),
    "more than its text": ([(5, 20, "/a"), (6, 22, ANON)], ["/a 0", ANON]),
    "memory of a compiler": ([(5, 20, "/a"), (30, 40, ANON)], ["/a 0", ANON]),
    "memory of a compiler where there was code of one": ([(30, 40, ANON), (30, 40, ANON)], [ANON, ANON]),
    "another file": ([(5, 20, "/a"), (6, 18, "/b")], ["/a 0", "/b 0"]),
}  # fmt: skip


def mapped(nth: int, begin: int, end: int, path: str, *, pid: int = PID, is_exec: bool = True) -> Mmap:
    name, _, offset = path.partition("+")
    return Mmap(nth, pid, begin * MB, (end - begin) * MB, int(offset or 0) * MB, name, is_exec, "", nth)


def shown(one: Mmap) -> str:
    return one.path if one.path in (ANON, HUGETLB) else f"{one.path} {one.pgoff // MB}"


@pytest.mark.parametrize(("maps", "expected"), CASES.values(), ids=CASES)
def test_mappings(maps: list[Map], expected: list[str]) -> None:
    given = [mapped(nth, *one) for nth, one in enumerate(maps)]
    found, copied = with_copied_text(given, [])
    assert [shown(one) for one in found] == expected
    assert copied == [one for one, before in zip(found, given, strict=True) if one != before]


def test_what_another_program_had_there_is_not_copied() -> None:
    given = [mapped(1, 5, 20, "/a"), mapped(9, 6, 18, ANON)]
    assert with_copied_text(given, [Comm(5, PID, PID, "b", True)]) == (given, [])
    assert with_copied_text(given, [Comm(5, PID, PID, "a thread", False)])[1]
    assert with_copied_text(given, [Comm(5, PID + 1, PID + 1, "b", True)])[1]


def test_data_and_other_processes() -> None:
    data, other = mapped(2, 6, 18, ANON, is_exec=False), mapped(3, 6, 18, ANON, pid=PID + 1)
    assert with_copied_text([mapped(1, 5, 20, "/a"), data, other], [])[1] == []
