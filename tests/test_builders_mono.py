"""The builder of Mono log profiler recordings against real ones, and against what mprof-report reads in its logs."""

import re
import shutil
import struct
import subprocess
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import zstandard
from builders import mono
from builders.mono import Counter, Log
from conftest import shared
from readers import mprof
from readers.mprof import Report

# ---------------------------------------------------------------- real recordings, event for event

RECORDINGS = [
    "tiny/alloc_frames32.mlpd",
    "tiny/calls.mlpd",
    "tiny/default.mlpd",
    "tiny/heapshot.mlpd",
    "tiny/mini_all.mlpd",
    "tiny/only_counter.mlpd",
    "mid/exceptions.mlpd",
    "mid/heapshot_2gc.mlpd.zst",
    "mid/monitor.mlpd",
    "mid/threads_sample.mlpd",
    "versions/v01_all_seed.mlpd",
    "versions/v04_all.mlpd",
    "versions/v06_all.mlpd",
    "versions/v08_all.mlpd.zst",
    "versions/v11_all.mlpd.zst",
    "versions/v13_all.mlpd",
    "versions/v14_all.mlpd",
    "versions/v15_all.mlpd",
]


class Cursor:
    """Takes a buffer apart: every number as the absolute one that was recorded."""

    def __init__(self, version: int, pointer_size: int, bases: tuple[int, ...], data: bytes) -> None:
        self.version = version
        self.mask = (1 << 8 * pointer_size) - 1
        self.time, self.ptr_base, self.obj_base, _, self.last_method = bases
        self.data, self.at = data, 0

    def byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def uleb(self) -> int:
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def sleb(self) -> int:
        start = self.at
        value = self.uleb()
        bits = 7 * (self.at - start)
        return value - (1 << bits) if value >> bits - 1 else value

    def small(self) -> int:
        return self.byte() if self.version >= 13 else self.uleb()

    def value(self) -> int:
        """A C int, sign-extended."""
        return self.uleb() & 0xFFFFFFFF

    def ts(self) -> int:
        self.time = (self.time + self.uleb()) & (1 << 64) - 1
        return self.time

    def pointer(self) -> int:
        return (self.ptr_base + self.sleb()) & self.mask

    def object(self) -> int:
        return (self.obj_base + self.sleb() << 3) & self.mask

    def method(self) -> int:
        self.last_method = (self.last_method + self.sleb()) & self.mask
        return self.last_method

    def string(self) -> str:
        end = self.data.index(b"\0", self.at)
        text, self.at = self.data[self.at : end], end + 1
        return text.decode()

    def many(self, read: Callable[[], Any]) -> list[Any]:
        return [read() for _ in range(self.value())]

    def backtrace(self) -> list[int]:
        if self.version >= 13:
            return self.many(self.method)
        assert self.uleb() == 0
        return self.many(self.pointer)


