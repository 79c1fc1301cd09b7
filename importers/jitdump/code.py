"""Map: the code objects of a dump: functions, tiers, symbols, mappings; and the CodeReader of a dump."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from traceferry.importers.jitdump.declared import DeclaringFiles
from traceferry.importers.jitdump.decode import MAX_TS, Dump, Load, TierRecord
from traceferry.importers.jitdump.inlines import MAX_DEPTH, Function, SourceLocation
from traceferry.importers.jitdump.layout import ARCHITECTURES, MAX_TID, TIER_COLORS, Header
from traceferry.importers.jitdump.owners import Owner
from traceferry.importers.jitdump.sources import SourceTexts
from traceferry.model import Array, Clock, CodeUnwinding, TraceBuilder, distinct
from traceferry.symbolication.build_id import debug_id_of
from traceferry.symbolication.code_mapping import CodeMappings, add_tier
from traceferry.symbolication.jit_names import Name, demangled, producer_of
from traceferry.symbolication.tiers import Tier
from traceferry.timeline.ticks import Counter

NO_COLOR = "grey"
# Some compilers write the record of code that runs already up to so much later.
SLACK_NS = 10**9
# Clocks that are further apart than this are not one: programs compile sooner after they have made a dump.
MUCH_NS = 3_600_000_000_000
DUMP_CLOCK = "let what compiles write its jitdump on CLOCK_MONOTONIC, as the others"
NO_TIMES = np.zeros(0, np.int64)


class Base(NamedTuple):
    """The facts that all frames of a code object share: rows of funcs, categories and tiers; source: the function's
    own."""

    func: int
    category: int
    tier: int
    source: int


@dataclass
class Code:
    """The code objects of one dump: row rows[i] of the trace's table is loads[i], of which bases[i] is the function.
    mappings: its rows of the table `code_mappings`.

    owner: the process, which the header may call otherwise; names: what the objects' names mean; addresses: of each
    object, relative to the dump's library; times: onto the trace's clock.
    """

    dump: Dump
    owner: Owner
    trace: TraceBuilder
    producer: str
    texts: SourceTexts
    lib: int
    times: Times
    names: list[Name]
    bases: list[Base]
    addresses: list[int]
    symbols: range
    rows: range
    mappings: range = range(0)

    @property
    def pid(self) -> int:
        return self.owner.pid

    @property
    def loaded_by(self) -> Array:
        """Returns int64: the process of each load, a fork's own too; of a container's forks the numbers are unknown."""
        header = self.dump.header
        pids = np.array([load.pid for load in self.dump.loads], np.int64)
        found: Array = np.where((self.pid == header.pid) & (pids > 0) & (pids < MAX_TID), pids, self.pid)
        return found

    # ------------------------------------------------------------ what a CodeReader offers

    @property
    def opened_ts(self) -> int | None:
        timestamp = self.dump.header.timestamp
        return int(self.times.recorded([timestamp])[0]) if 0 < timestamp < MAX_TS else None

    def frames_at(self, trace: TraceBuilder, code: int, offset: int) -> tuple[int, ...]:
        nth = code - self.rows.start
        return self._frames(trace, nth, offset, self.addresses[nth] + offset)

    def lines_at(self, trace: TraceBuilder, code: int, offset: int) -> tuple[int, ...]:
        return self._frames(trace, code - self.rows.start, offset, -1)

    def function_of(self, trace: TraceBuilder, code: int) -> int:
        nth = code - self.rows.start
        return self._frame(trace, nth, self.bases[nth], -1, 0, 0, -1, 0)

    def boundaries(self, code: int) -> list[int]:
        load = self.dump.loads[code - self.rows.start]
        offsets = {0, *(load.inlines.boundaries() if load.inlines is not None else ())}
        offsets |= set(self.dump.lines.offsets_of(load.lines).tolist()) if load.lines >= 0 else set()
        return sorted(offset for offset in offsets if offset == 0 or 0 < offset < load.size)

    def bytes_of(self, code: int) -> memoryview:
        load = self.dump.loads[code - self.rows.start]
        return self.dump.source.data[load.code_at : load.code_at + load.size] if load.code_at >= 0 else memoryview(b"")

    def unwinding_of(self, code: int) -> CodeUnwinding | None:
        return self.dump.unwinding_of(self.dump.loads[code - self.rows.start])

    # ------------------------------------------------------------ frames

    def _frames(self, trace: TraceBuilder, nth: int, offset: int, address: int) -> tuple[int, ...]:
        """Returns the frames of a byte, outermost first; with the library's address -1, only their functions and
        locations."""
        load = self.dump.loads[nth]
        stack = load.inlines.stack_at(offset) if load.inlines is not None else ()
        if stack:
            if len(stack) >= MAX_DEPTH:
                trace.report.note("inlines_cut", where=f"{self.dump.name} {nth}", offset=load.at)
            return tuple(self._inlined(trace, nth, depth, location, address) for depth, location in enumerate(stack))
        file, line, column = self.dump.lines.at(load.lines, offset) if load.lines >= 0 else (-1, 0, 0)
        source = self.texts.row(trace, self.dump.lines.file_names[file], load.nth) if file >= 0 else -1
        return (self._frame(trace, nth, self.bases[nth], source, line, column, address, 0),)

    def _inlined(self, trace: TraceBuilder, nth: int, depth: int, location: SourceLocation, address: int) -> int:
        inlined_bases = trace.kept(self, dict[tuple[int, SourceLocation], tuple[Base, int]])
        known = inlined_bases.get((nth, location))
        if known is None:
            known = inlined_bases[nth, location] = self._inlined_base(trace, nth, location)
        return self._frame(trace, nth, *known, location.line, location.column, address, depth)

    def _inlined_base(self, trace: TraceBuilder, nth: int, location: SourceLocation) -> tuple[Base, int]:
        """Returns (what its frames share, its source), for all bytes of the code object that have the location."""
        load, of = self.dump.loads[nth], self.bases[nth]
        func, own = add_function(trace, self.texts, location.function, load.nth, self.names[nth])
        return Base(func, of.category, of.tier, own), self.texts.row(trace, location.file, load.nth)

    def _frame(
        self, trace: TraceBuilder, nth: int, base: Base, source: int, line: int, column: int, address: int, depth: int
    ) -> int:
        placed = {"code": self.rows[nth], "symbol": self.symbols[nth], "lib": self.lib} if address >= 0 else {}
        return trace.frames.intern(
            func=base.func,
            category=base.category,
            tier=base.tier,
            source=source if source != base.source else -1,
            line=line,
            column=column if line else 0,
            address=address,
            inline_depth=depth,
            **placed,
        )


def add_code(
    dump: Dump, owner: Owner, trace: TraceBuilder, texts: SourceTexts, counter: Counter | None,
    span: tuple[int, int] | None = None, apart_ns: int = 0,
) -> Code:  # fmt: skip
    """Adds rows for every load: its function, symbol, tier, code object and mappings. owner: the dump's process;
    span: when samples were recorded, on the clock of dumps; what was loaded before or after is put at its beginning or
    end; apart_ns: what its times need to be on the clock of the other dumps."""
    pid = owner.pid
    names = [load.name for load in dump.loads]
    producer = producer_of(names)
    parsed = demangled({name: producer.parse(name) for name in dict.fromkeys(names)}, dump.name, trace.report)
    times = _join_clock(dump, trace, counter, span, apart_ns)
    recorded_at = times.recorded([load.ts for load in dump.loads])
    loaded_at = times.within(recorded_at)
    n_outside = int((loaded_at != recorded_at).sum())
    trace.report.note("code_outside", n_outside, where=dump.name, detail=f"{dump.name}: {n_outside} code objects")
    parsed_names = [parsed[name] for name in names]
    bases = _bases(dump, trace, texts, parsed_names)
    addresses: list[int] = []
    end = 0
    for load in dump.loads:
        addresses.append(end)
        end += load.size
    lib = _lib(dump, owner.name, trace)
    first_symbol = trace.symbols.extend(
        lib=[lib] * len(names),
        name=[trace.strings.intern(name) for name in names],
        address=addresses,
        size=[load.size for load in dump.loads],
    )
    symbols = range(first_symbol, first_symbol + len(names))
    first = trace.code.extend(
        func=[base.func for base in bases],
        symbol=symbols,
        tier=[base.tier for base in bases],
        pid=[pid] * len(names),
        tid=[pid if load.tid == dump.header.pid or load.tid >= MAX_TID else load.tid for load in dump.loads],
        size=[load.size for load in dump.loads],
        loaded_at=loaded_at,
        bytes_at=[load.code_at for load in dump.loads],
    )
    rows = range(first, first + len(names))
    code = Code(dump, owner, trace, producer.name, texts, lib, times, parsed_names, bases, addresses, symbols, rows)
    trace.code_readers.append(code)
    first_mapping = len(trace.code_mappings)
    _add_mappings(code, trace)
    code.mappings = range(first_mapping, len(trace.code_mappings))
    return code


class Times(NamedTuple):
    """counter: of time stamps that are the processor's counter, where a recording tells how to convert it; span: when
    samples were recorded, in ns on the trace's clock, None where that does not matter; before, after: int64, the dump's
    times outside of it, rising."""

    counter: Counter | None
    offset_ns: int
    span: tuple[int, int] | None = None
    before: Array = NO_TIMES
    after: Array = NO_TIMES

    def within(self, ts: Array) -> Array:
        """Returns times on the trace's clock. Those before the span end where it begins, those after it begin where it
        ends, each a ns after the one before: viewers pile up what is at one time."""
        if self.span is None:
            return ts
        begin, end = self.span
        early = begin - len(self.before) + np.searchsorted(self.before, ts)
        late = end + 1 + np.searchsorted(self.after, ts)
        found: Array = np.where(ts < begin, early, np.where(ts > end, late, ts))
        return found

    def recorded(self, timestamps: Sequence[int]) -> Array:
        """Returns int64 ns on the trace's clock."""
        if self.counter is not None:
            return self.counter.to_ns(np.array(timestamps, np.uint64)) + self.offset_ns
        return np.array(timestamps, np.int64) + self.offset_ns


