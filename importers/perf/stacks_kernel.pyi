from typing import Any

from numpy.typing import NDArray

N_CACHED: int

def collect(
    chain: NDArray[Any],
    start: NDArray[Any],
    length: NDArray[Any],
    space: NDArray[Any],
    ip: NDArray[Any],
    ip_space: NDArray[Any],
    ts: NDArray[Any],
    state: NDArray[Any],
    spaces: NDArray[Any],
    addresses: NDArray[Any],
    first_ts: NDArray[Any],
    last_ts: NDArray[Any],
    slots: NDArray[Any],
) -> None: ...
def compose(
    chain: NDArray[Any],
    start: NDArray[Any],
    length: NDArray[Any],
    space: NDArray[Any],
    ip: NDArray[Any],
    ip_space: NDArray[Any],
    ts: NDArray[Any],
    spaces: NDArray[Any],
    addresses: NDArray[Any],
    key_slots: NDArray[Any],
    first_version: NDArray[Any],
    version_from: NDArray[Any],
    first_frame: NDArray[Any],
    frames: NDArray[Any],
    used: NDArray[Any],
    max_frames: int,
    state: NDArray[Any],
    path: NDArray[Any],
    known: NDArray[Any],
    prefix: NDArray[Any],
    frame: NDArray[Any],
    slots: NDArray[Any],
    out_stack: NDArray[Any],
) -> None: ...
