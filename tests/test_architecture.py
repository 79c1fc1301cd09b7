"""Who may import whom."""

import ast
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from conftest import PACKAGES, REPO, module_of

MODULES = sorted(path for folder in PACKAGES.values() for path in (REPO / folder).rglob("*.py"))
IDS = [str(path.relative_to(REPO)) for path in MODULES]
# The registry names the formats, so that nothing else has to.
REGISTRY = "converter/registry.py"


def formats(folder: str, function: str) -> set[str]:
    """The names of the modules in a folder that have the function that makes them a format."""
    named = {path.stem for path in (REPO / folder).iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    return {name for name in named if hasattr(import_module(f"traceferry.{folder}.{name}"), function)}


FORMATS = {"importers": formats("importers", "sniff"), "exporters": formats("exporters", "write")}
# What exporters share, and whose markers and categories another one writes.
SHARED = {"traceferry.exporters.json", "traceferry.exporters.counters"}
BORROWED = {"traceferry.exporters.gecko": {"traceferry.exporters.firefox"}}
# Where else in converter/ a word is one of the formats': a viewer of that name, the option of a command, commands that
# advice names, names of files; and a script of a page that `view` serves, too.
NAMED = {
    "converter/apps/cli/__init__.py": {"firefox", "perfetto"},
    "converter/apps/cli/aggregate.py": {"mono"},
    "converter/apps/cli/convert.py": {"gecko", "perfetto"},
    "converter/apps/cli/view.py": {"firefox", "perfetto"},
    "converter/apps/fleet/inputs.py": {"perf"},
    "converter/model/schema.py": {"firefox"},
    "converter/common/report.py": {"firefox", "perf", "perfetto"},
    "converter/apps/view/conversion.py": {"firefox", "perfetto"},
    "converter/apps/view/page.py": {"html"},
    "converter/apps/view/site.py": {"firefox", "perfetto"},
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


def folder_of(name: str) -> str:
    """traceferry.importers.xray.layout → importers; traceferry.model → converter"""
    package = max((p for p in PACKAGES if f"{name}.".startswith(f"{p}.")), key=len, default="")
    return PACKAGES.get(package, "not by its installed name")


def format_of(name: str) -> str:
    """traceferry.importers.xray.layout → traceferry.importers.xray"""
    return ".".join(name.split(".")[:3])


@pytest.mark.parametrize("path", MODULES, ids=IDS)
def test_arrows(path: Path) -> None:
    """Importers and exporters import from converter and their own folder; converter from neither."""
    folder = path.relative_to(REPO).parts[0]
    assert {folder_of(name) for name in own_imports(path)} <= {"converter", folder}


@pytest.mark.parametrize("path", [p for p in MODULES if p.relative_to(REPO).parts[0] in FORMATS])
def test_formats_do_not_know_each_other(path: Path) -> None:
    folder, mine = path.relative_to(REPO).parts[0], format_of(module_of(path))
    others = {format_of(n) for n in own_imports(path) if folder_of(n) == folder}
    assert others <= {mine} | BORROWED.get(mine, set()) | (SHARED if folder == "exporters" else set())


def modules_imported_by(path: Path) -> set[str]:
    """Also inside functions and for types only; a package's own text is a module, too."""
    known = {module_of(module) for module in MODULES}
    found: set[str] = set()
    for name in own_imports(path):
        while name and name not in known:
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
    assert found.pop(REGISTRY) == names - {"html"}
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
        "import sys; from traceferry import cli; cli.main(['formats']); import traceferry.api; "
        "import traceferry.exporters.perfetto, traceferry.exporters.firefox, traceferry.exporters.gecko; "
        "import traceferry.importers.xray.map; "
        "print(sorted({'perfetto', 'google', 'hypothesis', 'pytest'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=REPO)
    assert done.stdout.splitlines()[-1] == "[]"
