"""The number that Mono's logs begin with. Every file is asked for it: all else is imported when it is needed."""

MAGIC = b"\x01ZPM"  # 0x4D505A01
