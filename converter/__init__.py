"""traceferry: runtime recordings become traces for profiler.firefox.com and ui.perfetto.dev.

    import converter

    trace = converter.load("app.xray", symbols="app")
    converter.save(trace, "app.json.gz")
    for issue in trace.report:
        print(issue.as_text())
"""

from converter.api import convert, load, save
from converter.errors import FormatError, TraceferryError, UsageError
from converter.model import Trace

__all__ = ["FormatError", "Trace", "TraceferryError", "UsageError", "convert", "load", "save"]
