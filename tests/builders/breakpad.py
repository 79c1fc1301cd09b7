"""Writes Breakpad symbol files as docs/symbol_files.md of Breakpad describes them. Shares nothing with the reader."""

from __future__ import annotations

BUILD_ID = "d46e09d321814fd7c16b29cd9bc208ba01020304"
DEBUG_ID = "D3096ED48121D74FC16B29CD9BC208BA0"


class SymFile:
    """Records in the order of the calls. Numbers are written as the format wants them: addresses, sizes in hex."""

    def __init__(self, debug_id: str = DEBUG_ID, *, name: str = "app", newline: str = "\n") -> None:
        self.newline = newline
        self.records = [f"MODULE Linux x86_64 {debug_id} {name}"]

    def code_id(self, code_id: str = BUILD_ID, name: str = "") -> SymFile:
        return self.raw(f"INFO CODE_ID {code_id.upper()} {name}".rstrip())

    def file(self, number: int, name: str) -> SymFile:
        return self.raw(f"FILE {number} {name}")

    def origin(self, number: int, name: str) -> SymFile:
        return self.raw(f"INLINE_ORIGIN {number} {name}")

    def func(self, address: int, size: int, name: str, *, multiple: bool = False, parameters: int = 0) -> SymFile:
        return self.raw(f"FUNC {'m ' * multiple}{address:x} {size:x} {parameters:x} {name}")

    def line(self, address: int, size: int, line: int, file: int) -> SymFile:
        return self.raw(f"{address:x} {size:x} {line} {file}")

    def inline(self, level: int, line: int, file: int, origin: int, *ranges: tuple[int, int]) -> SymFile:
        """ranges: (address, size)"""
        pairs = " ".join(f"{address:x} {size:x}" for address, size in ranges)
        return self.raw(f"INLINE {level} {line} {file} {origin} {pairs}")

    def public(self, address: int, name: str, *, multiple: bool = False) -> SymFile:
        return self.raw(f"PUBLIC {'m ' * multiple}{address:x} 0 {name}")

    def raw(self, record: str) -> SymFile:
        self.records.append(record)
        return self

    def bytes(self) -> bytes:
        return "".join(record + self.newline for record in self.records).encode()
