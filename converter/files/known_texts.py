"""Profiles that are not read, and other text: by how it begins, or the members of its JSON; and what to give instead.

Sources: what the programs themselves wrote, and their documents. CPython's profiling.sampling: as 3.15 writes its files
(Lib/profiling/sampling, Modules/_remote_debugging/binary_io.h); pstats is marshalled: a dictionary whose first key is a
tuple of three.
"""

from __future__ import annotations

import re

from traceferry.common.errors import FormatError
from traceferry.common.patterns import compiled_later
from traceferry.files.json_text import is_json, members_seen
from traceferry.files.source import Source

HEAD = 1 << 16
_OF_PYTHON = "py-spy record -f speedscope -o x.speedscope.json -- python APP.py records stacks"
_OF_PHP = "formatCollapsed of Excimer gives stacks"
_OF_NATIVE = "perf record -g APP records stacks"
_OF_HEAP = "heaptrack APP, then heaptrack_print FILE -F x.folded, makes stacks"
_OF_NODE = "node --cpu-prof APP.js records a profile that is read"
_OF_JAVA = "jfrconv of async-profiler makes collapsed stacks of the .jfr"
_OF_SERVICES = "traceferry reads recordings of one machine's programs"
# (how a text begins, what it is, what to give instead).
_BEGINS = (
    # Stacks are read in UTF-16, too; the readers of JSON take UTF-8.
    (r"\xff\xfe(?:\s\0)*(?:\[\0(?:\s\0)*)?\{\0|\xfe\xff(?:\0\s)*(?:\0\[(?:\0\s)*)?\0\{",
     "JSON in UTF-16, as PowerShell writes it", "iconv -f UTF-16 -t UTF-8 FILE > OTHER makes text that is read"),
    # Python
    (r"HCAT|TACH", "a binary profile of Python's profiling.sampling",
     "give what python -m profiling.sampling replay FILE --gecko -o FILE.json makes of it"),
    (r"[{\xfb][)\xa9]\x03", "a profile for Python's pstats, which has no stacks",
     f"{_OF_PYTHON}, as does python -m profiling.sampling run --gecko of Python 3.15"),
    (r'\{"type":"meta","v":\d+,"run_id"', "a profile of Python's profiling.sampling as JSON lines, which has no stacks",
     "record with --gecko or --collapsed"),
    (r"<!doctype html>[^\0]{1,300}?<title>Tachyon Profiler", "a page of Python's profiling.sampling",
     "record with --gecko or --collapsed, or with --binary, of which replay makes all"),
    (r"import time: self \[us\]", "what python -X importtime says", _OF_PYTHON),
    (r"Process \d+: [^\n]*\nPython v[\d.]+", "what py-spy dump says, one moment", _OF_PYTHON),
    (r"\x80.{1,16}line_profiler\.", "a profile of line_profiler, which has no stacks", _OF_PYTHON),
    (r"\x04\"M\x18.{0,20}memray\0|memray\0", "a recording of memray",
     "memray transform speedscope FILE makes a profile that is read"),
    (r"MOJ", "a recording of austin (MOJO)", "mojo2austin FILE x.folded of PyPI's austin-python makes stacks"),
    # callgrind's format, of many programs; pprof writes positions first.
    (r"version: 1\ncreator: xdebug", "a profile of Xdebug, in callgrind's format, which has no stacks", _OF_PHP),
    (r"version: 1\ncreator: yappi|# callgrind format\nversion: 1\ncreator: pprofile",
     "a profile in callgrind's format, which has no stacks", _OF_PYTHON),
    (r"# callgrind format|(?:version|creator|cmd|pid|part|events|positions): ?[^\n]*\n(?:[^\n]*\n){0,20}?\s*fn=",
     "a profile of callgrind, which has no stacks", _OF_NATIVE),
    (r"(?:desc: [^\n]*\n)+cmd: [^\n]*\nevents: ", "a profile of cachegrind, which has no stacks", _OF_NATIVE),
    # Heaps of native programs.
    (r"(?:desc: [^\n]*\n)+cmd: [^\n]*\ntime_unit: ", "a profile of massif", _OF_HEAP),
    (r"v [0-9a-f]+ [0-9a-f]+\nX ", "a recording of heaptrack", "heaptrack_print FILE -F x.folded makes stacks of it"),
    # PHP
    (r"(?:Version: [^\n]*\nFile format: \d+\n)?TRACE START \[", "a trace of functions of Xdebug",
     f"stackcollapse-xdebug.php makes stacks of those with xdebug.trace_format=1; {_OF_PHP}"),
    # Ruby
    (r"rbspy\d\d\n", "a recording of rbspy", "rbspy report -f speedscope -i FILE -o x.speedscope.json"),
    (r"\x04\x08\{", "a dump of Ruby's objects, as of stackprof", "stackprof --stackcollapse FILE > x.folded"),
    # JavaScript
    (r"v8-version,", "a log of V8's --prof", _OF_NODE),
    (r"Statistical profiling result from ", "what node --prof-process says", _OF_NODE),
    # Go
    (r"go 1\.\d+ trace\0", "a trace of Go's scheduler",
     "go tool trace -pprof=sched FILE > x.pb.gz makes a profile of its waits; -pprof=sync, net and syscall likewise"),
    (r"goroutine \d+ [^\n]*\[[^\n]*\]:\n", "text of Go's goroutines, one moment", "write the profile with debug=0"),
    (r"PeriodType: |File: [^\n]*\n(?:Build ID: [^\n]*\n)?Type: |Type: [^\n]*\n(?:Time|Duration): ",
     "what go tool pprof says", "give its .pb.gz"),
    # Java
    (r"jdk\.\w+ \{\n", "what jfr print says of a recording", _OF_JAVA),
    (r"(?:\d+:\n)?\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\nFull thread dump ", "a dump of a JVM's threads, one moment",
     "stackcollapse-jstack.pl FILE > x.folded; asprof -d 10 -o collapsed -f x.folded PID records more than one"),
    # Linux
    (r"# To display the perf\.data header|# ========\n# captured on", "text of perf report",
     "give the perf.data itself"),
    (r"(?:[^\t\n]{0,128}\n)?\t *[0-9a-f]{1,16}(?: [^\n]+)?\n", "text of perf script that does not tell threads",
     "perf script -F +pid makes text that is read"),
    (r"(?:# started on [^\n]*\n)?\s*"
     r"(?:Performance counter stats for |\{\"counter-value\" : |[\d.]+,\w*,[\w:/=-]+,\d+,)",
     "what perf stat says", f"{_OF_NATIVE}; perf stat record -o FILE.data counts into a file that is read"),
    (r" Percent ?\|", "text of perf annotate", "give the perf.data itself: traceferry view FILE --in page has it"),
    (r"\s*(?:\?|\d+\.\d+) \( *(?:\d+\.\d+ ms)? *\): |\s*Summary of events:\n", "text of perf trace",
     "perf record -e 'raw_syscalls:*' -a -g records calls that are read, strace -f -ttt -T writes them as text"),
    (r"\s*time +cpu +task name +wait time|\s*-+\n +Task +\| +Runtime ms", "what perf sched says of a recording",
     "give the perf.data itself"),
    (r"% time +seconds +usecs/call ", "sums of strace (-c)",
     "strace -f -ttt -T -o x.txt APP writes each call, which is read"),
    (r"# DURATION +TID +FUNCTION", "text of uftrace replay",
     "uftrace dump --chrome > x.json makes a trace that is read"),
    (r"Thread \d+ \([^\n]*\):\n#0 ", "stacks of a debugger, one moment", _OF_NATIVE),
    (r"(?:\[pid +\d+\] |\d+ +)?(?:\d\d:\d\d:\d\d(?:\.\d+)? | *\d+\.\d+ )?execve\(",
     "text of strace without times", "strace -f -ttt -T -o x.txt APP records what convert and info read"),
    (r'\s*\{"type": "(?:attached_probes|map|hist|lhist|stats|printf|time|value|lost_events)", "',
     "text of bpftrace as JSON", "without -f json, stackcollapse-bpftrace.pl FILE > x.folded makes stacks of it"),
    (r"Attaching \d+ probes?\.\.\.|@\w*\[", "text of bpftrace", "stackcollapse-bpftrace.pl FILE > x.folded"),
    (r"gmon[\1\2\3]\0\0\0|Flat profile:\n|gmon\0\0\0", "a profile of gprof, which has no stacks", _OF_NATIVE),
    (r"\x5e\x97\xca\xfd|\xfd\xca\x97\x5e", "a capture of sysprof", _OF_NATIVE),
    (r"\x17\x08Dtracing", "a trace.dat of trace-cmd",
     "trace-cmd report FILE > x.txt makes text, of which traceferry query and convert read what ftrace writes"),
    (r"\xc1\x1f\xfc\xc1|/\* CTF 1", "a trace of LTTng (CTF)", "babeltrace2 and Trace Compass read it"),
    # macOS
    (r"Analysis of sampling ", "what macOS's sample says", "stackcollapse-sample.awk FILE > x.folded"),
    # Pictures of flame graphs, and graphs
    (r"\s*(?:<\?xml[^>]*>\s*)?(?:<!DOCTYPE svg[^>]*>\s*)?(?:<!--.{0,2000}?-->\s*)*<svg",
     "a picture (SVG), as of flamegraph.pl", "give the collapsed stacks or the recording that it was made of"),
    (r"digraph\s*\"?\w*\"?\s*\{", "a graph for Graphviz, as of gprof2dot", "give the profile that it was made of"),
)  # fmt: skip
# (members of the outermost object, what it is, what to give instead).
_MEMBERS = (
    ({"sample_count", "root_frame"}, "a tree of pyinstrument as JSON",
     "pyinstrument -r speedscope -o x.speedscope.json APP.py makes a profile that is read"),
    ({"sample_count", "frame_records"}, "a session of pyinstrument",
     "pyinstrument --load FILE -r speedscope -o x.speedscope.json makes a profile that is read"),
    ({"alloc_samples", "files"}, "a profile of Scalene: lines, without whole stacks", _OF_PYTHON),
    ({"total_num_allocations", "allocation_size_histogram"}, "what memray stats says",
     "memray transform speedscope FILE, of the recording, makes a profile that is read"),
    ({"costs", "events", "functions"}, "a profile for gprof2dot",
     "memray transform speedscope, if it is of memray, makes a profile that is read"),
    ({"dhatFileVersion", "pps"}, "a profile of Valgrind's DHAT", _OF_HEAP),
    ({"code", "functions", "ticks"}, "what node --prof-process --preprocess says", _OF_NODE),
    ({"linux-perf-json-version", "samples"}, "a recording of perf as JSON", "give the perf.data itself"),
    ({"resourceSpans"}, "spans of OpenTelemetry", _OF_SERVICES),
    ({"log"}, "a log of network requests (HAR)", "the Performance panel of the browser saves a profile that is read"),
    ({"constants", "events"}, "a log of Chrome's network (netlog)",
     "the Performance panel of the browser saves a profile that is read"),
    ({"header", "javascriptStack"}, "a report of Node.js, one moment", _OF_NODE),
    ({"snapshot", "strings"}, "a heap snapshot of V8",
     "node --heap-prof APP.js, and Allocation sampling in the DevTools, record a profile that is read"),
)  # fmt: skip
# Spans of Jaeger, as it saves and serves them; of Zipkin, as a list.
_JAEGER = {"data", "total", "limit", "offset", "errors"}
_ZIPKIN = compiled_later(rb"\s*\[\s*\{[^{}]{0,500}\"traceId\"\s*:")
_VPROF = {"m", "c", "h", "p", "version"}


