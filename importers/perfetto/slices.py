"""Map: slices of threads become calls, those of other tracks and instants become markers."""

from __future__ import annotations

from collections import Counter as Counting
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import orjson

from traceferry.common.errors import FormatError
from traceferry.common.patterns import compiled_later
from traceferry.common.shown_text import encodable
from traceferry.importers.perfetto._slices import nested, placed
from traceferry.importers.perfetto.decode import Tables, dense
from traceferry.importers.perfetto.queries import OWN_TRACK
from traceferry.model import (
    ARGUMENTS,
    CALLS,
    ENTRY_LOST,
    FIELD_DTYPES,
    LEAVE,
    OPEN_AT_END,
    OPEN_AT_START,
    UNWOUND,
    Array,
    FieldFormat,
    MarkerField,
    MarkerType,
    Table,
    TraceBuilder,
    distinct,
)
from traceferry.native.distinct import at_places, distinct_with_places
from traceferry.trace_processor.results import Answer

# Tracks of a thread whose slices are calls, of which it has those of the first rank, and then of the most slices: what
# programs mark, by themselves and through the system; Java's methods (ART); functions of the kernel (ftrace's
# function_graph).
CALL_TRACKS = {OWN_TRACK: 0, "thread_execution": 0, "art_method_tracing": 1, "thread_funcgraph": 2}
UNNAMED = "(unnamed)"
# The category of slices without one, and the name of what happens at one time on a thread's own track.
SLICES, INSTANT = "Slices", "Instant"
# Fields of one type of markers, and types by the names of their tracks; what is more goes together.
MOST_FIELDS, MOST_TYPES = 64, 200
NAME, REST = "name", "more"
# Stands for the name of a slice among the keys of its arguments.
SLICE_NAME = "\0"
COLUMNS = frozenset({"ts", "dur", "stack", "flow"})
RESERVED = COLUMNS | {NAME, "type", "category", REST}
Values = dict[str, Any]
Place = tuple[str, int]  # source, line
NOWHERE: Place = ("", 0)
# Arguments that say where in the sources a slice is; trace_processor makes them of SourceLocation.
FILE, LINE = "source.file_name", "source.line_number"
LOCATION = frozenset({FILE, LINE, "source.function_name", "source_location_iid"})
# What clang -ftime-trace adds up at the end: "Total Backend", each on a thread that it makes up, with these arguments.
TOTAL, OF_TOTAL = "Total ", {"args.count", "args.avg ms"}


class Slices(NamedTuple):
    """Columns of all slices. end: where it ends at most; name, category: rows of `texts`. What all slices have is there
    once, for all of them."""

    id: Array
    ts: Array
    end: Array
    track: Array
    depth: Array
    arg_set: Array
    name: Array
    category: Array
    is_open: Array
    texts: list[str]


def read_slices(tables: Tables, offset_ns: int, first_ts: int, last_ts: int) -> tuple[Slices, int]:
    """Returns the slices, on the trace's clock and between these times, and of how many the end was moved: a slice ends
    with the one that it is in at the latest. offset_ns: added to the times."""
    answer = tables["slices"]
    track = dense(answer["track_id"].numbers(-1), len(answer))
    dur, depth = answer["dur"].numbers(), answer["depth"].numbers()
    ts, end, n_moved = placed(answer["ts"].numbers(), dur, track, depth, offset_ns, first_ts, last_ts)
    number = np.arange(len(answer))
    if len(said := answer["id"].numbers(-1)):
        number = dense(said, len(said))
    known: dict[str, int] = {"": 0}
    names, categories = (_numbered(answer, name, known) for name in ("name", "category"))
    has_arguments, none = "arg_set_id" in answer.names, np.broadcast_to(np.int64(-1), len(answer))
    arg_set = answer["arg_set_id"].numbers(-1) if has_arguments else none
    return Slices(number, ts, end, track, depth, arg_set, names, categories, dur < 0, list(known)), n_moved


