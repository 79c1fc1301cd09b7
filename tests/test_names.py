"""Names of a stripped library's functions, from everywhere that they can come from, in recordings of a real program."""

from __future__ import annotations

import lzma
import os
import shutil
import socket
import struct
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from builders.perf_data import PerfData
from support import load_checked, report_of
from test_debuginfod import send, server

from traceferry.analysis.info.summary import summarize
from traceferry.model import Trace
from traceferry.symbolication import debug_files, packages

pytestmark = pytest.mark.skipif(
    not shutil.which("gcc") or not shutil.which("objcopy"), reason="no gcc or no binutils here to make a program"
)

# Functions that no other file sees, one that calls itself, and what a C library does besides.
LIBRARY = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define OWN __attribute__((noinline, noclone)) static
static char text[4096];
OWN int less(const void *a, const void *b) { int x = *(int *)a, y = *(int *)b; return (x > y) - (x < y); }
OWN int spin(int n) { volatile int s = 0; for (int i = 0; i < n; i++) s += i; return s; }
OWN int nested(int n) { if (n == 0) return spin(90000); int below = nested(n - 1); return below + spin(9000); }
OWN void merge(int *v, int *other, int n) {
    int half = n / 2;
    if (n < 2) return;
    merge(v, other, half);
    merge(v + half, other, n - half);
    memcpy(other, v, n * sizeof *v);
    for (int i = 0, left = 0, right = half; i < n; i++)
        v[i] = left < half && (right == n || less(other + left, other + right) <= 0) ? other[left++] : other[right++];
}
OWN int heap(int n) {
    int s = 0;
    for (int i = 0; i < n; i++) { char *p = malloc(16 + i % 999); p[0] = i; s += p[0]; free(p); }
    return s;
}
OWN int print(int n) {
    int s = 0;
    for (int i = 0; i < n; i++) s += snprintf(text, sizeof text, "%d %s", i, "abc");
    return s;
}
int work(int rounds) {
    static int v[20000], other[20000];
    int s = 0;
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < 20000; i++) v[i] = (i * 7919) % 20011;
        merge(v, other, 20000);
        for (int i = 0; i < 20000; i++) v[i] = (i * 7919) % 20011;
        qsort(v, 20000, sizeof *v, less);
        s += nested(12) + heap(20000) + print(4000);
    }
    return s;
}
"""
MAIN = "#include <stdlib.h>\nint work(int); int main(int n, char **a) { return work(atoi(a[1])) & 1; }\n"
OWN = ("less", "spin", "nested", "merge", "heap", "print")
NAME = "libwork.so"


class Made(NamedTuple):
    """folder: with the program and its stripped library; debug: the library's debug file, elsewhere; starts: of its own
    functions, as linked."""

    folder: Path
    debug: Path
    starts: dict[str, int]

    @property
    def library(self) -> Path:
        return self.folder / NAME


def run(*command: str | Path) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout


def make(folder: Path) -> Made:
    """Compiles what is recorded; the library is stripped as distributions do it."""
    app = folder / "app"
    app.mkdir()
    (folder / "lib.c").write_text(LIBRARY)
    (folder / "main.c").write_text(MAIN)
    whole, debug, library = folder / "whole.so", folder / "elsewhere" / f"{NAME}.debug", app / NAME
    debug.parent.mkdir()
    flags = ("-O1", "-fno-optimize-sibling-calls", "-fasynchronous-unwind-tables", "-g", "-Wl,--build-id=sha1")
    run("gcc", *flags, "-fPIC", "-shared", folder / "lib.c", "-o", whole)
    run("objcopy", "--only-keep-debug", whole, debug)
    run("objcopy", "--strip-all", f"--add-gnu-debuglink={debug}", whole, library)
    run("gcc", *flags, folder / "main.c", library, f"-Wl,-rpath,{app}", "-o", app / "app")
    fields = [line.split() for line in run("nm", "--defined-only", debug).splitlines()]
    starts = {name: int(address, 16) for address, _, name in fields if name in OWN}
    assert set(starts) == set(OWN)
    return Made(app, debug, starts)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return make(tmp_path_factory.mktemp("names"))


# ---------------------------------------------------------------- recordings


def record(made: Made, into: Path, *options: str, rounds: int = 60) -> Path:
    """Records the program; skips where perf cannot."""
    if not shutil.which("perf"):
        pytest.skip("perf is not installed (Debian: linux-perf)")
    is_pipe = options[-2:] == ("-o", "-")
    command = ["perf", "record", "-q", "-e", "cpu-clock:u", "-F", "1999", "--no-buildid-cache", *options]
    command += [] if is_pipe else ["-o", str(into)]
    done = subprocess.run(
        [*command, str(made.folder / "app"), str(rounds)], check=False, capture_output=True, timeout=60
    )
    if done.returncode and not into.exists():
        pytest.skip(f"perf cannot record here: {done.stderr.decode(errors='replace').strip()[:200]}")
    if is_pipe:
        into.write_bytes(done.stdout)
    return into


@pytest.fixture(scope="module")
def recorded(made: Made, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record(made, tmp_path_factory.mktemp("dwarf") / "perf.data", "--call-graph", "dwarf,4096")


def build_id_of(made: Made) -> str:
    return run("readelf", "-n", made.library).split("Build ID: ")[1].split()[0]


def built(made: Made) -> PerfData:
    """A recording in which `nested` calls itself, made without perf."""
    library = made.library
    build_id = bytes.fromhex(build_id_of(made))
    start = 0x7F00_0000_0000
    data = PerfData().event().comm(7, 7, "app", ts=0)
    data.mmap2(7, 7, start, library.stat().st_size, 0, str(library), build_id=build_id, ts=0)
    at = start + made.starts["nested"]
    for nth in range(1, 9):
        callers = [at + 9] * nth
        data.sample(7, 7, chain=[start + made.starts["spin"] + nth, *callers])
    return data


Figures = dict[str, tuple[int, int]]


def figures(trace: Trace) -> Figures:
    """Returns the samples of each function: in itself, and with what it calls."""
    top = summarize(trace, 1 << 20)["functions"]["top"]
    return {one["name"]: (one["samples"], one["total_samples"]) for one in top}


def by_name(made: Made, found: Figures) -> Figures:
    """Gives functions that are shown by where they begin the names that they have elsewhere."""
    names = {f"{NAME} function at {start:#x}": name for name, start in made.starts.items()}
    assert len(names) == len(made.starts)
    return {names.get(name, name): counts for name, counts in found.items()}


def unversioned(name: str) -> str:
    """Drops the version that perf shows ("qsort@@GLIBC_2.2.5"); an entry of the PLT keeps its "@plt"."""
    return name if name.endswith("@plt") else name.split("@")[0]


# ---------------------------------------------------------------- the same names, from everywhere


def test_the_hottest_names_are_those_of_perf(
    made: Made, recorded: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Also in the C library, whether its debug file is installed or not."""
    monkeypatch.setattr(debug_files, "SYSTEM", os.sep)
    beside = made.folder / ".debug"
    beside.mkdir()
    try:
        shutil.copy(made.debug, beside)
        environment = {**os.environ, "HOME": str(tmp_path)}
        text = subprocess.run(
            ["perf", "report", "-i", recorded, "--no-children", "--no-inline", "--sort", "symbol", "-g", "none",
             "--stdio", "-n", "-t", ";"],
            env=environment, check=True, capture_output=True, text=True, timeout=120,
        ).stdout  # fmt: skip
        own = figures(load_checked(recorded))
    finally:
        shutil.rmtree(beside)
    rows = [line.split(";") for line in text.splitlines() if line.strip() and not line.startswith("#")]
    wanted = Counter({unversioned(row[2].strip().split("] ")[-1].strip()): int(row[1]) for row in rows})
    # perf shows addresses where it has no name, and "@plt" for entries whose function it does not find.
    hottest = [name for name, _ in wanted.most_common(10) if not name.startswith(("0x", "@"))]
    assert set(wanted) >= {"less", "spin", "merge"}
    with_lines = {name: own.get(name, (0, 0))[0] for name in hottest if name in OWN}
    assert with_lines == {name: wanted[name] for name in with_lines}
    assert [name for name in hottest if name not in own] == []