def _join_clock(
    dump: Dump, trace: TraceBuilder, counter: Counter | None, span: tuple[int, int] | None, apart_ns: int
) -> Times:
    if not dump.header.has_ticks:
        offset = trace.join_clock(Clock("monotonic"))
        if apart_ns:
            detail = f"{dump.name} was moved by {apart_ns} ns, by when it was mapped"
            trace.report.note("clock_aligned", where=dump.name, detail=detail, advice=DUMP_CLOCK)
        return _spanned(dump, Times(None, offset + apart_ns), (span[0] + offset, span[1] + offset) if span else None)
    return Times(counter, trace.join_clock(Clock(counter.kind if counter is not None else "tsc")))


def clocks_apart(dump: Dump, mapped_at: int) -> int | None:
    """Returns what a dump's times need, in ns, to be on the clock on which it was mapped: 0 where they are, None where
    nothing tells. Its header is written as it is mapped, but some compilers write another clock into that alone.
    mapped_at: 0 is unknown."""
    if not mapped_at or not dump.loads or dump.header.has_ticks:
        return None
    opened, loaded = dump.header.timestamp, dump.loads[0].ts
    if abs(loaded - mapped_at) < MUCH_NS:
        return 0
    return mapped_at - opened if 0 <= loaded - opened < MUCH_NS else None


