"""Samples in which nothing was done: of processors without work, which a clock samples as well where all processors are
recorded, and of recorders that sample also while a program waits, as V8's."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from traceferry.common.patterns import compiled_later
from traceferry.model import Array, Process, Table, Thread, ThreadData, Trace, TraceBuilder, sums
from traceferry.model.categories import IDLE, KERNEL

# Functions that stand for having nothing to do: of V8's recorders, and of the kernel.
_NAMES, _NAMES_OF_KERNEL = {"(idle)"}, {"cpu_startup_entry", "do_idle", "cpu_idle_loop", "cpu_idle"}
# Functions of the kernel that took the processor without having been called.
_INTERRUPTS = compiled_later(
    r"asm_sysvec_\w+|asm_common_interrupt|asm_(?:exc_)?nmi\w*|apic_timer_interrupt|common_interrupt|ret_from_intr"
    r"|el[01][ht]?_(?:64_|32_)?irq\w*|call_on_irq_stack|__irq_(?:usr|svc)"
)
# What a function is, by its name.
_IDLE, _IDLE_OF_KERNEL, _INTERRUPT = 1, 2, 4


def is_idle(name: str, is_kernel: bool) -> bool:
    """Whether a function stands for having nothing to do."""
    return name in _NAMES or (is_kernel and name in _NAMES_OF_KERNEL)


def is_interrupt(name: str) -> bool:
    """Whether a function of the kernel took the processor without having been called."""
    return _INTERRUPTS.fullmatch(name) is not None


class IdleStacks:
    """Tells which stacks of a trace are of having nothing to do.

    Parameters
    ----------
    trace : Trace
        May get more functions and stacks.
    """

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._n_funcs = 0
        self._has_idle = False
        self._kind = np.zeros(0, np.uint8)

    def of(self, stacks: Array) -> Array:
        """Returns bool: whether each of these stacks (int32, -1 is none) is, and was not interrupted."""
        found, rows = np.zeros(len(stacks), bool), np.flatnonzero(stacks >= 0)
        if not len(rows) or not self._find():
            return found
        # Each stack once: those of a thread stand together mostly.
        first = int(stacks[rows].min())
        is_used = np.zeros(int(stacks[rows].max()) - first + 1, bool)
        is_used[stacks[rows] - first] = True
        is_used[is_used] = self._are_idle(first + np.flatnonzero(is_used), self._kinds())
        found[rows] = is_used[stacks[rows] - first]
        return found

    def _are_idle(self, stacks: Array, kind: Array) -> Array:
        trace, names = self._trace, self._categories()
        is_kernel = np.array([*(name in (KERNEL, IDLE) for name in names), False], bool)
        frame, prefix = trace.stacks["frame"], trace.stacks["prefix"]
        func, category = trace.frames["func"], trace.frames["category"]
        # Of the viewer's profiles, where the innermost function has the category.
        found = np.array([*(name == IDLE for name in names), False], bool)[category[frame[stacks]]]
        left = np.flatnonzero(~found)
        at = stacks[left]
        while len(left):
            of_kernel = is_kernel[category[frame[at]]]
            kinds = kind[func[frame[at]]] & np.where(of_kernel, 0xFF, _IDLE).astype(np.uint8)
            found[left] = kinds & (_IDLE | _IDLE_OF_KERNEL) != 0
            goes_on = (kinds == 0) & (prefix[at] >= 0)
            left, at = left[goes_on], prefix[at[goes_on]]
        return found

    def _find(self) -> bool:
        """Whether there are functions or categories that may be idle: most recordings have none."""
        trace, n = self._trace, self._n_funcs
        self._n_funcs = len(trace.funcs)
        names = trace.strings.of(trace.funcs["name"][n:]) if not self._has_idle else []
        self._has_idle = self._has_idle or not (_NAMES | _NAMES_OF_KERNEL).isdisjoint(names)
        return self._has_idle or IDLE in self._categories()

    def _categories(self) -> list[str]:
        return [self._trace.strings[name] for name in self._trace.categories["name"].tolist()]

    def _kinds(self) -> Array:
        """uint8, of each function."""
        trace, n = self._trace, len(self._kind)
        names = trace.strings.of(trace.funcs["name"][n:])
        more = [
            _IDLE * is_idle(name, is_kernel=False) | _IDLE_OF_KERNEL * is_idle(name, is_kernel=True)
            | _INTERRUPT * is_interrupt(name)
            for name in names
        ]  # fmt: skip
        self._kind = np.append(self._kind, np.array(more, np.uint8))
        return self._kind


class Busy:
    """A trace without samples in which nothing was done.

    Parameters
    ----------
    trace : Trace
        The whole one.

    Attributes
    ----------
    trace : Trace
        The other, whose threads leave them out when they are loaded.
    n_idle, n_all : int
        How many samples of the first event were left out, and how many there were, of the threads that were loaded.
    """

    def __init__(self, trace: Trace) -> None:
        self.n_idle = self.n_all = 0
        self._stacks: IdleStacks | None = None
        self._of: TraceBuilder | None = None
        self._event = trace.sampling
        self.trace = Trace(trace, processes=[self._process(process) for process in trace.processes])

    def _process(self, process: Process) -> Process:
        return replace(process, threads=[self._thread(thread) for thread in process.threads])

    def _thread(self, thread: Thread) -> Thread:
        return replace(thread, make=lambda into: self._busy(thread, into)) if not thread.sample_unit else thread

    def _busy(self, thread: Thread, into: TraceBuilder) -> ThreadData:
        data = thread.make(into)
        # Rows of stacks mean the same in one continuation of a trace only.
        if self._stacks is None or self._of is not into:
            self._stacks, self._of = IdleStacks(into), into
        samples = self._without(self._stacks, data.samples)
        self.n_all += self._n_samples(data.samples)
        self.n_idle += self._n_samples(data.samples) - self._n_samples(samples)
        others = {row: self._without(self._stacks, table) for row, table in data.other_samples.items()}
        return replace(data, samples=samples, other_samples=others)

    def _n_samples(self, samples: Table) -> int:
        return len(samples) if self._event is None else sums.total(self._event.n_samples(samples))

    @staticmethod
    def _without(stacks: IdleStacks, samples: Table) -> Table:
        is_idle = stacks.of(samples["stack"])
        return samples.take(np.flatnonzero(~is_idle)) if is_idle.any() else samples
