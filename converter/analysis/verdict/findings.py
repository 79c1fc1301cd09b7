"""What may be wrong with a recording: each finding with the share of the samples that it concerns, and with advice that
can be followed, made of the recording's own command, runtime and files."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import PurePath

from traceferry.analysis.totals.nameless import GENERATED
from traceferry.analysis.verdict.case import Advice, Case, Finding
from traceferry.analysis.verdict.facts import KERNEL_GROUP, UNKNOWN
from traceferry.analysis.verdict.runtimes import (
    CLOCK,
    Compiler,
    Runtime,
    compiler_of,
    is_asked,
    naming,
    runtime_of,
    unwinding,
    with_names_of,
)
from traceferry.common.recorder import CALL_GRAPH, DWARF, DWARF_MOST, Command
from traceferry.common.report import KINDS
from traceferry.files.named_files import IS_ANOTHERS
from traceferry.model import Trace
from traceferry.model.categories import NATIVE
from traceferry.symbolication.public_servers import DEBUGINFOD
from traceferry.unwinding.endings import OF_NO_FILE, TRUNCATED, unwound_file

# Shares of the samples from which on a finding is worth a line.
NAMES_FROM, STACKS_FROM, LOST_FROM, RUNTIME_FROM = 0.05, 0.2, 0.01, 0.3
# Of fewer samples, shares say little.
MOST_FEW = 10
# Each library gets a line if it has this share of the samples.
LIBRARY_FROM = 0.02
# Kinds of issues that are told, or not, by the share of the samples that they concern.
JUDGED = {
    "names": ("names_missing", "names_partly_missing", "kernel_names_missing", "kernel_elsewhere", "code_unrecorded",
              "not_symbolicated", "build_id_differs", "companion_of_other_run", "dump_unfinished"),
    "stacks": ("unwinding_truncated", "unwinding_no_information", "unwinding_contradiction", "lbr_full", "stack_cut",
               "unwinding_not_done"),
    "lost": ("lost_samples", "throttled"),
}  # fmt: skip
DEFAULT_DUMP = 8192
# The rank of losses that have no finding of their own, and of what is told where nothing is lost.
OTHER, LAST = 5, 6
# Of fewer samples, shares may be off by more than 10 percentage points: twice the standard error of a half.
ENOUGH = 100
OFTEN = "20000"
BUFFER = "-m"
_OF_PACKAGE = re.compile(r".*/(?:site|dist)-packages/.*")
PACK = "traceferry pack "


def findings(case: Case) -> Iterator[Finding]:
    """Yields what is wrong with a recording, in any order."""
    of_all: tuple[Callable[[Case], Finding | None], ...]
    of_all = (
        _damaged, _no_samples, _few_samples, _counts_only, _clock, _names, _functions, _stacks, _no_stacks, _lost,
        _no_symbols,
    )  # fmt: skip
    found = [finding for find in of_all if (finding := find(case)) is not None]
    yield from found
    told = {kind for finding in found for kind in finding.covers} | {
        kind for kinds in JUDGED.values() for kind in kinds
    }
    for kind, issue in case.issues.items():
        if issue.severity != "info" and not KINDS[kind].of_output and kind not in told:
            advice = (Advice(kind, issue.advice),) if issue.advice else ()
            yield Finding(kind, OTHER, issue.severity, issue.title, None, advice, (kind,))


def percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= 0.01 else f"{100 * share:.1f} %"


# ---------------------------------------------------------------- the recording as a whole


def _damaged(case: Case) -> Finding | None:
    errors = [issue for issue in case.issues.values() if issue.severity == "error"]
    if not errors:
        return None
    first = errors[0]
    place = f" at offset {first.offset}" if first.offset is not None else ""
    again = Advice(
        "damaged", "what can be read is shown; record again for the rest", case.command.text if case.command else ""
    )
    return Finding("damaged", 0, "error", f"the file is damaged{place}: {first.title}", None, (again,),
                   tuple(issue.kind for issue in errors))  # fmt: skip


def _no_samples(case: Case) -> Finding | None:
    issue = case.issues.get("no_samples")
    if issue is None:
        nothing = Finding("no_samples", 1, "loss", "the recording holds nothing to show", None)
        return nothing if _is_empty(case) else None
    advice = []
    # A number of events between samples says nothing of other events.
    command = case.command.plain.without("-c") if case.command is not None else None
    # perf takes a clock by itself where the processor counts nothing.
    event = (command.value("-e") if command is not None else None) or case.trace.attributes.get("events", "")
    if command is not None and not event.startswith(("cpu-clock", "task-clock")):
        text = "the processor's clock counts on every machine, also on virtual ones"
        advice.append(Advice("no_samples", text, command.with_options({"-e": "cpu-clock"}).text))
    elif command is not None and command.value("-F") is None and not command.is_count:
        text = "sample a program that ends soon more often"
        advice.append(Advice("no_samples", text, command.with_options({"-F": OFTEN}).text))
    if command is not None:
        advice.append(_where_it_waits("no_samples", case, command))
    why = f": {issue.detail}" if issue.detail else ""
    return Finding("no_samples", 1, "loss", f"the recording has no samples{why}", None, tuple(advice), ("no_samples",))


def _few_samples(case: Case) -> Finding | None:
    """So few that shares are rough: of a program that ended soon, or that waited."""
    n, event, command = case.facts.samples - case.facts.idle, case.trace.sampling, case.command
    if not 0 < n < ENOUGH or event is None or event.kind not in ("clock", "hardware") or command is None:
        return None
    advice = []
    rate = command.value("-F") or "0"
    if event.period == 0 and rate.isdecimal() and int(rate) < int(OFTEN):
        text = "sample more often, or let the program work for longer"
        advice.append(Advice("few_samples", text, command.with_options({"-F": OFTEN}).text))
    if n * event.interval_ns < (case.trace.end_ts - case.trace.start_ts) / 2:
        advice.append(_where_it_waits("few_samples", case, command))
    points = round(100 / n**0.5)
    besides = f" besides {case.facts.idle:,} idle ones" if case.facts.idle else ""
    what = f"{n} sample{'s' * (n != 1)} of {event.name}{besides}"
    headline = f"only {what}: shares may be off by {points} percentage points"
    return Finding("few_samples", LAST, "info", headline, None, tuple(advice))


def _where_it_waits(kind: str, case: Case, command: Command) -> Advice:
    waits = {"-k": "CLOCK_MONOTONIC", "-g": None, "--switch-events": None, "-e": "sched:sched_switch,cpu-clock"}
    # perf leaves the kernel out by itself where a user may not see it, who may not record tracepoints either.
    modifiers = case.trace.sampling.name.partition(":")[2] if case.trace.sampling is not None else ""
    as_root = ", as root" if "u" in modifiers and "k" not in modifiers else ""
    text = f"if it waits more than it runs, record where it waits{as_root}"
    return Advice(kind, text, command.without("-F").with_options(waits).text)


def _counts_only(case: Case) -> Finding | None:
    # Counts may stand beside samples of another input.
    if "counts_only" not in case.issues or case.facts.samples:
        return None
    n_counters = sum(len(process.counters) for process in case.trace.processes)
    headline = (
        f"{n_counters} counter{'s' * (n_counters != 1)} of perf stat, and no samples: no functions, and no stacks"
    )
    advice: tuple[Advice, ...] = ()
    if case.command is not None:
        text = "samples tell which functions the counts are of"
        samples = Advice("counts_only", text, case.command.with_options({"-g": None}).text)
        advice = samples, _where_it_waits("counts_only", case, case.command)
    return Finding("counts_only", OTHER, "info", headline, None, advice, ("counts_only",))


def _is_empty(case: Case) -> bool:
    trace = case.trace
    recorded = (thread.n_records for _, thread in trace.threads)
    of_processes = (
        bool(process.heap_snapshots) or any(len(counter.values) for counter in process.counters)
        for process in trace.processes
    )  # fmt: skip
    tables = len(trace.code), len(trace.coverage)
    return not (case.facts.samples or any(recorded) or any(of_processes) or any(tables))


def _clock(case: Case) -> Finding | None:
    kinds = [kind for kind in ("clock_differs", "clock_unrelated") if kind in case.issues]
    if not kinds:
        return None
    issue = case.issues[kinds[0]]
    advice = Advice("clock", "record samples and code on one clock", case.record_with(CLOCK)) if case.is_perf else (
        Advice("clock", issue.advice))  # fmt: skip
    return Finding("clock", 2, "loss", issue.title, None, (advice,), tuple(kinds))


def _lost(case: Case) -> Finding | None:
    issue = case.issues.get("lost_samples")
    if issue is None or not case.facts.samples:
        return None
    share = issue.count / (issue.count + case.facts.samples)
    if share < LOST_FROM:
        return None
    used = case.command.value(BUFFER) if case.command is not None else None
    larger = _twice(used) if used else "4M"
    advice = Advice("lost", "a larger buffer loses less", case.record_with({BUFFER: larger}))
    headline = f"{percent(share)} of the records were lost: record with {BUFFER} {larger}"
    return Finding("lost", 3, "loss", headline, share, (advice,), JUDGED["lost"])


def _twice(size: str) -> str:
    digits = size.rstrip("BKMG")
    return f"{2 * int(digits)}{size[len(digits) :]}" if digits.isdecimal() else "16M"


def _no_symbols(case: Case) -> Finding | None:
    issue = case.issues.get("no_symbols")
    if issue is None:
        return None
    advice = Advice("no_symbols", "give the program that was recorded", case.read_with("--symbols PROGRAM"))
    return Finding(
        "names_missing", 3, "loss", "functions have numbers instead of names", None, (advice,), ("no_symbols",)
    )


# ---------------------------------------------------------------- names


def _names(case: Case) -> Finding | None:
    groups = {name: n for name, n in case.facts.nameless.items() if name != UNKNOWN}
    share = case.share(sum(groups.values()))
    if share < NAMES_FROM or case.facts.samples < MOST_FEW:
        return None
    elsewhere = (
        f": it was recorded on another machine ({case.trace.attributes['hostname']})" if case.is_elsewhere else ""
    )
    advice = [
        found
        for name, n in groups.items()
        if case.share(n) >= LIBRARY_FROM and (found := _advice_for(case, name, percent(case.share(n)))) is not None
    ]
    headline = f"names are missing for {percent(share)} of the samples{elsewhere}"
    refused = case.trace.report.places("file_refused")
    are_told = all(any(shlex.quote(path) in one.command for one in advice) for path in refused)
    covers = (*JUDGED["names"], "file_refused") if are_told else JUDGED["names"]
    return Finding("names_missing", 3, "loss", headline, share, tuple(advice), covers)


def _advice_for(case: Case, name: str, share: str) -> Advice | None:
    """Returns what gives the functions of a library, of the kernel or of generated code their names."""
    report = case.trace.report
    if name.startswith(GENERATED):
        return _advice_for_generated(case, name, share)
    if name == KERNEL_GROUP:
        issue = case.issues.get("kernel_names_missing") or case.issues.get("kernel_elsewhere")
        return Advice("names_missing", f"the kernel ({share}): {issue.advice}") if issue is not None else None
    # What reads libraries takes long to import: only where one is missing.
    from traceferry.libraries.recorded_files import IS_AN_IMAGE

    for kind in ("names_missing", "names_partly_missing"):
        detail, advice = report.of_place(kind, lambda place: place.rpartition(" ")[0] == name)
        if kind == "names_partly_missing" and advice == KINDS[kind].advice:
            advice = _of_its_file(case, name) or advice
        if detail and advice == IS_AN_IMAGE:
            return Advice("names_missing", f"{name} ({share}): {advice}")
        if detail:
            command = _names_command(case, name, kind, advice)
            if command.startswith(PACK):
                text = "where it was recorded, put it into a pack with the names, and read that here"
                return Advice("names_missing", text, command)
            why = _why_nameless(case, name, kind, detail, advice)
            if why.endswith(": --symbols FILE") and command.endswith(" --symbols FILE"):
                why = why.removesuffix(": --symbols FILE")
            return Advice("names_missing", f"{name} ({share}): {why}", command)
    return None


def _advice_for_generated(case: Case, name: str, share: str) -> Advice | None:
    """Returns what names code that no file holds: a list of it that is here, or the runtime, of which `_functions`
    tells more where it is known."""
    maps = sorted(case.trace.report.places("map_of_other_number"))
    if maps:
        text = f"{name} ({share}): a process in a container lists its code by its number there"
        return Advice(
            "names_missing", text, case.read_with(" ".join(f"--symbols {shlex.quote(path)}" for path in maps))
        )
    others = _lists_of_others(case)
    if others:
        text = f"{name} ({share}): another user's program wrote its names, which are read where you name the file"
        given = (f"{'--symbols ' * path.endswith('.map')}{shlex.quote(path)}" for path in others)
        return Advice("names_missing", text, case.read_with(" ".join(given)))
    gone = case.issues.get("companion_of_other_run")
    if gone is not None:
        text = f"{name} ({share}): {gone.detail}; record again, and put both into a pack before that"
        return Advice("names_missing", text, f"{PACK}{case.inputs}")
    issue = case.issues.get("code_unrecorded")
    if issue is None:
        return None
    compiler = _compiler(case)
    if compiler is not None and not is_asked(case.command, compiler):
        again = with_names_of(case.command, compiler) if case.command is not None else None
        text = compiler.otherwise or f"let {compiler.title} write its names with {' '.join(compiler.environment)}"
        where = f"{name} ({share}), by {compiler.title}"
        return Advice("names_missing", f"{where}: {text}", again.text if again is not None else "")
    if _functions(case) is not None:
        return None
    named = _naming(case)
    if named is not None:
        return Advice("names_missing", f"{name} ({share}): {named.text}", named.command)
    return Advice("names_missing", f"{name} ({share}): {issue.advice}")


def _lists_of_others(case: Case) -> list[str]:
    """Returns the jitdumps and perf maps that are not read because of their owner."""
    report = case.trace.report
    paths = sorted(path for path in report.places("file_refused") if path.endswith((".dump", ".map")))
    return [path for path in paths if IS_ANOTHERS in report.of_place("file_refused", path.__eq__)[0]]


def _why_nameless(case: Case, name: str, kind: str, detail: str, advice: str) -> str:
    """Returns why a library's functions have no names, or what is known to give them some."""
    why = detail.partition("): ")[2]
    if why:
        return why
    if kind == "names_partly_missing" and advice == KINDS[kind].advice:
        return "it is stripped: build it without -s" if _is_own(case, name) else "its symbols do not name them"
    return advice


