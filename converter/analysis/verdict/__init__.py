"""What a recording is worth, and what to do about it: one line, then at most three with the next command.

`verdict_of` makes a `Verdict` of a trace and of what its samples are; `info --json`, `convert --report` and the page
have it as `Verdict.as_json`, the commands print `verdict_lines`. `Tally` counts the samples while something else, as an
exporter, goes through the threads.
"""

from traceferry.analysis.verdict.case import Advice
from traceferry.analysis.verdict.tally import Tally
from traceferry.analysis.verdict.verdict import Verdict, verdict_lines, verdict_of

__all__ = ["Advice", "Tally", "Verdict", "verdict_lines", "verdict_of"]
