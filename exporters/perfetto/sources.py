"""Texts of source files.

Perfetto traces can hold them only as V8 scripts. So they are scripts of an isolate that never ran: its code range lies
where no code is, and each script has a function whose bytecode makes trace_processor take it in. They are in the table
v8_js_script, and in the tab "V8 Script Sources" of the viewer's plugin org.chromium.V8, which is off by default.
"""

from __future__ import annotations

import numpy as np

from traceferry.exporters.perfetto import fields as pb
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
    nowhere = pb.InternedV8IsolateCodeRange(base_address=NOWHERE, size=NOWHERE)
    isolate = pb.InternedV8Isolate(iid=ISOLATE, pid=process.pid, isolate_id=0, code_range=nowhere)
    packets.begin(sequence, INCREMENTAL, b"", [pb.InternedData(v8_isolate=isolate)])
    for iid, source in enumerate(with_text, start=1):
        path = trace.strings[int(trace.sources["path"][source])]
        source_text = trace.texts[int(trace.sources["text"][source])]
        packets.write(sequence, interned_data=_script(iid, path, source_text))
        code = pb.V8JsCode(
            v8_isolate_iid=ISOLATE, tid=tid, v8_js_function_iid=iid, tier=pb.V8JsCodeTier.TIER_IGNITION,
            instruction_start=NOWHERE << 4, instruction_size_bytes=1,
        )  # fmt: skip
        packets.write(sequence, timestamp=0, v8_js_code=code)


def _process_of_code(trace: Trace) -> Process:
    pids = set(trace.code["pid"].tolist())
    return next((process for process in trace.processes if process.pid in pids), trace.processes[0])


def _script(iid: int, path: str, source_text: str) -> bytes:
    """Returns the script, and a function of its path in it, as interned data."""
    name = pb.V8String(**_encoded(path))
    script = pb.InternedV8JsScript(
        iid=iid, script_id=iid, type=pb.InternedV8JsScriptType.TYPE_NORMAL, name=name,
        source=pb.V8String(**_encoded(source_text)),
    )  # fmt: skip
    function = pb.InternedV8JsFunction(
        iid=iid, v8_js_function_name_iid=iid, v8_js_script_iid=iid,
        kind=pb.InternedV8JsFunctionKind.KIND_NORMAL_FUNCTION, line=1, column=1,
    )  # fmt: skip
    function_name = pb.InternedV8String(iid=iid, **_encoded(path))
    return pb.InternedData(v8_js_function_name=function_name, v8_js_script=script, v8_js_function=function)


def _encoded(value: str) -> dict[str, bytes]:
    """Returns the one of a string's two fields that can have it."""
    try:
        return {"latin1": value.encode("latin-1")}
    except UnicodeEncodeError:
        return {"utf16_le": value.encode("utf-16-le", "replace")}
