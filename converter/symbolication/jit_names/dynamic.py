"""Names of code of Ruby, Lua, Julia and Dart: yjit/src/codegen.rs of CRuby 3.3 and later, zjit/src/perf.rs; LuaJIT,
lj_trace.c (LUAJIT_USE_PERFTOOLS); Julia, codegen.cpp; Dart, vm/os_linux.cc and Function::ToFullyQualifiedCString."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from traceferry.common.patterns import compiled_later
from traceferry.symbolication.jit_names.patterns import GENERIC, Parts, Pattern, Split, machinery, plain, tier

# label@path:line, whose path may be <internal:numeric>. A label has no @ but in `@ivar=`, a path hardly ever.
_RUBY = compiled_later(r"(.+)@([^@]+):([0-9]{1,9})", re.DOTALL)


def _ruby_function(text: str) -> Parts | None:
    """Parses `block in fib@/app/fib.rb:3`."""
    found = _RUBY.fullmatch(text)
    if found is None:
        return None
    function, file, line = found.groups()
    return function, "" if file == "None" else file, int(line), 0


def _ruby_method(text: str) -> Parts | None:
    """Returns `Work#block in run` as it is: the receiver's class and a label. What an instruction became has the name
    of a function of YJIT or of an instruction, none of which has a #."""
    return plain(text) if "#" in text else None


_YJIT, _ZJIT = tier("YJIT", "green"), tier("ZJIT", "green")

RUBY: tuple[Pattern, ...] = (
    *(
        Pattern(start, "function", "Ruby", made_by, _ruby_function, is_js=True)
        for start, made_by in (("[JIT] ", _YJIT), ("ZJIT: ", _ZJIT), ("zjit::", _ZJIT))
    ),
    # Ruby 3.3.
    Pattern("[JIT] ", "function", "Ruby", _YJIT, _ruby_method, is_js=True),
    # With --yjit-perf=codegen, from Ruby 3.4 on, and --zjit-perf=hir, what an instruction became.
    machinery("[JIT] ", "stub", _YJIT),
    machinery("ZJIT: ", "stub", _ZJIT),
    machinery("zjit::", "stub", _ZJIT),
    GENERIC,
)

_LUA_TRACE = compiled_later(r"[0-9]{1,9}::(.*):([0-9]{1,9})", re.DOTALL)


def _lua_trace(text: str) -> Parts | None:
    """Parses `12::/app/fib.lua:3`: the trace's number, and the place where it begins. Its function has no name."""
    found = _LUA_TRACE.fullmatch(text)
    return (f"{PurePosixPath(found[1]).name}:{found[2]}", found[1], int(found[2]), 0) if found else None


LUAJIT: tuple[Pattern, ...] = (
    Pattern("TRACE_", "function", "Lua", tier("Tracing JIT", "green"), _lua_trace, is_js=True),
    GENERIC,
)

_JULIA_NUMBERED = compiled_later(r"(.+)_[0-9]{1,9}", re.DOTALL)


def _julia(text: str) -> Parts | None:
    """Parses `fib_123`: the number tells compilations apart."""
    found = _JULIA_NUMBERED.fullmatch(text)
    return plain(found[1]) if found else None


JULIA: tuple[Pattern, ...] = (
    # Code with arguments in registers, and with boxed ones.
    *(Pattern(start, "function", "Julia", None, _julia) for start in ("julia_", "japi1_", "japi3_")),
    # What boxes and unboxes arguments for callers of another kind.
    *(Pattern(start, "trampoline", "Julia", None, _julia) for start in ("jfptr_", "jlcapi_", "jlsys_", "gfptrjl_")),
    Pattern("jlplt_", "stub", "JIT", None, _julia),
    Pattern("tojlinvoke", "trampoline", "JIT", whole=True),
    GENERIC,
)

# library_Class_function: a library is an address, `::` the class of what is outside of classes.
_DART = compiled_later(
    r"(dart:_?[a-z]+(?:\.[a-z]+)*|(?:package|file|[a-z-]+-[a-z]+):.*?\.dart)_(::|_?[A-Za-z0-9$]+)(?:@[0-9]+)?_(.*)",
    re.DOTALL,
)
_PRIVATE = compiled_later(r"@[0-9]+")


def _dart_function(text: str) -> Parts | None:
    """Parses `file:///app/fib.dart_Fib_run`; private names have `@` and a number of their library behind them."""
    found = _DART.fullmatch(text)
    if found is None:
        return None
    library, owner, name = found.groups()
    name = _PRIVATE.sub("", name)
    return name if owner == "::" else f"{owner}.{name}", library.removeprefix("file://"), 0, 0


def _dart(start: str) -> Split:
    def split(text: str) -> Parts | None:
        return _dart_function(text[len(start) :])

    return split


_DART_LIBRARIES = ("dart:", "package:", "file:///")

DART: tuple[Pattern, ...] = (
    *(
        Pattern(f"*{library}", "function", "Dart", tier("Optimized", "green"), _dart("*"), whole=True)
        for library in _DART_LIBRARIES
    ),
    *(
        Pattern(library, "function", "Dart", tier("Unoptimized", "yellow"), _dart(""), whole=True)
        for library in _DART_LIBRARIES
    ),
    GENERIC,
)
