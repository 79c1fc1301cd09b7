"""Names of Erlang and Elixir: beam/jit of OTP."""

from __future__ import annotations

import re

from traceferry.symbolication.jit_names.patterns import GENERIC, Parts, Pattern, machinery, plain

_PROLOGUE = "-CodeInfoPrologue"

_ATOM = r"(?:[a-zß-öø-ÿ][\w@]*|'[^']+')"

_ERLANG = re.compile(rf"{_ATOM}:{_ATOM}/[0-9]{{1,3}}(?:{_PROLOGUE})?")

_MODULE_PART = re.compile(rf"{_ATOM}::code(?:Header|Footer)")


def _erlang_function(text: str) -> Parts | None:
    """Parses `module:function/arity`; what breakpoints patch in front of it is an object of its own."""
    return (text.removesuffix(_PROLOGUE), "", 0, 0) if _ERLANG.fullmatch(text) else None


def _erlang_module_part(text: str) -> Parts | None:
    return plain(text) if _MODULE_PART.fullmatch(text) else None


PATTERNS: tuple[Pattern, ...] = (
    Pattern("erts_beamasm:", "stub", "JIT", None, _erlang_function, whole=True),
    Pattern("", "function", "Erlang", None, _erlang_function),
    Pattern("", "stub", "JIT", None, _erlang_module_part),
    machinery("global::", "stub", whole=True, own=False),
    GENERIC,
)  # fmt: skip
