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

from typing import NamedTuple

import numpy as np

from traceferry.heap.objects_kernel import ROW_WIDTH, Objects
from traceferry.model import Array

MAJOR = 1
FIRST_SLOTS = 1 << 12
FIRST_WITH_PLACES, MOST_PLACES = 1 << 17, 1 << 23


class Found(NamedTuple):
    """Objects: their numbers (int64) and sites (int32); -1: not one of those allocated."""

    number: Array
    site: Array

    @staticmethod
    def of(found: Array) -> Found:
        """See `objects_kernel`."""
        return Found(np.where(found < 0, -1, found & 0xFFFFFFFF), (found >> 32).astype(np.int32))


class ObjectTracker:
    """Numbers objects in the order of their allocation and tracks them over the events of the heap.

    Collections and heap shots are events, numbered together from 0 in the order in which they are added. Addresses are
    uint64, classes int32 (-1 is unknown, and agrees with every class), numbers of objects int64; sites int32, numbers
    that the caller gives, for where and of which class objects are allocated.

    moves_recorded: whether the log records the moves of collections; most: how many objects there may be. n_slots: of
    the table of live and suspected objects. Raises ValueError for more objects than int32 can number.
    """

    def __init__(self, moves_recorded: bool, most: int) -> None:
        if most > np.iinfo(np.int32).max:
            raise ValueError("more objects than int32 can number")
        self._died = np.full(most, -1, np.int32)
        self._objects = Objects(moves_recorded, self._died)
        self._n_hashed = FIRST_SLOTS
        self._use_slots(0, 0)

    @property
    def n_events(self) -> int:
        """How many collections and shots there were."""
        return self._objects.n_events

    def allocate(self, addresses: Array, sizes: Array, sites: Array) -> range:
        """New objects, in the order of time: their numbers. sizes: int64, in bytes."""
        first = self._objects.n_objects
        done = 0
        while (done := self._objects.allocate(addresses, sizes, sites, done)) < len(addresses):
            self._rehash()
        return range(first, first + len(addresses))

    def collect(self, generation: int, old: Array, new: Array) -> None:
        """A collection, with the moves that it made, in the log's order: an object that moved twice in it moved on."""
        done = 0
        while (done := self._objects.move(old, new, done)) < len(old):
            self._rehash()
        self._objects.end_event(generation >= MAJOR)

    def seen(self, addresses: Array) -> Found:
        """The objects at these addresses, which are alive now."""
        found = np.empty(len(addresses), np.int64)
        self._objects.seen(addresses, found)
        return Found.of(found)

    def shot(self, addresses: Array, classes: Array, class_of: Array) -> Found:
        """A heap shot: the objects that it lists. class_of: for each site."""
        found = np.empty(len(addresses), np.int64)
        self._objects.list_alive(addresses, classes, class_of, found)
        self._objects.bury_unlisted()
        self._objects.end_event(False)
        return Found.of(found)

    def finish(self) -> Array:
        """For each object the event in which it died, int32; -1: it survived, or unknown."""
        self._objects.bury_suspects()
        died = self._died[: self._objects.n_objects]
        died[died >= self.n_events] = -1
        return died

    def _rehash(self) -> None:
        """Into a table in which at most half of the hashed slots are used. Where there are many objects, the places in
        the nursery have slots of their own, if it is known and not too large."""
        places = self._objects.nursery
        if self.n_slots < FIRST_WITH_PLACES or places[1] > MOST_PLACES:
            places = 0, 0
        n_alive = self._objects.n_alive(*places)
        while self._n_hashed < 2 * n_alive:
            self._n_hashed *= 2
        self._use_slots(*places)

    def _use_slots(self, first_place: int, n_places: int) -> None:
        self.n_slots = self._n_hashed + n_places
        self._objects.use_rows(np.zeros(ROW_WIDTH * self.n_slots, np.uint64), self._n_hashed, first_place, n_places)
