"""Who may import whom."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import PACKAGES, REPO, module_of

MODULES = sorted(path for folder in PACKAGES.values() for path in (REPO / folder).rglob("*.py"))
IDS = [str(path.relative_to(REPO)) for path in MODULES]
# The registry names the formats, so that nothing else has to.
REGISTRY = "converter/registry.py"
FORMATS = ("xray", "jitdump", "perf.data", "importers.perf")


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


@pytest.mark.parametrize("path", [p for p in MODULES if "importers" in p.relative_to(REPO).parts])
def test_importers_do_not_know_each_other(path: Path) -> None:
    others = {format_of(n) for n in own_imports(path) if folder_of(n) == "importers"}
    assert others <= {format_of(module_of(path))}


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


@pytest.mark.parametrize("path", [p for p in MODULES if p.relative_to(REPO).parts[0] == "converter"])
def test_converter_names_no_format(path: Path) -> None:
    if str(path.relative_to(REPO)) != REGISTRY:
        assert [word for word in words_of(path) if any(name in word.lower() for name in FORMATS)] == []


def test_the_registry_lists_every_format() -> None:
    from traceferry.registry import EXPORTERS, IMPORTERS

    importers = {p.stem if p.is_file() else p.name for p in (REPO / "importers").iterdir() if is_format(p)}
    assert {importer.name for importer in IMPORTERS} == importers
    assert {exporter.name for exporter in EXPORTERS} <= {p.stem for p in (REPO / "exporters").iterdir() if is_format(p)}


def is_format(path: Path) -> bool:
    return not path.name.startswith(("_", ".")) and (path.suffix == ".py" or (path / "__init__.py").exists())


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
