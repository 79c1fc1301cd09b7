"""Decode: a profile, as XRay's profiling mode writes it, into call trees.

Facts: compiler-rt/lib/xray/xray_profile_collector.cpp, xray_function_call_trie.h, LLVM 7 to 22. All fields have the
byte order of the machine:

    header: u64 magic, u64 version, u64 time of writing (ns since 1970), u64 pid
    block, one for each thread: u32 size with this header, u32 number, u64 thread id, records
    record: i32 ids of functions from the called one to the outermost, i32 0, u64 calls, u64 ticks

Each call path has one record, behind that of its caller; the last callee comes first. Calls are counted when they end.
The ticks, which the recorder calls local, are those of the calls with their callees; only calls that end without an
exit of their own, by an exception or longjmp, count without them, or become negative.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from traceferry.common.report import Problems
from traceferry.importers.xray.magic import PROFILE_MAGIC
from traceferry.model import Array

VERSION = 0x20180424
PROFILE_HEADER_SIZE = 32
BLOCK_HEADER_SIZE = 16
# What follows a path: the 0 that ends it, calls, ticks; in words of 4 bytes.
REST_WORDS = 5
LARGEST = 1 << 62
NO_NODE = -1
NO_RECORD = -1


@dataclass(frozen=True)
class ProfileHeader:
    """written_ns: the Unix time at which the file was written; order: of bytes."""

    version: int
    written_ns: int
    pid: int
    order: Literal["<", ">"]


@dataclass(frozen=True)
class CallTree:
    """The call paths of a thread, callers before callees, siblings in the order of their first calls.

    parent: int32, of each the row of its caller, -1 is none; function: int32 index into `Profile.function_ids`; calls,
    ticks: int64, of the calls that ended, ticks with those of callees. NO_RECORD calls: the file has only its callees.
    """

    tid: int
    parent: Array
    function: Array
    calls: Array
    ticks: Array


@dataclass
class Profile:
    """One file. name: identifies it in the report; function_ids: distinct."""

    name: str
    header: ProfileHeader
    trees: list[CallTree]
    function_ids: list[int]
    problems: Problems = field(default_factory=Problems)


@dataclass(frozen=True)
class Block:
    """begin, end: offsets of its records; size: as its header has it."""

    at: int
    begin: int
    end: int
    size: int
    number: int
    tid: int


@dataclass(frozen=True)
class Records:
    """The records of a block, in words of 4 bytes since the block's first record. path, path_end: where the ids of each
    begin and end; calls, ticks: uint64; n_read: words that are part of records."""

    path: list[int]
    path_end: list[int]
    calls: Array
    ticks: Array
    n_read: int


def read_profile_header(data: memoryview) -> ProfileHeader | None:
    """Returns the header; None where the file is too short for it. Any version is returned."""
    if len(data) < PROFILE_HEADER_SIZE:
        return None
    order: Literal["<", ">"] = "<" if bytes(data[:8]) == PROFILE_MAGIC.to_bytes(8, "little") else ">"
    _, version, written_ns, pid = struct.unpack_from(f"{order}3Qq", data)
    return ProfileHeader(version, written_ns, pid, order)


def read_profile(data: memoryview, header: ProfileHeader, name: str) -> Profile:
    """Reads all blocks; those of one thread id are one tree."""
    problems = Problems()
    forests: dict[int, _Forest] = {}
    for block in blocks(data, header):
        if block.begin + block.size - BLOCK_HEADER_SIZE > len(data):
            problems.add("truncated", offset=block.at)
        found = records_of(data, header, block)
        if found.n_read * 4 < block.end - block.begin:
            problems.add("bad_record", offset=block.begin + found.n_read * 4)
        forests.setdefault(block.tid, _Forest()).add(data, header, block, found, problems)
    rest = len(data) - max((block.end for block in blocks(data, header)), default=PROFILE_HEADER_SIZE)
    if rest:
        problems.add("truncated", offset=len(data) - rest)
    ids: dict[int, int] = {}
    trees = [forest.tree(tid, ids) for tid, forest in forests.items()]
    return Profile(name, header, trees, list(ids), problems)


def blocks(data: memoryview, header: ProfileHeader) -> Iterator[Block]:
    """Yields the blocks in file order. Of one whose size is too small for its header nothing is read, nor behind it."""
    at = PROFILE_HEADER_SIZE
    while at + BLOCK_HEADER_SIZE <= len(data):
        size, number, tid = struct.unpack_from(f"{header.order}IIq", data, at)
        if size < BLOCK_HEADER_SIZE:
            return
        end = min(at + size, len(data))
        yield Block(at, at + BLOCK_HEADER_SIZE, end, size, number, tid)
        at = end


def records_of(data: memoryview, header: ProfileHeader, block: Block) -> Records:
    """Returns the whole records of a block."""
    n = (block.end - block.begin) // 4
    words = np.frombuffer(data, f"{header.order}u4", n, block.begin)
    zeros = np.append(np.flatnonzero(words == 0), n).tolist()
    path: list[int] = []
    path_end: list[int] = []
    at = nth = 0
    while True:
        while zeros[nth] < at and zeros[nth] < n:
            nth += 1
        if zeros[nth] + REST_WORDS > n:
            break
        path.append(at)
        path_end.append(zeros[nth])
        at = zeros[nth] + REST_WORDS
    ends = np.array(path_end, np.int64)
    high, low = (0, 1) if header.order == ">" else (1, 0)
    calls, ticks = (
        words[ends + first + high].astype(np.uint64) << np.uint64(32) | words[ends + first + low] for first in (1, 3)
    )
    return Records(path, path_end, calls, ticks, at)


class _Forest:
    """The call trees of a thread while its records are added."""

    def __init__(self) -> None:
        self._of_path: dict[bytes, int] = {}
        self._of_callee: dict[tuple[int, int], int] = {}
        self._parent: list[int] = []
        self._id: list[int] = []
        self._calls: list[int] = []
        self._ticks: list[int] = []
        # Siblings by their first calls: roots come in this order, of callees the last one comes first.
        self._rank: list[tuple[int, int]] = []
        self._n_roots = 0

    def add(self, data: memoryview, header: ProfileHeader, block: Block, records: Records, problems: Problems) -> None:
        calls, ticks = records.calls.tolist(), records.ticks.view(np.int64).tolist()
        for nth, (first, end) in enumerate(zip(records.path, records.path_end, strict=True)):
            at, stop = block.begin + 4 * first, block.begin + 4 * end
            if first == end:
                problems.add("path_cut", offset=at)
                continue
            self._n_roots += end - first == 1
            node = self._node(bytes(data[at:stop]), header.order, (self._n_roots, -nth))
            if node < 0:
                node = ~node
                problems.add("path_cut", offset=at)
            if ticks[nth] < 0:
                problems.add("ticks_negative", offset=stop + 12)
            self._calls[node] = min(max(self._calls[node], 0) + calls[nth], LARGEST)
            self._ticks[node] = min(self._ticks[node] + max(ticks[nth], 0), LARGEST)

    def _node(self, path: bytes, order: Literal["<", ">"], rank: tuple[int, int]) -> int:
        """Returns the node of a path, its complement where the path's callers have no records before it: then the
        recorder cut the path."""
        known = self._of_path.get(path)
        if known is not None:
            return known
        caller = self._of_path.get(path[4:], NO_NODE)
        called, *callers = np.frombuffer(path, f"{order}u4", -1 if caller == NO_NODE else 1).tolist()
        for function_id in reversed(callers):
            caller = self._callee(caller, function_id, rank)
        node = self._of_path[path] = self._callee(caller, called, rank)
        return ~node if callers else node

    def _callee(self, caller: int, function_id: int, rank: tuple[int, int]) -> int:
        node = self._of_callee.setdefault((caller, function_id), len(self._parent))
        if node == len(self._parent):
            self._parent.append(caller)
            self._id.append(function_id)
            self._calls.append(NO_RECORD)
            self._ticks.append(0)
            self._rank.append(rank)
        return node

    def tree(self, tid: int, ids: dict[int, int]) -> CallTree:
        """ids: the index of each function id, which grows."""
        order = sorted(range(len(self._parent)), key=self._rank.__getitem__)
        callees: list[list[int]] = [[] for _ in range(len(order) + 1)]
        for node in reversed(order):
            callees[self._parent[node]].append(node)
        waiting, rows = callees[-1].copy(), list[int]()
        while waiting:
            node = waiting.pop()
            rows.append(node)
            waiting += callees[node]
        place = {node: row for row, node in enumerate(rows)}
        return CallTree(
            tid,
            np.array([place.get(self._parent[node], -1) for node in rows], np.int32),
            np.array([ids.setdefault(self._id[node], len(ids)) for node in rows], np.int32),
            np.array([self._calls[node] for node in rows], np.int64),
            np.array([self._ticks[node] for node in rows], np.int64),
        )


# ---------------------------------------------------------------- one by one, for `traceferry dump`


def describe_profile_header(header: ProfileHeader) -> str:
    order = "big" if header.order == ">" else "little"
    return (
        f"{0:#010x}  XRayProfilingFileHeader version={header.version:#x} {order}-endian "
        f"written={header.written_ns} pid={header.pid}"
    )


def profile_records(data: memoryview, header: ProfileHeader, offset: int) -> Iterator[str]:
    """Yields the blocks and records from `offset` on, one per line."""
    end = PROFILE_HEADER_SIZE
    for block in blocks(data, header):
        end = block.end
        if block.at >= offset:
            yield f"{block.at:#010x}  Block size={block.size} number={block.number} tid={block.tid}"
        found = records_of(data, header, block)
        for nth, (first, stop) in enumerate(zip(found.path, found.path_end, strict=True)):
            at = block.begin + 4 * first
            if at >= offset:
                ids = np.frombuffer(data, f"{header.order}i4", stop - first, at).tolist()
                path = " < ".join(map(str, ids))
                yield f"{at:#010x}  Path {path} calls={found.calls[nth]} ticks={found.ticks[nth]}"
        at = block.begin + 4 * found.n_read
        if at < block.end and at >= offset:
            yield f"{at:#010x}  cut: {block.end - at} bytes of a record"
    if max(end, offset) < len(data):
        yield f"{max(end, offset):#010x}  no block: {len(data) - max(end, offset)} bytes"
