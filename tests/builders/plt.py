"""Builds ELF files with a procedure linkage table as linkers lay it out, from nothing but `struct`.

Every byte of the file is loaded at the address that is its offset. SLOTS is the address of the global offset table, of
which each function of FUNCTIONS has a slot, the last one an indirect function (IRELATIVE).
"""

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

FUNCTIONS = ("memcpy", "_ZN3app4tickEv", "")
RESOLVER = 0x1808
INIT, PLT, PLT_SEC, PLT_GOT, TEXT, SLOTS = 0x1000, 0x1020, 0x1200, 0x1400, 0x1800, 0x2000
FUNC, INDIRECT, EXECUTABLE, ALLOCATED = 2, 10, 6, 3
ENDBR64, ENDBR32 = b"\xf3\x0f\x1e\xfa", b"\xf3\x0f\x1e\xfb"


class Machine(NamedTuple):
    """number: EM_*; the others: R_<machine>_*."""

    number: int
    word: int
    jump_slot: int
    glob_dat: int
    irelative: int

    def slot(self, nth: int) -> int:
        return SLOTS + 3 * self.word + nth * self.word


X86_64, I386, AARCH64 = Machine(62, 8, 7, 6, 37), Machine(3, 4, 7, 6, 42), Machine(183, 8, 1026, 1025, 1032)


class Symbol(NamedTuple):
    name: str
    address: int
    size: int
    section: str
    kind: int = FUNC


class Layout(NamedTuple):
    """sections: name → (address, where its stubs begin, how long each is, bytes); one stub of each function."""

    machine: Machine
    sections: Mapping[str, tuple[int, int, int, bytes]]


def relative(code: bytes, at: int, target: int) -> bytes:
    """The code and an operand of 4 bytes that is relative to what follows it."""
    return code + struct.pack("<i", target - (at + len(code) + 4))


def absolute(code: bytes, value: int) -> bytes:
    return code + struct.pack("<i", value)


def section(address: int, header: bytes, size: int, stub: Callable[[int, int], bytes]) -> tuple[int, int, int, bytes]:
    """stub: makes the nth stub at its address."""
    code = header
    for nth in range(len(FUNCTIONS)):
        code += stub(nth, address + len(code)).ljust(size, b"\xcc")
    return address, address + len(header), size, code


def adrp(at: int, target: int) -> int:
    """adrp x16, the page of target"""
    pages = (target >> 12) - (at >> 12)
    return 0x90000010 | (pages & 3) << 29 | (pages >> 2 & 0x7FFFF) << 5


def jump_of_aarch64(at: int, slot: int) -> bytes:
    low = slot & 0xFFF
    return struct.pack("<4I", adrp(at, slot), 0xF9400211 | low >> 3 << 10, 0x91000210 | low << 10, 0xD61F0220)


def layouts() -> dict[str, Layout]:
    """By linker and options. Bytes as binutils 2.40, lld 19 and mold 1.10 write them."""
    x, i, a = X86_64, I386, AARCH64
    head = relative(b"\xff\x35", PLT, SLOTS + 8) + relative(b"\xff\x25", PLT + 6, SLOTS + 16) + b"\x0f\x1f\x40\0"
    head_386 = b"\xff\xb3\4\0\0\0\xff\xa3\x08\0\0\0\0\0\0\0"
    bti, nop = struct.pack("<I", 0xD503245F), struct.pack("<I", 0xD503201F)
    head_a = struct.pack("<I", 0xA9BF7BF0) + jump_of_aarch64(PLT + 4, SLOTS + 16) + 3 * nop

    def lazy(nth: int, at: int) -> bytes:
        code = relative(b"\xff\x25", at, x.slot(nth)) + absolute(b"\x68", nth)
        return relative(code + b"\xe9", at, PLT)

    def now(nth: int, at: int) -> bytes:
        return relative(b"\xff\x25", at, x.slot(nth)) + b"\x66\x90"

    def lazy_ibt(nth: int, at: int) -> bytes:
        return relative(absolute(ENDBR64 + b"\x68", nth) + b"\xf2\xe9", at, PLT) + b"\x90"

    def second(nth: int, at: int) -> bytes:
        return relative(ENDBR64 + b"\xf2\xff\x25", at, x.slot(nth)) + b"\x0f\x1f\x44\0\0"

    def mold(nth: int, at: int) -> bytes:
        return relative(absolute(ENDBR64 + b"\x41\xbb", nth) + b"\xff\x25", at, x.slot(nth))

    def retpoline(nth: int, at: int) -> bytes:
        code = relative(b"\x4c\x8b\x1d", at, x.slot(nth))
        code = relative(relative(code + b"\xe8", at, PLT + 32) + b"\xe9", at, PLT + 18)
        return relative(absolute(code + b"\x68", nth) + b"\xe9", at, PLT)

    def lazy_386(nth: int, at: int) -> bytes:
        return relative(absolute(absolute(b"\xff\x25", i.slot(nth)) + b"\x68", 8 * nth) + b"\xe9", at, PLT)

    def pic_386(nth: int, at: int) -> bytes:
        return relative(absolute(absolute(b"\xff\xa3", i.slot(nth) - SLOTS) + b"\x68", 8 * nth) + b"\xe9", at, PLT)

    def ibt_386(nth: int, _: int) -> bytes:
        return absolute(ENDBR32 + b"\xff\xa3", i.slot(nth) - SLOTS) + b"\x66\x0f\x1f\x44\0\0"

    def of_bti(nth: int, at: int) -> bytes:
        return bti + jump_of_aarch64(at + 4, a.slot(nth)) + nop

    return {
        "x86-64 bfd": Layout(x, {".plt": section(PLT, head, 16, lazy)}),
        "x86-64 bfd -z now": Layout(x, {".plt.got": section(PLT_GOT, b"", 8, now)}),
        "x86-64 bfd -z ibtplt": Layout(
            x, {".plt": section(PLT, head, 16, lazy_ibt), ".plt.sec": section(PLT_SEC, b"", 16, second)}
        ),
        "x86-64 bfd -static": Layout(x, {".plt": section(PLT, b"", 8, now)}),
        "x86-64 mold": Layout(x, {".plt": section(PLT, bytes(32), 16, mold)}),
        "x86-64 lld -z retpolineplt": Layout(x, {".plt": section(PLT, bytes(48), 32, retpoline)}),
        "x86-64 lld .iplt": Layout(x, {".iplt": section(PLT, b"", 16, lazy)}),
        "i386 bfd -no-pie": Layout(i, {".plt": section(PLT, bytes(16), 16, lazy_386)}),
        "i386 bfd": Layout(i, {".plt": section(PLT, head_386, 16, pic_386)}),
        "i386 bfd -z ibtplt": Layout(i, {".plt.sec": section(PLT_SEC, b"", 16, ibt_386)}),
        "AArch64 bfd": Layout(a, {".plt": section(PLT, head_a, 16, lambda nth, at: jump_of_aarch64(at, a.slot(nth)))}),
        "AArch64 lld -z force-bti": Layout(a, {".plt": section(PLT, bti + head_a[:-4], 24, of_bti)}),
    }


