"""Objects are followed through collections: who lives, who died, and in which event.

Notation. n0, n1... are addresses in the nursery, m0... in the major heap, l0... of large objects. +n0 allocates there;
gc n0>m0 n1>m1 is a collection of the nursery with its moves, GC a major one; ?n0 sees an object; [m0 m1] is a heap
shot; m0:other is an object of another class. Collections and shots are events 0, 1...
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pytest
from conftest import examples
from hypothesis import given
from hypothesis import strategies as st

from traceferry.heap import objects
from traceferry.heap.objects import ObjectTracker

NURSERY, MAJOR_HEAP, LARGE_SPACE = 0x7F00_0040_0000, 0x7F00_0180_0000, 0x7F00_4000_0000
REGIONS = {"n": NURSERY, "m": MAJOR_HEAP, "l": LARGE_SPACE}
SMALL, LARGE = 8000, 8008
CLASS, OTHER_CLASS, UNKNOWN_CLASS = 3, 4, -1
# Objects in a test.
MOST = 300_000
NOTHING = np.zeros(0, np.int64)
# One site for each class.
CLASS_OF = np.array([CLASS, OTHER_CLASS, UNKNOWN_CLASS], np.int32)


def address_of(place: str) -> int:
    return REGIONS[place[0]] + 16 * int(place[1:].partition(":")[0])


def addresses(places: Iterable[str]) -> np.ndarray:
    return np.array([address_of(place) for place in places], np.uint64)


def sites(words: Iterable[str]) -> np.ndarray:
    numbers = {"": 0, "other": 1, "unknown": 2}
    return np.array([numbers[word.partition(":")[2]] for word in words], np.int32)


def allocate(tracker: ObjectTracker, places: list[str]) -> range:
    sizes = np.array([LARGE if place[0] == "l" else SMALL for place in places], np.int64)
    return tracker.allocate(addresses(places), sizes, sites(places))


def shot(tracker: ObjectTracker, listed: list[str]) -> list[int]:
    found = tracker.shot(addresses(listed), CLASS_OF[sites(listed)], CLASS_OF)
    assert np.array_equal(found.number < 0, found.site < 0)
    return found.number.tolist()


def run(story: str, moves_recorded: bool = True) -> tuple[str, str]:
    """(what was found by sights and shots, in which event each object died): numbers, - for none."""
    tracker = ObjectTracker(moves_recorded, MOST)
    found: list[int] = []
    words = story.replace("[", "[ ").replace("]", " ]").split()
    while words:
        word = words.pop(0)
        if word[0] == "+":
            allocate(tracker, [word[1:]])
        elif word[0] == "?":
            found += tracker.seen(addresses([word[1:]])).number.tolist()
        elif word == "[":
            listed, words = words[: words.index("]")], words[words.index("]") + 1 :]
            found += shot(tracker, listed)
        else:
            moves = []
            while words and ">" in words[0]:
                moves.append(words.pop(0).split(">"))
            generation = {"gc": 0, "GC": 1}[word]
            tracker.collect(generation, addresses(m[0] for m in moves), addresses(m[1] for m in moves))
    died = died_of(tracker)
    assert died.dtype == np.int32
    return in_words(found), in_words(died.tolist())


def died_of(tracker: ObjectTracker) -> np.ndarray:
    deaths = tracker.finish(NOTHING)
    return deaths.take(np.arange(len(deaths)))


def in_words(numbers: list[int]) -> str:
    return " ".join("-" if number < 0 else str(number) for number in numbers)


DEATHS = {
    # The nursery: who is not moved is suspected.
    "moved out of the nursery": ("+n0 +n1 gc n0>m0", "- 0"),
    "moved by a major collection": ("+n0 +n1 GC n0>m0", "- 0"),
    "suspected, and nothing contradicts": ("+n0 +n1 gc n0>m0 gc GC", "- 0"),
    "suspected, then seen": ("+n0 +n1 gc n0>m0 ?n1", "- -"),
    "suspected, then moved": ("+n0 +n1 gc n0>m0 gc n1>m1", "- -"),
    "suspected, then listed": ("+n0 +n1 gc n0>m0 [m0 n1]", "- -"),
    "seen before the collection only": ("+n0 +n1 ?n1 gc n0>m0", "- 0"),
    "listed before the collection only": ("+n0 +n1 [n0 n1] gc n0>m0", "- 1"),
    "pinned for long": ("+n0 +n1 gc n0>m0 [m0 n1] gc gc", "- -"),
    "something else is allocated there": ("+n0 +n1 gc n0>m0 gc +n1", "- 0 -"),
    "what is seen later is that other object": ("+n0 +n1 gc n0>m0 gc +n1 ?n1", "- 0 -"),
    "pinned and then replaced": ("+n0 +n1 gc n0>m0 ?n1 gc gc +n1", "- 2 -"),
    "not known where the nursery is": ("+n0 gc", "-"),
    "known only later": ("+n0 gc +n1 gc n1>m0", "0 -"),
    "allocated outside the nursery": ("+n0 +m5 gc n0>m0", "- -"),
    "old objects that move do not show the nursery": ("+n0 +m9 gc n0>m0 GC m0>l5 +l7 GC", "- - -"),
    "nor do others that move later": ("+n0 +m9 +m8 gc n0>m0 GC m9>m10", "- - -"),
    # The major heap: who dies is known when the place is used again.
    "replaced: died in the last major collection": ("+n0 gc n0>m0 GC gc +m0", "1 -"),
    "replaced without a major collection": ("+n0 gc n0>m0 gc +m0", "1 -"),
    "replaced, moved there by the last major collection": ("+n0 GC n0>m0 gc +m0", "1 -"),
    "replaced after it was seen": ("+n0 gc n0>m0 GC ?m0 gc +m0", "2 -"),
    "moved onto": ("+n0 gc n0>m0 GC +n1 gc n1>m0", "1 -"),
    "an unknown object is moved onto it": ("+n0 gc n0>m0 GC gc n9>m0", "1"),
    "compaction": ("+n0 gc n0>m0 GC m0>m1 +m0 ?m1", "- -"),
    "moved twice in one collection": ("+n0 gc n0>n5 n5>m0 +n5 ?m0", "- -"),
    "places are passed on in the order of the log": ("+n0 +n1 gc n0>m0 n1>m1 GC m0>m2 m1>m0", "- -"),
    # Large objects never move.
    "a large object is not suspected": ("+n0 +l0 gc n0>m0", "- -"),
    "a large object is replaced": ("+l0 GC gc +l0", "0 -"),
    # Heap shots.
    "not listed": ("+n0 gc n0>m0 []", "1"),
    "not listed after a major collection": ("+n0 gc n0>m0 GC []", "1"),
    "not listed, suspected before": ("+n0 +n1 gc n0>m0 gc [m0]", "- 0"),
    "not listed, new": ("+n0 []", "0"),
    "large and not listed": ("+l0 GC []", "0"),
    "another class is listed": ("+n0 +n1 gc n0>m0 n1>m1 [m0:other m1]", "1 -"),
    "an unknown class is listed": ("+n0 gc n0>m0 [m0:unknown]", "-"),
    "its own class is unknown": ("+n0:unknown gc n0>m0 [m0:other]", "-"),
    "listed twice": ("+n0 gc n0>m0 [m0 m0]", "-"),
    # What cannot be, but may be in a damaged log.
    "allocated twice at one time": ("+n0 +n0", "- -"),
    "allocated twice, then a collection": ("+n0 +n0 gc n0>m0", "0 -"),
    "moves of nothing": ("gc n0>m0 m0>n0", ""),
    "moved onto itself": ("+n0 gc n0>n0", "-"),
}  # fmt: skip


@pytest.mark.parametrize(("story", "died"), DEATHS.values(), ids=DEATHS)
def test_deaths(story: str, died: str) -> None:
    assert run(story)[1] == died


WITHOUT_MOVES = {
    "small objects are lost sight of": ("+n0 gc ?n0 +n0", "-", "- -"),
    "but not before a collection": ("+n0 ?n0 gc", "0", "-"),
    "a shot finds one of its class": ("+n0 +n1 gc [n0 n1:other] ?n0", "0 - 0", "- -"),
    "until the next collection": ("+n0 gc [n0] gc ?n0 [n0]", "0 - 0", "-"),
    "not listed is not dead": ("+n0 gc []", "", "-"),
    "large objects do not move": ("+l0 +l1 GC ?l0 [l0]", "0 0", "- 0"),
}  # fmt: skip


@pytest.mark.parametrize(("story", "found", "died"), WITHOUT_MOVES.values(), ids=WITHOUT_MOVES)
def test_without_recorded_moves(story: str, found: str, died: str) -> None:
    assert run(story, moves_recorded=False) == (found, died)


FOUND = {
    "where it was allocated": ("+n0 ?n0", "0"),
    "where it was moved to": ("+n0 +n1 gc n1>m0 ?m0 ?n1", "1 -"),
    "pinned": ("+n0 +n1 gc n0>m0 ?n1", "1"),
    "the latest at an address": ("+n0 +n0 ?n0", "1"),
    "unknown addresses": ("?n0 [m0]", "- -"),
    "in a shot, in its order": ("+n0 +n1 +n2 gc n0>m0 n1>m1 n2>m2 [m2 m0 n1 m1]", "2 0 - 1"),
    "dead since a shot": ("+n0 gc n0>m0 [] [m0]", "-"),
}  # fmt: skip


@pytest.mark.parametrize(("story", "found"), FOUND.values(), ids=FOUND)
def test_found(story: str, found: str) -> None:
    assert run(story)[0] == found


def test_numbers_are_given_in_order() -> None:
    tracker = ObjectTracker(True, MOST)
    assert [allocate(tracker, ["n0", "n1"]), allocate(tracker, []), allocate(tracker, ["n2"])] == [
        range(2), range(2, 2), range(2, 3),
    ]  # fmt: skip


def test_the_table_is_bounded_by_what_lives() -> None:
    """A nursery is filled a hundred times, and everything in it dies."""
    tracker = ObjectTracker(True, MOST)
    nursery = [f"n{nth}" for nth in range(3000)]
    for nth in range(100):
        allocate(tracker, nursery)
        tracker.collect(0, addresses(["n0"]), addresses([f"m{nth}"]))
    assert tracker.n_slots <= 4 * len(nursery)
    deaths = tracker.finish(NOTHING)
    # Those that outlived a collection.
    assert deaths.n_others == 100
    died = deaths.take(np.arange(300_000)).reshape(100, 3000)
    assert np.all(died[:, 0] == -1)
    assert np.all(died[:, 1:] == np.arange(100)[:, None])


def test_the_table_grows() -> None:
    tracker = ObjectTracker(True, MOST)
    places = [f"m{nth}" for nth in range(200_000)]
    assert allocate(tracker, places) == range(200_000)
    assert np.array_equal(tracker.seen(addresses(places)).number, np.arange(200_000))


@pytest.mark.parametrize("most_places", [0, 1 << 19])
def test_places_in_the_nursery_have_slots_of_their_own(most_places: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is found and what died is the same."""
    monkeypatch.setattr(objects, "FIRST_WITH_PLACES", 1)
    monkeypatch.setattr(objects, "MOST_PLACES", most_places)
    tracker = ObjectTracker(True, MOST)
    nursery, heap = ([f"{region}{nth}" for nth in range(5000)] for region in "nm")
    allocate(tracker, nursery[::2])
    tracker.collect(0, addresses(nursery[:200:2]), addresses(heap[:100]))
    allocate(tracker, nursery[1::2] + nursery[::2] + heap[4000:])
    assert (tracker.n_slots > 1 << 19) == (most_places > 0)
    assert tracker.seen(addresses([heap[7], nursery[1], nursery[4], nursery[4999], heap[4000]])).number.tolist() == [
        7, 2500, 5002, 4999, 7500,
    ]  # fmt: skip
    tracker.collect(0, addresses([]), addresses([]))
    died = died_of(tracker)
    assert np.flatnonzero(died[:2500] != 0).tolist() == list(range(100))
    assert np.all(died[2500:7500] == 1)
    assert np.all(died[7500:] == -1)


