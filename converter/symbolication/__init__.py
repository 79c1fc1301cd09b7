"""Symbols: names, files, lines and inlined functions of addresses."""
