from typing_extensions import Buffer

EXPR_ALL: int
EXPR_SIGN: int
NO_MEMORY: int
NO_REGISTER: int
NOT_AN_EXPRESSION: int
STACK_SIZE: int
MAX_STEPS: int

def load(d: Buffer, memory: Buffer, address: int, width: int, big: bool) -> int: ...
def is_less(a: int, b: int, word: int) -> bool: ...
def evaluate(
    pool: Buffer,
    place: int,
    length: int,
    d: Buffer,
    memory: Buffer,
    registers: Buffer,
    known: int,
    n_registers: int,
    start: int,
    n_start: int,
    word: int,
    big: bool,
    at: Buffer,
    stack: Buffer,
) -> int: ...
