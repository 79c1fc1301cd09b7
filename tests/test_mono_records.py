"""Each event of a Mono log, in each data version that has it, with pointers of 4 and 8 bytes: what was built is what is
loaded and printed."""

from collections.abc import Callable
from functools import partial
from itertools import count
from random import Random
from typing import Any

import pytest
from builders import mono
from builders.mono import MAIN, Counter, Event, Log
from conftest import ends_and_one_in
from support import calls_of, data_of, events_of, for_each, frame_names, report_of
from test_builders_mono import EVENTS, everything, named

from traceferry.analysis.info.summary import summarize
from traceferry.files.source import Source
from traceferry.importers import mono as importer
from traceferry.importers.mono import walks
from traceferry.model import LEAVE, OPEN_AT_END, UNWOUND, HeapGraph, Trace, TraceBuilder, laws
from traceferry.reading import ImportContext
from traceferry.timeline import balance

START = 1_000_000_000
OTHER = 0x7F20
RUN, WORK, HELP = 0x500, 0x600, 0x700  # methods
TEXT, NODE = 0x2000, 0x2100  # classes, or their vtables
Row = dict[str, Any]
New = Callable[..., Log]
TURNS = count()
LAYOUTS = [(version, size, False) for version in mono.VERSIONS for size in (4, 8)] + [(15, 4, True), (15, 8, True)]


def versions(*features: str, until: int = 17, since: int = 1, sizes: tuple[int, ...] = (4, 8)) -> Any:
    """For `new`, makers of empty logs: of each version that has these features, for these sizes of pointers. Each time
    of the first and the last and one in three, not of the same ones in each test."""
    makers = {
        f"v{version}{'hybrid' if hybrid else ''}-{8 * size}bit": make
        for version, size, hybrid in LAYOUTS
        if size in sizes
        and (make := partial(Log, version, size, hybrid=hybrid))
        and since <= layout_of(make()) <= until
        and all(make().supports(feature) for feature in features)
    }
    return for_each("new", {name: makers[name] for name in ends_and_one_in(3, [*makers], next(TURNS))})


def layout_of(log: Log) -> int:
    """The version that tells how its events are laid out."""
    return mono.HYBRID - 1 if log.version == mono.HYBRID and not log.supports("vtable") else log.version


def read(*logs: Log) -> Trace:
    """The logs in one trace."""
    sources = [Source(f"app{nth}.mlpd", memoryview(log.bytes())) for nth, log in enumerate(logs)]
    trace = TraceBuilder()
    importer.read(sources).add_to(trace, ImportContext())
    trace.sort()
    assert laws.check(trace) == []
    return trace


def at(n: int) -> int:
    """The n-th microsecond: where an event stands that is built without a time."""
    return START + mono.STEP * n


def lines_of(log: Log) -> list[str]:
    return list(importer.dump(Source("app.mlpd", memoryview(log.bytes())), 0))


def stack_names(trace: Trace, stack: int) -> list[str]:
    """From the outermost caller to the leaf."""
    names: list[str] = []
    while stack >= 0:
        func = trace.frames["func"][trace.stacks["frame"][stack]]
        names.insert(0, trace.func_name(int(func)))
        stack = int(trace.stacks["prefix"][stack])
    return names


def markers(trace: Trace, marker_type: str, tid: int = MAIN) -> list[Row]:
    """Stacks as names, without what is empty."""
    rows = events_of(data_of(trace, tid)).get(marker_type, [])
    return [
        {key: value for key, value in (row | {"stack": stack_names(trace, row["stack"])}).items() if value}
        for row in rows
    ]


# ---------------------------------------------------------------- dump: every event as it stands in the file

# Of the builder's events: the name that is printed, its fields, [its list]; two names where they differ.
PRINTED = {
    "alloc": "ALLOC type object size [frames]",
    "gc event": "GC_EVENT event generation",
    "gc resize": "GC_RESIZE size",
    "gc move": "GC_MOVE [moves]",
    "handle created": "HANDLE_CREATED type handle object [frames]",
    "handle destroyed": "HANDLE_DESTROYED type handle [frames]",
    "finalize start": "FINALIZE_START",
    "finalize end": "FINALIZE_END",
    "finalize object start": "FINALIZE_OBJECT_START object",
    "finalize object end": "FINALIZE_OBJECT_END object",
    "class load": "LOAD what=1 pointer image name",
    "class unload": "UNLOAD what=1 pointer image name",
    "image load": "LOAD what=2 pointer name mvid",
    "image unload": "UNLOAD what=2 pointer name",
    "assembly load": "LOAD what=3 pointer image name",
    "assembly unload": "UNLOAD what=3 pointer image name",
    "domain load": "LOAD what=4 pointer",
    "domain unload": "UNLOAD what=4 pointer",
    "domain name": "NAME what=4 pointer name",
    "thread load": "LOAD what=5 pointer",
    "thread unload": "UNLOAD what=5 pointer",
    "thread name": "NAME what=5 pointer name",
    "context load": "LOAD what=6 pointer domain",
    "context unload": "UNLOAD what=6 pointer domain",
    "vtable load": "LOAD what=7 pointer domain class:class_",
    "enter": "ENTER method",
    "leave": "LEAVE method",
    "exception leave": "EXC_LEAVE method",
    "jit": "JIT method code size name",
    "throw": "THROW object [frames]",
    "clause": "CLAUSE type index method object",
    "monitor": "MONITOR event object [frames]",
    "heap start": "HEAP_START",
    "heap end": "HEAP_END",
    "heap object": "HEAP_OBJECT object type size generation [references]",
    "heap roots": "HEAP_ROOT collections [roots]",
    "root register": "ROOT_REGISTER start size source key name",
    "root unregister": "ROOT_UNREGISTER start",
    "sample": "HIT type thread n_ips [ips] [methods]",
    "native symbol": "USYM address size name",
    "native binary": "UBIN address offset size name",
    "jit helper": "JITHELPER type address size name",
    "sync point": "SYNC_POINT kind",
    "aot id": "AOT_ID text",
    "counters desc": "COUNTERS_DESC ...",
    "counters": "COUNTERS ms ...",
    "coverage assembly": "COVERAGE_ASSEMBLY ...",
    "coverage method": "COVERAGE_METHOD ...",
    "coverage statement": "COVERAGE_STATEMENT ...",
    "coverage class": "COVERAGE_CLASS ...",
}
LISTED = {"roots": "object/kind/extra"}
# Fields that not every version with the event has.
FIELDS_SINCE = {("assembly load", "image"): 14, ("assembly unload", "image"): 14, ("clause", "object"): 14,
                ("heap object", "generation"): 16, ("sample", "thread"): 11, ("sample", "methods"): 6,
                ("image load", "mvid"): 16}  # fmt: skip
FIELDS_UNTIL = {("sample", "type"): 13, ("heap roots", "collections"): 14, ("counters", "ms"): 12}


def recorded(event: Event, layout: int) -> Row:
    """The fields of an event that are in the file, as numbers, texts and flat lists."""
    fields = {
        key: value
        for key, value in event.fields.items()
        if FIELDS_SINCE.get((event.name, key), 1) <= layout <= FIELDS_UNTIL.get((event.name, key), layout)
    }
    if event.name == "sample":
        fields |= {"n_ips": len(fields["ips"]), "methods": fields.get("methods", [])}
    elif event.name == "heap object":
        fields["references"] = [target for _, target in fields["references"]]
    elif event.name == "gc move":
        fields["moves"] = [place for move in fields["moves"] for place in move]
    elif event.name == "heap roots":
        cut = (-1, 0xFF if layout == 13 else -1, -1)
        fields["roots"] = [part & mask for root in fields["roots"] for part, mask in zip(root, cut, strict=False)]
    elif event.name == "jit helper" and layout < 14:
        fields["type"] += 1
    return fields


def printed(event: Event, layout: int, ts: int) -> str:
    """The line that is printed of an event, without its offset; ... stands for places in the file."""
    name, *words = PRINTED[event.name].split()
    fields = recorded(event, layout)
    line = [name + ("_BT" if name != "MONITOR" and fields.get("frames") is not None else ""), f"ts={ts}"]
    for word in words:
        key = word.strip("[]")
        key, _, value = key.partition("=")
        key, _, own = key.partition(":")
        cell = int(value) if value else fields.get(own or key)
        if word.startswith("[") and cell is not None:
            shown = "address/object" if key == "roots" and layout >= 15 else LISTED.get(key, key)
            line.append(f"{shown}=[{' '.join(map(hex, cell))}]")
        elif isinstance(cell, str):
            line.append(f"{key}={cell!r}")
        elif cell is not None:
            line.append(f"{key}={cell:#x}")
    return " ".join(line)


def without_places(line: str) -> str:
    """What is printed of an event, without offset, and of counters and coverage without what is in lists or texts."""
    words = line.split(" ")[1:]
    if words[0].startswith(("COUNTERS", "COVERAGE")):
        words = words[:2] + [word for word in words[2:] if word.startswith("ms=")]
    return " ".join(words)


def expected_lines(log: Log) -> list[str]:
    """Before version 13 samples have a time of their own, and others none: they are printed with that of the event
    before."""
    layout, now = layout_of(log), START
    lines = []
    for event in log.expected:
        lines.append(printed(event, layout, now if event.ts is None else event.ts))
        if event.ts is not None and (event.name != "sample" or layout >= 13):
            now = event.ts
    return lines


