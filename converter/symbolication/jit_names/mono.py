"""Names of Mono's code in perf maps (`mono --jitmap`): mono/mini/mini-runtime.c (mono_emit_jit_map), full names of
methods of mono/metadata/debug-helpers.c, trampolines of mono/mini/mini-trampolines.c and tramp-amd64.c, of 6.8."""

from __future__ import annotations

import re

from traceferry.common.patterns import compiled_later
from traceferry.symbolication.jit_names.patterns import GENERIC, Parts, Pattern, machinery

# Namespace.Outer/Inner`1<int>, then the method: .ctor, <Main>m__0, System.IDisposable.Dispose, Sum<int>.
_OWNER, _METHOD = compiled_later(r"[\w<.$@][^:]*"), compiled_later(r"[\w<.$@|`>\-]+(?:<.*>)?", re.DOTALL)
_WRAPPER = "(wrapper "


def _method(text: str) -> Parts | None:
    """Returns `Namespace.Class:Method (int,string)` as it is."""
    name, blank, arguments = text.partition(" (")
    owner, _, method = name.partition(":")
    is_one = blank and arguments.endswith(")") and _OWNER.fullmatch(owner) and _METHOD.fullmatch(method)
    return (text, "", 0, 0) if is_one else None


def _wrapper(text: str) -> Parts | None:
    """Returns `(wrapper KIND) Class:Method (int)` as it is."""
    kind, bracket, wrapped = text.removeprefix(_WRAPPER).partition(") ")
    return (text, "", 0, 0) if bracket and kind and _method(wrapped) is not None else None


def _unnamed(text: str) -> Parts | None:
    """Names what has none: the dispatch of calls of interfaces, and other trampolines."""
    return ("trampoline", "", 0, 0) if not text else None


MONO: tuple[Pattern, ...] = (
    Pattern(_WRAPPER, "function", "Wrapper", None, _wrapper, whole=True),
    *(
        machinery(start, "trampoline", whole=True)
        for start in ("generic_trampoline_", "rgctx_fetch_trampoline_", "delegate_invoke_", "sdb_breakpoint_trampoline")
    ),
    *(
        machinery(start, "stub", whole=True, own=False)
        for start in ("throw_", "rethrow_", "restore_context", "call_filter", "llvm_")
    ),
    Pattern("(null)", "trampoline", "JIT", None, _unnamed),
    Pattern("", "function", "Managed", None, _method),
    GENERIC,
)
