"""The report: what was lost, repaired or guessed. Every kind is declared here, with its advice."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from traceferry.common.shown_text import encodable, shown

SHOWN_DETAILS = 3
MOST = (1 << 63) - 1  # JSON is written with 64 bits
Severity = Literal["info", "loss", "error"]


class Kind(NamedTuple):
    """severity: info (nothing is missing), loss (something is missing or cut), error (the input is damaged); advice:
    what the user can do; of_output: the recording has it, but the output's format or viewer does not take it,
    which is information; is_told: whether commands print it without --verbose, though it is information: an option
    had no effect, or the output is not what the user expects."""

    severity: Severity
    title: str
    advice: str = ""
    of_output: bool = False
    is_told: bool = False


# What trace_processor counts of errors and losses.
STATISTICS_SQL = (
    "SELECT name, idx, value, description FROM stats WHERE value > 0 AND severity IN ('error', 'data_loss')"
)
KINDS: dict[str, Kind] = {
    # reading
    "compression_damaged": Kind("error", "the input's compression is damaged", "what comes before the damage is read"),
    "decompress_limited": Kind("loss", "an input holds more compressed data than is decompressed",
        "--decompress-limit SIZE allows more, if you trust the input"),
    "files_read": Kind("info", "files that the recording names were read"),
    "file_refused": Kind("loss", "files that the recording names were not read",
        "give them as inputs, or with --symbols, if you trust them"),
    "truncated": Kind("error", "the file ends inside a buffer",
        "everything before the end is kept; record again if the end matters"),
    "bad_buffer": Kind("error", "bytes between two buffers that belong to no buffer were skipped",
        "the file is damaged at this offset"),
    "extents_repaired": Kind("error", "a buffer's size is damaged; it was read until the next buffer",
        "the file is damaged at this offset; nothing else of it seems lost"),
    "bad_record": Kind("error", "an unreadable record ended its buffer early",
        "the file is damaged at this offset; later buffers are kept"),
    "cut_record": Kind("loss", "a buffer ends inside a record",
        "the recorder counts typed events too short (16 bytes each) and cuts the end of such buffers; record fewer "
        "typed events or larger buffers to lose less"),
    "maybe_cut": Kind("info",
        "typed events are counted too short by all known recorders; as many records may be missing at buffers' ends",
        "16 bytes for each typed event"),
    "duplicate_buffer": Kind("info", "a buffer that several inputs hold was read once",
        "a forked child also writes its parent's buffers"),
    "fork_pid_unknown": Kind("info", "a forked child's process id is not in its file; an unused number is used instead",
        "the child recorded only into the buffer inherited from its parent"),
    "merged_times": Kind("info",
        "a profile of many recordings holds their call trees: no events, counters or heaps, and no order in time",
        "each call path is one call or one sample that stands for all of it; -o FOLDER writes "
        "tables of the rest", of_output=True),
    "empty_buffer": Kind("info", "a buffer without a thread was skipped"),
    "stray_argument": Kind("loss", "a call argument without its function entry was dropped"),
    "pid_unknown": Kind("info", "this version of the format does not record the process id",
        "the smallest thread id of the file is used instead"),
    "path_cut": Kind("loss", "call paths lack their callers, or their functions: the recorder had no memory for more",
        "raise global_allocator_max and per_thread_allocator_max in the recorder's options"),
    # calls
    "calls_summed": Kind("info",
        "the recorder added the calls of each call path up: one call stands for all of them, and nothing has a time",
        "how many they are is in the call's argument; FDR mode records each call"),
    "callees_longer": Kind("info", "call paths that are shorter than their callees together were made as long",
        "calls that had not ended, and those left by an exception or longjmp, have no time of their own"),
    "ticks_negative": Kind("loss", "call paths with a negative time count as none",
        "an exception or longjmp left them: the recorder subtracts what they called twice"),
    "ticks_unscaled": Kind("info", "a tick of the processor's counter is shown as a nanosecond",
        "the file does not tell how fast it ticks: --cycle-frequency does, or an FDR log of the same machine"),
    "entry_missing": Kind("loss",
        "calls whose entry is not in the recording are shown as open since the start of their thread",
        "a ring buffer that wrapped loses the oldest calls: raise buffer_max, or record for a shorter time"),
    "entry_lost": Kind("loss",
        "calls whose entry was lost inside the recording are shown from the latest time at which they can have begun",
        "records are missing between two buffers: raise buffer_size and buffer_max"),
    "leave_without_enter": Kind("info", "exits without a recorded entry were left out",
        "functions of the runtime that were running when the recording began, and wrappers"),
    "unwound": Kind("info", "calls closed by the exit of a function below them",
        "an exception, longjmp or thread exit leaves no exit records; if the program uses none, records were lost"),
    "open_at_end": Kind("info", "calls still open when the recording ended are drawn to its end",
        "the thread was still in them"),
    # time
    "clock_calibrated": Kind("info",
        "the header's clock frequency is wrong; the frequency measured from the file's wall times is used",
        "on some machines the recorder writes the maximum CPU frequency instead of the time-stamp counter's"),
    "clock_frequency_unusable": Kind("error",
        "the header's clock frequency is unusable; ticks are treated as nanoseconds"),
    "clock_backwards": Kind("info", "time stamps that ran backwards were raised to the one before",
        "the CPUs' counters are not in step"),
    "clock_unrelated": Kind("loss", "the inputs' clocks have no known relation; each starts at its own zero",
        "record them with the same clock"),
    "event_time_guessed": Kind("info", "events without a usable time stamp get the time of the preceding record",
        "some versions of the recorder never store the time of an event"),
    # samples and jitted code
    "pack_incomplete": Kind("loss", "the pack lacks what is found here: it cannot be written as packs have it"),
    "companion_missing": Kind("loss", "a file that the recording refers to was not found",
        "put it next to the recording, or give it as another input; without it, its functions have no names"),
    "companion_empty": Kind("loss",
        "a file that the recording refers to is empty: its process ended before it wrote what it had",
        "code that it compiled has no names: let it end as programs do, by itself, not by a signal or os._exit(), as "
        "children of CPython's multiprocessing do that are forked"),
    "companion_of_other_run": Kind("loss",
        "a file that the recording refers to is of a program that began after the recording ended",
        "in a container programs have the same numbers each time: put both into a pack before the next one runs, "
        "traceferry pack RECORDING"),
    "beside_refused": Kind("loss",
        "the store gives no list of the recording's folder: files that belong to the recording were not looked for",
        "let those who read the recordings list their folders, too"),
    "unfinalized": Kind("loss", "the recorder was killed before it finished the file",
        "what it had written is read; its header is incomplete"),
    "unknown_record": Kind("info", "records of an unknown type were skipped"),
    "unknown_event_id": Kind("loss", "records of events that the header does not describe were skipped"),
    "time_unknown": Kind("loss", "samples without a time stamp are placed at the start of the recording",
        "record with perf record -T or without --no-timestamp"),
    "thread_renamed": Kind("info", "threads changed their names while they were sampled; each has its last one",
        "the names and their times are states of the thread"),
    "map_stale": Kind("info",
        "a perf-PID.map is older than the process: another one of that number wrote it, and it names nothing"),
    "map_ambiguous": Kind("loss",
        "samples are at addresses that a perf-PID.map, which has no times, lists under several names, the last counts",
        "let the runtime dump its code, with times: docs/record has the options of each, as of Node.js node "
        "--perf-prof --interpreted-frames-native-stack"),
    "map_of_other_number": Kind("info",
        "a perf-PID.map of another number lists code of a process that has none of its own",
        "in a container, processes have numbers of their own: --symbols with the file's path takes it for the process "
        "whose code it lists"),
    "outside_namespace": Kind("loss",
        "samples of all tasks outside of the recorder's pid namespace, and idle ones, are one thread without names",
        "run perf outside of the container, or in one with the host's processes (--pid=host)"),
    "lost_samples": Kind("loss", "the kernel dropped records because the recorder was too slow",
        "record with a larger buffer (perf record -m 4M) or a lower frequency (-F)"),
    "wait_ends_late": Kind("info",
        "waits last until the thread's next record, since the recording does not tell when it went on",
        "record with perf record --switch-events, or all threads of the machine (-a)"),
    "switch_missing": Kind("loss", "the recording lacks context switches: what threads did before them is unknown",
        "not all kernels record what wakes an idle processor: perf record --switch-events tells of all"),
    "stacks_guessed": Kind("info", "waits without a stack have that of the thread's sample before, as was asked for"),
    "switches_left_out": Kind("loss", "context switches were left out, since their event was sampled with a frequency: "
        "what is shown as one time on a CPU, or as one wait, may be several",
        "record without -F: perf record -e cpu-clock -e sched:sched_switch,sched:sched_waking"),
    "processors_left_out": Kind("info",
        "only some of the machine's processors were recorded: what threads did while on none of them is unknown, but "
        "for waits of which a wake there tells",
        "record all of them: perf record -a, or without -C"),
    "interval_incomplete": Kind("info",
        "events that begin or end something lack the other half: the last begins last to the end of their threads"),
    "samples_filtered": Kind("info", "the recorder's filter left samples out, as it was asked to"),
    "lbr_full": Kind("loss",
        "stacks that the processor recorded (--call-graph lbr) are as deep as it can record: callers may be missing",
        "record with --call-graph dwarf, or with frame pointers (-g)"),
    "off_cpu_no_times": Kind("info",
        "samples of time off the processor (--off-cpu) have no times: they stand at the recording's end",
        "perf adds the waits of a thread up by stack; perf record --switch-events tells when each was"),
    "traces_not_decoded": Kind("loss", "hardware traces are not decoded",
        "perf inject --itrace makes samples of them, which are read; perf script --itrace prints them"),
    "no_samples": Kind("loss", "the recording has no samples: there is nothing to show"),
    "counts_only": Kind("info", "the recording has counts, and no samples: they are shown as counters",
        "samples tell which functions the counts are of: perf record -g"),
    "counts_after_end": Kind("info", "counts after the last time that perf stat wrote are left out",
        "they are of the time in which it ended"),
    "profile_of_samples": Kind("info", "the profile for compilers counts samples: no branches were recorded",
        "record branches where the processor can: perf record -b", of_output=True),
    "profile_without_lines": Kind("info", "code without lines is not in the profile for compilers (bytes)",
        "compile with -g (clang: -gmlt -fdebug-info-for-profiling), and give the file with --symbols", of_output=True),
    "records_not_read": Kind(
        "loss", "parts of the recording are not read", "perf script, perf report and perf stat report read them"
    ),
    "sample_parts_not_read": Kind("info", "parts of samples are not read", "perf script and perf report read them"),
    "event_never_ran": Kind("info", "a counter never ran: the processor had no place for it, or the machine "
        "does not count it; it has no weight",
        "record fewer events at once"),
    "throttled": Kind("loss", "the kernel throttled sampling because it took too much time",
        "record with a lower frequency (-F)"),
    "deferred_missing": Kind("loss", "the deferred user part of stacks is missing from the recording"),
    "unwinding_not_done": Kind("loss",
        "user stacks of this processor architecture are not unwound: these samples show the leaf and the kernel frames",
        "record with frame pointers: perf record --call-graph fp (or -g)"),
    "unwinding_truncated": Kind("loss",
        "stacks are truncated because too little of them was recorded; they are shown under (truncated stack)",
        "record more of each stack: perf record --call-graph dwarf,16384, up to 65528"),
    "unwinding_not_copied": Kind("loss",
        "stacks are truncated at memory that the kernel does not copy: a function with large local variables has not "
        "written to all of them; they are shown under (truncated stack)",
        "a larger copy ends there, too: compile with -fno-omit-frame-pointer and record with perf record -g"),
    "unwinding_no_information": Kind("loss", "stacks are truncated because some code has no unwind information",
        "give the recorded file with --symbols, or the file tree with --sysroot"),
    "unwinding_contradiction": Kind("loss",
        "stacks are truncated because the unwind information contradicts the recorded data"),
    "unwinding_damaged": Kind("loss", "unreadable records of unwind information of files were ignored"),
    "unwinding_guessed": Kind("info",
        "frames were found by frame pointer because there is no unwind information: a caller may be missing"),
    "stack_cut": Kind("loss", "frames beyond the 16,384 nearest to the leaf were left out"),
    "clock_differs": Kind("loss",
        "samples and jitted code are on different clocks: code may be missed or mistaken where addresses are reused",
        "record with perf record -k CLOCK_MONOTONIC, or give their difference with --clock-offset"),
    "clock_aligned": Kind("info",
        "samples and jitted code are on different clocks; they were aligned by evidence in both recordings",
        "record with perf record -k CLOCK_MONOTONIC to be exact, or give --clock-offset"),
    "mappings_left_out": Kind("loss", "addresses that were remapped too often are shown as [unknown]",
        "record for a shorter time, or fewer processes"),
    "code_of_other_process": Kind("info", "jitted code of a process that has no samples",
        "check that both are of the same run"),
    "line_bias": Kind("info", "line tables with offsets 0x40 too high were corrected",
        "V8 and LLVM write them for old versions of perf; other tools show wrong lines"),
    "file_name_repaired": Kind("info",
        "damaged file names of line tables were replaced by the one in the function's name",
        "V8 writes from freed memory there"),
    "line_table_dropped": Kind("loss", "unreadable line tables were left out", "their functions keep their names"),
    "bytecode_lines": Kind("info",
        "line tables of V8's baseline code were left out: their offsets are into bytecode, not machine code",
        "such frames show the position of their function; other tools show wrong lines"),
    "sizes_simplified": Kind("info",
        "the tree of code sizes leaves out inlined functions of some code objects, which have too many"),
    "inlines_cut": Kind("loss", "inlined calls deeper than 128 were left out"),
    "inline_cycle": Kind("error", "the callers of an inlined function form a cycle; the stack ends there"),
    "sources_embedded": Kind("info", "the text of source files of this machine is in the output",
        "do not share the output if that text is confidential", is_told=True),
    "source_outside": Kind("info",
        "source files that the recording names were left out: they are outside the folders of --embed-sources",
        "--embed-sources DIR adds a folder; repeat the option for several", is_told=True),
    "source_replaced": Kind("info", "a source was embedded again with another text",
        "code loaded before keeps the earlier text"),
    "moved_unknown": Kind("info", "moves of code that was never loaded were skipped"),
    "dump_overwritten": Kind("loss",
        "several processes dumped their jitted code to one file: it is of the last one, the others have no names",
        "start each in a folder of its own; in containers every first process is the same number"),
    "dump_damaged": Kind("loss",
        "a dump of jitted code is damaged in the middle: it is read on from the next code that is whole",
        "a process that forks while it writes, as CPython's multiprocessing, has its children write the same bytes "
        "again: let it start them by spawn, multiprocessing.set_start_method(\"spawn\")"),
    "dump_unfinished": Kind("loss",
        "a dump of jitted code ends inside a record: its program ended, or was killed, while it wrote",
        "what is before that is whole; code that was compiled last may have no name"),
    "code_unfinished": Kind("info",
        "the code whose record was not finished has the name that is left of it, or that of the code before it that "
        "begins at the same place in the source",
        "its tier, its lines or its last bytes may be missing"),
    "code_outside": Kind("info",
        "code that was compiled before samples were recorded, or later, is shown at the beginning or the end of these"),
    "code_announced_late": Kind("info",
        "samples in code whose load was recorded only a moment later are attributed to that code",
        "compilers run new code before they write its record"),
    "code_unknown": Kind("info", "sampled addresses outside known code are shown as [unknown]",
        "usually frames of code built without frame pointers"),
    "code_unrecorded": Kind("info", "generated code that nothing names is shown by the memory in which it is",
        "let the runtime write the names of its code from the start of the program: docs/record has the options of "
        "each; of a program in a container, copy its /tmp/perf-*.map here, and --symbols FILE takes it; stubs and "
        "trampolines of some runtimes have no names"),
    "names_missing": Kind("loss", "functions of mapped files are shown by address for want of symbols",
        "give the recorded files: --sysroot / if they are still on this machine, --sysroot DIR for a copy of the "
        "recorded machine's files, or --symbols FILE; perf record --buildid-mmap writes build ids also with -z, -B or "
        "--no-buildid, and into pipes"),
    "names_partly_missing": Kind("info",
        "functions that the symbols of a file do not name are shown by where they begin, or by address",
        "install the package with its debug file, let --debuginfod download that, or give it: --symbols FILE"),
    "names_not_in_text": Kind("loss", "functions have no names in the text",
        "perf script takes names of the recorded files: run it where these are, with the packages of debug symbols, or "
        "convert the perf.data itself"),
    "kernel_names_missing": Kind("loss", "functions of the kernel are shown by address",
        "--sysroot / takes the running kernel for the recorded one, if both have the same release"),
    "kernel_elsewhere": Kind("info",
        "functions of the kernel are shown by address: it is not known to be the one that runs here",
        "convert on the machine that recorded, before it starts another kernel"),
    "guest_names_missing": Kind("info", "functions of a guest's kernel are shown as [guest kernel]",
        "copy the guest's /proc/kallsyms, read as root there, to guest.kallsyms beside the recording"),
    "file_is_another": Kind("loss",
        "functions may have the names of another file: what is at a path here is not what the program had there",
        "give what it had: --sysroot DIR, or --symbols FILE; or record with --buildid-mmap, which tells files apart"),
    "build_id_differs": Kind("info",
        "a library on this machine is not the recorded build: its functions are shown by address"),
    "counter_unknown": Kind("loss", "values of counters that the recording does not describe were left out",
        "its beginning may be missing"),
    # profiles of viewers
    "engine_reported": Kind("loss", "trace_processor reports errors or lost data",
        f'its statistics say more: traceferry query FILE "{STATISTICS_SQL}"'),
    "engine_too_old": Kind("loss", "this version of trace_processor lacks tables", "use a newer trace_processor_shell"),
    "engine_refused": Kind("error", "trace_processor could not answer all, in the words given here"),
    "tables_left_out": Kind("info", "tables of the trace have no place here", "traceferry query answers from them"),
    "samples_of_profiler": Kind("info",
        "samples that V8's profiler thread reported are shown at the main thread of its process"),
    "threads_merged": Kind("loss",
        "thread 0 and the one with the process's number are one thread: trace_processor takes 0 for no number, so that "
        "calls of one stand within those of the other",
        "number the threads from 1 in the trace, or otherwise than their process"),
    "slices_cut": Kind("info", "slices that end after the one that they are in end with it"),
    "values_not_finite": Kind("info", "values of counters that are no numbers were left out"),
    "bad_rows": Kind("error", "values that cannot be used, or rows that refer to nothing, were left out",
        "the profile is damaged there, or its writer has an error: the rest of the rows is kept"),
    "members_not_read": Kind("info", "parts of the profile have no place here, and were left out",
        "the viewer shows them in the profile itself"),
    "below_zero": Kind("loss",
        "amounts below 0 were left out, as those of a profile that is the difference of two",
        "give both profiles: traceferry compare BEFORE AFTER"),
    "call_times_missing": Kind("loss", "system calls are shown as instants: nothing tells how long they took",
        "strace -f -ttt -T -o x.txt APP writes it behind each"),
    "times_made": Kind("info",
        "the profile has no times: its stacks stand one after the other, as in a flame graph, each for its share"),
    "times_sorted": Kind("info", "samples whose times fell were sorted"),
    "time_missing": Kind("loss", "rows without a time or a size were left out"),
    "markers_open": Kind("info",
        "markers of which one end is not in the profile last from the first sample, or to the end, of their thread"),
    "calls_joined": Kind("info", "threads whose samples are exact became calls; calls that follow each other are one",
        "their times are exact, their number is the least possible: the format does not tell calls apart"),
    "not_symbolicated": Kind("loss", "functions of the profile are addresses, and nothing here names them"),
    # heaps
    "reference_dangles": Kind("info", "references of a heap shot to unlisted objects were left out"),
    "heap_depth_cut": Kind("info",
        "trees of heap shots are cut at a depth of 255 classes; deeper objects count for the class at that depth"),
    # symbols
    "symbols_damaged": Kind("loss", "unreadable parts of a symbol file were left out"),
    "names_kept_mangled": Kind("info",
        "names of functions are shown as the linker has them: demangled they would be too long"),
    "names_of_other_languages": Kind("info",
        "names of functions in Swift or D, or in C++ that LLVM's demangler refuses, are shown as the linker has them",
        "pip install 'traceferry[languages]' installs a library that reads them"),
    "symbols_not_converted": Kind("info",
        "a file of symbols could not be made GSYM; it was read itself, by each worker"),
    "symbols_not_cached": Kind("info", "symbols could not be kept in the cache, and were made again",
        "give --symbol-cache a folder or bucket that all workers can write"),
    "symbols_by_offset": Kind("info", "functions of a missing library were looked up by file offset",
        "names are wrong where the linker (lld) maps code at another address: give the library, too"),
    "text_copied": Kind("info", "code that a program had copied into huge pages was taken for that of its file"),
    "program_unverified": Kind("info",
        "programs that logs are named after were used: logs hold no build id (unverified)",
        "--symbols FILE says that it is the recorded one"),
    "program_unused": Kind("info", "programs that logs are named after were not used",
        "--symbols FILE uses a program, whatever its age, if the recorded functions are in its instrumentation map"),
    "files_unverified": Kind("info",
        "recorded files without a build id were taken for those that are at their paths now (unverified)",
        "they are older than the recording; --sysroot / says that they are the recorded ones, "
        "perf record --buildid-mmap records build ids"),
    "debuginfod_downloads": Kind("info", "files were downloaded from debuginfod servers, into the cache of elfutils"),
    "debuginfod_failed": Kind("info", "debuginfod servers failed, or sent what is not taken",
        "what failed once is not asked again; the next conversion tries anew", is_told=True),
    "symbol_server_failed": Kind("info", "a symbol server failed, or sent what is not taken",
        "see that it runs, and its address: that of samply load has a path with a token", is_told=True),
    "debug_files_missing": Kind("loss",
        "files with a part of the debug information were not found: inlined functions and some names are missing",
        "put them beside the program, or give their folder with --symbols; where the program was built, "
        "dwp -e PROGRAM -o PROGRAM.dwp packs .dwo files"),
    "symbols_used": Kind("info", "files that gave functions their names"),
    "symbols_unused": Kind("info", "files or folders of --symbols gave nothing",
        "a file must be of a recorded build: traceferry symbols FILE prints its build id", is_told=True),
    "no_symbols": Kind("info", "functions are shown by number",
        "give the program that was recorded: --symbols BINARY (not stripped); repeat the option for each shared "
        "object"),
    "function_without_name": Kind("info", "functions for which the symbols have no name are shown by number",
        "the binary may be stripped"),
    # what was asked for
    "input_repeated": Kind("info", "an input given more than once is read once", is_told=True),
    "min_duration_unused": Kind("info", "--min-duration has no effect: the recording has no calls", is_told=True),
    "short_calls_summed": Kind("info", "short calls are summed in place, so that totals stay: fewer than there were",
        "those that stand for several say for how many; --range and a larger budget show each call", is_told=True),
    "arguments_summed": Kind("info", "arguments of calls that were summed are left out"),
    "budget_exceeded": Kind("info", "more events than asked for: short calls alone can be summed",
        "--range and --thread make less of the recording", is_told=True),
    "size_exceeded": Kind("info", "the output is larger than asked for: short calls alone can be summed",
        "--range and --thread make less of the recording", of_output=True, is_told=True),
    # what an exporter cannot carry
    "depth_cut": Kind("info", "calls deeper than the viewer keeps were left out",
        "the other outputs keep every depth; --range narrows the recording", of_output=True),
    "moved_apart": Kind("info", "more events at one time than the viewer keeps are a nanosecond later, 512 at a time",
        "the other outputs have them at their times", of_output=True),
    "callstack_cut": Kind("info", "stacks deeper than the viewer's limit lost frames in their middle",
        "the other outputs keep every depth", of_output=True),
    "weights_dropped": Kind("info",
        "this output format has no weights: its call tree counts samples, and changes of calls, not what they weigh or "
        "how long they last, so that shares differ",
        "-o X.json.gz has the times and weights; the stack chart is exact in both", of_output=True, is_told=True),
    "columns_dropped": Kind("info", "this output format cannot carry everything in the recording", of_output=True),
    "table_not_carried": Kind("info", "this output format has no place for a table of the recording", of_output=True),
    "counters_dropped": Kind("info", "counters that never change are not in the output",
        "info shows all", of_output=True),
    "sources_hidden": Kind("info",
        "source texts are in the output, but the viewer shows them only in a plugin that is off by default",
        "enable org.chromium.V8 on the page Plugins, or open "
        "ui.perfetto.dev/#!/?enablePlugins=org.chromium.V8", of_output=True),
    "root_names_dropped": Kind("info", "names of heap roots are not in the output",
        "Perfetto stores only the kind of a root", of_output=True),
    "root_unknown": Kind("info", "objects that no recorded root keeps alive are shown as roots of an unknown kind",
        "the recorder does not report every root", of_output=True),
    "output_empty": Kind("info", "the output has nothing in it: its format has no place for what the recording has",
        "-o X.json.gz, -o X.pftrace and -o X.html hold what is no call, sample or allocation: events, counters, heap "
        "snapshots", of_output=True, is_told=True),
    "output_too_large": Kind("info", "the output is larger than the viewer can be expected to open",
        of_output=True, is_told=True),
    "profile_not_embedded": Kind("info", "the page does not hold the file for a viewer: it would be too large",
        "the command makes that file; --min-duration or --range make less of the recording",
        of_output=True, is_told=True),
    "page_narrowed": Kind("info", "small call paths are joined in the page's tree",
        "--range, --thread or --min-duration show more of a part; the files for the viewers hold "
        "everything", of_output=True),
    "tracepoints_joined": Kind("info", "the samples of more than 10 tracepoints are shown as one weight",
        "info has each; record fewer of them (-e) for a weight of each", of_output=True),
    "page_counters_cut": Kind("info", "the page lists fewer counters than there are",
        "info --json and the files for the viewers hold all", of_output=True),
    "sums_saturated": Kind("info", "sums beyond 64 bits are shown as 9223372036854775807, the largest number",
        "times or sizes of the recording are damaged", of_output=True),
}  # fmt: skip


@dataclass(frozen=True)
class Issue:
    """One kind of loss or repair, with its sum over all places.

    Parameters
    ----------
    kind : str
        Its name, as FORMATS.md lists them.
    count : int
        How often, in units that the title tells.
    offset : int, optional
        Of the first one in the input, in bytes.
    details : tuple of str
        What is said of each place.
    advice : str
        What the user can do, or "".
    """

    kind: str
    count: int
    offset: int | None
    details: tuple[str, ...]
    advice: str

    @property
    def detail(self) -> str:
        """Returns the first details as one text, and how many more there are."""
        more = f"; and {len(self.details) - SHOWN_DETAILS} more" if len(self.details) > SHOWN_DETAILS else ""
        return "; ".join(self.details[:SHOWN_DETAILS]) + more

    @property
    def severity(self) -> Severity:
        """Whether data is damaged ("error"), lost ("loss"), or neither ("info")."""
        return KINDS[self.kind].severity

    @property
    def title(self) -> str:
        """The issue in a sentence."""
        return KINDS[self.kind].title

    def as_json(self) -> dict[str, Any]:
        """Returns all of it as plain data, as `convert --report` writes it."""
        keys = ("kind", "severity", "count", "offset", "title", "detail", "details", "advice")
        return {key: getattr(self, key) for key in keys}

    def as_text(self) -> str:
        """Returns a line, as the commands print it."""
        place = f", first at offset {self.offset}" if self.offset is not None else ""
        detail = f": {self.detail}" if self.detail else ""
        advice = f" ({self.advice})" if self.advice else ""
        return shown(f"{self.severity}: {self.title}{detail} [{self.kind}, {n_times(self.count)}{place}]{advice}")


def n_times(count: int) -> str:
    return "1 time" if count == 1 else f"{count} times"


class Problems:
    """The problems of an input that is read before there is a report: of each kind, of which there may be millions,
    their number, the first offset, and what is said of that."""

    def __init__(self) -> None:
        self._of_kind: dict[str, tuple[int, int | None, str]] = {}

    def add(self, kind: str, count: int = 1, offset: int | None = None, detail: str = "") -> None:
        """Adds so many problems, the first at `offset`. kind: a key of KINDS."""
        n, first, of_first = self._of_kind.get(kind, (0, offset, detail))
        if offset is not None and (first is None or offset < first):
            first, of_first = offset, detail
        self._of_kind[kind] = n + count, first, of_first

    def note(self, report: Report, where: str) -> None:
        for kind, (count, offset, detail) in self._of_kind.items():
            report.note(kind, count, offset=offset, where=where, detail=detail)


def _joined(texts: Iterable[str]) -> str:
    first = [*texts]
    more = [f"and {len(first) - SHOWN_DETAILS} more"] if len(first) > SHOWN_DETAILS else []
    return "; ".join([*first[:SHOWN_DETAILS], *more])


Notes = dict[tuple[str, str], tuple[int, int | None, str, str | None]]
# The arguments of `Report.note`.
Note = tuple[str, int, int | None, str, str, str | None]


class Report:
    """A report of what was lost, repaired or guessed: iterating gives the issues.

    Noting the same kind at the same place again replaces the count, so a thread that is loaded twice is counted once.

    Parameters
    ----------
    base : Report, optional
        The issues begin with those that it began with, or had when it was sealed, and it gets those that are noted
        here.
    """

    def __init__(self, base: Report | None = None) -> None:
        self._base = base
        self._first: Notes | None = None
        self._notes: Notes = {}
        self._records: list[list[Note]] = []
        if base is not None:
            self._first = base._notes if base._first is None else base._first
            self._notes |= self._first

    def note(
        self,
        kind: str,
        count: int = 1,
        *,
        offset: int | None = None,
        where: str = "",
        detail: str = "",
        advice: str | None = None,
    ) -> None:
        """Adds to the report, or takes back.

        Parameters
        ----------
        kind : str
            A key of KINDS.
        count : int, default 1
            How often; 0 withdraws an earlier note.
        offset : int, optional
            In the input, in bytes.
        where : str, default ""
            Identifies the place.
        detail : str, default ""
            What is said of it.
        advice : str, optional
            Given instead of the one that is declared.
        """
        if kind not in KINDS:
            raise KeyError(f"undeclared kind of issue: {kind}")
        for record in self._records:
            record.append((kind, count, offset, where, encodable(detail), advice))
        if count > 0:
            self._notes[kind, where] = (count, offset, encodable(detail), advice)
        else:
            self._notes.pop((kind, where), None)
        if self._base is not None:
            self._base.note(kind, count, offset=offset, where=where, detail=detail, advice=advice)

    @contextmanager
    def recorded(self) -> Iterator[list[Note]]:
        """Gives what is noted inside, in its order."""
        record: list[Note] = []
        self._records.append(record)
        try:
            yield record
        finally:
            # By identity: two records can be equal.
            self._records = [one for one in self._records if one is not record]

    def places(self, *kinds: str) -> set[str]:
        """Returns the places of these kinds of issues."""
        return {where for kind, where in self._notes if kind in kinds}

    def of_place(self, kind: str, is_there: Callable[[str], bool]) -> tuple[str, str]:
        """Returns (detail, advice) of the first note of a kind at a place that is wanted; "" where there is none."""
        for (of, where), (_, _, detail, advice) in self._notes.items():
            if of == kind and is_there(where):
                return detail, KINDS[kind].advice if advice is None else advice
        return "", ""

    def notes_of(self, kind: str) -> Iterator[tuple[str, str]]:
        """Yields (detail, advice) of each note of a kind."""
        for (of, _), (_, _, detail, advice) in self._notes.items():
            if of == kind:
                yield detail, KINDS[kind].advice if advice is None else advice

    def seal(self) -> None:
        """Reports that are based on this one begin with the issues of now."""
        if self._first is None:
            self._first = dict(self._notes)

    def __iter__(self) -> Iterator[Issue]:
        """Yields the issues in the order of their declaration, each kind once."""
        noted = list(self._notes.items())  # at once: another thread may note something
        for kind, declared in KINDS.items():
            notes = [note for (of, _), note in noted if of == kind]
            if notes:
                offsets = [offset for _, offset, _, _ in notes if offset is not None]
                yield Issue(
                    kind,
                    min(sum(count for count, _, _, _ in notes), MOST),
                    min(offsets, default=None),
                    tuple(dict.fromkeys(detail for _, _, detail, _ in notes if detail)),
                    _joined({advice: None for *_, advice in notes if advice is not None}) or declared.advice,
                )

    @property
    def lossy(self) -> bool:
        """Whether the input has lost or damaged data."""
        return any(issue.severity != "info" and not KINDS[issue.kind].of_output for issue in self)

    @property
    def damaged(self) -> bool:
        """Whether the input is damaged."""
        return any(issue.severity == "error" for issue in self)