@versions()
def test_every_event_is_printed_as_it_stands(new: New) -> None:
    log, _ = everything(named(new()))
    header, buffer, *lines = lines_of(log)
    assert header.startswith("0 header ")
    assert buffer.split(" ")[1:4] == ["buffer", f"length={len(events_part(log))}", f"time_base={START}"]
    assert [without_places(line) for line in lines] == expected_lines(log)


def events_part(log: Log) -> bytes:
    """The bytes of the only buffer."""
    data = log.bytes()
    return data[data.index(b"\x01LPM") + mono.BUFFER_HEADER_BYTES :]


@versions("image unload")
def test_the_unload_of_an_image_has_no_version_id(new: New) -> None:
    log = new().buffer().image(0x1000, "app.exe", "mvid").image_unload(0x1000, "app.exe").gc_resize(5)
    assert [without_places(line) for line in lines_of(log)[2:]] == expected_lines(log)


def test_all_events_of_the_builder_are_among_them() -> None:
    built = {event.name for version in mono.VERSIONS for event in everything(named(Log(version)))[0].expected}
    assert built | {"image unload"} == set(PRINTED)
    assert len(EVENTS) > len(PRINTED)


# ---------------------------------------------------------------- calls


def with_names(log: Log) -> Log:
    """With names for methods and classes."""
    log.buffer().jit(RUN, "App:Run ()").jit(WORK, "App:Work (int)")
    return log.type_(TEXT, "System.String").type_(NODE, "App.Node")


def main_of(trace: Trace) -> tuple[Trace, Any]:
    return trace, data_of(trace, MAIN)


# A capital letter enters a method, a small one leaves it, with ! by an exception; one each microsecond.
CALLS = {
    "A a": "A 0-1",
    "A B b C c a": "A 0-5, .B 1-2, .C 3-4",
    "A A a a": "A 0-3, .A 1-2",
    "A B b! a": "A 0-3, .B 1-2 unwound",
    "A B C b! a": "A 0-4, .B 1-3 unwound, ..C 2-3 unwound",
    "A b a": "A 0-2",
    "b A a b": "A 1-2",
    "b! A a": "A 1-2",
    "A B C a": "A 0-3, .B 1-3 unwound, ..C 2-3 unwound",
    "A B A b a": "A 0-4, .B 1-3, ..A 2-3 unwound",
    "A B b C": "A 0-3 open, .B 1-2, .C 3-3 open",
    "A": "A 0-0 open",
}
CALL_LOSSES = {
    "A B C b! a": {"unwound": 1},
    "A b a": {"leave_without_enter": 1},
    "b A a b": {"leave_without_enter": 2},
    "b! A a": {"leave_without_enter": 1},
    "A B C a": {"unwound": 2},
    "A B A b a": {"unwound": 1},
    "A B b C": {"open_at_end": 2},
    "A": {"open_at_end": 1},
}


def method_of(letter: str) -> int:
    return 0x500 + 16 * ord(letter)


def with_letters(log: Log) -> Log:
    log.buffer(OTHER)
    for letter in "ABC":
        log.jit(method_of(letter), letter, ts=START)
    return log.buffer()


def add_call(log: Log, word: str, ts: int) -> None:
    event = log.enter if word.isupper() else log.exc_leave if word.endswith("!") else log.leave
    event(method_of(word[0].upper()), ts=ts)


def drawn(trace: Trace, tid: int = MAIN) -> str:
    """The calls in the order of their enters: a dot for each level, microseconds from the start on."""
    words = {UNWOUND: " unwound", OPEN_AT_END: " open"}
    return ", ".join(
        f"{'.' * call.depth}{call.name} {(call.start - START) // 1000}-{(call.end - START) // 1000}"
        + words.get(call.flags, "")
        for call in calls_of(trace, data_of(trace, tid))
    )


@pytest.mark.parametrize("story", CALLS)
@versions(sizes=(8,))
def test_calls(new: New, story: str) -> None:
    log = with_letters(new())
    for nth, word in enumerate(story.split()):
        add_call(log, word, at(nth))
    trace = read(log)
    assert drawn(trace) == CALLS[story]
    losses = report_of(trace)
    losses.pop("pid_unknown", None)
    assert losses == CALL_LOSSES.get(story, {})


@pytest.mark.parametrize("story", CALLS)
def test_calls_are_the_same_however_they_are_cut_into_buffers(story: str) -> None:
    log = with_letters(Log())
    for nth, word in enumerate(story.split()):
        add_call(log.buffer(), word, at(nth))
    assert drawn(read(log)) == CALLS[story]


