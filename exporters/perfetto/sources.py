"""Texts of source files.

Perfetto traces can hold them only as V8 scripts. So they are scripts of an isolate that never ran: its code range lies
where no code is, and each script has a function whose bytecode makes trace_processor take it in. They are in the table
v8_js_script, and in the tab "V8 Script Sources" of the viewer's plugin org.chromium.V8, which is off by default.
"""

from __future__ import annotations

import numpy as np

from traceferry.exporters.perfetto import fields as pb
from traceferry.exporters.perfetto._packets import integer, message
from traceferry.exporters.perfetto.packets import INCREMENTAL, Packets
from traceferry.model import Process, Trace

ISOLATE = 1
NOWHERE = 1  # an address and a size


def write_sources(trace: Trace, packets: Packets) -> None:
    with_text = np.flatnonzero(trace.sources["text"] >= 0).tolist()
    if not with_text or not trace.processes:
        return
    process = _process_of_code(trace)
    tid = process.threads[0].tid if process.threads else process.pid
    trace.report.note("sources_hidden", len(with_text), where="perfetto")
    sequence = packets.sequence()
    nowhere = integer(pb.InternedV8IsolateCodeRange.base_address, NOWHERE)
    nowhere += integer(pb.InternedV8IsolateCodeRange.size, NOWHERE)
    isolate = (
        integer(pb.InternedV8Isolate.iid, ISOLATE),
        integer(pb.InternedV8Isolate.pid, process.pid),
        integer(pb.InternedV8Isolate.isolate_id, 0),
        message(pb.InternedV8Isolate.code_range, nowhere),
    )
    packets.begin(sequence, INCREMENTAL, b"", [message(pb.InternedData.v8_isolate, *isolate)])
    for iid, source in enumerate(with_text, start=1):
        path = trace.strings[int(trace.sources["path"][source])]
        source_text = trace.texts[int(trace.sources["text"][source])]
        packets.write(message(pb.TracePacket.interned_data, *_script(iid, path, source_text)), sequence=sequence)
        code = (
            integer(pb.V8JsCode.v8_isolate_iid, ISOLATE),
            integer(pb.V8JsCode.tid, tid),
            integer(pb.V8JsCode.v8_js_function_iid, iid),
            integer(pb.V8JsCode.tier, pb.V8JsCodeTier.TIER_IGNITION),
            integer(pb.V8JsCode.instruction_start, NOWHERE << 4),
            integer(pb.V8JsCode.instruction_size_bytes, 1),
        )
        packets.write(
            integer(pb.TracePacket.timestamp, 0), message(pb.TracePacket.v8_js_code, *code), sequence=sequence
        )


def _process_of_code(trace: Trace) -> Process:
    pids = set(trace.code["pid"].tolist())
    return next((process for process in trace.processes if process.pid in pids), trace.processes[0])


def _script(iid: int, path: str, source_text: str) -> list[bytes]:
    """Returns the script, and a function of its path in it."""
    script = (
        integer(pb.InternedV8JsScript.iid, iid),
        integer(pb.InternedV8JsScript.script_id, iid),
        integer(pb.InternedV8JsScript.type, pb.InternedV8JsScriptType.TYPE_NORMAL),
        message(pb.InternedV8JsScript.name, _v8_string(path, pb.V8String.latin1, pb.V8String.utf16_le)),
        message(pb.InternedV8JsScript.source, _v8_string(source_text, pb.V8String.latin1, pb.V8String.utf16_le)),
    )
    function = (
        integer(pb.InternedV8JsFunction.iid, iid),
        integer(pb.InternedV8JsFunction.v8_js_function_name_iid, iid),
        integer(pb.InternedV8JsFunction.v8_js_script_iid, iid),
        integer(pb.InternedV8JsFunction.kind, pb.InternedV8JsFunctionKind.KIND_NORMAL_FUNCTION),
        integer(pb.InternedV8JsFunction.line, 1),
        integer(pb.InternedV8JsFunction.column, 1),
    )
    name = _v8_string(path, pb.InternedV8String.latin1, pb.InternedV8String.utf16_le)
    return [
        message(pb.InternedData.v8_js_function_name, integer(pb.InternedV8String.iid, iid), name),
        message(pb.InternedData.v8_js_script, *script),
        message(pb.InternedData.v8_js_function, *function),
    ]


def _v8_string(value: str, latin1: int, utf16_le: int) -> bytes:
    """Returns the text as one of the two fields."""
    try:
        return message(latin1, value.encode("latin-1"))
    except UnicodeEncodeError:
        return message(utf16_le, value.encode("utf-16-le", "replace"))
