-- Threads with what `traceferry info --json` counts of them, for traces that traceferry wrote.

INCLUDE PERFETTO MODULE traceferry.functions;

-- Samples are of the first event, where time goes.
CREATE PERFETTO VIEW traceferry_threads AS
WITH
  sampled AS (
    SELECT x.utid, count(*) AS samples
    FROM stack_sample s
    JOIN stack_sample_task_context x ON x.id = s.task_context_id
    WHERE s.source = (SELECT str_value FROM metadata WHERE name = 'trace_attribute.sampled_event')
    GROUP BY x.utid
  ),
  called AS (
    SELECT t.utid, sum(coalesce(n.calls, 1)) AS calls FROM slice s
    JOIN thread_track t ON t.id = s.track_id AND t.type = 'thread_execution'
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
