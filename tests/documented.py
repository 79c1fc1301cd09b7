"""The commands of the documentation, typed as they stand: each page's in order, in a folder that has what it names.

A command that no machine of ours can run has `<!-- not tried: WHY -->` above its block, one that another test runs
`<!-- tried elsewhere: WHERE -->`.

    .venv/bin/python tests/documented.py          # renews the pictures in docs, of what these commands record
    .venv/bin/python tests/documented.py page     # of a page and both viewers, in light and dark
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conftest import REPO

RECIPES = REPO / "fixtures" / "recipes"
FIXTURES = REPO / "fixtures"
NOT_TRIED = re.compile(r"<!-- (?:not tried|tried elsewhere): (\S.*?) -->", re.S)
# `view` is ended as soon as it has said where it is; then it has converted.
WRAPPER = """#!{python}
import os, signal, subprocess, sys
command = [{python!r}, "-m", "traceferry"]
if sys.argv[1:2] != ["view"]:
    sys.exit(subprocess.run([*command, *sys.argv[1:]]).returncode)
command += [*sys.argv[1:], "--no-open"]
shown = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
for line in shown.stdout:
    print(line, end="", flush=True)
    if "Ctrl-C" in line:
        shown.send_signal(signal.SIGINT)
        shown.communicate()
        sys.exit(0)
