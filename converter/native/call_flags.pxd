"""The flags of a row of `calls`."""

cpdef enum:
    LEAVE = 1  # the row leaves the frame; without it, it enters
    TAIL = 2  # a leave by a tail call
    UNWOUND = 4  # a leave without a record of its own: a function below was left (exception, longjmp, thread exit)
    OPEN_AT_END = 8  # a leave at the recording's end: the call was still open
    OPEN_AT_START = 16  # an enter at the thread's start: the entry is not in the recording
    ENTRY_LOST = 32  # an enter whose record was lost inside the recording: the latest moment it may have been
