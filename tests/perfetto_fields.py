"""Writes exporters/perfetto/fields.py and fields.pxd: `python tests/perfetto_fields.py`, after a name was added.

They have the names of Perfetto's messages and enums that the exporter's sources mention, as the PyPI package perfetto
declares them; a nested message has the names of those around it in front of its own. test_perfetto.py holds the
committed files to it.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent.parent / "exporters" / "perfetto"
HEAD = '''"""Fields of Perfetto's messages, each as its number << 3 | wire type, and values of enums.

Made by tests/perfetto_fields.py: edit nothing here.
"""
'''
OF_PYTHON, OF_KERNELS = re.compile(r"\bpb\.(\w+)\.(\w+)"), re.compile(r"\bpb\.(\w+)")
IN_ROW = 4
VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
# protos/third_party/android/art/heap_graph.proto, which extends TracePacket: the package does not have it.
HEAP_GRAPH = {
    "TracePacket": {"heap_graph": 56 << 3 | LENGTH},
    "HeapGraph": {
        "pid": 1 << 3 | VARINT, "objects": 2 << 3 | LENGTH, "continued": 5 << 3 | VARINT, "index": 6 << 3 | VARINT,
        "roots": 7 << 3 | LENGTH, "types": 9 << 3 | LENGTH,
    },
    "HeapGraphObject": {
        "id": 1 << 3 | VARINT, "type_id": 2 << 3 | VARINT, "self_size": 3 << 3 | VARINT,
        "reference_object_id": 5 << 3 | LENGTH, "id_delta": 7 << 3 | VARINT,
    },
    "HeapGraphRoot": {"object_ids": 1 << 3 | LENGTH, "root_type": 2 << 3 | VARINT},
    "HeapGraphRootType": {
        "ROOT_UNKNOWN": 0, "ROOT_JNI_GLOBAL": 1, "ROOT_JAVA_FRAME": 3, "ROOT_STICKY_CLASS": 5,
        "ROOT_THREAD_OBJECT": 8, "ROOT_FINALIZING": 10, "ROOT_DEBUGGER": 11, "ROOT_REFERENCE_CLEANUP": 12,
        "ROOT_VM_INTERNAL": 13,
    },
    "HeapGraphType": {"id": 1 << 3 | VARINT, "class_name": 3 << 3 | LENGTH, "kind": 7 << 3 | VARINT},
    "HeapGraphTypeKind": {"KIND_ARRAY": 4},
}  # fmt: skip


def declared() -> dict[str, dict[str, int]]:
    """Returns the tags of all messages' fields and the values of all enums."""
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2

    found: dict[str, dict[str, int]] = {}

    def enter(name: str, message: Any) -> None:
        found[name] = {field.name: field.number << 3 | wire_type(field) for field in message.fields}
        for nested in message.nested_types:
            enter(name + nested.name, nested)
        for enum in message.enum_types:
            found[name + enum.name] = {value.name: value.number for value in enum.values}

    for message in perfetto_trace_pb2.DESCRIPTOR.message_types_by_name.values():
        enter(message.name, message)
    for enum in perfetto_trace_pb2.DESCRIPTOR.enum_types_by_name.values():
        found[enum.name] = {value.name: value.number for value in enum.values}
    return {name: {**found.get(name, {}), **HEAP_GRAPH.get(name, {})} for name in {**found, **HEAP_GRAPH}}


def wire_type(field: Any) -> int:
    if field.type in (field.TYPE_STRING, field.TYPE_BYTES, field.TYPE_MESSAGE) or field.GetOptions().packed:
        return LENGTH
    if field.type in (field.TYPE_FLOAT, field.TYPE_FIXED32, field.TYPE_SFIXED32):
        return FIXED32
    return FIXED64 if field.type in (field.TYPE_DOUBLE, field.TYPE_FIXED64, field.TYPE_SFIXED64) else VARINT


def texts() -> dict[str, str]:
    """Returns what both files have to be."""
    every = declared()
    used: dict[str, set[str]] = {}
    for message, field in mentioned("*.py", OF_PYTHON):
        used.setdefault(message, set()).add(field)
    classes = "".join(class_of(name, every[name], fields) for name, fields in sorted(used.items()))
    constants = "".join(
        f"    {name} = {value_of(every, name)}\n" for name in sorted(set(mentioned("*.pyx", OF_KERNELS)))
    )
    return {"fields.py": f"{HEAD}\n\n# fmt: off\n{classes}", "fields.pxd": f"{HEAD}\ncdef enum:\n{constants}"}


def mentioned(files: str, pattern: re.Pattern[str]) -> list[Any]:
    return [found for path in FOLDER.glob(files) for found in pattern.findall(path.read_text(encoding="utf-8"))]


def class_of(name: str, values: dict[str, int], fields: set[str]) -> str:
    ordered = sorted(fields, key=values.__getitem__)
    rows = [ordered[at : at + IN_ROW] for at in range(0, len(ordered), IN_ROW)]
    shown = (f"    {', '.join(row)} = {', '.join(str(values[field]) for field in row)}\n" for row in rows)
    return "".join([f"class {name}:\n", *shown])


def value_of(every: dict[str, dict[str, int]], name: str) -> int:
    """Returns that of a constant of the kernels: Message_field."""
    message, _, field = name.partition("_")
    return every[message][field]


if __name__ == "__main__":
    for name, text in texts().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
