"""Tells the user's own functions from those of runtimes, standard libraries and the system, so that a page begins where
the user's code begins, and a cost is said of the function that a reader can change."""

from __future__ import annotations

import re
import sys

import numpy as np

from traceferry.analysis.totals.idle import is_idle, is_interrupt
from traceferry.analysis.totals.nameless import GENERATED
from traceferry.common.patterns import compiled_later
from traceferry.model import Array, Trace
from traceferry.model.categories import (
    GENERATED_COLORS,
    KERNEL,
    LANGUAGE_COLORS,
    NATIVE,
    OFF_CPU_COLORS,
    OTHER,
    RUNTIME,
    SYSTEM,
    category_of_file,
)
from traceferry.model.categories import IDLE as IDLE_CATEGORY
from traceferry.symbolication.short_names import short_name

# Whose code a function is. PASSING: of a runtime that executes or calls the function above it, as an interpreter's loop
# and trampolines do: what it has counts as that function's. NAMELESS: stands for code that nobody could name or read.
# IN_MEMORY: code of no file, of which nothing is known but that something compiled it. OF_KERNEL: outside, too;
# KERNEL_ENTRY: the way from a system call to what it does; INTERRUPT: where the kernel took the processor without
# having been called. IDLE: what it executes, and a runtime's recorder says, where there is nothing to do.
OUTSIDE, OWN, PASSING, NAMELESS, IN_MEMORY, OF_KERNEL, KERNEL_ENTRY, INTERRUPT, IDLE = range(9)