class Rebuilder:
    """Builds a recording again, buffer for buffer and event for event."""

    def __init__(self, data: bytes) -> None:
        _, major, minor, self.version, self.pointer_size = struct.unpack_from("<IBBBB", data)
        (startup_ms,) = struct.unpack_from("<Q", data, 8)
        start_clock = struct.unpack_from("<Q", data, 16)[0] if major >= 3 else None
        at = 24 if major >= 3 else 16
        timer_overhead, flags, pid, port = struct.unpack_from("<IIIH", data, at)
        at += 14
        texts = []
        for _ in range(3 if major else 0):
            (length,) = struct.unpack_from("<i", data, at)
            texts.append(data[at + 4 : at + 4 + length - 1].decode())
            at += 4 + length
        names: dict[str, Any] = dict(zip(("args", "arch", "os"), texts, strict=False))
        self.start = at if major else at + 2
        self.data = data
        self.counters: dict[int, Counter] = {}
        self.sums: dict[int, int] = {}
        self.log = Log(
            self.version, self.pointer_size, major=major, minor=minor, startup_ms=startup_ms, start_clock=start_clock,
            timer_overhead=timer_overhead, flags=flags, pid=pid, port=port, **names,
        )  # fmt: skip

    def build(self) -> bytes:
        at = self.start
        while at < len(self.data):
            magic, length, *bases = struct.unpack_from("<Ii5Q", self.data, at)
            assert magic == mono.BUFFER_MAGIC
            at += mono.BUFFER_HEADER_BYTES + length
            self.log.buffer(bases[3], time_base=bases[0])
            self.events(Cursor(self.version, self.pointer_size, tuple(bases), self.data[at - length : at]))
        return self.log.bytes()

    def events(self, read: Cursor) -> None:
        while read.at < len(read.data):
            first = read.byte()
            kind, code = first & 15, first >> 4
            untimed = (mono.HEAP, 2), (mono.HEAP, 3), *((mono.SAMPLE, code) for code in (0, 1, 3, 4))
            has_time = self.version >= 13 or not ((kind, code) in untimed or kind == mono.COVERAGE)
            self.event(kind, code, read, read.ts() if has_time else None)

    def event(self, kind: int, code: int, read: Cursor, ts: int | None) -> None:
        log, v = self.log, self.version
        match kind, code:
            case mono.ALLOC, _:
                fields = read.pointer(), read.object(), read.value()
                log.alloc(*fields, read.backtrace() if code else None, ts=ts)
            case mono.GC, 1:
                log.gc_event(read.small(), read.small(), ts=ts)
            case mono.GC, 2:
                log.gc_resize(read.uleb(), ts=ts)
            case mono.GC, 3:
                objects = read.many(read.object)
                log.gc_move(list(zip(objects[::2], objects[1::2], strict=True)), ts=ts)
            case mono.GC, 4 | 6:
                fields = read.value(), read.value(), read.object()
                log.handle_created(*fields, read.backtrace() if code == 6 else None, ts=ts)
            case mono.GC, 5 | 7:
                log.handle_destroyed(read.value(), read.value(), read.backtrace() if code == 7 else None, ts=ts)
            case mono.GC, 8:
                log.finalize_start(ts=ts)
            case mono.GC, 9:
                log.finalize_end(ts=ts)
            case mono.GC, 10:
                log.finalize_object_start(read.object(), ts=ts)
            case mono.GC, 11:
                log.finalize_object_end(read.object(), ts=ts)
            case mono.METADATA, _:
                self.metadata(code, read, ts)
            case mono.METHOD, 1:
                log.leave(read.method(), ts=ts)
            case mono.METHOD, 2:
                log.enter(read.method(), ts=ts)
            case mono.METHOD, 3:
                log.exc_leave(read.method(), ts=ts)
            case mono.METHOD, 4:
                method, address, size = read.method(), read.pointer(), read.value()
                log.jit(method, read.string(), address, size, ts=ts)
            case mono.EXCEPTION, 0 | 8:
                log.throw(read.object(), read.backtrace() if code else None, ts=ts)
            case mono.EXCEPTION, 1:
                type_, index, method = read.small(), read.value(), read.method()
                log.clause(type_, method, index, read.object() if v >= 14 else 0, ts=ts)
            case mono.MONITOR, _:
                event = read.byte() if v >= 14 else code & 3
                log.monitor(event, read.object(), read.backtrace() if code & 8 else None, ts=ts)
            case mono.HEAP, 0:
                log.heap_start(ts=ts)
            case mono.HEAP, 1:
                log.heap_end(ts=ts)
            case mono.HEAP, 2:
                self.heap_object(read, ts)
            case mono.HEAP, 3 if v < 15:
                number, collections = read.value(), read.value()
                roots = [(read.object(), read.byte() if v == 13 else read.value(), read.uleb()) for _ in range(number)]
                log.roots_by_kind(roots, collections, ts=ts)
            case mono.HEAP, 3:
                log.roots_by_address(read.many(lambda: (read.pointer(), read.object())), ts=ts)
            case mono.HEAP, 4:
                region = read.pointer(), read.uleb(), read.byte(), read.pointer(), read.string()
                log.root_register(*region, ts=ts)
            case mono.HEAP, 5:
                log.root_unregister(read.pointer(), ts=ts)
            case mono.SAMPLE, 0:
                self.sample(read, ts)
            case mono.SAMPLE, 1:
                address, size = read.pointer(), read.value()
                log.native_symbol(address, read.string(), size, ts=ts)
            case mono.SAMPLE, 2:
                address, offset, size = (read.pointer() if v >= 14 else read.sleb()), read.uleb(), read.uleb()
                log.native_binary(address, read.string(), offset, size, ts=ts)
            case mono.SAMPLE, 3:
                log.counters_desc(read.many(lambda: self.counter(read)), ts=ts)
                self.counters |= {counter.number: counter for counter in log.expected[-1].fields["counters"]}
            case mono.SAMPLE, 4:
                self.counter_values(read, ts)
            case mono.RUNTIME, 1:
                type_, address, size = read.small() - (v < 14), read.pointer(), read.value()
                log.jit_helper(type_, address, size, read.string() if type_ == mono.SPECIFIC_TRAMPOLINE else "", ts=ts)
            case mono.COVERAGE, _:
                coverage: tuple[tuple[Callable[..., Log], int, int], ...] = (
                    (log.coverage_assembly, 3, 3), (log.coverage_method, 5, 3), (log.coverage_statement, 0, 5),
                    (log.coverage_class, 2, 3),
                )  # fmt: skip
                build, texts, numbers = coverage[code]
                build(*(read.string() for _ in range(texts)), *(read.uleb() for _ in range(numbers)), ts=ts)
            case mono.META, 0:
                log.sync_point(read.byte(), ts=ts)
            case mono.META, 1:
                log.aot_id(read.string(), ts=ts)
            case _:
                raise AssertionError(f"event {code:x}{kind:x}")

    def metadata(self, code: int, read: Cursor, ts: int | None) -> None:
        log, v = self.log, self.version
        kind, pointer = read.byte(), read.pointer()
        image = read.pointer() if kind == mono.CLASS or (kind == mono.ASSEMBLY and v >= 14) else 0
        if v < 13:
            assert read.uleb() == 0
        match kind, code:
            case mono.CLASS, mono.LOAD:
                log.class_(pointer, read.string(), image, ts=ts)
            case mono.IMAGE, mono.LOAD:
                log.image(pointer, read.string(), read.string() if v >= 16 else "", ts=ts)
            case mono.IMAGE, mono.UNLOAD:
                log.image_unload(pointer, read.string(), ts=ts)
            case mono.ASSEMBLY, mono.LOAD:
                log.assembly(pointer, read.string(), image, ts=ts)
            case mono.ASSEMBLY, mono.UNLOAD:
                log.assembly_unload(pointer, read.string(), image, ts=ts)
            case mono.DOMAIN, mono.LOAD:
                log.domain(pointer, ts=ts)
            case mono.DOMAIN, mono.UNLOAD:
                log.domain_unload(pointer, ts=ts)
            case mono.DOMAIN, mono.NAME:
                log.domain_name(pointer, read.string(), ts=ts)
            case mono.THREAD, mono.LOAD if v >= 11:
                log.thread(pointer, ts=ts)
            case mono.THREAD, mono.UNLOAD:
                log.thread_unload(pointer, ts=ts)
            case mono.THREAD, _:
                log.thread_name(pointer, read.string(), ts=ts)
            case mono.CONTEXT, mono.LOAD:
                log.context(pointer, read.pointer(), ts=ts)
            case mono.CONTEXT, mono.UNLOAD:
                log.context_unload(pointer, read.pointer(), ts=ts)
            case mono.VTABLE, mono.LOAD:
                domain = read.pointer()
                log.vtable(pointer, read.pointer(), domain, ts=ts)
            case _:
                raise AssertionError(f"metadata {kind} {code}")

    def heap_object(self, read: Cursor, ts: int | None) -> None:
        obj, type_, size = read.object(), read.pointer(), read.value()
        generation = read.byte() if self.version >= 16 else 0
        references, offset = [], 0
        for _ in range(read.value()):
            offset += read.value() if self.version >= 2 else 0
            references.append((offset, read.object()))
        self.log.heap_object(obj, type_, size, references, generation, ts=ts)

    def sample(self, read: Cursor, ts: int | None) -> None:
        v = self.version
        type_ = read.uleb() if v < 13 else read.byte() if v == 13 else mono.CYCLES
        ts = read.uleb() if ts is None else ts
        thread = read.pointer() if v >= 11 else 0
        ips = read.many(read.pointer)
        frames = read.many(lambda: (read.method(), *((read.sleb(), read.sleb()) if v < 13 else ()))) if v >= 6 else []
        offsets = [frame[1:] for frame in frames] if v < 13 else []
        self.log.sample(thread, ips, [frame[0] for frame in frames], type_=type_, offsets=offsets, ts=ts)

    def counter(self, read: Cursor) -> Counter:
        section = read.uleb()
        section_name = read.string() if section == mono.PERF_SECTION else ""
        name = read.string()
        cut = self.version in (13, 14)
        type_, unit, variance = (read.byte() if cut else read.uleb() for _ in range(3))
        return Counter(read.uleb(), name, type_, unit, variance, section, section_name)

    def counter_values(self, read: Cursor, ts: int | None) -> None:
        ms = read.uleb() if self.version < 13 else 0
        values: dict[int, Any] = {}
        undescribed = []
        while number := read.uleb():
            type_ = read.uleb()
            if number not in self.counters:
                undescribed.append(Counter(number, "", type_))
                self.counters[number] = undescribed[-1]
            if type_ == mono.DOUBLE:
                (values[number],) = struct.unpack_from("<d", read.data, read.at)
                read.at += 8
            elif type_ == mono.STRING:
                values[number] = read.string() if read.byte() else None
            else:
                difference = read.uleb() if type_ in (mono.UINT, mono.ULONG) else read.sleb()
                is_sum = self.counters[number].section != mono.PERF_SECTION
                values[number] = self.sums[number] = difference + (self.sums.get(number, 0) if is_sum else 0)
        self.log.counters(values, undescribed=undescribed, ms=ms, ts=ts)


