"""Names of OCaml's and GHC's native code. Those of OCaml are of tools/perf/tests/demangle-ocaml-test.c, and of programs
of 4.13; those of GHC of programs of 9.0."""

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
}
KEPT = (
    "main", "caml_alloc", "camlp4", "camlFoo$0a", "camlFoo bar", "Main_fib_info", "png_get_info", "Curl_gzip_info",
    "AppziText_zj_info", "AppziText_zffffffU_info", "AppziText_z0U_info", "AppziText_f_closure", "AppziText_info",
    "_info", "",
)  # fmt: skip


@pytest.mark.parametrize("name", SHOWN)
def test_names_are_shown_as_people_write_them(name: str) -> None:
    assert demangle(name) == SHOWN[name]


@pytest.mark.parametrize("name", KEPT)
def test_other_names_stay(name: str) -> None:
    assert demangle(name) == name
