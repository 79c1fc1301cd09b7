"""A function that GCC inlined into itself: a real call of itself, which is shown, and the rest of a function that GCC
had split to inline where it begins (-fpartial-inlining), which is no call in the source.

llvm-symbolizer shows both. Of 19,987 addresses of OpenJDK 17's libjvm, 1,436 have fewer frames here, for this reason.
"""

import shutil
import subprocess
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from traceferry.files.source import open_source
from traceferry.symbolication.choose import open_symbols

SOURCE = """
struct node { struct node *l, *r; int v; };
int sum(struct node *n) { return n ? n->v + sum(n->l) + sum(n->r) : 0; }
extern int slow(int, int); extern int g[100];
int part(int *p, int k) {
  if (p == 0) return 0;
  int s = 0;
  for (int i = 0; i < k; i++) { s += slow(p[i], i); g[i % 100] += s * p[i]; s ^= slow(i, s); if (s > 100) slow(s, 2); }
  for (int i = 0; i < k; i++) { s += slow(p[i], i+1); g[i % 100] += s; s ^= slow(i, s+1); if (s > 100) slow(s, 3); }
  return s;
}
int one(int *p) { return part(p, 3); }
int two(int *p) { return part(p, 30) + part(p + 1, 31); }
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    gcc = shutil.which("gcc")
    if gcc is None:
        pytest.skip("gcc is not installed")
    folder = tmp_path_factory.mktemp("itself")
    (folder / "self.c").write_text(SOURCE)
    command = [gcc, "-O2", "-g", "-shared", "-fPIC", "-fpartial-inlining", "-o", "self.so", "self.c"]
    subprocess.run(command, cwd=folder, check=True)
    return folder / "self.so"


def frames_of(path: Path, *, together: bool) -> list[list[str]]:
    """The names of each address of the code, the innermost first. together: many addresses are looked up at once."""
    symbols = open_symbols(open_source(str(path)))
    text = next(section for section in symbols.binary.sections if section.name == ".text")
    asked = np.arange(text.address, text.address + text.size, dtype=np.uint64)
    parts = [asked] if together else asked[:, None]
    found = []
    for part in parts:
        frames = symbols.lookup(part)
        names = [frames.texts[name] for name in frames.name.tolist()]
        first = frames.first.tolist()
        found += [names[begin:end] for begin, end in pairwise(first)]
    return found


def is_called_by_itself(name: str, frames: list[str]) -> bool:
    return any(inner == outer == name for inner, outer in pairwise(frames))


@pytest.mark.parametrize("together", [True, False])
def test_a_function_calls_itself_where_the_source_does(library: Path, together: bool) -> None:
    """Also in one line, that of its declaration."""
    found = frames_of(library, together=together)
    if not any(is_called_by_itself("sum", frames) for frames in found):
        pytest.skip("this gcc inlines no call of a function into itself")
    assert not any(is_called_by_itself("part", frames) for frames in found)
    assert any("part" in frames for frames in found)


def test_real_calls_are_those_of_llvm_symbolizer(library: Path) -> None:
    symbolizer = shutil.which("llvm-symbolizer-19")
    if symbolizer is None:
        pytest.skip("llvm-symbolizer-19 is not installed (Debian: llvm-19)")
    symbols = open_symbols(open_source(str(library)))
    text = next(section for section in symbols.binary.sections if section.name == ".text")
    asked = "".join(f"{address:#x}\n" for address in range(text.address, text.address + text.size))
    command = [symbolizer, "--obj", str(library), "--no-demangle", "--output-style=LLVM"]
    done = subprocess.run(command, input=asked, capture_output=True, text=True, check=True)
    theirs = [block.splitlines()[::2] for block in done.stdout.strip().split("\n\n")]
    ours = frames_of(library, together=True)
    of_sum = [(our, their) for our, their in zip(ours, theirs, strict=True) if "sum" in their]
    assert len(of_sum) > 100
    assert all(our == their for our, their in of_sum)
