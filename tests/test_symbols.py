"""Function ids become names, files and lines through the instrumented binaries."""

from collections.abc import Callable
from pathlib import Path

import pytest
from builders.xray import CUSTOM_SLED, ENTER, EXIT, MACHINES, TAIL_EXIT, TYPED_SLED, Fdr, elf_with_instr_map
from recordings import binaries_of, loaded, path_of
from streams import NS, START, fdr
from support import all_calls, kinds, load_checked, report_of

from traceferry.analysis.verdict import Tally, verdict_of
from traceferry.common.errors import FormatError
from traceferry.model import Trace, laws

Load = Callable[..., Trace]
SLEDS = [ENTER, EXIT]
FUNCTIONS = [
    ("main", 0x2000, [ENTER, EXIT, TAIL_EXIT]),
    ("_Z4workiPKc", 0x3000, [ENTER, EXIT, EXIT, CUSTOM_SLED]),
    ("_ZN3geo3dotERKNS_3VecES2_", 0x4000, [ENTER, EXIT, TYPED_SLED]),
    (None, 0x5000, SLEDS),
]
NAMES = ["main", "work(int, char const*)", "geo::dot(geo::Vec const&, geo::Vec const&)"]
LOG = fdr("A B b C c a")


@pytest.fixture
def binary(tmp_path: Path) -> Callable[..., Path]:
    def write(*functions: object, name: str = "app", **options: object) -> Path:
        path = tmp_path / name
        path.write_bytes(elf_with_instr_map(list(functions) or FUNCTIONS, **options))  # type: ignore[arg-type]
        return path

    return write


Write = Callable[..., Path]


def called(trace: Trace) -> list[str]:
    assert laws.check(trace) == []
    return [call.name for calls in all_calls(trace) for call in calls]


# ---------------------------------------------------------------- the map


@pytest.mark.parametrize("pie", [False, True], ids=["executable", "pie"])
@pytest.mark.parametrize("version", [0, 1, 2])
@pytest.mark.parametrize("machine", MACHINES)
def test_maps_of_every_shape(load: Load, binary: Write, machine: str, version: int, pie: bool) -> None:
    """32 and 64 bit, both byte orders."""
    assert called(load(LOG, symbols=binary(machine=machine, version=version, pie=pie))) == NAMES


RELATIVE = [name for name, machine in MACHINES.items() if machine.relative is not None]


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize("machine", RELATIVE)
def test_maps_whose_addresses_are_relocations(load: Load, binary: Write, machine: str, version: int) -> None:
    path = binary(machine=machine, version=version, relocations=True)
    assert called(load(LOG, symbols=path)) == NAMES


@pytest.mark.parametrize("machine", ["mips", "mipsel", "mips64", "hexagon"])
def test_a_byte_order_apart_from_the_logs(load: Load, binary: Write, machine: str) -> None:
    for big in (False, True):
        assert called(load(fdr("A B b C c a", big=big), symbols=binary(machine=machine))) == NAMES


def test_an_id_is_a_run_of_equal_functions(load: Load, binary: Write) -> None:
    """Not a distinct function: one that comes again later is another id."""
    first, second = ("first", 0x2000, SLEDS), ("second", 0x3000, SLEDS)
    assert called(load(LOG, symbols=binary(first, second, first))) == ["first", "second", "first"]


def test_addresses_are_relative_to_the_file(load: Load, binary: Write) -> None:
    trace = load(LOG, symbols=binary(pie=False))
    assert [trace.strings[int(n)] for n in trace.libs["name"]] == ["app"]
    base = 0x2000 - int(trace.frames["address"].min())
    assert base % 0x1000 == 0
    assert [a + base for a in sorted(trace.frames["address"].tolist())] == [0x2000, 0x3000, 0x4000]


# ---------------------------------------------------------------- names

MANGLED = {
    "main": "main",
    "_Z3foov": "foo()",
    "_ZN3geo5scaleERKNS_3VecEd": "geo::scale(geo::Vec const&, double)",
    "_ZNSt6vectorIiSaIiEE9push_backEOi": "std::vector<int, std::allocator<int>>::push_back(int&&)",
    "_Zli3_kmy": 'operator"" _km(unsigned long long)',
    "_Z_not_mangled": "_Z_not_mangled",
    'name with spaces "and" more': 'name with spaces "and" more',
}


@pytest.mark.parametrize(("symbol", "name"), MANGLED.items())
def test_demangled(load: Load, binary: Write, symbol: str, name: str) -> None:
    ((found,),) = [called(load(fdr("A a"), symbols=binary((symbol, 0x2000, SLEDS))))]
    # Older libraries close templates with a space between.
    assert found.replace("> >", ">>") == name


