"""Builds recordings of the Mono log profiler (.mlpd) from nothing but `struct`, in every data version from 1 to 17.

Words are those of Mono's mono/profiler/log.h. Every event method appends one event to the current buffer and
returns the log, so that calls chain; an event without a time comes STEP after the one before it. `expected` is the
plain list of what was written, in the order of the file.

    Log(14).buffer(tid=7).jit(0x500, "Program:Main ()").enter(0x500).leave(0x500).bytes()

A backtrace begins with the outermost caller, the managed frames of a sample with the leaf.
"""

import builtins
import struct
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

HEADER_MAGIC, BUFFER_MAGIC = 0x4D505A01, 0x4D504C01
BUFFER_HEADER_BYTES = 48
STEP = 1000
MAIN = 0x7F10
VERSIONS = range(1, 18)
HYBRID = 15

# The low nibble of an event's first byte.
ALLOC, GC, METADATA, METHOD, EXCEPTION, MONITOR, HEAP, SAMPLE, RUNTIME, COVERAGE, META = range(11)
# The high nibble where a backtrace follows: of ALLOC; of THROW and MONITOR.
ALLOC_BACKTRACE, BACKTRACE = 1, 8
NAME, LOAD, UNLOAD = 0, 2, 4
CLASS, IMAGE, ASSEMBLY, DOMAIN, THREAD, CONTEXT, VTABLE = range(1, 8)

# Values of GC events, handles, clauses, monitor events, root kinds and sources, counters, samples, helpers, syncs.
GC_START, MARK_START, MARK_END, RECLAIM_START, RECLAIM_END, GC_END = range(6)
PRE_STOP_WORLD, POST_STOP_WORLD, PRE_START_WORLD, POST_START_WORLD = range(6, 10)
PRE_STOP_WORLD_LOCKED, POST_START_WORLD_UNLOCKED = 10, 11
WEAK, WEAK_TRACK, NORMAL, PINNED = range(4)
CATCH, FILTER, FINALLY, FAULT = 0, 1, 2, 4
CONTENTION, DONE, FAIL = 1, 2, 3
EXTERNAL, STACK, FINALIZER_QUEUE, STATIC, THREAD_STATIC, CONTEXT_STATIC, GC_HANDLE = range(7)
JIT_SECTION, GC_SECTION, SYSTEM_SECTION, PERF_SECTION = 1 << 8, 1 << 9, 1 << 14, 1 << 15
INT, UINT, WORD, LONG, ULONG, DOUBLE, STRING, INTERVAL = range(8)
RAW, BYTES, TIME, COUNT, PERCENTAGE = (unit << 24 for unit in range(5))
MONOTONIC, CONSTANT, VARIABLE = 1 << 28, 1 << 29, 1 << 30
CYCLES = 1
SPECIFIC_TRAMPOLINE, HELPER = 5, 6
PERIODIC, WORLD_STOP, WORLD_START = range(3)

# Events that not every version has: the first and the last that does.
SINCE = {
    "handle backtrace": 11, "finalize": 13, "class unload": 11, "image unload": 11, "assembly": 11,
    "domain": 11, "thread load": 11, "context": 11, "vtable": 15, "roots by kind": 3, "roots by address": 15,
    "root region": 15, "sample": 4, "native symbol": 4, "native binary": 4, "counters": 5, "jit helper": 8,
    "coverage": 10, "sync point": 13, "aot id": 16, "managed frames": 6, "world locked": 13, "monitor backtrace": 14,
}  # fmt: skip
UNTIL = {"class unload": 13, "roots by kind": 14, "native binary": 15, "coverage": 15, "gc phases": 13}


class Event(NamedTuple):
    """What was written. ts is None where the version has no time for it."""

    tid: int
    ts: int | None
    name: str
    fields: dict[str, Any]


class Counter(NamedTuple):
    """A counter's description; `section_name` is that of a performance counter, whose variance real writers make 0
    from version 15 on."""

    number: int
    name: str
    type: int = INT
    unit: int = RAW
    variance: int = VARIABLE
    section: int = SYSTEM_SECTION
    section_name: str = ""


