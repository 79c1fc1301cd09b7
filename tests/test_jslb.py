"""JSLB: the same profile as JSON, and what the container refuses."""

import gzip
import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from clients import firefox
from conftest import examples
from hypothesis import given
from hypothesis import strategies as st
from outputs import saved

import traceferry
from traceferry.common.errors import UsageError
from traceferry.exporters.jslb import slabs
from traceferry.files.output import Output

ROOT = Path(__file__).resolve().parent.parent
RECORDINGS = ["xray/clang-19/fdr-c19-pie-pool-tsc.xray", "jit/php82/perf.data.zst", "mono/mono-6.8/heap.mlpd.zst"]
TYPES = ["i1", "u1", "<i2", "<u2", "<i4", "<u4", "<f4", "<f8", "<i8", "<u8"]


class Written:
    """A file that was written; read again as the format says, with what it has of the container."""

    def __init__(self, data: bytes) -> None:
        magic, version, n, self.root = struct.unpack_from("<8sIII", data)
        assert (magic, version) == (b"\xdc\xdfJSLB\x01\x00", 1)
        self.entries = [struct.unpack_from("<III", data, 20 + 12 * nth) for nth in range(n)]
        assert all(start % 8 == 0 and start + length <= len(data) for _, start, length in self.entries)
        self._data = data

    def value(self) -> Any:
        return self._slab(self.root)

    def _slab(self, nth: int) -> Any:
        kind, start, length = self.entries[nth]
        part = self._data[start : start + length]
        return self._resolved(json.loads(part)) if kind == 10 else np.frombuffer(part, TYPES[kind]).tolist()

    def _resolved(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._resolved(each) for each in value]
        if isinstance(value, dict):
            return (
                self._slab(value["$s"]) if list(value) == ["$s"] else {k: self._resolved(v) for k, v in value.items()}
            )
        return value


def written(write: Callable[[slabs.SlabWriter], None]) -> Written:
    pieces: list[bytes] = []

    class Sink:
        def write(self, data: bytes | bytearray | memoryview) -> None:
            pieces.append(bytes(data))

    out = Output(Sink(), gzip=False)
    with slabs.SlabWriter(out) as json_writer, json_writer.object():
        write(json_writer)
    out.finish()
    return Written(b"".join(pieces))


@pytest.mark.parametrize("recording", RECORDINGS)
def test_the_same_profile_as_json(recording: str, tmp_path: Path) -> None:
    """But that a time that a marker's phase makes meaningless is 0 where JSON has null."""
    trace = traceferry.load(ROOT / "fixtures" / recording)
    wanted = json.loads(saved(trace, tmp_path / "x.json").read_bytes())
    data = saved(trace, tmp_path / "x.jslb").read_bytes()
    for thread in wanted["threads"]:
        times = thread["markers"]["endTime"]
        thread["markers"]["endTime"] = [0 if time is None else time for time in times]
    assert Written(data).value() == wanted
    assert {kind for kind, _, _ in Written(data).entries} <= {1, 4, 7, 10}
    assert gzip.decompress(saved(trace, tmp_path / "x.jslb.gz").read_bytes()) == data


def test_profiler_cli_reads_it(tmp_path: Path) -> None:
    reason = firefox.available()
    if reason is not None:
        pytest.skip(reason)
    trace = traceferry.load(ROOT / "fixtures" / RECORDINGS[1])
    found = []
    for suffix in (".json.gz", ".jslb", ".jslb.gz"):
        with firefox.ProfilerCli(saved(trace, tmp_path / f"x{suffix}")) as cli:
            found.append(cli.threads())
    assert found[0] == found[1] == found[2] != []


@examples(200)
@given(
    st.dictionaries(
        st.sampled_from("abcde"), st.lists(st.lists(st.integers(-5, 2**31 - 1), max_size=40), max_size=4), max_size=5
    )
)
def test_columns_in_pieces(columns: dict[str, list[list[int]]]) -> None:
    """Negative numbers are null. Each text of a column takes the memory of the one before."""

    def write(json_writer: slabs.SlabWriter) -> None:
        for name, pieces in columns.items():
            json_writer.ints(name, (np.array(piece, np.int32) for piece in pieces))

    flat = {name: [None if n < 0 else n for piece in pieces for n in piece] for name, pieces in columns.items()}
    assert written(write).value() == flat


def test_columns_that_may_be_binary_are() -> None:
    def write(json_writer: slabs.SlabWriter) -> None:
        with json_writer.table("frameTable", 2):
            json_writer.longs("address", np.array([-1, 5]))
            json_writer.ints("inlineDepth", np.array([0, 3]))
            json_writer.ints("line", np.array([-1, 7]))
        with json_writer.object("samples"):
            json_writer.millis("time", np.array([0, 1_500_001]))

    found = written(write)
    assert [kind for kind, _, _ in found.entries] == [4, 1, 7, 10]
    assert found.value() == {
        "frameTable": {"address": [-1, 5], "inlineDepth": [0, 3], "line": [None, 7], "length": 2},
        "samples": {"time": [0, 1.500001]},
    }


def test_what_does_not_fit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slabs, "MOST_BYTES", 100)
    with pytest.raises(UsageError, match="JSLB cannot hold"):
        written(lambda json_writer: json_writer.member("text", "x" * 100))
