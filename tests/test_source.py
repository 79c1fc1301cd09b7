"""Opening an input: what compresses it, how far it is decompressed, and what is damaged."""

import bz2
import gzip
import hashlib
import lzma
import os
import struct
import threading
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from builders import perf_data
from builders.perf_data import PerfData
from builders.xray import Fdr
from support import load_checked

from traceferry.apps import cli
from traceferry.common.errors import FormatError
from traceferry.files import source as source_module
from traceferry.files.decompress import DEFAULT_LIMIT, FREE, PIECE, Limit, decompress_stream
from traceferry.files.source import Source, open_source
from traceferry.importers.perf import decode

SKIPPABLE = struct.pack("<II", 0x184D2A5E, 5) + b"hello"
EMPTY_SKIPPABLE = struct.pack("<II", 0x184D2A50, 0)
# Compresses to about half, in many blocks.
DATA = b"".join(struct.pack("<II", n, n * 2654435761 & 0xFFFF_FFFF) for n in range(60_000))
MIB = 1 << 20
PACKS: tuple[Callable[[bytes], bytes], ...] = (zstandard.compress, gzip.compress, lzma.compress, bz2.compress)


def checked(data: bytes) -> bytes:
    return zstandard.ZstdCompressor(write_checksum=True).compress(data)


def streamed(data: bytes) -> bytes:
    """Without its size in the header."""
    compressor = zstandard.ZstdCompressor().compressobj()
    return compressor.compress(data) + compressor.flush()


@pytest.fixture
def opened(tmp_path: Path) -> Callable[..., Source]:
    def open_bytes(data: bytes, limit: Limit = DEFAULT_LIMIT) -> Source:
        (tmp_path / "input").write_bytes(data)
        return open_source(str(tmp_path / "input"), limit)

    return open_bytes


def test_zstd_frames_and_what_is_skipped_between_them(opened: Callable[..., Source]) -> None:
    one, two = DATA[:70_000], DATA[70_000:]
    for pack in (zstandard.compress, checked, streamed):
        for packed in (
            pack(DATA),
            pack(one) + pack(two),
            SKIPPABLE + pack(DATA),
            pack(one) + SKIPPABLE + EMPTY_SKIPPABLE + pack(two),
            pack(b"") + pack(DATA) + SKIPPABLE,
            pack(DATA) + bytes(512),
        ):
            source = opened(packed)
            assert bytes(source.data) == DATA
            assert (source.damage, source.limited) == ("", "")


def flushed(size: int) -> bytes:
    """A frame that has no end, as perf writes."""
    compressor = zstandard.ZstdCompressor(level=1).compressobj()
    return compressor.compress(DATA[:size]) + compressor.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)


# What is taken out of a frame at once does not end where a block does.
SIZES = [PIECE - 8, PIECE, PIECE + 8, 2 * PIECE + 50_000]


@pytest.mark.parametrize("n_pieces", [1, 3])
@pytest.mark.parametrize("size", SIZES)
def test_a_stream_without_an_end_is_whole(size: int, n_pieces: int) -> None:
    packed, found = flushed(size), bytearray()
    step = -(-len(packed) // n_pieces)
    outcome = decompress_stream((packed[at : at + step] for at in range(0, len(packed), step)), found, 1 << 30)
    assert bytes(found) == DATA[:size]
    assert (outcome.damage, outcome.limited) == ("", "")


@pytest.mark.parametrize("size", SIZES)
def test_a_cut_frame_gives_its_whole_blocks(size: int, opened: Callable[..., Source]) -> None:
    source = opened(flushed(size))
    assert bytes(source.data) == DATA[:size]
    assert source.damage == "the compressed data ends too early"


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, bz2.compress])
def test_members_and_streams(opened: Callable[..., Source], pack: Callable[[bytes], bytes]) -> None:
    for packed in (pack(DATA), pack(DATA[:9]) + pack(DATA[9:]), pack(DATA) + b"\0"):
        source = opened(packed)
        assert (bytes(source.data), source.damage) == (DATA, "")


def test_text_that_begins_as_bzip2_does(opened: Callable[..., Source]) -> None:
    assert bytes(opened(b"BZhandler;main 5\n").data) == b"BZhandler;main 5\n"


def test_what_follows_the_compressed_data_is_reported(opened: Callable[..., Source]) -> None:
    for pack in PACKS:
        source = opened(pack(DATA) + b"garbage")
        assert bytes(source.data) == DATA
        assert "ends 7 bytes before the file" in source.damage


