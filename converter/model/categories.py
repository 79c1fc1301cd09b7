"""The categories of frames: one table of names and colours, which the page and both viewers show.

Three things can be told apart at a glance: code of the user's, in a language of its own or native; the runtime that
executes it; and the system: its libraries and its kernel. Colours are the Firefox Profiler's names.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from traceferry.common.patterns import compiled_later

# The user's code.
LANGUAGE_COLORS = {
    "JavaScript": "yellow",
    "WebAssembly": "magenta",
    "Java": "yellow",
    "PHP": "lightblue",
    "Erlang": "lightred",
    "Python": "green",
    ".NET": "magenta",
    "Ruby": "lightred",
    "Lua": "lightblue",
    "Julia": "magenta",
    "Dart": "lightblue",
    "Managed": "yellow",
}
NATIVE, RUNTIME, SYSTEM, KERNEL, OTHER = "Native", "Runtime", "System library", "Kernel", "Other"
MACHINE_COLORS = {NATIVE: "blue", RUNTIME: "brown", SYSTEM: "darkgrey", KERNEL: "orange", OTHER: "grey"}
# Nothing was done; the Firefox Profiler takes a category of this name and colour for that.
IDLE, IDLE_COLOR = "Idle", "transparent"
# Code that a runtime generates for itself.
WRAPPER = "Wrapper"
GENERATED_COLORS = {"JIT": "purple", "RegExp": "red", WRAPPER: "lightblue"}
# Why a thread was off the processors.
BLOCKED, SLEEPING, DISK, PREEMPTION, RUNNABILITY = "Blocked", "Sleeping", "Disk", "Preempted", "Runnable"
OFF_CPU_COLORS = {
    BLOCKED: "red", SLEEPING: "lightblue", DISK: "purple", PREEMPTION: "green", RUNNABILITY: "lightred",
}  # fmt: skip
# Categories of what an access to memory has met begin with this.
MEMORY_LEVEL = "Memory: "
CATEGORY_COLORS = LANGUAGE_COLORS | MACHINE_COLORS | GENERATED_COLORS | OFF_CPU_COLORS | {IDLE: IDLE_COLOR}

# What the kernel executes on a processor without work, down to what halts it (kernel/sched/idle.c, drivers/cpuidle,
# arch/x86/kernel/process.c, arch/arm64/kernel/idle.c of Linux 6.12).
KERNEL_IDLE = compiled_later(
    r"cpu_startup_entry|do_idle|cpu_idle(?:_loop)?|cpuidle_(?:enter\w*|idle_call)|call_cpuidle\w*|default_(?:enter_)?idle\w*"
    r"|arch_cpu_idle|(?:pv_|xen_|hv_)?(?:native_)?safe_halt|acpi_(?:safe_halt|idle_\w+|processor_ffh_cstate_enter)"
    r"|(?:intel|mwait|poll|haltpoll_enter)_idle\w*(?:\.\w+)*|cpu_do_idle|psci_\w*idle\w*|psci_enter_\w+"
)
# What recorders of V8 say where no function of the program ran.
OF_V8 = {"(program)": NATIVE, "(garbage collector)": RUNTIME, "(idle)": IDLE}
# Files that execute programs of other languages, by their names without folders: interpreters, virtual machines, and
# the libraries that come with them.
_RUNTIMES = compiled_later(
    r"""
    lib(?:jvm|jli|java|jimage|nio|net|zip|verify|instrument|management|j9\w*|jvmcicompiler|graal\w*)\.so
    | libpython[\d.]+\w*\.so[\d.]* | python[\d.]*\w?
    | node(?:js)? | libnode\.so[\d.]* | bun(?:\.exe)? | deno | hermes | libhermes\.so | d8 | libv8\w*\.so
    | libmozjs\S*\.so[\d.]* | lib(?:javascriptcore|webkit)\S*\.so[\d.]* | pmjs
    | php[\d.]* | php-(?:fpm|cgi)[\d.]* | libphp[\d.]*\.so | opcache\.so
    | ruby[\d.]* | libruby\S*\.so[\d.]* | beam(?:\.\w+)*
    | dotnet | lib(?:coreclr|clrjit|clrgc|hostfxr|hostpolicy|mono\w*)\S*\.so[\d.]* | mono(?:-sgen|-boehm)?
    | libjulia\S*\.so[\d.]* | julia | lua(?:jit)?[\d.-]*\w* | liblua\S*\.so[\d.]* | perl[\d.]* | libperl\.so[\d.]*
    | dart(?:aotruntime|vm)? | libflutter\w*\.so | libart\w*\.so
    | _?lib(?:wasmtime|wasmer|wasmedge)\S*\.so[\d.]* | wasmtime | wasmer
    | pypy[\d.]*(?:-c)? | libpypy\S*\.so[\d.]* | swipl[\d.]* | libswipl\.so[\d.]* | libpolyml\.so[\d.]*
    | racket(?:cs|bc)? | libracketcs\S* | chezscheme\S* | guile(?:-[\d.]+)? | libguile-\S*\.so[\d.]* | sbcl | ecl
    | libecl\.so[\d.]* | libR(?:blas|lapack)?\.so | octave(?:-cli)?(?:-[\d.]+)? | lib(?:octave|octinterp)\.so[\d.]*
    | tclsh[\d.]* | libtcl[\d.]*\.so[\d.]* | qjs | qemu-[a-z]\w*
    """,
    re.VERBOSE,
)
# Such with names that other programs have as well.
_RUNTIMES_OF_SYSTEM = compiled_later(
    r"/usr/(?:local/)?bin/(?:poly|clisp|petite)|.*/R/bin/exec/R|.*/lib/clisp\S*/lisp\.run"
)
_SYSTEM_FOLDERS = (
    "/lib/",
    "/lib32/",
    "/lib64/",
    "/usr/lib/",
    "/usr/lib32/",
    "/usr/lib64/",
    "/usr/libexec/",
    "/nix/store/",
)
_VDSO = compiled_later(r"\[vdso\d*\]|\[vsyscall\]")
# Modules that come with CPython, wherever it is installed: _json, _ctypes...
_CPYTHON_MODULES = compiled_later(r".*/lib(?:64)?/(?:python|pypy)[\d.]+t?/lib-dynload/[^/]*")
# These are the same wherever they lie: images of containers, sysroots and build machines have folders of their own.
_SYSTEM_LIBRARIES = compiled_later(
    r"(?:ld-(?:linux|musl)\S*|lib(?:c|m|dl|rt|pthread|gcc_s|stdc\+\+|c\+\+|c\+\+abi|resolv|util|anl|nsl))(?:-[\d.]+)?\.so[\d.]*"
)

_MEMORY = compiled_later(r"//anon|/anon_hugepage.*|\[anon:.*|/memfd:.*|\[heap\]|\[stack.*|/dev/zero.*|/SYSV.*")


def is_memory(path: str) -> bool:
    """Whether what the kernel has in the place of a path says that no file is mapped."""
    return _MEMORY.fullmatch(path) is not None


def category_of_file(path: str) -> str:
    """Returns the category of the native code in a file, by its path as recorded: of a runtime, of the system, or
    NATIVE, the user's own."""
    name = PurePosixPath(path).name
    if _RUNTIMES.fullmatch(name) or _RUNTIMES_OF_SYSTEM.fullmatch(path) or _CPYTHON_MODULES.fullmatch(path):
        return RUNTIME
    is_of_system = path.startswith(_SYSTEM_FOLDERS) or _VDSO.fullmatch(path) or _SYSTEM_LIBRARIES.fullmatch(name)
    return SYSTEM if is_of_system else NATIVE
