# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Ends running sums. Cython's pure-Python mode: also runs interpreted."""

import cython

from traceferry.timeline.running_inlined import THREAD_WIDTH, RunningSums


def end_running(thread: cython.int, end_ts: cython.longlong, sums: tuple) -> None:
    """Ends the open calls of a thread that is not left out: see `RunningSums`."""
    c: RunningSums = RunningSums(sums)
    if not 0 <= thread < c.threads.shape[0] // THREAD_WIDTH:
        raise ValueError("end_running: a thread without a row")
    c.go_to(thread)
    c.end(end_ts)
    c.go_to(-1)


if not cython.compiled:
    from traceferry.kernels.interpreted import plain_integers

    end_running = plain_integers(end_running)
