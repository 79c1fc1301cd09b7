"""Symbols: names, files, lines and inlined functions of addresses."""

from converter.symbols.binary import Binary, Frame, Symbol, demangle
from converter.symbols.interface import Frames, Function, Inline, Symbols

__all__ = ["Binary", "Frame", "Frames", "Function", "Inline", "Symbol", "Symbols", "demangle"]
