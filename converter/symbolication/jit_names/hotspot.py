"""Names of HotSpot's JVMTI agent."""

from __future__ import annotations

import re

from traceferry.symbolication.jit_names.patterns import INTERPRETER_CODE, Parts, Pattern, machinery, only

_JAVA_TYPE = re.compile(r"(\[*)(?:([BCDFIJSZ])|L([^;]+);)")

_JAVA_RESULT = re.compile(r"V|\[*(?:[BCDFIJSZ]|L[^;]+;)")

_JAVA_WORDS = {
    "B": "byte", "C": "char", "D": "double", "F": "float", "I": "int", "J": "long", "S": "short", "Z": "boolean",
}  # fmt: skip


def _java_method(text: str) -> Parts | None:
    """Returns `pkg/Class;method(descriptor)result` (the L before it is the pattern's) in Java's words."""
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


PATTERNS: tuple[Pattern, ...] = (
    Pattern("L", "function", "Java", None, _java_method),
    machinery("I2C/C2I adapters(", "stub", whole=True),
    Pattern("", "stub", "Java", INTERPRETER_CODE, only("Interpreter"), own=False),
    machinery("", "stub", own=False),
)  # fmt: skip
