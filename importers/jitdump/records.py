"""The records of a dump as text: what `traceferry dump` prints."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from traceferry.files.source import Source
from traceferry.importers.jitdump.decode import checked_header, next_whole, scan, source_parts
from traceferry.importers.jitdump.inlines import is_variant_b, parse_a, parse_b, parse_record_c
from traceferry.importers.jitdump.layout import (
    DEBUG_ENTRY_SIZE,
    RECORD_HEADER_SIZE,
    SAME_FILE,
    Header,
    Id,
    Structs,
    structs,
)

MAX_ENTRIES = 16
MAX_TEXT = 80


def records(source: Source, offset: int) -> Iterator[str]:
    """Yields a line for the header and for each record from `offset` on."""
    header = checked_header(source)
    if offset < header.total_size:
        yield (
            f"{0:#010x} header version {header.version} of {header.total_size} bytes, elf_mach {header.elf_mach}, "
            f"pad1 {header.pad1:#x}, pid {header.pid}, timestamp {header.timestamp}, flags {header.flags:#x}, "
            f"{'little' if header.byte_order == '<' else 'big'} endian"
        )
    layout = structs(header.byte_order)
    following = end = header.total_size
    while following >= 0:
        for record_id, begin, end, ts in _whole_records(source.data, header, following):
            if begin >= offset:
                payload = source.data[begin + RECORD_HEADER_SIZE : end]
                yield f"{begin:#010x} {ts} {_describe(record_id, payload, layout)}"
        following = next_whole(source.data, header, end)
        if following >= 0:
            yield f"{end:#010x} {following - end} damaged bytes"
    if end < len(source.data):
        yield f"{end:#010x} {len(source.data) - end} bytes of an incomplete record"


def _whole_records(data: memoryview, header: Header, start: int) -> Iterator[tuple[int, int, int, int]]:
    """Yields (id, begin, end, time stamp) of each record as long as they are whole."""
    for ids, begins, sizes, timestamps in scan(data, header, start):
        yield from zip(*(column.tolist() for column in (ids, begins, begins + sizes, timestamps)), strict=True)


def _describe(record_id: int, payload: memoryview, layout: Structs) -> str:
    if record_id not in RECORDS:
        return f"record {record_id} of {len(payload)} bytes, unknown"
    fixed, describe = RECORDS[record_id]
    shown = describe(payload, layout) if not fixed or len(payload) >= getattr(layout, fixed).size else ""
    return shown or f"{Id(record_id).name} of {len(payload)} bytes, damaged"


def _load(payload: memoryview, layout: Structs) -> str:
    pid, tid, vma, address, size, index = layout.load.unpack_from(payload)
    fixed = layout.load.size
    name = _text(bytes(payload[fixed : max(len(payload) - size, fixed)]).split(b"\0")[0])
    return f"LOAD {pid}/{tid} vma {vma:#x} code_addr {address:#x} code_size {size} code_index {index} {name}"


def _move(payload: memoryview, layout: Structs) -> str:
    pid, tid, vma, old, new, size, index = layout.move.unpack_from(payload)
    return f"MOVE {pid}/{tid} vma {vma:#x} old {old:#x} new {new:#x} code_size {size} code_index {index}"


def _debug_info(payload: memoryview, layout: Structs) -> str:
    address, n = layout.pair64.unpack_from(payload)
    data = bytes(payload)
    at = layout.pair64.size
    entries: list[str] = []
    while len(entries) < min(n, MAX_ENTRIES) and at + DEBUG_ENTRY_SIZE < len(data):
        (entry,) = layout.pair64.unpack_from(data, at)[:1]
        line, column = layout.pair32.unpack_from(data, at + 8)
        end = data.find(0, at + DEBUG_ENTRY_SIZE)
        if end < 0:
            break
        name = data[at + DEBUG_ENTRY_SIZE : end]
        entries.append(f"{entry:#x} {'same file' if name == SAME_FILE else _text(name)}:{line}:{column}")
        at = end + 1
    more = f", and {n - len(entries)} more" if n > len(entries) else ""
    return f"DEBUG_INFO code_addr {address:#x} nr_entry {n}: {', '.join(entries)}{more}"


def _unwinding(payload: memoryview, layout: Structs) -> str:
    size, header_size, mapped = layout.unwinding.unpack_from(payload)
    return f"UNWINDING_INFO unwinding_size {size} eh_frame_hdr_size {header_size} mapped_size {mapped}"


def _debug_info2(payload: memoryview, layout: Structs) -> str:
    table = parse_a(payload, layout)
    if table is None:
        return ""
    flags = [f for _, _, _, _, f in layout.function_a.iter_unpack(_functions_of(payload, layout))]
    functions = ", ".join(
        f"{f.name} {f.file}:{f.line}:{f.column} flags {flag:#x}"
        for f, flag in zip(table.function_list[:MAX_ENTRIES], flags, strict=False)
    )
    return f"DEBUG_INFO2 (A) {len(table.line_starts)} lines, functions: {functions}"


def _functions_of(payload: memoryview, layout: Structs) -> memoryview:
    _, files_size, _, names_size, n_functions, *_ = layout.info2_a.unpack_from(payload)
    at = layout.info2_a.size + files_size + names_size
    return payload[at : at + layout.function_a.size * n_functions]


def _tier_or_variant_b(payload: memoryview, layout: Structs) -> str:
    if is_variant_b(payload, layout):
        address, n_offsets, n_positions, n_strings = layout.info2_b.unpack_from(payload)
        table = parse_b(payload, layout)
        functions = f": {', '.join(table.functions()[:MAX_ENTRIES])}" if table else ", damaged"
        return (
            f"DEBUG_INFO2 (B) code_addr {address:#x} {n_offsets} offsets, {n_positions} positions, "
            f"{n_strings} strings{functions}"
        )
    tier_id, color = layout.pair32.unpack_from(payload)
    return f"TIER {tier_id} color {color} {_text(bytes(payload[8:]).split(bytes(1))[0])}"


def _inline_info(payload: memoryview, layout: Structs) -> str:
    parsed = parse_record_c(payload, layout)
    if parsed is None:
        return f"INLINE_INFO of {len(payload)} bytes, an unsupported draft"
    address, stack = parsed
    locations = " > ".join(f"{p.function.name} {p.file}:{p.line}:{p.column}" for p in stack[:MAX_ENTRIES])
    return f"INLINE_INFO (C) code_addr {address:#x} {locations}"


def _embedded_source(payload: memoryview, layout: Structs) -> str:
    parts = source_parts(payload, layout)
    return f"EMBEDDED_SOURCE_FILE {len(parts[1])} bytes: {_text(parts[0])}" if parts else ""


def _text(data: bytes) -> str:
    """Returns printable text of a bearable length."""
    text = data[: MAX_TEXT * 4].decode("utf-8", "replace")
    shown = "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text[:MAX_TEXT])
    return shown + ("..." if len(text) > MAX_TEXT else "")


# The fixed part that a record must have, as `Structs` names it, and what describes it: "" where it is damaged.
RECORDS: dict[int, tuple[str, Callable[[memoryview, Structs], str]]] = {
    Id.LOAD: ("load", _load),
    Id.MOVE: ("move", _move),
    Id.DEBUG_INFO: ("pair64", _debug_info),
    Id.CLOSE: ("", lambda _, layout: "CLOSE"),
    Id.UNWINDING_INFO: ("unwinding", _unwinding),
    Id.INLINE_INFO: ("", _inline_info),
    Id.DEBUG_INFO2: ("info2_a", _debug_info2),
    Id.TIER: ("pair32", _tier_or_variant_b),
    Id.EMBEDDED_SOURCE_FILE: ("", _embedded_source),
}
