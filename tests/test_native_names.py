"""Names of native code that compilers other than those of C++, Rust, Swift and D wrote. Those of OCaml are of
tools/perf/tests/demangle-ocaml-test.c, and of programs of 4.13; those of GHC of programs of 9.0; of Fortran, of
programs of gfortran 12 and Flang 19, Intel's made after their form, MODULE_mp_NAME_; of programs of Free Pascal 3.2 and
Crystal 1.6."""

import pytest

from traceferry.symbolication.demangle import demangle

SHOWN = {
    "camlStdlib__array__map_154": "Stdlib.array.map_154",
    "camlStdlib__anon_fn$5bstdlib$2eml$3a334$2c0$2d$2d54$5d_1453": "Stdlib.anon_fn[stdlib.ml:334,0--54]_1453",
    "camlStdlib__bytes__$2b$2b_2205": "Stdlib.bytes.++_2205",
    "camlFib__fun_746": "Fib.fun_746",
    "camlStdlib.List.rev_merge_552": "Stdlib.List.rev_merge_552",
    "containerszm0zi6zi4zi1_DataziMapziInternal_balanceR_info": "containers-0.6.4.1:Data.Map.Internal.balanceR",
    "ghczmprim_GHCziClasses_compareInt_info": "ghc-prim:GHC.Classes.compareInt",
    "base_GHCziBase_zpzp_info": "base:GHC.Base.++",
    "ghczmprim_GHCziTuple_Z3T_con_info": "ghc-prim:GHC.Tuple.(,,) (con info)",
    "Main_zdwzdsgo16_info": "Main.$w$sgo16",
    "AppziText_z3bbU_entry": "App.Text.λ",
    "__work_mod_MOD_heavy": "work_mod::heavy",
    "__work_mod_MOD_heavy.part.0.isra.0": "work_mod::heavy.part.0.isra.0",
    "__geometry.impl_MOD_helper": "geometry::impl::helper",
    "__work_mod_MOD___copy_work_mod_Counter": "work_mod::__copy_work_mod_Counter",
    "work_mod_mp_heavy_": "work_mod::heavy",
    "_QMwork_modPheavy": "work_mod::heavy",
    "_QMgeometrySimplFhelperPdeep": "geometry::impl::helper::deep",
    "_QFPlocal_part": "local_part",
    "_QPoutside.llvm.123": "outside.llvm.123",
    "P$A_$$_HEAVY$QWORD$$QWORD": "A.HEAVY(QWORD)",
    "P$A$_$TCOUNTER_$__$$_ADD$QWORD": "A.TCOUNTER.ADD(QWORD)",
    "SYSTEM$_$TOBJECT_$__$$_CREATE$$TOBJECT": "SYSTEM.TOBJECT.CREATE",
    "SYSTEM_$$_$assign$WORDBOOL$$VARIANT": "SYSTEM.operator assign(WORDBOOL)",
    "LNFODWRF_$$_finalize$": "LNFODWRF.finalize",
    "P$A$_$NESTED$LONGINT$$QWORD_$$_INNER$LONGINT": "A.NESTED.INNER(LONGINT)",
    "P$B$_$TOUTER_$_TINNER_$_WORK$LONGINT$$LONGINT_$$_L1$LONGINT$$LONGINT": "B.TOUTER.TINNER.WORK.L1(LONGINT)",
    "P$B$_$TOUTER_$_TINNER_$__$$_PLAIN": "B.TOUTER.TINNER.PLAIN",
    "P$A$_$TLIST$1$CRC063876AD_$__$$_SUM$$QWORD": "A.TLIST<063876AD>.SUM",
    "P$B$_$TPAIR$2$CRC1013F95D_$_PUT$TPAIR$2$CRC3914CB7F$DOUBLE_$$_LOC": "B.TPAIR<1013F95D>.PUT.LOC",
    "P$B$_$TPAIR$2$CRC1013F95D_$__$$_PUT$TPAIR$2$CRC3914CB7F$DOUBLE": "B.TPAIR<1013F95D>.PUT(TPAIR<3914CB7F>, DOUBLE)",
    "P$B_$$_MAX$1$CRC6824777A$ANSISTRING$ANSISTRING$$ANSISTRING": "B.MAX<6824777A>(ANSISTRING, ANSISTRING)",
    "CLASSES$_$$CRC6543510B_$$_PROCESSBINARY": "CLASSES.CRC6543510B.PROCESSBINARY",
    "UNIX_$$_GETTIMEZONEFILE$$SHORTSTRING": "UNIX.GETTIMEZONEFILE",
    "*Pointer(UInt8)@Pointer(T)#bytesize<Int32>:UInt64": "Pointer(UInt8)@Pointer(T)#bytesize<Int32>:UInt64",
    "*Deque(Pointer(Void))@Deque(T)#shift?:(Pointer(Void) | Nil)": (
        "Deque(Pointer(Void))@Deque(T)#shift?:(Pointer(Void) | Nil)"
    ),
}
KEPT = (
    "main", "caml_alloc", "camlp4", "camlFoo$0a", "camlFoo bar", "Main_fib_info", "png_get_info", "Curl_gzip_info",
    "AppziText_zj_info", "AppziText_zffffffU_info", "AppziText_z0U_info", "AppziText_f_closure", "AppziText_info",
    "_info", "",
    "MAIN__", "_QQmain", "outside_", "deep.0", "__init_MOD_", "__MOD_a", "foo_mp_", "_QMa", "_Quick", "*", "* main:A",
    "*foo app.js:1:2", "main.(*T).run", "A_$$_", "$_$$_", "my_$$_", "__Foo_MOD_bar",
)  # fmt: skip
LONG = ("_mp_a", "__a_MOD_", "_QMa", "Fa", "$_$A", "_$$_A", "A_", ".a", ".a.1", "*a:A", "a_")


@pytest.mark.parametrize("name", SHOWN)
def test_names_are_shown_as_people_write_them(name: str) -> None:
    assert demangle(name) == SHOWN[name]


@pytest.mark.parametrize("name", KEPT)
def test_other_names_stay(name: str) -> None:
    assert demangle(name) == name


@pytest.mark.parametrize("part", LONG)
@pytest.mark.parametrize("begin", ["a", "__a_MOD_b", "_QMaPb", "P$A", "*"])
def test_long_names_take_linear_time(begin: str, part: str) -> None:
    """Symbol tables have names of up to 65,536 characters, of anybody's."""
    demangle(begin + part * (60_000 // len(part)) + "!")
