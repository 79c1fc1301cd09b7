"""The protobuf wire format, as much of it as the rare packets need.

Importing the generated classes would take a good part of the time in which a small recording is converted. Tests read
every packet back with the protobuf library.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from itertools import repeat

import numpy as np

from traceferry.model import Array

VARINT, FIXED64, LENGTH = 0, 1, 2
ONE_BYTE = [bytes([value]) for value in range(128)]
FEW = 32  # of these, one by one is faster


def varint(value: int) -> bytes:
    """Unsigned, or signed as 64-bit two's complement."""
    if 0 <= value < 128:
        return ONE_BYTE[value]
    if 0 <= value < 1 << 14:
        return bytes((value & 127 | 128, value >> 7))
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def varints(values: Array) -> list[bytes]:
    """Of many values, unsigned or signed as 64-bit two's complement."""
    if len(values) < FEW:
        return [varint(value) for value in values.tolist()]
    left = np.ascontiguousarray(values).astype(np.uint64)
    digits = np.empty((len(left), 10), np.uint8)
    length = np.ones(len(left), np.int64)
    for nth in range(10):
        digits[:, nth] = left & np.uint64(127)
        left = left >> np.uint64(7)
        more = left != 0
        digits[more, nth] |= 128
        length += more
    text = digits.tobytes()
    return [text[at : at + size] for at, size in zip(range(0, len(text), 10), length.tolist(), strict=True)]


def integer(field: int, value: int) -> bytes:
    """A field of an integer, bool or enum type."""
    return varint(field << 3 | VARINT) + varint(value)


def fixed64(field: int, value: int) -> bytes:
    return varint(field << 3 | FIXED64) + struct.pack("<Q", value & (1 << 64) - 1)


def text(field: int, value: str) -> bytes:
    # Lone surrogates cannot be written; nothing else is lost.
    return message(field, value.encode("utf-8", "replace"))


def message(field: int, *parts: bytes) -> bytes:
    """A field of a message or bytes type, from its serialised fields."""
    data = b"".join(parts)
    return varint(field << 3 | LENGTH) + varint(len(data)) + data


def lengths(texts: Sequence[bytes]) -> Array:
    """int64, in bytes"""
    return np.fromiter(map(len, texts), np.int64, len(texts))


def messages(field: int, datas: Sequence[bytes]) -> list[bytes]:
    """`message` of each of them."""
    return list(map(b"".join, zip(repeat(varint(field << 3 | LENGTH)), varints(lengths(datas)), datas)))


def texts(field: int, values: Iterable[str]) -> list[bytes]:
    """`text` of each of them."""
    return messages(field, [value.encode("utf-8", "replace") for value in values])
