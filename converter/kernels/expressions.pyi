from typing_extensions import Buffer

NO_MEMORY: int
NO_REGISTER: int
NOT_AN_EXPRESSION: int
MAX_VALUES: int
MAX_STEPS: int

class Registers:
    known: int
    values: list[int]
    def __init__(self) -> None: ...
    def has(self, register: int) -> bool: ...
    def forget(self, register: int) -> None: ...
    def set(self, register: int, value: int) -> None: ...

class Memory:
    data: Buffer
    big: bool
    low: int
    at: int
    size: int
    missing: int
    failure: int
    def __init__(self, data: Buffer, big: bool) -> None: ...
    def begin(self, low: int, at: int, size: int) -> None: ...
    def load(self, address: int, width: int) -> int: ...

class Evaluator:
    def __init__(self, pool: Buffer, memory: Memory, word: int, n_registers: int) -> None: ...
    def run(self, place: int, length: int, registers: Registers, start: int, n_start: int) -> int: ...
