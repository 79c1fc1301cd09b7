"""Names that are missing: of which libraries, of code in memory, of the functions that a runtime executes."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Sequence
from pathlib import PurePath

from traceferry.analysis.totals.nameless import GENERATED
from traceferry.analysis.totals.sums_of_trace import process_of
from traceferry.analysis.verdict.case import (
    JUDGED,
    MOST_FEW,
    NAMES_FROM,
    RUNTIME_FROM,
    STACKS_FROM,
    Advice,
    Case,
    Finding,
    percent,
)
from traceferry.analysis.verdict.facts import KERNEL_GROUP, UNKNOWN
from traceferry.analysis.verdict.runtimes import (
    CPYTHON_COMPILES,
    DELETING,
    NO_LIST,
    Compiler,
    Runtime,
    compiler_of,
    has_inherited,
    inheriting,
    interpreted_only,
    is_asked,
    is_run_by,
    is_told,
    naming,
    runtime_of,
    start,
    with_graph,
    with_names_of,
    with_variables,
)
from traceferry.common.issue_kinds import ENDED_AT_STUBS, KINDS, STUBS_APART
from traceferry.common.patterns import compiled_later
from traceferry.common.recorder import Command
from traceferry.files.named_files import IS_ANOTHERS
from traceferry.model import Trace
from traceferry.model.categories import NATIVE
from traceferry.symbolication.packages import OF_NO_SYMBOL, advice_for
from traceferry.symbolication.public_servers import DEBUGINFOD

# Each library gets a line if it has this share of the samples.
LIBRARY_FROM = 0.02
_OF_PACKAGE = compiled_later(r".*/(?:site|dist)-packages/.*")
PACK = "traceferry pack "
_NOT_FOUND = "which was not found"
# Kinds of issues of jitdumps that processes mapped, and that are not read.
_LOST_DUMPS = ("companion_missing", "companion_empty", "companion_of_other_run")
VDSO = "[vdso]"
A_LIBRARY = "a library of this process"
# Of the samples with code that nothing names, those in it that CPython's trampolines have fewer of.
TRAMPOLINES_BELOW = 0.1


def names(case: Case) -> Finding | None:
    """Samples whose innermost function has no name."""
    groups = {name: n for name, n in case.facts.nameless.items() if name != UNKNOWN}
    share = case.share(sum(groups.values()))
    if share < NAMES_FROM or case.facts.samples < MOST_FEW:
        return None
    elsewhere = (
        f": it was recorded on another machine ({case.trace.attributes['hostname']})" if case.is_elsewhere else ""
    )
    large = {name: n for name, n in groups.items() if case.share(n) >= LIBRARY_FROM}
    advice = [one for name, n in large.items() for one in _advice_for(case, name, percent(case.share(n)))]
    headline = f"names are missing for {percent(share)} of {case.the_samples}{elsewhere}"
    refused = case.trace.report.places("file_refused")
    are_told = all(any(shlex.quote(path) in one.command for one in advice) for path in refused)
    covers = (*JUDGED["names"], "file_refused") if are_told else JUDGED["names"]
    if any(_NOT_FOUND in one.text for one in advice):
        covers = (*covers, "companion_missing")
    return Finding("names_missing", 3, "loss", headline, share, tuple(advice), covers)


def of_other_files(case: Case) -> Finding | None:
    """Samples whose innermost function has the name that another file has there: nothing in a picture tells."""
    paths = {PurePath(path).name: path for path, _ in case.trace.report.notes_of("file_is_another")}
    n_of = {name: n for name, n in case.facts.leaves.items() if name in paths}
    share = case.share(sum(n_of.values()))
    if share < NAMES_FROM or case.facts.samples < MOST_FEW:
        return None
    large = ", ".join(f"{name} ({percent(case.share(n))})" for name, n in n_of.items() if case.share(n) >= LIBRARY_FROM)
    text = f"{large}: give what the program had, --sysroot DIR or --symbols FILE; or record what tells files apart"
    advice = Advice("file_is_another", text, case.record_with({"--buildid-mmap": None}))
    headline = f"names may be wrong for {percent(share)} of {case.the_samples}: they are of other files of these paths"
    return Finding("file_is_another", 3, "loss", headline, share, (advice,), ("file_is_another",))


def unmapped(case: Case) -> Finding | None:
    """Samples at addresses of which the recording does not tell what is there."""
    issue, share = case.issues.get("code_unmapped"), case.share(case.facts.nameless.get(UNKNOWN, 0))
    if issue is None or share < NAMES_FROM or case.facts.samples < MOST_FEW:
        return None
    headline = f"{percent(share)} of {case.the_samples} are at addresses where the recording has no code"
    return Finding("code_unmapped", 3, "loss", headline, share, (Advice("code_unmapped", issue.advice),), (issue.kind,))


def _advice_for(case: Case, name: str, share: str) -> list[Advice]:
    """Returns what gives the functions of a library, of the kernel or of generated code their names."""
    if "names_not_in_text" in case.issues:
        return [Advice("names_missing", f"{name} ({share}): {case.issues['names_not_in_text'].advice}")]
    if name.startswith(GENERATED):
        return _advice_for_generated(case, name, share)
    if name == KERNEL_GROUP:
        issue = case.issues.get("kernel_names_missing") or case.issues.get("kernel_elsewhere")
        return [Advice("names_missing", f"the kernel ({share}): {issue.advice}")] if issue is not None else []
    of_library = _advice_for_library(case, name, share)
    return [of_library] if of_library is not None else []


def _advice_for_library(case: Case, name: str, share: str) -> Advice | None:
    report = case.trace.report
    # What reads libraries takes long to import: only where one is missing.
    from traceferry.libraries.recorded_files import IS_AN_IMAGE, IS_TEMPORARY

    for kind in ("names_missing", "names_partly_missing"):
        detail, advice = report.of_place(kind, lambda place: place.rpartition(" ")[0] == name)
        if kind == "names_partly_missing" and advice == KINDS[kind].advice:
            advice = _of_its_file(case, name) or advice
        if detail and advice in (IS_AN_IMAGE, IS_TEMPORARY):
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


def _advice_for_generated(case: Case, name: str, share: str) -> list[Advice]:
    """Returns what names code that no file holds: a list of it that is here, or what made it, in each program."""
    maps = sorted(case.trace.report.places("map_of_other_number"))
    if maps:
        text = f"{name} ({share}): a process in a container lists its code by its number there"
        return [
            Advice("names_missing", text, case.read_with(" ".join(f"--symbols {shlex.quote(path)}" for path in maps)))
        ]
    others = _lists_of_others(case)
    if others:
        text = f"{name} ({share}): another user's program wrote its names, which are read where you name the file"
        given = (f"{'--symbols ' * path.endswith('.map')}{shlex.quote(path)}" for path in others)
        return [Advice("names_missing", text, case.read_with(" ".join(given)))]
    gone = case.issues.get("companion_of_other_run")
    if gone is not None:
        text = f"{name} ({share}): {gone.detail}; record again, and put both into a pack before that"
        return [Advice("names_missing", text, f"{PACK}{case.inputs}")]
    if "code_unrecorded" not in case.issues:
        return []
    advice = []
    for part in sorted(case.by_program(), key=lambda part: -part.facts.nameless.get(name, 0)):
        of_part = case.share(part.facts.nameless.get(name, 0))
        if of_part >= LIBRARY_FROM:
            of = f"{name} of {part.program}" if part.program else name
            advice += _advice_for_made(part, f"{of} ({percent(of_part)})")
    return advice


def _advice_for_made(case: Case, what: str) -> list[Advice]:
    """Returns what names the code that one program has in memory; what `functions` tells of the only one is not told
    again."""
    compiler, made, lost = _compiler(case), None, _lost_dumps(case)
    if _ended_at_stubs(case):
        again = with_variables(case.command, (STUBS_APART,)) if case.command and case.command.program else None
        return [Advice("names_missing", f"{what}: {ENDED_AT_STUBS}", again.text if again is not None else "")]
    if compiler is None:
        files = (file for file in case.facts.generated if file)
        made = next(((runtime, file) for file in files if (runtime := runtime_of(file)) is not None), None)
    elif lost:
        return [Advice("names_missing", f"{what}, by {compiler.title}: its process {_why_not_read(case, lost)}")]
    elif not is_asked(case.command, compiler):
        again = with_names_of(case.command, compiler) if case.command is not None else None
        text = compiler.otherwise or f"let {compiler.title} write its names with {' '.join(compiler.environment)}"
        return [
            Advice("names_missing", f"{what}, by {compiler.title}: {text}", again.text if again is not None else "")
        ]
    if compiler is None and made is None and (library := library_of(case)):
        is_known = library != A_LIBRARY
        who = f"{library}, or what that uses," if is_known else f"{library}, not CPython,"
        return [
            Advice("names_missing", f"{what}: {who} compiled it, and may have an option to write a list of its names")
        ]
    if not case.program and _functions_of(case) is not None and made in (None, runtime_and_file(case)):
        return []
    named = naming_of(case, made)
    if named is not None:
        return [Advice("names_missing", f"{what}: {named.text}", named.command)]
    runtime = made[0] if made is not None and not case.facts.languages else None
    if runtime is not None and case.deletes_names and case.command is not None:
        text = f"{what}: {runtime.title} deleted the file of its names, as {DELETING} asks: record without it"
        return [Advice("names_missing", text, case.command.text)]
    if runtime is not None and (lost or (case.command is not None and is_told(case.command, runtime))):
        return [Advice("names_missing", f"{what}: {runtime.title} {_why_not_read(case, lost)}")]
    return [Advice("names_missing", f"{what}: {_advice_of_report(case)}")]


def _ended_at_stubs(case: Case) -> bool:
    """Whether .NET stopped the jitdump of one of the case's processes at stubs that it could not read."""
    mine = {str(one.pid) for one in case.trace.processes if case.program in ("", one.name)}
    _, advice = case.trace.report.of_place("dump_unfinished", lambda path: bool(_numbers_in(path) & mine))
    return advice == ENDED_AT_STUBS


