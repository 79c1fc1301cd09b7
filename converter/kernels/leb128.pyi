from typing_extensions import Buffer

CUT: int
ENDLESS: int

def leb(d: Buffer, p: int, end: int, signed: bool) -> tuple[int, int]: ...
