"""The folder of a running `view`: whose it is, and what is removed of others."""

from __future__ import annotations

import os
import stat
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from traceferry.apps.view import cache
from traceferry.apps.view.cache import LOCK, cache_folder

fcntl = pytest.importorskip("fcntl", reason="owners and modes are POSIX's")
MakesPlace = Callable[[Path], None]


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """(the user's cache, the system's folder for temporary files)"""
    caches, temporary = tmp_path / "cache", tmp_path / "tmp"
    temporary.mkdir()
    temporary.chmod(0o1777)
    monkeypatch.setenv("XDG_CACHE_HOME", str(caches))
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    return caches, temporary


def others_run(folder: Path) -> Path:
    """As another program has them: a folder of this name, with a lock that nobody holds."""
    run = folder / "run-1"
    run.mkdir(parents=True)
    (run / LOCK).touch()
    (run / "result").write_text("of many hours")
    return run


def is_private(folder: Path) -> bool:
    return stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_it_is_in_the_cache_and_goes(places: tuple[Path, Path]) -> None:
    with cache_folder() as folder:
        assert folder.parent == places[0] / "traceferry" / "view"
        assert is_private(folder)
        assert is_private(folder.parent)
        assert is_private(folder.parent.parent)
    assert list((places[0] / "traceferry" / "view").iterdir()) == []


def a_file(path: Path) -> None:
    path.write_text("")


def a_link(path: Path) -> None:
    others_run(path.parent / "elsewhere" / "view")
    path.symlink_to(path.parent / "elsewhere")


def of_another(path: Path) -> None:
    others_run(path / "view")
    os.chown(path, 65534, 65534)


@pytest.mark.parametrize("spoils", [a_file, a_link, of_another])
def test_without_a_folder_of_its_own_it_removes_nothing_of_others(
    places: tuple[Path, Path], spoils: MakesPlace, tmp_path: Path
) -> None:
    if spoils is of_another and os.geteuid() != 0:
        pytest.skip("only root gives folders away")
    caches, temporary = places
    caches.mkdir()
    spoils(caches / "traceferry")
    run = others_run(temporary)
    with cache_folder() as folder:
        assert folder.parent == temporary / f"traceferry-{os.geteuid()}"
        assert is_private(folder.parent)
    spoils(temporary / "next")
    folder.parent.rmdir()
    (temporary / "next").rename(folder.parent)
    with cache_folder() as folder:
        assert folder.parent == temporary
        assert is_private(folder)
    assert sorted(path.name for path in temporary.iterdir() if path.name.startswith("run-")) == ["run-1"]
    kept = [run, *tmp_path.rglob("view/run-1")]
    assert all((one / "result").read_text() == "of many hours" for one in kept)
    assert len(kept) >= (1 if spoils is a_file else 3)


def test_a_folder_that_others_could_write_to_is_not_for_keeping(places: tuple[Path, Path]) -> None:
    caches, temporary = places
    caches.mkdir(mode=0o777)
    caches.chmod(0o777)
    with cache_folder() as folder:
        assert folder.parent == temporary / f"traceferry-{os.geteuid()}"
    caches.chmod(0o1777)  # as /tmp is
    (caches / "traceferry").mkdir()
    (caches / "traceferry").chmod(0o775)  # as with umask 002
    with cache_folder() as folder:
        assert folder.parent == caches / "traceferry" / "view"
        assert not (caches / "traceferry").stat().st_mode & 0o022


def test_what_a_killed_one_has_left_goes(places: tuple[Path, Path]) -> None:
    view = places[0] / "traceferry" / "view"
    others_run(view)
    (view / "run-empty").mkdir()
    (view / "run-half").mkdir()
    (view / "run-half" / "trace.json.gz").touch()  # its lock went before it
    (view / "kept").mkdir()
    (view / "run-living").mkdir()
    with open(view / "run-living" / LOCK, "wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with cache_folder() as folder:
            assert {path.name for path in view.iterdir()} == {"kept", "run-living", folder.name}


def test_a_new_folder_that_another_start_takes_for_abandoned_is_given_up(
    places: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every moment between making a folder and holding it: another start cleans up there."""
    take, given_up = cache._take, []

    def taken_first(lock: object) -> bool:
        if len(given_up) == 0:
            given_up.append(lock.name)  # type: ignore[attr-defined]
            other = open(lock.name, "rb+")  # type: ignore[attr-defined] # noqa: SIM115 - held to the end
            given_up.append(other)
            fcntl.flock(other, fcntl.LOCK_EX)
        return take(lock)  # type: ignore[arg-type]

    monkeypatch.setattr(cache, "_take", taken_first)
    with cache_folder() as folder:
        assert str(folder / LOCK) != given_up[0]
    given_up[1].close()

    real = tempfile.mkdtemp

    def vanishing(**options: str) -> str:
        made = real(**options)
        if len(given_up) == 2:
            given_up.append(made)
            cache._remove_abandoned(Path(made).parent)
            assert not os.path.exists(made)
        return made

    monkeypatch.setattr(tempfile, "mkdtemp", vanishing)
    with cache_folder() as folder:
        assert (folder / LOCK).exists()
    assert len(given_up) == 3


def test_many_starts_at_once_keep_what_they_have(places: tuple[Path, Path]) -> None:
    lost: list[Path] = []

    def start() -> None:
        for _ in range(20):
            with cache_folder() as folder:
                (folder / "trace").touch()
                if not (folder / "trace").exists():
                    lost.append(folder)

    threads = [threading.Thread(target=start) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert lost == []
    assert list((places[0] / "traceferry" / "view").iterdir()) == []
