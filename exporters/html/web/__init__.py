"""The page's markup, style and scripts. `handover.js` is also in the page that `view` serves."""

from importlib.resources import files


def text(name: str) -> str:
    """Returns the content of a file of this folder."""
    return files(__name__).joinpath(name).read_text(encoding="utf-8")