# Not among them: versions/v17_all_ptr4.mlpd, which was made of a 64-bit recording and has object bases of 64 bits.
@pytest.mark.parametrize("name", RECORDINGS)
def test_a_real_recording_is_built_again_byte_for_byte(name: str) -> None:
    data = contents(name)
    assert Rebuilder(data).build() == data


def contents(name: str) -> bytes:
    data = shared(f"captures/mono/{name}").read_bytes()
    return zstandard.ZstdDecompressor().decompressobj().decompress(data) if name.endswith(".zst") else data


# ---------------------------------------------------------------- what mprof-report reads

MAIN, OTHER = 0x7, 0x9
RUN, WORK, HELP = 0x500, 0x600, 0x700  # methods
TEXT, NODE, LATE = 0x2000, 0x2100, 0x2200  # classes, or their vtables
COUNTERS = [Counter(1, "Methods"), Counter(2, "Load", mono.DOUBLE), Counter(3, "Spent", mono.LONG, mono.TIME)]

# What builds an event; what mprof-report prints of it, TS being its time; what the version needs to have it.
EVENTS: list[tuple[Callable[[Log], Log], str, str]] = [
    (lambda log: log.thread_name(MAIN, "Main"), "thread 0x7 named at TS: Main", ""),
    (lambda log: log.jit(HELP, "App:Help ()", 0x40003000, 9),
        "jitted method 0x700 (App:Help ()), size: 9, code: 0x40003000", ""),
    (lambda log: log.image(0x1000, "app.exe", "mvid"), "loaded image 0x1000 (app.exe) at TS", ""),
    (lambda log: log.class_(LATE, "App.Late", 0x1000), "loaded class 0x2200 (App.Late in 0x1000) at TS", ""),
    (lambda log: log.class_unload(LATE, "App.Late"), "unloaded class 0x2200 (App.Late in 0x1000) at TS",
        "class unload"),
    (lambda log: log.vtable(0x2300, LATE, 1), "vtable 0x2300 for class 0x2200 in domain 0x1 at TS", "vtable"),
    (lambda log: log.assembly(0x3000, "app"), "loaded assembly 0x3000 (app) at TS", "assembly"),
    (lambda log: log.assembly_unload(0x3000, "app"), "unloaded assembly 0x3000 (app) at TS", "assembly"),
    # Domains are called threads.
    (lambda log: log.domain(1), "loaded thread 0x1 at TS", "domain"),
    (lambda log: log.domain_name(1, "app.exe"), "domain 0x1 named at TS: app.exe", "domain"),
    (lambda log: log.domain_unload(1), "unloaded thread 0x1 at TS", "domain"),
    (lambda log: log.context(0x99, 1), "loaded context 0x99 (0x1) at TS", "context"),
    (lambda log: log.context_unload(0x99, 1), "unloaded context 0x99 (0x1) at TS", "context"),
    (lambda log: log.thread(OTHER), "loaded thread 0x9 at TS", "thread load"),
    (lambda log: log.thread_unload(OTHER), "unloaded thread 0x9 at TS", "thread load"),
    (lambda log: log.enter(RUN), "enter method App:Run ()", ""),
    (lambda log: log.enter(WORK), "enter method App:Work (int)", ""),
    (lambda log: log.exc_leave(WORK), "exleave method App:Work (int)", ""),
    (lambda log: log.leave(RUN), "leave method App:Run ()", ""),
    (lambda log: log.alloc(TEXT, 0x10000, 32), "alloced object 0x10000, size 32 (System.String) at TS", ""),
    (lambda log: log.alloc(NODE, 0x10020, 48, [RUN, WORK]), "alloced object 0x10020, size 48 (App.Node) at TS", ""),
    (lambda log: log.throw(0x10020), "throw 0x10020", ""),
    (lambda log: log.throw(0x10000, [RUN, WORK]), "throw 0x10000", ""),
    (lambda log: log.clause(mono.CATCH, RUN, 2, 0x10000), "clause catch (2) in method App:Run ()", ""),
    (lambda log: log.clause(mono.FILTER, WORK, 0, 0x10000), "clause filter (0) in method App:Work (int)", ""),
    (lambda log: log.clause(mono.FINALLY, WORK), "clause finally (0) in method App:Work (int)", ""),
    (lambda log: log.monitor(mono.CONTENTION, 0x10020, [RUN]), "monitor contended for object 0x10020", ""),
    (lambda log: log.monitor(mono.DONE, 0x10020), "monitor acquired for object 0x10020", ""),
    (lambda log: log.monitor(mono.CONTENTION, 0x10000), "monitor contended for object 0x10000", ""),
    (lambda log: log.monitor(mono.FAIL, 0x10000), "monitor not taken for object 0x10000", ""),
    (lambda log: log.monitor(mono.DONE, 0x10020, [WORK]), "monitor acquired for object 0x10020", "monitor backtrace"),
    (lambda log: log.gc_event(mono.PRE_STOP_WORLD), "gc event for gen0: pre stop at TS", ""),
    (lambda log: log.gc_event(mono.PRE_STOP_WORLD_LOCKED), "gc event for gen0: pre stop lock at TS", "world locked"),
    (lambda log: log.gc_event(mono.POST_STOP_WORLD), "gc event for gen0: post stop at TS", ""),
    (lambda log: log.gc_event(mono.GC_START, 1), "gc event for gen1: start at TS", ""),
    (lambda log: log.gc_event(mono.MARK_START, 1), "gc event for gen1: mark start at TS", "gc phases"),
    (lambda log: log.gc_event(mono.MARK_END, 1), "gc event for gen1: mark end at TS", "gc phases"),
    (lambda log: log.gc_event(mono.RECLAIM_START, 1), "gc event for gen1: reclaim start at TS", "gc phases"),
    (lambda log: log.gc_event(mono.RECLAIM_END, 1), "gc event for gen1: reclaim end at TS", "gc phases"),
    (lambda log: log.gc_move([(0x10000, 0x20000)]), "moved obj 0x10000 to 0x20000", ""),
    (lambda log: log.gc_resize(1 << 20), "gc heap resized to 1048576", ""),
    (lambda log: log.gc_event(mono.GC_END, 1), "gc event for gen1: end at TS", ""),
    (lambda log: log.gc_event(mono.PRE_START_WORLD), "gc event for gen0: pre start at TS", ""),
    (lambda log: log.gc_event(mono.POST_START_WORLD), "gc event for gen0: post start at TS", ""),
    (lambda log: log.gc_event(mono.POST_START_WORLD_UNLOCKED), "gc event for gen0: post start unlock at TS",
        "world locked"),
    (lambda log: log.handle_created(mono.WEAK, 1, 0x20000), "handle (weak) 1 created for object 0x20000", ""),
    (lambda log: log.handle_created(mono.PINNED, 2, 0x20000, [RUN]), "handle (pinned) 2 created for object 0x20000",
        "handle backtrace"),
    (lambda log: log.handle_destroyed(mono.WEAK, 1), "handle (weak) 1 destroyed", ""),
    (lambda log: log.handle_destroyed(mono.PINNED, 2, [RUN]), "handle (pinned) 2 destroyed", "handle backtrace"),
    (lambda log: log.finalize_start(), "gc finalizer queue being processed at TS", "finalize"),
    (lambda log: log.finalize_object_start(0x20000), "gc finalizing object 0x20000 at TS", "finalize"),
    (lambda log: log.finalize_object_end(0x20000), "gc finalized object 0x20000 at TS", "finalize"),
    (lambda log: log.finalize_end(), "gc finalizer queue finished processing at TS", "finalize"),
    (lambda log: log.root_register(0x7000, 256, mono.STATIC, TEXT, "Statics"),
        "root register address 0x7000 size 256 type 3 key 0x2000 name Statics", "root region"),
    (lambda log: log.heap_start(), "heap shot start", ""),
    # 4 is a handle since version 14; before it was "misc", and is misread.
    (lambda log: log.roots_by_kind([(0x20020, 0x104, 0)], 3), "object 0x20020 is a handle root", "roots by kind"),
    (lambda log: log.roots_by_address([(0x7010, 0x20020)]), "root object 0x20020 at address 0x7010",
        "roots by address"),
    (lambda log: log.heap_object(0x20000, TEXT, 32), "traced object 0x20000, size 32 (System.String), refs: 0", ""),
    (lambda log: log.heap_object(0x20020, NODE, 48, [(16, 0x20000), (24, 0x20020)], 1),
        "traced object 0x20020, size 48 (App.Node), refs: 2", ""),
    (lambda log: log.heap_end(), "heap shot end", ""),
    (lambda log: log.root_unregister(0x7000), "root unregister address 0x7000", "root region"),
    (lambda log: log.sample(MAIN, [0x40002010]), "sample hit, type: 1 at 0x40002010", "sample"),
    (lambda log: log.sample(MAIN, [0x70001000], [WORK, RUN]),
        "sample hit, type: 1 at 0x70001000\nsample hit bt 0: App:Work (int)\nsample hit bt 1: App:Run ()",
        "managed frames"),
    (lambda log: log.native_symbol(0x70001000, "malloc"), "unmanaged symbol malloc at 0x70001000", "native symbol"),
    (lambda log: log.native_binary(0x70000000, "libc.so", 4096, 65536), "unmanaged binary libc.so at 0x70000000",
        "native binary"),
    (lambda log: log.jit_helper(mono.SPECIFIC_TRAMPOLINE, 0x40005000, 20, "class_init"),
        "jit helper class_init, size: 20, code: 0x40005000", "jit helper"),
    (lambda log: log.jit_helper(mono.HELPER, 0x40006000, 30),
        "jit helper misc helper, size: 30, code: 0x40006000", "jit helper"),
    (lambda log: log.sync_point(mono.WORLD_STOP), "sync point 1 (world stop)", "sync point"),
    (lambda log: log.aot_id("A1"), "aot id A1", "aot id"),
    (lambda log: log.counters_desc(COUNTERS), "", "counters"),
    (lambda log: log.counters({1: 5, 2: 1.5, 3: 10_000}), "", "counters"),
    (lambda log: log.counters({1: 3, 3: 30_000}, ms=20), "", "counters"),
    (lambda log: log.coverage_assembly("app", "guid", "app.exe", 3, 1, 1), "", "coverage"),
    (lambda log: log.coverage_method("app", "App", "Run", "()", "app.cs", 0x6000001, 1, 2), "", "coverage"),
    (lambda log: log.coverage_statement(1, 8, 3, 10, 5), "", "coverage"),
    (lambda log: log.coverage_class("app", "App", 2, 1, 1), "", "coverage"),
    # What nothing is printed of must be as long as it is taken for.
    (lambda log: log.clause(mono.FAULT, HELP), "clause fault (0) in method App:Help ()", ""),
]  # fmt: skip


