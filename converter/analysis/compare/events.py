"""Events beside the main one: tables of what functions have of each, and of ratios of these.

An event is compared where all runs of both sides recorded it. What was not, or otherwise, is said in a note.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from traceferry.analysis.compare.amounts import Amounts, Key, Model, Sides, Unit
from traceferry.analysis.compare.missing import MISSING
from traceferry.analysis.compare.runs import CALLERS_MISSING, LOST, LOST_SAMPLES, OF_WORK, Recorded, Run, is_time
from traceferry.analysis.totals.ratios import Ratio, ratios_of
from traceferry.common.issue_kinds import KINDS
from traceferry.common.units import format_duration
from traceferry.model import Array, Event

# Of more events than these, tracepoints with few samples have no tables.
MOST_EVENTS = 24
# So many names are told in a note.
MOST_NAMES = 8
# What perf takes behind a colon, and what of it does not change what is counted.
MODIFIERS, EXACTNESS = frozenset("ukhGHpPSDWeI"), frozenset("HpPSDWe")
# Times between samples that are measured differ by less.
MEASURED = 0.1
# The row of a table of ratios that is of all functions together.
ALL = ("(all functions)", "", 0, "")
# The name of the tables of what runs have of each event.
WHOLES = "events"
# An event of which a profile does not tell what it counts.
UNNAMED = "samples"
EventKey = tuple[str, str, str]
# The columns of Totals.weights.
OWN, TOTAL = (0, 2), (1, 3)


@dataclass(frozen=True)
class Events:
    """keys: of the events that are compared, those of tables first; n_tables: how many of them have tables; notes:
    sentences for people."""

    sides: Sides
    keys: tuple[EventKey, ...]
    n_tables: int
    notes: tuple[str, ...]

    @classmethod
    def of(cls, sides: Sides, wanted: Collection[str] = ()) -> Events:
        """wanted: names of events that have tables however many there are."""
        runs, n_base = sides.runs, len(sides.base)
        by_run = [{each.event.key: each for each in run.events} for run in runs]
        common = [key for key in by_run[0] if all(key in of for of in by_run)]
        mains = [None if run.sampling is None else run.sampling.key for run in runs]
        # The samples of the main event are the tables `self` and `total`.
        further = [key for key in common if any(main != key for main in mains)]
        rank = {key: _rank(key, [of[key] for of in by_run]) for key in further}
        further.sort(key=lambda key: (key[0] not in wanted, *rank[key]))
        n_tables = max(MOST_EVENTS, sum(key[0] in wanted for key in further))
        notes = [*unlike(sides), *_notes_of_idle(sides), *_notes_of_one_side(by_run, n_base, common)]
        of_periods = _notes_of_periods([_counted(run, of) for run, of in zip(runs, by_run, strict=True)], n_base)
        notes += [note for note in of_periods if note not in notes]
        if not sides.are_even:
            notes.append("of how many events a sample is varies where the recorder chose it: functions are not tested")
        notes += [*_notes_of_losses(sides), *_notes_of_names(sides), *_notes_of_callers(sides)]
        notes += [f"--rename {text}: the base has no function or class of that name" for text in sides.unused_renames]
        if len(further) > n_tables:
            notes.append(
                f"{len(further) - n_tables} of {len(further)} events are compared as a whole, not by function: those "
                "with fewest samples; a gate that names one compares it"
            )
        main = [key for key in common if key not in further]
        return cls(sides, (*further[:n_tables], *further[n_tables:], *main), min(len(further), n_tables), tuple(notes))

    @property
    def names(self) -> frozenset[str]:
        """The names of the events that have tables."""
        return frozenset(name for name, _, _ in self.keys[: self.n_tables])

    @property
    def main(self) -> str:
        """The name of the event of which all samples are, "" where there is none: of one whose samples are amounts
        as the recorder has it."""
        names = {"" if run.sampling is None else run.sampling.plain_name for run in self.sides.runs}
        return names.pop() if len(names) == 1 else ""

    def tables(self) -> Iterator[Amounts]:
        """Yields those that either side has anything in."""
        tables = [*self._wholes(), *(t for key in self.keys[: self.n_tables] for t in self._of_event(key))]
        yield from (table for table in (*tables, *self._of_ratios()) if table.values.any())

    def _recorded(self, key: EventKey) -> list[Recorded]:
        return [next(each for each in run.events if each.event.key == key) for run in self.sides.runs]

    def _wholes(self) -> Iterator[Amounts]:
        """Yields what each run has of each further event: times and sizes apart from other counts."""
        mains = {None if run.sampling is None else run.sampling.key for run in self.sides.runs}
        further = [key for key in self.keys if mains != {key}]
        for unit in ("ns", "bytes", "count"):
            keys = [key for key in further if _unit(key) == unit]
            if keys:
                facts = [[(_n_drawn(each), each.weight) for each in self._recorded(key)] for key in keys]
                counts, values = np.moveaxis(np.array(facts, np.float64), 2, 0)
                names = tuple((name,) for name, _, _ in keys)
                yield Amounts(WHOLES, "events, whole", unit, "measured", names, values, counts)

    def _of_event(self, key: EventKey) -> Iterator[Amounts]:
        name, recorded = key[0], self._recorded(key)
        model, are_sums = _model(recorded), any(each.is_sum for each in recorded)
        per_sample = np.array([each.per_sample for each in recorded])
        known = per_sample[per_sample > 0]
        per_sample = np.where(per_sample > 0, per_sample, known.mean() if len(known) else 1.0)
        for (counts_at, weight_at), of_name, title, part_of in (
            (OWN, name, f"{name} by function", ""),
            (TOTAL, f"{name}.total", f"{name} by function, with callees", name),
        ):
            if part_of and key[2] == "branches":
                continue
            keys, cells = self._columns(key, (weight_at, weight_at if are_sums else counts_at))
            used = np.flatnonzero(cells[:, :, 0].any(axis=1))
            yield Amounts(
                of_name, title, _unit(key), model, tuple(keys[i] for i in used.tolist()), cells[used, :, 0],
                cells[used, :, 1], is_shared=not part_of, part_of=part_of,
                per_sample=per_sample if model == "weights" else None,
                is_time=model == "weights" and is_time(*key[:2]),
            )  # fmt: skip

    def _columns(self, event: EventKey, which: Sequence[int]) -> tuple[list[Key], Array]:
        """(functions as they are called here, sorted; float64 [functions, runs, which])"""
        place: dict[Key, int] = {}
        cells = []
        for nth, rows in enumerate(self._weights):
            keys, amounts = rows.get(event, ([], np.zeros((0, 4))))
            at = [place.setdefault(self.sides.function_of(nth, key), len(place)) for key in keys]
            cells.append((np.array(at, np.int64), amounts[:, list(which)]))
        found = np.zeros((len(place), len(cells), len(which)))
        for nth, (rows_at, of_run) in enumerate(cells):
            np.add.at(found[:, nth], rows_at, of_run)
        keys = sorted(place)
        return keys, found[[place[key] for key in keys]]

    @cached_property
    def _weights(self) -> list[dict[EventKey, tuple[list[Key], Array]]]:
        """Returns for each run, by event, the functions and their amounts."""
        return [_by_event(run) for run in self.sides.runs]

    # ------------------------------------------------------------ ratios

    def _of_ratios(self) -> Iterator[Amounts]:
        events = [Event(*key[:2], kind=key[2]) for key in self.keys]  # type: ignore[arg-type]
        for ratio in ratios_of(events):
            yield self._of_ratio(ratio)

    def _of_ratio(self, ratio: Ratio) -> Amounts:
        """Returns the ratio of each function itself, and of all; of those that have something to divide by in each
        run."""
        parts = [
            dict(zip(*self._whole_and_rows(self.keys[row]), strict=True))
            for row in (ratio.numerator, ratio.denominator)
        ]
        nothing = np.zeros((len(self.sides.runs), 2))
        keys = [key for key in parts[1] if (parts[1][key][:, 0] > 0).all()]
        above, below = (
            np.array([part.get(key, nothing) for key in keys]).reshape(-1, *nothing.shape) for part in parts
        )
        values = ratio.factor * above[:, :, 0] / below[:, :, 0]
        # Both are of samples: the variance of the logarithm is the sum of theirs.
        counts = above[:, :, 1] * below[:, :, 1] / np.maximum(above[:, :, 1] + below[:, :, 1], 1.0)
        used = np.flatnonzero(values.any(axis=1))
        return Amounts(
            ratio.name, ratio.name, "ratio", "ratio", tuple(keys[i] for i in used.tolist()), values[used], counts[used]
        )

    def _whole_and_rows(self, event: EventKey) -> tuple[list[Key], list[Array]]:
        """(functions, and ALL; float64 [runs, 2] of each: weight and samples)"""
        keys, cells = self._columns(event, (2, 0))
        whole = np.array([[each.weight, each.samples] for each in self._recorded(event)], np.float64)
        return [ALL, *keys], [whole, *cells]


def _by_event(run: Run) -> dict[EventKey, tuple[list[Key], Array]]:
    rows: dict[EventKey, list[int]] = {}
    weights = run.totals.weights
    for nth, key in enumerate(weights.keys):
        rows.setdefault((key[4], key[5], key[6]), []).append(nth)
    amounts = weights.amounts.reshape(-1, len(weights.columns)).astype(np.float64)
    return {event: ([weights.keys[nth][:4] for nth in at], amounts[at]) for event, at in rows.items()}


def _rank(key: EventKey, recorded: Sequence[Recorded]) -> tuple[bool, int, str]:
    return key[2] == "tracepoint", -sum(each.samples for each in recorded), key[0]


def _unit(key: EventKey) -> Unit:
    return "ns" if key[1] == "ns" else "bytes" if key[1] == "bytes" else "count"


def _n_drawn(recorded: Recorded) -> int:
    """Returns of how many samples an event is, as many as it counts where nobody knows."""
    return recorded.weight if recorded.is_sum else recorded.samples


def _model(recorded: Sequence[Recorded]) -> Model:
    """An event of which each is recorded is counted, time off the CPU is measured, as are sums of unknown numbers of
    samples, others are sampled."""
    if all(each.event.kind == "off-cpu" for each in recorded) or any(each.is_sum for each in recorded):
        return "measured"
    return "exact" if all(each.event.period == 1 and each.event.leader < 0 for each in recorded) else "weights"


# ---------------------------------------------------------------- notes


def unlike(sides: Sides) -> Iterator[str]:
    """Yields sentences on what makes both sides recordings of different kinds: their numbers are not of the same."""
    formats = [frozenset().union(*(run.formats for run in side)) for side in (sides.base, sides.new)]
    if all(formats) and not formats[0] & formats[1]:
        yield f"the base is of the format {_names(formats[0])}, the new side of {_names(formats[1])}"
    events = [
        _names({_without_precision(run.sampling) for run in side if run.sampling is not None})
        for side in (sides.base, sides.new)
    ]
    # What has no name may be the same.
    if all(events) and UNNAMED not in events and events[0] != events[1]:
        yield f"samples are of {events[0]} in the base and of {events[1]} on the new side: they do not count the same"
    yield from _unlike_rates(sides)
    if sides.measure is None:
        yield "samples of some runs say for what they stand, as a time, and those of others do not"


def _without_precision(event: Event) -> str:
    """Returns what an event counts: perf adds how exact the address is, and that guests are not counted, to the name of
    the event that it records by default, as in cycles:P and cpu-clock:pppH. Parts of samples are samples."""
    if event.parts > 1:
        return "samples"
    name, colon, modifiers = event.name.rpartition(":")
    if not colon or event.kind == "tracepoint" or not set(modifiers) <= MODIFIERS:
        return event.name
    kept = "".join(sorted(set(modifiers) - EXACTNESS))
    return f"{name}:{kept}" if kept else name


def _notes_of_idle(sides: Sides) -> Iterator[str]:
    shares = [sum(run.idle for run in side) / len(side) for side in (sides.base, sides.new)]
    if any(shares):
        base, new = (f"{100 * share:.3g} %" for share in shares)
        yield f"samples in which nothing was done are left out: {base} of the base's and {new} of the new side's"


def _notes_of_one_side(
    by_run: Sequence[Mapping[EventKey, Recorded]], n_base: int, common: Collection[EventKey]
) -> Iterator[str]:
    sides = [{key for of in side for key in of} for side in (by_run[:n_base], by_run[n_base:])]
    cases = (
        (sides[0] - sides[1], "recorded by the base only, and not compared"),
        (sides[1] - sides[0], "recorded by the new side only, and not compared"),
        ((sides[0] & sides[1]) - set(common), "not recorded by all runs, and not compared"),
    )
    for keys, words in cases:
        if keys:
            yield f"{_names({name for name, _, _ in keys})}: {words}"


def _counted(run: Run, recorded: Mapping[EventKey, Recorded]) -> dict[EventKey, Event]:
    """Returns the events of a run by what they count, also the one of which all samples are."""
    main = [] if run.sampling is None else [run.sampling]
    return {
        (_without_precision(event), event.unit, event.kind): event
        for event in (*main, *(each.event for each in recorded.values()))
    }


def _notes_of_periods(by_run: Sequence[Mapping[EventKey, Event]], n_base: int) -> Iterator[str]:
    common = [key for key in by_run[0] if all(key in of for of in by_run)]
    scaled = {key[0] for key in common if any(of[key].is_scaled for of in by_run)}
    if scaled:
        yield f"{_names(scaled)}: counted for a part of the time, and scaled"
    for key in common:
        yield from _other_periods(key, *([of[key] for of in side] for side in (by_run[:n_base], by_run[n_base:])))


def _unlike_rates(sides: Sides) -> Iterator[str]:
    """Yields that samples of both sides are of unlike periods, which are the same in all runs of a side: so they were
    asked for. Measured ones tell how busy the machine was."""
    events = [[run.sampling for run in side if run.sampling is not None] for side in (sides.base, sides.new)]
    keys = {(_without_precision(event), event.unit, event.kind) for side in events for event in side}
    if all(events) and len(keys) == 1 and all(len({_period(event) for event in side}) == 1 for side in events):
        yield from _other_periods(keys.pop(), *events)


def _other_periods(key: EventKey, base: Sequence[Event], new: Sequence[Event]) -> Iterator[str]:
    """Yields that a sample of an event stands for more on one side. base, new: the event in each run."""
    periods = [{_period(event) for event in side} for side in (base, new)]
    if periods[0] != periods[1] and "" not in periods[0] | periods[1] and _is_other_rate(base, new):
        what = "weights" if key[2] in OF_WORK and not is_time(*key[:2]) else "times"
        yield (
            f"{key[0]}: a sample is of {_names(periods[0])} in the base and of {_names(periods[1])} on the new side; "
            f"{what} are compared, of which one side has fewer samples"
        )


def _period(event: Event) -> str:
    """Returns what passes from one sample to the next, "" where nobody knows."""
    if event.unit in ("ns", "samples"):
        known = event.interval_ns or event.period
        return format_duration(known) if known else ""
    if event.period:
        return str(event.period)
    if event.interval_ns:
        return f"as many as come in {format_duration(event.interval_ns)}"
    return "a number that the recorder chose"


def _is_other_rate(base: Sequence[Event], new: Sequence[Event]) -> bool:
    """Whether it was asked for other periods, or for other times between samples: measured ones vary."""
    if any(event.period for event in (*base, *new)):
        return True
    sides = [[event.interval_ns for event in side] for side in (base, new)]
    return max(sides[0]) * (1 + MEASURED) < min(sides[1]) or max(sides[1]) * (1 + MEASURED) < min(sides[0])


def _notes_of_losses(sides: Sides) -> Iterator[str]:
    """Yields what is missing in the amounts: samples that the recorder was too slow for, and what else it did not
    write."""
    lost, incomplete = [], []
    for name, runs in (("base", sides.base), ("new side", sides.new)):
        parts = [n / (n + run.n_samples) for run in runs if (n := run.losses.get(LOST_SAMPLES, 0)) and run.n_samples]
        if parts:
            most = f"up to {100 * max(parts):.2g} %" if len(parts) > 1 else f"{100 * max(parts):.2g} %"
            lost.append(f"{len(parts)} of {len(runs)} runs of the {name}, {most} of theirs")
        others = [kind for run in runs for kind in run.losses if kind in LOST and kind != LOST_SAMPLES]
        if others:
            n = sum(any(kind in others for kind in run.losses) for run in runs)
            incomplete.append(f"{n} of {len(runs)} runs of the {name} ({', '.join(sorted(set(others)))})")
    if lost:
        yield f"samples were lost in {', and in '.join(lost)}: the amounts are without them"
    if incomplete:
        yield f"recordings are incomplete: {', '.join(incomplete)}; `info` tells more of each"


def _notes_of_names(sides: Sides) -> Iterator[str]:
    shares = [sum(run.nameless for run in side) / len(side) for side in (sides.base, sides.new)]
    if abs(shares[0] - shares[1]) >= MISSING:
        option = "--base-symbols" if shares[0] > shares[1] else "--new-symbols"
        base, new = (f"{100 * share:.0f} %" for share in shares)
        yield (
            f"names are missing for {base} of the base and {new} of the new side: what has none matches no function "
            f"with a name; {option} FILE gives the program or its symbols"
        )


def _notes_of_callers(sides: Sides) -> Iterator[str]:
    if abs(sides.callerless[0] - sides.callerless[1]) >= MISSING:
        base, new = (f"{100 * share:.0f} %" for share in sides.callerless)
        yield (
            f"the caller is missing from {base} of the base's stacks and {new} of the new side's: their innermost "
            f"function has no frame pointer, and its caller less with callees; {KINDS[CALLERS_MISSING].advice}"
        )


def _names(names: Collection[str]) -> str:
    shown = sorted(names)
    more = len(shown) - MOST_NAMES
    return ", ".join(shown[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "")
