"""What JIT compilers pack into the name of a code object: function, tier, file, line and column.

One table per producer says which beginnings there are and what they mean; the functions above the tables take apart
what follows. Tiers, their words and colours are those of samply's jit_category_manager.rs (cd24993) wherever it has
one. What the captures do not hold comes from the producers' sources: V8's logging/log.cc and objects/code-kind.cc,
PHP's ext/opcache/jit, SpiderMonkey's jit/PerfSpewer.cpp, OTP's beam/jit, wasmtime's jitdump agent.

Names are hostile input of any length: nothing here takes more than linear time.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

ANONYMOUS = "(anonymous)"
# The file of SpiderMonkey's own JavaScript, which samply keeps out of the JavaScript-only view.
SELF_HOSTED = "self-hosted"
CATEGORY_COLORS = {
    "JavaScript": "yellow",
    "WebAssembly": "blue",
    "Java": "yellow",
    "PHP": "lightblue",
    "Erlang": "lightred",
    "Python": "blue",
    "RegExp": "red",
    "JIT": "purple",
}

# A recording's names are judged by this many of them, evenly spread: HotSpot's first hundreds are stubs only.
MAX_JUDGED = 2000
# Producers that also write bare names are known by the few others, as wasmtime by its trampolines.
SHARE_AMONG_BARE = 0.01
SHARE = 0.25


@dataclass(frozen=True)
class Tier:
    """name: the producer's word for it, as Turbofan (OSR); family: what is one colour and one category in the viewer,
    as Turbofan; color: one of the Firefox Profiler's colour names.

    A producer's families have one colour each. Two producers may differ: V8's and SpiderMonkey's Interpreter do.
    """

    name: str
    family: str
    color: str


@dataclass(frozen=True)
class Name:
    """function: never empty; kind: function, builtin, stub, trampoline, regexp, inline cache or wasm; category: one of
    CATEGORY_COLORS; file: as the producer writes it; line, column: from 1, 0 is unknown; is_js: belongs into the
    viewer's JavaScript-only view, as functions of any scripting language do."""

    function: str
    kind: str
    category: str
    tier: Tier | None
    file: str = ""
    line: int = 0
    column: int = 0
    is_js: bool = False


Parts = tuple[str, str, int, int]  # function, file, line, column
Split = Callable[[str], Parts | None]  # None: not of this pattern


# ---------------------------------------------------------------- places


def _number(digits: str) -> int:
    """-1 for anything but up to nine digits."""
    return int(digits) if len(digits) <= 9 and digits.isascii() and digits.isdecimal() else -1


def _position(text: str) -> tuple[str, int, int] | None:
    """`file:12:3` as file, 12 and 3."""
    pieces = text.rsplit(":", 2)
    if len(pieces) < 3:
        return None
    line, column = _number(pieces[1]), _number(pieces[2])
    return (pieces[0], line, column) if line >= 0 and column >= 0 else None


# A space before a path, a drive or a scheme: `node:fs`, `file:///x`, `C:\x`, `../x`, `\\server`.
_BEFORE_PATH = re.compile(r" (?=\.{0,2}/|\\\\|[A-Za-z][A-Za-z0-9+.-]*:)")
_ACCESSORS = ("get ", "set ")


def _before_file(text: str) -> int:
    """The space between function and file in `get f /my files/x.js`; -1 without any space.

    Both may contain spaces, and either may be empty. The file begins with the first piece that looks like a path or
    URL. A bare file name is taken to begin behind the first word, or the second after get and set.
    """
    first = text.find(" ")
    if first <= 0 or text.find(" ", first + 1) < 0:
        return first
    if text.endswith(" "):
        return len(text) - 1
    path = _BEFORE_PATH.search(text)
    if path:
        return path.start()
    second = text.find(" ", 4) if text.startswith(_ACCESSORS) else -1
    return second if second >= 0 else first


def _plain(text: str) -> Parts:
    return text, "", 0, 0


