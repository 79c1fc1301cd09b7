"""Three people's routes, from an empty environment to the answer, by the commands of README and the documentation: a
Node developer with a slow script, a C++ engineer with an XRay log, a Mono user with a leak."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from clients import clang
from conftest import PACKAGES, REPO
from documented import blocks_of

RECIPES = REPO / "fixtures" / "recipes"
PARTS = ("converter", "importers", "exporters", "pyproject.toml", "setup.py", "README.md")
LEFT_OUT = shutil.ignore_patterns("*.so", "*.pyd", "__pycache__", "*.c")


def install_commands() -> str:
    """README's, which install into .venv of the copy of the repository in which they are typed."""
    (found,) = (block.commands for block in blocks_of(REPO / "README.md") if "pip install" in block.commands)
    return found


def commands_with(page: str, *texts: str) -> list[str]:
    """The commands of a page that have these texts, one for each."""
    lines = [line for block in blocks_of(REPO / page) for line in block.commands.replace("\\\n", "").splitlines()]
    return [next(line for line in lines if text in line) for text in texts]


class Shell:
    """A shell of a person who has nothing but the repository. compiled: with the kernels of the tests, so that the
    minute in which they are compiled passes once; where it is not, everything is as a person has it."""

    def __init__(self, folder: Path, compiled: bool) -> None:
        self.folder = folder
        self.copy = folder / "traceferry"
        self.copy.mkdir(parents=True)
        for name in PARTS:
            source = REPO / name
            if source.is_dir():
                shutil.copytree(source, self.copy / name, ignore=LEFT_OUT)
            else:
                shutil.copy(source, self.copy)
        self.env = {
            name: value for name, value in os.environ.items()
            if not name.startswith(("PYTHON", "VIRTUAL_ENV", "TRACEFERRY"))
        }  # fmt: skip
        if compiled:
            self.env["TRACEFERRY_KERNELS"] = "0"
        self.env["PYTHONUNBUFFERED"] = "1"
        (folder / "bin").mkdir()
        (folder / "bin" / "python3").symlink_to(sys.executable)
        self.env["PATH"] = f"{folder}/bin:{os.environ['PATH']}"

    def install(self) -> None:
        done = self.run(install_commands(), self.copy)
        if done.returncode and "No matching distribution" in done.stdout:
            pytest.skip(f"what traceferry needs cannot be installed: {done.stdout.strip().splitlines()[-1]}")
        assert done.returncode == 0, done.stdout[-3000:]
        self.env["PATH"] = f"{self.copy}/.venv/bin:{self.env['PATH']}"
        if "TRACEFERRY_KERNELS" in self.env:
            site = next((self.copy / ".venv" / "lib").glob("python*/site-packages"))
            for package, part in PACKAGES.items():
                for kernel in (REPO / part).rglob("*.so"):
                    shutil.copy(kernel, site.joinpath(*package.split("."), kernel.relative_to(REPO / part)))

    def run(self, commands: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "--noprofile", "--norc", "-ec", f"exec 2>&1\n{commands}"],
            cwd=folder or self.folder, env=self.env, capture_output=True, text=True, errors="replace",
            stdin=subprocess.DEVNULL, timeout=600, check=False,
        )  # fmt: skip

    def type(self, *commands: str) -> str:
        done = self.run("\n".join(commands))
        assert done.returncode == 0, done.stdout[-3000:]
        return done.stdout


def wants(*programs: str) -> None:
    missing = [name for name in programs if shutil.which(name) is None]
    if sys.platform != "linux" or missing:
        pytest.skip(f"this route needs {', '.join(missing) or 'Linux'}")


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path / "person", compiled=True)


@pytest.mark.large
def test_a_cpp_engineer_with_an_xray_log(shell: Shell) -> None:
    """The program as it stands in docs/record/xray.md, and the log that a colleague sent where there is no clang."""
    wants("bash")
    shell.install()
    if clang.with_xray():
        shutil.copy(RECIPES / "app.cpp", shell.folder)
        (shell.folder / "bin" / "clang++").symlink_to(clang.with_xray())
        shell.type(*commands_with("docs/record/xray.md", "clang++ ", "xray-basic"))
        log = next(shell.folder.glob("xray-log.app.*")).name
        function, page = "count ", "app.html"
    else:
        log, function, page = "xray-log.app.a1b2c3", "Pool::pop", "app.html"
        shutil.copy(REPO / "fixtures/xray/clang-19/fdr-c19-pie-pool-tsc.xray", shell.folder / log)
        shutil.copy(REPO / "fixtures/xray/clang-19/pool-pie.zst", shell.folder / "app")
    (convert,) = commands_with("docs/record/xray.md", "traceferry convert")
    shell.type(convert, f"traceferry convert {log} --symbols app -o {page}")
    printed = shell.type(f"traceferry info {log} --symbols app")
    assert re.search(rf"^( +[\d.]+\S*s +[\d.]+%){{2}} +\d+ +{re.escape(function)}", printed, re.M), printed
    assert (shell.folder / "app.json.gz").stat().st_size > 1000
    assert "Flame graph" in (shell.folder / page).read_text("utf-8")


@pytest.mark.large
def test_a_node_developer_with_a_slow_script(tmp_path: Path) -> None:
    """Everything is compiled, as on this person's machine."""
    wants("bash", "perf", "node")
    shell = Shell(tmp_path / "person", compiled=False)
    shell.install()
    shutil.copy(RECIPES / "app.js", shell.folder)
    (record,) = commands_with("docs/record/node.md", "perf record")
    (info,) = commands_with("docs/slow.md", "traceferry info")
    (page,) = commands_with("docs/slow.md", "-o app.html")
    printed = shell.type(record, info, page)
    # What it does most is sorting: the comparison, or what it was inlined into.
    assert re.search(r"(byPrice|insertSorted|main|anonymous\)) +.*app\.js", printed), printed
    assert (shell.folder / "app.html").stat().st_size > 10_000


@pytest.mark.large
def test_a_mono_user_with_a_leak(shell: Shell) -> None:
    wants("bash", "mono", "mcs")
    shell.install()
    shutil.copy(RECIPES / "app.cs", shell.folder)
    route = commands_with("docs/growing.md", "mono --profile", "traceferry info", "leak.html")
    printed = shell.type("mcs app.cs", *route)
    growth = printed.split("growth from heap shot")[1]
    assert re.search(r"\+\d+ .*System\.Byte\[\]", growth), growth
    assert "Session:.ctor < Program:Serve < Program:Main" in printed
    assert (shell.folder / "leak.html").stat().st_size > 10_000
