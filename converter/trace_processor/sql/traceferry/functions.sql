-- Functions with what `traceferry info --json` counts of them, for traces that traceferry wrote. Functions of one name
-- are one row; of a recursion, totals count the outermost activation.

INCLUDE PERFETTO MODULE traceferry.tracks;

-- The functions of a frame of a callstack. Of those that are inlined into each other the innermost has place 0.
CREATE PERFETTO TABLE traceferry_frame_functions AS
SELECT
  f.id AS frame_id,
  coalesce(s.name, f.deobfuscated_name, f.name) AS function,
  row_number() OVER (PARTITION BY f.id ORDER BY s.id) - 1 AS place
FROM stack_profile_frame f
LEFT JOIN stack_profile_symbol s ON s.symbol_set_id = f.symbol_set_id;

-- Samples by callstack and event: how many, and what they weigh together. A row of the unit "samples" is as many as it
-- weighs.
CREATE PERFETTO VIEW traceferry_sampled_callsites AS
SELECT
  s.callsite_id,
  t.event AS event,
  t.unit AS unit,
  t.is_timebase AS is_own,
  CASE WHEN t.unit = 'samples' THEN CAST(sum(c.value) AS INT) ELSE count(*) END AS samples,
  CAST(sum(c.value) AS INT) AS weight
FROM stack_sample s
JOIN stack_sample_counter c ON c.stack_sample_id = s.id
JOIN traceferry_sample_tracks t ON t.id = c.track_id
WHERE s.callsite_id IS NOT NULL
GROUP BY s.callsite_id, t.id;

-- Each callstack with samples, and each function on it once. is_leaf: the function ran itself.
CREATE PERFETTO TABLE traceferry_functions_of_callsites AS
WITH RECURSIVE
  sampled AS (
    SELECT DISTINCT callsite_id FROM stack_sample WHERE callsite_id IS NOT NULL
  ),
  up(callsite_id, at) AS (
    SELECT callsite_id, callsite_id FROM sampled
    UNION ALL
    SELECT up.callsite_id, c.parent_id FROM up
    JOIN stack_profile_callsite c ON c.id = up.at WHERE c.parent_id IS NOT NULL
  )
SELECT
  up.callsite_id AS callsite_id,
  f.function AS function,
  max(up.at = up.callsite_id AND f.place = 0) AS is_leaf
FROM up
JOIN stack_profile_callsite c ON c.id = up.at
JOIN traceferry_frame_functions f ON f.frame_id = c.frame_id
GROUP BY up.callsite_id, f.function;

-- Samples and their weights by function and event, also of events that are read with another one's samples.
CREATE PERFETTO VIEW traceferry_samples AS
SELECT
  f.function AS function,
  s.event AS event,
  s.unit AS unit,
  sum(s.samples * f.is_leaf) AS samples,
  sum(s.samples) AS total_samples,
  sum(s.weight * f.is_leaf) AS weight,
  sum(s.weight) AS total_weight
FROM traceferry_sampled_callsites s
JOIN traceferry_functions_of_callsites f USING (callsite_id)
GROUP BY f.function, s.event;

-- Calls that stand for many, where a recorder adds them up: by their arguments, how many.
CREATE PERFETTO TABLE traceferry_summed_calls AS
SELECT arg_set_id, int_value AS calls FROM args WHERE flat_key = 'debug.summed calls';

-- Slices, with the time until the one around it ends, or the trace, of those whose end was not recorded.
CREATE PERFETTO VIEW traceferry_ended_slices AS
SELECT
  s.*,
  iif(s.dur >= 0, s.dur, max(iif(p.dur >= 0, p.ts + p.dur, trace_end()) - s.ts, 0)) AS lasts
FROM slice s
LEFT JOIN slice p ON p.id = s.parent_id;

-- Calls, with the time of each without what it called; calls: how many it stands for.
CREATE PERFETTO VIEW traceferry_calls AS
SELECT
  s.id AS id,
  s.ts AS ts,
  s.lasts AS dur,
  s.lasts - coalesce(c.dur, 0) AS self_dur,
  s.name AS function,
  s.track_id AS track_id,
  s.depth AS depth,
  s.parent_id AS parent_id,
  coalesce(n.calls, 1) AS calls
FROM traceferry_ended_slices s
JOIN traceferry_call_tracks t ON t.id = s.track_id
LEFT JOIN (
  SELECT parent_id, sum(lasts) AS dur FROM traceferry_ended_slices WHERE parent_id IS NOT NULL GROUP BY parent_id
) c ON c.parent_id = s.id
LEFT JOIN traceferry_summed_calls n USING (arg_set_id);

-- Calls by function.
CREATE PERFETTO VIEW traceferry_called_functions AS
SELECT
  s.function AS function,
  sum(s.calls) AS calls,
  sum(s.self_dur) AS self_ns,
  sum(CASE WHEN s.parent_id IS NOT NULL AND EXISTS (
    SELECT 1 FROM ancestor_slice(s.id) a WHERE a.name = s.function
  ) THEN 0 ELSE s.dur END) AS total_ns
FROM traceferry_calls s
GROUP BY s.function;

-- Functions that were called or sampled, of any event. Samples are of the first event, where time goes: without calls,
-- the ns that they weigh are the functions' time.
CREATE PERFETTO VIEW traceferry_functions AS
WITH
  sampled AS (
    SELECT function, samples, total_samples,
      iif(unit = 'ns' AND NOT EXISTS (SELECT 1 FROM traceferry_calls), weight, 0) AS self_ns,
      iif(unit = 'ns' AND NOT EXISTS (SELECT 1 FROM traceferry_calls), total_weight, 0) AS total_ns
    FROM traceferry_samples
    WHERE event = (SELECT str_value FROM metadata WHERE name = 'trace_attribute.sampled_event')
  ),
  names AS (
    SELECT function FROM traceferry_samples
    UNION
    SELECT function FROM traceferry_called_functions
  )
SELECT
  n.function AS function,
  coalesce(c.calls, 0) AS calls,
  coalesce(c.total_ns, s.total_ns, 0) AS total_ns,
  coalesce(c.self_ns, s.self_ns, 0) AS self_ns,
  coalesce(s.samples, 0) AS samples,
  coalesce(s.total_samples, 0) AS total_samples
FROM names n
LEFT JOIN traceferry_called_functions c USING (function)
LEFT JOIN sampled s USING (function);

-- Lines of functions that ran themselves, with samples by event.
CREATE PERFETTO VIEW traceferry_lines AS
WITH
  leaves AS (
    SELECT
      f.id AS frame_id,
      coalesce(y.name, f.deobfuscated_name, f.name) AS function,
      y.source_file AS file,
      y.line_number AS line,
      row_number() OVER (PARTITION BY f.id ORDER BY y.id) AS place
    FROM stack_profile_frame f
    LEFT JOIN stack_profile_symbol y ON y.symbol_set_id = f.symbol_set_id
  )
SELECT
  l.function AS function,
  l.file AS file,
  l.line AS line,
  s.event AS event,
  sum(s.samples) AS samples,
  sum(s.weight) AS weight
FROM traceferry_sampled_callsites s
JOIN stack_profile_callsite c ON c.id = s.callsite_id
JOIN leaves l ON l.frame_id = c.frame_id AND l.place = 1
GROUP BY l.function, l.file, l.line, s.event;
