from typing import Any

from numpy.typing import NDArray

LATEST_SHAPE: tuple[int, int]
WORDS_SHAPE: tuple[int, int]
PATH_SHAPE: tuple[int, int]

def collect(
    chain: NDArray[Any],
    start: NDArray[Any],
    length: NDArray[Any],
    space: NDArray[Any],
    ip: NDArray[Any],
    ip_space: NDArray[Any],
    thread: NDArray[Any],
    ts: NDArray[Any],
    state: NDArray[Any],
    latest: NDArray[Any],
    words: NDArray[Any],
    spaces: NDArray[Any],
    addresses: NDArray[Any],
    first_ts: NDArray[Any],
    last_ts: NDArray[Any],
    slots: NDArray[Any],
    n_shared: NDArray[Any],
    n_own: NDArray[Any],
    own: NDArray[Any],
) -> None: ...
def compose(
    thread: NDArray[Any],
    ts: NDArray[Any],
    n_shared: NDArray[Any],
    n_own: NDArray[Any],
    own: NDArray[Any],
    single: NDArray[Any],
    first_version: NDArray[Any],
    version_from: NDArray[Any],
    first_frame: NDArray[Any],
    frames: NDArray[Any],
    is_unknown: NDArray[Any],
    is_late: NDArray[Any],
    max_frames: int,
    state: NDArray[Any],
    path: NDArray[Any],
    until: NDArray[Any],
    n_composed: NDArray[Any],
    prefix: NDArray[Any],
    frame: NDArray[Any],
    slots: NDArray[Any],
    out_stack: NDArray[Any],
) -> None: ...
