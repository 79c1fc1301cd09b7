"""Decode: what is asked of trace_processor, by the tables of its version 58."""

from __future__ import annotations

from collections.abc import Iterable

from traceferry.common.issue_kinds import LOSSES_SQL

# Each trace has a thread 0 of process 0: of idle processors, or of a recorder that numbers its threads so. It is read
# where something is known of what it did.
IS_BUSY = """(EXISTS (SELECT 1 FROM thread_track t CROSS JOIN slice s ON s.track_id = t.id WHERE t.utid = thread.utid)
OR EXISTS (SELECT 1 FROM stack_sample_task_context x WHERE x.utid = thread.utid))"""
PROCESSES = f"""
SELECT upid, pid, name, start_ts, end_ts FROM process
WHERE upid != 0 OR EXISTS (SELECT 1 FROM thread WHERE thread.upid = 0 AND {IS_BUSY}) ORDER BY upid"""
THREADS = f"""
SELECT utid, tid, name, upid, is_main_thread, start_ts, end_ts FROM thread
WHERE (utid != 0 AND NOT coalesce(is_idle, 0)) OR (utid = 0 AND {IS_BUSY}) ORDER BY utid"""
# A thread's own track that its program keeps apart from what the system says of it (TrackDescriptor's
# disallow_merging_with_system_tracks), as Chrome's.
OWN_TRACK = "thread_own_track_event"
TRACKS = f"""
SELECT t.id AS id, t.name AS name, iif(
    t.type = 'thread_track_event' AND extract_arg(t.source_arg_set_id, 'is_root_in_scope'), '{OWN_TRACK}', t.type
  ) AS type, h.utid AS utid, p.upid AS upid, c.cpu AS cpu, g.id AS gpu
FROM track t LEFT JOIN thread_track h ON h.id = t.id LEFT JOIN process_track p ON p.id = t.id
LEFT JOIN cpu_track c ON c.id = t.id LEFT JOIN gpu_track g ON g.id = t.id ORDER BY t.id"""
# Which columns of slices tell something. Of all versions that are known, their numbers are those of their rows.
SLICE_COLUMNS = """
SELECT EXISTS (SELECT 1 FROM slice WHERE category IS NOT NULL) AS category,
  EXISTS (SELECT 1 FROM slice WHERE arg_set_id IS NOT NULL) AS arg_set_id,
  coalesce((SELECT max(id) FROM slice) + 1 != (SELECT count(*) FROM slice), 0) AS id"""
OPTIONAL_COLUMNS = ("category", "arg_set_id", "id")
ARGS = """
SELECT arg_set_id, flat_key, int_value, string_value, real_value FROM args
WHERE arg_set_id IN (SELECT arg_set_id FROM slice WHERE arg_set_id IS NOT NULL) ORDER BY arg_set_id, id"""
FLOWS = "SELECT slice_out, slice_in FROM flow"
COUNTER_TRACKS = """
SELECT t.id AS id, t.name AS name, t.unit AS unit, t.description AS description, p.upid AS upid, h.utid AS utid,
  c.cpu AS cpu
FROM counter_track t LEFT JOIN process_counter_track p ON p.id = t.id LEFT JOIN thread_counter_track h ON h.id = t.id
LEFT JOIN cpu_counter_track c ON c.id = t.id
WHERE t.id IN (SELECT track_id FROM counter) AND t.type != 'stack_sample_session_counter' ORDER BY t.id"""
COUNTERS = "SELECT track_id, ts, value FROM counter ORDER BY track_id, ts, id"
STATES = """
SELECT utid, ts, dur, cpu, state, waker_utid FROM thread_state WHERE utid != 0 AND ts IS NOT NULL ORDER BY utid, ts"""
V8 = "legacy_v8"  # the source of samples of V8's profiler, which have no session
SESSIONS = "SELECT id, source, timebase_unit FROM stack_sample_session ORDER BY id"
SAMPLES = f"""
SELECT s.ts AS ts, x.utid AS utid, x.upid AS upid, e.ucpu AS cpu, s.callsite_id AS callsite, s.session_id AS session,
  c.value AS weight, n.value AS cpu_ns, s.source = '{V8}' AS is_of_v8
FROM stack_sample s
LEFT JOIN stack_sample_task_context x ON x.id = s.task_context_id
LEFT JOIN stack_sample_execution_context e ON e.id = s.execution_context_id
LEFT JOIN (
  SELECT c.stack_sample_id AS sample, c.value AS value FROM stack_sample_counter c
  JOIN stack_sample_counter_track t ON t.id = c.track_id WHERE t.is_timebase
) c ON c.sample = s.id
LEFT JOIN (
  SELECT c.stack_sample_id AS sample, c.value AS value FROM stack_sample_counter c
  JOIN stack_sample_counter_track t ON t.id = c.track_id
  WHERE NOT t.is_timebase AND t.name = 'CPU time, ns' AND t.unit = 'ns'
) n ON n.sample = s.id
ORDER BY s.ts, s.id"""
CALLSITES = "SELECT id, parent_id, frame_id FROM stack_profile_callsite ORDER BY depth, id"
FRAMES = """
SELECT id, coalesce(deobfuscated_name, name) AS name, mapping, rel_pc, symbol_set_id, type FROM stack_profile_frame
ORDER BY id"""
SYMBOLS = """
SELECT symbol_set_id, name, source_file, line_number FROM stack_profile_symbol ORDER BY symbol_set_id, id DESC"""
MAPPINGS = "SELECT id, name, build_id FROM stack_profile_mapping ORDER BY id"
METADATA = "SELECT name, coalesce(str_value, int_value) AS value FROM metadata ORDER BY name, value"
CLOCKS = "SELECT clock_id, ts, clock_value FROM clock_snapshot ORDER BY snapshot_id, clock_id"
BOUNDS = "SELECT start_ts, end_ts FROM trace_bounds"
STATS = f"""
SELECT name, sum(value) AS n FROM stats WHERE {LOSSES_SQL} GROUP BY name ORDER BY name"""
# Of what the engine logs of each, the first: what it concerned. Its names are not for others, and may change.
FIRST_LOGS = """
SELECT l.name AS name, a.display_value AS value FROM _trace_import_logs l JOIN args a ON a.arg_set_id = l.arg_set_id
WHERE l.id IN (SELECT min(id) FROM _trace_import_logs GROUP BY name) ORDER BY l.id, a.id"""

