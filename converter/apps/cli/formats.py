"""The command `formats`: what can be read and written."""

from __future__ import annotations

import argparse

from traceferry import registry
from traceferry.apps.cli.command_parser import CommandParser
from traceferry.apps.cli.options import DONE, explain
from traceferry.common.errors import UsageError
from traceferry.common.shown_text import shown


def add_to(parser: CommandParser) -> None:
    explain(
        parser,
        "Lists the formats that can be read and written.",
        examples="traceferry formats",
    )


def run(arguments: argparse.Namespace) -> int:
    print("reads")
    for importer in registry.IMPORTERS:
        print(f"  {importer.name:10} {importer.title}")
    print("writes")
    for exporter in registry.EXPORTERS:
        suffixes = " ".join(exporter.suffixes)
        print(f"  {exporter.name:10} {exporter.title}, for {exporter.viewer} ({suffixes}, each also with .gz)")
    print("trace_processor, for query")
    print(f"  {_engine()}")
    return DONE


def _engine() -> str:
    """Returns which one was found, or how one is."""
    from traceferry.trace_processor.engine import find_engine

    try:
        engine = find_engine()
    except UsageError as error:
        return shown(f"none: {error}")
    return shown(f"{engine.version}: {engine.path} ({engine.found})")
