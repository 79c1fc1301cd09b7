"""Builds jitdump files from nothing but `struct`, those with the samply extensions included.

Words are those of perf's jitdump-specification.txt and of samply's extension records. Every record method appends one
record and returns the file, so that calls chain. A record without a time comes STEP after the one before it; a load
without an index counts on. Bytes that the format leaves unused are zero where real producers write zeros, else GARBAGE.
"""

import builtins
import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Self

MAGIC = 0x4A695444
HEADER_BYTES = 40
ARCH_TIMESTAMP = 1
GARBAGE = 0xAA
STEP = 1000

X86_64, S390, AARCH64 = 62, 22, 183

# Record ids: the specification, variant C, the gist and variant B.
LOAD, MOVE, DEBUG_INFO, CLOSE, UNWINDING_INFO = range(5)
INLINE_INFO = 5
DEBUG_INFO2_A = 827346259
TIER = DEBUG_INFO2_B = 827346260
SOURCE = 827346261

# V8 adds the size of an ELF header to every address of its debug info; the pad word of its header says who it is.
V8_BIAS = 0x40
V8_PAD1 = 0xDEADBEEF
V8_EPOCH_US = 1_795_194_426_078_856
# What V8 leaves of a freed file name: the allocator's list pointer and key, NULs among them.
V8_FREED = b"\r\xc3\0\0\0\0\0\0I~\xb8\xffCm\x9ab"
# The table that says nothing: V8 gives it to code that keeps a frame pointer.
BARE_EH_FRAME_HDR = b"\x01\x1b\x03\x3b" + bytes(16)

# function, file, line, column
Place = tuple[str, str | None, int, int]


class Function(NamedTuple):
    """A FunctionRecord with its strings in place; bit 0 of `flags` is read as "show in the JS-only view"."""

    name: str
    file: str
    line: int = 1
    column: int = 0
    flags: int = 0


class Inlined(NamedTuple):
    """An inlined call: who was called, from which line and column of the caller, and where its code is."""

    function: Function
    call: tuple[int, int]
    ranges: Sequence[tuple[int, int]]
    inlined: Sequence["Inlined"] = ()


