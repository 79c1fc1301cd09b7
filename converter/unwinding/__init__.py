"""Unwinds user stacks from copies of registers and stack memory with call-frame information.

Independent of recordings: `Unwinder` takes registers, dumps and address spaces, and gives callchains.
"""