def test_cut_anywhere(opened: Callable[..., Source]) -> None:
    """Whole blocks count; the end of a frame is known from its last block and its checksum."""
    for pack in (checked, streamed, gzip.compress, lzma.compress):
        packed = pack(DATA)
        for cut in (1, 3, 4, 5, 100, len(packed) // 2):
            source = opened(packed[:-cut])
            assert source.damage == "the compressed data ends too early"
            assert bytes(source.data) == DATA[: len(source.data)]
            assert len(source.data) > len(DATA) // 4
    assert opened(zstandard.compress(DATA) + SKIPPABLE[:-1]).damage == "the compressed data ends too early"


def test_damaged_in_the_middle(opened: Callable[..., Source]) -> None:
    for pack in (checked, gzip.compress, lzma.compress):
        packed = bytearray(pack(DATA))
        packed[len(packed) // 2 : len(packed) // 2 + 40] = bytes(range(40))
        source = opened(bytes(packed))
        assert "the compressed data" in source.damage
        assert len(source.data) > len(DATA) // 4


def test_nothing_in_it(opened: Callable[..., Source]) -> None:
    cut = bz2.compress(DATA)[:5000]
    for data in (SKIPPABLE, SKIPPABLE + b"x", b"", cut, b"BZh9" + bytes(9), *(pack(b"") for pack in PACKS)):
        with pytest.raises(FormatError):
            opened(data)


# ---------------------------------------------------------------- limits


def test_the_limit_is_of_size_and_ratio(opened: Callable[..., Source]) -> None:
    """Small inputs may hold 16 MiB whatever their size; a limit by size alone allows any ratio."""
    for pack in PACKS:
        packed = pack(bytes(FREE + MIB))
        for limit, size in (
            (DEFAULT_LIMIT, max(FREE, 1000 * len(packed))),
            (Limit(size=100), 100),
            (Limit(FREE + MIB, None), FREE + MIB),
            (Limit(FREE + MIB - 1, None), FREE + MIB - 1),
        ):
            source = opened(packed, limit)
            assert len(source.data) == size
            assert bool(source.limited) == (size < FREE + MIB)


def test_the_report_tells_of_the_limit_and_the_option_lifts_it(tmp_path: Path) -> None:
    log = Fdr()
    data = log.buffer(1, 1, records=[log.new_cpu(0, 5), log.enter(1, 10), log.exit(1, 10)]).bytes()
    (tmp_path / "app.xray.zst").write_bytes(zstandard.compress(data))
    size = str(len(data) - 1)
    cut = load_checked(tmp_path / "app.xray.zst", decompress_limit=len(data) - 1)
    assert [issue.kind for issue in cut.report if issue.severity == "loss"] == ["decompress_limited"]
    assert cut.report.lossy
    output = ["-o", str(tmp_path / "out.json"), "--quiet"]
    limited = ["--fail-on", "loss", "--decompress-limit", size]
    assert cli.main(["convert", str(tmp_path / "app.xray.zst"), *output, *limited]) == 1
    for limit in ("none", "1k", "1G", str(len(data))):
        assert cli.main(["convert", str(tmp_path / "app.xray.zst"), *output, "--decompress-limit", limit]) == 0


@pytest.mark.parametrize("size", ["", "x", "1.5G", "-1", "1P", "G", "٣"])
def test_sizes_that_cannot_be(size: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["info", "x", f"--decompress-limit={size}"])
    assert "is not a size" in capsys.readouterr().err


def test_decompressing_takes_no_second_copy(opened: Callable[..., Source]) -> None:
    # The dictionary of xz is counted, too.
    data = hashlib.shake_256().digest(10 * MIB)  # bzip2 takes long for what repeats
    for pack in (zstandard.compress, streamed, gzip.compress, bz2.compress):
        packed = pack(data)
        tracemalloc.start()
        source = opened(packed)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert len(source.data) == len(data)
        assert peak < 1.3 * len(source.data) + 4 * MIB


def test_a_compressed_record_of_perf_holds_no_more_than_perf_reads_at_once() -> None:
    """The header says how much that is, 1 MiB here; without that the common limit counts."""
    rounds = struct.pack("<IHH", perf_data.FINISHED_ROUND, 0, 8) * (24 * MIB // 8)
    data = PerfData().event().comm(7, 7, "app").begin_compressed().append(rounds).end_compressed()
    assert len(data.bytes()) < 5000
    found = decode.read(memoryview(data.bytes()))
    assert [problem.kind for problem in found.problems] == ["decompress_limited"]
    assert len(found.stream) < 3 * MIB
    unfinalized = decode.read(memoryview(data.bytes(finalized=False)))
    assert {problem.kind for problem in unfinalized.problems} == {"decompress_limited", "unfinalized"}
    assert FREE <= len(unfinalized.stream) < FREE + MIB


@pytest.mark.skipif(os.name != "posix", reason="FIFOs are POSIX's")
def test_a_fifo_without_a_writer_is_waited_for_in_plain_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(source_module, "SILENT_SECONDS", 0.05)
    fifo = tmp_path / "re\x1bcording"
    os.mkfifo(fifo)

    def write(seconds: float) -> None:
        end = time.monotonic() + 20
        while not caplog.records and seconds and time.monotonic() < end:
            time.sleep(0.01)
        fifo.write_bytes(DATA)

    said = [f"traceferry: waiting for {tmp_path}/re\\x1bcording: nothing has been written to it yet"]
    for waits in (20, 0):
        writer = threading.Thread(target=write, args=(waits,))
        writer.start()
        assert open_source(str(fifo)).data == DATA
        writer.join()
        if waits:
            assert caplog.messages == said
            monkeypatch.setattr(source_module, "SILENT_SECONDS", 20)
    assert caplog.messages == said


@pytest.mark.skipif(os.name != "posix", reason="os.pipe as a file's descriptor")
def test_standard_input_that_is_silent_is_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(source_module, "SILENT_SECONDS", 0.05)
    reading, writing = os.pipe()

    def write() -> None:
        while not caplog.records:
            time.sleep(0.01)
        with open(writing, "wb") as pipe:
            pipe.write(DATA)

    writer = threading.Thread(target=write)
    writer.start()
    with open(reading, encoding="utf-8") as piped:
        monkeypatch.setattr("sys.stdin", piped)
        assert open_source("-").data == DATA
    writer.join()
    assert caplog.messages == ["traceferry: waiting for standard input: nothing has been written to it yet"]
