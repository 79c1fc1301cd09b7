"""Fields of Perfetto's messages, each as its number << 3 | wire type, and values of enums.

Made by tests/perfetto_fields.py: edit nothing here.
"""

cdef enum:
    Callstack_frame_ids = 16
    Callstack_iid = 8
    DebugAnnotation_name_iid = 8
    DebugAnnotation_uint_value = 24
    Frame_function_name_id = 16
    Frame_iid = 8
    Frame_kind = 56
    Frame_line_number = 48
    Frame_mapping_id = 24
    Frame_rel_pc = 32
    Frame_source_path_iid = 40
    GenericKernelTaskStateEventTaskStateEnum_TASK_STATE_INTERRUPTIBLE_SLEEP = 4
    GenericKernelTaskStateEventTaskStateEnum_TASK_STATE_RUNNABLE = 2
    GenericKernelTaskStateEventTaskStateEnum_TASK_STATE_RUNNING = 3
    GenericKernelTaskStateEvent_cpu = 8
    GenericKernelTaskStateEvent_state = 32
    GenericKernelTaskStateEvent_tid = 24
    HeapGraphObject_id = 8
    HeapGraphObject_id_delta = 56
    HeapGraphObject_reference_object_id = 42
    HeapGraphObject_self_size = 24
    HeapGraphObject_type_id = 16
    HeapGraph_objects = 18
    InternedData_callstacks = 58
    InternedData_frames = 50
    ProfilePacketHeapSample_alloc_count = 40
    ProfilePacketHeapSample_callstack_id = 8
    ProfilePacketHeapSample_free_count = 48
    ProfilePacketHeapSample_self_allocated = 16
    ProfilePacketHeapSample_self_freed = 24
    ProfilePacketProcessHeapSamples_samples = 18
    StackSample_callstack_iid = 48
    StackSample_execution_context_iid = 32
    StackSample_follower_descriptor_iids = 106
    StackSample_follower_weights = 114
    StackSample_primary_weight = 88
    StackSample_task_context_iid = 16
    TracePacket_generic_kernel_task_state_event = 938
    TracePacket_stack_sample = 1082
    TracePacket_timestamp = 64
    TracePacket_timestamp_clock_id = 464
    TracePacket_track_event = 90
    TracePacket_trusted_packet_sequence_id = 80
    Trace_packet = 10
    TrackEventType_TYPE_COUNTER = 4
    TrackEvent_debug_annotations = 34
    TrackEvent_double_counter_value = 353
    TrackEvent_track_uuid = 88
    TrackEvent_type = 72
