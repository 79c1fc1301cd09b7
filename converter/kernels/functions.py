"""What a function of a kernel is, in one word. `setup.py` puts Cython's decorators in place of these: a C function that
holds no Python object, needs no interpreter lock and raises nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

Function = TypeVar("Function", bound=Callable[..., object])


def c_function(function: Function) -> Function:
    return function


def c_inline(function: Function) -> Function:
    """One that is compiled in place of each of its calls, however long it is."""
    return function
