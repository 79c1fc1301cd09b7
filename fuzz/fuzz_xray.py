"""Fuzzes the road of an XRay log: any bytes give a trace that obeys the laws and that every exporter writes, or a
FormatError; and the compiled kernels give what the interpreted ones give.

Run by `make fuzz`; FUZZ_SECONDS sets how long. Seeds are the small fixtures. The interpreted kernels are instrumented,
so that coverage leads the fuzzer into them; the compiled ones then run on the same input.
"""

from __future__ import annotations

import importlib
import io
import os
import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType

import atheris

ROOT = Path(__file__).parents[1]
KERNELS = (
    "converter.calls_kernel",
    "converter.clocks_kernel",
    "converter.stacks_kernel",
    "exporters.json_kernel",
    "exporters.perfetto_kernel",
    "importers.xray.fdr_kernel",
)
MAX_SIZE = 4096


def interpreted(name: str) -> ModuleType:
    """The kernel's .py file as a module of its own, whatever is compiled beside it."""
    path = ROOT / (name.replace(".", "/") + ".py")
    loader = SourceFileLoader(f"interpreted_{name.replace('.', '_')}", str(path))
    spec = spec_from_loader(loader.name, loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    for function in list(vars(module).values()):
        inner = getattr(function, "__wrapped__", function)
        if getattr(inner, "__module__", "") == module.__name__ and hasattr(inner, "__code__"):
            atheris.instrument_func(inner)
    return module


# What is imported later, inside functions, would not be instrumented.
LATE = (
    "converter.calls",
    "converter.clocks",
    "converter.stacks",
    "exporters.firefox",
    "exporters.gecko",
    "exporters.perfetto",
    "importers.xray.basic",
    "importers.xray.fdr",
    "importers.xray.forks",
    "importers.xray.map",
    "importers.xray.records",
)

with atheris.instrument_imports(include=["converter", "importers", "exporters"]):
    from converter.errors import FormatError
    from converter.laws import check
    from converter.model import Trace
    from converter.output import Output
    from converter.registry import EXPORTERS, Options, detect
    from converter.source import Source
    from importers import xray

    for late in LATE:
        importlib.import_module(late)
    COMPILED = {name: importlib.import_module(name) for name in KERNELS}
    INTERPRETED = {name: interpreted(name) for name in KERNELS}

USERS = {
    "converter.calls_kernel": ("converter.calls",),
    "converter.clocks_kernel": ("converter.clocks",),
    "converter.stacks_kernel": ("converter.stacks",),
    "exporters.json_kernel": ("exporters.json_stream",),
    "exporters.perfetto_kernel": ("exporters.perfetto",),
    "importers.xray.fdr_kernel": ("importers.xray.decode",),
}


@contextmanager
def kernels(modules: dict[str, ModuleType]) -> Iterator[None]:
    """Puts these kernels in the place of those that their users imported."""
    for name, users in USERS.items():
        for user in users:
            setattr(importlib.import_module(user), name.rpartition(".")[2], modules[name])
    yield


def outcome(data: bytes) -> tuple[str, list[bytes]]:
    """(what the loader said, every export of it)."""
    source = Source("fuzz.xray", memoryview(data))
    trace = Trace()
    try:
        xray.read([source]).add_to(trace, Options())
    except FormatError as error:
        return f"FormatError {error.message} {error.offset}", []
    trace.sort()
    broken = check(trace)
    assert not broken, broken
    exports = []
    for exporter in EXPORTERS:
        sink = io.BytesIO()
        out = Output(sink, gzip=False)
        exporter.module.write(trace, out, lambda _: None)
        out.finish()
        exports.append(sink.getvalue())
    issues = "\n".join(issue.as_text() for issue in trace.report)
    return issues, exports


def one_input(data: bytes) -> None:
    data = data[:MAX_SIZE]
    with suppress(FormatError):
        detect(Source("fuzz.xray", memoryview(data)))
    for _ in xray.dump(Source("fuzz.xray", memoryview(data)), 0) if xray.read_header(memoryview(data)) else ():
        pass
    with kernels(INTERPRETED):
        slow = outcome(data)
    with kernels(COMPILED):
        fast = outcome(data)
    assert slow == fast, "the compiled kernels give another result than the interpreted ones"


def write_seeds(corpus: Path) -> None:
    """The small fixtures, and their first kilobytes: short inputs mutate better."""
    from converter.source import open_source

    corpus.mkdir(parents=True, exist_ok=True)
    for path in sorted((ROOT / "fixtures" / "xray").rglob("*.xray*")):
        if path.suffix in (".xray", ".zst"):
            data = bytes(open_source(str(path)).data)
            for size in (200, 1000, MAX_SIZE):
                (corpus / f"seed-{path.name}-{size}").write_bytes(data[:size])


def main() -> None:
    random.seed(0)
    corpus = ROOT / "fuzz" / "corpus" / "xray"
    write_seeds(corpus)
    seconds = os.environ.get("FUZZ_SECONDS", "600")
    options = [f"-max_total_time={seconds}", f"-max_len={MAX_SIZE}", "-timeout=20", "-rss_limit_mb=3000"]
    options += ["-artifact_prefix=" + str(ROOT / "fuzz") + "/finding-", "-print_final_stats=1"]
    atheris.Setup([sys.argv[0], *options, *sys.argv[1:], str(corpus)], one_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