class _Buffer:
    """A buffer that grows, with its bases; None is one that nothing has set yet."""

    def __init__(self, tid: int, time_base: int) -> None:
        self.tid = tid
        self.time_base = self.last_time = time_base
        self.ptr_base: int | None = None
        self.obj_base: int | None = None
        self.method_base: int | None = None
        self.last_method = 0
        self.magic = BUFFER_MAGIC
        self.length: int | None = None
        self.data = bytearray()

    def bytes(self) -> builtins.bytes:
        bases = [self.time_base, self.ptr_base or 0, self.obj_base or 0, self.tid, self.method_base or 0]
        length = len(self.data) if self.length is None else self.length
        return struct.pack("<Ii5Q", self.magic, length, *bases) + self.data


class Log:
    """A recording that grows; `builtins.bytes` because the method of that name hides the type in this class.

    `hybrid` is the version 15 of the previews: its counters are those of 15, all else is 14. `major` and `minor`
    default to those of the version's releases. The clock of the events starts at `start`.
    """

    def __init__(
        self,
        version: int = 17,
        pointer_size: int = 8,
        *,
        major: int | None = None,
        minor: int | None = None,
        hybrid: bool = False,
        start: int = 1_000_000_000,
        startup_ms: int = 1_790_000_000_000,
        start_clock: int | None = None,
        timer_overhead: int = 20,
        flags: int = 0,
        pid: int = 1000,
        port: int = 0,
        args: str = "log:",
        arch: str = "x86-64",
        os: str = "linux",
    ) -> None:
        self.version = version
        self.pointer_size = pointer_size
        self.now = start
        self.expected: list[Event] = []
        self._layout = HYBRID - 1 if hybrid else version
        self._counters: dict[int, Counter] = {}
        self._last_values: dict[int, Any] = {}
        self._chunks: list[_Buffer | builtins.bytes] = []
        self._buffer: _Buffer | None = None

        release = _release(version)
        major, minor = release[0] if major is None else major, release[1] if minor is None else minor
        header = struct.pack("<IBBBB", HEADER_MAGIC, major, minor, version, pointer_size)
        if version < 4:
            startup_ms = timer_overhead = pid = port = 0
        header += struct.pack("<Q", startup_ms)
        if major >= 3:
            header += struct.pack("<Q", start if start_clock is None else start_clock)
        header += struct.pack("<IIIH", timer_overhead, flags, pid, port)
        header += b"".join(map(_sized, (args, arch, os))) if major else struct.pack("<H", 0)
        self.append(header)

    # ---------------------------------------------------------------- the file

    def bytes(self) -> builtins.bytes:
        """The whole file."""
        return b"".join(chunk if isinstance(chunk, builtins.bytes) else chunk.bytes() for chunk in self._chunks)

    def append(self, data: builtins.bytes) -> Self:
        """Add bytes to the file as they are; the next event begins a buffer."""
        self._chunks.append(data)
        self._buffer = None
        return self

    def buffer(
        self,
        tid: int = MAIN,
        *,
        time_base: int | None = None,
        ptr_base: int | None = None,
        obj_base: int | None = None,
        method_base: int | None = None,
        magic: int = BUFFER_MAGIC,
        length: int | None = None,
    ) -> Self:
        """Begin a buffer of a thread. A base that is not given is the first pointer, object or method in it;
        `obj_base` in units of 8 bytes, as in the file. `length` states a wrong one."""
        self._buffer = buffer = _Buffer(tid, self.now if time_base is None else time_base)
        buffer.ptr_base, buffer.obj_base, buffer.method_base = ptr_base, obj_base, method_base
        buffer.last_method = method_base or 0
        buffer.magic, buffer.length = magic, length
        self._chunks.append(buffer)
        return self

    def raw(self, data: builtins.bytes) -> Self:
        """Add bytes to the current buffer as they are."""
        self._current().data += data
        return self

    def supports(self, what: str) -> bool:
        """Whether the version has it; words are the keys of SINCE and UNTIL."""
        if what not in SINCE and what not in UNTIL:
            raise KeyError(what)
        return SINCE.get(what, 1) <= self._layout <= UNTIL.get(what, self._layout)

    # ---------------------------------------------------------------- allocations and collections

    def alloc(
        self, type_: int, obj: int, size: int, frames: Sequence[int] | None = None, *, ts: int | None = None
    ) -> Self:
        """ALLOC. type_: the class, from version 15 on the vtable."""
        code = 0 if frames is None else ALLOC_BACKTRACE
        payload = self._pointer(type_) + self._object(obj) + _value(size) + self._backtrace(frames)
        return self._timed("alloc", ALLOC, code, payload, ts, type=type_, object=obj, size=size, frames=frames)

    def gc_event(self, event: int, generation: int = 0, *, ts: int | None = None) -> Self:
        """GC EVENT."""
        if MARK_START <= event <= RECLAIM_END:
            self._need("gc phases")
        if event >= PRE_STOP_WORLD_LOCKED:
            self._need("world locked")
        payload = self._small(event) + self._small(generation)
        return self._timed("gc event", GC, 1, payload, ts, event=event, generation=generation)

    def gc_resize(self, size: int, *, ts: int | None = None) -> Self:
        """GC RESIZE: a C int before version 16, so that 2 GiB come out sign-extended."""
        payload = uleb(size) if self._layout >= 16 else _value(size)
        return self._timed("gc resize", GC, 2, payload, ts, size=size)

    def gc_move(self, moves: Sequence[tuple[int, int]], *, ts: int | None = None) -> Self:
        """GC MOVE: (old, new) for each object."""
        payload = _value(2 * len(moves)) + b"".join(self._object(obj) for move in moves for obj in move)
        return self._timed("gc move", GC, 3, payload, ts, moves=list(moves))

    def handle_created(
        self, type_: int, handle: int, obj: int, frames: Sequence[int] | None = None, *, ts: int | None = None
    ) -> Self:
        """GC HANDLE_CREATED, with `frames` HANDLE_CREATED_BT."""
        payload = _value(type_) + _value(handle) + self._object(obj)
        return self._handle("handle created", 4, payload, frames, ts, type=type_, handle=handle, object=obj)

    def handle_destroyed(
        self, type_: int, handle: int, frames: Sequence[int] | None = None, *, ts: int | None = None
    ) -> Self:
        """GC HANDLE_DESTROYED, with `frames` HANDLE_DESTROYED_BT."""
        payload = _value(type_) + _value(handle)
        return self._handle("handle destroyed", 5, payload, frames, ts, type=type_, handle=handle)

    def _handle(
        self, name: str, code: int, payload: builtins.bytes, frames: Sequence[int] | None, ts: int | None, **fields: Any
    ) -> Self:
        if frames is not None:
            self._need("handle backtrace")
            code += 2
        return self._timed(name, GC, code, payload + self._backtrace(frames), ts, **fields, frames=frames)

    def finalize_start(self, *, ts: int | None = None) -> Self:
        """GC FINALIZE_START."""
        return self._finalize("finalize start", 8, ts)

    def finalize_end(self, *, ts: int | None = None) -> Self:
        """GC FINALIZE_END."""
        return self._finalize("finalize end", 9, ts)

    def finalize_object_start(self, obj: int, *, ts: int | None = None) -> Self:
        """GC FINALIZE_OBJECT_START."""
        return self._finalize("finalize object start", 10, ts, object=obj)

    def finalize_object_end(self, obj: int, *, ts: int | None = None) -> Self:
        """GC FINALIZE_OBJECT_END."""
        return self._finalize("finalize object end", 11, ts, object=obj)

    def _finalize(self, name: str, code: int, ts: int | None, **fields: int) -> Self:
        self._need("finalize")
        payload = b"".join(self._object(obj) for obj in fields.values())
        return self._timed(name, GC, code, payload, ts, **fields)

    # ---------------------------------------------------------------- metadata

    def class_(self, pointer: int, name: str, image: int = 0x1000, *, ts: int | None = None) -> Self:
        """The load of a class."""
        return self._metadata("class load", LOAD, CLASS, pointer, ts, [image], name, image=image)

    def class_unload(self, pointer: int, name: str, image: int = 0x1000, *, ts: int | None = None) -> Self:
        """The unload of a class, which versions 11 to 13 could have written."""
        self._need("class unload")
        return self._metadata("class unload", UNLOAD, CLASS, pointer, ts, [image], name, image=image)

    def image(self, pointer: int, name: str, mvid: str = "", *, ts: int | None = None) -> Self:
        """The load of an image; its module version id is written from version 16 on."""
        texts = [name, mvid] if self._layout >= 16 else [name]
        return self._metadata("image load", LOAD, IMAGE, pointer, ts, [], *texts, mvid=mvid)

    def image_unload(self, pointer: int, name: str, *, ts: int | None = None) -> Self:
        """The unload of an image, in no version with a module version id."""
        self._need("image unload")
        return self._metadata("image unload", UNLOAD, IMAGE, pointer, ts, [], name)

    def assembly(self, pointer: int, name: str, image: int = 0x1000, *, ts: int | None = None) -> Self:
        """The load of an assembly; its image is written from version 14 on."""
        return self._assembly("assembly load", LOAD, pointer, name, image, ts)

    def assembly_unload(self, pointer: int, name: str, image: int = 0x1000, *, ts: int | None = None) -> Self:
        """The unload of an assembly."""
        return self._assembly("assembly unload", UNLOAD, pointer, name, image, ts)

    def _assembly(self, event: str, code: int, pointer: int, name: str, image: int, ts: int | None) -> Self:
        self._need("assembly")
        images = [image] if self._layout >= 14 else []
        return self._metadata(event, code, ASSEMBLY, pointer, ts, images, name, image=image)

    def domain(self, pointer: int, *, ts: int | None = None) -> Self:
        """The load of a domain; `pointer` is its small number."""
        self._need("domain")
        return self._metadata("domain load", LOAD, DOMAIN, pointer, ts)

    def domain_unload(self, pointer: int, *, ts: int | None = None) -> Self:
        """The unload of a domain."""
        self._need("domain")
        return self._metadata("domain unload", UNLOAD, DOMAIN, pointer, ts)

    def domain_name(self, pointer: int, name: str, *, ts: int | None = None) -> Self:
        """The name of a domain."""
        self._need("domain")
        return self._metadata("domain name", NAME, DOMAIN, pointer, ts, [], name)

    def thread(self, tid: int, *, ts: int | None = None) -> Self:
        """The load of a thread."""
        self._need("thread load")
        return self._metadata("thread load", LOAD, THREAD, tid, ts)

    def thread_unload(self, tid: int, *, ts: int | None = None) -> Self:
        """The unload of a thread."""
        self._need("thread load")
        return self._metadata("thread unload", UNLOAD, THREAD, tid, ts)

    def thread_name(self, tid: int, name: str, *, ts: int | None = None) -> Self:
        """The name of a thread: all that versions until 10 say of it."""
        return self._metadata("thread name", NAME, THREAD, tid, ts, [], name)

    def context(self, pointer: int, domain: int, *, ts: int | None = None) -> Self:
        """The load of a context."""
        self._need("context")
        return self._metadata("context load", LOAD, CONTEXT, pointer, ts, [domain], domain=domain)

    def context_unload(self, pointer: int, domain: int, *, ts: int | None = None) -> Self:
        """The unload of a context."""
        self._need("context")
        return self._metadata("context unload", UNLOAD, CONTEXT, pointer, ts, [domain], domain=domain)

    def vtable(self, pointer: int, class_: int, domain: int = 0, *, ts: int | None = None) -> Self:
        """The load of a vtable: of a class in a domain."""
        self._need("vtable")
        fields = {"class_": class_, "domain": domain}
        return self._metadata("vtable load", LOAD, VTABLE, pointer, ts, [domain, class_], **fields)

    def type_(self, pointer: int, name: str) -> Self:
        """Whatever the version needs for `alloc` and `heap_object` to refer to a class of that name."""
        if not self.supports("vtable"):
            return self.class_(pointer, name)
        return self.class_(pointer + 8, name).vtable(pointer, pointer + 8)

    def _metadata(
        self,
        event: str,
        code: int,
        kind: int,
        pointer: int,
        ts: int | None,
        more: Sequence[int] = (),
        *texts: str,
        **fields: Any,
    ) -> Self:
        """What stood for flags before version 13 comes after the pointers; in a context before them."""
        flags = b"" if self._layout >= 13 or kind == VTABLE else uleb(0)
        payload = builtins.bytes([kind]) + self._pointer(pointer)
        pointers = b"".join(self._pointer(value) for value in more)
        payload += flags + pointers if kind == CONTEXT else pointers + flags
        payload += b"".join(map(_nul, texts))
        if texts:
            fields["name"] = texts[0]
        return self._timed(event, METADATA, code, payload, ts, pointer=pointer, **fields)

    # ---------------------------------------------------------------- methods, exceptions, monitors

    def enter(self, method: int, *, ts: int | None = None) -> Self:
        """METHOD ENTER."""
        return self._timed("enter", METHOD, 2, self._method(method), ts, method=method)

    def leave(self, method: int, *, ts: int | None = None) -> Self:
        """METHOD LEAVE."""
        return self._timed("leave", METHOD, 1, self._method(method), ts, method=method)

    def exc_leave(self, method: int, *, ts: int | None = None) -> Self:
        """METHOD EXC_LEAVE: an exception leaves the method."""
        return self._timed("exception leave", METHOD, 3, self._method(method), ts, method=method)

    def jit(self, method: int, name: str, code: int = 0x40000000, size: int = 64, *, ts: int | None = None) -> Self:
        """METHOD JIT."""
        payload = self._method(method) + self._pointer(code) + _value(size) + _nul(name)
        return self._timed("jit", METHOD, 4, payload, ts, method=method, code=code, size=size, name=name)

    def throw(self, obj: int, frames: Sequence[int] | None = None, *, ts: int | None = None) -> Self:
        """EXCEPTION THROW."""
        code = 0 if frames is None else BACKTRACE
        payload = self._object(obj) + self._backtrace(frames)
        return self._timed("throw", EXCEPTION, code, payload, ts, object=obj, frames=frames)

    def clause(self, type_: int, method: int, index: int = 0, obj: int = 0, *, ts: int | None = None) -> Self:
        """EXCEPTION CLAUSE: a clause of the method runs; the object is written from version 14 on."""
        payload = self._small(type_) + _value(index) + self._method(method)
        if self._layout >= 14:
            payload += self._object(obj)
        return self._timed("clause", EXCEPTION, 1, payload, ts, type=type_, index=index, method=method, object=obj)

    def monitor(self, event: int, obj: int, frames: Sequence[int] | None = None, *, ts: int | None = None) -> Self:
        """MONITOR; before version 14 the event stands in the first byte, and only a contention has its backtrace."""
        code = 0 if frames is None else BACKTRACE
        if frames is not None and event != CONTENTION:
            self._need("monitor backtrace")
        if self._layout >= 14:
            payload = builtins.bytes([event]) + self._object(obj) + self._backtrace(frames)
        else:
            code |= event & 3
            payload = self._object(obj) + (self._backtrace(frames) if event == CONTENTION else b"")
        return self._timed("monitor", MONITOR, code, payload, ts, event=event, object=obj, frames=frames)

    # ---------------------------------------------------------------- heap shots

    def heap_start(self, *, ts: int | None = None) -> Self:
        """HEAP START."""
        return self._timed("heap start", HEAP, 0, b"", ts)

    def heap_end(self, *, ts: int | None = None) -> Self:
        """HEAP END."""
        return self._timed("heap end", HEAP, 1, b"", ts)

    def heap_object(
        self,
        obj: int,
        type_: int,
        size: int,
        references: Sequence[tuple[int, int]] = (),
        generation: int = 0,
        *,
        ts: int | None = None,
    ) -> Self:
        """HEAP OBJECT. references: (offset of the field in bytes, object); the same object with size 0 has more."""
        payload = self._object(obj) + self._pointer(type_) + _value(size)
        if self._layout >= 16:
            payload += builtins.bytes([generation])
        payload += _value(len(references))
        last = 0
        for offset, target in references:
            if self._layout >= 2:
                payload += _value(offset - last)
            payload += self._object(target)
            last = offset
        fields = {"type": type_, "size": size, "references": list(references), "generation": generation}
        return self._timed_since_13("heap object", HEAP, 2, payload, ts, object=obj, **fields)

    def roots_by_kind(
        self, roots: Sequence[tuple[int, int, int]], collections: int = 0, *, ts: int | None = None
    ) -> Self:
        """HEAP ROOT of versions 3 to 14. roots: object, kind in the version's numbering, extra; `collections`: major
        ones so far. Version 13 cut the kind to a byte."""
        self._need("roots by kind")
        payload = _value(len(roots)) + _value(collections)
        for obj, kind, extra in roots:
            cut = builtins.bytes([kind & 0xFF]) if self._layout == 13 else _value(kind)
            payload += self._object(obj) + cut + uleb(extra)
        return self._timed_since_13("heap roots", HEAP, 3, payload, ts, roots=list(roots), collections=collections)

    def roots_by_address(self, roots: Sequence[tuple[int, int]], *, ts: int | None = None) -> Self:
        """HEAP ROOT from version 15 on: (address of the root, object)."""
        self._need("roots by address")
        payload = _value(len(roots))
        payload += b"".join(self._pointer(address) + self._object(obj) for address, obj in roots)
        return self._timed("heap roots", HEAP, 3, payload, ts, roots=list(roots))

    def root_register(
        self, start: int, size: int, source: int, key: int = 0, name: str = "", *, ts: int | None = None
    ) -> Self:
        """HEAP ROOT_REGISTER."""
        self._need("root region")
        payload = self._pointer(start) + uleb(size) + builtins.bytes([source]) + self._pointer(key) + _nul(name)
        fields = {"size": size, "source": source, "key": key, "name": name}
        return self._timed("root register", HEAP, 4, payload, ts, start=start, **fields)

    def root_unregister(self, start: int, *, ts: int | None = None) -> Self:
        """HEAP ROOT_UNREGISTER."""
        self._need("root region")
        return self._timed("root unregister", HEAP, 5, self._pointer(start), ts, start=start)

    # ---------------------------------------------------------------- samples and native code

    def sample(
        self,
        thread: int,
        ips: Sequence[int],
        methods: Sequence[int] = (),
        *,
        type_: int = CYCLES,
        offsets: Sequence[tuple[int, int]] = (),
        ts: int | None = None,
    ) -> Self:
        """SAMPLE HIT. The thread is written from version 11 on, methods (leaf first) from 6 on; offsets: IL and native
        one of each method, until version 12."""
        self._need("managed frames" if methods else "sample")
        when = self._moment(ts)
        payload = b""
        if self._layout < 13:
            payload = _value(type_) + uleb(when)
        elif self._layout == 13:
            payload = builtins.bytes([type_])
        if self._layout >= 11:
            payload += self._pointer(thread)
        payload += _value(len(ips)) + b"".join(map(self._pointer, ips))
        if self._layout >= 6:
            payload += self._sampled_methods(methods, offsets)
        fields = {"ips": list(ips), "methods": list(methods), "type": type_}
        if self._layout >= 13:
            return self._timed("sample", SAMPLE, 0, payload, when, thread=thread, **fields)
        return self._write("sample", SAMPLE, 0, payload, when, {"thread": thread, **fields})

    def _sampled_methods(self, methods: Sequence[int], offsets: Sequence[tuple[int, int]]) -> builtins.bytes:
        """The managed frames: with IL and native offset until version 12."""
        payload = _value(len(methods))
        for nth, method in enumerate(methods):
            payload += self._method(method)
            if self._layout < 13:
                il, native = offsets[nth] if nth < len(offsets) else (0, 0)
                payload += sleb(il) + sleb(native)
        return payload

    def native_symbol(self, address: int, name: str, size: int = 0, *, ts: int | None = None) -> Self:
        """SAMPLE USYM."""
        self._need("native symbol")
        payload = self._pointer(address) + _value(size) + _nul(name)
        return self._timed_since_13("native symbol", SAMPLE, 1, payload, ts, address=address, size=size, name=name)

    def native_binary(self, address: int, name: str, offset: int = 0, size: int = 0, *, ts: int | None = None) -> Self:
        """SAMPLE UBIN: what is mapped from `address` on; relative to no base until version 13."""
        self._need("native binary")
        payload = self._pointer(address) if self._layout >= 14 else sleb(self._wrapped(address))
        payload += uleb(offset) + uleb(size) + _nul(name)
        fields = {"offset": offset, "size": size, "name": name}
        return self._timed("native binary", SAMPLE, 2, payload, ts, address=address, **fields)

    def jit_helper(self, type_: int, address: int, size: int, name: str = "", *, ts: int | None = None) -> Self:
        """RUNTIME JITHELPER; `type_` as version 14 numbers them: 1 more is written before."""
        self._need("jit helper")
        written = type_ if self._layout >= 14 else type_ + 1
        payload = self._small(written) + self._pointer(address) + _value(size)
        if type_ == SPECIFIC_TRAMPOLINE:
            payload += _nul(name)
        fields = {"address": address, "size": size, "name": name}
        return self._timed("jit helper", RUNTIME, 1, payload, ts, type=type_, **fields)

    # ---------------------------------------------------------------- counters

    def counters_desc(self, counters: Sequence[Counter], *, ts: int | None = None) -> Self:
        """SAMPLE COUNTERS_DESC."""
        self._need("counters")
        self._counters |= {counter.number: counter for counter in counters}
        payload = _value(len(counters)) + b"".join(map(self._description, counters))
        return self._timed_since_13("counters desc", SAMPLE, 3, payload, ts, counters=list(counters))

    def _description(self, counter: Counter) -> builtins.bytes:
        """Type, unit and variance are cut to a byte in versions 13 and 14: unit and variance read 0."""
        is_cut = self.version in (13, 14)
        words = (counter.type, counter.unit, counter.variance)
        payload = uleb(counter.section)
        if counter.section == PERF_SECTION:
            payload += _nul(counter.section_name)
        payload += _nul(counter.name)
        payload += b"".join(builtins.bytes([word & 0xFF]) if is_cut else uleb(word) for word in words)
        return payload + uleb(counter.number)

    def counters(
        self, values: Mapping[int, Any], *, undescribed: Sequence[Counter] = (), ms: int = 0, ts: int | None = None
    ) -> Self:
        """SAMPLE COUNTERS: the values of described counters, by number, and of counters whose description comes later
        or never. ms: since the first ones, until version 12."""
        self._need("counters")
        self._counters |= {counter.number: counter for counter in undescribed}
        payload = b"" if self._layout >= 13 else uleb(ms)
        for number, value in values.items():
            payload += uleb(number) + uleb(self._counters[number].type) + self._counter_value(number, value)
        return self._timed_since_13("counters", SAMPLE, 4, payload + uleb(0), ts, ms=ms, values=dict(values))

    def _counter_value(self, number: int, value: Any) -> builtins.bytes:
        """Integers as differences from the value before, all others and performance counters as they are."""
        counter = self._counters[number]
        if counter.type == DOUBLE:
            return struct.pack("<d", value)
        if counter.type == STRING:
            return b"\0" if value is None else b"\1" + _nul(value)
        last = 0 if counter.section == PERF_SECTION else self._last_values.get(number, 0)
        self._last_values[number] = value
        bits = {INT: 32, UINT: 32, WORD: 8 * self.pointer_size}.get(counter.type, 64)
        difference = (value - last) % (1 << bits)
        return uleb(difference) if counter.type in (UINT, ULONG) else sleb(_signed(difference, bits))

    # ---------------------------------------------------------------- coverage, and the recording itself

    def coverage_assembly(
        self, name: str, guid: str, path: str, methods: int, full: int, partial: int = 0, *, ts: int | None = None
    ) -> Self:
        """COVERAGE assembly; full, partial: how many methods are covered so."""
        fields = {"name": name, "guid": guid, "path": path, "methods": methods, "full": full, "partial": partial}
        return self._coverage("coverage assembly", 0, ts, fields)

    def coverage_method(
        self,
        assembly: str,
        class_name: str,
        method: str,
        signature: str,
        path: str,
        token: int,
        method_id: int,
        statements: int,
        *,
        ts: int | None = None,
    ) -> Self:
        """COVERAGE method."""
        fields: dict[str, Any] = {"assembly": assembly, "class_name": class_name, "method": method}
        fields |= {"signature": signature, "path": path, "token": token}
        return self._coverage("coverage method", 1, ts, fields | {"method_id": method_id, "statements": statements})

    def coverage_statement(
        self, method_id: int, offset: int, count: int, line: int, column: int, *, ts: int | None = None
    ) -> Self:
        """COVERAGE statement: how often it ran."""
        fields = {"method_id": method_id, "offset": offset, "count": count, "line": line, "column": column}
        return self._coverage("coverage statement", 2, ts, fields)

    def coverage_class(
        self, assembly: str, class_name: str, methods: int, full: int, partial: int = 0, *, ts: int | None = None
    ) -> Self:
        """COVERAGE class."""
        fields = {"assembly": assembly, "class_name": class_name, "methods": methods, "full": full, "partial": partial}
        return self._coverage("coverage class", 3, ts, fields)

    def _coverage(self, name: str, code: int, ts: int | None, fields: Mapping[str, Any]) -> Self:
        self._need("coverage")
        payload = b"".join(_nul(value) if isinstance(value, str) else uleb(value) for value in fields.values())
        return self._timed_since_13(name, COVERAGE, code, payload, ts, **fields)

    def sync_point(self, kind: int = PERIODIC, *, ts: int | None = None) -> Self:
        """META SYNC_POINT."""
        self._need("sync point")
        return self._timed("sync point", META, 0, builtins.bytes([kind]), ts, kind=kind)

    def aot_id(self, text: str, *, ts: int | None = None) -> Self:
        """META AOT_ID."""
        self._need("aot id")
        return self._timed("aot id", META, 1, _nul(text), ts, text=text)

    # ---------------------------------------------------------------- fields

    def _need(self, what: str) -> None:
        if not self.supports(what):
            raise ValueError(f"version {self._layout} has no {what}")

    def _current(self) -> _Buffer:
        return self._buffer or self.buffer()._current()

    def _moment(self, ts: int | None) -> int:
        self.now = self.now + STEP if ts is None else ts
        return self.now

    def _timed(
        self, name: str, kind: int, code: int, payload: builtins.bytes, ts: int | None, /, **fields: Any
    ) -> Self:
        """An event with its time after the first byte, as a difference that may be negative."""
        buffer = self._current()
        difference = (self._moment(ts) - buffer.last_time) % (1 << 64)
        buffer.last_time = self.now
        return self._write(name, kind, code, uleb(difference) + payload, self.now, fields)

    def _timed_since_13(
        self, name: str, kind: int, code: int, payload: builtins.bytes, ts: int | None, /, **fields: Any
    ) -> Self:
        """An event that had no time before version 13."""
        if self._layout >= 13:
            return self._timed(name, kind, code, payload, ts, **fields)
        return self._write(name, kind, code, payload, None, fields)

    def _write(
        self, name: str, kind: int, code: int, payload: builtins.bytes, ts: int | None, fields: dict[str, Any]
    ) -> Self:
        buffer = self._current()
        buffer.data += builtins.bytes([code << 4 | kind]) + payload
        self.expected.append(Event(buffer.tid, ts, name, fields))
        return self

    def _pointer(self, value: int) -> builtins.bytes:
        """Until version 14 a base of 0 counts as none: the next pointer replaces it."""
        buffer = self._current()
        if buffer.ptr_base is None or (buffer.ptr_base == 0 and self._layout < 15):
            buffer.ptr_base = value
        return sleb(self._wrapped(value - buffer.ptr_base))

    def _object(self, value: int) -> builtins.bytes:
        """In units of 8 bytes; in every version a base of 0 counts as none."""
        buffer = self._current()
        if not buffer.obj_base:
            buffer.obj_base = value >> 3
        return sleb(self._wrapped((value >> 3) - buffer.obj_base))

    def _method(self, value: int) -> builtins.bytes:
        """Relative to the method before, in the buffer."""
        buffer = self._current()
        if not buffer.method_base:
            buffer.method_base = buffer.last_method = value
        difference, buffer.last_method = value - buffer.last_method, value
        return sleb(self._wrapped(difference))

    def _wrapped(self, difference: int) -> int:
        """As the profiled program's intptr_t."""
        bits = 8 * self.pointer_size
        return _signed(difference % (1 << bits), bits)

    def _small(self, value: int) -> builtins.bytes:
        """A byte, before version 13 a uleb."""
        return builtins.bytes([value]) if self._layout >= 13 else uleb(value)

    def _backtrace(self, frames: Sequence[int] | None) -> builtins.bytes:
        if frames is None:
            return b""
        if self._layout >= 13:
            return _value(len(frames)) + b"".join(map(self._method, frames))
        return uleb(0) + _value(len(frames)) + b"".join(map(self._pointer, frames))


def uleb(value: int) -> bytes:
    """An unsigned LEB128 number."""
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def sleb(value: int) -> bytes:
    """A signed LEB128 number."""
    out = bytearray()
    while not -0x40 <= value < 0x40:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value & 0x7F])


def _value(value: int) -> bytes:
    """A C int: from 2 GiB on sign-extended to ten bytes."""
    return uleb(_signed(value % (1 << 32), 32) % (1 << 64))


def _signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> bits - 1 else value


def _nul(text: str) -> bytes:
    return text.encode() + b"\0"


def _sized(text: str) -> bytes:
    """A string of the header: its length counts the NUL."""
    return struct.pack("<i", len(_nul(text))) + _nul(text)


def _release(version: int) -> tuple[int, int]:
    """Major and minor of the profiler that wrote this data version."""
    for first, release in ((16, (3, 0)), (14, (2, 0)), (13, (1, 1)), (4, (0, 4)), (2, (0, 2))):
        if version >= first:
            return release
    return 0, 1
