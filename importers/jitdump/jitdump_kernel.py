# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Walks the records of a jitdump and the entries of its DEBUG_INFO records.

Cython's pure-Python mode: also runs interpreted. Layout: `importers/jitdump/layout.py`.
"""

import cython

from traceferry.kernels.bytes import u32, u64

RECORD_HEADER = cython.declare(cython.Py_ssize_t, 16)
LOAD = cython.declare(cython.Py_ssize_t, 40)
ENTRY = cython.declare(cython.Py_ssize_t, 16)
SAME_FILE = cython.declare(cython.uchar, 0xFF)


def scan(
    data: cython.const[cython.uchar][::1],
    start: cython.Py_ssize_t,
    big: cython.bint,
    ids: cython.uint[::1],
    at: cython.longlong[::1],
    sizes: cython.uint[::1],
    timestamps: cython.ulonglong[::1],
) -> cython.Py_ssize_t:
    """Enters whole records from `start` on: their id, offset, total size and time stamp; returns how many.

    Stops when the arrays are full, at a record that ends beyond the data, and at one that is smaller than its header.
    """
    n_max: cython.Py_ssize_t = ids.shape[0]
    if at.shape[0] != n_max or sizes.shape[0] != n_max or timestamps.shape[0] != n_max:
        raise ValueError("scan: an array has the wrong length")
    end: cython.Py_ssize_t = data.shape[0]
    p: cython.Py_ssize_t = start
    n: cython.Py_ssize_t = 0
    if p < 0:
        raise ValueError("scan: invalid start")
    with cython.nogil:
        while n < n_max and p + RECORD_HEADER <= end:
            size: cython.ulonglong = u32(data, p + 4, big)
            left: cython.ulonglong = end - p
            if size < 16 or size > left:
                break
            ids[n] = u32(data, p, big)
            at[n] = p
            sizes[n] = size
            timestamps[n] = u64(data, p + 8, big)
            n += 1
            p += size
    return n


def loads(
    data: cython.const[cython.uchar][::1],
    big: cython.bint,
    begins: cython.const[cython.longlong][::1],
    ends: cython.const[cython.longlong][::1],
    tids: cython.longlong[::1],
    addresses: cython.ulonglong[::1],
    sizes: cython.ulonglong[::1],
    indexes: cython.ulonglong[::1],
    name_sizes: cython.longlong[::1],
    code_at: cython.longlong[::1],
):
    """The fields of LOAD records, whole ones at [begins, ends). The name follows the fixed part; its size is -1 for a
    record that is too short. The code is the record's last bytes; -1 where they are fewer than its size."""
    n: cython.Py_ssize_t = begins.shape[0]
    if (
        ends.shape[0] != n
        or tids.shape[0] != n
        or addresses.shape[0] != n
        or sizes.shape[0] != n
        or indexes.shape[0] != n
        or name_sizes.shape[0] != n
        or code_at.shape[0] != n
    ):
        raise ValueError("loads: an array has the wrong length")
    i: cython.Py_ssize_t
    for i in range(n):
        if begins[i] < 0 or ends[i] < begins[i] or ends[i] > data.shape[0]:
            raise ValueError("loads: a record outside the data")
    with cython.nogil:
        for i in range(n):
            p: cython.Py_ssize_t = begins[i] + RECORD_HEADER
            end: cython.Py_ssize_t = ends[i]
            name_sizes[i] = -1
            code_at[i] = -1
            if end - p < LOAD:
                continue
            tids[i] = u32(data, p + 4, big)
            addresses[i] = u64(data, p + 16, big)
            sizes[i] = u64(data, p + 24, big)
            indexes[i] = u64(data, p + 32, big)
            p += LOAD
            left: cython.ulonglong = end - p
            if sizes[i] <= left:
                left = sizes[i]
                end -= left
                code_at[i] = end
            q: cython.Py_ssize_t = p
            while q < end and data[q] != 0:
                q += 1
            name_sizes[i] = q - p


