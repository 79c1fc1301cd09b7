"""Makes one site of docs/ and of what stands beside it: the documents at the root, and files that pages link to."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
LINK = re.compile(r"(?<=\]\()(?!https?:|mailto:|#)([^)#\s]+)")


def place_of(target: str) -> str:
    """Returns where the site has a file of the repository, by its path there."""
    inside = target.removeprefix("docs/")
    return "index.md" if target == "README.md" else inside


def links_of(source: str, text: str) -> list[str]:
    """Returns the paths in the repository to which a page leads. source: its own."""
    return [posixpath.normpath(posixpath.join(posixpath.dirname(source), to)) for to in LINK.findall(text)]


def source_of(place: str) -> str:
    """Returns the path in the repository of a page of the site."""
    return f"docs/{place}" if (ROOT / "docs" / place).exists() else place


def on_files(files: Files, config: MkDocsConfig) -> Files:
    seen = {file.src_uri for file in files}
    waiting = [f"docs/{uri}" for uri in seen if uri.endswith(".md")]
    while waiting:
        source = waiting.pop()
        for target in links_of(source, (ROOT / source).read_text("utf-8")):
            place = place_of(target)
            if place in seen or not (ROOT / target).is_file():
                continue
            seen.add(place)
            files.append(File.generated(config, place, abs_src_path=str(ROOT / target)))
            if place.endswith(".md"):
                waiting.append(target)
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links as the site needs them: those in the repository lead out of docs/, or into it."""
    source = source_of(page.file.src_uri)

    def moved(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), match[1]))
        return posixpath.relpath(place_of(target), posixpath.dirname(page.file.src_uri) or ".")

    return LINK.sub(moved, markdown)
