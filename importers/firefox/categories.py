"""Map: categories of a profile. Those whose subcategory is a JIT tier are tiers of the model."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from traceferry.common.patterns import compiled_later
from traceferry.importers.firefox.layout import DEFAULT_CATEGORIES, JAVASCRIPT, OTHER
from traceferry.model import Array, TraceBuilder
from traceferry.native.distinct import distinct_with_places
from traceferry.symbolication.code_mapping import add_tier
from traceferry.symbolication.tiers import Tier

# Subcategories and values of `implementation` that are tiers, as SpiderMonkey, V8, JavaScriptCore and samply name them.
TIER = compiled_later(
    r"(?:Blinterp|Baseline(?: Interpreter)?|Interpreter|Ion(?:Monkey)?|Ignition|Sparkplug|Maglev|Turbofan|LLInt|DFG|FTL"
    r"|JIT)(?: \([^)]*\))?",
    re.IGNORECASE,
)
COLORS = {
    "transparent", "purple", "green", "orange", "yellow", "lightblue", "blue", "brown", "magenta", "red", "lightred",
    "darkgrey", "grey", "gray", "lightgreen",
}  # fmt: skip
IMPLEMENTATIONS = {"ion": "Ion", "baseline": "Baseline", "interpreter": "Interpreter", "blinterp": "Blinterp"}
TIER_COLOR = "green"
# The exporter's name of "Idle": the viewer takes a category of this name for the absence of work.
OUR_IDLE = "idle"
Tiers = Mapping[tuple[int, int], tuple[int, int]]


class Categories:
    """The categories of a profile as rows of the trace. `default`: the number of the one of what has none; `rows`: the
    trace's of each, and behind them that of JavaScript's; `names`, `colors`: of each. tiers: those that are tiers, with
    the category of their frames, where the profile tells."""

    def __init__(self, trace: TraceBuilder, listed: Any, tiers: Tiers | None = None) -> None:
        self._trace, self._tiers = trace, tiers
        self.are_listed = isinstance(listed, list) and bool(listed)
        given = [_category(one) for one in listed] if self.are_listed else []
        given = given or [(name, color, []) for name, color in DEFAULT_CATEGORIES]
        if tiers is not None:
            given = [("Idle" if name == OUR_IDLE else name, color, parts) for name, color, parts in given]
        self.names, self.colors, self._within = (list(column) for column in zip(*given, strict=True))
        of_grey = [nth for nth, color in enumerate(self.colors) if color == "grey"]
        self.default = self.names.index(OTHER) if OTHER in self.names else (of_grey or [0])[0]
        self.javascript = len(self.names)
        if not self.are_listed:
            self.names.append(JAVASCRIPT[0])
            self.colors.append(JAVASCRIPT[1])
            self._within.append([])
        self._rows: dict[tuple[int, int], tuple[int, int]] = {}

    def __len__(self) -> int:
        return len(self.names)

    def rows(self, category: Array, subcategory: Array) -> tuple[Array, Array]:
        """Returns (category, tier) in the trace of pairs of numbers, int32."""
        width = int(subcategory.max(initial=-1)) + 2
        both = category * width + subcategory + 1
        known, place = distinct_with_places(both)
        pairs = np.array([self._row(one // width, one % width - 1) for one in known.tolist()], np.int32).reshape(-1, 2)
        found = pairs[place]
        return found[:, 0], found[:, 1]

    def _row(self, category: int, subcategory: int) -> tuple[int, int]:
        key = category, subcategory
        if key not in self._rows:
            whole, name = self.names[category], self._part(category, subcategory)
            if self._tiers is not None:
                found = self._tiers.get(key)
                tier = self._tier_of(name or whole, whole, self.colors[category]) if found is not None else -1
                self._rows[key] = self._category(*(found or key)), tier
            elif TIER.fullmatch(name) or (TIER.fullmatch(whole) and not name):
                tier = self.tier(name if TIER.fullmatch(name) else whole, whole, self.colors[category])
                self._rows[key] = self._category(category, -1), tier
            else:
                self._rows[key] = self._category(category, subcategory), -1
        return self._rows[key]

    def _part(self, category: int, subcategory: int) -> str:
        """Returns the name of a subcategory, "" of one that is as its category."""
        parts = self._within[category]
        name = parts[subcategory] if 0 <= subcategory < len(parts) else ""
        return name if name not in (OTHER, self.names[category]) else ""

    def _category(self, category: int, subcategory: int) -> int:
        """Returns the trace's row of a category, or of a part of it."""
        category = category if category < len(self) else self.default
        name, color = self._part(category, subcategory), self.colors[category]
        row = self._trace.add_category(self.names[category], color)
        return self._trace.add_category(name, color, row) if name else row

    def tier(self, name: str, family: str = "", color: str = TIER_COLOR) -> int:
        """Returns the row of a tier. family: the category that it is a subcategory of, where that is a tier, too."""
        return self._tier_of(name, family if TIER.fullmatch(family) else name, color)

    def _tier_of(self, name: str, family: str, color: str) -> int:
        return add_tier(self._trace, Tier(name, family, color))


def _category(one: Any) -> tuple[str, str, list[str]]:
    held = one if isinstance(one, dict) else {}
    name, color, within = held.get("name"), held.get("color"), held.get("subcategories")
    texts = [text if isinstance(text, str) else "" for text in within] if isinstance(within, list) else []
    return (
        name if isinstance(name, str) and name else OTHER,
        color if isinstance(color, str) and color in COLORS else "grey",
        texts,
    )
