"""Perfetto protobuf traces."""

from traceferry.exporters.perfetto.trace import write

__all__ = ["write"]
