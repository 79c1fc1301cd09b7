-- Tracks of threads whose slices are calls: of each thread those of the first of these types that it has, as they are
-- imported (importers/perfetto/slices.py: CALL_TRACKS).
CREATE PERFETTO VIEW traceferry_call_tracks AS
WITH
  ranked AS (
    SELECT
      id,
      utid,
      CASE type
        WHEN 'thread_execution' THEN 0
        WHEN 'art_method_tracing' THEN 1
        WHEN 'thread_funcgraph' THEN 2
      END AS rank
    FROM thread_track
  ),
  compared AS (
    SELECT id, utid, rank, min(rank) OVER (PARTITION BY utid) AS first_rank FROM ranked
  )
SELECT id, utid FROM compared WHERE rank = first_rank;
