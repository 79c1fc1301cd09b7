"""Stacks that end too early, or that a recording does not have."""

from __future__ import annotations

from traceferry.analysis.verdict.case import JUDGED, MOST_FEW, RUNTIME_FROM, STACKS_FROM, Advice, Case, Finding, percent
from traceferry.analysis.verdict.names import (
    any_compiler,
    asks_cpython,
    executing,
    library_of,
    naming_of,
    other_than,
    runtime_and_file,
)
from traceferry.analysis.verdict.runtimes import Runtime, inheriting, is_run_by, naming, start, unwinding, with_graph
from traceferry.common.issue_kinds import KINDS
from traceferry.common.recorder import CALL_GRAPH, DWARF, DWARF_MOST, KERNEL_CALLCHAINS, Command
from traceferry.unwinding.endings import OF_NO_FILE, TRUNCATED, switching_function, unwound_file
from traceferry.unwinding.stack_ends import GO

DEFAULT_DUMP = 8192
DWARF_GRAPH = f"{CALL_GRAPH} dwarf"
# A program with less of the stacks that are cut gets no line.
PART_FROM = 0.1
# Of all stacks, those that end in a language's functions, from which on they are told where they are many of these.
LANGUAGE_FROM = 0.05
# C that Go calls has the stack of the system's thread, its callers that of a goroutine. clang keeps frame pointers in
# all functions, gcc not in those that call no other.
FRAME_POINTERS_IN_C = Advice(
    "",
    "compile the C code with frame pointers: a copy of the stack would end where Go calls C, without a function of Go",
    "CC=clang CGO_CFLAGS='-g -O2 -fno-omit-frame-pointer' go build",
)
_NO_STACKS = "the recording has no call stacks"
# Values of kernel.perf_event_max_stack to try. A sample cannot be longer than 65,535 bytes.
LIMITS = (1023, 4095)


def stacks(case: Case) -> Finding | None:
    """Stacks that end elsewhere than where a thread begins."""
    facts, share = case.facts, case.cut_share
    if facts.user < MOST_FEW or not case.is_perf or case.has_no_stacks:
        return None
    n_left = case.count("unwinding_not_done")
    if n_left >= STACKS_FROM * facts.user:
        return _not_unwound(n_left / facts.user)
    if share < STACKS_FROM:
        return _of_language(case)
    if case.share(case.count("code_unmapped")) >= share / 2:
        # Where nothing is known of the code, nothing tells where its stacks begin.
        return None
    parts = [part for part in case.by_program() if part.n_cut >= PART_FROM * case.n_cut] or [case]
    parts.sort(key=lambda part: -part.n_cut)
    (what, advice), *others = [_why(part) for part in parts]
    advice = tuple(one for part in (advice, *(of_other for _, of_other in others)) for one in part)
    if parts[0].program:
        what = f", {_most(parts[0].n_cut / case.n_cut)} of {parts[0].program}{what}"
    headline = f"{percent(share)} of the stacks are cut{what}"
    return Finding("stacks_cut", 3, "loss", headline, share, advice, JUDGED["stacks"])


def _of_language(case: Case) -> Finding | None:
    """Stacks that end in what a runtime compiled, among many of its own, as of the threads that compile."""
    facts, found = case.facts, runtime_and_file(case)
    is_little = facts.in_language < max(STACKS_FROM * facts.languages, LANGUAGE_FROM * facts.user)
    if case.is_copied or found is None or is_little or facts.in_language < MOST_FEW:
        return None
    advice, runtime = _with_frame_pointers(case), found[0]
    share = facts.in_language / facts.languages
    what = f"{percent(share)} of the stacks with {runtime.language} functions are cut"
    headline = f"{what}: what {runtime.title} compiled keeps no frame pointers"
    return Finding("stacks_cut", 3, "loss", headline, share, advice, JUDGED["stacks"]) if advice else None


def _most(share: float) -> str:
    return "those" if share > 0.99 else "most" if share >= 0.5 else "the largest part"


