"""How many samples have a frame without a name: an address of a library (`lib.so+0x12ab`), a function that only
call-frame information tells of (`lib.so function at 0x1200`), generated code without a record (`[code in //anon]`), or
`[unknown]`.

    python benchmarks/names.py [RECORDING...] [--before TREE] [--hide]

RECORDING: perf.data files; by default those of fixtures/jit, and of jit in the shared recordings. --before:
also with the package of another work tree, in which `make test` has installed it: the numbers of both, with an arrow.
--hide: as on a machine that has none of the recorded libraries. Each recording is one line: samples, those whose leaf
has no name, those that have any frame without one, and the same of distinct frames."""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path
from unittest.mock import patch

import numpy as np
from common import CAPTURES, ROOT

# Also in names with the tail that tells of inlining or of a version.
UNNAMED = re.compile(r"\[unknown\]|\[code in .+\]|.+\+0x[0-9a-f]+|(?:.+ )?function at 0x[0-9a-f]+")
COUNTS = ("samples", "leaf", "any", "frames")
WHAT = ("samples", "unnamed leaf", "any unnamed", "unnamed frames")


def recordings() -> list[Path]:
    """Returns those with samples that are there."""
    folders = (ROOT / "fixtures" / "jit", CAPTURES / "jit")
    found = [path for folder in folders for path in sorted(folder.glob("*/perf.data*"))]
    return [path for path in found if path.stat().st_size < 1 << 20]


def counts_of(path: Path) -> dict[str, int]:
    """Returns the numbers of COUNTS."""
    import traceferry

    trace = traceferry.load(path)
    threads = [thread.load(trace) for _, thread in trace.threads]
    unnamed_func = np.array([UNNAMED.fullmatch(trace.strings[name]) is not None for name in trace.funcs["name"]], bool)
    frame_is = unnamed_func[trace.frames["func"]]
    prefix, frame = trace.stacks["prefix"].tolist(), trace.stacks["frame"].tolist()
    leaf_is, any_is = [False] * (len(frame) + 1), [False] * (len(frame) + 1)
    for stack, (above, of) in enumerate(zip(prefix, frame, strict=True)):
        leaf_is[stack] = bool(frame_is[of])
        any_is[stack] = leaf_is[stack] or (above >= 0 and any_is[above])
    stacks = [stack for data in threads if data.samples is not None for stack in data.samples["stack"].tolist()]
    return {
        "samples": len(stacks),
        "leaf": sum(leaf_is[stack] for stack in stacks),
        "any": sum(any_is[stack] for stack in stacks),
        "frames": int(frame_is.sum()),
    }


def hidden_counts_of(path: Path) -> dict[str, int]:
    """Returns the numbers of COUNTS where none of the recorded libraries is installed."""
    from traceferry.files import named_files
    from traceferry.libraries import vdso

    opened = named_files._checked

    def beside(name: str, *rest: object) -> object:
        if Path(name).resolve().parent != path.parent:
            raise FileNotFoundError(name)
        return opened(name, *rest)

    with patch.object(named_files, "_checked", beside), patch.object(vdso, "own_vdso", lambda: b""):
        return counts_of(path)


def counts_by(tree: Path, paths: list[Path], *, hide: bool) -> list[dict[str, int]]:
    """Returns the counts of each recording, with the package of a work tree."""
    arguments = [str(tree / ".venv/bin/python"), __file__, "--json", *(["--hide"] if hide else []), *map(str, paths)]
    return list(json.loads(subprocess.run(arguments, check=True, capture_output=True, cwd=tree).stdout))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recordings", nargs="*", type=Path)
    parser.add_argument("--before", type=Path, metavar="TREE", help="a built work tree of an earlier revision")
    parser.add_argument("--hide", action="store_true")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    paths = [path.resolve() for path in arguments.recordings] or recordings()
    count = hidden_counts_of if arguments.hide else counts_of
    now = [count(path) for path in paths]
    if arguments.json:
        print(json.dumps(now))
        return 0
    before = counts_by(arguments.before, paths, hide=arguments.hide) if arguments.before else [{}] * len(paths)
    print(f"{'recording':40}", *(f"{what:>20}" for what in WHAT))
    for path, old, new in zip(paths, before, now, strict=True):
        columns = [f"{old[key]} → {new[key]}" if key in old else str(new[key]) for key in COUNTS]
        print(f"{'/'.join(path.parts[-3:]):40}", *(f"{column:>20}" for column in columns))
    return 0


if __name__ == "__main__":
    sys.exit(main())
