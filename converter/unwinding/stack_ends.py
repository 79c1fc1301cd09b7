"""Functions at which stacks end: where threads, goroutines and contexts begin, and where code leaves for another stack.

C libraries: glibc's sysdeps/ARCH/start.S, clone.S, makecontext; musl's crt/crt1.c, src/thread; bionic. Go:
src/runtime/asm_ARCH.s. Contexts: Boost.Context, src/asm/make_ARCH_*.S, of which PHP and brpc have copies. gcc's
-fsplit-stack: libgcc/config/i386/morestack.S.
"""

from __future__ import annotations

from traceferry.common.patterns import compiled_later

_GO = r"\w*(?:\.abi0)?"
# Nobody calls them; what looks like their caller is what the memory behind has held before.
_BEGINNING = r"(?:(?:__)?makecontext|__start_?context|\w*make_fcontext)(?:@\S+)?|runtime\.(?:goexit|rt0_go)(?:\.abi0)?"
_BEGINNINGS = compiled_later(_BEGINNING)
# Behind them is nothing but the beginning, which unwinding finds, and frame pointers may not. Programs have functions
# of these names, too.
_BEGINNINGS_OF_THREADS = compiled_later(
    rf"{_BEGINNING}|(?:_start(?:_c)?|main|__libc_start_\w+|__libc_init|_?_?(?:start_thread|clone3?|thread_start)|_dl_start\w*)"
    rf"(?:@\S+)?|runtime\.mstart{_GO}"
)
# Their callers are on the stack that they have left.
_SWITCHES = compiled_later(rf"runtime\.(?:asmcgocall|mcall|morestack|systemstack){_GO}|__morestack")
# Go's functions that call C, which runs on the stack of the system's thread.
_CALLS_OF_C = compiled_later(rf"runtime\.(?:asmcgocall{_GO}|cgocall(?:\.abi0)?)|\S+\._Cfunc_{_GO}")
GO = "runtime."


def is_beginning(name: str) -> bool:
    """Returns whether a function is one that nobody calls."""
    return _BEGINNINGS.fullmatch(name) is not None


def begins_thread(name: str) -> bool:
    """Returns whether a stack that has a function of this name has the beginning of its thread, or nearly so."""
    return _BEGINNINGS_OF_THREADS.fullmatch(name) is not None


def is_switch(name: str) -> bool:
    """Returns whether a function goes on on another stack than its callers."""
    return _SWITCHES.fullmatch(name) is not None


def is_call_of_c(name: str) -> bool:
    """Returns whether a function of Go calls C."""
    return _CALLS_OF_C.fullmatch(name) is not None
