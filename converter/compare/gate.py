"""Gates: expressions such as `self > 5%` that fail where a change is significant and beyond a threshold.

    expression := metric [ "(" quoted name ")" ] relation threshold
    metric     := word [ "." statistic ]        self, total, calls, allocated_bytes, gc_pause.p99 ...
    relation   := ">" | ">=" | "<" | "<="
    threshold  := number [ "%" | "ns" | "us" | "ms" | "s" | "B" | "kB" | "MB" | "GB" ]

A name may hold * for any text. Without a name, every row of the metric is held to the threshold.
"""

from __future__ import annotations

import fnmatch
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from traceferry.compare import figures
from traceferry.compare.amounts import STATISTICS
from traceferry.compare.comparison import Compared, Comparison, Row
from traceferry.errors import UsageError
from traceferry.shown_text import shown

METRICS = (
    "time", "self", "total", "calls", "allocated_bytes", "allocated_objects", "site_bytes", "retained_bytes",
    "retained_objects", "code_size", "tier_size", "off_cpu", "preempted",
)  # fmt: skip
RELATIONS: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt,
}  # fmt: skip
UNITS: dict[str, tuple[str, float]] = {
    "ns": ("ns", 1.0), "us": ("ns", 1e3), "ms": ("ns", 1e6), "s": ("ns", 1e9),
    "B": ("bytes", 1.0), "kB": ("bytes", 1e3), "MB": ("bytes", 1e6), "GB": ("bytes", 1e9),
}  # fmt: skip
NUMBER = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)")
# What has less of the whole can be noise without that being worth a word.
WORTH = 0.01
MOST_REASONS = 20


@dataclass(frozen=True)
class Gate:
    """metric: one of METRICS, or the words of a kind of event; statistic: "" or one of STATISTICS; name: "" is every
    row; threshold: a part of the base if unit is "%", else in ns, bytes or a number."""

    text: str
    metric: str
    statistic: str
    name: str
    relation: str
    threshold: float
    unit: str


@dataclass(frozen=True)
class Outcome:
    """lines: the reasons, one for each row beyond the threshold, or for what could not be decided."""

    gate: Gate
    status: Literal["passed", "failed", "undecided"]
    lines: tuple[str, ...]

    def as_text(self) -> str:
        words = {"passed": "passed", "failed": "FAILED", "undecided": "NOT DECIDED"}[self.status]
        return "\n".join([shown(f"{words}: {self.gate.text}"), *(shown(f"  {line}") for line in self.lines)])


# ---------------------------------------------------------------- the expression


