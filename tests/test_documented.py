"""Every command of the documentation is typed here, in a folder that has what its page speaks of, or says why not."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest
from conftest import REPO
from documented import ROUTES, blocks_of, typed

PAGES = [REPO / "README.md", *sorted((REPO / "docs").rglob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(REPO)))
def test_every_command_is_typed_or_says_why_not(page: Path) -> None:
    name = str(page.relative_to(REPO))
    without = [block.commands for block in blocks_of(page) if not block.not_tried]
    assert not without or name in ROUTES, without
    assert without or name not in ROUTES


PARAMETERS = [
    pytest.param(page, marks=[pytest.mark.large] if route.large else [], id=page) for page, route in ROUTES.items()
]


@pytest.mark.parametrize("page", PARAMETERS)
def test_the_commands_of_a_page(page: str, tmp_path: Path) -> None:
    route = ROUTES[page]
    if os.name != "posix" or shutil.which("bash") is None:
        pytest.skip("the commands of the documentation are typed in bash")
    if route.missing():
        pytest.skip(f"the commands of the documentation need {', '.join(route.missing())}")
    done = typed(page, tmp_path / "folder")
    assert done.returncode == 0, done.stdout[-4000:]
    for text in route.shows:
        assert re.search(re.escape(text), done.stdout), (text, done.stdout[-4000:])
