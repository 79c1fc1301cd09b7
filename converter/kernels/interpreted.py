"""Help for kernels that run interpreted, where no C compiler was at hand."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np


def plain_integers(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Hands the kernel memoryviews for its arrays, also for those in tuples: their elements are Python integers, which
    never overflow and are quicker than NumPy's."""

    @wraps(kernel)
    def called(*arguments: Any) -> Any:
        return kernel(*(_plain(a) for a in arguments))

    return called


def _plain(argument: Any) -> Any:
    if type(argument) is tuple:
        return tuple(_plain(a) for a in argument)
    return memoryview(argument) if isinstance(argument, (np.ndarray, bytearray, bytes)) else argument  # type: ignore[arg-type]
