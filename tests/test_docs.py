"""The documents tell the truth of today."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import pytest

import traceferry
from traceferry.common.issue_kinds import KINDS
from traceferry.registry import EXPORTERS

ROOT = Path(__file__).parents[1]
FORMATS = (ROOT / "FORMATS.md").read_text()
README = (ROOT / "README.md").read_text()
READS_AND_WRITES = (ROOT / "docs" / "inputs-outputs.md").read_text()


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_issue_is_documented_as_declared(kind: str) -> None:
    assert f"| `{kind}` | {KINDS[kind].severity} | {KINDS[kind].title} |" in FORMATS


def test_no_kind_is_documented_that_is_not_declared() -> None:
    rows = [line.split("`")[1] for line in FORMATS.split("## The report")[1].splitlines() if line.startswith("| `")]
    assert rows == list(KINDS)


@pytest.mark.parametrize("suffix", [suffix for exporter in EXPORTERS for suffix in exporter.suffixes])
def test_every_suffix_is_documented(suffix: str) -> None:
    assert f"`{suffix}`" in READS_AND_WRITES


def test_the_readme_is_a_first_screen() -> None:
    assert len(README.encode()) <= 8000
    assert re.search("^## .*mlpd", README, re.M)


def test_the_size_that_the_readme_names(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    from traceferry.apps.cli import main

    command, printed = re.search(r"`traceferry (symbols\s[^`]*)` prints `([^`]*)`", README).groups()
    source, option, output = command.split()[1:]
    assert main(["symbols", str(ROOT / source), option, str(tmp_path / output)]) == 0
    assert printed in "".join(capfd.readouterr())


def test_nothing_refers_to_what_a_clone_has_not() -> None:
    absent = re.compile(r"\bdesign\.md|\bspecs/|\bissue #?\d")
    folders = ("converter", "importers", "exporters", "tests", "benchmarks", "fuzz")
    paths = [path for folder in folders for path in (ROOT / folder).rglob("*.py") if "node_modules" not in path.parts]
    assert [str(p) for p in paths if p != Path(__file__) and absent.search(p.read_text(encoding="utf-8"))] == []


# What no docstring begins with: whoever reads its first words knows what is returned or done.
NO_BEGINNING = re.compile(
    "(as|at|before|beside|between|by|for|from|how|in|into|of|on|that|to|what|when|where|which|whose|with|without)\\b",
    re.I,
)


@pytest.mark.parametrize("folder", ["converter", "importers", "exporters"])
def test_docstrings_begin_with_what_is_returned_or_done(folder: str) -> None:
    documented = (ast.ClassDef, ast.FunctionDef)
    begun = [
        f"{path.relative_to(ROOT)}: {text.splitlines()[0]}"
        for path in (ROOT / folder).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, documented) and (text := ast.get_docstring(node) or "") and NO_BEGINNING.match(text)
    ]
    assert begun == []


@pytest.mark.parametrize("name", sorted({*traceferry.__all__} - {"__version__"}))
def test_what_is_public_is_documented(name: str) -> None:
    """With the sections that documentation tools render: all parameters, in their order."""
    assert name in dir(traceferry)
    public = getattr(traceferry, name)
    assert public.__doc__
    sections = dict(
        re.findall(r"^([A-Z]\w+)\n-+\n(.*?)(?=^[A-Z]\w+\n-+\n|\Z)", inspect.cleandoc(public.__doc__), re.M | re.S)
    )
    documented = re.findall(r"^(\w+) : \S", sections.get("Parameters", ""), re.M)
    made_elsewhere = (traceferry.TraceferryError, traceferry.Trace, traceferry.LoadedTrace)
    takes = [] if public in made_elsewhere else [*inspect.signature(public).parameters]
    assert documented == takes
    if inspect.isfunction(public) and inspect.signature(public).return_annotation != "None":
        assert {"Returns", "Raises"} <= sections.keys()


# ---------------------------------------------------------------- links

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
FENCED = re.compile(r"^```.*?^```$|^ {4}[^\n]*$|`[^`\n]*`", re.M | re.S)


def anchors_of(page: Path) -> set[str]:
    """The anchors that GitHub gives the headings of a page."""
    found: dict[str, int] = {}
    for heading in re.findall(
        r"^#+ (.*)$", re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.M | re.S), re.M
    ):
        text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()
        slug = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
        n = found.setdefault(slug, 0)
        found[slug] += 1
        if n:
            found[f"{slug}-{n}"] = 1
    return set(found)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    text = FENCED.sub("", page.read_text("utf-8"))
    for target in [*re.findall(r"\]\(([^)\s]+)\)", text), *re.findall(r' (?:src|srcset)="([^"]+)"', text)]:
        if re.match("https?:", target):
            continue
        path, _, anchor = target.partition("#")
        to = (page.parent / path).resolve() if path else page
        assert to.is_file(), target
        if anchor:
            assert anchor in anchors_of(to), target


def test_every_page_of_the_documentation_is_reached_from_its_first() -> None:
    reached, pages = set(), [ROOT / "docs" / "index.md"]
    while pages:
        page = pages.pop()
        if page in reached or not page.is_file() or page.suffix != ".md":
            continue
        reached.add(page)
        pages += [(page.parent / to).resolve() for to in re.findall(r"\]\(([^)#\s]+)", page.read_text("utf-8"))]
    assert set(PAGES) - reached <= {ROOT / "README.md"}
