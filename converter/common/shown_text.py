"""Names from a recording, or of files, as one line of text on a terminal or in a log.

What others wrote must not become commands of the terminal, end the line and begin one of its own, or turn the order of
what stands beside it. JSON and converted files have names as they are.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence

from traceferry.common.patterns import compiled_later

# Control characters (C0, DEL, C1), line and paragraph separators; what turns the direction of text (Unicode Standard
# Annex 9) or is not seen (soft hyphen, zero widths, tags); surrogates, which stand for bytes that are not UTF-8.
_UNSHOWABLE = compiled_later(
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f]"
)
MARKS = ("Mn", "Me")
_C1 = compiled_later("[\x80-\x9f\u00ad]")
_SURROGATE = compiled_later("[\ud800-\udfff]")
_SHORT = {"\t": r"\t", "\n": r"\n", "\r": r"\r"}
# What `shlex.quote` puts between words without quotes: a quotation mark, or what has none.
_QUOTED = compiled_later(r"\"'\"|'[^']*'")
# Python's names of files have the bytes 0x80 to 0xff that are not UTF-8 as these (PEP 383).
_BYTES = range(0xDC80, 0xDD00)


def shown(text: str) -> str:
    r"""Returns the text with escapes in place of what a reader could not see as it is: \n, \x1b, \u202e. A byte of a
    file's name that is not UTF-8 is \xff. Backslashes stay as they are: this is for eyes, not to be read back."""
    return _UNSHOWABLE.sub(_escape, text)


def typed(command: str) -> str:
    r"""Returns a command of a shell, as `shlex.join` writes it, in one line that can be seen and typed: words with
    characters that a reader could not see are in $'...', with \n, \x1b, \u202e for these. bash, zsh, ksh and busybox
    read that; the word is the same."""
    return _QUOTED.sub(_with_escapes, command) if _UNSHOWABLE.search(command) else command


def encodable(text: str) -> str:
    r"""Returns the text with escapes for what UTF-8, and so JSON and Parquet, cannot hold: surrogates, which stand for
    the bytes of file names that are not UTF-8. A file is opened by its name as it was, never by this."""
    return text if text.isascii() else _SURROGATE.sub(_escape, text)


def without_unshowable(text: str, escape: Callable[[str], str]) -> str:
    """Returns the text with what `escape` makes of each character that a reader could not see as it is."""
    return _UNSHOWABLE.sub(lambda found: escape(found[0]), text)


def width(text: str) -> int:
    """Returns how many columns of a terminal the text takes: East Asian wide characters two, marks on others none
    (Unicode Standard Annex 11)."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.category(c) in MARKS else 1 + (unicodedata.east_asian_width(c) in "WF") for c in text)


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Returns the lines of a table. The last column, a name, is the only one that is not flush right."""
    widths = [max(map(width, column)) for column in zip(*rows, strict=True)][:-1]
    lines = [[*(" " * (n - width(cell)) + cell for cell, n in zip(row, widths, strict=False)), row[-1]] for row in rows]
    return [f"  {'  '.join(line)}".rstrip() for line in lines]


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code in _BYTES:
        code -= 0xDC00
    if found[0] in _SHORT:
        return _SHORT[found[0]]
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _with_escapes(found: re.Match[str]) -> str:
    if not _UNSHOWABLE.search(found[0]):
        return found[0]
    # In $'...', \x is a byte: what UTF-8 writes as two has a number of four digits.
    inside = _C1.sub(lambda one: f"\\u{ord(one[0]):04x}", found[0].replace("\\", "\\\\"))
    return f"${shown(inside)}"
