"""What the fuzz targets share.

Of recordings: any bytes give a trace that obeys the laws and that every exporter writes, or a FormatError. Of files of
symbols: any bytes give symbols or a FormatError, and a GSYM file of their functions says what the functions say.

Python code is instrumented by atheris, compiled modules by clang where `make fuzz` finds it, which also checks their
memory: coverage leads the fuzzer into both. FUZZ_SECONDS sets how long.

No input may need more than SECONDS, and SECONDS_PER_MB for each MB, of time, or more than MEMORY.
"""

from __future__ import annotations

import importlib
import io
import os
import pkgutil
import random
import resource
import sys
import time
import zlib
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, islice, pairwise
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

import atheris

if TYPE_CHECKING:
    from traceferry.model import Trace
    from traceferry.registry import ImporterModule
    from traceferry.symbolication.interface import Frames, Function, Inline, Symbols

ROOT = Path(__file__).parents[1]
# Of inputs, in bytes; of seeds: short ones mutate better.
MAX_SIZE = 1 << 16
MAX_SEED = 4096
# One input in so many is tried stretched, too: a part of up to so many bytes is repeated.
STRETCHED, MAX_PART = 16, 128
# What one input may take in all, and what the readers may take of it.
TIMEOUT = 60
SECONDS, SECONDS_PER_MB = 2.0, 5.0
# How much longer instrumented code takes.
SLOWNESS = 4
MEMORY = 3_000_000_000
# The exporters that are called.
OUTPUTS = ("firefox", "gecko", "autofdo", "perfetto")
# Those of a narrowed trace; a page holds the first and the last of the others.
NARROWED_OUTPUTS = (*OUTPUTS, "html")
# What is looked at of a file of symbols.
MAX_FUNCTIONS = 300
MAX_EDGES = 16
MAX_INLINED = 128
MAX_UUID = 20
# Of a text in a GSYM file, in bytes.
MAX_TEXT = 1 << 16

Seeds = Iterable[tuple[str, bytes]]
Target = Callable[[bytes], None]


# ---------------------------------------------------------------- running


def run(
    importer: str, seeds: Callable[[], Seeds], within: Callable[[ImporterModule], ImporterModule] = lambda own: own
) -> None:
    """Fuzzes one importer. seeds: names and bytes of inputs; short ones mutate better. within: what stands around the
    importer, as one that brings further inputs."""
    packages = ("traceferry", "traceferry.exporters", f"traceferry.importers.{importer}")
    modules = imported(name for package in packages for name in modules_of(package))
    module = within(cast("ImporterModule", modules[f"traceferry.importers.{importer}"]))
    exported = in_time(lambda data: _outcome(module, data))

    def one_input(data: bytes) -> None:
        _detect_and_dump(module, data)
        exported(data)

    fuzz(importer, seeds, one_input)


def run_symbols(
    kind: str, seeds: Callable[[], Seeds], said: Callable[[bytes], object], plain: Sequence[str] = ()
) -> None:
    """Fuzzes a reader of symbols. said: all that it says of some bytes, comparable; plain: modules that are not
    instrumented, since atheris never frees what a comparison of arrays gives."""
    imported(modules_of("traceferry.symbolication"), plain)
    fuzz(kind, seeds, in_time(said))


def imported(names: Iterable[str], plain: Sequence[str] = ()) -> dict[str, ModuleType]:
    """Imports these modules, instrumented but for the plain ones. What is imported later, inside functions, would not
    be."""
    with atheris.instrument_imports(include=["traceferry"], exclude=plain):
        return {name: importlib.import_module(name) for name in names}


def in_time(outcome: Callable[[bytes], object]) -> Target:
    """Returns a target that raises AssertionError where the outcome takes longer than an input of that size may."""

    def one_input(data: bytes) -> None:
        began = time.process_time()
        outcome(data)
        took, may_take = time.process_time() - began, SLOWNESS * (SECONDS + SECONDS_PER_MB * len(data) / 1e6)
        assert took < may_take, f"{len(data)} bytes took {took:.1f} s of the processor, more than {may_take:.1f} s"

    return one_input