@pytest.fixture
def mprof_report(tmp_path: Path) -> Callable[..., Report]:
    """What mprof-report says of a log."""
    program = shutil.which("mprof-report")
    if program is None:
        pytest.skip("mprof-report is not installed (Debian: mono-utils)")

    def report(log: Log, *options: str) -> Report:
        path = tmp_path / "output.mlpd"
        path.write_bytes(log.bytes())
        command = [program, mprof.REPORTS, "--traces", "--verbose", *options, str(path)]
        return mprof.parse(subprocess.run(command, capture_output=True, text=True, check=True).stdout)

    return report


def named(log: Log) -> Log:
    """With the methods and classes that all events refer to."""
    log.buffer(MAIN).jit(RUN, "App:Run ()", 0x40001000, 100).jit(WORK, "App:Work (int)", 0x40002000, 50)
    return log.type_(TEXT, "System.String").type_(NODE, "App.Node")


def everything(log: Log) -> tuple[Log, list[str]]:
    """Every event that the version has, and what mprof-report prints of them."""
    lines: list[str] = []
    for build, line, needs in EVENTS:
        if not needs or log.supports(needs):
            build(log)
            lines += line.replace("TS", str(log.now)).splitlines()
    return log, lines


@pytest.mark.parametrize("pointer_size", [8, 4])
@pytest.mark.parametrize("version", mono.VERSIONS)
def test_mprof_report_prints_every_event_as_it_was_written(
    version: int, pointer_size: int, mprof_report: Callable[..., Report]
) -> None:
    preamble = named(Log(version, pointer_size))
    already = len(preamble.expected)
    log, lines = everything(preamble)
    report = mprof_report(log, "--debug")
    assert [without_thread(line) for line in report.before if not OWN_WORDS.search(line)][already:] == [
        as_misread(version, line) for line in lines
    ]


