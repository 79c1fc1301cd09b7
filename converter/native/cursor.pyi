from typing import Self, final

from typing_extensions import Buffer

class Position: ...

@final
class Cursor(Position):
    def __new__(cls, data: Buffer, big: bool) -> Self: ...