def fuzz(corpus: str, seeds: Callable[[], Seeds], one_input: Target) -> None:
    """Calls `one_input` with bytes that come of the seeds and of fuzz/corpus/CORPUS, until FUZZ_SECONDS have passed or
    it raises. libFuzzer itself looks at the time only when it has run the whole corpus once."""
    folder = ROOT / "fuzz" / "corpus" / corpus
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in seeds():
        (folder / f"seed-{name}").write_bytes(data[:MAX_SIZE])
    _limit_memory()
    random.seed(0)
    seconds = float(os.environ.get("FUZZ_SECONDS", "600"))
    deadline, n_inputs = time.monotonic() + seconds, 0
    # What compiled functions that promise to raise nothing report instead: an index outside an array.
    unraised: list[BaseException | None] = []
    sys.unraisablehook = lambda report: unraised.append(report.exc_value)

    def until_deadline(data: bytes) -> None:
        nonlocal n_inputs
        data = data[:MAX_SIZE]
        one_input(data)
        n_inputs += 1
        if zlib.crc32(data) % STRETCHED == 0:
            one_input(stretched(data))
        if unraised:
            raise AssertionError(f"{len(unraised)} times a compiled function could not raise") from unraised[0]
        if time.monotonic() > deadline:
            print(f"{n_inputs} inputs in {seconds:.0f} s, no finding", flush=True)
            os._exit(0)

    options = [f"-max_len={MAX_SIZE}", f"-timeout={TIMEOUT}", f"-rss_limit_mb={MEMORY // 1_000_000}", "-len_control=40"]
    options += ["-artifact_prefix=" + str(ROOT / "fuzz") + "/finding-", "-print_final_stats=1"]
    # Files that are named are tried once each, as a finding is again.
    atheris.Setup([sys.argv[0], *options, *(sys.argv[1:] or [str(folder)])], until_deadline)
    atheris.Fuzz()


def stretched(data: bytes) -> bytes:
    """The input, of which a part comes again until it is of MAX_SIZE: what grows with more than the bytes shows."""
    choice = zlib.crc32(data) // STRETCHED
    begin = choice % max(len(data), 1)
    part = data[begin : begin + 1 + (choice >> 8) % MAX_PART]
    times = (MAX_SIZE - len(data)) // max(len(part), 1)
    return data[:begin] + part * times + data[begin:]


def _limit_memory() -> None:
    """What asks for more gets a MemoryError, which no reader may raise."""
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    if "ASAN_OPTIONS" not in os.environ:  # whose shadow takes terabytes of addresses
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, hard))


def modules_of(package: str) -> Iterator[str]:
    """The package and all modules in it, but importers and exporters, which are packages of their own."""
    yield package
    for found in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
        if not found.name.endswith("__main__"):
            yield found.name


# ---------------------------------------------------------------- recordings


def _detect_and_dump(importer: ImporterModule, data: bytes) -> None:
    from traceferry.common.errors import FormatError
    from traceferry.files.source import Source
    from traceferry.registry import detect

    source = Source("fuzz.bin", memoryview(data))
    with suppress(FormatError):
        detect(source)
    with suppress(FormatError):
        for _ in importer.dump(source, 0):
            pass


def _outcome(importer: ImporterModule, data: bytes) -> tuple[str, list[bytes]]:
    """(what the loader said, every export of it)."""
    from traceferry.common.errors import FormatError
    from traceferry.files.output import Output
    from traceferry.files.source import Source
    from traceferry.model import TraceBuilder
    from traceferry.model.laws import check
    from traceferry.reading import ImportContext
    from traceferry.registry import exporter_named

    builder = TraceBuilder()
    try:
        importer.read([Source("fuzz.bin", memoryview(data))]).add_to(builder, ImportContext())
    except FormatError as error:
        return f"FormatError {error.message} {error.offset}", []
    trace = builder.done()
    _look_up(trace)
    broken = check(trace)
    assert not broken, broken
    exports = []
    for name in OUTPUTS:
        sink = io.BytesIO()
        out = Output(sink, gzip=False)
        exporter_named(name).writer()(trace.opened(), out, lambda _: None)
        out.finish()
        exports.append(sink.getvalue())
    issues = "\n".join(issue.as_text() for issue in trace.report)
    return issues, exports