def _only(*names: str) -> Split:
    def split(text: str) -> Parts | None:
        return _plain(text) if text in names else None

    return split


# ---------------------------------------------------------------- JavaScript engines


def _js_place(text: str) -> Parts:
    """V8's `function file:line:column`. A script without a position is ` file`."""
    placed = _position(text)
    if placed is None:
        return ("", text[1:], 0, 0) if text.startswith(" ") else (text, "", 0, 0)
    head, line, column = placed
    space = _before_file(head)
    if space < 0:
        return text, "", 0, 0
    return head[:space], head[space + 1 :], line, column


def _v8_wasm(tier: str) -> Split:
    """`name-index-tier` as samply writes it."""

    def split(text: str) -> Parts | None:
        if not text.endswith(tier):
            return None
        name, dash, index = text[: -len(tier)].rpartition("-")
        return (f"{name} (WASM:{index})", "", 0, 0) if dash and _number(index) >= 0 else None

    return split


def _v8_wrapper(text: str) -> Parts | None:
    """`wasm-to-js-<anonymous>-none`: code of a WebAssembly module that is not one of its functions."""
    name, infix, tier = text.rpartition("-<anonymous>-")
    return (name, "", 0, 0) if infix and tier in ("none", "liftoff", "turbofan") else None


def _v8_regexp(text: str) -> Parts:
    """`(a|b)' flags: 'g'`, what is between the quotes written as JavaScript does."""
    source, between, flags = text.removesuffix("'").rpartition("' flags: '")
    return (f"/{source}/{flags}" if between else text), "", 0, 0


def _without_hash(function: str) -> str:
    """JavaScriptCore's `name#hash`, where the hash has six letters and digits; private names begin with # too."""
    name, hash_mark, digest = function.rpartition("#")
    return name if hash_mark and len(digest) == 6 and digest.isalnum() else function


def _jsc_place(text: str) -> Parts:
    """`name#hash`, `name[Call (StrictMode)]`, and either of them with ` file:line:column` behind it."""
    bracket = text.find("[Call")
    if bracket < 0:
        bracket = text.find("[Construct")
    if bracket < 0:
        function, file, line, column = _js_place(text)
    else:
        behind = text[bracket:].partition("]")[2].removeprefix(" ")
        function = text[:bracket]
        file, line, column = _position(behind) or (behind, 0, 0)
    return _without_hash(function), file, line, column


_ESCAPED = re.compile(r"(?:\\x[0-9A-F]{2}|\\u[0-9A-F]{4})+")


def _unescape(match: re.Match[str]) -> str:
    units = match[0].encode("ascii").decode("unicode_escape")
    return units.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _sm_place(text: str) -> Parts:
    """`function (file:line:column)`; `*` is a script or a function without a name, and whatever is beyond ASCII in a
    function's name is written as \\xFC or \\u30E1."""
    head, line, column = (_position(text[:-1]) if text.endswith(")") else None) or ("", 0, 0)
    function, bracket, file = head.partition(" (")
    if not bracket:
        return text, "", 0, 0
    if "\\" in function:
        function = _ESCAPED.sub(_unescape, function)
    return ("" if function == "*" else function), file, line, column


def _sm_ion_ic(text: str) -> Parts | None:
    """`type : function (file:line:column)`."""
    _, colon, function = text.partition(" : ")
    return _sm_place(function) if colon else None


def _sm_wasm(text: str) -> Parts | None:
    """`file:bytecode offset: Function name`."""
    file, infix, function = text.partition(": Function ")
    if not infix:
        return None
    head, colon, offset = file.rpartition(":")
    return function, (head if colon and _number(offset) >= 0 else file), 0, 0


# ---------------------------------------------------------------- other producers

