"""Map: symbols of the kernel that runs on this machine, and of its modules."""

from __future__ import annotations

import re
import sys
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from traceferry.common.patterns import compiled_later
from traceferry.files.answers import Blob, checked
from traceferry.importers.perf.fields import numbers_at
from traceferry.model import Array
from traceferry.symbolication.build_id import build_id_in

KALLSYMS = Path("/proc/kallsyms")
KERNEL_NOTES = Path("/sys/kernel/notes")
ADDRESS_DIGITS = (8, 16)
FUNCTION_TYPES = b"tTwW"
# Where the kernel's linker script ends code: no functions, and what follows is data.
ENDS = frozenset(("_etext", "_einittext", "__exittext_end"))
# The padding in front of a function (CONFIG_CALL_PADDING) has a symbol of its own. A frame that was interrupted at a
# function's first instruction, before it was called, is looked up one byte in front of it, which is there.
PADDING = "__pfx_"
MODULE_FILE = compiled_later(r"\.ko(\.\w+)?$")


def running_kernel() -> str:
    """Returns the build id of the kernel that runs here, in hex."""
    return build_id_in(KERNEL_NOTES.read_bytes(), "<" if sys.byteorder == "little" else ">")


def module_name(path: str) -> str:
    """Returns the name of the module that is mapped: nf_tables of `[nf_tables]` and of
    `/lib/modules/6.1.0/kernel/nf-tables.ko.xz`."""
    return MODULE_FILE.sub("", Path(path).name.strip("[]")).replace("-", "_")


