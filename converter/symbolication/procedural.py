"""Names of native code that compilers of Fortran, Pascal and Crystal wrote, as people write them.

Fortran: gfortran (gcc/fortran/trans-decl.cc: mangled_identifier), Intel's compilers, and Flang
(flang/docs/BijectiveInternalNameUniquing.md). Free Pascal: compiler/symdef.pas: mangledname, of 3.2. Crystal: the text
of types and methods, after an asterisk.
"""

from __future__ import annotations

from traceferry.common.patterns import compiled_later

# What GCC and LLVM write behind the name of a copy of a function: .constprop.0, .llvm.123.
_COPY = r"(?P<copy>(?:\.[a-z_]+)*(?:\.[a-z_]+\.\d+)*)"
# Fortran's names have no capitals, but for those of what the compiler makes of types.
_GFORTRAN = compiled_later(rf"__(?P<scopes>[a-z][a-z0-9_]*(?:\.[a-z0-9_]+)*)_MOD_(?P<name>[a-z_]\w*?){_COPY}")
_INTEL = "_mp_"
_FORTRAN_WORD = compiled_later(r"[a-z][a-z0-9_]*")
# Modules, submodules and procedures around a procedure; the main program has no name.
_FLANG = compiled_later(rf"_Q(?P<scopes>(?:[MS][a-z][a-z0-9_]*)*(?:F[a-z0-9_]*)?)P(?P<name>[a-z][a-z0-9_]*){_COPY}")
_FLANG_SCOPE = compiled_later(r"[MSF]([a-z0-9_]*)")
_PASCAL_IN = "_$$_"
# In front of that: the unit, or P$ and the program; types, and procedures with the types of their parameters; a $ and a
# checksum where these are long.
_PASCAL_UNIT = compiled_later(r"(?:P\$)?(?P<unit>[A-Z][A-Z0-9_.]*)(?:\$_\$(?P<scopes>.+?)(?:_\$_)?)?")
_PASCAL_BETWEEN = compiled_later(r"_\$_|\$_\$")
_PASCAL_NAME = compiled_later(r"(?P<name>\w+(?:<[0-9A-F]{8}>)?)(?:\$(?P<types>.*))?")
# The number of types that a generic is specialized with, and a checksum of what they are.
_SPECIALIZED = compiled_later(r"\$\d+\$(?:CRC|crc)([0-9A-F]{8})")
# The type of the result is last: V8 marks functions with an asterisk, too.
_CRYSTAL = compiled_later(r"\*[^\s*].*:\(?[A-Z].*")


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
    return _pascal_name(name) if _PASCAL_IN in name else None


def _pascal_name(name: str) -> str | None:
    around, _, last = _SPECIALIZED.sub(r"<\1>", name).rpartition(_PASCAL_IN)
    found, procedure = _PASCAL_UNIT.fullmatch(around), _PASCAL_NAME.fullmatch(last.removeprefix("$"))
    if found is None or procedure is None:
        return None
    between = _PASCAL_BETWEEN.split(found["scopes"] or "")
    scopes = [_PASCAL_NAME.fullmatch(scope.removeprefix("$")) for scope in between if scope]
    names = [scope["name"] for scope in scopes if scope is not None]
    if len(names) < len(scopes):
        return None
    parameters, _, _ = (procedure["types"] or "").partition("$$")
    # A result without parameters stands behind two signs, of which the first is read.
    is_result = (procedure["types"] or "").startswith("$")
    types = [] if is_result else [one for one in parameters.split("$") if one]
    shown = "operator " * last.startswith("$") + procedure["name"]
    return ".".join([found["unit"], *names, shown]) + (f"({', '.join(types)})" if types else "")
