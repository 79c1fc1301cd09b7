# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Interned callstacks and their frames.

Cython's pure-Python mode: also runs interpreted. Field numbers: protos/perfetto/trace, trace_packet.proto and the
messages that it names.
"""

import cython

from traceferry.kernels.varints import size_of, varint


def cut_depths(
    above: cython.const[cython.int][::1],
    first: cython.Py_ssize_t,
    kept: cython.int,
    depth: cython.int[::1],
    outer: cython.int[::1],
) -> None:
    """Writes for each stack from `first` on the number of its frames, and the stack of its outermost `kept` frames: it
    itself, where it has no more.

    above: for each stack the one without its leaf, always a smaller index.
    """
    n: cython.Py_ssize_t = above.shape[0]
    if depth.shape[0] != n or outer.shape[0] != n or first < 0:
        raise ValueError("cut_depths: an array has the wrong length")
    i: cython.Py_ssize_t
    bad: cython.bint = False
    with cython.nogil:
        for i in range(first, n):
            node: cython.Py_ssize_t = above[i]
            if node >= i:
                bad = True
                break
            depth[i] = depth[node] + 1 if node >= 0 else 1
            outer[i] = outer[node] if depth[i] > kept else i
    if bad:
        raise ValueError("cut_depths: a stack above a later one")


def callstacks(
    stacks: cython.const[cython.int][::1],
    above: cython.const[cython.int][::1],
    run: cython.const[cython.int][::1],
    depth: cython.const[cython.int][::1],
    outer: cython.const[cython.int][::1],
    max_depth: cython.int,
    inner: cython.int,
    cut_iid: cython.int,
    frame_iid: cython.int[::1],
    new_runs: cython.int[::1],
    first_iid: cython.int,
    row: cython.Py_ssize_t,
    n_frames: cython.longlong,
    out: cython.uchar[::1],
) -> tuple:
    """Writes the interned callstacks of `stacks` from `row` on until `out` is full; returns (number of bytes, the row
    to go on at, n_frames).

    above, depth, outer: for each stack as of `cut_depths`; run: its leaf frame. Of a stack deeper than max_depth only
    the innermost `inner` frames are written, then the frame cut_iid, then those of `outer`. frame_iid: for each run the
    interned id of its frame; where it is 0, the next number after n_frames, and the run is appended to new_runs. The
    callstacks are numbered from first_iid on.
    """
    n: cython.Py_ssize_t = stacks.shape[0]
    n_stacks: cython.Py_ssize_t = run.shape[0]
    n_runs: cython.Py_ssize_t = frame_iid.shape[0]
    n_max: cython.Py_ssize_t = out.shape[0] - 24
    if (
        above.shape[0] != n_stacks
        or depth.shape[0] != n_stacks
        or outer.shape[0] != n_stacks
        or new_runs.shape[0] < n_runs
        or max_depth < 0
        or n_max < 6 * (max_depth + 1)
        or first_iid < 1
        or row < 0
        or n_frames < 0
    ):
        raise ValueError("callstacks: an array has the wrong length")
    i: cython.Py_ssize_t = row
    n_new: cython.Py_ssize_t = 0
    p: cython.Py_ssize_t = 0
    left: cython.int  # frames until the cut
    bad: cython.bint = False
    with cython.nogil:
        while i < n:
            node: cython.Py_ssize_t = stacks[i]
            if node >= n_stacks:
                bad = True
                break
            left = inner if node >= 0 and depth[node] > max_depth else -1
            size: cython.Py_ssize_t = 0
            n_walked: cython.int = 0
            while node >= 0:
                if run[node] < 0 or run[node] >= n_runs or above[node] >= node or n_walked > max_depth:
                    bad = True
                    break
                if left == 0:
                    size += 1 + size_of(cut_iid)
                    node = outer[node]
                    if node < 0 or node >= n_stacks or run[node] < 0 or run[node] >= n_runs or above[node] >= node:
                        bad = True
                        break
                f: cython.int = frame_iid[run[node]]
                if f <= 0:
                    if n_new >= n_runs:
                        bad = True
                        break
                    n_frames += 1
                    f = n_frames
                    frame_iid[run[node]] = f
                    new_runs[n_new] = run[node]
                    n_new += 1
                size += 1 + size_of(f)
                node = above[node]
                left -= 1
                n_walked += 1
            if bad or p + size > n_max:
                break
            iid: cython.int = first_iid + i
            out[p] = 0x3A  # InternedData.callstacks
            p = varint(out, p + 1, 1 + size_of(iid) + size)
            out[p] = 0x08  # Callstack.iid
            p = varint(out, p + 1, iid) + size
            # From the leaf backwards: the root comes first.
            q: cython.Py_ssize_t = p
            node = stacks[i]
            left = inner if node >= 0 and depth[node] > max_depth else -1
            while node >= 0:
                if left == 0:
                    q -= 1 + size_of(cut_iid)
                    out[q] = 0x10  # Callstack.frame_ids
                    varint(out, q + 1, cut_iid)
                    node = outer[node]
                f = frame_iid[run[node]]
                q -= 1 + size_of(f)
                out[q] = 0x10
                varint(out, q + 1, f)
                node = above[node]
                left -= 1
            i += 1
    if bad:
        raise ValueError("callstacks: an invalid stack")
    return p, i, n_frames


def plain_frames(
    names: cython.const[cython.int][::1],
    paths: cython.const[cython.int][::1],
    lines: cython.const[cython.int][::1],
    kinds: cython.const[cython.int][::1],
    mappings: cython.const[cython.int][::1],
    addresses: cython.const[cython.longlong][::1],
    iids: cython.const[cython.int][::1],
    out: cython.uchar[::1],
) -> cython.Py_ssize_t:
    """InternedData.frames of frames that nothing is inlined into; returns the number of bytes.

    names, paths: indices of strings, whose interned ids are one more; negative is none. lines, kinds, mappings
    (interned ids): 0 is none; addresses: in the mapping. out: 56 bytes for each frame.
    """
    n: cython.Py_ssize_t = names.shape[0]
    if (
        paths.shape[0] != n
        or lines.shape[0] != n
        or kinds.shape[0] != n
        or mappings.shape[0] != n
        or addresses.shape[0] != n
        or out.shape[0] < 56 * n
        or iids.shape[0] != n
    ):
        raise ValueError("plain_frames: an array has the wrong length")
    i: cython.Py_ssize_t
    p: cython.Py_ssize_t = 0
    with cython.nogil:
        for i in range(n):
            out[p] = 0x32  # InternedData.frames
            q: cython.Py_ssize_t = p + 2
            out[q] = 0x08  # Frame.iid
            v: cython.ulonglong = iids[i]
            q = varint(out, q + 1, v)
            if names[i] >= 0:
                out[q] = 0x10  # Frame.function_name_id
                v = names[i]
                q = varint(out, q + 1, v + 1)
            if mappings[i] > 0:
                out[q] = 0x18  # Frame.mapping_id
                v = mappings[i]
                q = varint(out, q + 1, v)
                out[q] = 0x20  # Frame.rel_pc
                v = addresses[i]
                q = varint(out, q + 1, v)
            if paths[i] >= 0:
                out[q] = 0x28  # Frame.source_path_iid
                v = paths[i]
                q = varint(out, q + 1, v + 1)
                if lines[i] > 0:
                    out[q] = 0x30  # Frame.line_number
                    v = lines[i]
                    q = varint(out, q + 1, v)
            if kinds[i] > 0:
                out[q] = 0x38  # Frame.kind
                v = kinds[i]
                q = varint(out, q + 1, v)
            out[p + 1] = q - p - 2
            p = q
    return p


if not cython.compiled:
    from traceferry.kernels.interpreted import plain_integers

    callstacks = plain_integers(callstacks)
    cut_depths = plain_integers(cut_depths)
    plain_frames = plain_integers(plain_frames)
