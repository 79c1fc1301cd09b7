from typing import Any

from numpy.typing import NDArray

def calls(
    d: memoryview,
    buffers: NDArray[Any],
    keys: NDArray[Any],
    ids: NDArray[Any],
    frames: NDArray[Any],
    defined_at: NDArray[Any],
    defined_ts: NDArray[Any],
    defined: NDArray[Any],
    shift_ns: int,
    out_ts: NDArray[Any],
    out_key: NDArray[Any],
    out_frame: NDArray[Any],
    out_flags: NDArray[Any],
    items: NDArray[Any],
    s: NDArray[Any],
) -> int: ...
