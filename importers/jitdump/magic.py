"""The number that a jitdump begins with. Every file is asked for it: all else is imported when it is needed."""

MAGIC = 0x4A695444  # "JiTD"
# In either byte order.
BEGINS = (MAGIC.to_bytes(4, "little"), MAGIC.to_bytes(4, "big"))
