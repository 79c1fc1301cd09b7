"""Builds programs of Go as its linker lays them out, from nothing but `struct`: the tables of functions in the layouts
of Go 1.2, 1.16, 1.18 and 1.20, the calls that are inlined, and the description of the module."""

import struct
from collections.abc import Iterable, Sequence
from typing import NamedTuple

BASE, TEXT = 0x40_0000, 0x40_0100
NONE = 0xFFFF_FFFF
MAGIC = {2: 0xFFFF_FFFB, 16: 0xFFFF_FFFA, 18: 0xFFFF_FFF0, 20: 0xFFFF_FFF1}
# (e_machine, R_*_RELATIVE) of x86-64, i386, PowerPC and PowerPC64, by order and bits.
MACHINES = {("<", 64): (62, 8), ("<", 32): (3, 8), (">", 64): (21, 22), (">", 32): (20, 22)}
PCLNTAB, PCLNTAB_OF_PIE = ".gopclntab", ".data.rel.ro.gopclntab"

# (end of the range, value), from the beginning of a function.
Rows = Sequence[tuple[int, int]]


class Call(NamedTuple):
    """A call that is inlined. parent: the number of the call that it is in, -1 for the function; pc: an address of the
    caller, of which file and line are those of the call."""

    name: str
    file: int
    line: int
    parent: int
    pc: int


class Function(NamedTuple):
    name: str
    size: int
    files: Rows
    lines: Rows
    inlined: Rows = ()
    calls: Sequence[Call] = ()


class Placed(NamedTuple):
    """A section. kind: SHT_*; flags: SHF_*."""

    name: str
    data: bytes
    kind: int = 1
    flags: int = 2


def uleb(value: int) -> bytes:
    data = b""
    while value >= 0x80:
        data, value = data + bytes([value & 0x7F | 0x80]), value >> 7
    return data + bytes([value])


