"""Sizes of packs against archives of `perf archive`, which have the binaries, but not the recording.

    python benchmarks/pack.py RECORDING...

RECORDING: perf.data files of this machine, whose binaries are as they were."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from traceferry import packing


def sizes_of(path: Path, folder: Path) -> tuple[int, int, int]:
    """Returns bytes: of the pack, of that with --whole, of the archive."""
    packs = [packing.write(packing.gather(path, whole=whole), folder / "a.tfpack") for whole in (False, True)]
    link = folder / "perf.data"
    link.symlink_to(path.resolve())
    subprocess.run(["perf", "archive", link.name], cwd=folder, check=True, capture_output=True)
    (archive,) = folder.glob("perf.data.tar*")
    return packs[0], packs[1], archive.stat().st_size


def main() -> None:
    for path in map(Path, sys.argv[1:]):
        with tempfile.TemporaryDirectory() as folder:
            pack, whole, archive = sizes_of(path, Path(folder))
        print(f"{path}: pack {pack:,}, whole {whole:,}, perf archive {archive:,} bytes: 1/{archive / pack:.0f}")


if __name__ == "__main__":
    main()
