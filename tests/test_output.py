"""Where outputs go: files are replaced whole or not at all, anything else is written to."""

import gzip
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from builders.perf_data import PerfData

from traceferry.apps import cli
from traceferry.common.errors import UsageError
from traceferry.files.output import beside, open_output

needs_posix = pytest.mark.skipif(os.name != "posix", reason="FIFOs and modes are POSIX's")


def write(path: Path, data: bytes = b"new") -> None:
    with open_output(str(path)) as out:
        out.write(data)


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    path = tmp_path / "perf.data"
    path.write_bytes(PerfData().event().comm(7, 7, "app").sample(7, 7, ip=0x4010).bytes())
    return path


@contextmanager
def read_by_another(path: Path) -> Iterator[list[bytes]]:
    """Reads a FIFO until its writer closes it."""
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(path.read_bytes()), daemon=True)
    reader.start()
    yield got
    reader.join(timeout=20)


# ---------------------------------------------------------------- other than regular files


@needs_posix
def test_a_fifo_is_written_to(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo.gz"
    os.mkfifo(fifo)
    with read_by_another(fifo) as got:
        write(fifo)
    assert gzip.decompress(got[0]) == b"new"
    assert stat.S_ISFIFO(fifo.lstat().st_mode)


@needs_posix
def test_a_device_is_written_to(tmp_path: Path) -> None:
    link = tmp_path / "null"
    link.symlink_to(os.devnull)
    before = os.stat(os.devnull)
    write(link)
    write(Path(os.devnull))
    assert link.is_symlink()
    assert os.path.samestat(before, os.stat(os.devnull))
    assert list(tmp_path.iterdir()) == [link]


@needs_posix
def test_a_full_device_is_reported(tmp_path: Path) -> None:
    if not os.path.exists("/dev/full"):
        pytest.skip("this system has no /dev/full")
    with pytest.raises(UsageError, match="/dev/full: cannot be written: No space"):
        write(Path("/dev/full"), bytes(1 << 20))


@needs_posix
def test_the_own_standard_output_by_its_name(tmp_path: Path) -> None:
    """Where it leads to a file, that is not replaced, and what it holds already stays."""
    code = (
        "import sys; from traceferry.files.output import open_output\n"
        "print('before', flush=True)\n"
        "with open_output(sys.argv[1]) as out: out.write(b'new')"
    )
    for name in ("/dev/stdout", "/dev/fd/1"):
        with open(tmp_path / "out", "wb") as file:
            inode = os.fstat(file.fileno()).st_ino
            subprocess.run([sys.executable, "-c", code, name], stdout=file, check=True)
        assert (tmp_path / "out").read_bytes() == b"before\nnew"
        assert (tmp_path / "out").stat().st_ino == inode


# ---------------------------------------------------------------- links and modes


def test_links_are_followed(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    target, link, second = tmp_path / "folder" / "target", tmp_path / "link", tmp_path / "second"
    link.symlink_to(Path("folder") / "target")
    second.symlink_to(link)
    for text in (b"first", b"again"):  # at first, the link leads nowhere
        write(second, text)
        assert target.read_bytes() == text
    assert link.is_symlink()
    assert second.is_symlink()
    assert [path.name for path in (tmp_path / "folder").iterdir()] == ["target"]


@needs_posix
def test_a_file_keeps_its_mode_and_a_new_one_has_the_usual(tmp_path: Path) -> None:
    mask = os.umask(0o022)
    try:
        for mode in (0o600, 0o640, 0o666, 0o755):
            path = tmp_path / f"{mode:o}"
            path.write_bytes(b"old")
            path.chmod(mode)
            write(path)
            assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"new", mode)
        write(tmp_path / "fresh")
        assert stat.S_IMODE((tmp_path / "fresh").stat().st_mode) == 0o644
    finally:
        os.umask(mask)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files away")
def test_a_file_keeps_its_owner(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_bytes(b"old")
    os.chown(path, 12345, 23456)
    write(path)
    assert (path.stat().st_uid, path.stat().st_gid) == (12345, 23456)


def test_a_name_as_long_as_names_can_be(tmp_path: Path) -> None:
    path = tmp_path / ("é" * 120 + ".json")
    write(path)
    assert path.read_bytes() == b"new"


# ---------------------------------------------------------------- failures


def fail_inside(path: Path, error: BaseException) -> None:
    with open_output(str(path)) as out:
        out.write(bytes(1 << 20))
        raise error


def test_a_failure_leaves_everything_as_it_was(tmp_path: Path) -> None:
    """An error of what is read inside is not one of the output."""
    path = tmp_path / "out"
    path.write_bytes(b"old")
    for error in (OSError(5, "Input/output error", "input"), ValueError("x"), KeyboardInterrupt()):
        with pytest.raises(type(error)) as caught:
            fail_inside(path, error)
        assert caught.value is error
        assert [(p.name, p.read_bytes()) for p in tmp_path.iterdir()] == [("out", b"old")]


def test_an_error_while_reading_names_what_was_read(
    recording: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> None:
        raise OSError(5, "Input/output error", "lib.so")

    monkeypatch.setattr("traceferry.exporters.firefox.write", fail)
    output, report = recording.parent / "out.json", recording.parent / "report.json"
    assert cli.main(["convert", str(recording), "-o", str(output), "--report", str(report)]) == 2
    told = capsys.readouterr().err
    assert "lib.so" in told
    assert "cannot be written" not in told
    assert list(recording.parent.iterdir()) == [recording]


def test_places_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    for path in (tmp_path, tmp_path / "none" / "out", tmp_path / "file" / "out", tmp_path / ("x" * 300)):
        with pytest.raises(UsageError, match="cannot be written"):
            write(path)


def test_an_input_is_not_written_over(recording: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = recording.read_bytes()
    link = recording.parent / "link.json"
    link.symlink_to(recording)
    other = str(recording.parent / "out.json")
    for words in (["-o", str(recording), "--to", "firefox"], ["-o", str(link)], ["-o", other, "--report", other]):
        assert cli.main(["convert", str(recording), *words]) == 2
        assert "it is the same file as" in capsys.readouterr().err
    assert recording.read_bytes() == before


@needs_posix
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_leaves_no_half_written_file(tmp_path: Path, number: signal.Signals) -> None:
    """And the process ends by the signal."""
    code = (
        "import signal, sys, time; from traceferry.apps import cli; from traceferry.apps.cli import formats\n"
        "signal.signal(int(sys.argv[2]), signal.SIG_DFL)\n"  # under nohup, SIGHUP is ignored
        "from traceferry.files.output import open_output\n"
        "def run(arguments):\n"
        "    with open_output(sys.argv[1]) as out:\n"
        "        out.write(bytes(1 << 20)); print('writing', flush=True); time.sleep(60)\n"
        "formats.run = run\n"
        "sys.exit(cli.main(['formats']))"
    )
    child = subprocess.Popen([sys.executable, "-c", code, tmp_path / "out", str(int(number))], stdout=subprocess.PIPE)
    assert child.stdout is not None
    with child.stdout:
        assert child.stdout.readline() == b"writing\n"
    time.sleep(0.1)
    assert len(list(tmp_path.iterdir())) == 1
    child.send_signal(number)
    assert child.wait(timeout=30) == -number
    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------- names


def test_the_output_of_a_folder_lies_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "rec"
    (folder / "sub").mkdir(parents=True)
    for path in (f"{folder}", f"{folder}/", f"{folder}//", f"{folder}/."):
        assert Path(beside(path, ".json")) == tmp_path / "rec.json"
    monkeypatch.chdir(folder / "sub")
    assert beside("..", ".json") == str(tmp_path / "rec.json")
    assert beside(".", ".json") == str(folder / "sub.json")
    assert beside("missing/perf.data", ".json") == "missing/perf.data.json"


def test_converting_a_folder_writes_nothing_into_it(recording: Path) -> None:
    folder = recording.parent / "rec.dir"
    folder.mkdir()
    recording.rename(folder / "data")
    assert cli.main(["convert", f"{folder}/", "--quiet"]) == 0
    assert sorted(path.name for path in recording.parent.iterdir()) == ["rec.dir", "rec.dir.json.gz"]
    assert [path.name for path in folder.iterdir()] == ["data"]
