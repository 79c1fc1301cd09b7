"""Map: what CoreCLR (.NET) tells of code that was compiled ahead (ReadyToRun), which its perf-PID.map does not list.

/tmp/perfinfo-PID.map has a line for each assembly that was loaded, src/coreclr/vm/perfinfo.cpp of .NET 2.1 to 9:

    ImageLoad;/usr/share/dotnet/shared/Microsoft.NETCore.App/8.0.1/System.Private.CoreLib.dll;GUID;0x00007f1c2e600000

The address is where an image with machine code begins, 0 for one without. Its functions are in a file that crossgen2
--perfmap writes, NAME.ni.r2rmap (docs/design/coreclr/botr/r2r-perfmap-format.md), or in NAME.ni.{GUID}.map of the first
crossgen: lines `offset size name`, both in hex, relative to the image; those of size 0 are a header.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

LOAD = "ImageLoad"
MAPPED_AT = 1 << 48  # user memory ends below
# The header's entry with a signature that the image has behind these four bytes, in its debug directory.
SIGNATURE = 0xFFFFFFFF
IMAGE_MARK = b"R2RM"
SIGNATURE_SIZE = 16


class Image(NamedTuple):
    """An assembly in memory. path: as the runtime opened it; guid: of its module, in hex without hyphens."""

    path: str
    guid: str
    address: int

    @property
    def stem(self) -> str:
        """The name without what images end with: System.Linq of System.Linq.ni.dll."""
        name = self.path.replace("\\", "/").rpartition("/")[2]
        for ending in (".dll", ".exe", ".ni"):
            name = name.removesuffix(ending)
        return name


def images_of(text: str) -> Iterator[Image]:
    """Yields the images with machine code that a perfinfo-PID.map lists."""
    for line in text.split("\n"):
        words = line.strip().rsplit(";", 2)
        command, _, path = words[0].partition(";")
        if command != LOAD or len(words) != 3 or not path:
            continue
        try:
            address = int(words[2], 16)
        except ValueError:  # "(nil)"
            continue
        if 0 < address < MAPPED_AT:
            yield Image(path, _hex_digits(words[1]), address)


def map_names(image: Image) -> list[str]:
    """Returns the names that a file with the functions of an image has."""
    guid = image.guid
    hyphened = "-".join((guid[:8], guid[8:12], guid[12:16], guid[16:20], guid[20:]))
    return [
        f"{image.stem}.ni.r2rmap",
        f"{image.stem}.ni.{{{hyphened}}}.map",
        f"{image.stem}.ni.{{{hyphened.upper()}}}.map",
    ]


def signature_of(text: str) -> bytes:
    """Returns the signature that a map's header has, b"" if it has none."""
    for line in text.split("\n", 8)[:8]:
        words = line.split()
        if len(words) == 3 and words[0].upper() == f"{SIGNATURE:X}":
            digits = _hex_digits(words[2])
            return bytes.fromhex(digits) if len(digits) == 2 * SIGNATURE_SIZE else b""
    return b""


def is_of_image(signature: bytes, content: bytes) -> bool:
    """Whether a map belongs to the image with this content, as far as both tell."""
    at = content.find(IMAGE_MARK)
    return not signature or at < 0 or IMAGE_MARK + signature in content


def _hex_digits(text: str) -> str:
    return "".join(letter for letter in text.lower() if letter in "0123456789abcdef")
