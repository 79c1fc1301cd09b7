"""Map: categories of a profile. Those whose subcategory is a JIT tier are tiers of the model."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from traceferry.importers.firefox.layout import DEFAULT_CATEGORIES, JAVASCRIPT, OTHER
from traceferry.model import Array, TraceBuilder, distinct
from traceferry.symbolication.code_mapping import add_tier
from traceferry.symbolication.jit_names import Tier

# Subcategories and values of `implementation` that are tiers, as SpiderMonkey, V8, JavaScriptCore and samply name them.
TIER = re.compile(
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


class Categories:
    """The categories of a profile as rows of the trace. `default`: the number of the one of what has none; `rows`: the
    trace's of each, and behind them that of JavaScript's; `names`, `colors`: of each."""

    def __init__(self, trace: TraceBuilder, listed: Any) -> None:
        self._trace = trace
        self.are_listed = isinstance(listed, list) and bool(listed)
        given = [_category(one) for one in listed] if self.are_listed else []
        given = given or [(name, color, []) for name, color in DEFAULT_CATEGORIES]
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
        known = distinct(both)
        pairs = np.array([self._row(one // width, one % width - 1) for one in known.tolist()], np.int32).reshape(-1, 2)
        found = pairs[np.searchsorted(known, both)]
        return found[:, 0], found[:, 1]

    def _row(self, category: int, subcategory: int) -> tuple[int, int]:
        key = category, subcategory
        if key not in self._rows:
            whole, color, varieties = self.names[category], self.colors[category], self._within[category]
            name = varieties[subcategory] if 0 <= subcategory < len(varieties) else ""
            row = self._trace.add_category(whole, color)
            if TIER.fullmatch(name) or (TIER.fullmatch(whole) and name in ("", OTHER)):
                self._rows[key] = row, self.tier(name if TIER.fullmatch(name) else whole, whole, color)
            else:
                is_part = name not in ("", OTHER, whole)
                self._rows[key] = self._trace.add_category(name, color, row) if is_part else row, -1
        return self._rows[key]

    def tier(self, name: str, family: str = "", color: str = TIER_COLOR) -> int:
        """Returns the row of a tier. family: the category that it is a subcategory of, where that is a tier, too."""
        return add_tier(self._trace, Tier(name, family if TIER.fullmatch(family) else name, color))


def _category(one: Any) -> tuple[str, str, list[str]]:
    held = one if isinstance(one, dict) else {}
    name, color, within = held.get("name"), held.get("color"), held.get("subcategories")
    texts = [text if isinstance(text, str) else "" for text in within] if isinstance(within, list) else []
    return (
        name if isinstance(name, str) and name else OTHER,
        color if isinstance(color, str) and color in COLORS else "grey",
        texts,
    )
