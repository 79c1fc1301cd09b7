"""A comparison for Perfetto: stack samples with several weights, each of which is a measure of one flamegraph.

Perfetto compares nothing itself, and a flamegraph draws no negative sizes. So each call path is a sample that weighs
what a run of the new side has; with it come what a run of the base has, by how much it grew, and by how much it shrank.
"""

from __future__ import annotations

import numpy as np

from traceferry.analysis.compare.comparison import Comparison
from traceferry.analysis.compare.trees import DiffTree, Measured, as_trace, diff_tree, process_of
from traceferry.exporters.depths import OUTERMOST
from traceferry.exporters.perfetto import fields as pb
from traceferry.exporters.perfetto._packets import varint
from traceferry.exporters.perfetto.packets import CLOCKS, RELATIVE, Packets
from traceferry.exporters.perfetto.physical_frames import PhysicalFrames
from traceferry.exporters.perfetto.samples import counter, task_context
from traceferry.exporters.perfetto.stacks import Callstacks, write_symbols
from traceferry.files.output import Output
from traceferry.model import Array, Process, Trace

FOLLOWERS = ("base", "grew by", "shrank by")
# Weights are integers, and a run on average has parts of a sample where it is not known how long one lasts.
FINER = 1000
Kind = tuple[str, str]


def write_comparison(comparison: Comparison, out: Output) -> None:
    tree = diff_tree(comparison)
    trace = as_trace(comparison, tree)
    packets = Packets(out, CLOCKS["monotonic"], trace.start_ts)
    packets.write_clocks({packets.clock: 0, CLOCKS["boot"]: 0})
    packets.write_attributes({"converted_by": "traceferry compare", **trace.attributes})
    tracks = {process.pid: packets.write_process(process) for process in trace.processes}
    tids = _threads(trace, tree, packets, tracks)
    frames = PhysicalFrames(trace, OUTERMOST)
    for kind in dict.fromkeys((m.name, m.unit) for m in tree.measured):
        _write_kind(comparison, trace, tree, packets, frames, kind, tids)
    write_symbols(trace, packets, frames, trace.end_ts + 1)


def _threads(trace: Trace, tree: DiffTree, packets: Packets, tracks: dict[int, int]) -> dict[tuple[int, str], int]:
    """Returns the number of each thread, by its process and name."""
    tids: dict[tuple[int, str], int] = {}
    first = len(trace.processes) + 1
    for measured in tree.measured:
        process = process_of(trace, measured)
        key = process.pid, measured.thread
        if key not in tids:
            tids[key] = first + len(tids)
            name = measured.thread or "thread"
            identity = pb.ThreadDescriptor(pid=process.pid, tid=tids[key], thread_name=name)
            packets.write_track(tracks[process.pid], thread=identity)
    return tids


def _write_kind(
    comparison: Comparison, trace: Trace, tree: DiffTree, packets: Packets, frames: PhysicalFrames, kind: Kind,
    tids: dict[tuple[int, str], int],
) -> None:  # fmt: skip
    """Writes the samples of one measure, of all threads, on one sequence: the viewer draws them together."""
    sequence = packets.sequence()
    scale, unit = _scale(comparison, kind)
    counters = [counter(name, unit, nth) for nth, name in enumerate(FOLLOWERS, 1)]
    event = f"comparison_{'_'.join(kind[0].split())}"
    defaults = pb.StackSampleDefaults(source=event, primary_descriptor=counter("new", unit))
    entries = [pb.InternedData(stack_sample_counter_descriptors=counters)]
    packets.begin(sequence, RELATIVE, pb.TracePacketDefaults(stack_sample_defaults=defaults), entries)
    callstacks = Callstacks(trace, packets, frames, sequence)
    for nth, measured in enumerate((m for m in tree.measured if (m.name, m.unit) == kind), 1):
        process = process_of(trace, measured)
        packets.intern(sequence, [task_context(nth, process.pid, tids[process.pid, measured.thread])])
        _write_samples(trace, packets, callstacks, sequence, nth, process, measured, scale)


def _scale(comparison: Comparison, kind: Kind) -> tuple[float, str]:
    """Returns what amounts are multiplied with, and their unit then."""
    name, unit = kind
    if name == "samples":
        return (comparison.sample_ns, "ns") if comparison.sample_ns else (FINER, "thousandths of a sample")
    return 1.0, unit


def _write_samples(
    trace: Trace, packets: Packets, callstacks: Callstacks, sequence: int, task: int, process: Process,
    measured: Measured, scale: float,
) -> None:  # fmt: skip
    base, new = (np.rint(own * scale).astype(np.int64) for own in (measured.base, measured.new))
    shown = (base > 0) | (new > 0)
    base, new, stacks = base[shown], new[shown], measured.node[shown]
    callstacks.intern(stacks)
    step = max((trace.end_ts - trace.start_ts) // max(len(stacks), 1), 1)
    columns: list[Array] = [base, np.maximum(new - base, 0), np.maximum(base - new, 0)]
    ids = b"".join(varint(nth) for nth in range(1, len(FOLLOWERS) + 1))
    iids = callstacks.iids.tolist()
    for nth, stack in enumerate(stacks.tolist()):
        followers = b"".join(varint(int(column[nth])) for column in columns)
        sample = pb.StackSample(
            task_context_iid=task, callstack_iid=iids[stack], primary_weight=int(new[nth]),
            follower_descriptor_iids=ids, follower_weights=followers,
        )  # fmt: skip
        packets.write(sequence, stack_sample=sample, timestamp=nth * step)
