"""What gives the functions of an installed library names: which package of the distribution has its debug file, where
the database tells, which is dpkg's, whose lists are text; elsewhere the command that finds the package, or a server.

Debian, `man dh_strip`: PACKAGE-dbgsym, in an archive of their own; some that are older have kept theirs in the archive
that everybody has: libc6-dbg, openjdk-17-dbg, python3.11-dbg. Fedora: dnf-plugins-core, debuginfo-install. openSUSE:
NAME-debuginfo. Arch: no packages, a server. Alpine: NAME-dbg."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

DPKG_LISTS = Path("/var/lib/dpkg/info")
WITH_OWN_NAMES = re.compile(r"(libc6|openjdk-\d+|(?:lib)?(?P<python>python\d\.\d+))(-.*)?")
SUFFIX = "-dbgsym"
# Since files of /lib are in /usr/lib, lists have either path.
MERGED = "/usr"


# The file that names the distribution (man 5 os-release), and for its ID, or those of ID_LIKE, what a user does.
OS_RELEASE = Path("/etc/os-release")
BY_DISTRIBUTION = {
    **dict.fromkeys(
        ("fedora", "rhel", "centos"), "dnf debuginfo-install $(rpm -qf {path}), or --debuginfod, gives them names"
    ),
    **dict.fromkeys(
        ("opensuse", "suse", "sles"),
        "zypper install $(rpm -qf --qf '%{{name}}-debuginfo' {path}), or --debuginfod https://debuginfod.opensuse.org, "
        "gives them names",
    ),
    "arch": "--debuginfod https://debuginfod.archlinux.org gives them names",
    "alpine": "apk add {package}-dbg, for the package of {path}, gives them names",
}
# Packages of Alpine that have other names than their libraries.
MUSL = re.compile(r"(?:ld-|libc\.)musl-.*")


def advice_for(path: str) -> str:
    """Returns what gives the functions of an installed library names, in words; "" where that is not known."""
    package = debug_package(path)
    if package:
        where_from = " from the distribution's archive of debug packages" if package.endswith(SUFFIX) else ""
        return f"apt install {package}{where_from}, or --debuginfod, gives them names"
    known = next((one for one in _distributions() if one in BY_DISTRIBUTION), "")
    name = "musl" if MUSL.fullmatch(Path(path).name) else "PACKAGE"
    return BY_DISTRIBUTION[known].format(path=shlex.quote(path), package=name) if known else ""


def _distributions() -> list[str]:
    """Returns the IDs of this machine's distribution and of those that it is like."""
    try:
        lines = OS_RELEASE.read_text("utf-8", "replace").splitlines()
    except OSError:
        return []
    fields = dict(line.split("=", 1) for line in lines if "=" in line)
    return [one.strip("\"'").lower() for key in ("ID", "ID_LIKE") for one in fields.get(key, "").strip("\"'").split()]


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
