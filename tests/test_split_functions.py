"""Functions that GCC split, to inline where they begin, and put together again: they are not in themselves."""

from __future__ import annotations

import shutil
import subprocess
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from traceferry.files.source import Source
from traceferry.symbolication.binary import Binary
from traceferry.symbolication.elf import ElfSymbols

PROGRAM = """
#include <stdio.h>
static volatile long sink;
int tell(const char *text, int n) {
  if (n < 1) return 0;
  for (int i = 0; i < n; i++) { sink += text[i % 3]; sink ^= i; fputs(text, stderr); }
  for (int i = 0; i < n; i++) { sink -= text[i % 3]; sink |= i; fputs(text, stderr); }
  return n;
}
int down(int n) {
  if (n < 2) return n;
  return down(n - 1)
    + down(n - 2);
}
int main(int n, char **a) { while (n-- > -5) sink = tell(a[0], n) + down(n); return 0; }
"""


@pytest.mark.skipif(not shutil.which("gcc"), reason="no gcc here to make a program")
def test_only_what_calls_itself_is_in_itself(tmp_path: Path) -> None:
    (tmp_path / "main.c").write_text(PROGRAM)
    subprocess.run(["gcc", "-g", "-O3", "-o", "app", "main.c"], cwd=tmp_path, check=True)
    symbols = ElfSymbols(Binary(Source("app", memoryview((tmp_path / "app").read_bytes()))))
    dump = subprocess.run(["readelf", "--debug-dump=info", "app"], cwd=tmp_path, capture_output=True, text=True).stdout
    if "DW_AT_call_line   : 4" not in dump:
        pytest.skip("this gcc does not split the function, or does not put it together again")
    addresses = np.concatenate([np.arange(*section, dtype=np.uint64) for section in symbols.binary.code_ranges])
    found = symbols.lookup(addresses)
    in_themselves = set()
    for first, end in pairwise(found.first.tolist()):
        names = [found.texts[name] for name in found.name[first:end].tolist()]
        in_themselves |= {inner for inner, outer in pairwise(names) if inner == outer}
        assert not names or names[-1]
    assert "tell" in {found.texts[name] for name in found.name.tolist()}
    assert in_themselves <= {"down"}
    assert in_themselves or "DW_AT_call_line   : 12" not in dump