_JAVA_TYPE = re.compile(r"(\[*)(?:([BCDFIJSZ])|L([^;]+);)")
_JAVA_RESULT = re.compile(r"V|\[*(?:[BCDFIJSZ]|L[^;]+;)")
_JAVA_WORDS = {
    "B": "byte", "C": "char", "D": "double", "F": "float", "I": "int", "J": "long", "S": "short", "Z": "boolean",
}  # fmt: skip


def _java_method(text: str) -> Parts | None:
    """`pkg/Class;method(descriptor)result` (the L before it is the pattern's) in Java's words."""
    owner, _, method = text.partition(";")
    name, bracket, descriptor = method.partition("(")
    arguments, end, result = descriptor.partition(")")
    if not (owner and name and bracket and end and _JAVA_RESULT.fullmatch(result)):
        return None
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


_WINDOWS_PATH = re.compile(r"[A-Za-z]:\\")


def _php_function(text: str) -> Parts:
    """A function, or the file of which the code outside of functions runs; PHP calls that {main}."""
    # PHP's own names have no slashes: namespaces are separated by backslashes.
    return ("{main}", text, 0, 0) if "/" in text or _WINDOWS_PATH.match(text) else (text, "", 0, 0)


def _php_trace(text: str) -> Parts | None:
    """`number$function$line`, where the line is that of the trace's first operation."""
    number, dollar, rest = text.partition("$")
    named, second, digits = rest.rpartition("$")
    line = _number(digits)
    if not (dollar and second and _number(number) >= 0 and line >= 0):
        return None
    function, file, _, _ = _php_function(named)
    return function, file, line, 0


_PROLOGUE = "-CodeInfoPrologue"
_ATOM = r"(?:[a-zß-öø-ÿ][\w@]*|'[^']+')"
_ERLANG = re.compile(rf"{_ATOM}:{_ATOM}/[0-9]{{1,3}}(?:{_PROLOGUE})?")
_MODULE_PART = re.compile(rf"{_ATOM}::code(?:Header|Footer)")


def _erlang_function(text: str) -> Parts | None:
    """`module:function/arity`; what breakpoints patch in front of it is an object of its own."""
    return (text.removesuffix(_PROLOGUE), "", 0, 0) if _ERLANG.fullmatch(text) else None


def _erlang_module_part(text: str) -> Parts | None:
    return _plain(text) if _MODULE_PART.fullmatch(text) else None


def _python_place(text: str) -> Parts:
    """`qualified name:file`; a qualified name has no colon."""
    function, _, file = text.partition(":")
    return function, file, 0, 0


_WASMTIME = re.compile(r"wasm\[[0-9]+\]::function\[[0-9]+\](?:::(.+))?", re.DOTALL)


def _wasmtime_function(text: str) -> Parts | None:
    found = _WASMTIME.fullmatch(text)
    return (found[1] or text, "", 0, 0) if found else None


# ---------------------------------------------------------------- patterns


@dataclass(frozen=True)
class Pattern:
    """start: how such names begin; split: takes apart what follows, or the whole name with `whole`, and may refuse it;
    own: no other producer writes such names, so that they tell who wrote a file."""

    start: str
    kind: str
    category: str
    tier: Tier | None = None
    split: Split = _plain
    is_js: bool = False
    whole: bool = False
    own: bool = True


def _tier(name: str, color: str, *, family: str = "") -> Tier:
    return Tier(name, family or name, color)


def _js(start: str, tier: Tier | None, split: Split, *, own: bool = True) -> Pattern:
    return Pattern(start, "function", "JavaScript", tier, split, is_js=True, own=own)


def _machinery(start: str, kind: str, tier: Tier | None = None, *, whole: bool = False, own: bool = True) -> Pattern:
    return Pattern(start, kind, "JIT", tier, whole=whole, own=own)


_GENERIC = Pattern("", "function", "JIT", own=False)

_INTERPRETER = _tier("Interpreter", "magenta")
_INTERPRETER_CODE = _tier("Interpreter", "red")
_BASELINE = _tier("Baseline", "blue")
_BASELINE_INTERPRETER = _tier("BaselineInterpreter", "magenta")
_TRAMPOLINE = _tier("Trampoline", "darkgrey")