def _numbered(answer: Answer, name: str, known: dict[str, int]) -> Array:
    """Returns the number of each cell's text, int32; no text is 0, and in a column that was not asked for all are.
    known: the numbers of texts, which grows."""
    if name not in answer.names:
        return np.broadcast_to(np.int32(0), len(answer))
    column = answer[name]
    numbers = [known.setdefault(text, len(known)) for text in column.known]
    return at_places(np.array([*numbers, 0], np.int32), column.text_numbers())


def arguments_by_set(tables: Tables) -> dict[int, Values]:
    """Returns the arguments of each set by their keys."""
    answer, found = tables["args"], defaultdict[int, Values](dict)
    columns = (answer[name].values() for name in ("arg_set_id", "flat_key", "int_value", "string_value", "real_value"))
    for number, key, integer, text, real in zip(*columns, strict=True):
        value = text if text is not None else integer if integer is not None else real
        if value is None or number is None:
            continue
        if isinstance(value, float) and not np.isfinite(value):
            value = str(value)
        key = encodable(str(key).removeprefix("debug."))
        values = found[number]
        if key in values:
            before = values[key]
            values[key] = [*before, value] if isinstance(before, list) else [before, value]
        else:
            values[key] = value
    return found


def tracks_of_totals(slices: Slices, arguments: dict[int, Values]) -> set[int]:
    """Returns the tracks that have nothing but totals, as those of clang."""
    names = [nth for nth, text in enumerate(slices.texts) if text.startswith(TOTAL)]
    if not names:
        return set()
    rows = np.flatnonzero(np.isin(slices.name, names))
    are_totals = [arguments.get(number, {}).keys() == OF_TOTAL for number in slices.arg_set[rows].tolist()]
    rows = rows[np.array(are_totals, bool)]
    others = np.ones(len(slices.track), bool)
    others[rows] = False
    return set(slices.track[rows].tolist()) - set(distinct(slices.track[others]).tolist())


def flows_by_slice(tables: Tables) -> dict[int, int]:
    """Returns a number for each slice that arrows lead to or from: those that are connected have one."""
    above: dict[int, int] = {}

    def root(number: int) -> int:
        while above.setdefault(number, number) != number:
            above[number] = above[above[number]]
            number = above[number]
        return number

    answer = tables["flows"]
    pairs = zip(answer["slice_out"].numbers(-1).tolist(), answer["slice_in"].numbers(-1).tolist(), strict=True)
    for one, other in ((a, b) for a, b in pairs if a >= 0 and b >= 0):
        above[max(root(one), root(other))] = min(root(one), root(other))
    return {number: root(number) + 1 for number in above}


# ---------------------------------------------------------------- calls


Argument = tuple[int, int, int, int, int]  # position; bits of the number; rows of strings: key, text, format
# What our own exporter calls arguments that have a position only, and says of functions without a name.
BY_POSITION = compiled_later(r"arg(\d{1,4})")
FUNCTION_ID = "function_id"
# What it notes of a call: flags of its enter, of its leave.
ENTER_NOTES = {"open_at_start": OPEN_AT_START, "entry_lost": ENTRY_LOST}
LEAVE_NOTES = {"unwound": UNWOUND, "open_at_end": OPEN_AT_END}
OWN_KEYS = frozenset({FUNCTION_ID, *ENTER_NOTES, *LEAVE_NOTES})
COLOR = "correlation_id"
# What it adds to the keys of fields.
OWN_UNITS: dict[str, FieldFormat] = {"_bytes": "bytes", "_ns": "duration"}


