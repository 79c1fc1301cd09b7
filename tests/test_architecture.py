"""Who may import whom (design.md, "Names and folders")."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import REPO

FOLDERS = ("converter", "importers", "exporters")
MODULES = sorted(path for folder in FOLDERS for path in (REPO / folder).rglob("*.py"))
IDS = [str(path.relative_to(REPO)) for path in MODULES]
# The registry names the formats, so that nothing else has to.
REGISTRY = "converter/registry.py"
FORMATS = ("xray", "jitdump", "perf.data", "importers.perf")


def own_imports(path: Path) -> set[str]:
    """The project's modules that a file imports, also inside functions and for types only."""
    package = ".".join(path.relative_to(REPO).parent.parts)
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                up = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*up, *([base] if base else [])])
            found |= {f"{base}.{alias.name}" for alias in node.names}
    return {name for name in found if name.split(".")[0] in FOLDERS}


def format_of(name: str) -> str:
    """importers.xray.layout → importers.xray"""
    return ".".join(name.split(".")[:2])


@pytest.mark.parametrize("path", MODULES, ids=IDS)
def test_arrows(path: Path) -> None:
    """Importers and exporters import from converter and their own folder; converter from neither."""
    folder = path.relative_to(REPO).parts[0]
    allowed = {"converter"} if folder == "converter" else {"converter", folder}
    assert {name.split(".")[0] for name in own_imports(path)} <= allowed


@pytest.mark.parametrize("path", [p for p in MODULES if "importers" in p.relative_to(REPO).parts])
def test_importers_do_not_know_each_other(path: Path) -> None:
    parts = path.relative_to(REPO).with_suffix("").parts
    mine = ".".join(parts[:2])
    assert {format_of(n) for n in own_imports(path) if n.startswith("importers.")} <= {mine}


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
    from converter.registry import EXPORTERS, IMPORTERS

    importers = {p.stem if p.is_file() else p.name for p in (REPO / "importers").iterdir() if is_format(p)}
    assert {importer.name for importer in IMPORTERS} == importers
    assert {exporter.name for exporter in EXPORTERS} <= {p.stem for p in (REPO / "exporters").glob("*.py")}


def is_format(path: Path) -> bool:
    return not path.name.startswith(("_", ".")) and (path.suffix == ".py" or (path / "__init__.py").exists())


def test_a_conversion_imports_no_test_and_no_viewer_package() -> None:
    """What only tests need must not be needed to convert."""
    code = (
        "import sys; from converter import cli; cli.main(['formats']); import converter.api, exporters.perfetto, "
        "exporters.firefox, exporters.gecko, importers.xray.map; "
        "print(sorted({'perfetto', 'google', 'hypothesis', 'pytest'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=REPO)
    assert done.stdout.splitlines()[-1] == "[]"
