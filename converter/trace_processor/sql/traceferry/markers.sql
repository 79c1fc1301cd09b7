-- Markers with what `traceferry info --json` counts of them, for traces that traceferry wrote.

INCLUDE PERFETTO MODULE traceferry.tracks;

CREATE PERFETTO VIEW traceferry_markers AS
SELECT
  t.name AS type,
  s.name AS name,
  count(*) AS count,
  sum(max(s.dur, 0)) AS total_ns,
  max(s.dur) AS longest_ns
FROM slice s
JOIN track t ON t.id = s.track_id
WHERE t.id NOT IN (SELECT id FROM traceferry_call_tracks)
GROUP BY t.name, s.name;
