from typing import Any

from numpy.typing import NDArray

def count(text: NDArray[Any], counts: NDArray[Any]) -> None: ...
def scan(
    text: NDArray[Any],
    files: NDArray[Any],
    origins: NDArray[Any],
    functions: NDArray[Any],
    publics: NDArray[Any],
    lines: NDArray[Any],
    inlines: NDArray[Any],
    ranges: NDArray[Any],
    damaged: NDArray[Any],
    fields: NDArray[Any],
    counts: NDArray[Any],
) -> None: ...
