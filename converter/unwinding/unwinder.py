"""Drives the unwinding kernel: compiles the rows of modules when first needed, and collects callchains."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from traceferry.kernels.tables import Growing
from traceferry.model import Array
from traceferry.unwinding import unwind_inlined
from traceferry.unwinding import unwind_kernel as kernel
from traceferry.unwinding.cfi import Problems
from traceferry.unwinding.machine import Machine
from traceferry.unwinding.modules import Module
from traceferry.unwinding.rows import RuleSets
from traceferry.unwinding.spaces import AddressSpace

MAX_FRAMES = 2000
CACHE_SIZE = 1 << 14
BATCH = 1 << 16


@dataclass(frozen=True)
class UserStacks:
    """Samples of one machine. data: the bytes that hold their registers and dumps; register_of: int32, the DWARF number
    of each recorded register, -1 for one that is not followed. Columns, a row for each sample: registers_at, dump_at,
    dump_n int64 (dump_n: bytes that are real); flags uint8: IS_KERNEL_MODE, IS_WHOLE_STACK."""

    machine: Machine
    big: bool
    data: Array
    register_of: Array
    registers_at: Array
    dump_at: Array
    dump_n: Array
    flags: Array


@dataclass(frozen=True)
class Chains:
    """Callchains, innermost first: of sample i, first[i] to first[i + 1] of pc (uint64) and how (uint8, BY_*). end
    (uint8): how each ended; module (int32): for want of whose call-frame information, -1 nobody's, -2 no mapping."""

    first: Array
    pc: Array
    how: Array
    end: Array
    module: Array


class Unwinder:
    """modules: by number, as address spaces name them."""

    def __init__(self, modules: Sequence[Module | None]) -> None:
        self._modules = modules
        self._rules = RuleSets()
        self.problems: dict[int, list[Problems]] = {}
        n = len(modules)
        self._row_first, self._row_last = np.full(n, -1, np.int64), np.full(n, -1, np.int64)
        self._row_pc, self._row_rule = Growing(np.zeros(0, np.uint64)), Growing(np.zeros(0, np.int32))
        plts = [module.plt if module is not None else () for module in modules]
        self._entry = np.array([m.entry_point if m is not None else 0 for m in modules], np.uint64)
        self._plt_first = np.concatenate(([0], np.cumsum([len(plt) for plt in plts]))).astype(np.int64)
        self._plt_start = np.array([start for plt in plts for start, _ in plt], np.uint64)
        self._plt_end = np.array([end for plt in plts for _, end in plt], np.uint64)
        self._cache = tuple(np.zeros(CACHE_SIZE, t) for t in (np.uint64, np.int32, np.int32))

    def unwind(self, stacks: UserStacks, rows: Array, space: AddressSpace) -> Chains:
        """Unwinds the samples `rows`, while the space is as it is now."""
        columns = [
            np.ascontiguousarray(column[rows])
            for column in (stacks.registers_at, stacks.dump_at, stacks.dump_n, stacks.flags)
        ]
        n = len(rows)
        n_out, end, module = np.zeros(n, np.int32), np.zeros(n, np.uint8), np.zeros(n, np.int32)
        pc, how = np.empty(BATCH, np.uint64), np.empty(BATCH, np.uint8)
        pcs, hows = [], []
        state = np.zeros(3, np.int64)
        self._cache[0][:] = 0
        while True:
            arguments: list[Any] = [
                stacks.data, stacks.big, stacks.machine, columns[0], stacks.register_of, *columns[1:], space.columns(),
                self._module_columns(), self._rules.columns(), self._cache, MAX_FRAMES, state, pc, how, n_out, end,
                module,
            ]  # fmt: skip
            kernel.unwind(*arguments)
            n_frames = int(state[unwind_inlined.N_FRAMES])
            pcs.append(pc[:n_frames].copy())
            hows.append(how[:n_frames].copy())
            state[unwind_inlined.N_FRAMES] = 0
            if state[unwind_inlined.SAMPLE] == n:
                break
            if state[unwind_inlined.WANTED] >= 0:
                self._compile(int(state[unwind_inlined.WANTED]))
                self._cache[0][:] = 0
        first = np.concatenate(([0], np.cumsum(n_out))).astype(np.int64)
        return Chains(first, np.concatenate(pcs), np.concatenate(hows), end, module)

    def _compile(self, number: int) -> None:
        module = self._modules[number]
        self._row_first[number] = self._row_last[number] = len(self._row_pc)
        if module is None:
            return
        rows, self.problems[number] = module.rows(self._rules)
        self._row_last[number] += len(rows.pc)
        self._row_pc.extend(rows.pc)
        self._row_rule.extend(rows.rule)

    def _module_columns(self) -> tuple[Array, ...]:
        return (
            self._row_first, self._row_last, self._entry, self._plt_first, self._plt_start, self._plt_end,
            self._row_pc.values, self._row_rule.values,
        )  # fmt: skip
