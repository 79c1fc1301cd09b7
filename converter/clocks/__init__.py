"""Clocks: ticks of counters become nanoseconds."""
