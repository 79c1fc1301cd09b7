"""Texts of source files.

Perfetto traces can hold them only as V8 scripts. So they are scripts of an isolate that never ran: its code range lies
where no code is, and each script has a function whose bytecode makes trace_processor take it in. They are in the table
v8_js_script, and in the tab "V8 Script Sources" of the viewer's plugin org.chromium.V8, which is off by default.
"""

from __future__ import annotations

import numpy as np

from traceferry.exporters.perfetto.packets import INCREMENTAL, Interned, Packet, Packets
from traceferry.exporters.perfetto.proto import integer, message
from traceferry.model import Process, Trace

ISOLATE = 1
NORMAL = 1  # InternedV8JsScript.Type, InternedV8JsFunction.Kind
IGNITION = 1  # V8JsCode.Tier
NOWHERE = 1  # an address and a size


def write_sources(trace: Trace, packets: Packets) -> None:
    with_text = np.flatnonzero(trace.sources["text"] >= 0).tolist()
    if not with_text or not trace.processes:
        return
    process = _process_of_code(trace)
    tid = process.threads[0].tid if process.threads else process.pid
    trace.report.note("sources_hidden", len(with_text), where="perfetto")
    sequence = packets.sequence()
    code_range = integer(1, NOWHERE) + integer(2, NOWHERE)  # base_address, size
    isolate = (integer(1, ISOLATE), integer(2, process.pid), integer(3, 0), message(4, code_range))  # isolate_id
    packets.begin(sequence, INCREMENTAL, b"", [message(Interned.V8_ISOLATE, *isolate)])
    for iid, source in enumerate(with_text, start=1):
        path = trace.strings[int(trace.sources["path"][source])]
        source_text = trace.texts[int(trace.sources["text"][source])]
        packets.write(message(Packet.INTERNED_DATA, *_script(iid, path, source_text)), sequence=sequence)
        code = (
            integer(1, ISOLATE), integer(2, tid), integer(3, iid), integer(4, IGNITION), integer(5, NOWHERE << 4),
            integer(6, 1),
        )  # fmt: skip
        packets.write(integer(Packet.TIMESTAMP, 0), message(Packet.V8_JS_CODE, *code), sequence=sequence)


def _process_of_code(trace: Trace) -> Process:
    pids = set(trace.code["pid"].tolist())
    return next((process for process in trace.processes if process.pid in pids), trace.processes[0])


def _script(iid: int, path: str, source_text: str) -> list[bytes]:
    """The script, and a function of its path in it."""
    script = (
        integer(1, iid), integer(2, iid), integer(3, NORMAL), message(4, _v8_string(path, 1)),
        message(5, _v8_string(source_text, 1)),
    )  # fmt: skip
    function = (integer(1, iid), integer(2, iid), integer(3, iid), integer(5, NORMAL), integer(7, 1), integer(8, 1))
    return [
        message(Interned.V8_JS_FUNCTION_NAME, integer(1, iid), _v8_string(path, 2)),
        message(Interned.V8_JS_SCRIPT, *script),
        message(Interned.V8_JS_FUNCTION, *function),
    ]


def _v8_string(value: str, latin1: int) -> bytes:
    """latin1: that field's number; the next is utf16_le."""
    try:
        return message(latin1, value.encode("latin-1"))
    except UnicodeEncodeError:
        return message(latin1 + 1, value.encode("utf-16-le", "replace"))
