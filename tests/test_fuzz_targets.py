"""The fuzz targets run: `make test` fuzzes nothing, but each target takes the inputs that it begins with."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TARGETS = sorted((ROOT / "fuzz").glob("fuzz_*.py"))
# In the place of the fuzzer: each file of the corpus, once, until FUZZ_SECONDS have passed.
FUZZER = """
import contextlib, pathlib
def instrument_imports(include, exclude):
    return contextlib.nullcontext()
def Setup(arguments, one_input):
    global inputs, target
    inputs, target = sorted(pathlib.Path(arguments[-1]).glob("seed-*")), one_input
def Fuzz():
    for path in inputs:
        target(path.read_bytes())
    print(len(inputs), "inputs, no finding")
"""


@pytest.mark.parametrize("target", TARGETS, ids=lambda path: path.stem)
def test_it_takes_its_seeds(target: Path, tmp_path: Path) -> None:
    (tmp_path / "atheris.py").write_text(FUZZER)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "FUZZ_SECONDS": "0.5"}
    ran = subprocess.run([sys.executable, target], env=environment, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr
    n_inputs, text = ran.stdout.split(" inputs")
    assert int(n_inputs) > 0
    assert text.endswith("no finding\n")
