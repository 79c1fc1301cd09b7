"""Symbols: names, files, lines and inlined functions of addresses."""

from converter.symbols.binary import Binary, demangle
from converter.symbols.interface import Frames, Function, Inline, Symbols

__all__ = ["Binary", "Frames", "Function", "Inline", "Symbols", "demangle"]
