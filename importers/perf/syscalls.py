"""Map: the names of system calls, of which raw_syscalls:sys_enter and sys_exit have the numbers.

Numbers are those of the machine's own programs: of a 32-bit program on a 64-bit machine they mean other calls, and
nothing recorded tells whose they are.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from traceferry.importers.perf.recording import Event
from traceferry.model import Array, distinct

# uname -m → what the tables call it.
ARCHITECTURES = {"aarch64": "arm64", "i686": "i386", "i586": "i386", "ppc64le": "powerpc64", "ppc64": "powerpc64"}
ARM = "armv"


def has_number(event: Event) -> bool:
    """Whether an event tells which system call it is by its number."""
    tracepoint = event.tracepoint
    return (
        tracepoint is not None and tracepoint.system == "raw_syscalls"
        and any(field.name == "id" and field.kind == "integer" for field in tracepoint.fields)
    )  # fmt: skip


def names_of(arch: str, numbers: Array) -> Array:
    """Returns the names (str objects) of system calls, "system call 999" of those that the tables do not know. arch:
    the machine, as uname -m has it."""
    known = _table("arm" if arch.startswith(ARM) else ARCHITECTURES.get(arch, arch))
    found = np.empty(len(numbers), object)
    for number in distinct(numbers).tolist():
        found[numbers == number] = known.get(number, f"system call {number}")
    return found


@cache
def _table(arch: str) -> dict[int, str]:
    # Few recordings hold system calls.
    from system_calls import NoSuchArchitecture, syscalls

    try:
        return {number: name for name, number in syscalls().load_arch_table(arch).items()}
    except NoSuchArchitecture:
        return {}
