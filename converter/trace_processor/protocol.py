"""The messages that the engine speaks: TraceProcessorRpc of perfetto's trace_processor.proto.

The package perfetto has their description, protobuf reads and writes them.
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any

from traceferry.common.errors import FormatError, UsageError

NAMES = {
    "TraceProcessorRpcStream": "TraceProcessorRpcStream",
    "TraceProcessorRpc": "TraceProcessorRpc",
    "CellsBatch": "QueryResult.CellsBatch",
}


@cache
def messages() -> dict[str, Any]:
    """Returns the message types of the protocol by name. Raises UsageError without the packages that know them."""
    try:
        from google.protobuf import descriptor_pb2, message_factory
        from google.protobuf.descriptor_pool import DescriptorPool

        # Not of the package perfetto.trace_processor, which would import all of its own client.
        path = resources.files("perfetto") / "trace_processor" / "trace_processor.descriptor"
        files = descriptor_pb2.FileDescriptorSet.FromString(path.read_bytes())
    except (ImportError, OSError):
        raise UsageError("this needs the packages perfetto and protobuf: pip install 'traceferry[perfetto]'") from None
    pool = DescriptorPool()
    for file in files.file:
        _take_as_bytes(file)
        pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"perfetto.protos.{path}"))
        for name, path in NAMES.items()
    }


def parsed(name: str, data: bytes) -> Any:
    """Returns the message of this type. Raises FormatError."""
    from google.protobuf.message import DecodeError

    try:
        return messages()[name].FromString(data)
    except DecodeError as error:
        raise FormatError(f"an answer is no {name}: {error}") from None


def _take_as_bytes(file: Any) -> None:
    """Makes the texts of answers bytes: names in traces, and so in errors, need not be UTF-8. And packed numbers, which
    stand in a field like bytes: to read them one by one would take longer than all else."""
    for message in file.message_type:
        if message.name == "QueryResult":
            for field in (*message.field, *(field for nested in message.nested_type for field in nested.field)):
                if field.type == field.TYPE_STRING or field.options.packed:
                    field.type = field.TYPE_BYTES
                    field.ClearField("type_name")
                    field.ClearField("options")
