"""Functions, lines and inlined calls from the tables that Go's runtime reads."""
