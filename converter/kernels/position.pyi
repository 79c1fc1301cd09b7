from typing_extensions import Buffer

class Position:
    data: Buffer
    at: int
    end: int
    damage: int
    def leb(self, signed: bool) -> int: ...
