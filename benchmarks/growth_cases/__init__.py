"""What `growth.py` measures: recordings, files of symbols, comparisons and data sets in which one dimension grows."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
from growth_cases import comparisons, jitdump, mono, perf, symbols, unwinding, xray

CASES = [case for each in (xray, mono, jitdump, perf, unwinding, symbols, comparisons) for case in each.CASES]
