"""Map: the nodes of V8's call trees become stacks."""

from __future__ import annotations

from typing import Any

import numpy as np

from traceferry.common.shown_text import encodable
from traceferry.files.json_text import JsonText, Range
from traceferry.importers.cpuprofile._ticks import stacks_in_turn
from traceferry.model import Array, rows_by_key
from traceferry.model.categories import OF_V8, RUNTIME
from traceferry.model.tables import index_of
from traceferry.native.texts import TextTable, joined
from traceferry.timeline.stack_profiles import Place, StackProfile
from traceferry.timeline.stacks import StackTable

ROOT = "(root)"
MEMBERS = ("id", "callFrame", "children", "parent", "positionTicks", "hitCount", "selfSize")
ID, CALL_FRAME, CHILDREN, PARENT, TICKS, HIT_COUNT, SELF_SIZE = range(len(MEMBERS))
MOST = 1 << 50


class Nodes:
    """The nodes of the call tree, and the stacks of samples. stack: int32, of each node, and, behind them, none."""

    def __init__(self, text: JsonText, nodes: Range) -> None:
        self._text = text
        self._numbers, self._begins, self._ends = text.rows(nodes, *MEMBERS)
        ids = self.column(ID, -1)
        # Of two nodes of one number the later one counts.
        self._ids, last = np.unique(ids[::-1], return_index=True)
        self._rows = len(ids) - 1 - last
        self.n_bad = len(ids) - len(self._rows)
        self._parent = self._linked(ids)
        self._places, self._place = self._functions()
        self._tick_node, self._tick_line, self._n_ticks = self._ticks()
        self.stack, self._tick_stack = (np.full(n, -1, np.int32) for n in (len(self) + 1, len(self._tick_node)))

    def __len__(self) -> int:
        return len(self._numbers)

    def column(self, member: int, default: int = 0) -> Array:
        """Returns int64: a member of each node."""
        return whole(self._numbers[:, member], default)

    def has(self, member: int) -> bool:
        """Whether some node has the member."""
        return bool(np.any(self._begins[:, member] >= 0))

    def _texts(self, member: int) -> tuple[Array, Array, Array]:
        """Returns, int64, (where the texts of a member begin; end; the nodes that have it)."""
        rows = np.flatnonzero(self._begins[:, member] >= 0)
        return self._begins[rows, member], self._ends[rows, member], rows

    def _joined(self, begins: Array, ends: Array) -> JsonText:
        """Returns texts as a list."""
        return JsonText(joined(self._text.data, begins, ends, b"[,]").data, self._text.path)

    def rows_of(self, ids: Array) -> Array:
        """Returns int64: the nodes of these numbers, -1 is none."""
        return np.append(self._rows, -1)[index_of(self._ids, ids)]

    def _linked(self, ids: Array) -> Array:
        """Returns int64: the node above each one, -1 is none; the first that claims it."""
        *texts, owners = self._texts(CHILDREN)
        listed = self._joined(*texts)
        children, ends = listed.lists(listed.root())
        below = np.append(self.rows_of(children), np.arange(len(ids)))
        above = np.append(np.repeat(owners, np.diff(ends, prepend=0)), self.rows_of(self.column(PARENT, -1)))
        is_said = (above >= 0) | (np.arange(len(above)) < len(children))
        is_link = (below >= 0) & (above >= 0)
        parent = np.full(len(ids), -1)
        parent[below[is_link][::-1]] = above[is_link][::-1]
        self.n_bad += int(np.count_nonzero(is_said & ~(is_link & (parent[below] == above))))
        return parent

    def _functions(self) -> tuple[list[Place], Array]:
        """Returns (the functions, each once; int64: the function of each node)."""
        *texts, rows = self._texts(CALL_FRAME)
        table = TextTable(self._text.data)
        numbers = table.intern(*texts)
        parsed = self._joined(table.begin, table.end)
        found = [_place_of(one if isinstance(one, dict) else {}) for one in parsed.parsed(parsed.root())]
        place = np.full(len(self), len(found))
        place[rows] = numbers
        return [*found, _place_of({})], place

    def _parents_first(self) -> Array:
        """Returns int64: the nodes in an order in which callers come first; without circles."""
        if np.all(self._parent < np.arange(len(self))):
            return np.arange(len(self))
        below = rows_by_key(self._parent)
        found = below.get(-1, np.empty(0, np.int64)).tolist()
        for nth in found:
            found += below[nth].tolist() if nth in below else ()
        self.n_bad += len(self) - len(found)
        return np.array(found, np.int64)

    def _ticks(self) -> tuple[Array, Array, Array]:
        """Returns, int64, of the lines that were seen: (the node; the line; how often)."""
        begins, ends, owners = self._texts(TICKS)
        # The objects in the lists, as one list.
        octets = np.frombuffer(self._text.data, np.uint8)
        is_list = octets[begins] == ord("[")
        begins, ends, owners = begins[is_list] + 1, ends[is_list] - 1, owners[is_list]
        while np.any(is_blank := (begins < ends) & (octets[begins] <= ord(" "))):
            begins = begins + is_blank
        has_any = begins < ends
        begins, ends, owners = begins[has_any], ends[has_any], owners[has_any]
        listed = self._joined(begins, ends)
        numbers, at, _ = listed.rows(listed.root(), "line", "ticks")
        nth = np.searchsorted(np.cumsum(ends - begins + 1), at[:, 0] - 1, side="right")
        line, n_ticks = (np.maximum(whole(column), 0) for column in numbers.T)
        is_known = (at[:, 0] >= 0) & (line > 0)
        return owners[nth[is_known]], line[is_known], n_ticks[is_known]

    def add_stacks(self, profile: StackProfile) -> None:
        """Adds the stacks of nodes and ticks to the trace."""
        order = self._parents_first()
        row_of = np.full(len(self) + 1, -1)
        row_of[order] = np.arange(len(order))
        node = np.append(order, self._tick_node)
        line = np.append(np.zeros(len(order), np.int64), self._tick_line)
        is_root = np.array([place.name == ROOT for place in self._places])[self._place[node]]
        frames = np.where(is_root & (self._parent[node] < 0), -1, self._frames(profile, self._place[node], line))
        table = StackTable(profile.trace)
        stacks = table.intern_tree(row_of[self._parent[node]], frames.astype(np.int32))
        table.publish()
        self.stack[order], self._tick_stack[:] = stacks[: len(order)], stacks[len(order) :]

    def _frames(self, profile: StackProfile, place: Array, line: Array) -> Array:
        """Returns int32: the frames of functions at lines, 0: where they begin."""
        keys, nth = np.unique(place << 32 | np.minimum(line, (1 << 31) - 1), return_inverse=True)
        return profile.frames.at_lines(self._places, keys >> 32, keys & (1 << 32) - 1)[nth]

    def of_samples(self, ids: Array) -> Array:
        """Returns int32: the stack of each sample. The lines of a node's samples are those of its ticks, in turn: the
        file does not tell which sample had which."""
        row = self.rows_of(ids)
        self.n_bad += int(np.count_nonzero(row < 0))
        first = np.searchsorted(self._tick_node, np.arange(len(self) + 1))
        return stacks_in_turn(row, self.stack[:-1], first, self._n_ticks, self._tick_stack)


def _place_of(said: dict[str, Any]) -> Place:
    """said: `Runtime.CallFrame`, whose lines and columns count from 0."""
    name, path = (encodable(one) if isinstance(one := said.get(key), str) else "" for key in ("functionName", "url"))
    line, column = (one if isinstance(one := said.get(key), int) else -1 for key in ("lineNumber", "columnNumber"))
    category = OF_V8.get(name, "WebAssembly" if path.startswith("wasm:") else "JavaScript" if path else RUNTIME)
    category = RUNTIME if path.startswith("node:") else category
    return Place(name or "(anonymous)", path, line + 1, column + 1, line + 1, column + 1, category)


def whole(values: Array, default: int = 0) -> Array:
    """Returns int64: whole numbers, the default for what is none or too large."""
    return np.where(np.abs(values) < MOST, values, default).astype(np.int64)
