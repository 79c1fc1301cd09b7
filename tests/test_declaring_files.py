"""The file of a function whose line table names several: that of its class, not of what is inlined first."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders.jitdump import JitDump
from support import load_checked

ADDRESS = 0x10000
BUILDER, INTEGER = "java/lang/AbstractStringBuilder.java", "java/lang/Integer.java"

# The methods of a dump, each with the files of its line table in their order, and the file of the last one.
CASES: dict[str, tuple[list[tuple[str, list[str]]], str]] = {
    "inlined first": ([("Lapp/App;words(I)I", [BUILDER, "app/App.java"])], "app/App.java"),
    "in no package": ([("LApp;words(I)I", [BUILDER, "App.java"])], "App.java"),
    "a nested class": ([("Lapp/App$Row;words(I)I", [BUILDER, "app/Util.java", "app/App.java"])], "app/App.java"),
    "a hidden class": ([("Lapp/App$$Lambda$3.0x00007f44;apply(I)I", [INTEGER, "app/App.java"])], "app/App.java"),
    "a name with $": ([("Lapp/$Proxy4;run()V", [BUILDER, "app/$Proxy4.java"])], "app/$Proxy4.java"),
    "all inlined, another method tells": (
        [("Lapp/App;main()V", ["app/App.java"]), ("Lapp/App;words(I)I", [BUILDER])], "app/App.java"
    ),
    "all inlined, nothing tells": ([("Lapp/App;words(I)I", [BUILDER, INTEGER])], ""),
    "no lines, another method tells": (
        [("Lapp/App;main()V", ["app/App.java"]), ("Lapp/App;hash()I", [])], "app/App.java"
    ),
    "Kotlin": ([("Lapp/MainKt;main()V", ["kotlin/text/StringsKt.kt", "app/Main.kt"])], "app/Main.kt"),
    "another class of the package": ([("Lapp/Helper;run()V", [BUILDER, "app/App.java"])], "app/App.java"),
    "the same name in another package": ([("Lapp/App;run()V", ["other/App.java", "app/App.java"])], "app/App.java"),
    "files without folders": ([("Lapp/App;run()V", ["String.java", "App.java"])], "App.java"),
    "files below a folder of sources": (
        [("Lapp/App;run()V", ["/src/java/lang/String.java", "/src/app/App.java"])], "/src/app/App.java"
    ),
    "files that are none": ([("Lapp/App;run()V", ["/", "..", ".", "app/App.java"])], "app/App.java"),
    "what BEAM puts in front of a function": (
        [("m:f/1", ["m.erl"]), ("m:g/1", ["other.hrl", "m.erl"]), ("m:g/1-CodeInfoPrologue", [])], "other.hrl"
    ),
    "an Erlang function without lines": ([("m:f/1", ["m.erl"]), ("m:h/1", [])], ""),
    "another language": ([("main", ["/src/vector.h", "/src/main.cpp"])], "/src/vector.h"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_the_file_of_a_function_is_that_of_its_class(case: str, tmp_path: Path) -> None:
    methods, expected = CASES[case]
    dump = JitDump()
    for nth, (name, files) in enumerate(methods):
        at = ADDRESS + nth * 0x1000
        if files:
            dump.debug_info(at, [(at + 4 * row, 10 + row, 0, file) for row, file in enumerate(files)])
        dump.load(name, at, 64, index=nth)
    (tmp_path / "jit-7.dump").write_bytes(dump.bytes())
    trace = load_checked(tmp_path / "jit-7.dump")
    source = int(trace.funcs["source"][trace.code["func"][-1]])
    assert (trace.strings[trace.sources["path"][source]] if source >= 0 else "") == expected
