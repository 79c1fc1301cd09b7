"""Data sets as sides of a comparison: each combination of labels is a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import orjson

from traceferry.analysis.compare.comparison import ALIKE_RATES
from traceferry.analysis.compare.runs import KERNEL, LOST, Recorded, Run, counts_work, is_sum, time_of_sample
from traceferry.analysis.totals.portable import Amounts, Totals, Tree
from traceferry.analysis.totals.rows import Key, Rows
from traceferry.analysis.totals.series import ALLOCATED, SAMPLES, TIME, Measure
from traceferry.apps.fleet.dataset import Combination, combinations
from traceferry.apps.fleet.forest import MEASURES, WEIGHT, roots_of
from traceferry.common.shown_text import encodable
from traceferry.model import Event, sums

COMPARED: dict[str, Measure] = {"time_ns": TIME, "samples": SAMPLES, "allocated_bytes": ALLOCATED}


def runs_of(url: str, with_trees: bool) -> list[Run]:
    """The runs of a data set. Raises FormatError if it cannot be read."""
    return [_run(url, each, with_trees) for each in combinations(url)]


def _run(url: str, of: Combination, with_trees: bool) -> Run:
    samples = sum(row["samples"] for row in of.recordings)
    sampled = [row for row in of.recordings if row["unit"]]
    sampling = _main(sampled[0]) if sampled else None
    weight = sum(row["sample_weight"] for row in sampled)
    sample_ns = 0.0 if sampling is None else time_of_sample(sampling, weight, samples)
    totals, forest = of.totals, of.totals.tree
    if sampling is not None and _are_uneven(sampled, sampling):
        # Samples of unlike times are no number of anything: their weights are.
        per_sample, sample_ns = _per_sample(sampled, sampling)
        if per_sample:
            totals = replace(totals, functions=_by_weight(totals, sampling, per_sample))
            forest = _tree_by_weight(forest, sampling, per_sample)
    lost = sum(n for row in of.recordings for kind, n in orjson.loads(row["losses"]).items() if kind in LOST)
    duration = sums.limited(sum(round(row["seconds"] * 1e9) for row in of.recordings))
    name = encodable(f"{url} {of.name}".strip())
    tree = _tree(forest) if with_trees else Tree()
    in_kernel = frozenset(frame[:4] for frame in of.totals.tree.frames if frame[4:5] == (KERNEL,))
    n_idle = sum(row["idle_samples"] for row in of.recordings)
    idle = n_idle / (samples + n_idle) if n_idle else 0.0
    is_timed = all(row["seconds"] for row in of.recordings)
    events = _events(of, is_timed)
    return Run(
        name, totals, tree, duration, sampling, sample_ns, lost, in_kernel, events, idle=idle,
        sample_weight=weight if sampling is not None and counts_work(sampling) else 0,
        is_timed=is_timed,
    )  # fmt: skip


def _are_uneven(rows: Sequence[Mapping[str, Any]], sampling: Event) -> bool:
    """Whether samples of some recordings stand for more than those of others, as they do at unlike frequencies."""
    times = [time_of_sample(_main(row), row["sample_weight"], row["samples"]) for row in rows if row["samples"]]
    weights = [row["sample_weight"] / row["samples"] for row in rows if row["samples"]]
    of_each = weights if counts_work(sampling) else times
    return bool(of_each) and max(of_each) > (1 + ALIKE_RATES) * min(of_each)


def _per_sample(rows: Sequence[Mapping[str, Any]], sampling: Event) -> tuple[float, float]:
    """(what a sample weighs if as many of equal weight vary as much as those of all recordings; how long it is in ns)
    Both are 0 where samples say no more than how many they are."""
    if sampling.unit == "samples":
        return 0.0, 0.0
    used = [row for row in rows if row["samples"]]
    weight = sum(row["sample_weight"] for row in used)
    per_sample = sum(row["sample_weight"] ** 2 / row["samples"] for row in used) / max(weight, 1)
    time = sum(time_of_sample(_main(row), row["sample_weight"], row["samples"]) * row["samples"] for row in used)
    return per_sample, per_sample * time / max(weight, 1)


def _by_weight(totals: Totals, sampling: Event, per_sample: float) -> Rows:
    """Returns the functions with so many samples as make their weight: float64."""
    functions, weights = totals.functions, totals.weights
    at, of = (
        [rows.columns.index(name) for name in names]
        for rows, names in ((functions, ("samples", "total_samples")), (weights, ("weight", "total_weight")))
    )
    amounts = functions.amounts.astype(np.float64)
    amounts[:, at] = 0
    place = {key: nth for nth, key in enumerate(functions.keys)}
    for key, row in zip(weights.keys, weights.amounts, strict=True):
        if key[4:] == sampling.key and key[:4] in place:
            amounts[place[key[:4]], at] = row[of] / per_sample
    return replace(functions, amounts=amounts)


def _tree_by_weight(forest: Tree, sampling: Event, per_sample: float) -> Tree:
    """Returns the call paths with so many samples as make their weight. What is rounded of one is added to the next, so
    that all together are as many."""
    roots = roots_of(forest)
    is_main = np.array([frame[2:4] == sampling.key[:2] for frame in forest.frames], bool)[forest.frame[roots]]
    columns = np.stack([forest.column((name,)) for name in MEASURES], axis=1)
    exact = np.where(is_main, columns[:, MEASURES.index(WEIGHT)], 0) / per_sample
    columns[:, MEASURES.index("samples")] = np.diff(np.rint(np.cumsum(exact)), prepend=0).astype(np.int64)
    own = Amounts.of_columns(columns)
    return Tree.of(forest.frames, forest.parent, forest.frame, [(name,) for name in MEASURES], own)


def _main(row: Mapping[str, Any]) -> Event:
    recorded = orjson.loads(row["events"])
    return Event(row["event"], row["unit"], row["interval_ns"], recorded[0]["kind"] if recorded else "other")


def _events(of: Combination, is_timed: bool) -> tuple[Recorded, ...]:
    """Returns the events of all recordings, where there are several; those of one that did not have them are missing.
    What a sample weighs is the mean."""
    found: dict[Key, list[dict[str, Any]]] = {}
    named: dict[str, Event] = {}
    for row in of.recordings:
        for each in orjson.loads(row["events"]):
            found.setdefault((each["event"], each["unit"], each["kind"]), []).append(each)
            named[each["event"]] = Event(each["event"], each["unit"], kind=each["kind"])
    if len(found) < 2:
        return ()
    events = []
    for (name, unit, kind), each in found.items():
        periods = {one["period"] for one in each}
        samples, weight = (sum(one[key] for one in each) for key in ("samples", "weight"))
        is_scaled = any(one["is_scaled"] for one in each)
        event = Event(name, unit, 0, kind, periods.pop() if len(periods) == 1 else 0, -1, is_scaled)
        are_sums = is_sum(event, named.get(each[0]["leader"]), is_timed)
        events.append(Recorded(event, samples, weight, weight / max(samples, 1), are_sums))
    return tuple(events)


def _tree(forest: Tree) -> Tree:
    """Returns the tree without the roots: what they say is in the measures, as a comparison wants them."""
    if not len(forest.parent):
        return Tree()
    nodes = np.flatnonzero(forest.parent >= 0)
    place = np.full(len(forest.parent), -1, np.int32)
    place[nodes] = np.arange(len(nodes))
    root_of = roots_of(forest)
    measures: list[Key] = []
    own = []
    for name, measure in COMPARED.items():
        node, value = forest.amounts((name,))
        roots, nth = np.unique(root_of[node], return_inverse=True)
        own.append((place[node], len(measures) + nth.reshape(-1), value))
        groups = [forest.frames[frame] for frame in forest.frame[roots].tolist()]
        measures += [(process, thread, measure.name, measure.unit) for process, thread, _, _ in groups]
    return Tree.of(forest.frames, place[forest.parent[nodes]], forest.frame[nodes], measures, Amounts.joined(own))
