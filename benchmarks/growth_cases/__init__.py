"""What `growth.py` measures: recordings, files of symbols, comparisons and data sets in which one dimension grows."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
from growth_cases import comparisons, fleet, jitdump, mono, perf, symbols, unwinding, xray
from traceferry.apps.fleet import check_installed
from traceferry.common.errors import UsageError

CASES = [case for each in (xray, mono, jitdump, perf, unwinding, symbols, comparisons) for case in each.CASES]
# What cannot be measured here, and why.
LEFT_OUT: list[str] = []
try:
    check_installed()
    CASES += fleet.CASES
except UsageError as error:
    LEFT_OUT.append(f"cases of fleet: {error}")
