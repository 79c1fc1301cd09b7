from typing import Any

from numpy.typing import NDArray

from traceferry.symbols.gsym.layout import Layout

DAMAGES: tuple[str, ...]

def find(
    d: memoryview,
    layout: Layout,
    addresses: NDArray[Any],
    infos: NDArray[Any],
    starts: NDArray[Any],
    damage: NDArray[Any],
) -> None: ...
def parts(
    d: memoryview,
    layout: Layout,
    at: int,
    spent: NDArray[Any],
    out: NDArray[Any],
) -> int: ...
def rows(
    d: memoryview,
    layout: Layout,
    at: int,
    end: int,
    start: int,
    addresses: NDArray[Any],
    files: NDArray[Any],
    lines: NDArray[Any],
) -> int: ...
def nodes(
    d: memoryview,
    layout: Layout,
    at: int,
    end: int,
    start: int,
    level: NDArray[Any],
    name: NDArray[Any],
    file: NDArray[Any],
    line: NDArray[Any],
    first_range: NDArray[Any],
    range_start: NDArray[Any],
    range_end: NDArray[Any],
) -> int: ...
def count(
    d: memoryview,
    layout: Layout,
    addresses: NDArray[Any],
    infos: NDArray[Any],
    starts: NDArray[Any],
    sizes: NDArray[Any],
    names: NDArray[Any],
    files: NDArray[Any],
    lines: NDArray[Any],
    frames: NDArray[Any],
    inside: NDArray[Any],
    damage: NDArray[Any],
) -> None: ...
def fill(
    d: memoryview,
    layout: Layout,
    addresses: NDArray[Any],
    infos: NDArray[Any],
    starts: NDArray[Any],
    names: NDArray[Any],
    files: NDArray[Any],
    lines: NDArray[Any],
    frames: NDArray[Any],
    inside: NDArray[Any],
    first: NDArray[Any],
    outermost: NDArray[Any],
    name: NDArray[Any],
    source: NDArray[Any],
    line: NDArray[Any],
) -> None: ...
