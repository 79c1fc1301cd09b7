"""Each event of a Mono log, in each data version that has it, with pointers of 4 and of 8 bytes: what was built is what is
loaded and printed (specs/mono-log.md, 2 to 5 and 9)."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from builders import mono
from builders.mono import MAIN, Counter, Event, Log
from support import as_python, calls_of, data_of, events_of, report_of, thread_of
from test_builders_mono import EVENTS, everything, named

from converter import laws
from converter.info import summarize
from converter.model import OPEN_AT_END, UNWOUND, HeapGraph, Trace
from converter.registry import Options
from converter.source import Source
from importers import mono as importer

START = 1_000_000_000
OTHER = 0x7F20
RUN, WORK, HELP = 0x500, 0x600, 0x700  # methods
TEXT, NODE = 0x2000, 0x2100  # classes, or their vtables
Row = dict[str, Any]
New = Callable[..., Log]
LAYOUTS = [(version, size, False) for version in mono.VERSIONS for size in (4, 8)] + [(15, 4, True), (15, 8, True)]


def versions(*features: str, until: int = 17, since: int = 1) -> Any:
    """For `new`, makers of empty logs: of each version that has these features, for both sizes of pointers."""
    return pytest.mark.parametrize(
        "new",
        [
            pytest.param(make, id=f"v{version}{'hybrid' if hybrid else ''}-{8 * size}bit")
            for version, size, hybrid in LAYOUTS
            if (make := partial(Log, version, size, hybrid=hybrid))
            and since <= layout_of(make()) <= until
            and all(make().supports(feature) for feature in features)
        ],
    )


def layout_of(log: Log) -> int:
    """The version that tells how its events are laid out."""
    return mono.HYBRID - 1 if log.version == mono.HYBRID and not log.supports("vtable") else log.version


def read(*logs: Log) -> Trace:
    """The logs in one trace."""
    sources = [Source(f"app{nth}.mlpd", memoryview(log.bytes())) for nth, log in enumerate(logs)]
    trace = Trace()
    importer.read(sources).add_to(trace, Options())
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

# Of the builder's events: the name that is printed, which of its fields are a to d, its text, its list.
PRINTED = {
    "alloc": "ALLOC a=type b=object c=size [frames]",
    "gc event": "GC_EVENT a=event b=generation",
    "gc resize": "GC_RESIZE a=size",
    "gc move": "GC_MOVE [moves]",
    "handle created": "HANDLE_CREATED a=type b=handle c=object [frames]",
    "handle destroyed": "HANDLE_DESTROYED a=type b=handle [frames]",
    "finalize start": "FINALIZE_START",
    "finalize end": "FINALIZE_END",
    "finalize object start": "FINALIZE_OBJECT_START a=object",
    "finalize object end": "FINALIZE_OBJECT_END a=object",
    "class load": "LOAD a=1 b=pointer c=image 'name'",
    "class unload": "UNLOAD a=1 b=pointer c=image 'name'",
    "image load": "LOAD a=2 b=pointer d=... 'name'",
    "image unload": "UNLOAD a=2 b=pointer 'name'",
    "assembly load": "LOAD a=3 b=pointer c=image 'name'",
    "assembly unload": "UNLOAD a=3 b=pointer c=image 'name'",
    "domain load": "LOAD a=4 b=pointer",
    "domain unload": "UNLOAD a=4 b=pointer",
    "domain name": "NAME a=4 b=pointer 'name'",
    "thread load": "LOAD a=5 b=pointer",
    "thread unload": "UNLOAD a=5 b=pointer",
    "thread name": "NAME a=5 b=pointer 'name'",
    "context load": "LOAD a=6 b=pointer c=domain",
    "context unload": "UNLOAD a=6 b=pointer c=domain",
    "vtable load": "LOAD a=7 b=pointer c=domain d=class_",
    "enter": "ENTER a=method",
    "leave": "LEAVE a=method",
    "exception leave": "EXC_LEAVE a=method",
    "jit": "JIT a=method b=code c=size 'name'",
    "throw": "THROW a=object [frames]",
    "clause": "CLAUSE a=type b=index c=method d=object",
    "monitor": "MONITOR a=event b=object [frames]",
    "heap start": "HEAP_START",
    "heap end": "HEAP_END",
    "heap object": "HEAP_OBJECT a=object b=type c=size d=generation [references]",
    "heap roots": "HEAP_ROOT a=collections [roots]",
    "root register": "ROOT_REGISTER a=start b=size c=source d=key 'name'",
    "root unregister": "ROOT_UNREGISTER a=start",
    "sample": "HIT a=type b=thread c=n_ips d=n_methods [ips_and_methods]",
    "native symbol": "USYM a=address b=size 'name'",
    "native binary": "UBIN a=address b=offset c=size 'name'",
    "jit helper": "JITHELPER a=type b=address c=size 'name'",
    "sync point": "SYNC_POINT a=kind",
    "aot id": "AOT_ID 'text'",
    "counters desc": "COUNTERS_DESC ...",
    "counters": "COUNTERS a=ms ...",
    "coverage assembly": "COVERAGE_ASSEMBLY ...",
    "coverage method": "COVERAGE_METHOD ...",
    "coverage statement": "COVERAGE_STATEMENT ...",
    "coverage class": "COVERAGE_CLASS ...",
}
# Fields that not every version with the event has.
FIELDS_SINCE = {("assembly load", "image"): 14, ("assembly unload", "image"): 14, ("clause", "object"): 14,
                ("heap object", "generation"): 16, ("sample", "thread"): 11}  # fmt: skip
FIELDS_UNTIL = {("sample", "type"): 13, ("heap roots", "collections"): 14, ("counters", "ms"): 12}


def recorded(event: Event, layout: int) -> Row:
    """The fields of an event that are in the file, as numbers, texts and flat lists."""
    fields = {
        key: value
        for key, value in event.fields.items()
        if FIELDS_SINCE.get((event.name, key), 1) <= layout <= FIELDS_UNTIL.get((event.name, key), layout)
    }
    if event.name == "sample":
        fields |= {"n_ips": len(fields["ips"]), "n_methods": len(fields["methods"])}
        fields["ips_and_methods"] = fields["ips"] + fields["methods"]
    elif event.name == "heap object":
        fields["references"] = [target for _, target in fields["references"]]
    elif event.name == "gc move":
        fields["moves"] = [place for move in fields["moves"] for place in move]
    elif event.name == "heap roots":
        cut = 0xFF if layout == 13 else -1
        fields["roots"] = [part & (cut if nth == 1 else -1) for root in fields["roots"] for nth, part in enumerate(root)]
    elif event.name == "jit helper" and layout < 14:
        fields["type"] += 1
    return fields


def printed(event: Event, layout: int, ts: int) -> str:
    """The line that is printed of an event, without its offset; ... stands for places in the file."""
    name, *words = PRINTED[event.name].split()
    fields = recorded(event, layout)
    line = [name + ("_BT" if name != "MONITOR" and fields.get("frames") is not None else ""), f"ts={ts}"]
    for word in words:
        key, _, value = word.rpartition("=")
        cell = int(value) if value.isdigit() else fields.get(value.strip("[]'"))
        if word.startswith("["):
            line += [f"[{' '.join(map(hex, cell))}]"] if cell else []
        elif word.startswith("'"):
            line += [repr(cell)] if cell else []
        elif value != "..." and cell:
            line.append(f"{key}={cell:#x}")
    return " ".join(line)


def without_places(line: str) -> str:
    """What is printed of an event, without offsets in the file."""
    words = line.split(" ")[1:]
    if words[0].startswith(("COUNTERS", "COVERAGE")):
        words = [word for word in words[:3] if not word.startswith("[")]
    elif words[0] == "LOAD" and "a=0x2" in words:
        words = [word for word in words if not word.startswith("d=")]
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


def add_calls(log: Log, story: str) -> Log:
    for nth, word in enumerate(story.split()):
        log.buffer(MAIN) if nth == 0 else None
        method = 0x500 + 16 * ord(word[0].upper())
        event = log.enter if word.isupper() else log.exc_leave if word.endswith("!") else log.leave
        event(method, ts=at(nth))
    return log


def named_letters(log: Log) -> Log:
    log.buffer(OTHER)
    for letter in "ABC":
        log.jit(0x500 + 16 * ord(letter), letter, ts=START)
    return log


def drawn(trace: Trace, tid: int = MAIN) -> str:
    """The calls in the order of their enters: a dot for each level, microseconds from the start on."""
    words = {UNWOUND: " unwound", OPEN_AT_END: " open"}
    return ", ".join(
        f"{'.' * call.depth}{call.name} {(call.start - START) // 1000}-{(call.end - START) // 1000}"
        + words.get(call.flags, "")
        for call in calls_of(trace, data_of(trace, tid))
    )


@pytest.mark.parametrize("story", CALLS)
@versions()
def test_calls(new: New, story: str) -> None:
    trace = read(add_calls(named_letters(new()), story))
    assert drawn(trace) == CALLS[story]
    losses = report_of(trace)
    losses.pop("pid_unknown", None)
    assert losses == CALL_LOSSES.get(story, {})


@pytest.mark.parametrize("story", CALLS)
def test_calls_are_the_same_however_they_are_cut_into_buffers(story: str) -> None:
    log = named_letters(Log())
    for nth, word in enumerate(story.split()):
        log.buffer(MAIN)
        method = 0x500 + 16 * ord(word[0].upper())
        (log.enter if word.isupper() else log.exc_leave if word.endswith("!") else log.leave)(method, ts=at(nth))
    assert drawn(read(log)) == CALLS[story]


@versions()
def test_a_time_that_falls_is_raised(new: New) -> None:
    log = new().buffer().enter(RUN, ts=at(5)).enter(WORK, ts=at(3)).leave(WORK, ts=at(7)).leave(RUN, ts=at(9))
    trace = read(log.buffer(OTHER).gc_resize(1, ts=START))
    assert [(call.start, call.end) for call in calls_of(trace, data_of(trace, MAIN))] == [(at(5), at(9)), (at(5), at(7))]
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
    assert allocations(read(log)) == [
        (log.now, 32, "System.String", ["App:Run ()", "App:Work (int)", "System.String"])
    ]


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


@versions()
@pytest.mark.parametrize("size", [0, 1, (1 << 31) - 1, 1 << 31, (1 << 32) - 8])
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


@versions()
@pytest.mark.parametrize("generation", [0, 1])
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


@versions()
@pytest.mark.parametrize("size", [1 << 20, 1 << 31])
def test_the_size_of_the_heap_is_a_counter(new: New, size: int) -> None:
    (counter,) = read(new().buffer().gc_resize(size)).processes[0].counters
    assert (counter.name, counter.unit, counter.values["value"].tolist()) == ("managed heap", "bytes", [size])


@versions()
@pytest.mark.parametrize("kind", range(4))
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
