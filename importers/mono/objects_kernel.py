# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""A hash table of the objects of a moving heap, by address. Cython's pure-Python mode: also runs interpreted.

The table is open addressing over columns of one length, a power of two: address, number (the object's), class_name,
since (the first event of the heap that it is not known to have survived) and status, in which FREE is a slot that was
never used. A collection and a heap shot are events, numbered from 0. died has the event in which each object died.
See importers/mono/objects.py for the rules.
"""

import cython

from traceferry.kernels.hashing import ALL_BITS, GOLDEN

# A slot's status. VACATED: nothing lies there any more. YOUNG: not known to have survived a collection.
# OLD: survived one. LARGE: in the large-object space, from which nothing moves.
FREE = cython.declare(cython.uint, 0)
VACATED = cython.declare(cython.uint, 1)
YOUNG = cython.declare(cython.uint, 2)
OLD = cython.declare(cython.uint, 3)
LARGE = cython.declare(cython.uint, 4)

# sgen-conf.h: SGEN_MAX_SMALL_OBJ_SIZE, DEFAULT_NURSERY_BITS (the nursery is aligned to its size).
MAX_SMALL = cython.declare(cython.longlong, 8000)
NURSERY_BITS = cython.declare(cython.int, 22)

# Indices into `state`.
N_EVENTS = cython.declare(cython.int, 0)
LAST_MAJOR = cython.declare(cython.int, 1)
NURSERY_FIRST = cython.declare(cython.int, 2)
NURSERY_LAST = cython.declare(cython.int, 3)
N_OBJECTS = cython.declare(cython.int, 4)
N_USED = cython.declare(cython.int, 5)
DONE = cython.declare(cython.int, 6)
MOVES_RECORDED = cython.declare(cython.int, 7)
STATE_SIZE = cython.declare(cython.int, 8)

UNKNOWN_CLASS = cython.declare(cython.int, -1)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def find(
    table_address: cython.const[cython.ulonglong][::1],
    status: cython.const[cython.uchar][::1],
    wanted: cython.ulonglong,
) -> cython.Py_ssize_t:
    """The slot of the address, or the FREE one where it belongs."""
    mask: cython.ulonglong = status.shape[0] - 1
    # Objects beside one another, as they are allocated, have slots beside one another.
    h: cython.ulonglong = (wanted >> 7) * GOLDEN & ALL_BITS
    h = ((h ^ h >> 32) << 3 | wanted >> 4 & 7) & mask
    while status[h] != FREE and table_address[h] != wanted:
        h = (h + 1) & mask
    return h


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def is_suspect(
    state: cython.const[cython.longlong][::1],
    address: cython.ulonglong,
    since: cython.longlong,
    status: cython.uint,
) -> cython.bint:
    """Lay in the nursery during a collection and was not moved."""
    place: cython.longlong = address >> NURSERY_BITS
    return (
        status == YOUNG
        and since < state[N_EVENTS]
        and state[MOVES_RECORDED] != 0
        and state[NURSERY_FIRST] <= place
        and place <= state[NURSERY_LAST]
    )


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def death(
    state: cython.const[cython.longlong][::1],
    address: cython.ulonglong,
    since: cython.longlong,
    status: cython.uint,
    now: cython.longlong,
) -> cython.longlong:
    """The event in which an object died that is found to be gone in event `now`; -1: it may have moved instead."""
    if status == LARGE or state[MOVES_RECORDED] != 0:
        if is_suspect(state, address, since, status):
            return since
        if state[LAST_MAJOR] >= since:
            return state[LAST_MAJOR]
        return now if now > since else since
    return -1


def allocate(
    addresses: cython.const[cython.ulonglong][::1],
    sizes: cython.const[cython.longlong][::1],
    classes: cython.const[cython.int][::1],
    table_address: cython.ulonglong[::1],
    number: cython.int[::1],
    class_name: cython.int[::1],
    since: cython.int[::1],
    status: cython.uchar[::1],
    died: cython.int[::1],
    state: cython.longlong[::1],
):
    """Enters new objects from row state[DONE] on, numbered from state[N_OBJECTS]; what lay there is dead. Stops early
    when three quarters of the slots are used: enlarge and call again. died: -1, as long as there are numbers."""
    n: cython.Py_ssize_t = addresses.shape[0]
    n_slots: cython.Py_ssize_t = status.shape[0]
    if (
        sizes.shape[0] != n
        or classes.shape[0] != n
        or n_slots < 4
        or n_slots & (n_slots - 1)
        or table_address.shape[0] != n_slots
        or number.shape[0] != n_slots
        or class_name.shape[0] != n_slots
        or since.shape[0] != n_slots
        or state.shape[0] < STATE_SIZE
    ):
        raise ValueError("allocate: an array has the wrong length")
    i: cython.Py_ssize_t = int(state[DONE])
    next_number: cython.longlong = state[N_OBJECTS]
    n_used: cython.longlong = state[N_USED]
    if i < 0 or i > n or next_number < 0 or n_used < 0 or died.shape[0] < next_number + n - i:
        raise ValueError("allocate: a state that cannot be")
    limit: cython.longlong = n_slots // 4 * 3
    now: cython.longlong = state[N_EVENTS]
    slot: cython.Py_ssize_t
    with cython.nogil:
        while i < n and n_used < limit:
            slot = find(table_address, status, addresses[i])
            if status[slot] == FREE:
                n_used += 1
            elif status[slot] != VACATED:
                died[number[slot]] = death(state, addresses[i], since[slot], status[slot], now - 1)
            table_address[slot] = addresses[i]
            number[slot] = next_number
            class_name[slot] = classes[i]
            since[slot] = now
            status[slot] = LARGE if sizes[i] > MAX_SMALL else YOUNG
            next_number += 1
            i += 1
    state[DONE] = i
    state[N_OBJECTS] = next_number
    state[N_USED] = n_used


def move(
    old: cython.const[cython.ulonglong][::1],
    new: cython.const[cython.ulonglong][::1],
    table_address: cython.ulonglong[::1],
    number: cython.int[::1],
    class_name: cython.int[::1],
    since: cython.int[::1],
    status: cython.uchar[::1],
    died: cython.int[::1],
    state: cython.longlong[::1],
):
    """Moves objects from row state[DONE] on, one after the other; what lay at the new address is dead. Stops early as
    `allocate` does."""
    n: cython.Py_ssize_t = old.shape[0]
    n_slots: cython.Py_ssize_t = status.shape[0]
    if (
        new.shape[0] != n
        or n_slots < 4
        or n_slots & (n_slots - 1)
        or table_address.shape[0] != n_slots
        or number.shape[0] != n_slots
        or class_name.shape[0] != n_slots
        or since.shape[0] != n_slots
        or state.shape[0] < STATE_SIZE
        or died.shape[0] < state[N_OBJECTS]
    ):
        raise ValueError("move: an array has the wrong length")
    i: cython.Py_ssize_t = int(state[DONE])
    n_used: cython.longlong = state[N_USED]
    if i < 0 or i > n or n_used < 0:
        raise ValueError("move: a state that cannot be")
    limit: cython.longlong = n_slots // 4 * 3
    now: cython.longlong = state[N_EVENTS]
    place: cython.longlong
    of_object: cython.int
    of_class: cython.int
    source: cython.Py_ssize_t
    slot: cython.Py_ssize_t
    with cython.nogil:
        while i < n and n_used < limit:
            source = find(table_address, status, old[i])
            of_object = -1
            of_class = UNKNOWN_CLASS
            if status[source] != FREE and status[source] != VACATED:
                of_object = number[source]
                of_class = class_name[source]
                if status[source] == YOUNG and since[source] == now:
                    place = old[i] >> NURSERY_BITS
                    if state[NURSERY_LAST] < 0 or place < state[NURSERY_FIRST]:
                        state[NURSERY_FIRST] = place
                    if place > state[NURSERY_LAST]:
                        state[NURSERY_LAST] = place
                status[source] = VACATED
            slot = find(table_address, status, new[i])
            if status[slot] != FREE and status[slot] != VACATED:
                died[number[slot]] = death(state, new[i], since[slot], status[slot], now - 1)
                status[slot] = VACATED
            if of_object >= 0:
                if status[slot] == FREE:
                    n_used += 1
                table_address[slot] = new[i]
                number[slot] = of_object
                class_name[slot] = of_class
                since[slot] = now + 1
                status[slot] = OLD
            i += 1
    state[DONE] = i
    state[N_USED] = n_used


def seen(
    addresses: cython.const[cython.ulonglong][::1],
    table_address: cython.const[cython.ulonglong][::1],
    number: cython.const[cython.int][::1],
    since: cython.int[::1],
    status: cython.uchar[::1],
    state: cython.const[cython.longlong][::1],
    out: cython.longlong[::1],
):
    """out: the number of the object that lies at each address, -1 where none is known to."""
    n: cython.Py_ssize_t = addresses.shape[0]
    n_slots: cython.Py_ssize_t = status.shape[0]
    if (
        out.shape[0] != n
        or n_slots < 4
        or n_slots & (n_slots - 1)
        or table_address.shape[0] != n_slots
        or number.shape[0] != n_slots
        or since.shape[0] != n_slots
        or state.shape[0] < STATE_SIZE
    ):
        raise ValueError("seen: an array has the wrong length")
    now: cython.longlong = state[N_EVENTS]
    i: cython.Py_ssize_t
    slot: cython.Py_ssize_t
    with cython.nogil:
        for i in range(n):
            slot = find(table_address, status, addresses[i])
            out[i] = -1
            if status[slot] == FREE or status[slot] == VACATED:
                continue
            if since[slot] < now and status[slot] != LARGE:
                if state[MOVES_RECORDED] == 0:
                    continue
                status[slot] = OLD
            since[slot] = now
            out[i] = number[slot]


def list_alive(
    addresses: cython.const[cython.ulonglong][::1],
    classes: cython.const[cython.int][::1],
    table_address: cython.const[cython.ulonglong][::1],
    number: cython.const[cython.int][::1],
    class_name: cython.const[cython.int][::1],
    since: cython.int[::1],
    status: cython.uchar[::1],
    state: cython.const[cython.longlong][::1],
    out: cython.longlong[::1],
):
    """out: the number of the object of that class that lies at each address, -1 where none is known to."""
    n: cython.Py_ssize_t = addresses.shape[0]
    n_slots: cython.Py_ssize_t = status.shape[0]
    if (
        classes.shape[0] != n
        or out.shape[0] != n
        or n_slots < 4
        or n_slots & (n_slots - 1)
        or table_address.shape[0] != n_slots
        or number.shape[0] != n_slots
        or class_name.shape[0] != n_slots
        or since.shape[0] != n_slots
        or state.shape[0] < STATE_SIZE
    ):
        raise ValueError("list_alive: an array has the wrong length")
    now: cython.longlong = state[N_EVENTS]
    i: cython.Py_ssize_t
    slot: cython.Py_ssize_t
    with cython.nogil:
        for i in range(n):
            slot = find(table_address, status, addresses[i])
            out[i] = -1
            if status[slot] == FREE or status[slot] == VACATED:
                continue
            if classes[i] != class_name[slot] and classes[i] != UNKNOWN_CLASS and class_name[slot] != UNKNOWN_CLASS:
                continue
            if since[slot] < now and status[slot] == YOUNG:
                status[slot] = OLD
            since[slot] = now + 1
            out[i] = number[slot]


def bury_unlisted(
    table_address: cython.const[cython.ulonglong][::1],
    number: cython.const[cython.int][::1],
    since: cython.const[cython.int][::1],
    status: cython.uchar[::1],
    died: cython.int[::1],
    state: cython.const[cython.longlong][::1],
):
    """After `list_alive`: vacates what was not listed."""
    n_slots: cython.Py_ssize_t = status.shape[0]
    if (
        table_address.shape[0] != n_slots
        or number.shape[0] != n_slots
        or since.shape[0] != n_slots
        or state.shape[0] < STATE_SIZE
        or died.shape[0] < state[N_OBJECTS]
    ):
        raise ValueError("bury_unlisted: an array has the wrong length")
    now: cython.longlong = state[N_EVENTS]
    slot: cython.Py_ssize_t
    with cython.nogil:
        for slot in range(n_slots):
            if status[slot] > VACATED and since[slot] <= now:
                died[number[slot]] = death(state, table_address[slot], since[slot], status[slot], now)
                status[slot] = VACATED


def bury_suspects(
    table_address: cython.const[cython.ulonglong][::1],
    number: cython.const[cython.int][::1],
    since: cython.const[cython.int][::1],
    status: cython.uchar[::1],
    died: cython.int[::1],
    state: cython.const[cython.longlong][::1],
):
    """Vacates what was not moved out of the nursery and not seen since."""
    n_slots: cython.Py_ssize_t = status.shape[0]
    if (
        table_address.shape[0] != n_slots
        or number.shape[0] != n_slots
        or since.shape[0] != n_slots
        or state.shape[0] < STATE_SIZE
        or died.shape[0] < state[N_OBJECTS]
    ):
        raise ValueError("bury_suspects: an array has the wrong length")
    slot: cython.Py_ssize_t
    with cython.nogil:
        for slot in range(n_slots):
            if is_suspect(state, table_address[slot], since[slot], status[slot]):
                died[number[slot]] = since[slot]
                status[slot] = VACATED


def rehash(
    table_address: cython.const[cython.ulonglong][::1],
    number: cython.const[cython.int][::1],
    class_name: cython.const[cython.int][::1],
    since: cython.const[cython.int][::1],
    status: cython.const[cython.uchar][::1],
    to_address: cython.ulonglong[::1],
    to_number: cython.int[::1],
    to_class_name: cython.int[::1],
    to_since: cython.int[::1],
    to_status: cython.uchar[::1],
) -> cython.Py_ssize_t:
    """Enters all objects into an empty table with more slots than there are objects; returns how many they are."""
    n_slots: cython.Py_ssize_t = status.shape[0]
    room: cython.Py_ssize_t = to_status.shape[0]
    if (
        table_address.shape[0] != n_slots
        or number.shape[0] != n_slots
        or class_name.shape[0] != n_slots
        or since.shape[0] != n_slots
        or room < 4
        or room & (room - 1)
        or to_address.shape[0] != room
        or to_number.shape[0] != room
        or to_class_name.shape[0] != room
        or to_since.shape[0] != room
    ):
        raise ValueError("rehash: an array has the wrong length")
    n: cython.Py_ssize_t = 0
    slot: cython.Py_ssize_t
    to_slot: cython.Py_ssize_t
    bad: cython.bint = False
    with cython.nogil:
        for slot in range(n_slots):
            if status[slot] <= VACATED:
                continue
            n += 1
            if n >= room:
                bad = True
                break
            to_slot = find(to_address, to_status, table_address[slot])
            to_address[to_slot] = table_address[slot]
            to_number[to_slot] = number[slot]
            to_class_name[to_slot] = class_name[slot]
            to_since[to_slot] = since[slot]
            to_status[to_slot] = status[slot]
    if bad:
        raise ValueError("rehash: more objects than slots")
    return n


if not cython.compiled:
    from traceferry.kernels.interpreted import plain_integers

    allocate = plain_integers(allocate)
    move = plain_integers(move)
    seen = plain_integers(seen)
    list_alive = plain_integers(list_alive)
    bury_unlisted = plain_integers(bury_unlisted)
    bury_suspects = plain_integers(bury_suspects)
    rehash = plain_integers(rehash)
