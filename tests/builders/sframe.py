"""Builds SFrame sections of versions 1 to 3, after the specification of the format."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

SP, FP = 1, 0
MASK, SIGNAL = 0x10, 0x80


@dataclass(frozen=True)
class FrameRow:
    """start: in the function; words: as they stand in the file; base: SP or FP; size: of a word, 1, 2 or 4."""

    start: int
    words: Sequence[int] = (8,)
    base: int = SP
    size: int = 1


@dataclass
class SFrame:
    """address: of the section; fixed_ra, fixed_fp: offsets from the CFA, 0 is none."""

    version: int = 3
    big: bool = False
    abi: int = 3
    fixed_ra: int = -8
    fixed_fp: int = 0
    address: int = 0x4000
    auxiliary: bytes = b""
    pcrel: bool = True
    magic: int = 0xDEE2
    functions: list[tuple[int, int, Sequence[FrameRow], int, int, int, int]] = field(default_factory=list)

    def function(
        self, start: int, size: int, rows: Sequence[FrameRow], *, info: int = 0, kind: int = 0, block: int = 0,
        start_size: int = 1,
    ) -> SFrame:  # fmt: skip
        self.functions.append((start, size, rows, info, kind, block, start_size))
        return self

    def bytes(self) -> bytes:
        order = ">" if self.big else "<"
        descriptor = {1: 17, 2: 20, 3: 16}[self.version if self.version in (1, 2) else 3]
        begin = 28 + len(self.auxiliary)
        table, rows_part = b"", b""
        n_rows = sum(len(rows) for _, _, rows, *_ in self.functions)
        for nth, (start, size, rows, info, kind, block, start_size) in enumerate(self.functions):
            rows_at = len(rows_part)
            info |= {1: 0, 2: 1, 4: 2}[start_size]
            if self.version == 3:
                rows_part += struct.pack(f"{order}HBBB", len(rows), info, kind, block)
            for row in rows:
                rows_part += struct.pack(order + {1: "B", 2: "H", 4: "I"}[start_size], row.start)
                rows_part += bytes([row.base | len(row.words) << 1 | {1: 0, 2: 1, 4: 2}[row.size] << 5])
                words = [word - (1 << 8 * row.size) if word >= 1 << 8 * row.size - 1 else word for word in row.words]
                rows_part += struct.pack(f"{order}{len(words)}{ {1: 'b', 2: 'h', 4: 'i'}[row.size] }", *words)
            field_at = begin + nth * descriptor
            distance = start - self.address - (field_at if self.pcrel else 0)
            if self.version == 3:
                table += struct.pack(f"{order}qII", distance, size, rows_at)
                continue
            table += struct.pack(f"{order}iIIIB", distance, size, rows_at, len(rows), info)
            table += struct.pack(f"{order}BH", block, 0) if self.version == 2 else b""
        head = struct.pack(
            f"{order}HBBBbbBIIIII", self.magic, self.version, 1 | (4 if self.pcrel else 0), self.abi, self.fixed_fp,
            self.fixed_ra, len(self.auxiliary), len(self.functions), n_rows, len(rows_part), 0, len(table),
        )  # fmt: skip
        return head + self.auxiliary + table + rows_part
