# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""A hash table of the objects of a moving heap, by address. Cython's pure-Python mode: also runs interpreted.

The table is open addressing: a power of two of slots, and behind them one for each place in the nursery, where in time
something was allocated everywhere. Rows of WIDTH: the address; the object's number, and its site << 32; since, the
first event of the heap that it is not known to have survived, and a status << 32. A collection and a heap shot are
events, numbered from 0. died has the event in which each object died. See heap/objects.py for the rules.
"""

import cython

from traceferry.kernels.functions import c_inline
from traceferry.kernels.hashing import ALL_BITS, GOLDEN
from traceferry.kernels.integers import LOW_32

WIDTH = cython.declare(cython.Py_ssize_t, 3)
ADDRESS = cython.declare(cython.int, 0)
OBJECT = cython.declare(cython.int, 1)
LIFE = cython.declare(cython.int, 2)
ROW_WIDTH = 3

# A slot's status. FREE: never used. VACATED: nothing lies there any more. YOUNG: not known to have survived a
# collection. OLD: survived one. LARGE: in the large-object space, from which nothing moves.
FREE = cython.declare(cython.uint, 0)
VACATED = cython.declare(cython.uint, 1)
YOUNG = cython.declare(cython.uint, 2)
OLD = cython.declare(cython.uint, 3)
LARGE = cython.declare(cython.uint, 4)

# sgen-conf.h: SGEN_MAX_SMALL_OBJ_SIZE, DEFAULT_NURSERY_BITS (the nursery is aligned to its size).
MAX_SMALL = cython.declare(cython.longlong, 8000)
NURSERY_BITS = cython.declare(cython.int, 22)
PLACE_BITS = cython.declare(cython.int, 3)  # objects are aligned

UNKNOWN_CLASS = cython.declare(cython.int, -1)
# So many objects ahead, slots are asked for from memory: the table is larger than a processor's cache.
AHEAD = cython.declare(cython.Py_ssize_t, 16)


@cython.final
@cython.cclass
class Objects:
    """rows: given by `use_rows`. moves_recorded: whether the log records the moves of collections. died: as long as
    there may be objects, -1 at first.
    All addresses are uint64. site: int32, a number of the caller's, for where an object was allocated. What is found
    at an address is int64: the object's number, and its site << 32; -1 where none is known to lie."""

    rows: cython.ulonglong[::1]
    died: cython.int[::1]
    n_slots: cython.Py_ssize_t
    n_hashed: cython.Py_ssize_t
    n_places: cython.ulonglong
    first_place: cython.ulonglong
    moves_recorded: cython.bint
    now: cython.longlong  # how many events there were
    last_major: cython.longlong
    nursery_first: cython.longlong
    nursery_last: cython.longlong
    n_numbered: cython.longlong
    n_used: cython.longlong

    def __init__(self, moves_recorded: cython.bint, died: cython.int[::1]):
        self.moves_recorded = moves_recorded
        self.died = died
        self.n_slots = 0
        self.n_hashed = 0
        self.n_places = 0
        self.first_place = 0
        self.now = 0
        self.last_major = -1
        self.nursery_first = -1
        self.nursery_last = -1
        self.n_numbered = 0
        self.n_used = 0

    @property
    def n_events(self) -> int:
        return self.now

    @property
    def n_objects(self) -> int:
        return self.n_numbered

    @property
    def nursery(self) -> tuple[int, int]:
        """Its first place and how many there are, as far as it is known."""
        n: cython.longlong = self.nursery_last - self.nursery_first + 1 if self.nursery_last >= 0 else 0
        bits: cython.int = NURSERY_BITS - PLACE_BITS
        return max(self.nursery_first, 0) << bits, n << bits

    def n_alive(self, first_place: cython.longlong, n_places: cython.longlong) -> int:
        """How many objects are not known to be dead, outside these places."""
        n: cython.Py_ssize_t = 0
        is_same: cython.bint = self.first_place == first_place and self.n_places == n_places
        slot: cython.Py_ssize_t
        with cython.nogil:
            for slot in range(self.n_hashed if is_same else self.n_slots):
                place: cython.longlong = self.rows[WIDTH * slot + ADDRESS] >> PLACE_BITS
                n += self.status(slot) > VACATED and not 0 <= place - first_place < n_places
        return n

    # ------------------------------------------------------------ slots

    @c_inline
    def slot_at(self, address: cython.ulonglong) -> cython.Py_ssize_t:
        """Where to look first. Outside the nursery, objects beside one another may have slots far apart: dense runs
        would grow into another."""
        place: cython.ulonglong = (address >> PLACE_BITS) - self.first_place
        if 0 <= place < self.n_places:
            return self.n_hashed + place
        h: cython.ulonglong = address * GOLDEN & ALL_BITS
        return (h ^ h >> 32) & (self.n_hashed - 1)

    @c_inline
    def find(self, address: cython.ulonglong) -> cython.Py_ssize_t:
        """The slot of the address, or the FREE one where it belongs."""
        slot: cython.Py_ssize_t = self.slot_at(address)
        while self.rows[WIDTH * slot + LIFE] != 0 and self.rows[WIDTH * slot + ADDRESS] != address:
            slot = (slot + 1) & (self.n_hashed - 1)
        return slot

    @c_inline
    def take(self, slot: cython.Py_ssize_t) -> cython.void:
        """Counts it, if it is FREE and hashed."""
        self.n_used += slot < self.n_hashed and self.status(slot) == FREE

    @c_inline
    def ask_for(self, address: cython.ulonglong) -> cython.void:
        if cython.compiled:
            prefetch(cython.address(self.rows[WIDTH * self.slot_at(address)]))  # noqa: F821

    @c_inline
    def ask_for_death(self, address: cython.ulonglong) -> cython.void:
        """Of what lies there, for which `ask_for` has asked before."""
        if cython.compiled:
            slot: cython.Py_ssize_t = self.slot_at(address)
            if self.rows[WIDTH * slot + ADDRESS] == address:
                prefetch(cython.address(self.died[self.number(slot)]))  # noqa: F821

    @c_inline
    def status(self, slot: cython.Py_ssize_t) -> cython.uint:
        return self.rows[WIDTH * slot + LIFE] >> 32

    @c_inline
    def since(self, slot: cython.Py_ssize_t) -> cython.longlong:
        return self.rows[WIDTH * slot + LIFE] & LOW_32

    @c_inline
    def number(self, slot: cython.Py_ssize_t) -> cython.longlong:
        return self.rows[WIDTH * slot + OBJECT] & LOW_32

    @c_inline
    def set_life(self, slot: cython.Py_ssize_t, since: cython.ulonglong, status: cython.ulonglong) -> cython.void:
        self.rows[WIDTH * slot + LIFE] = status << 32 | since

    @c_inline
    def is_suspect(self, slot: cython.Py_ssize_t) -> cython.bint:
        """Lay in the nursery during a collection and was not moved."""
        place: cython.longlong = self.rows[WIDTH * slot + ADDRESS] >> NURSERY_BITS
        return (
            self.status(slot) == YOUNG
            and self.since(slot) < self.now
            and self.moves_recorded
            and self.nursery_first <= place
            and place <= self.nursery_last
        )

    @c_inline
    def bury(self, slot: cython.Py_ssize_t, event: cython.longlong) -> cython.void:
        """What lies there, if anything does, is found to be gone in this event. Where it may have moved instead, it
        counts as not dead."""
        died: cython.longlong = -1
        if self.status(slot) <= VACATED:
            return
        since: cython.longlong = self.since(slot)
        if self.status(slot) == LARGE or self.moves_recorded:
            if self.is_suspect(slot):
                died = since
            elif self.last_major >= since:
                died = self.last_major
            else:
                died = event if event > since else since
        self.died[self.number(slot)] = died
        self.set_life(slot, 0, VACATED)

    # ------------------------------------------------------------ arrays

    def use_rows(
        self,
        rows: cython.ulonglong[::1],
        n_hashed: cython.Py_ssize_t,
        first_place: cython.longlong,
        n_places: cython.longlong,
    ) -> None:
        """Enters the objects into an empty table. n_hashed: a power of two, more slots than there are objects; places:
        those that have slots of their own."""
        before: cython.ulonglong[::1] = rows if self.n_slots == 0 else self.rows
        n_before: cython.Py_ssize_t = self.n_slots
        if (
            n_hashed < 4
            or n_hashed & (n_hashed - 1)
            or not 0 <= n_places <= rows.shape[0]
            or rows.shape[0] != WIDTH * (n_hashed + n_places)
        ):
            raise ValueError("use_rows: an array has the wrong length")
        self.rows = rows
        self.n_slots = n_hashed + n_places
        self.n_hashed = n_hashed
        self.n_places = n_places
        self.first_place = first_place
        self.n_used = 0
        nth: cython.Py_ssize_t
        with cython.nogil:
            for nth in range(n_before):
                at: cython.Py_ssize_t = WIDTH * nth
                if self.n_used == n_hashed - 1:
                    break
                if before[at + LIFE] >> 32 > VACATED:
                    slot: cython.Py_ssize_t = self.find(before[at + ADDRESS])
                    self.take(slot)
                    rows[WIDTH * slot + ADDRESS] = before[at + ADDRESS]
                    rows[WIDTH * slot + OBJECT] = before[at + OBJECT]
                    rows[WIDTH * slot + LIFE] = before[at + LIFE]
        if self.n_used == n_hashed - 1:
            raise ValueError("use_rows: too few slots")

    # ------------------------------------------------------------ events

    def allocate(
        self,
        addresses: cython.const[cython.ulonglong][::1],
        sizes: cython.const[cython.longlong][::1],
        sites: cython.const[cython.int][::1],
        i: cython.Py_ssize_t,
    ) -> cython.Py_ssize_t:
        """Enters new objects from row i on, with the next numbers; what lay there is dead. Returns the row to go on at:
        before the end when three quarters of the slots are used; enlarge the table and call again."""
        n: cython.Py_ssize_t = addresses.shape[0]
        if sizes.shape[0] != n or sites.shape[0] != n or i < 0 or self.died.shape[0] < self.n_numbered + n - i:
            raise ValueError("allocate: an array has the wrong length")
        limit: cython.longlong = self.n_hashed // 4 * 3
        with cython.nogil:
            while i < n and self.n_used < limit:
                if i + AHEAD < n:
                    self.ask_for(addresses[i + AHEAD])
                    self.ask_for_death(addresses[i + AHEAD // 2])
                slot: cython.Py_ssize_t = self.find(addresses[i])
                self.take(slot)
                self.bury(slot, self.now - 1)
                site: cython.ulonglong = sites[i] & LOW_32
                number: cython.ulonglong = self.n_numbered
                self.rows[WIDTH * slot + ADDRESS] = addresses[i]
                self.rows[WIDTH * slot + OBJECT] = site << 32 | number
                self.set_life(slot, self.now, LARGE if sizes[i] > MAX_SMALL else YOUNG)
                self.n_numbered += 1
                i += 1
        return i

    def move(
        self,
        old: cython.const[cython.ulonglong][::1],
        new: cython.const[cython.ulonglong][::1],
        i: cython.Py_ssize_t,
    ) -> cython.Py_ssize_t:
        """Moves objects from row i on, one after the other; what lay at the new address is dead. Returns the row to go
        on at, as `allocate` does."""
        n: cython.Py_ssize_t = old.shape[0]
        if new.shape[0] != n or i < 0:
            raise ValueError("move: an array has the wrong length")
        limit: cython.longlong = self.n_hashed // 4 * 3
        with cython.nogil:
            while i < n and self.n_used < limit:
                if i + AHEAD < n:
                    self.ask_for(old[i + AHEAD])
                    self.ask_for(new[i + AHEAD])
                slot: cython.Py_ssize_t = self.find(old[i])
                is_known: cython.bint = self.status(slot) > VACATED
                moved: cython.ulonglong = self.rows[WIDTH * slot + OBJECT]
                if is_known:
                    if self.status(slot) == YOUNG and self.since(slot) == self.now:
                        place: cython.longlong = old[i] >> NURSERY_BITS
                        if self.nursery_last < 0 or place < self.nursery_first:
                            self.nursery_first = place
                        if place > self.nursery_last:
                            self.nursery_last = place
                    self.set_life(slot, 0, VACATED)
                slot = self.find(new[i])
                self.bury(slot, self.now - 1)
                if is_known:
                    self.take(slot)
                    self.rows[WIDTH * slot + ADDRESS] = new[i]
                    self.rows[WIDTH * slot + OBJECT] = moved
                    self.set_life(slot, self.now + 1, OLD)
                i += 1
        return i

    def end_event(self, is_major: cython.bint) -> None:
        """is_major: a collection of the whole heap."""
        if is_major:
            self.last_major = self.now
        self.now += 1

    def seen(self, addresses: cython.const[cython.ulonglong][::1], out: cython.longlong[::1]) -> None:
        """out: the object that lies at each address."""
        n: cython.Py_ssize_t = addresses.shape[0]
        if out.shape[0] != n:
            raise ValueError("seen: an array has the wrong length")
        i: cython.Py_ssize_t
        with cython.nogil:
            for i in range(n):
                slot: cython.Py_ssize_t = self.find(addresses[i])
                status: cython.uint = self.status(slot)
                out[i] = -1
                if status <= VACATED:
                    continue
                if self.since(slot) < self.now and status != LARGE:
                    if not self.moves_recorded:
                        continue
                    status = OLD
                self.set_life(slot, self.now, status)
                out[i] = self.rows[WIDTH * slot + OBJECT]

    def list_alive(
        self,
        addresses: cython.const[cython.ulonglong][::1],
        classes: cython.const[cython.int][::1],
        class_of: cython.const[cython.int][::1],
        out: cython.longlong[::1],
    ) -> None:
        """out: the object of that class that lies at each address. class_of: for each site; -1 is unknown."""
        n: cython.Py_ssize_t = addresses.shape[0]
        if classes.shape[0] != n or out.shape[0] != n:
            raise ValueError("list_alive: an array has the wrong length")
        i: cython.Py_ssize_t
        with cython.nogil:
            for i in range(n):
                slot: cython.Py_ssize_t = self.find(addresses[i])
                status: cython.uint = self.status(slot)
                out[i] = -1
                if status <= VACATED:
                    continue
                site: cython.longlong = self.rows[WIDTH * slot + OBJECT] >> 32
                known: cython.int = class_of[site] if site < class_of.shape[0] else UNKNOWN_CLASS
                if classes[i] != known and classes[i] != UNKNOWN_CLASS and known != UNKNOWN_CLASS:
                    continue
                if self.since(slot) < self.now and status == YOUNG:
                    status = OLD
                self.set_life(slot, self.now + 1, status)
                out[i] = self.rows[WIDTH * slot + OBJECT]

    def bury_unlisted(self) -> None:
        """After `list_alive`: what was not listed is dead."""
        slot: cython.Py_ssize_t
        with cython.nogil:
            for slot in range(self.n_slots):
                if self.since(slot) <= self.now:
                    self.bury(slot, self.now)

    def bury_suspects(self) -> None:
        """What was not moved out of the nursery and not seen since is dead."""
        slot: cython.Py_ssize_t
        with cython.nogil:
            for slot in range(self.n_slots):
                if self.is_suspect(slot):
                    self.bury(slot, self.now)


if not cython.compiled:
    from traceferry.kernels.interpreted import plain_integers

    for name in ("__init__", "use_rows", "allocate", "move", "seen", "list_alive"):
        setattr(Objects, name, plain_integers(getattr(Objects, name)))