CALLSTACKS = """
SELECT slice_id, callsite_id FROM __intrinsic_track_event_callstacks
WHERE slice_id IS NOT NULL AND callsite_id IS NOT NULL ORDER BY slice_id"""
STATE_TRACKS = """
SELECT t.id AS id, t.name AS name, t.type AS type, h.utid AS utid, p.upid AS upid FROM state_track t
LEFT JOIN thread_state_track h ON h.id = t.id LEFT JOIN process_state_track p ON p.id = t.id ORDER BY t.id"""
TRACK_STATES = "SELECT track_id, ts, dur, value FROM state ORDER BY track_id, ts, id"
WAITS = """
SELECT utid, ts, dur, io_wait, blocked_function FROM thread_state WHERE utid != 0 AND ts IS NOT NULL AND dur != 0
AND (io_wait = 1 OR blocked_function IS NOT NULL) ORDER BY utid, ts"""
LOGS = "SELECT ts, utid, prio, tag, msg FROM android_logs ORDER BY ts, id"
# Dumps of a JVM have objects only.
HEAP_GRAPHS = """
SELECT upid, graph_sample_ts AS ts FROM heap_graph_object UNION SELECT upid, ts FROM heap_graph ORDER BY ts, upid"""
HEAP_OBJECTS = """
SELECT id, upid, graph_sample_ts AS ts, self_size AS size, type_id, root_type FROM heap_graph_object ORDER BY id"""
HEAP_CLASSES = "SELECT id, coalesce(deobfuscated_name, name) AS name FROM heap_graph_class ORDER BY id"
HEAP_REFERENCES = """
SELECT owner_id, owned_id FROM heap_graph_reference WHERE owned_id IS NOT NULL AND owner_id IS NOT NULL ORDER BY id"""
HEAP_PROFILES = "SELECT ts, upid, heap_name, callsite_id, size, count FROM heap_profile_allocation ORDER BY id"
AGGREGATE_PROFILES = """
SELECT id, scope, sample_type_type AS type, sample_type_unit AS unit FROM __intrinsic_aggregate_profile ORDER BY id"""
AGGREGATE_SAMPLES = """
SELECT aggregate_profile_id AS profile, callsite_id, value FROM __intrinsic_aggregate_sample ORDER BY id"""
SCRIPTS = "SELECT name, source FROM __intrinsic_v8_js_script WHERE source IS NOT NULL ORDER BY id"

# By the names that `decode` gives to their answers; slices are asked for apart.
ALL = {
    "processes": PROCESSES, "threads": THREADS, "tracks": TRACKS, "args": ARGS, "flows": FLOWS,
    "counter_tracks": COUNTER_TRACKS, "counters": COUNTERS, "states": STATES, "sessions": SESSIONS, "samples": SAMPLES,
    "callsites": CALLSITES, "frames": FRAMES, "symbols": SYMBOLS, "mappings": MAPPINGS, "metadata": METADATA,
    "clocks": CLOCKS, "bounds": BOUNDS, "stats": STATS, "callstacks": CALLSTACKS, "state_tracks": STATE_TRACKS,
    "track_states": TRACK_STATES, "waits": WAITS, "logs": LOGS, "heap_graphs": HEAP_GRAPHS,
    "heap_objects": HEAP_OBJECTS, "heap_classes": HEAP_CLASSES, "heap_references": HEAP_REFERENCES,
    "heap_profiles": HEAP_PROFILES, "aggregate_profiles": AGGREGATE_PROFILES, "aggregate_samples": AGGREGATE_SAMPLES,
    "scripts": SCRIPTS,
}  # fmt: skip
# Tables that have no place in the trace; the report names those that have rows.
LEFT_OUT = (
    "ftrace_event", "memory_snapshot", "vulkan_memory_allocations", "package_list", "surfaceflinger_layers_snapshot",
    "surfaceflinger_transactions", "window_manager_shell_transitions", "protolog", "android_dumpstate",
    "__intrinsic_jit_code", "gpu_counter_group", "__intrinsic_etm_v4_session",
)  # fmt: skip


def slices(columns: Iterable[str]) -> str:
    """columns: which of the optional ones."""
    return f"SELECT {', '.join(('ts', 'dur', 'track_id', 'name', 'depth', *columns))} FROM slice"