def test_calls_that_do_not_nest_among_calls_that_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows of a plain model, however many records are balanced one by one after each of them."""
    chance = Random(1)
    words = chance.choices(["A", "B", "C", "a", "b", "c", "b!", "d"], [9, 9, 9, 9, 9, 9, 1, 1], k=3000)
    log, ts = with_letters(Log()), 1
    expected: list[tuple[int, str, int]] = []
    stack: list[str] = []
    latest = 0
    for word in words:
        letter, ts = word[0].upper(), ts + chance.choice([0, 1, 2, 300, -1 if chance.random() < 0.02 else 1])
        add_call(log, word, at(ts))
        if word.isupper() or letter in stack:
            latest = max(latest, ts)
        if word.isupper():
            stack.append(letter)
            expected.append((at(latest), letter, 0))
        elif letter in stack:
            while (left := stack.pop()) != letter:
                expected.append((at(latest), left, LEAVE | UNWOUND))
            expected.append((at(latest), letter, LEAVE | UNWOUND if word.endswith("!") else LEAVE))
    monkeypatch.setattr(walks, "PIECE", 1 << 10)
    for piece in (1, 7, 100, 1 << 10):
        monkeypatch.setattr(balance, "IRREGULAR_PIECE", piece)
        trace = read(log.buffer(OTHER).gc_resize(1, ts=START))
        calls, names = data_of(trace, MAIN).calls, frame_names(trace)
        found = zip(
            calls["ts"].tolist(), [names[f] for f in calls["frame"].tolist()], calls["flags"].tolist(), strict=True
        )
        assert list(found)[: len(expected)] == expected
        assert len(calls) == len(expected) + len(stack)


@versions()
def test_a_time_that_falls_is_raised(new: New) -> None:
    log = new().buffer().enter(RUN, ts=at(5)).enter(WORK, ts=at(3)).leave(WORK, ts=at(7)).leave(RUN, ts=at(9))
    trace = read(log.buffer(OTHER).gc_resize(1, ts=START))
    assert [(call.start, call.end) for call in calls_of(*main_of(trace))] == [(at(5), at(9)), (at(5), at(7))]
    assert report_of(trace)["clock_backwards"] == 1


@versions()
def test_a_method_is_named_after_its_first_call(new: New) -> None:
    log = new().buffer().enter(RUN).leave(RUN).buffer(OTHER).jit(RUN, "App:Run ()")
    assert [call.name for call in calls_of(*main_of(read(log)))] == ["App:Run ()"]


@versions()
def test_a_method_is_named_by_the_last_definition_until_then(new: New) -> None:
    log = new().buffer().enter(RUN, ts=at(1)).leave(RUN, ts=at(2)).enter(RUN, ts=at(6)).leave(RUN, ts=at(7))
    log.enter(RUN, ts=at(9)).leave(RUN, ts=at(9))
    log.buffer(OTHER).jit(RUN, "First:Run ()", ts=at(3)).jit(RUN, "Second:Run ()", ts=at(5)).jit(RUN, "T ()", ts=at(8))
    names = [call.name for call in calls_of(*main_of(read(log)))]
    assert names == ["First:Run ()", "Second:Run ()", "T ()"]


@versions()
def test_a_method_that_nothing_names(new: New) -> None:
    trace = read(new().buffer().enter(RUN).leave(RUN).enter(WORK).leave(WORK))
    assert [call.name for call in calls_of(*main_of(trace))] == ["[method 0x500]", "[method 0x600]"]
    assert report_of(trace)["function_without_name"] == 2


@versions()
def test_methods_far_apart(new: New) -> None:
    """Differences that take all bytes: of a 32-bit program they wrap."""
    high = 0xFFFF_FFF0 if new().pointer_size == 4 else 0xFFFF_FFFF_FFFF_FFF0
    log = new().buffer().jit(high, "High").jit(0x10, "Low").enter(high).enter(0x10).leave(0x10).leave(high)
    assert [call.name for call in calls_of(*main_of(read(log)))] == ["High", "Low"]


def test_wrappers_have_a_category_of_their_own() -> None:
    log = Log().buffer().jit(RUN, "App:Run ()").jit(WORK, "(wrapper managed-to-native) App:Native ()")
    trace = read(log.enter(RUN).enter(WORK).leave(WORK).leave(RUN))
    categories = [trace.strings[int(trace.categories["name"][c])] for c in trace.frames["category"].tolist()]
    assert categories == ["Managed", "Wrapper"]


# ---------------------------------------------------------------- allocations


def allocations(trace: Trace, tid: int = MAIN) -> list[tuple[int, int, str, list[str]]]:
    """(time, size, class, stack)"""
    table = data_of(trace, tid).allocations
    return [
        (int(row[0]), int(row[1]), trace.strings[int(row[2])], stack_names(trace, int(row[3])))
        for row in zip(*(table[name] for name in ("ts", "size", "class_name", "stack")), strict=True)
    ]


@versions()
def test_an_allocation_with_a_backtrace(new: New) -> None:
    """The outermost caller is recorded first."""
    log = with_names(new()).alloc(TEXT, 0x10000, 32, [RUN, WORK])
    assert allocations(read(log)) == [(log.now, 32, "System.String", ["App:Run ()", "App:Work (int)", "System.String"])]


@versions()
def test_an_allocation_in_calls(new: New) -> None:
    log = with_names(new()).enter(RUN).enter(WORK).alloc(TEXT, 0x10000, 32).leave(WORK).alloc(NODE, 0x10020, 48)
    stacks = [stack for *_, stack in allocations(read(log.leave(RUN).alloc(NODE, 0x10050, 8)))]
    assert stacks == [
        ["App:Run ()", "App:Work (int)", "System.String"], ["App:Run ()", "App.Node"], ["App.Node"],
    ]  # fmt: skip


@versions()
def test_an_allocation_with_an_empty_backtrace_has_the_calls(new: New) -> None:
    log = with_names(new()).enter(RUN).alloc(TEXT, 0x10000, 32, []).leave(RUN)
    assert [stack for *_, stack in allocations(read(log))] == [["App:Run ()", "System.String"]]


@pytest.mark.parametrize("size", [0, 1, (1 << 31) - 1, 1 << 31, (1 << 32) - 8])
@versions(sizes=(8,))
def test_sizes_of_allocations(new: New, size: int) -> None:
    """From 2 GiB on they come out sign-extended."""
    assert [n for _, n, *_ in allocations(read(with_names(new()).alloc(TEXT, 0x10000, size)))] == [size]


@versions()
def test_a_class_is_named_after_its_first_use(new: New) -> None:
    log = new().buffer().alloc(TEXT, 0x10000, 32).buffer(OTHER).type_(TEXT, "System.String")
    assert [name for _, _, name, _ in allocations(read(log))] == ["System.String"]


@versions("vtable")
def test_a_class_is_named_after_its_vtable(new: New) -> None:
    log = new().buffer().vtable(TEXT, 0x3000).alloc(TEXT, 0x10000, 32).class_(0x3000, "System.String")
    assert [name for _, _, name, _ in allocations(read(log))] == ["System.String"]


@versions()
def test_an_address_that_is_used_for_another_class(new: New) -> None:
    log = new().buffer().type_(TEXT, "First").alloc(TEXT, 0x10000, 8).type_(TEXT, "Second").alloc(TEXT, 0x10010, 8)
    assert [name for _, _, name, _ in allocations(read(log))] == ["First", "Second"]


@versions("vtable")
def test_a_vtable_that_is_used_for_another_class(new: New) -> None:
    """As after the unloading of a domain."""
    log = new().buffer().class_(0x3000, "First").class_(0x4000, "Second")
    log.vtable(TEXT, 0x3000).alloc(TEXT, 0x10000, 8).vtable(TEXT, 0x4000).alloc(TEXT, 0x10010, 8)
    assert [name for _, _, name, _ in allocations(read(log))] == ["First", "Second"]


@versions()
def test_a_class_that_nothing_names(new: New) -> None:
    assert [name for _, _, name, _ in allocations(read(new().buffer().alloc(TEXT, 0x10000, 8)))] == ["[class 0x2000]"]


# ---------------------------------------------------------------- collections

NURSERY, MAJOR = 0x10_0000, 0x40_0000


def collected(log: Log, moves: list[tuple[int, int]], generation: int = 0) -> Log:
    """A collection; the world is started again at the second event from the last."""
    log.gc_event(mono.PRE_STOP_WORLD, generation).gc_event(mono.POST_STOP_WORLD, generation)
    log.gc_event(mono.GC_START, generation)
    if moves:
        log.gc_move(moves)
    log.gc_event(mono.GC_END, generation).gc_event(mono.PRE_START_WORLD, generation)
    return log.gc_event(mono.POST_START_WORLD, generation)


@versions()
def test_what_a_collection_does_not_move_is_freed(new: New) -> None:
    log = with_names(new()).alloc(TEXT, NURSERY, 32, [RUN]).alloc(NODE, NURSERY + 64, 48, [WORK])
    trace = read(collected(log, [(NURSERY, MAJOR)]).gc_resize(1))
    over = log.now - 2 * mono.STEP
    assert allocations(trace)[2:] == [(over, -48, "App.Node", ["App:Work (int)", "App.Node"])]


def test_frees_on_a_machine_that_runs_for_months() -> None:
    """From 104 days on, a float64 does not hold each time in ns."""
    log = with_names(Log(start=2**53 + 1)).alloc(TEXT, NURSERY, 32).alloc(NODE, NURSERY + 64, 48)
    trace = read(collected(log, [(NURSERY, MAJOR)]).gc_resize(1))
    assert [(ts, size) for ts, size, *_ in allocations(trace)][2:] == [(log.now - 2 * mono.STEP, -48)]


@versions()
def test_an_object_that_is_moved_and_replaced_is_freed(new: New) -> None:
    """Its place in the major heap becomes another object's: it died in the last major collection."""
    log = collected(with_names(new()).alloc(TEXT, NURSERY, 32), [(NURSERY, MAJOR)])
    died = collected(log, [], 1).now - mono.STEP
    collected(log.alloc(NODE, NURSERY, 48), [(NURSERY, MAJOR)])
    assert [(ts, size) for ts, size, *_ in allocations(read(log))][1:] == [(died, -32), (died + 2 * mono.STEP, 48)]


@versions()
def test_without_moves_nothing_is_freed(new: New) -> None:
    log = collected(with_names(new()).alloc(TEXT, NURSERY, 32), [])
    assert [size for _, size, *_ in allocations(read(log.alloc(NODE, NURSERY, 48)))] == [32, 48]


@pytest.mark.parametrize("generation", [0, 1])
@versions()
def test_pauses_and_collections(new: New, generation: int) -> None:
    log = new().buffer()
    begun = log.now + mono.STEP
    trace = read(collected(log, [], generation))
    pause = {"ts": begun, "dur": 5 * mono.STEP, "generation": generation, "stopping": mono.STEP}
    whole = {"ts": begun + 2 * mono.STEP, "dur": mono.STEP, "generation": generation}
    assert markers(trace, "GC pause") == [{k: v for k, v in pause.items() if v}]
    assert markers(trace, "GC collection") == [{k: v for k, v in whole.items() if v}]


@versions()
def test_a_pause_without_a_collection(new: New) -> None:
    """A step of concurrent marking."""
    log = new().buffer().gc_event(mono.PRE_STOP_WORLD, 1).gc_event(mono.POST_STOP_WORLD, 1)
    trace = read(log.gc_event(mono.PRE_START_WORLD, 1).gc_event(mono.POST_START_WORLD, 1))
    assert len(markers(trace, "GC pause")) == 1
    assert markers(trace, "GC collection") == []


@versions("world locked")
def test_the_pause_does_not_wait_for_the_lock(new: New) -> None:
    """It is taken before the world is stopped, and given up after it is started."""
    log = new().buffer().gc_event(mono.PRE_STOP_WORLD_LOCKED, ts=at(2)).gc_event(mono.PRE_STOP_WORLD, ts=at(3))
    log.gc_event(mono.POST_STOP_WORLD, ts=at(4)).gc_event(mono.PRE_START_WORLD, ts=at(5))
    log.gc_event(mono.POST_START_WORLD, ts=at(6)).gc_event(mono.POST_START_WORLD_UNLOCKED, ts=at(9))
    assert markers(read(log), "GC pause") == [{"ts": at(3), "dur": 3 * mono.STEP, "stopping": mono.STEP}]


@versions("gc phases")
def test_phases_of_a_collection(new: New) -> None:
    log = new().buffer().gc_event(mono.MARK_START, 1).gc_event(mono.MARK_END, 1)
    log.gc_event(mono.RECLAIM_START, 1).gc_event(mono.RECLAIM_END, 1)
    assert markers(read(log), "GC phase") == [
        {"ts": at(1), "dur": mono.STEP, "phase": "mark", "generation": 1},
        {"ts": at(3), "dur": mono.STEP, "phase": "reclaim", "generation": 1},
    ]


@pytest.mark.parametrize("size", [1 << 20, 1 << 31])
@versions()
def test_the_size_of_the_heap_is_a_counter(new: New, size: int) -> None:
    (counter,) = read(new().buffer().gc_resize(size)).processes[0].counters
    assert (counter.name, counter.unit, counter.values["value"].tolist()) == ("managed heap", "bytes", [size])


@pytest.mark.parametrize("kind", range(4))
@versions(sizes=(8,))
def test_handles_from_creation_to_end(new: New, kind: int) -> None:
    words = ("weak", "weak, tracks resurrection", "normal", "pinned")
    log = with_names(new()).alloc(TEXT, 0x10000, 32).enter(RUN).handle_created(kind, 7, 0x10000).leave(RUN)
    trace = read(log.handle_destroyed(kind, 7).handle_destroyed(kind, 9))
    created, destroyed, unknown = markers(trace, "GC handle")
    assert created.items() >= {
        "event": "created", "kind": words[kind], "handle": 7, "class_name": "System.String", "object": 0x10000,
        "stack": ["App:Run ()"],
    }.items()  # fmt: skip
    assert created["flow"] == destroyed["flow"] > 0
    assert "flow" not in unknown
    assert [row["event"] for row in (destroyed, unknown)] == ["destroyed", "destroyed"]


