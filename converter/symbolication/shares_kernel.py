# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Shares the bytes of code among the lines of its tables. Cython's pure-Python mode: also runs interpreted."""

import cython

from traceferry.kernels.interning import intern_triple

# Indices into `state`.
RECORD = cython.declare(cython.int, 0)
N_KEYS = cython.declare(cython.int, 1)
N_OUT = cython.declare(cython.int, 2)


def sizes(
    begins: cython.const[cython.longlong][::1],
    ends: cython.const[cython.longlong][::1],
    code_sizes: cython.const[cython.longlong][::1],
    bases: cython.const[cython.int][::1],
    offsets: cython.const[cython.int][::1],
    files: cython.const[cython.int][::1],
    lines: cython.const[cython.int][::1],
    state: cython.longlong[::1],
    key_base: cython.int[::1],
    key_file: cython.int[::1],
    key_line: cython.int[::1],
    seen_in: cython.int[::1],
    seen_row: cython.int[::1],
    slots: cython.int[::1],
    out_record: cython.int[::1],
    out_key: cython.int[::1],
    out_bytes: cython.longlong[::1],
):
    """Shares the bytes of each code object among the lines of its table: rows [begins, ends) of offsets (rising within
    a record), files and lines; what is before the first entry has file -1 and line 0.

    A key is a (base, file, line); each is a row of key_*; seen_in (-1 at first) and seen_row: the record and the output
    row that it was last in. Output rows: (record, key, bytes), each pair once. Stops early when the keys are full (or
    slots half full): grow them and call again. state: the record to go on at, the number of keys, the number of output
    rows. out_* are as long as the rows of all records and one more for each.
    """
    n: cython.Py_ssize_t = begins.shape[0]
    n_rows: cython.Py_ssize_t = offsets.shape[0]
    n_slots: cython.Py_ssize_t = slots.shape[0]
    n_max: cython.Py_ssize_t = key_base.shape[0]
    if (
        ends.shape[0] != n
        or code_sizes.shape[0] != n
        or bases.shape[0] != n
        or files.shape[0] != n_rows
        or lines.shape[0] != n_rows
        or key_file.shape[0] != n_max
        or key_line.shape[0] != n_max
        or seen_in.shape[0] != n_max
        or seen_row.shape[0] != n_max
        or n_slots & (n_slots - 1)
        or n_slots < 2 * n_max
        or out_key.shape[0] != out_record.shape[0]
        or out_bytes.shape[0] != out_record.shape[0]
        or state.shape[0] < 3
    ):
        raise ValueError("sizes: an array has the wrong length")
    r: cython.Py_ssize_t = int(state[RECORD])
    n_keys: cython.Py_ssize_t = int(state[N_KEYS])
    m: cython.Py_ssize_t = int(state[N_OUT])
    if r < 0 or n_keys < 0 or n_keys > n_max or m < 0:
        raise ValueError("sizes: invalid state")
    i: cython.Py_ssize_t
    total: cython.Py_ssize_t = n
    for i in range(n):
        if begins[i] < 0 or ends[i] < begins[i] or ends[i] > n_rows:
            raise ValueError("sizes: rows outside the table")
        total += ends[i] - begins[i]
    if out_record.shape[0] < total:
        raise ValueError("sizes: an array has the wrong length")
    with cython.nogil:
        while r < n:
            if n_keys + (ends[r] - begins[r]) + 1 > n_max:
                break
            base: cython.int = bases[r]
            size: cython.longlong = code_sizes[r]
            file: cython.int = -1
            line: cython.int = 0
            done: cython.longlong = 0
            i = begins[r]
            while done < size:
                upto: cython.longlong = size
                if i < ends[r] and offsets[i] < size:
                    upto = offsets[i]
                if upto > done:
                    k: cython.int = intern_triple(key_base, key_file, key_line, slots, n_keys, base, file, line)
                    if k == n_keys:
                        seen_in[k] = -1
                        n_keys += 1
                    if seen_in[k] != r:
                        seen_in[k] = r
                        seen_row[k] = m
                        out_record[m] = r
                        out_key[m] = k
                        out_bytes[m] = 0
                        m += 1
                    out_bytes[seen_row[k]] += upto - done
                    done = upto
                if i < ends[r]:
                    file = files[i]
                    line = lines[i]
                    i += 1
            r += 1
    state[RECORD] = r
    state[N_KEYS] = n_keys
    state[N_OUT] = m


if not cython.compiled:
    from traceferry.kernels.interpreted import plain_integers

    sizes = plain_integers(sizes)
