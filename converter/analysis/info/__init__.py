"""What `traceferry info` prints: totals, as data and as text."""
