"""Callstacks, their frames and mappings, and symbols."""

from __future__ import annotations

from itertools import starmap

import numpy as np

from traceferry.exporters.depths import CUT, INNERMOST, MAX_DEPTH
from traceferry.exporters.perfetto import fields as pb
from traceferry.exporters.perfetto._packets import ABSENT, OutputBuffer, mark
from traceferry.exporters.perfetto._stacks import CallstackWriter
from traceferry.exporters.perfetto.packets import Packets, in_pieces, interned
from traceferry.exporters.perfetto.physical_frames import Location, Module, PhysicalFrames
from traceferry.model import Array, Trace, distinct

FRAMES = 1 << 14  # in a packet
LONGEST_FRAME = 90
NO_NUMBER = int(ABSENT)


class Callstacks:
    """The callstacks, frames and mappings that one sequence has interned."""

    def __init__(self, trace: Trace, packets: Packets, frames: PhysicalFrames, sequence: int) -> None:
        self._trace = trace
        self._packets = packets
        self._frames = frames
        self._sequence = sequence
        self._writer = CallstackWriter(frames.stacks, MAX_DEPTH, INNERMOST)
        self._n_cut = 0
        self._mapping_iids: dict[Module, int] = {}
        self._sent = {"function_names": bytearray(), "source_paths": bytearray()}

    @property
    def iids(self) -> Array:
        """Returns the number of each stack's callstack, 0 is none yet (int32)."""
        return self._writer.iids

    def intern(self, stacks: Array) -> None:
        """Gives every one of these stacks its number in `iids`; -1 has none."""
        self._frames.update()
        new = _distinct(stacks[stacks >= 0])
        new = new[self.iids[new] == 0]
        if len(new):
            self._note_cut(self._frames.stacks.count_deeper(new, MAX_DEPTH))
            self._writer.write(OutputBuffer(self._write_piece), new)

    def _write_piece(self, callstacks: memoryview) -> None:
        """Writes callstacks, after the frames that are new in them."""
        frames = self._writer.new_frames()
        last = self._writer.n_frames
        iids = np.arange(last + 1 - len(frames), last + 1, dtype=np.int32)
        plain = self._frames.plain(frames)
        is_plain = plain >= 0
        self._write_plain(plain[is_plain], iids[is_plain])
        self._write_located(frames[~is_plain].tolist(), iids[~is_plain].tolist())
        self._write_interned(callstacks)

    def _write_interned(self, data: memoryview) -> None:
        self._packets.write(self._sequence, interned_data=data)

    def _note_cut(self, n: int) -> None:
        writer = self._writer
        if n and not writer.cut_iid:
            writer.n_frames = writer.cut_iid = writer.n_frames + 1
            entries: list[bytes] = []
            name = self._trace.strings.intern(CUT)
            self._strings("function_names", np.array([name]), entries)
            frame = pb.Frame(iid=writer.cut_iid, function_name_id=name + 1)
            self._packets.intern(self._sequence, [*entries, pb.InternedData(frames=frame)])
        self._n_cut += n
        where, detail = f"{self._sequence}", f"in the file for ui.perfetto.dev, deeper than {MAX_DEPTH}"
        self._trace.report.note("callstack_cut", self._n_cut, where=where, detail=detail)

    def _write_plain(self, frames: Array, iids: Array) -> None:
        """Writes frames of the trace at whose addresses nothing else can be."""
        if not len(frames):
            return
        columns = self._frames.columns
        entries: list[bytes] = []
        names, paths, lib = columns.name[frames], columns.path[frames], columns.lib[frames]
        mapping_of_lib = np.zeros(len(self._trace.libs) + 1, np.int32)
        for used in distinct(lib[lib >= 0]).tolist():
            mapping_of_lib[used] = self._mapping(self._frames.lib_module(used), entries)
        for field, strings in (("function_names", names), ("source_paths", paths)):
            self._strings(field, strings, entries)
        self._packets.intern(self._sequence, entries)
        out = OutputBuffer(self._write_interned, LONGEST_FRAME * min(len(frames), FRAMES))
        mappings = mapping_of_lib[lib]
        for at in range(0, len(frames), FRAMES):
            part = slice(at, at + FRAMES)
            rows, name, path, mapping = frames[part], names[part], paths[part], mappings[part]
            line, kind = columns.line[rows], columns.kind[rows]
            pb.Frame.write_rows(
                out, pb.InternedData, "frames", iid=iids[part],
                function_name_id=np.where(name >= 0, name + 1, ABSENT),
                mapping_id=np.where(mapping > 0, mapping, ABSENT),
                rel_pc=np.where(mapping > 0, columns.rel_pc[rows], ABSENT),
                source_path_iid=np.where(path >= 0, path + 1, ABSENT),
                line_number=np.where((path >= 0) & (line > 0), line, ABSENT),
                kind=np.where(kind > 0, kind, ABSENT),
            )  # fmt: skip

    def _write_located(self, frames: list[int], iids: list[int]) -> None:
        entries: list[bytes] = []
        rows: list[tuple[int, ...]] = []
        of_frames: list[int] = []
        sent = self._sent_of("function_names"), self._sent_of("source_paths")
        for location in self._frames.locations(frames):
            rows.append(self._located_row(location, *sent, entries))
            of_frames.append(len(entries))
            entries.append(b"")
        if not rows:
            return
        name_ids, mappings, rel_pcs, path_ids, lines_of, kinds = zip(*rows, strict=True)
        written = pb.Frame.rows(
            pb.InternedData, "frames", iid=iids, function_name_id=name_ids, mapping_id=mappings, rel_pc=rel_pcs,
            source_path_iid=path_ids, line_number=lines_of, kind=kinds,
        )  # fmt: skip
        for at, entry in zip(of_frames, written, strict=True):
            entries[at] = entry
        self._packets.intern(self._sequence, entries)

    def _located_row(
        self, location: Location, names: bytearray, paths: bytearray, entries: list[bytes]
    ) -> tuple[int, ...]:
        """Returns the numbers of name, mapping, address, path, line and kind of a frame, NO_NUMBER for none; interns
        what they refer to. names, paths: as `_sent_of` has them."""
        module, rel_pc, kind, lines = location
        name, path, line = lines[0]
        if len(lines) > 1 or path < 0:
            path, line = -1, 0
        name = self._string("function_names", names, name, entries)
        mapping, rel_pc = (self._mapping(module, entries), rel_pc) if module is not None else (NO_NUMBER, NO_NUMBER)
        path = self._string("source_paths", paths, path, entries)
        return name, mapping, rel_pc, path, line or NO_NUMBER, kind or NO_NUMBER

    def _string(self, field: str, sent: bytearray, index: int, entries: list[bytes]) -> int:
        """Interns a string, if it is not yet; returns its number, which is its index + 1, NO_NUMBER for -1. sent: as
        `_sent_of` has it of the field."""
        if index < 0:
            return NO_NUMBER
        if not sent[index]:
            sent[index] = 1
            entries.append(interned(field, index + 1, self._trace.strings[index]))
        return index + 1

    def _strings(self, field: str, indices: Array, entries: list[bytes]) -> None:
        """Interns those that are not yet; -1 is none."""
        sent = np.frombuffer(self._sent_of(field), np.uint8)
        known = indices[indices >= 0]
        new = distinct(known[sent[known] == 0])
        sent[new] = 1
        strings = self._trace.strings
        entries += pb.InternedData.texts(field, (new + 1).tolist(), [strings[index] for index in new.tolist()])

    def _sent_of(self, field: str) -> bytearray:
        """Returns for each of the trace's strings whether the sequence has it in this field."""
        sent = self._sent[field]
        n = len(self._trace.strings)
        if len(sent) < n:
            sent = self._sent[field] = sent + bytes(n - len(sent))
        return sent

    def _mapping(self, module: Module, entries: list[bytes]) -> int:
        """Interns a mapping; returns its number."""
        iid = self._mapping_iids.get(module)
        if iid is None:
            iid = self._mapping_iids[module] = len(self._mapping_iids) + 1
            entries.append(interned("mapping_paths", iid, module.path))
            if module.build_id:
                entries.append(interned("build_ids", iid, module.build_id))
            build_id = iid if module.build_id else None
            mapping = pb.Mapping(
                iid=iid, start=module.start, end=module.end, build_id=build_id, path_string_ids=iid
            )  # fmt: skip
            entries.append(pb.InternedData(mappings=mapping))
        return iid