def _of_its_file(case: Case, name: str) -> str:
    """Returns what gives a library's file names of which few addresses were asked, "" where that is not known."""
    path = _path_of(case, name)
    if case.is_pack or case.is_elsewhere or not os.path.isabs(path):
        return ""
    # What reads libraries takes long to import.
    from traceferry.symbolication.choose import ADDRESSES_OF
    from traceferry.symbolication.packages import advice_for

    has_debug_file = case.trace.report.of_place("symbols_used", path.__eq__)[0].startswith(f"{name}: {ADDRESSES_OF} ")
    return "" if has_debug_file else advice_for(path)


def _is_own(case: Case, name: str) -> bool:
    """Whether a file is of the user's, and of no distribution."""
    system = ("/usr/", "/bin/", "/sbin/", "/opt/")
    return _category_of(case.trace, name) == NATIVE and not _path_of(case, name).startswith(system)


def _path_of(case: Case, name: str) -> str:
    """Returns the path of a library's file, "" where none was read."""
    read = case.trace.report.places("symbols_used")
    return next((path for path in sorted(read) if PurePath(path).name == name), "")


def _names_command(case: Case, name: str, kind: str, advice: str) -> str:
    """Returns what to type for a library: record again with its build id, read on the machine that recorded, or with a
    file of its symbols."""
    trace = case.trace
    names = [trace.strings[row] for row in trace.libs["name"].tolist()]
    has_build_id = bool(trace.libs["code_id"][names.index(name)] >= 0) if name in names else False
    if kind == "names_missing" and case.is_elsewhere and not case.is_pack:
        return f"{PACK}{case.inputs}"
    is_wanted = kind == "names_missing" and not has_build_id
    if is_wanted and case.command is not None and not case.command.has("--buildid-mmap"):
        return case.record_with({"--buildid-mmap": None})
    if kind == "names_partly_missing":
        is_general = advice == KINDS[kind].advice
        has_server = not _is_own(case, name) if is_general else "--debuginfod" in advice
        # A command that works where DEBUGINFOD_URLS is not set, too.
        return case.read_with(f"--debuginfod {DEBUGINFOD}" if has_server else "--symbols FILE")
    # What reads libraries takes long to import: only where one is missing.
    from traceferry.libraries.recorded_files import IS_AT_ITS_PATH

    return case.read_with("--sysroot /" if advice == IS_AT_ITS_PATH else "--symbols FILE-OR-DIR")