def _look_up(trace: Trace) -> None:
    """Some places of jitted code, as samples would."""
    opened = trace.opened()
    for reader in trace.code_readers:
        for code in reader.rows[:8]:
            size = int(trace.code["size"][code])
            reader.bytes_of(code)
            for offset in {0, 1, size // 2, max(size - 1, 0)}:
                assert reader.frames_at(opened, code, offset)


# ---------------------------------------------------------------- symbols

Stack = list[tuple[str, str, int]]


def said_by(symbols: Symbols) -> list[Any]:
    """The functions, what look-ups at their edges say, and what is damaged. A GSYM file of them says the same."""
    import numpy as np

    functions = list(islice(symbols.functions(), MAX_FUNCTIONS))
    frames = symbols.lookup(np.array(asked_of(functions), np.uint64))
    stacks = stacks_of(frames)
    for version in (1, 2) if _are_whole(functions) else ():
        check_written(functions, symbols.base, bytes.fromhex(symbols.build_id)[:MAX_UUID], version)
    return [functions, stacks, frames.start.tolist(), frames.size.tolist(), list(symbols.problems)]


def asked_of(functions: Sequence[Function]) -> list[int]:
    """Edges, what lies in front of them and half of memory away, powers of two, and the ends of memory."""
    edges = {at for function in functions for at in _edges(function)} | {1 << bits for bits in range(65)}
    return sorted({at % (1 << 64) for edge in edges for at in (edge - 1, edge, edge + (1 << 63))})


def _edges(function: Function) -> Iterator[int]:
    """Start, middle and end; where the first rows begin, and where the first inlined calls begin and end."""
    yield from (function.start, function.start + function.size // 2, function.start + function.size)
    yield from (address for address, _, _ in function.lines[:MAX_EDGES])
    for inline in islice(_calls(function.inlines), MAX_EDGES):
        yield from chain.from_iterable(inline.ranges[:MAX_EDGES])


def _calls(inlines: Iterable[Inline]) -> Iterator[Inline]:
    for inline in inlines:
        yield inline
        yield from _calls(inline.children)


def stacks_of(frames: Frames) -> list[Stack]:
    """What a look-up found, once its columns are sound."""
    n_frames = int(frames.first[-1])
    assert frames.first[0] == 0
    assert n_frames == len(frames.name) == len(frames.source) == len(frames.line)
    for indices in (frames.name, frames.source):
        assert ((indices >= -1) & (indices < len(frames.texts))).all()
    texts = [*frames.texts, ""]
    columns = zip(frames.name.tolist(), frames.source.tolist(), frames.line.tolist(), strict=True)
    rows = [(texts[name], texts[source], line) for name, source, line in columns]
    return [rows[begin:end] for begin, end in pairwise(frames.first.tolist())]


def check_written(functions: Sequence[Function], base: int, uuid: bytes, version: int) -> None:
    """A GSYM file of the functions says at their edges what they say."""
    import numpy as np

    from traceferry.files.source import Source
    from traceferry.symbolication.gsym.reader import Gsym
    from traceferry.symbolication.gsym.writer import write

    out = io.BytesIO()
    written = write(out, functions, uuid=uuid, base=base, version=version)
    gsym = Gsym(Source("fuzz.gsym", memoryview(out.getvalue())))
    held = list(gsym.functions())
    assert written.n_bytes == len(out.getvalue())
    assert (written.n_functions, gsym.base, gsym.build_id) == (len(held), base, uuid.hex())
    assert written.n_left_out == sum(not _fits(function, base) for function in functions)
    given = _by_range(function for function in functions if _fits(function, base))
    kept = [given[function.start, function.size] for function in held]
    assert [function.name for function in held] == [_text(function.name) for function in kept]
    gone = {(function.start, function.size) for function in kept} ^ given.keys()
    assert all(size == 0 and any(f.start <= start < f.start + f.size for f in kept) for start, size in gone)
    addresses = asked_of(functions)
    stacks = stacks_of(gsym.lookup(np.array(addresses, np.uint64)))
    starts = [function.start for function in kept]
    for address, stack in zip(addresses, stacks, strict=True):
        wanted = _stack_at(_holder(kept, starts, address), address)
        assert stack == wanted, f"at {address:#x} there is {stack}, not {wanted}"
    assert list(gsym.problems) == []


def _fits(function: Function, base: int) -> bool:
    return bool(function.name) and base <= function.start < 1 << 64 and 0 <= function.size < 1 << 32


def _by_range(functions: Iterable[Function]) -> dict[tuple[int, int], Function]:
    """Of equal ranges the function with most debug information, of equal ones the last."""
    found: dict[tuple[int, int], Function] = {}
    for function in functions:
        known = found.setdefault((function.start, function.size), function)
        if (len(function.inlines), len(function.lines)) >= (len(known.inlines), len(known.lines)):
            found[function.start, function.size] = function
    return found


def _holder(functions: Sequence[Function], starts: Sequence[int], address: int) -> Function | None:
    """Of those that start last in front of the address, or there, the first that reaches it."""
    nth = bisect_right(starts, address) - 1
    together = [function for function in functions if nth >= 0 and function.start == starts[nth]]
    return next((f for f in together if f.size == 0 or address < f.start + f.size), None)


def _stack_at(function: Function | None, address: int) -> Stack:
    """The frames of an address, the innermost first. In GSYM, calls are known only in functions that have rows, and
    those that have no source themselves make no frame; zeros end texts, so that the writer replaces those inside."""
    if function is None:
        return []
    rows = _rows_in(function)
    _, source, line = next((row for row in reversed(rows) if row[0] <= address), (0, "", 0))
    frames = [(function.name, source, _line(line))]
    calls, within = function.inlines, [(function.start, function.start + function.size)]
    for _ in range(MAX_INLINED if rows else 0):
        call = next((call for call in calls if _holds(_inside(call, within), address)), None)
        if call is None:
            break
        calls, within = call.children, _inside(call, within)
        if call.call_source:
            name, source, line = frames[0]
            frames[0] = (name, call.call_source, _line(call.call_line))
            frames.insert(0, (call.name, source, line))
    return [(_text(name), _text(source), line) for name, source, line in frames]


def _rows_in(function: Function) -> list[tuple[int, str, int]]:
    """Those inside the function that never fall."""
    end = function.start + function.size if function.size else 1 << 64
    rows: list[tuple[int, str, int]] = []
    for row in function.lines:
        if (rows[-1][0] if rows else function.start) <= row[0] < end:
            rows.append(row)
    return rows


def _inside(call: Inline, within: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The call's ranges, those that touch as one, as far as each lies in one of `within`."""
    joined: list[tuple[int, int]] = []
    for begin, end in sorted(r for r in call.ranges if r[0] < r[1] and any(b <= r[0] and r[1] <= e for b, e in within)):
        if joined and begin <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((begin, end))
    return joined


def _holds(ranges: Iterable[tuple[int, int]], address: int) -> bool:
    return any(begin <= address < end for begin, end in ranges)


def _text(text: str) -> str:
    return text.replace("\0", "\ufffd")


def _are_whole(functions: Iterable[Function]) -> bool:
    """Whether no reader of a GSYM file of them cuts a name or a path."""
    calls = chain.from_iterable((f.name, *(source for _, source, _ in f.lines)) for f in functions)
    inlined = chain.from_iterable((c.name, c.call_source) for f in functions for c in _calls(f.inlines))
    return all(len(text.encode()) <= MAX_TEXT for text in {*calls, *inlined})


def _line(number: int) -> int:
    """Of 32 bits, those that a signed number holds."""
    number %= 1 << 32
    return number if number < 1 << 31 else 0
