"""What every layer uses, and the command before it imports NumPy: errors, the report, units, text to be shown."""
