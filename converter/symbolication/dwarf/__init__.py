"""Functions, lines and inlined calls from DWARF 2 to 5."""
