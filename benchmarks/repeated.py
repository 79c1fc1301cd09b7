"""Makes large recordings of perf out of small ones: their samples and switches again and again, each time later. The
same bytes come out every time.

    python benchmarks/repeated.py perf.data N_SAMPLES OUTPUT
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

SAMPLE, EXIT, THROTTLE, UNTHROTTLE, SWITCH, SWITCH_CPU_WIDE, FINISHED_ROUND = 9, 4, 5, 6, 14, 15, 68
IP, TID, ID, CPU, STREAM_ID, IDENTIFIER = (1 << bit for bit in (0, 1, 6, 7, 9, 16))
DATA_SIZE_AT, FLAGS_AT, FLAGS_SIZE = 48, 72, 32  # in the header
PAUSE_NS = 1000  # from the last record of a turn to the first one of the next


class Seed:
    """A file of perf record, little-endian, with sample_id_all. ids: of each event, in the order of the file."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        attr_size, attrs_at, attrs_size, self.begin, size = struct.unpack_from("<16x5Q", data)
        self.end = self.begin + size
        self.ids: list[tuple[int, ...]] = []
        self._kinds: dict[int, int] = {}
        for at in range(attrs_at, attrs_at + attrs_size, attr_size):
            ids_at, ids_size = struct.unpack_from("<2Q", data, at + attr_size - 16)
            self.ids.append(struct.unpack_from(f"<{ids_size // 8}Q", data, ids_at))
            self._kinds |= dict.fromkeys(self.ids[-1], struct.unpack_from("<24xQ", data, at)[0])

    def records(self) -> Iterator[tuple[int, bytes]]:
        """Yields (type, bytes) of each record."""
        at = self.begin
        while at < self.end:
            kind, _, size = struct.unpack_from("<IHH", self.data, at)
            yield kind, self.data[at : at + size]
            at += size

    def time_at(self, kind: int, record: bytes) -> int:
        """Returns where in a sample, or in a switch, its time is."""
        (number,) = struct.unpack_from("<Q", record, 8 if kind == SAMPLE else len(record) - 8)
        bits = self._kinds.get(number, self._kinds[self.ids[0][0]])
        if kind == SAMPLE:
            return 8 + 8 * sum(bool(bits & bit) for bit in (IDENTIFIER, IP, TID))
        return len(record) - 8 - 8 * sum(bool(bits & bit) for bit in (ID, STREAM_ID, CPU, IDENTIFIER))


def write_repeated(seed: Seed, n_samples: int, path: Path, twins: bool = False) -> None:
    """Writes a recording with at least so many of the seed's samples. Threads of the seed do not end. twins: every
    sample of the first event comes once more, as one of the second."""
    begins, turn, times, n_of_turn = bytearray(), bytearray(), [], 0
    for kind, record in seed.records():
        if kind in (SAMPLE, SWITCH, SWITCH_CPU_WIDE):
            n_of_turn += kind == SAMPLE
            for nth in range(1 + twins):
                times.append(len(turn) + seed.time_at(kind, record))
                turn += record if not nth else record[:8] + struct.pack("<Q", seed.ids[1][0]) + record[16:]
        elif kind == FINISHED_ROUND:
            turn += record
        elif kind not in (EXIT, THROTTLE, UNTHROTTLE):
            begins += record
    n_turns = -(-n_samples // n_of_turn)
    size = len(begins) + n_turns * len(turn)
    with open(path, "wb") as file:
        file.write(seed.data[:DATA_SIZE_AT] + struct.pack("<Q", size) + seed.data[DATA_SIZE_AT + 8 : seed.begin])
        file.write(begins)
        part = np.frombuffer(turn, np.uint8).copy()
        at = np.array(times)[:, None] + np.arange(8)
        ts = part[at].view(np.int64)[:, 0]
        step = int(ts.max() - ts.min()) + PAUSE_NS
        for _ in range(n_turns):
            file.write(part.tobytes())
            ts += step
            part[at] = ts[:, None].view(np.uint8)
        file.write(_features(seed, size))


def _features(seed: Seed, data_size: int) -> bytes:
    """Returns the table of features and what it points to, for data of another size."""
    n = int.from_bytes(seed.data[FLAGS_AT : FLAGS_AT + FLAGS_SIZE], "little").bit_count()
    table = np.frombuffer(seed.data, "<u8", 2 * n, seed.end).copy()
    table[0::2] += np.uint64(seed.begin + data_size - seed.end)
    return table.tobytes() + seed.data[seed.end + 16 * n :]


if __name__ == "__main__":
    write_repeated(Seed(Path(sys.argv[1]).read_bytes()), int(sys.argv[2]), Path(sys.argv[3]))