def _distinct(indices: Array) -> Array:
    """Returns those that occur, rising. Sorting them would take many times as long."""
    if not len(indices):
        return np.zeros(0, np.int32)
    lowest = int(indices.min())
    # Those of one thread are often few and near to each other.
    occurs = np.zeros(int(indices.max()) + 1 - lowest, np.uint8)
    mark(indices - np.int32(lowest), occurs)
    return (np.flatnonzero(occurs) + lowest).astype(np.int32)


def write_symbols(trace: Trace, packets: Packets, frames: PhysicalFrames, ts: int) -> None:
    """Writes the functions of each physical frame of more than one. trace_processor wants them after everything that
    has callstacks: ts is behind it."""

    def line(name: int, path: int, number: int) -> bytes:
        if path < 0:
            return pb.Line(function_name=trace.strings[name])
        return pb.Line(function_name=trace.strings[name], source_file_name=trace.strings[path], line_number=number)

    sequence = packets.sequence()
    for module, addresses in frames.symbols.items():
        head = pb.ModuleSymbols(path=module.name, build_id=module.build_id or None)
        parts = [
            pb.ModuleSymbols(address_symbols=pb.AddressSymbols(address=rel_pc, lines=[*starmap(line, lines[::-1])]))
            for rel_pc, lines in addresses.items()
        ]
        for piece in in_pieces(parts):
            packets.write_at(ts, sequence, module_symbols=b"".join((head, *piece)))