sys.exit(shown.wait() or 1)
"""


@dataclass(frozen=True)
class Block:
    """Commands that stand together. not_tried: why they are left out, "" where they are not."""

    commands: str
    not_tried: str = ""


def blocks_of(page: Path) -> list[Block]:
    """Returns the blocks of commands: those that are indented by four, outside lists, and those fenced for a shell."""
    text = NOT_TRIED.sub(lambda match: f"<!-- {' '.join(match[1].split())} -->", page.read_text("utf-8"))
    found, commands, reason, fence, is_open = list[Block](), list[str](), "", None, True
    for line in [*text.splitlines(), "end"]:
        if line.startswith("```"):
            fence = None if fence is not None else line[3:]
        elif fence in ("sh", "bash") or (
            fence is None and line.startswith("    ") and "<!-- " not in line and (commands or is_open)
        ):
            commands.append(line if fence else line[4:])
            continue
        elif (not line and commands and fence is None) or fence is not None:
            continue
        if commands:
            found.append(Block("\n".join(commands).strip(), reason))
            commands, reason = [], ""
        if line.lstrip().startswith("<!-- "):
            reason = line.strip()[5:-4]
        elif line and not line.startswith("```"):
            reason = ""
        is_open = not line or line.lstrip().startswith("<!-- ")
    return found


# Programs that are not in PATH, but named by a variable.
GIVEN = {"trace_processor_shell": os.environ["PERFETTO_TP_BIN"]} if "PERFETTO_TP_BIN" in os.environ else {}


@dataclass(frozen=True)
class Route:
    """How the commands of a page are typed. needs: programs without which they are not; files: of fixtures, by the
    names that the page has for them; before: what the reader has done, as commands; shows: what the outputs have
    somewhere; picture: the recording of which docs has a picture, "" is none; tab: the part
    of the page that is in the picture, by default that which opens; large: takes long, or records."""

    needs: Sequence[str] = ()
    files: dict[str, str] | None = None
    before: str = ""
    shows: Sequence[str] = ()
    picture: str = ""
    tab: str = ""
    large: bool = False

    def missing(self) -> list[str]:
        return [name for name in self.needs if name not in GIVEN and shutil.which(name) is None]


def program(name: str) -> dict[str, str]:
    return {name: f"recipes/{name}"}


COMPILED = f"g++ -g -O2 -DROUNDS=60 {RECIPES}/app.cpp -o app && cp app bin/PROGRAM"
PERF = {"perf.data": "jit/php82/perf.data.zst", "jit-7884.dump": "jit/php82/jit-7884.dump.zst"}
XRAY = {"app.xray": "xray/clang-19/fdr-c19-pie-pool-tsc.xray", "app": "xray/clang-19/pool-pie.zst"}
SESSION = {"session.cpp": "xray/programs/session.cpp"}
MONO = {"app.mlpd": "mono/mono-6.8/heap.mlpd.zst"}
LEAK = "mcs app.cs"
PROFILES = """traceferry perf.data -o profile.json.gz --quiet
cp profile.json.gz before.json.gz
cp profile.json.gz after.json.gz
echo 'main;parse 5' >before.speedscope.json
echo 'main;parse 7' >after.speedscope.json
traceferry perf.data -o heap.pb.gz --quiet"""
FLEET = """mkdir -p runs/app/1234567
cp perf.data jit-7884.dump runs/app/1234567
mv runs/app/1234567/perf.data runs/app/1234567/host.perf.data
mv app.mlpd app.xray runs"""

ROUTES = {
    "README.md": Route(("perf", "node", "mono", "mcs"), program("app.js") | program("app.cs"), f"{LEAK}\n"
                       "mono --profile=log:nodefaults,alloc,heapshot,maxframes=16,output=output.mlpd app.exe",
                       ("Program:Serve",), large=True),
    "docs/index.md": Route((), PERF | XRAY, large=True),
    "docs/slow.md": Route((), PERF, shows=("samples",)),
    "docs/growing.md": Route(("mono", "mcs"), program("app.cs"), LEAK, ("Program:Serve", "growth from"), "app.mlpd",
                             "memory", large=True),
    "docs/waiting.md": Route(("perf", "g++"), None, COMPILED, large=True),
    "docs/view.md": Route((), PERF | XRAY, "traceferry perf.data -o out.json.gz --quiet", large=True),
    "docs/packs.md": Route((), PERF | XRAY, "mv app.xray xray-log.app.a1b2c3", large=True),
    "docs/sql.md": Route(("trace_processor_shell",), PERF | XRAY | MONO, shows=("samples",)),
    "docs/symbols.md": Route((), PERF | XRAY, "mv app.xray xray-log.app.a1b2c3", ("functions",)),
    "docs/viewers-files.md": Route((), PERF, PROFILES, large=True),
    "docs/compare.md": Route((), PERF, "mkdir base new; cp perf.data base; cp perf.data new\n"
                             "cp perf.data base.perf.data; cp perf.data new.perf.data", large=True),
    "docs/fleet.md": Route((), PERF | XRAY | MONO, FLEET, large=True),
    "docs/record/index.md": Route(("perf", "g++"), None, COMPILED, large=True),
    "docs/record/frame-pointers.md": Route(("perf", "g++"), None, COMPILED, picture="perf.data", large=True),
    "docs/record/compiled.md": Route(("perf", "g++"), None, COMPILED, large=True),
    "docs/record/node.md": Route(("perf", "node"), program("app.js"), picture="perf.data", large=True),
    "docs/record/bun.md": Route(("perf", "bun"), program("app.js"), picture="perf.data", large=True),
    "docs/record/php.md": Route(("perf", "php"), program("app.php"), "sleep 3", picture="perf.data", large=True),
    "docs/record/cpython.md": Route(("perf", "python3.13"), program("app.py"), picture="perf.data", large=True),
    "docs/record/erlang.md": Route(("perf", "erl", "erlc"), program("app.erl"), "erlc app.erl", picture="perf.data",
                                   large=True),
    "docs/record/mono.md": Route(("mono", "mcs"), program("app.cs"), LEAK, picture="app.mlpd", large=True),
    "docs/record/xray.md": Route(("clang++", "clang++-19"), program("app.cpp") | SESSION,
                                 picture="xray-log.app.*", large=True),
}  # fmt: skip
# What the pictures of a page and of both viewers show, and those that are taken in dark colours, too.
SHOWN = "jit/java17/perf.data.zst"
IN_BOTH = ("page", "growing")
SCHEMES = {"light": "", "dark": "-dark"}
# In Perfetto: all tracks, and the flame graph of all samples.
CALLSTACKS = """() => { const { currentWorkspace, selection, traceInfo } = app.trace;
    const tracks = currentWorkspace.flatTracks;
    for (const track of tracks) track.expand();
    const of = tracks.filter(track => /Clock.* Process Callstacks/.test(track.name) && track.uri !== undefined);
    selection.selectArea({ start: traceInfo.start, end: traceInfo.end, trackUris: of.map(track => track.uri) }); }"""
# Pictures of recordings in fixtures, of what is not installed here.
PICTURES = {"jvm": "jit/java17/perf.data.zst", "wasmtime": "jit/wasmtime/perf.data.zst"}


def prepare(route: Route, folder: Path) -> dict[str, str]:
    """Puts into the folder what the page speaks of. Returns the environment of its commands."""
    (folder / "bin").mkdir(parents=True)
    wrapper = folder / "bin" / "traceferry"
    wrapper.write_text(WRAPPER.format(python=sys.executable))
    wrapper.chmod(0o755)
    for name, source in (route.files or {}).items():
        path = FIXTURES / source
        data = path.read_bytes()
        if path.suffix == ".zst" and not name.endswith(".zst"):
            import zstandard

            data = zstandard.ZstdDecompressor().decompressobj().decompress(data)
        (folder / name).write_bytes(data)
    own = {"PATH": f"{folder}/bin:{os.environ['PATH']}", "LC_ALL": "C.UTF-8", "PYTHONUNBUFFERED": "1"}
    engine = {"TRACEFERRY_TRACE_PROCESSOR": next(iter(GIVEN.values()))} if GIVEN else {}
    return dict(os.environ) | own | engine


def typed(page: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Types the commands of a page, one block after the other, until one fails."""
    route = ROUTES[page]
    env = prepare(route, folder)
    blocks = [block.commands for block in blocks_of(REPO / page) if not block.not_tried]
    script = "\n".join(["set -e", route.before, "set -v", *blocks])
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-c", f"exec 2>&1\n{script}"],
        cwd=folder, env=env, text=True, errors="replace", stdout=subprocess.PIPE,
        stdin=subprocess.DEVNULL, check=False, timeout=300,
    )  # fmt: skip


