"""The largest costs: what the user's functions have themselves, with what they call of runtimes and libraries.

Each sample counts for the innermost function of the user's in its stack, so that a cost is one that a reader can
change: `main: most in qsort`. The page does the same for what is chosen in it (web/costs.js).
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from traceferry.analysis.totals._trees import add_to_ancestors, fold_stacks, mark_ancestors
from traceferry.analysis.totals.nameless import ADDRESS
from traceferry.analysis.totals.own_code import (
    IDLE,
    IN_MEMORY,
    INTERRUPT,
    KERNEL_ENTRY,
    NAMELESS,
    OF_KERNEL,
    OUTSIDE,
    OWN,
    PASSING,
    OwnCode,
)
from traceferry.analysis.totals.trees import Keys, nearest_kept
from traceferry.common.patterns import compiled_later
from traceferry.model import Array, Trace, TraceBuilder, distinct, distinct_and_places, sums
from traceferry.model.categories import KERNEL, NATIVE, RUNTIME, SYSTEM
from traceferry.native.nodes import NodeTable

MOST_COSTS = 3
# A function without a name of which it is known where it begins.
BEGINS_AT = compiled_later(r"(?:.+ )?function at 0x[0-9a-f]+", re.DOTALL)
_VERSION = compiled_later(r"(?:-[\d.]+)?\.so[\d.]*$")


class Cost(NamedTuple):
    """The amounts of one function.

    Attributes
    ----------
    func : int
        -1 is what is in no function of the user's.
    amount, own : int
        With what it calls outside of the user's code, and without.
    callee, of_callee : int
        The function outside of it that has most, -1 is none; of `func` -1 the innermost function that has half. And
        how much that has.
    maker, of_maker : str, int
        Of `func` -1: whose code has most, as "libc"; "" is unknown.
    is_idle : bool
        Nothing was done there: `func` stands for all that says so.
    is_in_memory : bool
        It is code of no file without names: `func` stands for all of it.
    """

    func: int
    amount: int
    own: int
    callee: int
    of_callee: int
    maker: str = ""
    of_maker: int = 0
    is_idle: bool = False
    is_in_memory: bool = False


def costs_of(trace: TraceBuilder, of_stack: Array, own_code: OwnCode) -> list[Cost]:
    """Returns the largest, the largest first, and behind them where nothing was done. of_stack: int64, amounts of the
    trace's first stacks; own_code: of the trace. Code in memory without names is a cost as one, where no function of
    the user's calls it, or a native one does by itself or through a trampoline: what functions of a runtime call may be
    a stub of its own. Where nothing is the user's, functions are what there is, and what the kernel does counts for the
    one that called it. Functions of a library without names are one."""
    if not np.any(of_stack):
        return []
    paths = _Paths(trace, of_stack, own_code)
    is_idle, is_in_memory = paths.kind == IDLE, paths.kind == IN_MEMORY
    is_owner = paths.kind == OWN
    if is_owner.any():
        owner = nearest_kept(paths.parent, is_owner | is_idle)
        is_entered = paths.are_called_by(is_owner | (paths.kind == PASSING)) & paths.is_native[owner]
        is_owner |= is_in_memory & ((owner < 0) | is_entered)
    else:
        is_kernel = paths.kind >= OF_KERNEL
        # Of the kernel's, where nothing else stands above.
        is_owner = (paths.kind < NAMELESS) | is_in_memory
        is_owner |= is_kernel & (nearest_kept(paths.parent, is_owner) < 0) & ~paths.has_kernel_above()
    in_memory = set(paths.func[is_in_memory].tolist())
    return [
        cost._replace(is_in_memory=not cost.is_idle and cost.func in in_memory)
        for cost in paths.costs(is_owner | is_idle, distinct(paths.func[is_idle]))
    ]


class _Paths:
    """The call paths by function of stacks that have anything, with those above them."""

    def __init__(self, trace: TraceBuilder, of_stack: Array, own_code: OwnCode) -> None:
        keys, nodes = Keys(trace), NodeTable()
        n = len(trace.stacks)
        node_of_stack = np.full(n, -1, np.int32)
        prefix = np.ascontiguousarray(trace.stacks["prefix"][:n])
        fold_stacks(prefix, keys.update()[trace.stacks["frame"][:n]], 0, nodes, node_of_stack)
        own = sums.total_by(node_of_stack[: len(of_stack)], of_stack, nodes.n)
        marked, rows = np.zeros(nodes.n, np.uint8), np.empty(nodes.n, np.int32)
        parent, leaves = nodes.parent[: nodes.n], np.flatnonzero(own).astype(np.int32)
        rows = np.sort(rows[: mark_ancestors(parent, leaves, marked, rows)])
        place = np.full(nodes.n + 1, -1, np.int64)
        place[rows] = np.arange(len(rows))
        self._trace = trace
        self.own, self.parent = own[rows], place[parent[rows]]
        used, of_key = np.unique(nodes.key[rows], return_inverse=True)
        facts, self._of_key = keys.rows[used], of_key.reshape(-1)
        self._facts, self._lib = facts, _libs(trace, facts[:, 0])
        self.kind = own_code.of(facts)[self._of_key]
        self.func = _without_names(trace, facts[:, 0], self._lib)[self._of_key]
        categories = [*(trace.strings[name] == NATIVE for name in trace.categories["name"].tolist()), False]
        self.is_native = np.array(categories, bool)[facts[:, 1]][self._of_key]
        for joined in (IDLE, IN_MEMORY):
            is_joined = self.kind == joined
            self.func[is_joined] = self.func[is_joined].min(initial=len(trace.funcs))

    def has_kernel_above(self) -> Array:
        return self.are_called_by(self.kind >= OF_KERNEL)

    def are_called_by(self, are: Array) -> Array:
        """Returns of each path whether the one above it is so."""
        return np.append(are, False)[self.parent]

    def costs(self, is_owner: Array, idle: Array) -> list[Cost]:
        """Returns the largest, and behind them those of idle functions. is_owner: of each path; idle: functions."""
        kind, parent = self.kind, self.parent
        at = nearest_kept(parent, (kind == INTERRUPT) | (kind < OF_KERNEL) | (kind == IDLE))
        is_interrupt = (at >= 0) & (kind[at] == INTERRUPT)
        owner = nearest_kept(parent, is_owner)
        # An interrupt of what was idle is something else.
        is_nobodys = (owner < 0) | (is_interrupt & (kind[owner] == IDLE))
        func = np.where(is_nobodys, -1, self.func[owner])
        is_called = ~is_owner & ~np.isin(kind, (PASSING, KERNEL_ENTRY)) & ~is_interrupt
        is_itself = ~self._is_below(is_owner, is_called)
        is_named = is_called & ~np.isin(kind, (NAMELESS, IN_MEMORY))
        # Of several below each other, the outermost.
        is_first = is_named & ~self._is_below(is_owner, is_named, inclusive=False)
        at = nearest_kept(parent, is_owner | is_first)
        callee = np.where((at >= 0) & ~is_owner[at], self.func[at], -1)
        rows = np.flatnonzero(self.own > 0)
        own, callee, is_itself = self.own[rows], callee[rows], is_itself[rows]
        funcs, place = distinct_and_places(func[rows])
        amount = sums.total_by(place, own, len(funcs))
        is_idle = np.isin(funcs, idle)
        largest = np.lexsort((funcs, funcs < 0, -amount))
        of_work, of_none = largest[~is_idle[largest]][:MOST_COSTS], largest[is_idle[largest]]
        found = []
        for nth in [*of_work.tolist(), *of_none.tolist()]:
            mine, one = place == nth, int(funcs[nth])
            if one < 0:
                found.append(self._outside(is_nobodys, int(amount[nth])))
            else:
                called = _largest_of(callee[mine], own[mine])
                of_itself = sums.total(own[mine & is_itself])
                found.append(Cost(one, int(amount[nth]), of_itself, *called, is_idle=bool(is_idle[nth])))
        return found

    def _is_below(self, is_owner: Array, is_other: Array, inclusive: bool = True) -> Array:
        """Returns whether each path is one of the others, or below one of them and no owner in between."""
        at = nearest_kept(self.parent, is_owner | is_other)
        at = at if inclusive else np.append(at, -1)[self.parent]
        return np.asarray((at >= 0) & is_other[at])

    def _outside(self, is_outside: Array, amount: int) -> Cost:
        """Returns the cost of what is in no function of the user's."""
        total = np.where(is_outside, self.own, 0)
        # What the kernel does counts for who called it.
        caller = nearest_kept(self.parent, (self.kind < OF_KERNEL) | (self.parent < 0))
        by_key = sums.total_by(self._of_key[caller], total, len(self._facts))
        makers: dict[str, int] = {}
        keys = np.flatnonzero(by_key)
        for maker, of_key in zip(self._makers(keys), by_key[keys].tolist(), strict=True):
            makers[maker] = makers.get(maker, 0) + of_key
        makers.pop("", None)
        maker, of_maker = max(makers.items(), key=lambda item: item[1], default=("", 0))
        add_to_ancestors(self.parent.astype(np.int32), total)
        large = np.flatnonzero((2 * total >= amount) & (self.kind == OUTSIDE) & is_outside)
        callee, of_callee = -1, 0
        if len(large):
            least = int(large[np.argmin(total[large])])
            callee, of_callee = int(self.func[least]), int(total[least])
        return Cost(-1, amount, 0, callee, of_callee, maker, of_maker)

    def _makers(self, keys: Array) -> list[str]:
        """Returns whose code each of these is, in a word: "node", "V8", "libc"; "" where that is not known."""
        trace, facts = self._trace, self._facts[keys]
        sources, libs = trace.funcs["source"][facts[:, 0]], self._lib[keys]
        known = [name in (RUNTIME, SYSTEM, KERNEL) for name in trace.strings.of(trace.categories["name"])]
        is_known = np.array([*known, False], bool)[facts[:, 1]] & (libs >= 0)
        paths = trace.strings.of(np.append(trace.sources["path"], -1)[sources])
        libraries = trace.strings.of(np.append(trace.libs["name"], -1)[np.where(is_known, libs, -1)])
        return list(map(_maker, trace.func_names(facts[:, 0]), paths, libraries))