def test_without_a_debug_file_each_function_is_one(made: Made, recorded: Path) -> None:
    """What call-frame information tells is enough for its samples and for its recursion."""
    named = figures(load_checked(recorded, made.debug))
    found = load_checked(recorded)
    assert by_name(made, figures(found)) == named
    self_samples, total = named["nested"]
    assert total > self_samples
    assert report_of(found)["names_partly_missing"]


@pytest.fixture
def sysroot(made: Made, tmp_path: Path) -> Callable[[bytes], Path]:
    """Makes a file tree in which the library has a section .gnu_debugdata."""

    def made_with(symbols: bytes) -> Path:
        packed, copy = tmp_path / "packed", tmp_path / "root" / made.library.relative_to("/")
        packed.write_bytes(symbols)
        copy.parent.mkdir(parents=True)
        run("objcopy", f"--add-section=.gnu_debugdata={packed}", made.library, copy)
        return tmp_path / "root"

    return made_with


def mini_debug_info(made: Made, folder: Path) -> bytes:
    """Returns what find-debuginfo of rpm adds: the symbols of functions that .dynsym has not, compressed."""
    dynamic = {
        line.split()[0]
        for line in run("nm", "-D", "--format=posix", "--defined-only", made.library).split("\n")
        if line
    }
    lines = [line.split("|") for line in run("nm", "--format=sysv", "--defined-only", made.debug).splitlines()]
    functions = {fields[0].strip() for fields in lines if len(fields) > 3 and "FUNC" in fields[3]}
    (folder / "keep").write_text("\n".join(sorted(functions - dynamic)) + "\n")
    mini = folder / "mini"
    run("objcopy", "-S", "--remove-section=.gdb_index", "--remove-section=.comment",
        f"--keep-symbols={folder / 'keep'}", made.debug, mini)  # fmt: skip
    return lzma.compress(mini.read_bytes())


