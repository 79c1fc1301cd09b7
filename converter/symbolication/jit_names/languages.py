"""Names of code of Java, PHP, Erlang, Python and WebAssembly: HotSpot's JVMTI agent; PHP, ext/opcache/jit; Erlang and
Elixir, beam/jit of OTP; CPython; Numba; the jitdump agent of wasmtime."""

from __future__ import annotations

import re

from traceferry.common.patterns import compiled_later
from traceferry.symbolication.jit_names.patterns import GENERIC, Parts, Pattern, fields, machinery, tier

_JAVA_TYPE = compiled_later(r"(\[*)(?:([BCDFIJSZ])|L([^;]+);)")
# A name may have brackets, as `adds (two) numbers` of Kotlin.
_JAVA_METHOD = compiled_later(r"([^;]+);(.+)\(([^()]*)\)(?:V|\[*(?:[BCDFIJSZ]|L[^;()]+;))", re.DOTALL)
_JAVA_WORDS = {
    "B": "byte", "C": "char", "D": "double", "F": "float", "I": "int", "J": "long", "S": "short", "Z": "boolean",
}  # fmt: skip


def _java_method(text: str) -> Parts | None:
    """Returns `pkg/Class;method(descriptor)result` (the L before it is the pattern's) in Java's words."""
    method = _JAVA_METHOD.fullmatch(text)
    if method is None:
        return None
    owner, name, arguments = method.groups()
    types = []
    at = 0
    while at < len(arguments):
        found = _JAVA_TYPE.match(arguments, at)
        if found is None:
            return None
        dimensions, primitive, class_name = found.groups()
        types.append((_JAVA_WORDS[primitive] if primitive else class_name) + "[]" * len(dimensions))
        at = found.end()
    # Slashes stand in class names only, dots in front of the number of a hidden class.
    return f"{owner}.{name}({', '.join(types)})".replace("/", "."), "", 0, 0


# A method as HotSpot's perf maps have it (Method::external_name, JDK 17 to 25): `int pkg.Class.method(int, long[])`.
_WORD = r"(?:[^\W\d]|\$)[\w$-]*"
_JAVA_NAMED_TYPE = rf"{_WORD}(?:\.{_WORD})*(?:\[\])*"
# Hidden classes have a number, as `Hot$$Lambda/0x00007f441c003d40` or with a dot.
_JAVA_OWNER = rf"{_WORD}(?:\.{_WORD})*(?:[./+]0x[0-9a-f]{{8,16}})?"
# What the JVM allows: `invokeOther15:+` of JRuby, words with blanks and brackets of Kotlin.
_JAVA_NAME = r"[^\s.;\[\]/<>()](?:[^.;\[\]/<>\t-\r]*[^\s.;\[\]/<>])?"
_java_external = fields(
    rf"{_JAVA_NAMED_TYPE} (?P<function>{_JAVA_OWNER}\.(?:{_JAVA_NAME}|<init>|<clinit>)"
    rf"\((?:{_JAVA_NAMED_TYPE}(?:, {_JAVA_NAMED_TYPE})*)?\))"
)

HOTSPOT: tuple[Pattern, ...] = (
    Pattern("L", "function", "Java", None, _java_method),
    Pattern("", "function", "Java", None, _java_external),
    machinery("I2C/C2I adapters(", "stub", whole=True),
    Pattern("", "stub", "Java", tier("Interpreter", "red"), fields("Interpreter"), own=False),
    machinery("", "stub", own=False),
)

_WINDOWS_PATH = compiled_later(r"[A-Za-z]:\\")
# number$function$line, where the line is that of the trace's first operation. The name of an anonymous class has a zero
# behind this part, which ends what is written: the method and the line are lost.
_PHP_TRACE = compiled_later(r"[0-9]{1,9}\$(?:(.*)\$([0-9]{1,9})|(.*@anonymous))", re.DOTALL)


def _php_function(text: str, line: int = 0) -> Parts:
    """Returns a function, or the file of which the code outside of functions runs; PHP calls that {main}."""
    # PHP's own names have no slashes: namespaces are separated by backslashes.
    is_file = "/" in text or _WINDOWS_PATH.match(text)
    return ("{main}", text, line, 0) if is_file else (text, "", line, 0)


def _php_trace(text: str) -> Parts | None:
    found = _PHP_TRACE.fullmatch(text)
    if found is None:
        return None
    function, line, anonymous = found.groups()
    return _php_function(function, int(line)) if line else (anonymous, "", 0, 0)


