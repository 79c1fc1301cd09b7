"""Map: methods and classes become functions and frames."""

from __future__ import annotations

from copy import copy

import numpy as np

from traceferry.heap.views import class_frame
from traceferry.importers.mono.decode import Log
from traceferry.importers.mono.layout import Event, Metadata
from traceferry.model import Array, TraceBuilder
from traceferry.model.categories import IDLE
from traceferry.timeline.method_table import MethodTable

MANAGED, WRAPPER, NATIVE = "Managed", "Wrapper", "Native"
# What sampling leaves in the code fields of methods that it saw first is not one.
LOWEST_CODE, LARGEST_CODE = 4096, 1 << 24


class Frames:
    """The frames of one log. methods and types: by pointer and time; a type is a class, from data version 15 on a
    vtable. code: the JIT records that say where the code is; code_frames: their methods."""

    def __init__(self, trace: TraceBuilder, log: Log) -> None:
        self._trace = trace
        self._records = records = log.records
        jitted = records.of(Event.JIT)
        methods = np.array([self._method(name) for name in log.texts(jitted)], np.int32)
        pointers, defined_ts = records["method"][jitted], records.ts[jitted]
        self.methods = MethodTable(pointers, defined_ts, methods, self._nameless_method)
        self.code, self.code_frames = (column[has_code(log, jitted)] for column in (jitted, methods))
        rows = records.metadata(Metadata.CLASS, Event.LOAD)
        classes = np.array([self._class(name) for name in log.texts(rows)], np.int32)
        self.classes = self.types = self._types(rows, classes)
        if log.layout.events >= 15:
            rows = records.metadata(Metadata.VTABLE, Event.LOAD)
            self.types = self._types(rows, self.classes.at(records["class"][rows], records.ts[rows]))

    def of(self, trace: TraceBuilder) -> Frames:
        """Returns the frames for a trace that continues the one of these: pointers that are used without a name from
        now on are named there."""
        return self if trace is self._trace else trace.kept(self, lambda: self._continued(trace))

    def _continued(self, trace: TraceBuilder) -> Frames:
        other = copy(self)
        other._trace = trace
        other.methods = self.methods.continued(other._nameless_method)
        other.classes = other.types = self.classes.continued(other._nameless_class)
        if self.types is not self.classes:
            other.types = self.types.continued(other._nameless_class)
        return other

    def class_names(self, frames: Array) -> Array:
        """Returns the names of frames of classes, as strings of the trace."""
        names: Array = self._trace.funcs["name"][self._trace.frames["func"][frames]]
        return names

    def type_names(self, pointers: Array, ts: Array) -> Array:
        """Returns the names of types (uint64) at times (int64), as strings of the trace."""
        return self.class_names(self.types.at(pointers, ts))

    def native(self, name: str) -> int:
        return self._frame(name, NATIVE)

    def idle(self, frame: int) -> int:
        """Returns the frame of the same function, which waits there."""
        trace = self._trace
        return trace.frames.intern(func=int(trace.frames["func"][frame]), category=trace.add_category(IDLE))

    def _types(self, rows: Array, frames: Array) -> MethodTable:
        pointers, defined_ts = self._records["pointer"][rows], self._records.ts[rows]
        return MethodTable(pointers, defined_ts, frames, self._nameless_class)

    def _nameless_method(self, pointer: int) -> int:
        return self._method(f"[method {pointer:#x}]")

    def _nameless_class(self, pointer: int) -> int:
        return self._class(f"[class {pointer:#x}]")

    def _class(self, name: str) -> int:
        return class_frame(self._trace, self._trace.strings.intern(name))

    def _method(self, name: str) -> int:
        return self._frame(name, WRAPPER if name.startswith("(wrapper ") else MANAGED)

    def _frame(self, name: str, category: str) -> int:
        trace, intern = self._trace, self._trace.strings.intern
        func = trace.funcs.intern(name=intern(name), kind=intern("function"))
        return trace.frames.intern(func=func, category=trace.add_category(category))


def has_code(log: Log, rows: Array) -> Array:
    """Returns a mask: the JIT records with a plausible code address and size."""
    code, size = log.records["code"][rows], log.records["size"][rows]
    highest = min(log.layout.pointer_mask, 1 << 47)
    return (code >= LOWEST_CODE) & (code < highest) & (size > 0) & (size < LARGEST_CODE)