def test_the_symbols_that_fedora_ships(
    made: Made, recorded: Path, sysroot: Callable[[bytes], Path], tmp_path: Path
) -> None:
    named = figures(load_checked(recorded, made.debug))
    root = sysroot(mini_debug_info(made, tmp_path))
    found = load_checked(recorded, sysroots=[root])
    assert {name: figures(found).get(name) for name in OWN} == {name: named.get(name) for name in OWN}


def test_damaged_symbols_leave_the_functions(
    made: Made, recorded: Path, sysroot: Callable[[bytes], Path], tmp_path: Path
) -> None:
    root = sysroot(mini_debug_info(made, tmp_path)[:-40])
    found = load_checked(recorded, sysroots=[root])
    named = figures(load_checked(recorded, made.debug))
    mine = by_name(made, figures(found))
    assert {name: mine.get(name) for name in OWN} == {name: named.get(name) for name in OWN}
    assert report_of(found)["symbols_damaged"] == 1


def test_recursion_of_a_recording_that_perf_did_not_write(made: Made, tmp_path: Path) -> None:
    path = tmp_path / "perf.data"
    path.write_bytes(built(made).bytes())
    wanted = {"spin": (8, 8), "nested": (0, 8)}
    assert figures(load_checked(path, made.debug)) == wanted
    assert by_name(made, figures(load_checked(path))) == wanted


# ---------------------------------------------------------------- recordings without build ids

WITHOUT_BUILD_IDS: dict[str, Sequence[str]] = {
    "pipe": ("-o", "-"), "compressed": ("-z",), "no build ids": ("--no-buildid",),
}  # fmt: skip


@pytest.mark.parametrize("how", WITHOUT_BUILD_IDS)
def test_recordings_without_build_ids_have_names(how: str, tmp_path: Path) -> None:
    """What is at the recorded paths has not been written since. A library that was is another."""
    made = make(tmp_path)
    path = record(made, tmp_path / "perf.data", *WITHOUT_BUILD_IDS[how], rounds=120)
    trace = load_checked(path)
    names = set(by_name(made, figures(trace)))
    assert names >= {"merge", "spin"}
    unverified = [issue for issue in trace.report if issue.kind == "files_unverified"]
    assert str(made.library) in " ".join(issue.detail for issue in unverified)
    # The user vouches for the files.
    vouched = load_checked(path, sysroots=["/"])
    assert set(by_name(made, figures(vouched))) >= {"merge", "spin"}
    assert "files_unverified" not in report_of(vouched)
    # Another content of that name, as of an upgrade.
    content = made.library.read_bytes()
    made.library.unlink()
    made.library.write_bytes(content)
    later = os.stat(path).st_mtime + 5
    os.utime(made.library, (later, later))
    rewritten = load_checked(path)
    assert not {"merge", "spin"} & set(by_name(made, figures(rewritten)))
    assert report_of(rewritten)["names_missing"]


