"""User stacks, unwound from copies of registers and stack memory with call-frame information.

Knows nothing of recordings: `Unwinder` takes registers, dumps and address spaces, and gives callchains.
"""
