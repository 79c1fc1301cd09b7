"""GSYM files that are elsewhere: the same answers as of the whole file, from a small part of its bytes."""

import random
from collections.abc import Callable, Sequence
from itertools import product

import numpy as np
import pytest
from builders.gsym import BIG, LITTLE, GsymFile, Row
from conftest import SHARED, examples
from hypothesis import given
from hypothesis import strategies as st
from test_gsym import ANSWERS, KINDS, SHAPES, changed, everything, stacks

from traceferry.common.errors import FormatError
from traceferry.files.source import Source
from traceferry.files.sparse import BLOCK, SparseFile
from traceferry.symbolication.gsym import writer
from traceferry.symbolication.gsym.reader import Gsym
from traceferry.symbolication.interface import Function, Inline


class Elsewhere:
    """Bytes that are handed out part by part."""

    def __init__(self, data: bytes, block: int) -> None:
        self.data = data
        self.file = SparseFile(len(data), self._fetch, block)

    def opened(self) -> Gsym:
        return Gsym(Source("app.gsym", self.file.data), self.file)

    def _fetch(self, parts: Sequence[tuple[int, int]]) -> list[bytes]:
        assert all(0 <= start < end <= len(self.data) for start, end in parts)
        return [self.data[start:end] for start, end in parts]


def told(gsym: Gsym, addresses: Sequence[int]) -> object:
    """Everything that look-ups answer, and what they met."""
    frames = gsym.lookup(np.array(addresses, np.uint64))
    single = addresses[:12]
    answers = [stacks(frames), frames.start.tolist(), frames.size.tolist()]
    others = [[stacks(f)[0] for f in gsym.merged(address)] for address in single]
    sites = [gsym.call_sites(address) for address in single]
    return answers, others, sites, gsym.problems


def opened(how: Callable[[], Gsym]) -> Gsym | tuple[str, int | None]:
    """The file, or why it is refused."""
    try:
        return how()
    except FormatError as error:
        return error.message, error.offset


def same(data: bytes, block: int, addresses: Sequence[int] = tuple(ANSWERS)) -> None:
    """What the whole file answers, or refuses with."""
    whole = opened(lambda: Gsym(Source("app.gsym", memoryview(data))))
    parts = opened(Elsewhere(data, block).opened)
    if not isinstance(whole, Gsym) or not isinstance(parts, Gsym):
        assert whole == parts
        return
    assert (parts.build_id, parts.base, parts.version) == (whole.build_id, whole.base, whole.version)
    for address in addresses[::5]:
        assert told(parts.anew(), [address]) == told(whole.anew(), [address])
    assert told(parts, addresses) == told(whole, addresses)
    assert list(parts.functions()) == list(whole.functions())
    assert parts.sizes() == whole.sizes()
    assert parts.problems == whole.problems


@pytest.mark.parametrize(("version", "order", "address_size"), SHAPES)
def test_every_shape_answers_as_the_whole_file(version: int, order: str, address_size: int) -> None:
    for alignment, block in product((1, 4, 7), (8, 64, 1 << 20)):
        same(everything(GsymFile(version, order, address_size, alignment=alignment)).bytes(), block)


def test_functions_that_start_together() -> None:
    """The one that reaches an address is the last of many, each of which says so in its own info."""
    for n in (3, 40):
        file = GsymFile()
        for nth in range(n):
            file.function(f"f{nth}", 0x1010, 4 * (nth + 1), extra=[(9, bytes(100))])
        same(file.bytes(), 16, [0x1010, 0x1010 + 4 * n - 1, 0x1010 + 4 * n])


def test_infos_in_any_order_over_each_other_and_larger_than_they_seem() -> None:
    file = GsymFile().function("long", 0x1010, 8, [(0x1010, "a.c", 1)], extra=[(9, bytes(200_000))])
    data = file.function("f", 0x1020, 8).function("g", 0x1030, 8, [(0x1030, "a.c", 3)]).bytes()
    first, second, third = (48 + 3 * 4 + 4 * nth for nth in range(3))
    words = [data[at : at + 4] for at in (first, second, third)]
    inside = (int.from_bytes(words[0], "little") + 1000).to_bytes(4, "little")
    addresses = [0x1010, 0x1020, 0x1030]
    for damaged in (
        data,
        data[:first] + words[2] + words[1] + words[0] + data[third + 4 :],
        changed(data, second, inside),
        changed(data, third, words[0]),
        changed(data, first, b"\xff" * 4),
    ):
        same(damaged, 256, addresses)


def test_files_cut_anywhere() -> None:
    for version, order in KINDS:
        data = everything(GsymFile(version, order)).bytes()
        for size in range(0, len(data), 7):
            same(data[:size], 32)