def _category_of(trace: Trace, library: str) -> str:
    """Returns the category of the first frame of a library, "" where it has none."""
    libs, categories = trace.libs["name"].tolist(), trace.categories["name"].tolist()
    for lib, category in zip(trace.frames["lib"].tolist(), trace.frames["category"].tolist(), strict=True):
        if lib >= 0 and category >= 0 and trace.strings[libs[lib]] == library:
            return trace.strings[categories[category]]
    return ""


def _functions(case: Case) -> Finding | None:
    """Samples of a runtime, and no function of the language that it executes."""
    found = _runtime(case)
    if found is None or case.facts.languages:
        return None
    runtime, file = found
    n = sum(n for other, n in case.facts.runtimes.items() if other == file or runtime_of(other) == runtime)
    n -= _n_compiled(case)
    share = case.share(n if _compiler(case) is not None else max(n, sum(case.facts.generated.values())))
    advice = _naming(case)
    if share < RUNTIME_FROM or advice is None:
        return None
    headline = f"{runtime.language} functions have no names: {percent(share)} of the samples are in {runtime.title}"
    return Finding("functions_missing", 4, "info", headline, share, (advice,), ("code_unrecorded",))


def _n_compiled(case: Case) -> int:
    """Returns how many samples are in functions of the user's that a compiler of Python made: not in packages that were
    installed, whose callers count."""
    compiled = case.facts.compiled.items()
    return sum(n for name, n in compiled if not _OF_PACKAGE.fullmatch(_path_of(case, name)))


