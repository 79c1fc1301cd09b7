"""Fields of Perfetto's messages, each as its number << 3 | wire type, and values of enums.

Made by tests/perfetto_fields.py: edit nothing here.
"""

from traceferry.exporters.perfetto._packets import Message

# fmt: off
AddressSymbols = Message(address=8, lines=18)
ClockSnapshot = Message(clocks=10, primary_trace_clock=16)
ClockSnapshotClock = Message(clock_id=8, timestamp=16, is_incremental=24)
CounterDescriptor = Message(unit=24, unit_name=50)
DebugAnnotation = Message(
    name_iid=8, bool_value=16, uint_value=24, int_value=32, double_value=41, string_value=50,
    pointer_value=56, legacy_json_value=74, name=82
)
Frame = Message(iid=8, function_name_id=16, mapping_id=24, rel_pc=32, source_path_iid=40, line_number=48, kind=56)
HeapGraph = Message(pid=8, continued=40, index=48, roots=58, types=74)
HeapGraphRoot = Message(object_ids=10, root_type=16)
HeapGraphType = Message(id=8, class_name=26, kind=56)
InternedData = Message(
    event_categories=10, event_names=18, debug_annotation_names=26, source_locations=34, function_names=42,
    frames=50, build_ids=130, mapping_paths=138, source_paths=146, mappings=154, v8_js_function_name=250,
    v8_js_function=258, v8_js_script=266, v8_isolate=282, correlation_id_str=346,
    stack_sample_task_contexts=386, stack_sample_execution_contexts=394, stack_sample_counter_descriptors=402
)
InternedV8Isolate = Message(iid=8, pid=16, isolate_id=24, code_range=34)
InternedV8IsolateCodeRange = Message(base_address=8, size=16)
InternedV8JsFunction = Message(iid=8, v8_js_function_name_iid=16, v8_js_script_iid=24, kind=40, line=56, column=64)
InternedV8JsScript = Message(iid=8, script_id=16, type=24, name=34, source=42)
InternedV8String = Message(iid=8, latin1=18, utf16_le=26)
Line = Message(function_name=10, source_file_name=18, line_number=24)
Mapping = Message(iid=8, build_id=16, start=32, end=40, path_string_ids=56)
ModuleSymbols = Message(path=10, build_id=18, address_symbols=26)
ProcessDescriptor = Message(pid=8, process_name=50, process_labels=66)
ProfilePacket = Message(process_dumps=42, continued=48, index=56)
ProfilePacketHeapSample = Message(callstack_id=8, self_allocated=16, self_freed=24, alloc_count=40, free_count=48)
ProfilePacketProcessHeapSamples = Message(
    pid=8, samples=18, timestamp=72, heap_name=90, sampling_interval_bytes=96,
    orig_sampling_interval_bytes=104, start_timestamp=120
)
SourceLocation = Message(iid=8, file_name=18, function_name=26, line_number=32)
StackSample = Message(
    task_context_iid=16, callstack_iid=48, primary_weight=88, follower_descriptor_iids=106,
    follower_weights=114
)
StackSampleCounterDescriptor = Message(iid=8, name=18, unit=24, unit_str=34)
StackSampleDefaults = Message(source=10, primary_descriptor=18)
StackSampleExecutionContext = Message(iid=8, cpu=16, mode=24)
StackSampleTaskContext = Message(iid=8, pid=16, tid=24)
ThreadDescriptor = Message(pid=8, tid=16, thread_name=42)
Trace = Message(packet=10)
TraceAttributes = Message(attribute=10)
TraceAttributesAttribute = Message(key=10, string_value=26)
TracePacket = Message(
    clock_snapshot=50, timestamp=64, trusted_packet_sequence_id=80, track_event=90, interned_data=98,
    sequence_flags=104, profile_packet=298, heap_graph=450, timestamp_clock_id=464, trace_packet_defaults=474,
    track_descriptor=482, module_symbols=490, v8_js_code=794, trace_attributes=1010, stack_sample=1082
)
TracePacketDefaults = Message(track_event_defaults=90, timestamp_clock_id=464, stack_sample_defaults=802)
TrackDescriptor = Message(
    uuid=8, name=18, process=26, thread=34, parent_uuid=40, counter=66, sibling_order_rank=96,
    description=114, state=146
)
TrackEvent = Message(
    category_iids=24, debug_annotations=34, type=72, name_iid=80, track_uuid=88, categories=178, name=186,
    source_location_iid=272, double_counter_value=353, flow_ids=377, correlation_id_str=426, callstack_iid=448
)
V8JsCode = Message(
    v8_isolate_iid=8, tid=16, v8_js_function_iid=24, tier=32, instruction_start=40, instruction_size_bytes=48
)
V8String = Message(latin1=10, utf16_le=18)
class CounterDescriptorUnit:
    UNIT_SIZE_BYTES = 3
class FrameKind:
    KIND_UNKNOWN, KIND_NATIVE, KIND_KERNEL, KIND_INTERPRETED = 0, 1, 2, 3
    KIND_JIT, KIND_GC = 4, 5
class GenericKernelTaskStateEventTaskStateEnum:
    TASK_STATE_RUNNABLE, TASK_STATE_RUNNING = 2, 3
    TASK_STATE_INTERRUPTIBLE_SLEEP, TASK_STATE_UNINTERRUPTIBLE_SLEEP = 4, 5
    TASK_STATE_STOPPED, TASK_STATE_DEAD = 6, 7
class HeapGraphRootType:
    ROOT_UNKNOWN, ROOT_JNI_GLOBAL, ROOT_JAVA_FRAME, ROOT_STICKY_CLASS = 0, 1, 3, 5
    ROOT_THREAD_OBJECT, ROOT_FINALIZING, ROOT_DEBUGGER, ROOT_REFERENCE_CLEANUP = 8, 10, 11, 12
    ROOT_VM_INTERNAL = 13
class HeapGraphTypeKind:
    KIND_ARRAY = 4
class InternedV8JsFunctionKind:
    KIND_NORMAL_FUNCTION = 1
class InternedV8JsScriptType:
    TYPE_NORMAL = 1
class StackSampleMode:
    MODE_UNKNOWN, MODE_USER, MODE_KERNEL = 0, 1, 2
class StackSampleUnit:
    UNIT_NANOSECONDS, UNIT_CPU_CYCLES, UNIT_INSTRUCTIONS, UNIT_BYTES = 1, 2, 3, 4
    UNIT_PAGE_FAULTS, UNIT_CACHE_MISSES, UNIT_CACHE_REFERENCES, UNIT_BRANCH_MISSES = 5, 6, 7, 8
    UNIT_COUNT = 9
class TrackEventType:
    TYPE_SLICE_BEGIN, TYPE_SLICE_END, TYPE_INSTANT, TYPE_COUNTER = 1, 2, 3, 4
    TYPE_STATE = 5
class V8JsCodeTier:
    TIER_IGNITION = 1
