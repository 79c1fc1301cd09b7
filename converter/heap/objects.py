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

from traceferry.heap._objects import Found, ObjectTracker

__all__ = ["Found", "ObjectTracker"]
