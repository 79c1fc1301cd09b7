from typing import Any

from numpy.typing import NDArray

def cut_depths(above: NDArray[Any], first: int, kept: int, depth: NDArray[Any], outer: NDArray[Any]) -> None: ...
def callstacks(
    stacks: NDArray[Any],
    above: NDArray[Any],
    run: NDArray[Any],
    depth: NDArray[Any],
    outer: NDArray[Any],
    max_depth: int,
    inner: int,
    cut_iid: int,
    frame_iid: NDArray[Any],
    new_runs: NDArray[Any],
    first_iid: int,
    row: int,
    n_frames: int,
    out: bytearray,
) -> tuple[int, int, int]: ...
def plain_frames(
    names: NDArray[Any],
    paths: NDArray[Any],
    lines: NDArray[Any],
    kinds: NDArray[Any],
    mappings: NDArray[Any],
    addresses: NDArray[Any],
    iids: NDArray[Any],
    out: bytearray,
) -> int: ...