# ---------------------------------------------------------------- advice


def advice(trace: Trace) -> dict[str, str]:
    return {issue.kind: f"{issue.detail} {issue.advice}" for issue in trace.report}


def test_the_package_with_the_names_is_told(
    made: Made, recorded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the lists of dpkg; what is in none of them, somebody built."""
    monkeypatch.setattr(packages, "DPKG_LISTS", tmp_path)
    (tmp_path / "libwork1:amd64.list").write_text(f"/.\n{made.library}\n")
    assert "apt install libwork1-dbgsym" in advice(load_checked(recorded))["names_partly_missing"]
    (tmp_path / "libwork1:amd64.list").unlink()
    without = advice(load_checked(recorded))["names_partly_missing"]
    assert "apt" not in without
    assert "no package has it: if it is yours, build it without -s" in without
    assert "--symbols" in without


DISTRIBUTIONS = {
    'ID=fedora\n': "dnf debuginfo-install $(rpm -qf /usr/lib64/libx.so), or --debuginfod, gives them names",
    'ID="rocky"\nID_LIKE="rhel centos fedora"\n': "dnf debuginfo-install $(rpm -qf /usr/lib64/libx.so)",
    'ID="opensuse-tumbleweed"\nID_LIKE="opensuse suse"\n':
        "zypper install $(rpm -qf --qf '%{name}-debuginfo' /usr/lib64/libx.so), or --debuginfod https://",
    "ID=arch\n": "--debuginfod https://debuginfod.archlinux.org gives",
    "ID=alpine\n": "apk add PACKAGE-dbg, for the package of /usr/lib64/libx.so,",
    "ID=of-my-own\nno field\n": "",
    "": "",
}  # fmt: skip


@pytest.fixture
def distribution(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns the file that names it; dpkg knows of nothing."""
    monkeypatch.setattr(packages, "DPKG_LISTS", tmp_path)
    monkeypatch.setattr(packages, "OS_RELEASE", tmp_path / "os-release")
    return tmp_path / "os-release"


@pytest.mark.parametrize("release", DISTRIBUTIONS)
def test_what_gives_names_on_other_distributions(release: str, distribution: Path) -> None:
    assert packages.advice_for("/usr/lib64/libx.so") == ""
    distribution.write_text(release)
    found = packages.advice_for("/usr/lib64/libx.so")
    assert found.startswith(DISTRIBUTIONS[release])
    assert bool(found) == bool(DISTRIBUTIONS[release])
    if release == "ID=alpine\n":
        assert packages.advice_for("/lib/ld-musl-x86_64.so.1").startswith("apk add musl-dbg, ")
    assert "'/usr/a b'" in packages.advice_for("/usr/a b") or "arch" in release or not found


ORIGINS = {
    "/home/me/app/build/server": "no package has it: if it is yours, build it without -s, --strip or strip",
    "/usr/local/bin/server": "no package has it",
    "/opt/tool/bin/tool": "no package has it",
    "/home/me/.bun/bin/bun": "the release of this version of Bun has the same program with names",
    "/home/me/app/node_modules/@oven/bun-linux-x64/bin/bun":
        "the release of this version of Bun has the same program with names",
    "/app/node_modules/bcrypt/build/Release/bcrypt.node":
        "it came in a package of npm, whose makers stripped it: npm rebuild --build-from-source bcrypt builds it here",
    **{
        f"/app/node_modules/{name}/lib/x.node": "its makers stripped it, and its package of npm has no source to build "
        f"it from, of which npm view {name} repository.url tells the place: "
        for name in (
            "@img/sharp-linux-x64", "@img/sharp-libvips-linuxmusl-arm64", "esbuild-linux-64", "@esbuild/linux-riscv64",
            "@swc/core-linux-arm-gnueabihf", "@deno/linux-x64-glibc", "@bazel/bazelisk-linux_x64",
        )
    },
    "/app/node_modules/.pnpm/@parcel+watcher@2.4.1/node_modules/@parcel/watcher/build/Release/watcher.node":
        "it came in a package of npm, whose makers stripped it: npm rebuild --build-from-source @parcel/watcher builds",
    "/nix/store/0c6k6zi5nlyhz9qwk9s2gp1iqjkyq4xg-openssl-3.0.13/lib/libssl.so.3":
        "nix-build '<nixpkgs>' -A ATTRIBUTE.debug",
    "/gnu/store/0c6k6zi5nlyhz9qwk9s2gp1iqjkyq4xg-guile-gnutls-3.7.12/lib/x.so": "guix install guile-gnutls:debug and",
    "/var/lib/flatpak/runtime/org.gnome.Platform/x86_64/46/0f/files/lib/libgtk-4.so":
        "flatpak install org.gnome.Platform.Debug and",
    "/home/me/.local/share/flatpak/app/org.x.Y/x86_64/stable/0f/files/bin/y": "flatpak install org.x.Y.Debug and",
    "/snap/core22/1380/usr/lib/x86_64-linux-gnu/libc.so.6":
        "libraries of Ubuntu that came with the snap get names from --debuginfod https://debuginfod.ubuntu.com",
    "/home/me/.venv/lib/python3.11/site-packages/numpy.libs/libopenblas64_p-r0-0cf96a72.3.23.dev.so":
        "it came in a wheel, whose makers stripped it: CFLAGS=-g pip install --force-reinstall --no-binary numpy numpy",
    "/home/me/.pyenv/versions/3.12.1/lib/python3.12/site-packages/orjson/orjson.so":
        "it came in a wheel, whose makers stripped it: CFLAGS=-g pip install --force-reinstall --no-binary orjson",
    "/home/me/.pyenv/versions/3.12.1/lib/libpython3.12.so": "no package has it",
    "/opt/jdk-21/lib/server/libjvm.so": "the vendor of this JDK has its debug files",
}  # fmt: skip


@pytest.mark.parametrize("path", ORIGINS)
@pytest.mark.parametrize("release", ["ID=fedora\n", "ID=debian\n"])
def test_what_gives_names_to_what_no_distribution_installed(path: str, release: str, distribution: Path) -> None:
    distribution.write_text(release)
    assert packages.advice_for(path).startswith(ORIGINS[path])


@pytest.mark.parametrize(
    ("file", "advice"),
    [("binding.gyp", "it came in a package of npm, "), ("Cargo.toml", "it came in a package of npm, "),
     ("package.json", "its makers stripped it, ")],
)  # fmt: skip
def test_a_package_of_npm_that_is_here_has_its_source_or_not(
    file: str, advice: str, tmp_path: Path, distribution: Path
) -> None:
    package = tmp_path / "node_modules" / "tool"
    package.mkdir(parents=True)
    (package / file).touch()
    assert packages.advice_for(f"{package}/bin/tool").startswith(advice)


def test_what_gives_names_to_what_conda_installed(tmp_path: Path, distribution: Path) -> None:
    (tmp_path / "env" / "conda-meta").mkdir(parents=True)
    assert packages.advice_for(f"{tmp_path}/env/lib/libz.so.1").startswith("conda's packages are stripped")


PACKAGES = {
    "libc6": "libc6-dbg", "libgcc-s1": "libgcc-s1-dbgsym", "openjdk-17-jre-headless": "openjdk-17-dbg",
    "python3.11-minimal": "python3.11-dbg", "libpython3.11": "python3.11-dbg", "libpython3-stdlib":
    "libpython3-stdlib-dbgsym",
}  # fmt: skip


@pytest.mark.parametrize("package", PACKAGES)
def test_packages_of_debug_files(package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "DPKG_LISTS", tmp_path)
    (tmp_path / f"{package}:amd64.list").write_text("/.\n/lib/libx.so\n")
    assert packages.debug_package("/usr/lib/libx.so") == PACKAGES[package]
    assert packages.debug_package("/usr/lib/liby.so") == ""


# ---------------------------------------------------------------- the command


def test_a_bar_tells_of_downloads_on_a_terminal_only(made: Made, tmp_path: Path) -> None:
    reason = "no pseudo-terminals here"
    fcntl, pty, termios = (pytest.importorskip(name, reason=reason) for name in ("fcntl", "pty", "termios"))

    (tmp_path / "perf.data").write_bytes(built(made).bytes())
    command = [
        sys.executable, "-m", "traceferry", "info", "--debuginfod", "perf.data",
    ]  # fmt: skip
    environment = {key: value for key, value in os.environ.items() if key != "CI"}
    with server(send(made.debug.read_bytes())) as (url, asked):
        environment |= {"DEBUGINFOD_URLS": url, "DEBUGINFOD_CACHE_PATH": str(tmp_path / "1")}
        terminal, other = pty.openpty()
        fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("4H", 24, 80, 0, 0))
        shown = subprocess.run(command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=other, timeout=60)
        os.write(other, b".")  # reading waits for something
        bar = os.read(terminal, 1 << 20).decode()
        os.close(other)
        os.close(terminal)
        environment["DEBUGINFOD_CACHE_PATH"] = str(tmp_path / "2")
        piped = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, timeout=60)
    assert len(asked) == 2
    assert b"nested" in shown.stdout
    assert f"{NAME}: " in bar
    assert (piped.stdout, piped.stderr) == (shown.stdout.replace(b"/1/", b"/2/"), b"")


