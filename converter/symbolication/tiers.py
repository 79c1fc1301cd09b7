"""Tiers of JIT compilers, as the names of their code tell them, or the categories of a profile."""

from __future__ import annotations

from typing import NamedTuple


class Tier(NamedTuple):
    """name: the producer's word for it, as Turbofan (OSR); family: what is one colour and one category in the viewer,
    as Turbofan; color: one of the Firefox Profiler's colour names.

    A producer's families have one colour each. Two producers may differ: V8's and SpiderMonkey's Interpreter do.
    """

    name: str
    family: str
    color: str