class GoProgram:
    """since: of the layout; order, bits: of the processor; pie: addresses are written by the loader alone; header_text:
    whether the header says where the code begins, as up to Go 1.25; files: paths."""

    def __init__(
        self,
        functions: Sequence[Function],
        files: Sequence[str],
        since: int = 20,
        order: str = "<",
        bits: int = 64,
        *,
        pie: bool = False,
        header_text: bool = True,
        module: bool = True,
    ) -> None:
        self.functions, self.files, self.since = functions, files, since
        self.order, self.bits, self.word, self.pie = order, bits, bits // 8, pie
        self.header_text, self.module = header_text, module
        self.pointers: dict[int, int] = {}

    def pack(self, form: str, *values: int) -> bytes:
        return struct.pack(self.order + form.replace("W", "Q" if self.bits == 64 else "I"), *values)

    def starts(self) -> list[int]:
        found = [TEXT]
        for function in self.functions:
            found.append(found[-1] + function.size)
        return found

    # ------------------------------------------------ tables

    def by_pc(self, rows: Rows) -> bytes:
        data, value, pc = b"", -1, 0
        for end, new in rows:
            delta = new - value
            data += uleb(delta << 1 if delta >= 0 else (-delta << 1) - 1) + uleb(end - pc)
            value, pc = new, end
        return data + b"\0"

    def texts(self, texts: Iterable[str], begin: int = 1) -> tuple[bytes, dict[str, int]]:
        data, at = b"\0" * begin, {}
        for text in texts:
            if text not in at:
                at[text] = len(data)
                data += text.encode() + b"\0"
        return data, at

    def tables(self, calls_at: dict[int, int], pcln_at: int) -> tuple[bytes, dict[str, int], dict[str, int]]:
        """Returns (the tables, where names are, where parts are). calls_at: where each function's inlined calls are;
        pcln_at: the address of the tables. Pointers are added to those of the program."""
        names, name_at = self.texts(n for f in self.functions for n in (f.name, *(c.name for c in f.calls)))
        pcs, rows_at = b"\0", {}
        for function in self.functions:
            for rows in (function.files, function.lines, function.inlined):
                if rows and tuple(rows) not in rows_at:
                    rows_at[tuple(rows)] = len(pcs)
                    pcs += self.by_pc(rows)
        if self.since == 2:
            return self._of_go_2(names, name_at, pcs, rows_at, calls_at, pcln_at)
        paths, path_at = self.texts(self.files, 0)
        # The first file of the second package, to which functions belong, is the fourth.
        units = self.pack(f"{3 + len(self.files)}I", NONE, 0, NONE, *(path_at[path] for path in self.files))
        n_header = 8 + self.word * (8 if self.since >= 18 else 7)
        parts, data = {}, bytes(n_header)
        for part, content in (("names", names), ("units", units), ("files", paths), ("pcs", pcs)):
            data += bytes(-len(data) % self.word)
            parts[part] = len(data)
            data += content
        data += bytes(-len(data) % self.word)
        parts["functions"] = len(data)
        entry = 4 if self.since >= 18 else self.word
        n = len(self.functions)
        index, records = b"", b""
        first = entry * (2 * n + 1) + -(entry * (2 * n + 1)) % 8
        for nth, (function, start) in enumerate(zip(self.functions, self.starts(), strict=False)):
            at = first + len(records)
            index += self._place(start, pcln_at + len(data) + len(index)) + self.pack("I" if entry == 4 else "W", at)
            records += self._record(
                function, start, name_at, rows_at, calls_at.get(nth, NONE), pcln_at + len(data) + at
            )
        index += self._place(self.starts()[-1], pcln_at + len(data) + len(index))
        data += index.ljust(first, b"\0") + records
        header = self.pack("IHBB", MAGIC[self.since], 0, 1, self.word) + self.pack("WW", n, len(self.files))
        if self.since >= 18:
            header += self._pointer(TEXT, pcln_at + len(header)) if self.header_text else self.pack("W", 0)
        header += self.pack("5W", *parts.values())
        return header + data[len(header) :], name_at, parts

    def _place(self, address: int, at: int) -> bytes:
        return self.pack("I", address - TEXT) if self.since >= 18 else self._pointer(address, at)

    def _pointer(self, address: int, at: int) -> bytes:
        self.pointers[at] = address
        return self.pack("W", 0 if self.pie else address)

    def _record(
        self,
        function: Function,
        start: int,
        name_at: dict[str, int],
        rows_at: dict[tuple[tuple[int, int], ...], int],
        calls: int,
        at: int,
    ) -> bytes:
        data = self._place(start, at)
        files, lines, inlined = (
            rows_at.get(tuple(rows), 0) for rows in (function.files, function.lines, function.inlined)
        )
        data += self.pack("IIIIIII", name_at[function.name], 0, 0, 0, files, lines, 3)
        if self.since > 2:
            data += self.pack("I", 3)
        if self.since >= 20:
            data += self.pack("I", 1)
        n_data = 5 if self.since == 2 else 4
        data += bytes([0, 0, 0, n_data]) + self.pack("III", 0, 0, inlined)
        if self.since >= 18:
            return data + self.pack(f"{n_data}I", *[NONE] * (n_data - 1), calls)
        data += bytes(-(at + len(data)) % self.word) + bytes(self.word * (n_data - 1))
        data += self._pointer(calls, at + len(data)) if calls != NONE else bytes(self.word)
        return data + bytes(-len(data) % 8)

    def _of_go_2(
        self,
        names: bytes,
        name_at: dict[str, int],
        pcs: bytes,
        rows_at: dict[tuple[tuple[int, int], ...], int],
        calls_at: dict[int, int],
        pcln_at: int,
    ) -> tuple[bytes, dict[str, int], dict[str, int]]:
        """The index comes first; all offsets are of the whole."""
        n = len(self.functions)
        first = 8 + self.word + 2 * n * self.word + self.word + 4
        first += -first % 8
        names_at = first + n * 128
        pcs_at = names_at + len(names)
        files_at = pcs_at + len(pcs) + -(pcs_at + len(pcs)) % 4
        name_at = {name: names_at + at for name, at in name_at.items()}
        rows_at = {rows: pcs_at + at for rows, at in rows_at.items()}
        head = self.pack("IHBB", MAGIC[2], 0, 1, self.word) + self.pack("W", n)
        records = b""
        for nth, (function, start) in enumerate(zip(self.functions, self.starts(), strict=False)):
            at = first + len(records)
            head += self._pointer(start, pcln_at + len(head)) + self.pack("W", at)
            record = self._record(function, start, name_at, rows_at, calls_at.get(nth, NONE), pcln_at + at)
            records += record.ljust(128, b"\0")
        head += self._pointer(self.starts()[-1], pcln_at + len(head)) + self.pack("I", files_at)
        body = (head.ljust(first, b"\0") + records + names + pcs).ljust(files_at, b"\0")
        paths, path_at = self.texts(self.files, 0)
        paths_at = files_at + 4 * (len(self.files) + 1)
        offsets = [paths_at + path_at[path] for path in self.files]
        return body + self.pack(f"{len(offsets) + 1}I", len(offsets) + 1, *offsets) + paths, name_at, {}

    def calls(self, function: Function, name_at: dict[str, int]) -> bytes:
        """The array of the calls that are inlined into a function."""
        of_call = {
            True: lambda call: self.pack("B3xIII", 0, name_at[call.name], call.pc, 1),
            False: lambda call: self.pack("hBxIIII", call.parent, 0, call.file, call.line, name_at[call.name], call.pc),
        }[self.since >= 20]
        return b"".join(of_call(call) for call in function.calls)

    def described(self, address: int, pcln_at: int, parts: dict[str, int], calls_begin: int) -> bytes:
        """The description of the module."""
        if not parts:
            return b""
        data = self._pointer(pcln_at, address)
        for part in ("names", "units", "files", "pcs", "functions", "functions"):
            data += self._pointer(pcln_at + parts[part], address + len(data)) + self.pack("WW", 1, 1)
        ends = self.starts()
        for value in (pcln_at + 9, ends[0], ends[-1], TEXT, ends[-1], *range(ends[-1], ends[-1] + 96, 8), calls_begin):
            data += self._pointer(value, address + len(data))
        return data + bytes(self.word * 40)

    # ------------------------------------------------ the file

    def elf(
        self,
        name: str = PCLNTAB,
        symbols: Sequence[tuple[str, int, int]] = (),
        *,
        sections: bool = True,
        entry: int = TEXT,
        before: bytes = b"",
    ) -> bytes:
        """name: of the section with the tables; symbols: (name, address, size); sections: whether there are headers of
        sections; before: what lies in front of the tables in their section."""
        self.pointers = {}
        text = bytes(self.starts()[-1] - TEXT)
        code_end = TEXT + len(text)
        # Tables take as many bytes whatever is written into them.
        size = len(self.tables(dict.fromkeys(range(len(self.functions)), 0), 0)[0])
        pcln_at = code_end + -code_end % 16 + len(before)
        funcs_at = pcln_at + size + -(pcln_at + size) % 16
        calls_at, at = {}, 0x40
        relative = 0 if self.since >= 18 else funcs_at
        for nth, function in enumerate(self.functions):
            if function.calls:
                calls_at[nth] = relative + at
                at += len(function.calls) * (16 if self.since >= 20 else 20)
        self.pointers = {}
        tables, name_at, parts = self.tables(calls_at, pcln_at)
        funcs = b"\xff" * 0x40 + b"".join(self.calls(function, name_at) for function in self.functions)
        module_at = funcs_at + len(funcs) + -(funcs_at + len(funcs)) % 16
        described = self.described(module_at, pcln_at, parts, funcs_at) if self.module else b""
        rela = b""
        machine, relative_kind = MACHINES[self.order, self.bits]
        if self.pie:
            rela = b"".join(self.pack("WWW", at, relative_kind, to) for at, to in sorted(self.pointers.items()))
        placed = [
            (TEXT, Placed(".text", text, flags=6)),
            (pcln_at - len(before), Placed(name, before + tables)),
            (funcs_at, Placed(".go.func", funcs)),
            (module_at, Placed(".go.module", described, flags=3)),
        ]
        return self._file(placed, rela, machine, entry, symbols if sections else (), sections)

    def _file(
        self,
        placed: Sequence[tuple[int, Placed]],
        rela: bytes,
        machine: int,
        entry: int,
        symbols: Sequence[tuple[str, int, int]],
        sections: bool,
    ) -> bytes:
        wide = self.bits == 64
        n_head, n_segment = (64, 56) if wide else (52, 32)
        loaded = bytearray(TEXT - BASE)
        rows = [(0,) * 10]
        texts = b"\0"

        def row(
            name: str, kind: int, flags: int, address: int, at: int, size: int, link: int = 0, each: int = 0
        ) -> None:
            nonlocal texts
            rows.append((len(texts), kind, flags, address, at, size, link, 0, 1, each))
            texts += name.encode() + b"\0"

        for address, section in placed:
            loaded = loaded.ljust(address - BASE, b"\0") + section.data
            row(section.name, section.kind, section.flags, address, address - BASE, len(section.data))
        loaded += bytes(-len(loaded) % 8)
        segments = [(1, 7, 0, BASE, len(loaded))]
        if rela:
            rela_at = len(loaded)
            loaded += rela
            row(".rela", 4, 2, BASE + rela_at, rela_at, len(rela), 0, 3 * self.word)
            dynamic_at = len(loaded)
            loaded += self.pack("6W", 7, BASE + rela_at, 8, len(rela), 0, 0)
            segments = [(1, 7, 0, BASE, len(loaded)), (2, 6, dynamic_at, BASE + dynamic_at, 6 * self.word)]
        body = bytes(loaded)
        if symbols:
            names, table = b"\0", bytes(24 if wide else 16)
            for name, address, size in symbols:
                fields = (len(names), 0x12, 0, 1, address, size) if wide else (len(names), address, size, 0x12, 0, 1)
                table += self.pack("IBBHQQ" if wide else "IIIBBH", *fields)
                names += name.encode() + b"\0"
            row(".symtab", 2, 0, 0, len(body), len(table), len(rows) + 1, 24 if wide else 16)
            body += table
            row(".strtab", 3, 0, 0, len(body), len(names))
            body += names
        row(".shstrtab", 3, 0, 0, len(body), len(texts) + 10)
        body += texts
        body += bytes(-len(body) % 8)
        section = "IIQQQQIIQQ" if wide else "10I"
        headers = b"".join(self.pack(section, *one) for one in rows) if sections else b""
        ident = b"\x7fELF" + bytes([2 if wide else 1, 1 if self.order == "<" else 2, 1]) + bytes(9)
        at = len(body) if sections else 0
        counts = (n_head, n_segment, len(segments), 64 if wide else 40, len(rows) if sections else 0)
        head = ident + self.pack(
            "HHIWWWI6H",
            3 if self.pie else 2,
            machine,
            1,
            entry,
            n_head,
            at,
            0,
            *counts,
            len(rows) - 1 if sections else 0,
        )
        for kind, flags, offset, address, size in segments:
            if wide:
                head += self.pack("IIQQQQQQ", kind, flags, offset, address, address, size, size, 8)
            else:
                head += self.pack("8I", kind, offset, address, address, size, size, flags, 8)
        return head + body[len(head) :] + headers