FILES = [everything(GsymFile(version, order, alignment=1)).bytes() for version, order in KINDS]


@examples(150)
@given(
    st.sampled_from(FILES),
    st.lists(st.tuples(st.integers(0, 1 << 16), st.integers(0, 255)), min_size=1, max_size=8),
    st.sampled_from([8, 32, 128]),
)
def test_files_with_any_bytes_changed(data: bytes, changes: list[tuple[int, int]], block: int) -> None:
    damaged = bytearray(data)
    for at, value in changes:
        damaged[at % len(damaged)] = value
    same(bytes(damaged), block)


GSYM = sorted((SHARED / "captures/gsym").rglob("*.gsym")) if SHARED.is_dir() else []


@pytest.mark.skipif(not GSYM, reason="no recorded GSYM files here")
def test_recorded_files() -> None:
    for path in GSYM:
        data = path.read_bytes()
        if data[:4] not in (b"MYSG", b"GSYM"):
            continue
        found = Gsym(Source(path.name, memoryview(data)))
        starts = [f.start + f.size // 2 for f in found.functions()]
        same(data, 4096, starts[:: max(1, len(starts) // 50)])


# ---------------------------------------------------------------- how much is fetched


def large(version: int, order: str, n_functions: int) -> bytes:
    """Functions as a C++ program has them: names of 60 bytes, two dozen lines, an inlined call in every third."""

    def function(nth: int) -> Function:
        start = 0x10_0000 + nth * 0x100
        rows: list[Row] = [(start + 8 * row, f"src/module{nth // 50}.cpp", 100 + 3 * row) for row in range(24)]
        call = Inline(f"_ZN7project6inlined{nth}Ev", ((start + 16, start + 64),), f"src/h{nth // 90}.h", 30)
        name = f"_ZN7project6module{nth // 50}8functionINS_4argsE{nth:_>16}Ev"
        return Function(name, start, 0x100, rows, [call][nth % 3 :])

    class Out:
        data = b""

        def write(self, data: bytes) -> None:
            self.data += data

    out = Out()
    functions = (function(nth) for nth in range(n_functions))
    writer.write(out, functions, uuid=bytes(20), base=0x10_0000, version=version, big=order == BIG)
    return out.data


@pytest.mark.parametrize(("version", "order", "n_functions", "share"), [(1, LITTLE, 100_000, 10), (2, BIG, 20_000, 4)])
def test_a_small_part_of_a_large_file_is_fetched(version: int, order: str, n_functions: int, share: int) -> None:
    """The tables of addresses and offsets whole; infos and names by blocks, in few requests."""
    data = large(version, order, n_functions)
    whole, elsewhere = Gsym(Source("app.gsym", memoryview(data))), Elsewhere(data, BLOCK)
    gsym, sizes = elsewhere.opened(), whole.sizes()
    n_tables = sum(sizes[part] for part in ("header", "address table", "info offsets", "file table"))
    assert elsewhere.file.n_bytes <= 3 * BLOCK
    some = [0x10_0000 + nth * 0x100 + 20 for nth in range(0, n_functions, n_functions // 10)]
    near = [0x10_0000 + (nth + k) * 0x100 + 20 for nth in range(0, n_functions, n_functions // 10) for k in range(20)]
    for addresses, at_most in ((some[:1], 6), (near, 60)):
        before = elsewhere.file.n_bytes
        assert told(gsym.anew(), addresses) == told(whole.anew(), addresses)
        assert elsewhere.file.n_bytes - before - n_tables <= at_most * BLOCK
    assert elsewhere.file.n_bytes < len(data) // share
    n_bytes, n_requests = elsewhere.file.n_bytes, elsewhere.file.n_requests
    assert n_requests <= 60
    assert told(gsym.anew(), near) == told(whole.anew(), near)
    assert (elsewhere.file.n_bytes, elsewhere.file.n_requests) == (n_bytes, n_requests)
    anywhere = Elsewhere(data, BLOCK)
    addresses = [0x10_0000 + nth * 0x100 + 20 for nth in random.Random(1).sample(range(n_functions), 200)]
    assert told(anywhere.opened(), addresses) == told(whole.anew(), addresses)
    assert anywhere.file.n_bytes < len(data) // (2 if n_functions > 50_000 else 1)


def test_a_file_that_changed_in_between() -> None:
    data = everything(GsymFile()).bytes()
    file = SparseFile(len(data), lambda parts: [data[start : end - 1] for start, end in parts])
    with pytest.raises(OSError, match="was changed"):
        Gsym(Source("app.gsym", file.data), file)
