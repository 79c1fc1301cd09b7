"""Map: what a profile says of the recording."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

# Members of `meta`, and what they are called in a trace.
ATTRIBUTES = {
    "product": "product",
    "importedFrom": "imported_from",
    "oscpu": "system",
    "platform": "platform",
    "abi": "architecture",
    "CPUName": "cpu",
    "logicalCPUs": "logical_cpus",
    "physicalCPUs": "physical_cpus",
    "mainMemory": "main_memory",
    "arguments": "arguments",
    "device": "device",
    "fileName": "file_name",
    "fileSize": "file_size",
    "sourceURL": "source_url",
    "appBuildID": "application_build",
    "updateChannel": "update_channel",
    "misc": "revision",
    "startTimeAsMachAbsoluteTimeNanoseconds": "start_mach_ns",
    "startTimeAsQueryPerformanceCounterValue": "start_performance_counter",
}
MAX_LENGTH = 1 << 14


# Of what this project writes into such profiles, what is no attribute.
WRITER = "traceferry"
OF_WRITER = ("inputs", "clock", "samples count")


def is_ours(meta: Mapping[str, Any]) -> bool:
    """Whether this project wrote the profile."""
    extra = meta.get("extra")
    groups = extra if isinstance(extra, list) else []
    return any(isinstance(group, dict) and group.get("label") == WRITER for group in groups)


def producer_of(meta: Mapping[str, Any]) -> str:
    """Returns who wrote the profile, as far as it tells."""
    names = (meta.get("importedFrom"), meta.get("product"))
    return next((name for name in names if isinstance(name, str) and name), "")


def attributes_of(meta: Mapping[str, Any]) -> dict[str, str]:
    """Returns the recording's provenance, by name."""
    return dict(_entries(meta))


def _entries(meta: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    ours = is_ours(meta)
    for key, name in () if ours else ATTRIBUTES.items():
        if text := _text(meta.get(key)):
            yield name, text
    extra = meta.get("extra")
    for group in extra if isinstance(extra, list) else []:
        entries = group.get("entries") if isinstance(group, dict) and group.get("label") != WRITER else None
        for entry in entries if isinstance(entries, list) else []:
            label, value = (entry.get(key) if isinstance(entry, dict) else None for key in ("label", "value"))
            if isinstance(label, str) and label and not (ours and label in OF_WRITER) and (text := _text(value)):
                yield label, text


def _text(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return ""
    return str(value)[:MAX_LENGTH]
