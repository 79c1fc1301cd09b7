"""Names of native code that compilers of OCaml and Haskell wrote, as people write them.

OCaml: tools/perf/util/demangle-ocaml.c; from 5.1 on a dot stands between modules. GHC: the Z-encoding of
compiler/GHC/Utils/Encoding.hs, for PACKAGE_MODULE_NAME_KIND, of which a program's own modules have no package.
"""

from __future__ import annotations

import re

from traceferry.common.patterns import compiled_later

OCAML = "caml"
_OCAML_NAME = compiled_later(r"caml[A-Z][\w.$']*")
_OCAML_PART = compiled_later(r"__(?!_)|\$([0-9a-f]{2})")

# What GHC writes for code; closures and tables of strings are data.
GHC = ("_info", "_entry", "_slow", "_fast", "_ret")
# Words of C end so, too: a name is GHC's if its module has a dot, its package a hyphen, or its function is made by the
# compiler, as the worker $wf.
_GHC_NAME = compiled_later(
    r"(?:(?P<package>[a-zA-Z][a-zA-Z0-9]*)_)?(?P<module>[A-Z][a-zA-Z0-9]*)_(?P<name>[a-zA-Z0-9]+)_"
    r"(?P<kind>(?:con_)?(?:info|entry)|slow|fast|ret)"
)
_GHC_DOT = compiled_later(r"zi[A-Z]")
_GHC_CODE = compiled_later(r"z([0-9][0-9a-f]{0,5})U|Z([0-9]{1,2})([TH])|([zZ])(.?)")
_LOWER = {
    "a": "&", "b": "|", "c": "^", "d": "$", "e": "=", "g": ">", "h": "#", "i": ".", "l": "<", "m": "-", "n": "!",
    "p": "+", "q": "'", "r": "\\", "s": "/", "t": "*", "u": "_", "v": "%", "z": "z",
}  # fmt: skip
_UPPER = {"L": "(", "R": ")", "M": "[", "N": "]", "C": ":", "Z": "Z"}
# Kinds that are not said: what a function is called with.
_PLAIN = ("info", "entry")


def functional_name(name: str) -> str | None:
    """Returns Stdlib.List.rev_merge_552 for camlStdlib__List__rev_merge_552, base:GHC.Base.map for
    base_GHCziBase_map_info; None for what is no such name."""
    if name.startswith(OCAML):
        return _ocaml_name(name)
    return _ghc_name(name) if name.endswith(GHC) else None


def _ocaml_name(name: str) -> str | None:
    if _OCAML_NAME.fullmatch(name) is None:
        return None
    shown = _OCAML_PART.sub(lambda found: chr(int(found[1], 16)) if found[1] else ".", name[len(OCAML) :])
    return shown if shown.isprintable() else None


def _ghc_name(name: str) -> str | None:
    found = _GHC_NAME.fullmatch(name)
    if found is None:
        return None
    package, module, function, kind = found.groups("")
    is_made = function.startswith("zd") and len(function) > len("zd")
    if not (_GHC_DOT.search(module) or "zm" in package or is_made):
        return None
    parts = [_decoded(part) for part in (package, module, function)]
    if None in parts:
        return None
    said = "" if kind in _PLAIN else f" ({kind.replace('_', ' ')})"
    return f"{parts[0]}{':' * bool(package)}{parts[1]}.{parts[2]}{said}"


def _decoded(text: str) -> str | None:
    """Returns a part without its escapes, None if one of them is none."""
    shown, at = [], 0
    for found in _GHC_CODE.finditer(text):
        letter = _letter(found)
        if letter is None:
            return None
        shown += [text[at : found.start()], letter]
        at = found.end()
    plain = "".join(shown) + text[at:]
    return plain if plain.isprintable() else None


def _letter(found: re.Match[str]) -> str | None:
    code, size, brackets, case, letter = found.groups()
    if code:
        return chr(int(code, 16)) if int(code, 16) <= 0x10FFFF else None
    if brackets:
        commas = "," * (int(size) - 1)
        return f"({commas})" if brackets == "T" else f"(#{commas}#)"
    return (_LOWER if case == "z" else _UPPER).get(letter)