PHP: tuple[Pattern, ...] = (
    Pattern("TRACE-", "function", "PHP", tier("Tracing JIT", "green"), _php_trace, is_js=True),
    machinery("JIT$$", "stub"),
    machinery("jit$$", "stub"),
    Pattern("JIT$", "function", "PHP", tier("Function JIT", "blue"), _php_function, is_js=True),
    machinery("ESCAPE-", "stub", whole=True),
    # Of PHP 8.4.
    Pattern(" ESCAPE-", "stub", "JIT", None, fields(" (?P<function>.*)"), whole=True),
    GENERIC,
)

_ATOM = r"(?:[a-zß-öø-ÿ][\w@]*|'[^']+')"
# module:function/arity; what breakpoints patch in front of it is an object of its own. In perf maps all begin with $.
_erlang_function = fields(rf"\$?(?P<function>{_ATOM}:{_ATOM}/[0-9]{{1,3}})(?:-CodeInfoPrologue)?")

BEAM: tuple[Pattern, ...] = (
    Pattern("erts_beamasm:", "stub", "JIT", None, _erlang_function, whole=True),
    Pattern("$erts_beamasm:", "stub", "JIT", None, _erlang_function, whole=True),
    Pattern("", "function", "Erlang", None, _erlang_function),
    Pattern("", "stub", "JIT", None, fields(rf"\$?(?P<function>{_ATOM}::code(?:Header|Footer))")),
    machinery("global::", "stub", whole=True, own=False),
    Pattern("$global::", "stub", "JIT", None, fields(r"\$(?P<function>.*)"), whole=True),
    GENERIC,
)

CPYTHON: tuple[Pattern, ...] = (
    # qualified name:file; a qualified name has no colon.
    Pattern("py::", "function", "Python", None, fields("(?P<function>[^:]*):?(?P<file>.*)"), is_js=True),
    GENERIC,
)

# A name of C++ whose ABI tags are the number of the version and flags: numba/core/itanium_mangler.py. The parts of the
# qualified name have their lengths before them, and each byte of other signs, in UTF-8, as _ and two digits.
_NUMBA_PART, _NUMBA_VERSION = compiled_later(r"[0-9]{1,4}"), compiled_later(r"B[0-9]{1,2}v[0-9]+")
# An underscore stays what it is: fft_2d, step_e3 are names. Only what no such name has is a sign: <lambda> and other
# words in angle brackets, and letters of two bytes and more.
_NUMBA_SIGNS = compiled_later(
    r"_3c([a-z]+)_3e|(_[cd][0-9a-f]_[89ab][0-9a-f]|_e[0-9a-f](?:_[89ab][0-9a-f]){2}|_f[0-4](?:_[89ab][0-9a-f]){3})"
)


def _numba_sign(found: re.Match[str]) -> str:
    word, letter = found.groups()
    if word:
        return f"<{word}>"
    shown = bytes.fromhex(letter.replace("_", "")).decode("utf-8", "replace")
    return shown if f"_{shown}".isidentifier() else letter


def _numba_function(text: str) -> Parts | None:
    """Parses `8__main__5heavyB2v1B38c8tJTIeFIjxB2IKSgI4CrvQClQZ6FczSBAA_3dEx`: __main__.heavy."""
    parts, at = [], 0
    while found := _NUMBA_PART.match(text, at):
        at = found.end() + int(found[0])
        parts.append(text[found.end() : at])
    if not parts or not _NUMBA_VERSION.match(text, at):
        return None
    return _NUMBA_SIGNS.sub(_numba_sign, ".".join(parts)), "", 0, 0


def _numba_wrapper(text: str) -> Parts | None:
    found = _numba_function(text)
    return (f"{found[0]} (wrapper)", "", 0, 0) if found is not None else None


NUMBA: tuple[Pattern, ...] = (
    # What calls the function behind it: from Python, and from C.
    Pattern("_ZN7cpython", "stub", "JIT", None, _numba_wrapper),
    Pattern("cfunc._ZN", "stub", "JIT", None, _numba_wrapper),
    Pattern("_ZN", "function", "Python", tier("Numba", "green"), _numba_function),
    GENERIC,
)

_WASM_FUNCTION = r"wasm\[[0-9]+\]::function\[[0-9]+\]"

WASMTIME: tuple[Pattern, ...] = (
    Pattern("wasm[", "wasm", "WebAssembly", None, fields(rf"{_WASM_FUNCTION}::(?P<function>.+)"), whole=True),
    Pattern("wasm[", "wasm", "WebAssembly", None, fields(_WASM_FUNCTION), whole=True),
    machinery("wasm[", "trampoline", whole=True),
    machinery("signatures[", "trampoline", whole=True),
    Pattern("", "wasm", "WebAssembly", own=False),
)
