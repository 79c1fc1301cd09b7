"""Runtimes, by the files that execute their programs: what lets perf see the functions of those."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import PurePath
from typing import NamedTuple

from traceferry.common.issue_kinds import STUBS_APART
from traceferry.common.patterns import compiled_later
from traceferry.common.recorder import CALL_GRAPH, DWARF, Command

VERSION = compiled_later(r"\d+\.\d+")
CLOCK: dict[str, str | None] = {"-k": "CLOCK_MONOTONIC"}
# What became of the names that a runtime was asked for, behind its title.
NO_LIST = (
    "was asked for names, and no file with them was found: in a container it is perf-PID.map in /tmp, or jit-PID.dump, "
    "by the number there, and of two programs with one number the last one's; copy it, and --symbols FILE takes it"
)
# With which V8 removes its jitdump as soon as it has made it; also in a variable, or among flags in one word.
DELETING = "--perf-prof-delete-file"
_FLAG = r"--perf[-_]prof[-_]delete[-_]file(?:=true)?(?![\w=-])"
_DELETING = compiled_later(rf"[ ,]{_FLAG}|{_FLAG}[ ,]?")
# What lets CPython compile something for each function.
CPYTHON_COMPILES = compiled_later(r"-X ?perf|PYTHONPERFSUPPORT|PYTHON_PERF_JIT_SUPPORT")


class Runtime(NamedTuple):
    """title: for people; language: of its functions; files: a regular expression of its programs and libraries;
    options: what its program is given behind its own name; environment: variables to set; call_graph: how its stacks
    are recorded whole, where it was built as distributions do; program: of the first version that has these options;
    instead_of: a regular expression of options, each with its value, that these replace, since the last one counts;
    asked: a regular expression of what else asks for names; unwinding: options with which copied stacks go on through
    what the runtime compiled, where frame pointers do not suffice; behind: a word behind its name that the options
    stand behind; hindrance: what keeps it from compiling, as people call it, a regular expression of its files, and the
    variable that lets it; command: what people type to start it, by default its title in small letters; listing: a
    command that lets it name what it has compiled while it runs, PID for its process, and of which versions; inherited:
    a variable that hands it the options where something else starts it, as a script; interpreted: the option that keeps
    the functions that it interprets apart, "" where none does; interprets: a regular expression of options with which
    it compiles nothing; ends_copies: whether copied stacks end in what it compiled, which has no unwind information."""

    title: str
    language: str
    files: str
    options: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()
    call_graph: str = "fp"
    program: str = ""
    instead_of: str = ""
    asked: str = ""
    unwinding: tuple[str, ...] = ()
    behind: str = ""
    hindrance: tuple[str, str, str] = ("", "", "")
    command: str = ""
    listing: tuple[str, str] = ("", "")
    inherited: str = ""
    interpreted: str = ""
    interprets: str = ""
    ends_copies: bool = False

    def hindered_by(self, files: Iterable[str]) -> str:
        """Returns what keeps it from compiling, by the files without folders that were loaded; "" is nothing."""
        name, pattern, _ = self.hindrance
        return name if pattern and any(re.fullmatch(pattern, file) for file in files) else ""


# The options are those of README.md, each with a recording among the fixtures or a test of its names.
RUNTIMES = (
    Runtime(
        "Node.js", "JavaScript", r"node(?:js)?|libnode\.so\S*", ("--perf-prof", "--interpreted-frames-native-stack"),
        asked="--perf-(basic-)?prof", unwinding=("--perf-prof", "--perf-prof-unwinding-info"), command="node",
        inherited="NODE_OPTIONS=--perf-prof --interpreted-frames-native-stack",
        interpreted="--interpreted-frames-native-stack", interprets="--jitless",
    ),
    Runtime(
        "Bun", "JavaScript", r"bun(?:\.exe)?",
        environment=("BUN_JSC_useSourceCodeDump=1", "BUN_JSC_useJITDump=1", "BUN_JSC_jitDumpDirectory=."),
    ),
    # V8's flags are after `run`, or here.
    Runtime(
        "Deno", "JavaScript", r"deno", environment=("DENO_V8_FLAGS=--perf-prof,--interpreted-frames-native-stack",),
        asked="--perf-(basic-)?prof", interpreted="--interpreted-frames-native-stack",
    ),
    Runtime(
        "Chromium", "JavaScript", r"chrom(?:e|ium)(?:-\w+)*|google-chrome\S*|chrome-headless-shell|headless_shell",
        ("--no-sandbox", "--js-flags=--perf-prof --interpreted-frames-native-stack"), asked="--perf-(basic-)?prof",
        interpreted="--interpreted-frames-native-stack",
    ),
    # docs/examples-profiling-perf.md of its repository.
    Runtime("wasmtime", "WebAssembly", r"wasmtime", ("--profile=jitdump",), asked="--profile", behind="run"),
    Runtime(
        "CPython", "Python", r"(?:lib)?python[\d.]*\S*", ("-X", "perf_jit"), call_graph="dwarf,65528",
        program="python3.13",
        instead_of="-X ?perf", inherited="PYTHON_PERF_JIT_SUPPORT=1",
    ),
    Runtime(
        "PHP", "PHP", r"php[\d.]*|php-(?:fpm|cgi)[\d.]*|libphp[\d.]*\.so",
        ("-d", "opcache.enable_cli=1", "-d", "opcache.jit=tracing", "-d", "opcache.jit_buffer_size=64M",
         "-d", "opcache.jit_debug=32"),
        call_graph="dwarf,16384", asked=r"opcache\.jit_debug",
        instead_of=r"-d ?opcache\.(?:enable_cli=(?:0|off)|jit=(?:0|off|disable)|jit_buffer_size=0)",
        hindrance=("Xdebug", r"xdebug\.so", "XDEBUG_MODE=off"), ends_copies=True,
    ),
    Runtime(
        "the JVM", "Java", r"java|libjvm\.so",
        ("-XX:+PreserveFramePointer", "-XX:+UnlockDiagnosticVMOptions", "-XX:+DumpPerfMapAtExit"),
        asked=r"(?=.*\+PreserveFramePointer)(?=.*(?:\+DumpPerfMapAtExit|-agentpath:\S*perf))",
        instead_of="-XX:-(?:PreserveFramePointer|UnlockDiagnosticVMOptions|DumpPerfMapAtExit)", command="java",
        listing=("jcmd PID Compiler.perfmap", "JDK 17 or newer"),
        inherited="JAVA_TOOL_OPTIONS=-XX:+PreserveFramePointer -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit",
        interprets="-Xint|-Djava.compiler=NONE",
    ),
    Runtime(
        "Erlang", "Erlang", r"beam(?:\.\w+)*|erl(?:exec)?", ("+JPperf", "true"), instead_of=r"\+JPperf \S+",
        command="erl", inherited="ERL_FLAGS=+JPperf true",
    ),
    Runtime(
        ".NET", ".NET", r"dotnet|libcoreclr\.so|libclrjit\.so", environment=("DOTNET_PerfMapEnabled=1", STUBS_APART),
        asked="PerfMapEnabled", command="dotnet",
    ),
    # What it compiles keeps frame pointers if it is told to; its own code is unwound.
    Runtime(
        "Mono", "Managed", r"mono(?:-sgen|-boehm)?|libmono\S*\.so\S*", ("--jitmap",),
        environment=("MONO_DEBUG=disable_omit_fp",), call_graph=DWARF,
        inherited="MONO_ENV_OPTIONS=--jitmap",
    ),
    Runtime(
        "Ruby", "Ruby", r"ruby[\d.]*|libruby\S*\.so[\d.]*", ("--yjit", "--yjit-perf"), program="ruby3.3",
        instead_of="--(?:yjit|jit|disable[=-]yjit)", asked="--[yz]jit-perf", inherited="RUBYOPT=--yjit --yjit-perf",
    ),
    Runtime("Julia", "Julia", r"julia|libjulia\S*\.so[\d.]*", environment=("ENABLE_JITPROFILING=1",)),
    Runtime("Dart", "Dart", r"dart(?:aotruntime|vm)?", ("--generate-perf-events-symbols",)),
)  # fmt: skip


class Compiler(NamedTuple):
    """A library that compiles code in the memory of any program. title: for people; files: a regular expression of its
    names; environment: variables with which it tells perf the names; otherwise: what gives names where none do, a part
    of a sentence; executes: whether it executes a program, so that nearly all stacks go through what it compiled, and
    that has neither frame pointers nor unwind information."""

    title: str
    files: str
    environment: tuple[str, ...] = ()
    otherwise: str = ""
    executes: bool = False


_NOTHING = "it tells perf nothing of its functions"
COMPILERS = (
    # Numba's, and that of others.
    Compiler(
        "llvmlite", r"libllvmlite\.so",
        otherwise="it tells perf nothing of its functions; of Numba's, docs/record/numba.md writes the names",
    ),
    Compiler("Unicorn", r"libunicorn\.so\S*", otherwise="what it translates has no names"),
    Compiler(
        "wasmtime", r"_?libwasmtime\S*\.so\S*",
        otherwise='it writes the names if the program sets its profiler, as config.profiler = "jitdump" in Python',
    ),
    # V8 inside of Python.
    Compiler(
        "MiniRacer", r"libmini_racer\S*\.so\S*",
        otherwise='it writes the names if the program begins with init_mini_racer(flags=["--perf-prof", '
        '"--interpreted-frames-native-stack"])',
    ),
    Compiler("Cling", r"lib(?:cppyy_backend|Cling|CppInterOp)\S*\.so\S*", ("CLING_PROFILE=1",)),
    # Inside of PyTorch and TensorFlow, too.
    Compiler("oneDNN", r"libdnnl\.so\S*|libtorch_cpu\.so|libtensorflow\w*\.so\S*", ("ONEDNN_JIT_PROFILE=2",)),
    Compiler("XLA", r"libjax_common\.so|xla_extension\.so", otherwise=_NOTHING),
    Compiler(
        "QEMU", r"qemu-\S+", otherwise="QEMU 8 and newer write the names with -perfmap before the program",
        executes=True,
    ),
    # Runtimes, of which nothing is known that names their functions.
    Compiler(
        "PyPy", r"(?:lib)?pypy[\d.]*\S*", otherwise=f"{_NOTHING}; CPython 3.13 does with -X perf_jit", executes=True
    ),
    Compiler("Poly/ML", r"poly|libpolyml\.so\S*", otherwise=_NOTHING, executes=True),
    Compiler("Racket", r"racket\S*|libracketcs\S*", otherwise=_NOTHING, executes=True),
    Compiler("Chez Scheme", r"chez-?scheme\S*|petite\S*", otherwise=_NOTHING, executes=True),
    Compiler("Guile", r"guile\S*|libguile\S*\.so\S*", otherwise=_NOTHING, executes=True),
    Compiler(
        "LuaJIT", r"luajit\S*|libluajit\S*\.so\S*",
        otherwise="it tells perf the names of its traces if it was built with make XCFLAGS=-DLUAJIT_USE_PERFTOOLS",
    ),
    # In many programs: behind what compiles more.
    Compiler("PCRE2", r"libpcre2-\d+\.so\S*", otherwise="the patterns that it compiles have no names"),
)  # fmt: skip


def has_makers(files: Iterable[str]) -> bool:
    """Whether one of these files compiles code by itself, as CPython does not."""
    known = list(files)
    runtimes = (runtime_of(file) for file in known)
    return compiler_of(known) is not None or any(one is not None and one.language != "Python" for one in runtimes)


def compiler_of(files: Iterable[str]) -> Compiler | None:
    """Returns the first of the compilers that one of these files without folders is of."""
    known = list(files)
    return next((one for one in COMPILERS if any(re.fullmatch(one.files, file) for file in known)), None)


def is_asked(command: Command | None, compiler: Compiler) -> bool:
    """Whether the command has what lets a compiler tell the names."""
    if command is None or not compiler.environment:
        return False
    return set(compiler.environment) <= set(command.program)


def with_names_of(command: Command, compiler: Compiler) -> Command | None:
    """Returns the command with what lets a compiler tell the names; None where nothing does, or it runs no program."""
    return with_variables(command, compiler.environment) if command.program and compiler.environment else None


def with_variables(command: Command, variables: Sequence[str]) -> Command:
    """Returns the command whose program gets these variables, NAME=VALUE, in front of its own."""
    words = command.program
    return command.running(("env", *variables, *(words[1:] if words[0] == "env" else words)))


def runtime_of(file: str) -> Runtime | None:
    """Returns the runtime that a file without folders belongs to."""
    return next((one for one in RUNTIMES if re.fullmatch(one.files, file)), None)


def naming(command: Command, runtime: Runtime, file: str, loaded: Iterable[str] = ()) -> Command | None:
    """Returns the command with what names the runtime's functions; None where its program is not in the command, or has
    that already, or nothing names them. file: the runtime's, of which the name may tell its version; loaded: files."""
    words, at = command.program, _place(command, runtime)
    if at is None or not (runtime.options or runtime.environment):
        return None
    environment = _environment(runtime, loaded)
    is_asked = bool(runtime.asked and re.search(runtime.asked, " ".join(words)))
    if (is_asked or set(runtime.options) <= set(words)) and set(environment) <= set(words):
        return None
    if is_asked and environment == runtime.environment:
        return None
    rest = _without(_without(words[at + 1 :], runtime.instead_of), runtime.interprets)
    name = words[at] if _has_options(file, runtime.program) else runtime.program
    options = [word for unit in _units(runtime.options) if not _holds(rest, unit) for word in unit]
    first = rest[:1] if rest[:1] == (runtime.behind,) else ()
    again = with_graph(command, runtime).running([*words[:at], name, *first, *options, *rest[len(first) :]])
    return with_variables(again, environment) if environment else again


