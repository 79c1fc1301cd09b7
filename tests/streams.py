"""Logs from a short notation: "A B b ~a" enters A and B, leaves B, leaves A by a tail call, 10 ns each.

Function A has the id 1, and so on. A number waits for that many ns more; "!" puts the TSC back by 15 ns.
"""

from builders.xray import Fdr

STEP = 10
START = 1_000_000_000
NS = 1_000_000_000


def number_of(letter: str) -> int:
    return ord(letter.upper()) - ord("A") + 1


def records_of(log: Fdr, stream: str, start: int) -> tuple[list[bytes], int]:
    """The records of a buffer from `start` on, and the time after the last one."""
    records, delta, now = [log.new_cpu(0, start)], 0, start
    for token in stream.split():
        if token.isdigit():
            delta += int(token)
            continue
        if token == "!":
            now += delta - 15
            records.append(log.tsc_wrap(now))
            delta = 0
            continue
        letter = token.lstrip("~")
        record = log.tail_exit if token.startswith("~") else log.enter if letter.isupper() else log.exit
        records.append(record(number_of(letter), delta))
        now, delta = now + delta, STEP
    return records, now + delta


def wall(tick: int) -> tuple[int, int]:
    """(seconds, microseconds) on the wall clock when the counter shows `tick`."""
    return divmod(1000 * 10**6 + (tick - START) // 1000, 10**6)


def fdr(*streams: str | tuple[int, str], **options: object) -> Fdr:
    """One thread for each stream: 1, 2... A pair gives the thread itself, so it can have several buffers. Each buffer
    begins where its thread's last one ended."""
    log = Fdr(frequency=NS, **options)  # type: ignore[arg-type]
    now: dict[int, int] = {}
    for nth, given in enumerate(streams, start=1):
        tid, stream = given if isinstance(given, tuple) else (nth, given)
        start = now.get(tid, START)
        records, now[tid] = records_of(log, stream, start)
        log.buffer(tid, pid=1, walltime=wall(start), records=records)
    return log
