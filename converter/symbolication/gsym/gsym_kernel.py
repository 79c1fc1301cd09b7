# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Decodes function infos of GSYM files. Cython's pure-Python mode: also runs interpreted.

`find` says in which function info each address is, `count` how many frames it has, `fill` which: together they decode
each function that is touched once and walk through its addresses with it. `parts`, `rows` and `nodes` decode one
function whole.

d: the file; layout: a Layout of it; addresses are sorted. ValueError: an array has the wrong length, or a table of the
layout is outside the data.
"""

import cython

from traceferry.kernels.cursor import number
from traceferry.kernels.functions import c_function, c_inline
from traceferry.kernels.integers import ALL, wrapped
from traceferry.kernels.search import first_from
from traceferry.symbolication.gsym.decode_inlined import DAMAGES, OUTSIDE, File, Info, Nodes, Rows, line_of

__all__ = ["DAMAGES", "count", "fill", "find", "nodes", "parts", "rows"]


@c_inline
def end_of_function(
    infos: cython.const[cython.longlong][::1], starts: cython.const[cython.ulonglong][::1], i: cython.Py_ssize_t
) -> cython.Py_ssize_t:
    """How far the addresses are of the function that the i-th is of."""
    end: cython.Py_ssize_t = i + 1
    while end < infos.shape[0] and infos[end] == infos[i] and starts[end] == starts[i]:
        end += 1
    return end


# ---------------------------------------------------------------- look-ups


def find(
    d: cython.const[cython.uchar][::1],
    layout: object,
    addresses: cython.const[cython.ulonglong][::1],
    infos: cython.longlong[::1],
    starts: cython.ulonglong[::1],
    damage: cython.uchar[::1],
):
    """For each address where its function info begins, -1: none, and where its function starts. Of functions that start
    at one address it is the first that reaches the address; size 0 reaches until the next function.

    Where the offset of an info is outside, `damage` says so and `infos` is where this offset stands.
    """
    n: cython.Py_ssize_t = addresses.shape[0]
    if infos.shape[0] != n or starts.shape[0] != n or damage.shape[0] != n:
        raise ValueError("find: an array has the wrong length")
    file: File = File(d, layout)
    # Entries from `entry` to `end` start at `start`; `until` is where the next ones do.
    entry: cython.ulonglong = 0
    end: cython.ulonglong = 0
    start: cython.ulonglong = 0
    until: cython.ulonglong = 0
    i: cython.Py_ssize_t
    for i in range(n):
        infos[i] = -1
        starts[i] = 0
        damage[i] = 0
        if addresses[i] < file.base:
            continue
        offset: cython.ulonglong = addresses[i] - file.base
        if offset >= until and end < file.n_addresses:
            end = file.first_after(offset)
            until = file.start_of(end) if end < file.n_addresses else ALL
            if end > 0:
                start = file.start_of(end - 1)
                entry = file.first_from(start)
        while entry < end:
            info: cython.longlong = file.info_of(entry)
            if info < 0:
                damage[i] = OUTSIDE
                infos[i] = cython.cast(cython.longlong, file.place_of_info(entry))
                break
            size: cython.ulonglong = number(d, cython.cast(cython.ulonglong, info), 4, file.big)
            if size == 0 or offset - start < size:
                infos[i] = info
                starts[i] = wrapped(file.base + start)
                break
            entry += 1


@c_function
def place_rows(
    table: Rows,
    addresses: cython.const[cython.ulonglong][::1],
    i: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    files: cython.uint[::1],
    lines: cython.int[::1],
) -> cython.int:
    """The row of each address from i to `end`, the last before one that is behind the address; file 0: it has none.
    Returns what is damaged."""
    file: cython.uint = 0
    line: cython.int = 0
    while i < end and table.next():
        while i < end and addresses[i] < table.address:
            files[i] = file
            lines[i] = line
            i += 1
        file = cython.cast(cython.uint, table.file)
        line = line_of(table.line)
    while i < end:
        files[i] = file
        lines[i] = line
        i += 1
    return table.cursor.damage


@c_function
def begin_inside(
    files: cython.const[cython.uint][::1],
    begin: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    inside: cython.ulonglong[::1],
) -> cython.void:
    """Every address is in no node yet, and never comes into one where it has no row."""
    i: cython.Py_ssize_t
    for i in range(begin, end):
        inside[i] = 0 if files[i] != 0 else ALL


@c_function
def count_calls(
    tree: Nodes,
    addresses: cython.const[cython.ulonglong][::1],
    begin: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    inside: cython.ulonglong[::1],
    frames: cython.int[::1],
) -> cython.int:
    """Adds to `frames` the calls that are inlined around each address from `begin` to `end`. inside: the innermost node
    so far: a node holds an address only if its parent does and no sibling before it. Returns what is damaged."""
    while tree.next():
        while tree.next_range():
            i: cython.Py_ssize_t = first_from(addresses, begin, end, tree.first)
            while i < end and addresses[i] < tree.end:
                if inside[i] == tree.parent:
                    inside[i] = tree.number
                    frames[i] += cython.cast(cython.int, tree.is_call)
                i += 1
    return tree.cursor.damage


@c_function
def fill_calls(
    tree: Nodes,
    addresses: cython.const[cython.ulonglong][::1],
    begin: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    inside: cython.ulonglong[::1],
    first: cython.const[cython.longlong][::1],
    outermost: cython.longlong[::1],
    name: cython.ulonglong[::1],
    source: cython.uint[::1],
    line: cython.int[::1],
) -> cython.bint:
    """Writes the calls that `count_calls` counted. first: the innermost frame of each address; outermost: the last that
    was not written yet. False: they are not what was counted."""
    while tree.next():
        while tree.next_range():
            i: cython.Py_ssize_t = first_from(addresses, begin, end, tree.first)
            while i < end and addresses[i] < tree.end:
                if inside[i] == tree.parent:
                    inside[i] = tree.number
                    if tree.is_call:
                        frame: cython.longlong = outermost[i]
                        if frame <= first[i]:
                            return False
                        source[frame] = cython.cast(cython.uint, tree.call_file)
                        line[frame] = line_of(tree.call_line)
                        name[frame - 1] = tree.name
                        outermost[i] = frame - 1
                i += 1
    return tree.cursor.damage == 0


def count(
    d: cython.const[cython.uchar][::1],
    layout: object,
    addresses: cython.const[cython.ulonglong][::1],
    infos: cython.const[cython.longlong][::1],
    starts: cython.const[cython.ulonglong][::1],
    sizes: cython.ulonglong[::1],
    names: cython.ulonglong[::1],
    files: cython.uint[::1],
    lines: cython.int[::1],
    frames: cython.int[::1],
    inside: cython.ulonglong[::1],
    damage: cython.uchar[::1],
):
    """For each address, with what `find` gave: its function's size and name, its row's file (0: it has no row) and
    line, and how many frames it has: inlined ones only where there is a row. None where `damage` says what is wrong."""
    n: cython.Py_ssize_t = addresses.shape[0]
    if (
        infos.shape[0] != n
        or starts.shape[0] != n
        or sizes.shape[0] != n
        or names.shape[0] != n
        or files.shape[0] != n
        or lines.shape[0] != n
        or frames.shape[0] != n
        or inside.shape[0] != n
        or damage.shape[0] != n
    ):
        raise ValueError("count: an array has the wrong length")
    file: File = File(d, layout)
    info: Info = Info(file)
    table: Rows = Rows(file)
    tree: Nodes = Nodes(file)
    i: cython.Py_ssize_t = 0
    k: cython.Py_ssize_t
    while i < n:
        end: cython.Py_ssize_t = end_of_function(infos, starts, i)
        for k in range(i, end):
            sizes[k] = 0
            names[k] = 0
            files[k] = 0
            lines[k] = 0
            frames[k] = 0
        if infos[i] < 0 or damage[i] != 0:
            i = end
            continue
        bad: cython.int = info.read(cython.cast(cython.ulonglong, infos[i]))
        if bad == 0 and info.lines_end > info.lines:
            table.begin(info.lines, info.lines_end, starts[i])
            bad = place_rows(table, addresses, i, end, files, lines)
            if bad == 0 and info.inlines_end > info.inlines:
                begin_inside(files, i, end, inside)
                tree.begin(info.inlines, info.inlines_end, starts[i])
                bad = count_calls(tree, addresses, i, end, inside, frames)
        for k in range(i, end):
            if bad == 0:
                sizes[k] = info.size
                names[k] = info.name
                frames[k] += 1
            else:
                damage[k] = cython.cast(cython.uchar, bad)
                frames[k] = 0
        i = end


def fill(
    d: cython.const[cython.uchar][::1],
    layout: object,
    addresses: cython.const[cython.ulonglong][::1],
    infos: cython.const[cython.longlong][::1],
    starts: cython.const[cython.ulonglong][::1],
    names: cython.const[cython.ulonglong][::1],
    files: cython.const[cython.uint][::1],
    lines: cython.const[cython.int][::1],
    frames: cython.const[cython.int][::1],
    inside: cython.ulonglong[::1],
    first: cython.const[cython.longlong][::1],
    outermost: cython.longlong[::1],
    name: cython.ulonglong[::1],
    source: cython.uint[::1],
    line: cython.int[::1],
):
    """The frames that `count` counted, innermost first: those of the i-th address from first[i] on. outermost: a
    number for each address, for its own use."""
    n: cython.Py_ssize_t = addresses.shape[0]
    n_max: cython.longlong = name.shape[0]
    if (
        infos.shape[0] != n
        or starts.shape[0] != n
        or names.shape[0] != n
        or files.shape[0] != n
        or lines.shape[0] != n
        or frames.shape[0] != n
        or inside.shape[0] != n
        or first.shape[0] != n
        or outermost.shape[0] != n
        or source.shape[0] != n_max
        or line.shape[0] != n_max
    ):
        raise ValueError("fill: an array has the wrong length")
    file: File = File(d, layout)
    info: Info = Info(file)
    tree: Nodes = Nodes(file)
    i: cython.Py_ssize_t = 0
    k: cython.Py_ssize_t
    good: cython.bint = True
    while i < n and good:
        end: cython.Py_ssize_t = end_of_function(infos, starts, i)
        deepest: cython.int = 0
        for k in range(i, end):
            if frames[k] < 0 or first[k] < 0 or first[k] > n_max - frames[k]:
                good = False
                break
            if frames[k] == 0:
                continue
            deepest = max(deepest, frames[k])
            source[first[k]] = files[k]
            line[first[k]] = lines[k]
            outermost[k] = first[k] + frames[k] - 1
            name[outermost[k]] = names[k]
        if good and deepest > 1:
            begin_inside(files, i, end, inside)
            good = info.read(cython.cast(cython.ulonglong, infos[i])) == 0
            if good:
                tree.begin(info.inlines, info.inlines_end, starts[i])
                good = fill_calls(tree, addresses, i, end, inside, first, outermost, name, source, line)
        i = end
    if not good:
        raise ValueError("fill: not what was counted")


# ---------------------------------------------------------------- whole functions


def parts(
    d: cython.const[cython.uchar][::1],
    layout: object,
    at: cython.ulonglong,
    spent: cython.ulonglong[::1],
    out: cython.ulonglong[::1],
) -> cython.int:
    """The function info at `at`: size, name, end, then begin and end of its line table, inline tree, merged functions
    and call sites: 11 numbers. spent: one number, the bytes of infos that were decoded so far. Returns what is damaged,
    0: nothing."""
    if out.shape[0] != 11 or spent.shape[0] != 1:
        raise ValueError("parts: an array has the wrong length")
    file: File = File(d, layout)
    file.spent = spent[0]
    info: Info = Info(file)
    bad: cython.int = info.read(at)
    spent[0] = file.spent
    if bad == 0:
        out[0] = info.size
        out[1] = info.name
        out[2] = info.end
        out[3] = info.lines
        out[4] = info.lines_end
        out[5] = info.inlines
        out[6] = info.inlines_end
        out[7] = info.merged
        out[8] = info.merged_end
        out[9] = info.call_sites
        out[10] = info.call_sites_end
    return bad


def rows(
    d: cython.const[cython.uchar][::1],
    layout: object,
    at: cython.ulonglong,
    end: cython.ulonglong,
    start: cython.ulonglong,
    addresses: cython.ulonglong[::1],
    files: cython.uint[::1],
    lines: cython.int[::1],
) -> cython.Py_ssize_t:
    """The line table that lies from `at` to `end`, of a function that starts at `start`. Returns how many rows it has;
    below 0: what is damaged. Columns as long as the table has bytes are long enough."""
    n_max: cython.Py_ssize_t = addresses.shape[0]
    file: File = File(d, layout)
    if end > file.infos_end or files.shape[0] != n_max or lines.shape[0] != n_max:
        raise ValueError("rows: an array has the wrong length")
    n: cython.Py_ssize_t = 0
    table: Rows = Rows(file)
    table.begin(at, end, start)
    while table.next():
        if n >= n_max:
            raise ValueError("rows: an array has the wrong length")
        addresses[n] = table.address
        files[n] = cython.cast(cython.uint, table.file)
        lines[n] = line_of(table.line)
        n += 1
    return n if table.cursor.damage == 0 else -table.cursor.damage


def nodes(
    d: cython.const[cython.uchar][::1],
    layout: object,
    at: cython.ulonglong,
    end: cython.ulonglong,
    start: cython.ulonglong,
    level: cython.int[::1],
    name: cython.ulonglong[::1],
    file: cython.uint[::1],
    line: cython.int[::1],
    first_range: cython.longlong[::1],
    range_start: cython.ulonglong[::1],
    range_end: cython.ulonglong[::1],
) -> cython.Py_ssize_t:
    """The inline tree that lies from `at` to `end`, of a function that starts at `start`, parents before their
    children: how deep each node is, its name, call file, call line, and which ranges are its own: from first_range of
    it to that of the next. Returns how many nodes; below 0: what is damaged. Columns for a node in 10 bytes and a
    range in 2 are long enough."""
    n_max: cython.Py_ssize_t = name.shape[0]
    n_ranges: cython.Py_ssize_t = range_start.shape[0]
    of: File = File(d, layout)
    if (
        end > of.infos_end
        or level.shape[0] != n_max
        or file.shape[0] != n_max
        or line.shape[0] != n_max
        or first_range.shape[0] != n_max + 1
        or range_end.shape[0] != n_ranges
    ):
        raise ValueError("nodes: an array has the wrong length")
    n: cython.Py_ssize_t = 0
    m: cython.Py_ssize_t = 0
    tree: Nodes = Nodes(of)
    first_range[0] = 0
    tree.begin(at, end, start)
    while tree.next():
        if n >= n_max or tree.n_ranges > cython.cast(cython.ulonglong, n_ranges - m):
            raise ValueError("nodes: an array has the wrong length")
        level[n] = cython.cast(cython.int, tree.level)
        name[n] = tree.name
        file[n] = cython.cast(cython.uint, tree.call_file)
        line[n] = line_of(tree.call_line)
        while tree.next_range():
            range_start[m] = tree.first
            range_end[m] = tree.end
            m += 1
        n += 1
        first_range[n] = m
    return n if tree.cursor.damage == 0 else -tree.cursor.damage


if not cython.compiled:
    from traceferry.kernels.interpreted import plain_integers

    find = plain_integers(find)
    parts = plain_integers(parts)
    rows = plain_integers(rows)
    nodes = plain_integers(nodes)
    count = plain_integers(count)
    fill = plain_integers(fill)