def keeping_names(command: Command) -> Command:
    """Returns the command without the option with which a runtime deletes the names that it was asked for."""
    return command.running([kept for word in command.program if (kept := _DELETING.sub("", word)) or not word])


def interpreted_only(command: Command, runtime: Runtime) -> str:
    """Returns the option of a command with which a runtime compiles nothing, also in what a shell in it reads; "" is
    none."""
    option = rf"(?<![^\s='\"])(?:{runtime.interprets})(?![^\s'\"])"
    found = re.search(option, " ".join(command.program)) if runtime.interprets else None
    return found[0] if found is not None else ""


def compiling(command: Command, runtime: Runtime) -> Command:
    """Returns the command in which the runtime compiles functions, as far as its own options keep it from that, and
    names those that it interprets."""
    again = command.running(_without(command.program, runtime.interprets))
    return again if again.program == command.program else naming_interpreted(again, runtime)


def naming_interpreted(command: Command, runtime: Runtime) -> Command:
    """Returns the command with the option of a runtime's program that keeps the functions that it interprets apart."""
    words, at = command.program, _place(command, runtime)
    if at is None or runtime.interpreted not in runtime.options or runtime.interpreted in words:
        return command
    return command.running((*words[: at + 1], runtime.interpreted, *words[at + 1 :]))


