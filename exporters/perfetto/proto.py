"""The protobuf wire format, as much of it as the rare packets need.

Importing the generated classes would take a good part of the time in which a small recording is converted. Tests read
every packet back with the protobuf library. A tag is a field's number << 3 | wire type: see fields.py.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from itertools import repeat

import numpy as np

from traceferry.model import Array

ONE_BYTE = [bytes([value]) for value in range(128)]
FEW = 32  # of these, one by one is faster


def varint(value: int) -> bytes:
    """Returns a number as a varint, a negative one in two's complement of 64 bits."""
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
    """Returns `varint` of each of them."""
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


def integer(tag: int, value: int) -> bytes:
    """Returns a field of an integer, bool or enum type."""
    return varint(tag) + varint(value)


def fixed64(tag: int, value: int) -> bytes:
    return varint(tag) + struct.pack("<Q", value & (1 << 64) - 1)


def text(tag: int, value: str) -> bytes:
    # Lone surrogates cannot be written; nothing else is lost.
    return message(tag, value.encode("utf-8", "replace"))


def message(tag: int, *parts: bytes | memoryview) -> bytes:
    """Returns a field of a message or bytes type, or of packed integers, of what is serialised in it."""
    data = b"".join(parts)
    return varint(tag) + varint(len(data)) + data


def lengths(texts: Sequence[bytes]) -> Array:
    """Returns how many bytes each has (int64)."""
    return np.fromiter(map(len, texts), np.int64, len(texts))


def messages(tag: int, datas: Sequence[bytes]) -> list[bytes]:
    """Returns `message` of each of them."""
    return list(map(b"".join, zip(repeat(varint(tag)), varints(lengths(datas)), datas)))


def texts(tag: int, values: Iterable[str]) -> list[bytes]:
    """Returns `text` of each of them."""
    return messages(tag, [value.encode("utf-8", "replace") for value in values])
