from typing import Any

from numpy.typing import NDArray

class JsonError(Exception):
    message: str
    offset: int
    found: list[tuple[bytes, int, int]]
    def __init__(self, message: str, offset: int, found: list[tuple[bytes, int, int]]) -> None: ...

MEANINGS: dict[int, str]

def skip(data: memoryview | bytes, begin: int) -> tuple[int, int]: ...
def members(data: memoryview | bytes, begin: int) -> list[tuple[bytes, int, int]]: ...
def elements(data: memoryview | bytes, begin: int) -> list[tuple[bytes, int, int]]: ...
def without_columns(
    data: memoryview | bytes, begin: int, end: int, left_out: frozenset[bytes]
) -> tuple[bytes, list[tuple[bytes, bytes, NDArray[Any]]]]: ...
