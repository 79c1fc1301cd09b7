"""Lambdas, whose classes have no name, in the names of their functions."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from traceferry.files.source import Source
from traceferry.symbolication.binary import Binary
from traceferry.symbolication.elf import ElfSymbols

PROGRAM = """
static volatile long sink;
template <class F> static void each(F f) { for (int i = 0; i < 9; i++) f(i); }
static auto of_file = [](int i) { sink += i; };
static auto other_of_file = [](int i) { sink += 2 * i; };
int main() {
  each([](int i) { sink ^= i; });
  each([](auto i) { sink -= i; });
  each([](int i) { auto inner = [](int j) { sink |= j; }; inner(i); });
  { auto in_block = [](int i) { sink = i; }; each(in_block); }
  each(of_file);
  each(other_of_file);
}
"""


@pytest.mark.skipif(not shutil.which("g++"), reason="no g++ here to make a program")
def test_inlined_lambdas_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "main.cpp").write_text(PROGRAM)
    subprocess.run(["g++", "-std=c++17", "-g", "-O2", "-o", "app", "main.cpp"], cwd=tmp_path, check=True)
    binary = Binary(Source("app", memoryview((tmp_path / "app").read_bytes())))
    addresses = np.concatenate([np.arange(*section, dtype=np.uint64) for section in binary.code_ranges])
    found = ElfSymbols(binary).lookup(addresses)
    names = {found.texts[name] for name in set(found.name.tolist()) if name >= 0}
    assert {name for name in names if "operator" in name} == {
        "{lambda#1}::operator()",
        "{lambda#2}::operator()",
        "main::{lambda#1}::operator()",
        "main::{lambda#2}::operator()<int>",
        "main::{lambda#3}::operator()",
        "main::{lambda#3}::operator()::{lambda#1}::operator()",
        "main::{lambda#4}::operator()",
    }
