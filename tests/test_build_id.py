"""Build ids: of ELF files of every shape, and in the form that the viewers want."""

import hashlib
import struct
from pathlib import Path

import pytest
from conftest import REPO
from recordings import content

from traceferry.common.report import Report
from traceferry.files.decompress import DEFAULT_LIMIT
from traceferry.files.source import open_source
from traceferry.libraries import vdso
from traceferry.libraries.recorded_files import RecordedFiles
from traceferry.symbolication.binary import Binary
from traceferry.symbolication.build_id import build_id_in, build_id_of, covers_code, debug_id_of

ID = bytes(range(20))
PROGRAMS = sorted(
    f"{folder.name.removeprefix('clang-')}/{path.name.removesuffix('.zst')}"
    for folder in (REPO / "fixtures/xray").glob("clang-*")
    for path in folder.iterdir()
    if "." not in path.name.removesuffix(".zst").removesuffix(".so")
)


def note(name: bytes, kind: int, payload: bytes, order: str) -> bytes:
    padded = [part.ljust(-(-len(part) // 4) * 4, b"\0") for part in (name, payload)]
    return struct.pack(order + "III", len(name), len(payload), kind) + b"".join(padded)


def elf(notes: bytes, *, order: str, wide: bool, in_sections: bool) -> bytes:
    """A header, one entry of a table, and notes. What `perf inject --jit` writes has them in sections only."""
    word, header_size = ("Q", 64) if wide else ("I", 52)
    ident = b"\x7fELF" + bytes([2 if wide else 1, 1 if order == "<" else 2, 1]).ljust(12, b"\0")
    if in_sections:
        entry = struct.pack(f"{order}II{word}{word}{word}{word}", 0, 7, 0, 0, header_size + 64, len(notes))
    elif wide:
        entry = struct.pack(f"{order}IIQQQQ", 4, 4, header_size + 64, 0, 0, len(notes))
    else:
        entry = struct.pack(f"{order}IIIII", 4, header_size + 64, 0, 0, len(notes))
    tables = (0, header_size) if in_sections else (header_size, 0)
    counts = (0, 0, 64, 1) if in_sections else (64, 1, 0, 0)
    head = ident + struct.pack(f"{order}HHI{word}{word}{word}I", 3, 62, 1, 0, *tables, 0)
    head += struct.pack(order + "HHHHHH", header_size, *counts, 0)
    return head + entry.ljust(64, b"\0") + notes


@pytest.mark.parametrize("in_sections", [False, True], ids=["program-header", "section"])
@pytest.mark.parametrize("wide", [False, True], ids=["32-bit", "64-bit"])
@pytest.mark.parametrize("order", ["<", ">"], ids=["little", "big"])
def test_every_shape(order: str, wide: bool, in_sections: bool) -> None:
    notes = note(b"other\0", 3, b"x", order) + note(b"GNU\0", 1, b"abi!", order) + note(b"GNU\0", 3, ID, order)
    data = elf(notes, order=order, wide=wide, in_sections=in_sections)
    assert build_id_of(memoryview(data)) == ID.hex()
    for size in range(len(data)):
        assert build_id_of(memoryview(data[:size])) in {"", ID.hex(), *(ID[:n].hex() for n in range(20))}


@pytest.mark.parametrize("data", [b"", b"\x7fELF", b"no ELF file at all", b"\x7fELF\2\1" + b"\xff" * 60])
def test_no_build_id(data: bytes) -> None:
    assert build_id_of(memoryview(data)) == ""


def test_notes_that_end_nowhere() -> None:
    assert build_id_in(struct.pack("<III", 0xFFFFFFFF, 0xFFFFFFFF, 3) + b"GNU\0", "<") == ""


VERSION = note(b"Linux\0", 0, b"\0\2\6\0", "<")
OTHER_KERNEL, SALT = note(b"Linux\0", 0, b"\1\0\6\0", "<"), note(b"Linux\0", 0x100, b"6.2-custom", "<")
CACHED: dict[str, tuple[list[tuple[bool, bytes]], int]] = {
    "of this kernel": ([(False, VERSION + SALT), (True, VERSION + SALT)], 0),
    "of another release": ([(False, OTHER_KERNEL + SALT)], -1),
    "of another build": ([(False, VERSION)], -1),
    "of 64 bits": ([(True, VERSION + SALT)], -1),
    "two": ([(False, VERSION + SALT), (False, SALT + VERSION)], -1),
    "none": ([], -1),
}


@pytest.mark.parametrize("case", CACHED)
def test_the_vdso_of_32_bit_processes_in_perfs_cache(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the notes of the kernel, which that of 64-bit processes has, too."""
    images, wanted = CACHED[case]
    ids = [hashlib.sha1(bytes([nth])).digest() for nth in range(len(images))]
    for build_id, (wide, notes) in zip(ids, images, strict=True):
        image = elf(notes + note(b"GNU\0", 3, build_id, "<"), order="<", wide=wide, in_sections=False)
        digits = build_id.hex()
        for folder in (tmp_path / ".debug/[vdso]" / digits, tmp_path / ".debug/.build-id" / digits[:2] / digits[2:]):
            folder.mkdir(parents=True)
            (folder / "vdso").write_bytes(image)
    own = elf(VERSION + SALT + note(b"GNU\0", 3, ID, "<"), order="<", wide=True, in_sections=False)
    monkeypatch.setattr(vdso, "own_vdso", lambda: own)
    monkeypatch.setenv("HOME", str(tmp_path))
    files = RecordedFiles(Report(), (), (), DEFAULT_LIMIT, None)
    assert files.cached_vdso32() == (ids[wanted].hex() if wanted >= 0 else "")


@pytest.mark.parametrize("program", PROGRAMS)
def test_real_programs(program: str, tmp_path: Path) -> None:
    path = tmp_path / "program"
    path.write_bytes(content(program))
    binary = Binary(open_source(str(path)))
    found = build_id_of(open_source(str(path)).data)
    assert found == binary.build_id
    assert debug_id_of(found) == binary.debug_id


def test_notes_are_read_once() -> None:
    """65,535 program headers that are one, e_phentsize being 0, of notes of the whole file: that took hours."""
    header = struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, 0, 64, 0, 0, 64, 0, 65535, 64, 0, 0)
    notes = struct.pack("<IIQQQQQQ", 4, 5, 120, 0, 0, 100_000, 100_000, 8)
    data = b"\x7fELF\2\1\1" + bytes(9) + header + notes + bytes(100_000)
    assert build_id_of(memoryview(data)) == ""


def loadable(bits: int, *segments: tuple[int, int, int, int]) -> memoryview:
    """An ELF file's headers. segments: offset, address, bytes in the file, bytes in memory."""
    is_64 = bits == 64
    size, entry = (64, 56) if is_64 else (52, 32)
    ident = b"\x7fELF" + bytes([2 if is_64 else 1, 1, 1]) + bytes(9)
    header = ident + struct.pack("<HHI" + ("QQQ" if is_64 else "III"), 3, 62, 1, 0, size, 0)
    header += struct.pack("<IHHHHHH", 0, size, entry, len(segments), 0, 0, 0)
    form = "<IIQQQQQQ" if is_64 else "<IIIIIIII"
    entries = [
        struct.pack(form, 1, 5, at, address, address, n, memory, 4096) if is_64
        else struct.pack(form, 1, at, address, address, n, memory, 5, 4096)
        for at, address, n, memory in segments
    ]  # fmt: skip
    return memoryview(header + b"".join(entries))


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize(
    ("begin", "end", "covers"),
    [
        (0, 0xA0000, True),
        (0, 0xC6000, True),
        (0, 0xE6000, False),
        (0, 0xC0000, False),
        (0x100000, 0x1C6000, False),
    ],
    ids=["a segment", "the whole program", "more than that", "a part of that", "elsewhere"],
)
def test_code_that_a_file_covers(bits: int, begin: int, end: int, covers: bool) -> None:
    """The kernel maps the first segment of a position-independent program as large as all of it."""
    file = loadable(bits, (0, 0, 0x9FDD6, 0x9FDD6), (0x9F518, 0xC0518, 0x2D58, 0x5548))
    assert covers_code(file, begin, end) is covers
