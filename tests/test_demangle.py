"""Names that would end the process, or fill the memory, if they were demangled as they come."""

import subprocess
import sys

import pytest
from builders.mangled import NESTED, doubling
from conftest import examples
from hypothesis import given
from hypothesis import strategies as st

from traceferry.common.report import Report
from traceferry.symbolication import demangle as module
from traceferry.symbolication.demangle import MAX_GROWTH, MAX_NAME, Demangler, demangle, demangled, is_harmless

HARMLESS = "_ZN3geo5scaleERKNS_3VecEd", "geo::scale(geo::Vec const&, double)"


def test_names_that_become_too_long_stay_as_they_are() -> None:
    """370 bytes would become 2^36; what doubles a few times only is shown."""
    of_all, report = Demangler(), Report()
    of_all.learn([doubling(34), HARMLESS[0], doubling(35), doubling(2)])
    assert [of_all(doubling(34)), of_all(doubling(35))] == of_all.kept == [doubling(34), doubling(35)]
    assert (of_all(HARMLESS[0]), of_all(doubling(2))) == (HARMLESS[1], "f(A, B<A, A>, B<B<A, A>, B<A, A>>)")
    of_all.note_kept(report, "x")
    assert [(issue.kind, issue.count) for issue in report] == [("names_kept_mangled", 2)]


@pytest.mark.parametrize("kind", NESTED)
@pytest.mark.parametrize("n", [1000, 30_000, 200_000])
def test_names_that_are_nested_deeply(kind: str, n: int) -> None:
    """In a thread of 1 MB: it lives, and the name is demangled or as it was."""
    name = NESTED[kind](n)
    threaded = (
        "import sys, threading; from traceferry.symbolication.demangle import demangle; threading.stack_size(1 << 20); "
        "given = sys.stdin.read(); thread = threading.Thread(target=lambda: print(demangle(given))); "
        "thread.start(); thread.join()"
    )
    done = subprocess.run([sys.executable, "-c", threaded], input=name, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0
    shown = done.stdout[:-1]
    assert shown == name or not shown.startswith("_Z")
    assert len(name) <= MAX_NAME or shown == name


@examples(200)
@given(st.text("_ZSTNEILJDpXcvstfoKRP0123456789aiC_", max_size=60).map(lambda text: "_Z1f" + text))
def test_harmless_names_stay_short(name: str) -> None:
    if is_harmless(name):
        assert len(demangled(name)) <= module.OWN_OUTPUT


MEMBERS = "i" * 12
EXPANDED = {
    "a letter of an identifier": ("_ZNSo5flushEv", True),
    "letters of several": ("_ZN6sprite10flash_sPaneEv", True),
    "of a few members": (f"_Z1fIJ{MEMBERS}EEvDpT_", True),
    "of members of members": (f"_Z1fIJ{MEMBERS}EEvDp1aIDp1bIDpT_EEDp1cIDpT_E", False),
    "a pack that may be an identifier": ("_Z4flipfrfrfrfrfrP10JavaThread", False),
}


@pytest.mark.parametrize("kind", EXPANDED)
def test_expansions_are_harmless_where_all_members_of_all_of_them_are_few(kind: str) -> None:
    name, expected = EXPANDED[kind]
    assert is_harmless(name) == expected


@examples(200)
@given(st.lists(st.sampled_from(["Dp", "T_", "S_", "1aI", "E", "i", "y", "sZ", "fLpl", "P"]), max_size=12))
def test_names_with_a_pack_become_no_longer_than_is_foreseen(parts: list[str]) -> None:
    name = f"_Z1fIJ{MEMBERS}EEv" + "".join(parts)
    if is_harmless(name):
        assert len(demangled(name)) <= module.OWN_OUTPUT


def test_of_many_bombs_few_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    n_started = 0

    def ends_at_once(names: object) -> list[str]:
        nonlocal n_started
        n_started += 1
        return []

    monkeypatch.setattr(module, "_demangled_apart", ends_at_once)
    of_all = Demangler()
    of_all.learn(doubling(20 + nth) for nth in range(40))
    assert (n_started, len(of_all.kept)) == (module.MOST_ENDS, 40)


OF_INTS = "std::vector<int, std::allocator<int>>"
CONVERSIONS = {
    "_ZNK1JcviEv": "J::operator int() const",
    "_ZNK1JcvSt6vectorIiSaIiEEEv": f"J::operator {OF_INTS}() const",
    "_ZNK1JcvNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEEEv": (
        "J::operator std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char>>() const"
    ),
    "_ZN1JcvRKSt6vectorIiSaIiEEEv": f"J::operator {OF_INTS} const&()",
    "_ZN1JcvSt6vectorIiSaIiEEIiEEv": f"J::operator {OF_INTS}<int>()",
    "_ZNK1JcvSt4pairISt6vectorIiSaIiEES3_EEv": f"J::operator std::pair<{OF_INTS}, {OF_INTS}>() const",
    "_ZN2cvcvSt6vectorIiSaIiEEEv": f"cv::operator {OF_INTS}()",
    "_ZN1JcvSt6vectorIiSaIiEEEvS1_": "_ZN1JcvSt6vectorIiSaIiEEEvS1_",  # no operator has parameters
}


@pytest.mark.parametrize("name", CONVERSIONS)
def test_conversion_operators(name: str) -> None:
    """LLVM's demangler refuses types whose template arguments have arguments themselves; as c++filt."""
    assert demangled(name) == CONVERSIONS[name]


@pytest.mark.parametrize("name", ["_Zwrong", "_Z1f\udcff", "_Z1f\0v", "main", "", "_Z" + "x" * 2000])
def test_other_names_are_as_they_were(name: str) -> None:
    of_all = Demangler()
    assert (of_all(name), of_all.kept) == (name, [])
    assert demangle(name) == name


def test_the_growth_that_is_shown() -> None:
    """A name of a parameter pack's every member, in a process of its own."""
    name = f"_Z1fIJ{'i' * 1200}EEvDpT_"
    assert not is_harmless(name)
    assert demangle(name).count("int") == 2400
    assert len(demangle(name)) < MAX_GROWTH * len(name)
