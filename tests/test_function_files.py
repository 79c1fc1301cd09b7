"""The file of a native function is the one that declares it, whatever else stands inside."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from traceferry.files.source import Source
from traceferry.symbolication.binary import Binary
from traceferry.symbolication.elf import ElfSymbols
from traceferry.symbolication.interface import Frames
from traceferry.symbolication.libraries import LibraryFile

MAIN = """
int step(int n) { volatile int s = 0; for (int i = 0; i < n; i++) s += i;
#include "body.inc"
  return s; }
int main(int n, char **a) { return step(n); }
"""
# Such as the templates of glibc's printf, or the cases of CPython's interpreter.
BODY = "for (int i = 0; i < n; i++) s ^= i;\nfor (int i = 0; i < n; i++) s -= i;\n"


@pytest.mark.skipif(not shutil.which("gcc"), reason="no gcc here to make a program")
def test_a_function_whose_body_is_in_other_files_stands_in_its_own(tmp_path: Path) -> None:
    (tmp_path / "main.c").write_text(MAIN)
    (tmp_path / "body.inc").write_text(BODY)
    subprocess.run(["gcc", "-g", "-O1", "-o", "app", "main.c"], cwd=tmp_path, check=True)
    binary = Binary(Source("app", memoryview((tmp_path / "app").read_bytes())))
    symbols = ElfSymbols(binary)
    (step,) = (one for one in symbols.functions() if one.name == "step")
    addresses = np.arange(step.start, step.start + step.size, dtype=np.uint64)

    def places(found: Frames) -> set[tuple[str, str, bool]]:
        rows = zip(found.name.tolist(), found.source.tolist(), found.line.tolist(), strict=True)
        return {(found.texts[name], Path(found.texts[source]).name, line > 0) for name, source, line in rows}

    assert {source for _, source, _ in places(symbols.lookup(addresses))} == {"main.c", "body.inc"}
    shown = LibraryFile(symbols, binary).lookup(addresses - np.uint64(binary.base))
    # The lines of the other file are not those of this one.
    assert places(shown) == {("step", "main.c", True), ("step", "main.c", False)}
    own = set(shown.line.tolist()) - {0}
    assert own <= {2, 3, 4}