def test_no_symbols(load: Load) -> None:
    trace = load(LOG)
    assert called(trace) == ["function 1", "function 2", "function 3"]
    assert trace.funcs["number"].tolist() == [1, 2, 3]
    assert report_of(trace)["no_symbols"] == 3
    assert "--symbols" in next(issue.advice for issue in trace.report if issue.kind == "no_symbols")
    assert not trace.report.lossy


def test_stripped(load: Load, binary: Write) -> None:
    """The map is there, names are not: the numbers stay, and the report says why."""
    stripped = [(None, address, sleds) for _, address, sleds in FUNCTIONS]
    trace = load(LOG, symbols=binary(*stripped))
    assert called(trace) == ["function 1", "function 2", "function 3"]
    assert trace.funcs["number"].tolist() == [1, 2, 3]
    assert report_of(trace).keys() & {"function_without_name", "no_symbols"} == {"function_without_name"}
    assert (trace.frames["address"] >= 0).all()
    verdict = verdict_of(trace, Tally(trace).samples, ["xray-log.app.A1b2C3"])
    assert verdict.lines() == [
        "functions have numbers instead of names",
        "  app is stripped: give what was built, its debug file, or GSYM of one (traceferry symbols FILE "
        "-o FILE.gsym): traceferry xray-log.app.A1b2C3 --symbols FILE",
    ]


def test_partly_stripped(load: Load, binary: Write) -> None:
    trace = load(fdr("A D d a"), symbols=binary())
    assert called(trace) == ["main", "function 4"]
    assert trace.funcs["number"].tolist() == [-1, 4]
    assert report_of(trace)["function_without_name"] == 1
    headline, *_ = verdict_of(trace, Tally(trace).samples).lines()
    assert headline == "1 of 2 functions have numbers instead of names"


# ---------------------------------------------------------------- a binary that does not fit


def refused(load: Load, log: Fdr, *symbols: Path) -> FormatError:
    with pytest.raises(FormatError) as caught:
        load(log, symbols=list(symbols))
    return caught.value


def test_an_id_beyond_the_map(load: Load, binary: Write) -> None:
    error = refused(load, fdr("A a E e"), binary())
    assert "function 5" in str(error)
    assert "ends at 4" in str(error)
    assert "not the program that was recorded" in str(error)
    assert error.path.endswith("app")


def test_no_map(load: Load, tmp_path: Path) -> None:
    data = elf_with_instr_map(FUNCTIONS).replace(b"xray_instr_map", b"xray_instr_xxx")
    (tmp_path / "plain").write_bytes(data)
    assert "-fxray-instrument" in str(refused(load, LOG, tmp_path / "plain"))


def test_a_map_of_no_whole_entries(load: Load, tmp_path: Path) -> None:
    from builders import xray

    data = bytearray(elf_with_instr_map(FUNCTIONS))
    # The section header's size, one byte less.
    n = sum(len(sleds) for _, _, sleds in FUNCTIONS) * 32
    at = data.rindex(n.to_bytes(8, "little"))
    data[at : at + 8] = (n - 1).to_bytes(8, "little")
    (tmp_path / "odd").write_bytes(data)
    assert xray.ENTER == 0
    assert "not a multiple of 32-byte entries" in str(refused(load, LOG, tmp_path / "odd"))


NO_ELF = [b"text" * 100, b"\x7fELF", b"\x7fELF" + bytes(60), b"\x7fELF\x02\x01\x01" + b"\xff" * 90]


@pytest.mark.parametrize("data", NO_ELF)
def test_no_elf_file(load: Load, tmp_path: Path, data: bytes) -> None:
    (tmp_path / "broken").write_bytes(data)
    assert str(refused(load, LOG, tmp_path / "broken"))


def test_binaries_cut_anywhere(load: Load, tmp_path: Path) -> None:
    """Names, numbers or a FormatError."""
    whole = elf_with_instr_map(FUNCTIONS)
    path = tmp_path / "cut"
    for cut in range(0, len(whole), 41):
        path.write_bytes(whole[:cut])
        try:
            trace = load(LOG, symbols=path)
        except FormatError:
            continue
        assert len(called(trace)) == 3