def _lost_dumps(case: Case) -> list[str]:
    """Returns the jitdumps that the case's processes mapped, and that are not read: those with their numbers, or with
    numbers within a container, which no process has here."""
    mine = {str(one.pid) for one in case.trace.processes if case.program in ("", one.name)}
    others = {str(one.pid) for one in case.trace.processes} - mine
    lost = sorted(path for path in case.trace.report.places(*_LOST_DUMPS) if path.endswith(".dump"))
    return [path for path in lost if _numbers_in(path) & mine or not _numbers_in(path) & others]


def _numbers_in(path: str) -> set[str]:
    return set(re.findall("[0-9]+", PurePath(path).name))


def _why_not_read(case: Case, lost: Sequence[str]) -> str:
    """Returns why the names that a runtime was asked for are missing. lost: jitdumps that are not read."""
    if not lost:
        return NO_LIST
    path = lost[0]
    if path in case.trace.report.places("companion_empty"):
        return (
            f"wrote no names into {path}, which is empty: its process ended before it wrote what it had; let it end by "
            "itself, not by a signal"
        )
    if _numbers_in(path) & {str(one.pid) for one in case.trace.processes}:
        return f"wrote the names into {path}, {_NOT_FOUND}: copy it beside the recording, or give it as another input"
    return (
        f"wrote the names into {path}, {_NOT_FOUND}: it is below the root of the container or chroot; copy it beside "
        "the recording"
    )


