from typing import Any

from numpy.typing import NDArray

def add_to_callers(
    prefix: NDArray[Any],
    func: NDArray[Any],
    of_stack: NDArray[Any],
    child: NDArray[Any],
    sibling: NDArray[Any],
    n_open: NDArray[Any],
    of_func: NDArray[Any],
) -> None: ...
