"""Writes exporters/perfetto/fields.py and fields.pxd: `python tests/perfetto_fields.py`, after a name was added.

They have the names of Perfetto's messages and enums that the exporter's sources mention, as the PyPI package perfetto
declares them; a nested message has the names of those around it in front of its own. test_perfetto.py holds the
committed files to it.
"""

from __future__ import annotations

import ast
import re
import textwrap
from itertools import pairwise
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent.parent / "exporters" / "perfetto"
HEAD = '''"""Fields of Perfetto's messages, each as its number << 3 | wire type, and values of enums.

Made by tests/perfetto_fields.py: edit nothing here.
"""
'''
IMPORTS = """
from traceferry.exporters.perfetto._packets import Message

# fmt: off
"""
OF_KERNELS = re.compile(r"\bpb\.([^_\W]+)_(\w+)")
IN_ROW, WIDTH, LONG = 4, 120, 32
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
    messages, enums = mentioned(every)
    python = [assigned(f"{name} = Message", every[name], fields) for name, fields in sorted(messages.items())]
    python += [class_of(name, every[name], values) for name, values in sorted(enums.items())]
    kernels: dict[str, set[str]] = {}
    for path in FOLDER.glob("*.pyx"):
        for name, field in OF_KERNELS.findall(path.read_text(encoding="utf-8")):
            kernels.setdefault(name, set()).add(field)
    constants = [
        wrapped(", ".join(f"{name}_{field}={every[name][field]}" for field in ordered(every[name], fields)), "    ")
        for name, fields in sorted(kernels.items())
    ]
    # A line of an enum ends without a comma.
    enum = "".join(constants).replace("=", " = ").replace(",\n", "\n")
    return {
        "fields.py": f"{HEAD}{IMPORTS}{''.join(python)}",
        "fields.pxd": f"{HEAD}\ncdef enum:\n{enum}",
    }


def mentioned(every: dict[str, dict[str, int]]) -> tuple[dict[str, set[str]], dict[str, set[str]]]:
    """Returns the fields of messages, pb.Message(field=...), and the values of enums, pb.Enum.VALUE, that are used. Of
    a message with fields by names that are not written there, pb.Message(**fields), all whose names are written
    anywhere."""
    nodes = [node for path in FOLDER.glob("*.py") for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))]
    names = {node.arg for node in nodes if isinstance(node, ast.keyword)}
    names |= {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    messages: dict[str, set[str]] = {}
    enums: dict[str, set[str]] = {}
    for node in nodes:
        if isinstance(node, ast.Attribute) and declared_name(node.value) and node.attr.isupper():
            enums.setdefault(declared_name(node.value), set()).add(node.attr)
        if not isinstance(node, ast.Call):
            continue
        # Also pb.Message.write_rows(..., field=...) and (..., pb.Message, "field", ...).
        message = declared_name(node.func) or declared_name(getattr(node.func, "value", None))
        for keyword in node.keywords if message else ():
            found = {keyword.arg} if keyword.arg else names & every[message].keys()
            messages.setdefault(message, set()).update(name for name in found if name)
        for argument, following in pairwise(node.args):
            if declared_name(argument) and isinstance(following, ast.Constant):
                messages.setdefault(declared_name(argument), set()).add(following.value)
    return messages, enums


def declared_name(node: Any) -> str:
    """Returns the name of pb.Name, "" for everything else."""
    is_declared = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "pb"
    return node.attr if is_declared else ""


def ordered(values: dict[str, int], names: set[str]) -> list[str]:
    return sorted(names, key=values.__getitem__)


def wrapped(text: str, indent: str = "") -> str:
    lines = textwrap.wrap(text, WIDTH - 10, initial_indent=indent, subsequent_indent="    ", break_on_hyphens=False)
    return "\n".join(lines) + "\n"


def assigned(name: str, values: dict[str, int], fields: set[str]) -> str:
    arguments = ", ".join(f"{field}={values[field]}" for field in ordered(values, fields))
    line = f"{name}({arguments})"
    return f"{line}\n" if len(line) <= WIDTH else f"{name}(\n{wrapped(arguments, '    ')})\n"


def class_of(name: str, values: dict[str, int], names: set[str]) -> str:
    n = IN_ROW if max(map(len, names)) < LONG else IN_ROW // 2
    rows = [ordered(values, names)[at : at + n] for at in range(0, len(names), n)]
    shown = (f"    {', '.join(row)} = {', '.join(str(values[value]) for value in row)}\n" for row in rows)
    return "".join([f"class {name}:\n", *shown])


if __name__ == "__main__":
    for name, text in texts().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
