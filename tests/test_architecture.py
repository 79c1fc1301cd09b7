"""Who may import whom."""

import ast
import re
import subprocess
import sys
import tomllib
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest
from conftest import PACKAGES, REPO, module_of

MODULES = sorted(path for folder in PACKAGES.values() for path in (REPO / folder).rglob("*.py"))
COMPILED = sorted(path for folder in PACKAGES.values() for path in (REPO / folder).rglob("*.p[yx][xd]"))
IDS = [str(path.relative_to(REPO)) for path in MODULES]
# The registry names the formats, so that nothing else has to.
REGISTRY = "converter/registry.py"


def formats(folder: str, function: str) -> set[str]:
    """The names of the modules in a folder that have the function that makes them a format."""
    named = {path.stem for path in (REPO / folder).iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    return {name for name in named if hasattr(import_module(f"traceferry.{folder}.{name}"), function)}


FORMATS = {"importers": formats("importers", "sniff"), "exporters": formats("exporters", "write")}
# Where else in converter/ a word is one of the formats': a viewer of that name, the option of a command, commands that
# advice names, names of files; and a script of a page that `view` serves, too.
NAMED = {
    # Which functions are Mono's own, and what they are called where perf has recorded them.
    "converter/analysis/totals/own_code.py": {"mono"},
    "converter/symbolication/jit_names/__init__.py": {"mono"},
    "converter/symbolication/jit_names/mono.py": {"mono"},
    # trace_processor reads Perfetto traces, and its package has this name.
    "converter/apps/cli/options.py": {"firefox", "perfetto"},
    "converter/apps/cli/query.py": {"perfetto"},
    "converter/trace_processor/engine.py": {"perfetto"},
    "converter/trace_processor/file_access.py": {"perfetto"},
    "converter/trace_processor/protocol.py": {"perfetto"},
    "converter/trace_processor/session.py": {"perfetto"},
    # The recorder's command has this name, too: advice tells what to type.
    "converter/analysis/verdict/case.py": {"perf"},
    "converter/analysis/verdict/findings.py": {"perf"},
    "converter/analysis/verdict/itself.py": {"perf"},
    "converter/analysis/verdict/stacks.py": {"perf"},
    "converter/analysis/verdict/threads.py": {"perf"},
    "converter/common/recorder.py": {"perf"},
    "converter/analysis/verdict/runtimes.py": {"jitdump", "mono", "perf"},
    "converter/apps/cli/__init__.py": {"firefox", "perf", "perfetto"},
    "converter/apps/cli/aggregate.py": {"mono"},
    "converter/apps/cli/convert.py": {"folded", "gecko", "perfetto", "pprof"},
    "converter/apps/cli/view.py": {"firefox", "perfetto"},
    "converter/apps/fleet/inputs.py": {"perf"},
    "converter/files/known_files.py": {"perf", "collapsed", "speedscope", "folded"},
    "converter/files/known_texts.py": {"perf", "collapsed", "speedscope", "folded", "gecko", "pprof", "strace"},
    "converter/model/categories.py": {"hermes", "mono"},
    "converter/model/schema.py": {"firefox"},
    "converter/common/issue_kinds.py": {"perf", "perfetto", "strace", "xray"},
    "converter/apps/view/conversion.py": {"firefox", "perfetto"},
    "converter/apps/view/page.py": {"html"},
    "converter/apps/view/viewers.py": {"firefox", "perfetto"},
}


def test_the_formats_are_found() -> None:
    assert {"jitdump", "mono", "perf", "xray"} <= FORMATS["importers"]
    assert {"firefox", "gecko", "html", "perfetto"} <= FORMATS["exporters"]


def own_imports(path: Path) -> set[str]:
    """The project's modules that a file imports, also inside functions and for types only."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports name the whole package"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {name for name in found if name.split(".")[0] in ("traceferry", *PACKAGES.values())}


@cache
def layers() -> tuple[frozenset[str], ...]:
    """The layers of the contract in pyproject.toml, from the top: which modules of traceferry stand in each."""
    contracts = tomllib.loads((REPO / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    return tuple(frozenset(layer.split(" | ")) for layer in contracts[0]["layers"])


def height_of(module: str) -> int:
    """traceferry.native.leb128 → 0, the lowest layer"""
    part = module.split(".")[1]
    return next(height for height, layer in enumerate(reversed(layers())) if part in layer)


@pytest.mark.parametrize("path", COMPILED, ids=lambda path: str(path.relative_to(REPO)))
def test_compiled_modules_keep_the_layers(path: Path) -> None:
    """import-linter sees what .py files import; this is for the others."""
    used = re.findall(r"^\s*(?:from|c?import) (traceferry[\w.]*)", path.read_text(), re.MULTILINE)
    mine = module_of(path)
    assert [u for u in used if height_of(u) > height_of(mine)] == []
    others = [u for u in used if height_of(u) == height_of(mine) and u.split(".")[1] != mine.split(".")[1]]
    formats = [u for u in used if u.split(".")[1] == "importers" and u.split(".")[:3] != mine.split(".")[:3]]
    assert others + formats == []


@cache
def known_modules() -> frozenset[str]:
    return frozenset(module_of(module) for module in (*MODULES, *COMPILED))


def modules_imported_by(path: Path) -> set[str]:
    """Also inside functions and for types only; a package's own text is a module, too."""
    found: set[str] = set()
    for name in own_imports(path):
        while name and name not in known_modules():
            name = name.rpartition(".")[0]
        found.add(name)
    return found - {module_of(path), "traceferry", "traceferry.importers", "traceferry.exporters"}


def test_no_imports_form_a_circle() -> None:
    imports = {module_of(path): modules_imported_by(path) for path in MODULES}
    while leaves := {module for module, others in imports.items() if not others & imports.keys()}:
        imports = {module: others for module, others in imports.items() if module not in leaves}
    assert imports == {}


@pytest.mark.parametrize("path", MODULES, ids=IDS)
def test_no_module_is_long(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 600


def words_of(path: Path) -> list[str]:
    """Identifiers and strings; comments and docstrings may give examples."""
    tree = ast.parse(path.read_text())
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    bodies = [node.body for node in ast.walk(tree) if isinstance(node, documented)]
    docs = {id(body[0].value) for body in bodies if body and isinstance(body[0], ast.Expr)}
    words: list[str] = []
    for node in ast.walk(tree):
        for field in ("id", "attr", "name", "arg", "module"):
            value = getattr(node, field, None)
            words += [value] if isinstance(value, str) else []
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            words.append(node.value)
    return words


def test_converter_names_no_format() -> None:
    names = FORMATS["importers"] | FORMATS["exporters"]
    found = {
        str(path.relative_to(REPO)): {part for word in words_of(path) for part in parts_of(word)} & names
        for path in MODULES
        if path.relative_to(REPO).parts[0] == "converter"
    }
    assert found.pop(REGISTRY) == names
    assert {path: named for path, named in found.items() if named} == NAMED


def parts_of(word: str) -> list[str]:
    """_firefox_query → firefox, query. `html` alone is no format, but a kind of file, and a module of Python's."""
    parts = re.findall("[a-z0-9]+", word.lower())
    return parts if "exporters.html" in word else [part for part in parts if part != "html"]


def test_the_registry_lists_every_format() -> None:
    from traceferry.registry import EXPORTERS, IMPORTERS

    assert {importer.name for importer in IMPORTERS} == FORMATS["importers"]
    assert {exporter.name for exporter in EXPORTERS} == FORMATS["exporters"]


def test_a_conversion_imports_no_test_and_no_viewer_package() -> None:
    """What only tests need must not be needed to convert."""
    code = (
        "import sys; from traceferry.apps import cli; cli.main(['dump', '--model']); import traceferry.api; "
        "import traceferry.exporters.perfetto, traceferry.exporters.firefox, traceferry.exporters.gecko; "
        "import traceferry.importers.xray.map; "
        "print(sorted({'perfetto', 'google', 'hypothesis', 'pytest'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=REPO)
    assert done.stdout.splitlines()[-1] == "[]"
