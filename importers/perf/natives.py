"""Map: the libraries and the kernel of a recording, and the symbols that name their code."""

from __future__ import annotations

import os
import platform
import struct
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from traceferry.files.answers import MACHINE, checked
from traceferry.files.source import Source
from traceferry.importers.perf import kallsyms
from traceferry.importers.perf.clocks import ended_at
from traceferry.importers.perf.guests import Guests
from traceferry.importers.perf.kallsyms import KernelSymbols, module_name
from traceferry.importers.perf.recording import JITTED_OBJECT, Features, Mmap, Recording
from traceferry.libraries import vdso
from traceferry.libraries.library import Library
from traceferry.libraries.recorded_files import Inode, Recorded, RecordedTimes
from traceferry.libraries.search import Libraries, two_of
from traceferry.model import Array, TraceBuilder
from traceferry.model.categories import KERNEL as KERNEL_CODE
from traceferry.reading import ImportContext
from traceferry.symbolication.build_id import build_id_of
from traceferry.symbolication.demangle import Demangler, shown_frames

if TYPE_CHECKING:
    from traceferry.symbolication.interface import Symbols

KERNEL = "[kernel.kallsyms]"
# What perf puts behind that name: a symbol, whose address is the mapping's page offset.
KERNEL_REFERENCES = ("_text", "_stext")
ADDRESSES = 1 << 64


def _outermost(symbols: Symbols, addresses: Array, demangle: Demangler) -> list[tuple[int, str]]:
    """Returns (start, name) of the functions at addresses (uint64) relative to the lowest, (0, "") where there is none:
    those that hold the others, which are inlined."""
    found = symbols.lookup(addresses + np.uint64(symbols.base))
    names = [name for name, _, _ in shown_frames(found, demangle)]
    columns = (found.first[:-1].tolist(), found.first[1:].tolist(), found.start.tolist())
    rows = zip(*columns, strict=True)
    return [(start - symbols.base, names[end - 1]) if begin < end else (0, "") for begin, end, start in rows]


def is_kernel(mapped: Mmap) -> bool:
    """Whether the kernel itself is mapped there, and no module."""
    return mapped.path == KERNEL or mapped.path.removeprefix(KERNEL) in KERNEL_REFERENCES


def _is_this_system(features: Features) -> tuple[bool, bool]:
    """Returns whether this machine was recorded, and whether it runs the same release of the kernel."""
    is_machine = bool(features.hostname) and features.hostname == platform.node()
    return is_machine, is_machine and features.os_release == platform.release()


def _packed_symbols(kept: Symbols | None) -> Any:
    from traceferry.unwinding.packed import AskedSymbols, Used, packed_symbols

    if not isinstance(kept, AskedSymbols):
        return None
    return packed_symbols(Used(kept.symbols, kept.symbols.lookup, kept.asked, kept.whole), big=False)


def _unpacked_symbols(value: Any) -> Symbols | None:
    from traceferry.unwinding.packed import PackedSymbols

    return PackedSymbols(value) if value is not None else None


def _own_vdso_id() -> str:
    return build_id_of(memoryview(vdso.own_vdso()))


def _text(value: Any) -> str:
    return checked(value, str)


