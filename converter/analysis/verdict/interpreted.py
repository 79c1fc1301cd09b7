"""Functions that a runtime interprets: all of them are its interpreter's, unless it is told to keep them apart."""

from __future__ import annotations

from traceferry.analysis.verdict.case import RUNTIME_FROM, Advice, Case, Finding, percent
from traceferry.analysis.verdict.names import naming_of, other_than, runtime_and_file
from traceferry.analysis.verdict.runtimes import (
    Runtime,
    compiling,
    inheriting,
    interpreted_only,
    is_run_by,
    naming_interpreted,
    start,
)
from traceferry.common.recorder import Command

KIND = "functions_missing"


def interpreted(case: Case) -> Finding | None:
    """Samples in functions that are interpreted, where the names of those that are compiled were asked for."""
    found = [finding for part in case.by_program() if (finding := _interpreted_of(part)) is not None]
    found.sort(key=lambda finding: -(finding.share or 0))
    return found[0]._replace(advice=tuple(one for finding in found for one in finding.advice)) if found else None


def _interpreted_of(case: Case) -> Finding | None:
    found, share = runtime_and_file(case), case.share_of_all(case.facts.interpreted)
    if found is None or case.command is None or share < RUNTIME_FROM or naming_of(case) is not None:
        return None
    advice = _advice(case.command, *found)
    if advice is None:
        return None
    runtime = found[0]
    what = f"{percent(share)} of {case.the_samples} are in them or what they call"
    headline = f"{runtime.language} functions that {runtime.title} interprets have no names: {what}"
    return Finding(KIND, 4, "info", headline, share, (advice,))


def _advice(command: Command, runtime: Runtime, file: str) -> Advice | None:
    """Returns what names functions that were interpreted; None where it was asked for, in vain."""
    option = interpreted_only(command, runtime)
    if option:
        text = f"nothing names what {runtime.title} executes with {option}: record without it"
        return Advice(KIND, text, other_than(command, compiling(command, runtime)))
    if not runtime.interpreted:
        return Advice(KIND, f"{runtime.title} names what it has compiled: let the program run for longer")
    if runtime.interpreted in " ".join(command.program):
        return None
    if is_run_by(command, runtime) and runtime.interpreted in runtime.options:
        text = f"let {runtime.title} name the functions that it interprets, too"
        return Advice(KIND, text, naming_interpreted(command, runtime).text)
    again = inheriting(command, runtime, file)
    if again is not None and runtime.inherited:
        text = f"let {runtime.title} name the functions that it interprets, too, whatever starts it"
        return Advice(KIND, text, again.text)
    return Advice(KIND, f"{runtime.title} names them, too, if it is started as {start(runtime)}")
