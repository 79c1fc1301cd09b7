"""Archives of `perf archive`: tar with perf's cache of binaries, in which a file `elf`, `vdso` or `debug` is in a
folder that is called as its build id. They are read in memory; links are not followed."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator
from pathlib import PurePosixPath

from traceferry.common.errors import FormatError
from traceferry.files.source import Source
from traceferry.symbolication.choose import ELF_MAGIC

NAMES = ("elf", "vdso", "debug")
# Where a header of tar has "ustar".
MAGIC_AT, MAGIC = 257, b"ustar"


def files_of(source: Source) -> list[Source]:
    """Returns the ELF files of an archive; anything else as it is. Raises FormatError for an archive that is damaged
    or larger than its limit."""
    if bytes(source.data[MAGIC_AT : MAGIC_AT + len(MAGIC)]) != MAGIC:
        return [source]
    if source.damage or source.limited:
        raise FormatError(f"damaged archive: {source.damage or source.limited}", path=source.path)
    try:
        return list(_members(source))
    except (tarfile.TarError, ValueError, OverflowError, EOFError, OSError) as error:
        raise FormatError(f"damaged archive: {error}", path=source.path) from None


def _members(source: Source) -> Iterator[Source]:
    data = source.data
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
