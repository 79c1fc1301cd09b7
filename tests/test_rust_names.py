"""Names of Rust functions in both manglings. Expected texts are those of binutils' c++filt, without the hashes."""

import pytest

from traceferry.symbolication.demangle import demangle

NAMES = {
    # v0
    "_RNvCs1_3app4main": "app::main",
    "_RNvMs7_NtCsgEmfK2I1SDS_4core3numy12wrapping_add": "<u64>::wrapping_add",
    "_RNCNvXCskK7mfDs1mzF_1mINtB4_1AmENtB4_2Go2go0B4_": "<m::A<u32> as m::Go>::go::{closure#0}",
    "_RNvMs3_NtCslNYArtu3iFV_5alloc7raw_vecINtB5_6RawVecTOhFUKCBN_EuENtNtCsjrHSEGnQ3l9_3std5alloc6SystemE8grow_oneB13_":
        '<alloc::raw_vec::RawVec<(*mut u8, unsafe extern "C" fn(*mut u8)), std::alloc::System>>::grow_one',
    "_RINvNtCsgEmfK2I1SDS_4core3ptr13drop_in_placeINtNtCslNYArtu3iFV_5alloc5boxed3BoxDG0_INtNtNtB4_3ops8function2FnTRL1_"
    "INtNtCsjrHSEGnQ3l9_3std5panic13PanicHookInfoL0_EEEp6OutputuNtNtB4_6marker4SyncNtB2N_4SendEL_EEB1T_":
        "core::ptr::drop_in_place::<alloc::boxed::Box<dyn for<'a, 'b> core::ops::function::Fn<"
        "(&'a std::panic::PanicHookInfo<'b>,), Output = ()> + core::marker::Sync + core::marker::Send>>",
    "_RNvXsa_NtCsgEmfK2I1SDS_4core5arrayAoj1_NtNtB7_3fmt5Debug3fmt": "<[u128; 1] as core::fmt::Debug>::fmt",
    "_RINvC1a1fKnn2_Kc75_Kb1_E": "a::f::<-2, 'u', true>",
    "_RNvNtNtNtCsgY6Mt91CT9J_3std3sys3pal4unix4main.llvm.5918911085189512594": "std::sys::pal::unix::main",
    "_RNvCs1_3app4main.cold": "app::main (.cold)",
    "__RNvCs1_3app4main": "app::main",
    # legacy
    "_ZN3leg1f17h4b5f2fc0d6714c5fE": "leg::f",
    "_ZN47_$LT$u64$u20$as$u20$core..iter..range..Step$GT$17forward_unchecked17h70c7c3681a856899E":
        "<u64 as core::iter::range::Step>::forward_unchecked",
    "_ZN5alloc7raw_vec20RawVecInner$LT$A$GT$16with_capacity_in17h765db1c7822b316bE.llvm.123.cold":
        "alloc::raw_vec::RawVecInner<A>::with_capacity_in (.cold)",
    "_ZN3app4main28_$u7b$$u7b$closure$u7d$$u7d$17h0123456789abcdefE": "app::main::{{closure}}",
    "_ZN42_$LT$$RF$$u5b$T$u5d$$u20$as$u20$a.b..C$GT$1f17h0123456789abcdefE": "<&[T] as a.b::C>::f",
    # not Rust's
    "_ZN3foo17h0000000000000000E": "foo::h0000000000000000",
    "_ZN3foo3barEv": "foo::bar()",
    "_RNvCs1_3app5main": "_RNvCs1_3app5main",
    "_ReadFile": "_ReadFile",
    "_R": "_R",
    "_RNv": "_RNv",
    "_RB_": "_RB_",
    "_ZN99f17h0123456789abcdefE": "_ZN99f17h0123456789abcdefE",
}  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_names(name: str) -> None:
    assert demangle(name) == NAMES[name]


def base_62(number: int) -> str:
    """Of 0 to 62 * 62: `_`, `0_`, ... `zz_`."""
    digits = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
    if number == 0:
        return "_"
    high, low = divmod(number - 1, 62)
    return (digits[high] if high else "") + digits[low] + "_"


def doubling(n: int) -> str:
    """A type that stands for 2^n units, by references to the one before."""
    text, last = "INvC1a1bTuuE", len("INvC1a1b")
    for _ in range(n):
        here = len(text)
        text += f"TB{base_62(last)}B{base_62(last)}E"
        last = here
    return f"_R{text}E"


def test_references_that_double_what_they_stand_for() -> None:
    """A compiler refers to what it has said, but not so that 400 bytes stand for more than memory."""
    assert demangle(doubling(3)).count("()") == 2 + 4 + 8 + 16
    assert len(demangle(doubling(6))) > 10 * len(doubling(6))
    assert demangle(doubling(40)) == doubling(40)


@pytest.mark.parametrize(
    "name",
    [
        "_R" + "S" * 100_000 + "u",
        "_RINvC1a1b" + "S" * 100_000 + "uE",
        "_RINvC1a1b" + "T" * 5_000 + "E" * 5_001,
        "_RNvC1a" + "9" * 100_000,
        "_RNvCs" + "9" * 100_000 + "_1a1b",
        "_RINvC1a1bFG" + "z" * 20 + "_EuE",
        "_ZN" + "1a" * 100 + "17h0123456789abcdefE" * 2,
    ],
    ids=["type", "nested", "tuples", "length", "number", "lifetimes", "legacy"],
)
def test_hostile_names_end(name: str) -> None:
    assert len(demangle(name)) <= 16 * len(name)
