"""Reads the expected.json of the dumps with samply extensions (captures/jit/samply-ext), typed.

What the fields mean, found by decoding the four dumps by hand; every rule below holds for all of their 420 loads:

- A record is named by its number in the file, from 0, of whatever id.
- `tiers`: the JIT_TIER records in order. `color` is None where the index has none.
- `sources`: the EMBEDDED_SOURCE_FILE records in order. `not_embedded`: the paths of frames that have no text.
- `code`: one for each LOAD, in order. `name` is the load's. `tier` is that of the last JIT_TIER record between the
  load before and this one; None: there is none, and the name may have a prefix.
- `info` says which debug info holds, A, B or C; None: none was given. Debug info names the outermost frame, otherwise
  than the load does (`f` for `JS:*f /a.js:1:1`); without it, that frame has the load's name.
- `column_base`: from what the columns of this debug info count. Lines and columns are the record's own numbers, so
  for base 0 the model's column is one more; for base 1, column 0 is unknown. Line 0 is unknown in all of them.
- `addresses`: half-open in time. `from_ns` is the LOAD's time, then that of each MOVE; `to_ns` is the time of the MOVE
  or of the load or move of another object that overlaps its bytes, None: it lives on. CLOSE ends nothing. Code of
  size 0 ends nothing, and has no probes.
- `probes`: offsets in the code, and the stack there, outermost first. None in the place of file, line and column: the
  dump says none: no debug info, or an offset before the first line record (A), code offset (B), record (C). One frame
  is there all the same: in A under the debug info's name, in B and C under the load's. The specification calls these
  undecided: comparisons may leave them out. The file "" is another thing, that of builtins: A writes it as the
  empty string, B as file -1, with line 0 and column 0.
- `sources` of a code object: for each path that its frames can have, the number of the embedded source it shows: the
  last that stands before the LOAD, else the first after it; None: no text. Paths that no frame can have are not
  listed: in A those of neither a line record nor a function that calls an inlined one.
- `v1`: is there a plain DEBUG_INFO record as well? In none of the four.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple


class Place(NamedTuple):
    """A frame: file, line and column are None together where the dump says nothing."""

    function: str
    file: str | None
    line: int | None
    column: int | None


class Probe(NamedTuple):
    """An offset in the code and its stack, outermost first."""

    offset: int
    stack: tuple[Place, ...]


class Address(NamedTuple):
    """Where the code was, from when until when; None: to the end."""

    addr: int
    from_ns: int
    to_ns: int | None


class Tier(NamedTuple):
    """A tier as one record defines it."""

    id: int
    name: str
    color_index: int
    color: str | None


class Source(NamedTuple):
    """An embedded source file."""

    path: str
    text: str
    ns: int
    record: int


@dataclass(frozen=True, slots=True)
class Code:
    """One load."""

    record: int
    name: str
    code_index: int
    tid: int
    size: int
    addresses: tuple[Address, ...]
    tier: Tier | None
    info: str | None
    column_base: int | None
    sources: dict[str, int | None]
    probes: tuple[Probe, ...]
    v1: bool

    def model_place(self, place: Place) -> tuple[str, int | None, int | None]:
        """(file, line, column) as the model has them: both count from 1, None is unknown."""
        if place.file is None or not place.line:
            return place.file or "", None, None
        column = (place.column or 0) + (1 - (self.column_base or 0))
        return place.file, place.line, column or None


@dataclass(frozen=True, slots=True)
class Expected:
    """One dump."""

    dump: Path
    byte_order: str  # as `struct` writes it
    records: dict[str, int]  # kind: number
    close_ns: int | None
    tiers: tuple[tuple[int, Tier], ...]  # record, tier
    sources: tuple[Source, ...]
    not_embedded: frozenset[str]
    code: tuple[Code, ...]


def read(path: str | Path) -> Expected:
    """An expected.json; its dump stands beside it."""
    given: dict[str, Any] = json.loads(Path(path).read_text())
    return Expected(
        dump=Path(path).parent / given["dump"],
        byte_order={"little": "<", "big": ">"}[given["endian"]],
        records=given["records"],
        close_ns=given["close_time"],
        tiers=tuple((tier["record"], _tier(tier)) for tier in given["tiers"]),
        sources=tuple(
            Source(source["path"], source["text"], source["time"], source["record"]) for source in given["sources"]
        ),
        not_embedded=frozenset(given["not_embedded"]),
        code=tuple(map(_code, given["code"])),
    )


def _tier(given: dict[str, Any]) -> Tier:
    return Tier(given["id"], given["name"], given["color_index"], given["color"])


def _code(given: dict[str, Any]) -> Code:
    return Code(
        record=given["record"],
        name=given["name"],
        code_index=given["code_index"],
        tid=given["tid"],
        size=given["size"],
        addresses=tuple(Address(one["addr"], one["from"], one["to"]) for one in given["addresses"]),
        tier=_tier(given["tier"]) if given["tier"] else None,
        info=given["info"],
        column_base=given["column_base"],
        sources=given["sources"],
        probes=tuple(Probe(offset, tuple(Place(*frame) for frame in stack)) for offset, stack in given["probes"]),
        v1=given["v1"],
    )
