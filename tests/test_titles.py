"""What recordings are called, and the programs of many processes."""

import pytest

from traceferry.analysis.info.threads import programs_of, threads_lines
from traceferry.common.titles import title_of

TITLES = {
    "one": ([("app", 3)], "app"),
    "processes of one program": ([("app", 3), ("app", 0)], "app"),
    "those with most first": ([("make", 1), ("cc1plus", 90), ("as", 9)], "cc1plus, as, make"),
    "three at most": ([("a", 1), ("b", 2), ("c", 3), ("d", 4)], "d, c, b and 1 more"),
    "less than a hundredth": ([("swapper", 1), ("app", 1000)], "app and 1 more"),
    "nothing was recorded": ([("a", 0), ("b", 0)], "a, b"),
    "without names": ([("", 5)], ""),
}


@pytest.mark.parametrize("case", TITLES)
def test_titles(case: str) -> None:
    amounts, title = TITLES[case]
    assert title_of(amounts) == title


def process(name: str, pid: int, samples: int) -> dict[str, object]:
    thread = {"name": name, "tid": pid, "samples": samples, "calls": 0, "markers": {}, "allocations": {"count": 0}}
    return {"name": name, "pid": pid, "cgroup": None, "threads": [thread]}


def test_programs_are_told_where_threads_are_left_out_and_several_processes_ran_one() -> None:
    build = [process("cc1", pid, 40) for pid in (2, 3, 4)] + [process("ld", 5, 80), process("make", 1, 0)]
    assert threads_lines(build, top=2)[:5] == [
        "",
        "2 programs with samples or calls:",
        "  samples      %  processes  program",
        "      120  60.0%          3  cc1",
        "       80  40.0%          1  ld",
    ]
    assert "program" not in " ".join(threads_lines(build, top=4))
    assert programs_of([process("a", 1, 5), process("b", 2, 5)]) == []