def _advice_of_report(case: Case) -> str:
    """Returns what the report says of code that no file holds, of one program where it is of one."""
    for detail, advice in case.trace.report.notes_of("code_unrecorded"):
        if case.program and detail.endswith(f" of {case.program}"):
            return advice
    return case.issues["code_unrecorded"].advice


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
    if advice == OF_NO_SYMBOL:
        return ""
    is_wanted = kind == "names_missing" and not has_build_id
    if is_wanted and name == VDSO and case.command is not None:
        return case.command.without("--buildid-mmap").text
    # What reads libraries takes long to import: only where one is missing.
    from traceferry.libraries.recorded_files import IS_AT_ITS_PATH, IS_WITHOUT_ID

    has_id_to_record = advice != IS_WITHOUT_ID
    if is_wanted and has_id_to_record and case.command is not None and not case.command.has("--buildid-mmap"):
        return case.record_with({"--buildid-mmap": None})
    if kind == "names_partly_missing":
        is_general = advice == KINDS[kind].advice
        has_server = not _is_own(case, name) if is_general else "--debuginfod" in advice
        # A command that works where DEBUGINFOD_URLS is not set, too.
        return case.read_with(f"--debuginfod {DEBUGINFOD}" if has_server else "--symbols FILE")
    return case.read_with("--sysroot /" if advice == IS_AT_ITS_PATH else "--symbols FILE-OR-DIR")


