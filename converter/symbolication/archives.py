"""Archives of `perf archive`: tar with perf's cache of binaries, in which a file `elf`, `vdso` or `debug` is in a
folder that is called as its build id. They are read in memory; links are not followed."""

from __future__ import annotations

import bz2
import io
import lzma
import tarfile
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath
from typing import Any

from traceferry.common.errors import FormatError
from traceferry.files.source import Source
from traceferry.symbolication.choose import ELF_MAGIC

NAMES = ("elf", "vdso", "debug")
# Where a header of tar has "ustar".
MAGIC_AT, MAGIC = 257, b"ustar"
DECOMPRESSORS: dict[bytes, Callable[[], Any]] = {
    b"BZh": bz2.BZ2Decompressor,
    b"\xfd7zXZ": lzma.LZMADecompressor,
}
PIECE = 1 << 20


def files_of(source: Source) -> list[Source]:
    """Returns the ELF files of an archive; anything else as it is. Raises FormatError for an archive that is damaged
    or larger than its limit."""
    data = _decompressed(source)
    if bytes(data[MAGIC_AT : MAGIC_AT + len(MAGIC)]) != MAGIC:
        return [source]
    try:
        return list(_members(source, data))
    except (tarfile.TarError, ValueError, OverflowError, EOFError, OSError) as error:
        raise FormatError(f"damaged archive: {error}", path=source.path) from None


def _members(source: Source, data: memoryview) -> Iterator[Source]:
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
        for member in archive:
            end = member.offset_data + member.size
            if not member.isreg() or member.issparse() or PurePosixPath(member.name).name not in NAMES:
                continue
            if end > len(data):
                raise FormatError(f"damaged archive: {member.name} ends beyond it", member.offset, path=source.path)
            content = data[member.offset_data : end]
            if bytes(content[: len(ELF_MAGIC)]) == ELF_MAGIC:
                yield Source(f"{source.path}/{member.name}", content, limit=source.limit)


def _decompressed(source: Source) -> memoryview:
    """Returns the bytes; decompressed if bzip2 or xz compressed them, others are decompressed already."""
    made = next((made for magic, made in DECOMPRESSORS.items() if bytes(source.data[: len(magic)]) == magic), None)
    if made is None:
        return source.data
    found, most, decompressor = bytearray(), source.limit.of(len(source.data)), made()
    try:
        for at in range(0, len(source.data), PIECE):
            piece = bytes(source.data[at : at + PIECE])
            while len(found) <= most:
                found += decompressor.decompress(piece, PIECE)
                piece = decompressor.unused_data
                if decompressor.eof and piece:
                    decompressor = made()
                elif decompressor.eof or decompressor.needs_input:
                    break
    except (OSError, EOFError, ValueError, lzma.LZMAError) as error:
        raise FormatError(f"damaged archive: {error}", path=source.path) from None
    if len(found) <= most and not decompressor.eof:
        raise FormatError("damaged archive: its compression ends too early", path=source.path)
    if len(found) > most:
        raise FormatError(f"it holds more than {most} bytes: --decompress-limit allows more", path=source.path)
    return memoryview(bytes(found))