def elf(layout: Layout, symbols: Sequence[Symbol] = (), more: Mapping[str, bytes] | None = None) -> bytes:
    """symbols: of .symtab; more: sections that are not loaded."""
    machine = layout.machine
    wide = machine.word == 8
    data = bytearray(SLOTS + 0x100)
    # name, type, flags, address, offset, size, link, entry size
    rows: list[tuple[str, int, int, int, int, int, str, int]] = []

    def add(name: str, kind: int, flags: int, address: int, content: bytes, link: str = "", entry: int = 0) -> None:
        at = address or len(data)
        data[at : at + len(content)] = content
        rows.append((name, kind, flags, address, at, len(content), link, entry))

    add(".init", 1, EXECUTABLE, INIT, b"\xc3" * 0x18)
    for name, (address, _, _, code) in layout.sections.items():
        add(name, 1, EXECUTABLE, address, code)
    add(".text", 1, EXECUTABLE, TEXT, b"\xc3" * 0x40)
    add(".got.plt", 1, ALLOCATED, SLOTS, bytes(3 * machine.word))
    for nth, function in enumerate(FUNCTIONS):
        if not function and machine is I386:
            struct.pack_into("<I", data, machine.slot(nth), RESOLVER)
    entries = b""
    for nth, function in enumerate(FUNCTIONS):
        kind, symbol = (machine.jump_slot, nth + 1) if function else (machine.irelative, 0)
        slot, addend = machine.slot(nth), 0 if function else RESOLVER
        entries += (
            struct.pack("<QQQ", slot, symbol << 32 | kind, addend) if wide
            else struct.pack("<II", slot, symbol << 8 | kind)
        )  # fmt: skip
    add(".rela.plt" if wide else ".rel.plt", 4 if wide else 9, 2, 0, entries, ".dynsym", 24 if wide else 8)
    dynamic = [Symbol(name, 0, 0, "") for name in FUNCTIONS if name]
    for table, strings, kind, of in ((".dynsym", ".dynstr", 11, dynamic), (".symtab", ".strtab", 2, symbols)):
        texts, content = b"\0", bytes(24 if wide else 16)
        numbers = {"": 0} | {row[0]: nth + 1 for nth, row in enumerate(rows)}
        for one in of:
            info, at = 0x10 | one.kind, len(texts)
            content += (
                struct.pack("<IBBHQQ", at, info, 0, numbers[one.section], one.address, one.size) if wide
                else struct.pack("<IIIBBH", at, one.address, one.size, info, 0, numbers[one.section])
            )  # fmt: skip
            texts += one.name.encode() + b"\0"
        add(table, kind, 2 if kind == 11 else 0, 0, content, strings, 24 if wide else 16)
        add(strings, 3, 0, 0, texts)
    for name, content in (more or {}).items():
        add(name, 7 if name.startswith(".note") else 1, 0, 0, content)
    names = b"\0" + b"".join(row[0].encode() + b"\0" for row in rows) + b".shstrtab\0"
    add(".shstrtab", 3, 0, 0, names)
    numbers = {"": 0} | {row[0]: nth + 1 for nth, row in enumerate(rows)}
    headers_at = len(data)
    words = "<IIQQQQIIQQ" if wide else "<10I"
    headers = bytes(struct.calcsize(words))
    for name, kind, flags, address, at, size, link, entry in rows:
        name_at = names.index(b"\0" + name.encode() + b"\0") + 1
        headers += struct.pack(words, name_at, kind, flags, address, at, size, numbers[link], 0, 1, entry)
    n_loaded = SLOTS + 0x100
    if wide:
        segment = struct.pack("<IIQQQQQQ", 1, 7, 0, 0, 0, n_loaded, n_loaded, 0x1000)
        places = (1, 0, 64, headers_at, 0, 64, 56, 1, 64)
    else:
        segment = struct.pack("<8I", 1, 0, 0, 0, n_loaded, n_loaded, 7, 0x1000)
        places = (1, 0, 52, headers_at, 0, 52, 32, 1, 40)
    words = "<HHIQQQIHHHHHH" if wide else "<HHIIIIIHHHHHH"
    head = struct.pack(words, 3, machine.number, *places, len(rows) + 1, len(rows))
    begin = b"\x7fELF" + bytes([2 if wide else 1, 1, 1]) + bytes(9) + head + segment
    data[: len(begin)] = begin
    return bytes(data + headers)
