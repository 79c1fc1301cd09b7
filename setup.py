"""Compiles every .pyx file, with Cython and a C compiler; all else is in pyproject.toml.

TRACEFERRY_KERNELS=0 compiles none, TRACEFERRY_SANITIZE has flags for a build that checks memory: see the Makefile.
"""

import os
import shutil
import sys
import sysconfig
import tomllib
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, find_packages, setup
from setuptools.command.build_ext import build_ext

FOLDERS = tomllib.loads(Path("pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]["package-dir"]
BUILD = Path(os.environ.get("TRACEFERRY_BUILD", "build"))
SANITIZERS = os.environ.get("TRACEFERRY_SANITIZE", "").split()
# What is declared inline is inlined, also what the C compiler finds too long: loops over records call it.
INLINE = "-DCYTHON_INLINE=__inline__ __attribute__((always_inline))"
FLAGS = ["-O1", "-g", "-fno-omit-frame-pointer", *SANITIZERS] if SANITIZERS else ["-O2", "-g0", INLINE]
# Without names of functions, unwind tables and what nothing calls, modules are a tenth smaller.
IS_SMALL = sys.platform == "linux" and not SANITIZERS
FLAGS += ["-fno-asynchronous-unwind-tables", "-ffunction-sections"] if IS_SMALL else []
LINKED = ["-Wl,-s", "-Wl,--gc-sections"] if IS_SMALL else SANITIZERS
DIRECTIVES = {
    "language_level": 3, "boundscheck": bool(SANITIZERS), "initializedcheck": bool(SANITIZERS), "wraparound": False,
    "cdivision": True, "auto_pickle": False, "autotestdict": False,
}  # fmt: skip
# Cython's own code for memory views, 20,000 lines of C, is compiled once and not in each module.
MEMORYVIEWS = "traceferry.native.memoryviews"
WANTED = """traceferry is built from source with a C compiler and Python's headers, but there is no {}. On Debian and \
Ubuntu: apt install gcc libc6-dev python3-dev. A compiler without root: pip install ziglang, and set CC='python3 -m \
ziglang cc' and LDSHARED='python3 -m ziglang cc -shared'. Wheels need neither."""


class Build(build_ext):
    """Translates to C when something is built: metadata and sdist need none of it."""

    def run(self) -> None:
        compiler = (os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split()[0]
        missing = [compiler] if os.name == "posix" and not shutil.which(compiler) else []
        missing += [] if Path(sysconfig.get_path("include"), "Python.h").exists() else ["Python.h"]
        if missing:
            sys.exit(WANTED.format(" and no ".join(missing)))
        self.parallel = self.parallel or os.cpu_count()
        # Cython finds what is cimported under the installed names.
        shutil.rmtree(BUILD / "include", ignore_errors=True)
        for package, folder in FOLDERS.items():
            target = BUILD.joinpath("include", *package.split("."))
            shutil.copytree(folder, target, ignore=undeclared, dirs_exist_ok=True)
        made = cythonize(
            self.extensions, include_path=[str(BUILD / "include")], build_dir=str(BUILD / "cython"),
            nthreads=self.parallel if sys.platform == "linux" else 0, compiler_directives=DIRECTIVES,
            shared_utility_qualified_name=MEMORYVIEWS,
        )  # fmt: skip
        for extension, translated in zip(self.extensions, made, strict=True):
            extension.sources = translated.sources
        super().run()


def undeclared(folder: str, names: list[str]) -> list[str]:
    return [n for n in names if not n.endswith((".pxd", "__init__.py")) and not Path(folder, n).is_dir()]


def extensions() -> list[Extension]:
    flags = {"extra_compile_args": FLAGS, "extra_link_args": LINKED} if os.name == "posix" else {}
    paths = [(p, path.relative_to(f)) for p, f in FOLDERS.items() for path in sorted(Path(f).rglob("*.pyx"))]
    names = {".".join([p, *path.with_suffix("").parts]): [str(Path(FOLDERS[p], path))] for p, path in paths}
    return [Extension(name, sources, **flags) for name, sources in {**names, MEMORYVIEWS: []}.items()]


setup(
    packages=[n for p, f in FOLDERS.items() for n in [p, *(f"{p}.{found}" for found in find_packages(f))]],
    ext_modules=[] if os.environ.get("TRACEFERRY_KERNELS") == "0" else extensions(),
    cmdclass={"build_ext": Build},
    options={"build": {"build_base": str(BUILD)}},
)
