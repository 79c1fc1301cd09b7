"""Compiles the kernels where there is a C compiler; without one they run as the ordinary Python files they are.

The folders at the root are installed as one package: see PACKAGE_DIR.
"""

import os
import shutil
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, find_packages, setup

ROOT = Path(__file__).parent
PACKAGE_DIR = {"traceferry": "converter", "traceferry.importers": "importers", "traceferry.exporters": "exporters"}
# Cython looks for traceferry/calls/x.pxd; in the tree it is converter/calls/x.pxd.
DECLARATIONS = Path("build") / "pxd"


def packages() -> list[str]:
    return [
        name
        for package, folder in PACKAGE_DIR.items()
        for name in [package, *(f"{package}.{found}" for found in find_packages(str(ROOT / folder)))]
    ]


def module_of(path: Path) -> str:
    """ "importers/xray/fdr_kernel.py" → "traceferry.importers.xray.fdr_kernel" """
    package = next(name for name, folder in PACKAGE_DIR.items() if folder == path.parts[0])
    return ".".join([package, *path.with_suffix("").parts[1:]])


def files(pattern: str) -> list[Path]:
    return sorted(path.relative_to(ROOT) for folder in PACKAGE_DIR.values() for path in (ROOT / folder).rglob(pattern))


def copy_declarations() -> None:
    for path in files("*.pxd"):
        copy = DECLARATIONS.joinpath(*module_of(path).split(".")).with_suffix(".pxd")
        for folder in list(copy.parents)[: len(module_of(path).split(".")) - 1]:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "__init__.py").touch()
        shutil.copy2(path, copy)


def extensions(n_jobs: int) -> list[Extension]:
    copy_declarations()
    modules = cythonize(
        [Extension(module_of(path), [str(path)], extra_compile_args=["-O3"]) for path in files("*_kernel.py")],
        build_dir="build/cython",
        include_path=[str(DECLARATIONS)],
        nthreads=n_jobs,
    )
    for module in modules:
        module.optional = True  # cythonize() drops it; with it a failed compilation is a warning
    return modules


if __name__ == "__main__":
    jobs = os.cpu_count() or 1
    setup(
        packages=packages(),
        package_dir=PACKAGE_DIR,
        ext_modules=extensions(jobs),
        options={"build_ext": {"parallel": jobs}},
    )
