-- Tracks of threads whose slices are calls: of each thread those of the first rank that it has, and of these with most
-- slices, as they are imported (importers/perfetto/slices.py: CALL_TRACKS).
CREATE PERFETTO VIEW traceferry_call_tracks AS
WITH
  typed AS (
    SELECT
      id,
      utid,
      -- The thread's own track, which its program keeps apart from what the system says of it.
      iif(
        type = 'thread_track_event' AND extract_arg(source_arg_set_id, 'is_root_in_scope'),
        'thread_own_track_event',
        type
      ) AS type
    FROM thread_track
  ),
  ranked AS (
    SELECT
      id,
      utid,
      type,
      CASE type
        WHEN 'thread_own_track_event' THEN 0
        WHEN 'thread_execution' THEN 0
        WHEN 'art_method_tracing' THEN 1
        WHEN 'thread_funcgraph' THEN 2
      END AS rank,
      (SELECT count(*) FROM slice WHERE track_id = typed.id) AS n_slices
    FROM typed
  ),
  compared AS (
    SELECT
      id,
      utid,
      row_number() OVER (PARTITION BY utid ORDER BY rank, n_slices DESC, type) AS nth
    FROM ranked
    WHERE rank IS NOT NULL
  )
SELECT id, utid FROM compared WHERE nth = 1;

-- What the counters of samples count. Samples of the main event may be amounts, as bytes of a heap or ns that were
-- measured: its name says so, "delay (ns)", where that of its counter is "delay, ns". Each byte is a sample then. Names
-- of counters have blanks for underscores.
CREATE PERFETTO VIEW traceferry_sample_tracks AS
WITH
  main AS (
    SELECT max(str_value) AS event, replace(max(str_value), '_', ' ') AS shown
    FROM metadata WHERE name = 'trace_attribute.sampled_event'
  ),
  counted AS (
    SELECT id, unit, is_timebase, name, replace(replace(name, ', ' || unit, ''), '_', ' ') AS shown
    FROM stack_sample_counter_track WHERE name != 'CPU time, ns'
  ),
  compared AS (
    SELECT c.*, m.event AS main, m.shown = c.shown AS is_main,
      m.shown IN (c.shown || ' (' || c.unit || ')', c.unit) AND c.unit != 'samples' AS is_amount
    FROM counted c CROSS JOIN main m
  )
SELECT
  id,
  iif(is_main OR is_amount, main, replace(name, ', ' || unit, '')) AS event,
  iif(is_amount, 'samples', unit) AS unit,
  is_timebase
FROM compared;
