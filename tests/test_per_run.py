"""Names with parts that each run has otherwise: `compare` and `aggregate` take the functions for the same."""

from pathlib import Path

import pytest
from support import load_checked

from traceferry.analysis.totals.collect import collect
from traceferry.analysis.totals.per_run import HINTS, PARTS, stable_file, stable_name
from traceferry.analysis.totals.portable import portable
from traceferry.apps import cli

NAMES = {
    "java.lang.VirtualThread$$Lambda/0x000000007a0c6358.run()": "java.lang.VirtualThread$$Lambda.run()",
    "App$$Lambda$14/0x0000000800c03000.apply": "App$$Lambda.apply",
    "App$$Lambda$14/1329552164.apply": "App$$Lambda.apply",
    "java.lang.invoke.LambdaForm$DMH/0x00007f3c14002000.invokeStatic": "java.lang.invoke.LambdaForm$DMH.invokeStatic",
    "jdk.internal.reflect.GeneratedMethodAccessor12.invoke": "jdk.internal.reflect.GeneratedMethodAccessor.invoke",
    "com.sun.proxy.$Proxy7.get": "com.sun.proxy.$Proxy.get",
    "block in #<Class:0x000055d0a1b2c3d8>#call": "block in #<Class>#call",
    "DynamicClass.lambda_method7(pMT)": "DynamicClass.lambda_method(pMT)",
    "bpf_trampoline_6442501234": "bpf_trampoline",
    "App.main": "App.main",
    "libz.so function at 0xaa60": "libz.so function at 0xaa60",
    "libc.so.6+0x12345678": "libc.so.6+0x12345678",
    "Shop.Lambda$Visitor.visit": "Shop.Lambda$Visitor.visit",
}
FILES = {
    "blob:null/1710b25b-7913-4a0a-a880-7e0491b017f3": "blob:",
    "blob:https://example.com/1710b25b-7913-4a0a-a880-7e0491b017f3": "blob:",
    "/srv/1710b25b-7913-4a0a-a880-7e0491b017f3/app.js": "/srv/1710b25b-7913-4a0a-a880-7e0491b017f3/app.js",
}


@pytest.mark.parametrize("name", NAMES)
def test_names_as_all_runs_have_them(name: str) -> None:
    assert stable_name(name) == NAMES[name]
    assert (PARTS.search(name) is None) or any(hint in name for hint in HINTS)


@pytest.mark.parametrize("path", FILES)
def test_files_as_all_runs_have_them(path: str) -> None:
    assert stable_file(path) == FILES[path]


def test_a_stack_with_two_lambdas_of_a_class_counts_once(tmp_path: Path) -> None:
    folded = tmp_path / "a.folded"
    folded.write_text("main;A$$Lambda/0x0000000011111111.run;A$$Lambda/0x0000000022222222.run 5\n")
    totals = portable(collect(load_checked(folded)))
    column = totals.functions.columns.index("total_samples")
    names = [key[0] for key in totals.functions.keys]
    found = dict(zip(names, totals.functions.amounts[:, column].tolist(), strict=True))
    assert found == {"main": 5, "A$$Lambda.run": 5}


def test_runs_are_compared_by_what_both_have(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = []
    for nth, address in enumerate(("0x000000007a0c6358", "0x00000000770c6358")):
        paths.append(tmp_path / f"{nth}.folded")
        paths[-1].write_text(f"main;A$$Lambda/{address}.run 100\n")
    assert cli.main(["compare", *map(str, paths)]) == 0
    assert capsys.readouterr().out.startswith("identical: ")