def _why(case: Case) -> tuple[str, tuple[Advice, ...]]:
    """Returns why stacks of a program are cut, and what helps."""
    what, advice = _by_ending(case) if case.facts.endings else _by_frame_pointers(case)
    if not case.program:
        return what, advice
    others = [other.program for other in case.by_program() if other.program != case.program and _ends_copies(other)]
    of_others = f"those of {' and '.join(dict.fromkeys(others))} would end in what was compiled as they ran"
    apart = f", in a recording of its own: {of_others}" if others else ""
    return what, tuple(
        one._replace(text=f"{case.program}: {one.text}{apart if DWARF_GRAPH in one.command else ''}") for one in advice
    )


def _ends_copies(case: Case) -> bool:
    """Whether copies of a program's stacks would end in what a runtime compiled, which keeps frame pointers."""
    found = runtime_and_file(case)
    is_whole = case.cut_share < STACKS_FROM and not case.facts.endings
    return found is not None and found[0].call_graph == "fp" and case.facts.languages > 0 and is_whole


def _not_unwound(share: float) -> Finding:
    share = min(share, 1.0)
    headline = f"{percent(share)} of the stacks are cut: copies of them are not unwound for this processor"
    advice = Advice("stacks_cut", KINDS["unwinding_not_done"].advice)
    return Finding("stacks_cut", 3, "loss", headline, share, (advice,), JUDGED["stacks"])


def _by_frame_pointers(case: Case) -> tuple[str, tuple[Advice, ...]]:
    """Stacks of recordings with -g: code without frame pointers ends them."""
    facts = case.facts
    if case.command is not None and case.command.has(KERNEL_CALLCHAINS):
        text, again = f"without {KERNEL_CALLCHAINS}, they have the program's functions", case.record_with({"-g": None})
        return ": callers in the program were not recorded", (Advice("stacks_cut", text, again),)
    if facts.deepest > facts.short + facts.adrift:
        deeper = next((limit for limit in LIMITS if limit > facts.limit), 0)
        text = f"the kernel ends stacks at {facts.limit} frames"
        command = f"sysctl kernel.perf_event_max_stack={deeper}"
        return ": they are too deep", (Advice("stacks_cut", text, command),) if deeper else ()
    found, named = runtime_and_file(case), naming_of(case)
    if 2 * facts.in_language > facts.short:
        # Copied stacks do not help: code that a runtime compiles has no unwind information.
        title = found[0].title if found is not None else "the runtime"
        return f": what {title} compiled keeps no frame pointers", _with_frame_pointers(case)
    if found is not None and found[0].call_graph == "fp" and facts.languages and case.command is not None:
        return _by_runtime(case.command, *found)
    graph = found[0].call_graph if found is not None and found[0].call_graph != "fp" else DWARF
    # CPython compiles nothing that it is not asked for.
    is_of_runtime = found is not None and found[0].language != "Python"
    if (
        found
        and is_of_runtime
        and named is not None
        and case.command
        and case.share(sum(facts.generated.values())) >= RUNTIME_FROM
    ):
        has_both = is_run_by(case.command, found[0]) or inheriting(case.command, *found) is not None
        advice = (named,) if has_both else (named, *_with_frame_pointers(case))
        return f": {found[0].title} was not asked for frame pointers and names", advice
    if (compiler := executing(case)) is not None:
        return f": what {compiler.title} compiled has neither frame pointers nor unwind information", ()
    is_in_memory, library = 2 * facts.in_memory > facts.short + facts.adrift, library_of(case)
    if named is not None and graph in named.command and not (is_in_memory and library):
        return f": record with {CALL_GRAPH} {graph}", (named,)
    if is_in_memory and (graph == DWARF or library):
        compiler = any_compiler(case)
        title = compiler.title if compiler is not None else library
        return f": {f'what {title} compiled' if title else 'code that no file holds'} keeps no frame pointers", ()
    if facts.of_cgo:
        return ": the C code that Go calls keeps no frame pointers", (FRAME_POINTERS_IN_C._replace(kind="stacks_cut"),)
    text = f"code without frame pointers ends them; perf can copy the stacks instead{_but_for_compiled(case)}"
    command = case.record_with({CALL_GRAPH: graph})
    if case.command is not None and _is_of_kernel(case):
        # Else what is copied makes perf record how it writes that.
        command = case.command.with_options({CALL_GRAPH: graph}).excluding_itself.text
    return f": record with {CALL_GRAPH} {graph}", (Advice("stacks_cut", text, command),)


