"""Compiles the kernels where there is a C compiler; without one they run as the ordinary Python files they are.

TRACEFERRY_KERNELS=0 compiles none.

The folders at the root are installed as one package: see PACKAGE_DIR.
"""

import io
import os
import re
import shutil
import sys
from itertools import accumulate
from pathlib import Path
from tokenize import generate_tokens

from Cython.Build import cythonize
from setuptools import Extension, find_packages, setup
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).parent
PACKAGE_DIR = {"traceferry": "converter", "traceferry.importers": "importers", "traceferry.exporters": "exporters"}
# Cython's own code for memory views, 20,000 lines of C, is compiled once and not in each kernel.
MEMORYVIEWS = "traceferry.kernels.memoryviews"
# What is compiled: copies of the kernels, by their installed names, with the text of what they share.
# TRACEFERRY_SANITIZE has a compiler's flags, so that what reads or writes outside an array ends the
# program: see `make sanitize`.
SANITIZERS = os.environ.get("TRACEFERRY_SANITIZE", "").split()
SANITIZE = bool(SANITIZERS)
BUILD = Path(os.environ.get("TRACEFERRY_BUILD", "build"))
SOURCES = BUILD / "kernels"
# The .pxd files under the names by which they are cimported; with what makes folders packages.
INCLUDE = BUILD / "include"
# Of every .pyx file. A sanitized build checks each index.
DIRECTIVES = {
    "language_level": 3, "boundscheck": SANITIZE, "initializedcheck": SANITIZE, "wraparound": False, "cdivision": True,
    "auto_pickle": False, "autotestdict": False,
}  # fmt: skip
# Functions that are declared inline are inlined, also those that the C compiler finds too long: loops over records call
# them.
INLINE = "-DCYTHON_INLINE=__inline__ __attribute__((always_inline))"
FLAGS = ["-O1", "-g", "-fno-omit-frame-pointer", *SANITIZERS] if SANITIZE else ["-O3", "-g0", INLINE]
CONSTANT = re.compile(
    r"^([A-Z][A-Z0-9_]*) = cython\.declare\(\s*"
    r'(cython\.\w+), (-?0x[0-9A-Fa-f]+|-?[0-9]+|sys\.byteorder == "little")\s*\)',
    re.MULTILINE,
)
# NAME, NAME, NAME = range(3), also in parentheses.
ENUMERATION = re.compile(r"^\(?\s*((?:[A-Z][A-Z0-9_]*,\s*)+[A-Z][A-Z0-9_]*),?\s*\)? = range\(\d+\)", re.MULTILINE)
C_FUNCTION = ["cfunc", "nogil", "exceptval(check=False)"]
DECORATORS = {"c_function": C_FUNCTION, "c_inline": ["cfunc", "inline", *C_FUNCTION[1:]]}
SHARED = re.compile(r"^from traceferry\.(kernels\.\w+|[\w.]+_inlined) import (?:\([^)]*\)|.*)\n", re.MULTILINE)


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


def path_of(module: str) -> Path:
    """ "traceferry.importers.xray.fdr_kernel" → "importers/xray/fdr_kernel.py" """
    package = max((name for name in PACKAGE_DIR if module.startswith(f"{name}.")), key=len)
    return ROOT.joinpath(PACKAGE_DIR[package], *module.removeprefix(f"{package}.").split(".")).with_suffix(".py")


def files(pattern: str) -> list[Path]:
    return sorted(path.relative_to(ROOT) for folder in PACKAGE_DIR.values() for path in (ROOT / folder).rglob(pattern))


def with_shared_text(text: str) -> str:
    """Cython inlines only within one file: what a kernel imports from traceferry.kernels, or from a module whose name
    ends with _inlined, is put in place of the import, once. Where nothing is compiled, it is an ordinary import."""
    done = {"kernels.functions"}  # what it names, with_decorators puts in

    def text_of(match: re.Match[str]) -> str:
        if match[1] in done:
            return ""
        done.add(match[1])
        return SHARED.sub(text_of, path_of(f"traceferry.{match[1]}").read_text(encoding="utf-8"))

    return SHARED.sub(text_of, text)


def with_decorators(text: str) -> str:
    """Those of Cython in place of the ones of traceferry.kernels.functions."""

    def decorators(match: re.Match[str]) -> str:
        return "".join(f"{match[1]}@cython.{decorator}\n" for decorator in DECORATORS[match[2]])

    return re.sub(rf"^( *)@({'|'.join(DECORATORS)})\n", decorators, text, flags=re.MULTILINE)