def known_text(data: memoryview) -> tuple[str, str]:
    """Returns (what a file is that begins so, what to give instead), "" where nothing is known. data: all of it, if it
    is JSON, or some of its begin."""
    head = bytes(data[:HEAD])
    # Compiled here: they are needed for what nothing reads, and take a hundredth of the time of a small conversion.
    begins = ((re.compile(begin.encode("latin-1"), re.DOTALL), known) for begin, *known in _BEGINS)
    found = next(((what, advice) for pattern, (what, advice) in begins if pattern.match(head)), ("", ""))
    if found[0] or not is_json(data):
        return found
    members = set(members_seen(data)[0])
    if members == {"recording"} and b'"jdk.' in head:
        return "what jfr print says of a recording", _OF_JAVA
    if {"data"} <= members <= _JAEGER and b'"traceID"' in head:
        return "spans of Jaeger", _OF_SERVICES
    if _ZIPKIN.match(head):
        return "spans of Zipkin", _OF_SERVICES
    if {"version"} < members <= _VPROF:
        return "a profile of vprof", _OF_PYTHON
    return next(((what, advice) for held, what, advice in _MEMBERS if held <= members), ("", ""))


def refuse_known(source: Source) -> None:
    """Raises FormatError for what is known as something else."""
    what, advice = known_text(source.data)
    if what:
        raise FormatError(f"this is {what}: {advice}", 0, path=source.path)
