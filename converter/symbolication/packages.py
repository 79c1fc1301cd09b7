"""Which package of a distribution has the debug file of an installed library, where its database tells: dpkg's, whose
lists are text. Debian, `man dh_strip`: PACKAGE-dbgsym, in an archive of their own; some that are older have kept theirs
in the archive that everybody has: libc6-dbg, openjdk-17-dbg, python3.11-dbg."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

DPKG_LISTS = Path("/var/lib/dpkg/info")
WITH_OWN_NAMES = re.compile(r"(libc6|openjdk-\d+|(?:lib)?(?P<python>python\d\.\d+))(-.*)?")
SUFFIX = "-dbgsym"
# Since files of /lib are in /usr/lib, lists have either path.
MERGED = "/usr"


def debug_package(path: str) -> str:
    """Returns the name of the package to install; "" where it is not known. path: of the library."""
    wanted = set(_as_bytes(path)) | set(_as_bytes(os.path.realpath(path)))
    stem = re.match("[a-z0-9+-]*", Path(path).name)[0]  # type: ignore[index]
    # Most packages are called after their library: reading all lists takes 0.1 s.
    for file in sorted(DPKG_LISTS.glob("*.list"), key=lambda file: (not file.name.startswith(stem), file.name)):
        try:
            content = file.read_bytes()
        except OSError:
            continue
        if any(line in content for line in wanted) and wanted & set(content.splitlines(keepends=True)):
            package = file.name.removesuffix(".list").split(":")[0]
            older = WITH_OWN_NAMES.fullmatch(package)
            return f"{older['python'] or older[1]}-dbg" if older else f"{package}{SUFFIX}"
    return ""


def _as_bytes(path: str) -> Iterator[bytes]:
    yield os.fsencode(path) + b"\n"
    if path.startswith(MERGED + "/"):
        yield os.fsencode(path.removeprefix(MERGED)) + b"\n"
