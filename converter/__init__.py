"""traceferry: runtime recordings become traces for profiler.firefox.com and ui.perfetto.dev.

import traceferry

trace = traceferry.load("app.xray", symbols="app")
traceferry.save(trace, "app.json.gz")
for issue in trace.report:
    print(issue.as_text())
"""

from typing import TYPE_CHECKING, Any

from traceferry.common.errors import FormatError, TraceferryError, UsageError

if TYPE_CHECKING:
    from traceferry.api import convert, load, save
    from traceferry.common.report import Issue, Report
    from traceferry.data_tables import DataTable
    from traceferry.loaded_trace import LoadedTrace
    from traceferry.model import Trace
    from traceferry.reading import LoadOptions

    __version__: str

__all__ = [
    "DataTable", "FormatError", "Issue", "LoadOptions", "LoadedTrace", "Report", "Trace", "TraceferryError",
    "UsageError", "__version__", "convert", "load", "save",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    # NumPy is imported when it is needed: `traceferry --help` does not need it.
    if name in ("convert", "load", "save"):
        from traceferry import api

        return getattr(api, name)
    if name in ("Issue", "Report"):
        from traceferry.common import report

        return getattr(report, name)
    if name == "LoadOptions":
        from traceferry.reading import LoadOptions

        return LoadOptions
    if name == "LoadedTrace":
        from traceferry.loaded_trace import LoadedTrace

        return LoadedTrace
    if name == "DataTable":
        from traceferry.data_tables import DataTable

        return DataTable
    if name == "Trace":
        from traceferry.model import Trace

        return Trace
    if name == "__version__":
        from importlib.metadata import version

        return version("traceferry")
    raise AttributeError(f"module 'traceferry' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