@versions("handle backtrace")
def test_handles_with_a_backtrace(new: New) -> None:
    log = with_names(new()).handle_created(mono.PINNED, 7, 0x10000, [RUN, WORK]).handle_destroyed(mono.PINNED, 7, [RUN])
    stacks = [row["stack"] for row in markers(read(log), "GC handle")]
    assert stacks == [["App:Run ()", "App:Work (int)"], ["App:Run ()"]]


@versions()
def test_a_handle_that_is_used_again_is_another_flow(new: New) -> None:
    log = new().buffer()
    for _ in range(2):
        log.handle_created(mono.NORMAL, 7, 0x10000).handle_destroyed(mono.NORMAL, 7)
    first, first_end, second, second_end = (row["flow"] for row in markers(read(log), "GC handle"))
    assert first == first_end != second == second_end


@versions("finalize")
def test_finalizers(new: New) -> None:
    log = with_names(new()).alloc(TEXT, 0x10000, 32)
    start = log.finalize_start().now
    log.finalize_object_start(0x10000).finalize_object_end(0x10000).finalize_end()
    trace = read(log)
    assert markers(trace, "Finalizers") == [{"ts": start, "dur": 3 * mono.STEP}]
    assert markers(trace, "Finalizer") == [
        {"ts": start + mono.STEP, "dur": mono.STEP, "class_name": "System.String", "object": 0x10000}
    ]


# ---------------------------------------------------------------- exceptions


@versions()
def test_an_exception_is_caught_by_the_next_catching_clause(new: New) -> None:
    """Its type is known though it was moved since its allocation."""
    log = with_names(new()).alloc(TEXT, NURSERY, 32)
    log = collected(log, [(NURSERY, MAJOR)]).throw(MAJOR, [RUN, WORK])
    thrown = log.now
    trace = read(log.clause(mono.FINALLY, WORK, 1, MAJOR).clause(mono.CATCH, RUN, 2, MAJOR))
    exception = {
        "ts": thrown, "dur": 2 * mono.STEP, "stack": ["App:Run ()", "App:Work (int)"], "object": MAJOR,
        "type_name": "System.String", "caught_in": "App:Run ()",
    }  # fmt: skip
    assert markers(trace, "Exception") == [exception]
    assert [(row["kind"], row["method"], row["index"]) for row in markers(trace, "Exception clause")] == [
        ("finally", "App:Work (int)", 1), ("catch", "App:Run ()", 2),
    ]  # fmt: skip


@versions()
def test_an_exception_in_calls_that_nothing_catches(new: New) -> None:
    log = with_names(new()).enter(RUN).enter(WORK).throw(0x10000)
    exception = {
        "ts": log.now, "stack": ["App:Run ()", "App:Work (int)"], "object": 0x10000, "type_name": "[unknown class]",
    }  # fmt: skip
    assert markers(read(log.exc_leave(WORK).exc_leave(RUN)), "Exception") == [exception]


@pytest.mark.parametrize("has_allocations", [False, True])
@versions()
def test_classes_of_exceptions_and_locks_take_allocations(new: New, has_allocations: bool) -> None:
    """Of an object that was allocated before, as the runtime's own exceptions are, recording more would not help."""
    log = with_names(new()).throw(0x10000).monitor(mono.CONTENTION, 0x20000).monitor(mono.DONE, 0x20000)
    if has_allocations:
        log.alloc(TEXT, 0x30000, 24)
    noted = [issue.count for issue in read(log).report if issue.kind == "classes_unknown"]
    assert noted == ([] if has_allocations else [2])


@versions(since=14)
def test_the_clause_names_the_exception_that_it_catches(new: New) -> None:
    log = with_names(new()).throw(0x10000).throw(0x20000).clause(mono.CATCH, RUN, 0, 0x10000)
    caught = {row["object"]: row.get("caught_in") for row in markers(read(log), "Exception")}
    assert caught == {0x10000: "App:Run ()", 0x20000: None}


@versions(until=13)
def test_before_version_14_a_clause_catches_the_latest_exception(new: New) -> None:
    log = with_names(new()).throw(0x10000).throw(0x20000).clause(mono.CATCH, RUN)
    caught = {row["object"]: row.get("caught_in") for row in markers(read(log), "Exception")}
    assert caught == {0x10000: None, 0x20000: "App:Run ()"}


@versions()
def test_a_clause_of_another_thread_catches_nothing(new: New) -> None:
    log = with_names(new()).throw(0x10000).buffer(OTHER).clause(mono.CATCH, RUN, 0, 0x10000)
    assert "caught_in" not in markers(read(log), "Exception")[0]


@pytest.mark.parametrize(
    ("kind", "word"), [(mono.CATCH, "catch"), (mono.FILTER, "filter"), (mono.FINALLY, "finally"), (mono.FAULT, "fault")]
)
@versions(sizes=(8,))
def test_kinds_of_clauses(new: New, kind: int, word: str) -> None:
    (clause,) = markers(read(with_names(new()).clause(kind, WORK, 3)), "Exception clause")
    assert (clause["kind"], clause["method"], clause["index"]) == (word, "App:Work (int)", 3)


# ---------------------------------------------------------------- monitors


@pytest.mark.parametrize(("end", "outcome"), [(mono.DONE, "acquired"), (mono.FAIL, "failed")])
@versions()
def test_a_contention_until_its_end(new: New, end: int, outcome: str) -> None:
    log = with_names(new()).alloc(TEXT, 0x10000, 32).monitor(mono.CONTENTION, 0x10000, [RUN, WORK])
    contention = {
        "ts": log.now, "dur": mono.STEP, "stack": ["App:Run ()", "App:Work (int)"], "object": 0x10000,
        "class_name": "System.String", "outcome": outcome,
    }  # fmt: skip
    assert markers(read(log.monitor(end, 0x10000)), "Lock contention") == [contention]


@versions()
def test_a_contention_in_calls(new: New) -> None:
    log = with_names(new()).enter(RUN).monitor(mono.CONTENTION, 0x10000).monitor(mono.DONE, 0x10000).leave(RUN)
    assert markers(read(log), "Lock contention")[0]["stack"] == ["App:Run ()"]


@versions("monitor backtrace")
def test_an_acquired_monitor_with_a_backtrace(new: New) -> None:
    log = with_names(new()).monitor(mono.DONE, 0x10000, [RUN])
    assert [(row["stack"], row["outcome"]) for row in markers(read(log), "Lock contention")] == [
        (["App:Run ()"], "acquired")
    ]


