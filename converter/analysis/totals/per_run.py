"""Names with parts that each run of the same program has otherwise: addresses, and numbers that count what was made.
Functions of several recordings are found by names without them.

HotSpot, ClassFileParser::mangle_hidden_class_name and, before hidden classes, jvm.cpp; the JDK's
MethodAccessorGenerator and ProxyGenerator. .NET, System.Linq.Expressions' LambdaCompiler. Ruby, rb_any_to_s. Linux,
bpf_trampoline_alloc. Unclear: whether other runtimes write such names."""

from __future__ import annotations

import re

from traceferry.common.patterns import compiled_later

# What is left of a match are its groups.
PARTS = compiled_later(
    # App$$Lambda/0x000000007a0816a8.apply, App$$Lambda$14/1329552164.apply, LambdaForm$MH/0x00007f3c14002000.invoke
    r"(\$\$Lambda)(?:\$\d+)?/(?:0x[0-9a-f]+|\d+)"
    r"|(?<=\w)/0x[0-9a-f]{8,16}(?![0-9a-zA-Z])"
    # jdk.internal.reflect.GeneratedMethodAccessor12.invoke, com.sun.proxy.$Proxy7.get
    r"|(Generated(?:Method|Constructor|SerializationConstructor)Accessor)\d+|(\$Proxy)\d+"
    # block in #<Class:0x000055d0a1b2c3d8>#call
    r"|(#<[\w:]+):0x[0-9a-f]+"
    # DynamicClass.lambda_method7(pMT: ...)
    r"|\b(lambda_method)\d+"
    # bpf_trampoline_6442501234
    r"|(\bbpf_trampoline)_\d+\b"
)
# Each match has one of these: looking for them takes a fiftieth of the time.
HINTS = ("/0x", "$$Lambda$", "Accessor", "$Proxy", ":0x", "lambda_method", "bpf_trampoline")
# Of the text that a script made for a worker; the number is of this page's life.
BLOB = compiled_later(r"(\bblob:)\S*?[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def stable_name(name: str) -> str:
    """Returns the name of a function as all runs have it."""
    return PARTS.sub(_kept, name) if any(hint in name for hint in HINTS) else name


def stable_file(path: str) -> str:
    """Returns the path or address of a source as all runs have it."""
    return BLOB.sub(_kept, path) if "blob:" in path else path


def _kept(found: re.Match[str]) -> str:
    return "".join(part or "" for part in found.groups())
