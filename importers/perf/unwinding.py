"""Map: copies of registers and stacks become callchains, as if the recorder had unwound them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from traceferry.common.errors import FormatError
from traceferry.files.source import release
from traceferry.importers.perf._unwound import with_user_parts
from traceferry.importers.perf.chains import Replacement, with_chains
from traceferry.importers.perf.fields import WINDOW, numbers_at
from traceferry.importers.perf.layout import ABI_SIMD, KERNEL_MODE
from traceferry.importers.perf.leaf_frames import UNKNOWN, of_answer, own_stacks
from traceferry.importers.perf.mappings import is_anonymous
from traceferry.importers.perf.natives import Natives
from traceferry.importers.perf.programs import OUTSIDE, Program
from traceferry.importers.perf.recording import Mmap, Recording, Samples
from traceferry.importers.perf.regions import NEVER
from traceferry.importers.perf.spaces import MAX_ANCESTORS, Memory
from traceferry.importers.perf.stack_ends import StackEnds, UnwoundStacks
from traceferry.libraries.library import Library
from traceferry.model import Array, CodeReader, TraceBuilder, distinct, rows_by_key
from traceferry.symbolication.elf import DEBUG_INFORMATION
from traceferry.unwinding._unwinder import End, Flag, How, Unwinder
from traceferry.unwinding.endings import CONTRADICTION, NO_INFORMATION, OF_NO_FILE, OTHER_STACK, TRUNCATED
from traceferry.unwinding.machine import AARCH64, I386, X86_64, Machine, UserStacks
from traceferry.unwinding.modules import JIT_ADDRESS, Module, jit_module, open_module
from traceferry.unwinding.spaces import NO_MODULE, AddressSpace

# Bits of sample_regs_user → DWARF numbers. Source: the kernel's asm/perf_regs.h; the psABIs.
X86_64_BITS = dict(zip([*range(9), *range(16, 24)], [0, 3, 2, 1, 4, 5, 6, 7, 16, *range(8, 16)], strict=True))
I386_BITS = dict(zip(range(9), [0, 3, 1, 2, 6, 7, 5, 4, 8], strict=True))
AARCH64_BITS = {bit: bit for bit in range(33)}
# PERF_SAMPLE_REGS_ABI_*
ABI_32, ABI_64 = 1, 2
# By the recorder's machine (uname -m) and the task's ABI.
MACHINES: dict[tuple[str, int], tuple[Machine, dict[int, int]]] = {
    ("x86_64", ABI_64): (X86_64, X86_64_BITS),
    ("x86_64", ABI_32): (I386, I386_BITS),
    ("i386", ABI_32): (I386, I386_BITS),
    ("i686", ABI_32): (I386, I386_BITS),
    ("aarch64", ABI_64): (AARCH64, AARCH64_BITS),
}

# Samples that are unwound together, unless their dumps are longer than a window.
AT_ONCE = 1 << 12

# What a user can do where the code is at hand, and tells nothing.
OF_MEMORY = (
    "let the runtime keep frame pointers and record with perf record -g, or let it write a jitdump with unwind "
    "information: CPython 3.13 does with -X perf_jit"
)
OF_FILE_WITHOUT = (
    "compile it with unwind information (GCC and clang: -fasynchronous-unwind-tables; GHC: -g, also for libraries), or "
    "with frame pointers"
)

OF_FILE_WITH_DEBUG_INFORMATION = (
    "its unwind information is of other code: GHC describes a part of each function, and assembly may have none; "
    "compile libraries with it, too (GHC: -g; GCC and clang: -fasynchronous-unwind-tables), or with frame pointers"
)

# Where copies of stacks do not help.
WITHOUT_UNWINDING = "let the compiler write unwind information, or keep frame pointers in these functions, too"


def unwound(
    trace: TraceBuilder, recording: Recording, memory: Memory, natives: Natives, keep_apart: bool, where: str
) -> Samples:
    """Returns the samples with callchains that have what was unwound of their stacks. Some samples have copies of
    stacks.

    keep_apart: truncated stacks are put under a frame that gives the reason; their names go to memory.endings. where:
    the recording, for the report.
    """
    samples = recording.samples
    rows = np.flatnonzero(samples.user_at >= 0)
    run = _Run(trace, recording, memory, natives, where)
    parts = [part for stacks, mine in run.by_machine(rows) for part in run.unwound(stacks, mine)]
    n_done = sum(len(part.rows) for part in parts)
    trace.report.note("unwinding_not_done", len(rows) - n_done, where=where)
    if not n_done:
        return samples
    run.note_ends(parts)
    return with_chains(
        samples, [_replacement(samples, part, run.ending(part.stacks, keep_apart)) for part in parts]
    )  # fmt: skip


class _Part(NamedTuple):
    """rows: of the samples that the stacks are of."""

    rows: Array
    stacks: UnwoundStacks

    def take(self, chosen: Array) -> _Part:
        """Returns those stacks. chosen: bool."""
        return _Part(self.rows[chosen], self.stacks.take(chosen))


@dataclass
class _Run:
    trace: TraceBuilder
    recording: Recording
    memory: Memory
    natives: Natives
    where: str
    modules: list[Module | None] = field(default_factory=list)
    libraries: list[Library | None] = field(default_factory=list)
    ends: StackEnds = field(init=False)
    _numbers: dict[tuple[str, str] | tuple[int, int], int] = field(default_factory=dict)
    _of_path: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.ends = StackEnds(self.libraries, self.natives.demangle)

    # ------------------------------------------------------------ registers and dumps

    def by_machine(self, rows: Array) -> Iterator[tuple[UserStacks, Array]]:
        """Yields the stacks of each machine and set of registers, and the rows of the samples that have them."""
        samples, recording = self.recording.samples, self.recording
        data = np.frombuffer(recording.stream, np.uint8)
        masks = np.array([event.attr.sample_regs_user for event in recording.events], np.uint64)[samples.event[rows]]
        abi = samples.user_abi[rows] & np.uint8(0xFF ^ ABI_SIMD)
        for mask in distinct(masks).tolist():
            bits = [bit for bit in range(64) if mask >> bit & 1]
            # A recorder that was killed does not tell its machine; x86 has no more than 24 registers.
            recorder = recording.features.arch or ("aarch64" if mask >> 24 else "x86_64")
            for (arch, of_abi), (machine, numbers) in MACHINES.items():
                chosen = np.flatnonzero((masks == mask) & (abi == of_abi))
                if arch != recorder or not len(chosen):
                    continue
                mine = rows[chosen]
                registers_at, n_real = samples.user_at[mine] + 8, samples.user_n[mine].astype(np.int64)
                flags = np.where(samples.cpumode[mine] == KERNEL_MODE, Flag.IS_KERNEL_MODE, 0)
                flags |= np.where(n_real < samples.user_size[mine], Flag.IS_SHORT_COPY, 0)
                register_of = np.array([numbers.get(bit, -1) for bit in bits], np.int32)
                dump_at = registers_at + 8 * len(bits) + 8
                dump_at += self._vectors_size(samples.user_abi[mine], registers_at + 8 * len(bits))
                yield UserStacks(
                    machine, recording.byte_order == "big", data, register_of, registers_at, dump_at, n_real,
                    flags.astype(np.uint8),
                ), mine  # fmt: skip

    def _vectors_size(self, abi: Array, at: Array) -> Array:
        """int64: the bytes of the vector registers behind the others; u16 nr_vectors, vector_qwords, nr_pred,
        pred_qwords say how many words they have."""
        size = np.zeros(len(at), np.int64)
        has = np.flatnonzero(abi & ABI_SIMD)
        if len(has):
            data, kind = np.frombuffer(self.recording.stream, np.uint8), self.recording.order + "u2"
            counts = [numbers_at(data, at[has] + 2 * nth, kind).astype(np.int64) for nth in range(4)]
            size[has] = 8 + 8 * (counts[0] * counts[1] + counts[2] * counts[3])
        return size

    # ------------------------------------------------------------ again, where instructions tell more

    def unwound(self, stacks: UserStacks, rows: Array) -> list[_Part]:
        """Unwinds stacks, the samples `rows`; those whose innermost function may have no frame once more, with what its
        instructions say."""
        parts = self.unwind(stacks, rows, np.arange(len(rows)))
        guessed = [part.stacks.has_guessed_leaf() for part in parts]
        if stacks.machine is not X86_64 or not any(one.any() for one in guessed):
            return parts
        mine = np.concatenate([part.rows[chosen] for part, chosen in zip(parts, guessed, strict=True)])
        pc = np.concatenate(
            [part.stacks.pc[part.stacks.first[:-1][chosen]] for part, chosen in zip(parts, guessed, strict=True)]
        )  # fmt: skip
        own = self._own_stacks(mine, pc)
        of_row = np.full(len(self.recording.samples), UNKNOWN, np.int32)
        of_row[mine] = own
        positions = np.flatnonzero(of_row[rows] >= 0)
        again = self.unwind(stacks._replace(own=of_row[rows]), rows, positions) if len(positions) else []
        parts = [part.take(of_row[part.rows] < 0) for part in parts] + again
        n_missing = sum(int((of_row[part.rows] != UNKNOWN)[part.stacks.has_guessed_leaf()].sum()) for part in parts)
        self.trace.report.note("callers_missing", n_missing, where=self.where, advice=WITHOUT_UNWINDING)
        return parts

    def _own_stacks(self, rows: Array, pc: Array) -> Array:
        """Returns what `own_stacks` does of samples whose instruction pointers are `pc`."""
        samples, memory = self.recording.samples, self.memory
        program = memory.programs.of_samples[rows].astype(np.int64)
        find = partial(own_stacks, pc, samples.ts[rows], program, memory, self.trace)
        unpacked = partial(of_answer, len(rows))
        key = f"own stacks from sample {int(rows[0])}"
        return self.natives.answers.ask(key, self.trace.report, find, np.ndarray.tolist, unpacked)

    # ------------------------------------------------------------ program by program, as mappings change

    def unwind(self, stacks: UserStacks, rows: Array, positions: Array) -> list[_Part]:
        """Unwinds those of the stacks that are at some positions (int64, rising). rows: the samples of all."""
        samples, programs = self.recording.samples, self.memory.programs
        ts = samples.ts[rows]
        waiting = {number: positions[nth] for number, nth in rows_by_key(programs.of_samples[rows[positions]]).items()}
        changes = self._changes(stacks.machine, stacks.big, waiting)
        unwinder = Unwinder(self.modules, stacks)
        spaces: defaultdict[int, AddressSpace] = defaultdict(AddressSpace)
        parts: list[_Part] = []
        at_once = max(1, min(AT_ONCE, WINDOW // int(stacks.dump_n.max(initial=1))))

        def unwind_until(number: int, until: int | None) -> None:
            mine = waiting.get(number)
            if mine is None:
                return
            n = len(mine) if until is None else int(np.searchsorted(ts[mine], until))
            for begin in range(0, n, at_once):
                piece = mine[begin : min(begin + at_once, n)]
                chains = unwinder.unwind(piece, spaces[number])
                self._keep(chains.pc, spaces[number])
                parts.append(_Part(rows[piece], self.ends.ended(chains, spaces[number])))
                self._release(stacks, piece)
            waiting[number] = mine[n:]

        for when, _, program, change in changes:
            if change is not None:
                unwind_until(program.number, when)
                change(spaces[program.number])
            elif program.parent is not None:
                spaces[program.number] = spaces[program.parent.number].copy()
        for number in sorted(waiting):
            unwind_until(number, None)
        n_bad = sum(problem.n_bad + problem.is_cut for of_one in unwinder.problems.values() for problem in of_one)
        self.trace.report.note("unwinding_damaged", n_bad, where=self.where)
        return parts

    def _keep(self, pc: Array, space: AddressSpace) -> None:
        """Tells libraries that keep them at which addresses their call-frame information was looked for: of frames, and
        the byte before."""
        if not any(library is not None and library.keeps for library in self.libraries):
            return
        start, end, bias, module = space.columns()
        pc = distinct(np.concatenate((pc, pc - np.uint64(1))))
        at = np.searchsorted(start, pc, "right") - 1
        is_mapped = (at >= 0) & (pc < np.append(end, np.uint64(0))[at])
        pc, at = pc[is_mapped], at[is_mapped]
        for number in distinct(module[at]).tolist():
            library = self.libraries[number] if number >= 0 else None
            if library is not None:
                mine = module[at] == number
                library.unwound.append(pc[mine] - bias[at[mine]])

    def _release(self, stacks: UserStacks, piece: Array) -> None:
        """Dumps that were read need not stay in memory: a file that is mapped is read again where it is needed."""
        end = int((stacks.dump_at[piece] + stacks.dump_n[piece]).max())
        release(self.recording.stream, int(stacks.registers_at[piece].min()), end)

    def _changes(
        self, machine: Machine, big: bool, numbers: Collection[int]
    ) -> list[tuple[int, int, Program, _Change | None]]:
        """Returns the changes of memory by time, of the programs and of those whose memory they began with: (when, what
        comes first at one time, program, change; None: it begins)."""
        programs = self.memory.programs
        wanted = {
            one.number for number in numbers for one, _ in programs.ancestors(programs.all[number], MAX_ANCESTORS)
        }
        changes: list[tuple[int, int, Program, _Change | None]] = []
        for number in sorted(wanted):
            program = programs.all[number]
            changes.append((program.start, 0, program, None))
            code = self._code_of(program, machine, big)
            changes += [(max(when, program.start), 2, program, change) for when, change in code]
        for mapped in self.recording.maps:
            owner = programs.at(mapped.pid, mapped.ts)
            if owner is not None and owner.number in wanted and owner.pid != OUTSIDE:
                changes.append((max(mapped.ts, owner.start), 1, owner, self._mapping(mapped, machine)))
        changes.sort(key=itemgetter(0, 1))
        return changes

    def _mapping(self, mapped: Mmap, machine: Machine) -> _Change:
        start, end = mapped.start, mapped.start + mapped.length
        if is_anonymous(mapped):
            change = AddressSpace.map_anonymous if mapped.is_exec else AddressSpace.unmap_anonymous
            return partial(change, start=start, end=end)
        number = self._number(mapped, machine) if mapped.is_exec else self._of_path.get(mapped.path, NO_MODULE)
        module = self.modules[number] if number != NO_MODULE else None
        bias = module.bias(mapped.start, mapped.pgoff) if module is not None else None
        if mapped.is_exec:
            return partial(AddressSpace.map, start=start, end=end, bias=bias or 0, module=number)
        if bias is None:
            return partial(AddressSpace.unmap, start=start, end=end)
        return partial(AddressSpace.unmap, start=start, end=end, bias=bias, module=number)

    def _number(self, mapped: Mmap, machine: Machine) -> int:
        library = self.natives.library_of(mapped)
        key = (mapped.path, library.build_id)
        if key not in self._numbers:
            self._numbers[key] = len(self.modules)
            self.modules.append(_module_of(library, machine))
            self.libraries.append(library)
        self._of_path[mapped.path] = self._numbers[key]
        return self._numbers[key]

    def _code_of(self, program: Program, machine: Machine, big: bool) -> Iterator[tuple[int, _Change]]:
        """Code of JIT compilers that has call-frame information, while it is where it is."""
        trace, zero = self.trace, self.memory.offset_ns
        rows = self.memory.code_mappings_of(program)
        for row, since, until in zip(*map(np.ndarray.tolist, (rows, *self.memory.code_times(rows))), strict=True):
            code = int(trace.code_mappings["code"][row])
            found = self._jit_module(code, trace.code_reader(code), machine, big)
            if found is None:
                continue
            number, link_address = found
            start = int(trace.code_mappings["address"][row])
            end = start + int(trace.code["size"][code])
            load = partial(AddressSpace.load, start=start, end=end, bias=start - link_address, module=number)
            yield since - zero, load
            if until < NEVER:
                yield until - zero, partial(AddressSpace.unload, start=start, end=end)

    def _jit_module(self, code: int, reader: CodeReader, machine: Machine, big: bool) -> tuple[int, int] | None:
        """Returns (the module with a code object's call-frame information, the code's link address in it)."""
        found = reader.unwinding_of(code)
        if found is None:
            return None
        key = reader.rows.start, found.at
        if key not in self._numbers:
            self._numbers[key] = len(self.modules)
            self.modules.append(jit_module("code of a JIT compiler", found.eh_frame, machine, big))
            self.libraries.append(None)
        return self._numbers[key], JIT_ADDRESS - found.offset

    # ------------------------------------------------------------ how stacks ended

    def note_ends(self, parts: Sequence[_Part]) -> None:
        report, where = self.trace.report, self.where
        end = np.concatenate([part.stacks.end for part in parts])
        how = np.concatenate([part.stacks.how for part in parts])
        counts = np.bincount(end, minlength=8).tolist()
        report.note("unwinding_truncated", counts[End.TRUNCATED], where=where)
        report.note("unwinding_not_copied", counts[End.NOT_COPIED], where=where)
        report.note("unwinding_contradiction", sum(counts[n] for n in _CONTRADICTIONS), where=where)
        report.note("unwinding_guessed", int((how == How.BY_FRAME_POINTER).sum()), where=where)
        switches = np.concatenate([part.stacks.switch for part in parts])
        for nth, name in enumerate(self.ends.switches):
            count = int((switches == nth).sum())
            report.note("unwinding_other_stack", count, where=f"{where} {name}", detail=name)
        modules = np.concatenate([part.stacks.module for part in parts])[end == End.NO_CFI]
        for number, count in zip(*(column.tolist() for column in np.unique(modules, return_counts=True)), strict=True):
            name, why, advice = self._why(number)
            detail = f"{name}: {why}"
            report.note("unwinding_no_information", count, where=f"{where} {name}", detail=detail, advice=advice)

    def _why(self, number: int) -> tuple[str, str, str | None]:
        """Returns (the library, why its code cannot be unwound, what the user can do, None for what is declared)."""
        library = self.libraries[number] if number >= 0 else None
        if library is None:
            return OF_NO_FILE, "neither frame pointers nor a jitdump give the caller", OF_MEMORY
        if library.differs:
            return library.name, library.differs, None
        if self.modules[number] is None and not library.build_id:
            why = "without a recorded build id only a file given with --symbols or --sysroot is used"
            return library.name, why, None
        if self.modules[number] is None:
            return library.name, "the file was not found: give it with --symbols, or its file tree with --sysroot", None
        has_debug_information = library.symbols is not None and library.symbols.gives == DEBUG_INFORMATION
        advice = OF_FILE_WITH_DEBUG_INFORMATION if has_debug_information else OF_FILE_WITHOUT
        return library.name, "the file has none for this code, and there is no frame pointer", advice

    def ending(self, stacks: UnwoundStacks, keep_apart: bool) -> Array:
        """Returns the address under which each stack stands, 0 for none."""
        address, memory = np.zeros(len(stacks.end), np.uint64), self.memory
        if keep_apart:
            address[np.isin(stacks.end, (End.TRUNCATED, End.NOT_COPIED))] = memory.ending(TRUNCATED)
            address[np.isin(stacks.end, _CONTRADICTIONS)] = memory.ending(CONTRADICTION)
            for number in distinct(stacks.module[stacks.end == End.NO_CFI]).tolist():
                text = NO_INFORMATION.format(self._why(number)[0])
                address[(stacks.end == End.NO_CFI) & (stacks.module == number)] = memory.ending(text)
            for number in distinct(stacks.switch[stacks.switch >= 0]).tolist():
                address[stacks.switch == number] = memory.ending(OTHER_STACK.format(self.ends.switches[number]))
        return address


_CONTRADICTIONS = (End.BAD_ADDRESS, End.BAD_CFA, End.LOST_REGISTER)


# Changes what a program has in its memory.
_Change = Callable[[AddressSpace], None]


def _module_of(library: Library, machine: Machine) -> Module | None:
    if library.binary is None:
        return None
    try:
        module = open_module(library.binary, library.debug)
    except FormatError:
        return None
    return module._replace(name=library.name) if module.machine is machine else None


# ---------------------------------------------------------------- callchains


def _replacement(samples: Samples, part: _Part, ending: Array) -> Replacement:
    """Returns the new callchains. What perf itself found by frame pointer counts where unwinding found no caller."""
    stacks = part.stacks
    is_interrupted = stacks.how == How.BY_SIGNAL
    # A signal's frame, to which its handler returns and which calls nothing, is below what it interrupted.
    is_exact = (stacks.how == How.BY_IP) | is_interrupted | np.append(is_interrupted[1:], False)[: len(stacks.how)]
    recorded = samples.chain, np.ascontiguousarray(samples.chain_start), np.ascontiguousarray(samples.chain_n)
    unwound = stacks.first, stacks.pc, is_exact.view(np.uint8)
    nth, chain, start, n = with_user_parts(recorded, part.rows, unwound, ending)
    return Replacement(part.rows[nth], chain, start, n)
