"""A process that demangles names which could end it: see demangle.py, which runs this file as a program.

Names come on standard input, demangled names go to standard output, each with a zero behind it. A name that becomes too
long is answered with nothing. Arguments: how many times as long as the name a demangled one may be, in how many seconds
of CPU time this must end, and the folder in which pycxxfilt is.
"""

from __future__ import annotations

import sys
import threading

# In bytes. A character of a name needs up to 2 kB of the stack.
STACK = 1 << 28
MEMORY = STACK + (1 << 28)


def main(max_growth: int, seconds: int) -> None:
    _limit(seconds)
    threading.stack_size(STACK)
    worker = threading.Thread(target=_answer, args=(max_growth,))
    worker.start()
    worker.join()


def _limit(seconds: int) -> None:
    try:
        import resource
    except ImportError:  # Windows: whoever runs this looks at the time
        return
    for what, most in ((resource.RLIMIT_AS, MEMORY), (resource.RLIMIT_CPU, seconds), (resource.RLIMIT_CORE, 0)):
        hard = resource.getrlimit(what)[1]
        least = most if hard == resource.RLIM_INFINITY else min(most, hard)
        try:
            resource.setrlimit(what, (least, least))
        except (OSError, ValueError):  # macOS does not limit memory
            continue


def _answer(max_growth: int) -> None:
    from pycxxfilt import demangle

    for name in sys.stdin.buffer.read().split(b"\0")[:-1]:
        text = name.decode()
        try:
            shown = demangle(text) or text
        except ValueError:
            shown = text
        # The next name may end this process.
        sys.stdout.buffer.write((shown.encode() if len(shown) <= max_growth * len(text) else b"") + b"\0")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    sys.path.append(sys.argv[3])
    main(int(sys.argv[1]), int(sys.argv[2]))
