"""Files: opening inputs, finding those that belong together, writing outputs."""