def with_constants(text: str) -> str:
    """Cython keeps a constant of a module in a variable, which the C compiler has to load each time. Here its value is
    put in its place, of the same type. What has more than 31 bits would become a Python object: it stays."""
    values = {name: (of, int(value, 0) if value[0] != "s" else sys.byteorder == "little")
              for name, of, value in CONSTANT.findall(text)}  # fmt: skip
    values |= {name: ("cython.int", nth) for names in ENUMERATION.findall(text)
               for nth, name in enumerate(re.findall(r"\w+", names))}  # fmt: skip
    found = {name: f"cython.cast({of}, {value:d})" for name, (of, value) in values.items() if abs(value) < 1 << 31}
    declared = {place for pattern in (CONSTANT, ENUMERATION) for match in pattern.finditer(text)
                for place in range(*match.span())}  # fmt: skip
    lines = [0, *accumulate(map(len, text.splitlines(keepends=True)))]
    parts, done, before = [], 0, ""
    for token in generate_tokens(io.StringIO(text).readline):
        begin = lines[token.start[0] - 1] + token.start[1]
        if token.string in found and before not in (".", "import") and begin not in declared:
            parts += [text[done:begin], found[token.string]]
            done = begin + len(token.string)
        before = token.string
    return "".join([*parts, text[done:]])


def with_checks(text: str) -> str:
    """Cython raises IndexError for an index that is outside, also in functions that promise to raise nothing."""
    text = re.sub(r"\b(boundscheck|initializedcheck|nonecheck)=False", r"\1=True", text)
    return text.replace("exceptval(check=False)", "exceptval(check=True)").replace(" noexcept", " except *")


def copy(path: Path) -> Path:
    """Written only if it changes, so that what did not change is not compiled again."""
    target = SOURCES.joinpath(*module_of(path).split(".")).with_suffix(path.suffix)
    for folder in list(target.parents)[: len(target.parts) - len(SOURCES.parts) - 1]:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "__init__.py").touch()
    text = with_constants(with_decorators(with_shared_text(path.read_text(encoding="utf-8"))))
    if SANITIZE:
        text = with_checks(text)
    if not target.exists() or target.read_text(encoding="utf-8") != text:
        target.write_text(text, encoding="utf-8")
    return target


class BuildKernels(build_ext):
    """Nothing is translated to C before something is built: metadata and sdist need no kernel."""

    def finalize_options(self) -> None:
        super().finalize_options()
        self.parallel = self.parallel or os.cpu_count()

    def build_extensions(self) -> None:
        if self.compiler.compiler_type == "unix":
            for extension in self.extensions:
                extension.extra_compile_args = FLAGS
                extension.extra_link_args = SANITIZERS
                extension.optional = not SANITIZE
        super().build_extensions()

    def translated_files(self) -> list[Extension]:
        """What is written in Cython's own language, which needs no changed text."""
        shutil.rmtree(INCLUDE, ignore_errors=True)
        for package, folder in PACKAGE_DIR.items():
            target = INCLUDE.joinpath(*package.split("."))
            shutil.copytree(ROOT / folder, target, ignore=all_but_declarations, dirs_exist_ok=True)
        return cythonize(
            [e for e in self.extensions if is_cython(e)],
            include_path=[str(INCLUDE)],
            build_dir=str(BUILD / "cython"),
            nthreads=self.parallel if sys.platform == "linux" else 0,
            shared_utility_qualified_name=MEMORYVIEWS,
            compiler_directives=DIRECTIVES,
        )

    def run(self) -> None:
        self.extensions.sort(key=is_cython)
        for path in files("*.pxd"):
            copy(path)
        made = cythonize(
            [Extension(e.name, [str(copy(Path(s))) for s in e.sources]) for e in self.extensions if not is_cython(e)],
            build_dir=str(BUILD / "cython"),
            nthreads=self.parallel if sys.platform == "linux" else 0,
            shared_utility_qualified_name=MEMORYVIEWS,
            compiler_directives={"auto_pickle": False},
        )
        made += self.translated_files()
        for extension, translated in zip(self.extensions, made, strict=True):
            extension.sources = translated.sources
        super().run()


def extensions() -> list[Extension]:
    if os.environ.get("TRACEFERRY_KERNELS") == "0":
        return []
    kernels = [Extension(module_of(path), [str(path)], optional=True) for path in files("*_kernel.py")]
    compiled = [Extension(module_of(path), [str(path)], optional=True) for path in files("*.pyx")]
    return [*kernels, *compiled, Extension(MEMORYVIEWS, [], optional=True)]


def is_cython(extension: Extension) -> bool:
    return any(source.endswith(".pyx") for source in extension.sources)


def all_but_declarations(folder: str, names: list[str]) -> list[str]:
    return [n for n in names if not n.endswith((".pxd", "__init__.py")) and not os.path.isdir(os.path.join(folder, n))]


if __name__ == "__main__":
    setup(
        packages=packages(),
        package_dir=PACKAGE_DIR,
        ext_modules=extensions(),
        cmdclass={"build_ext": BuildKernels},
        options={"build": {"build_base": str(BUILD)}},
    )
