"""Names of native code that compilers of Fortran, Pascal and Crystal wrote, as people write them.

Fortran: gfortran (gcc/fortran/trans-decl.cc: mangled_identifier), Intel's compilers, and Flang
(flang/docs/BijectiveInternalNameUniquing.md). Free Pascal: compiler/symdef.pas: mangledname, of 3.2. Crystal: the text
of types and methods, after an asterisk.
"""

from __future__ import annotations

import re

# What GCC and LLVM write behind the name of a copy of a function: .constprop.0, .llvm.123.
_COPY = r"(?P<copy>(?:\.[a-z_]+)*(?:\.[a-z_]+\.\d+)*)"
# Fortran's names have no capitals, but for those of what the compiler makes of types.
_GFORTRAN = re.compile(rf"__(?P<scopes>[a-z][a-z0-9_]*(?:\.[a-z0-9_]+)*)_MOD_(?P<name>[a-z_]\w*?){_COPY}")
_INTEL = "_mp_"
_FORTRAN_WORD = re.compile(r"[a-z][a-z0-9_]*")
# Modules, submodules and procedures around a procedure; the main program has no name.
_FLANG = re.compile(rf"_Q(?P<scopes>(?:[MS][a-z][a-z0-9_]*)*(?:F[a-z0-9_]*)?)P(?P<name>[a-z][a-z0-9_]*){_COPY}")
_FLANG_SCOPE = re.compile(r"[MSF]([a-z0-9_]*)")
_PASCAL = re.compile(
    r"(?:P\$)?(?P<unit>[A-Z][A-Z0-9_.]*?)(?P<types>(?:\$_\$[A-Z0-9_]+?)*)(?:_\$_)?_\$\$_"
    r"(?P<operator>\$?)(?P<name>\w+)(?:\$(?P<types_of_parameters>.*))?"
)
# The type of the result is last: V8 marks functions with an asterisk, too.
_CRYSTAL = re.compile(r"\*[^\s*].*:\(?[A-Z].*")


def procedural_name(name: str) -> str | None:
    """Returns work::heavy for __work_MOD_heavy, A.TCOUNTER.ADD(QWORD) for P$A$_$TCOUNTER_$__$$_ADD$QWORD; None for what
    is no such name."""
    if name.startswith("*"):
        return name[1:] if _CRYSTAL.fullmatch(name) else None
    if found := _GFORTRAN.fullmatch(name):
        return "::".join([*found["scopes"].split("."), found["name"]]) + found["copy"]
    if found := _FLANG.fullmatch(name):
        scopes = [scope for scope in _FLANG_SCOPE.findall(found["scopes"]) if scope]
        return "::".join([*scopes, found["name"]]) + found["copy"]
    if _INTEL in name[:-1] and name.endswith("_"):
        parts = name[:-1].split(_INTEL, 1)
        return "::".join(parts) if all(map(_FORTRAN_WORD.fullmatch, parts)) else None
    return _pascal_name(name) if "_$$_" in name else None


def _pascal_name(name: str) -> str | None:
    found = _PASCAL.fullmatch(name)
    if found is None:
        return None
    scopes = [found["unit"], *found["types"].split("$_$")[1:]]
    parameters, _, _ = (found["types_of_parameters"] or "").partition("$$")
    # A result without parameters stands behind two signs, of which the first is read.
    is_result = (found["types_of_parameters"] or "").startswith("$")
    types = [] if is_result else [one for one in parameters.split("$") if one]
    shown = "operator " * bool(found["operator"]) + found["name"]
    return ".".join([*scopes, shown]) + (f"({', '.join(types)})" if types else "")
