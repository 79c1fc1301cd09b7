"""Perfetto's trace_processor_shell as a child process: SQL over what it reads, answers as columns.

`engine` finds the program, `session` talks to it, `results` has its answers. Nothing here is imported for other inputs.
"""
