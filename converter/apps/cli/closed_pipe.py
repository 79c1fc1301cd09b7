"""Pipes whose reader has closed them, as `head` does when it has its lines, or `grep -q` when it has found one."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager


def print_to_the_end(text: str) -> None:
    with to_the_end():
        print(text)


@contextmanager
def to_the_end() -> Iterator[None]:
    """Leaves the rest of the block out where the reader of what is printed inside closes the pipe, and the command goes
    on: its exit status is an answer, or it has files to write. What it prints later is dropped."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        drop_what_cannot_be_written()


def drop_what_cannot_be_written() -> None:
    """Python would try it again at exit, complain, and end with a status of its own."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
