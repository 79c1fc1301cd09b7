from typing import Any

from numpy.typing import NDArray

def sizes(
    begins: NDArray[Any],
    ends: NDArray[Any],
    code_sizes: NDArray[Any],
    bases: NDArray[Any],
    offsets: NDArray[Any],
    files: NDArray[Any],
    lines: NDArray[Any],
    state: NDArray[Any],
    key_base: NDArray[Any],
    key_file: NDArray[Any],
    key_line: NDArray[Any],
    seen_in: NDArray[Any],
    seen_row: NDArray[Any],
    slots: NDArray[Any],
    out_record: NDArray[Any],
    out_key: NDArray[Any],
    out_bytes: NDArray[Any],
) -> None: ...
