"""The verdict on a recording: one line, and at most three with the next command."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from conftest import REPO
from support import lawful, load_checked

from traceferry.analysis.info.summary import summarize
from traceferry.analysis.totals.sums_of_trace import Ran, SampleTotals
from traceferry.analysis.verdict import Tally, Verdict, verdict_of
from traceferry.analysis.verdict.runtimes import naming, runtime_of
from traceferry.common.issue_kinds import ENDED_AT_STUBS, STATISTICS_SQL
from traceferry.common.recorder import command_of
from traceferry.libraries.recorded_files import IS_AT_ITS_PATH, IS_OF_OTHER_BUILD, IS_TEMPORARY, IS_WITHOUT_ID
from traceferry.model import (
    COUNTER_VALUES,
    Clock,
    Counter,
    Event,
    EventKind,
    Input,
    Process,
    Table,
    Trace,
    TraceBuilder,
)
from traceferry.model.categories import category_of_file
from traceferry.symbolication.packages import OF_NO_SYMBOL, OF_NOBODY

HERE = __import__("platform").node()
RECORDED = "perf record -F 999 -g -o x.data ./app"
DWARF = "perf record -F 999 --call-graph dwarf,16384 -o x.data ./app"
MAIN = "main@app _start@app"
OF_MUSL = "(no~unwind~information:~libc.so)"
OF_CGO = "(callers~on~another~stack:~runtime.asmcgocall)"
OF_MEMORY = "(no~unwind~information:~memory~without~a~file)"


# ---------------------------------------------------------------- the recorder's command


@pytest.mark.parametrize(
    ("recorded", "options", "wanted"),
    [
        ("/usr/bin/perf record -F 99 -g ./a", {"--call-graph": "dwarf,9"},
         "perf record -F 99 --call-graph dwarf,9 ./a"),
        ("perf record --call-graph dwarf ./a", {"-g": None}, "perf record -g ./a"),
        ("perf record --user-regs=ip,sp -e a ./a", {"--call-graph": "dwarf,9"},
         "perf record -e a --call-graph dwarf,9 ./a"),
        ("perf record --user-regs=ip --kernel-callchains -g ./a", {"-g": None}, "perf record --user-regs=ip -g ./a"),
        ("perf record --user-regs=ip --kernel-callchains ./a", {"-F": "9"},
         "perf record --user-regs=ip --kernel-callchains -F 9 ./a"),
        ("perf record -agF99 -- ./a -g", {"--call-graph": "lbr"}, "perf record -a --call-graph lbr -F 99 ./a -g"),
        ("perf record --freq=99 -o x ./a", {"-F": "20"}, "perf record -F 20 -o x ./a"),
        ("perf record --event cycles:u -p 7", {"-e": "cpu-clock"}, "perf record -e cpu-clock -p 7"),
        ("perf record -e '{cycles,instructions}' sh -c 'a b'", {"-m": "4M"},
         "perf record -e '{cycles,instructions}' -m 4M sh -c 'a b'"),
        ("perf record -z3 --threads ./a", {"-k": "mono"}, "perf record -z3 --threads -k mono ./a"),
        ("perf record -- -odd", {}, "perf record -- -odd"),
        ("perf record --switch-output=1G ./a", {}, "perf record --switch-output=1G ./a"),
        ("perf trace record -o x -- ./a", {"-g": None}, "perf trace record -o x -g ./a"),
        ("perf mem record -t load -a ./a", {"-m": "4M"}, "perf mem record -t load -a -m 4M ./a"),
        ("perf stat record -I 100 -A --cpu=0 -e cycles -r 3 ./a", {"-g": None}, "perf record -C 0 -e cycles -g ./a"),
        ("perf c2c record -u ./a", {"-g": None}, "perf c2c record -u -g ./a"),
        ("perf timechart record -T sleep 1", {}, "perf record sleep 1"),
    ],
)  # fmt: skip
def test_a_command_with_other_options(recorded: str, options: dict[str, str | None], wanted: str) -> None:
    command = command_of(recorded)
    assert command is not None
    assert command.with_options(options).text == wanted


@pytest.mark.parametrize(
    ("recorded", "wanted"),
    [
        ("perf record -gi -e cycles ./a", "perf record -g -e cycles ./a"),
        ("perf record --per-thread --no-inherit ./a", "perf record ./a"),
        ("perf record -e '{cycles:u,faults}:S' -e 'a:b_S,{x,y}:uS' ./a",
         "perf record -e '{cycles:u,faults}' -e 'a:b_S,{x,y}:u' ./a"),
        ("perf record -e cycles:S,faults:k ./a", "perf record -e cycles,faults:k ./a"),
    ],
)  # fmt: skip
def test_a_command_that_records_all_threads(recorded: str, wanted: str) -> None:
    command = command_of(recorded)
    assert command is not None
    assert command.following.text == wanted


@pytest.mark.parametrize(
    ("recorded", "wanted"),
    [
        ("perf lock record -g ./a", "perf record -g ./a"),
        ("perf mem record -t load -a -o x ./a", "perf record -a -o x ./a"),
        ("perf record -t 7 -z", "perf record -t 7 -z"),
    ],
)
def test_a_command_with_events_that_are_chosen(recorded: str, wanted: str) -> None:
    command = command_of(recorded)
    assert command is not None
    assert command.plain.text == wanted


@pytest.mark.parametrize("text", ["", "perf", "perf stat ./a", "simpleperf -p 7", "perf record 'open", "record -g"])
def test_what_is_no_command_of_the_recorder(text: str) -> None:
    assert command_of(text) is None


@pytest.mark.parametrize(
    ("file", "program", "wanted"),
    [
        ("node", "node a.js", "node --perf-prof --interpreted-frames-native-stack a.js"),
        ("node", "node --perf-prof --interpreted-frames-native-stack a.js", None),
        ("node", "npm test", None),
        ("libpython3.11.so.1.0", "python3 -u a.py", "python3.13 -X perf_jit -u a.py"),
        ("libpython3.12.so.1.0", "python3 -X perf a.py", "python3.13 -X perf_jit a.py"),
        ("python3.14", "/opt/bin/python3 a.py", "/opt/bin/python3 -X perf_jit a.py"),
        ("python3.13", "env A=1 python3.13 a.py", "env A=1 python3.13 -X perf_jit a.py"),
        ("libjvm.so", "java -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit A",
         "java -XX:+PreserveFramePointer -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit A"),
        ("libjvm.so", "java -cp . A",
         "java -XX:+PreserveFramePointer -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit -cp . A"),
        ("libjvm.so", "java -XX:-PreserveFramePointer -XX:+PreserveFramePointer A",
         "java -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit -XX:+PreserveFramePointer A"),
        ("libjvm.so", "java -agentpath:libperf-jvmti.so -XX:+PreserveFramePointer A", None),
        ("beam.smp", "erl -noshell", "erl +JPperf true -noshell"),
        ("beam.smp", "erl +JPperf map -noshell +JPperf dump", "erl +JPperf true -noshell"),
        ("php8.2", "php -d opcache.jit=off -d opcache.jit_buffer_size=32M a.php",
         "php -d opcache.enable_cli=1 -d opcache.jit=tracing -d opcache.jit_buffer_size=64M -d opcache.jit_debug=32 "
         "-d opcache.jit_buffer_size=32M a.php"),
        ("libcoreclr.so", "dotnet a.dll", "env DOTNET_PerfMapEnabled=1 DOTNET_PerfMapStubGranularity=2 dotnet a.dll"),
        ("libcoreclr.so", "env DOTNET_PerfMapEnabled=1 dotnet a.dll", None),
        ("libcoreclr.so", "env A=1 dotnet a.dll",
         "env DOTNET_PerfMapEnabled=1 DOTNET_PerfMapStubGranularity=2 A=1 dotnet a.dll"),
        ("libruby.so.3.3", "ruby a.rb", "ruby --yjit --yjit-perf a.rb"),
        ("libruby-3.1.so.3.1.2", "ruby --yjit a.rb", "ruby3.3 --yjit --yjit-perf a.rb"),
        ("deno", "deno run a.ts",
         "env DENO_V8_FLAGS=--perf-prof,--interpreted-frames-native-stack deno run a.ts"),
        ("deno", "deno run --v8-flags=--perf-prof a.ts", None),
        ("chromium", "chromium --headless a.html",
         "chromium --no-sandbox '--js-flags=--perf-prof --interpreted-frames-native-stack' --headless a.html"),
        ("chrome", "google-chrome --no-sandbox a.html",
         "google-chrome '--js-flags=--perf-prof --interpreted-frames-native-stack' --no-sandbox a.html"),
        ("chromium", "chromium '--js-flags=--perf-prof' a.html", None),
        ("wasmtime", "wasmtime a.wasm", "wasmtime --profile=jitdump a.wasm"),
        ("wasmtime", "wasmtime run a.wasm", "wasmtime run --profile=jitdump a.wasm"),
        ("wasmtime", "wasmtime run --profile=perfmap a.wasm", None),
        ("mono-sgen", "mono a.exe", "env MONO_DEBUG=disable_omit_fp mono --jitmap a.exe"),
        ("mono-sgen", "mono --jitmap a.exe", "env MONO_DEBUG=disable_omit_fp mono --jitmap a.exe"),
        ("mono-sgen", "env MONO_DEBUG=disable_omit_fp mono --jitmap a.exe", None),
        ("libperl.so.5.36", "perl a.pl", None),
    ],
)  # fmt: skip
def test_what_names_the_functions_of_a_runtime(file: str, program: str, wanted: str | None) -> None:
    command, runtime = command_of(f"perf record -F 9 -g {program}"), runtime_of(file)
    assert command is not None
    named = naming(command, runtime, file) if runtime is not None else None
    graph = f"--call-graph {runtime.call_graph}" if runtime is not None and runtime.call_graph != "fp" else "-g"
    assert (named and named.text) == (wanted and f"perf record -F 9 {graph} -k CLOCK_MONOTONIC {wanted}")


# ---------------------------------------------------------------- traces


def trace_of(
    stacks: Mapping[str, int],
    command: str = RECORDED,
    notes: Mapping[str, Mapping[str, Any]] | None = None,
    call_graph: str = "fp",
    build_ids: bool = True,
    kind: EventKind = "other",
    end_ts: int = 2_000_000,
    event: str = "cpu-clock",
    of: str = "perf.data",
    pids: Mapping[str, int] | None = None,
    files: Mapping[str, tuple[str, ...]] | None = None,
    **attributes: str,
) -> tuple[Trace, SampleTotals]:
    """stacks: their functions, the innermost first, as NAME@FILE or NAME@FILE#CATEGORY, with ~ for blanks, and how many
    samples they have, behind "PROGRAM: " or "PROGRAM#PID: " where there are several; notes: of the report; of: a
    format; pids, files: of processes by their names."""
    trace = TraceBuilder()
    of_name = files or {}
    trace.processes += [
        Process(pid, name, 0, end_ts, files=of_name.get(name, ())) for name, pid in (pids or {}).items()
    ]
    trace.inputs.append(Input("x.data", of, "file", "perf 6.1"))
    trace.events.append(Event(event, "ns", 1_000, kind=kind))
    trace.attributes |= {"command": command, "call_graph": call_graph, "hostname": HERE, **attributes}
    trace.bounds, trace.clock = (0, end_ts), Clock("monotonic")
    samples = SampleTotals(trace)
    for text, n in stacks.items():
        prefix = -1
        program, _, functions = text.rpartition(": ")
        name, _, pid = program.partition("#")
        for word in reversed(functions.split()):
            prefix = trace.stacks.intern(prefix=prefix, frame=_frame(trace, word, build_ids))
        samples.add(np.full(n, prefix, np.int32), Ran(name, int(pid or 1)) if name else None)
    for kind, note in (notes or {}).items():
        trace.report.note(kind, **note)
    return lawful(trace), samples


def _frame(trace: TraceBuilder, word: str, build_ids: bool) -> int:
    intern = trace.strings.intern
    name, _, file = word.replace("~", " ").partition("@")
    file, _, category = file.partition("#")
    lib = -1
    if file:
        lib = trace.libs.intern(name=intern(file), debug_id=-1, code_id=intern("ab") if build_ids else -1, arch=-1)
    func = trace.funcs.intern(name=intern(name), source=-1, line=0, column=0, is_js=False,
                              kind=-1, number=-1)  # fmt: skip
    of = trace.add_category(category or (category_of_file(file) if file else "Other"))
    return trace.frames.intern(
        func=func, category=of, tier=-1, source=-1, line=0, column=0, code=-1, symbol=-1, lib=lib, address=-1,
        inline_depth=0,
    )  # fmt: skip


def said(*arguments: Any, **options: Any) -> list[str]:
    return verdict_of(*trace_of(*arguments, **options)).lines()


OWNED = "/tmp/x: its owner, user 101, is neither you nor root"
NOT_FOUND = {"where": "libz.so 1", "detail": "libz.so (3 of 3 addresses): the file was not found"}
GIVE = "give the file"
PCRE = "libpcre2-8.so.0.11.2"
CASES: dict[str, tuple[Mapping[str, Any], list[str]]] = {
    "whole": (
        {"stacks": {f"f@app {MAIN}": 1234}},
        ["good recording: 1,234 samples of cpu-clock, 2ms"],
    ),
    "what was lost and changes little": (
        {"stacks": {f"f@app {MAIN}": 999, f"libz.so+0x12@libz.so {MAIN}": 1},
         "notes": {"names_missing": NOT_FOUND, "lost_samples": {"count": 2}}},
        ["good recording: 1,000 samples of cpu-clock, 2ms; 2 losses: --verbose"],
    ),
    "threads that perf did not follow": (
        {"stacks": {"f@app": 40}, "command": "perf record -g -i ./app", "kind": "clock",
         "notes": {"threads_not_recorded": {"count": 3}}},
        ["3 threads that began during the recording are not in it",
         "  without -i perf follows the threads that a thread starts: perf record -g ./app",
         "  code without frame pointers ends them; perf can copy the stacks instead: perf record --call-graph"
         " dwarf,16384 ./app",
         "  sample more often, or let the program work for longer: perf record -g -F 20000 ./app"],
    ),
    "a thread that one of the events does not follow": (
        {"stacks": {f"f@app {MAIN}": 400}, "command": "perf record -g -e '{a,b}:S,c' ./app",
         "notes": {"threads_not_recorded": {"detail": "a, b"}}},
        ["a thread that began during the recording is not in it: no a, b of them",
         "  before perf 6.13, and Linux 6.12, no thread that began later counts for a group that is read at once (:S): "
         "sample each event: perf record -g -e '{a,b},c' ./app",
         "  or record the whole machine, where a group has all threads: perf record -g -e '{a,b}:S,c' -a ./app"],
    ),
    "threads that were not followed for a reason that is not known": (
        {"stacks": {f"f@app {MAIN}": 400}, "command": "", "notes": {"threads_not_recorded": {"count": 2}}},
        ["2 threads that began during the recording are not in it",
         "  record without -i and --per-thread, and events that are read as a group (:S) apart, or with -a"],
    ),
    "callers in the program that were not asked for": (
        {"stacks": {"f@app": 100}, "command": "perf record --kernel-callchains -g ./app"},
        ["100 % of the stacks are cut: callers in the program were not recorded",
         "  without --kernel-callchains, they have the program's functions: perf record -g ./app"],
    ),
    "events that perf causes": (
        {"stacks": {"perf: a@app b@app c@app start_thread@app": 300, "app: f@app main@app": 100}, "kind": "tracepoint",
         "command": "perf record -g -a -e 'block:*' -e 'writeback:*' ./app"},
        ["75 % of the samples are of perf itself, which causes them as it writes",
         "  perf can leave its own out: perf record -g -a -e 'block:*' --exclude-perf -e 'writeback:*' --exclude-perf"
         " ./app"],
    ),
    "events that perf causes, which a tool of its own chose": (
        {"stacks": {"perf: a@app b@app c@app start_thread@app": 300, "app: f@app main@app": 100}, "kind": "tracepoint",
         "command": "perf kmem record --call-graph dwarf,4096 ./app"},
        ["75 % of the samples are of perf itself, which causes them as it writes",
         "  record less of each, -g in place of copied stacks, or fewer events"],
    ),
    "perf as one of the programs that a clock samples": (
        {"stacks": {"perf: main@app": 300, "app: f@app main@app": 100}, "kind": "clock", "command": "perf record -a"},
        ["good recording: 400 samples of cpu-clock, 2ms"],
    ),
    "stacks of an event of the whole machine that are cut": (
        {"stacks": {"f@app": 300}, "kind": "tracepoint", "command": "perf record -g -a -e 'kmem:*' ./app"},
        ["100 % of the stacks are cut: record with --call-graph dwarf,16384",
         "  code without frame pointers ends them; perf can copy the stacks instead:"
         " perf record --call-graph dwarf,16384 -a -e 'kmem:*' --exclude-perf ./app"],
    ),
    "no stacks of an event of the whole machine": (
        {"stacks": {"kfree@[kernel.kallsyms]#Kernel": 300}, "kind": "tracepoint", "call_graph": "none",
         "command": "perf kmem record ./app"},
        ["the recording has no call stacks: record with -g",
         "  stacks tell from where functions are called: perf kmem record -g ./app"],
    ),
    "what QEMU translated, with names, and what it calls": (
        {"stacks": {"guest-0x401622@#JIT": 40, "f@qemu-x86_64": 60, "g@qemu-x86_64 guest-0x401622@#JIT": 10},
         "command": "perf record -g qemu-x86_64 -perfmap ./a"},
        ["100 % of the stacks are cut: what QEMU compiled has neither frame pointers nor unwind information"],
    ),
    "QEMU that has translated little": (
        {"stacks": {"guest-0x401622@#JIT": 10, "f@qemu-x86_64": 90}, "command": "perf record -g qemu-x86_64 ./a"},
        ["100 % of the stacks are cut: record with --call-graph dwarf,16384",
         "  code without frame pointers ends them; perf can copy the stacks instead: "
         "perf record --call-graph dwarf,16384 qemu-x86_64 ./a"],
    ),
    "code without frame pointers, and what LuaJIT compiled": (
        {"stacks": {"[code~in~//anon]": 35, "f@luajit": 65}, "command": "perf record -g luajit a.lua",
         "notes": {"code_unrecorded": {}}},
        ["100 % of the stacks are cut: record with --call-graph dwarf,16384",
         "  code without frame pointers ends them; perf can copy the stacks instead, of which at least 35 % will end in"
         " what LuaJIT compiled: perf record --call-graph dwarf,16384 luajit a.lua",
         "  [code in //anon] (35 %), by LuaJIT: it tells perf the names of its traces if it was built with make"
         " XCFLAGS=-DLUAJIT_USE_PERFTOOLS"],
    ),
    "code without frame pointers, and little that LuaJIT compiled": (
        {"stacks": {"[code~in~//anon]": 4, "f@luajit": 96}, "command": "perf record -g luajit a.lua"},
        ["100 % of the stacks are cut: record with --call-graph dwarf,16384",
         "  code without frame pointers ends them; perf can copy the stacks instead: perf record --call-graph"
         " dwarf,16384 luajit a.lua"],
    ),
    "code without frame pointers, and what PHP compiled": (
        {"stacks": {"fib@#PHP": 30, "f@php8.2": 70}, "command": "perf record -g php -d opcache.jit_debug=16 a.php"},
        ["100 % of the stacks are cut: record with --call-graph dwarf,16384",
         "  code without frame pointers ends them; perf can copy the stacks instead, of which at least 30 % will end in"
         " what PHP compiled: perf record --call-graph dwarf,16384 php -d opcache.jit_debug=16 a.php"],
    ),
    "what Guile compiled, without stacks": (
        {"stacks": {"[code~in~//anon]": 50, "f@libguile-3.0.so.1": 50}, "command": "perf record guile a.scm",
         "call_graph": "none", "notes": {"code_unrecorded": {}}},
        ["names are missing for 50 % of the samples",
         "  [code in //anon] (50 %), by Guile: it tells perf nothing of its functions"],
    ),
    "what QEMU translated, without stacks": (
        {"stacks": {"guest-0x401622@#JIT": 40, "f@qemu-x86_64": 60}, "command": "perf record qemu-x86_64 -perfmap ./a",
         "call_graph": "none"},
        ["the recording has no call stacks: they would end in what QEMU compiled"],
    ),
    "leaf functions without a frame pointer": (
        {"stacks": {f"f@app {MAIN}": 100}, "notes": {"callers_missing": {"count": 30}}},
        ["the caller is missing from 30 % of the stacks: their innermost function has no frame pointer",
         f"  perf can copy the stacks instead: {DWARF}"],
    ),
    "leaf functions without a frame pointer in copied stacks": (
        {"stacks": {f"f@app {MAIN}": 100}, "notes": {"callers_missing": {"count": 30}}, "call_graph": "dwarf"},
        ["the caller is missing from 30 % of the stacks: their innermost function has no frame pointer"],
    ),
    "leaf functions without a frame pointer in a sixth of the stacks": (
        {"stacks": {f"f@app {MAIN}": 100}, "notes": {"callers_missing": {"count": 16}}},
        ["good recording: 100 samples of cpu-clock, 2ms"],
    ),
    "leaf functions without a frame pointer in stacks that are cut": (
        {"stacks": {"f@app": 100}, "notes": {"callers_missing": {"count": 90}}},
        ["100 % of the stacks are cut: record with --call-graph dwarf,16384",
         f"  code without frame pointers ends them; perf can copy the stacks instead: {DWARF}"],
    ),
    "leaf functions without a frame pointer in C that Go calls": (
        {"stacks": {"c_inner@app main._Cfunc_c_outer.abi0@app main.f@app runtime.goexit.abi0@app": 60,
                    "main.g@app runtime.goexit.abi0@app": 40}, "notes": {"callers_missing": {"count": 60}}},
        ["the caller is missing from 60 % of the stacks: their innermost function has no frame pointer",
         "  compile the C code with frame pointers: a copy of the stack would end where Go calls C, without a function"
         " of Go: CC=clang CGO_CFLAGS='-g -O2 -fno-omit-frame-pointer' go build"],
    ),
    "leaf functions without a frame pointer, some of them in C that Go calls": (
        {"stacks": {"c_inner@app main._Cfunc_c_outer@app main.f@app runtime.goexit@app": 10,
                    "runtime.memmove@app main.g@app runtime.goexit@app": 90},
         "notes": {"callers_missing": {"count": 60}}},
        ["the caller is missing from 60 % of the stacks: their innermost function has no frame pointer",
         f"  perf can copy the stacks instead: {DWARF}"],
    ),
    "C that Go calls, and that uses the frame pointer for something else": (
        {"stacks": {"c_inner@app": 60, "c_f@app c_g@app runtime.asmcgocall@app runtime.cgocall@app main.f@app"
                    " runtime.goexit@app": 40}},
        ["60 % of the stacks are cut: the C code that Go calls keeps no frame pointers",
         "  compile the C code with frame pointers: a copy of the stack would end where Go calls C, without a function"
         " of Go: CC=clang CGO_CFLAGS='-g -O2 -fno-omit-frame-pointer' go build"],
    ),
    "code that the program moved": (
        {"stacks": {f"[unknown] {MAIN}": 300, f"f@app {MAIN}": 100}, "notes": {"code_unmapped": {"count": 300}}},
        ["75 % of the samples are at addresses where the recording has no code",
         "  perf has no record of code that a program moves (mremap): perf record -p PID, begun after that, reads where"
         " it is; nor of mappings from before it began with --synth or --overwrite"],
    ),
    "code of which nothing is known, where no stack begins": (
        {"stacks": {"[unknown]": 300, f"f@app {MAIN}": 100}, "notes": {"code_unmapped": {"count": 300}}},
        ["75 % of the samples are at addresses where the recording has no code",
         "  perf has no record of code that a program moves (mremap): perf record -p PID, begun after that, reads where"
         " it is; nor of mappings from before it began with --synth or --overwrite"],
    ),
    "code that the program moved, in few samples": (
        {"stacks": {f"[unknown] {MAIN}": 3, f"f@app {MAIN}": 97}, "notes": {"code_unmapped": {"count": 3}}},
        ["good recording: 100 samples of cpu-clock, 2ms; 1 loss: --verbose"],
    ),
    "a program that was built again while it ran": (
        {"stacks": {f"f@app {MAIN}": 300, f"g@libc.so.6 {MAIN}": 100}, "command": "perf record -g ./app",
         "notes": {"file_is_another": {"detail": "/home/me/app"}}},
        ["names may be wrong for 75 % of the samples: they are of other files of these paths",
         "  app (75 %): give what the program had, --sysroot DIR or --symbols FILE; or record what tells files apart:"
         " perf record -g --buildid-mmap ./app"],
    ),
    "a library of a container that is another one here, in few samples": (
        {"stacks": {f"f@app {MAIN}": 397, f"g@libc.so.6 {MAIN}": 3}, "command": "perf record -g ./app",
         "notes": {"file_is_another": {"detail": "/usr/lib/libc.so.6"}}},
        ["functions may have the names of another file: what is at a path here is not what the program had there",
         "  give what it had: --sysroot DIR, or --symbols FILE; or record with --buildid-mmap, which tells files"
         " apart"],
    ),
    "switches that a filter left out": (
        {"stacks": {f"f@app {MAIN}": 400}, "command": "perf record -g -e sched:sched_switch --filter 'a > 0' ./app",
         "notes": {"switches_filtered": {"detail": "--filter 'a > 0'"}}},
        ["a filter left context switches out: when threads ran is unknown (--filter 'a > 0')",
         "  --switch-events has all switches, without their stacks: perf record -g -e sched:sched_switch"
         " '--filter=a > 0' --switch-events ./app"],
    ),
    "a recording of waits is not advised again": (
        {"stacks": {f"f@app {MAIN}": 40}, "kind": "clock",
         "command": "perf record -g -k CLOCK_MONOTONIC --switch-events -e sched:sched_switch,cpu-clock ./app"},
        ["only 40 samples of cpu-clock: shares may be off by 16 percentage points",
         "  sample more often, or let the program work for longer: perf record -g -k CLOCK_MONOTONIC --switch-events"
         " -e sched:sched_switch,cpu-clock -F 20000 ./app"],
    ),
    "frames end after one": (
        {"stacks": {f"f@app {MAIN}": 30, "f@app": 50, "f@app g@app": 20}},
        ["70 % of the stacks are cut: record with --call-graph dwarf,16384",
         f"  code without frame pointers ends them; perf can copy the stacks instead: {DWARF}"],
    ),
    "a sixth of the stacks is no finding": (
        {"stacks": {f"f@app {MAIN}": 85, "f@app": 15}},
        ["good recording: 100 samples of cpu-clock, 2ms"],
    ),
    "kernel threads, loaders, Go and threads of libc have no more frames": (
        {"stacks": {"schedule@[kernel.kallsyms]#Kernel": 50, "do_lookup_x@ld-linux-x86-64.so.2": 20,
                    "main.work@app runtime.goexit.abi0@app": 20, "f@app start_thread@libc.so.6": 20,
                    "clock_gettime@[vdso]": 5}},
        ["good recording: 115 samples of cpu-clock, 2ms"],
    ),
    "garbage for a caller": (
        {"stacks": {"f@app g@app h@app [unknown]": 50, f"f@app {MAIN}": 50}},
        ["50 % of the stacks are cut: record with --call-graph dwarf,16384",
         f"  code without frame pointers ends them; perf can copy the stacks instead: {DWARF}"],
    ),
    "too deep for the kernel": (
        {"stacks": {" ".join(["f@app"] * 127): 50, f"f@app {MAIN}": 50}},
        ["50 % of the stacks are cut: they are too deep",
         "  the kernel ends stacks at 127 frames: sysctl kernel.perf_event_max_stack=1023"],
    ),
    "too deep for what the kernel was told": (
        {"stacks": {" ".join(["f@app"] * 1023): 50, f"f@app {MAIN}": 50}},
        ["50 % of the stacks are cut: they are too deep",
         "  the kernel ends stacks at 1023 frames: sysctl kernel.perf_event_max_stack=4095"],
    ),
    "too deep for all that it can be told": (
        {"stacks": {" ".join(["f@app"] * 4095): 50, f"f@app {MAIN}": 50}},
        ["50 % of the stacks are cut: they are too deep"],
    ),
    "deep, and whole": (
        {"stacks": {" ".join(["f@app"] * 144 + ["fiber@app"]): 50, f"f@app {MAIN}": 50}},
        ["good recording: 100 samples of cpu-clock, 2ms"],
    ),
    "copied stacks without a mark are whole, wherever they end": (
        {"stacks": {"f@app fiber@app": 50, " ".join(["f@app"] * 127): 50, "f@app g@app h@app [unknown]": 9},
         "call_graph": "dwarf", "command": "perf record --call-graph dwarf,16384 ./app"},
        ["good recording: 109 samples of cpu-clock, 2ms"],
    ),
    "cut before main, or before the beginning of a thread": (
        {"stacks": {f"f@app main@app x@libc.so {OF_MUSL}": 50, f"g@app start_thread@x.so {OF_MUSL}": 20,
                    f"h@app make_fcontext@app {OF_MUSL}": 20, f"f@app makecontext@libc.so {OF_MUSL}": 9},
         "call_graph": "dwarf"},
        ["good recording: 99 samples of cpu-clock, 2ms"],
    ),
    "garbage before main": (
        {"stacks": {"f@app g@app main@app [unknown]": 50, "f@app make_fcontext@app [unknown]": 50}},
        ["good recording: 100 samples of cpu-clock, 2ms"],
    ),
    "a function of a language that is called main is none of the program's": (
        {"stacks": {f"f@app main@#Python g@app {OF_MUSL}": 50, f"h@app __restore_rt@x.so {OF_MUSL}": 50},
         "call_graph": "dwarf", "notes": {"unwinding_no_information": {
             "count": 100, "where": "x.data libc.so", "detail": "none", "advice": "compile it"}}},
        ["100 % of the stacks are cut in libc.so", "  compile it"],
    ),
    "no memory behind large local variables": (
        {"stacks": {"f@app (truncated~stack)": 60, f"f@app {MAIN}": 40}, "call_graph": "dwarf",
         "command": "perf record --call-graph dwarf,4096 ./app",
         "notes": {"unwinding_truncated": {"count": 20}, "unwinding_not_copied": {"count": 40}}},
        ["60 % of the stacks are cut: large local variables are in the way",
         "  what no function has written to, and what lies behind it, is not copied; stacks of code with frame "
         "pointers need no copy: compile with -fno-omit-frame-pointer: perf record -g ./app"],
    ),
    "callers on a goroutine's stack": (
        {"stacks": {f"c@app runtime.asmcgocall.abi0@app {OF_CGO}": 60, "main.f@app runtime.goexit.abi0@app": 40},
         "call_graph": "dwarf", "command": "perf record --call-graph dwarf,4096 ./app"},
        ["60 % of the stacks are cut: runtime.asmcgocall leaves their callers' stack, and only the other one is copied",
         "  frame pointers, which Go keeps, lead to the other stack: perf record -g ./app"],
    ),
    "callers on another of the stacks that -fsplit-stack makes": (
        {"stacks": {"f@app __morestack@app (callers~on~another~stack:~__morestack)": 60, f"f@app {MAIN}": 40},
         "call_graph": "dwarf", "command": "perf record --call-graph dwarf,4096 ./app"},
        ["60 % of the stacks are cut: __morestack leaves their callers' stack, and only the other one is copied",
         "  frame pointers lead to the other stack; stacks of code with frame pointers need no copy: compile with "
         "-fno-omit-frame-pointer: perf record -g ./app"],
    ),
    "a processor whose stacks are not unwound": (
        {"stacks": {"f@app": 60, f"f@app {MAIN}": 40}, "call_graph": "dwarf",
         "notes": {"unwinding_not_done": {"count": 60}}},
        ["60 % of the stacks are cut: copies of them are not unwound for this processor",
         "  record with frame pointers: perf record --call-graph fp (or -g)"],
    ),
    "too little copied": (
        {"stacks": {"f@app (truncated~stack)": 60, f"f@app {MAIN}": 40}, "call_graph": "dwarf",
         "command": "perf record --call-graph dwarf,4096 ./app",
         "notes": {"unwinding_truncated": {"count": 60}}},
        ["60 % of the stacks are cut: record with --call-graph dwarf,8192",
         "  more than 4096 bytes of each are needed: perf record --call-graph dwarf,8192 ./app"],
    ),
    "all copied that can be": (
        {"stacks": {"f@app (truncated~stack)": 60}, "call_graph": "dwarf",
         "command": "perf record --call-graph dwarf,65528 ./app"},
        ["100 % of the stacks are cut: they are deeper than perf copies",
         "  no more than 65528 bytes can be copied; stacks of code with frame pointers need no copy: compile with "
         "-fno-omit-frame-pointer: perf record -g ./app"],
    ),
    "memory that no file holds": (
        {"stacks": {"f@app (no~unwind~information:~memory~without~a~file)": 60}, "call_graph": "dwarf",
         "notes": {"unwinding_no_information": {
             "count": 60, "where": "x.data memory without a file", "detail": "memory", "advice": "let the runtime"}}},
        ["100 % of the stacks are cut in memory without a file", "  let the runtime"],
    ),
    "memory that a library has compiled code into": (
        {"stacks": {"f@app#Python (no~unwind~information:~memory~without~a~file)": 60, f"g@libllvmlite.so {MAIN}": 1},
         "call_graph": "dwarf", "command": "perf record --call-graph dwarf python3 app.py"},
        ["98 % of the stacks are cut: what llvmlite compiled has no unwind information"],
    ),
    "what the processor records is full": (
        {"stacks": {"f@app (truncated~stack)": 60}, "call_graph": "lbr", "notes": {"lbr_full": {"count": 60}},
         "command": "perf record --call-graph lbr ./app"},
        ["100 % of the stacks are cut: record with --call-graph dwarf,16384",
         "  the processor records no deeper stacks: perf record --call-graph dwarf,16384 ./app"],
    ),
    "the vdso of 32-bit programs, which perf keeps only without an option": (
        {"stacks": {f"[vdso]+0x12@[vdso] {MAIN}": 100}, "build_ids": False,
         "command": "perf record -g --buildid-mmap ./app",
         "notes": {"names_missing": {"where": "[vdso] 1", "detail": "[vdso] (3 of 3 addresses): perf keeps a copy"}}},
        ["names are missing for 100 % of the samples", "  [vdso] (100 %): perf keeps a copy: perf record -g ./app"],
    ),
    "no stacks": (
        {"stacks": {"f@app": 9}, "call_graph": "none", "command": "perf record -o x.data ./app"},
        ["the recording has no call stacks: record with --call-graph dwarf,16384",
         "  stacks tell from where functions are called: "
         "perf record -o x.data --call-graph dwarf,16384 ./app"],
    ),
    "a tracepoint of the kernel without stacks": (
        {"stacks": {"__schedule@[kernel.kallsyms]#Kernel": 9}, "call_graph": "none",
         "command": "perf sched record -- ./app"},
        ["the recording has no call stacks: record with --call-graph dwarf,16384",
         "  stacks tell from where functions are called: perf sched record --call-graph dwarf,16384 ./app"],
    ),
    "a runtime without names of its functions": (
        {"stacks": {f"v8::Run@node {MAIN}": 95, f"f@libc.so.6 {MAIN}": 5}, "command": "perf record -g node a.js"},
        ["JavaScript functions have no names: 95 % of the samples are in Node.js",
         "  let Node.js write the names of its functions: perf record -g -k CLOCK_MONOTONIC node --perf-prof "
         "--interpreted-frames-native-stack a.js"],
    ),
    "a runtime with them": (
        {"stacks": {f"v8::Run@node {MAIN}": 95, f"work@#JavaScript {MAIN}": 5}, "command": "perf record -g node a.js"},
        ["good recording: 100 samples of cpu-clock, 2ms"],
    ),
    "an interpreter without frame pointers": (
        {"stacks": {"_PyEval@libpython3.11.so.1.0": 95, f"f@app {MAIN}": 5}, "command": "perf record -g python3 a.py"},
        ["95 % of the stacks are cut: record with --call-graph dwarf,65528",
         "  let CPython write the names of its functions (python3.13 or newer): perf record --call-graph dwarf,65528 "
         "-k CLOCK_MONOTONIC python3.13 -X perf_jit a.py"],
    ),
    "code of a compiler that keeps no frame pointers": (
        {"stacks": {"work@#PHP": 95, f"f@app {MAIN}": 5},
         "command": "perf record -g php -d opcache.jit_debug=48 a.php"},
        ["95 % of the stacks are cut: what PHP compiled keeps no frame pointers"],
    ),
    "code of a compiler that does if it is asked to": (
        {"stacks": {"work@#Erlang": 95, f"f@app {MAIN}": 5},
         "command": "perf record -g erl +JPperf dump -noshell"},
        ["95 % of the stacks are cut: what Erlang compiled keeps no frame pointers",
         "  let Erlang keep frame pointers: perf record -g -k CLOCK_MONOTONIC erl +JPperf true -noshell"],
    ),
    "an emulator without frame pointers, whose code has them": (
        {"stacks": {"erts_cmp@beam.smp": 60, f"app:f/1@#Erlang {MAIN}": 40},
         "command": "perf record -g erl +JPperf true -noshell"},
        ["60 % of the stacks are cut: Erlang, or what it calls, keeps no frame pointers"],
    ),
    "the same, and its code has a map without being asked for frame pointers": (
        {"stacks": {"Unsafe_Park@libjvm.so": 60, f"A.run@#Java {MAIN}": 40}, "command": "perf record -g java A"},
        ["60 % of the stacks are cut: the JVM was not asked for frame pointers",
         "  let the JVM keep frame pointers: perf record -g -k CLOCK_MONOTONIC java -XX:+PreserveFramePointer "
         "-XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit A"],
    ),
    "the same, and its code can be unwound": (
        {"stacks": {"f@addon.node": 60, f"v8::Run@node work@#JavaScript {MAIN}": 40},
         "command": "perf record -g node --perf-prof a.js"},
        ["60 % of the stacks are cut: Node.js, or what it calls, keeps no frame pointers",
         "  perf can copy the stacks, if Node.js writes how those of its functions are unwound: perf record "
         "--call-graph dwarf,16384 -k CLOCK_MONOTONIC node --perf-prof-unwinding-info --perf-prof a.js"],
    ),
    "copied stacks end in code that keeps frame pointers": (
        {"stacks": {f"erts_cmp@beam.smp app:f/1@#Erlang {OF_MEMORY}": 60, f"f@app {MAIN}": 40}, "call_graph": "dwarf",
         "command": "perf record --call-graph dwarf erl +JPperf true -noshell"},
        ["60 % of the stacks are cut: what Erlang compiled has no unwind information",
         "  Erlang keeps frame pointers in it: perf record -g erl +JPperf true -noshell"],
    ),
    "copied stacks end in code that nothing unwinds": (
        {"stacks": {f"zend_sort@php8.2 collatz@#PHP {OF_MEMORY}": 60, f"f@app {MAIN}": 40}, "call_graph": "dwarf",
         "command": "perf record --call-graph dwarf php -d opcache.jit_debug=32 a.php"},
        ["60 % of the stacks are cut: what PHP compiled has no unwind information"],
    ),
    "few samples tell of no share": (
        {"stacks": {"libz.so+0x12@libz.so": 9}},
        ["good recording: 9 samples of cpu-clock, 2ms"],
    ),
    "few samples of a clock": (
        {"stacks": {f"f@app {MAIN}": 25}, "kind": "clock", "command": "perf record -F 40000 -g ./app"},
        ["only 25 samples of cpu-clock: shares may be off by 20 percentage points",
         "  if it waits more than it runs, record where it waits: perf record -g -k CLOCK_MONOTONIC --switch-events "
         "-e sched:sched_switch,cpu-clock ./app"],
    ),
    "a recorder that samples also where nothing is done": (
        {"stacks": {f"f@app {MAIN}": 150, f"(idle) {MAIN}": 850}, "kind": "clock"},
        ["good recording: 1,000 samples of cpu-clock, 850 of them idle, 2ms"],
    ),
    "processors without work, and one that was interrupted": (
        {"stacks": {f"f@app {MAIN}": 24, "halt@[kernel.kallsyms]#Kernel do_idle@[kernel.kallsyms]#Kernel": 900,
                    "asm_sysvec_call_function@[kernel.kallsyms]#Kernel do_idle@[kernel.kallsyms]#Kernel": 1},
         "kind": "clock", "command": "perf record -a -F 99 -g ./app", "end_ts": 40_000},
        ["only 25 samples of cpu-clock besides 900 idle ones: shares may be off by 20 percentage points",
         "  sample more often, or let the program work for longer: perf record -a -F 20000 -g ./app"],
    ),
    "few samples that a user recorded who may not see the kernel": (
        {"stacks": {f"f@app {MAIN}": 25}, "kind": "clock", "event": "cpu-clock:uhpppH",
         "command": "perf record -F 40000 -g ./app"},
        ["only 25 samples of cpu-clock:uhpppH: shares may be off by 20 percentage points",
         "  if it waits more than it runs, record where it waits, as root: perf record -g -k CLOCK_MONOTONIC "
         "--switch-events -e sched:sched_switch,cpu-clock ./app"],
    ),
    "few samples of a program that ended soon": (
        {"stacks": {f"f@app {MAIN}": 25}, "kind": "clock", "command": "perf record -F 99 -g ./app", "end_ts": 40_000},
        ["only 25 samples of cpu-clock: shares may be off by 20 percentage points",
         "  sample more often, or let the program work for longer: perf record -F 20000 -g ./app"],
    ),
    "few samples, of which some are lost": (
        {"stacks": {f"f@app {MAIN}": 25}, "kind": "clock", "notes": {"lost_samples": {"count": 5}}, "end_ts": 40_000,
         "command": "perf record -F max -g ./app"},
        ["17 % of the records were lost: record with -m 4M",
         "  a larger buffer loses less: perf record -F max -g -m 4M ./app"],
    ),
    "functions of Python's that were compiled to C": (
        {"stacks": {f"__pyx_pf_4work_add@work.so _PyEval@libpython3.11.so {MAIN}": 80, f"_PyEval@python3 {MAIN}": 20},
         "command": "perf record -g python3 a.py"},
        ["good recording: 100 samples of cpu-clock, 2ms"],
    ),
    "such functions beside many of Python's": (
        {"stacks": {f"CPyDef_Row___add@work.so _PyEval@libpython3.11.so {MAIN}": 40,
                    f"_PyEval@libpython3.11.so {MAIN}": 60},
         "command": "perf record -g python3 a.py"},
        ["Python functions have no names: 60 % of the samples are in CPython",
         "  let CPython write the names of its functions (python3.13 or newer): perf record --call-graph dwarf,65528 "
         "-k CLOCK_MONOTONIC python3.13 -X perf_jit a.py"],
    ),
    "such functions of an installed package, whose callers count": (
        {"stacks": {f"__pyx_pw_6pandas_1add@work.so _PyEval@libpython3.11.so {MAIN}": 100},
         "command": "perf record -g python3 a.py",
         "notes": {"symbols_used": {"where": "/srv/lib/python3.11/site-packages/pandas/work.so"}}},
        ["Python functions have no names: 100 % of the samples are in CPython",
         "  let CPython write the names of its functions (python3.13 or newer): perf record --call-graph dwarf,65528 "
         "-k CLOCK_MONOTONIC python3.13 -X perf_jit a.py"],
    ),
    "such functions, of which cut stacks show few": (
        {"stacks": {"_PyEval@libpython3.11.so": 90, "__pyx_pf_4work_add@work.so": 10},
         "command": "perf record -g python3 a.py"},
        ["100 % of the stacks are cut: record with --call-graph dwarf,65528",
         "  code without frame pointers ends them; perf can copy the stacks instead: "
         "perf record --call-graph dwarf,65528 python3 a.py"],
    ),
    "code of a runtime in a program that has much else to do": (
        {"stacks": {f"[code~in~//anon] {MAIN}": 10, f"f@app {MAIN}": 90}, "notes": {"code_unrecorded": {"count": 10}},
         "command": "perf record -g chromium a.html"},
        ["names are missing for 10 % of the samples",
         "  [code in //anon] (10 %): let Chromium write the names of its functions: perf record -g -k CLOCK_MONOTONIC "
         "chromium --no-sandbox '--js-flags=--perf-prof --interpreted-frames-native-stack' a.html"],
    ),
    "a runtime that is kept from compiling": (
        {"stacks": {f"execute_ex@php8.2 {MAIN}": 90, f"xdebug_call@xdebug.so {MAIN}": 10},
         "command": "perf record --call-graph dwarf,16384 -k CLOCK_MONOTONIC php -d opcache.enable_cli=1 "
         "-d opcache.jit=tracing -d opcache.jit_buffer_size=64M -d opcache.jit_debug=32 a.php"},
        ["PHP functions have no names: 90 % of the samples are in PHP",
         "  let PHP write the names of its functions, without Xdebug, which keeps it from compiling them: "
         "perf record --call-graph dwarf,16384 -k CLOCK_MONOTONIC env XDEBUG_MODE=off php -d opcache.enable_cli=1 "
         "-d opcache.jit=tracing -d opcache.jit_buffer_size=64M -d opcache.jit_debug=32 a.php"],
    ),
    "code of a runtime that tells perf nothing": (
        {"stacks": {"[code~in~//anon]": 90, "f@poly": 10}, "command": "perf record -g poly a.sml",
         "notes": {"code_unrecorded": {"count": 90}}},
        ["100 % of the stacks are cut: what Poly/ML compiled has neither frame pointers nor unwind information",
         "  [code in //anon] (90 %), by Poly/ML: it tells perf nothing of its functions"],
    ),
    "code in memory of nobody that is known": (
        {"stacks": {"memcpy@libc.so.6 [code~in~//anon] [unknown]": 90, f"f@app {MAIN}": 10}},
        ["90 % of the stacks are cut: code that no file holds keeps no frame pointers"],
    ),
    "a runtime whose code keeps frame pointers, and whose own has none": (
        {"stacks": {"A:f~(int)@#Managed mono_jit_exec@mono-sgen [unknown]": 90, f"f@app {MAIN}": 10},
         "command": "perf record -g env MONO_DEBUG=disable_omit_fp mono --jitmap a.exe"},
        ["90 % of the stacks are cut: record with --call-graph dwarf,16384",
         "  code without frame pointers ends them; perf can copy the stacks instead: perf record "
         "--call-graph dwarf,16384 env MONO_DEBUG=disable_omit_fp mono --jitmap a.exe"],
    ),
    "few addresses of a library, which has a package of debug files": (
        {"stacks": {f"libz.so~function~at~0x12@libz.so {MAIN}": 50},
         "notes": {"names_partly_missing": {"where": "libz.so 0", "detail": "libz.so (1 of 1 addresses)"},
                   "symbols_used": {"where": "/home/me/conda/lib/libz.so"}}},
        ["names are missing for 100 % of the samples",
         f"  libz.so (100 %): {OF_NOBODY.removesuffix(': --symbols FILE')}: traceferry x.data --symbols FILE"],
    ),
    "names of a program that was built again": (
        {"stacks": {f"app+0x12@app {MAIN}": 38, f"f@app {MAIN}": 62},
         "notes": {"names_missing": {"where": "app 0", "detail": f"app (3 of 3 addresses): {IS_OF_OTHER_BUILD}"}}},
        ["names are missing for 38 % of the samples",
         f"  app (38 %): {IS_OF_OTHER_BUILD}: traceferry x.data --symbols FILE-OR-DIR"],
    ),
    "names of a library": (
        {"stacks": {f"libz.so+0x12@libz.so {MAIN}": 38, f"f@app {MAIN}": 62},
         "notes": {"names_missing": NOT_FOUND | {"advice": GIVE}}},
        ["names are missing for 38 % of the samples",
         "  libz.so (38 %): the file was not found: traceferry x.data --symbols FILE-OR-DIR"],
    ),
    "no build id": (
        {"stacks": {f"libz.so+0x12@libz.so {MAIN}": 38, f"f@app {MAIN}": 62}, "build_ids": False,
         "notes": {"names_missing": NOT_FOUND | {"advice": GIVE}}},
        ["names are missing for 38 % of the samples",
         "  libz.so (38 %): the file was not found: perf record -F 999 -g -o x.data --buildid-mmap ./app"],
    ),
    "no build id, and none that could be recorded": (
        {"stacks": {f"libz.so+0x12@libz.so {MAIN}": 38, f"f@app {MAIN}": 62}, "build_ids": False,
         "notes": {"names_missing": NOT_FOUND | {"advice": IS_WITHOUT_ID}}},
        ["names are missing for 38 % of the samples",
         "  libz.so (38 %): the file was not found: traceferry x.data --symbols FILE-OR-DIR"],
    ),
    "no build id, and nothing tells how and where it was recorded": (
        {"stacks": {f"libz.so+0x12@libz.so {MAIN}": 38, f"f@app {MAIN}": 62}, "build_ids": False, "command": "",
         "notes": {"names_missing": NOT_FOUND | {"advice": IS_AT_ITS_PATH}}},
        ["names are missing for 38 % of the samples",
         "  libz.so (38 %): the file was not found: traceferry x.data --sysroot /"],
    ),
    "a temporary file that is gone": (
        {"stacks": {f"a.fas+0x12@a.fas {MAIN}": 38, f"f@app {MAIN}": 62}, "build_ids": False,
         "notes": {"names_missing": {"where": "a.fas 1", "detail": "a.fas (3 of 3 addresses): the file was not found",
                                     "advice": IS_TEMPORARY}}},
        ["names are missing for 38 % of the samples", f"  a.fas (38 %): {IS_TEMPORARY}"],
    ),
    "another machine": (
        {"stacks": {f"libz.so+0x12@libz.so {MAIN}": 38, f"f@app {MAIN}": 62}, "hostname": "vm9",
         "notes": {"names_missing": NOT_FOUND | {"advice": GIVE}}},
        ["names are missing for 38 % of the samples: it was recorded on another machine (vm9)",
         "  where it was recorded, put it into a pack with the names, and read that here: traceferry pack x.data"],
    ),
    "the user's own program, stripped": (
        {"stacks": {f"app~function~at~0x12@app {MAIN}": 50},
         "notes": {"names_partly_missing": {"where": "app 0", "detail": "app (1 of 1 addresses)"}}},
        ["names are missing for 100 % of the samples",
         "  app (100 %): it is stripped: build it without -s: "
         "traceferry x.data --symbols FILE"],
    ),
    "the user's own program, stripped, of no package": (
        {"stacks": {f"app~function~at~0x12@app {MAIN}": 50},
         "notes": {"names_partly_missing": {"where": "app 0", "detail": "app (1)", "advice": OF_NOBODY}}},
        ["names are missing for 100 % of the samples",
         f"  app (100 %): {OF_NOBODY.removesuffix(': --symbols FILE')}: traceferry x.data --symbols FILE"],
    ),
    "code without a symbol in a program that has symbols": (
        {"stacks": {f"app~function~at~0x12@app {MAIN}": 50},
         "notes": {"names_partly_missing": {"where": "app 0", "detail": "app (1)", "advice": OF_NO_SYMBOL}}},
        ["names are missing for 100 % of the samples", f"  app (100 %): {OF_NO_SYMBOL}"],
    ),
    "a library of the system, stripped": (
        {"stacks": {f"libz.so+0x12@libz.so#System~library {MAIN}": 50},
         "notes": {"names_partly_missing": {"where": "libz.so 0", "detail": "libz.so (1)", "advice": "--debuginfod"}}},
        ["names are missing for 100 % of the samples",
         "  libz.so (100 %): --debuginfod: traceferry x.data --debuginfod https://debuginfod.elfutils.org"],
    ),
    "a library of a wheel, stripped": (
        {"stacks": {f"liby.so+0x12@liby.so#System~library {MAIN}": 50},
         "notes": {"names_partly_missing": {"where": "liby.so 0", "detail": "liby.so (1)", "advice": "pip"}}},
        ["names are missing for 100 % of the samples", "  liby.so (100 %): pip: traceferry x.data --symbols FILE"],
    ),
    "code that a process in a container lists": (
        {"stacks": {f"[code~in~//anon] {MAIN}": 50},
         "notes": {"map_of_other_number": {"where": "a b/perf-1.map"}, "code_unrecorded": {}}},
        ["names are missing for 100 % of the samples",
         "  [code in //anon] (100 %): a process in a container lists its code by its number there: "
         "traceferry x.data --symbols 'a b/perf-1.map'"],
    ),
    "code that nothing lists": (
        {"stacks": {f"[code~in~//anon] {MAIN}": 50}, "notes": {"code_unrecorded": {"advice": "let it write names"}}},
        ["names are missing for 100 % of the samples", "  [code in //anon] (100 %): let it write names"],
    ),
    "code that another user's program lists": (
        {"stacks": {f"[code~in~//anon] {MAIN}": 50},
         "notes": {"file_refused": {"where": "/tmp/a b/jit-1.dump", "detail": OWNED}, "code_unrecorded": {}}},
        ["names are missing for 100 % of the samples",
         "  [code in //anon] (100 %): another user's program wrote its names, which are read where you name the file: "
         "traceferry x.data '/tmp/a b/jit-1.dump'"],
    ),
    "code of another user's program, in a map": (
        {"stacks": {f"[code~in~//anon] {MAIN}": 50},
         "notes": {"file_refused": {"where": "/tmp/perf-1.map", "detail": OWNED}, "code_unrecorded": {}}},
        ["names are missing for 100 % of the samples",
         "  [code in //anon] (100 %): another user's program wrote its names, which are read where you name the file: "
         "traceferry x.data --symbols /tmp/perf-1.map"],
    ),
    "a map that is too large": (
        {"stacks": {f"[code~in~//anon] {MAIN}": 50},
         "notes": {"file_refused": {"where": "/tmp/perf-1.map", "detail": "too large"},
                   "code_unrecorded": {"advice": "let it write names"}}},
        ["names are missing for 100 % of the samples", "  [code in //anon] (100 %): let it write names",
         "  files that the recording names were not read: give them as inputs, or with --symbols, if you trust them"],
    ),
    "code that llvmlite compiled, for Numba or others": (
        {"stacks": {f"[code~in~//anon] {MAIN}": 50, f"f@libllvmlite.so {MAIN}": 10},
         "notes": {"code_unrecorded": {"advice": "let it write names"}}},
        ["names are missing for 83 % of the samples",
         "  [code in //anon] (83 %), by llvmlite: it tells perf nothing of its functions; of Numba's, "
         "docs/record/numba.md writes the names"],
    ),
    "code that oneDNN compiled": (
        {"stacks": {f"[code~in~//anon] {MAIN}": 50, f"f@libtorch_cpu.so {MAIN}": 10},
         "notes": {"code_unrecorded": {"advice": "let it write names"}}},
        ["names are missing for 83 % of the samples",
         "  [code in //anon] (83 %), by oneDNN: let oneDNN write its names with ONEDNN_JIT_PROFILE=2: "
         "perf record -F 999 -g -o x.data env ONEDNN_JIT_PROFILE=2 ./app"],
    ),
    "code that oneDNN compiled in a process that runs already": (
        {"stacks": {f"[code~in~//anon] {MAIN}": 50, f"f@libtorch_cpu.so {MAIN}": 10},
         "command": "perf record -g -p 7", "notes": {"code_unrecorded": {"advice": "let it write names"}}},
        ["names are missing for 83 % of the samples",
         "  [code in //anon] (83 %), by oneDNN: let oneDNN write its names with ONEDNN_JIT_PROFILE=2"],
    ),
    "code of another runtime, beside oneDNN": (
        {"stacks": {f"[code~in~//anon] f@beam.smp {MAIN}": 50, f"f@libtorch_cpu.so {MAIN}": 1},
         "command": "perf record -g -a", "notes": {"code_unrecorded": {"advice": "let it write names"}}},
        ["names are missing for 98 % of the samples",
         "  Erlang writes the names of its functions if it is started as erl +JPperf true: "
         "perf record -g -a -k CLOCK_MONOTONIC"],
    ),
    "a runtime that ran already": (
        {"stacks": {f"[code~in~//anon] v8::Run@node {MAIN}": 95, f"f@libc.so.6 {MAIN}": 5},
         "command": "perf record -g -p 7", "notes": {"code_unrecorded": {"count": 95}}},
        ["names are missing for 95 % of the samples",
         "  Node.js writes the names of its functions if it is started as node --perf-prof "
         "--interpreted-frames-native-stack: perf record -g -p 7 -k CLOCK_MONOTONIC"],
    ),
    "a runtime that ran already, which lists its functions when it is told to": (
        {"stacks": {"[code~in~//anon]": 93, "g@libjvm.so": 3, f"f@libjvm.so {MAIN}": 4},
         "command": "perf record -g -p 7", "notes": {"code_unrecorded": {"count": 93}}},
        ["96 % of the stacks are cut: the JVM was not asked for frame pointers and names",
         "  while the JVM runs, jcmd 7 Compiler.perfmap (JDK 17 or newer) lists its functions, also for this recording",
         "  the JVM keeps frame pointers if it is started as java -XX:+PreserveFramePointer "
         "-XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit: perf record -g -p 7 -k CLOCK_MONOTONIC"],
    ),
    "the same, and its functions are listed": (
        {"stacks": {"A.f()@#Java": 95, f"f@libjvm.so {MAIN}": 5}, "command": "perf record -g -p 7"},
        ["95 % of the stacks are cut: what the JVM compiled keeps no frame pointers",
         "  the JVM keeps frame pointers if it is started as java -XX:+PreserveFramePointer "
         "-XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit: perf record -g -p 7 -k CLOCK_MONOTONIC"],
    ),
    "names of what is a small part of all, and most of what is not idle": (
        {"stacks": {"do_idle@[kernel.kallsyms]#Kernel": 900, f"libz.so+0x12@libz.so {MAIN}": 60, f"f@app {MAIN}": 40},
         "notes": {"names_missing": NOT_FOUND | {"advice": GIVE}}},
        ["names are missing for 60 % of the samples that are not idle",
         "  libz.so (60 %): the file was not found: traceferry x.data --symbols FILE-OR-DIR"],
    ),
    "two runtimes among all that runs": (
        {"stacks": {f"_PyEval@libpython3.11.so {MAIN}": 60, f"[code~in~//anon] v8::Run@node {MAIN}": 40},
         "command": "perf record -g -a sleep 9", "notes": {"code_unrecorded": {"count": 40}}},
        ["names are missing for 40 % of the samples",
         "  [code in //anon] (40 %): Node.js writes the names of its functions if it is started as node --perf-prof "
         "--interpreted-frames-native-stack: perf record -g -a -k CLOCK_MONOTONIC sleep 9",
         "  CPython writes the names of its functions if it is started as python3.13 -X perf_jit: "
         "perf record --call-graph dwarf,65528 -a -k CLOCK_MONOTONIC sleep 9"],
    ),
    "each runtime in its own program": (
        {"stacks": {f"java: [code~in~//anon] f@libjvm.so {MAIN}": 40,
                    f"node: [code~in~//anon] v8::Run@node {MAIN}": 30, "luajit: [code~in~//anon]": 18,
                    f"luajit: lj@luajit {MAIN}": 2, f"sh: f@dash {MAIN}": 10},
         "command": "perf record -g -k CLOCK_MONOTONIC ./run.sh", "notes": {"code_unrecorded": {"count": 80}}},
        ["names are missing for 88 % of the samples",
         "  [code in //anon] of java (40 %): let the JVM write the names of its functions, whatever starts it: perf "
         "record "
         "-g -k CLOCK_MONOTONIC env 'JAVA_TOOL_OPTIONS=-XX:+PreserveFramePointer -XX:+UnlockDiagnosticVMOptions "
         "-XX:+DumpPerfMapAtExit' ./run.sh",
         "  [code in //anon] of node (30 %): let Node.js write the names of its functions, whatever starts it: perf "
         "record "
         "-g -k CLOCK_MONOTONIC env 'NODE_OPTIONS=--perf-prof --interpreted-frames-native-stack' ./run.sh",
         "  [code in //anon] of luajit (18 %), by LuaJIT: it tells perf the names of its traces if it was built with "
         "make XCFLAGS=-DLUAJIT_USE_PERFTOOLS"],
    ),
    "one program's stacks are cut, another runs a runtime": (
        {"stacks": {"java: A.f()@#Java _start@java": 60, "app: f@app": 40},
         "command": "perf record -g sh -c 'java -XX:+PreserveFramePointer A & ./app'"},
        ["40 % of the stacks are cut, those of app: record with --call-graph dwarf,16384",
         "  app: code without frame pointers ends them; perf can copy the stacks instead, in a recording of its own: "
         "those "
         "of java would end in what was compiled as they ran: perf record --call-graph dwarf,16384 sh -c "
         "'java -XX:+PreserveFramePointer A & ./app'"],
    ),
    "stacks of two programs are cut": (
        {"stacks": {"a: f@a": 60, "b: [code~in~//anon]": 30, "b: g@libllvmlite.so": 1, f"c: f@c {MAIN}": 40}},
        ["69 % of the stacks are cut, most of a: record with --call-graph dwarf,16384",
         f"  a: code without frame pointers ends them; perf can copy the stacks instead: {DWARF}"],
    ),
    "stacks of many small programs are cut": (
        {"stacks": {**{f"p{n}: f@p{n}": 1 for n in range(60)}, f"app: f@app {MAIN}": 60}},
        ["50 % of the stacks are cut: record with --call-graph dwarf,16384",
         f"  code without frame pointers ends them; perf can copy the stacks instead: {DWARF}"],
    ),
    "a runtime that a script starts": (
        {"stacks": {f"[code~in~//anon] f@beam.smp {MAIN}": 90, f"f@sh {MAIN}": 10},
         "command": "perf record -g elixir a.exs", "notes": {"code_unrecorded": {"count": 90}}},
        ["names are missing for 90 % of the samples",
         "  let Erlang write the names of its functions, whatever starts it: perf record -g -k CLOCK_MONOTONIC "
         "env 'ERL_FLAGS=+JPperf true' elixir a.exs"],
    ),
    "such that keeps no frame pointers": (
        {"stacks": {"A.f()@#Java": 95, f"f@libjvm.so {MAIN}": 5}, "command": "perf record -g env A=1 kotlin AKt"},
        ["95 % of the stacks are cut: what the JVM compiled keeps no frame pointers",
         "  let the JVM keep frame pointers, whatever starts it: perf record -g -k CLOCK_MONOTONIC env "
         "'JAVA_TOOL_OPTIONS=-XX:+PreserveFramePointer -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit' A=1 "
         "kotlin AKt"],
    ),
    "such whose variable has options already": (
        {"stacks": {f"[code~in~//anon] v8::Run@node {MAIN}": 90, f"f@app {MAIN}": 10},
         "command": "perf record -g env A=1 NODE_OPTIONS=--no-warnings npm test",
         "notes": {"code_unrecorded": {"count": 90}}},
        ["names are missing for 90 % of the samples",
         "  let Node.js write the names of its functions, whatever starts it: perf record -g -k CLOCK_MONOTONIC env "
         "'NODE_OPTIONS=--no-warnings --perf-prof --interpreted-frames-native-stack' A=1 npm test"],
    ),
    "a runtime that takes its options from its own command alone": (
        {"stacks": {f"execute_ex@php8.2 {MAIN}": 90, f"f@app {MAIN}": 10},
         "command": "perf record --call-graph dwarf,16384 -k CLOCK_MONOTONIC sh -c 'php a.php'"},
        ["PHP functions have no names: 90 % of the samples are in PHP",
         "  PHP writes the names of its functions if it is started as php -d opcache.enable_cli=1 -d "
         "opcache.jit=tracing "
         "-d opcache.jit_buffer_size=64M -d opcache.jit_debug=32"],
    ),
    **{
        f"a runtime that was told to delete them, {recorded}": (
            {"stacks": {f"[code~in~//anon] v8::Run@node {MAIN}": 95, f"f@libc.so.6 {MAIN}": 5},
             "command": f"perf record -g {recorded}", "notes": {"code_unrecorded": {"count": 95}}},
            ["names are missing for 95 % of the samples",
             "  [code in //anon] (95 %): Node.js deleted the file of its names, as --perf-prof-delete-file asks: "
             f"record without it: perf record -g {again}"],
        )
        for recorded, again in (
            ("node --perf-prof-delete-file --perf-prof a.js ''", "node --perf-prof a.js ''"),
            ("node --perf-prof --perf_prof_delete_file=true a.js", "node --perf-prof a.js"),
            ("env 'NODE_OPTIONS=--perf-prof --perf-prof-delete-file' npm test",
             "env NODE_OPTIONS=--perf-prof npm test"),
            ("env 'NODE_OPTIONS=--perf-prof-delete-file --perf-prof' npm test",
             "env NODE_OPTIONS=--perf-prof npm test"),
            ("sh -c 'node --perf-prof --perf-prof-delete-file a.js'", "sh -c 'node --perf-prof a.js'"),
        )
    },
    "a runtime that was asked for names in a container": (
        {"stacks": {f"[code~in~//anon] v8::Run@node {MAIN}": 95, f"f@libc.so.6 {MAIN}": 5},
         "command": "perf record -g unshare --pid sh -c 'exec node --perf-basic-prof a.js'",
         "notes": {"code_unrecorded": {"count": 95}}},
        ["names are missing for 95 % of the samples",
         "  [code in //anon] (95 %): Node.js was asked for names, and no file with them was found: in a container it "
         "is "
         "perf-PID.map in /tmp, or jit-PID.dump, by the number there, and of two programs with one number the last "
         "one's; "
         "copy it, and --symbols FILE takes it"],
    ),
    "a runtime whose dump is not here": (
        {"stacks": {f"[code~in~//anon] v8::Run@node {MAIN}": 95, f"f@libc.so.6 {MAIN}": 5},
         "command": "perf record -g chroot root sh -c 'exec node --perf-prof a.js'",
         "notes": {"code_unrecorded": {"count": 95}, "companion_missing": {"where": "/tmp/jit-9.dump"}}},
        ["names are missing for 95 % of the samples",
         "  [code in //anon] (95 %): Node.js wrote the names into /tmp/jit-9.dump, which was not found: it is below "
         "the "
         "root of the container or chroot; copy it beside the recording"],
    ),
    "such a dump of a process with its own number": (
        {"stacks": {f"[code~in~//anon] v8::Run@node {MAIN}": 95, f"f@libc.so.6 {MAIN}": 5}, "pids": {"node": 9},
         "command": "perf record -g node --perf-prof a.js",
         "notes": {"code_unrecorded": {"count": 95}, "companion_missing": {"where": "/gone/jit-9.dump"}}},
        ["names are missing for 95 % of the samples",
         "  [code in //anon] (95 %): Node.js wrote the names into /gone/jit-9.dump, which was not found: copy it "
         "beside the recording, or give it as another input"],
    ),
    "such a dump of a process to which perf was attached": (
        {"stacks": {f"[code~in~//anon] v8::Run@node {MAIN}": 95, f"f@libc.so.6 {MAIN}": 5}, "pids": {"node": 9},
         "command": "perf record -g -p 9",
         "notes": {"code_unrecorded": {"count": 95}, "companion_missing": {"where": "/gone/jit-9.dump"}}},
        ["names are missing for 95 % of the samples",
         "  [code in //anon] (95 %): Node.js wrote the names into /gone/jit-9.dump, which was not found: copy it "
         "beside the recording, or give it as another input"],
    ),
    "such a dump of one of two programs": (
        {"stacks": {f"node: [code~in~//anon] v8::Run@node {MAIN}": 50,
                    f"java: [code~in~//anon] JavaCalls::call@libjvm.so {MAIN}": 50},
         "pids": {"node": 9, "java": 10}, "command": "perf record -g -a sleep 1",
         "notes": {"code_unrecorded": {"count": 95}, "companion_missing": {"where": "/gone/jit-9.dump"}}},
        ["names are missing for 100 % of the samples",
         "  [code in //anon] of java (50 %): while the JVM runs, jcmd PID Compiler.perfmap (JDK 17 or newer) lists its "
         "functions, also for this recording",
         "  [code in //anon] of node (50 %): Node.js wrote the names into /gone/jit-9.dump, which was not found: copy "
         "it beside the recording, or give it as another input"],
    ),
    "such a dump of a library that compiles code": (
        {"stacks": {f"[code~in~//anon] wasmtime_call@_libwasmtime.so _PyEval@libpython3.11.so {MAIN}": 50,
                    f"f@app {MAIN}": 50}, "pids": {"python": 9},
         "command": "perf record -g python a.py",
         "notes": {"code_unrecorded": {"count": 50}, "companion_missing": {"where": "/gone/jit-9.dump"}}},
        ["names are missing for 50 % of the samples",
         "  [code in //anon] (50 %), by wasmtime: its process wrote the names into /gone/jit-9.dump, which was not "
         "found: copy it beside the recording, or give it as another input"],
    ),
    "an empty dump": (
        {"stacks": {f"[code~in~//anon] v8::Run@node {MAIN}": 95, f"f@libc.so.6 {MAIN}": 5}, "pids": {"node": 9},
         "command": "perf record -g node --perf-prof a.js",
         "notes": {"code_unrecorded": {"count": 95}, "companion_empty": {"where": "/tmp/jit-9.dump"}}},
        ["names are missing for 95 % of the samples",
         "  [code in //anon] (95 %): Node.js wrote no names into /tmp/jit-9.dump, which is empty: its process ended "
         "before it wrote what it had; let it end by itself, not by a signal"],
    ),
    "a dump of another run, of a program to which perf was attached": (
        {"stacks": {f"[code~in~//anon] v8::Run@node {MAIN}": 95, f"f@libc.so.6 {MAIN}": 5}, "pids": {"node": 9},
         "command": "perf record -g -p 9",
         "notes": {"code_unrecorded": {"count": 95},
                   "companion_of_other_run": {"where": "/tmp/jit-9.dump", "detail": "it begins later"}}},
        ["names are missing for 95 % of the samples",
         "  [code in //anon] (95 %): it begins later; record again, and put both into a pack before that: traceferry "
         "pack x.data"],
    ),
    "code that a library inside of Python compiled": (
        {"stacks": {f"[code~in~//anon] WrapperCall@libcppyy_backend.so _PyEval@libpython3.11.so {MAIN}": 20,
                    f"f@app {MAIN}": 80},
         "command": "perf record -g python a.py", "notes": {"code_unrecorded": {"count": 20}}},
        ["names are missing for 20 % of the samples",
         "  [code in //anon] (20 %), by Cling: let Cling write its names with CLING_PROFILE=1: perf record -g env "
         "CLING_PROFILE=1 python a.py"],
    ),
    "processes of one runtime, of which those that others start were not asked for names": (
        {"stacks": {f"python3.13#1: f@libpython3.13.so.1.0 task@#Python g@libpython3.13.so.1.0 {MAIN}": 1,
                    f"python3.13#2: f@libpython3.13.so.1.0 {MAIN}": 99,
                    f"python3.13#3: f@libpython3.13.so.1.0 {MAIN}": 100},
         "command": "perf record -g python3.13 -X perf_jit a.py"},
        ["Python functions have no names in some processes: 100 % of the samples are in CPython there",
         "  let CPython write the names of the functions of each of its processes (python3.13 or newer), whatever "
         "starts it: perf record --call-graph dwarf,65528 -k CLOCK_MONOTONIC env PYTHON_PERF_JIT_SUPPORT=1 python3.13 "
         "-X perf_jit a.py"],
    ),
    "the same, and all of them were asked": (
        {"stacks": {f"python3.13#1: f@libpython3.13.so.1.0 task@#Python g@libpython3.13.so.1.0 {MAIN}": 50,
                    f"python3.13#2: f@libpython3.13.so.1.0 {MAIN}": 50},
         "command": "perf record -g env PYTHON_PERF_JIT_SUPPORT=1 python3.13 a.py"},
        ["good recording: 100 samples of cpu-clock, 2ms"],
    ),
    "functions of a jitdump that were not sampled": (
        {"stacks": {"node#1: tick@#JavaScript": 0, f"node#2: f@node {MAIN}": 100},
         "command": "perf record -g -p 7"},
        ["JavaScript functions have no names: 100 % of the samples are in Node.js",
         "  Node.js writes the names of its functions if it is started as node --perf-prof "
         "--interpreted-frames-native-stack: perf record -g -p 7 -k CLOCK_MONOTONIC"],
    ),
    "a process of another program that was started without": (
        {"stacks": {f"node#1: tick@#JavaScript v8::Run@node {MAIN}": 50,
                    f"node#2: [code~in~//anon] v8::Run@node {MAIN}": 30,
                    f"worker#3: [code~in~//anon] v8::Run@node {MAIN}": 20},
         "command": "perf record -g sh -c 'node --perf-prof a.js & node b.js'",
         "notes": {"code_unrecorded": {"count": 50}}},
        ["names are missing for 50 % of the samples",
         "  [code in //anon] of node (30 %): let Node.js write the names of the functions of each of its processes, "
         "whatever starts it: perf record -g -k CLOCK_MONOTONIC env 'NODE_OPTIONS=--perf-prof "
         "--interpreted-frames-native-stack' sh -c 'node --perf-prof a.js & node b.js'"],
    ),
    "such processes in a recording of all": (
        {"stacks": {f"java#1: Chain.a@#Java JavaCalls::call@libjvm.so {MAIN}": 50,
                    f"java#2: [code~in~//anon] JavaCalls::call@libjvm.so {MAIN}": 50},
         "command": "perf record -g -a sleep 5", "notes": {"code_unrecorded": {"count": 50}}},
        ["names are missing for 50 % of the samples",
         "  [code in //anon] of java (50 %): while the JVM runs, jcmd PID Compiler.perfmap (JDK 17 or newer) lists its "
         "functions, also for this recording"],
    ),
    "functions that V8 interprets, of which others have names": (
        {"stacks": {f"Builtins_AddHandler@node Builtins_InterpreterEntryTrampoline@node v8::Run@node {MAIN}": 40,
                    f"f@#JavaScript Builtins_InterpreterEntryTrampoline@node v8::Run@node {MAIN}": 60},
         "command": "perf record -g node --perf-basic-prof a.js"},
        ["JavaScript functions that Node.js interprets have no names: 40 % of the samples are in them or "
         "what they call",
         "  let Node.js name the functions that it interprets, too: perf record -g node "
         "--interpreted-frames-native-stack --perf-basic-prof a.js"],
    ),
    "few of them": (
        {"stacks": {f"Builtins_AddHandler@node Builtins_InterpreterEntryTrampoline@node v8::Run@node {MAIN}": 29,
                    f"f@#JavaScript Builtins_InterpreterEntryTrampoline@node v8::Run@node {MAIN}": 71},
         "command": "perf record -g node --perf-basic-prof a.js"},
        ["good recording: 100 samples of cpu-clock, 2ms"],
    ),
    "the same of what a script starts": (
        {"stacks": {f"InterpreterEntryTrampoline@#JavaScript v8::Run@node {MAIN}": 100,
                    f"f@#JavaScript v8::Run@node {MAIN}": 5},
         "command": "perf record -g npm test -- --perf-prof"},
        ["JavaScript functions that Node.js interprets have no names: 95 % of the samples are in them or "
         "what they call",
         "  let Node.js name the functions that it interprets, too, whatever starts it: perf record -g -k "
         "CLOCK_MONOTONIC env 'NODE_OPTIONS=--perf-prof --interpreted-frames-native-stack' npm test -- --perf-prof"],
    ),
    "functions that V8 interprets, where it compiles none": (
        {"stacks": {f"Builtins_AddHandler@node Builtins_InterpreterEntryTrampoline@node v8::Run@node {MAIN}": 100},
         "command": "perf record -g node --perf-prof --jitless a.js"},
        ["JavaScript functions that Node.js interprets have no names: 100 % of the samples are in them or "
         "what they call",
         "  nothing names what Node.js executes with --jitless: record without it: perf record -g node "
         "--interpreted-frames-native-stack --perf-prof a.js"],
    ),
    "what the JVM interprets, where it compiles nothing": (
        {"stacks": {f"Interpreter@#JIT JavaCalls::call@libjvm.so {MAIN}": 100},
         "command": "perf record -g java -Xint -XX:+PreserveFramePointer -XX:+UnlockDiagnosticVMOptions "
                    "-XX:+DumpPerfMapAtExit A"},
        ["Java functions that the JVM interprets have no names: 100 % of the samples are in them or "
         "what they call",
         "  nothing names what the JVM executes with -Xint: record without it: perf record -g java "
         "-XX:+PreserveFramePointer -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit A"],
    ),
    "what the JVM interprets yet": (
        {"stacks": {f"Interpreter@#Java JavaCalls::call@libjvm.so {MAIN}": 50,
                    f"A.f@#Java Interpreter@#Java JavaCalls::call@libjvm.so {MAIN}": 50},
         "command": "perf record -g java -XX:+PreserveFramePointer -XX:+DumpPerfMapAtExit A"},
        ["Java functions that the JVM interprets have no names: 50 % of the samples are in them or "
         "what they call",
         "  the JVM names what it has compiled: let the program run for longer"],
    ),
    "a JVM that neither writes names nor compiles": (
        {"stacks": {f"[code~in~//anon] JavaCalls::call@libjvm.so {MAIN}": 100},
         "command": "perf record -g java -Xint A", "notes": {"code_unrecorded": {"count": 100}}},
        ["names are missing for 100 % of the samples",
         "  let the JVM write the names of its functions, without -Xint, which keeps it from compiling them: perf "
         "record -g -k CLOCK_MONOTONIC java -XX:+PreserveFramePointer -XX:+UnlockDiagnosticVMOptions "
         "-XX:+DumpPerfMapAtExit A"],
    ),
    "a quarter of the stacks with functions of a language, beside threads that compile": (
        {"stacks": {"f@#Java": 25, f"f@#Java g@#Java JavaCalls::call@libjvm.so {MAIN}": 75,
                    f"Compile::Optimize@libjvm.so {MAIN}": 100},
         "command": "perf record -g java -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit A"},
        ["25 % of the stacks with Java functions are cut: what the JVM compiled keeps no frame pointers",
         "  let the JVM keep frame pointers: perf record -g -k CLOCK_MONOTONIC java -XX:+PreserveFramePointer "
         "-XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit A"],
    ),
    "the same of a runtime that was asked for all": (
        {"stacks": {"f@#Java": 25, f"f@#Java g@#Java JavaCalls::call@libjvm.so {MAIN}": 75,
                    f"Compile::Optimize@libjvm.so {MAIN}": 100},
         "command": "perf record -g java -XX:+PreserveFramePointer -XX:+DumpPerfMapAtExit A"},
        ["good recording: 200 samples of cpu-clock, 2ms"],
    ),
    "copies that end in what CPython made, which tells how it is unwound if it is asked": (
        {"stacks": {f"f@#Python {OF_MEMORY}": 50, f"f@libpython3.13.so.1.0 {MAIN}": 10}, "call_graph": "dwarf",
         "command": "perf record --call-graph dwarf python3.13 -X perf a.py"},
        ["83 % of the stacks are cut: what CPython compiled has no unwind information",
         "  let CPython write how its functions are unwound: perf record --call-graph dwarf,65528 -k CLOCK_MONOTONIC "
         "python3.13 -X perf_jit a.py"],
    ),
    "code that a library inside of Python compiled, of which nothing is known": (
        {"stacks": {f"[code~in~//anon] run@wasm.cpython-310-x86_64-linux-gnu.so {MAIN}": 80,
                    f"f@libpython3.10.so.1.0 {MAIN}": 20},
         "command": "perf record -g python a.py", "notes": {"code_unrecorded": {"count": 80}}},
        ["names are missing for 80 % of the samples",
         "  [code in //anon] (80 %): wasm.cpython-310-x86_64-linux-gnu.so, or what that uses, compiled it, and may "
         "have an option to write a list of its names"],
    ),
    "the same where stacks end in it": (
        {"stacks": {"[code~in~//anon]": 80, "helper@libguest.so [code~in~//anon]": 5,
                    f"f@libpython3.10.so.1.0 {MAIN}": 15},
         "command": "perf record -g python a.py", "notes": {"code_unrecorded": {"count": 85}}},
        ["85 % of the stacks are cut: what libguest.so compiled keeps no frame pointers",
         "  [code in //anon] (80 %): libguest.so, or what that uses, compiled it, and may have an option to write a "
         "list of its names"],
    ),
    "the same beside functions of CPython with names": (
        {"stacks": {f"[code~in~//anon] {OF_MEMORY}": 60, f"sin@libm.so.6 [code~in~//anon] {OF_MEMORY}": 20,
                    f"f@libpython3.13.so.1.0 task@#Python g@libpython3.13.so.1.0 {MAIN}": 20},
         "command": "perf record --call-graph dwarf,65528 python3.13 -X perf_jit a.py", "call_graph": "dwarf",
         "notes": {"code_unrecorded": {"count": 80, "advice": "its jitdump has no record of this code"}}},
        ["80 % of the stacks are cut: what a library of this process compiled has no unwind information",
         "  [code in //anon] (60 %): a library of this process, not CPython, compiled it, and may have an option to "
         "write a list of its names"],
    ),
    "what CPython made for each function, of which the names are lost": (
        {"stacks": {f"f@libpython3.13.so.1.0 [code~in~//anon] g@libpython3.13.so.1.0 {MAIN}": 95,
                    f"[code~in~//anon] g@libpython3.13.so.1.0 {MAIN}": 5},
         "command": "perf record -g python3.13 -X perf_jit a.py",
         "notes": {"code_unrecorded": {"count": 80, "advice": "its jitdump has no record of this code"}}},
        ["names are missing for 5 % of the samples",
         "  [code in //anon] (5 %): its jitdump has no record of this code"],
    ),
    "code that Unicorn translated": (
        {"stacks": {f"[code~in~//anon] {MAIN}": 80, f"f@libunicorn.so.2 f@libpython3.10.so.1.0 {MAIN}": 20},
         "command": "perf record -g python a.py", "notes": {"code_unrecorded": {"count": 80}}},
        ["names are missing for 80 % of the samples",
         "  [code in //anon] (80 %), by Unicorn: what it translates has no names"],
    ),
    "patterns that PCRE2 compiled": (
        {"stacks": {"[code~in~//anon]": 90, "pcre2_match_8@libpcre2-8.so.0.11.2 f@grep": 10},
         "command": "perf record -g grep -P a b", "notes": {"code_unrecorded": {"count": 90}}},
        ["100 % of the stacks are cut: what PCRE2 compiled keeps no frame pointers",
         "  [code in //anon] (90 %), by PCRE2: the patterns that it compiles have no names"],
    ),
    "the same beside functions of a runtime with names": (
        {"stacks": {"[code~in~//anon]": 10, f"f@libpcre2-8.so.0.11.2 collatz@#PHP f@php8.2 {MAIN}": 90},
         "command": "perf record -g php -d opcache.jit_debug=32 a.php",
         "notes": {"code_unrecorded": {"count": 10, "advice": "its jitdump has no record of this code"}}},
        ["names are missing for 10 % of the samples",
         "  [code in //anon] (10 %), by PCRE2: the patterns that it compiles have no names"],
    ),
    "patterns of one of several programs": (
        {"stacks": {"grep#1: [code~in~//anon]": 99, f"ls#2: f@libpcre2-8.so.0.11.2 {MAIN}": 1},
         "command": "perf record -g sh -c 'ls; grep -P a b'", "notes": {"code_unrecorded": {"count": 90}},
         "pids": {"grep": 1, "ls": 2}, "files": {"grep": ("grep", PCRE), "ls": ("ls", PCRE)}},
        ["names are missing for 99 % of the samples",
         "  [code in //anon] (99 %), by PCRE2: the patterns that it compiles have no names"],
    ),
    "code of a program that has not loaded PCRE2, as another has": (
        {"stacks": {"jit#1: [code~in~//anon]": 99, f"ls#2: f@libpcre2-8.so.0.11.2 {MAIN}": 1},
         "command": "perf record -g sh -c 'ls; ./jit'",
         "notes": {"code_unrecorded": {"count": 90, "advice": "let it write names"}},
         "pids": {"jit": 1, "ls": 2}, "files": {"jit": ("jit", "libc.so.6"), "ls": ("ls", PCRE)}},
        ["names are missing for 99 % of the samples",
         "  [code in //anon] (99 %): let it write names"],
    ),
    "code that oneDNN compiled, which was asked for names": (
        {"stacks": {f"[code~in~//anon] {MAIN}": 50, f"f@libdnnl.so.3 {MAIN}": 10},
         "command": "perf record env ONEDNN_JIT_PROFILE=2 ./app",
         "notes": {"code_unrecorded": {"advice": "let it write names"}}},
        ["names are missing for 83 % of the samples",
         "  [code in //anon] (83 %): let it write names"],
    ),
    "code of .NET, whose jitdump ended at stubs": (
        {"stacks": {f"[code~in~/memfd:doublemapper] {MAIN}": 50, f"f@app {MAIN}": 50}, "pids": {"app": 9},
         "command": "perf record -g env DOTNET_PerfMapEnabled=2 ./app",
         "notes": {"code_unrecorded": {"advice": "its jitdump has no record of this code"},
                   "dump_unfinished": {"where": "jit-9.dump", "advice": ENDED_AT_STUBS}}},
        ["names are missing for 50 % of the samples",
         f"  [code in /memfd:doublemapper] (50 %): {ENDED_AT_STUBS}: "
         "perf record -g env DOTNET_PerfMapStubGranularity=2 DOTNET_PerfMapEnabled=2 ./app"],
    ),
    "the kernel": (
        {"stacks": {f"[kernel.kallsyms]+0x12@[kernel.kallsyms]#Kernel {MAIN}": 50},
         "notes": {"kernel_names_missing": {"count": 2, "advice": "convert as root"}}},
        ["names are missing for 100 % of the samples", "  the kernel (100 %): convert as root"],
    ),
    "lost records": (
        {"stacks": {f"f@app {MAIN}": 900}, "notes": {"lost_samples": {"count": 100}}},
        ["10 % of the records were lost: record with -m 4M",
         "  a larger buffer loses less: perf record -F 999 -g -o x.data -m 4M ./app"],
    ),
    "lost records in spite of a large buffer": (
        {"stacks": {f"f@app {MAIN}": 900}, "notes": {"lost_samples": {"count": 100}},
         "command": "perf record -m 8M ./app"},
        ["10 % of the records were lost: record with -m 16M", "  a larger buffer loses less: perf record -m 16M ./app"],
    ),
    "a list of names without times": (
        {"stacks": {f"f@app {MAIN}": 100}, "notes": {"map_ambiguous": {"count": 7, "advice": "write a jitdump"}}},
        ["7 % of the samples may be of other functions: a perf-PID.map lists several there", "  write a jitdump"],
    ),
    "a list of names without times that changes little": (
        {"stacks": {f"f@app {MAIN}": 100}, "notes": {"map_ambiguous": {"count": 4}}},
        ["good recording: 100 samples of cpu-clock, 2ms; 1 loss: --verbose"],
    ),
    "a clock that does not fit": (
        {"stacks": {f"f@app {MAIN}": 9}, "notes": {"clock_differs": {"detail": "sched and monotonic"}}},
        ["samples and jitted code are on different clocks: code may be missed or mistaken where addresses are reused",
         "  record samples and code on one clock: perf record -F 999 -g -o x.data -k CLOCK_MONOTONIC ./app"],
    ),
    "two recordings whose clocks do not fit": (
        {"stacks": {f"f@app {MAIN}": 9}, "notes": {"clock_unrelated": {"advice": "record each of them with -k"}},
         "command": "perf record -k CLOCK_MONOTONIC ./app"},
        ["the inputs' clocks have no known relation; they are shown as if they had begun together",
         "  record each of them with -k"],
    ),
    "no samples": (
        {"stacks": {}, "command": "perf record ./app", "notes": {"no_samples": {"detail": "cycles did not occur"}}},
        ["the recording has no samples: cycles did not occur",
         "  the processor's clock counts on every machine, also on virtual ones: perf record -e cpu-clock ./app",
         "  if it waits more than it runs, record where it waits: perf record -k CLOCK_MONOTONIC -g --switch-events "
         "-e sched:sched_switch,cpu-clock ./app"],
    ),
    "no samples of an event that was counted": (
        {"stacks": {}, "command": "perf record -e page-faults -c 100000 ./app", "notes": {"no_samples": {}}},
        ["the recording has no samples",
         "  the processor's clock counts on every machine, also on virtual ones: perf record -e cpu-clock ./app",
         "  if it waits more than it runs, record where it waits: perf record -e sched:sched_switch,cpu-clock "
         "-k CLOCK_MONOTONIC -g --switch-events ./app"],
    ),
    "no samples of the clock that perf takes where nothing else counts": (
        {"stacks": {}, "command": "perf record -F 997 -g sleep 1", "events": "cpu-clock:pppH",
         "notes": {"no_samples": {}}},
        ["the recording has no samples",
         "  if it waits more than it runs, record where it waits: perf record -g -k CLOCK_MONOTONIC --switch-events "
         "-e sched:sched_switch,cpu-clock sleep 1"],
    ),
    "no samples of a clock": (
        {"stacks": {}, "command": "perf record -e cpu-clock -p 7", "notes": {"no_samples": {}}},
        ["the recording has no samples",
         "  sample a program that ends soon more often: perf record -e cpu-clock -p 7 -F 20000",
         "  if it waits more than it runs, record where it waits: perf record -e sched:sched_switch,cpu-clock -p 7 "
         "-k CLOCK_MONOTONIC -g --switch-events"],
    ),
    "switches that are missing": (
        {"stacks": {f"f@app {MAIN}": 9}, "notes": {"switch_missing": {"count": 2}},
         "command": "perf sched record -e sched:sched_stat_runtime ./app"},
        ["the recording lacks context switches: what threads did before them is unknown",
         "  not all kernels record what wakes an idle processor: perf sched record -e sched:sched_stat_runtime "
         "--switch-events ./app"],
    ),
    "the same in spite of it": (
        {"stacks": {f"f@app {MAIN}": 9}, "notes": {"switch_missing": {"count": 2}},
         "command": "perf record --switch-events ./app"},
        ["the recording lacks context switches: what threads did before them is unknown"],
    ),
    "the same, and it is not known how it was recorded": (
        {"stacks": {f"f@app {MAIN}": 9}, "notes": {"switch_missing": {"count": 2}}, "command": ""},
        ["the recording lacks context switches: what threads did before them is unknown",
         "  not all kernels record what wakes an idle processor: perf record --switch-events tells of all"],
    ),
    "what trace_processor could not read": (
        {"stacks": {f"f@app {MAIN}": 9},
         "notes": {"engine_reported": {
             "where": "x.data json_parser_failure", "detail": "json_parser_failure", "count": 3}}},
        ["trace_processor reports errors or lost data: json_parser_failure",
         f'  its statistics say more: traceferry query x.data "{STATISTICS_SQL}"'],
    ),
    "a damaged file": (
        {"stacks": {f"f@app {MAIN}": 9}, "notes": {"truncated": {"offset": 80}}},
        ["the file is damaged at offset 80: the file ends inside a buffer",
         f"  what can be read is shown; record again for the rest: {RECORDED}"],
    ),
    "any other loss has its own words": (
        {"stacks": {f"f@app {MAIN}": 9}, "notes": {"mappings_left_out": {}}},
        ["addresses that were remapped too often are shown as [unknown]",
         "  record for a shorter time, or fewer processes"],
    ),
    "what a viewer cannot show is no loss": (
        {"stacks": {f"f@app {MAIN}": 9}, "notes": {"columns_dropped": {}, "depth_cut": {}, "line_bias": {}}},
        ["good recording: 9 samples of cpu-clock, 2ms"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_what_is_said(case: str) -> None:
    given, wanted = CASES[case]
    assert said(**given) == wanted


def test_three_lines_of_advice_are_the_most() -> None:
    """Of four findings; a command that helps two libraries stands there once."""
    trace, samples = trace_of(
        {f"lib{n}.so+0x1@lib{n}.so#System~library": 10 + n for n in range(5)},
        notes={"lost_samples": {"count": 30}, "clock_differs": {}},
    )
    for n in range(5):
        trace.report.note("names_partly_missing", where=f"lib{n}.so {n}", detail=f"lib{n}.so (1)", advice=f"a{n}")
    found = verdict_of(trace, samples)
    assert [(advice.kind, advice.text) for advice in found.advice] == [
        ("clock", "record samples and code on one clock"), ("names_missing", "lib4.so (23 %): a4"),
        ("stacks_cut", "code without frame pointers ends them; perf can copy the stacks instead"),
    ]  # fmt: skip
    assert found.more == 0


def test_a_loss_that_is_no_headline_is_named() -> None:
    verdict = verdict_of(*trace_of({"f@app": 90}, notes={"mappings_left_out": {}}))
    assert verdict.advice[1].text == (
        "addresses that were remapped too often are shown as [unknown]: record for a shorter time, or fewer processes"
    )


def test_inputs_are_quoted_as_a_shell_takes_them() -> None:
    trace, samples = trace_of({f"libz.so+0x12@libz.so {MAIN}": 38}, notes={"names_missing": NOT_FOUND})
    assert verdict_of(trace, samples, ["a b/x.data"]).advice[0].command.startswith("traceferry 'a b/x.data' ")


def test_statistics_are_of_the_input_that_trace_processor_read() -> None:
    trace, samples = trace_of({f"f@app {MAIN}": 9})
    trace.report.note("engine_reported", where="b.json json_parser_failure", detail="json_parser_failure")
    (advice,) = verdict_of(trace, samples, ["x.data", "a folder/b.json"]).advice
    assert advice.command.startswith("traceferry query 'a folder/b.json' \"SELECT ")


def test_as_json() -> None:
    verdict = verdict_of(*trace_of({"f@app": 20, f"f@app {MAIN}": 20}))
    assert verdict.as_json() == {
        "kind": "stacks_cut", "severity": "loss", "share": 0.5, "more": 0,
        "headline": "50 % of the stacks are cut: record with --call-graph dwarf,16384",
        "advice": [{
            "kind": "stacks_cut", "command": DWARF,
            "text": "code without frame pointers ends them; perf can copy the stacks instead",
        }],
    }  # fmt: skip


# ---------------------------------------------------------------- recordings

FIXTURES = ("jit/java17/perf.data.zst", "jit/php82/perf.data.zst", "jit/wasmtime/perf.data.zst",
            "mono/mono-6.8/sample.mlpd", "xray/clang-19/fdr-c19-pie-events.xray")  # fmt: skip


@pytest.mark.parametrize(
    ("stacks", "headline"),
    [
        ({"f": 10}, "the recording has no call stacks"),
        ({"f": 9}, "good recording: 9 samples of cpu-clock, 2ms"),
        ({"f": 10, "f g": 1}, "good recording: 11 samples of cpu-clock, 2ms"),
        ({"f": 10, f"(idle) {MAIN}": 5}, "the recording has no call stacks"),
    ],
)
def test_stacks_of_one_function_are_none_in_every_format(stacks: dict[str, int], headline: str) -> None:
    """As of a profile that was made of a recording without -g; where perf recorded, its attributes tell."""
    assert said(stacks, command="", of="firefox")[0] == headline


@pytest.mark.parametrize("name", [name for name in FIXTURES if (REPO / "fixtures" / name).exists()])
def test_what_is_counted_on_the_way_is_what_is_counted_apart(name: str) -> None:
    """A tally while an output is written, and the sums of `info`, also where threads are loaded several times."""
    trace = load_checked(REPO / "fixtures" / name)
    of_info = Verdict(**(summarize(trace)["verdict"] | {"advice": ()}))
    tally = Tally(trace)
    into = tally.trace.opened()
    for _ in range(2):
        for _, thread in into.threads:
            thread.load(into)
    assert verdict_of(trace, tally.samples)._replace(advice=()) == of_info
    for _, thread in tally.trace.threads:
        thread.load(tally.trace)
    assert verdict_of(trace, tally.samples)._replace(advice=()) == of_info


@pytest.mark.parametrize(
    ("has_counter", "said"),
    [(False, "the recording holds nothing to show"), (True, "good recording: 1 counter, 5ms")],
)
def test_what_holds_nothing_is_no_good_recording(has_counter: bool, said: str) -> None:
    """Nor is it one of 0 threads where it has something else."""
    trace = TraceBuilder()
    trace.join_clock(Clock("monotonic"))
    trace.processes.append(Process(1, "p", 0, 5_000_000))
    if has_counter:
        values = Table(COUNTER_VALUES, {"ts": np.array([1, 4_000_000]), "value": np.array([1.0, 2.0])})
        trace.processes[0].counters.append(Counter("memory", "bytes", "", values))
    assert verdict_of(lawful(trace.done()), SampleTotals(TraceBuilder())).headline == said


@pytest.mark.parametrize(
    "made",
    [
        {"stacks": {"f@app": 50}},
        {"stacks": {f"f@app {MAIN}": 900}, "notes": {"lost_samples": {"count": 100}}},
        {"stacks": {}, "notes": {"no_samples": {}}},
        {"stacks": {f"f@app {MAIN}": 9}, "notes": {"clock_differs": {}}},
    ],
)
def test_a_recording_that_came_through_a_pipe_is_recorded_into_one_again(made: dict[str, Any]) -> None:
    trace, samples = trace_of(command="perf record -F 999 -o - ./app", **made)
    trace.inputs[:] = [Input("x.data", "perf.data", "pipe", "perf 6.1")]
    advice = verdict_of(trace, samples).advice
    assert advice
    assert all(each.command.endswith(" ./app | traceferry - -o out.html") for each in advice)
