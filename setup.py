"""Compiles the kernels where there is a C compiler; without one they run as the ordinary Python files they are."""

from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup

ROOT = Path(__file__).parent
KERNELS = sorted(
    path.relative_to(ROOT)
    for folder in ("converter", "importers", "exporters")
    for path in (ROOT / folder).rglob("*_kernel.py")
)


def extensions() -> list[Extension]:
    modules = cythonize(
        [Extension(".".join(path.with_suffix("").parts), [str(path)], extra_compile_args=["-O3"]) for path in KERNELS],
        build_dir="build/cython",
    )
    for module in modules:
        module.optional = True  # cythonize() drops it; with it a failed compilation is a warning
    return modules


setup(ext_modules=extensions())
