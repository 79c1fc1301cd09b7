"""Where the debug information of a stripped binary lies: by its build id, or by the name in .gnu_debuglink.

The places are those that GDB looks at (its manual, "Debugging Information in Separate Files").
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from converter.build_id import build_id_of
from converter.errors import FormatError
from converter.symbols.binary import Binary
from converter.symbols.dwarf_forms import Section, number_at, text_at

SYSTEM_FOLDER = Path("/usr/lib/debug")


def debug_files(binary: Binary, folders: Iterable[Path] = (SYSTEM_FOLDER,)) -> Iterator[Path]:
    """Files that are the binary's debug information: of the same build id, or with the checksum of the link. Never
    raises: a link that cannot be read leads nowhere."""
    folders = list(folders)
    build_id = build_id_of(binary.elf.stream.getbuffer())
    if build_id:
        yield from existing(folder / ".build-id" / build_id[:2] / f"{build_id[2:]}.debug" for folder in folders)
    try:
        name, checksum = debug_link(binary)
    except FormatError:
        return
    beside = Path(binary.path).absolute().parent
    under = [folder / beside.relative_to("/") / name for folder in folders]
    for path in existing([beside / name, beside / ".debug" / name, *under]):
        with suppress(OSError):
            if zlib.crc32(path.read_bytes()) == checksum:
                yield path


def debug_link(binary: Binary) -> tuple[str, int]:
    """(file name, CRC-32 of the file), as .gnu_debuglink says; raises FormatError where there is none."""
    found = binary.section(".gnu_debuglink")
    data = Section(".gnu_debuglink", found[1] if found else b"")
    name, end = text_at(data, 0)
    if not name or "/" in name:
        raise FormatError("the link has no file name", 0, data.name)
    return name, number_at(data, end + -end % 4, 4, "little" if binary.little_endian else "big")


def existing(paths: Iterable[Path]) -> Iterator[Path]:
    return (path for path in paths if path.is_file())
