"""Builds LLVM XRay logs and instrumented ELF files from nothing but `struct`.

Bytes that the format leaves unused are filled with GARBAGE,
because real writers leave uninitialised stack there: a reader that looks at them must fail.
"""

import builtins
import struct
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Self

GARBAGE = 0xAA
RECORD_BYTES = 16

# Function record kinds, also the sled kinds 0-3 of the map.
ENTER, EXIT, TAIL_EXIT, ENTER_ARG = range(4)
# Sled kinds that only the map has.
CUSTOM_SLED, TYPED_SLED = 4, 5

# Metadata record kinds.
NEW_BUFFER, END_OF_BUFFER, NEW_CPU, TSC_WRAP, WALLTIME = range(5)
CUSTOM_EVENT, CALL_ARGUMENT, BUFFER_EXTENTS, TYPED_EVENT, PID = range(5, 10)

CONSTANT_TSC, NONSTOP_TSC = 1, 2

OMITTABLE = frozenset({"extents", "new_buffer", "walltime", "pid", "end"})


class TypedRecord(bytes):
    """A typed event; its own type, so that `Fdr.buffer` can count them for the extents bug."""


def _pad(data: bytes, size: int) -> bytes:
    return data + bytes([GARBAGE]) * (size - len(data))


def _header(version: int, log_type: int, big: bool, flags: int, frequency: int, free_form: bytes) -> bytes:
    """The 32 bytes of the file header."""
    order = ">" if big else "<"
    return struct.pack(f"{order}HHIQ", version, log_type, flags, frequency) + _pad(free_form, 16)


def _tsc_bits(flags: int, big: bool) -> int:
    """constant_tsc and nonstop_tsc where the byte order puts them: bits 0, 1 or 31, 30."""
    if not big:
        return flags
    return bool(flags & CONSTANT_TSC) << 31 | bool(flags & NONSTOP_TSC) << 30


class _Log:
    """A file that grows; `builtins.bytes` because the method of that name hides the type in this class."""

    def __init__(self, header: builtins.bytes) -> None:
        self._data = bytearray(header)

    def append(self, data: builtins.bytes) -> Self:
        """Add bytes as they are."""
        self._data += data
        return self

    def bytes(self) -> builtins.bytes:
        """The whole file."""
        return builtins.bytes(self._data)


