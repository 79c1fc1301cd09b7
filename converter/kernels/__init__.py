"""What kernels share: reading bytes, hashing.

Cython inlines only within one file. So these modules are not compiled: where a kernel has a line
`from traceferry.kernels.X import ...`, setup.py compiles it with the text of X in place of that line.
"""
