"""Gates: expressions such as `self > 5%` that fail where a change is significant and beyond a threshold.

    expression := metric [ "(" quoted name ")" ] relation threshold
    metric     := word [ "." statistic ]        self, total, calls, allocated_bytes, gc_pause.p99 ...
                | event [ "." ( "self" | "total" ) ]    cache-misses, cycles:u.total, 'syscalls:sys_enter_read'
                | ratio                                 ipc, 'branch-misses rate'
    event, ratio := word | quoted name
    relation   := ">" | ">=" | "<" | "<="
    threshold  := number [ "%" | "ns" | "us" | "ms" | "s" | "B" | "kB" | "MB" | "GB" ]

A name may hold * for any text. Without a name, every row of the metric is held to the threshold; of a ratio, that of
all functions together; of the whole (`time`), what was done and, only where nothing says that, how long the recording
lasted. The threshold is a change; of a ratio, a plain number is what the new side must not have.

A gate that names one row is undecided where that row's change may be beyond the threshold. Without a name, or with
a *, what is uncertain counts only if it could make the whole larger or smaller by WORTH, or by a threshold below that:
of a thousand functions some are always too rare to judge. So it is with what is new, which is slower than nothing by
any part: it counts from there on, by what it has itself, and only as far as others do not have as much less: a function
that became two is no slower.
"""

from __future__ import annotations

import difflib
import fnmatch
import operator
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from traceferry.analysis.compare import figures
from traceferry.analysis.compare.amounts import METRICS, METRICS_OF_THREADS, STATISTICS, Key, Unit
from traceferry.analysis.compare.comparison import Compared, Comparison, Row
from traceferry.analysis.compare.events import ALL
from traceferry.common.errors import UsageError
from traceferry.common.shown_text import shown
from traceferry.timeline.off_cpu import EVENT as OFF_CPU

NAMES = ("time", *dict.fromkeys(metric.name for metric in (*METRICS, *METRICS_OF_THREADS)))
# Of events that are weights of functions.
WEIGHED = ("self", "total")
RELATIONS: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt,
}  # fmt: skip
UNITS: dict[str, tuple[str, float]] = {
    "%": ("%", 0.01),
    "ns": ("ns", 1.0), "us": ("ns", 1e3), "ms": ("ns", 1e6), "s": ("ns", 1e9),
    "B": ("bytes", 1.0), "kB": ("bytes", 1e3), "MB": ("bytes", 1e6), "GB": ("bytes", 1e9),
}  # fmt: skip
# What people call ratios and events.
ALIASES = {"ipc": "instructions per cycle", "off-cpu": OFF_CPU.name}
QUOTED = r"'[^']*'|\"[^\"]*\""
# A word that is as like one of NAMES as this is misspelt.
MISSPELT = 0.75
# So much of the whole is worth a word, where nothing is named.
WORTH = 0.01
# So many names are told where none matches.
MOST_NAMES = 5
MOST_REASONS = 20


