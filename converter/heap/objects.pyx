"""Tracks objects through a moving, generational collector, as recorded in a log.

The collector (sgen). Small objects are allocated in the nursery; a collection moves its survivors into the major heap,
all but those that something points to without saying so (pinned). The major heap is marked and swept, and moved only
to compact it. Objects of more than 8000 bytes lie in the large-object space and never move. Some of the runtime's own
objects are allocated pinned, outside the nursery.

A log does not record when an object died. The rules:

- What something else is allocated at or moved to is dead. If it lay in the nursery during a collection and was not
  moved, it died in that collection; else in the last major one that it is not known to have survived, or if there was
  none, in the event before.
- What lay in the nursery during a collection and was not moved is *suspected* to have died in it. The suspicion ends
  when the object is seen, listed or moved before something else lies there; else it holds at the end. The nursery is
  where objects were moved from right after their allocation, in units of 4 MiB, to which it is aligned.
- A heap shot lists what threads. What it does not list is dead.
- Where moves are not recorded, a small object is lost sight of in the next collection, and found again only by a heap
  shot that lists an object of its class at its address. It never counts as dead.

A shot tells objects apart by class, not by size: what it lists as the size is the size of the object's slot, and a
string's size at its allocation is that of an empty one.

The objects are in a hash table by address, with open addressing: a power of two of slots, and behind them one for each
place in the nursery, where in time something was allocated everywhere.
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

from typing import NamedTuple

import numpy as np

from traceferry.heap.deaths cimport Deaths
from traceferry.native.hashing cimport GOLDEN


cdef extern from *:
    """
    #if defined(__GNUC__)
    #define traceferry_prefetch(address) __builtin_prefetch(address, 1)
    #else
    #define traceferry_prefetch(address) ((void)(address))
    #endif
    """
    void prefetch "traceferry_prefetch" (const void *) noexcept nogil


# A slot's status. FREE: never used. VACATED: nothing lies there any more. YOUNG: not known to have survived a
# collection. OLD: survived one. LARGE: in the large-object space, from which nothing moves.
cdef enum:
    FREE
    VACATED
    YOUNG
    OLD
    LARGE

cdef enum:
    # sgen-conf.h: SGEN_MAX_SMALL_OBJ_SIZE, DEFAULT_NURSERY_BITS (the nursery is aligned to its size).
    MAX_SMALL = 8000
    NURSERY_BITS = 22
    PLACE_BITS = 3  # objects are aligned
    UNKNOWN_CLASS = -1
    MAJOR = 1  # the generation of a collection of the whole heap
    FIRST_SLOTS = 1 << 12
    # So many objects ahead, slots are asked for from memory: the table is larger than a processor's cache.
    AHEAD = 16

# From so many slots on, the places in the nursery have slots of their own, if they are not more than these.
FIRST_WITH_PLACES = 1 << 17
MOST_PLACES = 1 << 23


cdef struct Slot:
    uint64_t address
    int32_t number
    int32_t site
    uint32_t since  # the first event that the object is not known to have survived
    uint32_t status


cdef Slot a_slot
SLOT = np.asarray(<Slot[:1]>&a_slot).dtype


class Found(NamedTuple):
    """Objects: their numbers (int64) and sites (int32); -1: not one of those allocated."""

    number: object
    site: object


@cython.final
cdef class ObjectTracker:
    """Numbers objects in the order of their allocation and tracks them over the events of the heap.

    Collections and heap shots are events, numbered together from 0 in the order in which they are added. Addresses are
    uint64, classes int32 (-1 is unknown, and agrees with every class), numbers of objects int64; sites int32, numbers
    that the caller gives, for where and of which class objects are allocated.

    moves_recorded: whether the log records the moves of collections; most: how many objects there may be. n_events: how
    many collections and shots there were; n_slots: of the table of live and suspected objects. Raises ValueError for
    more objects than int32 can number.
    """

    cdef Slot[::1] table
    cdef Slot* slots  # its first
    cdef Deaths deaths
    cdef bint moves_recorded
    cdef int64_t most
    cdef readonly int64_t n_events
    cdef readonly Py_ssize_t n_slots
    cdef Py_ssize_t n_hashed
    cdef Py_ssize_t n_used
    cdef Py_ssize_t most_used
    cdef uint64_t first_place
    cdef uint64_t n_places
    cdef int64_t n_objects
    cdef int64_t last_major
    cdef int64_t nursery_first
    cdef int64_t nursery_last

    def __cinit__(self, bint moves_recorded, int64_t most):
        if most > np.iinfo(np.int32).max:
            raise ValueError("more objects than int32 can number")
        self.moves_recorded = moves_recorded
        # Where moves are recorded, what is not moved out of the nursery died.
        self.deaths = Deaths(moves_recorded)
        self.most = most
        self.last_major = self.nursery_first = self.nursery_last = -1
        self.table = np.zeros(0, SLOT)
        self.use_slots(FIRST_SLOTS, 0, 0)

    # ------------------------------------------------------------ slots

    cdef inline Py_ssize_t slot_at(self, uint64_t address) noexcept nogil:
        """Returns where to look first. Outside the nursery, objects beside one another may have slots far apart: dense
        runs would grow into another."""
        cdef uint64_t place = (address >> PLACE_BITS) - self.first_place
        if place < self.n_places:
            return self.n_hashed + place
        cdef uint64_t h = address * <uint64_t>GOLDEN
        return (h ^ h >> 32) & <uint64_t>(self.n_hashed - 1)

    cdef inline Slot* find(self, uint64_t address) noexcept nogil:
        """Returns the slot of the address, or the FREE one where it belongs."""
        cdef Py_ssize_t nth = self.slot_at(address)
        while self.slots[nth].status != FREE and self.slots[nth].address != address:
            nth = (nth + 1) & (self.n_hashed - 1)
        return &self.slots[nth]

    cdef inline void enter(self, Slot* slot, uint64_t address, int32_t number, int32_t site) noexcept nogil:
        self.n_used += slot.status == FREE and slot < self.slots + self.n_hashed
        slot.address, slot.number, slot.site = address, number, site

    cdef inline void set_life(self, Slot* slot, uint32_t since, uint32_t status) noexcept nogil:
        slot.since, slot.status = since, status

    cdef inline void ask_for(self, uint64_t address) noexcept nogil:
        prefetch(&self.slots[self.slot_at(address)])

    cdef inline bint is_suspect(self, Slot* slot) noexcept nogil:
        """Returns whether what lies there lay in the nursery during a collection and was not moved."""
        cdef int64_t place = slot.address >> NURSERY_BITS
        return (
            slot.status == YOUNG
            and slot.since < self.n_events
            and self.moves_recorded
            and self.nursery_first <= place <= self.nursery_last
        )

    cdef inline int bury(self, Slot* slot, int64_t event) except -1 nogil:
        """What lies there, if anything does, is found to be gone in this event. Where it may have moved instead, it
        counts as not dead."""
        cdef int64_t died = -1
        if slot.status <= VACATED:
            return 0
        if slot.status == LARGE or self.moves_recorded:
            if self.is_suspect(slot):
                died = slot.since
            elif self.last_major >= slot.since:
                died = self.last_major
            else:
                died = max(event, <int64_t>slot.since)
        self.deaths.add(slot.number, died)
        self.set_life(slot, 0, VACATED)
        return 0

    cdef int grow(self) except -1:
        """Makes a table in which at most half of the hashed slots are used. Where there are many objects, the places in
        the nursery have slots of their own, if it is known and not too large."""
        cdef int64_t first = 0, n = 0, place
        cdef Py_ssize_t nth
        cdef Py_ssize_t n_alive = 0
        cdef Py_ssize_t n_hashed = self.n_hashed
        if self.nursery_last >= 0 and self.n_slots >= FIRST_WITH_PLACES:
            n = self.nursery_last - self.nursery_first + 1
            n = n << NURSERY_BITS - PLACE_BITS if n <= MOST_PLACES >> NURSERY_BITS - PLACE_BITS else 0
            first = self.nursery_first << NURSERY_BITS - PLACE_BITS if n > 0 else 0
        for nth in range(self.n_slots):
            place = self.slots[nth].address >> PLACE_BITS
            n_alive += self.slots[nth].status > VACATED and not first <= place < first + n
        while n_hashed < 2 * n_alive:
            n_hashed *= 2
        self.use_slots(n_hashed, first, n)
        return 0

    cdef int use_slots(self, Py_ssize_t n_hashed, uint64_t first_place, uint64_t n_places) except -1:
        """Enters the objects into a table of n_hashed slots and those of the places."""
        cdef Slot[::1] before = self.table
        cdef Slot* slot
        cdef Py_ssize_t nth
        cdef Py_ssize_t n_before = self.n_slots
        # Large arrays of NumPy are in large pages, where the system has them: look-ups go all over the table.
        self.table = np.zeros(n_hashed + n_places, SLOT)
        self.slots, self.first_place, self.n_places = &self.table[0], first_place, n_places
        self.n_hashed, self.n_slots, self.n_used = n_hashed, n_hashed + n_places, 0
        self.most_used = n_hashed // 4 * 3
        with nogil:
            for nth in range(n_before):
                if before[nth].status > VACATED:
                    slot = self.find(before[nth].address)
                    self.enter(slot, before[nth].address, before[nth].number, before[nth].site)
                    self.set_life(slot, before[nth].since, before[nth].status)
        return 0

    # ------------------------------------------------------------ events

    def allocate(self, const uint64_t[::1] addresses, const int64_t[::1] sizes, const int32_t[::1] sites):
        """Returns the numbers of new objects, a range. They come in the order of time; what lay there is dead. sizes:
        in bytes."""
        cdef Py_ssize_t n = addresses.shape[0]
        cdef Py_ssize_t i
        cdef int64_t first = self.n_objects
        cdef Slot* slot
        if sizes.shape[0] != n or sites.shape[0] != n or self.most < first + n:
            raise ValueError("allocate: an array has the wrong length")
        with nogil:
            for i in range(n):
                if self.n_used >= self.most_used:
                    with gil:
                        self.grow()
                if i + AHEAD < n:
                    self.ask_for(addresses[i + AHEAD])
                slot = self.find(addresses[i])
                self.bury(slot, self.n_events - 1)
                self.enter(slot, addresses[i], self.n_objects, sites[i])
                self.set_life(slot, self.n_events, LARGE if sizes[i] > MAX_SMALL else YOUNG)
                self.n_objects += 1
        return range(first, first + n)

    def collect(self, int generation, const uint64_t[::1] old, const uint64_t[::1] new):
        """Adds a collection, with the moves that it made, in the log's order: an object that moved twice in it moved
        on, and what lay at the new address is dead."""
        cdef Py_ssize_t n = old.shape[0]
        cdef Py_ssize_t i
        if new.shape[0] != n:
            raise ValueError("collect: an array has the wrong length")
        with nogil:
            for i in range(n):
                if self.n_used >= self.most_used:
                    with gil:
                        self.grow()
                if i + AHEAD < n:
                    self.ask_for(old[i + AHEAD])
                    self.ask_for(new[i + AHEAD])
                self.move(old[i], new[i])
        if generation >= MAJOR:
            self.last_major = self.n_events
        self.end_event()

    cdef int end_event(self) except -1:
        self.n_events += 1
        return self.deaths.end_event(self.n_objects)

    cdef inline int move(self, uint64_t old, uint64_t new) except -1 nogil:
        cdef Slot* slot = self.find(old)
        cdef bint is_known = slot.status > VACATED
        cdef int32_t number = slot.number, site = slot.site
        cdef int64_t place = old >> NURSERY_BITS
        if is_known:
            if slot.status == YOUNG and slot.since == self.n_events:
                if self.nursery_last < 0 or place < self.nursery_first:
                    self.nursery_first = place
                if place > self.nursery_last:
                    self.nursery_last = place
            self.set_life(slot, 0, VACATED)
        slot = self.find(new)
        self.bury(slot, self.n_events - 1)
        if is_known:
            self.enter(slot, new, number, site)
            self.set_life(slot, self.n_events + 1, OLD)
        return 0

    def seen(self, const uint64_t[::1] addresses):
        """Returns the objects at these addresses, as `Found`. They are alive now."""
        cdef Py_ssize_t i
        cdef Slot* slot
        cdef uint32_t status
        found = Found(np.full(addresses.shape[0], -1, np.int64), np.full(addresses.shape[0], -1, np.int32))
        cdef int64_t[::1] number = found.number
        cdef int32_t[::1] site = found.site
        for i in range(addresses.shape[0]):
            slot = self.find(addresses[i])
            status = slot.status
            if slot.since < self.n_events and status in (YOUNG, OLD):
                status = OLD if self.moves_recorded else VACATED
            if status > VACATED:
                self.set_life(slot, self.n_events, status)
                number[i], site[i] = slot.number, slot.site
        return found

    def shot(self, const uint64_t[::1] addresses, const int32_t[::1] classes, const int32_t[::1] class_of):
        """Adds a heap shot. Returns the objects that it lists, as `Found`; others are dead. class_of: for each site."""
        cdef Py_ssize_t n = addresses.shape[0]
        cdef Py_ssize_t i
        cdef Slot* slot
        cdef uint32_t status
        cdef int32_t known
        found = Found(np.full(n, -1, np.int64), np.full(n, -1, np.int32))
        cdef int64_t[::1] number = found.number
        cdef int32_t[::1] site = found.site
        if classes.shape[0] != n:
            raise ValueError("shot: an array has the wrong length")
        with nogil:
            for i in range(n):
                slot = self.find(addresses[i])
                status = slot.status
                if status <= VACATED:
                    continue
                known = class_of[slot.site] if 0 <= slot.site < class_of.shape[0] else UNKNOWN_CLASS
                if classes[i] != known and classes[i] != UNKNOWN_CLASS and known != UNKNOWN_CLASS:
                    continue
                if slot.since < self.n_events and status == YOUNG:
                    status = OLD
                self.set_life(slot, self.n_events + 1, status)
                number[i], site[i] = slot.number, slot.site
            for i in range(self.n_slots):
                if self.slots[i].since <= self.n_events:
                    self.bury(&self.slots[i], self.n_events)
        self.end_event()
        return found

    def finish(self, const int64_t[::1] unknown):
        """Returns when the objects died, but those that are `unknown`. What was not moved out of the nursery and not
        seen since is dead. Nothing is added afterwards."""
        cdef Py_ssize_t i
        cdef Slot* slot
        with nogil:
            for i in range(self.n_slots):
                slot = &self.slots[i]
                if self.is_suspect(slot):
                    self.bury(slot, self.n_events)
                elif slot.status > VACATED and not self.deaths.is_last(slot.number):
                    self.deaths.add(slot.number, -1)
            for i in range(unknown.shape[0]):
                self.deaths.hold(unknown[i], -1)
        self.deaths.end(self.n_objects)
        return self.deaths