OWN_WORDS = re.compile("^buf:|^Total unmarked| unmarked$")


def without_thread(line: str) -> str:
    return re.sub(r" \(thread: \w+\)$| for thread [(\w)]+$", "", line)


def as_misread(version: int, line: str) -> str:
    """The number of a monitor event of version 13."""
    if version == 13 and line.startswith("monitor"):
        return re.sub("contended|acquired|not taken", "invalid", line)
    return line


@pytest.mark.parametrize("version", mono.VERSIONS)
def test_mprof_report_sums_up_what_was_written(version: int, mprof_report: Callable[..., Report]) -> None:
    log, _ = everything(named(Log(version)))
    has = log.supports
    report = mprof_report(log)
    assert report.jit["Compiled methods"] == 3
    assert report.jit["Generated code size"] == 100 + 50 + 9
    assert report.jit["JIT helpers code size"] == (20 + 30 if has("jit helper") else 0)
    assert report.gc == {"GC resizes": 1, "Max heap size": 1 << 20, "Object moves": 1}
    assert report.collections[1].number == 1
    assert report.handles["weak"] == (1, 1, 1)
    assert report.allocations == {"System.String": (32, 1), "App.Node": (48, 1)}
    assert report.sites["App.Node"] == {("App:Run ()", "App:Work (int)"): 48}
    assert {name: method.calls for name, method in report.methods.items()} == {"App:Run ()": 1, "App:Work (int)": 1}
    assert report.metadata == {"Loaded images": 1, "Loaded assemblies": int(has("assembly"))}
    clauses = {f"Executed {kind} clauses": 1 for kind in ("catch", "filter", "finally", "fault")}
    assert report.exceptions == {"Throws": 2, **clauses}
    # Version 13's monitor events are not counted.
    contentions, done, failed = (0, 0, 0) if version == 13 else (2, 1 + has("monitor backtrace"), 1)
    assert report.monitors == {"Lock contentions": contentions, "Lock acquired": done, "Lock failures": failed}
    assert (MAIN, "Main") in report.threads
    assert report.domains == ({1: "app.exe"} if has("domain") else {})
    assert report.contexts == ({0x99: 1} if has("context") else {})
    sampled = {"App:Work (int)": has("sample"), "malloc": has("managed frames")}
    assert report.sampled == {name: 1 for name, is_sampled in sampled.items() if is_sampled}
    (shot,) = report.heap_shots
    assert (shot.bytes, shot.objects, shot.roots) == (80, 2, int(has("roots by kind") or has("roots by address")))
    assert shot.classes == {"System.String": (32, 1), "App.Node": (48, 1)}
    spent = ("10000", "30000") if version in (13, 14) else ("1.000ms", "3.000ms")  # they do not keep the unit
    values = {("Methods", "5"), ("Methods", "3"), ("Load", "1.500000"), *(("Spent", value) for value in spent)}
    assert {(counter.name, counter.value) for counter in report.counters} == (values if has("counters") else set())


