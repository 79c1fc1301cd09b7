"""The compiled kernel of jitdump does what its .py file does, and believes no length.

As in test_kernels: while dumps are read, each call is repeated with the same arguments in the interpreted twin.
"""

from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from builders.jitdump import JitDump
from hypothesis import given
from hypothesis import strategies as st
from jit_recordings import content
from support import Unprinted
from test_jitdump_bad import CODE, PLACES, WHOLE, checked, quietly
from test_kernels import content_of, copied, interpreted, is_compiled, kernels_of, outcome, shortened

from traceferry.importers.jitdump import jitdump_kernel
from traceferry.symbolication import shares_kernel

MODULES: tuple[ModuleType, ...] = (jitdump_kernel, shares_kernel)
# Before any test watches them.
KERNELS = {name: getattr(module, name) for module in MODULES for name in kernels_of(module)}
TWINS = {name: getattr(interpreted(module.__name__), name) for module in MODULES for name in kernels_of(module)}
needs_compiled = pytest.mark.skipif(
    not is_compiled(jitdump_kernel), reason="no kernel is compiled here: python setup.py build_ext --inplace"
)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Unprinted:
    """(kernel, arguments before, result, arrays after) of every call during the test."""
    seen = Unprinted()

    def watched(name: str) -> Any:
        def call(*arguments: Any) -> Any:
            before = copied(arguments)
            result = KERNELS[name](*arguments)
            seen.append((name, before, result, content_of(arguments)))
            return result

        return call

    for module in MODULES:
        for name in kernels_of(module):
            monkeypatch.setattr(module, name, watched(name))
    return seen


def same_interpreted(calls: Unprinted) -> None:
    for name, before, result, after in calls:
        arguments = copied(before)
        assert TWINS[name](*arguments) == result, name
        assert content_of(arguments) == after, name
    calls.clear()


def many_lines() -> bytes:
    """More keys than the tables have at first."""
    dump = JitDump()
    for nth in range(6):
        at = CODE + 0x1000 * nth
        dump.debug_info(at, [(at + row, 1000 * nth + row, 0, f"/{nth}.c") for row in range(900)])
        dump.load(f"f{nth}", at, 901)
    return dump.bytes()


def test_every_kernel_is_called(calls: Unprinted) -> None:
    """Else the tests below prove nothing about it."""
    checked(many_lines())
    assert {name for name, *_ in calls} == set(KERNELS)
    assert sum(name == "sizes" for name, *_ in calls) > 1


@needs_compiled
@pytest.mark.parametrize("nth", range(len(WHOLE) + 1))
def test_built_dumps(calls: Unprinted, nth: int) -> None:
    checked([*WHOLE, many_lines()][nth])
    same_interpreted(calls)


@needs_compiled
@pytest.mark.parametrize("name", [
    "wasmtime/jit-9865.dump", "lli19mc/jit-13217.dump", "php82/jit-7884.dump", "py313/jit-26854.dump",
    "bun-src/jit-10873-10871.dump", "samply-ext/ext-A-big-s102.dump",
])  # fmt: skip
def test_recordings(calls: Unprinted, name: str) -> None:
    checked(content(name))
    same_interpreted(calls)


@needs_compiled
@quietly
@given(st.sampled_from(WHOLE), st.lists(st.tuples(PLACES, st.integers(0, 255)), max_size=6))
def test_damaged_dumps(calls: Unprinted, dump: bytes, changes: list[tuple[int, int]]) -> None:
    damaged = bytearray(dump)
    for at, value in changes:
        damaged[40 + at % (len(damaged) - 40)] = value
    checked(bytes(damaged))
    same_interpreted(calls)


def test_the_interpreted_kernels_take_bytes(calls: Unprinted) -> None:
    """As the compiled ones do, for the file's bytes."""
    for data in (WHOLE[1], many_lines()[:30_000]):
        checked(data)
    seen = set()
    for name, before, result, after in calls:
        arguments = tuple(bytes(a) if isinstance(a, memoryview) else a for a in copied(before))
        if any(isinstance(a, bytes) for a in arguments):
            seen.add(name)
            assert TWINS[name](*arguments) == result, name
            assert [c for c, a in zip(content_of(arguments), arguments, strict=True) if not isinstance(a, bytes)] == [
                c for c, a in zip(after, arguments, strict=True) if not isinstance(a, bytes)
            ], name
    assert seen == {"scan", "loads", "entries"}


def memory_shortened(arguments: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """The file's bytes: none, half, one less."""
    for at, argument in enumerate(arguments):
        if isinstance(argument, memoryview):
            for size in (0, len(argument) // 2, len(argument) - 1):
                yield (*copied(arguments[:at]), argument[:size], *copied(arguments[at + 1 :]))


def test_arrays_that_are_too_short_raise_value_error(calls: Unprinted) -> None:
    """Interpreted, an index beyond an array's end would raise IndexError; compiled it would be another's memory."""
    for data in (WHOLE[0], WHOLE[3], many_lines()[:30_000]):
        checked(data)
    refused = dict.fromkeys(KERNELS, 0)
    for name, before, _, _ in list(calls):
        if sum(a.nbytes for a in before if isinstance(a, np.ndarray)) > 4 << 20:
            continue
        for arguments in (*shortened(before), *memory_shortened(before)):
            twin = copied(arguments)
            wanted = outcome(TWINS[name], twin)  # an IndexError fails here
            refused[name] += str(wanted).startswith("ValueError")
            if is_compiled(jitdump_kernel):
                assert outcome(KERNELS[name], arguments) == wanted, name
                if not str(wanted).startswith("ValueError"):
                    assert content_of(arguments) == content_of(twin), name
    assert all(refused.values()), refused