def _spanned(dump: Dump, times: Times, span: tuple[int, int] | None) -> Times:
    if span is None:
        return times
    begin, end = span[0], span[1] + SLACK_NS
    ts = distinct(times.recorded([*(load.ts for load in dump.loads), *(move.ts for move in dump.moves)]))
    return times._replace(span=(begin, end), before=ts[ts < begin], after=ts[ts > end])


# ---------------------------------------------------------------- functions and tiers


def _bases(dump: Dump, trace: TraceBuilder, texts: SourceTexts, names: Sequence[Name]) -> list[Base]:
    tiers = [_recorded_tier(trace, tier) for tier in dump.tiers]
    recorded = {tier.name: row for tier, row in zip(dump.tiers, tiers, strict=True)}
    known: dict[Tier | None, int] = {None: -1}
    categories = {name: trace.add_category(name) for name in dict.fromkeys(name.category for name in names)}
    known_bases: dict[tuple[str, str, int], Base] = {}
    files = DeclaringFiles(dump.lines, dump.loads, names)
    rows: list[Base] = []
    for load, name in zip(dump.loads, names, strict=True):
        file = name.file or files.of(load, name)
        # Where a text is embedded, which one holds depends on the load.
        again = (load.name, file, load.tier) if load.inlines is None and not dump.sources else None
        base = known_bases.get(again) if again is not None else None
        if base is not None:
            rows.append(base)
            continue
        tier = tiers[load.tier] if load.tier >= 0 else known.get(name.tier)
        if tier is None:
            assert name.tier is not None
            tier = known[name.tier] = recorded.get(name.tier.name, -1)
            if tier < 0:
                tier = known[name.tier] = add_tier(trace, name.tier)
        func, source = add_function(trace, texts, _function(load, name, file), load.nth, name)
        base = Base(func, categories[name.category], tier, source)
        if again is not None:
            known_bases[again] = base
        rows.append(base)
    return rows