class Fdr(_Log):
    """A flight-data-recorder log; record methods return bytes, `buffer` appends one thread buffer."""

    def __init__(
        self,
        version: int = 5,
        big: bool = False,
        frequency: int = 2_000_000_000,
        buffer_size: int = 4096,
        flags: int = CONSTANT_TSC | NONSTOP_TSC,
    ) -> None:
        if not 1 <= version <= 5:
            raise ValueError(f"no FDR version {version}")
        self.version = version
        self.big = big
        self.buffer_size = buffer_size
        self._order = ">" if big else "<"
        free_form = struct.pack(f"{self._order}Q", buffer_size)
        super().__init__(_header(version, 1, big, _tsc_bits(flags, big), frequency, free_form))

    def buffer(
        self,
        tid: int,
        pid: int = 0,
        walltime: tuple[int, int] | None = (0, 0),
        records: Sequence[bytes] = (),
        *,
        extents: int | None = None,
        cut_extents: bool = False,
        omit: Iterable[str] = (),
        stale: bytes = b"\xaa",
    ) -> Self:
        """Append one thread buffer in the order of the version.

        `extents` replaces the value only; `cut_extents` reproduces the typed-event bug of the runtimes: the
        value and the bytes both lack 16 bytes for each typed event. `omit` leaves out metadata records by
        their OMITTABLE name. `stale` fills the tail of a version 1 buffer, repeated and cut.
        """
        left_out = set(omit)
        if unknown := left_out - OMITTABLE:
            raise ValueError(f"cannot omit {sorted(unknown)}")
        if walltime is None:
            left_out.add("walltime")
        preamble = {"new_buffer": self.new_buffer(tid), "walltime": self.walltime(*(walltime or (0, 0)))}
        if self.version >= 3:
            preamble["pid"] = self.pid(pid)
        body = b"".join([*(preamble[name] for name in preamble if name not in left_out), *records])

        if self.version == 1:
            if extents is not None or cut_extents:
                raise ValueError("version 1 has no extents")
            return self.append(self._fixed_size(body, "end" not in left_out, stale))
        if cut_extents:
            missing = RECORD_BYTES * sum(isinstance(record, TypedRecord) for record in records)
            body = body[: len(body) - missing]
        if "extents" not in left_out:
            self._data += self.extents(len(body) if extents is None else extents)
        return self.append(body)

    def _fixed_size(self, body: bytes, end: bool, stale: bytes) -> bytes:
        """A version 1 buffer: it occupies exactly the header's buffer size."""
        if end:
            body += self.end_of_buffer()
        room = self.buffer_size - len(body)
        if room < 0:
            raise ValueError(f"the records need {-room} bytes more than the buffer size {self.buffer_size}")
        return body + (stale * (room // len(stale) + 1))[:room]

    def _metadata(self, kind: int, fields: str = "", *values: int) -> bytes:
        first = 0x80 | kind if self.big else kind << 1 | 1
        return _pad(struct.pack(f"{self._order}B{fields}", first, *values), RECORD_BYTES)

    def _function(self, kind: int, function_id: int, delta: int) -> bytes:
        if not 0 <= function_id < 1 << 28:
            raise ValueError(f"function id {function_id:#x} has more than 28 bits")
        word = kind << 28 | function_id if self.big else function_id << 4 | kind << 1
        return struct.pack(f"{self._order}II", word, delta)

    def enter(self, function_id: int, delta: int) -> bytes:
        return self._function(ENTER, function_id, delta)

    def exit(self, function_id: int, delta: int) -> bytes:
        return self._function(EXIT, function_id, delta)

    def tail_exit(self, function_id: int, delta: int) -> bytes:
        return self._function(TAIL_EXIT, function_id, delta)

    def enter_arg(self, function_id: int, delta: int) -> bytes:
        """Enter of a function whose argument follows; runtimes up to version 3 use `enter`."""
        return self._function(ENTER_ARG, function_id, delta)

    def argument(self, value: int) -> bytes:
        return self._metadata(CALL_ARGUMENT, "Q", value)

    def new_buffer(self, tid: int) -> bytes:
        return self._metadata(NEW_BUFFER, "i", tid)

    def end_of_buffer(self) -> bytes:
        return self._metadata(END_OF_BUFFER)

    def new_cpu(self, cpu: int, tsc: int) -> bytes:
        return self._metadata(NEW_CPU, "HQ", cpu, tsc)

    def tsc_wrap(self, tsc: int) -> bytes:
        return self._metadata(TSC_WRAP, "Q", tsc)

    def walltime(self, sec: int, usec: int) -> bytes:
        return self._metadata(WALLTIME, "qi", sec, usec)

    def extents(self, size: int) -> bytes:
        return self._metadata(BUFFER_EXTENTS, "Q", size)

    def pid(self, pid: int) -> bytes:
        return self._metadata(PID, "i", pid)

    def custom(self, payload: bytes, *, tsc: int = 0, delta: int = 0, cpu: int = 0, size: int | None = None) -> bytes:
        """A custom event; the version picks from tsc, delta and cpu. `size` states a wrong length."""
        length = len(payload) if size is None else size
        if self.version >= 5:
            record = self._metadata(CUSTOM_EVENT, "ii", length, delta)
        elif self.version == 4:
            record = self._metadata(CUSTOM_EVENT, "iQH", length, tsc, cpu)
        else:
            record = self._metadata(CUSTOM_EVENT, "iQ", length, tsc)
        return record + payload

    def typed(
        self, event_type: int, payload: bytes, *, tsc: int = 0, delta: int = 0, size: int | None = None
    ) -> TypedRecord:
        """A typed event; versions below 5 use version 3's layout. `size` states a wrong length."""
        length = len(payload) if size is None else size
        if self.version >= 5:
            record = self._metadata(TYPED_EVENT, "iiH", length, delta, event_type)
        else:
            record = self._metadata(TYPED_EVENT, "iQH", length, tsc, event_type)
        return TypedRecord(record + payload)

    def raw(self, data: bytes) -> bytes:
        """Any bytes in the place of a record."""
        return data


class Basic(_Log):
    """A basic-mode ("naive") log; every method appends one 32-byte record."""

    def __init__(
        self,
        version: int = 3,
        big: bool = False,
        frequency: int = 2_000_000_000,
        flags: int = CONSTANT_TSC | NONSTOP_TSC,
    ) -> None:
        if not 1 <= version <= 3:
            raise ValueError(f"no basic-mode version {version}")
        self.version = version
        self._order = ">" if big else "<"
        # Section 2: the other flag bits of basic logs are garbage (0xaaaaaaab was seen).
        garbage = 0x2AAAAAAA if big else 0xAAAAAAA8
        super().__init__(_header(version, 0, big, _tsc_bits(flags, big) | garbage, frequency, b""))

    def _call(self, kind: int, func: int, tsc: int, tid: int, pid: int, cpu: int) -> Self:
        # Section 4: before version 3 the pid's place is padding, garbage beside arguments.
        if self.version < 3:
            pid = 0xAAAAAAAA if kind == ENTER_ARG else 0
        fields = struct.pack(f"{self._order}HBBiQII", 0, cpu, kind, func, tsc, tid, pid)
        return self.append(_pad(fields, 32))

    def enter(self, func: int, tsc: int, tid: int, pid: int = 0, cpu: int = 0) -> Self:
        return self._call(ENTER, func, tsc, tid, pid, cpu)

    def exit(self, func: int, tsc: int, tid: int, pid: int = 0, cpu: int = 0) -> Self:
        return self._call(EXIT, func, tsc, tid, pid, cpu)

    def tail_exit(self, func: int, tsc: int, tid: int, pid: int = 0, cpu: int = 0) -> Self:
        if self.version < 2:
            raise ValueError("version 1 has no tail exits")
        return self._call(TAIL_EXIT, func, tsc, tid, pid, cpu)

    def enter_arg(self, func: int, tsc: int, tid: int, pid: int = 0, cpu: int = 0) -> Self:
        return self._call(ENTER_ARG, func, tsc, tid, pid, cpu)

    def argument(self, func: int, tid: int, pid: int, value: int) -> Self:
        """The argument of the same thread's last `enter_arg`."""
        if self.version < 3:
            pid = 0xAAAAAAAA
        unused = b"\xaa\xaa"
        fields = struct.pack(f"{self._order}H2siIIQ", 1, unused, func, tid, pid, value)
        return self.append(_pad(fields, 32))


class Profile(_Log):
    """A profile of profiling mode; `block` appends the call paths of a thread."""

    def __init__(self, big: bool = False, pid: int = 1, version: int = 0x20180424, written: int = 0) -> None:
        self._order = ">" if big else "<"
        self._n_blocks = 0
        super().__init__(struct.pack(f"{self._order}4Q", 0x7872617970726F66, version, written, pid))

    def block(self, tid: int, records: Sequence[tuple[Sequence[int], int, int]], size: int | None = None) -> Self:
        """records: (function ids, the called one first; calls; ticks). `size` states a wrong one, and cuts."""
        order = self._order
        body = b"".join(
            struct.pack(f"{order}{len(path)}iiQQ", *path, 0, calls, ticks % (1 << 64)) for path, calls, ticks in records
        )
        size = 16 + len(body) if size is None else size
        header = struct.pack(f"{order}IIQ", size, self._n_blocks, tid)
        self._n_blocks += 1
        return self.append(header + body[: max(size - 16, 0)])


class Machine(NamedTuple):
    """What an ELF file says of its processor; `relative` is the number of its R_*_RELATIVE relocation."""

    number: int
    bits: int
    big: bool
    relative: int | None
    addend_in_place: bool = False


# Numbers of the ELF processor supplements (elf.h). The addend of a REL entry (i386, ARM) stays in the word.
MACHINES = {
    "x86_64": Machine(62, 64, False, 8),
    "i386": Machine(3, 32, False, 8, addend_in_place=True),
    "aarch64": Machine(183, 64, False, 1027),
    "arm": Machine(40, 32, False, 23, addend_in_place=True),
    "s390x": Machine(22, 64, True, 12),
    "ppc64": Machine(21, 64, True, 22),
    "ppc64le": Machine(21, 64, False, 22),
    "mips": Machine(8, 32, True, None),
    "mipsel": Machine(8, 32, False, None),
    "mips64": Machine(8, 64, True, None),
    "hexagon": Machine(164, 32, False, 35),
    "riscv64": Machine(243, 64, False, 3),
    "loongarch64": Machine(258, 64, False, 3),
}

Sled = int | tuple[int, int]
Function = tuple[str | None, int, Sequence[Sled]]

SLED_STRIDE = 16
_PAGE = 0x1000
_TEXT_LIMIT = 1 << 24
_ET_EXEC, _ET_DYN = 2, 3
_SHT_PROGBITS, _SHT_SYMTAB, _SHT_STRTAB, _SHT_RELA, _SHT_REL = 1, 2, 3, 4, 9
_SHF_ALLOC, _SHF_EXECINSTR = 2, 4


class _Section(NamedTuple):
    name: str
    kind: int
    flags: int
    address: int
    offset: int
    data: bytes
    link: int = 0
    info: int = 0
    align: int = 1
    entry_size: int = 0


class _Layout:
    """The struct formats of one ELF class and byte order."""

    def __init__(self, machine: Machine, big: bool) -> None:
        order = ">" if big else "<"
        self.wide = machine.bits == 64
        self.word_bytes = machine.bits // 8
        word = "Q" if self.wide else "I"
        self.ehdr = struct.Struct(f"{order}HHI{word}{word}{word}IHHHHHH")
        self.phdr = struct.Struct(f"{order}IIQQQQQQ" if self.wide else f"{order}IIIIIIII")
        self.shdr = struct.Struct(f"{order}II{word * 4}II{word * 2}")
        self.symbol = struct.Struct(f"{order}IBBHQQ" if self.wide else f"{order}IIIBBH")
        self.rela = struct.Struct(f"{order}{word * 3}")
        self.rel = struct.Struct(f"{order}{word * 2}")
        self.sled = struct.Struct(f"{order}{word * 2}BBB")
        self.sled_bytes = 4 * self.word_bytes
        self.ident = bytes([0x7F, *b"ELF", 2 if self.wide else 1, 2 if big else 1, 1]) + bytes(9)
        self.head_bytes = len(self.ident) + self.ehdr.size + self.phdr.size


def sled_addresses(address: int, sleds: Sequence[Sled]) -> list[tuple[int, int]]:
    """(kind, address) of each sled: as given, or SLED_STRIDE apart from the function's start."""
    return [
        sled if isinstance(sled, tuple) else (sled, address + index * SLED_STRIDE) for index, sled in enumerate(sleds)
    ]


def elf_with_instr_map(
    functions: Sequence[Function],
    *,
    machine: str = "x86_64",
    big: bool | None = None,
    pie: bool = True,
    version: int = 2,
    relocations: bool = False,
) -> bytes:
    """An ELF file with `xray_instr_map`, `.text`, a symbol table and one PT_LOAD.

    Functions are (name or None, address, sleds); their order is that of the map, so function ids count from 1
    along it. A sled is its kind, or (kind, address). `relocations` moves the absolute addresses of map
    versions 0 and 1 into `.rela.dyn` and leaves zero words (i386, arm: `.rel.dyn`, the words keep addends).
    `big` overrides the byte order of the machine.
    """
    target = MACHINES[machine]
    layout = _Layout(target, target.big if big is None else big)
    _check(functions, version, relocations, target)

    spans = [
        (address, max([address, *(at for _, at in sled_addresses(address, sleds))]) + SLED_STRIDE)
        for _, address, sleds in functions
    ] or [(_PAGE, _PAGE)]
    text_start, text_end = min(start for start, _ in spans), max(end for _, end in spans)
    # File offset 0 is mapped at `base`, which keeps offset and address congruent as a loader wants them.
    base = (text_start - layout.head_bytes) // _PAGE * _PAGE
    if base < 0 or text_end - text_start > _TEXT_LIMIT:
        raise ValueError("function addresses must be above the ELF header and within 16 MiB of each other")

    text = _Section(
        ".text", _SHT_PROGBITS, _SHF_ALLOC | _SHF_EXECINSTR, text_start, text_start - base,
        bytes(text_end - text_start), align=16,
    )  # fmt: skip
    map_address = _align(text_end, 16)
    words, entries = _map_entries(functions, map_address, version, layout)
    if relocations and not target.addend_in_place:
        entries = _without_words(entries, layout)
    sections = [
        text,
        _Section("xray_instr_map", _SHT_PROGBITS, _SHF_ALLOC, map_address, map_address - base, entries, align=16),
    ]
    if relocations:
        address = _align(map_address + len(entries), 8)
        sections.append(_relocation_section(words, target, layout, base, address))
    loaded_end = sections[-1].offset + len(sections[-1].data)
    sections += _symbol_sections(functions, spans, layout, _align(loaded_end, 8), len(sections) + 1)
    return _write(sections, target, layout, _ET_DYN if pie else _ET_EXEC, base, loaded_end)


def _check(functions: Sequence[Function], version: int, relocations: bool, target: Machine) -> None:
    if version not in (0, 1, 2):
        raise ValueError(f"no map entry version {version}")
    if relocations and version == 2:
        raise ValueError("version 2 entries are relative to their own place and need no relocations")
    if relocations and target.relative is None:
        raise ValueError("this machine has no relative relocation")
    if any(address >= 1 << target.bits for _, address, _ in functions):
        raise ValueError(f"an address does not fit {target.bits} bits")


def _align(value: int, to: int) -> int:
    return -(-value // to) * to


def _map_entries(
    functions: Sequence[Function], map_address: int, version: int, layout: _Layout
) -> tuple[list[tuple[int, int]], bytes]:
    """The map's bytes, and the (place, address) of every word in it."""
    words: list[tuple[int, int]] = []
    out = bytearray()
    mask = (1 << 8 * layout.word_bytes) - 1
    for _, function, sleds in functions:
        for kind, sled in sled_addresses(function, sleds):
            place = map_address + len(out)
            places = place, place + layout.word_bytes
            stored = [
                (address - at if version == 2 else address) & mask
                for at, address in zip(places, (sled, function), strict=True)
            ]
            words += zip(places, (sled, function), strict=True)
            always_instrument = 1
            entry = layout.sled.pack(*stored, kind, always_instrument, version)
            out += _pad(entry, layout.sled_bytes)
    return words, bytes(out)


def _without_words(entries: bytes, layout: _Layout) -> bytes:
    """Zero both address words of every entry, as a linker does whose relocations hold the addends."""
    head = 2 * layout.word_bytes
    return b"".join(
        bytes(head) + entries[at + head : at + layout.sled_bytes] for at in range(0, len(entries), layout.sled_bytes)
    )


def _relocation_section(
    words: list[tuple[int, int]], target: Machine, layout: _Layout, base: int, address: int
) -> _Section:
    info = target.relative or 0
    if target.addend_in_place:
        data = b"".join(layout.rel.pack(place, info) for place, _ in words)
        name, kind, entry_size = ".rel.dyn", _SHT_REL, layout.rel.size
    else:
        data = b"".join(layout.rela.pack(place, info, addend) for place, addend in words)
        name, kind, entry_size = ".rela.dyn", _SHT_RELA, layout.rela.size
    return _Section(name, kind, _SHF_ALLOC, address, address - base, data, align=8, entry_size=entry_size)


def _symbol_sections(
    functions: Sequence[Function], spans: list[tuple[int, int]], layout: _Layout, offset: int, index: int
) -> list[_Section]:
    """`.symtab` and `.strtab`; a function without a name gets no symbol."""
    strings = bytearray(b"\0")
    symbols = bytearray(layout.symbol.size)
    function_info, visibility, text_index = 0x12, 0, 1  # STB_GLOBAL, STT_FUNC
    # A function may stand in several runs of the map; it has one symbol all the same.
    sizes = {function[:2]: end - start for function, (start, end) in zip(functions, spans, strict=False)}
    for (name, address), size in sizes.items():
        if name is None:
            continue
        head = function_info, visibility, text_index
        values = (address, size, *head) if not layout.wide else (*head, address, size)
        symbols += layout.symbol.pack(len(strings), *values)
        strings += name.encode() + b"\0"
    symtab = _Section(
        ".symtab", _SHT_SYMTAB, 0, 0, offset, bytes(symbols),
        link=index + 1, info=1, align=8, entry_size=layout.symbol.size,
    )  # fmt: skip
    return [symtab, _Section(".strtab", _SHT_STRTAB, 0, 0, offset + len(symbols), bytes(strings))]


def _write(
    sections: list[_Section], target: Machine, layout: _Layout, file_type: int, base: int, loaded_end: int
) -> bytes:
    """The file: header, program header, sections at their offsets, section headers."""
    names = b"\0" + b"".join(section.name.encode() + b"\0" for section in sections) + b".shstrtab\0"
    last = sections[-1]
    sections = [*sections, _Section(".shstrtab", _SHT_STRTAB, 0, 0, last.offset + len(last.data), names)]
    table_offset = _align(sections[-1].offset + len(names), 8)

    out = bytearray(table_offset)
    entry = next(section.address for section in sections if section.name == ".text")
    flags = 0
    out[:16] = layout.ident
    phdr_offset = 16 + layout.ehdr.size
    layout.ehdr.pack_into(
        out, 16, file_type, target.number, 1, entry, phdr_offset, table_offset, flags, phdr_offset,
        layout.phdr.size, 1, layout.shdr.size, len(sections) + 1, len(sections),
    )  # fmt: skip
    load, read_execute = 1, 5
    if layout.wide:
        segment = load, read_execute, 0, base, base, loaded_end, loaded_end, _PAGE
    else:
        segment = load, 0, base, base, loaded_end, loaded_end, read_execute, _PAGE
    layout.phdr.pack_into(out, phdr_offset, *segment)

    headers = bytearray(layout.shdr.size)
    for section in sections:
        out[section.offset : section.offset + len(section.data)] = section.data
        name_offset = names.index(b"\0" + section.name.encode() + b"\0") + 1
        headers += layout.shdr.pack(
            name_offset, section.kind, section.flags, section.address, section.offset, len(section.data),
            section.link, section.info, section.align, section.entry_size,
        )  # fmt: skip
    return bytes(out + headers)