def inheriting(command: Command, runtime: Runtime, file: str) -> Command | None:
    """Returns the command with variables that name the functions of a runtime which something in it starts, as a
    script; None where none do, or it records what runs already. file: as of `naming`."""
    variables = [*runtime.environment, *([runtime.inherited] if runtime.inherited else [])]
    has_all = bool(variables) and (bool(runtime.inherited) or not runtime.options)
    if not command.program or command.is_attached or not has_all or not _has_options(file, runtime.program):
        return None
    words = command.program[1:] if command.program[0] == "env" else command.program
    name = runtime.inherited.partition("=")[0]
    # It may have options of the user's own: the last of two variables, and of two values of an option, counts.
    own = next((word for word in words if name and word.startswith(f"{name}=")), None)
    if own is not None:
        variables[-1] = f"{name}={own.removeprefix(f'{name}=')} {runtime.inherited.removeprefix(f'{name}=')}"
        words = tuple(word for word in words if word != own)
    return with_variables(with_graph(command, runtime).running(words), variables)


def is_told(command: Command, runtime: Runtime) -> bool:
    """Whether a command has what names the runtime's functions, also in what a shell in it reads."""
    text = " ".join(command.program)
    wanted = (*runtime.options, *runtime.environment)
    return bool(
        (runtime.asked and re.search(runtime.asked, text))
        or has_inherited(command, runtime)
        or (wanted and all(word in text for word in wanted))
    )