def entries(
    data: cython.const[cython.uchar][::1],
    big: cython.bint,
    begins: cython.const[cython.longlong][::1],
    ends: cython.const[cython.longlong][::1],
    counts: cython.const[cython.longlong][::1],
    bases: cython.const[cython.ulonglong][::1],
    reach: cython.longlong,
    starts: cython.longlong[::1],
    stops: cython.longlong[::1],
    is_sorted: cython.uchar[::1],
    offsets: cython.int[::1],
    lines: cython.int[::1],
    columns: cython.int[::1],
    runs: cython.int[::1],
    run_at: cython.longlong[::1],
    run_size: cython.int[::1],
) -> cython.Py_ssize_t:
    """Decodes the entries of DEBUG_INFO records that lie in [begins, ends), at most `counts` of each.

    offsets: addresses relative to the record's `bases`, where the code was loaded. A record ends early at an entry that
    is not whole, or that points further than `reach` from the base, either way. starts, stops: a record's rows;
    is_sorted: whether its offsets never fall. A row's file is a run: entries that follow one another and have the same
    file name share it; run_at, run_size: where a run's name lies. Columns: as long as the sum of the counts. Returns
    how many runs there are.
    """
    n: cython.Py_ssize_t = begins.shape[0]
    n_max: cython.Py_ssize_t = offsets.shape[0]
    if (
        ends.shape[0] != n
        or counts.shape[0] != n
        or bases.shape[0] != n
        or is_sorted.shape[0] != n
        or starts.shape[0] != n
        or stops.shape[0] != n
        or lines.shape[0] != n_max
        or columns.shape[0] != n_max
        or runs.shape[0] != n_max
        or run_size.shape[0] != run_at.shape[0]
        or reach < 0
        or reach > 0x7FFFFFFF
    ):
        raise ValueError("entries: an array has the wrong length")
    total: cython.longlong = 0
    r: cython.Py_ssize_t
    for r in range(n):
        if begins[r] < 0 or ends[r] < begins[r] or ends[r] > data.shape[0] or counts[r] < 0:
            raise ValueError("entries: a record outside the data")
        total += counts[r]
        if total > n_max or total > run_at.shape[0]:
            raise ValueError("entries: an array has the wrong length")
    m: cython.Py_ssize_t = 0
    n_runs: cython.Py_ssize_t = 0
    name: cython.Py_ssize_t = 0
    length: cython.Py_ssize_t = -1
    _k: cython.longlong
    with cython.nogil:
        for r in range(n):
            starts[r] = m
            p: cython.Py_ssize_t = begins[r]
            end: cython.Py_ssize_t = ends[r]
            base: cython.ulonglong = bases[r]
            in_record: cython.bint = False
            rising: cython.bint = True
            last: cython.longlong = -reach - 1
            for _k in range(counts[r]):
                if p + ENTRY >= end:
                    break
                address: cython.ulonglong = u64(data, p, big)
                if address >= base:
                    if address - base > reach:
                        break
                    far: cython.longlong = address - base
                else:
                    if base - address > reach:
                        break
                    far = base - address
                    far = -far
                q: cython.Py_ssize_t = p + ENTRY
                i: cython.Py_ssize_t = 0
                if in_record and data[q] == SAME_FILE and q + 1 < end and data[q + 1] == 0:
                    i = 1
                else:
                    if length >= 0 and q + length < end:
                        while i < length and data[q + i] == data[name + i]:
                            i += 1
                    if length < 0 or i != length or q + length >= end or data[q + length] != 0:
                        i = 0
                        while q + i < end and data[q + i] != 0:
                            i += 1
                        if q + i >= end:
                            break
                        name = q
                        length = i
                        run_at[n_runs] = name
                        run_size[n_runs] = length
                        n_runs += 1
                in_record = True
                if far < last:
                    rising = False
                last = far
                offsets[m] = far
                value: cython.uint = u32(data, p + 8, big)
                lines[m] = value if value <= 0x7FFFFFFF else 0
                value = u32(data, p + 12, big)
                columns[m] = value if value <= 0x7FFFFFFF else 0
                runs[m] = n_runs - 1
                m += 1
                p = q + i + 1
            is_sorted[r] = rising
            stops[r] = m
    return n_runs


if not cython.compiled:
    from traceferry.kernels.interpreted import plain_integers

    scan = plain_integers(scan)
    loads = plain_integers(loads)
    entries = plain_integers(entries)