@pytest.mark.parametrize("moves_recorded", [False, True])
def test_deaths_of_some_objects_in_any_order(moves_recorded: bool) -> None:
    """Those that are unknown did not die, whatever else is known of them."""
    tracker = ObjectTracker(moves_recorded, MOST)
    for nth in range(20):
        allocate(tracker, ["n0", "n1", "n2", f"l{nth}", f"l{nth % 3}"])
        tracker.collect(nth % 4 == 0, addresses(["n0"]), addresses([f"m{nth}"]))
    unknown = np.array([7, 8, 33, 98], np.int64)
    deaths = tracker.finish(unknown)
    in_order = deaths.take(np.arange(100))
    assert (in_order[unknown] == -1).all()
    assert len(np.unique(in_order)) > 10
    numbers = np.array([99, 5, 6, 7, 8, 9, 3, 3, 4, 0, 98, 97], np.int64)
    assert np.array_equal(deaths.take(numbers), in_order[numbers])
    assert deaths.take(NOTHING).tolist() == []
    for number in (-1, 100):
        with pytest.raises(IndexError):
            deaths.take(np.array([number], np.int64))


def test_arrays_of_different_lengths_are_refused() -> None:
    tracker = ObjectTracker(True, 2)
    two, one = addresses(["n0", "n1"]), np.zeros(1, np.int32)
    for sizes, of in ((np.ones(1, np.int64), np.zeros(2, np.int32)), (np.ones(2, np.int64), one)):
        with pytest.raises(ValueError, match="wrong length"):
            tracker.allocate(two, sizes, of)
    with pytest.raises(ValueError, match="wrong length"):
        allocate(tracker, ["n0", "n1", "n2"])
    with pytest.raises(ValueError, match="wrong length"):
        tracker.collect(0, two, two[:1])
    with pytest.raises(ValueError, match="wrong length"):
        tracker.shot(two, one, CLASS_OF)
    with pytest.raises(ValueError, match="more objects"):
        ObjectTracker(True, 1 << 31)