def has_inherited(command: Command, runtime: Runtime) -> bool:
    """Whether a command has variables that name the functions of a runtime in each process that it starts."""
    name, _, options = runtime.inherited.partition("=")
    if not name:
        return bool(runtime.environment) and not runtime.options and set(runtime.environment) <= set(command.program)
    return any(word.startswith(f"{name}=") and options in word for word in command.program)


def is_run_by(command: Command, runtime: Runtime) -> bool:
    """Whether the command starts the runtime's program itself, and does not record what runs already, or all."""
    return _place(command, runtime) is not None


def start(runtime: Runtime, loaded: Iterable[str] = ()) -> str:
    """Returns how the runtime is started so that it names its functions, as a shell takes it; "" where nothing names
    them."""
    environment = _environment(runtime, loaded)
    if not (runtime.options or environment):
        return ""
    words = [runtime.program or runtime.command or runtime.title.lower(), *([runtime.behind] if runtime.behind else [])]
    return shlex.join([*(["env", *environment] if environment else []), *words, *runtime.options])


def with_graph(command: Command, runtime: Runtime) -> Command:
    """Returns the command on the clock of what the runtime writes, with stacks that are whole in it."""
    graph = {"-g": None} if runtime.call_graph == "fp" else {CALL_GRAPH: runtime.call_graph}
    return command.with_options({**CLOCK, **graph})


