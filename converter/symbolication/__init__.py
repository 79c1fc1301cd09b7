"""Symbols: names, files, lines and inlined functions of addresses."""

from typing import TYPE_CHECKING, Any

from traceferry.symbolication.interface import Frames, Function, Inline, Symbols

if TYPE_CHECKING:
    from traceferry.symbolication.binary import Binary

__all__ = ["Binary", "Frames", "Function", "Inline", "Symbols"]


def __getattr__(name: str) -> Any:
    # pyelftools takes longer to import than a small recording to convert, which may need no binary.
    if name == "Binary":
        from traceferry.symbolication.binary import Binary

        return Binary
    raise AttributeError(f"module 'traceferry.symbolication' has no attribute {name!r}")
