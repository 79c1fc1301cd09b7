"""Short forms of names: what people see in a flame graph, where the whole name is in the tooltip."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceferry.symbolication.short_names import ShortForms, brief_name, short_name, short_names


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("main", "main"),
        ("geo::Vec::scale(double) const", "geo::Vec::scale"),
        ("geo::Vec::scale(double) const (.cold)", "geo::Vec::scale (.cold)"),
        ("f(int) [clone .isra.0] [clone .cold]", "f [clone .isra.0] [clone .cold]"),
        ("f(int) (.isra.0) (.cold)", "f (.isra.0) (.cold)"),
        ("A::get() &&", "A::get"),
        ("std::function<void (int)>::operator()(int) const", "std::function<void (int)>::operator()"),
        ("A::operator()", "A::operator()"),
        ("bool operator<(A const&, A const&)", "operator<"),
        ("void std::sort<int*>(int*, int*)", "std::sort<int*>"),
        ("int const& std::max<int>(int const&, int const&)", "std::max<int>"),
        (
            "std::ostream& operator<< <std::char_traits<char> >(std::ostream&, char const*)",
            "operator<< <std::char_traits<char> >",
        ),
        (
            "auto f<int>(int)::{lambda(auto:1)#1}::operator()<int>(int) const",
            "f<int>(int)::{lambda(auto:1)#1}::operator()<int>",
        ),
        (
            "void each<(anonymous namespace)::one>((anonymous namespace)::one) (.constprop.0)",
            "each<(anonymous namespace)::one> (.constprop.0)",
        ),
        ("decltype (f(1)) g<int>(int)", "g<int>"),
        ("A<int>::operator unsigned long<int>() const", "A<int>::operator unsigned long<int>"),
        ("operator new(unsigned long)", "operator new"),
        ("my_operator f(int)", "my_operator f"),
        ("virtual thunk to A<int>::f(int)", "virtual thunk to A<int>::f"),
        # Which bracket closes which cannot be told without reading all of C++.
        ("std::enable_if<(1) > (0), int>::type f<int>(int)", "std::enable_if<(1) > (0), int>::type f<int>"),
        ("(anonymous namespace)::work(void (*)(int))", "(anonymous namespace)::work"),
        ("main::{lambda(int)#1}::operator()(int)", "main::{lambda(int)#1}::operator()"),
        ("main::{lambda(int)#1}", "main::{lambda(int)#1}"),
        ("void (*pick(int))(char)", "void (*pick(int))(char)"),
        ("<alloc::vec::Vec<T> as core::ops::Drop>::drop", "<alloc::vec::Vec<T> as core::ops::Drop>::drop"),
        ("java.util.ArrayList.grow(int)", "java.util.ArrayList.grow"),
        ("App.Program.Work(int32[],App.Box<int32>&)", "App.Program.Work"),
        ("System.RuntimeType/List:Filter<T> (T,string&)", "System.RuntimeType/List:Filter<T>"),
        ("(wrapper runtime-invoke) object:run (object,intptr)", "(wrapper runtime-invoke) object:run"),
        ("JavaMainWrapper_run_5087f5482cc9a6abc971913ece43acb471d2631b", "JavaMainWrapper_run"),
        (
            "IsolateEnterStub__JavaMainWrapper__run__5087f5482cc9a6abc971913ece43acb471d2631b"
            "__a61fe6c26e84dd4037e4629852b5488bfcc16e7e",
            "IsolateEnterStub__JavaMainWrapper__run",
        ),
        ("_5087f5482cc9a6abc971913ece43acb471d2631b", "_5087f5482cc9a6abc971913ece43acb471d2631b"),
        ("a_5087f5482cc9a6abc971913ece43acb471d2631", "a_5087f5482cc9a6abc971913ece43acb471d2631"),
        ("(anonymous)", "(anonymous)"),
        ("a:wfib (WASM:1)", "a:wfib (WASM:1)"),
        ("f (2)", "f (2)"),
        ("wfib (WASM:1)", "wfib (WASM:1)"),
        ("libc.so.6 function at 0x3f960", "libc.so.6 function at 0x3f960"),
        ("hotp:fib/1", "hotp:fib/1"),
        ("f)", "f)"),
        ("f(()", "f(()"),
        ("A::operator char const*() const", "A::operator char const*"),
        ("operator,(A const&, A const&)", "operator,"),
        ("std::string f[abi:cxx11](int)", "std::string f[abi:cxx11]"),
        ("main::'lambda'(int)", "main::'lambda'"),
        # No signatures: regular expressions, operators of Haskell and OCaml, Go, Rust, D, V8, Perl.
        (r"(\d+)-([a-z]+)", r"(\d+)-([a-z]+)"),
        (r"/foo(bar)/", r"/foo(bar)/"),
        (r"RegExp:^(?:a|b)", r"RegExp:^(?:a|b)"),
        ("base:GHC.Base.(.)", "base:GHC.Base.(.)"),
        ("Stdlib.(+)", "Stdlib.(+)"),
        ("main.(*Server).handle", "main.(*Server).handle"),
        ("main.(*Server)", "main.(*Server)"),
        ("<impl Fn(A)>::call", "<impl Fn(A)>::call"),
        ("app.each!(int)", "app.each!(int)"),
        ("Array(Int32)::new<Int32>:Array(Int32)", "Array(Int32)::new<Int32>:Array(Int32)"),
        ("exports.(anonymous)", "exports.(anonymous)"),
        ("SmallInteger(Object)>>doesNotUnderstand:", "SmallInteger(Object)>>doesNotUnderstand:"),
        ("(setf foo)", "(setf foo)"),
        ("main::handler (eval 3)", "main::handler (eval 3)"),
        ("", ""),
    ],
)
def test_arguments_are_left_out(name: str, short: str) -> None:
    assert short_name(name) == short


@pytest.mark.parametrize(
    ("name", "brief"),
    [
        ("a<b<c>>::d", "a<b<c>>::d"),
        ("std::map<int, std::less<int>>::at", "std::map<…>::at"),
        ("outer<int, char, long long>::inner<double>::f", "outer<…>::inner<…>::f"),
        ("std::function<void (*)(int)->int, long>::call", "std::function<…>::call"),
        ("<T as core::Clone>::clone::<alloc::vec::Vec<T>>", "<T as core::Cl…"),
        ("operator<<std::pair<int, int>, int>", "operator<<std:…"),
        ("a<long long, long long>::operator()", "a<…>::operator()"),
        ("a<long long, long long>::operator()(one, two)", "a<…>::operator()(…)"),
        ("f(one two three four)", "f(…)"),
        ("main.(*Server).handle", "main.(*Server)…"),
        ("<impl Fn(A, B, C)>::call", "<impl Fn(A, B,…"),
        (r"/^(one|two|three)/g", "/^(one|two|thr…"),
        ("many<int, char", "many<int, char"),
        ("many<int, char, long", "many<int, char…"),
        ("a_name_that_is_long", "a_name_that_is…"),
    ],
)
def test_long_names_are_briefer_in_sentences(name: str, brief: str) -> None:
    assert brief_name(name, max(len(brief), 15) if len(name) > len(brief) else len(name)) == brief


def test_overloaded_functions_keep_their_arguments() -> None:
    names = ["f(int)", "f(char)", "g(int)", "h(int)", "h", "g(int)"]
    assert short_names(names) == ["f(int)", "f(char)", "g", "h(int)", "h", "g"]


def test_short_forms_that_were_found_before_are_found_again() -> None:
    forms = ShortForms()
    assert short_names(["f(int)", "f(char)"], forms) == ["f(int)", "f(char)"]
    assert short_names(["f(int)", "g(int)"], forms) == ["f", "g"], "there is no other f among these"
    assert forms == {"f(int)": "f", "f(char)": "f", "g(int)": "g"}


@given(st.lists(st.text("f() []const.&:", max_size=12)))
def test_names_that_differ_are_shown_as_different_ones(names: list[str]) -> None:
    shown = dict(zip(names, short_names(names), strict=True))
    assert len(set(shown.values())) == len(shown)


@pytest.mark.parametrize("text", ["(", ")", "()", " const", " [clone ", " (.x)", "f()] ", " ("])
def test_long_names_take_linear_time(text: str) -> None:
    began = time.process_time()
    for name in (text * 20_000, text * 20_000 + "]", text * 20_000 + ")"):
        short_name(name)
        brief_name(name, 60)
    assert time.process_time() - began < 2
