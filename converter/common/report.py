"""The report: what was lost, repaired or guessed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from traceferry.common.issue_kinds import KINDS, Severity
from traceferry.common.shown_text import encodable, shown

SHOWN_DETAILS = 3
MOST = (1 << 63) - 1  # JSON is written with 64 bits


@dataclass(frozen=True)
class Issue:
    """One kind of loss or repair, with its sum over all places.

    Parameters
    ----------
    kind : str
        Its name, as FORMATS.md lists them.
    count : int
        How often, in units that the title tells.
    offset : int, optional
        Of the first one in the input, in bytes.
    details : tuple of str
        What is said of each place.
    advice : str
        What the user can do, or "".
    """

    kind: str
    count: int
    offset: int | None
    details: tuple[str, ...]
    advice: str

    @property
    def detail(self) -> str:
        """Returns the first details as one text, and how many more there are."""
        more = f"; and {len(self.details) - SHOWN_DETAILS} more" if len(self.details) > SHOWN_DETAILS else ""
        return "; ".join(self.details[:SHOWN_DETAILS]) + more

    @property
    def severity(self) -> Severity:
        """Whether data is damaged ("error"), lost ("loss"), or neither ("info")."""
        return KINDS[self.kind].severity

    @property
    def title(self) -> str:
        """The issue in a sentence."""
        return KINDS[self.kind].title

    def as_json(self) -> dict[str, Any]:
        """Returns all of it as plain data, as `convert --report` writes it."""
        keys = ("kind", "severity", "count", "offset", "title", "detail", "details", "advice")
        return {key: getattr(self, key) for key in keys}

    def as_text(self) -> str:
        """Returns a line, as the commands print it."""
        place = f", first at offset {self.offset}" if self.offset is not None else ""
        detail = f": {self.detail}" if self.detail else ""
        advice = f" ({self.advice})" if self.advice else ""
        return shown(f"{self.severity}: {self.title}{detail} [{self.kind}, {n_times(self.count)}{place}]{advice}")


def n_times(count: int) -> str:
    return "1 time" if count == 1 else f"{count} times"


class Problems:
    """The problems of an input that is read before there is a report: of each kind, of which there may be millions,
    their number, the first offset, and what is said of that."""

    def __init__(self) -> None:
        self._of_kind: dict[str, tuple[int, int | None, str]] = {}

    def add(self, kind: str, count: int = 1, offset: int | None = None, detail: str = "") -> None:
        """Adds so many problems, the first at `offset`. kind: a key of KINDS."""
        n, first, of_first = self._of_kind.get(kind, (0, offset, detail))
        if offset is not None and (first is None or offset < first):
            first, of_first = offset, detail
        self._of_kind[kind] = n + count, first, of_first

    def note(self, report: Report, where: str) -> None:
        for kind, (count, offset, detail) in self._of_kind.items():
            report.note(kind, count, offset=offset, where=where, detail=detail)


def _joined(texts: Iterable[str]) -> str:
    first = [*texts]
    more = [f"and {len(first) - SHOWN_DETAILS} more"] if len(first) > SHOWN_DETAILS else []
    return "; ".join([*first[:SHOWN_DETAILS], *more])


Noted = tuple[int, int | None, str, str | None]
Notes = dict[tuple[str, str], Noted]
# The arguments of `Report.note`.
Note = tuple[str, int, int | None, str, str, str | None]


class Report:
    """A report of what was lost, repaired or guessed: iterating gives the issues.

    Noting the same kind at the same place again replaces the count, so a thread that is loaded twice is counted once.

    Parameters
    ----------
    base : Report, optional
        The issues begin with those that it began with, or had when it was sealed, and it gets those that are noted
        here.
    """

    def __init__(self, base: Report | None = None) -> None:
        self._base = base
        self._first: Notes | None = None
        self._notes: Notes = {}
        self._records: list[list[Note]] = []
        if base is not None:
            self._first = base._notes if base._first is None else base._first
            self._notes |= self._first

    def note(
        self,
        kind: str,
        count: int = 1,
        *,
        offset: int | None = None,
        where: str = "",
        detail: str = "",
        advice: str | None = None,
    ) -> None:
        """Adds to the report, or takes back.

        Parameters
        ----------
        kind : str
            A key of KINDS.
        count : int, default 1
            How often; 0 withdraws an earlier note.
        offset : int, optional
            In the input, in bytes.
        where : str, default ""
            Identifies the place.
        detail : str, default ""
            What is said of it.
        advice : str, optional
            Given instead of the one that is declared.
        """
        if kind not in KINDS:
            raise KeyError(f"undeclared kind of issue: {kind}")
        for record in self._records:
            record.append((kind, count, offset, where, encodable(detail), advice))
        if count > 0:
            self._notes[kind, where] = (count, offset, encodable(detail), advice)
        else:
            self._notes.pop((kind, where), None)
        if self._base is not None:
            self._base.note(kind, count, offset=offset, where=where, detail=detail, advice=advice)

    @contextmanager
    def recorded(self) -> Iterator[list[Note]]:
        """Gives what is noted inside, in its order."""
        record: list[Note] = []
        self._records.append(record)
        try:
            yield record
        finally:
            # By identity: two records can be equal.
            self._records = [one for one in self._records if one is not record]

    def places(self, *kinds: str) -> set[str]:
        """Returns the places of these kinds of issues."""
        return {where for kind, where in self._notes if kind in kinds}

    def of_place(self, kind: str, is_there: Callable[[str], bool]) -> tuple[str, str]:
        """Returns (detail, advice) of the first note of a kind at a place that is wanted; "" where there is none."""
        for (of, where), (_, _, detail, advice) in self._notes.items():
            if of == kind and is_there(where):
                return detail, KINDS[kind].advice if advice is None else advice
        return "", ""

    def notes_of(self, kind: str) -> Iterator[tuple[str, str]]:
        """Yields (detail, advice) of each note of a kind."""
        for (of, _), (_, _, detail, advice) in self._notes.items():
            if of == kind:
                yield detail, KINDS[kind].advice if advice is None else advice

    def seal(self) -> None:
        """Reports that are based on this one begin with the issues of now."""
        if self._first is None:
            self._first = dict(self._notes)

    def __iter__(self) -> Iterator[Issue]:
        """Yields the issues in the order of their declaration, each kind once."""
        noted: dict[str, list[Noted]] = {}
        for (kind, _), note in list(self._notes.items()):  # at once: another thread may note something
            noted.setdefault(kind, []).append(note)
        for kind, declared in KINDS.items():
            if notes := noted.get(kind, []):
                offsets = [offset for _, offset, _, _ in notes if offset is not None]
                yield Issue(
                    kind,
                    min(sum(count for count, _, _, _ in notes), MOST),
                    min(offsets, default=None),
                    tuple(dict.fromkeys(detail for _, _, detail, _ in notes if detail)),
                    _joined({advice: None for *_, advice in notes if advice is not None}) or declared.advice,
                )

    @property
    def lossy(self) -> bool:
        """Whether the input has lost or damaged data."""
        return any(issue.severity != "info" and not KINDS[issue.kind].of_output for issue in self)

    @property
    def damaged(self) -> bool:
        """Whether the input is damaged."""
        return any(issue.severity == "error" for issue in self)
