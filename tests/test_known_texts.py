"""Profiles that are not read are named, with the command that makes something that is: as these programs wrote them."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import for_each

from traceferry.apps import cli

FILES: dict[str, tuple[str, str, str]] = {
    "UTF-16": ("\xff\xfe{\0\"\0n\0", "UTF-16", "iconv -f UTF-16 -t UTF-8 FILE"),
    "UTF-16, big": ("\xfe\xff\0[\0\n\0{\0\"", "UTF-16", "iconv -f UTF-16 -t UTF-8 FILE"),
    "Jaeger": ('{"data": [{"traceID": "a", "spans": []}], "total": 0}', "Jaeger", "one machine's programs"),
    "Zipkin": ('[{"traceId": "a", "id": "b", "name": "get"}]', "Zipkin", "one machine's programs"),
    "bpftrace, JSON": ('{"type": "attached_probes", "data": {"probes": 1}}\n', "bpftrace", "stackcollapse-bpftrace.pl"),
    "pyinstrument, session": (
        '{"start_time": 1.5, "duration": 0.5, "min_interval": 0.001, "max_interval": 0.001, "sample_count": 2, '
        '"start_call_stack": [], "frame_records": []}', "session of pyinstrument",
        "pyinstrument --load FILE -r speedscope"),
    "pyinstrument, tree": (
        '{"start_time": 1.5, "duration": 0.5, "sample_count": 2, "cpu_time": 0.5, "root_frame": {}}', "pyinstrument",
        "pyinstrument -r speedscope"),
    "Scalene": ('{"alloc_samples": 4, "args": {}, "files": {}, "program": "a"}', "Scalene", "py-spy record"),
    "vprof": ('{"c": {}, "version": "0.38"}', "vprof", "py-spy record"),
    "memray": ("\x04\"M\x18@@\xc0\x95B\0\0\xf9\x05memray\0\r\0\0\0", "memray", "memray transform speedscope"),
    "memray, not compressed": ("memray\0\r\0\0\0", "memray", "memray transform speedscope"),
    "memray, gprof2dot": ('{"version": 0, "costs": [], "events": [], "functions": []}', "gprof2dot", "memray"),
    "line_profiler": ("\x80\5\x95\xcc\0\0\0\0\0\0\0\x8c\x1bline_profiler.line_profiler", "line_profiler", "py-spy"),
    "austin": ("MOJ\4\1interval", "austin", "mojo2austin FILE"),
    "yappi": ("version: 1\ncreator: yappi\npid: 7\ncmd:  a.py\npart: 1\n\nevents: Ticks\n\nfl=(221) a.py\n",
              "callgrind's format", "py-spy"),
    "pprofile": ("# callgrind format\nversion: 1\ncreator: pprofile\n", "callgrind's format", "py-spy"),
    "Xdebug": ("version: 1\ncreator: xdebug 3.2.0 (PHP 8.2.36)\ncmd: /w/app.php\n", "Xdebug", "Excimer"),
    "callgrind": ("# callgrind format\nversion: 1\ncreator: callgrind-3.19.0\npid: 7\n", "callgrind", "perf record -g"),
    "pprof -callgrind": ("positions: instr line\nevents: cpu(ms)\n\nob=(1) app\nfl=(1) m.go\nfn=(1) main\n",
                         "callgrind", "perf record -g"),
    "cachegrind": ("desc: I1 cache:  1 B\ndesc: LL cache: 2 B\ncmd: ./app\nevents: Ir \n", "cachegrind", "perf record"),
    "massif": ("desc: --massif-out-file=m\ncmd: ./app 20\ntime_unit: i\n#---\n", "massif", "heaptrack APP"),
    "DHAT": ('{"dhatFileVersion":2\n,"mode":"heap","pps":[],"ftbl":[]}', "DHAT", "heaptrack APP"),
    "heaptrack": ("v 10400 3\nX ./app 20\nI 1000 5\n", "heaptrack", "heaptrack_print FILE -F"),
    "jemalloc": ("heap_v2/524288\n  t*: 19: 2050 [0: 0]\n", "jemalloc", "jeprof --collapsed"),
    "Xdebug, trace": ("TRACE START [2026-11-26 13:31:14]\n", "Xdebug", "stackcollapse-xdebug.php"),
    "Xdebug, trace for programs": ("Version: 3.2.0\nFile format: 4\nTRACE START [2026]\n", "Xdebug", "Excimer"),
    "V8, log": ("v8-version,11,3,244,8,-node.38,0\n", "V8's --prof", "node --cpu-prof"),
    "V8, heap": ('{"snapshot":{"meta":{}},"nodes":[],"edges":[],"strings":[]}', "heap snapshot of V8", "--heap-prof"),
    "V8, ticks": ('{"code": [], "functions": [], "ticks": [], "scripts": []}', "--prof-process", "node --cpu-prof"),
    "Node.js": ('{"header": {}, "javascriptStack": {}}', "report of Node.js", "node --cpu-prof"),
    "Go, trace": ("go 1.19 trace\0\0\0A\0", "Go's scheduler", "go tool trace -pprof=sched FILE"),
    "Go, goroutines": ("goroutine 1 [running]:\nmain.main()\n", "Go's goroutines", "debug=0"),
    "pprof -raw": ("PeriodType: cpu nanoseconds\nPeriod: 10000000\n", "go tool pprof", ".pb.gz"),
    "pprof -top": ("File: app\nType: cpu\nTime: Nov 26\n", "go tool pprof", ".pb.gz"),
    "jfr print": ('jdk.ExecutionSample {\n  startTime = 13:31\n', "jfr print", "jfrconv"),
    "jfr print --json": ('{"recording": {"events": [{"type": "jdk.ExecutionSample"}]}}', "jfr print", "jfrconv"),
    "jcmd": ("3851:\n2026-11-26 13:31:41\nFull thread dump OpenJDK\n", "JVM's threads", "asprof"),
    "perf report": ("# To display the perf.data header info, please use --header\n", "perf report", "perf.data itself"),
    "perf script, stacks": ("\n\t    7f00c2a1 main+0x1 (/w/app)\n\n", "does not tell threads", "perf script -F +pid"),
    "perf script, commands": ("app \n\t    7f00c2a1 main\n\n", "does not tell threads", "perf script -F +pid"),
    "perf script, times": ("5.215598: cycles: \n\t   7f00c2a1\n\n", "does not tell threads", "perf script -F +pid"),
    "perf stat": ("# started on Thu\n\n\n Performance counter stats for './app':\n", "perf stat", "perf record -g"),
    "perf data": ('{"linux-perf-json-version": 1, "headers": {}, "samples": []}', "perf as JSON", "perf.data itself"),
    "perf stat, fields": ("# started on Thu\n\n1.76,msec,task-clock,1759133,9,\n", "perf stat", "perf stat record"),
    "perf stat, JSON": ('# started on Thu\n\n{"counter-value" : "1.4", "unit" : ""}\n', "perf stat", "stat record"),
    "perf annotate": (" Percent |\tSource code & Disassembly of cpu\n", "annotate", "itself"),
    "perf trace": ("     0.050 ( 0.019 ms): ls/17470 brk()    = 0x55\n", "perf trace", "strace -f -ttt -T"),
    "perf trace, first": ("         ? (         ): ls/17470  [continued]: execve()\n", "perf trace", "raw_syscalls"),
    "perf trace -s": ("\n Summary of events:\n\n ls (17475), 288 events, 97.3%\n", "perf trace", "raw_syscalls"),
    "perf sched timehist": ("           time    cpu  task name        wait time  sch delay\n", "perf sched", "itself"),
    "perf sched latency": ("\n ----\n  Task         |   Runtime ms  | Switches |\n", "perf sched", "perf.data itself"),
    "strace -c": ("% time     seconds  usecs/call     calls    errors syscall\n", "sums of strace", "-ttt -T -o x.txt"),
    "uftrace": ("# DURATION     TID     FUNCTION\n            [ 123] | main() {\n", "uftrace", "uftrace dump --chrome"),
    "gdb": ("Thread 1 (Thread 0x7fff (LWP 123)):\n#0  0x00007ffff7e5 in f ()\n", "debugger", "perf record -g"),
    "importtime": ("import time: self [us] | cumulative | imported package\n", "importtime", "py-spy record"),
    "py-spy dump": ("Process 1234: python app.py\nPython v3.11.7 (/bin/python3)\n", "py-spy dump", "py-spy record"),
    "OpenTelemetry": ('{"resourceSpans":[{"scopeSpans":[]}]}', "OpenTelemetry", "one machine"),
    "HAR": ('{"log":{"version":"1.2","entries":[]}}', "HAR", "Performance panel"),
    "netlog": ('{"constants":{"logEventTypes":{}},"events":[]}', "netlog", "Performance panel"),
    "strace": ('4085  execve("./app", ["./app"], 0x7ff) = 0\n', "strace without times", "strace -f -ttt"),
    "gprof": ("gmon\1\0\0\0" + "\0" * 12, "gprof", "perf record -g"),
    "gprof2dot": ('digraph {\n\tgraph [fontname=Arial]\n', "Graphviz", "made of"),
}  # fmt: skip


@for_each("case", FILES)
def test_what_a_profile_is(case: tuple[str, str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, what, advice = case
    path = tmp_path / "x"
    path.write_bytes(data.encode("latin-1"))
    assert cli.main(["info", str(path)]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"traceferry: {path}: this is ")
    said = error.partition("this is ")[2]
    assert what in said.partition(": ")[0]
    assert advice in said.partition(": ")[2]


def test_what_is_read_as_stacks_is_refused_where_it_is_known(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "callgrind.txt"
    path.write_text("# callgrind format\nevents: Ir\nfn=main\n1 2\n")
    assert cli.main(["info", str(path), "--from", "collapsed"]) == 2
    assert "this is a profile of callgrind" in capsys.readouterr().err


@pytest.mark.parametrize("data", ['{"name": "x"}', '{"version": 1}', "goroutine\n", "digraph of mine\n", "go 1.19\n"])
def test_what_is_not_known(data: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.json"
    path.write_text(data)
    assert cli.main(["info", str(path)]) == 2
    assert "unrecognised input format" in capsys.readouterr().err


@pytest.mark.parametrize("data", ['{"nodes": [{"id": 1', '{"name": "x"', "{", '[{"id": 1'])
def test_json_that_ends_too_early(data: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is left does not tell what it was."""
    path = tmp_path / "x.cpuprofile"
    path.write_text(data)
    assert cli.main(["info", str(path)]) == 2
    assert "the JSON text ends too early (line 1, column " in capsys.readouterr().err
