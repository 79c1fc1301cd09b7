"""Map: the libraries and the kernel of a recording, and the symbols that name their code."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from traceferry.common.errors import FormatError
from traceferry.common.report import Report
from traceferry.files.answers import MACHINE, checked
from traceferry.files.named_files import open_named
from traceferry.files.source import Source, paths_beside
from traceferry.importers.perf import kallsyms, vdso
from traceferry.importers.perf.files import RecordedFiles
from traceferry.importers.perf.kallsyms import KernelSymbols, module_name
from traceferry.importers.perf.recording import JITTED_OBJECT, Features, Mmap, Recording
from traceferry.model import Array, TraceBuilder, category_of_file
from traceferry.model.categories import KERNEL as KERNEL_CODE
from traceferry.model.categories import NATIVE
from traceferry.reading import ImportContext
from traceferry.symbolication.build_id import build_id_of, debug_id_of, is_same_build
from traceferry.symbolication.debug_links import debug_link
from traceferry.symbolication.demangle import Demangler, shown_frames
from traceferry.symbolication.interface import FoundSymbols
from traceferry.symbolication.packages import SUFFIX, debug_package
from traceferry.unwinding.functions import function_ranges

if TYPE_CHECKING:
    from traceferry.symbolication.binary import Binary
    from traceferry.symbolication.choose import SymbolIndex
    from traceferry.symbolication.interface import Frames, Symbols
    from traceferry.symbolication.libraries import LibraryFile

One = TypeVar("One")

KERNEL = "[kernel.kallsyms]"
# What perf puts behind that name: a symbol, whose address is the mapping's page offset.
KERNEL_REFERENCES = ("_text", "_stext")
# No file, and no kernel, is as large.
MAX_OFFSET = 1 << 62
# How many addresses without a name it takes to look for the package of a library's debug file.
MANY_NAMELESS = 10
# What names a library that is not here, and of which a build id is known.
OF_BUILD = (
    "give the file, or the package's debug file: --symbols FILE-OR-DIR; or a copy of the recorded machine's files: "
    "--sysroot DIR; or let --debuginfod download it"
)
ADDRESSES = 1 << 64
UNKNOWN = "[unknown]"

# Functions that nobody calls. The kernel lets a signal handler return to the first byte of __restore_rt (glibc, musl)
# or of the vdso's __kernel_rt_sigreturn, makecontext the function of a context to __start_context.
NOT_CALLED = frozenset((
    "__restore_rt", "__restore", "__kernel_rt_sigreturn", "__kernel_sigreturn", "__start_context", "__startcontext",
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


@dataclass
class Library:
    """A mapped file. number: its place in Natives.libraries; symbols: None where they are not available; binary: the
    file itself, debug: that with its debug information, None where they are not; differs: why the file that is here is
    not the recorded one, or ""; row: of the trace's libs, -1 until it is entered; category: of its code; n_asked,
    n_nameless: how many addresses were looked up, and at how many of them nothing was found; keeps: whether `asked`
    keeps these (uint64, as `addresses` says); not_called: those of functions that only their instructions tell."""

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
    asked: list[Array] = field(default_factory=list)
    not_called: set[int] = field(default_factory=set)

    @property
    def is_jitted_object(self) -> bool:
        return JITTED_OBJECT.fullmatch(self.name) is not None

    def addresses(self, offsets: Array) -> tuple[Array, Array]:
        """Returns (where the file's bytes at these offsets are loaded, relative to the lowest of them; which are
        loaded): both arguments and addresses are uint64. What is not loaded stays an offset. Without the file, bytes
        are where linkers put them that leave no gaps."""
        if self.binary is None:
            return offsets, np.ones(len(offsets), bool)
        relative = [self.binary.relative(offset) for offset in offsets.tolist()]
        loaded = np.array([address is not None and 0 <= address < MAX_OFFSET for address in relative], bool)
        found = [address if ok else 0 for address, ok in zip(relative, loaded.tolist(), strict=True)]
        return np.where(loaded, np.array(found, np.uint64), offsets), loaded

    def found_at(self, offsets: Array, demangle: Demangler) -> tuple[list[int], list[Found]]:
        """Returns the addresses of the file's bytes at these offsets, as `addresses` says, and what is found there: no
        frames where nothing is. Offsets are of instructions, or of the byte before a return address. Nobody calls what
        is in NOT_CALLED: it is returned to at its first byte, and that is its address then."""
        addresses, loaded = self.addresses(offsets)
        nothing: Found = ([], 0)
        found = [nothing] * len(addresses)
        for nth, answer in zip(np.flatnonzero(loaded).tolist(), self._lookup(addresses[loaded], demangle), strict=True):
            found[nth] = answer
        nameless = np.array([nth for nth in np.flatnonzero(loaded).tolist() if not found[nth][0]], np.int64)
        behind = addresses[nameless] + np.uint64(1)
        answers = zip(nameless.tolist(), behind.tolist(), self._lookup(behind, demangle), strict=True)
        for nth, address, (frames, start) in answers:
            is_named = bool(frames) and start == address and frames[0][0] in NOT_CALLED
            if is_named or self._is_not_called(address):
                addresses[nth] = address
                found[nth] = (frames, start) if start == address else nothing
        unnamed = [nth for nth in np.flatnonzero(loaded).tolist() if not found[nth][0]]
        for nth, start in zip(unnamed, self.file.extents(addresses[unnamed])[0].tolist(), strict=True):
            found[nth] = ([], start)
        self.n_asked += len(found)
        self.n_nameless += sum(not frames for frames, _ in found)
        return addresses.tolist(), found

    def _is_not_called(self, address: int) -> bool:
        """Returns whether nothing calls it, by its instructions: files without a symbol table do not name it."""
        codes = NOT_CALLED_CODE.get(self.binary.machine, ()) if self.binary is not None else ()
        found = self.binary is not None and any(self.binary.code(address, len(code)) == code for code in codes)
        if found:
            self.not_called.add(address)
        return found

    def _lookup(self, addresses: Array, demangle: Demangler) -> list[Found]:
        """addresses: uint64, relative to the lowest that is loaded."""
        if self.symbols is None or not len(addresses):
            return [([], 0)] * len(addresses)
        if self.keeps:
            self.asked.append(addresses)
        found = self.file.lookup(addresses)
        if self.keeps:
            self.asked.append(found.start[found.start > 0])  # where the file of a function is looked up
        frames = [(name or UNKNOWN, source, line) for name, source, line in shown_frames(found, demangle)]
        first = found.first.tolist()
        return [
            (frames[begin:end][::-1], start)
            for begin, end, start in zip(first[:-1], first[1:], found.start.tolist(), strict=True)
        ]

    @cached_property
    def file(self) -> LibraryFile:
        """Returns the file for look-ups, once symbols and binary are known."""
        from traceferry.symbolication.libraries import LibraryFile

        return LibraryFile(self.symbols, self.binary, partial(function_ranges, self.binary, self.debug))


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


def _two(kind: type[One]) -> Callable[[Any], tuple[One, One]]:
    """Returns what checks an answer of two values."""

    def unpacked(value: Any) -> tuple[One, One]:
        first, second = (checked(one, kind) for one in value)
        return first, second

    return unpacked


def _names_elsewhere(library: Library) -> tuple[str, str]:
    """Returns (the name of a library's debug file, the package that has it), "" where they are not known."""
    assert library.symbols is not None
    link = debug_link(library.binary) if library.binary is not None and library.debug is None else None
    is_wanted = library.n_nameless >= MANY_NAMELESS and library.debug is None
    return link.name if link is not None else "", debug_package(library.symbols.path) if is_wanted else ""


class Natives:
    """The libraries of a recording, each once, and its kernel. beside: the file of the recording, beside which symbols
    may be; recorded_at: when it was last written to, in seconds since 1970, for recordings that do not tell."""

    def __init__(
        self,
        trace: TraceBuilder,
        context: ImportContext,
        recording: Recording,
        beside: Source | None = None,
        recorded_at: float = 0,
    ) -> None:
        features = recording.features
        self.libraries: list[Library] = []
        self._n_entered = 0
        self.demangle = Demangler()
        self._trace = trace
        self._maps = recording.maps
        self._features = features
        self._beside = [beside] if beside is not None else []
        self._sources = context.symbols
        self._find_symbols = context.find_symbols
        self._limit = context.limit
        self._sysroots = context.sysroots
        self._folders = context.folders
        self._library_of: dict[tuple[str, str], Library] = {}
        self._debug_files = context.debug_files(trace.report)
        self._n_nameless_in_kernel = 0
        self._answers = beside.answers if beside is not None else MACHINE
        self._unwinds = bool(np.any(recording.samples.user_at >= 0))
        self._is_this_machine, self._is_this_system = self._answers.ask(
            "this machine", trace.report, partial(_is_this_system, features), unpacked=_two(bool)
        )
        if features.clock_data is not None:
            recorded_at = features.clock_data[1] / 1e9
        self._files = RecordedFiles(
            trace.report, context.sysroots, context.folders, context.limit,
            unchanged_since=recorded_at if self._is_this_system else None,
        )  # fmt: skip

    def library_of(self, mapped: Mmap) -> Library:
        path = mapped.path
        if mapped.pid == -1:
            path = next((path.removesuffix(s) for s in KERNEL_REFERENCES if path == KERNEL + s), path)
        # perf has this name for the vdso of 32-bit processes.
        listed = "[vdso32]" if path == vdso.PATH and mapped.start < 1 << 32 else path
        build_id = mapped.build_id or self._features.build_ids.get(listed, "") or self._vdso_build_id(mapped)
        library = self._library_of.get((path, build_id))
        if library is None:
            name, category = Path(path).name, KERNEL_CODE if mapped.pid == -1 else category_of_file(path)
            keeps = self._answers.keeps
            library = Library(len(self.libraries), name, build_id, None, None, category=category, keeps=keeps)
            self._library_of[path, build_id] = library
            self.libraries.append(library)
            if path == vdso.PATH or not path.startswith("["):
                self._find(mapped, path, library)
        return library

    def note_problems(self) -> None:
        """Reports the problems of symbols, once everything was looked up."""
        from traceferry.symbolication.choose import note_use

        self.demangle.note_kept(self._trace.report, "libraries")
        for library in self.libraries:
            symbols = library.symbols
            if symbols is not None:
                note_use(self._trace.report, library.name, symbols, library.binary)
                by_offset = int(library.binary is None)
                self._trace.report.note("symbols_by_offset", by_offset, where=symbols.path, detail=symbols.name)
            if library.n_nameless and not library.differs and not library.is_jitted_object:
                self._note_nameless(library)
        self._note_kernel()

    def _note_nameless(self, library: Library) -> None:
        report, name, n = self._trace.report, library.name, library.n_nameless
        where = f"{name} {library.number}"
        counts = f"{name} ({n} of {library.n_asked} addresses)"
        if library.symbols is None:
            why = "the file was not found" if library.build_id else "no build id is recorded"
            advice = OF_BUILD if library.build_id else None
            report.note("names_missing", n, where=where, detail=f"{counts}: {why}", advice=advice)
            return
        link, package = self._answers.ask(
            f"names of {where}", report, partial(_names_elsewhere, library), unpacked=_two(str)
        )
        apart = f"; its debug file is called {link}" if link else ""
        where_from = " from the distribution's archive of debug packages" if package.endswith(SUFFIX) else ""
        advice = f"apt install {package}{where_from}, or --debuginfod, gives them names" if package else None
        report.note("names_partly_missing", n, where=where, detail=f"{counts}{apart}", advice=advice)

    # ------------------------------------------------------------ the kernel

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
        is that of a recorded kernel of the same build. "" where that is not so, and for the vdso of 32-bit processes,
        which is another."""
        if mapped.path != vdso.PATH or mapped.start < 1 << 32 or not self._is_this_kernel:
            return ""
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

    # ------------------------------------------------------------ files

    def enter(self, n: int) -> None:
        """Gives the first n libraries their rows in the trace."""
        intern = self._trace.strings.intern
        for library in self.libraries[self._n_entered : n]:
            if library.row < 0:
                library.row = self._trace.libs.intern(
                    name=intern(library.name),
                    debug_id=intern(debug_id_of(library.build_id)) if library.build_id else -1,
                    code_id=intern(library.build_id) if library.build_id else -1,
                    arch=intern(library.binary.arch) if library.binary is not None else -1,
                )
        self._n_entered = max(self._n_entered, n)

    def _find(self, mapped: Mmap, path: str, library: Library) -> None:
        """Finds what names the file's code, and the file: in the pack, if the recording is of one."""
        key = f"library {path} {library.build_id}"
        self._answers.ask(
            key,
            self._trace.report,
            partial(self._find_here, mapped, path, library),
            lambda _: self._packed(library),
            partial(self._find_in_pack, mapped, path, library),
        )

    def _packed(self, library: Library) -> Any:
        """Returns a library as a pack holds it: what the recording needs of it."""
        from traceferry.unwinding.packed import Used, packed_binary, packed_symbols

        symbols, binary = library.symbols, library.binary
        value: dict[str, Any] = {"name": library.name, "build_id": library.build_id, "differs": library.differs}
        value |= {"n_asked": library.n_asked, "symbols": None, "binary": None, "debug": None}
        if symbols is not None:
            base = np.uint64(symbols.base)

            def lookup(addresses: Array) -> Frames:
                found = library.file.lookup(addresses - base)
                return replace(found, start=np.where(np.diff(found.first) > 0, found.start + base, found.start))

            asked = [addresses + base for addresses in library.asked]
            big = binary is not None and not binary.little_endian
            frames = self._unwinds or library.n_nameless > 0
            value["symbols"] = packed_symbols(Used(symbols, lookup, asked, self._answers.keeps_whole), big)
            value["binary"] = packed_binary(binary, sorted(library.not_called), frames)
            value["debug"] = packed_binary(library.debug, (), frames)
        return value

    def _find_in_pack(self, mapped: Mmap, path: str, library: Library, value: Any) -> None:
        """Takes what a pack has of a library. Symbols of the user's come first, and what the pack lacks is searched
        where the user says."""
        from traceferry.unwinding.packed import PackedSymbols, unpacked_binary

        library.differs = checked(value["differs"], str)
        has_more = bool(self._sources or self._folders or self._sysroots or self._debug_files.can_download)
        if value["symbols"] is None:
            if has_more or self._find_symbols is not None:
                self._find_here(mapped, path, library)
            return
        given, _ = self._given_for(library.name, library.build_id) if self._sources else (None, "")
        library.symbols = given.symbols if given is not None else PackedSymbols(value["symbols"])
        library.binary, library.debug = unpacked_binary(value["binary"]), unpacked_binary(value["debug"])

    def _find_here(self, mapped: Mmap, path: str, library: Library) -> None:
        """Finds what names the file's code, and the file, on this machine. The user's files come first, then what
        can be found; where no build id is recorded, after that of the recorded path, if a JIT compiler's code is in
        it."""
        name, build_id = library.name, library.build_id
        is_jitted = not build_id and library.is_jitted_object
        source, differs = self._files.jitted_object(mapped) if is_jitted else self._files.local(path, build_id)
        opened = self._opened(source, recorded=path) if source is not None else None
        own = FoundSymbols(opened) if opened is not None else None
        given, refusal = self._given_for(name, build_id)
        if given is None and (own is None or build_id) and not is_jitted:
            given, other = self._symbols_beside(name, build_id)
            refusal = refusal or other
        found = (given or own) if build_id else (own or given)
        if found is None and not is_jitted:
            source = self._debug_files.executable(build_id, name) if build_id else self._files.unverified(mapped)
            opened = self._opened(source, recorded=path) if source is not None else None
            found = FoundSymbols(opened) if opened is not None else None
        if found is None and (refusal or differs):
            library.differs = refusal or differs
            self._trace.report.note("build_id_differs", where=name, detail=f"{name}: {library.differs}")
        if found is not None:
            library.symbols = found.symbols
            library.binary, library.debug = self._binaries_of(found, own)
            self._find_debug_file(library, path)

    def _find_debug_file(self, library: Library, path: str) -> None:
        """Finds the debug information of a file that has none itself, and that nothing else names."""
        named = self._debug_files.debug_symbols(library.symbols, path, library.name) if library.symbols else None
        if named is not None:
            library.symbols, library.debug = named, named.binary

    def _given_for(self, name: str, build_id: str) -> tuple[FoundSymbols | None, str]:
        """Returns (symbols for a library: the user's, else those that can be found; why those of its name are
        refused)"""
        refusals: list[str] = []
        for find in (self._among_given, self._find_symbols):
            try:
                found = find(build_id, name, self._trace.report) if find is not None else None
            except FormatError as error:
                refusals.append(error.message)
            else:
                if found is not None:
                    return found, ""
        return None, next(iter(refusals), "")

    def _among_given(self, build_id: str, name: str, _: Report) -> FoundSymbols | None:
        symbols = self._given.matching(build_id, name) if self._given else None
        return FoundSymbols(symbols) if symbols is not None else None

    def _symbols_beside(self, name: str, build_id: str) -> tuple[FoundSymbols | None, str]:
        """Returns (what the GSYM file beside the recording has that is called as the library is; why it is refused).
        Where no build id is recorded, its name tells."""
        for path, beside in paths_beside(self._beside, (), f"{name}.gsym"):
            source = open_named(path, self._trace.report, beside=beside, limit=self._limit)
            symbols = self._opened(source) if source is not None else None
            if symbols is None:
                continue
            if build_id and not is_same_build(symbols.build_id, build_id):
                return None, f"recorded {build_id}, beside the recording {symbols.build_id or 'one without a build id'}"
            if not build_id:
                self._trace.report.note("files_unverified", where=path, detail=path)
            return FoundSymbols(symbols), ""
        return None, ""

    def _binaries_of(self, found: FoundSymbols, own: FoundSymbols | None) -> tuple[Binary | None, Binary | None]:
        """Returns the ELF file of what was found, itself or another of that build; and that with its debug information,
        if it is apart."""
        from traceferry.symbolication.elf import ElfSymbols

        of_build = self._given.of_build(found.symbols.build_id) if self._given else []
        opened = [one.symbols for one in (found, own) if one is not None] + of_build
        files = [one.binary for one in opened if isinstance(one, ElfSymbols)]
        return (
            found.binary or next((binary for binary in files if not binary.is_debug_file), None),
            found.debug or next((binary for binary in files if binary.is_debug_file), None),
        )

    @cached_property
    def _given(self) -> SymbolIndex[Symbols] | None:
        """Returns what the user gives; files made of binaries before the binaries themselves."""
        opened = [one for source in self._sources if (one := self._opened(source, "symbols_unused")) is not None]
        if not opened:
            return None
        from traceferry.symbolication.choose import SymbolIndex
        from traceferry.symbolication.elf import ElfSymbols

        of_binaries = sorted(opened, key=lambda one: isinstance(one, ElfSymbols) and not one.binary.is_debug_file)
        return SymbolIndex(of_binaries)

    def _opened(self, source: Source, kind: str = "", recorded: str = "") -> Symbols | None:
        """Returns None for a file that cannot be read, which is reported as of this kind. recorded: the path of the
        library, if it is known: parts of its debug information may be beside that, too."""
        from traceferry.symbolication.choose import open_symbols

        try:
            return open_symbols(source, self._debug_files.beside(*([recorded] if recorded else [])))
        except FormatError as error:
            if kind:
                self._trace.report.note(kind, where=source.path, detail=f"{source.path}: {error.message}")
            return None
