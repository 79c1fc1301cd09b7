"""The number that perf.data begins with. Every file is asked for it: all else is imported when it is needed."""

MAGIC = b"PERFILE2"
MAGIC_BIG = MAGIC[::-1]
