"""Fields of Perfetto's messages, each as its number << 3 | wire type, and values of enums.

Made by tests/perfetto_fields.py: edit nothing here.
"""

cdef enum:
    Callstack_iid = 8, Callstack_frame_ids = 16
    DebugAnnotation_name_iid = 8, DebugAnnotation_uint_value = 24
    FtraceEvent_timestamp = 8, FtraceEvent_pid = 16, FtraceEvent_sched_waking = 162
    FtraceEventBundle_cpu = 8, FtraceEventBundle_event = 18
    GenericKernelTaskStateEvent_cpu = 8, GenericKernelTaskStateEvent_tid = 24
    GenericKernelTaskStateEvent_state = 32
    GenericKernelTaskStateEventTaskStateEnum_TASK_STATE_RUNNABLE = 2
    GenericKernelTaskStateEventTaskStateEnum_TASK_STATE_RUNNING = 3
    HeapGraph_objects = 18
    HeapGraphObject_id = 8, HeapGraphObject_type_id = 16, HeapGraphObject_self_size = 24
    HeapGraphObject_reference_object_id = 42, HeapGraphObject_id_delta = 56
    InternedData_callstacks = 58
    InternedString_iid = 8, InternedString_str = 18
    SchedWakingFtraceEvent_pid = 16, SchedWakingFtraceEvent_success = 32
    StackSample_task_context_iid = 16, StackSample_execution_context_iid = 32, StackSample_callstack_iid = 48
    StackSample_primary_weight = 88, StackSample_follower_descriptor_iids = 106, StackSample_follower_weights = 114
    Trace_packet = 10
    TracePacket_ftrace_events = 10, TracePacket_timestamp = 64, TracePacket_trusted_packet_sequence_id = 80
    TracePacket_track_event = 90, TracePacket_generic_kernel_task_state_event = 938, TracePacket_stack_sample = 1082
    TrackEvent_debug_annotations = 34