# Objects and roots are what is allocated and what holds it: no code. Generated code is a runtime's but for functions,
# which are of a program that a compiler without a language of its own made, as LLVM's.
_NOT_OWN = {*GENERATED_COLORS, KERNEL, OTHER, RUNTIME, SYSTEM, "Objects", "Roots"}
# Kinds of functions that a runtime generates for itself (the model's `funcs.kind`).
_MACHINERY = {"builtin", "stub", "trampoline", "inline cache"}
_CALLING = {"trampoline", "inline cache"}
# Also what a category cannot tell, since nothing is known of the code.
_NAMELESS = compiled_later(
    r"\[(?:unknown|native|no stack at the switch|no recorded (?:site|root)|several roots)\]"
    r"|\((?:truncated stack|contradictory unwind information|no unwind information.*|callers on another stack.*"
    r"|guessed: .*|program|root)\)",
    re.DOTALL,
)
# What executes and calls functions in runtimes: the loops of interpreters, and what stands between these and a callee.
_PASSING = compiled_later(
    r"""
    _PyEval_EvalFrameDefault(?:\.\w+)* | _?PyEval_\w+ | \w*[vV]ectorcall\w*(?:\.\w+)* | cfunction_\w+ | slot_tp_call
    | _?PyObject_(?:Call|MakeTpCall)\w* | _?PyFunction_\w+ | _?PyStack_\w+ | function_code_fastcall
    | (?:do_)?call_(?:core|function|trampoline) | py_trampoline_evaluator | trampoline_\w*
    | execute_ex | zend_execute(?:_scripts)? | ZEND_\w+_HANDLER
    | vm_exec\w*(?:\.\w+)* | rb_vm_exec | vm_call_\w+ | vm_sendish | vm_cfunc\w*
    | rb_yield\w* | vm_yield\w* | invoke_\w*block\w*
    | (?:Builtins_)?(?:\w+Handler | Construct\w* | Call_?\w* | CEntry\w* | JSEntry\w* | JSConstruct\w*
        | JSBuiltinsConstructStub
        | \w*Trampoline\w* | CompileLazy\w* | BaselineOutOfLinePrologue | (?:Keyed|Clone|Load|Store|Define)\w*IC\w*
        | RecordWrite\w* | \w+_(?:Baseline|WithFeedback))
    | v8::internal::(?:Execution::\w+ | .*::Invoke\w*)(?:\(.*)?
    | JavaCalls::\w+(?:\(.*)? | (?:call_stub|Interpreter|StubRoutines.*|I2C/C2I\ adapters.*|vtable\ stub|itable\ stub)
    | (?:DefaultCall|SlowPathCall|VirtualCall|UnlinkedCall|PolymorphicCall|arityFixup|JSToWasm|llint_\w+|vmEntry\w*)
    | js::(?:RunScript|Interpret\w*|InternalCall\w*)(?:\(.*)? | process_main | luaV_execute | lj_(?:BC|vm)_\w+
    | Perl_runops_\w+ | Perl_pp_\w+ | mono_jit_runtime_invoke | interp_exec_method
    | node::\w*(?:Start|Main|Run)\w*(?:\(.*)? | Py_(?:Bytes|Run)?Main | pymain_\w+ | (?:Thread)?JavaMain
    """,
    re.VERBOSE | re.DOTALL,
)
# Functions of languages have names of their own, as _clone.
_SCRIPTS = LANGUAGE_COLORS.keys() - {"WebAssembly"}
_START = compiled_later(
    r"_start|_dl_start\w*|(?:__)?libc_start\w+|generic_start_main|start_thread|__?clone3?|_GLOBAL__sub_\w+"
)
# Wrappers of Mono that are called for what they call, whose names say what that is, are no mere passage.
_TELLING_WRAPPER = compiled_later(
    r"\(wrapper managed-to-native\) (?!object:__icall_wrapper_(?!mono_monitor_)).*", re.DOTALL
)
_KERNEL_ENTRY = compiled_later(
    r"entry_SYS\w+|entry_INT80\w*|do_syscall_\w+|do_int80\w*|do_fast_syscall_32|x64_sys_call|ia32_sys_call"
    r"|el0t_(?:64|32)_sync\w*|el0_svc\w*|do_el0_svc\w*|invoke_syscall\w*|ret_fast_syscall"
)
# As recorders of V8 say where its own collector ran.
_OF_RUNTIME = "(garbage collector)"
# Where standard libraries of scripts and of compiled languages lie: Node's, Deno's and Bun's; CPython's frozen and
# standard modules; Ruby's, PHP's and Julia's; the headers and sources of C++, Rust, Go, Nim, D, Ada, Crystal, Zig and
# Mojo; headers that packages of the system install, and of CPython, Ruby and mypyc in code that is compiled against
# these.
_LIBRARY_SOURCE = compiled_later(
    r"(?:node|bun|ext|deno|internal|native|dart):|internal/[\w/-]+\.js|<frozen |<internal:"
    r"|.*/lib/(?:python|pypy)[\d.]+/(?!(?:site|dist)-packages/)"
    r"|.*/lib/ruby/(?:\d[\d.]*|vendor_ruby)/|.*/share/julia/(?:base|stdlib)/|@?Base/"
    r"|.*/include/(?:c\+\+|[\w-]+/c\+\+)/|.*/lib/gcc/.*/include/|/usr/(?:local/)?include/"
    r"|/(?:nix|gnu)/store/.*/include/"
    r"|.*/include/(?:python|pypy|ruby-)[\d.]+\w*/|.*/mypyc/lib-rt/"
    r"|/rustc/[0-9a-f]+/|.*/rustlib/src/rust/"
    r"|.*/nim(?:-[\d.]+)?/lib/|.*/include/(?:d|dmd|ldc)/|.*/lib/gcc/.*/adainclude/|.*/(?:lib|share)/crystal/(?:lib|src)/"
    r"|.*/zig(?:lang)?(?:-[\w.+-]+)?/lib/(?:std|compiler_rt)/|.*/lib/zig/(?:std|compiler_rt)/|Mojo/stdlib/"
)
# py-spy and others name modules without their folders. What these names stand for a program rarely has itself: it would
# hide the standard module.
_STANDARD_MODULES = sys.stdlib_module_names - {"code", "cmd", "site", "test", "this", "profile", "platform", "types"}
# Packages of Go's standard library, by the first part of their paths; those of a program have a dot there,
# or are `main`.
_GO_PACKAGE = compiled_later(
    r"(?:archive|bufio|bytes|cmp|compress|container|context|crypto|database|debug|embed|encoding|errors|expvar|flag|fmt"
    r"|hash|html|image|index|internal|io|iter|log|maps|math|mime|net|os|path|plugin|reflect|regexp|runtime|slices|sort"
    r"|strconv|strings|structs|sync|syscall|testing|text|time|unicode|unique|unsafe|vendor|weak|type)"
    r"[./:].*|go[/:].*|(?:runtime|memeqbody|cmpbody|indexbytebody|aeshashbody|gcWriteBarrier|gogo|callRet)\w*"
)
_GO_SOURCE = compiled_later(r".*\.go|.*_\w+\.s|.*/(?:runtime|internal)/.*\.s")
_DOTNET = compiled_later(
    r"(?:\w+ )*\[?(?:System|Mono|Microsoft|Internal|Interop)[.\]/].*|(?:string|object|int|char|byte|long|bool):.*"
)
# Standard libraries whose code is compiled into the user's or has no file, and what runs before `main`, by category.
_LIBRARY_FUNCTION = {
    NATIVE: compiled_later(
        r"__libc_\w+|__cxa_\w+|_Unwind_\w+"
        # Of C, in programs that are linked statically.
        r"|_int_(?:malloc|free|realloc)|(?:malloc|calloc|realloc|free|cfree)(?:_consolidate)?"
        r"|operator (?:new|delete)\b.*"
        r"|compiler_rt\.\w.*"
        r"|(?:__)?(?:mem(?:cpy|move|set|cmp|chr)|str(?:len|cmp|ncmp|cpy|ncpy|chr|rchr|cat|nlen))(?:_\w+)?"
        r"|__(?:mempcpy|memmove|memset|memcmp|strlen|strcmp)\w*"
        r"|<?(?:std(?:\[[0-9a-f]+\])?|__gnu_cxx|__cxxabiv1|__rustc?)::.*|__rust_\w+|rust_begin_unwind"
        # Of Python that Cython, mypyc or Nuitka compiled.
        r"|__Pyx_\w+(?:\.\w+)*|__pyx_(?:tp|pymod)_.+|CPy(?!Def_|Py_)[A-Z]\w*(?:\.\w+)*|Nuitka_\w+(?:\.\w+)*"
        # OCaml, GHC.
        r"|Stdlib\w*\.\w+.*|caml_\w+|camlStdlib\w*|(?:base|ghc-prim|ghc-bignum|containers|rts)-[\d.]+:.*|stg_\w+"
    ),
    # And the runtimes of other languages on the JVM: but for what Nashorn, Jython and Rhino compile scripts to.
    "Java": compiled_later(
        r"(?:\w+ )*(?:java|javax|jdk(?!\.nashorn\.internal\.scripts)|sun|com\.sun|kotlin|kotlinx|scala|dotty|clojure"
        r"|groovy|groovyjarjar\w+|org\.(?:codehaus|apache)\.groovy|org\.(?:jruby|joni|jcodings)|com\.headius"
        r"|org\.python(?!\.pycode\.)|org\.mozilla\.javascript(?!\.gen\.)|org\.openjdk\.nashorn(?!\.internal\.scripts)"
        r"|org\.(?:graalvm|truffleruby)|com\.oracle\.(?:truffle|graal|svm))[./].*"
    ),
    # Numba's, which it compiles with the user's.
    "Python": compiled_later(r"numba\.\w.*"),
    "Managed": _DOTNET,
    ".NET": _DOTNET,
    # Modules of OTP's erts, kernel and stdlib: those of a program may begin alike, as user_cache and codec.
    "Erlang": compiled_later(
        r"(?:erlang|init|prim_\w+|erts_\w+|erts|atomics|counters|persistent_term|zlib|socket_registry"
        r"|application(?:_controller|_master|_starter)?|auth|code(?:_server)?|disk_log(?:_1|_server|_sup)?"
        r"|erl_(?:abstract_code|anno|bits|boot_server|compile(?:_server)?|ddll|distribution|epmd|error|\w+_errors|eval"
        r"|expand_records|features|init|internal|lint|parse|posix_msg|pp|prim_loader|reply|scan|signal_handler|tar|tracer)"
        r"|erpc|error_handler|error_logger(?:_file_h|_tty_h)?|file(?:_io_server|_server|_sorter|lib|name)?"
        r"|gen(?:_event|_fsm|_sctp|_server|_statem|_(?:tcp|udp)(?:_socket)?)?|global(?:_group|_search)?"
        r"|group(?:_history)?|heart|inet6?(?:_\w+)?"
        r"|logger(?:_(?:backend|config|disk_log_h|filters|formatter|h_common|handler_watcher|olp|proxy|server|simple_h"
        r"|std_h|sup))?|net(?:_adm|_kernel)?|os|pg|ram_file|raw_file_io(?:_\w+)?|rpc|seq_trace|socket|user(?:_drv|_sup)?"
        r"|array|base64|beam_lib|binary|c|calendar|dets(?:_server|_sup|_utils|_v\d+)?|dict|digraph(?:_utils)?"
        r"|edlin(?:_context|_expand|_key|_type_suggestion)?|epp|escript|ets|gb_sets|gb_trees"
        r"|io(?:_lib(?:_format|_fread|_pretty)?)?|lists|maps|math|ms_transform|orddict|ordsets|otp_internal|pool|proc_lib"
        r"|proplists|qlc|queue|rand|random|re|sets|shell(?:_default|_docs)?|sofs|string|supervisor(?:_bridge)?|sys|timer"
        r"|unicode(?:_util)?|uri_string|win32reg|zip"
        r"|'?Elixir\.(?:Access|Agent|Atom|Base|Bitwise|Code|Date(?:Time)?|Enum(?:erable)?|Exception|File|Float|Function"
        r"|GenServer|IO|Inspect|Integer|Kernel|Keyword|List|Map|MapSet|Module|Process|Range|Regex|Registry|Stream|String"
        r"|StringIO|Supervisor|System|Task|Tuple|URI|Version)\b[\w.]*'?):.*"
    ),
    # Of what YJIT of Ruby 3.3 names, by the receiver's class, what Ruby's own kernel.rb has; a script's own are
    # Object's, too.
    "Ruby": compiled_later(
        r"(?:Kernel|Integer|Array|Hash|String|Enumerable|BasicObject)#.*"
        r"|Object#(?:class|clone|frozen\?|tap|then|yield_self|loop|Float|Integer)"
    ),
    "Julia": compiled_later(r"(?:Base|Core)(?:\..*)?"),
}
# Rust's, whose functions have no arguments behind their names: namespaces of C++ may be called so.
_RUST_LIBRARY = compiled_later(r"<?(?:core|alloc|hashbrown|compiler_builtins|std_detect)(?:\[[0-9a-f]+\])?::.*")