def _is_compiled(case: Case) -> bool:
    """Whether the functions that were sampled are Python's as they were compiled to C. Cut stacks have few of them."""
    is_whole = _cut_share(case) < STACKS_FROM and not _has_none(case)
    return case.share(_n_compiled(case)) >= (1 - RUNTIME_FROM if is_whole else NAMES_FROM)


def _runtime(case: Case) -> tuple[Runtime, str] | None:
    """Returns the runtime that was sampled most, or that the command runs, and its file's name."""
    program = case.command.program if case.command is not None else ()
    files = [*case.facts.runtimes, *(PurePath(word).name for word in program)]
    return next(((runtime, file) for file in files if (runtime := runtime_of(file)) is not None), None)


def _compiler(case: Case) -> Compiler | None:
    """Returns the library that compiled the code which nothing names; None where the runtime did."""
    return _any_compiler(case) if case.share(sum(case.facts.generated.values())) >= NAMES_FROM else None


def _any_compiler(case: Case) -> Compiler | None:
    """Returns a library that compiles code, if one was loaded and no runtime that compiles code was sampled more."""
    found = _runtime(case)
    if found is not None and found[0].language != "Python":
        return None
    return compiler_of(case.trace.strings[row] for row in case.trace.libs["name"].tolist())


def _naming(case: Case) -> Advice | None:
    """Returns what names the functions of a runtime, None where they have names."""
    found = _runtime(case)
    if found is None or case.command is None or case.facts.languages or _is_compiled(case):
        return None
    runtime, file = found
    loaded = [case.trace.strings[row] for row in case.trace.libs["name"].tolist()]
    named, hindrance = naming(case.command, runtime, file, loaded), runtime.hindered_by(loaded)
    since = f" ({runtime.program} or newer)" if runtime.program else ""
    text = f"let {runtime.title} write the names of its functions{since}"
    text += f", without {hindrance}, which keeps it from compiling them" if hindrance else ""
    return Advice("functions_missing", text, named.text) if named is not None else None


