"""What happens over time: ticks of counters become nanoseconds, enters and leaves become balanced calls, pointers have
names that change."""
