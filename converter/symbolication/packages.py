"""What gives the functions of a stripped file names, by where the file comes from: of a package of the distribution,
the package with its debug file, where the database tells, which is dpkg's, whose lists are text; elsewhere the command
that finds the package, or a server. Other ways to install software are known by their folders. What is left, somebody
built.

Debian, `man dh_strip`: PACKAGE-dbgsym, in an archive of their own; some that are older have kept theirs in the archive
that everybody has: libc6-dbg, openjdk-17-dbg, python3.11-dbg. Fedora: dnf-plugins-core, debuginfo-install. openSUSE:
NAME-debuginfo. Arch: no packages, a server. Alpine: NAME-dbg. Nixpkgs' manual, separateDebugInfo. Guix' manual,
"Installing Debugging Files". Flatpak's documentation, "Debugging"."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from traceferry.common.patterns import compiled_later

DPKG_LISTS = Path("/var/lib/dpkg/info")
WITH_OWN_NAMES = compiled_later(r"(libc6|openjdk-\d+|(?:lib)?(?P<python>python\d\.\d+))(-.*)?")
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
MUSL = compiled_later(r"(?:ld-|libc\.)musl-.*")


# Where the distribution's package manager installs files; /usr/local is not its own.
SYSTEM_FOLDERS = compiled_later(r"/(usr/(?!local/)|lib|lib32|lib64|libx32|bin/|sbin/)")
# Others, by the paths of what they install. Where several fit, the first.
OTHER_ORIGINS = (
    (
        r"/nix/store/[^/]+/",
        "nix-build '<nixpkgs>' -A ATTRIBUTE.debug, for the package's attribute, and --symbols result-debug/lib/debug "
        "give them names, if the package has separateDebugInfo",
    ),
    (
        r"/gnu/store/[a-z0-9]{32}-(?P<name>.+?)-\d[^/]*/",
        "guix install {name}:debug and --symbols ~/.guix-profile/lib/debug give them names; a package without such an "
        "output has one with --with-debug-info={name}",
    ),
    (
        r"/flatpak/(?:app|runtime)/(?P<name>[^/]+)/",
        "flatpak install {name}.Debug and --symbols FOLDER, where flatpak info --show-location {name}.Debug has it, "
        "give them names",
    ),
    (
        r"(?:/var/lib/snapd)?/snap/(?P<name>[^/]+)/",
        "libraries of Ubuntu that came with the snap get names from --debuginfod https://debuginfod.ubuntu.com; of "
        "what is the snap's own, {name}'s maker may have a file with symbols: --symbols FILE",
    ),
    (
        r"/(?:site|dist)-packages/(?P<name>\w+?)(?:\.libs)?/",
        "it came in a wheel, whose makers stripped it: CFLAGS=-g pip install --force-reinstall --no-binary {name} "
        "{name} builds it here, with names, and with the system's libraries in place of those in the wheel",
    ),
    (
        r"/bun(?:-profile)?$",
        "the release of this version of Bun has the same program with names, bun-linux-x64-profile.zip (aarch64, "
        "baseline and musl likewise): --symbols FILE",
    ),
    (
        r"/lib/(?:client|minimal|server|zero)/libjvm\.so$",
        "the vendor of this JDK has its debug files in an archive of their own (Adoptium: debugimage): --symbols DIR",
    ),
)
OF_CONDA = (
    "conda's packages are stripped, and have no debug files: the same program of the system, or one built with -g, has "
    "names; or give a file with symbols: --symbols FILE"
)
# The innermost package of npm, which may be inside another, or of pnpm.
PACKAGE_OF_NPM = compiled_later(r"(?P<folder>.*/node_modules/(?P<name>(?:@[^/]+/)?[^/]+))/", re.DOTALL)
# What packages of a platform's binaries end in, which others depend on: @img/sharp-linux-x64, esbuild-linux-64.
PLATFORM = compiled_later(
    r"(?:.*[-_/])?(?:linux|linuxmusl|android|freebsd|openharmony|netbsd|openbsd|sunos)[-_](?:64|32|x64|x86|x86_64|ia32|x32"
    r"|amd64|arm64|aarch64|arm|armv\d\w*|ppc64\w*|riscv64\w*|s390x?|loong64|loongarch64|mips\w*)(?:[-_].*)?"
)
# What a package that is built where it is installed has: of node-gyp, cmake-js and Rust.
BUILD_FILES = ("binding.gyp", "CMakeLists.txt", "Cargo.toml")
BUILT_BY_NPM = (
    "it came in a package of npm, whose makers stripped it: npm rebuild --build-from-source {name} builds it here, "
    "with names; or give a file with symbols: --symbols FILE"
)
OF_MAKERS = (
    "its makers stripped it, and its package of npm has no source to build it from, of which npm view {name} "
    "repository.url tells the place: give a file with symbols, theirs or of a build of yours: --symbols FILE"
)
OF_NOBODY = (
    "no package has it: if it is yours, build it without -s, --strip or strip (in profiles of Cargo: strip = false; "
    "Nuitka: --unstripped); "
    "or give the file as it was before, which its makers may have published: --symbols FILE"
)
OF_NO_SYMBOL = (
    "the file has symbols, and none for this code: local functions of GHC have none without -g, assembly may have none"
)
# In the folder of each of conda's environments.
CONDA_META = "conda-meta"


def advice_for(path: str) -> str:
    """Returns what gives the functions of a stripped file on this machine names, in words; "" where that is not known.
    path: absolute."""
    return _of_package(path) or elsewhere(path) or ("" if SYSTEM_FOLDERS.match(path) else OF_NOBODY)


def elsewhere(path: str) -> str:
    """Returns the same of what no package manager of a distribution installed, on whichever machine."""
    for pattern, advice in OTHER_ORIGINS:
        found = re.search(pattern, path)
        if found is not None:
            return advice.format(**{name: shlex.quote(value) for name, value in found.groupdict().items()})
    package = PACKAGE_OF_NPM.match(path)
    if package is not None:
        advice = BUILT_BY_NPM if _has_source(package["folder"], package["name"]) else OF_MAKERS
        return advice.format(name=shlex.quote(package["name"]))
    is_conda = any(os.path.isdir(parent / CONDA_META) for parent in Path(path).parents)
    return OF_CONDA if is_conda else ""


def _has_source(folder: str, name: str) -> bool:
    """Whether a package of npm can be built, by its files; where they are not here, by its name."""
    if os.path.isdir(folder):
        return any(os.path.isfile(os.path.join(folder, file)) for file in BUILD_FILES)
    return PLATFORM.fullmatch(name) is None


def _of_package(path: str) -> str:
    package = debug_package(path)
    if package:
        where_from = " from the distribution's archive of debug packages" if package.endswith(SUFFIX) else ""
        return f"apt install {package}{where_from}, or --debuginfod, gives them names"
    known = next((one for one in _distributions() if one in BY_DISTRIBUTION), "")
    if not known or not SYSTEM_FOLDERS.match(path):
        return ""
    name = "musl" if MUSL.fullmatch(Path(path).name) else "PACKAGE"
    return BY_DISTRIBUTION[known].format(path=shlex.quote(path), package=name)


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
