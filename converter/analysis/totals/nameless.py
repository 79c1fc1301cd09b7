"""Functions that are addresses of a library, since nothing names what is there: together they are a row of tables."""

from __future__ import annotations

import re

import numpy as np

from traceferry.common.patterns import compiled_later
from traceferry.model import Array, Trace

# As libc.so.6+0x1234.
ADDRESS = compiled_later(r"(.+)\+0x[0-9a-f]+", re.DOTALL)
# How functions of code that no file holds and nothing names begin, behind which is the name of the memory.
GENERATED = "[code in "
# Also what only call-frame information tells of, and code that no file holds.
NAMELESS = compiled_later(rf"\[unknown\]|\[code in .+\]|{ADDRESS.pattern}|(?:.+ )?function at 0x[0-9a-f]+", re.DOTALL)


def grouped_addresses(trace: Trace) -> Array:
    """Returns for each func, int32, the first one that is such an address of the same library; for others the func."""
    frames = trace.frames
    group = np.arange(len(trace.funcs), dtype=np.int32)
    in_library = frames["lib"] >= 0
    pairs = zip(frames["func"][in_library].tolist(), frames["lib"][in_library].tolist(), strict=True)
    names, libraries = (trace.strings.of(table["name"]) for table in (trace.funcs, trace.libs))
    first: dict[str, int] = {}
    for func, lib in dict.fromkeys(pairs):
        name, library = names[func], libraries[lib]
        if name.startswith(f"{library}+0x") and (found := ADDRESS.fullmatch(name)) and found[1] == library:
            group[func] = first.setdefault(library, func)
    return group


def group_name(name: str, n_addresses: int) -> str:
    """Returns what a group is called. name: of its first function."""
    found = ADDRESS.fullmatch(name)
    return f"{found[1]} ({n_addresses} addresses without a name)" if found is not None and n_addresses > 1 else name
