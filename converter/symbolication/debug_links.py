"""Layout and decode: the sections of a stripped ELF file that tell where its symbols are.

Sources: GDB's manual, "Debugging Information in Separate Files" and "Debugging information in a special section"
(.gnu_debuglink, .gnu_debugdata); dwz's manual and binutils' bfd/opncls.c (.gnu_debugaltlink).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from traceferry.common.errors import FormatError
from traceferry.files.decompress import DICTIONARY
from traceferry.files.source import Source
from traceferry.symbolication.binary import FREE, MAX_RATIO, Binary

DEBUG_LINK, ALT_LINK, MINI_DEBUG_INFO = ".gnu_debuglink", ".gnu_debugaltlink", ".gnu_debugdata"
# DWARF 5's .gnu_debugaltlink, which the file that is shared has, too.
SUPPLEMENT = ".debug_sup"
MAX_NAME = 4096


class DebugLink(NamedTuple):
    """The file with the debug information. name: without folders; crc: of all its bytes, as zlib computes it."""

    name: str
    crc: int


class AltLink(NamedTuple):
    """The file with what `dwz` found in several others. path: as the linker or `dwz` wrote it, absolute or relative to
    the file that names it; build_id: in hex."""

    path: str
    build_id: str


def debug_link(binary: Binary) -> DebugLink | None:
    """Returns what .gnu_debuglink says: a name, zeros up to a multiple of 4, a u32."""
    data = _content(binary, DEBUG_LINK)
    name, end, _ = data.partition(b"\0")
    crc_at = len(name) + 4 & ~3
    if not name or not end or b"/" in name or len(data) < crc_at + 4:
        return None
    crc = int.from_bytes(data[crc_at : crc_at + 4], "little" if binary.little_endian else "big")
    return DebugLink(name[:MAX_NAME].decode("utf-8", "surrogateescape"), crc)


class LinkedFiles(Protocol):
    """Finds the files to which parts of the debug information of a file were moved."""

    def alternative(self, debug: Binary) -> Binary | None:
        """Returns the file that several share; None where the file names none, or none is here."""

    def package(self, debug: Binary) -> Binary | None:
        """Returns the file with all its split units, its .dwp."""

    def split_files(self, debug: Binary, name: str, folder: str) -> Iterator[Binary]:
        """Yields the .dwo files that are at the places where one can be. folder: of the compiler."""

    def note_missing(self, debug: Binary, name: str, split_id: str, others: Sequence[str]) -> bool:
        """Reports that a unit's .dwo file is not here; False where there is no report. others: files of this name that
        are of another build."""


class _NoFiles:
    """A LinkedFiles that finds nothing."""

    def alternative(self, debug: Binary) -> Binary | None:
        return None

    def package(self, debug: Binary) -> Binary | None:
        return None

    def split_files(self, debug: Binary, name: str, folder: str) -> Iterator[Binary]:
        return iter(())

    def note_missing(self, debug: Binary, name: str, split_id: str, others: Sequence[str]) -> bool:
        return False


NO_FILES: LinkedFiles = _NoFiles()


def alt_link(binary: Binary) -> AltLink | None:
    """Returns what .gnu_debugaltlink says: a path, then the bytes of a build id; or .debug_sup."""
    path, end, build_id = _content(binary, ALT_LINK).partition(b"\0")
    if not path or not end or not build_id:
        path, is_shared, build_id = _supplement(binary)
        if is_shared or not path or not build_id:
            return None
    return AltLink(path[:MAX_NAME].decode("utf-8", "surrogateescape"), build_id.hex())


def shared_id(binary: Binary) -> str:
    """Returns the id in hex, by which others name a file that they share; "" where it is not such a file."""
    _, is_shared, checksum = _supplement(binary)
    return checksum.hex() if is_shared else ""


def _supplement(binary: Binary) -> tuple[bytes, bool, bytes]:
    """Returns what .debug_sup says (DWARF 5, section 7.3.6): (path, whether this is the file that is shared, its
    checksum). It is a u16 version, a u8, the path and a zero, the ULEB128 size of the checksum, and that."""
    data = _content(binary, SUPPLEMENT)
    path, _, rest = data[3:].partition(b"\0")
    size = rest[0] if rest else 0
    checksum = rest[1 : 1 + size]
    return (path, data[2] != 0, checksum) if 0 < size == len(checksum) and size < 0x80 else (b"", False, b"")


def mini_debug_info(binary: Binary) -> Binary | None:
    """Returns the ELF file inside .gnu_debugdata, which has the symbols that .dynsym has not; None where there is none.

    Raises FormatError if it is damaged, or holds more than a section of this size may.
    """
    packed = _content(binary, MINI_DEBUG_INFO)
    if not packed:
        return None
    import lzma  # few files have such a section

    limit = max(FREE, MAX_RATIO * len(packed))
    try:
        reader = lzma.LZMADecompressor(lzma.FORMAT_XZ, DICTIONARY)
        data = reader.decompress(packed, limit + 1)
    except (lzma.LZMAError, EOFError) as error:
        raise _damaged(binary, str(error)) from None
    if len(data) > limit:
        raise _damaged(binary, f"it holds more than {limit} bytes, too many for {len(packed)} compressed ones")
    if not reader.eof:
        raise _damaged(binary, "it ends inside its compressed data")
    return Binary(Source(binary.path, memoryview(data)))


def _damaged(binary: Binary, reason: str) -> FormatError:
    return FormatError(f"{MINI_DEBUG_INFO}: {reason}", 0, "ELF", path=binary.path)


def _content(binary: Binary, section: str) -> bytes:
    try:
        found = binary.section(section)
    except FormatError:
        return b""
    return bytes(found[1]) if found is not None else b""
