"""Names of functions as linkers have them, in recordings whose recorders did not demangle."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from firefox_profiles import profile as firefox_profile
from outputs import saved
from support import load_checked, report_of

from traceferry.analysis.info.summary import summarize
from traceferry.files.answers import MACHINE
from traceferry.model import Trace, TraceBuilder
from traceferry.symbolication import demangle as demangle_module
from traceferry.symbolication.function_names import LINKAGE_NAME, demangle_functions

SHOWN = {
    "_ZN3foo3barEi": "foo::bar(int)",
    "_Znwm": "operator new(unsigned long)",
    "__ZN3foo3barEi": "foo::bar(int)",
    "_ZN4core3fmt9Formatter3pad17h0123456789abcdefE": "core::fmt::Formatter::pad",
    "_RNvC1a1b": "a::b",
    "_ZN3foo3barEi.cold": "foo::bar(int) (.cold)",
    # Not whole, or of no function.
    "_Z3foo": "_Z3foo",
    "_Zed": "_Zed",
    "_start": "_start",
    "_R": "_R",
    "$scope": "$scope",
    "$store": "$store",
    "_D": "_D",
}


def names_of(trace: Trace) -> list[str]:
    """Returns the names of the functions that run, in their order."""
    funcs = trace.frames["func"].tolist()
    return [trace.func_name(func) for func in dict.fromkeys(funcs)]


def folded(folder: Path, *lines: str) -> Trace:
    (folder / "x.folded").write_text("".join(f"{line}\n" for line in lines))
    return load_checked(folder / "x.folded")


@pytest.mark.parametrize(("name", "shown"), SHOWN.items())
def test_shown(name: str, shown: str, tmp_path: Path) -> None:
    assert names_of(folded(tmp_path, f"main;{name} 1")) == ["main", shown]


@pytest.mark.parametrize(
    ("name", "shown"), [("$s4main3fooyyF", "main.foo() -> ()"), ("_D8demangle4testFaZv", "demangle.test(char)")]
)
def test_swift_and_d_by_the_library(name: str, shown: str, tmp_path: Path) -> None:
    pytest.importorskip("demangle", reason="the library demangle is not installed")
    assert names_of(folded(tmp_path, f"main;{name} 1")) == ["main", shown]


def test_without_the_library_the_report_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demangle_module, "other_demangler", lambda: None)
    trace = folded(tmp_path, "main;$s4main3fooyyF 1", "main;$scope;$s;$set;_T0;_D 1")
    assert report_of(trace)["names_of_other_languages"] == 1


def test_names_that_an_importer_has_told_of_are_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demangle_module, "other_demangler", lambda: None)
    trace = TraceBuilder()
    trace.frames.intern(func=trace.funcs.intern(name=trace.strings.intern("$s4main3fooyyF")))
    trace.report.note("names_of_other_languages", where="libraries")
    demangle_functions(trace, MACHINE)
    assert [(issue.kind, issue.count) for issue in trace.report] == [("names_of_other_languages", 1)]


@pytest.mark.parametrize(
    "place",
    ["{} (w.py:2)", "{} - w.rb:2", "{}_[j]", "{} (<frozen importlib>:3)"],
    ids=["Python", "Ruby", "Java", "frozen"],
)
def test_names_of_scripts_only_look_mangled(place: str, tmp_path: Path) -> None:
    assert names_of(folded(tmp_path, f"main;{place.format('_Z1fv')} 1")) == ["main", "_Z1fv"]


def test_native_functions_among_scripts(tmp_path: Path) -> None:
    """As py-spy --native writes them."""
    trace = folded(tmp_path, "<module> (w.py:2);_ZN2at6matmulEv (libtorch.so) 1")
    assert names_of(trace) == ["<module>", "at::matmul()"]


def test_two_symbols_of_a_constructor_are_one_function(tmp_path: Path) -> None:
    trace = folded(tmp_path, "main;_ZN3FooC1Ev 1", "main;_ZN3FooC2Ev 2", "main;Foo::Foo() 4")
    functions = summarize(trace)["functions"]
    assert [(one["name"], one["samples"]) for one in functions["top"] if one["samples"]] == [("Foo::Foo()", 7)]
    assert functions["total"] == 2
    assert saved(trace, tmp_path / "y.folded").read_text() == "x.folded;main;Foo::Foo() 7\n"


def test_every_format_of_stacks(tmp_path: Path) -> None:
    profile = {
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "shared": {"frames": [{"name": "_ZN3foo3barEi"}, {"name": "_Z1fv", "file": "w.js"}]},
        "profiles": [{"type": "sampled", "name": "x", "unit": "none", "startValue": 0, "endValue": 1,
                      "samples": [[0, 1]], "weights": [1]}],
    }  # fmt: skip
    (tmp_path / "x.speedscope.json").write_text(json.dumps(profile))
    assert names_of(load_checked(tmp_path / "x.speedscope.json")) == ["foo::bar(int)", "_Z1fv"]
    of_firefox = firefox_profile()
    of_firefox["threads"][0]["stringArray"][0] = "_ZN3foo3barEi"
    (tmp_path / "x.json").write_text(json.dumps(of_firefox))
    assert "foo::bar(int)" in names_of(load_checked(tmp_path / "x.json"))
    script = "app 7/7 1.000000: 1 cycles:\n\t401000 _ZN3foo3barEi+0x10 (/app)\n\t401100 main+0x1 (/app)\n\n"
    (tmp_path / "x.txt").write_text(script)
    assert names_of(load_checked(tmp_path / "x.txt")) == ["foo::bar(int)", "main"]


@pytest.mark.parametrize("name", ["_", "$", "_Z", "_R2", "__Rx", "$S", "$scope", "_$set", "_T0x y", "_Dx", "_ZN a"])
def test_what_begins_like_a_linkage_name_and_is_none(name: str) -> None:
    assert LINKAGE_NAME.fullmatch(name) is None
