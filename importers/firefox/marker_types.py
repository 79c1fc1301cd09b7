"""Map: markers become tables of the model, one for each type, with columns as the schemas and the data have them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import orjson

from traceferry.common.patterns import compiled_later
from traceferry.importers.firefox._stacks import narrowed
from traceferry.importers.firefox.attributes import WRITER
from traceferry.importers.firefox.columns import MAX_INTEGER, BadRows, Columns, text_of
from traceferry.importers.firefox.marker_groups import Cells, Group, KeptGroup
from traceferry.importers.firefox.markers import (
    NETWORK,
    PICTURE_SIZE,
    TIMES,
    TIMES_OF_REQUESTS,
    Numbered,
    Rows,
    keys_of,
)
from traceferry.importers.firefox.times import Times
from traceferry.model import (
    FIELD_DTYPES,
    MARKER_COLORS,
    MARKER_COLUMNS,
    OWN_NAME,
    Array,
    FieldFormat,
    MarkerField,
    MarkerType,
    Table,
)
from traceferry.native.distinct import rows_of_places
from traceferry.native.values import are_of

# Members of a marker's data that are no fields; of these, the ones that are lost.
NOT_FIELDS = {"type", "cause", "innerWindowID", *TIMES}
LOST = ("innerWindowID",)
STRING_INDEX = ("unique-string", "flow-id", "terminating-flow-id")
FLOWS = ("flow-id", "terminating-flow-id")
TEXT: FieldFormat = "text"
JSON: FieldFormat = "json"
OF_SCHEMA: dict[str, FieldFormat] = {
    "url": "url", "file-path": "path", "sanitized-string": TEXT, "string": TEXT, "unique-string": TEXT,
    "duration": "duration", "time": "time", "milliseconds": "duration", "seconds": "duration",
    "microseconds": "duration", "nanoseconds": "duration", "bytes": "bytes", "integer": "integer",
    "hexadecimal": "hex", "pid": TEXT, "tid": TEXT, "decimal": "decimal", "percentage": "percentage", "list": JSON,
    "table": JSON, "traceferry-hex": "hex",
}  # fmt: skip
NS_OF = {"duration": 1e6, "time": 1e6, "milliseconds": 1e6, "seconds": 1e9, "microseconds": 1e3, "nanoseconds": 1.0}
LABEL_FIELD = compiled_later(r"\{marker\.data\.([^{}.]+)\}")
MAX_TEXT = 1 << 16
ABSENT = object()
# In profiles of ours: a number that JavaScript would round.
HEX_TEXT = "traceferry-hex"


@dataclass
class _Found:
    """The contents of a type's markers. n: how many there are; is_named_apart: some have other names than the type;
    keys: of the data, with how many markers have them; kinds: the Python types of values without a schema."""

    n: int = 0
    is_named_apart: bool = False
    categories: Counter[int] = field(default_factory=Counter)
    keys: Counter[str] = field(default_factory=Counter)
    kinds: defaultdict[str, set[type]] = field(default_factory=lambda: defaultdict(set))


class _Column(NamedTuple):
    """A field. key: in the data; form: of the schema, "" is none; made: the field of the model."""

    key: str
    form: str
    made: MarkerField


class MarkerTypes:
    """The marker types of a profile: `survey` all threads, then `tables` makes those of one. not_fields: further
    members of the data that are none."""

    def __init__(self, schemas: Any, categories: list[tuple[str, str]], not_fields: Sequence[str] = ()) -> None:
        self._not_fields = NOT_FIELDS.union(not_fields)
        listed = schemas if isinstance(schemas, list) else []
        self._schemas = {one["name"]: one for one in listed if isinstance(one, dict) and _is_text(one.get("name"))}
        self._forms = {name: _forms(schema) for name, schema in self._schemas.items()}
        self._forms[NETWORK] = dict.fromkeys(TIMES_OF_REQUESTS, "time") | self._forms.get(NETWORK, {})
        self._categories = categories
        self._found: dict[str, _Found] = {}
        self._made: dict[str, tuple[MarkerType, list[_Column]]] = {}
        self._flows: dict[tuple[Any, str], int] = {}
        self._lost: Counter[str] = Counter()
        self.n_other_categories = 0

    # ------------------------------------------------------------ survey

    def groups(self, rows: Rows, process: Any, texts: list[str]) -> list[Group]:
        """Returns the markers of a thread by type. process: which flows are linked."""
        if not len(rows.ts):
            return []
        number = rows.type.number.astype(np.int32)
        if bool((number == number[0]).all()):
            return [self._group(rows.type.texts[number[0]], rows, None, process, texts)]
        listed, ends = rows_of_places(number, len(rows.type.texts))
        parts = zip(rows.type.texts, np.split(listed, ends[:-1]), strict=True)
        used = sorted(((kind, mine) for kind, mine in parts if len(mine)), key=lambda part: int(part[1][0]))
        return [self._group(kind, rows, mine, process, texts) for kind, mine in used]

    def _group(self, kind: str, rows: Rows, mine: Array | None, process: Any, texts: list[str]) -> Group:
        """mine: the rows of the type, None is all."""
        if mine is None:
            numbers, name, category = np.arange(len(rows.ts)), rows.name, rows.category
            data, keys = rows.data, rows.keys
        else:
            numbers, name, category = mine, rows.name.at(mine), rows.category[mine]
            data = _chosen(rows.data, mine.tolist())
            keys = keys_of(data)
        flow = self.flow_numbers(kind, data, process, texts)
        return Group(kind, numbers, _other_names(name, kind), category, flow, data, keys)

    def survey(self, groups: Sequence[Group]) -> None:
        """Takes note of the types of a thread's markers."""
        for group in groups:
            found = self._found.setdefault(group.kind, _Found())
            found.n += len(group.rows)
            found.is_named_apart |= group.names is not None
            found.categories.update(_counts(group.category))
            forms = self._forms.get(group.kind, {})
            found.keys.update({key: n for key, n in group.keys.items() if key not in self._not_fields})
            self._lost.update({key: group.keys.get(key, 0) for key in LOST})
            for key in found.keys:
                if key not in forms:
                    found.kinds[key].update(set(map(type, group.cells(key, ABSENT))) - {type(ABSENT)})

    def kept(self, groups: Sequence[Group], texts: list[str]) -> list[KeptGroup] | None:
        """Returns them in few bytes; None: some have values that are kept in none."""
        made: list[KeptGroup] = []
        for group in groups:
            columns = self._kept_columns(group, texts)
            if columns is None:
                return None
            made.append(KeptGroup(group.kind, group.rows, group.names, narrowed(group.flow), columns))
        return made

    def _kept_columns(self, group: Group, texts: list[str]) -> dict[str, Cells] | None:
        forms, columns = self._forms.get(group.kind, {}), dict[str, Cells]()
        for key in group.keys:
            if key in self._not_fields:
                continue
            made = _kept_cells(group.cells(key), forms.get(key, ""), texts)
            if made is None:
                return None
            columns[key] = made
        return columns

    def finish(self) -> None:
        """Declares the types; there are no more of them."""
        for kind, found in self._found.items():
            self._made[kind] = self._declared(kind, found)
            self.n_other_categories += found.n - max(found.categories.values(), default=0)

    def lost(self) -> dict[str, int]:
        """Returns how many values are left out, by what they are."""
        return {"fields " + key: n for key, n in self._lost.items() if n}

    def _declared(self, kind: str, found: _Found) -> tuple[MarkerType, list[_Column]]:
        schema, forms = self._schemas.get(kind, {}), self._forms.get(kind, {})
        taken = {column.name for column in MARKER_COLUMNS}
        columns: list[_Column] = []
        for key in dict.fromkeys([*forms, *found.keys]):
            form = forms.get(key, "")
            if form in FLOWS or not found.keys[key] or _is_stack(key, found.kinds.get(key, set())):
                continue
            label = next((f.get("label") for f in _fields(schema) if f.get("key") == key), None)
            free = _free(key, taken)
            made = MarkerField(
                free, text_of(label) or key, _format(key, form, found.kinds.get(key, set())),
                found.keys[key] < found.n,
            )  # fmt: skip
            columns.append(_Column(key, form, made))
        named_by = ""
        if found.is_named_apart:
            named_by = _free(OWN_NAME, taken)
            columns.insert(0, _Column("", "", MarkerField(named_by, "Name", TEXT)))
        category, _ = found.categories.most_common(1)[0]
        known = 0 <= category < len(self._categories)
        name, color = self._categories[category] if known else ("Other", "grey")
        doc = schema.get("description")
        return (
            MarkerType(
                kind, text_of(doc), tuple(column.made for column in columns),
                label=_label(schema, {column.key: column.made.key for column in columns}),
                group_by=(named_by,) if named_by else (),
                category=name,
                named_by=named_by,
                color=color if MARKER_COLORS.get(name) != color else "",
            ),
            columns,
        )  # fmt: skip

    # ------------------------------------------------------------ tables

    def tables(
        self, groups: Sequence[Group | KeptGroup], ts: Array, end: Array, stack: Array, texts: list[str], times: Times,
        bad: BadRows,
    ) -> dict[MarkerType, Table]:  # fmt: skip
        """Returns the tables of a thread. ts, end, stack: of its markers, in the trace's terms."""
        made: dict[MarkerType, Table] = {}
        for group in groups:
            marker_type, columns = self._made[group.kind]
            order = np.argsort(ts[group.rows], kind="stable")
            is_sorted = bool((order[1:] > order[:-1]).all())
            mine = group.rows if is_sorted else group.rows[order]
            listed = None if is_sorted else order.tolist()
            values: dict[str, Any] = {
                "ts": ts[mine], "dur": end[mine] - ts[mine], "stack": stack[mine], "flow": group.flow[order],
            }  # fmt: skip
            for column in columns:
                cells = group.cells(column.key) if column.key else group.names or [group.kind] * len(mine)
                cells = cells if listed is None else _chosen(cells, listed)
                values[column.made.key] = _converted(column, cells, texts, times, f"markers.data.{column.key}", bad)
            made[marker_type] = Table(marker_type.spec, values)
        return made

    def flow_numbers(self, kind: str, data: list[dict[str, Any]], process: Any, texts: list[str]) -> Array:
        """Returns the number of the flow of each marker of a type, 0 is none."""
        keys = [key for key, form in self._forms.get(kind, {}).items() if form in FLOWS]
        if not keys:
            return np.zeros(len(data), np.int64)
        for key in keys:
            for one in data:
                if text := _string(one.get(key), texts):
                    self._flows.setdefault((process, text), len(self._flows) + 1)
        found = ((_string(one.get(key), texts) for key in keys) for one in data)
        first = (next((text for text in mine if text), "") for mine in found)
        return np.array([self._flows[process, text] if text else 0 for text in first], np.int64)


