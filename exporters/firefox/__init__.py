"""Firefox Profiler, processed format."""

from traceferry.exporters.firefox.profile import write

__all__ = ["write"]