class JitDump:
    """A jitdump file that grows. `builtins.bytes` because the method of that name hides the type in this class.

    `bias` is added to every address of DEBUG_INFO, `pad_to` is the multiple to which those records are filled up.
    `timestamp` is the header's and means nothing to the records, whose clock starts at `start`. A `header_bytes`
    above 40 leaves a gap before the first record.
    """

    def __init__(
        self,
        version: int = 1,
        byte_order: str = "<",
        *,
        pid: int = 1000,
        elf_mach: int = X86_64,
        timestamp: int = 0,
        flags: int = 0,
        pad1: int = 0,
        header_bytes: int = HEADER_BYTES,
        start: int = 1_000_000_000,
        bias: int = 0,
        pad_to: int = 1,
    ) -> None:
        self.pid = pid
        self.now = start
        self._order = byte_order
        self._bias = bias
        self._pad_to = pad_to
        self._next_index = 0
        self._code: dict[int, tuple[int, int]] = {}  # address: (index, size) of the last load or move to it
        header = self._pack("IIIIIIQQ", MAGIC, version, header_bytes, elf_mach, pad1, pid, timestamp, flags)
        self._data = bytearray(header + builtins.bytes([GARBAGE]) * (header_bytes - HEADER_BYTES))

    @classmethod
    def v8(cls, pid: int = 1000, **options: Any) -> "JitDump":
        """A dump as Node writes it: biased debug info, padded; the header on the wall clock, in microseconds."""
        return cls(pid=pid, timestamp=V8_EPOCH_US, pad1=V8_PAD1, bias=V8_BIAS, pad_to=8, **options)

    # ---------------------------------------------------------------- the file

    def bytes(self) -> builtins.bytes:
        """The whole file."""
        return builtins.bytes(self._data)

    @property
    def position(self) -> int:
        """Where the next record begins."""
        return len(self._data)

    def append(self, data: builtins.bytes) -> Self:
        """Add bytes as they are."""
        self._data += data
        return self

    def raw(
        self, record_id: int, payload: builtins.bytes = b"", ts: int | None = None, size: int | None = None
    ) -> Self:
        """Any record; `size` states a wrong total_size."""
        self.now = self.now + STEP if ts is None else ts
        total = 16 + len(payload) if size is None else size
        return self.append(self._pack("IIQ", record_id, total, self.now) + payload)

    def unknown(self, payload: builtins.bytes = b"\1\2\3", record_id: int = 99, ts: int | None = None) -> Self:
        """A record of an id that nobody has given a meaning."""
        return self.raw(record_id, payload, ts)

    def _pack(self, fields: str, *values: int) -> builtins.bytes:
        return struct.pack(self._order + fields, *values)

    # ---------------------------------------------------------------- the records of the specification

    def load(
        self,
        name: str | builtins.bytes,
        addr: int,
        size: int = 16,
        *,
        code: builtins.bytes | None = None,
        ts: int | None = None,
        index: int | None = None,
        pid: int | None = None,
        tid: int | None = None,
        vma: int | None = None,
        trailing: builtins.bytes = b"",
    ) -> Self:
        """JIT_CODE_LOAD; without `code`, `size` bytes of it. The record is never padded: `trailing` is."""
        code = b"\x90" * size if code is None else code
        index = self._next_index if index is None else index
        self._next_index = index + 1
        self._code[addr] = index, len(code)
        pid = self.pid if pid is None else pid
        ids = pid, pid if tid is None else tid
        fields = self._pack("IIQQQQ", *ids, addr if vma is None else vma, addr, len(code), index)
        return self.raw(LOAD, fields + _nul(name) + code + trailing, ts)

    def move(
        self,
        old: int,
        new: int,
        *,
        size: int | None = None,
        index: int | None = None,
        ts: int | None = None,
        pid: int | None = None,
        tid: int | None = None,
        vma: int | None = None,
    ) -> Self:
        """JIT_CODE_MOVE; index and size are those of the code that was put at `old`, by default."""
        known = self._code.pop(old, (0, 0))
        index = known[0] if index is None else index
        size = known[1] if size is None else size
        self._code[new] = index, size
        pid = self.pid if pid is None else pid
        ids = pid, pid if tid is None else tid
        return self.raw(MOVE, self._pack("IIQQQQQ", *ids, new if vma is None else vma, old, new, size, index), ts)

    def debug_info(
        self,
        addr: int,
        entries: Iterable[tuple[int, int, int, str | builtins.bytes]],
        *,
        same_file_marker: bool = False,
        freed: builtins.bytes = b"",
        padding: int | None = None,
        count: int | None = None,
        ts: int | None = None,
    ) -> Self:
        r"""JIT_CODE_DEBUG_INFO: (address, line, column, file) for each entry, before the bias.

        `same_file_marker` writes "\xff\0" for the file of the entry before. `freed` stands in the place of the first
        bytes of every file name, as V8_FREED does in V8's. `padding` counts zero bytes at the end; `count` states a
        wrong nr_entry.
        """
        entries, payload, previous = list(entries), b"", None
        for at, line, column, file in entries:
            name = _nul(file)
            if same_file_marker and file == previous:
                name = b"\xff\0"
            name = freed[: len(name) - 1] + name[min(len(freed), len(name) - 1) :]
            payload += self._pack("QII", at + self._bias, line, column) + name
            previous = file
        payload = self._pack("QQ", addr, len(entries) if count is None else count) + payload
        padding = -len(payload) % self._pad_to if padding is None else padding
        return self.raw(DEBUG_INFO, payload + builtins.bytes(padding), ts)

    def unwinding(
        self,
        eh_frame: builtins.bytes = b"",
        eh_frame_hdr: builtins.bytes = BARE_EH_FRAME_HDR,
        *,
        mapped_size: int = 0,
        header_first: bool = False,
        pad_to: int = 8,
        ts: int | None = None,
    ) -> Self:
        """JIT_CODE_UNWINDING_INFO: the header stands last, as all producers have it; the text says `header_first`."""
        table = eh_frame_hdr + eh_frame if header_first else eh_frame + eh_frame_hdr
        payload = self._pack("QQQ", len(table), len(eh_frame_hdr), mapped_size) + table
        return self.raw(UNWINDING_INFO, _filled(payload, pad_to), ts)

    def close(self, ts: int | None = None) -> Self:
        """JIT_CODE_CLOSE."""
        return self.raw(CLOSE, b"", ts)

    # ---------------------------------------------------------------- variant A

    def debug_info2_a(
        self,
        files: Sequence[str],
        names: Sequence[str],
        functions: Sequence[tuple[int, int, int, int, int]],
        inline_calls: Sequence[tuple[int, int, int, int, int]] = (),
        ranges: Sequence[tuple[int, int]] = (),
        lines: Sequence[tuple[int, int, int, int]] = (),
        *,
        ts: int | None = None,
        **counts: int,
    ) -> Self:
        """SAMPLY_JIT_CODE_DEBUG_INFO2 from the rows of its lists; `counts` states wrong header fields, by name.

        functions: name, file, start line, start column, flags. inline_calls: depth, range count, function, call line,
        call column. ranges: start offset, size. lines: code offset, file, line, column.
        """
        file_list, name_list = _string_list(files), _string_list(names)
        header = {
            "file_count": len(files),
            "file_list_size": len(file_list),
            "function_names_count": len(names),
            "function_names_list_size": len(name_list),
            "function_count": len(functions),
            "inline_call_record_count": len(inline_calls),
            "range_count": len(ranges),
            "line_record_count": len(lines),
        }
        if unknown := counts.keys() - header.keys():
            raise ValueError(f"no such fields: {sorted(unknown)}")
        rows = [*functions, *inline_calls, *ranges, *lines]
        records = b"".join(self._pack(f"{len(row)}I", *row) for row in rows)
        return self.raw(
            DEBUG_INFO2_A, self._pack("8I", *(header | counts).values()) + file_list + name_list + records, ts
        )

    def inline_tree_a(
        self,
        outer: Function,
        lines: Sequence[tuple[int, str, int, int]],
        inlined: Sequence[Inlined] = (),
        *,
        ts: int | None = None,
    ) -> Self:
        """The same record from a tree of inlined calls; lines: code offset, file, line, column."""
        files, names, functions = _Numbers(), _Numbers(), _Numbers()
        calls: list[tuple[int, int, int, int, int]] = []
        ranges: list[tuple[int, int]] = []

        def walk(nodes: Sequence[Inlined], depth: int) -> None:
            for node in nodes:
                calls.append((depth, len(node.ranges), functions[node.function], *node.call))
                ranges.extend(node.ranges)
                walk(node.inlined, depth + 1)

        assert functions[outer] == 0, "the list begins with the outer function"
        walk(inlined, 0)
        return self.debug_info2_a(
            functions=[(names[f.name], files[f.file], f.line, f.column, f.flags) for f in functions],
            inline_calls=calls,
            ranges=ranges,
            lines=[(offset, files[file], line, column) for offset, file, line, column in lines],
            files=list(files),
            names=list(names),
            ts=ts,
        )

    # ---------------------------------------------------------------- variants B and C

    def debug_info2_b(
        self,
        addr: int,
        code_offsets: Sequence[tuple[int, int]],
        positions: Sequence[tuple[int, int, int, int, int, int, int]],
        strings: Sequence[str],
        *,
        padding: int = 0,
        counts: tuple[int, int, int] | None = None,
        ts: int | None = None,
    ) -> Self:
        """Variant B from its rows; `counts` states wrong ones.

        code_offsets: offset, position. positions: caller position or -1, function (a string), file (a string) or -1,
        start line and column of the function, line, column.
        """
        payload = self._pack("4Q", addr, *(counts or (len(code_offsets), len(positions), len(strings))))
        payload += b"".join(self._pack("II", *row) for row in code_offsets)
        payload += b"".join(self._pack("iIiIIII", *row) for row in positions)
        payload += b"".join(_nul(text) for text in strings)
        return self.raw(DEBUG_INFO2_B, payload + builtins.bytes(padding), ts)

    def inline_stacks_b(self, addr: int, stacks: Mapping[int, Sequence[Place]], *, ts: int | None = None) -> Self:
        """Variant B from {code offset: (function, file or None, line, column), outermost first}."""
        strings, positions = _Numbers(), _Numbers()
        code_offsets = []
        for offset, stack in stacks.items():
            caller = -1
            for function, file, line, column in stack:
                names = strings[function], strings[file] if file is not None else -1
                caller = positions[caller, *names, 0, 0, line, column]
            code_offsets.append((offset, caller))
        return self.debug_info2_b(addr, code_offsets, list(positions), list(strings), ts=ts)

    def inline_info_c(
        self,
        addr: int,
        stack: Sequence[tuple[int, int, str, str]],
        *,
        padding: int = 0,
        count: int | None = None,
        ts: int | None = None,
    ) -> Self:
        """Variant C: the stack from this address on: line, column, function, file, innermost first. None ends one."""
        payload = self._pack("QQ", addr, len(stack) if count is None else count)
        for line, column, function, file in stack:
            payload += self._pack("II", line, column) + _nul(function) + _nul(file)
        return self.raw(INLINE_INFO, payload + builtins.bytes(padding), ts)

    def inline_info_c_first_draft(
        self,
        start: int,
        end: int,
        depth: int,
        function: str,
        call: tuple[str, int, int],
        *,
        call_file: int = 0,
        padding: int = 0,
        ts: int | None = None,
    ) -> Self:
        """Variant C as it was at first: an inlined function, its addresses, and the file, line and column of its call.

        `call_file` is the number that stood beside the file's name; nobody has said of what.
        """
        file, line, column = call
        payload = self._pack("QQ4I", start, end, call_file, line, column, depth) + _nul(function) + _nul(file)
        return self.raw(INLINE_INFO, payload + builtins.bytes(padding), ts)

    # ---------------------------------------------------------------- tiers and sources

    def tier(self, tier_id: int, color_index: int, name: str | builtins.bytes, *, ts: int | None = None) -> Self:
        """SAMPLY_JIT_TIER in our reading."""
        return self.raw(TIER, _filled(self._pack("II", tier_id, color_index) + _nul(name), 4), ts)

    def source(
        self, path: str, text: str | builtins.bytes, *, nul_terminated_variant: bool = False, ts: int | None = None
    ) -> Self:
        """SAMPLY_EMBEDDED_SOURCE_FILE in our reading; the variant is path, NUL, text to the end."""
        path_bytes, text_bytes = _utf8(path), _utf8(text)
        if nul_terminated_variant:
            return self.raw(SOURCE, path_bytes + b"\0" + text_bytes, ts)
        sizes = self._pack("II", len(path_bytes), len(text_bytes))
        return self.raw(SOURCE, _filled(sizes + path_bytes + text_bytes, 4), ts)


class _Numbers(dict[Any, int]):
    """Gives every new key the next number."""

    def __missing__(self, key: Any) -> int:
        self[key] = number = len(self)
        return number


def _utf8(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text


def _nul(text: str | bytes) -> bytes:
    return _utf8(text) + b"\0"


def _filled(data: bytes, to: int) -> bytes:
    """Zero bytes up to a multiple of `to`."""
    return data + bytes(-len(data) % to)


def _string_list(strings: Sequence[str]) -> bytes:
    return _filled(b"".join(_nul(text) for text in strings), 4)