# ---------------------------------------------------------------- stacks


def _stacks(case: Case) -> Finding | None:
    facts, share = case.facts, _cut_share(case)
    if share < STACKS_FROM or facts.user < MOST_FEW or not case.is_perf or _has_none(case):
        return None
    found = _by_ending(case) if facts.endings else _by_frame_pointers(case)
    what, advice = found
    headline = f"{percent(share)} of the stacks are cut{what}"
    return Finding("stacks_cut", 3, "loss", headline, share, advice, JUDGED["stacks"])


def _cut_share(case: Case) -> float:
    facts = case.facts
    n_cut = facts.short + facts.adrift + facts.deepest + sum(facts.endings.values())
    return n_cut / facts.user if facts.user else 0.0


def _by_frame_pointers(case: Case) -> tuple[str, tuple[Advice, ...]]:
    """Stacks of recordings with -g: code without frame pointers ends them."""
    facts = case.facts
    if facts.deepest > facts.short + facts.adrift:
        text = "the kernel ends stacks at 127 frames"
        return ": they are too deep", (Advice("stacks_cut", text, "sysctl kernel.perf_event_max_stack=1023"),)
    found, named = _runtime(case), _naming(case)
    if 2 * facts.in_language > facts.short:
        # Copied stacks do not help: code that a runtime compiles has no unwind information.
        title = found[0].title if found is not None else "the runtime"
        again = naming(case.command, *found) if found is not None and case.command is not None else None
        advice = (Advice("stacks_cut", f"let {title} keep frame pointers", again.text),) if again is not None else ()
        return f": what {title} compiled keeps no frame pointers", advice
    if found is not None and found[0].call_graph == "fp" and facts.languages and case.command is not None:
        return _by_runtime(case.command, *found)
    graph = found[0].call_graph if found is not None and found[0].call_graph != "fp" else DWARF
    if found is not None and named is not None and case.share(sum(facts.generated.values())) >= RUNTIME_FROM:
        return f": {found[0].title} was not asked for frame pointers and names", (named,)
    if named is not None and graph in named.command:
        return f": record with {CALL_GRAPH} {graph}", (named,)
    if 2 * facts.in_memory > facts.short + facts.adrift and graph == DWARF:
        compiler = _any_compiler(case)
        who = f"what {compiler.title} compiled" if compiler is not None else "code that no file holds"
        return f": {who} keeps no frame pointers", ()
    text = "code without frame pointers ends them; perf can copy the stacks instead"
    return f": record with {CALL_GRAPH} {graph}", (Advice("stacks_cut", text, case.record_with({CALL_GRAPH: graph})),)


