"""What the samples of a trace tell of how it was recorded: names that are missing, and stacks that end too early."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from traceferry.analysis.totals._trees import count_above, mark_ancestors, nearest_above, roots
from traceferry.analysis.totals.idle import IdleStacks
from traceferry.analysis.totals.nameless import ADDRESS, GENERATED, NAMELESS
from traceferry.analysis.totals.sums_of_trace import Ran, SampleTotals
from traceferry.analysis.verdict.runtimes import has_makers
from traceferry.common.patterns import compiled_later
from traceferry.model import Array, Trace, distinct, sums
from traceferry.model.categories import IDLE, KERNEL, LANGUAGE_COLORS, NATIVE, RUNTIME
from traceferry.native.distinct import distinct_with_places
from traceferry.unwinding.endings import is_ending
from traceferry.unwinding.stack_ends import begins_thread, is_call_of_c, is_switch

# A handler's stack may lie apart from the one that the signal interrupted.
_OF_SIGNALS = compiled_later(r"(?:__restore_rt|__kernel_rt_sigreturn)(?:@\S+)?")
_LOADER = compiled_later(r"ld-\S+\.so\S*|\[vdso\d*\]")
UNKNOWN, KERNEL_GROUP = "[unknown]", "[kernel]"
# Python's functions as Cython (Compiler/Naming.py), mypyc (common.py) and Nuitka name them in C.
_OF_CYTHON = compiled_later(r"__pyx_(?:pw|pf|f|fuse|gb|specialmethod|getprop|setprop)_.+")
_OF_MYPYC, _OF_NUITKA = ("CPyDef_", "CPyPy_"), "$$$function__"
# Kinds of functions that a runtime has for itself (the model's `funcs.kind`).
OWN_KINDS = {"builtin", "stub", "trampoline", "inline cache"}
# The code of any function that V8 or HotSpot interprets, where functions are not kept apart.
_INTERPRETER_OF_V8 = {"InterpreterEntryTrampoline", "Builtins_InterpreterEntryTrampoline"}
_INTERPRETER_OF_HOTSPOT = {"Interpreter"}
SHORT = 2
# What has less of the samples is no program that a line tells of.
PROGRAM_FROM = 0.02
# kernel.perf_event_max_stack, by default.
DEFAULT_LIMIT = 127


@dataclass(frozen=True)
class Facts:
    """Numbers of samples, of which all but `samples` and `idle` are without those where nothing was done. nameless:
    those whose innermost function has no name, by what holds it (a library's name, KERNEL_GROUP, UNKNOWN, "[code in
    MEMORY]"); generated: those in or below code that no file holds and nothing names, by the file below it of a runtime
    or compiler that may have made it ("" is none); around: the same by the library that calls it, or that it calls,
    neither of a runtime nor of the system; user: those with a frame outside of the kernel, and of these flat: those
    with one; short: those that end after one or two, elsewhere than where a thread begins; adrift: those that end at an
    unknown address; in_language: those short ones that end in a function of a language that a runtime compiled;
    in_memory: those short or adrift with a frame of code that no file holds and nothing names; jitted: those
    with a frame of code that no file holds, of no language; limit: at how many frames the kernel stops, 0 where it does
    not; deepest: those that end there; endings: those under a frame that tells why the stack is cut, by its name; of
    short, adrift, deepest and endings none that has the beginning of its thread, or main, further inside all the same;
    runtimes: those with a frame of a runtime, by its file's name; languages: those with a frame of a language that a
    runtime executes; interpreted: those of which the innermost function of a language is one that only its interpreter
    tells of; compiled: those with a function of Python's that was compiled to C, by the library of the innermost one;
    of_cgo: those with a frame of Go that calls C; idle: those where nothing was done; libraries: the names of files
    with frames in them; leaves: those whose innermost frame is in a file, by its name; single: those of one frame."""

    samples: int
    nameless: dict[str, int]
    generated: dict[str, int]
    around: dict[str, int]
    user: int
    flat: int
    short: int
    adrift: int
    in_language: int
    in_memory: int
    jitted: int
    limit: int
    deepest: int
    endings: dict[str, int]
    runtimes: dict[str, int]
    languages: int
    interpreted: int
    compiled: dict[str, int]
    of_cgo: int
    idle: int
    libraries: tuple[str, ...]
    leaves: dict[str, int]
    single: int


class Part(NamedTuple):
    """Some of the processes that were sampled: program is what all of them ran."""

    program: str
    facts: Facts


class Programs:
    """The facts of all samples; of each program that was sampled, where they are several; and of processes of one
    program that differ in whether functions of a language have names."""

    def __init__(self, samples: SampleTotals) -> None:
        self._samples = samples

    @property
    def whole(self) -> Facts:
        """Returns the facts of all samples. Goes through the stacks, not the samples."""
        return self._all.facts()

    def share(self, program: str) -> float:
        """Returns the part of the samples that a program has, where they are of several."""
        n_samples = self._samples.of_processes()
        mine = sum(n for ran, n in n_samples.items() if ran.program == program)
        return mine / max(sum(n_samples.values()), 1)

    @cached_property
    def parts(self) -> list[Part]:
        """Returns those with at least PROGRAM_FROM of the samples by name, with names before without; none where one
        has nearly all, unless it is apart from others with names."""
        n_samples = self._samples.of_processes()
        groups: dict[tuple[str, bool], list[Ran]] = {}
        for ran in sorted(n_samples):
            groups.setdefault((ran.program, not self._has_names(ran)), []).append(ran)
        n_of = {key: sum(n_samples[ran] for ran in processes) for key, processes in groups.items()}
        total = sum(n_of.values())
        large = sorted(key for key, n in n_of.items() if n > 0 and n >= PROGRAM_FROM * total)
        is_one = bool(large) and max(n_of.values()) > (1 - PROGRAM_FROM) * total
        if is_one and not (large[0][1] and self.languages):
            return []
        trace, _ = self._samples.by_stack()
        of_stacks = (self._samples.by_stack_of(groups[key]) for key in large)
        return [
            Part(program, _Stacks(trace, of_stack).facts())
            for (program, _), of_stack in zip(large, of_stacks, strict=True)
        ]

    def generating(self) -> frozenset[Ran]:
        """Returns the processes that have samples in code that no file holds and nothing names; none where the trace
        has one process."""
        return frozenset(
            ran for ran in self._samples.of_processes() if self._all.are_generated(self._samples.stacks_of(ran))
        )

    @cached_property
    def languages(self) -> frozenset[str]:
        """Returns the languages of which functions were sampled in any process."""
        return self._all.languages

    def _has_names(self, ran: Ran) -> bool:
        return bool(self.languages) and bool(self._all.has_function[self._samples.stacks_of(ran)].any())

    @cached_property
    def _all(self) -> _Stacks:
        return _Stacks(*self._samples.by_stack())


class _Stacks:
    """The stacks of a trace as a tree."""

    def __init__(self, trace: Trace, of_stack: Array) -> None:
        n = len(of_stack)
        self._trace, self._of_stack = trace, of_stack
        self._n = n
        self._prefix = np.ascontiguousarray(trace.stacks["prefix"][:n], np.int32)
        self._frame = trace.stacks["frame"][:n]
        used = np.flatnonzero(of_stack > 0)
        is_idle = IdleStacks(trace).of(used)
        self._idle = sums.total(of_stack[used[is_idle]])
        self._used = used[~is_idle]

    def facts(self) -> Facts:
        used = self._used
        is_kernel, is_inlined = self._is_kernel_frame[self._frame], self._trace.frames["inline_depth"][self._frame] > 0
        root = roots(self._prefix)
        names, of_root = self._names(root[used])

        def are(has: Callable[[str], object]) -> Array:
            """Returns of which stacks the outermost function has such a name."""
            return np.array([bool(has(name)) for name in names], bool)[of_root]

        ends = are(is_ending)
        is_apart = np.zeros(self._n, bool)
        is_apart[root[used[ends]]] = True
        n_user = self._upwards(~is_kernel & ~is_inlined & ~is_apart)[used]
        n_frames = self._upwards(~is_inlined)[used]
        is_user = n_user > 0
        begins = are(begins_thread) | are(is_switch) | are(_OF_SIGNALS.fullmatch) | self._in_loader(root[used])
        is_adrift = are(lambda name: name == UNKNOWN)
        cut = is_user & ~begins & ~ends
        if (cut | ends).any():
            is_incomplete = ~self._has_start[used]
            cut, ends = cut & is_incomplete, ends & is_incomplete
        limit = _limit_of(int(n_frames[is_user].max(initial=0)))
        return Facts(
            samples=self._sum(used) + self._idle,
            nameless=self._nameless(),
            generated=self._generated(),
            around=self._around(),
            user=self._sum(used[is_user]),
            flat=self._sum(used[n_user == 1]),
            short=self._sum(used[cut & (n_user <= SHORT)]),
            adrift=self._sum(used[cut & (n_user > SHORT) & is_adrift]),
            in_language=self._sum(used[cut & (n_user <= SHORT) & self._is_language_frame[self._frame[root[used]]]]),
            in_memory=self._sum(used[cut & ((n_user <= SHORT) | is_adrift) & self._has_generated[used]]),
            jitted=self._jitted(),
            limit=limit,
            deepest=self._sum(used[cut & (n_user > SHORT) & ~is_adrift & (n_frames == limit)]),
            endings=self._by_name(names, of_root[ends], used[ends]),
            runtimes=self._by_library(self._runtime, self._used[self._runtime[self._used] >= 0]),
            languages=self._sum(used[self.has_function[used]]),
            interpreted=self._interpreted(),
            compiled=self._compiled(),
            of_cgo=self._of_cgo(),
            idle=self._idle,
            libraries=self._libraries(),
            leaves=self._leaves(),
            single=self._sum(used[n_frames == 1]),
        )

    def _sampled_frames(self) -> Array:
        """Returns the frames of the stacks with samples, each at least once."""
        marked, rows = np.zeros(self._n, np.uint8), np.empty(self._n, np.int32)
        n = mark_ancestors(self._prefix, self._used.astype(np.int32), marked, rows)
        return np.asarray(self._frame[rows[:n]])

    def _libraries(self) -> tuple[str, ...]:
        libs = distinct(self._trace.frames["lib"][self._sampled_frames()])
        return tuple(sorted({self._library_names[lib] for lib in libs.tolist() if lib >= 0}))

    def _leaves(self) -> dict[str, int]:
        lib = self._trace.frames["lib"][self._frame[self._used]].astype(np.int64)
        return self._by_name(self._library_names, lib[lib >= 0], self._used[lib >= 0])

    def _sum(self, rows: Array) -> int:
        return sums.total(self._of_stack[rows])

    def _by_name(self, names: Sequence[str], of_rows: Array, rows: Array) -> dict[str, int]:
        """Returns how many samples the rows have by the name, the most first. of_rows: the name of each row."""
        found: dict[str, int] = {}
        counts = sums.total_by(of_rows, self._of_stack[rows], len(names))
        for nth in np.flatnonzero(counts).tolist():
            found[names[nth]] = found.get(names[nth], 0) + int(counts[nth])
        return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))

    def _names(self, rows: Array) -> tuple[list[str], Array]:
        """Returns the names of the functions of stacks, and which of them each has."""
        trace = self._trace
        func, place = distinct_with_places(trace.frames["func"][self._frame[rows]].astype(np.int64))
        return trace.func_names(func), place

    def _upwards(self, own: Array) -> Array:
        """Returns how many of a stack's frames are so. own: bool, of each frame."""
        return count_above(self._prefix, np.ascontiguousarray(own, np.uint8))

    def _nearest(self, own: Array) -> Array:
        """Returns the value of the innermost frame of each stack that has one; -1 is none."""
        return nearest_above(self._prefix, np.ascontiguousarray(own, np.int32))

    @cached_property
    def _has_start(self) -> Array:
        """Returns whether each stack has a frame where a thread begins."""
        trace = self._trace
        is_start = self._is_named(begins_thread)[trace.frames["func"][self._frame]]
        return np.asarray(self._upwards(is_start & ~self._is_language_frame[self._frame]) > 0)

    def _of_cgo(self) -> int:
        is_call = self._is_named(is_call_of_c)
        if not is_call.any():
            return 0
        return self._sum(self._used[self._upwards(is_call[self._trace.frames["func"][self._frame]])[self._used] > 0])

    def _is_named(self, has: Callable[[str], bool]) -> Array:
        """Returns of each function whether it has such a name."""
        return np.fromiter(map(has, self._func_names), bool, len(self._func_names))

    @cached_property
    def _func_names(self) -> list[str]:
        return self._trace.strings.of(self._trace.funcs["name"])

    def _in_loader(self, rows: Array) -> Array:
        """Returns whether stacks end in the dynamic loader, which has no caller, or in the vdso."""
        trace = self._trace
        lib, place = distinct_with_places(trace.frames["lib"][self._frame[rows]].astype(np.int64))
        names = [self._library_name(one) for one in lib.tolist()]
        found = np.array([_LOADER.fullmatch(name) is not None for name in names], bool)
        return found[place] if len(found) else np.zeros(len(rows), bool)

    def _library_name(self, lib: int) -> str:
        return self._library_names[lib] if lib >= 0 else ""

    @cached_property
    def _library_names(self) -> list[str]:
        strings = self._trace.strings
        return [strings[name] for name in self._trace.libs["name"].tolist()]

    def _categories_called(self, wanted: set[str]) -> Array:
        """Returns for each frame whether it is of one of these categories, or of a part of one."""
        trace = self._trace
        names = [trace.strings[name] for name in trace.categories["name"].tolist()]
        parents = trace.categories["parent"].tolist()
        is_wanted = [name in wanted or (parent >= 0 and names[parent] in wanted)
                     for name, parent in zip(names, parents, strict=True)]  # fmt: skip
        return np.array([*is_wanted, False], bool)[trace.frames["category"]]

    @cached_property
    def _is_kernel_frame(self) -> Array:
        return self._categories_called({KERNEL, IDLE})

    @cached_property
    def _is_language_frame(self) -> Array:
        return self._categories_called(set(LANGUAGE_COLORS))

    @cached_property
    def _is_function_frame(self) -> Array:
        """Returns for each frame whether it is of a function of a language, and not of a runtime's own, as the builtins
        and handlers that V8 lists among its functions."""
        strings, kinds = self._trace.strings, self._trace.funcs["kind"]
        machinery = [kind for kind in distinct(kinds).tolist() if kind >= 0 and strings[kind] in OWN_KINDS]
        is_machinery = np.append(np.isin(kinds, machinery), False)[self._trace.frames["func"]]
        return np.asarray(self._is_language_frame & ~is_machinery)

    @cached_property
    def has_function(self) -> Array:
        """Returns whether each stack has a frame of a function of a language."""
        return np.asarray(self._upwards(self._is_function_frame[self._frame]) > 0)

    @cached_property
    def languages(self) -> frozenset[str]:
        """Returns the languages of the functions that were sampled: a jitdump has more."""
        trace, frames = self._trace, self._sampled_frames()
        rows = distinct(trace.frames["category"][frames[self._is_function_frame[frames]]])
        names, parents = trace.categories["name"].tolist(), trace.categories["parent"].tolist()
        found = {trace.strings[names[parents[row] if parents[row] >= 0 else row]] for row in rows.tolist()}
        return frozenset(found & set(LANGUAGE_COLORS))

    @cached_property
    def _runtime(self) -> Array:
        """Returns the innermost library of a runtime in each stack."""
        lib = np.where(self._categories_called({RUNTIME}), self._trace.frames["lib"], -1)
        return self._nearest(lib[self._frame])

    def _by_library(self, libs: Array, rows: Array) -> dict[str, int]:
        """Returns how many samples the rows have by the library of each stack, "" without one."""
        return self._by_name([*self._library_names, ""], libs[rows] % (len(self._library_names) + 1), rows)

    def _interpreted(self) -> int:
        frames = self._trace.frames
        is_v8, is_hotspot = (
            np.append(self._is_named(one.__contains__), False)[frames["func"]]
            for one in (_INTERPRETER_OF_V8, _INTERPRETER_OF_HOTSPOT)
        )
        is_interpreter = is_v8 | (is_hotspot & self._categories_called({"Java", "JIT"}))
        if not is_interpreter.any():
            return 0
        innermost = self._nearest(np.where(is_interpreter, 1, np.where(self._is_function_frame, 0, -1))[self._frame])
        return self._sum(self._used[innermost[self._used] == 1])

    def _jitted(self) -> int:
        is_so = self._categories_called({"JIT"}) | self._is_generated_frame
        return self._sum(self._used[self._upwards(is_so[self._frame])[self._used] > 0]) if is_so.any() else 0

    def _compiled(self) -> dict[str, int]:
        trace = self._trace
        is_so = self._is_named(_is_compiled_python)
        if not is_so.any():
            return {}
        lib = self._nearest(np.where(is_so[trace.frames["func"]], trace.frames["lib"], -1)[self._frame])
        return self._by_library(lib, self._used[lib[self._used] >= 0])

    def _nameless(self) -> dict[str, int]:
        """Returns the samples whose innermost function has no name, by what holds it."""
        names, place = self._names(self._used)
        lib = self._trace.frames["lib"][self._frame[self._used]].astype(np.int64)
        is_nameless = np.array([NAMELESS.fullmatch(name) is not None for name in names], bool)[place]
        # Text of perf script, as flame graphs, has [libc.so.6] in the place of names.
        libraries = {f"[{name}]" for name in self._library_names}
        is_nameless |= np.array([name in libraries for name in names], bool)[place] & (lib >= 0)
        rows, lib = self._used[is_nameless], lib[is_nameless]
        # A number for each name, library, and whether it is the kernel's.
        n_libs = len(self._library_names) + 1
        held = (place[is_nameless] * n_libs + lib + 1) * 2 + self._is_kernel_frame[self._frame[rows]]
        groups, of_rows = distinct_with_places(held)
        holders = []
        for of_library, is_kernel in (divmod(one, 2) for one in groups.tolist()):
            name, library = divmod(of_library, n_libs)
            holders.append(KERNEL_GROUP if is_kernel else self._library_name(library - 1) or _memory(names[name]))
        return self._by_name(holders, of_rows, rows)

    def _generated(self) -> dict[str, int]:
        """Returns the samples with a frame of code that no file holds and nothing names, by what may have made it."""
        rows = self._used[self._has_generated[self._used]]
        if not len(rows):
            return {}
        is_maker = np.array([*(has_makers((name,)) for name in self._library_names), False], bool)
        lib = self._trace.frames["lib"]
        return self._by_library(self._nearest(np.where(is_maker[lib], lib, -1)[self._frame]), rows)

    def _around(self) -> dict[str, int]:
        """Returns the samples with a frame of such code by the library of the user's that calls it; where none does, by
        the one that it calls."""
        rows = self._used[self._has_generated[self._used]]
        if not len(rows):
            return {}
        lib = np.where(self._categories_called({NATIVE}), self._trace.frames["lib"], -1)
        library = self._nearest(lib[self._frame])
        code = self._nearest(np.where(self._is_generated_frame[self._frame], np.arange(self._n), -1))
        return self._by_library(np.where(library[code] >= 0, library[code], library), rows)

    @cached_property
    def _is_generated_frame(self) -> Array:
        is_so = self._is_named(lambda name: name.startswith(GENERATED))
        return np.append(is_so, False)[self._trace.frames["func"]]

    def are_generated(self, rows: Array) -> bool:
        """Whether any of these stacks has a frame of code that no file holds and nothing names."""
        return bool(self._has_generated[rows].any())

    @cached_property
    def _has_generated(self) -> Array:
        """Returns whether each stack has a frame of code that no file holds and nothing names."""
        if not self._is_generated_frame.any():
            return np.zeros(self._n, bool)
        return np.asarray(self._upwards(self._is_generated_frame[self._frame]) > 0)


def _limit_of(deepest: int) -> int:
    """Returns at how many frames the kernel stops, of a recording whose deepest stack has so many; 0 where it does not.
    It is the default, or what people set: a round number, or one less."""
    is_round = deepest % 10 == 0 or deepest & (deepest - 1) == 0 or deepest & (deepest + 1) == 0
    return deepest if deepest >= DEFAULT_LIMIT and is_round else 0


def _is_compiled_python(name: str) -> bool:
    return (
        (name.startswith("__pyx_") and _OF_CYTHON.fullmatch(name) is not None)
        or name.startswith(_OF_MYPYC)
        or _OF_NUITKA in name
    )


def _memory(name: str) -> str:
    """Returns what holds a function of no library: itself, or of an address what comes before it."""
    found = ADDRESS.fullmatch(name)
    return found[1] if found is not None else name