class KernelSymbols:
    """The functions in the text of /proc/kallsyms: lines `address type name`, and `[module]` behind those of a module.
    Nothing where the addresses are hidden, which are 0 then."""

    def __init__(self, text: bytes) -> None:
        self._text = text
        data = np.frombuffer(text, np.uint8)
        width = max(text.find(b" "), 0)
        line_at = np.concatenate(([0], np.flatnonzero(data == ord("\n")) + 1))
        line_end = np.append(line_at[1:] - 1, len(data))
        # A name is behind the address, a blank, the type and a blank.
        is_line = (line_end > line_at + width + 3) & (width in ADDRESS_DIGITS)
        line_at, line_end = line_at[is_line], line_end[is_line]
        is_function = np.isin(data[line_at + width + 1], np.frombuffer(FUNCTION_TYPES, np.uint8))
        is_function &= (data[line_at + width] == ord(" ")) & (data[line_at + width + 2] == ord(" "))
        line_at, line_end = line_at[is_function], line_end[is_function]
        address = _hex(data, line_at, width)
        of_module = data[line_end - 1] == ord("]") if len(line_end) else np.zeros(0, bool)
        order = np.argsort(address, kind="stable")
        order = order[address[order] > 0]
        self._address, self._name_at, self._end = address[order], line_at[order] + width + 3, line_end[order]
        self._of_module = of_module[order]
        self._tables: dict[str, tuple[Array, Array]] = {}
        self._asked: set[int] = set()
        self._named: set[str] = set()

    @property
    def is_empty(self) -> bool:
        """Whether the addresses are hidden."""
        return len(self._address) == 0

    def address_of(self, name: str) -> int | None:
        """Returns the address of a symbol of the kernel itself."""
        self._named.add(name)
        found = re.search(rb"^([0-9a-f]+) [tTwW] %s$" % re.escape(name.encode()), self._text, re.MULTILINE)
        return int(found[1], 16) if found else None

    def used(self) -> bytes:
        """Returns the lines that answer what was asked so far: all of the addresses that were found; where there are
        none, the first, which says that addresses are not hidden."""
        asked = np.array(sorted(self._asked), np.uint64)
        is_used = np.isin(self._address, asked)
        is_used[:1] |= not is_used.any()
        ends = self._end[is_used].tolist()
        lines = [self._text[self._text.rfind(b"\n", 0, end) + 1 : end] for end in ends]
        for name in sorted(self._named):
            lines += re.findall(rb"^[0-9a-f]+ [tTwW] %s$" % re.escape(name.encode()), self._text, re.MULTILINE)
        return b"".join(line + b"\n" for line in dict.fromkeys(lines))

    def lookup(self, module: str, addresses: Array) -> list[tuple[int, str]]:
        """Returns (start, name) of the last function of the module that starts at or before each address, (0, "")
        where there is none, and behind the end of a section of code. module: as `module_name` says, "" is the kernel
        itself."""
        starts, rows = self._table(module)
        nth = np.searchsorted(starts, addresses, "right") - 1
        self._asked.update(starts[nth[nth >= 0]].tolist())
        found = ((int(starts[n]), self._name(int(rows[n]))) if n >= 0 else (0, "") for n in nth.tolist())
        return [(start, name) if name else (0, "") for start, name in found]

    def anywhere(self, addresses: Array) -> list[str]:
        """Returns the name of the last function at or before each address (uint64), whoever has it, with its module
        behind it as in the list; "" where there is none."""
        nth = np.searchsorted(self._address, addresses, "right") - 1
        self._asked.update(self._address[nth[nth >= 0]].tolist())
        named = ((self._name(n), self._module(n) if self._of_module[n] else "") if n >= 0 else ("", "") for n in nth)
        return [f"{name} [{module}]" if name and module else name for name, module in named]

    def _table(self, module: str) -> tuple[Array, Array]:
        """Returns (addresses, rows), one row for each address; of several names of one address the last in the
        alphabet."""
        table = self._tables.get(module)
        if table is None:
            rows = np.array(self._by_module.get(module, []), np.int64) if module else np.flatnonzero(~self._of_module)
            last = np.flatnonzero(np.diff(self._address[rows], append=np.uint64(0)) != 0)
            table = self._tables[module] = self._address[rows[last]], rows[last]
        return table

    @cached_property
    def _by_module(self) -> dict[str, list[int]]:
        """Returns the rows of each module, rising. A machine has hundreds of modules: looking through all rows for each
        takes minutes."""
        rows: dict[str, list[int]] = {}
        for row in np.flatnonzero(self._of_module).tolist():
            rows.setdefault(self._module(row), []).append(row)
        return rows

    def _name(self, row: int) -> str:
        address = self._address[row]
        same = range(int(np.searchsorted(self._address, address)), row + 1)
        of_module = self._of_module[row]
        names = {self._words(nth)[0] for nth in same if self._of_module[nth] == of_module}
        return max(names - ENDS, default="").removeprefix(PADDING)

    def _module(self, row: int) -> str:
        return self._words(row)[-1].strip("[]")

    def _words(self, row: int) -> list[str]:
        return self._text[self._name_at[row] : self._end[row]].decode("ascii", "replace").split()


def packed_kernel(kernel: KernelSymbols | None) -> Any:
    return Blob("kallsyms", kernel.used()) if kernel is not None else None


def unpacked_kernel(value: Any) -> KernelSymbols | None:
    return KernelSymbols(bytes(checked(value, memoryview))) if value is not None else None


def _hex(data: Array, at: Array, width: int) -> Array:
    """uint64 numbers of 8 or 16 hex digits at these offsets."""
    value = _eight_digits(data, at)
    return value if width == 8 else value << np.uint64(32) | _eight_digits(data, at + 8)


def _eight_digits(data: Array, at: Array) -> Array:
    """Digits are the low four bits of 0 to 9, and 9 more than these of a to f, which have 0x40."""
    text = numbers_at(data, at, ">u8")
    low, ones, nine = np.uint64(0x0F0F0F0F0F0F0F0F), np.uint64(0x0101010101010101), np.uint64(9)
    value = (text & low) + (text >> np.uint64(6) & ones) * nine
    for bits, mask in ((4, 0x00FF00FF00FF00FF), (8, 0x0000FFFF0000FFFF), (16, 0xFFFFFFFF)):
        value = (value | value >> np.uint64(bits)) & np.uint64(mask)
    return value
