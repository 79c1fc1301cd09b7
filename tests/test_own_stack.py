"""What the instructions of x86-64 tell of a function's stack. Each case is its instructions, in hex."""

import platform
import re
import shutil
import subprocess
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceferry.unwinding.own_stack import OwnStack
from traceferry.unwinding.x86_64 import instruction_at

CASES: dict[str, tuple[str, list[int | None]]] = {
    # In front of each instruction: how many bytes of its own are on the stack. None: %rbp is no caller's, or unknown.
    "a leaf": ("31c0 90 c3", [0, 0, 0]),
    "a frame": ("55 4889e5 90 5d c3", [0, 8, None, None, 0]),
    "a frame, and leave": ("55 4889e5 4883ec10 c9 c3", [0, 8, None, None, 0]),
    "a register and locals": ("53 4883ec10 90 4883c410 5b c3", [0, 8, 24, 24, 8, 0]),
    "an address in locals": ("488d6424f0 90 488d642410 c3", [0, 16, 16, 0]),
    "a call": ("4883ec08 e800000000 4883c408 c3", [0, 8, 8, 0]),
    "a call, and no operation": ("4883ec08 e800000000 90 4883c408 c3", [0, 8, 8, 8, 0]),
    "%rbp for something else": ("55 89c5 90 5d c3", [0, 8, None, None, 0]),
    "a frame on one path": ("85ff 7406 55 4889e5 c9 c3 c3", [0, 0, 0, 8, None, 0, 0]),
    "an aligned stack in a frame": ("55 4889e5 4883e4f0 4889ec 5d c3", [0, 8, None, None, None, 0]),
    "paths that do not agree": ("7401 50 90 c3", [None, None, None, None]),
    "what no path reaches": ("eb01 cc 90 c3", [0, None, 0, 0]),
    "a stack that is not its own": ("4883c410 5d c3", [None, None, None]),
    "it does not return": ("90 ffe0", [None, None]),
    "it does not return with its stack": ("4883e4f0 c3", [None, None]),
    "no instruction": ("06 c3", [None, None]),
    "a loop": ("53 75fd 5b c3", [None, None, None, None]),  # which pushes each time
    "a loop in itself": ("53 90 75fd 5b c3", [0, 8, 8, 8, 0]),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_function_s_own_stack(case: str) -> None:
    text, wanted = CASES[case]
    parts = [bytes.fromhex(one) for one in text.split()]
    code, start = b"".join(parts), 0x1000
    function = OwnStack(lambda address, size: code[address - start :][:size], start)
    ats = [start, *(start + end for end in accumulate(map(len, parts)))][:-1]
    assert [function.size_at(at) for at in ats] == wanted


@pytest.mark.parametrize(("text", "wanted"), [("90 ffe0", True), ("55 4889e5 ffe0", False)])
def test_a_function_of_which_nothing_tells_that_it_is_called(text: str, wanted: bool) -> None:
    code = bytes.fromhex(text.replace(" ", ""))
    function = OwnStack(lambda address, size: code[address:][:size], 0)
    last = len(code) - 2
    assert (function.size_at(last), function.lacks_frame_at(last)) == (None, wanted)


@pytest.mark.parametrize(("begins", "wanted"), [(0, 0), (0x10, None)])
def test_a_call_that_does_not_return(begins: int, wanted: int | None) -> None:
    """Behind it lies what fills the space up to the next function, which is another one."""
    code = bytes.fromhex("e8000000006690") + 9 * b"\x90" + b"\xc3"
    function = OwnStack(lambda address, size: code[address:][:size], 0, lambda address: address == begins)
    assert function.size_at(0) == wanted


@given(st.binary(max_size=64))
def test_any_bytes(code: bytes) -> None:
    function = OwnStack(lambda address, size: code[address:][:size] if address >= 0 else b"", 0)
    for at in range(len(code)):
        size = function.size_at(at)
        assert size is None or (size >= 0 and function.lacks_frame_at(at))


def test_a_function_without_an_end() -> None:
    function = OwnStack(lambda _, size: b"\x90" * size, 0)
    assert (function.size_at(0), function.lacks_frame_at(0)) == (None, False)


LINE = re.compile(r"\s+[0-9a-f]+:\t((?:[0-9a-f]{2} )+)\s*(.*)")


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the instructions of x86-64")
def test_instructions_are_as_long_as_objdump_says() -> None:
    program, objdump = shutil.which("ls"), shutil.which("objdump")
    if program is None or objdump is None:
        pytest.skip("no objdump here")
    shown = subprocess.run([objdump, "-d", "-w", program], capture_output=True, text=True, check=True).stdout
    found = [match for line in shown.splitlines() if (match := LINE.match(line)) and "(bad)" not in match[2]]
    assert len(found) > 1000
    for match in found:
        code = bytes.fromhex(match[1])
        read = instruction_at(code + bytes(16), 0)
        assert (read.size if read is not None else 0) == len(code), match[0]


WRITES = {
    # instruction: whether it writes %rsp, %rbp
    "4889c4": (True, False), "4889c5": (False, True), "4889e8": (False, False), "488b6c2408": (False, True),
    "89ec": (True, False), "4989c4": (False, False), "4c89e5": (False, True), "4c8b6d08": (False, False),
    "31ed": (False, True), "39ed": (False, False), "85ed": (False, False), "f7dd": (False, True),
    "f7e5": (False, False),
    "bd01000000": (False, True), "41bd01000000": (False, False), "95": (False, True), "0fafe8": (False, True),
    "0f44ec": (False, True), "0f10e8": (False, False), "660fefed": (False, False), "c5f8ae6c2408": (False, False),
    "4883fd01": (False, False), "4883c501": (False, True), "48c1ed02": (False, True), "0fcd": (False, True),
}  # fmt: skip


@pytest.mark.parametrize("code", WRITES)
def test_instructions_that_write_the_registers_of_frames(code: str) -> None:
    read = instruction_at(bytes.fromhex(code) + bytes(8), 0)
    assert read is not None
    assert (read.size, read.writes(4), read.writes(5)) == (len(code) // 2, *WRITES[code])


@pytest.mark.parametrize("code", ["", "48", "e80000", "0f", "c5", "62f1", "8b04", "06", "c4e2"])
def test_what_is_no_whole_instruction(code: str) -> None:
    assert instruction_at(bytes.fromhex(code), 0) is None
