-- Allocations with what `traceferry info --json` counts of them, for traces that traceferry wrote.

-- By class, which is the leaf of an allocation's callstack. Of native allocations no class is known.
CREATE PERFETTO VIEW traceferry_allocations AS
SELECT
  iif(a.heap_name = 'native allocations', '[unknown class]', f.name) AS class,
  sum(CASE WHEN a.size > 0 THEN a.count ELSE 0 END) AS count,
  sum(CASE WHEN a.size > 0 THEN a.size ELSE 0 END) AS bytes,
  -sum(CASE WHEN a.size < 0 THEN a.count ELSE 0 END) AS freed_count,
  -sum(CASE WHEN a.size < 0 THEN a.size ELSE 0 END) AS freed_bytes
FROM heap_profile_allocation a
JOIN stack_profile_callsite c ON c.id = a.callsite_id
JOIN stack_profile_frame f ON f.id = c.frame_id
GROUP BY 1;