def _by_runtime(command: Command, runtime: Runtime, file: str) -> tuple[str, tuple[Advice, ...]]:
    """Stacks of a runtime whose compiled functions keep frame pointers, in which copied stacks would end."""
    again, unwound = naming(command, runtime, file), unwinding(command, runtime)
    if again is not None:
        return f": {runtime.title} was not asked for frame pointers", (
            Advice("stacks_cut", f"let {runtime.title} keep frame pointers", again.text),
        )
    text = f"perf can copy the stacks, if {runtime.title} writes how those of its functions are unwound"
    advice = (Advice("stacks_cut", text, unwound.text),) if unwound is not None else ()
    return f": {runtime.title}, or what it calls, keeps no frame pointers", advice


def _by_ending(case: Case) -> tuple[str, tuple[Advice, ...]]:
    """Stacks that perf copied: too little of them, or code that cannot be unwound."""
    name = max(case.facts.endings, key=lambda ending: case.facts.endings[ending])
    if name == TRUNCATED and "lbr_full" in case.issues:
        text = "the processor records no deeper stacks"
        advice = Advice("stacks_cut", text, case.record_with({CALL_GRAPH: DWARF}))
        return f": record with {CALL_GRAPH} {DWARF}", (advice,)
    if name == TRUNCATED:
        size = _dump_size(case.command)
        if size >= DWARF_MOST:
            return ": they are deeper than perf copies", ()
        graph = f"dwarf,{min(2 * size, DWARF_MOST)}"
        text = f"more than {size} bytes of each are needed"
        return f": record with {CALL_GRAPH} {graph}", (
            Advice("stacks_cut", text, case.record_with({CALL_GRAPH: graph})),
        )
    file = unwound_file(name)
    where = f" in {file}" if file else ""
    detail, text = case.trace.report.of_place("unwinding_no_information", lambda place: place.endswith(f" {file}"))
    compiler = _any_compiler(case) if file == OF_NO_FILE else None
    if compiler is not None:
        # Runtimes write unwind information, if they are asked for names.
        return f": what {compiler.title} compiled has no unwind information", ()
    named, found = _naming(case) if file == OF_NO_FILE else None, _runtime(case)
    if named is not None:
        return where, (named,)
    if file == OF_NO_FILE and found is not None and case.facts.languages and case.command is not None:
        return _by_compiled_code(case.command, *found)
    command = case.read_with("--symbols FILE-OR-DIR") if text == KINDS["unwinding_no_information"].advice else ""
    return where, (Advice("stacks_cut", text, command),) if detail and text else ()


