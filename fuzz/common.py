"""What the fuzz targets share: any bytes give a trace that obeys the laws and that every exporter writes, or a
FormatError; and the compiled kernels give what the interpreted ones give.

The interpreted kernels are instrumented, so that coverage leads the fuzzer into them; the compiled ones then run on
the same input. FUZZ_SECONDS sets how long.
"""

from __future__ import annotations

import importlib
import io
import os
import pkgutil
import random
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, cast

import atheris

if TYPE_CHECKING:
    from converter.model import Trace
    from converter.registry import ImporterModule

ROOT = Path(__file__).parents[1]
MAX_SIZE = 4096
# The exporters that are called.
OUTPUTS = ("firefox", "gecko", "perfetto")

Kernels = dict[str, ModuleType]
Seeds = Iterable[tuple[str, bytes]]


def run(
    importer: str, seeds: Callable[[], Seeds], within: Callable[[ImporterModule], ImporterModule] = lambda own: own
) -> None:
    """Fuzzes importers.IMPORTER. seeds: names and bytes of inputs; short ones mutate better. within: what stands around
    the importer, as one that brings further inputs."""
    # What is imported later, inside functions, would not be instrumented.
    with atheris.instrument_imports(include=["converter", "importers", "exporters"]):
        packages = ("converter", "exporters", f"importers.{importer}")
        modules = {name: importlib.import_module(name) for package in packages for name in _modules(package)}
    compiled = {name: module for name, module in modules.items() if name.endswith("_kernel")}
    both = (compiled, {name: _interpreted(name) for name in compiled})
    module = within(cast("ImporterModule", modules[f"importers.{importer}"]))
    corpus = ROOT / "fuzz" / "corpus" / importer
    corpus.mkdir(parents=True, exist_ok=True)
    for name, data in seeds():
        (corpus / f"seed-{name}").write_bytes(data[:MAX_SIZE])
    random.seed(0)
    seconds = os.environ.get("FUZZ_SECONDS", "600")
    options = [f"-max_total_time={seconds}", f"-max_len={MAX_SIZE}", "-timeout=20", "-rss_limit_mb=3000"]
    options += ["-artifact_prefix=" + str(ROOT / "fuzz") + "/finding-", "-print_final_stats=1"]
    arguments = [sys.argv[0], *options, *sys.argv[1:], str(corpus)]
    atheris.Setup(arguments, lambda data: _one_input(module, data[:MAX_SIZE], *both))
    atheris.Fuzz()


def _modules(package: str) -> Iterator[str]:
    """The package and its modules, without packages in it."""
    yield package
    for found in pkgutil.iter_modules([str(ROOT / package.replace(".", "/"))]):
        if not found.ispkg:
            yield f"{package}.{found.name}"


def _interpreted(name: str) -> ModuleType:
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


@contextmanager
def _kernels(there: Kernels, instead: Kernels) -> Iterator[None]:
    """Wherever a module has imported a kernel, it has the other one of that name."""
    users = [
        (user, attribute, name)
        for user in list(sys.modules.values())
        if getattr(user, "__name__", "").startswith(("converter", "importers", "exporters"))
        for attribute, value in list(vars(user).items())
        for name, kernel in there.items()
        if value is kernel and user.__spec__ is not None and f"{user.__name__}.{attribute}" != name
    ]
    for user, attribute, name in users:
        setattr(user, attribute, instead[name])
    try:
        yield
    finally:
        for user, attribute, name in users:
            setattr(user, attribute, there[name])


def _one_input(importer: ImporterModule, data: bytes, compiled: Kernels, interpreted: Kernels) -> None:
    from converter.errors import FormatError
    from converter.registry import detect
    from converter.source import Source

    source = Source("fuzz.bin", memoryview(data))
    with suppress(FormatError):
        detect(source)
    with suppress(FormatError):
        for _ in importer.dump(source, 0):
            pass
    with _kernels(compiled, interpreted):
        slow = _outcome(importer, data)
    fast = _outcome(importer, data)
    assert slow == fast, "the compiled kernels give another result than the interpreted ones"


def _outcome(importer: ImporterModule, data: bytes) -> tuple[str, list[bytes]]:
    """(what the loader said, every export of it)."""
    from converter.errors import FormatError
    from converter.laws import check
    from converter.model import Trace
    from converter.output import Output
    from converter.registry import Options, exporter_named
    from converter.source import Source

    trace = Trace()
    try:
        importer.read([Source("fuzz.bin", memoryview(data))]).add_to(trace, Options())
    except FormatError as error:
        return f"FormatError {error.message} {error.offset}", []
    trace.sort()
    _look_up(trace)
    broken = check(trace)
    assert not broken, broken
    exports = []
    for name in OUTPUTS:
        sink = io.BytesIO()
        out = Output(sink, gzip=False)
        exporter_named(name).module.write(trace, out, lambda _: None)
        out.finish()
        exports.append(sink.getvalue())
    issues = "\n".join(issue.as_text() for issue in trace.report)
    return issues, exports


def _look_up(trace: Trace) -> None:
    """Some places of jitted code, as samples would."""
    for reader in trace.code_readers:
        for code in reader.rows[:8]:
            size = int(trace.code["size"][code])
            reader.bytes_of(code)
            for offset in {0, 1, size // 2, max(size - 1, 0)}:
                assert reader.frames_at(code, offset)
