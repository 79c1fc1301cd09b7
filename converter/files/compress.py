"""Gzip of one member, compressed in blocks by several threads: the same bytes for any number of them.

A block is raw deflate that ends at a byte (RFC 1951, an empty stored block after it) and may refer to the 32 KiB before
it, so that blocks in a row are one stream, which every reader of gzip takes; browsers read no second member.
"""

from __future__ import annotations

import struct
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from isal import isal_zlib

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

LEVEL = 1
BLOCK = 1 << 20
WINDOW = 1 << 15
# RFC 1952: neither a time nor a name, no system: the same input, the same bytes.
HEADER = b"\x1f\x8b\x08\0\0\0\0\0\0\xff"
RAW = -15


class Block(NamedTuple):
    """A compressed block. data: raw deflate; checksum: CRC-32 of what it holds, which are n bytes; text: where it was,
    which may be filled again."""

    data: bytes
    checksum: int
    n: int
    text: bytearray


class Gzip:
    """Compresses what comes in pieces. At most two blocks for each job are in memory, beside the one that is filled.

    Parameters
    ----------
    jobs : int
        Threads that compress; with 1, the caller's does.
    """

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs
        self._pool: ThreadPoolExecutor | None = None
        self._under_way: deque[Future[Block]] = deque()
        # The next block, behind the bytes before it: memory that is filled again costs the system nothing.
        self._text = bytearray(WINDOW + BLOCK)
        self._free: list[bytearray] = []
        self._n_filled = self._n_before = 0
        self._checksum = self._n = 0
        self._has_header = False

    def compress(self, data: bytes | bytearray | memoryview) -> bytes:
        """Takes the next bytes; returns what is compressed since the last call."""
        ready = list[bytes]()
        at, n = 0, len(data)
        view = memoryview(data)
        while at < n:
            if self._n_filled == BLOCK:
                ready += self._add()
            taken = min(n - at, BLOCK - self._n_filled)
            begin = WINDOW + self._n_filled
            self._text[begin : begin + taken] = view[at : at + taken]
            self._n_filled += taken
            at += taken
        return b"".join(ready)

    def flush(self) -> bytes:
        """Returns the rest, and ends the member."""
        ready = [self._taken(done.result()) for done in self._under_way]
        self._under_way.clear()
        ready.append(self._taken(_compressed(self._text, self._n_before, self._n_filled, is_last=True)))
        self.close()
        return b"".join([*ready, struct.pack("<II", self._checksum, self._n & 0xFFFFFFFF)])

    def close(self) -> None:
        """Ends the threads; what is under way is given up."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None

    def _add(self) -> list[bytes]:
        """Compresses the block, or has it compressed, and begins the next one."""
        ready, full, n_before = list[bytes](), self._text, self._n_before
        if self._jobs == 1:
            ready.append(self._taken(_compressed(full, n_before, BLOCK)))
        else:
            if self._pool is None:
                from concurrent.futures import ThreadPoolExecutor  # small outputs are one block

                self._pool = ThreadPoolExecutor(self._jobs, thread_name_prefix="gzip")
            self._under_way.append(self._pool.submit(_compressed, full, n_before, BLOCK))
            while self._under_way and (len(self._under_way) > 2 * self._jobs or self._under_way[0].done()):
                ready.append(self._taken(self._under_way.popleft().result()))
        self._text = self._free.pop() if self._free else bytearray(WINDOW + BLOCK)
        self._text[:WINDOW] = memoryview(full)[BLOCK:]
        self._n_before, self._n_filled = WINDOW, 0
        return ready

    def _taken(self, block: Block) -> bytes:
        self._checksum = isal_zlib.crc32_combine(self._checksum, block.checksum, block.n)
        self._n += block.n
        self._free.append(block.text)
        header, self._has_header = b"" if self._has_header else HEADER, True
        return header + block.data


def _compressed(text: bytearray, n_before: int, n: int, is_last: bool = False) -> Block:
    """Compresses the n bytes from WINDOW on, behind n_before bytes that they may refer to."""
    whole = memoryview(text)
    before, block = whole[WINDOW - n_before : WINDOW], whole[WINDOW : WINDOW + n]
    packer = (
        isal_zlib.compressobj(LEVEL, wbits=RAW, zdict=before) if n_before else isal_zlib.compressobj(LEVEL, wbits=RAW)
    )
    data = packer.compress(block) + packer.flush(isal_zlib.Z_FINISH if is_last else isal_zlib.Z_SYNC_FLUSH)
    return Block(data, isal_zlib.crc32(block), n, text)
