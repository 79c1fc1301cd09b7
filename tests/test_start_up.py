"""What a conversion imports: start-up is a third of the time of a short one. A module that is only needed now and then
is imported by the function that needs it."""

import argparse
import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import PACKAGES, REPO

from traceferry.apps.cli.aggregate import NO_FLEET_OPTIONS, add_fleet_options

FIXTURES = REPO / "fixtures"
XRAY = FIXTURES / "xray/clang-19/fdr-c19-pie-pool-tsc.xray"
PERF = FIXTURES / "jit/java17/perf.data.zst"
MONO = FIXTURES / "mono/mono-6.8/calls.mlpd.zst"
CPUPROFILE = FIXTURES / "stacks/node.cpuprofile"

# What sniffs, of formats that are asked before others: no layout where there is a magic number.
SNIFFING = {
    "importers.collapsed", "importers.cpuprofile", "importers.firefox", "importers.firefox.magic", "importers.hermes",
    "importers.jitdump", "importers.jitdump.magic", "importers.mono", "importers.mono.magic", "importers.perf",
    "importers.perf.magic", "importers.perfetto", "importers.perfetto.layout", "importers.pprof",
    "importers.pprof._messages", "importers.pprof.layout", "importers.speedscope", "importers.strace",
    "importers.strace.layout", "importers.xray", "importers.xray.magic",
}  # fmt: skip
# Of the standard library and others, what only some commands, recordings or outputs need.
RARE = {
    "asyncio", "concurrent", "decimal", "elftools", "html", "http", "logging", "lzma", "bz2", "multiprocessing",
    "numpy.ma", "shutil", "socket", "subprocess", "tarfile", "tempfile", "tqdm", "urllib.request", "xml",
}  # fmt: skip
OTHER_COMMANDS = {
    f"apps.cli.{name}"
    for name in ("check", "compare", "completion", "dump", "formats", "info", "pack", "query", "symbols", "view")
}
# Of what names functions and unwinds stacks, that which only recordings with files of code need.
OF_CODE = {
    "symbolication.demangle", "symbolication.elf", "symbolication.gsym", "symbolication.jit_names",
    "symbolication.libraries", "symbolication.symbol_table", "unwinding",
}  # fmt: skip


def imported_by(*words: str | Path) -> set[str]:
    """Returns the modules that a command line imports; the project's own without "traceferry."."""
    # At the end, which --help comes to, too.
    code = (
        "import atexit, sys; before = set(sys.modules); "
        "atexit.register(lambda: print(*(set(sys.modules) - before), file=sys.stderr)); "
        "from traceferry.apps.entry import main; sys.exit(main())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, words)], capture_output=True, text=True, check=True, cwd=REPO,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )  # fmt: skip
    return {name.removeprefix("traceferry.") for name in done.stderr.splitlines()[-1].split()}


def within(names: set[str], packages: set[str]) -> set[str]:
    """Returns those of the names that are these modules, or in these packages."""
    return {name for name in names if any(f"{name}.".startswith(f"{package}.") for package in packages)}


def formats_in(folder: str) -> set[str]:
    return {f"{folder}.{path.stem}" for path in (REPO / PACKAGES[f"traceferry.{folder}"]).iterdir()}


@pytest.fixture(scope="module")
def firefox(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A profile of Firefox, of functions with names."""
    from traceferry import convert

    path = tmp_path_factory.mktemp("firefox") / "profile.json"
    convert(CPUPROFILE, path)
    return path


SHARED_BY_EXPORTERS = {f"exporters.{name}" for name in ("amounts", "counters", "depths", "tiers", "tracepoints")}
# By the importer: the input, the output's suffix, and the importers and exporters that belong to these.
CONVERSIONS = {
    "xray": (XRAY, ".pftrace", {"importers.xray", "exporters.perfetto"}),
    "xray as json": (XRAY, ".json", {"importers.xray", "exporters.firefox", "exporters.json"}),
    "mono": (MONO, ".json.gz", {"importers.mono", "exporters.firefox", "exporters.json"}),
    "perf": (PERF, ".pftrace", {"importers.perf", "importers.jitdump", "exporters.perfetto"}),
    "cpuprofile": (CPUPROFILE, ".pftrace", {"importers.cpuprofile", "exporters.perfetto"}),
}
# Those of code that is named or unwound, and what that takes: of perf also what files of this machine take.
NEEDED = {
    "perf": OF_CODE | {"subprocess", "numpy.ma"},
    "xray": {"symbolication.demangle"}, "xray as json": {"symbolication.demangle"},
}  # fmt: skip


def check(found: set[str], own: set[str], needed: set[str]) -> None:
    importers = within(found, {"importers"}) - within(found, own) - SNIFFING - {"importers"}
    exporters = within(found, formats_in("exporters")) - within(found, own | SHARED_BY_EXPORTERS)
    assert importers | exporters == set()
    assert within(found, RARE | OTHER_COMMANDS | OF_CODE) - within(found, needed) == set()
    assert "analysis.verdict" not in found, "--quiet says nothing of what the recording is worth"
    assert within(found, {"files.known_files", "apps.fleet", "apps.view", "trace_processor"}) == set()


@pytest.mark.parametrize("kind", CONVERSIONS)
def test_a_conversion_imports_what_it_needs(tmp_path: Path, kind: str) -> None:
    recording, suffix, own = CONVERSIONS[kind]
    found = imported_by("convert", recording, "-o", tmp_path / f"out{suffix}", "--quiet")
    check(found, own, NEEDED.get(kind, set()))


def test_a_profile_needs_nothing_of_code_where_its_functions_have_names(tmp_path: Path, firefox: Path) -> None:
    found = imported_by("convert", firefox, "-o", tmp_path / "out.pftrace", "--quiet")
    check(found, {"importers.firefox", "exporters.perfetto"}, {"symbolication.demangle", "symbolication.libraries"})


def test_info_imports_no_exporter_and_no_other_importer() -> None:
    found = imported_by("info", XRAY)
    assert within(found, {"importers"}) - within(found, {"importers.xray"}) - SNIFFING == {"importers"}
    assert within(found, formats_in("exporters")) == set()


@pytest.mark.parametrize("words", [("--version",), ("convert", "--help"), ("info", "--help")])
def test_help_needs_no_importer(words: tuple[str, ...]) -> None:
    assert within(imported_by(*words), {"importers", "exporters", "model", "analysis"}) == set()


def test_options_of_many_processors_that_are_not_given() -> None:
    """The values that convert knows without the parser, whose making takes time."""
    parser = argparse.ArgumentParser()
    add_fleet_options(parser)
    assert vars(parser.parse_args([])) == NO_FLEET_OPTIONS
