"""Profiles of stacks with amounts, as speedscope, V8, pprof and flamegraph.pl's scripts have them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

PERF_SCRIPT = """\
node  10/12  [001] 11222.526559:    1001001 cpu-clock:pppH:
\t    7f00c2a1 inner(int) (inlined)
\t    7f00c2a1 call(int)+0x11 (/usr/lib/libwork.so)
\tffffffff81a0 do_work ([kernel.kallsyms])

"""
STRACE = """\
12    1700000000.000000 execve("/usr/bin/sh", ["sh"], 0x7ffc /* 1 var */) = 0 <0.000100>
12    1700000000.010000 clone3({flags=CLONE_VM|CLONE_THREAD}, 88 <unfinished ...>
13    1700000000.011000 close(3)          = 0 <0.000010>
12    1700000000.012000 <... clone3 resumed>) = 13 <0.002000>
12    1700000000.020000 vfork()           = 14 <0.001000>
14    1700000000.021000 execve("/usr/bin/ls", ["ls"], 0x7ffc /* 1 var */) = 0 <0.000100>
14    1700000000.030000 +++ exited with 0 +++
12    1700000000.030100 --- SIGCHLD {si_signo=SIGCHLD, si_pid=14} ---
"""
COLLAPSED = (
    "# traced 3 samples\nmain;operator new (std::nothrow);malloc 12\nmain;work_[j];inlined_[i];sys_read_[k] 3\n"
    'process 7:"python w.py";thread (0x2A): worker;fib (w.py:2) 2.5\nP12;T0:13;/a/w.py:run:9 100,1,-20\n'
    "java-21/22;java/lang/Thread.run_[0] 1\n"
)
URL = "https://www.speedscope.app/file-format-schema.json"


def speedscope(**changes: Any) -> dict[str, Any]:
    """Two threads of a sampled profile, as py-spy writes it."""
    frames = [{"name": "main", "file": "w.py", "line": 1}, {"name": "fib", "file": "w.py", "line": 4, "col": 2}]
    return {
        "$schema": URL, "exporter": "py-spy@0.4.0", "name": "w", "shared": {"frames": frames},
        "profiles": [
            {"type": "sampled", "name": 'Thread 12 "MainThread"', "unit": "seconds", "startValue": 0.0, "endValue": 0.4,
             "samples": [[0], [0, 1], [0, 1, 1]], "weights": [0.01, 0.01, 0.02]},
            {"type": "sampled", "name": 'Process 7 Thread 0x2A "worker"', "unit": "seconds", "startValue": 0.0,
             "endValue": 0.1, "samples": [[0]], "weights": [0.01]},
        ],
    } | changes  # fmt: skip


def evented(unit: str = "milliseconds", events: Sequence[tuple[str, int, float]] = ()) -> dict[str, Any]:
    rows = events or [("O", 0, 1), ("O", 1, 2), ("C", 1, 4), ("O", 1, 4), ("C", 1, 4.5), ("C", 0, 6)]
    listed = [{"type": kind, "frame": frame, "at": at} for kind, frame, at in rows]
    return {
        "version": "0.0.1", "$schema": URL, "shared": {"frames": [{"name": "a"}, {"name": "b"}]},
        "profiles": [
            {"type": "evented", "name": "x", "unit": unit, "startValue": 0, "endValue": 6, "events": listed},
        ],
    }  # fmt: skip


def node(number: int, name: str, children: Sequence[int] = (), **others: Any) -> dict[str, Any]:
    frame = {"functionName": name, "scriptId": "1", "url": "" if name[:1] == "(" else "file:///w.js"}
    frame |= {"lineNumber": 4 * number, "columnNumber": 2}
    return {"id": number, "callFrame": frame, "hitCount": 0, "children": [*children], **others}


def cpuprofile() -> dict[str, Any]:
    nodes = [
        node(1, "(root)", [2, 4]), node(2, "outer", [3]),
        node(3, "inner", positionTicks=[{"line": 13, "ticks": 2}, {"line": 15, "ticks": 1}]), node(4, "(program)"),
    ]  # fmt: skip
    return {
        "nodes": nodes, "startTime": 1000, "endTime": 7000, "samples": [2, 3, 3, 4, 3],
        "timeDeltas": [1000, 1000, 1000, 1000, 1000],
    }  # fmt: skip


def hermes() -> dict[str, Any]:
    names = [
        {"name": f"{what}_name", "ph": "M", "pid": 7, "tid": "9", "args": {"name": f"a {what}"}}
        for what in ("process", "thread")
    ]
    samples = [
        {"ts": "1000", "pid": 7, "tid": "9", "weight": "1", "sf": 3}, {"ts": 2000.5, "pid": 7, "tid": 8, "sf": "2"}
    ]  # fmt: skip
    frames = {
        "1": {"name": "[root]", "category": "root"}, "2": {"name": "outer(w.js:10:3)", "parent": 1},
        "3": {"name": "inner(w.js:20:5)", "category": "JavaScript", "parent": "2"},
    }  # fmt: skip
    return {"traceEvents": names, "samples": samples, "stackFrames": frames}


def old_cpuprofile() -> dict[str, Any]:
    """As Chrome wrote it until version 57."""
    inner = {"id": 3, "functionName": "inner", "url": "w.js", "lineNumber": 5, "hitCount": 1, "children": []}
    outer = {"id": 2, "functionName": "", "url": "w.js", "lineNumber": 2, "hitCount": 1, "children": [inner]}
    head = {"id": 1, "functionName": "(root)", "url": "", "lineNumber": 0, "hitCount": 0, "children": [outer]}
    return {"head": head, "startTime": 1.5, "endTime": 1.6, "samples": [2, 3], "timestamps": [1_500_000, 1_501_000]}


# ---------------------------------------------------------------- pprof


def varint(number: int) -> bytes:
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def message(*fields: tuple[int, int | bytes]) -> bytes:
    out = b""
    for number, value in fields:
        if isinstance(value, int):
            out += varint(number << 3) + varint(value)
        else:
            out += varint(number << 3 | 2) + varint(len(value)) + value
    return out


class Pprof:
    """A profile, to which parts are added."""

    def __init__(self, types: Sequence[tuple[str, str]] = (("samples", "count"), ("cpu", "nanoseconds"))) -> None:
        self.texts = [""]
        self.fields: list[tuple[int, int | bytes]] = []
        for name, unit in types:
            self.fields.append((1, message((1, self.text(name)), (2, self.text(unit)))))
        self.n = 0

    def text(self, text: str) -> int:
        if text not in self.texts:
            self.texts.append(text)
        return self.texts.index(text)

    def mapping(self, path: str, start: int = 0x400000, offset: int = 0, build_id: str = "") -> int:
        number = sum(field == 3 for field, _ in self.fields) + 1
        texts = [(5, self.text(path)), (6, self.text(build_id))]
        self.fields.append((3, message((1, number), (2, start), (3, start + (1 << 20)), (4, offset), *texts)))
        return number

    def location(self, *lines: tuple[str, str, int], mapping: int = 0, address: int = 0) -> int:
        """lines: (function, file, line), the innermost first."""
        self.n += 1
        places = []
        for name, path, line in lines:
            number = sum(field == 5 for field, _ in self.fields) + 1
            self.fields.append((5, message((1, number), (2, self.text(name)), (4, self.text(path)), (5, 1))))
            places.append((4, message((1, number), (2, line))))
        self.fields.append((4, message((1, self.n), (2, mapping), (3, address), *places)))
        return self.n

    def sample(self, locations: Sequence[int], values: Sequence[int], **labels: str | int) -> None:
        """locations: the innermost first."""
        said = [
            (3, message((1, self.text(key)), (2, self.text(value)) if isinstance(value, str) else (3, value)))
            for key, value in labels.items()
        ]
        packed = ((1, b"".join(map(varint, locations))), (2, b"".join(map(varint, values))))
        self.fields.append((2, message(*packed, *said)))

    def period(self, name: str, unit: str, length: int) -> None:
        self.fields += [(11, message((1, self.text(name)), (2, self.text(unit)))), (12, length)]

    def data(self, *others: tuple[int, int | bytes]) -> bytes:
        """others: further fields of the profile, in front."""
        return message(*others, *self.fields, *((6, text.encode()) for text in self.texts))


def pprof() -> bytes:
    made = Pprof()
    program = made.mapping("/usr/bin/app", build_id="ab" * 20)
    main = made.location(("main.main", "/w/main.go", 7), mapping=program, address=0x401000)
    leaf = made.location(("inlined", "/w/in.go", 3), ("work", "/w/main.go", 9), mapping=program, address=0x401100)
    bare = made.location(mapping=program, address=0x402000)
    made.sample([leaf, main], [2, 20_000_000], worker="a b;c")
    made.sample([bare, leaf, main], [1, 10_000_000])
    made.period("cpu", "nanoseconds", 10**7)
    return made.data((9, 1_700_000_000 * 10**9), (10, 10**9))
