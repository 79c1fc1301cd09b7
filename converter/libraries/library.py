"""A library of an input: the names, sources and lines of its addresses, inlined functions among them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from traceferry.model import Array, distinct
from traceferry.model.categories import NATIVE
from traceferry.symbolication.demangle import Demangler, shown_path
from traceferry.symbolication.interface import Frames, joined, look_up_nothing, taken

if TYPE_CHECKING:
    from traceferry.libraries.recorded_files import Inode
    from traceferry.symbolication.binary import Binary
    from traceferry.symbolication.interface import Symbols
    from traceferry.symbolication.libraries import LibraryFile

# No file, and no kernel, is as large.
MAX_OFFSET = 1 << 62
UNKNOWN = "[unknown]"

# Functions that nobody calls. The kernel lets a signal handler return to the first byte of __restore_rt (glibc, musl)
# or of the vdso's __kernel_rt_sigreturn, makecontext the function of a context to __start_context. Go's handlers return
# to runtime.sigreturn; where it leaves the stack of a goroutine, runtime.systemstack_switch stands for the caller.
NOT_CALLED = frozenset((
    "__restore_rt", "__restore", "__kernel_rt_sigreturn", "__kernel_sigreturn", "__start_context", "__startcontext",
    "runtime.sigreturn", "runtime.sigreturn.abi0", "runtime.sigreturn__sigaction", "runtime.sigreturn__sigaction.abi0",
    "runtime.systemstack_switch", "runtime.systemstack_switch.abi0",
))  # fmt: skip
# By e_machine, how they begin: with the system call rt_sigreturn; `mov %rbx,%rsp; mov (%rsp),%rdi; test %rdi,%rdi`.
NOT_CALLED_CODE = {
    "EM_X86_64": (bytes.fromhex("48c7c00f0000000f05"), bytes.fromhex("4889dc488b3c244885ff")),
    "EM_386": (bytes.fromhex("b8ad000000cd80"), bytes.fromhex("58b877000000cd80")),
    "EM_AARCH64": (bytes.fromhex("681180d2010000d4"),),
}

# (name, source, line) of what runs at an address, the outermost first, and where that function starts: of a function
# without a name that is known too, where there is call-frame information, else 0.
Found = tuple[list[tuple[str, str, int]], int]


def answers_of(found: Frames) -> list[Found]:
    """Returns what is found at each address. found: with texts as they are shown."""
    texts = [*found.texts, ""]
    columns = zip(found.name.tolist(), found.source.tolist(), found.line.tolist(), strict=True)
    frames = [(texts[name], texts[source], line) for name, source, line in columns]
    bounds = zip(pairwise(found.first.tolist()), found.start.tolist(), strict=True)
    return [(frames[begin:end][::-1], start) for (begin, end), start in bounds]


def _shown(found: Frames, demangle: Demangler) -> Frames:
    """Returns the frames with texts as they are shown: names demangled, that of a function without one is UNKNOWN."""
    names, sources = (distinct(of[of >= 0]).tolist() for of in (found.name, found.source))
    linkage_names = [found.texts[nth] for nth in names]
    demangle.learn(linkage_names)
    texts = {UNKNOWN: 0}
    number_of_name, number_of_source = (np.full(len(found.texts) + 1, none, np.int32) for none in (0, -1))
    for nth, name in zip(names, linkage_names, strict=True):
        number_of_name[nth] = texts.setdefault(demangle(name) or UNKNOWN, len(texts))
    for nth in sources:
        path = shown_path(found.texts[nth])
        number_of_source[nth] = texts.setdefault(path, len(texts)) if path else -1
    return found._replace(name=number_of_name[found.name], source=number_of_source[found.source], texts=list(texts))


@dataclass
class Library:
    """A mapped file. number: its place in Libraries.libraries; symbols: None where they are not available; binary: the
    file itself, debug: that with its debug information, None where they are not; differs: why the file that is here is
    not the recorded one, or ""; row: of the trace's libs, -1 until it is entered; category: of its code; n_asked,
    n_nameless: how many addresses were looked up, and at how many of them nothing was found; keeps: whether `asked`
    keeps these (uint64, as `addresses` says), and `unwound` those in stacks (uint64, as linked); is_jitted_object:
    whether a tool made the file of a JIT compiler's code; is_by_offset: whether offsets in the file are looked up, not
    addresses; path: as recorded; inode: of the file, None is unknown; not_called: those of functions that only their
    instructions tell."""

    number: int
    name: str
    build_id: str
    symbols: Symbols | None
    binary: Binary | None
    debug: Binary | None = None
    differs: str = ""
    row: int = -1
    category: str = NATIVE
    n_asked: int = 0
    n_nameless: int = 0
    keeps: bool = False
    is_jitted_object: bool = False
    is_by_offset: bool = True
    path: str = ""
    inode: Inode | None = None
    asked: list[Array] = field(default_factory=list)
    unwound: list[Array] = field(default_factory=list)
    not_called: set[int] = field(default_factory=set)

    def addresses_with_frames(self) -> Array:
        """Returns the link addresses (uint64) at which call-frame information was looked for, as far as it is kept."""
        base = np.uint64(self.binary.base if self.binary is not None else 0)
        return np.concatenate([np.zeros(0, np.uint64), *self.unwound, *(asked + base for asked in self.asked)])

    def addresses(self, offsets: Array) -> tuple[Array, Array]:
        """Returns (where the file's bytes at these offsets are loaded, relative to the lowest of them; which are
        loaded): both arguments and addresses are uint64. What is not loaded stays an offset. Without the file, bytes
        are where linkers put them that leave no gaps."""
        if self.binary is None:
            return offsets, np.ones(len(offsets), bool)
        address, is_held, loaded = offsets.copy(), np.zeros(len(offsets), bool), np.zeros(len(offsets), bool)
        for segment in self.binary.segments:
            if segment.type == "PT_LOAD":
                begin, inside = segment.address - self.binary.base, offsets - np.uint64(segment.offset)
                mine = ~is_held & (inside < np.uint64(segment.size))
                is_held |= mine
                mine &= inside < np.uint64(max(MAX_OFFSET - begin, 0))
                address[mine] = inside[mine] + np.uint64(begin)
                loaded |= mine
        return address, loaded

    def found_at(self, offsets: Array, demangle: Demangler) -> tuple[Array, Frames]:
        """Returns the addresses (uint64) of the file's bytes at these offsets, as `addresses` says, and the frames
        there, as `_found` does. Offsets are of instructions, or of the byte before a return address. Nobody calls what
        is in NOT_CALLED: it is returned to at its first byte, and that is its address then."""
        addresses, loaded = self.addresses(offsets)
        found = self._counted(addresses, loaded, demangle)
        return addresses, found

    def names(self, addresses: Array, demangle: Demangler) -> list[Found]:
        """Returns what is found at addresses (uint64) relative to the lowest that is loaded, as `found_at` does."""
        self.is_by_offset = False
        return answers_of(self._counted(addresses.copy(), addresses < MAX_OFFSET, demangle))

    def function_names(self, addresses: Array, demangle: Demangler) -> list[str]:
        """Returns the functions that hold addresses (uint64) relative to the lowest that is loaded, "" where none is
        known: without those that are inlined there."""
        found = self._found(addresses.copy(), addresses < MAX_OFFSET, demangle)
        return [frames[0][0] if frames else "" for frames, _ in answers_of(found)]

    def _counted(self, addresses: Array, loaded: Array, demangle: Demangler) -> Frames:
        """Returns what is found, as `_found` does, and counts it."""
        found = self._found(addresses, loaded, demangle)
        self.n_asked += len(addresses)
        self.n_nameless += int(np.count_nonzero(np.diff(found.first) == 0))
        return found

    def _found(self, addresses: Array, loaded: Array, demangle: Demangler) -> Frames:
        """Returns the frames, with texts as they are shown; the start of a function without a name, too, that is known.
        Addresses in what nobody calls are moved to its first byte."""
        rows = np.flatnonzero(loaded)
        found = self._lookup(addresses[rows], demangle)
        nameless = np.flatnonzero(np.diff(found.first) == 0)
        behind = addresses[rows[nameless]] + np.uint64(1)
        others = self._lookup(behind, demangle)
        is_start = others.start == behind
        is_moved = np.zeros(len(behind), bool)
        for nth in np.flatnonzero(is_start & (np.diff(others.first) > 0)).tolist():
            is_moved[nth] = others.texts[int(others.name[others.first[nth + 1] - 1])] in NOT_CALLED
        is_moved[~is_moved] = self._are_not_called(behind[~is_moved])
        # Of each address, its row in what was found, in the others, or in nothing.
        nothing = len(rows) + len(behind)
        which = np.full(len(addresses), nothing, np.int64)
        which[rows] = np.arange(len(rows))
        moved = rows[nameless[is_moved]]
        addresses[moved] = behind[is_moved]
        which[moved] = np.where(is_start, len(rows) + np.arange(len(behind)), nothing)[is_moved]
        found = taken(joined([found, others, look_up_nothing(addresses[:1])]), which)
        unnamed = rows[np.diff(found.first)[rows] == 0]
        found.start[unnamed] = self.file.extents(addresses[unnamed])[0]
        return found

    def _are_not_called(self, addresses: Array) -> Array:
        """Returns at which addresses a function begins that nothing calls, by its instructions: files without a symbol
        table do not name it."""
        found = np.zeros(len(addresses), bool)
        if self.binary is None or not len(addresses):
            return found
        data, (at, n_bytes) = np.frombuffer(self.binary.data, np.uint8), self._places(self.binary, addresses)
        for code in NOT_CALLED_CODE.get(self.binary.machine, ()):
            rows = np.flatnonzero(n_bytes >= len(code))
            for nth, byte in enumerate(code):
                rows = rows[data[at[rows] + nth] == byte]
            found[rows] = True
        self.not_called.update(addresses[found].tolist())
        return found

    def _places(self, binary: Binary, addresses: Array) -> tuple[Array, Array]:
        """Returns where the file has the bytes at addresses, as `Binary.code` finds them, and how many from there on:
        int64, 0 bytes where it has none."""
        linked = addresses + np.uint64(binary.base)
        is_open = linked >= addresses
        at, n_bytes = np.zeros(len(addresses), np.int64), np.zeros(len(addresses), np.int64)
        for segment in binary.segments:
            if segment.type == "PT_LOAD":
                inside = linked - np.uint64(segment.address)
                mine = is_open & (inside < np.uint64(segment.size))
                is_open &= ~mine
                mine &= inside < np.uint64(max(len(binary.data) - segment.offset, 0))
                begin = inside[mine].astype(np.int64)
                at[mine] = begin + segment.offset
                n_bytes[mine] = np.minimum(min(segment.size, MAX_OFFSET) - begin, len(binary.data) - at[mine])
        return at, n_bytes

    def _lookup(self, addresses: Array, demangle: Demangler) -> Frames:
        """Returns the frames, with texts as they are shown. addresses: uint64, relative to the lowest loaded one."""
        if self.symbols is None or not len(addresses):
            return look_up_nothing(addresses)
        if self.keeps:
            self.asked.append(addresses)
        found = self.file.lookup(addresses)
        if self.keeps:
            self.asked.append(found.start[found.start > 0])  # where the file of a function is looked up
        return _shown(found, demangle)

    @cached_property
    def file(self) -> LibraryFile:
        """Returns the file for look-ups, once symbols and binary are known."""
        from traceferry.symbolication.libraries import LibraryFile

        return LibraryFile(self.symbols, self.binary, self._function_ranges)

    def _function_ranges(self) -> tuple[Array, Array]:
        if self.binary is None:
            return np.zeros(0, np.uint64), np.zeros(0, np.uint64)
        from traceferry.unwinding.functions import function_ranges

        return function_ranges(self.binary, self.debug)
