"""Where the machine code of a page's functions is, and what each of its addresses has: for a page whose server has the
instructions."""

from __future__ import annotations

from typing import Any

import numpy as np

from traceferry.analysis.totals.series import Measure
from traceferry.analysis.totals.trees import Trees
from traceferry.model import Array, Trace, distinct, sums

Json = dict[str, Any]
MOST_CODES = 500


class MachineCode:
    """The ranges of code in which samples end; of a recording without samples, those that are called.

    codes: int64 [n, 2], library and first address, those with most first; of_frame: which of them holds each of the
    trace's frames, -1 is none that is shown.
    """

    def __init__(self, trace: Trace, trees: Trees) -> None:
        self._trace = trace
        frames = trace.frames
        self._symbol = self._symbols()
        lib, self._start = self._places()
        self._own = {measure: self._of_frames(of_stack) for measure, of_stack in trees.of_stack.items()}
        share = np.zeros(len(frames))
        for own in self._own.values():
            share = np.maximum(share, own / max(sums.total(own), 1))
        has_code = (lib >= 0) & (self._start >= 0)
        rows = np.flatnonzero(has_code & (share > 0) if self._own else has_code)
        pairs = np.stack((lib[rows], self._start[rows]), axis=1).reshape(-1, 2)
        codes, code = np.unique(pairs, axis=0, return_inverse=True)
        code = code.reshape(-1)
        weight = np.bincount(code, weights=share[rows], minlength=len(codes))
        rank = np.lexsort((np.arange(len(codes)), -weight))[:MOST_CODES]
        place = np.full(len(codes), -1, np.int64)
        place[rank] = np.arange(len(rank))
        self.codes = codes[rank]
        self.of_frame = np.full(len(frames), -1, np.int64)
        self.of_frame[rows] = place[code]
        self._share = share

    def _symbols(self) -> Array:
        """Returns the symbol of each frame: its own, or that of its code object, whose sizes are no addresses."""
        frames = self._trace.frames
        of_code = np.append(self._trace.code["symbol"], -1)  # -1 is the last
        symbols: Array = np.where(frames["symbol"] >= 0, frames["symbol"], of_code[frames["code"]])
        return symbols

    def _places(self) -> tuple[Array, Array]:
        """Returns the library and the first address of the code that holds each frame; the frame's own address where
        that is unknown."""
        frames, symbols, symbol = self._trace.frames, self._trace.symbols, self._symbol
        lib, address = (np.append(symbols[key], -1)[symbol] for key in ("lib", "address"))
        return np.where(symbol >= 0, lib, frames["lib"]), np.where(symbol >= 0, address, frames["address"])

    def _of_frames(self, of_stack: Array) -> Array:
        """Returns what each frame has as the leaf of stacks."""
        leaf = self._trace.stacks["frame"][: len(of_stack)]
        return sums.total_by(leaf, of_stack, len(self._trace.frames))

    def shown(self, funcs: Array, measures: dict[Measure, int]) -> Json:
        """Returns what the page holds. funcs: rows of the functions that it shows, ascending; measures: the numbers of
        those that it shows."""
        trace = self._trace
        heats: list[list[Json]] = [[] for _ in self.codes]
        for measure, own in self._own.items():
            if measure in measures:
                self._add_heat(heats, measures[measure], own)
        names, titles = self._names(), self._titles()
        return {
            "libs": [[trace.strings[i] for i in pair] for pair in self._libs()],
            "codes": [
                {
                    "name": names[nth],
                    "title": titles[nth] or names[nth],
                    "lib": lib,
                    "start": f"{start:#x}",
                    "heat": heats[nth],
                }
                for nth, (lib, start) in enumerate(self.codes.tolist())
            ],
            "of_func": self._of_funcs(funcs).tolist(),
        }

    def _libs(self) -> list[tuple[int, int]]:
        libs = self._trace.libs
        return list(zip(libs["name"].tolist(), libs["debug_id"].tolist(), strict=True))

    def _names(self) -> list[str]:
        """Returns the name of each code: of its symbol, else of a function in it."""
        trace, found = self._trace, [""] * len(self.codes)
        rows = np.flatnonzero(self.of_frame >= 0)
        first = rows[np.unique(self.of_frame[rows], return_index=True)[1]]
        for row in first.tolist():
            symbol = int(self._symbol[row])
            name = trace.strings[int(trace.symbols["name"][symbol])] if symbol >= 0 else ""
            found[int(self.of_frame[row])] = name or trace.func_name(int(trace.frames["func"][row]))
        return found

    def _titles(self) -> list[str]:
        """Returns what a person calls each code: the function that was compiled, with its tier; "" where no frame is of
        that function itself."""
        trace, found = self._trace, [""] * len(self.codes)
        rows = np.flatnonzero((self.of_frame >= 0) & (trace.frames["inline_depth"] == 0))
        for row in rows[np.unique(self.of_frame[rows], return_index=True)[1]].tolist():
            name, tier = trace.func_name(int(trace.frames["func"][row])), int(trace.frames["tier"][row])
            of_tier = trace.strings[int(trace.tiers["name"][tier])] if tier >= 0 else ""
            found[int(self.of_frame[row])] = f"{name} ({of_tier})" if of_tier not in ("", name) else name
        return found

    def _add_heat(self, heats: list[list[Json]], measure: int, own: Array) -> None:
        """Adds what the addresses of each code have, as distances from its start."""
        address = self._trace.frames["address"]
        rows = np.flatnonzero((own > 0) & (self.of_frame >= 0) & (address >= 0))
        places = np.stack((self.of_frame[rows], address[rows] - self._start[rows]), axis=1)
        places, place = np.unique(places.reshape(-1, 2), axis=0, return_inverse=True)
        amounts = sums.total_by(place.reshape(-1).astype(np.int32), own[rows], len(places))
        for nth in distinct(places[:, 0]).tolist():
            mine = places[:, 0] == nth
            heats[nth].append(
                {"measure": measure, "offset": places[mine, 1].tolist(), "amount": amounts[mine].tolist()}
            )

    def _of_funcs(self, funcs: Array) -> Array:
        """Returns for each function the code in which it has most, -1 is none."""
        found = np.full(len(funcs), -1, np.int64)
        if not len(funcs):
            return found
        rows = np.flatnonzero(self.of_frame >= 0)
        func = self._trace.frames["func"][rows]
        pairs, pair = np.unique(np.stack((func, self.of_frame[rows]), axis=1), axis=0, return_inverse=True)
        weight = np.bincount(pair.reshape(-1), weights=self._share[rows], minlength=len(pairs))
        # The last one of a function that is written is that with most.
        for row in np.lexsort((-pairs[:, 1], weight)).tolist():
            at = int(np.searchsorted(funcs, pairs[row, 0]))
            if at < len(funcs) and funcs[at] == pairs[row, 0]:
                found[at] = pairs[row, 1]
        return found
