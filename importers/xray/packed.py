"""The program of a log, as a pack holds it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from traceferry.files.answers import Blob, checked
from traceferry.importers.xray.functions import Object


def asked(one: Object, whole: bool) -> Object:
    """Returns an instrumented binary that keeps which functions a log names. whole: keeps them all."""
    from traceferry.unwinding.packed import AskedSymbols

    return one._replace(symbols=AskedSymbols(one.symbols, whole))


def packed_objects(objects: Sequence[Object]) -> Any:
    return [_packed(one) for one in objects]


def _packed(one: Object) -> Any:
    from traceferry.unwinding.packed import AskedSymbols, Used, packed_binary, packed_symbols

    kept, big = one.symbols, not one.binary.little_endian
    assert isinstance(kept, AskedSymbols)
    return {
        "number": one.number,
        "binary": packed_binary(one.binary, (), False),
        "symbols": packed_symbols(Used(kept.symbols, kept.symbols.lookup, kept.asked, kept.whole), big),
        "addresses": Blob(f"{one.binary.name}.sleds", np.array(one.addresses, "<u8").tobytes()),
    }


def unpacked_objects(value: Any) -> list[Object]:
    from traceferry.unwinding.packed import PackedSymbols, unpacked_binary

    objects = []
    for one in value:
        binary = unpacked_binary(checked(one["binary"], dict))
        assert binary is not None
        addresses = np.frombuffer(checked(one["addresses"], memoryview), "<u8").tolist()
        objects.append(Object(checked(one["number"], int), binary, PackedSymbols(one["symbols"]), addresses))
    return objects
