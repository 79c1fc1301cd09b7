"""Symbols: names, files, lines and inlined functions of addresses."""

from traceferry.symbols.binary import Binary, demangle
from traceferry.symbols.interface import Frames, Function, Inline, Symbols

__all__ = ["Binary", "Frames", "Function", "Inline", "Symbols", "demangle"]
