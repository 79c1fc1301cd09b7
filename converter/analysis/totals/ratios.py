"""Ratios of counters: what people read hardware events for, as instructions per cycle and misses per 1,000
instructions.

Names of events: perf-list(1) and the kernel's tools/perf/pmu-events; perf writes where an event counts around its name,
as in `cpu_core/cycles/u` and `cycles:ppp`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from traceferry.common.patterns import compiled_later
from traceferry.model import Event, Trace

PER_THOUSAND = 1000.0
# Units of events that are shown as such.
SHOWN_UNITS = ("ns", "bytes")
# The name of an event without its PMU and modifiers: cpu_core/cycles/u, cycles:u.
OF_PMU = compiled_later(r"(?P<pmu>\w+)/(?P<name>[^/]*)/\w*")


class Ratio(NamedTuple):
    """name: for people; numerator, denominator: rows of `Trace.events`; factor: of the quotient."""

    name: str
    numerator: int
    denominator: int
    factor: float = 1.0

    def of(self, amounts: Mapping[int, int]) -> float | None:
        """Returns the ratio of amounts by event; None where there is nothing to divide by."""
        below = amounts.get(self.denominator, 0)
        return self.factor * amounts.get(self.numerator, 0) / below if below else None


def ratios_of(events: Sequence[Event]) -> list[Ratio]:
    """Returns the ratios that a recording's events allow, each of counters of one PMU."""
    rows: dict[str, dict[str, int]] = {}
    for row, event in enumerate(events):
        pmu, name = _parts(event.name)
        rows.setdefault(pmu, {}).setdefault(name, row)
    found = []
    for pmu, of in rows.items():
        found += [ratio._replace(name=f"{pmu} {ratio.name}".strip()) for ratio in _of_pmu(of)]
    return found


def _parts(name: str) -> tuple[str, str]:
    """Returns (PMU, event) of perf's name of an event; the only PMU of most machines is not named."""
    match = OF_PMU.fullmatch(name)
    if match is not None:
        pmu, name = match["pmu"], match["name"].split(",")[0]
        return "" if pmu in ("cpu", "cpu_core") else pmu, name
    return "", name if name.count(":") != 1 else name.partition(":")[0]


def _of_pmu(rows: Mapping[str, int]) -> Iterator[Ratio]:
    cycles, instructions = (_first(rows, names) for names in (("cycles", "cpu-cycles"), ("instructions",)))
    if cycles is not None and instructions is not None:
        yield Ratio("instructions per cycle", instructions, cycles)
    for name, row in rows.items():
        if instructions is not None and "miss" in name:
            yield Ratio(f"{name} per 1,000 instructions", row, instructions, PER_THOUSAND)
        of = _first(rows, RATES.get(name, ()) or _accesses(name))
        if of is not None:
            yield Ratio(f"{name} rate", row, of)
    slots = _first(rows, ("slots", "topdown-total-slots"))
    for name in (name for name in rows if name.startswith("topdown-") and slots not in (None, rows[name])):
        yield Ratio(f"{name.removeprefix('topdown-')} share", rows[name], slots or 0)
    for side in ("frontend", "backend"):
        if cycles is not None and (stalled := _first(rows, (f"stalled-cycles-{side}",))) is not None:
            yield Ratio(f"{side} stalls share", stalled, cycles)


# What is divided by what.
RATES = {
    "branch-misses": ("branches", "branch-instructions"), "cache-misses": ("cache-references",),
    "mispredicted-branches": ("taken-branches",),
}  # fmt: skip


def _accesses(name: str) -> tuple[str, ...]:
    """Returns how events of caches call the accesses of which these are misses: L1-dcache-load-misses are of
    L1-dcache-loads."""
    if not name.endswith(("-load-misses", "-store-misses", "-prefetch-misses")):
        return ()
    kind = name.removesuffix("-misses")
    return (f"{kind}es" if kind.endswith("ch") else f"{kind}s",)


def _first(rows: Mapping[str, int], names: Sequence[str]) -> int | None:
    return next((rows[name] for name in names if name in rows), None)


def counted_events(trace: Trace) -> list[tuple[Event, int]]:
    """Returns the events that were counted without samples, as by perf stat, each with how much in all processes; of
    those that are counted by processor or thread, too, the sum alone."""
    found: dict[tuple[str, str], float] = {}
    for process in trace.processes:
        names = {counter.name for counter in process.counters}
        for counter in process.counters:
            if counter.adds_up and counter.name.rpartition(": ")[0] not in names:
                key = counter.name, counter.unit if counter.unit in SHOWN_UNITS else "count"
                found[key] = found.get(key, 0.0) + float(counter.values["value"][1:].sum())
    return [(Event(*key), round(amount)) for key, amount in found.items()]
