"""Map: names of addresses in guests, virtual machines that perf samples from outside (`perf kvm`)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from traceferry.common.report import Report
from traceferry.files.answers import Answers
from traceferry.files.named_files import read_named
from traceferry.files.source import Source, paths_beside
from traceferry.importers.perf import kallsyms
from traceferry.importers.perf.kallsyms import KernelSymbols
from traceferry.importers.perf.recording import Features
from traceferry.model import Array

GUEST_KERNEL, GUEST_USER = "[guest kernel]", "[guest user]"
# A copy of the guest's /proc/kallsyms, beside the recording or in a folder of symbols; or the one that `perf kvm` read.
NAME = "guest.kallsyms"
OPTION = "--guestkallsyms"
MAX_SIZE = 64 << 20
# Kernels are in the upper half.
KERNEL_BIT = np.uint64(63)


class Guests:
    """Names what runs in guests. All guests are taken for one, as `perf report` does without --guestmount."""

    def __init__(
        self, beside: Source | None, folders: Sequence[str], features: Features, is_here: bool, report: Report,
        answers: Answers,
    ) -> None:  # fmt: skip
        self._places = list(paths_beside([beside] if beside is not None else [], folders, NAME))
        if is_here:
            self._places += [(path, "") for path in given_paths(features.cmdline)]
        self._report = report
        self._answers = answers
        self._n_nameless = 0

    def names(self, addresses: Array) -> list[str]:
        """Returns the function at each address (uint64); where it has no name, whether it is one of the kernel."""
        is_kernel = addresses >> KERNEL_BIT == 1
        names: list[str] = np.where(is_kernel, GUEST_KERNEL, GUEST_USER).tolist()
        symbols = self._symbols() if is_kernel.any() else None
        if symbols is not None:
            rows = np.flatnonzero(is_kernel).tolist()
            for row, name in zip(rows, symbols.anywhere(addresses[is_kernel]), strict=True):
                names[row] = name or GUEST_KERNEL
        self._n_nameless += sum(name == GUEST_KERNEL for name in names)
        return names

    def note_problems(self) -> None:
        self._report.note("guest_names_missing", self._n_nameless)

    def _symbols(self) -> KernelSymbols | None:
        return self._answers.ask(
            "guest kernel", self._report, self._read, kallsyms.packed_kernel, kallsyms.unpacked_kernel
        )

    def _read(self) -> KernelSymbols | None:
        for path, beside in self._places:
            text = read_named(path, self._report, at_most=MAX_SIZE, beside=beside)
            symbols = KernelSymbols(text.encode("utf-8", "replace")) if text is not None else None
            if symbols is not None and not symbols.is_empty:
                self._report.note("symbols_used", where=path, detail=f"{GUEST_KERNEL}: {path}")
                return symbols
        return None


def given_paths(command: Sequence[str]) -> list[str]:
    """Returns the files of symbols that the recorded command line names."""
    joined = [word.partition("=")[2] for word in command if word.startswith(f"{OPTION}=")]
    return joined + [path for word, path in pairwise(command) if word == OPTION]