def _but_for_compiled(case: Case) -> str:
    """Returns what is said of stacks that end in compiled code also where they are copied; "" where they are few."""
    compiler, found = any_compiler(case), runtime_and_file(case)
    if compiler is not None:
        title, n_samples = compiler.title, case.facts.jitted
    elif found is not None and found[0].ends_copies:
        title, n_samples = found[0].title, case.facts.languages + sum(case.facts.generated.values())
    else:
        return ""
    share = min(case.share(n_samples), 1.0)
    return f", of which at least {percent(share)} will end in what {title} compiled" if share >= STACKS_FROM else ""


def _with_frame_pointers(case: Case) -> tuple[Advice, ...]:
    """Returns how the runtime that was sampled most keeps frame pointers in what it compiles."""
    found, command = runtime_and_file(case), case.command
    if found is None or command is None:
        return ()
    runtime = found[0]
    if is_run_by(command, runtime):
        again = naming(command, *found)
        return (Advice("stacks_cut", f"let {runtime.title} keep frame pointers", again.text),) if again else ()
    inherited, words = inheriting(command, *found), start(runtime)
    if inherited is not None and inherited.program != command.program:
        return (Advice("stacks_cut", f"let {runtime.title} keep frame pointers, whatever starts it", inherited.text),)
    text = f"{runtime.title} keeps frame pointers if it is started as {words}"
    return (Advice("stacks_cut", text, other_than(command, with_graph(command, runtime))),) if words else ()


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
        copied = Advice("stacks_cut", text, case.record_with({CALL_GRAPH: DWARF}))
        return f": record with {CALL_GRAPH} {DWARF}", (copied,)
    if name == TRUNCATED and case.count("unwinding_not_copied") > case.count("unwinding_truncated"):
        why = "what no function has written to, and what lies behind it, is not copied"
        return ": large local variables are in the way", (_by_pointers(case, why),)
    if name == TRUNCATED:
        size = _dump_size(case.command)
        if size >= DWARF_MOST:
            # Whoever runs a program of a runtime does not compile it.
            why = f"no more than {DWARF_MOST} bytes can be copied"
            advice = (_by_pointers(case, why),) if runtime_and_file(case) is None else ()
            return ": they are deeper than perf copies", advice
        graph = f"dwarf,{min(2 * size, DWARF_MOST)}"
        text = f"more than {size} bytes of each are needed"
        return f": record with {CALL_GRAPH} {graph}", (
            Advice("stacks_cut", text, case.record_with({CALL_GRAPH: graph})),
        )
    if switch := switching_function(name):
        return f": {switch} leaves their callers' stack, and only the other one is copied", (_across(case, switch),)
    file = unwound_file(name)
    where = f" in {file}" if file else ""
    detail, text = case.trace.report.of_place("unwinding_no_information", lambda place: place.endswith(f" {file}"))
    is_of_others = file == OF_NO_FILE and (bool(case.facts.generated) or not asks_cpython(case))
    compiler, library = (any_compiler(case), library_of(case)) if is_of_others else (None, "")
    if compiler is not None or library:
        # Runtimes write unwind information, if they are asked for names.
        title = compiler.title if compiler is not None else library
        return f": what {title} compiled has no unwind information", ()
    named, found = naming_of(case) if file == OF_NO_FILE else None, runtime_and_file(case)
    if named is not None:
        return where, (named,)
    if file == OF_NO_FILE and found is not None and case.facts.languages and case.command is not None:
        return _by_compiled_code(case.command, *found)
    command = case.read_with("--symbols FILE-OR-DIR") if text == KINDS["unwinding_no_information"].advice else ""
    return where, (Advice("stacks_cut", text, command),) if detail and text else ()