def test_binaries_with_changed_bytes(load: Load, tmp_path: Path) -> None:
    import random

    rng = random.Random(1)
    whole = elf_with_instr_map(FUNCTIONS)
    headers = [*range(200), *range(len(whole) - 700, len(whole))]
    path = tmp_path / "damaged"
    for _ in range(200):
        damaged = bytearray(whole)
        for _ in range(3):
            damaged[rng.choice(headers)] = rng.randrange(256)
        path.write_bytes(damaged)
        try:
            trace = load(LOG, symbols=path)
        except FormatError:
            continue
        assert len(called(trace)) == 3


# ---------------------------------------------------------------- several objects


def test_shared_objects(load: Load, binary: Write) -> None:
    """LLVM 20 and later: object << 24 | function; the executable is object 0."""
    log = Fdr(frequency=NS)
    ids = [1, 1 << 24 | 1, 2 << 24 | 2]
    calls = [log.enter(i, 1) + log.exit(i, 1) for i in ids]
    log.buffer(1, 1, records=[log.new_cpu(0, START), *calls])
    program = binary(("main", 0x2000, SLEDS), pie=False)
    first = binary(("one", 0x2000, SLEDS), name="libone.so")
    second = binary(("zero", 0x2000, SLEDS), ("two", 0x3000, SLEDS), name="libtwo.so")
    trace = load(log, symbols=[first, program, second])
    assert called(trace) == ["main", "one", "two"]
    libs = [trace.strings[int(trace.libs["name"][lib])] for lib in trace.frames["lib"]]
    assert libs == ["app", "libone.so", "libtwo.so"]
    categories = [trace.strings[int(trace.categories["name"][c])] for c in trace.frames["category"]]
    assert categories[1:] == ["libone.so", "libtwo.so"]


def test_an_object_that_is_not_given(load: Load, binary: Write) -> None:
    log = Fdr(frequency=NS)
    calls = [log.enter(i, 1) + log.exit(i, 1) for i in (1, 1 << 24 | 7)]
    log.buffer(1, 1, records=[log.new_cpu(0, START), *calls])
    trace = load(log, symbols=binary(pie=False))
    assert called(trace) == ["main", "function 7 of object 1"]
    assert report_of(trace)["no_symbols"] == 1


def test_two_executables(load: Load, binary: Write) -> None:
    error = refused(load, LOG, binary(pie=False), binary(pie=False, name="other"))
    assert "second executable" in str(error)
    assert "give --symbols the folder" in str(error)


def test_real_shared_object() -> None:
    trace = loaded("fdr-c22-dso.xray")
    libs = {
        trace.func_name(int(func)): trace.strings[int(trace.libs["name"][lib])]
        for func, lib in zip(trace.frames["func"], trace.frames["lib"], strict=True)
    }
    assert libs["main"].startswith("dso_main")
    assert sorted(libs.values()).count("libdso.so") == 3
    assert not kinds(trace.report) & {"no_symbols", "function_without_name"}


# ---------------------------------------------------------------- lines


@pytest.mark.parametrize(
    "log", ["fdr-c19-pie-pool.xray", "fdr-c14-nopie-pool.xray", "fdr-c22-dso.xray", "fdr-c19-pie-events.xray"]
)
def test_the_first_line_that_is_not_0(log: str) -> None:
    """The sled at a function's start has line 0; llvm-xray prints `pool.cpp:0:0`."""
    trace = loaded(log)
    sources = [trace.strings[int(p)] for p in trace.sources["path"][trace.funcs["source"]]]
    assert all(line > 0 for line in trace.funcs["line"].tolist())
    assert all(source.endswith((".cpp", ".h", ".hpp")) or "/c++/" in source for source in sources)


def test_lines_are_those_of_the_program() -> None:
    """Each function's line in its own source text names it, or the line after does."""
    trace = loaded("fdr-c19-pie-events.xray")
    text = path_of("events.cpp").read_text().splitlines()
    for func in range(len(trace.funcs)):
        name = trace.func_name(func).split("(")[0].split("::")[-1]
        line = int(trace.funcs["line"][func])
        if trace.strings[int(trace.sources["path"][trace.funcs["source"][func]])].endswith("events.cpp"):
            assert any(name in part for part in text[line - 3 : line + 1]), (name, line)


def test_compressed_binaries(tmp_path: Path) -> None:
    """As the fixtures are."""
    import zstandard
    from recordings import content

    log = path_of("fdr-c19-pie-recurse.xray")
    packed = tmp_path / "recurse-pie.zst"
    packed.write_bytes(zstandard.compress(content("19/recurse-pie")))
    plain = load_checked(log, symbols=binaries_of("fdr-c19-pie-recurse.xray"))
    trace = load_checked(log, symbols=packed)
    assert called(trace) == called(plain)
    assert trace.processes[0].name == "recurse-pie"
