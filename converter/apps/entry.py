"""The command `traceferry`."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable


def main() -> int:
    """Runs the command line. Whoever interrupts it while modules are imported sees no traceback."""
    try:
        return _command()()
    except KeyboardInterrupt:
        print("traceferry: interrupted", file=sys.stderr)
        return 2


def _command() -> Callable[[], int]:
    """Imports the command line. Nothing of that is garbage, and to look through it takes as long as 30 modules."""
    gc.disable()
    try:
        from traceferry.apps.cli import main as run
    finally:
        gc.freeze()
        gc.enable()
    return run
