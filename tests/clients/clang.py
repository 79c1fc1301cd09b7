"""clang, where it can build programs that XRay records."""

from __future__ import annotations

import shutil
import subprocess
from functools import cache
from pathlib import Path

WHY_NOT = "needs clang++-19 with XRay's runtime (Debian: clang-19, libclang-rt-19-dev)"


@cache
def with_xray() -> str:
    """Returns the compiler, "" where it, or the library that records, is not installed."""
    compiler = shutil.which("clang++-19")
    if compiler is None:
        return ""
    told = subprocess.run([compiler, "-print-resource-dir"], capture_output=True, text=True, check=True, timeout=60)
    return compiler if any(Path(told.stdout.strip()).glob("lib/**/libclang_rt.xray*.a")) else ""