def renew_pictures(folder: Path, only: Sequence[str]) -> None:
    if not only or "page" in only:
        take(FIXTURES / SHOWN, None, folder / "page.html", REPO / "docs" / "page.png")
        take_viewers(FIXTURES / SHOWN, folder)
    for name, recording in PICTURES.items():
        if not only or name in only:
            take(FIXTURES / recording, None, folder / f"{name}.html", REPO / "docs" / "record" / f"{name}.png")
    for page, route in ROUTES.items():
        name = Path(page).stem
        if not route.picture or (only and name not in only):
            continue
        done = None if route.missing() else typed(page, folder / name)
        if done is None or done.returncode:
            print(f"{page}: {done.stdout[-2000:] if done else 'no ' + ', '.join(route.missing())}")
            continue
        place = (REPO / page).with_suffix(".png")
        take(sorted((folder / name).glob(route.picture))[0], folder / name, folder / f"{name}.html", place, route.tab)


def take(recording: Path, symbols: Path | None, page: Path, output: Path, tab: str = "") -> None:
    """Takes the picture of a recording's page."""
    from pages import picture

    command = [sys.executable, "-m", "traceferry", recording, "-o", page, "--quiet"]
    subprocess.run([*command, *(["--symbols", symbols] if symbols else [])], check=True)
    for scheme, suffix in SCHEMES.items() if output.stem in IN_BOTH else [("light", "")]:
        place = output.with_stem(output.stem + suffix)
        picture(page, place, f"#tab={tab}" if tab else "", scheme)
        make_smaller(place)


def take_viewers(recording: Path, folder: Path) -> None:
    """Takes the pictures of a recording in both viewers, as far as FXP_DIST, PUI and PERFETTO_TP_BIN name them."""
    from pages import OF_PICTURES

    sys.path.insert(0, str(REPO / "benchmarks"))
    import viewers

    def narrowed(page: Any) -> None:
        page.set_viewport_size(OF_PICTURES)
        page.wait_for_timeout(500)

    def with_flame_graph(page: Any) -> None:
        narrowed(page)
        page.evaluate(CALLSTACKS)
        page.evaluate(viewers.IDLE)
        handle = page.locator(".pf-drawer-panel__handle").first.bounding_box()
        page.mouse.move(handle["x"] + 200, handle["y"] + 4)
        page.mouse.down()
        page.mouse.move(handle["x"] + 200, OF_PICTURES["height"] - 460, steps=8)
        page.mouse.up()
        page.mouse.move(1, 1)
        page.evaluate(viewers.IDLE)

    shown = {
        "firefox": ("json.gz", viewers.firefox_picture, narrowed),
        "perfetto": ("pftrace", viewers.perfetto_picture, with_flame_graph),
    }
    for name, (suffix, take_picture, show) in shown.items():
        file = folder / f"{name}.{suffix}"
        subprocess.run([sys.executable, "-m", "traceferry", recording, "-o", file, "--quiet"], check=True)
        for scheme, of_scheme in SCHEMES.items():
            place = REPO / "docs" / f"{name}{of_scheme}.png"
            try:
                take_picture(file, place, scheme, show)
            except viewers.NotThereError as error:
                print(f"{place.name}: {error}")
            else:
                make_smaller(place)


def make_smaller(picture: Path) -> None:
    try:
        from PIL import Image
    except ImportError:
        print(f"{picture.name} is three times as large as with Pillow, which is not installed")
    else:
        # The colours that are there, of which other methods join those of a legend.
        few = Image.open(picture).convert("RGB").quantize(256, Image.Quantize.MAXCOVERAGE, 1, dither=Image.Dither.NONE)
        few.save(picture, optimize=True)


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as temporary:
        renew_pictures(Path(temporary), sys.argv[1:])
