"""Names of CoreCLR's code (.NET), in perf maps and jitdumps: src/coreclr/vm/perfmap.cpp, signatures of
src/coreclr/utilcode/prettyprintsig.cpp, tiers of vm/prestub.cpp (GetJitOptimizationTierStr)."""

from __future__ import annotations

from traceferry.common.patterns import compiled_later
from traceferry.symbolication.jit_names.patterns import GENERIC, Parts, Pattern, Split, fields, tier

# ` [System.Private.CoreLib] ` between what a method returns and its class. Classes of what it returns have their
# assembly without a blank behind it; arrays, no blank in front of the bracket.
_ASSEMBLY = compiled_later(r"(?:^| )\[([^\[\]]+)\] ")
_BRACKETS = compiled_later(r"\[[,*]*\]|[\[\]]")
# Number of type parameters: List`1.
_ARITY = compiled_later(r"`[0-9]+")
# Of nested classes; compiler-generated ones begin with `<`.
_NESTED = compiled_later(r"(?<=[\w>\]])[+/](?=[\w<])")
_TYPE_WORD = compiled_later(r"(?<![\w.])(?:value class|valuetype|class) ")
_TYPE_ASSEMBLY = compiled_later(r"(?<![\w\]>`&*])\[[^\[\],]+\](?=\S)")
# Of an array with several dimensions, whose lower bounds are unknown: int32[0...,0...].
_BOUND = compiled_later(r"(?<=[\[,])0\.\.\.(?=[,\]])")

_BLANK = compiled_later(r"(?<!,) ")
# Behind the names of code that was compiled ahead.
AHEAD = "[PreJIT]"

_QUICK = "QuickJitted"
_TIERS = (
    ("PreJIT", tier("PreJIT", "brown")),
    ("PreJit-cold", tier("PreJIT (cold)", "brown", family="PreJIT")),
    # Not blue, as native code is.
    (_QUICK, tier(_QUICK, "yellow")),
    ("OptimizedTier0", tier("OptimizedTier0", "yellow", family=_QUICK)),
    ("MinOptJitted", tier("MinOptJitted", "yellow", family=_QUICK)),
    ("MinOptimized", tier("MinOptimized", "yellow", family=_QUICK)),
    ("Instrumented", tier("Instrumented", "magenta")),
    ("InstrumentedTier", tier("InstrumentedTier", "magenta", family="Instrumented")),
    ("InstrumentedTierOptimized", tier("InstrumentedTierOptimized", "magenta", family="Instrumented")),
    ("Optimized", tier("Optimized", "green")),
    ("OptimizedTier1", tier("OptimizedTier1", "green", family="Optimized")),
    ("OptimizedTier1OSR", tier("OptimizedTier1 (OSR)", "green", family="Optimized")),
    ("OptimizedTier1/OSR", tier("OptimizedTier1 (OSR)", "green", family="Optimized")),
    ("Unknown", None),
)


def _method(text: str) -> Parts | None:
    """Returns `instance int32 [App] App.Program::Work(class [Lib]Lib.Box`1<int32>&)` as
    App.Program.Work(Lib.Box<int32>&)."""
    found = _ASSEMBLY.search(text)
    if found is None or not text.endswith(")"):
        return None
    name, bracket, arguments = text[found.end() :].partition("(")
    owner, colons, method = name.partition("::")
    if not bracket or not colons or not owner:
        return None
    return f"{_type(owner)}.{_type(method.replace('::', '.'))}({_signature(arguments)}", "", 0, 0


def _type(text: str) -> str:
    """Returns List`1[System.Int32] as List<System.Int32>, Outer+Inner as Outer.Inner. Without its arguments a generic
    type keeps the number of them."""
    if "[" in text:
        text = _with_angles(_ARITY.sub("", text))
    return _NESTED.sub(".", text)


def _with_angles(text: str) -> str:
    """Returns generic arguments in angle brackets, `[[System.Int32, System.Runtime]]` without assemblies; the brackets
    of arrays stay."""
    shown: list[str] = []
    opened: list[bool] = []  # whether a bracket encloses one argument and its assembly
    at = 0
    for found in _BRACKETS.finditer(text):
        before, bracket = text[at : found.start()], found[0]
        at = found.end()
        if bracket == "]":
            of_argument = bool(opened) and opened.pop()
            shown.append(before.partition(", ")[0] if of_argument else before)
            shown.append("" if of_argument else ">")
        elif bracket == "[":
            # Directly behind another one or a comma: that of one argument.
            opened.append(bool(opened) and before in ("", ","))
            shown += [before, "" if opened[-1] else "<"]
        else:
            shown += [before, bracket]
    return "".join(shown) + text[at:]


def _signature(text: str) -> str:
    """Returns the types of arguments without `class`, assemblies and numbers of type parameters."""
    text = _BOUND.sub("", _TYPE_ASSEMBLY.sub("", _TYPE_WORD.sub("", text)))
    return _NESTED.sub(".", _ARITY.sub("", text))


def _compiled_as(word: str) -> Split:
    """Parses a method with the word of its tier behind it."""
    suffix = f"[{word}]"

    def split(text: str) -> Parts | None:
        return _method(text[: -len(suffix)]) if text.endswith(suffix) else None

    return split


def _ahead(text: str) -> Parts | None:
    """Returns a line of crossgen2's map as App.Program.Work(int32): `int32 [App]App.Program::Work(int32)`, or without
    assemblies. src/coreclr/tools/aot/ILCompiler.ReadyToRun (FormatMethodName)."""
    text = text[: -len(AHEAD)] if text.endswith(AHEAD) else ""
    name, bracket, arguments = text.partition("(")
    before, colons, method = name.partition("::")
    if not bracket or not colons or not text.endswith(")"):
        return None
    # A blank is also behind the comma of generic arguments.
    begins = [found.end() for found in _BLANK.finditer(before)]
    owner = _signature(before[begins[-1] if begins else 0 :])
    return (f"{owner}.{_type(method.replace('::', '.'))}({_signature(arguments)}", "", 0, 0) if owner else None


# stub GenerateLookupStub<owner>; with single stubs (PerfMapStubGranularity) `stub<12> `: the number of the stub.
_STUB = r"stub(?:<[0-9]{1,9}>)? (?P<function>[^<>]+<.*>|[^<> ]+)"

DOTNET: tuple[Pattern, ...] = (
    Pattern("stub", "stub", "JIT", None, fields(_STUB), whole=True),
    *(Pattern("", "function", ".NET", tier, _compiled_as(word)) for word, tier in _TIERS),
    Pattern("", "function", ".NET", _TIERS[0][1], _ahead),
    Pattern("", "function", ".NET", None, _method),
    GENERIC,
)
