"""The constants of call_flags.pxd, for Python."""