@versions()
def test_contentions_of_several_objects(new: New) -> None:
    """Each ends with the event of its own object; one is still open at the end of the log."""
    log = new().buffer().monitor(mono.CONTENTION, 0x10000).monitor(mono.CONTENTION, 0x20000)
    log.monitor(mono.CONTENTION, 0x30000).monitor(mono.FAIL, 0x10000).monitor(mono.DONE, 0x20000).gc_resize(1)
    rows = markers(read(log), "Lock contention")
    assert [(row["object"], row["dur"] // mono.STEP, row["outcome"]) for row in rows] == [
        (0x10000, 3, "failed"), (0x20000, 3, "acquired"), (0x30000, 3, "still waiting"),
    ]  # fmt: skip


@versions()
def test_a_contention_that_is_given_up_for_another(new: New) -> None:
    log = new().buffer().monitor(mono.CONTENTION, 0x10000).monitor(mono.CONTENTION, 0x10000).monitor(mono.DONE, 0x10000)
    assert [row["outcome"] for row in markers(read(log), "Lock contention")] == ["unknown", "acquired"]


# ---------------------------------------------------------------- heap shots


def shots_of(trace: Trace) -> list[HeapGraph]:
    return [snapshot.load(trace) for snapshot in trace.processes[0].heap_snapshots]


def objects_of(trace: Trace, graph: HeapGraph) -> list[tuple[int, str, int, list[str]]]:
    """(address, class, size, where it was allocated)"""
    columns = (graph.objects[name].tolist() for name in ("address", "class_name", "size", "site"))
    return [(a, trace.strings[c], size, stack_names(trace, s)) for a, c, size, s in zip(*columns, strict=True)]


def references_of(graph: HeapGraph) -> dict[int, list[int]]:
    addresses = graph.objects["address"].tolist()
    return {
        address: [addresses[row] for row in graph.references[graph.offsets[nth] : graph.offsets[nth + 1]].tolist()]
        for nth, address in enumerate(addresses)
    }


def roots_of(trace: Trace, graph: HeapGraph) -> list[tuple[int, str, str]]:
    """(address of the object, kind, name)"""
    addresses = graph.objects["address"].tolist()
    columns = (graph.roots[column].tolist() for column in ("object", "kind", "name"))
    return [(addresses[row], trace.strings[kind], trace.strings[n]) for row, kind, n in zip(*columns, strict=True)]


@versions()
def test_a_heap_shot(new: New) -> None:
    log = with_names(new()).heap_start()
    start = log.now
    log.heap_object(0x10000, NODE, 48, [(16, 0x20000), (24, 0x10000)], 1).heap_object(0x20000, TEXT, 32)
    trace = read(log.heap_end())
    (snapshot,) = trace.processes[0].heap_snapshots
    assert (snapshot.start_ts, snapshot.end_ts) == (start, log.now)
    graph = snapshot.load(trace)
    assert objects_of(trace, graph) == [(0x10000, "App.Node", 48, []), (0x20000, "System.String", 32, [])]
    assert references_of(graph) == {0x10000: [0x20000, 0x10000], 0x20000: []}
    assert markers(trace, "Heap shot") == [{"ts": start, "dur": log.now - start}]


@versions()
def test_an_object_in_several_events(new: New) -> None:
    """More references follow under the same address with size 0."""
    log = with_names(new()).heap_start().heap_object(0x10000, NODE, 48, [(16, 0x20000)])
    log.heap_object(0x20000, TEXT, 32).heap_object(0x10000, NODE, 0, [(24, 0x20000), (32, 0x10000)]).heap_end()
    trace = read(log)
    (graph,) = shots_of(trace)
    assert [size for _, _, size, _ in objects_of(trace, graph)] == [48, 32]
    assert references_of(graph) == {0x10000: [0x20000, 0x20000, 0x10000], 0x20000: []}


@versions()
def test_references_to_nothing_are_left_out(new: New) -> None:
    log = with_names(new()).heap_start().heap_object(0x10000, NODE, 48, [(16, 0x90000), (24, 0x10000)]).heap_end()
    trace = read(log)
    assert [references_of(graph) for graph in shots_of(trace)] == [{0x10000: [0x10000]}]
    assert report_of(trace)["reference_dangles"] == 1


@versions()
def test_where_living_objects_were_allocated(new: New) -> None:
    """Also those that were moved."""
    log = with_names(new()).alloc(TEXT, NURSERY, 32, [RUN]).alloc(NODE, NURSERY + 64, 48, [WORK])
    collected(log, [(NURSERY, MAJOR), (NURSERY + 64, MAJOR + 64)]).heap_start()
    trace = read(log.heap_object(MAJOR, TEXT, 32).heap_object(MAJOR + 64, NODE, 48).heap_end())
    (graph,) = shots_of(trace)
    sites = [["App:Run ()", "System.String"], ["App:Work (int)", "App.Node"]]
    assert [site for *_, site in objects_of(trace, graph)] == sites
    assert graph.objects["object"].tolist() == data_of(trace, MAIN).allocations["object"].tolist()


@versions()
def test_several_heap_shots(new: New) -> None:
    log = with_names(new()).heap_start().heap_object(0x10000, NODE, 48).heap_end()
    log.heap_start().heap_object(0x10000, NODE, 48).heap_object(0x20000, TEXT, 32).heap_end()
    assert [len(graph.objects) for graph in shots_of(read(log))] == [1, 2]


@versions()
def test_a_heap_shot_in_several_buffers(new: New) -> None:
    """Buffers of other threads may lie between them."""
    log = with_names(new()).buffer().heap_start().heap_object(0x10000, NODE, 48)
    log.buffer(OTHER).gc_resize(1).buffer().heap_object(0x20000, TEXT, 32).buffer().heap_end()
    assert [len(graph.objects) for graph in shots_of(read(log))] == [2]


KINDS_BEFORE_14 = {0: "stack", 1: "finalizer queue", 2: "handle", 3: "other", 4: "miscellaneous", 9: "other"}
KINDS_OF_14 = {1: "stack", 2: "finalizer queue", 4: "handle", 8: "other", 16: "miscellaneous", 0: "other"}
FLAGS = [0, 0x100, 0x200, 0x400, 0x700]


@pytest.mark.parametrize("flags", FLAGS)
@versions("roots by kind", sizes=(8,))
def test_roots_by_kind(new: New, flags: int) -> None:
    """Numbers until version 13, bits in 14; flags, which say how the object is held, stand above."""
    kinds = KINDS_OF_14 if layout_of(new()) == 14 else KINDS_BEFORE_14
    log = with_names(new()).heap_start().roots_by_kind([(0x10000, kind | flags, 0) for kind in kinds], 3)
    trace = read(log.heap_object(0x10000, NODE, 48).heap_end())
    assert [roots_of(trace, graph) for graph in shots_of(trace)] == [[(0x10000, word, "") for word in kinds.values()]]


@versions("roots by kind", sizes=(8,))
def test_roots_end_with_none(new: New) -> None:
    """The last record of a buffer has an empty list."""
    trace = read(with_names(new()).heap_start().heap_object(0x10000, NODE, 48).roots_by_kind([], 3).heap_end())
    assert [roots_of(trace, graph) for graph in shots_of(trace)] == [[]]


SOURCES = (
    "external", "stack", "finalizer queue", "static", "thread static", "context static", "GC handle", "JIT",
    "threading", "domain", "reflection", "marshal", "thread pool", "debugger", "handle", "ephemeron",
    "toggle reference",
)  # fmt: skip


@versions("root region")
def test_roots_by_address(new: New) -> None:
    """The region in which an address lies tells the kind; a region may be registered without a name."""
    log = with_names(new())
    for source, word in enumerate(SOURCES):
        log.root_register(0x7000 + 0x100 * source, 0x100, source, 0, word.upper())
    log.heap_start().roots_by_address([(0x7000 + 0x100 * source + 0xF8, 0x10000) for source in range(len(SOURCES))])
    trace = read(log.heap_object(0x10000, NODE, 48).heap_end())
    assert [roots_of(trace, graph) for graph in shots_of(trace)] == [[(0x10000, w, w.upper()) for w in SOURCES]]


@versions("root region")
def test_static_fields_are_named_by_their_class(new: New) -> None:
    log = with_names(new()).root_register(0x7000, 0x100, mono.STATIC, NODE, "Static Fields").heap_start()
    trace = read(log.roots_by_address([(0x7008, 0x10000)]).heap_object(0x10000, TEXT, 32).heap_end())
    assert [roots_of(trace, graph) for graph in shots_of(trace)] == [[(0x10000, "static", "App.Node")]]


@versions("root region")
def test_roots_outside_all_regions(new: New) -> None:
    log = with_names(new()).root_register(0x7000, 0x100, mono.STACK).heap_start()
    log.roots_by_address([(0x6FFF, 0x10000), (0x7100, 0x10000)]).heap_object(0x10000, NODE, 48).heap_end()
    trace = read(log)
    assert [roots_of(trace, graph) for graph in shots_of(trace)] == [[(0x10000, "other", "")] * 2]


@versions("root region")
def test_a_region_that_is_registered_again(new: New) -> None:
    """Each shot has the kind of its own time."""
    log = with_names(new())
    for source in (mono.STACK, mono.STATIC, mono.GC_HANDLE):
        log.root_register(0x7000, 0x100, source, 0, "").heap_start().roots_by_address([(0x7010, 0x10000)])
        log.heap_object(0x10000, NODE, 48).heap_end().root_unregister(0x7000)
    trace = read(log)
    kinds = [kind for graph in shots_of(trace) for _, kind, _ in roots_of(trace, graph)]
    assert kinds == ["stack", "static", "GC handle"]


@versions("root region")
def test_a_region_over_one_that_was_given_up(new: New) -> None:
    log = with_names(new()).root_register(0x7000, 0x100, mono.STACK).root_unregister(0x7000)
    log.root_register(0x6F00, 0x400, mono.GC_HANDLE).heap_start().roots_by_address([(0x7010, 0x10000)])
    trace = read(log.heap_object(0x10000, NODE, 48).heap_end())
    assert [roots_of(trace, graph) for graph in shots_of(trace)] == [[(0x10000, "GC handle", "")]]


@versions("root region")
def test_a_region_that_was_given_up(new: New) -> None:
    """Collectors still scan stacks of threads that have just ended."""
    log = with_names(new()).root_register(0x7000, 0x100, mono.STACK).root_unregister(0x7000).heap_start()
    trace = read(log.roots_by_address([(0x7010, 0x10000)]).heap_object(0x10000, NODE, 48).heap_end())
    assert [roots_of(trace, graph) for graph in shots_of(trace)] == [[(0x10000, "stack", "")]]


@versions("root region")
def test_regions_are_events_of_their_thread(new: New) -> None:
    log = new().buffer().root_register(0x7000, 0x100, mono.STATIC, 0, "Statics").root_unregister(0x7000)
    assert markers(read(log), "GC root") == [
        {"ts": at(1), "event": "registered", "kind": "static", "title": "Statics", "size": 0x100, "address": 0x7000},
        {"ts": at(2), "event": "given up", "address": 0x7000},
    ]


# ---------------------------------------------------------------- samples


def samples_of(trace: Trace, tid: int) -> list[tuple[int, list[str]]]:
    table = data_of(trace, tid).samples
    rows = zip(table["ts"].tolist(), table["stack"].tolist(), strict=True)
    return [(ts, stack_names(trace, stack)) for ts, stack in rows]


def sampled_thread(log: Log) -> int:
    """Before version 11 a sample does not say of which thread it is."""
    return OTHER if log.version >= 11 else 0


@versions("managed frames")
def test_samples_with_managed_frames(new: New) -> None:
    """The leaf is recorded first; samples come late, and out of order."""
    log = with_names(new()).buffer(OTHER).gc_resize(1, ts=at(1)).gc_resize(1, ts=at(30))
    log.buffer(0x7F30).sample(OTHER, [0x1234], [WORK, RUN], ts=at(20)).sample(OTHER, [0x1234], [RUN], ts=at(10))
    assert samples_of(read(log), sampled_thread(log)) == [
        (at(10), ["App:Run ()"]), (at(20), ["App:Run ()", "App:Work (int)"]),
    ]  # fmt: skip


@versions("managed frames")
def test_samples_before_and_after_the_thread_s_own_events(new: New) -> None:
    log = with_names(new()).buffer(OTHER).gc_resize(1, ts=at(15)).buffer(0x7F30)
    log.sample(OTHER, [0x1234], [RUN], ts=at(10)).sample(OTHER, [0x1234], [WORK], ts=at(20))
    assert [ts for ts, _ in samples_of(read(log), sampled_thread(log))] == [at(10), at(20)]


FINALIZER = 0x7F40
SLEEP, LOCK = "(wrapper managed-to-native) System.Threading.Thread:SleepInternal (int)", "App:Lock ()"
ACCEPT = "(wrapper managed-to-native) System.Net.Sockets.Socket:Accept_internal (intptr,int&,bool)"
# Where it waits, where what waits is interrupted, and where it runs.
WAITING, INTERRUPTED, RUNNING = 0x70001016, 0x70001014, 0x40001000


@pytest.mark.parametrize(
    ("samples", "expected"),
    [
        ([(OTHER, WAITING, SLEEP)], [True]),
        ([(OTHER, RUNNING, ACCEPT)], [True]),
        ([(OTHER, RUNNING, LOCK)], [False]),
        ([(OTHER, WAITING, SLEEP), (OTHER, INTERRUPTED, LOCK), (OTHER, WAITING, None)], [True, True, True]),
        ([(OTHER, WAITING, SLEEP), (OTHER, WAITING + 5, LOCK), (OTHER, RUNNING, None)], [True, False, False]),
        ([(FINALIZER, WAITING, None), (OTHER, WAITING, LOCK)], [True, True]),
        ([(FINALIZER, RUNNING, LOCK), (OTHER, RUNNING, None)], [False, False]),
    ],
)
@pytest.mark.parametrize(("option", "shows_waits"), [("sample=200", True), ("sample-real=200", False)])
def test_threads_that_wait_are_idle_where_others_pace_their_samples(
    samples: list[tuple[int, int, str | None]], expected: list[bool], option: str, shows_waits: bool
) -> None:
    log = Log(args=f"log:nodefaults,{option}").buffer().thread_name(FINALIZER, "Finalizer")
    methods = {SLEEP: 0x600, LOCK: 0x700, ACCEPT: 0x800}
    for name, method in methods.items():
        log.jit(method, name, method << 20)
    for tid, address, name in samples:
        log.sample(tid, [address], [methods[name]] if name else [])
    trace = read(log)
    stacks = {ts: stack for tid in (OTHER, FINALIZER) for ts, stack in zip(*sample_columns(trace, tid), strict=True)}
    category = trace.frames["category"][trace.stacks["frame"][[stacks[ts] for ts in sorted(stacks)]]]
    idle = [trace.strings[name] == "Idle" for name in trace.categories["name"][category].tolist()]
    assert idle == [shows_waits and waits for waits in expected]
    noted = [issue.count for issue in trace.report if issue.kind == "waits_sampled"]
    assert noted == ([sum(idle)] if any(idle) else [])
    assert trace.events[0].name == ("process-clock" if shows_waits else "wall-clock")


def sample_columns(trace: Trace, tid: int) -> tuple[list[int], list[int]]:
    tables = [thread.load(trace).samples for thread in trace.processes[0].threads if thread.tid == tid]
    return tuple([value for table in tables for value in table[name].tolist()] for name in ("ts", "stack"))


@versions("sample")
def test_samples_of_native_code(new: New) -> None:
    """A symbol stands for the 16 bytes from it on; what it is not near lies in a binary, or nowhere."""
    log = with_names(new()).native_symbol(0x70001000, "malloc").native_symbol(0x70001010, "malloc")
    addresses = [0x70001000, 0x7000101F, 0x70001020, 0x90000000]
    names = ["malloc", "malloc", "[native]", "[native]"]
    if log.supports("native binary"):
        log.native_binary(0x70000000, "/usr/lib/libmono.so", 0x500, 0x10000)
        names[2] = "libmono.so+0x1520"
    for address in addresses:
        log.sample(OTHER, [address])
    assert [stack for _, stack in samples_of(read(log), sampled_thread(log))] == [[name] for name in names]


@versions("sample")
def test_addresses_of_a_sample_begin_with_the_leaf(new: New) -> None:
    log = with_names(new()).native_symbol(0x70001000, "malloc").native_symbol(0x70002000, "main")
    trace = read(log.sample(OTHER, [0x70001000, 0x70002000]))
    assert [stack for _, stack in samples_of(trace, sampled_thread(log))] == [["main", "malloc"]]


@versions("sample")
def test_samples_in_jitted_code(new: New) -> None:
    """Where another method was compiled to the same place, the one that was there then."""
    log = new().buffer().jit(RUN, "App:Run ()", 0x40001000, 100, ts=at(1)).jit(WORK, "W", 0x40001000, 50, ts=at(5))
    for ts, address in ((3, 0x40001000), (4, 0x40001063), (6, 0x40001031), (7, 0x40001064), (8, 0x40001032)):
        log.sample(OTHER, [address], ts=at(ts))
    assert [stack for _, stack in samples_of(read(log), sampled_thread(log))] == [
        ["App:Run ()"], ["App:Run ()"], ["W"], ["[native]"], ["[native]"],
    ]  # fmt: skip


@versions("managed frames")
def test_garbage_in_the_code_of_a_method_is_none(new: New) -> None:
    """What sampling has seen first has neither address nor size."""
    log = new().buffer().jit(RUN, "App:Run ()", 8, 1 << 30).sample(OTHER, [0x1234], [RUN])
    trace = read(log)
    assert len(trace.code) == 0
    assert markers(trace, "JIT compilation") == [{"ts": at(1), "method": "App:Run ()"}]


@versions()
def test_jitted_code(new: New) -> None:
    trace = read(new().buffer().jit(RUN, "App:Run ()", 0x40001000, 100))
    assert markers(trace, "JIT compilation") == [
        {"ts": at(1), "method": "App:Run ()", "size": 100, "address": 0x40001000}
    ]
    assert (trace.code["size"].tolist(), trace.code["loaded_at"].tolist()) == ([100], [at(1)])


# ---------------------------------------------------------------- counters


def counters_of(trace: Trace) -> dict[str, tuple[str, list[float]]]:
    """Name → (unit, values)"""
    return {c.name: (c.unit, c.values["value"].tolist()) for c in trace.processes[0].counters}


VALUES = [
    (mono.INT, [0, 5, 3, -7, (1 << 31) - 1, -(1 << 31)]),
    (mono.UINT, [5, (1 << 32) - 1, 0, 7]),
    (mono.WORD, [5, 3, -7, (1 << 31) - 1, -(1 << 31)]),
    (mono.LONG, [5, 3, -7, 1 << 40, -(1 << 40)]),
    (mono.ULONG, [5, 3, 1 << 50, 0]),
    (mono.DOUBLE, [0.5, -1.25, 0.0, 1e300]),
]


@pytest.mark.parametrize(("kind", "values"), VALUES)
@versions("counters")
def test_values_of_counters(new: New, kind: int, values: list[Any]) -> None:
    """Whole numbers are written as differences, which wrap; doubles as they are."""
    log = new().buffer().counters_desc([Counter(3, "Methods", kind)])
    for nth, value in enumerate(values):
        log.counters({3: value}, ms=nth)
    assert counters_of(read(log)) == {"system: Methods": ("count", values)}


@versions("counters")
def test_times_in_counters(new: New) -> None:
    """A time interval is in microseconds."""
    log = new().buffer().counters_desc([Counter(3, "GC time", mono.INTERVAL, mono.TIME)]).counters({3: 70})
    assert counters_of(read(log)) == {"system: GC time": ("ns", [70_000])}


@versions("counters", since=7)
def test_performance_counters_are_absolute(new: New) -> None:
    network = Counter(3, "Bytes", mono.LONG, mono.RAW, 0, mono.PERF_SECTION, "Network")
    log = new().buffer().counters_desc([network]).counters({3: 70}).counters({3: 50}, ms=1)
    assert counters_of(read(log)) == {"Network: Bytes": ("count", [70, 50])}


@versions("counters")
def test_counters_that_are_described_later(new: New) -> None:
    """The first values are older than the description, and count for the later ones."""
    methods = Counter(3, "Methods")
    log = new().buffer().counters({3: 70}, undescribed=[methods]).counters_desc([methods]).counters({3: 75}, ms=1)
    assert counters_of(read(log)) == {"system: Methods": ("count", [70, 75])}


@versions("counters")
def test_several_counters_of_which_unchanged_ones_are_left_out(new: New) -> None:
    log = new().buffer().counters_desc([Counter(3, "A"), Counter(5, "B", section=mono.JIT_SECTION)])
    log.counters({3: 1, 5: 10}).counters({5: 11}, ms=1).counters({3: 4}, ms=2)
    assert counters_of(read(log)) == {"system: A": ("count", [1, 4]), "jit: B": ("count", [10, 11])}


@versions("counters")
def test_texts_between_the_values_of_counters(new: New) -> None:
    log = new().buffer().counters_desc([Counter(2, "Text", mono.STRING), Counter(3, "A")])
    assert counters_of(read(log.counters({2: "x", 3: 1}).counters({2: None, 3: 4}, ms=1))) == {
        "system: A": ("count", [1, 4])
    }


UNITS = {mono.RAW: ("count", 1), mono.BYTES: ("bytes", 1), mono.TIME: ("ns", 100), mono.COUNT: ("count", 1),
         mono.PERCENTAGE: ("percent", 1)}  # fmt: skip


@pytest.mark.parametrize("unit", UNITS)
@versions("counters", sizes=(8,))
def test_units_of_counters(new: New, unit: int) -> None:
    """Versions 13 and 14 cut them off."""
    name, scale = ("count", 1) if new().version in (13, 14) else UNITS[unit]
    log = new().buffer().counters_desc([Counter(3, "A", mono.LONG, unit)]).counters({3: 70})
    assert counters_of(read(log)) == {"system: A": (name, [70 * scale])}


def times_of_counter(log: Log) -> list[int]:
    return [ts - START for ts in read(log).processes[0].counters[0].values["ts"].tolist()]  # type: ignore[no-any-return]


@versions("counters", until=12)
def test_times_of_counters_before_version_13(new: New) -> None:
    """In ms since the first ones, whenever the buffer that they are in was begun."""
    log = new().buffer().counters_desc([Counter(3, "A")]).gc_resize(1, ts=START)
    log.counters({3: 1}, ms=0).buffer(time_base=START + 900_000_000).counters({3: 2}, ms=1000)
    log.buffer(time_base=START + 1_100_000_000).counters({3: 3}, ms=2000)
    log.buffer().gc_resize(1, ts=START + 3_000_000_000)
    assert times_of_counter(log) == [0, 1_000_000_000, 2_000_000_000]


@versions("counters", since=13)
def test_times_of_counters_since_version_13(new: New) -> None:
    log = new().buffer().counters_desc([Counter(3, "A")], ts=at(3)).counters({3: 1}, ts=at(0))
    log.counters({3: 2}, ts=at(9))
    assert times_of_counter(log) == [0, 9000]


# ---------------------------------------------------------------- metadata, code of the runtime, coverage

HELPERS = (
    "method", "method trampoline", "unbox trampoline", "interface method trampoline", "generics trampoline",
    "specific trampoline", "helper", "monitor", "delegate invoke", "exception handling",
)  # fmt: skip


@pytest.mark.parametrize("kind", range(len(HELPERS)))
@versions("jit helper", sizes=(8,))
def test_code_of_the_runtime(new: New, kind: int) -> None:
    """Its kinds are one more before version 14; one of them has a name."""
    title = {"helper": "class_init"} if kind == mono.SPECIFIC_TRAMPOLINE else {}
    log = new().buffer().jit_helper(kind, 0x40005000, 20, "class_init")
    assert markers(read(log), "JIT helper") == [
        {"ts": at(1), "kind": HELPERS[kind], "size": 20, "address": 0x40005000, **title}
    ]


# What builds an event; the feature that it needs; what, which event, name, pointer.
METADATA: dict[str, tuple[Callable[[Log], Log], str, tuple[str, str, str, int]]] = {
    "class": (lambda log: log.class_(0x2000, "A"), "", ("class", "loaded", "A", 0x2000)),
    "class unload": (lambda log: log.class_unload(0x2000, "A"), "class unload", ("class", "unloaded", "A", 0x2000)),
    "image": (lambda log: log.image(0x1000, "a.exe", "id"), "", ("image", "loaded", "a.exe", 0x1000)),
    "image unload": (lambda log: log.image_unload(0x1000, "a.exe"), "image unload",
        ("image", "unloaded", "a.exe", 0x1000)),
    "assembly": (lambda log: log.assembly(0x3000, "a"), "assembly", ("assembly", "loaded", "a", 0x3000)),
    "assembly unload": (lambda log: log.assembly_unload(0x3000, "a"), "assembly",
        ("assembly", "unloaded", "a", 0x3000)),
    "domain": (lambda log: log.domain(1), "domain", ("domain", "loaded", "", 1)),
    "domain name": (lambda log: log.domain_name(1, "a.exe"), "domain", ("domain", "named", "a.exe", 1)),
    "domain unload": (lambda log: log.domain_unload(1), "domain", ("domain", "unloaded", "", 1)),
    "thread": (lambda log: log.thread(9), "thread load", ("thread", "loaded", "", 9)),
    "thread name": (lambda log: log.thread_name(9, "T"), "", ("thread", "named", "T", 9)),
    "thread unload": (lambda log: log.thread_unload(9), "thread load", ("thread", "unloaded", "", 9)),
    "context": (lambda log: log.context(0x99, 1), "context", ("context", "loaded", "", 0x99)),
    "context unload": (lambda log: log.context_unload(0x99, 1), "context", ("context", "unloaded", "", 0x99)),
    "vtable": (lambda log: log.vtable(0x2300, NODE), "vtable", ("vtable", "loaded", "[class 0x2100]", 0x2300)),
}  # fmt: skip


@pytest.mark.parametrize("what", METADATA)
@for_each("layout", {f"v{v}-{8 * s}bit": (v, s) for v in mono.VERSIONS for s in (4, 8)})
def test_metadata(layout: tuple[int, int], what: str) -> None:
    build, needs, words = METADATA[what]
    log = Log(*layout).buffer()
    if needs and not log.supports(needs):
        with pytest.raises(ValueError, match="has no"):
            build(log)
        return
    rows = markers(read(build(log)), "Metadata")
    assert [tuple(row.get(key, "") for key in ("what", "event", "title", "pointer")) for row in rows] == [words]


@versions("domain")
def test_a_domain_has_its_name_from_the_start(new: New) -> None:
    log = new().buffer().domain(1).domain_name(1, "a.exe").domain_unload(1)
    assert [row["title"] for row in markers(read(log), "Metadata")] == ["a.exe"] * 3


@versions("domain")
def test_the_first_pointer_of_a_buffer_is_0(new: New) -> None:
    """Until version 14 the next one becomes the base, and a 0 before it reads as that: it cannot be told from it."""
    rows = markers(read(new().buffer().domain(0).domain(0x40)), "Metadata")
    first = 0x40 if layout_of(new()) <= 14 else 0
    assert [row.get("pointer", 0) for row in rows] == [first, 0x40]


@versions("coverage")
def test_coverage(new: New) -> None:
    log = new().buffer().coverage_assembly("app", "guid", "app.exe", 2, 1, 1)
    for method, (name, n) in enumerate([("Run", 2), ("Idle", 1)]):
        log.coverage_method("app", "App", name, "int", "app.cs", 0x6000001 + method, method, n)
    log.coverage_statement(0, 8, 3, 10, 5).coverage_statement(0, 9, 0, 11, 5).coverage_statement(1, 8, 0, 20, 5)
    trace = read(log.coverage_class("app", "App", 2, 0, 1))
    coverage = summarize(trace)["coverage"]
    assert (coverage["statements"], coverage["covered"]) == (3, 1)
    assert {(row["method"], row["statements"], row["covered"], row["file"]) for row in coverage["methods"]} == {
        ("Run (int)", 2, 1, "app.cs"), ("Idle (int)", 1, 0, "app.cs"),
    }  # fmt: skip


@pytest.mark.parametrize(("kind", "word"), list(enumerate(["periodic", "world stop", "world start", "unknown"])))
@versions("sync point")
def test_sync_points(new: New, kind: int, word: str) -> None:
    assert markers(read(new().buffer().sync_point(kind)), "Sync point") == [{"ts": at(1), "kind": word}]


@versions("aot id")
def test_the_aot_id(new: New) -> None:
    assert read(new().buffer().aot_id("5C8A")).attributes["aot_id"] == "5C8A"


# ---------------------------------------------------------------- threads


@versions()
def test_the_last_name_of_a_thread_counts(new: New) -> None:
    """The thread named Main is the main one, also under another name."""
    log = new().buffer(OTHER).gc_resize(1).buffer(MAIN).gc_resize(1)
    trace = read(log.thread_name(MAIN, "Main").thread_name(MAIN, "main-worker").thread_name(OTHER, "Finalizer"))
    assert [(t.tid, t.name, t.is_main) for _, t in trace.threads] == [
        (MAIN, "main-worker", True), (OTHER, "Finalizer", False),
    ]  # fmt: skip


@versions()
def test_threads_without_a_name(new: New) -> None:
    """The first is the main one and called as the process."""
    trace = read(new().buffer(OTHER).gc_resize(1).buffer(MAIN).gc_resize(1))
    assert [(t.tid, t.name, t.is_main) for _, t in trace.threads] == [
        (OTHER, "app0", True), (MAIN, f"thread {MAIN:#x}", False),
    ]  # fmt: skip


@versions("thread load")
def test_a_thread_id_that_is_used_again(new: New) -> None:
    """What lies between unloading and the next loading is the next thread's; a thread goes on after its last end."""
    log = with_names(new()).gc_resize(1, ts=START)
    log.buffer(OTHER).enter(RUN, ts=at(1)).thread(OTHER, ts=at(2)).thread_name(OTHER, "first", ts=at(3))
    log.leave(RUN, ts=at(5)).thread_unload(OTHER, ts=at(6))
    log.buffer(OTHER).enter(WORK, ts=at(8)).thread(OTHER, ts=at(9)).thread_name(OTHER, "second", ts=at(10))
    log.thread_unload(OTHER, ts=at(13)).leave(WORK, ts=at(15))
    lives = [(t.name, t.start_ts, t.end_ts, [c.name for c in calls_of(trace, t.load(trace))])
             for trace in (read(log),) for _, t in trace.threads if t.tid == OTHER]  # fmt: skip
    assert lives == [
        ("first", at(1), at(6), ["App:Run ()"]), ("second", at(8), at(15), ["App:Work (int)"]),
    ]  # fmt: skip


@versions("thread load")
def test_a_buffer_that_goes_on_is_of_one_thread(new: New) -> None:
    """Whatever another buffer says of the end of its thread and of the start of the next."""
    log = with_names(new()).buffer(OTHER).thread(OTHER, ts=at(1)).enter(RUN, ts=at(2)).leave(RUN, ts=at(15))
    log.buffer(MAIN).thread_unload(OTHER, ts=at(6)).thread(OTHER, ts=at(9)).gc_resize(1, ts=at(10))
    log.buffer(OTHER).enter(WORK, ts=at(20)).leave(WORK, ts=at(21)).thread_unload(OTHER, ts=at(22))
    [(_, thread)] = [pair for pair in read(log).threads if pair[1].tid == OTHER]
    assert (thread.start_ts, thread.end_ts) == (at(1), at(22))


@versions("thread load", "managed frames")
def test_samples_of_a_thread_id_that_is_used_again(new: New) -> None:
    log = with_names(new()).gc_resize(1, ts=START).thread(OTHER, ts=at(2)).thread_unload(OTHER, ts=at(6))
    log.thread(OTHER, ts=at(9)).thread_unload(OTHER, ts=at(13))
    log.sample(OTHER, [0x1234], [RUN], ts=at(5)).sample(OTHER, [0x1234], [WORK], ts=at(8))
    trace = read(log)
    threads = [thread.load(trace).samples["ts"].tolist() for _, thread in trace.threads if thread.tid == OTHER]
    assert threads == [[at(5)], [at(8)]]


@versions("thread load")
def test_calls_of_a_thread_that_ended_are_open_until_its_end(new: New) -> None:
    log = with_names(new()).buffer(OTHER).enter(RUN, ts=at(5)).thread_unload(OTHER, ts=at(8))
    trace = read(log.buffer().gc_resize(1, ts=at(90)))
    assert [(call.end, call.flags) for call in calls_of(trace, data_of(trace, OTHER))] == [(at(8), OPEN_AT_END)]


@versions()
def test_buffers_without_events(new: New) -> None:
    trace = read(new().buffer(1).buffer(MAIN).gc_resize(5).buffer(3))
    assert [thread.tid for _, thread in trace.threads] == [MAIN]


# ---------------------------------------------------------------- header, time, processes


@versions()
def test_times_that_run_backwards(new: New) -> None:
    """Events of other threads stand in a buffer where they were first seen: differences are negative."""
    log = new().buffer(time_base=at(100)).jit(RUN, "A", ts=at(50)).jit(WORK, "B", ts=at(20)).jit(HELP, "C", ts=at(70))
    trace = read(log)
    assert [(row["method"], row["ts"]) for row in markers(trace, "JIT compilation")] == [
        ("B", at(20)), ("A", at(50)), ("C", at(70)),
    ]  # fmt: skip
    assert (trace.start_ts, trace.end_ts) == (at(20), at(70))


@pytest.mark.parametrize("version", mono.VERSIONS)
def test_the_header_is_printed(version: int) -> None:
    log = Log(version, timer_overhead=21, pid=77, port=4000, args="log:calls", arch="arm64", os="darwin")
    (line,) = lines_of(log)
    numbers = ["pid=77", "port=4000", "timer_overhead_ns=21", "start_unix_ms=1790000000000"]
    words = numbers if version >= 4 else ["pid=0", "port=0", "timer_overhead_ns=0", "start_unix_ms=0"]
    words += ["arguments='log:calls'", "architecture='arm64'", "system='darwin'"] if version >= 13 else []
    words += [f"start_clock_ns={START}"] if version >= 16 else ["start_clock_ns=None"]
    assert set(words) <= set(line.split())


@pytest.mark.parametrize(("version", "major", "minor"), [(1, 0, 2), (13, 0, 4), (13, 1, 0), (14, 1, 1), (16, 2, 0)])
def test_a_version_with_the_header_of_another_major(version: int, major: int, minor: int) -> None:
    log = Log(version, major=major, minor=minor).buffer().enter(RUN).leave(RUN)
    trace = read(log)
    assert len(calls_of(*main_of(trace))) == 1
    assert trace.inputs[0].version == f"{major}.{minor}, data version {version}"


@versions()
def test_unix_time(new: New) -> None:
    """Of the first event, or since version 3 of the header of the time that the header names."""
    trace = read(new(startup_ms=1_790_000_000_000, start_clock=at(100)).buffer().gc_resize(1, ts=at(300)))
    assert trace.clock is not None
    assert trace.clock.kind == "monotonic"
    version = new().version
    since = 200 * mono.STEP if version >= 16 else 0
    assert trace.unix_start_ns == (None if version < 4 else 1_790_000_000 * 10**9 + since)


@versions()
def test_the_process_and_its_profiler(new: New) -> None:
    trace = read(new(pid=77, args="log:calls,calldepth=5", arch="arm64", os="darwin").buffer().gc_resize(1))
    version = new().version
    assert [process.pid for process in trace.processes] == [77 if version >= 4 else 1]
    assert ("pid_unknown" in report_of(trace)) == (version < 4)
    assert trace.attributes["pointer_size"] == str(new().pointer_size)
    assert trace.attributes.get("profiler_arguments") == ("log:calls,calldepth=5" if version >= 13 else None)


@versions(since=4)
def test_two_logs_on_one_clock(new: New) -> None:
    """The header's wall time is cut to a second, and may differ by that."""
    first = with_names(new(pid=5)).enter(RUN, ts=at(10)).leave(RUN, ts=at(20))
    second = with_names(new(pid=6, startup_ms=1_790_000_001_000)).enter(WORK, ts=at(30)).leave(WORK, ts=at(40))
    trace = read(first, second)
    found = [(process.pid, [(c.name, c.start, c.end) for c in calls_of(trace, thread.load(trace))])
             for process, thread in trace.threads]  # fmt: skip
    assert found == [(5, [("App:Run ()", at(10), at(20))]), (6, [("App:Work (int)", at(30), at(40))])]


@versions()
def test_logs_of_one_process_id(new: New) -> None:
    log = new(pid=5).buffer().gc_resize(1)
    assert len({process.pid for process in read(log, log, log).processes}) == 3


def test_names_of_one_log_do_not_count_in_another() -> None:
    first = Log(pid=5).buffer().jit(RUN, "First").enter(RUN).leave(RUN)
    second = Log(15, 4, pid=6).buffer().jit(RUN, "Second").enter(RUN).leave(RUN)
    trace = read(first, second)
    assert [calls_of(trace, thread.load(trace))[0].name for _, thread in trace.threads] == ["First", "Second"]


@versions()
def test_the_summary_counts_what_was_built(new: New) -> None:
    log = with_names(new()).enter(RUN).alloc(TEXT, 0x10000, 32).alloc(TEXT, 0x10020, 48).leave(RUN)
    summary = summarize(read(log.heap_start().heap_object(0x10000, TEXT, 32).heap_end()))
    (process,) = summary["processes"]
    (thread,) = process["threads"]
    assert (thread["calls"], thread["allocations"]) == (1, {"count": 2, "bytes": 80})
    assert [(row["name"], row["calls"]) for row in summary["functions"]["top"]] == [("App:Run ()", 1)]
    (shot,) = process["heap_snapshots"]
    assert (shot["objects"], shot["bytes"]) == (1, 32)


@versions()
def test_an_object_of_no_size_dies_once(new: New) -> None:
    log = with_names(new()).alloc(TEXT, 0x10000, 0).gc_event(mono.GC_START).gc_event(mono.GC_END)
    read(log.alloc(TEXT, 0x10000, 8))


@versions(until=3)
def test_stacks_of_allocations_are_the_calls_however_deep_they_were(new: New) -> None:
    log = with_names(new()).enter(RUN)
    for _ in range(5000):
        log.enter(HELP)
    trace = read(log.leave(RUN).enter(WORK).alloc(TEXT, 0x10000, 24).leave(WORK))
    (row,) = data_of(trace, MAIN).allocations["stack"].tolist()
    site = int(trace.stacks["prefix"][row])
    assert trace.func_name(int(trace.frames["func"][trace.stacks["frame"][site]])) == "App:Work (int)"
    assert trace.stacks["prefix"][site] == -1


@versions("counters")
def test_values_of_counters_that_nothing_describes_are_reported(new: New) -> None:
    unknown = Counter(7, "lost")
    assert report_of(read(new().buffer().counters({7: 1}, undescribed=[unknown])))["counter_unknown"] == 1


def test_threads_whose_methods_have_no_names_are_gone_through_in_turn() -> None:
    log = with_names(Log()).alloc(TEXT, 0x10000, 24).enter(0x9000).alloc(TEXT, 0x10020, 24)
    log.buffer(tid=OTHER)
    for nth in range(400):
        log.enter(0xA000 + nth)
    trace = read(log.alloc(TEXT, 0x10040, 24))
    assert [len(thread.load(trace).allocations) for _, thread in trace.threads] == [2, 1]
