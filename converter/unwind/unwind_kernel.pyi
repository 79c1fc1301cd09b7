from traceferry.model import Array
from traceferry.unwind.machine import Machine

def unwind(
    d: Array,
    big: bool,
    machine: Machine,
    registers_at: Array,
    register_of: Array,
    dump_at: Array,
    dump_n: Array,
    flags: Array,
    mappings: tuple[Array, ...],
    modules: tuple[Array, ...],
    rules: tuple[Array, ...],
    cache: tuple[Array, ...],
    max_frames: int,
    state: Array,
    pc_out: Array,
    how_out: Array,
    n_out: Array,
    end_out: Array,
    module_out: Array,
) -> None: ...
