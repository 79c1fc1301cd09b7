from typing import Any

from numpy.typing import NDArray

def scale(ticks: NDArray[Any], num: int, den: int, offset: int, out: NDArray[Any]) -> None: ...