@pytest.fixture
def elfutils_server(made: Made, tmp_path: Path) -> Iterator[str]:
    """Serves the library and its debug file as distributions do; yields the server's address."""
    if not shutil.which("debuginfod"):
        pytest.skip("elfutils' debuginfod is not installed")
    served = tmp_path / "served"
    served.mkdir()
    for path in (made.library, made.debug):
        shutil.copy(path, served)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = ["debuginfod", "-F", served, "-p", str(port), "-d", ":memory:"]
    url = f"http://127.0.0.1:{port}"
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as running:
        try:
            _wait_for(f"{url}/buildid/{build_id_of(made)}/debuginfo")
            yield url
        finally:
            running.terminate()


def _wait_for(url: str) -> None:
    for _ in range(100):
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except OSError:  # it starts, or still reads its folder
            time.sleep(0.1)
    pytest.skip("elfutils' debuginfod does not start here")


COMMANDS = {
    "info": ("info", "--debuginfod", "perf.data"),
    "convert": ("convert", "--debuginfod", "perf.data", "--to", "gecko", "-o", "-"),
    "compare": ("compare", "perf.data", "again.data", "--json", "--debuginfod"),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_ask_the_server_of_elfutils(command: str, made: Made, elfutils_server: str, tmp_path: Path) -> None:
    """Also for a library that is not on this machine."""
    data = built(made).bytes().replace(bytes(made.folder), bytes(made.folder)[:-3] + b"xyz")
    for name in ("perf.data", "again.data"):
        (tmp_path / name).write_bytes(data)
    environment = {**os.environ, "DEBUGINFOD_URLS": elfutils_server, "DEBUGINFOD_CACHE_PATH": str(tmp_path / "cache")}
    done = subprocess.run(
        [sys.executable, "-m", "traceferry", *COMMANDS[command]],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert "nested" in done.stdout
    assert f"{NAME} function at" not in done.stdout
    kept = tmp_path / "cache" / build_id_of(made)
    assert sorted(path.name for path in kept.iterdir()) == ["debuginfo", "executable"]


def test_without_servers_the_option_says_what_to_write(made: Made, tmp_path: Path) -> None:
    (tmp_path / "perf.data").write_bytes(built(made).bytes())
    environment = {key: value for key, value in os.environ.items() if key != "DEBUGINFOD_URLS"}
    done = subprocess.run(
        [sys.executable, "-m", "traceferry", "info", "--debuginfod", "perf.data"],
        cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 2
    assert "DEBUGINFOD_URLS" in done.stderr
    assert "--debuginfod https://SERVER" in done.stderr