class OwnCode:
    """Tells whose code the rows of a trace are, each found once."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._known: dict[tuple[int, ...], int] = {}

    def of(self, rows: Array) -> Array:
        """Returns what `whose_code` returns."""
        wanted = list(map(tuple, rows.tolist()))
        new = list(dict.fromkeys(row for row in wanted if row not in self._known))
        if new:
            self._known.update(zip(new, whose_code(self._trace, np.array(new, np.int32)).tolist(), strict=True))
        return np.array([self._known[row] for row in wanted], np.int8)


def whose_code(trace: Trace, rows: Array) -> Array:
    """Returns int8: whose code each row is, as the constants above. rows: int32 [n, 4], func, category, tier and
    whether it is inlined, as `Keys.rows`. Without a category, as in recordings of calls, functions are the user's
    own."""
    strings, funcs, paths = trace.strings, trace.funcs, trace.sources["path"]
    categories = [*(strings[n] for n in trace.categories["name"].tolist()), ""]
    ran = _where_it_ran(trace, rows, categories)
    columns = (funcs[key][rows[:, 0]].tolist() for key in ("name", "kind", "source"))
    return np.array(
        [
            _whose(
                strings[name], strings[kind] if kind >= 0 else "", strings[int(paths[source])] if source >= 0 else "",
                category,
            )
            for name, kind, source, category in zip(*columns, ran, strict=True)
        ],
        np.int8,
    )  # fmt: skip


def _where_it_ran(trace: Trace, rows: Array, categories: list[str]) -> list[str]:
    """Returns the name of each row's category; of a frame whose category tells why its thread was off the processors,
    that of the function elsewhere, or of its library."""
    found = [categories[row] for row in rows[:, 1].tolist()]
    waits = {nth: func for nth, func in enumerate(rows[:, 0].tolist()) if found[nth] in OFF_CPU_COLORS}
    if not waits:
        return found
    frames, strings = trace.frames, trace.strings
    mine = np.flatnonzero(np.isin(frames["func"], list(waits.values())))
    of_func: dict[int, str] = {}
    for func, row, lib in zip(*(frames[key][mine].tolist() for key in ("func", "category", "lib")), strict=True):
        category = categories[row]
        if category in OFF_CPU_COLORS or not category:
            library = strings[int(trace.libs["name"][lib])] if lib >= 0 else ""
            of_func.setdefault(func, _category_of_library(library))
        else:
            of_func[func] = category
    return [of_func.get(waits[nth], category) if nth in waits else category for nth, category in enumerate(found)]


def _category_of_library(name: str) -> str:
    return "" if not name else KERNEL if name.startswith(("[kernel", "[guest")) else category_of_file(name)


def _whose(name: str, kind: str, path: str, category: str) -> int:
    if category == IDLE_CATEGORY or is_idle(name, category == KERNEL):
        return IDLE
    if _NAMELESS.fullmatch(name):
        return NAMELESS
    if name.startswith(GENERATED):
        return IN_MEMORY
    if category == KERNEL:
        return INTERRUPT if is_interrupt(name) else KERNEL_ENTRY if _KERNEL_ENTRY.fullmatch(name) else OF_KERNEL
    if category == "Wrapper":
        return OUTSIDE if _TELLING_WRAPPER.fullmatch(name) else PASSING
    if kind in _CALLING or (category not in _SCRIPTS and _START.fullmatch(name)):
        return PASSING
    if name == _OF_RUNTIME:
        return OUTSIDE
    if category == "JIT" and kind == "function":
        return OWN
    # V8 inside of a library of any name.
    is_v8 = category == NATIVE and name.startswith(("Builtins_", "v8::"))
    if kind in _MACHINERY or category in _NOT_OWN or is_v8:
        return PASSING if category != SYSTEM and _PASSING.fullmatch(name) else OUTSIDE
    return OUTSIDE if _is_of_library(name, path, category) else OWN


def _is_of_library(name: str, path: str, category: str) -> bool:
    if path and (_LIBRARY_SOURCE.match(path) or (category == "Python" and _is_standard_module(path))):
        return True
    if category == "Ruby" and path and not path.startswith("<"):
        return False  # a program may add methods to any class
    if category == NATIVE:
        is_rust = not path or path.endswith(".rs")
        if is_rust and _RUST_LIBRARY.fullmatch(name) and short_name(name) == name:
            return True
        name = short_name(name)  # names of templates begin with the type that they return
        if _GO_SOURCE.fullmatch(path) and _GO_PACKAGE.fullmatch(name):
            return True
    of_library = _LIBRARY_FUNCTION.get(category)
    return of_library is not None and of_library.fullmatch(name) is not None


def _is_standard_module(path: str) -> bool:
    """Returns whether a path is of a standard module, without folders above its package: json/encoder.py, queue.py."""
    package, _, rest = path.partition("/")
    return (package if rest else package.removesuffix(".py")) in _STANDARD_MODULES