# ---------------------------------------------------------------- a second opinion


@dataclass
class Followed:
    """An object as the model knows it. proven: the events before this one it survived for certain."""

    number: int
    place: str
    class_name: int
    proven: int
    is_young: bool
    died: int = -1

    @property
    def is_large(self) -> bool:
        return self.place[0] == "l"


class Model:
    """The rules once more, with a dictionary."""

    def __init__(self) -> None:
        self.everyone: list[Followed] = []
        self.at: dict[str, Followed] = {}
        self.majors: list[int] = []
        self.nursery: set[int] = set()
        self.n_events = 0

    def allocate(self, place: str) -> None:
        self.replace(place)
        new = Followed(len(self.everyone), place, CLASS, self.n_events, place[0] != "l")
        self.everyone.append(new)
        self.at[place] = new

    def replace(self, place: str) -> None:
        if place in self.at:
            self.bury(self.at.pop(place), self.n_events - 1)

    def bury(self, gone: Followed, found_in: int) -> None:
        majors = [event for event in self.majors if event >= gone.proven]
        if self.is_suspected(gone):
            gone.died = gone.proven
        else:
            gone.died = majors[-1] if majors else max(found_in, gone.proven)

    def is_suspected(self, followed: Followed) -> bool:
        chunk = address_of(followed.place) >> 22
        within = bool(self.nursery) and min(self.nursery) <= chunk <= max(self.nursery)
        return followed.is_young and followed.proven < self.n_events and within

    def collect(self, generation: int, moves: list[tuple[str, str]]) -> None:
        for old, new in moves:
            moved = self.at.pop(old, None)
            if moved is not None and moved.is_young and moved.proven == self.n_events:
                self.nursery.add(address_of(old) >> 22)
            self.replace(new)
            if moved is not None:
                moved.place, moved.is_young, moved.proven = new, False, self.n_events + 1
                self.at[new] = moved
        self.majors += [self.n_events] if generation else []
        self.n_events += 1

    def seen(self, place: str) -> int:
        if place not in self.at:
            return -1
        self.prove(self.at[place], self.n_events)
        return self.at[place].number

    def prove(self, alive: Followed, event: int) -> None:
        if alive.proven < self.n_events:
            alive.is_young = False
        alive.proven = event

    def shot(self, places: list[str]) -> list[int]:
        for place in places:
            if place in self.at:
                self.prove(self.at[place], self.n_events + 1)
        for place in [place for place in self.at if place not in places]:
            self.bury(self.at.pop(place), self.n_events)
        self.n_events += 1
        return [self.at[place].number if place in self.at else -1 for place in places]

    def finish(self) -> list[int]:
        for followed in self.at.values():
            if self.is_suspected(followed):
                followed.died = followed.proven
        return [followed.died if followed.died < self.n_events else -1 for followed in self.everyone]


