"""The machine code of a trace as viewers ask for it: by library and address. Code of JIT compilers comes from the
recording, that of libraries from files of their build."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from traceferry.apps.view.disassembly import Instruction, disassemble
from traceferry.common.errors import UsageError
from traceferry.model import LibraryReader, NativeFunction, Trace
from traceferry.symbolication.code_map import CodeMap, CodeObject

# Of one function; compilers make far smaller ones.
MAX_SIZE = 1 << 22
# What is shown of a function whose end nothing tells.
DEFAULT_SIZE = 256
THUMB = 1  # in the address of a function of ARM's 16-bit instructions


@dataclass(frozen=True)
class Listing:
    """arch: the processor's name; start: of the first byte, relative to the library's start; size: in bytes."""

    arch: str
    start: int
    size: int
    instructions: list[Instruction]


class TraceCode:
    """lib: a row of the trace's `libs`; addresses: relative to the library's start, as in the trace's frames.

    libs: the row of each name and id.
    """

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._code_map = CodeMap(trace)
        columns = zip(trace.libs["name"].tolist(), trace.libs["debug_id"].tolist(), strict=True)
        self.libs = {(self._text(name), self._text(debug_id)): lib for lib, (name, debug_id) in enumerate(columns)}

    def lib_of(self, name: str, debug_id: str) -> int:
        """Raises UsageError if the trace has no such library."""
        lib = self.libs.get((name, debug_id))
        if lib is None:
            raise UsageError(f"the recording has no library {name} with id {debug_id or 'unknown'}")
        return lib

    def functions_at(self, lib: int, addresses: Sequence[int]) -> list[NativeFunction | None]:
        """Returns them with inlined ones; None where nothing is known."""
        codes = [self._code_map.in_library(lib, address) for address in addresses]
        stacks = [
            self._code_map.frames_at(code.row, address - code.start) if code is not None else ()
            for address, code in zip(addresses, codes, strict=True)
        ]
        calls = self._code_map.calls(stacks)
        native = [address for address, code in zip(addresses, codes, strict=True) if code is None]
        found = dict(zip(native, self._functions_of_library(lib, native), strict=True))
        return [
            NativeFunction(tuple(calls[frame] for frame in stack), code.start, code.size) if code else found[address]
            for address, code, stack in zip(addresses, codes, stacks, strict=True)
        ]

    def sources_at(self, lib: int, address: int) -> list[int]:
        """Returns rows of the trace's sources that the code there is of, if a JIT compiler made it."""
        code = self._code_map.in_library(lib, address)
        if code is None:
            return []
        return self._code_map.sources_of(self._code_map.frames_at(code.row, address - code.start))

    def listing(self, lib: int, address: int, size: int, to_end: bool) -> Listing:
        """Returns the instructions of [address, address + size), and with to_end those until the function's end.

        Raises UsageError where there is no code, or its processor is not supported.
        """
        arch = self._text(int(self._trace.libs["arch"][lib]))
        code = self._code_map.in_library(lib, address)
        if code is not None:
            return self._listing_of_jitted(code, arch, address, code.start + code.size - address if to_end else size)
        return self._listing_of_library(lib, arch, address, size, to_end)

    # ------------------------------------------------------------ code objects

    def _listing_of_jitted(self, code: CodeObject, arch: str, address: int, size: int) -> Listing:
        offset = address - code.start
        data = self._code_map.bytes_of(code.row)[offset : offset + min(size, MAX_SIZE)]
        if not len(data):
            raise UsageError("the recording does not hold the bytes of this code")
        first = self._code_map.first_mapping(code.row)
        if first is None:
            return Listing(arch, address, len(data), disassemble(data, arch, address, lambda _: {}))
        begin, pid, ts = first

        def names(targets: Sequence[int]) -> dict[int, str]:
            # Jumps inside are shown by the addresses that the viewer shows; the function's start has its name.
            own = {t: f"{code.start + t - begin:#x}" for t in targets if begin < t < begin + code.size}
            others = [target for target in targets if target not in own]
            held = self._code_map.in_process(pid, ts, others)
            named = {
                target: with_offset(self._code_map.function_and_tier(found.row), target - found.start)
                for target, found in held.items()
            }
            return own | self._names_of_mapped(pid, ts, [t for t in others if t not in named]) | named

        return Listing(arch, address, len(data), disassemble(data, arch, begin + offset, names))

    def _names_of_mapped(self, pid: int, ts: int, targets: Sequence[int]) -> dict[int, str]:
        names: dict[int, str] = {}
        for reader in self._trace.library_readers:
            for target in targets:
                held = reader.holder_of(pid, ts, target)
                if held is not None and (name := _names(reader, held[0], [held[1]]).get(held[1])):
                    names[target] = name
        return names

    # ------------------------------------------------------------ libraries

    def _listing_of_library(self, lib: int, arch: str, address: int, size: int, to_end: bool) -> Listing:
        if to_end:
            (function,) = self._functions_of_library(lib, [address])
            end = function.start + function.size if function is not None else 0
            size = end - address if end > address else max(size, DEFAULT_SIZE)
        is_thumb = arch == "arm" and address & THUMB
        begin = address - THUMB if is_thumb else address
        found = (reader.bytes_of(lib, begin, min(size, MAX_SIZE)) for reader in self._trace.library_readers)
        data = next(filter(None, found), b"")
        if not data:
            name = self._text(int(self._trace.libs["name"][lib]))
            raise UsageError(f"there is no file of the recorded build of {name}: give it with --symbols")

        def names(targets: Sequence[int]) -> dict[int, str]:
            return self._names_in_library(lib, [t for t in targets if not begin < t < begin + len(data)])

        return Listing(arch, begin, len(data), disassemble(data, "thumb" if is_thumb else arch, begin, names))

    def _names_in_library(self, lib: int, addresses: Sequence[int]) -> dict[int, str]:
        """Returns the names of the functions around whatever is inlined there."""
        return next(filter(None, (_names(reader, lib, addresses) for reader in self._trace.library_readers)), {})

    def _functions_of_library(self, lib: int, addresses: Sequence[int]) -> Sequence[NativeFunction | None]:
        for reader in self._trace.library_readers:
            found = reader.functions_at(lib, addresses)
            if any(found):
                return found
        return [None] * len(addresses)

    def _text(self, index: int) -> str:
        return self._trace.strings[index] if index >= 0 else ""


def with_offset(name: str, offset: int) -> str:
    return f"{name}+{offset:#x}" if offset else name


def _names(reader: LibraryReader, lib: int, addresses: Sequence[int]) -> dict[int, str]:
    """Returns the names at addresses of a library of which something is known."""
    return {
        address: with_offset(function.frames[0][0], address - function.start)
        for address, function in zip(addresses, reader.functions_at(lib, addresses), strict=True)
        if function is not None and function.frames[0][0]
    }