def _by_compiled_code(command: Command, runtime: Runtime, file: str) -> tuple[str, tuple[Advice, ...]]:
    """Copied stacks that end in functions of a runtime, which have names."""
    why = f": what {runtime.title} compiled has no unwind information"
    again, text = unwinding(command, runtime), f"let {runtime.title} write how its functions are unwound"
    if again is None:
        again, text = naming(command, runtime, file), f"let {runtime.title} keep frame pointers in it"
    if again is not None:
        return why, (Advice("stacks_cut", text, again.text),)
    if runtime.call_graph == "fp":
        text = f"{runtime.title} keeps frame pointers in it"
        return why, (Advice("stacks_cut", text, command.with_options({"-g": None}).text),)
    return why, ()


def _dump_size(command: Command | None) -> int:
    graph = command.value(CALL_GRAPH) if command is not None else None
    size = (graph or "").partition(",")[2]
    return int(size) if size.isdecimal() else DEFAULT_DUMP


def _has_none(case: Case) -> bool:
    return case.trace.attributes.get("call_graph") == "none" or (
        0 < case.facts.user == case.facts.flat and case.trace.attributes.get("call_graph") is None
    )


def _no_stacks(case: Case) -> Finding | None:
    """A recording without -g tells where time was spent, not from where; of a tracepoint not even that."""
    if not case.is_perf or not case.facts.samples or not _has_none(case):
        return None
    found, named = _runtime(case), _naming(case)
    if found is not None and named is not None:
        return Finding("no_stacks", 4, "info", "the recording has no call stacks", 1.0, (named,))
    is_whole = found is not None and found[0].call_graph == "fp"
    options: dict[str, str | None] = {"-g": None} if is_whole else {CALL_GRAPH: DWARF}
    words = "-g" if is_whole else f"{CALL_GRAPH} {DWARF}"
    advice = Advice("no_stacks", "stacks tell from where functions are called", case.record_with(options))
    return Finding("no_stacks", 4, "info", f"the recording has no call stacks: record with {words}", 1.0, (advice,))
