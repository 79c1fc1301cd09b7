-- Threads with what `traceferry info --json` counts of them, for traces that traceferry wrote.

INCLUDE PERFETTO MODULE traceferry.functions;

-- Samples are of the first event, where time goes.
CREATE PERFETTO VIEW traceferry_threads AS
WITH
  sampled AS (
    SELECT
      x.utid,
      CASE WHEN t.unit = 'samples' THEN CAST(sum(c.value) AS INT) ELSE count(*) END AS samples
    FROM stack_sample s
    JOIN stack_sample_task_context x ON x.id = s.task_context_id
    JOIN stack_sample_counter c ON c.stack_sample_id = s.id
    JOIN traceferry_sample_tracks t ON t.id = c.track_id
    WHERE t.event = (
      SELECT str_value FROM metadata WHERE name = 'trace_attribute.sampled_event'
    )
    GROUP BY x.utid
  ),
  called AS (
    SELECT t.utid, sum(coalesce(n.calls, 1)) AS calls FROM slice s
    JOIN traceferry_call_tracks t ON t.id = s.track_id
    LEFT JOIN traceferry_summed_calls n USING (arg_set_id)
    GROUP BY t.utid
  )
SELECT
  p.pid AS pid,
  p.name AS process,
  t.tid AS tid,
  t.name AS thread,
  coalesce(s.samples, 0) AS samples,
  coalesce(c.calls, 0) AS calls
FROM thread t
LEFT JOIN process p USING (upid)
LEFT JOIN sampled s USING (utid)
LEFT JOIN called c USING (utid)
WHERE t.utid != 0;

-- Events with their samples, also those without a callstack, and what these weigh together.
CREATE PERFETTO VIEW traceferry_events AS
SELECT
  t.event AS event,
  t.unit AS unit,
  CASE WHEN t.unit = 'samples' THEN CAST(sum(c.value) AS INT) ELSE count(*) END AS samples,
  CAST(sum(c.value) AS INT) AS weight
FROM stack_sample_counter c
JOIN traceferry_sample_tracks t ON t.id = c.track_id
GROUP BY t.event, t.unit;