# ---------------------------------------------------------------- headers, and what is odd in the events


@pytest.mark.parametrize("version", mono.VERSIONS)
def test_mprof_report_reads_the_header(version: int, mprof_report: Callable[..., Report]) -> None:
    log = Log(version, timer_overhead=21, pid=77, port=4000, args="log:calls", arch="arm64", os="darwin").buffer()
    header = mprof_report(log).header
    numbers = ("21 nanoseconds", "77", "4000") if version >= 4 else ("0 nanoseconds", None, None)
    texts = ("log:calls", "arm64", "darwin") if version >= 13 else (None, None, None)
    keys = ("Mean timer overhead", "Program ID", "Server listening on", "Arguments", "Architecture", "Operating system")
    assert header["Data version"] == str(version)
    assert tuple(map(header.get, keys)) == numbers + texts


HEADERS = {
    0: "015a504d 00040408 00 40fe21a1010000 15000000 00000000 4d000000 a00f 0000",
    1: "015a504d 01010d08 00 40fe21a1010000 15000000 00000000 4d000000 a00f 0200000061 00 0200000062 00 0200000063 00",
    3: "015a504d 03001108 00 40fe21a1010000 00ca9a3b00000000 15000000 00000000 4d000000 a00f"
    " 0200000061 00 0200000062 00 0200000063 00",
}