def _recorded_tier(trace: TraceBuilder, tier: TierRecord) -> int:
    color = TIER_COLORS[tier.color_index] if tier.color_index < len(TIER_COLORS) else NO_COLOR
    name = tier.name or f"tier {tier.tier_id}"
    return add_tier(trace, Tier(name, name, color))


def _function(load: Load, name: Name, file: str) -> Function:
    """Returns the function as the inline records name it, else as the load does; file: of the name, or the one that
    `DeclaringFiles` tells."""
    if load.inlines is not None:
        stacks = (load.inlines.stack_at(offset) for offset in load.inlines.boundaries())
        outermost = next((stack[0].function for stack in stacks if stack), None)
        if outermost is not None:
            return outermost
    return Function(name.function, file, name.line, name.column)


def add_function(trace: TraceBuilder, texts: SourceTexts, function: Function, nth: int, of: Name) -> tuple[int, int]:
    """Returns (the func, its source). nth: the number of the load's record; of: the code object's name, which tells
    what the function alone does not."""
    source = texts.row(trace, function.file, nth)
    func = trace.funcs.intern(
        name=trace.strings.intern(function.name or of.function),
        source=source,
        line=function.line,
        column=function.column,
        is_js=of.is_js if function.is_js is None else function.is_js,
        kind=trace.strings.intern(of.kind),
    )
    return func, source


# ---------------------------------------------------------------- libraries and mappings


def _lib(dump: Dump, name: str, trace: TraceBuilder) -> int:
    """Returns the library by samply's conventions, so that its server finds the code of our profiles: an id made of pid
    and time stamp. name: as recorded."""
    intern = trace.strings.intern
    return trace.libs.intern(
        name=intern(name),
        debug_id=intern(debug_id(dump.header)),
        code_id=intern((_identity(dump.header) + dump.header.elf_mach.to_bytes(4, "little")).hex()),
        arch=intern(ARCHITECTURES.get(dump.header.elf_mach, "")),
    )


def _identity(header: Header) -> bytes:
    return b"JITD" + header.pid.to_bytes(4, "little") + header.timestamp.to_bytes(8, "little")


def debug_id(header: Header) -> str:
    """Returns the identity as samply's server expects it."""
    return debug_id_of(_identity(header).hex())


def _add_mappings(code: Code, trace: TraceBuilder) -> None:
    """Adds loads and moves in the order of time."""
    dump = code.dump
    by_index: dict[int, int] = {}
    at_address: dict[int, int] = {}
    mappings = CodeMappings()
    n_unknown = 0
    if not dump.moves:
        mappings.put_all(
            np.arange(code.rows.start, code.rows.stop),
            np.array([load.address for load in dump.loads], np.uint64),
            trace.code["size"][code.rows.start : code.rows.stop],
            trace.code["loaded_at"][code.rows.start : code.rows.stop],
        )
        mappings.add_to(trace)
        return
    times = trace.code["loaded_at"][code.rows.start : code.rows.stop].tolist()
    events = [(ts, load.at, nth) for nth, (ts, load) in enumerate(zip(times, dump.loads, strict=True))]
    moved = code.times.within(code.times.recorded([move.ts for move in dump.moves])).tolist()
    events += [(ts, move.at, -1 - nth) for nth, (ts, move) in enumerate(zip(moved, dump.moves, strict=True))]
    for ts, _, nth in sorted(events):
        if nth >= 0:
            load = dump.loads[nth]
            row, address, index = code.rows[nth], load.address, load.index
        else:
            move = dump.moves[-1 - nth]
            found = by_index.get(move.index)
            if found is None or mappings.address_of(found) != move.old_address:
                found = at_address.get(move.old_address)
            if found is None:
                n_unknown += 1
                continue
            row, address, index = found, move.new_address, move.index
            if at_address.get(move.old_address) == row:
                del at_address[move.old_address]
        by_index[index] = at_address[address] = row
        mappings.put(row, address, dump.loads[row - code.rows.start].size, ts)
    trace.report.note("moved_unknown", n_unknown, where=dump.name)
    mappings.add_to(trace)
