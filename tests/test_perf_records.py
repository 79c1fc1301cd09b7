"""Records and samples of perf.data, found and decoded by compiled code, against readers that use struct."""

import struct
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from conftest import examples
from hypothesis import given
from hypothesis import strategies as st

from traceferry.importers.perf._records import LAYOUT, RecordScanner, SampleDecoder, SampleType
from traceferry.importers.perf.events import SAMPLE_WORDS
from traceferry.importers.perf.samples import COLUMNS

WORDS = st.one_of(st.integers(0, 6), st.integers(0, 2**64 - 1))
NO_SAMPLE = dict.fromkeys(["pid", "tid", "cpu", "ts", "read_at", "raw_at", "raw_size", "user_at", "branch_at"], -1)


# ---------------------------------------------------------------- the scanner


def found(data: bytes, order: str) -> tuple[list[int], list[int], int, str]:
    """(offsets of samples, those of others, where it ends, why)"""
    at, samples, others = 0, [], []
    while at < len(data):
        if len(data) - at < 8:
            return samples, others, at, "cut"
        kind, _, size = struct.unpack_from(order + "IHH", data, at)
        if size < 8:
            return samples, others, at, "bad"
        record, after = data[at : at + size], 0
        if kind == 66 and len(record) >= 12:
            after = -(-struct.unpack_from(order + "I", record, 8)[0] // 8) * 8
        if kind == 71 and len(record) >= 16:
            (after,) = struct.unpack_from(order + "Q", record, 8)
        if at + size + after > len(data):
            return samples, others, at, "cut"
        (samples if kind == 9 else others).append(at)
        at += size + after
    return samples, others, at, ""


RECORDS = st.tuples(
    st.sampled_from([9, 9, 3, 66, 71, 2**32 - 1]), st.sampled_from([0, 7, 8, 12, 16, 24]), st.binary(max_size=24)
)


@examples(200)
@given(st.lists(RECORDS, max_size=12), st.sampled_from("<>"), st.lists(st.integers(0, 400), max_size=3), st.booleans())
def test_records(records: list[tuple[int, int, bytes]], order: str, windows: list[int], small: bool) -> None:
    """However it is cut into windows. What follows a record mostly is as long as it says."""
    data = b""
    for kind, size, body in records:
        known = struct.pack(order + "Q", len(body)) + body if kind in (66, 71) else body
        data += struct.pack(order + "IHH", kind, 0, size if size < 8 and small else 8 + len(known[:8])) + known
    scanner = RecordScanner(data, order == ">", 0, 1)
    for window in [*sorted(windows), len(data)]:
        if not scanner.is_bad:
            scanner.scan(min(window, len(data)))
    samples, others, at, why = found(data, order)
    assert (scanner.sample_at.tolist(), scanner.other_at.tolist(), scanner.position) == (samples, others, at)
    assert (scanner.is_bad, scanner.is_cut) == (why == "bad", why == "cut")
    kinds = [struct.unpack_from(order + "I", data, at)[0] for at in others]
    assert scanner.other_type.tolist() == [min(kind, 2**31 - 1) for kind in kinds]
    assert scanner.sample_bytes == sum(struct.unpack_from(order + "6xH", data, at)[0] for at in samples)


def test_more_records_than_expected() -> None:
    data = (struct.pack("<IHH", 9, 0, 8) + struct.pack("<IHH", 3, 0, 8)) * 1000
    scanner = RecordScanner(data, False, 0, 1)
    scanner.scan(len(data))
    assert scanner.sample_at.tolist() == list(range(0, 16000, 16))
    assert scanner.other_at.tolist() == list(range(8, 16000, 16))


def test_nothing_outside_of_the_data_is_scanned() -> None:
    with pytest.raises(ValueError, match="outside"):
        RecordScanner(b"", False, 0, 1).scan(1)
    with pytest.raises(ValueError, match="before the data"):
        RecordScanner(b"", False, -1, 1)


# ---------------------------------------------------------------- the decoder


class Rest:
    """Reads a record from `at` on; struct.error where it ends."""

    def __init__(self, data: bytes, at: int, order: str) -> None:
        self.data, self.at, self.order = data, at, order

    def read(self, code: str) -> Any:
        (value,) = struct.unpack_from(self.order + code, self.data, self.at)
        self.at += struct.calcsize("=" + code)
        return value

    def skip(self, size: int) -> None:
        self.at += size
        if self.at > len(self.data):
            raise struct.error


def decoded(record: bytes, order: str, layout: dict[str, int]) -> dict[str, Any]:
    """What a sample at the beginning of the data says, by column; `chain` is the callchain."""
    has_hw_idx = bool(layout["has_hw_idx"])
    try:
        return decoded_as(Rest(record, 8, order), layout, has_hw_idx)
    except struct.error:
        if not has_hw_idx or layout["n_branches_at_hw_idx"] != 0:
            raise
        return decoded_as(Rest(record, 8, order), layout, False)


def decoded_as(rest: Rest, layout: dict[str, int], has_hw_idx: bool) -> dict[str, Any]:
    kinds, formats = layout["sample_type"], layout["read_format"]
    row: dict[str, Any] = {**dict.fromkeys(COLUMNS, 0), **NO_SAMPLE, "chain": []}
    row["period"] = layout["period"]
    for kind in SAMPLE_WORDS:
        if not kind & kinds:
            continue
        if kind == SampleType.TID:
            row["pid"], row["tid"] = rest.read("i"), rest.read("i")
        elif kind == SampleType.CPU:
            row["cpu"], _ = rest.read("i"), rest.read("i")
        else:
            names = {SampleType.IP: "ip", SampleType.TIME: "ts", SampleType.ADDR: "addr", SampleType.PERIOD: "period"}
            row[names.get(kind, "")] = rest.read("Q")
    row["ts"] = row["ts"] if row["ts"] < 2**62 else -1
    row["period"] = row["period"] if row["period"] < 2**62 else 0
    if kinds & SampleType.READ:
        row["read_at"] = rest.at
        n = rest.read("Q") if formats & 8 else 1
        rest.skip(8 * ((formats & 3).bit_count() + n * (1 + (formats & 0b10100).bit_count())))
    if kinds & SampleType.CALLCHAIN:
        n = rest.read("Q")
        Rest(rest.data, rest.at, rest.order).skip(8 * n)
        row["chain"] = [rest.read("Q") for _ in range(n)]
    if kinds & SampleType.RAW:
        row["raw_size"], row["raw_at"] = rest.read("I"), rest.at
        rest.skip(row["raw_size"])
    if kinds & SampleType.BRANCH_STACK:
        n = rest.read("Q")
        layout["n_branches_at_hw_idx"] = Rest(rest.data, rest.at - 8, rest.order).read("Q")
        rest.skip(8 * has_hw_idx)
        row |= {"branch_at": rest.at if n else -1, "branch_n": n}
        rest.skip(n * (32 if layout["has_counters"] else 24))
    if kinds & SampleType.REGS_USER:
        registers, abi = rest.at, skip_registers(rest, layout["n_regs_user"])
    if kinds & SampleType.STACK_USER and (size := rest.read("Q")):
        rest.skip(size)
        if (n := min(rest.read("Q"), size)) and kinds & SampleType.REGS_USER:
            row |= {"user_at": registers, "user_abi": min(abi, 255), "user_size": size, "user_n": n}
    weights = {"weight": SampleType.WEIGHT | SampleType.WEIGHT_STRUCT, "data_src": SampleType.DATA_SRC}
    row |= {name: rest.read("Q") for name, kind in weights.items() if kind & kinds}
    rest.skip(8 * bool(kinds & SampleType.TRANSACTION))
    if kinds & SampleType.REGS_INTR:
        skip_registers(rest, layout["n_regs_intr"])
    last = ("phys_addr", "cgroup", "data_page_size", "code_page_size")
    row |= {name: rest.read("Q") for name in last if SampleType[name.upper()] & kinds}
    if kinds & SampleType.AUX:
        rest.skip(rest.read("Q"))
    row.pop("", None)
    return row


def skip_registers(rest: Rest, n_registers: int) -> int:
    """Returns their ABI. Bit 2 of it says that vector registers follow the others."""
    abi: int = rest.read("Q")
    rest.skip(8 * n_registers if abi else 0)
    if abi & 4:
        vectors, vector_words, predicates, predicate_words = (rest.read("H") for _ in range(4))
        rest.skip(8 * (vectors * vector_words + predicates * predicate_words))
    return abi


def decoder_of(data: bytes, order: str, layouts: list[dict[str, int]], at: list[int], chain_from: int = -1) -> Any:
    """(the decoder, its columns, its callchains) of samples at some offsets, with ids 5, 6… if there are several."""
    assert LAYOUT.names is not None
    table = SimpleNamespace(
        layouts=np.array([tuple(layout[name] for name in LAYOUT.names) for layout in layouts], LAYOUT),
        ids=np.arange(5, 5 + len(layouts), dtype=np.uint64), id_events=np.arange(len(layouts), dtype=np.int32), id_at=0,
    )  # fmt: skip
    columns: dict[str, Any] = {name: np.empty(len(at), dtype) for name, dtype in COLUMNS.items()}
    columns["offset"][:] = at
    chain = np.empty(len(data) // 8, np.uint64)
    return SampleDecoder(data, order == ">", table, columns, chain, chain_from), columns, chain


LAYOUTS = st.fixed_dictionaries({
    "sample_type": st.sets(st.sampled_from(list(SampleType))).map(lambda bits: int(sum(bits))),
    "read_format": st.integers(0, 31), "n_regs_user": st.integers(0, 3), "n_regs_intr": st.integers(0, 3),
    "has_hw_idx": st.integers(0, 1), "has_counters": st.integers(0, 1), "period": WORDS.map(lambda n: n >> 2),
})  # fmt: skip


def whole(layout: dict[str, int]) -> dict[str, int]:
    words = 8 * sum(bool(kind & layout["sample_type"]) for kind in SAMPLE_WORDS)
    return {**layout, "sample_id_size": 0, "words_size": words}


@examples(600)
@given(LAYOUTS, st.lists(WORDS, max_size=40), st.sampled_from("<>"), st.integers(0, 9))
def test_samples(layout: dict[str, int], body: list[int], order: str, n_more: int) -> None:
    """Of any layout and any bytes: mostly small numbers, so that many fit."""
    payload = struct.pack(f"{order}{len(body)}Q", *body) + bytes(n_more)
    record = struct.pack(order + "IHH", 9, 2, 8 + len(payload)) + payload
    decoder, columns, chain = decoder_of(record, order, [whole(layout)], [0])
    decoder.decode(0, 1)
    try:
        expected = decoded(record, order, {**layout, "n_branches_at_hw_idx": -1})
    except struct.error:
        assert (decoder.n_rows, decoder.n_bad, decoder.first_bad) == (0, 1, 0)
        return
    assert (decoder.n_rows, decoder.n_bad) == (1, 0)
    expected_chain = expected.pop("chain")
    expected |= {"cpumode": 2, "chain_n": len(expected_chain)}
    assert {name: column[0] for name, column in columns.items()} == expected
    assert chain[: decoder.n_chain].tolist() == expected_chain


@examples(100)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 4)), max_size=8), st.integers(1, 4), st.booleans())
def test_events_by_id(given_samples: list[tuple[int, int]], n_events: int, copied: bool) -> None:
    """Samples of several events with callchains, decoded in two parts: rows of those that can be read follow each
    other, whether callchains are copied or stay where they are."""
    data, at = b"", []
    for number, n in given_samples:
        at.append(len(data))
        data += struct.pack(f"<IHHQQ{n}Q", 9, 1, 24 + 8 * n, number, n, *range(n))
    kinds = SampleType.IDENTIFIER | SampleType.CALLCHAIN
    layout = whole({**dict.fromkeys(LAYOUT.names or (), 0), "sample_type": kinds})
    decoder, columns, chain = decoder_of(data, "<", [layout] * n_events, at, -1 if copied else 0)
    decoder.decode(0, len(at) // 2)
    decoder.decode(len(at) // 2, len(at))
    event = [0 if number == 0 or n_events == 1 else number - 5 for number, _ in given_samples]
    rows = [nth for nth in range(len(at)) if 0 <= event[nth] < n_events]
    n_rows = decoder.n_rows
    assert (n_rows, decoder.n_no_event) == (len(rows), len(at) - len(rows))
    assert columns["event"][:n_rows].tolist() == [event[nth] for nth in rows]
    assert columns["offset"][:n_rows].tolist() == [at[nth] for nth in rows]
    assert columns["chain_n"][:n_rows].tolist() == [given_samples[nth][1] for nth in rows]
    words = chain if copied else np.frombuffer(data, np.uint64)
    for start, n in zip(columns["chain_start"][:n_rows].tolist(), columns["chain_n"][:n_rows].tolist(), strict=True):
        assert words[start : start + n].tolist() == list(range(n))


@pytest.mark.parametrize("at", [-8, -(2**63), 1, 8, 2**62, 2**63 - 1])
def test_offsets_outside_of_the_data(at: int) -> None:
    layout = whole(dict.fromkeys(LAYOUT.names or (), 0))
    decoder, _, _ = decoder_of(struct.pack("<IHH", 9, 0, 8), "<", [layout], [at])
    decoder.decode(0, 1)
    assert (decoder.n_rows, decoder.n_bad, decoder.first_bad) == (0, 1, at)


def test_columns_of_other_lengths() -> None:
    table = SimpleNamespace(
        layouts=np.zeros(1, LAYOUT), ids=np.zeros(0, np.uint64), id_events=np.zeros(0, np.int32), id_at=-1
    )
    columns: dict[str, Any] = {name: np.empty(1, dtype) for name, dtype in COLUMNS.items()}
    for other in ({"ts": np.empty(2, np.int64)}, {"ts": None}, {"ts": np.empty(1, np.int32)}):
        with pytest.raises((ValueError, TypeError)):
            SampleDecoder(b"", False, table, columns | other, np.empty(0, np.uint64), -1)
    decoder = SampleDecoder(b"", False, table, columns, np.empty(0, np.uint64), -1)
    for begin, end in ((0, 2), (-1, 1)):
        with pytest.raises(ValueError, match="no such samples"):
            decoder.decode(begin, end)
