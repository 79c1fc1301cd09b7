"""Servers that are named in advice, and asked only where a user names them."""

DEBUGINFOD = "https://debuginfod.elfutils.org"  # asks those of most distributions
