"""How much of the stack a function of x86-64 has for itself where it keeps no frame pointer, by its instructions.

From the first one all paths are followed that direct jumps tell. A path that returns while %rsp is what it was at first
shows that the function is called, and its return address was there: code that others jump into, in their frame, has
none. What is not understood ends a path: nothing is said of what only such a path reaches.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from traceferry.unwinding.x86_64 import RBP, RSP, TWO_BYTES, Instruction, instruction_at

WORD = 8
MOST_INSTRUCTIONS = 1 << 13
LONGEST = 15  # bytes of an instruction
WINDOW = 1024
LOST = -1
# What lies between functions, and where these begin.
PADDING, ALIGNMENT = (0x90, 0xCC, TWO_BYTES + 0x1F), 16


class State(NamedTuple):
    """depth: the bytes of the stack below the return address, None if unknown; saved_at: where %rbp was saved, as a
    depth, 0 if it was not; frame: the depth to which %rbp points; 0: it is the caller's, LOST: it is something else."""

    depth: int | None = 0
    saved_at: int = 0
    frame: int = 0


# Where paths meet that do not agree.
CONTRADICTION = State(None, 0, LOST)

# The bytes of code at an address, as many as there are, and at most so many.
Code = Callable[[int, int], bytes]


class OwnStack:
    """A function that begins at `start`. begins: whether one begins at an address; is_called: whether it returns;
    n_read: how many instructions were read."""

    def __init__(self, code: Code, start: int, begins: Callable[[int], bool] = lambda _: False) -> None:
        self._code = code
        self._begins = begins
        self._window_at, self._window = start, b""
        self._states: dict[int, State] = {}
        self.is_called = False
        self.n_read = 0
        waiting = [(start, State())]
        while waiting and self.n_read < MOST_INSTRUCTIONS:
            waiting += self._step(*waiting.pop())
        if waiting:
            self._states.clear()

    def size_at(self, address: int) -> int | None:
        """Returns how many bytes of its own the function has on the stack in front of an instruction; None where it has
        a frame, to which %rbp points, or where that is not known."""
        state = self._states.get(address)
        return state.depth if state is not None and state.frame == 0 and self.is_called else None

    def lacks_frame_at(self, address: int) -> bool:
        """Whether %rbp is the caller's there, as far as is known."""
        state = self._states.get(address)
        return state is not None and state.depth is not None and state.frame == 0

    def _step(self, address: int, state: State) -> list[tuple[int, State]]:
        """Follows one instruction; returns those that come next, with what holds in front of them."""
        known = self._states.get(address)
        if known is not None:
            if known in (state, CONTRADICTION):
                return []
            state = CONTRADICTION
        self._states[address] = state
        self.n_read += 1
        instruction = self._instruction(address)
        if instruction is None:
            return []
        after, jumps = address + instruction.size, _jump(instruction)
        is_call = instruction.opcode == 0xE8 or (instruction.opcode == 0xFF and instruction.reg & 7 == 2)
        if is_call and self._ends_behind(after):
            return []
        if instruction.opcode in (0xC2, 0xC3):
            self.is_called |= state.depth == 0
        targets = [after + instruction.immediate] if jumps.is_direct else []
        state = _after(state, instruction)
        return [(one, state) for one in (*targets, *([after] if jumps.goes_on else []))]

    def _ends_behind(self, address: int) -> bool:
        """Whether another function begins behind a call, which need not return. address: of what follows it."""
        while (one := self._instruction(address)) is not None and one.opcode in PADDING:
            address += one.size
        return address % ALIGNMENT == 0 and self._begins(address)

    def _instruction(self, address: int) -> Instruction | None:
        at = address - self._window_at
        if not 0 <= at <= len(self._window) - LONGEST:
            self._window_at, self._window, at = address, self._code(address, WINDOW), 0
        return instruction_at(self._window, at)


class _Jump(NamedTuple):
    is_direct: bool
    goes_on: bool


def _jump(one: Instruction) -> _Jump:
    opcode = one.opcode
    if 0x70 <= opcode < 0x80 or 0xE0 <= opcode < 0xE4 or TWO_BYTES + 0x80 <= opcode < TWO_BYTES + 0x90:
        return _Jump(True, True)
    if opcode in (0xE9, 0xEB):
        return _Jump(True, False)
    is_end = opcode in (0xC2, 0xC3, 0xCC, 0xF4, TWO_BYTES + 0x0B)
    return _Jump(False, not (is_end or (opcode == 0xFF and one.reg & 7 in (3, 4, 5))))


def _after(state: State, one: Instruction) -> State:
    """Returns what holds behind an instruction."""
    depth, saved_at, frame = state
    opcode = one.opcode
    if 0x50 <= opcode < 0x58 or opcode in (0x68, 0x6A) or (opcode == 0xFF and one.reg & 7 == 6):
        pushed = _plus(depth, WORD) if not one.is_narrow else None
        is_saved = opcode == 0x50 + RBP and not one.rex & 1 and frame == 0 and not saved_at
        return State(pushed, pushed if is_saved and pushed else saved_at, frame)
    if 0x58 <= opcode < 0x60:
        register, popped = opcode - 0x58 | (one.rex & 1) << 3, _plus(depth, -WORD)
        if register == RSP or one.is_narrow:
            return State(None, saved_at, frame)
        if register == RBP:
            return State(popped, 0, 0) if depth and depth == saved_at else State(popped, saved_at, LOST)
        return State(popped, saved_at, frame)
    if opcode == 0xC9:  # leave
        left = frame - WORD if frame >= WORD else None
        return State(left, 0, 0) if frame > 0 and frame == saved_at else State(left, saved_at, LOST)
    is_move = opcode in (0x89, 0x8B) and one.mod == 3 and one.rex & 8
    source, target = (one.reg, one.rm) if opcode == 0x89 else (one.rm, one.reg)
    if is_move and (source, target) == (RSP, RBP):
        return State(depth, saved_at, depth if depth else LOST)
    if is_move and (source, target) == (RBP, RSP):
        return State(frame if frame > 0 else None, saved_at, frame)
    if opcode == 0x8D and one.reg in (RSP, RBP) and one.rex & 8 and one.mod < 3:
        return _by_address(state, one)
    if opcode in (0x81, 0x83) and one.mod == 3 and one.rm == RSP and one.reg & 7 in (0, 5) and one.rex & 8:
        return State(_plus(depth, one.immediate if one.reg & 7 == 5 else -one.immediate), saved_at, frame)
    if opcode == 0x8F or (opcode == 0xFF and one.reg & 7 == 3):
        return State(None, saved_at, frame)
    if one.writes(RSP):
        depth = None
    if one.writes(RBP):
        frame = LOST
    return State(depth, saved_at, frame)


def _by_address(state: State, one: Instruction) -> State:
    """Returns what holds behind `lea N(%rsp or %rbp),%rsp or %rbp`."""
    at = state.depth if one.base == RSP else state.frame if one.base == RBP and state.frame > 0 else None
    depth = _plus(at, -one.displacement)
    if one.reg == RSP:
        return state._replace(depth=depth)
    return state._replace(frame=depth if depth else LOST)


def _plus(depth: int | None, n: int) -> int | None:
    """Above the return address is the stack of the caller."""
    return depth + n if depth is not None and depth + n >= 0 else None