@pytest.mark.parametrize(("version", "major"), [(4, 0), (13, 1), (17, 3)])
def test_the_bytes_of_the_header_of_every_major(version: int, major: int) -> None:
    log = Log(
        version, startup_ms=0x1A121FE4000, timer_overhead=21, pid=77, port=4000, args="a", arch="b", os="c"
    )  # fmt: skip
    assert log.bytes() == bytes.fromhex(HEADERS[major])


def test_a_version_has_the_header_of_another_major() -> None:
    assert len(Log(16, major=2, minor=0).bytes()) == len(Log(16).bytes()) - 8
    assert len(Log(13, major=0, minor=4).bytes()) == 32


def line_of(log: Log, report: Callable[..., Report], nth: int = -1) -> str:
    """What mprof-report prints of an event."""
    return [line for line in report(log, "--debug").before if not OWN_WORDS.search(line)][nth]


@pytest.mark.parametrize(("version", "read"), [(11, "0x40"), (14, "0x40"), (15, "(nil)"), (17, "(nil)")])
def test_the_first_pointer_of_a_buffer_is_0(version: int, read: str, mprof_report: Callable[..., Report]) -> None:
    log = Log(version).buffer().domain(0).domain(0x40)
    assert line_of(log, mprof_report, 0).startswith(f"loaded thread {read} at")


