"""Map: which process and thread is which: numbers that are text, and numbers that are taken."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from traceferry.common.patterns import compiled_later

MAIN = "GeckoMain"
FLAG_VERSION = 46
# "123" and, of the second process of that number, "123.1"
NUMBER = compiled_later(r"(-?[0-9]{1,18})(?:\.[0-9]+)?")
MAX_NUMBER = (1 << 53) - 1
SIZES = " sizes"


def number_of(value: Any) -> int | None:
    """Returns the number that an id is; None: it is none."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value if abs(value) <= MAX_NUMBER else None
    if isinstance(value, float):
        return int(value) if abs(value) <= MAX_NUMBER else None
    found = NUMBER.fullmatch(value) if isinstance(value, str) else None
    number = int(found[1]) if found else None
    return number if number is not None and abs(number) <= MAX_NUMBER else None


def is_main(members: dict[str, Any], version: int, is_gecko: bool) -> bool:
    """Whether a thread is its process's main one: before version 46 its name, or its number, tells."""
    if not is_gecko and (version >= FLAG_VERSION or "isMainThread" in members):
        return bool(members.get("isMainThread"))
    pid, tid = members.get("pid"), members.get("tid")
    return members.get("name") == MAIN or isinstance(pid, str) or (pid is not None and pid == tid)


@dataclass
class Numbers:
    """Gives numbers to what has none of its own."""

    taken: set[int] = field(default_factory=set)

    def own(self, wanted: int | None) -> tuple[int, bool]:
        """Returns (the number, whether it is the wanted one), which is taken from now on."""
        if wanted is not None and wanted not in self.taken:
            self.taken.add(wanted)
            return wanted, True
        number = max((one for one in self.taken if one < MAX_NUMBER), default=0) + 1
        number = number if number > 0 else 1
        while number in self.taken:
            number += 1
        self.taken.add(number)
        return number, False
