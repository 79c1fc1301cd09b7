"""Fields of Perfetto's messages, each as its number << 3 | wire type, and values of enums.

Made by tests/perfetto_fields.py: edit nothing here.
"""


# fmt: off
class AddressSymbols:
    address, lines = 8, 18
class ClockSnapshot:
    clocks, primary_trace_clock = 10, 16
class ClockSnapshotClock:
    clock_id, timestamp, is_incremental = 8, 16, 24
class CounterDescriptor:
    unit, unit_name = 24, 50
class CounterDescriptorUnit:
    UNIT_SIZE_BYTES = 3
class DebugAnnotation:
    name_iid, bool_value, uint_value, int_value = 8, 16, 24, 32
    string_value, pointer_value, name = 50, 56, 82
class Frame:
    iid, function_name_id, mapping_id, rel_pc = 8, 16, 24, 32
    source_path_iid, line_number, kind = 40, 48, 56
class FrameKind:
    KIND_UNKNOWN, KIND_NATIVE, KIND_KERNEL, KIND_INTERPRETED = 0, 1, 2, 3
    KIND_JIT, KIND_GC = 4, 5
class HeapGraph:
    pid, continued, index, roots = 8, 40, 48, 58
    types = 74
class HeapGraphRoot:
    object_ids, root_type = 10, 16
class HeapGraphRootType:
    ROOT_UNKNOWN, ROOT_JNI_GLOBAL, ROOT_JAVA_FRAME, ROOT_STICKY_CLASS = 0, 1, 3, 5
    ROOT_THREAD_OBJECT, ROOT_FINALIZING, ROOT_DEBUGGER, ROOT_REFERENCE_CLEANUP = 8, 10, 11, 12
    ROOT_VM_INTERNAL = 13
class HeapGraphType:
    id, class_name, kind = 8, 26, 56
class HeapGraphTypeKind:
    KIND_ARRAY = 4
class InternedData:
    event_categories, event_names, debug_annotation_names, source_locations = 10, 18, 26, 34
    function_names, frames, build_ids, mapping_paths = 42, 50, 130, 138
    source_paths, mappings, v8_js_function_name, v8_js_function = 146, 154, 250, 258
    v8_js_script, v8_isolate, stack_sample_task_contexts, stack_sample_execution_contexts = 266, 282, 386, 394
    stack_sample_counter_descriptors = 402
class InternedString:
    iid, str = 8, 18
class InternedV8Isolate:
    iid, pid, isolate_id, code_range = 8, 16, 24, 34
class InternedV8IsolateCodeRange:
    base_address, size = 8, 16
class InternedV8JsFunction:
    iid, v8_js_function_name_iid, v8_js_script_iid, kind = 8, 16, 24, 40
    line, column = 56, 64
class InternedV8JsFunctionKind:
    KIND_NORMAL_FUNCTION = 1
class InternedV8JsScript:
    iid, script_id, type, name = 8, 16, 24, 34
    source = 42
class InternedV8JsScriptType:
    TYPE_NORMAL = 1
class InternedV8String:
    iid, latin1, utf16_le = 8, 18, 26
class Line:
    function_name, source_file_name, line_number = 10, 18, 24
class Mapping:
    iid, build_id, start, end = 8, 16, 32, 40
    path_string_ids = 56
class ModuleSymbols:
    path, build_id, address_symbols = 10, 18, 26
class ProcessDescriptor:
    pid, process_name = 8, 50
class ProfilePacket:
    process_dumps, continued, index = 42, 48, 56
class ProfilePacketProcessHeapSamples:
    pid, timestamp, heap_name, sampling_interval_bytes = 8, 72, 90, 96
    orig_sampling_interval_bytes, start_timestamp = 104, 120
class SourceLocation:
    iid, file_name, function_name, line_number = 8, 18, 26, 32
class StackSample:
    task_context_iid, callstack_iid, primary_weight, follower_descriptor_iids = 16, 48, 88, 106
    follower_weights = 114
class StackSampleCounterDescriptor:
    iid, name, unit, unit_str = 8, 18, 24, 34
class StackSampleDefaults:
    source, primary_descriptor = 10, 18
class StackSampleExecutionContext:
    iid, cpu, mode = 8, 16, 24
class StackSampleMode:
    MODE_UNKNOWN, MODE_USER, MODE_KERNEL = 0, 1, 2
class StackSampleTaskContext:
    iid, pid, tid = 8, 16, 24
class StackSampleUnit:
    UNIT_NANOSECONDS, UNIT_CPU_CYCLES, UNIT_INSTRUCTIONS, UNIT_BYTES = 1, 2, 3, 4
    UNIT_PAGE_FAULTS, UNIT_CACHE_MISSES, UNIT_CACHE_REFERENCES, UNIT_BRANCH_MISSES = 5, 6, 7, 8
    UNIT_COUNT = 9
class ThreadDescriptor:
    pid, tid, thread_name = 8, 16, 42
class Trace:
    packet = 10
class TraceAttributes:
    attribute = 10
class TraceAttributesAttribute:
    key, string_value = 10, 26
class TracePacket:
    clock_snapshot, timestamp, trusted_packet_sequence_id, track_event = 50, 64, 80, 90
    interned_data, sequence_flags, profile_packet, heap_graph = 98, 104, 298, 450
    timestamp_clock_id, trace_packet_defaults, track_descriptor, module_symbols = 464, 474, 482, 490
    v8_js_code, trace_attributes, stack_sample = 794, 1010, 1082
class TracePacketDefaults:
    track_event_defaults, timestamp_clock_id, stack_sample_defaults = 90, 464, 802
class TrackDescriptor:
    uuid, name, process, thread = 8, 18, 26, 34
    parent_uuid, counter, sibling_order_rank, description = 40, 66, 96, 114
    state = 146
class TrackEvent:
    category_iids, debug_annotations, type, name_iid = 24, 34, 72, 80
    track_uuid, categories, name, source_location_iid = 88, 178, 186, 272
    flow_ids, correlation_id_str, callstack_iid = 377, 426, 448
class TrackEventType:
    TYPE_SLICE_BEGIN, TYPE_SLICE_END, TYPE_INSTANT, TYPE_STATE = 1, 2, 3, 5
class V8JsCode:
    v8_isolate_iid, tid, v8_js_function_iid, tier = 8, 16, 24, 32
    instruction_start, instruction_size_bytes = 40, 48
class V8JsCodeTier:
    TIER_IGNITION = 1
class V8String:
    latin1, utf16_le = 10, 18
