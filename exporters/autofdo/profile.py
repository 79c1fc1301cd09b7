"""How often each line of native functions ran, as LLVM's sample profiles say it, which compilers optimise by.

Branch records tell which straight runs of code ran, and how often: of the addresses of a line the one that ran most
counts, as in create_llvm_prof and llvm-profgen. Lines count from the first of their function; what is inlined stands
below the line that calls it. Code of one line that runs by itself, as the parts of `a ? b : c` do, has a number, the
discriminator, which clang writes with -fdebug-info-for-profiling. Without branch records, samples are counted instead.
Source: llvm/ProfileData/SampleProfReader.h, "Text format"; llvm/tools/llvm-profgen/ProfileGenerator.cpp.

    main:184019:0            function: all counts below it: how often it was called
     4: 534                  first line + 4: how often it ran
     4.2: 77                 the same line, discriminator 2
     6: 2080 foo:1000 bar:1080    and what it called
     9: inlined:1000         what is inlined there
      1: 1000
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from traceferry.analysis.totals.branches import BranchTotals, Edges
from traceferry.files.output import Output
from traceferry.model import (
    Array,
    LibraryReader,
    LinkedFrame,
    LinkedPlace,
    Trace,
    TraceBuilder,
    distinct,
    rows_by_key,
    sums,
)

# Bytes of code whose lines are looked up at once.
AT_ONCE = 1 << 16
HEAD = b"# sample profile of LLVM: clang -fprofile-sample-use=FILE\n"
NOT_NATIVE = (
    "a profile for compilers has lines of native functions: compile with -g, and give the program with --symbols; -o "
    "X.pb.gz and -o X.json.gz hold all samples"
)
# Lines are numbers of 16 bits in such profiles.
OFFSETS = 0xFFFF
# The line, counted from the function's first, and the discriminator.
Location = tuple[int, int]


@dataclass
class Profile:
    """A function, or a call of it that is inlined. body: by location how often it ran; calls: by location, of what it
    called how often; inlined: by location and name; head: how often it was called."""

    body: dict[Location, int] = field(default_factory=dict)
    calls: dict[Location, dict[str, int]] = field(default_factory=dict)
    inlined: dict[Location, dict[str, Profile]] = field(default_factory=dict)
    head: int = 0

    @property
    def total(self) -> int:
        below = (one.total for of_line in self.inlined.values() for one in of_line.values())
        return sum(self.body.values()) + sum(below)

    def place(self, at: LinkedPlace) -> tuple[Profile, Location]:
        """Returns the profile of the innermost function at an address, and where it is there; this is of the
        outermost."""
        profile = self
        for outer, inner in pairwise(at):
            profile = profile.inlined.setdefault(_location(outer), {}).setdefault(inner.name, Profile())
        return profile, _location(at[-1])


def _location(frame: LinkedFrame) -> Location:
    return (frame.line - frame.first_line) & OFFSETS, base_discriminator(frame.discriminator)


def base_discriminator(encoded: int) -> int:
    """Returns which code of a line it is. LLVM writes three numbers into one: this, how often the code was copied, and
    which copy it is. Source: llvm/IR/DebugInfoMetadata.h, getBaseDiscriminatorFromDiscriminator."""
    return _first_number(encoded)


def n_copies(encoded: int) -> int:
    """Returns for how many runs of the code in the source one run of this code stands: loops that are unrolled or
    vectorised. Source: getDuplicationFactorFromDiscriminator."""
    return max(_first_number(_behind_first(encoded)), 1)


def _first_number(encoded: int) -> int:
    """A number of 5 or of 12 bits behind a bit that is 0; a bit that is 1 is a 0. Bit 6 says which."""
    if encoded & 1:
        return 0
    bits = encoded >> 1
    return bits >> 1 & 0xFE0 | bits & 0x1F if bits & 0x20 else bits & 0x1F


def _behind_first(encoded: int) -> int:
    return encoded >> (1 if encoded & 1 else 14 if encoded & 0x40 else 7)


@dataclass(frozen=True)
class Code:
    """Counts of one library's code. Runs: int64 first and last address, and how often; jumps: int64 from, to, and how
    often."""

    runs: Array
    jumps: Array


def write(trace: TraceBuilder, out: Output, progress: Callable[[int], None]) -> None:
    """Writes the profile. progress: called with the number of records done."""
    branches, samples = BranchTotals(), np.zeros(0, np.int64)
    for _, thread in trace.threads:
        data = thread.load(trace)
        branches.add(data.branches)
        if not thread.sample_unit:
            samples = _counted(samples, data.samples["stack"], len(trace.stacks))
        progress(thread.n_records)
    edges = branches.edges()
    code = _code_of_branches(trace, edges) if len(edges) else _code_of_samples(trace, samples)
    trace.report.note("profile_of_samples", int(not len(edges)), where="autofdo")
    functions: dict[str, Profile] = {}
    for lib, counts in code.items():
        name = trace.strings[int(trace.libs["name"][lib])]
        n_without = _add_library(functions, trace, lib, counts)
        trace.report.note("profile_without_lines", n_without, where=f"autofdo {lib}", detail=name)
    ranked = sorted(((one.total, name, one) for name, one in functions.items()), key=lambda row: (-row[0], row[1]))
    trace.report.note(
        "output_empty", int(not any(total for total, *_ in ranked)), where="autofdo", detail="sample profile of LLVM",
        advice=NOT_NATIVE,
    )  # fmt: skip
    # Readers skip comments; a file that is empty would look like one that was not written.
    out.write(HEAD)
    for total, name, profile in ranked:
        if total:
            out.write("".join(_lines(name, profile)).encode("utf-8", "replace"))


def _counted(samples: Array, stack: Array, n_stacks: int) -> Array:
    counts = np.bincount(stack[stack >= 0], minlength=n_stacks)
    counts[: len(samples)] += samples
    return counts


def _lines(name: str, profile: Profile) -> Iterator[str]:
    yield f"{name}:{_shown(profile.total)}:{_shown(profile.head)}\n"
    yield from _body(profile, " ")


def _body(profile: Profile, indent: str) -> Iterator[str]:
    for at in sorted(profile.body):
        calls = sorted(profile.calls.get(at, {}).items(), key=lambda call: (-call[1], call[0]))
        called = "".join(f" {callee}:{_shown(count)}" for callee, count in calls)
        yield f"{indent}{_text_of(at)}: {_shown(profile.body[at])}{called}\n"
    for at in sorted(profile.inlined):
        for name, inlined in sorted(profile.inlined[at].items()):
            if inlined.total:
                yield f"{indent}{_text_of(at)}: {name}:{_shown(inlined.total)}\n"
                yield from _body(inlined, indent + " ")


def _text_of(at: Location) -> str:
    line, discriminator = at
    return f"{line}.{discriminator}" if discriminator else str(line)


def _shown(count: int) -> int:
    return sums.limited(count)


# ---------------------------------------------------------------- what ran


def _native(trace: Trace, stack: Array) -> tuple[Array, Array]:
    """int64: library and address of each place, -1 for those of no library, or of a JIT compiler."""
    frame = np.append(trace.stacks["frame"], np.int32(-1))[stack]
    columns = [np.append(trace.frames[name], np.int32(-1))[frame].astype(np.int64) for name in ("lib", "address")]
    is_jitted = np.append(trace.frames["code"], np.int32(0))[frame] >= 0
    lib, address = (np.where(is_jitted, -1, column) for column in columns)
    return np.where(address >= 0, lib, -1), address


def _code_of_branches(trace: Trace, edges: Edges) -> dict[int, Code]:
    (of_start, first), (of_begin, last), (of_end, target) = (
        _native(trace, side) for side in (edges.start, edges.begin, edges.end)
    )
    runs = np.stack((first, last, edges.taken), axis=1)
    jumps = np.stack((last, target, edges.taken), axis=1)
    is_run, is_jump = (of_start >= 0) & (of_start == of_begin), (of_begin >= 0) & (of_begin == of_end)
    rows_of_run, rows_of_jump = (
        rows_by_key(np.where(is_run, of_begin, -1)),
        rows_by_key(np.where(is_jump, of_begin, -1)),
    )
    libs = sorted({lib for lib in (*rows_of_run, *rows_of_jump) if lib >= 0})
    nothing = np.zeros(0, np.int64)
    return {lib: Code(runs[rows_of_run.get(lib, nothing)], jumps[rows_of_jump.get(lib, nothing)]) for lib in libs}


def _code_of_samples(trace: Trace, samples: Array) -> dict[int, Code]:
    stacks = np.flatnonzero(samples)
    lib, address = _native(trace, stacks)
    runs = np.stack((address, address, samples[stacks]), axis=1)
    no_jumps = np.zeros((0, 3), np.int64)
    return {number: Code(runs[rows], no_jumps) for number, rows in rows_by_key(lib).items() if number >= 0}


# ---------------------------------------------------------------- what that says of functions


def _add_library(functions: dict[str, Profile], trace: Trace, lib: int, code: Code) -> int:
    """Returns how often code without lines ran."""
    n_without = 0
    addresses, counts = covered(code.runs)
    for at in range(0, len(addresses), AT_ONCE):
        some = slice(at, at + AT_ONCE)
        for place, count in zip(_places(trace, lib, addresses[some]), counts[some].tolist(), strict=True):
            if not place:
                n_without += 1
                continue
            profile, here = functions.setdefault(place[0].name, Profile()).place(place)
            profile.body[here] = max(profile.body.get(here, 0), count * n_copies(place[-1].discriminator))
    _add_calls(functions, trace, lib, code.jumps)
    return n_without


def _add_calls(functions: dict[str, Profile], trace: Trace, lib: int, jumps: Array) -> None:
    """A branch to the first byte of another function is a call."""
    callers, callees = (_places(trace, lib, jumps[:, side]) for side in (0, 1))
    is_entry = _are_entries(trace, lib, jumps[:, 1])
    for caller, callee, entry, count in zip(callers, callees, is_entry, jumps[:, 2].tolist(), strict=True):
        if not entry or not callee:
            continue
        name = callee[0].name
        functions.setdefault(name, Profile()).head += count
        if caller:
            profile, here = functions.setdefault(caller[0].name, Profile()).place(caller)
            called = profile.calls.setdefault(here, {})
            called[name] = called.get(name, 0) + count
            profile.body[here] = max(profile.body.get(here, 0), sum(called.values()))


def covered(runs: Array) -> tuple[Array, Array]:
    """Returns (address, how often it ran) of every byte that is in a run; int64, rising."""
    edges = distinct(np.concatenate((runs[:, 0], runs[:, 1] + 1)))
    if not len(edges):
        return edges, edges
    change = np.zeros(len(edges), np.int64)
    np.add.at(change, np.searchsorted(edges, runs[:, 0]), runs[:, 2])
    np.subtract.at(change, np.searchsorted(edges, runs[:, 1] + 1), runs[:, 2])
    count, size = np.cumsum(change)[:-1], np.diff(edges)
    inside = count > 0
    count, size, first = count[inside], size[inside], edges[:-1][inside]
    within = np.arange(int(size.sum())) - np.repeat(np.cumsum(size) - size, size)
    return np.repeat(first, size) + within, np.repeat(count, size)


def _places(trace: Trace, lib: int, addresses: Array) -> list[LinkedPlace]:
    for reader in trace.library_readers:
        found = reader.linked_at(lib, addresses.tolist())
        if any(found):
            return list(found)
    return [()] * len(addresses)


def _are_entries(trace: Trace, lib: int, addresses: Array) -> list[bool]:
    asked = addresses.tolist()
    found = next((of for one in trace.library_readers if any(of := _functions(one, lib, asked))), [None] * len(asked))
    return [start == address for start, address in zip(found, asked, strict=True)]


def _functions(reader: LibraryReader, lib: int, addresses: list[int]) -> list[int | None]:
    return [one.start if one is not None else None for one in reader.functions_at(lib, addresses)]
