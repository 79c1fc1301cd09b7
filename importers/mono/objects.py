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
"""

from __future__ import annotations

import numpy as np

from traceferry.importers.mono import objects_kernel as kernel
from traceferry.model import Array

MAJOR = 1
FIRST_SLOTS = 1 << 12
FIRST_ROOM = 1 << 16

# As in the kernel: what its state holds, and the status of a slot in which no object lies any more.
N_EVENTS, LAST_MAJOR, NURSERY_FIRST, NURSERY_LAST, N_OBJECTS, N_USED, DONE, MOVES_RECORDED, STATE_SIZE = range(9)
VACATED = 1


class _Table:
    """The kernel's hash table: live and suspected objects by address."""

    def __init__(self, n_slots: int) -> None:
        self.address = np.zeros(n_slots, np.uint64)
        self.number = np.zeros(n_slots, np.int32)
        self.class_name = np.zeros(n_slots, np.int32)
        self.since = np.zeros(n_slots, np.int32)
        self.status = np.zeros(n_slots, np.uint8)

    @property
    def columns(self) -> tuple[Array, Array, Array, Array, Array]:
        return self.address, self.number, self.class_name, self.since, self.status


class ObjectTracker:
    """Numbers objects in the order of their allocation and tracks them over the events of the heap.

    Collections and heap shots are events, numbered together from 0 in the order in which they are added. Addresses are
    uint64, classes int32 (-1 is unknown, and agrees with every class), numbers of objects int64.

    moves_recorded: whether the log records the moves of collections.
    """

    def __init__(self, moves_recorded: bool) -> None:
        self._table = _Table(FIRST_SLOTS)
        self._died = np.full(FIRST_ROOM, -1, np.int32)
        self._state = np.zeros(STATE_SIZE, np.int64)
        self._state[[LAST_MAJOR, NURSERY_FIRST, NURSERY_LAST]] = -1
        self._state[MOVES_RECORDED] = moves_recorded

    @property
    def n_events(self) -> int:
        """How many collections and shots there were."""
        return int(self._state[N_EVENTS])

    def allocate(self, addresses: Array, sizes: Array, classes: Array) -> range:
        """New objects, in the order of time: their numbers. sizes: int64, in bytes."""
        first = int(self._state[N_OBJECTS])
        self._make_room(first + len(addresses))
        self._state[DONE] = 0
        while True:
            kernel.allocate(addresses, sizes, classes, *self._table.columns, self._died, self._state)
            if self._state[DONE] == len(addresses):
                return range(first, first + len(addresses))
            self._rehash()

    def collect(self, generation: int, old: Array, new: Array) -> None:
        """A collection, with the moves that it made, in the log's order: an object that moved twice in it moved on."""
        self._state[DONE] = 0
        while True:
            kernel.move(old, new, *self._table.columns, self._died, self._state)
            if self._state[DONE] == len(old):
                break
            self._rehash()
        if generation >= MAJOR:
            self._state[LAST_MAJOR] = self._state[N_EVENTS]
        self._state[N_EVENTS] += 1

    def seen(self, addresses: Array) -> Array:
        """The objects at these addresses, which are alive now; -1: not one of those allocated."""
        found = np.empty(len(addresses), np.int64)
        table = self._table
        kernel.seen(addresses, table.address, table.number, table.since, table.status, self._state, found)
        return found

    def shot(self, addresses: Array, classes: Array) -> Array:
        """A heap shot: the objects that it lists; -1: not one of those allocated."""
        found = np.empty(len(addresses), np.int64)
        table = self._table
        kernel.list_alive(addresses, classes, *table.columns, self._state, found)
        kernel.bury_unlisted(table.address, table.number, table.since, table.status, self._died, self._state)
        self._state[N_EVENTS] += 1
        return found

    def finish(self) -> Array:
        """For each object the event in which it died, int32; -1: it survived, or unknown."""
        table = self._table
        kernel.bury_suspects(table.address, table.number, table.since, table.status, self._died, self._state)
        died = self._died[: self._state[N_OBJECTS]]
        died[died >= self.n_events] = -1
        return died

    def _make_room(self, n_objects: int) -> None:
        if n_objects > np.iinfo(np.int32).max:
            raise ValueError("more objects than int32 can number")
        room = len(self._died)
        if n_objects > room:
            grown = np.full(max(n_objects, room + room // 2), -1, np.int32)
            grown[:room] = self._died
            self._died = grown

    def _rehash(self) -> None:
        """Into a table in which at most half of the slots are used."""
        n_alive = int(np.count_nonzero(self._table.status > VACATED))
        n_slots = FIRST_SLOTS
        while n_slots < 2 * n_alive:
            n_slots *= 2
        table = _Table(n_slots)
        self._state[N_USED] = kernel.rehash(*self._table.columns, *table.columns)
        self._table = table