_SM_STUBS = (
    "RegExpMatcherStub", "RegExpSearcherStub", "RegExpExecMatchStub", "RegExpExecTestStub", "StringConcatStub",
    "DebugTrapHandler",
)  # fmt: skip

_V8_MARKERS = (
    ("~", _INTERPRETER),
    ("^", _BASELINE),
    ("+'", _tier("Maglev (context specialized)", "green", family="Maglev")),
    ("+", _tier("Maglev", "green")),
    ("o+", _tier("Maglev (OSR)", "green", family="Maglev")),
    ("*'", _tier("Turbofan (context specialized)", "green", family="Turbofan")),
    ("*", _tier("Turbofan", "green")),
    ("o*", _tier("Turbofan (OSR)", "green", family="Turbofan")),
    ("?", None),
)
# Node 16 and older write LazyCompile: and Function: where newer ones write JS:.
_V8_TAGS = ("JS:", "Script:", "Eval:", "LazyCompile:", "Function:")

PATTERNS: dict[str, tuple[Pattern, ...]] = {
    "V8": (
        *(_js(tag + marker, tier, _js_place) for tag in _V8_TAGS for marker, tier in _V8_MARKERS),
        Pattern("JS:", "wasm", "WebAssembly", _tier("Liftoff (wasm)", "blue"), _v8_wasm("-liftoff"), is_js=True),
        Pattern("JS:", "wasm", "WebAssembly", _tier("Turbofan (wasm)", "green"), _v8_wasm("-turbofan"), is_js=True),
        Pattern("JS:", "trampoline", "JIT", None, _v8_wrapper),
        # Without a marker: interpreted, and never to be optimized (ComputeMarker in log.cc).
        _js("JS:", _INTERPRETER, _js_place),
        *(_js(tag, _INTERPRETER, _js_place, own=False) for tag in _V8_TAGS[1:]),
        Pattern("Builtin:", "builtin", "JavaScript", _tier("Builtin", "brown")),
        # samply calls these Interpreter too, but in another colour: a family of their own.
        Pattern("BytecodeHandler:", "stub", "JavaScript", _tier("Interpreter", "red", family="BytecodeHandler")),
        Pattern("RegExp.> src: '", "regexp", "RegExp", None, _v8_regexp),
        Pattern("RegExp:", "regexp", "RegExp", own=False),  # Node 16 and older
        _machinery("Stub:", "stub", own=False),
        _machinery("Handler:", "inline cache", own=False),
        _machinery("Callback:", "trampoline", own=False),
        _GENERIC,
    ),
    "JavaScriptCore": (
        _js("JSC-Baseline: ", _BASELINE, _jsc_place),
        _js("JSC-DFG: ", _tier("DFG", "magenta"), _jsc_place),
        _js("JSC-FTL: ", _tier("FTL", "green"), _jsc_place),
        Pattern("JSC-WasmBBQ: ", "wasm", "WebAssembly", _tier("BBQ", "blue"), _jsc_place, is_js=True),
        Pattern("JSC-WasmOMG: ", "wasm", "WebAssembly", _tier("OMG", "green"), _jsc_place, is_js=True),
        Pattern("JSC-YarrJIT: ", "regexp", "RegExp"),
        _machinery("JSC-InlineCache: ", "inline cache", _tier("IC", "brown")),
        _machinery("JSC-Thunk: ", "stub", _tier("Thunk", "darkgrey")),
        _machinery("JSC-LLIntThunk: ", "stub", _tier("LLIntThunk", "darkgrey")),
        _machinery("JSC-ExtraCTIThunk: ", "stub", _tier("ExtraCTIThunk", "darkgrey")),
        _machinery("JSC-DFGThunk: ", "stub", _tier("DFGThunk", "darkgrey")),
        _machinery("JSC-FTLThunk: ", "stub", _tier("FTLThunk", "darkgrey")),
        _machinery("JSC-WasmThunk: ", "stub", _tier("WasmThunk", "darkgrey")),
        _machinery("JSC-DFGOSREntry: ", "trampoline", _tier("DFGOSREntry", "darkgrey")),
        _machinery("JSC-DFGOSRExit: ", "trampoline", _tier("DFGOSRExit", "darkgrey")),
        _machinery("JSC-FTLOSRExit: ", "trampoline", _tier("FTLOSRExit", "darkgrey")),
        _machinery("JSC-JumpIsland: ", "trampoline", _tier("JumpIsland", "darkgrey")),
        _machinery("JSC-CSSJIT: ", "stub", _tier("CSSJIT", "red")),
        _machinery("JSC-Uncategorized: ", "stub", _tier("Uncategorized", "darkgrey")),
        _machinery("JSC-", "stub"),
        # What it wrote before each name began with JSC-; for Baseline, see SpiderMonkey.
        _machinery("BaselineThunk: ", "stub", _TRAMPOLINE),
        Pattern("PolymorphicCallStubBaseline: ", "stub", "JIT", _TRAMPOLINE, _jsc_place, is_js=True),
        Pattern("PolymorphicAccessStubBaseline: ", "stub", "JIT", _TRAMPOLINE, _jsc_place, is_js=True),
        _GENERIC,
    ),
    "SpiderMonkey": (
        _js("Interpreter: ", _INTERPRETER_CODE, _sm_place),
        _js("BaselineInterpreter: ", _BASELINE_INTERPRETER, _sm_place),
        _js("Baseline: ", _BASELINE, _sm_place),
        _js("Ion: ", _tier("Ion", "green"), _sm_place),
        Pattern("Wasm: ", "wasm", "WebAssembly", _tier("Wasm", "blue"), is_js=True),
        Pattern("BlinterpOp: ", "stub", "JavaScript", _tier("BlinterpOp", "magenta", family="BaselineInterpreter")),
        Pattern("IonIC: ", "inline cache", "JIT", _tier("IonIC", "brown"), _sm_ion_ic, is_js=True),
        _machinery("IonIC: ", "inline cache", _tier("IonIC", "brown")),
        _machinery("BaselineIC: ", "inline cache", _tier("BaselineIC", "brown")),
        _machinery("BaselineICFallback: ", "inline cache", _tier("BaselineICFallback", "brown", family="BaselineIC")),
        _machinery("IC: ", "inline cache", _tier("IC", "brown")),
        _machinery("Trampoline: ", "trampoline", _TRAMPOLINE),
        _machinery("WasmTrampoline: ", "trampoline", _tier("WasmTrampoline", "darkgrey", family="Trampoline")),
        _machinery("VMWrapper: ", "trampoline", _tier("VMWrapper", "darkgrey", family="Trampoline")),
        Pattern("", "stub", "JavaScript", _BASELINE_INTERPRETER, _only("BaselineInterpreter"), own=False),
        Pattern("", "regexp", "RegExp", None, _only("RegExp"), own=False),
        Pattern("", "stub", "JIT", None, _only(*_SM_STUBS), own=False),
        Pattern("", "wasm", "WebAssembly", _tier("Wasm", "blue"), _sm_wasm, is_js=True, own=False),
        _GENERIC,
    ),
    "HotSpot": (
        Pattern("L", "function", "Java", None, _java_method),
        _machinery("I2C/C2I adapters(", "stub", whole=True),
        Pattern("", "stub", "Java", _INTERPRETER_CODE, _only("Interpreter"), own=False),
        _machinery("", "stub", own=False),
    ),
    "PHP": (
        Pattern("TRACE-", "function", "PHP", _tier("Tracing JIT", "green"), _php_trace, is_js=True),
        _machinery("JIT$$", "stub"),
        _machinery("jit$$", "stub"),
        Pattern("JIT$", "function", "PHP", _tier("Function JIT", "blue"), _php_function, is_js=True),
        _machinery("ESCAPE-", "stub", whole=True),
        _GENERIC,
    ),
    "BEAM": (
        Pattern("erts_beamasm:", "stub", "JIT", None, _erlang_function, whole=True),
        Pattern("", "function", "Erlang", None, _erlang_function),
        Pattern("", "stub", "JIT", None, _erlang_module_part),
        _machinery("global::", "stub", whole=True, own=False),
        _GENERIC,
    ),
    "CPython": (
        Pattern("py::", "function", "Python", None, _python_place, is_js=True),
        _GENERIC,
    ),
    "wasmtime": (
        Pattern("wasm[", "wasm", "WebAssembly", None, _wasmtime_function, whole=True),
        _machinery("wasm[", "trampoline", whole=True),
        _machinery("signatures[", "trampoline", whole=True),
        Pattern("", "wasm", "WebAssembly", own=False),
    ),
    "LLVM": (_GENERIC,),
}  # fmt: skip
PATTERNS["unknown"] = (*(p for patterns in PATTERNS.values() for p in patterns if p.own), _GENERIC)


