"""Map: entries of .debug_info as compiled code reads them (`_entries.pyx`), and their names."""

from __future__ import annotations

from functools import cache

from traceferry.symbolication.dwarf._entries import Entries, Forms
from traceferry.symbolication.dwarf.debug_info import DebugInfo, context_name, lambda_name
from traceferry.symbolication.dwarf.forms import SIZES, Sections, text_at
from traceferry.symbolication.dwarf.numbers import ATTRIBUTES, TAGS
from traceferry.symbolication.dwarf.units import Entry, Units

# What _entries.pyx calls sizes that are not fixed.
SIZE_CODES = {
    **{"uleb": -1, "sleb": -2, "string": -3, "indirect": -4, "block": -5, "block 1": -6, "block 2": -7, "block 4": -8},
    **{"address": -9, "offset": -10, "ref_addr": -11},
}
# What it calls attributes that it reads, and entries.
SLOTS = {
    **{"DW_AT_name": 1, "DW_AT_linkage_name": 2, "DW_AT_MIPS_linkage_name": 3, "DW_AT_low_pc": 4, "DW_AT_high_pc": 5},
    **{"DW_AT_ranges": 6, "DW_AT_sibling": 7, "DW_AT_abstract_origin": 8, "DW_AT_specification": 9},
    **{"DW_AT_call_file": 10, "DW_AT_call_line": 11, "DW_AT_language": 12, "DW_AT_producer": 13},
    **{"DW_AT_str_offsets_base": 14, "DW_AT_addr_base": 15, "DW_AT_GNU_addr_base": 15, "DW_AT_rnglists_base": 16},
    **{"DW_AT_dwo_name": 17, "DW_AT_GNU_dwo_name": 17, "DW_AT_stmt_list": 18, "DW_AT_comp_dir": 19},
    **{"DW_AT_decl_line": 20, "DW_AT_decl_column": 21, "DW_AT_call_column": 22},
    **{"DW_AT_GNU_discriminator": 23, "DW_AT_decl_file": 24},
}
KINDS = {
    **{"DW_TAG_subprogram": 1, "DW_TAG_inlined_subroutine": 2, "DW_TAG_lexical_block": 3, "DW_TAG_partial_unit": 5},
    **{"DW_TAG_structure_type": 4, "DW_TAG_class_type": 4, "DW_TAG_namespace": 6, "DW_TAG_union_type": 7},
}
# What it knows of units.
READABLE, WITHOUT_CODE, UNUSUAL, SPLIT = range(4)
# How it finds names; the last two are added to others.
ELSEWHERE, LAMBDA, IN_SHARED, QUALIFIED = 4, 5, 16, 32
TEXT_SECTIONS = ("", "info", "debug_str", "debug_line_str")
# Added to the offsets of entries, and numbers of units, of the file that several share.
SHARED = 1 << 62
SECTIONS_OF_ENTRIES = ("info", "abbrev", "ranges", "rnglists", "addr", "str_offsets", "str", "line_str")


@cache
def forms() -> Forms:
    meanings = {meaning: nth for nth, meaning in enumerate(SIZES, 1)}
    by_code = {
        form: (size if isinstance(size, int) else SIZE_CODES[size], meanings[meaning])
        for meaning, sizes in SIZES.items()
        for form, size in sizes.items()
    }
    slots = {ATTRIBUTES[name]: slot for name, slot in SLOTS.items()}
    return Forms(by_code, slots, {TAGS[name]: kind for name, kind in KINDS.items()})


def entries_of(sections: Sections) -> Entries:
    """Returns the entries of a file, and of the one that it shares with others, where that is here and undamaged."""
    entries = _entries_alone(sections)
    shared = _entries_alone(sections.shared) if sections.shared is not None else None
    if shared is None or shared.find():
        entries.share(shared)
    return entries


def _entries_alone(sections: Sections) -> Entries:
    return Entries([sections.held[name].bytes for name in SECTIONS_OF_ENTRIES], forms(), sections.order == "big")


def text_of(sections: Sections, kind: int, at: int) -> str:
    """Returns a text where compiled code found it: see `Entries.names`. Raises FormatError where it has no end."""
    if kind >= IN_SHARED:
        return text_of(sections.shared, kind - IN_SHARED, at) if sections.shared is not None else ""
    if kind > 1:
        return sections.text(TEXT_SECTIONS[kind], at)
    return text_at(sections.info, at)[0] if kind else ""


class Names:
    """The names of entries. units: those of the file of `entries`."""

    def __init__(self, info: DebugInfo, units: Units, entries: Entries) -> None:
        self._info = info
        self._units = units
        self._sections = units.sections
        self._entries = entries

    def text(self, kind: int, at: int) -> str:
        """Returns a text as `text_of` does."""
        return text_of(self._sections, kind, at)

    def qualified(self, kind: int, at: int, entry: int) -> str:
        """Returns the text with the names of what is around the entry in front. Raises FormatError."""
        contexts = self._entries.contexts(entry)
        if contexts is None:
            found = self._entry(entry)
            return self._info.qualified(found, self.text(kind, at)) if found is not None else ""
        around = [self._context(*context) for context in reversed(contexts)]
        name = "::".join([*around, self.text(kind, at)])
        self._sections.spend(len(name))
        return name

    def of(self, entry: int) -> str:
        """Returns the name of an entry that compiled code does not read; "" for none. Raises FormatError."""
        found = self._entry(entry)
        return self._info.name_of(found) if found is not None else ""

    def _entry(self, entry: int) -> Entry | None:
        units = self._units.shared if entry >= SHARED else self._units
        return units.entry_at(entry % SHARED) if units is not None else None

    def _context(self, kind: int, value: int) -> str:
        return lambda_name(value) if kind == LAMBDA else context_name(self.text(kind, value))
