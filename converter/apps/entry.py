"""The command `traceferry`."""

from __future__ import annotations

import sys


def main() -> int:
    """Runs the command line. Whoever interrupts it while modules are imported sees no traceback."""
    try:
        from traceferry.apps.cli import main as run

        return run()
    except KeyboardInterrupt:
        print("traceferry: interrupted", file=sys.stderr)
        return 2
