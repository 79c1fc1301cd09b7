from typing import Self

class KeyTable:
    def __new__(cls, size: int) -> Self: ...

class ChainTree:
    def __new__(cls, size: int) -> Self: ...
