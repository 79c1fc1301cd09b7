"""What was lost, repaired or guessed on the way: every kind of it is declared here, with its advice."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

SHOWN_DETAILS = 3
Severity = Literal["info", "loss", "error"]


@dataclass(frozen=True)
class Kind:
    """severity: info (nothing is missing), loss (something is missing or cut), error (the input is damaged);
    of_output: the recording has it, but the output's format or viewer does not take it."""

    severity: Severity
    title: str
    advice: str
    of_output: bool = False


KINDS: dict[str, Kind] = {
    # reading
    "compression_damaged": Kind("error", "the input's compression is damaged", "what comes before the damage is read"),
    "decompress_limited": Kind(
        "loss",
        "an input holds more compressed data than is decompressed",
        "--decompress-limit SIZE allows more, if you trust the input",
    ),
    "files_read": Kind("info", "files that the recording names were read", ""),
    "file_refused": Kind(
        "loss",
        "files that the recording names were not read",
        "give them as inputs, or with --symbols, if you trust them",
    ),
    "truncated": Kind(
        "error", "the file ends inside a buffer", "everything before the end is kept; record again if the end matters"
    ),
    "bad_buffer": Kind(
        "error", "bytes between two buffers that are not a buffer were skipped", "the file is damaged at this offset"
    ),
    "extents_repaired": Kind(
        "error",
        "a buffer's size is damaged; it was read until the next buffer",
        "the file is damaged at this offset; nothing else of it seems lost",
    ),
    "bad_record": Kind(
        "error",
        "an unreadable record ended its buffer early",
        "the file is damaged at this offset; later buffers are kept",
    ),
    "cut_record": Kind(
        "loss",
        "a buffer ends inside a record",
        "the recorder counts typed events too short (16 bytes each) and cuts the end of such buffers; "
        "record fewer typed events or larger buffers to lose less",
    ),
    "maybe_cut": Kind(
        "info",
        "typed events are counted too short by all known recorders; as many records may be missing at buffers' ends",
        "16 bytes for each typed event",
    ),
    "duplicate_buffer": Kind(
        "info", "a buffer that several inputs hold was read once", "a forked child also writes its parent's buffers"
    ),
    "fork_pid_unknown": Kind(
        "info",
        "a forked child's process id is not in its file; a free number stands for it",
        "the child recorded only in the buffer that it has from its parent",
    ),
    "empty_buffer": Kind("info", "a buffer without a thread was skipped", ""),
    "stray_argument": Kind("loss", "a call argument without its function entry was dropped", ""),
    "pid_unknown": Kind(
        "info",
        "this version of the format does not record the process id",
        "the smallest thread id of the file stands for it",
    ),
    # calls
    "entry_missing": Kind(
        "loss",
        "calls whose entry is not in the recording are shown as open since the start of their thread",
        "a ring buffer that wrapped loses the oldest calls: raise buffer_max, or record for a shorter time",
    ),
    "entry_lost": Kind(
        "loss",
        "calls whose entry was lost inside the recording are shown from the last moment that it may have been",
        "records are missing between two buffers: raise buffer_size and buffer_max",
    ),
    "leave_without_enter": Kind(
        "info",
        "exits from functions that were never entered were left out",
        "functions of the runtime that were running when the recording began, and wrappers",
    ),
    "unwound": Kind(
        "info",
        "calls closed by the exit of a function below them",
        "an exception, longjmp or thread exit leaves no exit records; if the program uses none, records were lost",
    ),
    "open_at_end": Kind(
        "info", "calls still open when the recording ended are drawn to its end", "the thread was still in them"
    ),
    # time
    "clock_calibrated": Kind(
        "info",
        "the header's clock frequency is wrong; the one measured between the wall times in the file is used",
        "on some machines the recorder takes the maximum CPU frequency for that of the time-stamp counter",
    ),
    "clock_frequency_unusable": Kind(
        "error", "the header's clock frequency is unusable; ticks are taken for nanoseconds", ""
    ),
    "clock_backwards": Kind(
        "info", "time stamps that ran backwards were raised to the one before", "the CPUs' counters are not in step"
    ),
    "clock_unrelated": Kind(
        "loss",
        "the inputs' clocks have no known relation; each starts at its own zero",
        "record them with the same clock",
    ),
    "event_time_guessed": Kind(
        "info",
        "events without a usable time stamp are placed at the record before them",
        "some versions of the recorder never store the time of an event",
    ),
    # samples and jitted code
    "companion_missing": Kind(
        "loss",
        "a file that the recording refers to is not here",
        "put it beside the recording, or name it as a further input; without it, its functions have no names",
    ),
    "unfinalized": Kind(
        "loss",
        "the recorder was killed before it finished the file",
        "what it had written is read; its header lacks facts",
    ),
    "unknown_record": Kind("info", "records of an unknown type were skipped", ""),
    "unknown_event_id": Kind(
        "loss", "records of events that the header does not describe were skipped", ""
    ),
    "time_unknown": Kind(
        "loss",
        "samples without a time stamp stand at the start of the recording",
        "record with perf record -T or without --no-timestamp",
    ),
    "lost_samples": Kind(
        "loss",
        "the kernel dropped records because the recorder was too slow",
        "record with a larger buffer (perf record -m 4M) or a lower frequency (-F)",
    ),
    "throttled": Kind(
        "loss", "the kernel held samples back because they took too much time", "record with a lower frequency (-F)"
    ),
    "deferred_missing": Kind(
        "loss", "the user's part of stacks was to be recorded later, and is not in the recording", ""
    ),
    "unwinding_not_done": Kind(
        "loss",
        "user stacks of this kind of processor are not unwound: these samples show the leaf and the kernel's part",
        "record with frame pointers: perf record --call-graph fp (or -g)",
    ),
    "unwinding_truncated": Kind(
        "loss",
        "stacks are cut because not all of them was recorded; they stand under (truncated stack)",
        "record more of each stack: perf record --call-graph dwarf,16384, up to 65528",
    ),
    "unwinding_no_information": Kind(
        "loss",
        "stacks are cut because there is no unwind information for a part of the code",
        "give the recorded file with --symbols, or the file tree with --sysroot",
    ),
    "unwinding_contradiction": Kind(
        "loss", "stacks are cut because the unwind information and what was recorded contradict each other", ""
    ),
    "unwinding_damaged": Kind("error", "records of unwind information cannot be read, and are not used", ""),
    "unwinding_guessed": Kind(
        "info", "frames were found by frame pointer, for want of unwind information: a caller may be missing", ""
    ),
    "stack_cut": Kind("loss", "frames beyond the first 1024 of a stack were left out, at its root", ""),
    "clock_differs": Kind(
        "loss",
        "samples and jitted code are on different clocks: code may be missed or mistaken where addresses are reused",
        "record with perf record -k CLOCK_MONOTONIC, or say how far they are apart with --clock-offset",
    ),
    "clock_aligned": Kind(
        "info",
        "samples and jitted code are on different clocks; they were aligned by what both recordings tell",
        "record with perf record -k CLOCK_MONOTONIC to be exact, or give --clock-offset",
    ),
    "mappings_left_out": Kind(
        "loss",
        "addresses over which too many mappings lie, one after the other, are shown as [unknown]",
        "record for a shorter time, or fewer processes",
    ),
    "code_of_other_process": Kind(
        "info", "jitted code of a process that the samples do not know", "is it of the same run?"
    ),
    "line_bias": Kind(
        "info",
        "line tables that point 0x40 bytes too far were corrected",
        "V8 and LLVM write them so for old versions of perf; other tools show lines that are off",
    ),
    "file_name_repaired": Kind(
        "info",
        "damaged file names of line tables were replaced by the one in the function's name",
        "V8 writes from freed memory there",
    ),
    "line_table_dropped": Kind("loss", "unreadable line tables were left out", "their functions keep their names"),
    "bytecode_lines": Kind(
        "info",
        "line tables of V8's baseline code count bytes of bytecode, not of machine code, and were left out",
        "such frames have their function's place only; other tools show lines that are wrong",
    ),
    "sizes_simplified": Kind(
        "info", "the tree of code sizes leaves out inlined functions of some code objects: there are too many", ""
    ),
    "inlines_cut": Kind("loss", "inlined calls deeper than 128 were left out", ""),
    "inline_cycle": Kind("error", "an inlined function's callers went in a circle; the stack was ended", ""),
    "sources_embedded": Kind(
        "info", "the text of source files of this machine is in the output", "do not share it if it should not be read"
    ),
    "source_outside": Kind(
        "info",
        "source files that the recording names were left out: they are in no folder of --embed-sources",
        "--embed-sources DIR names a folder, and others if it is given again",
    ),
    "source_replaced": Kind(
        "info", "a source was embedded again with another text", "code loaded before keeps the text before"
    ),
    "moved_unknown": Kind("info", "moves of code that was not loaded were skipped", ""),
    "code_announced_late": Kind(
        "info",
        "samples in code that its compiler announced only a moment later are shown as that code",
        "compilers run new code before they have written its record",
    ),
    "code_unknown": Kind(
        "info",
        "addresses in samples that lie in no known code are shown as [unknown]",
        "usually frames of code that was built without frame pointers",
    ),
    "build_id_differs": Kind(
        "info", "a library here is not the one that was recorded: its functions are shown by address", ""
    ),
    "counter_unknown": Kind(
        "loss", "values of counters that the recording does not describe were left out", "is its beginning missing?"
    ),
    # heaps
    "reference_dangles": Kind(
        "info", "references of a heap shot to objects that it does not list were left out", ""
    ),
    "heap_depth_cut": Kind(
        "info",
        "in the trees of heap shots, objects held by more than 255 others of changing classes in a row count for the "
        "last of these",
        "",
    ),
    # symbols
    "symbols_damaged": Kind("loss", "parts of a file of symbols that cannot be read were left out", ""),
    "symbolic_missing": Kind(
        "info",
        "addresses in a binary were looked up without the library symbolic, which is slower",
        "pip install 'traceferry[symbols]' installs it; the answers are the same",
    ),
    "symbols_by_offset": Kind(
        "info",
        "functions of a library that is not here were looked up by their offset in its file",
        "some linkers (lld) load code elsewhere, and the names are wrong then: give the library, too",
    ),
    "no_symbols": Kind(
        "info",
        "functions are shown by number",
        "give the program that was recorded: --symbols BINARY (not stripped), and once more for each shared object",
    ),
    "function_without_name": Kind(
        "info", "functions for which the symbols have no name are shown by number", "is the binary stripped?"
    ),
    # what was asked for
    "input_repeated": Kind("info", "an input that is given twice is read once", ""),
    "min_duration_unused": Kind("info", "--min-duration has no effect: the recording has no calls", ""),
    # what an exporter cannot carry
    "depth_cut": Kind(
        "loss",
        "calls deeper than the viewer keeps were left out",
        "the other outputs keep every depth; --range narrows the recording",
        of_output=True,
    ),
    "callstack_cut": Kind(
        "loss",
        "stacks deeper than the viewer can take lost the frames in their middle",
        "the other outputs keep every depth",
        of_output=True,
    ),
    "weights_dropped": Kind(
        "loss",
        "this output format has no sample weights: its call tree counts changes, not time",
        "use the processed Firefox format for exact times; the stack chart is exact in both",
        of_output=True,
    ),
    "columns_dropped": Kind("loss", "this output format cannot carry everything in the recording", "", of_output=True),
    "table_not_carried": Kind(
        "loss", "this output format has no place for a table of the recording", "", of_output=True
    ),
    "counters_dropped": Kind(
        "info", "counters that never change are not in the output", "info shows all", of_output=True
    ),
    "sources_hidden": Kind(
        "info",
        "source texts are in the output, but the viewer shows them only in a plugin that is off at first",
        "turn on org.chromium.V8 on the page Plugins, or open ui.perfetto.dev/#!/?enablePlugins=org.chromium.V8",
        of_output=True,
    ),
    "root_names_dropped": Kind(
        "info",
        "names of what keeps objects of a heap alive are not in the output",
        "Perfetto has kinds of roots only",
        of_output=True,
    ),
    "root_unknown": Kind(
        "info",
        "objects that no recorded root keeps alive are shown as roots of an unknown kind",
        "the recorder does not report every root",
        of_output=True,
    ),
    "output_too_large": Kind(
        "loss", "the viewer can hardly be expected to open an output of this size", "", of_output=True
    ),
    "sums_saturated": Kind(
        "loss",
        "sums beyond 64 bits are shown as 9223372036854775807, the largest number",
        "times or sizes of the recording are damaged",
        of_output=True,
    ),
    # the machine
    "kernels_interpreted": Kind(
        "info",
        "the kernels run interpreted, which is much slower",
        "install with a C compiler present",
    ),
}


