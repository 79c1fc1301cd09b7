"""Compiled code that several modules share. What is inlined into their loops is in .pxd files, to be cimported."""