def _chosen(values: list[Any], rows: list[int]) -> list[Any]:
    """Returns the values of rows."""
    return list(map(values.__getitem__, rows))


def _other_names(name: Numbered, kind: str) -> list[str] | None:
    """Returns the names of markers; None: they are called as their type."""
    names = Numbered(name.texts, name.number[:1]).listed()
    if not bool((name.number == name.number[0]).all()):
        names = name.listed()
    elif names[0] != kind:
        names *= len(name.number)
    return None if names.count(kind) == len(names) else names


def _counts(numbers: Array) -> dict[int, int]:
    """Returns how often each number occurs, in the order in which they do."""
    if len(numbers) and bool((numbers == numbers[0]).all()):
        return {int(numbers[0]): len(numbers)}
    return Counter(numbers.tolist())


# ---------------------------------------------------------------- declarations


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _fields(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yields the fields of a schema, which are its `data` until version 54."""
    listed = schema.get("fields", schema.get("data"))
    for one in listed if isinstance(listed, list) else []:
        if isinstance(one, dict) and _is_text(one.get("key")):
            yield one


def _forms(schema: dict[str, Any]) -> dict[str, str]:
    """Returns the format of each field: lists and tables are objects."""
    found: dict[str, str] = {}
    for one in _fields(schema):
        form = HEX_TEXT if one.get(WRITER) == "hex" else one.get("format")
        found[one["key"]] = form if isinstance(form, str) else "table"
    return found


def _is_stack(key: str, kinds: set[type]) -> bool:
    """Whether a member is a thread of one sample, which is the stack of the marker."""
    return key == "stack" and kinds <= {dict}


def _free(key: str, taken: set[str]) -> str:
    while key in taken:
        key += "_"
    taken.add(key)
    return key


def _format(key: str, form: str, kinds: set[type]) -> FieldFormat:
    if key == PICTURE_SIZE:
        return "bytes"
    if form:
        return OF_SCHEMA.get(form, TEXT)
    kinds = kinds - {type(None)}
    if kinds and kinds <= {int, float}:
        return "integer" if kinds == {int} else "decimal"
    return JSON if kinds and kinds <= {dict, list} else TEXT


def _label(schema: dict[str, Any], keys: dict[str, str]) -> str:
    """Returns the label of a schema as a template of the model, "" where it is more than text and fields."""
    for name in ("tableLabel", "chartLabel", "tooltipLabel"):
        label = text_of(schema.get(name))
        if not label:
            continue
        found = LABEL_FIELD.findall(label)
        rest = LABEL_FIELD.sub("", label)
        if not {"{", "}"} & set(rest) and all(key in keys for key in found):
            return LABEL_FIELD.sub(lambda match: "{" + keys[match[1]] + "}", label)
    return ""


# ---------------------------------------------------------------- values


def _objects(values: list[str]) -> Array:
    column = np.empty(len(values), object)
    column[:] = values
    return column


def _string(value: Any, texts: list[str]) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return texts[value] if 0 <= value < len(texts) else ""
    return value if isinstance(value, str) else ""


def _texts(cells: list[Any], texts: list[str]) -> list[str]:
    """Returns the text that each value is or refers to."""
    if are_of(cells, str):
        return cells
    if _are_rows(cells, texts):
        return list(map(texts.__getitem__, cells))
    return [_string(cell, texts) for cell in cells]


def _are_rows(cells: list[Any], texts: list[str]) -> bool:
    return are_of(cells, int) and min(cells) >= 0 and max(cells) < len(texts)


def _kept_cells(cells: list[Any], form: str, texts: list[str]) -> Cells | None:
    """Returns the values of a field, with texts in place of their numbers."""
    if form not in STRING_INDEX:
        return Cells.of(cells)
    return Cells.of_texts(cells, texts) if _are_rows(cells, texts) else Cells.of(_texts(cells, texts))


def _converted(column: _Column, cells: list[Any], texts: list[str], times: Times, path: str, bad: BadRows) -> Array:
    """Returns a column in the model's terms; a value of another kind is unknown, and counted."""
    form = column.made.format
    if FIELD_DTYPES[form] == "text":
        if column.form in STRING_INDEX:
            return _objects(_texts(cells, texts))
        if form == JSON:
            return _objects(["" if cell is None or cell == "" else json_text(cell) for cell in cells])
        return _objects(cells if are_of(cells, str) else [c if isinstance(c, str) else _as_text(c) for c in cells])
    if form in ("decimal", "percentage"):
        numbers = Columns({"cells": cells}, path, bad).floats("cells", 0)
        return np.where(np.isfinite(numbers), numbers, 0)
    if form == "time":
        found = [times.one(cell) for cell in cells]
        bad.add(path, sum(one is None and cell is not None for one, cell in zip(found, cells, strict=True)))
        return np.array([0 if one is None else one for one in found], np.int64)
    if form == "hex":
        return _numbers(cells, _unsigned, np.uint64, path, bad)
    scale = NS_OF.get(column.form, 1.0)
    if set(map(type, cells)) <= {int, float, type(None)}:
        return _whole(cells, scale, path, bad)
    return _numbers(cells, lambda cell: round(cell * scale) if scale != 1 else int(cell), np.int64, path, bad)


def _whole(cells: list[Any], scale: float, path: str, bad: BadRows) -> Array:
    """Returns numbers as int64, 0 for null."""
    columns = Columns({"cells": cells}, path, bad)
    if scale == 1:
        return columns.ints("cells", 0)
    values = np.rint(columns.floats("cells", 0) * scale)
    is_good = np.abs(values) < MAX_INTEGER
    bad.add(path, int(np.count_nonzero(~is_good)))
    return np.where(is_good, values, 0).astype(np.int64)


def _numbers(cells: Iterable[Any], convert: Callable[[Any], int], dtype: Any, path: str, bad: BadRows) -> Array:
    found: list[int] = []
    n_bad = 0
    limit = 1 << (64 if dtype is np.uint64 else 63)
    for cell in cells:
        value = 0
        if cell is not None:
            try:
                value = convert(cell)
            except (TypeError, ValueError, OverflowError):
                n_bad += 1
            if not (0 if dtype is np.uint64 else -limit) <= value < limit:
                value, n_bad = 0, n_bad + 1
        found.append(value)
    bad.add(path, n_bad)
    return np.array(found, dtype)


def _unsigned(cell: Any) -> int:
    return int(cell, 16) if isinstance(cell, str) else int(cell)


def _as_text(cell: Any) -> str:
    if cell is None:
        return ""
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 1 << 53:
        return str(int(cell))
    if isinstance(cell, (dict, list)):
        return json_text(cell)
    return str(cell).lower() if isinstance(cell, bool) else str(cell)


def json_text(value: Any) -> str:
    try:
        return orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY).decode()
    except (TypeError, ValueError):
        return str(value)
