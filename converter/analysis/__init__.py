"""What a trace adds up to, what of that `info` shows, and what changed between two sets of recordings."""