def _largest_of(callee: Array, own: Array) -> tuple[int, int]:
    """Returns the callee that has most, the least of several, and how much; -1 and 0 where there is none."""
    callees, place = distinct_and_places(callee)
    of = sums.total_by(place, own, len(callees))
    of[callees < 0] = 0
    most = int(np.argmax(of))
    return (int(callees[most]), int(of[most])) if of[most] else (-1, 0)


def _maker(name: str, path: str, library: str) -> str:
    """library: of code that is known not to be the user's, else ""."""
    if path.startswith("node:") or name.startswith("node::"):
        return "node"
    if name.startswith("v8::"):
        return "V8"
    return "the kernel" if library.startswith("[kernel") else _VERSION.sub("", library)


def library_of(trace: Trace, func: int) -> str:
    """Returns the library of a function, that of its first frame with one; "" is none."""
    (lib,) = _libs(trace, np.array([func])).tolist()
    return trace.strings[int(trace.libs["name"][lib])] if lib >= 0 else ""


def is_without_name(trace: Trace, func: int) -> bool:
    """Whether a function is one of those of its library that have no names, for all of which it stands."""
    library = library_of(trace, func)
    return library != "" and _is_without_name(trace.func_name(func), library)


def _is_without_name(name: str, library: str) -> bool:
    if "0x" not in name:
        return False
    found = ADDRESS.fullmatch(name)
    return BEGINS_AT.fullmatch(name) is not None or (found is not None and found[1] == library)


def _libs(trace: Trace, funcs: Array) -> Array:
    """Returns the library of each of these functions, that of its first frame with one, -1 is none."""
    frames = trace.frames
    has = np.flatnonzero(frames["lib"] >= 0)[::-1]
    found = np.full(len(trace.funcs), -1, np.int32)
    found[frames["func"][has]] = frames["lib"][has]
    return found[funcs]


def _without_names(trace: Trace, funcs: Array, libs: Array) -> Array:
    """Returns these functions; in place of those without names the first one of their library."""
    shown, first = funcs.copy(), dict[int, int]()
    names, libraries = trace.func_names(funcs), trace.strings.of(trace.libs["name"])
    for row, (name, lib) in enumerate(zip(names, libs.tolist(), strict=True)):
        if lib >= 0 and _is_without_name(name, libraries[lib]):
            shown[row] = first.setdefault(lib, funcs[row])
    return np.asarray(shown)