@dataclass(frozen=True)
class Gate:
    """metric: one of NAMES, an event or ratio, or the words of a kind of event; statistic: "", "self" or "total" of an
    event that is a weight, or one of STATISTICS; name: "" is every row; threshold: a part of the base if unit is "%",
    else in ns, bytes or a number."""

    text: str
    metric: str
    statistic: str
    name: str
    relation: str
    threshold: float
    unit: str

    @property
    def words(self) -> str:
        return self.metric + (f".{self.statistic}" if self.statistic else "")

    @property
    def table(self) -> str:
        """The name of the tables it is about."""
        if self.is_of_kind:
            return f"event.{self.statistic}"
        return f"{self.metric}.total" if self.statistic == "total" else self.metric

    @property
    def is_of_kind(self) -> bool:
        """Whether it is about a kind of events with a statistic."""
        return self.statistic in STATISTICS


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
    """The expression and how far it is read; began: where what was read last begins."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = self.began = 0

    def matched(self, pattern: str) -> str | None:
        """Returns the text that follows, after spaces, and has this form; None if none does."""
        match = re.compile(rf"\s*({pattern})").match(self.text, self.at)
        if match is None:
            return None
        self.began, self.at = match.start(1), match.end()
        return match[1]

    def expect(self, pattern: str, what: str) -> str:
        found = self.matched(pattern)
        if found is None:
            self.matched("")
            raise self.error(f"expected {what}", self.at)
        return found

    def error(self, message: str, at: int) -> UsageError:
        return UsageError(f"--fail-on: {message}, at character {at + 1}:", (self.text, " " * at + "^"))


def parse(text: str) -> Gate:
    """Raises UsageError that points at the first character that is wrong."""
    rest = _Text(text)
    metric = rest.expect(rf"[A-Za-z_][\w:/-]*|{QUOTED}", "a metric, as self, total or gc_pause.p99")
    start, is_quoted, statistic = rest.began, metric[0] in "'\"", ""
    metric = metric[1:-1] if is_quoted else ALIASES.get(metric, metric)
    if rest.matched(r"\."):
        at = rest.at
        statistic = rest.matched(r"\w*") or ""
        if statistic not in (*STATISTICS, *WEIGHED):
            raise rest.error(f"{statistic!r} is not one of {', '.join([*STATISTICS, *WEIGHED])}", at)
        if metric in NAMES:
            raise rest.error(f"{metric} has no {statistic}", start)
    elif not is_quoted and metric not in NAMES and _is_misspelt(metric):
        known = f"{', '.join(NAMES)}, an event or ratio in quotes, or a kind of event with a statistic, as {metric}.sum"
        raise rest.error(f"unknown metric {metric!r}; known: {known}", start)
    name = ""
    if rest.matched(r"\("):
        name = rest.expect(QUOTED, "a name in quotes, as total('main')")[1:-1]
        rest.expect(r"\)", ")")
        if not name:
            raise rest.error("the name is empty", rest.at - 3)
    relation = rest.expect("|".join(RELATIONS), ">, >=, < or <=")
    number = rest.expect(r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)", "a number, as 5% or 50ms")
    unit = (rest.matched(r"%|[A-Za-zµ]+") or "").replace("µ", "u")
    if unit and unit not in UNITS:
        raise rest.error(f"unknown unit {unit!r}; known: {', '.join(UNITS)}", rest.began)
    rest.expect(r"\Z", "nothing more")
    kind, factor = UNITS.get(unit, ("", 1.0))
    return Gate(text, metric, statistic, name, relation, float(number) * factor, kind)


def _is_misspelt(metric: str) -> bool:
    """Whether it is like one of NAMES, and no event: most of these have what names do not have."""
    return metric.isidentifier() and bool(difflib.get_close_matches(metric, NAMES, 1, MISSPELT))


# ---------------------------------------------------------------- its meaning


def evaluate(gate: Gate, comparison: Comparison) -> Outcome:
    """failed if a row is beyond the threshold and its change significant; undecided if one may be and is not. Raises
    UsageError where neither side has what the gate is about."""
    rows = _rows(gate, comparison)
    if not rows:
        if not _is_known(gate, comparison):
            raise UsageError(f"--fail-on {gate.text!r}: {_nothing_of(gate, comparison)}")
        return Outcome(gate, "undecided", (f"no run has {gate.words} of {gate.name}",))
    _check_unit(gate, {table.amounts.unit_of(row.key) for table, row in rows}, comparison)
    new = {nth: _new_in(table, gate, comparison) for nth, table in {id(table): table for table, _ in rows}.items()}
    breaches = [
        (table, row)
        for table, row in rows
        if _is_breach(gate, table, row, comparison) and (row.base or new[id(table)].counts(row))
    ]
    breaches.sort(key=lambda of: -abs(of[1].difference))
    if breaches:
        return Outcome(gate, "failed", _first([_reason(gate, *of, comparison) for of in breaches]))
    open_rows = [row for table, row in rows if _may_be_beyond(gate, table, row, comparison)]
    open_rows.sort(key=lambda row: -max(row.base, row.new))
    moved = tuple(f"{gate.words}: {of.names} did not count: new, and others have as much less"
                  for of in new.values() if of.are_moved)  # fmt: skip
    if open_rows:
        reasons = _first([f"{row.shown}: {_known(row, comparison)}" for row in open_rows])
        return Outcome(gate, "undecided", (*reasons, *moved))
    return Outcome(gate, "passed", moved)


def _first(lines: Sequence[str]) -> tuple[str, ...]:
    more = len(lines) - MOST_REASONS
    return (*lines[:MOST_REASONS], *([f"{more} more"] if more > 0 else []))


def _is_known(gate: Gate, comparison: Comparison) -> bool:
    """Whether there is the metric, and the name elsewhere: a function without samples of its own has callees."""
    if gate.is_of_kind or not gate.name or not _tables(gate, comparison):
        return False
    return any(_is_named(row.name, gate.name) for table in comparison.tables for row in table.rows)


def _nothing_of(gate: Gate, comparison: Comparison) -> str:
    """Returns a sentence on what there is instead."""
    tables = [table for table in (comparison.whole, *comparison.tables) if table.rows]
    if not gate.is_of_kind and not _tables(gate, comparison):
        known = dict.fromkeys(map(_quoted, (t.name for t in tables if not t.name.startswith("event."))))
        said = [note for note in comparison.notes if gate.metric in note]
        there = f"neither side has {gate.words}; they have {', '.join([*known, *_kinds(tables, '')])}"
        return "; ".join([*said, there])
    if gate.is_of_kind:
        known = dict.fromkeys(_kinds(tables, gate.statistic))
        if not gate.name or not any(kind.startswith(f"{gate.metric}.") for kind in known):
            there = f"they have {', '.join(known)}" if known else "they have no events with that"
            return f"neither side has {gate.words}; {there}"
    rows = (row for table in _tables(gate, comparison) for row in table.rows)
    names = [row.name for row in sorted(rows, key=lambda row: (-max(row.base, row.new), row.name))]
    if gate.is_of_kind:
        names = [
            group for kind, colon, group in (name.partition(": ") for name in names) if colon and _is_of(kind, gate)
        ]
    near = _near(gate.name, names)
    there = "the nearest names are" if near else f"of {len(names)} names, none of them near, the largest are"
    shown_names = ", ".join(map(repr, near or names[:MOST_NAMES]))
    return f"neither side has {gate.words} of {gate.name!r}; {there} {shown_names}"


def _kinds(tables: Sequence[Compared], statistic: str) -> list[str]:
    """The kinds of events, as gates have them, with this statistic or with any."""
    return sorted(
        f"{slug(row.name)}.{table.name.removeprefix('event.')}"
        for table in tables
        for row in table.rows
        if table.name.startswith("event.") and ": " not in row.name and table.name.endswith(f".{statistic or 'count'}")
    )


def _near(wanted: str, names: Sequence[str]) -> list[str]:
    """Those that hold the wanted one, the shortest first; then those that look like it."""
    plain = wanted.replace("*", "").lower()
    holding = sorted({name for name in names if plain and plain in name.lower()}, key=lambda name: (len(name), name))
    alike = difflib.get_close_matches(wanted, sorted({name for name in names if len(name) < 4 * len(wanted) + 8}))
    return list(dict.fromkeys([*holding[:MOST_NAMES], *alike]))[:MOST_NAMES]


def _rows(gate: Gate, comparison: Comparison) -> list[tuple[Compared, Row]]:
    def is_meant(table: Compared, name: str) -> bool:
        if gate.is_of_kind:
            return _is_kind(name, gate)
        if table.amounts.model == "ratio" and not gate.name:
            return name == ALL[0]
        if table is comparison.whole and not gate.name:
            return name in {row.name for row in comparison.main_rows}
        return not gate.name or _is_named(name, gate.name)

    tables = _tables(gate, comparison)
    return [(table, row) for table in tables for row in table.rows if is_meant(table, row.name)]


def _tables(gate: Gate, comparison: Comparison) -> list[Compared]:
    """The tables that it is about. What samples of the main event have are samples."""
    found = [table for table in comparison.tables_named(gate.table) if table.rows]
    if not found and gate.metric == comparison.events.main and not gate.is_of_kind:
        tables = comparison.tables_named(gate.statistic or "self")
        return [table for table in tables if table.amounts.model in ("samples", "measured")]
    return found


def _quoted(name: str) -> str:
    """Returns a metric as an expression has it."""
    metric, dot, statistic = name.rpartition(".") if name.endswith(".total") else (name, "", "")
    return name if re.fullmatch(r"[A-Za-z_][\w:/-]*", metric) else f"'{metric}'{dot}{statistic}"


def slug(words: str) -> str:
    """ "GC pause" → "gc_pause" """
    return re.sub(r"\W+", "_", words.lower()).strip("_")


def _is_kind(name: str, gate: Gate) -> bool:
    """Rows of events are "Exception", and "Exception: TYPE"."""
    kind, colon, group = name.partition(": ")
    if not _is_of(kind, gate):
        return False
    return bool(colon) and _is_named(group, gate.name) if gate.name else not colon


def _is_of(kind: str, gate: Gate) -> bool:
    return slug(kind) in (gate.metric, gate.metric.removesuffix("s"))


def _is_named(name: str, wanted: str) -> bool:
    return name == wanted or ("*" in wanted and fnmatch.fnmatchcase(name, wanted.replace("[", "[[]")))


def _is_breach(gate: Gate, table: Compared, row: Row, comparison: Comparison) -> bool:
    """Whether a row is beyond the threshold, and that is known."""
    if _is_absolute(gate, table):
        # The end of the interval that is nearer to what is allowed.
        return row.reach is not None and RELATIONS[gate.relation](row.reach[gate.relation[0] == "<"], gate.threshold)
    return row.is_changed and _is_beyond(gate, table, row, comparison)


@dataclass(frozen=True)
class _New:
    """Rows of a table that are new. counted: those that are worth a word, by what they have themselves, None where each
    is; are_moved: whether others have as much less, so that none of these counts."""

    counted: Mapping[Key, Row] | None = None
    are_moved: bool = False

    @property
    def names(self) -> str:
        return ", ".join(row.shown for row in list((self.counted or {}).values())[:MOST_NAMES])

    def counts(self, row: Row) -> bool:
        return self.counted is None or (row.key in self.counted and not self.are_moved)


def _new_in(table: Compared, gate: Gate, comparison: Comparison) -> _New:
    if gate.unit != "%" or _is_of_one(gate):
        return _New()
    parts = [t for t in comparison.tables_named(table.amounts.part_of) if t.amounts.unit == table.amounts.unit]
    own = parts[0] if parts else table
    whole = comparison.whole_of(own)
    if whole is None:
        return _New()
    least = _worth(gate) * max(whole)
    counted = {row.key: row for row in own.changed if not row.base and row.new >= least}
    less = -sum(row.difference for row in own.changed if row.difference < 0)
    added = sum(row.new for row in counted.values())
    return _New(counted, bool(counted) and added - less < least)


def _is_of_one(gate: Gate) -> bool:
    """Whether it names a row, or a kind of events."""
    return gate.is_of_kind or (bool(gate.name) and "*" not in gate.name)


def _worth(gate: Gate) -> float:
    """Returns what part of the whole is worth a word, where nothing is named."""
    return min(WORTH, abs(gate.threshold)) if gate.unit == "%" else WORTH


def _is_absolute(gate: Gate, table: Compared) -> bool:
    """Whether the threshold is what the new side must not have, and no change."""
    return table.amounts.model == "ratio" and not gate.unit


def _is_beyond(gate: Gate, table: Compared, row: Row, comparison: Comparison) -> bool:
    value = _value(gate, table, comparison, row.change if row.base else float("inf"), row.difference)
    return value is not None and RELATIONS[gate.relation](value, gate.threshold)


def _may_be_beyond(gate: Gate, table: Compared, row: Row, comparison: Comparison) -> bool:
    """Nothing significant is known, and the change may be beyond the threshold, where that matters."""
    is_named = bool(gate.name) and "*" not in gate.name
    if _is_absolute(gate, table):
        if row.reach is None:
            return is_named or row.name == ALL[0]
        return RELATIONS[gate.relation](row.reach[gate.relation[0] == ">"], gate.threshold)
    if row.is_changed or (row.is_exact and not row.differs):
        return False
    if row.differs:
        return _is_beyond(gate, table, row, comparison)
    reach = row.high if gate.relation[0] == ">" else row.low
    whole = comparison.whole_of(table)
    worth = _worth(gate)
    if table.amounts.model == "ratio" and not is_named and row.name != ALL[0]:
        return False
    if reach is None:
        return is_named or whole is None or max(row.base, row.new) >= worth * max(whole)
    value = _value(gate, table, comparison, reach, reach * row.base)
    if value is None or not RELATIONS[gate.relation](value, gate.threshold):
        return False
    return is_named or gate.unit != "%" or whole is None or abs(reach) * row.base >= worth * whole[0]


def _check_unit(gate: Gate, units: Collection[Unit], comparison: Comparison) -> None:
    """Raises UsageError where the threshold has no meaning."""
    for unit in sorted(units):
        if gate.unit == "ns" and unit == "samples":
            if not comparison.sample_ns:
                raise UsageError(
                    f"--fail-on {gate.text!r}: the recordings do not say how much time a sample stands for; "
                    "give a part, as 5%, or a number of samples"
                )
        elif gate.unit not in ("", "%", unit):
            raise UsageError(f"--fail-on {gate.text!r}: {gate.words} counts {unit}, not {gate.unit}")


def _value(
    gate: Gate, table: Compared, comparison: Comparison, change: float | None, difference: float
) -> float | None:
    """Returns the change in the unit of the threshold; None where there is no change as a part."""
    if gate.unit == "%":
        return change
    return difference * comparison.sample_ns if gate.unit == "ns" and table.amounts.unit == "samples" else difference


def _known(row: Row, comparison: Comparison) -> str:
    between = figures.interval(row)
    change = " ".join([figures.change(row), *([f"({between})"] if between else [])])
    return ", ".join(filter(None, [change, figures.verdict(row, comparison.n_runs)]))


def _reason(gate: Gate, table: Compared, row: Row, comparison: Comparison) -> str:
    base, new = figures.base_and_new(row, table, comparison)
    # A row of the whole says what it is of.
    what = row.shown if table is comparison.whole else f"{gate.words} of {row.shown}"
    if _is_absolute(gate, table) and row.reach is not None:
        low, high = (figures.amount(end, "ratio") for end in row.reach)
        return f"{what}: {base} → {new} ({low} to {high})"
    change = figures.change(row) or "new"
    between = figures.interval(row)
    return f"{what}: {base} → {new}, {change}" + (f" ({between})" if between else "")
