# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Heap profiles and heap graphs.

Cython's pure-Python mode: also runs interpreted. Field numbers: protos/perfetto/trace, trace_packet.proto and the
messages that it names.
"""

import cython

from traceferry.kernels.allocations import ALLOCATED, FREED, N_ALLOCATED, N_FREED
from traceferry.kernels.varints import size_of, size_of_long, varint


def heap_samples(
    stacks: cython.const[cython.int][::1],
    callstack_iid: cython.const[cython.int][::1],
    totals: cython.const[cython.longlong][:, ::1],
    row: cython.Py_ssize_t,
    out: cython.uchar[::1],
) -> tuple:
    """Writes heap samples of `stacks` from `row` on until `out` is full; returns (number of bytes, the row to go on
    at).

    callstack_iid: for each stack; totals: as `tally` of traceferry.heap makes them.
    """
    n: cython.Py_ssize_t = stacks.shape[0]
    n_stacks: cython.Py_ssize_t = callstack_iid.shape[0]
    if totals.shape[0] != n_stacks or totals.shape[1] != 4 or row < 0:
        raise ValueError("heap_samples: an array has the wrong length")
    i: cython.Py_ssize_t = row
    capacity: cython.Py_ssize_t = out.shape[0] - 64
    p: cython.Py_ssize_t = 0
    bad: cython.bint = False
    with cython.nogil:
        while i < n and p < capacity:
            s: cython.Py_ssize_t = stacks[i]
            if s < 0 or s >= n_stacks or callstack_iid[s] < 1:
                bad = True
                break
            out[p] = 0x12  # ProcessHeapSamples.samples
            out[p + 2] = 0x08  # HeapSample.callstack_id
            q: cython.Py_ssize_t = varint(out, p + 3, callstack_iid[s])
            out[q] = 0x10  # HeapSample.self_allocated
            q = varint(out, q + 1, totals[s, ALLOCATED])
            out[q] = 0x18  # HeapSample.self_freed
            q = varint(out, q + 1, totals[s, FREED])
            out[q] = 0x28  # HeapSample.alloc_count
            q = varint(out, q + 1, totals[s, N_ALLOCATED])
            out[q] = 0x30  # HeapSample.free_count
            q = varint(out, q + 1, totals[s, N_FREED])
            out[p + 1] = q - p - 2
            p = q
            i += 1
    if bad:
        raise ValueError("heap_samples: a stack without a callstack")
    return p, i


def heap_objects(
    type_id: cython.const[cython.int][::1],
    size: cython.const[cython.longlong][::1],
    offsets: cython.const[cython.longlong][::1],
    references: cython.const[cython.int][::1],
    row: cython.Py_ssize_t,
    out: cython.uchar[::1],
) -> tuple:
    """Writes HeapGraph.objects from `row` on until `out` is full; returns (number of bytes, the row to go on at). If
    not one fits, the number is the negative of what it needs.

    An object's id is its row + 1. The rows that object i refers to are references[offsets[i]:offsets[i + 1]].
    """
    n: cython.Py_ssize_t = type_id.shape[0]
    n_references: cython.Py_ssize_t = references.shape[0]
    if size.shape[0] != n or offsets.shape[0] != n + 1 or row < 0:
        raise ValueError("heap_objects: an array has the wrong length")
    i: cython.Py_ssize_t = row
    p: cython.Py_ssize_t = 0
    r: cython.Py_ssize_t
    bad: cython.bint = False
    with cython.nogil:
        while i < n:
            if type_id[i] < 0 or size[i] < 0 or offsets[i] < 0 or offsets[i + 1] > n_references:
                bad = True
                break
            packed: cython.Py_ssize_t = 0
            for r in range(offsets[i], offsets[i + 1]):
                if references[r] < 0 or references[r] >= n:
                    bad = True
                    break
                packed += size_of_long(references[r] + 1)
            if bad:
                break
            # A packet's first object has its id, the others have their difference to the one before, which is 1.
            is_first: cython.bint = p == 0
            id_size: cython.Py_ssize_t = 1 + size_of_long(i + 1) if is_first else 2
            body: cython.Py_ssize_t = id_size + 1 + size_of(type_id[i]) + 1 + size_of_long(size[i])
            if packed:
                body += 1 + size_of_long(packed) + packed
            if p + body + 16 > out.shape[0]:
                if p == 0:
                    p = -(body + 16)
                break
            out[p] = 0x12  # HeapGraph.objects
            p = varint(out, p + 1, body)
            if is_first:
                out[p] = 0x08  # HeapGraphObject.id
                p = varint(out, p + 1, i + 1)
            else:
                out[p] = 0x38  # HeapGraphObject.id_delta
                out[p + 1] = 1
                p += 2
            out[p] = 0x10  # HeapGraphObject.type_id
            p = varint(out, p + 1, type_id[i])
            out[p] = 0x18  # HeapGraphObject.self_size
            p = varint(out, p + 1, size[i])
            if packed:
                out[p] = 0x2A  # HeapGraphObject.reference_object_id
                p = varint(out, p + 1, packed)
                for r in range(offsets[i], offsets[i + 1]):
                    reference: cython.longlong = references[r]
                    p = varint(out, p, reference + 1)
            i += 1
    if bad:
        raise ValueError("heap_objects: an object with an invalid type, size or reference")
    return p, i


if not cython.compiled:
    from traceferry.kernels.interpreted import plain_integers

    heap_objects = plain_integers(heap_objects)
    heap_samples = plain_integers(heap_samples)
