"""Writes the scripts of each page as one, for a linter: that they have all names that they use is seen only there. And
all scripts as one: what is not used in that is used nowhere.

page_scripts.py FOLDER
"""

import sys
from pathlib import Path

from traceferry.apps.view import page as view
from traceferry.exporters.html import comparison, page

folder = Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
(folder / "recording.js").write_text(page.script_of(page.SCRIPTS), encoding="utf-8")
(folder / "comparison.js").write_text(page.script_of(comparison.SCRIPTS), encoding="utf-8")
(folder / "all.js").write_text(
    page.script_of(tuple(dict.fromkeys(page.SCRIPTS + comparison.SCRIPTS))), encoding="utf-8"
)
(folder / "view.js").write_text(view.script(), encoding="utf-8")
