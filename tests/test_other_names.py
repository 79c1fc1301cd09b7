"""Names of Swift and D, and of C++ as GCC 12 mangled it, by the library demangle where it is installed."""

import time

import pytest
from builders.mangled import doubling

from traceferry.common.report import Report
from traceferry.symbolication import demangle as module
from traceferry.symbolication.demangle import OWN_NAME, Demangler, demangle

SWAP = (
    "_ZSt4swapIiENSt9enable_ifIXsrSt6__and_IJSt6__not_ISt15__is_tuple_likeIT_EESt21is_move_constructibleIS4_ESt18"
    "is_move_assignableIS4_EEE5valueEvE4typeERS4_SE_"
)
NAMES = {
    "$s4main3fooyyF": "main.foo() -> ()",
    "_$s4main5PointV1x1yACSd_SdtcfC": "main.Point.init(x: Swift.Double, y: Swift.Double) -> main.Point",
    "$sSS6appendyySSF": "Swift.String.append(Swift.String) -> ()",
    "_D8demangle4testFaZv": "demangle.test(char)",
    "_Dmain": "D main",
    # The type of the function is that of another one, in front; it has references itself; it is none of a function.
    "_D1a__T1SS_DQk3mixFmZmVii5ZQu6opCallMQt": "a.S!(a.mix(ulong), 5).S.opCall(ulong)",
    "_D1a__T1SS_DQk3mixFC1a1CQfZmZ6opCallMxQu": "a.S!(a.mix(a.C, a.C)).opCall",
    "_D1a__T1SS_DQk3mixFmZmVii5ZQu6opCallMQb": "_D1a__T1SS_DQk3mixFmZmVii5ZQu6opCallMQb",
    "_D1a__T1SS_DQk3mixFmZmVii5ZQu6opCallMQZZz": "_D1a__T1SS_DQk3mixFmZmVii5ZQu6opCallMQZZz",
    "_D1a7throwerFmZm.part.0.isra.0": "a.thrower(ulong) (.part.0.isra.0)",
    # Not theirs, and not complete.
    "_Debug": "_Debug",
    "$string": "$string",
    "_D8demangle4testFa": "_D8demangle4testFa",
    "_Z3": "_Z3",
}


@pytest.fixture
def library() -> None:
    pytest.importorskip("demangle", reason="the library demangle is not installed")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.usefixtures("library")
def test_names(name: str) -> None:
    assert demangle(name) == NAMES[name]


@pytest.mark.usefixtures("library")
def test_what_llvm_s_demangler_refuses_is_read() -> None:
    """GCC before 13 mangles std::swap so."""
    assert demangle(SWAP).endswith("std::swap<int>(int&, int&)")


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("kind", ["$s4main", "_D3foo", "_D3fooFNc", "$sSay", "$s4main1A", "_D1aQc", "$sSS_", "_D3fooS"])
def test_long_names_take_little_time(kind: str) -> None:
    began = time.process_time()
    for name in (kind * 200, kind + kind[-1] * 1000, kind + kind[-2:] * 500, kind * 20_000):
        shown = demangle(name)
        assert len(shown) <= 64 * len(name)
        assert shown == name or len(name) <= OWN_NAME
    assert time.process_time() - began < 5


def test_without_the_library_the_report_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "other_demangler", lambda: None)
    of_all, report = Demangler(), Report()
    of_all.learn(["$s4main3fooyyF", SWAP, "main", "_ZN1A1fEv", doubling(2)])
    assert [of_all("$s4main3fooyyF"), of_all(SWAP), of_all("_ZN1A1fEv")] == ["$s4main3fooyyF", SWAP, "A::f()"]
    of_all.note_kept(report, "x")
    assert [(issue.kind, issue.count) for issue in report] == [("names_of_other_languages", 2)]