def test_a_time_before_the_event_before(mprof_report: Callable[..., Report]) -> None:
    log = Log().buffer(time_base=1000).gc_event(mono.GC_START, ts=2000).gc_event(mono.GC_END, ts=1500)
    assert "end at 1500" in line_of(log, mprof_report)
    assert bytes.fromhex("8cfcffffffffffffff01") in log.bytes()


def test_a_size_of_2_gib_is_sign_extended(mprof_report: Callable[..., Report]) -> None:
    log = Log(15).buffer().gc_resize(1 << 31)
    assert line_of(log, mprof_report) == f"gc heap resized to {(1 << 64) - (1 << 31)}"
    assert line_of(Log(16).buffer().gc_resize(1 << 31), mprof_report) == f"gc heap resized to {1 << 31}"


def test_pointers_of_32_bits_wrap(mprof_report: Callable[..., Report]) -> None:
    log = Log(17, 4).buffer().thread(0x1000).thread(0xF0000000)
    assert line_of(log, mprof_report).startswith("loaded thread 0xfffffffff0000000 at")  # it applies no mask


def test_buffers_without_events(mprof_report: Callable[..., Report]) -> None:
    log = Log(4).buffer(1).buffer(2).gc_resize(5).buffer(3)
    assert line_of(log, mprof_report, 0) == "gc heap resized to 5"
    assert len(log.bytes()) == 32 + 3 * mono.BUFFER_HEADER_BYTES + 4


def test_definitions_after_their_use(mprof_report: Callable[..., Report]) -> None:
    log = Log().buffer(1).alloc(TEXT, 0x10000, 32, ts=5000).buffer(2).type_(TEXT, "System.String")
    assert mprof_report(log).allocations == {"unresolved class (nil)": (32, 1)}


def test_performance_counters_are_no_differences() -> None:
    counters = [Counter(1, "a", mono.LONG), Counter(2, "b", mono.LONG, mono.RAW, 0, mono.PERF_SECTION, "Network")]
    start = len(Log().counters_desc(counters).bytes())
    log = Log().counters_desc(counters).counters({1: 5, 2: 5}).counters({1: 6, 2: 6})
    assert log.bytes()[start:].hex(" ") == "47 e8 07 01 03 05 02 03 05 00 47 e8 07 01 03 01 02 03 06 00"


@pytest.mark.parametrize("version", [16, 17])
def test_mprof_report_swallows_what_follows_the_unload_of_an_image(
    version: int, mprof_report: Callable[..., Report]
) -> None:
    log = Log(version).buffer().image_unload(0x1000, "app.exe").gc_resize(5).throw(0).gc_resize(6)
    assert mprof_report(log).gc["GC resizes"] == 1  # it takes the bytes up to a NUL for a module version id


def test_the_hybrid_is_version_14_but_for_the_number_and_the_counters() -> None:
    hybrid, plain = named(Log(15, hybrid=True)), named(Log(14))
    assert hybrid.bytes()[7:] == plain.bytes()[7:]
    one = Counter(1, "Methods", mono.INT, mono.COUNT)
    described, as_in_15 = hybrid.counters_desc([one]).bytes(), Log(15).counters_desc([one]).bytes()
    assert described.endswith(as_in_15[as_in_15.index(b"Methods") :])


@pytest.mark.parametrize("what", sorted(mono.SINCE | mono.UNTIL))
def test_a_version_writes_nothing_that_it_has_not(what: str) -> None:
    builds = [build for build, _, needs in EVENTS if needs == what]
    without = [version for version in mono.VERSIONS if not Log(version).supports(what)]
    assert builds or what == "image unload"
    for build, version in product(builds, without):
        with pytest.raises(ValueError, match=f"version {version} has no"):
            build(Log(version))