class Natives(Libraries):
    """The libraries of a recording, each once, and its kernel. beside: the file of the recording, beside which symbols
    may be; written_at: when it was last written to, in seconds since 1970."""

    def __init__(
        self,
        trace: TraceBuilder,
        context: ImportContext,
        recording: Recording,
        beside: Source | None = None,
        written_at: float = 0,
    ) -> None:
        self._maps = recording.maps
        self._features = recording.features
        self._n_nameless_in_kernel = 0
        # By path and file of a mapping: whether another file is there here.
        self._has_another: dict[tuple[str, Inode], bool] = {}
        answers = beside.answers if beside is not None else MACHINE
        self._is_this_machine, self._is_this_system = answers.ask(
            "this machine", trace.report, partial(_is_this_system, self._features), unpacked=two_of(bool)
        )
        times = RecordedTimes(ended_at(recording, written_at), written_at) if self._is_this_system else None
        unwinds = bool(np.any(recording.samples.user_at >= 0))
        super().__init__(trace, context, beside, times, unwinds)
        self._guests = Guests(
            beside, context.folders, self._features, self._is_this_machine, trace.report, self._answers
        )

    def library_of(self, mapped: Mmap) -> Library:
        path = mapped.path
        if mapped.pid == -1:
            path = next((path.removesuffix(s) for s in KERNEL_REFERENCES if path == KERNEL + s), path)
        # perf has this name for the vdso of 32-bit processes.
        listed = "[vdso32]" if path == vdso.PATH and mapped.start < 1 << 32 else path
        build_id = mapped.build_id or self._features.build_ids.get(listed, "") or self._vdso_build_id(mapped)
        category = KERNEL_CODE if mapped.pid == -1 else ""
        is_jitted = JITTED_OBJECT.fullmatch(os.path.basename(path)) is not None
        inode = _inode_of(mapped.file) if mapped.file else None
        is_another = mapped.pid != -1 and not mapped.build_id and self._is_another(path, build_id, inode)
        if self._is_replaced(mapped) and not is_another:
            self._trace.report.note("file_is_another", where=path, detail=path)
        # perf took the build id of the file that is at the path for perf itself.
        of_program = "" if is_another else build_id
        of_file = mapped.pgoff, mapped.length, is_jitted, is_another, inode
        return self.library(Recorded(path, of_program, category, *of_file))

    @cached_property
    def _latest(self) -> dict[str, Mmap]:
        """Returns the last mapping of each path of which the file is recorded."""
        return {one.path: one for one in self._maps if one.pid != -1 and one.is_exec and one.file}

    def _is_replaced(self, mapped: Mmap) -> bool:
        """Whether another file was mapped later at the same path: the build id, which perf reads at the end, and what
        is there here, are of that one. perf writes no generation, 0, of what was mapped before the recording began. Of
        file systems without a block device, as those of containers, numbers do not tell files apart."""
        latest = self._latest.get(mapped.path)
        if mapped.build_id or not mapped.file or latest is None:
            return False
        file, other = _inode_of(mapped.file), _inode_of(latest.file)
        is_again = any(mapped.generation) and any(latest.generation) and mapped.generation != latest.generation
        return bool(file.device[0]) and file.device == other.device and (file.number != other.number or is_again)

    def _is_another(self, path: str, build_id: str, inode: Inode | None) -> bool:
        """Whether the program had another file at a path than is there here. inode: of the mapping."""
        if inode is None or not os.path.isabs(path):
            return False
        if (path, inode) not in self._has_another:
            find = partial(self._files.is_another, path, build_id, inode)
            key = f"another file {path} {inode.device[0]}:{inode.device[1]} {inode.number}"
            self._has_another[path, inode] = self._answers.ask(
                key, self._trace.report, find, unpacked=partial(checked, kind=bool)
            )
        return self._has_another[path, inode]

    def note_problems(self) -> None:
        super().note_problems()
        self._note_kernel()
        self._guests.note_problems()

    def guest_names(self, addresses: Array) -> list[str]:
        """Returns what is shown for addresses (uint64) in guests."""
        return self._guests.names(addresses)

    def kernel_lookup(self, mapped: Mmap, offsets: Array) -> list[tuple[int, str]]:
        """Returns (start, name) of the functions at these offsets (uint64) in a mapping of the kernel or of one of its
        modules, (0, "") where nothing is found. start: as an offset, too."""
        found = self._kernel_functions(mapped, offsets)
        self._n_nameless_in_kernel += sum(not name for _, name in found)
        return found

    def _kernel_functions(self, mapped: Mmap, offsets: Array) -> list[tuple[int, str]]:
        if self._kernel_beside is not None and is_kernel(mapped):
            return _outermost(self._kernel_beside, offsets, self.demangle)
        # After another start of the machine, modules lie in another order.
        if self._kernel is None or (self._kernel_shift and not is_kernel(mapped)):
            return [(0, "")] * len(offsets)
        here = (mapped.start - self._kernel_shift) % ADDRESSES
        module = "" if is_kernel(mapped) else module_name(mapped.path)
        found = self._kernel.lookup(module, offsets + np.uint64(here))
        # What starts in front of a module is not of it.
        is_own = (name and (not module or start >= here) for start, name in found)
        return [(start - here, name) if own else (0, "") for own, (start, name) in zip(is_own, found, strict=True)]

    @cached_property
    def _kernel_beside(self) -> Symbols | None:
        """Returns the symbols of the recorded kernel that are beside the recording."""
        return self._answers.ask(
            "kernel beside", self._trace.report, self._find_kernel_beside, _packed_symbols, _unpacked_symbols
        )

    def _find_kernel_beside(self) -> Symbols | None:
        if not self._kernel_build_id:
            return None
        found, _ = self._symbols_beside(KERNEL, self._kernel_build_id)
        if found is None:
            return None
        detail = f"{KERNEL}: {found.symbols.gives} of {found.symbols.path}"
        self._trace.report.note("symbols_used", where=found.symbols.path, detail=detail)
        if not self._answers.keeps:
            return found.symbols
        from traceferry.unwinding.packed import AskedSymbols

        return AskedSymbols(found.symbols, self._answers.keeps_whole)

    @cached_property
    def _kernel(self) -> KernelSymbols | None:
        """Returns the symbols of the kernel that runs here, if it is the one that was recorded."""
        return self._answers.ask(
            "kernel", self._trace.report, self._running_kernel, kallsyms.packed_kernel, kallsyms.unpacked_kernel
        )

    def _running_kernel(self) -> KernelSymbols | None:
        try:
            if self._is_this_machine and self._is_this_kernel:
                self._trace.report.note("files_read", where=str(kallsyms.KALLSYMS), detail=str(kallsyms.KALLSYMS))
                return KernelSymbols(kallsyms.KALLSYMS.read_bytes())
        except OSError:
            pass
        return None

    def _note_kernel(self) -> None:
        """Reports why nothing of the kernel has a name. That some of it has none is not noted: modules of another
        start."""
        report, n = self._trace.report, self._n_nameless_in_kernel
        if not n or (self._kernel is not None and not self._kernel.is_empty):
            return
        if self._is_this_machine and not self._kernel_build_id:
            report.note("kernel_names_missing", n, detail="no build id of the kernel is recorded")
        elif self._is_this_machine and self._is_this_kernel:
            advice = "convert as root, or after: sysctl kernel.kptr_restrict=0 kernel.perf_event_paranoid=1"
            report.note("kernel_names_missing", n, detail=f"{kallsyms.KALLSYMS} does not tell", advice=advice)
        else:
            report.note("kernel_elsewhere", n)

    @cached_property
    def _is_this_kernel(self) -> bool:
        """Whether a kernel of the recorded build runs here. Where no build id is recorded, that of the recorded release
        on the recorded machine is taken for it, which is reported unless --sysroot / says so."""
        return self._answers.ask("this kernel", self._trace.report, self._is_running_kernel, unpacked=bool)

    def _is_running_kernel(self) -> bool:
        recorded = self._kernel_build_id
        try:
            if recorded:
                return recorded == kallsyms.running_kernel()
        except OSError:
            return False
        if self._is_this_system and not any(os.path.realpath(root) == os.sep for root in self._sysroots):
            self._trace.report.note("files_unverified", where=KERNEL, detail=f"{KERNEL} {platform.release()}")
        return self._is_this_system

    @cached_property
    def _kernel_build_id(self) -> str:
        """perf has it in the header, or, with --buildid-mmap, in the record of the mapping."""
        of_maps = (one.build_id for one in self._maps if one.pid == -1 and is_kernel(one) and one.build_id)
        return next(of_maps, "") or self._features.build_ids.get(KERNEL, "")

    def _vdso_build_id(self, mapped: Mmap) -> str:
        """Returns the build id of a vdso whose own is not recorded: the kernel has it in itself, so that this kernel's
        is that of a recorded kernel of the same build; "" where that is not so. That of 32-bit processes is another:
        perf has put it into its cache, when it recorded one without --buildid-mmap."""
        if mapped.path != vdso.PATH or not self._is_this_kernel:
            return ""
        if mapped.start < 1 << 32:
            return self._answers.ask("vdso32", self._trace.report, self._files.cached_vdso32, unpacked=_text)
        return self._answers.ask("vdso", self._trace.report, _own_vdso_id, unpacked=_text)

    @cached_property
    def _kernel_shift(self) -> int:
        """Returns how much higher the recorded kernel was loaded than it is now."""
        for mapped in self._maps:
            symbol = mapped.path.removeprefix(KERNEL)
            if mapped.pid == -1 and mapped.pgoff and symbol in KERNEL_REFERENCES and self._kernel is not None:
                here = self._kernel.address_of(symbol)
                return mapped.pgoff - here if here else 0
        return 0


def _inode_of(file: bytes) -> Inode:
    """file: of a mapping."""
    major, minor, number = struct.unpack("=IIQ", file)
    return Inode((major, minor), number)