class _Text:
    """The expression and how far it is read."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def skip(self) -> None:
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1

    def matched(self, pattern: str) -> str:
        """What follows of this form, "" if nothing does."""
        self.skip()
        match = re.compile(pattern).match(self.text, self.at)
        if match is None:
            return ""
        self.at = match.end()
        return match[0]

    def error(self, message: str, at: int | None = None) -> UsageError:
        self.skip()
        place = self.at if at is None else at
        return UsageError(f"--fail-on: {message}, at character {place + 1}:", (self.text, " " * place + "^"))


def parse(text: str) -> Gate:
    """Raises UsageError that points at the first character that is wrong."""
    rest = _Text(text)
    rest.skip()
    start = rest.at
    metric = rest.matched(r"[A-Za-z_][\w-]*")
    if not metric:
        raise rest.error("expected a metric, as self, total, calls or gc_pause.p99")
    statistic = ""
    if rest.matched(r"\."):
        at = rest.at
        statistic = rest.matched(r"\w*")
        if statistic not in STATISTICS:
            raise rest.error(f"{statistic!r} is not one of {', '.join(STATISTICS)}", at)
        if metric in METRICS:
            raise rest.error(f"{metric} has no {statistic}", start)
    elif metric not in METRICS:
        known = f"{', '.join(METRICS)}, or a kind of event with a statistic, as {metric}.sum"
        raise rest.error(f"unknown metric {metric!r}; known: {known}", start)
    name = _name(rest)
    relation = rest.matched(r">=|<=|>|<")
    if not relation:
        raise rest.error("expected >, >=, < or <=")
    number = rest.matched(NUMBER.pattern)
    if not number:
        raise rest.error("expected a number, as 5% or 50ms")
    rest.skip()
    at = rest.at
    unit = rest.matched(r"%|[A-Za-zµ]+").replace("µ", "u")
    if unit and unit != "%" and unit not in UNITS:
        raise rest.error(f"unknown unit {unit!r}; known: %, {', '.join(UNITS)}", at)
    rest.skip()
    if rest.at < len(text):
        raise rest.error("expected nothing more")
    kind, factor = ("%", 0.01) if unit == "%" else UNITS.get(unit, ("", 1.0))
    return Gate(text, metric, statistic, name, relation, float(number) * factor, kind)


def _name(rest: _Text) -> str:
    if not rest.matched(r"\("):
        return ""
    quoted = rest.matched(r"'[^']*'|\"[^\"]*\"")
    if not quoted:
        raise rest.error("expected a name in quotes, as total('main')")
    if not rest.matched(r"\)"):
        raise rest.error("expected )")
    if len(quoted) == 2:
        raise rest.error("the name is empty", rest.at - 3)
    return quoted[1:-1]


# ---------------------------------------------------------------- its meaning


def evaluate(gate: Gate, comparison: Comparison) -> Outcome:
    """failed if a row is beyond the threshold and its change significant; undecided if one may be and is not, or if
    there is nothing to hold to it."""
    rows = list(_rows(gate, comparison))
    if not rows:
        named = f" of {gate.name!r}" if gate.name else ""
        return Outcome(gate, "undecided", (f"neither side has {_words(gate)}{named}",))
    breaches = [(table, row) for table, row in rows if row.is_changed and _is_beyond(gate, table, row, comparison)]
    breaches.sort(key=lambda breach: -abs(breach[1].difference))
    if breaches:
        lines = [_reason(gate, table, row, comparison) for table, row in breaches[:MOST_REASONS]]
        more = len(breaches) - MOST_REASONS
        return Outcome(gate, "failed", (*lines, *([f"{more} more"] if more > 0 else [])))
    open_rows = [(table, row) for table, row in rows if _may_be_beyond(gate, table, row, comparison)]
    if open_rows:
        shown = [f"{row.shown}: {_known(row, comparison)}" for _, row in open_rows[:MOST_REASONS]]
        return Outcome(gate, "undecided", tuple(shown))
    return Outcome(gate, "passed", ())


def _rows(gate: Gate, comparison: Comparison) -> list[tuple[Compared, Row]]:
    tables = comparison.tables_named(f"event.{gate.statistic}" if gate.statistic else gate.metric)
    found = []
    for table in tables:
        for row in table.rows:
            if gate.statistic and not _is_kind(row.name, gate):
                continue
            if not gate.statistic and gate.name and not _is_named(row.name, gate.name):
                continue
            found.append((table, row))
    return found


def slug(words: str) -> str:
    """ "GC pause" → "gc_pause" """
    return re.sub(r"\W+", "_", words.lower()).strip("_")


def _is_kind(name: str, gate: Gate) -> bool:
    """Rows of events are "Exception", and "Exception: TYPE"."""
    kind, colon, group = name.partition(": ")
    if slug(kind) not in (gate.metric, gate.metric.removesuffix("s")):
        return False
    return bool(colon) and _is_named(group, gate.name) if gate.name else not colon


def _is_named(name: str, wanted: str) -> bool:
    return name == wanted or ("*" in wanted and fnmatch.fnmatchcase(name, wanted.replace("[", "[[]")))


def _words(gate: Gate) -> str:
    return gate.metric + (f".{gate.statistic}" if gate.statistic else "")


def _is_beyond(gate: Gate, table: Compared, row: Row, comparison: Comparison) -> bool:
    value = _value(gate, table, comparison, row.change if row.base else float("inf"), row.difference)
    return value is not None and RELATIONS[gate.relation](value, gate.threshold)


def _may_be_beyond(gate: Gate, table: Compared, row: Row, comparison: Comparison) -> bool:
    """Nothing significant is known, and the interval reaches beyond the threshold."""
    share = comparison.share_of(table, row)
    if row.verdict != "unknown" or (share is not None and share < WORTH):
        return False
    reach = row.high if gate.relation[0] == ">" else row.low
    if reach is None:
        return True
    value = _value(gate, table, comparison, reach, reach * row.base)
    return value is None or RELATIONS[gate.relation](value, gate.threshold)


def _value(
    gate: Gate, table: Compared, comparison: Comparison, change: float | None, difference: float
) -> float | None:
    """In the unit of the threshold; None where that has no meaning."""
    unit = table.amounts.unit
    if gate.unit == "%":
        return change
    if gate.unit == "ns" and unit == "samples":
        return difference * comparison.sample_ns if comparison.sample_ns else None
    if gate.unit and gate.unit != unit:
        raise UsageError(f"--fail-on {gate.text!r}: {_words(gate)} counts {unit}, not {gate.unit}")
    return difference


def _known(row: Row, comparison: Comparison) -> str:
    between = figures.interval(row)
    change = " ".join([figures.change(row), *([f"({between})"] if between else [])])
    return f"{change}, {figures.verdict(row, comparison.n_runs)}"


def _reason(gate: Gate, table: Compared, row: Row, comparison: Comparison) -> str:
    base, new = figures.base_and_new(row, table, comparison)
    change = figures.change(row) or "new"
    between = figures.interval(row)
    return f"{_words(gate)} of {row.shown}: {base} → {new}, {change}" + (f" ({between})" if between else "")