def _environment(runtime: Runtime, loaded: Iterable[str]) -> tuple[str, ...]:
    return (*runtime.environment, *([runtime.hindrance[-1]] if runtime.hindered_by(loaded) else []))


def unwinding(command: Command, runtime: Runtime) -> Command | None:
    """Returns the command with copies of stacks that go on through what the runtime compiled; None where it cannot be
    told how, or has them already."""
    words, at = command.program, _place(command, runtime)
    missing = [option for option in runtime.unwinding if option not in words]
    if at is None or not runtime.unwinding or (not missing and (command.value(CALL_GRAPH) or "").startswith("dwarf")):
        return None
    program = [*words[: at + 1], *missing, *words[at + 1 :]]
    return command.with_options({**CLOCK, CALL_GRAPH: DWARF}).running(program)


def _units(options: Sequence[str]) -> list[tuple[str, ...]]:
    """Returns options with their values: ("-d", "a=1", "-v") as ("-d", "a=1") and ("-v",)."""
    starts = [nth for nth, word in enumerate(options) if word[0] in "-+"]
    return [tuple(options[start:end]) for start, end in pairwise([*starts, len(options)])]


def _holds(words: Sequence[str], unit: tuple[str, ...]) -> bool:
    return any(tuple(words[nth : nth + len(unit)]) == unit for nth in range(len(words)))


def _place(command: Command, runtime: Runtime) -> int | None:
    """Returns which word of what is recorded is the runtime's program."""
    words = enumerate(command.program)
    return next((nth for nth, word in words if re.fullmatch(runtime.files, PurePath(word).name)), None)


def _without(words: tuple[str, ...], options: str) -> tuple[str, ...]:
    """Returns the words without options, each of which is one word or, with its value, two. options: a regular
    expression of them."""
    kept: list[str] = []
    left = list(words) if options else []
    while left:
        n = next((n for n in (2, 1) if re.fullmatch(options, " ".join(left[:n]))), 0)
        kept += left[: 1 - min(n, 1)]
        left = left[max(n, 1) :]
    return tuple(kept) if options else words


def _has_options(file: str, first: str) -> bool:
    """Whether a version has what `first` was the first to have: as libpython3.11.so.1.0 and python3.13."""
    versions = [tuple(map(int, found[0].split("."))) for name in (file, first) if (found := VERSION.search(name))]
    return len(versions) < 2 or versions[0] >= versions[1]
