"""The real jitdumps: where they lie; and what a trace says of jitted code, as texts that tests can compare.

Small ones are in fixtures/jit; the shared folder has all of them, and what other tools say about them.
"""

from functools import cache
from pathlib import Path
from typing import Any

import pytest
import zstandard
from conftest import NEITHER, REPO, SHARED, or_skipped
from support import as_python, data_of, lawful

from traceferry.files.source import Source
from traceferry.model import Trace, TraceBuilder
from traceferry.reading import ImportContext
from traceferry.registry import importer_named

ROOTS = [SHARED / "captures" / "jit", REPO / "fixtures" / "jit"]
NO_FILES = NEITHER.format("fixtures/jit")
# 468 MB.
LARGE = "bigjit/"
# And those of ten thousand code objects and more, where others have hundreds.
LONG = (LARGE, "erl25/jit-", "node24-switch/jit-")
CODE_SIZE = "code size"


@cache
def _files() -> dict[str, Path]:
    """Folder/name without .zst → where it is; a program's name alone. Shared ones win."""
    found: dict[str, Path] = {}
    for root in ROOTS:
        for path in sorted(root.glob("*/*")):
            found.setdefault(f"{path.parent.name}/{path.name.removesuffix('.zst')}", path)
        for program in (*root.glob("*.js"), *root.glob("*/tiers.js")):
            found.setdefault(program.name, program)
    return found


def dumps(folder: str = "", large: tuple[str, ...] = (LARGE,)) -> list[Any]:
    """The names of the real dumps, for `parametrize`; the large ones are marked. large: how their names begin."""
    chosen = sorted(name for name in _files() if name.endswith(".dump") and name.startswith(folder))
    marked = [pytest.param(n, marks=pytest.mark.large) if n.startswith(large) else n for n in chosen]
    return or_skipped(marked, NO_FILES)


def path_of(name: str) -> Path:
    """name: folder/file without .zst. Skips the test where there is no such file."""
    if name not in _files():
        pytest.skip(f"{name}: {NO_FILES}")
    return _files()[name]


def content(name: str) -> bytes:
    data = path_of(name).read_bytes()
    return zstandard.ZstdDecompressor().stream_reader(data).read() if data[:4] == b"\x28\xb5\x2f\xfd" else data


def read(*dumps: bytes) -> Trace:
    """Straight from memory; raises FormatError."""
    trace = TraceBuilder()
    sources = [Source(f"jit-{nth + 1}.dump", memoryview(data)) for nth, data in enumerate(dumps)]
    importer_named("jitdump").module.read(sources).add_to(trace, ImportContext())
    trace.sort()
    return lawful(trace)


# ---------------------------------------------------------------- what a trace says of code


def strings_of(trace: Trace, table: str, column: str, row: int) -> str:
    """The text of a cell; "" where the row or the text is -1."""
    return trace.strings[int(getattr(trace, table)[column][row])] if row >= 0 else ""


def frame_text(trace: Trace, frame: int) -> str:
    """`f@/a.js:3:5`, without what is not known."""
    frames, funcs = trace.frames, trace.funcs
    func, source = int(frames["func"][frame]), int(frames["source"][frame])
    file = strings_of(trace, "sources", "path", source if source >= 0 else int(funcs["source"][func]))
    line, column = int(frames["line"][frame]), int(frames["column"][frame])
    place = f":{line}:{column}" if column else f":{line}" if line else ""
    return trace.func_name(func) + (f"@{file}{place}" if file or place else "")


def stack_text(trace: Trace, code: int, offset: int) -> str:
    """The frames of a byte, outermost first: `f@/a.js:3:5 > g`."""
    (reader,) = (reader for reader in trace.code_readers if code in reader.rows)
    return " > ".join(frame_text(trace, frame) for frame in reader.frames_at(trace, code, offset))


def func_text(trace: Trace, code: int) -> str:
    """The function of a code object with where it begins."""
    func = int(trace.code["func"][code])
    file = strings_of(trace, "sources", "path", int(trace.funcs["source"][func]))
    line, column = int(trace.funcs["line"][func]), int(trace.funcs["column"][func])
    return f"{trace.func_name(func)}@{file}:{line}:{column}"


def tier_text(trace: Trace, code: int) -> str:
    """Name and colour, "" for no tier."""
    tier = int(trace.code["tier"][code])
    return f"{strings_of(trace, 'tiers', 'name', tier)} {strings_of(trace, 'tiers', 'color', tier)}".strip()


def symbol_text(trace: Trace, code: int) -> str:
    """The code object's name, as the compiler gave it."""
    return strings_of(trace, "symbols", "name", int(trace.code["symbol"][code]))


def places_of(trace: Trace, code: int) -> list[tuple[int, int, int]]:
    """(address, from, to) of a code object; to is -1 where it lives on."""
    mappings = trace.code_mappings
    mine = mappings.take(mappings["code"] == code)
    return [tuple(row) for row in zip(*(mine[c].tolist() for c in ("address", "start_ts", "end_ts")), strict=True)]


def text_of(trace: Trace, frame: int) -> str | None:
    """The source text that a frame shows."""
    source = int(trace.frames["source"][frame])
    source = source if source >= 0 else int(trace.funcs["source"][int(trace.frames["func"][frame])])
    text = int(trace.sources["text"][source]) if source >= 0 else -1
    return trace.texts[text] if text >= 0 else None


def loads_of(trace: Trace, tid: int) -> list[dict[str, Any]]:
    """The rows of a thread's load markers."""
    ((_, table),) = data_of(trace, tid).markers.items()
    return [{c.name: as_python(table[c.name][row]) for c in table.spec.columns} for row in range(len(table))]


def code_sizes(trace: Trace) -> dict[str, int]:
    """Stack → bytes, of the views of code sizes."""
    total: dict[str, int] = {}
    for _, thread in trace.threads:
        if thread.name == CODE_SIZE:
            samples = thread.load(trace).samples
            for stack, weight in zip(samples["stack"].tolist(), samples["weight"].tolist(), strict=True):
                text = _call_path(trace, stack)
                total[text] = total.get(text, 0) + weight
    return total


def _call_path(trace: Trace, stack: int) -> str:
    frames: list[str] = []
    while stack >= 0:
        frames.append(frame_text(trace, int(trace.stacks["frame"][stack])))
        stack = int(trace.stacks["prefix"][stack])
    return " > ".join(reversed(frames))


def live_bytes(trace: Trace) -> dict[str, list[tuple[int, float]]]:
    """Counter → (ts, value) pairs."""
    return {
        counter.name: list(zip(counter.values["ts"].tolist(), counter.values["value"].tolist(), strict=True))
        for process in trace.processes
        for counter in process.counters
    }