class Calls:
    """The calls of all threads; what they refer to is added to the trace at once."""

    def __init__(
        self, trace: TraceBuilder, slices: Slices, rows: Array, arguments: dict[int, Values], flows: dict[int, int],
        is_ours: bool,
    ) -> None:  # fmt: skip
        """rows: the slices that are calls; arguments, flows: of slices, as above; is_ours: whether we wrote them."""
        self._trace, self._slices, self._flows, self._is_ours = trace, slices, flows, is_ours
        self._frame = np.full(len(slices.ts), -1, np.int32)
        name, category, arg_set = (_taken(column, rows) for column in (slices.name, slices.category, slices.arg_set))
        nothing = np.zeros(0, np.int64), None
        used, set_of_row = distinct_with_places(np.ascontiguousarray(arg_set)) if arguments else nothing
        places, place_of_set = _places(used.tolist(), arguments)
        n_categories, n_places = len(slices.texts) if category.any() else 1, len(places)
        which = name.astype(np.int64) * n_categories + category if n_categories > 1 else name
        which = which.astype(np.int64) * n_places + place_of_set[set_of_row] if n_places > 1 else which
        distinct, nth = distinct_with_places(which)
        made = [
            self._new_frame(
                slices.texts[one // n_places // n_categories],
                slices.texts[one // n_places % n_categories],
                places[one % n_places],
            )
            for one in distinct.tolist()
        ]
        self._frame[rows] = at_places(np.array(made, np.int32), nth)
        self._said = arguments
        self._arguments = {number: self._set(arguments[number]) for number in used.tolist() if number in arguments}

    def tables(self, rows: Array) -> tuple[Table, Table]:
        """Returns the calls and their arguments. rows: slices of one thread, each longer than nothing, nested."""
        slices, n = self._slices, len(rows)
        if not n:
            return Table(CALLS), Table(ARGUMENTS)
        rows = _outermost_first(slices, rows)
        of_enter, of_leave = np.zeros(n, np.uint8), np.where(slices.is_open[rows], LEAVE | OPEN_AT_END, LEAVE)
        if self._is_ours:
            of_enter, of_leave = self._noted(rows, ENTER_NOTES), of_leave | self._noted(rows, LEAVE_NOTES)
        said = slices.ts[rows], slices.end[rows], self._frame[rows], of_enter, of_leave.astype(np.uint8)
        try:
            ts, frame, flags = nested(*said)
        except ValueError as error:
            raise FormatError(f"trace_processor: {error}, in one thread") from None
        calls = Table(CALLS, {"ts": ts, "frame": frame, "flags": flags})
        return calls, self._arguments_of(rows, calls)

    def _new_frame(self, name: str, category: str, place: Place) -> int:
        trace, (path, line) = self._trace, place
        source = trace.sources.intern(path=trace.strings.intern(encodable(path))) if path else -1
        func = trace.funcs.intern(name=trace.strings.intern(encodable(name) or UNNAMED), source=source, line=line)
        # A trace may name several, with commas.
        of = trace.add_category(encodable(category.split(",")[0]) or SLICES, "blue")
        return trace.frames.intern(func=func, category=of)

    def _arguments_of(self, rows: Array, calls: Table) -> Table:
        """rows: the slices, in the order in which the calls begin."""
        if not self._arguments and not self._flows:
            return Table(ARGUMENTS)
        entered = np.flatnonzero(calls["flags"] & LEAVE == 0)
        found: list[tuple[int, ...]] = []
        of_row, id_of_row = self._slices.arg_set[rows], self._slices.id[rows]
        has_any = np.isin(of_row, list(self._arguments)) | np.isin(id_of_row, list(self._flows))
        chosen = np.flatnonzero(has_any)
        chosen = chosen[np.argsort(entered[chosen])]
        facts = zip(*(column[chosen].tolist() for column in (entered, of_row, id_of_row)), strict=True)
        for call, arg_set, number in facts:
            flow, values = self._flows.get(number, 0), self._arguments.get(arg_set, [])
            found += [(call, *value, 0 if nth else flow) for nth, value in enumerate(values)]
            if flow and not values:
                found.append((call, -1, 0, -1, -1, -1, flow))
        if not found:
            return Table(ARGUMENTS)
        names = ("call", "position", "value", "key", "text", "format", "flow")
        columns = zip(names, zip(*found, strict=True), strict=True)
        return Table(ARGUMENTS, {name: np.array(column, ARGUMENTS[name].numpy_dtype) for name, column in columns})

    def _noted(self, rows: Array, notes: dict[str, int]) -> Array:
        """Returns uint8: the flags that the arguments of slices note."""
        sets, nth = distinct_with_places(self._slices.arg_set[rows])
        of_sets = (self._said.get(number, {}) for number in sets.tolist())
        return np.array([sum(flag for key, flag in notes.items() if key in said) for said in of_sets], np.uint8)[nth]

    def _set(self, values: Values) -> list[Argument]:
        left_out = LOCATION | OWN_KEYS if self._is_ours else LOCATION
        kept = [(key, value) for key, value in values.items() if key not in left_out]
        return [self._argument(position, key, value) for position, (key, value) in enumerate(kept)]

    def _argument(self, position: int, key: str, value: Any) -> Argument:
        intern = self._trace.strings.intern
        of_ours = BY_POSITION.fullmatch(key) if self._is_ours else None
        if isinstance(value, int) and of_ours:
            return int(of_ours[1]), value & (1 << 64) - 1, -1, -1, -1
        if isinstance(value, int):
            return position, value & (1 << 64) - 1, intern(key), -1, intern("integer")
        if isinstance(value, float):
            return position, int(np.float64(value).view(np.uint64)), intern(key), -1, intern("decimal")
        return position, 0, intern(key), intern(_text(value)), intern("text" if isinstance(value, str) else "json")


def _outermost_first(slices: Slices, rows: Array) -> Array:
    """Returns the rows by rising times; of those that begin together, the outer first."""
    ts, depth = slices.ts[rows], slices.depth[rows]
    later, together = ts[1:] > ts[:-1], ts[1:] == ts[:-1]
    if np.all(later | together & (depth[1:] >= depth[:-1])):
        return rows
    return rows[np.lexsort((depth, ts))]


def _taken(column: Array, rows: Array) -> Array:
    """Returns the values of rows, each of which is there once at most, rising."""
    return column if len(rows) == len(column) else column[rows]


def _places(arg_sets: Sequence[int], arguments: dict[int, Values]) -> tuple[list[Place], Array]:
    """Returns the distinct places in sources that arguments tell, and the number of each set's: int64."""
    known: dict[Place, int] = {NOWHERE: 0}
    of_set = np.zeros(len(arg_sets), np.int64)
    for row, number in enumerate(arg_sets):
        values = arguments.get(number, {})
        path, line = values.get(FILE), values.get(LINE)
        if isinstance(path, str) and path:
            first = line if isinstance(line, int) and 0 < line < 1 << 31 else 0
            of_set[row] = known.setdefault((path, first), len(known))
    return list(known), of_set


# ---------------------------------------------------------------- markers


class Kinds:
    """The types of markers: one for each name of a track, or of more than MOST_TYPES names, for each kind of track."""

    def __init__(
        self, slices: Slices, arguments: dict[int, Values], titles: dict[int, tuple[str, str]], is_ours: bool
    ) -> None:
        """titles: the name and the type of each track with markers; is_ours: whether we wrote them."""
        self._slices, self._arguments, self._is_ours = slices, arguments, is_ours
        names = {name for name, _ in titles.values()}
        nth = 0 if len(names) <= MOST_TYPES else 1
        self.title = {track: encodable(title[nth] or title[0]) for track, title in titles.items()}
        sets: dict[str, Counting[tuple[int, int, int]]] = defaultdict(Counting)
        wanted = np.flatnonzero(np.isin(slices.track, np.array(list(titles), np.int64)))
        columns = (slices.track, slices.arg_set, slices.name, slices.category)
        for track, *said in zip(*(column[wanted].tolist() for column in columns), strict=True):
            sets[self.title[track]][tuple(said)] += 1
        # By types: the argument of each field.
        self._keys: dict[str, list[str]] = {}
        self.types = {title: self._type(title, used) for title, used in sets.items()}

    def _type(self, title: str, used: Counting[tuple[int, int, int]]) -> MarkerType:
        """used: how often there are (arguments, name, category)."""
        held: dict[str, list[Any]] = defaultdict(list)
        counts: Counting[str] = Counting()
        for (arg_set, *_), n in used.items():
            for key, value in self._arguments.get(arg_set, {}).items():
                if key != COLOR or not self._is_ours:
                    held[key].append(value)
                    counts[key] += n
        ordered = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])) if not self._is_ours else counts.items()
        keys = [key for key, _ in ordered]
        found, category = self._said_by_ours(title, used, keys) if self._is_ours else (SLICE_NAME, SLICES)
        fields = {SLICE_NAME: MarkerField(NAME, "Name", "text")} if found == SLICE_NAME else {}
        fields |= {key: self._field(key, held[key]) for key in keys[:MOST_FIELDS]}
        if len(keys) > MOST_FIELDS:
            fields[REST] = MarkerField(REST, "More", "json", optional=True)
        self._keys[title] = list(fields)
        named_by = fields[found].key if found else ""
        label, shown = (f"{{{named_by}}}", (named_by,)) if named_by else (title, ())
        return MarkerType(
            title, "Slices of a track", tuple(fields.values()), label, shown, category, named_by=named_by, color="blue"
        )

    def _field(self, key: str, values: list[Any]) -> MarkerField:
        of = _format(values)
        suffix = next((end for end in OWN_UNITS if self._is_ours and of == "integer" and key.endswith(end)), "")
        shown = key.removesuffix(suffix)
        key = _key(shown, COLUMNS) if self._is_ours else _key(shown)
        return MarkerField(key, shown, OWN_UNITS[suffix] if suffix else of, optional=True)

    def _said_by_ours(self, title: str, used: Iterable[tuple[int, int, int]], keys: list[str]) -> tuple[str, str]:
        """Returns (the argument that names the markers, SLICE_NAME: none, "": the type does; their category). Our
        exporter gives each slice a name, which may be one of the marker's fields, and a category."""
        texts = self._slices.texts
        names = [(texts[name], self._arguments.get(arg_set, {})) for arg_set, name, _ in used]
        categories = {texts[category] for *_, category in used}
        category = encodable(categories.pop().split(",")[0]) if len(categories) == 1 else SLICES
        if all(name == title for name, _ in names):
            return "", category or SLICES
        found = next((key for key in keys if all(values.get(key, title) == name for name, values in names)), SLICE_NAME)
        return found, category or SLICES

    def tables(self, rows: Array, flows: dict[int, int], stacks: dict[int, int]) -> dict[MarkerType, Table]:
        """Returns the markers of a thread. rows: its slices that are none of its calls; flows, stacks: of slices."""
        by_type: dict[str, list[int]] = defaultdict(list)
        for row in rows[np.argsort(self._slices.ts[rows], kind="stable")].tolist():
            by_type[self.title[int(self._slices.track[row])]].append(row)
        return {
            self.types[title]: self._table(self.types[title], mine, flows, stacks) for title, mine in by_type.items()
        }

    def _table(self, kind: MarkerType, rows: list[int], flows: dict[int, int], stacks: dict[int, int]) -> Table:
        slices = self._slices
        values = [self._arguments.get(arg_set, {}) for arg_set in slices.arg_set[rows].tolist()]
        columns: dict[str, Any] = {
            "ts": slices.ts[rows], "dur": slices.end[rows] - slices.ts[rows],
            "stack": np.array([stacks.get(number, -1) for number in slices.id[rows].tolist()], np.int32),
            "flow": np.array([flows.get(number, 0) for number in slices.id[rows].tolist()], np.int64),
        }  # fmt: skip
        keys = self._keys[kind.name]
        for key, one in zip(keys, kind.fields, strict=True):
            if key == SLICE_NAME:
                found: list[Any] = [encodable(slices.texts[one]) for one in slices.name[rows].tolist()]
            elif key == REST:
                found = [_text({k: v for k, v in each.items() if k not in keys} or "") for each in values]
            else:
                found = [each.get(key) for each in values]
            columns[one.key] = _column(found, one.format)
        return Table(kind.spec, columns)


def _key(key: str, reserved: frozenset[str] = RESERVED) -> str:
    return f"_{key}" if key in reserved else key


def _format(values: list[Any]) -> FieldFormat:
    """Returns the format that all values have."""
    if all(isinstance(value, int) for value in values):
        return "integer"
    if all(isinstance(value, (int, float)) for value in values):
        return "decimal"
    return "text"


def _column(values: list[Any], of: FieldFormat) -> Array:
    if of not in ("text", "json"):
        return np.array([value or 0 for value in values], FIELD_DTYPES[of])
    column = np.empty(len(values), object)
    column[:] = ["" if value is None else _text(value) for value in values]
    return column


def _text(value: Any) -> str:
    return encodable(value if isinstance(value, str) else orjson.dumps(value).decode())