def _category_of(trace: Trace, library: str) -> str:
    """Returns the category of the first frame of a library, "" where it has none."""
    libs, categories = trace.libs["name"].tolist(), trace.categories["name"].tolist()
    for lib, category in zip(trace.frames["lib"].tolist(), trace.frames["category"].tolist(), strict=True):
        if lib >= 0 and category >= 0 and trace.strings[libs[lib]] == library:
            return trace.strings[categories[category]]
    return ""


def functions(case: Case) -> Finding | None:
    """Samples of a runtime, and no function of the language that it executes."""
    found = [finding for part in case.by_program() if (finding := _functions_of(part)) is not None]
    found.sort(key=lambda finding: -(finding.share or 0))
    return found[0]._replace(advice=tuple(one for finding in found for one in finding.advice)) if found else None


def _functions_of(case: Case) -> Finding | None:
    found = runtime_and_file(case)
    if found is None or case.facts.languages:
        return None
    runtime, file = found
    where = (" in some processes", " there") if case.is_unlike_others(runtime.language) else ("", "")
    n = sum(n for other, n in case.facts.runtimes.items() if other == file or runtime_of(other) == runtime)
    n -= _n_compiled(case)
    is_of_library = _compiler(case) is not None or bool(library_of(case))
    share = case.share_of_all(n if is_of_library else max(n, sum(case.facts.generated.values())))
    advice = naming_of(case)
    if share < RUNTIME_FROM or advice is None:
        return None
    what = f"{percent(share)} of {case.the_samples} are in {runtime.title}"
    headline = f"{runtime.language} functions have no names{where[0]}: {what}{where[1]}"
    return Finding("functions_missing", 4, "info", headline, share, (advice,), ("code_unrecorded",))


def _n_compiled(case: Case) -> int:
    """Returns how many samples are in functions of the user's that a compiler of Python made: not in packages that were
    installed, whose callers count."""
    compiled = case.facts.compiled.items()
    return sum(n for name, n in compiled if not _OF_PACKAGE.fullmatch(_path_of(case, name)))


def _is_compiled(case: Case) -> bool:
    """Whether the functions that were sampled are Python's as they were compiled to C. Cut stacks have few of them."""
    is_whole = case.cut_share < STACKS_FROM and not case.has_no_stacks
    return case.share(_n_compiled(case)) >= (1 - RUNTIME_FROM if is_whole else NAMES_FROM)


def runtime_and_file(case: Case) -> tuple[Runtime, str] | None:
    """Returns the runtime that was sampled most, or that is the program itself, and its file's name."""
    words = case.command.program if case.command is not None else ()
    started = (case.program,) if case.program else (PurePath(word).name for word in words)
    files = [*case.facts.runtimes, *started]
    return next(((runtime, file) for file in files if (runtime := runtime_of(file)) is not None), None)


def _compiler(case: Case) -> Compiler | None:
    """Returns the library that compiled the code which nothing names; None where the runtime did."""
    generated = case.facts.generated
    if case.share(sum(generated.values())) < NAMES_FROM:
        return None
    # Where the functions of a runtime have names, code without one is of something else.
    is_of_another = case.facts.languages > 0 and generated.get("", 0) >= max(generated.values())
    return compiler_of(_libraries(case)) if is_of_another else any_compiler(case)


def _libraries(case: Case) -> Sequence[str]:
    """Returns the names of the files that a program has loaded, as far as they are known: where one of several has
    nearly all samples, those of the processes with code that nothing names."""
    if case.program:
        return case.facts.libraries
    generating = case.programs.generating()
    files = [process.files for process in case.trace.processes if process_of(case.trace, process) in generating]
    if files and all(files):
        return sorted({file for of_process in files for file in of_process})
    return [case.trace.strings[row] for row in case.trace.libs["name"].tolist()]