# A large object is never moved, and what moves is never large: else the model would have to know sizes.
SMALL_PLACES = st.sampled_from([f"{region}{nth}" for region in "nm" for nth in range(3)])
PLACES = st.one_of(SMALL_PLACES, st.sampled_from(["l0", "l1"]))
EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("allocate"), PLACES),
        st.tuples(st.just("seen"), PLACES),
        st.tuples(st.just("shot"), st.lists(PLACES, unique=True)),
        st.tuples(st.sampled_from(["gc", "GC"]), st.lists(st.tuples(SMALL_PLACES, SMALL_PLACES), max_size=5)),
    ),
    max_size=40,
)


@examples(400)
@given(EVENTS)
def test_as_the_rules_say(events: list[tuple[str, object]]) -> None:
    model, tracker = Model(), ObjectTracker(True, MOST)
    for what, places in events:
        match what, places:
            case "allocate", str(place):
                model.allocate(place)
                allocate(tracker, [place])
            case "seen", str(place):
                assert tracker.seen(addresses([place])).number.tolist() == [model.seen(place)]
            case "shot", list(listed):
                assert shot(tracker, listed) == model.shot(listed)
            case (("gc" | "GC"), list(moves)):
                generation = int(what == "GC")
                model.collect(generation, moves)
                tracker.collect(generation, addresses(m[0] for m in moves), addresses(m[1] for m in moves))
    assert died_of(tracker).tolist() == model.finish()
