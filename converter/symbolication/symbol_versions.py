"""Decode: the versions of dynamic symbols (.gnu.version, .gnu.version_d; Linux Standard Base, "Symbol Versioning"). A
library may have several of one name: NAME@@V2, to which programs are linked, and hidden ones as NAME@V1, for programs
that were linked before.
"""

from __future__ import annotations

import struct
from typing import Literal

import numpy as np

from traceferry.model import Array

VERSYM, VERDEF = ".gnu.version", ".gnu.version_d"
# The bit of a number in .gnu.version that says that programs are not linked to this version any more.
HIDDEN = 0x8000
# Verdef: vd_version, vd_flags, vd_ndx, vd_cnt, vd_hash, vd_aux, vd_next.
DEFINITION, NAME = "HHHHIII", "I"

Order = Literal["<", ">"]


def hidden_versions(versym: bytes, order: Order, n_symbols: int) -> Array:
    """Returns for each dynamic symbol the number of its version, if that is hidden, 0 otherwise: int64."""
    numbers = np.frombuffer(versym, f"{order}u2", min(len(versym) // 2, n_symbols)).astype(np.int64)
    found = np.zeros(n_symbols, np.int64)
    found[: len(numbers)] = np.where(numbers & HIDDEN, numbers & ~HIDDEN, 0)
    return found


def names_of_versions(verdef: bytes, order: Order) -> dict[int, int]:
    """Returns by the number of a version where in the texts of the dynamic symbols its name is."""
    layout, name = struct.Struct(order + DEFINITION), struct.Struct(order + NAME)
    found: dict[int, int] = {}
    at = 0
    # No more than there are numbers.
    for _ in range(HIDDEN):
        if at + layout.size > len(verdef):
            break
        _, _, number, _, _, aux, following = layout.unpack_from(verdef, at)
        if at + aux + name.size <= len(verdef):
            found.setdefault(number, name.unpack_from(verdef, at + aux)[0])
        if following == 0:
            break
        at += following
    return found