# ---------------------------------------------------------------- reading


@dataclass(frozen=True)
class Reader:
    """A producer's patterns, the first that fits being the right one. starts: all their beginnings in that order;
    first: the first pattern of each."""

    patterns: tuple[Pattern, ...]
    starts: re.Pattern[str]
    first: dict[str, int]

    def find(self, name: str) -> tuple[Pattern, Parts]:
        found = self.starts.match(name)
        assert found is not None, "the last pattern fits every name"
        for pattern in self.patterns[self.first[found[0]] :]:
            if name.startswith(pattern.start):
                parts = pattern.split(name if pattern.whole else name[len(pattern.start) :])
                if parts is not None:
                    return pattern, parts
        raise AssertionError("the last pattern refuses nothing")


@cache
def _reader(producer: str) -> Reader:
    patterns = PATTERNS.get(producer, PATTERNS["unknown"])
    first: dict[str, int] = {}
    for number, pattern in enumerate(patterns):
        first.setdefault(pattern.start, number)
    return Reader(patterns, re.compile("|".join(re.escape(start) for start in first)), first)


@dataclass(frozen=True)
class Producer:
    """name: a key of PATTERNS."""

    name: str

    def parse(self, name: str) -> Name:
        pattern, (function, file, line, column) = _reader(self.name).find(name)
        is_js = pattern.is_js and file != SELF_HOSTED
        return Name(function or ANONYMOUS, pattern.kind, pattern.category, pattern.tier, file, line, column, is_js)


# ---------------------------------------------------------------- whose names are they?

_SYMBOL = re.compile(r"[\w.$@?]+")


def producer_of(names: Sequence[str]) -> Producer:
    """Who wrote a file with these names, or with these among others.

    LLVM's are the names of any symbols: so is called what has nothing else but such.
    """
    judged = names[:: len(names) // MAX_JUDGED + 1]
    own = _own_patterns()
    find = _reader("unknown").find
    counts = Counter(own.get(find(name)[0], "") for name in judged)
    del counts[""]
    for producer, count in counts.most_common(1):
        writes_bare_names = PATTERNS[producer][-1] is not _GENERIC
        if count >= (SHARE_AMONG_BARE if writes_bare_names else SHARE) * len(judged):
            return Producer(producer)
    symbols = sum(_SYMBOL.fullmatch(name) is not None for name in judged)
    return Producer("LLVM" if symbols > 0.9 * len(judged) else "unknown")


@cache
def _own_patterns() -> dict[Pattern, str]:
    """The producer of each pattern that only one has."""
    return {p: name for name, patterns in PATTERNS.items() if name != "unknown" for p in patterns if p.own}