@dataclass(frozen=True)
class Issue:
    """One kind of loss with its sum over all places: count, the first offset if any, details in words."""

    kind: str
    count: int
    offset: int | None
    details: tuple[str, ...]
    advice: str

    @property
    def detail(self) -> str:
        """The first of the details."""
        more = f"; and {len(self.details) - SHOWN_DETAILS} more" if len(self.details) > SHOWN_DETAILS else ""
        return "; ".join(self.details[:SHOWN_DETAILS]) + more

    @property
    def severity(self) -> Severity:
        return KINDS[self.kind].severity

    @property
    def title(self) -> str:
        return KINDS[self.kind].title

    def as_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "severity": self.severity,
            "count": self.count,
            "offset": self.offset,
            "title": self.title,
            "detail": self.detail,
            "details": self.details,
            "advice": self.advice,
        }

    def as_text(self) -> str:
        place = f", first at offset {self.offset}" if self.offset is not None else ""
        detail = f": {self.detail}" if self.detail else ""
        advice = f" ({self.advice})" if self.advice else ""
        return f"{self.severity}: {self.title}{detail} [{self.kind}, {self.count} times{place}]{advice}"


class Report:
    """Collects issues. Noting the same kind at the same place again replaces the count, so a thread that is
    produced twice is counted once."""

    def __init__(self) -> None:
        self._notes: dict[tuple[str, str], tuple[int, int | None, str, str | None]] = {}

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
        """kind: a key of KINDS; count: 0 takes back what was noted before; where: what tells this place from others;
        advice: instead of the declared one."""
        if kind not in KINDS:
            raise KeyError(f"undeclared kind of issue: {kind}")
        if count > 0:
            self._notes[kind, where] = (count, offset, detail, advice)
        else:
            self._notes.pop((kind, where), None)

    def __iter__(self) -> Iterator[Issue]:
        """The issues in the order of their declaration, each kind once."""
        for kind, declared in KINDS.items():
            notes = [note for (of, _), note in self._notes.items() if of == kind]
            if notes:
                offsets = [offset for _, offset, _, _ in notes if offset is not None]
                yield Issue(
                    kind,
                    sum(count for count, _, _, _ in notes),
                    min(offsets, default=None),
                    tuple(dict.fromkeys(detail for _, _, detail, _ in notes if detail)),
                    next((advice for *_, advice in notes if advice is not None), declared.advice),
                )

    @property
    def lossy(self) -> bool:
        """Whether the input has lost or damaged data."""
        return any(issue.severity != "info" and not KINDS[issue.kind].of_output for issue in self)

    @property
    def damaged(self) -> bool:
        """Whether the input is damaged."""
        return any(issue.severity == "error" for issue in self)
