"""Map: the facts of a thread that its first reading has found, and that are kept until it is loaded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from traceferry.importers.firefox import samples
from traceferry.importers.firefox.attributes import WRITER
from traceferry.importers.firefox.document import Part
from traceferry.importers.firefox.marker_groups import KeptMarkers
from traceferry.importers.firefox.tables import Stacks

Members = dict[str, Any]


class Survey(NamedTuple):
    """The facts of a thread that are kept without its tables. number: in the profile; part: of the process; stacks: the
    trace's; head: members that are no tables; span: the first and last time of what is in it, None if there is none;
    first_object: the number of its first object; n_records: how much it holds; unit, event: of its samples; digest: of
    their times and stacks; gaps: between them, where they weigh times; is_weighed: a profile of ours tells what they
    weigh, which the viewer counts; kept, markers: its samples and its markers, None where they are read again;
    is_whole: nothing of it is read again; are_calls: they last until the next one; sampled: the one with its samples,
    where it has calls, too."""

    number: int
    part: Part
    stacks: Stacks
    head: Members
    span: tuple[int, int] | None
    first_sample: int | None
    first_object: int
    n_records: int
    unit: str
    digest: int
    gaps: samples.Gaps | None
    is_weighed: bool
    kept: samples.KeptRows | None = None
    markers: KeptMarkers | None = None
    is_whole: bool = False
    event: int = -1
    are_calls: bool = False
    sampled: tuple[Survey, ...] = ()


def joined(mine: Sequence[Survey]) -> list[Survey]:
    """Returns the threads of a process, each with those behind it that have only samples of it."""
    found: list[Survey] = []
    whole: dict[tuple[str, ...], int] = {}
    for one in mine:
        key = tuple(str(one.head.get(name)) for name in ("tid", "registerTime"))
        if "event" in one.head[WRITER] and key in whole:
            of = found[whole[key]]
            spans = [survey.span for survey in (of, one) if survey.span is not None]
            span = (min(a for a, _ in spans), max(b for _, b in spans)) if spans else None
            found[whole[key]] = of._replace(sampled=(*of.sampled, one), span=span)
        else:
            if "event" not in one.head[WRITER]:
                whole[key] = len(found)
            found.append(one)
    return found