def _by_pointers(case: Case, why: str) -> Advice:
    text = f"{why}; stacks of code with frame pointers need no copy: compile with -fno-omit-frame-pointer"
    return Advice("stacks_cut", text, case.record_with({"-g": None}))


def _across(case: Case, switch: str) -> Advice:
    """Returns what leads from a stack to that of the callers. switch: the function that has left that."""
    if switch.startswith(GO):
        text = "frame pointers, which Go keeps, lead to the other stack"
        return Advice("stacks_cut", text, case.record_with({"-g": None}))
    return _by_pointers(case, "frame pointers lead to the other stack")


def _by_compiled_code(command: Command, runtime: Runtime, file: str) -> tuple[str, tuple[Advice, ...]]:
    """Copied stacks that end in functions of a runtime, which have names."""
    why = f": what {runtime.title} compiled has no unwind information"
    again, text = unwinding(command, runtime), f"let {runtime.title} write how its functions are unwound"
    if again is None:
        again = naming(command, runtime, file)
        text = f"let {runtime.title} keep frame pointers in it" if runtime.call_graph == "fp" else text
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


def callers(case: Case) -> Finding | None:
    """Stacks that follow frame pointers, and lack the caller of functions without one."""
    issue, facts = case.issues.get("callers_missing"), case.facts
    if issue is None or not facts.user or case.cut_share >= STACKS_FROM:
        return None
    share = min(case.share(issue.count), 1.0)
    if share < STACKS_FROM:
        return None
    headline = (
        f"the caller is missing from {percent(share)} of the stacks: their innermost function has no frame pointer"
    )
    advice = Advice("callers_missing", "perf can copy the stacks instead", case.record_with({CALL_GRAPH: DWARF}))
    if facts.of_cgo >= STACKS_FROM * facts.user:
        advice = FRAME_POINTERS_IN_C._replace(kind="callers_missing")
    helps = () if case.is_copied else (advice,)
    return Finding("callers_missing", 4, "info", headline, share, helps, ("callers_missing",))


def no_stacks(case: Case) -> Finding | None:
    """A recording without -g tells where time was spent, not from where; of a tracepoint not even that. Of other
    recorders, and of profiles that were made of such a recording, the samples tell it alone."""
    if not case.is_perf:
        event = case.trace.sampling
        is_amount = event is not None and event.sample_unit != "samples"
        is_flat = not is_amount and MOST_FEW <= case.facts.samples - case.facts.idle == case.facts.single
        return Finding("no_stacks", 4, "info", _NO_STACKS, 1.0) if is_flat else None
    if not case.facts.samples or not case.has_no_stacks:
        return None
    found, named = runtime_and_file(case), naming_of(case)
    if found is not None and named is not None:
        return Finding("no_stacks", 4, "info", _NO_STACKS, 1.0, (named,))
    if (compiler := executing(case)) is not None:
        why = f"{_NO_STACKS}: they would end in what {compiler.title} compiled"
        return Finding("no_stacks", 4, "info", why, 1.0)
    is_whole = (found is not None and found[0].call_graph == "fp") or _is_of_kernel(case)
    options: dict[str, str | None] = {"-g": None} if is_whole else {CALL_GRAPH: DWARF}
    words = "-g" if is_whole else f"{CALL_GRAPH} {DWARF}"
    advice = Advice("no_stacks", "stacks tell from where functions are called", case.record_with(options))
    return Finding("no_stacks", 4, "info", f"{_NO_STACKS}: record with {words}", 1.0, (advice,))


def _is_of_kernel(case: Case) -> bool:
    """Whether an event of the kernel was recorded on the whole machine, of which copied stacks would be so much that
    writing them is what is recorded."""
    event, command = case.trace.sampling, case.command
    if event is None or event.kind != "tracepoint" or command is None:
        return False
    return command.has("-a") or bool(command.tool)