def any_compiler(case: Case) -> Compiler | None:
    """Returns what compiles code in the memory of any program: what is below most code that nothing names, or if
    nothing is, what was loaded where no runtime compiles code."""
    found, generated = runtime_and_file(case), case.facts.generated
    below = max(generated, key=lambda file: generated[file], default="")
    if below and (compiler := compiler_of((below,))) is not None:
        return compiler
    is_runtimes = (found is not None and found[0].language != "Python") or runtime_of(below) is not None
    return None if is_runtimes else compiler_of(_libraries(case))


def executing(case: Case) -> Compiler | None:
    """Returns what executes the program by code that it compiles, in which stacks end however they are recorded."""
    compiler = any_compiler(case)
    is_sampled = case.share(case.facts.jitted) >= RUNTIME_FROM
    return compiler if compiler is not None and compiler.executes and is_sampled else None


def library_of(case: Case) -> str:
    """Returns the library that compiled the code which nothing names, A_LIBRARY where none is around that; "" where a
    runtime may have: CPython compiles nothing if it is not asked, and then what hardly takes time itself."""
    found, facts = runtime_and_file(case), case.facts
    is_made = bool(facts.generated) and max(facts.generated, key=lambda file: facts.generated[file]) == ""
    if not is_made or found is None or found[0].language != "Python":
        return ""
    n_innermost = sum(n for name, n in facts.nameless.items() if name.startswith(GENERATED))
    if asks_cpython(case) and n_innermost < TRAMPOLINES_BELOW * sum(facts.generated.values()):
        return ""
    return max((file for file in facts.around if file), key=lambda file: facts.around[file], default=A_LIBRARY)


def asks_cpython(case: Case) -> bool:
    """Whether the command lets CPython compile something for each function, as trampolines."""
    return case.command is not None and CPYTHON_COMPILES.search(" ".join(case.command.program)) is not None


def other_than(recorded: Command, again: Command) -> str:
    """Returns a command, "" where it is the one that recorded."""
    return again.text if again != recorded else ""


def naming_of(case: Case, found: tuple[Runtime, str] | None = None) -> Advice | None:
    """Returns what names the functions of a runtime, by default of the one that was sampled most; None where they have
    names. found: the runtime, and its file's name."""
    found = found if found is not None else runtime_and_file(case)
    if found is None or case.command is None or case.facts.languages or _is_compiled(case) or _lost_dumps(case):
        return None
    runtime, file = found
    loaded = [case.trace.strings[row] for row in case.trace.libs["name"].tolist()]
    hindrance = runtime.hindered_by(loaded) or interpreted_only(case.command, runtime)
    without = f", without {hindrance}, which keeps it from compiling them" if hindrance else ""
    since = f" ({runtime.program} or newer)" if runtime.program else ""
    # Options of one process are not those of others that it starts.
    is_of_others = case.is_unlike_others(runtime.language)
    if is_run_by(case.command, runtime) and not is_of_others:
        named = naming(case.command, runtime, file, loaded)
        text = f"let {runtime.title} write the names of its functions{since}{without}"
        return Advice("functions_missing", text, named.text) if named is not None else None
    # It ran already, or something else has started it.
    if is_told(case.command, runtime) and (has_inherited(case.command, runtime) or not is_of_others):
        return None
    inherited = inheriting(case.command, runtime, file)
    if inherited is not None:
        whose = "the functions of each of its processes" if is_of_others else "its functions"
        text = f"let {runtime.title} write the names of {whose}{since}{without}, whatever starts it"
        return Advice("functions_missing", text, inherited.text)
    words, again = start(runtime, loaded), other_than(case.command, with_graph(case.command, runtime))
    listing, versions = runtime.listing
    if listing:
        listing = listing.replace("PID", case.command.value("-p") or "PID")
        text = f"while {runtime.title} runs, {listing} ({versions}) lists its functions, also for this recording"
        return Advice("functions_missing", text)
    text = f"{runtime.title} writes the names of its functions if it is started as {words}{without}"
    return Advice("functions_missing", text, again) if words else None
