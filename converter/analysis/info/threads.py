"""Threads in the text of `info`: those with most first, idle ones as a number."""

from __future__ import annotations

from typing import Any

from traceferry.common.shown_text import aligned
from traceferry.common.units import format_amount

Json = dict[str, Any]
# Of a thread with more kinds of markers, so many are named: Firefox's main thread has 40.
MAX_HELD, SHOWN_HELD = 5, 4


# What samples are called that are amounts.
AMOUNTS = {"ns": "time"}


def counted(n: int, what: str) -> str:
    """Returns "1 sample", "2 samples"; words that end in s are as they are."""
    return f"{n:,} {what}" if n == 1 else f"{n:,} {what if what.endswith('s') else what + 's'}"


def percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f}%" if whole else ""


def threads_lines(processes: list[Json], top: int, unit: str = "samples") -> list[str]:
    """Returns the lines of threads and of processes, the first `top` of those that have anything. unit: of samples."""
    threads = [(process, thread) for process in processes for thread in process["threads"]]
    n_samples, n_calls = (sum(thread[key] for _, thread in threads) for key in ("samples", "calls"))
    busy = sorted(((p, t) for p, t in threads if any(_weight(t))), key=lambda pair: [-n for n in _weight(pair[1])])
    shown = busy[:top]
    has = {key: any(_amount(thread, key) for _, thread in shown) for key in ("samples", "calls", "allocations")}
    head = [word for key in ("samples", "calls") if has[key] for word in (_head(key, unit), "%")]
    head += ["allocations"] if has["allocations"] else []
    cells = [[*head, "thread"]] if shown else []
    for process, thread in shown:
        row = [format_amount(thread["samples"], unit), percent(thread["samples"], n_samples)] if has["samples"] else []
        row += [str(thread["calls"]), percent(thread["calls"], n_calls)] if has["calls"] else []
        row += [str(thread["allocations"]["count"])] if has["allocations"] else []
        cells.append([*row, _name(process, thread, len(processes) > 1)])
    lines = ["", *_title(processes, len(threads)), *aligned(cells), *_rest(busy[top:], len(threads) - len(busy), unit)]
    return [*_programs(processes, top, unit), *lines] if len(busy) > top else lines


def programs_of(processes: list[Json]) -> list[Json]:
    """Returns the programs that several processes ran, those with most first, and what their processes have together;
    nothing where each process ran another."""
    found: dict[str, Json] = {}
    for process in processes:
        name = process["name"] or "[no name]"
        program = found.setdefault(name, {"name": name, "processes": 0, "samples": 0, "calls": 0})
        program["processes"] += 1
        for key in ("samples", "calls"):
            program[key] += sum(thread[key] for thread in process["threads"])
    busy = [program for program in found.values() if program["samples"] or program["calls"]]
    ranked = sorted(busy, key=lambda program: (-program["samples"], -program["calls"]))
    return ranked if any(program["processes"] > 1 for program in ranked) else []


def _head(key: str, unit: str) -> str:
    return AMOUNTS.get(unit, unit) if key == "samples" else key


def _programs(processes: list[Json], top: int, unit: str) -> list[str]:
    programs = programs_of(processes)
    if not programs:
        return []
    has = [key for key in ("samples", "calls") if any(program[key] for program in programs)]
    whole = {key: sum(program[key] for program in programs) for key in has}
    units = {"samples": unit}
    cells = [[*(word for key in has for word in (_head(key, unit), "%")), "processes", "program"]]
    for program in programs[:top]:
        amounts = [
            word for key in has
            for word in (format_amount(program[key], units.get(key, "")), percent(program[key], whole[key]))
        ]  # fmt: skip
        cells.append([*amounts, f"{program['processes']}", program["name"]])
    more = len(programs) - top
    rest = [f"  {counted(more, 'more program')}"] if more > 0 else []
    return ["", f"{counted(len(programs), 'program')} with samples or calls:", *aligned(cells), *rest]


def _title(processes: list[Json], n_threads: int) -> list[str]:
    """Returns the line above the threads; of a single process its name is in it."""
    if len(processes) != 1:
        return [f"{counted(n_threads, 'thread')} of {len(processes):,} processes:"] if processes else ["no threads"]
    (process,) = processes
    if not n_threads:
        return [f"no threads of process {_process(process)}"]
    return [f"{counted(n_threads, 'thread')} of process {_process(process)}:"]


def _process(process: Json) -> str:
    return f"{process['name']} {process['pid']}{_cgroup(process)}"


def _cgroup(process: Json) -> str:
    return f" in {process['cgroup']}" if process["cgroup"] else ""


def _name(process: Json, thread: Json, has_others: bool) -> str:
    """Returns the thread's name and number, its process where there are several, and what else it has."""
    is_main = (thread["name"], thread["tid"]) == (process["name"], process["pid"])
    of = "" if not has_others else _cgroup(process) if is_main else f" of {_process(process)}"
    others = {each["event"]: each["samples"] for each in thread.get("events", ())[1:]} | thread["markers"]
    held = [f"{n:,} {what}" for what, n in others.items() if n]
    if len(held) > MAX_HELD:
        ordered = sorted(others.items(), key=lambda item: -item[1])
        rest = sum(n for _, n in ordered[SHOWN_HELD:])
        held = [
            *(f"{n:,} {what}" for what, n in ordered[:SHOWN_HELD]),
            f"{rest:,} of {len(held) - SHOWN_HELD} other kinds",
        ]
    # Threads without a name are called after their number.
    number = "" if thread["name"] == f"thread {thread['tid']}" else f" {thread['tid']}"
    return f"{thread['name']}{number}{of}" + (f": {', '.join(held)}" if held else "")


def _amount(thread: Json, key: str) -> int:
    return int(thread[key]["count"] if key == "allocations" else thread[key])


def _weight(thread: Json) -> tuple[int, ...]:
    events = sum(each["samples"] for each in thread.get("events", ()))
    amounts = (_amount(thread, key) for key in ("samples", "calls", "allocations"))
    return (*amounts, events, sum(thread["markers"].values()))


def _rest(more: list[tuple[Json, Json]], n_idle: int, unit: str) -> list[str]:
    lines = []
    if more:
        held = [(key, sum(_amount(thread, key) for _, thread in more)) for key in ("samples", "calls", "allocations")]
        amounts = ", ".join(
            format_amount(n, unit) if key == "samples" and unit != "samples" else counted(n, key.removesuffix("s"))
            for key, n in held
            if n
        )
        lines.append(f"  {counted(len(more), 'more thread')}" + (f" with {amounts}" if amounts else ""))
    if n_idle:
        lines.append(f"  {counted(n_idle, 'idle thread')}")
    return lines
