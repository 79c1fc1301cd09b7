# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Unwinds the user stacks of samples. Cython's pure-Python mode: also runs interpreted.

A sample has registers and a copy of the top of its stack. Frame by frame, the address is looked up among the mappings
of its process, then among the rows of the module there; the rule set of the row gives the caller's registers.
"""

import cython

from traceferry.unwinding.tables_inlined import Cache, Mappings, Modules, RuleSets
from traceferry.unwinding.unwind_inlined import BAD_CFA, LIMIT, N_FRAMES, SAMPLE, WANTED
from traceferry.unwinding.walk_inlined import ENDED, GOES_ON, INVALID, IS_WANTED, Walk

# A return address takes a word of the stack, but for that of the first frame, which a register may hold.
FREE_FRAMES = cython.declare(cython.longlong, 2)


def unwind(
    d: cython.const[cython.uchar][::1],
    big: cython.bint,
    machine: object,
    registers_at: cython.const[cython.longlong][::1],
    register_of: cython.const[cython.int][::1],
    dump_at: cython.const[cython.longlong][::1],
    dump_n: cython.const[cython.longlong][::1],
    flags: cython.const[cython.uchar][::1],
    mappings: tuple,
    modules: tuple,
    rules: tuple,
    cache: tuple,
    max_frames: cython.longlong,
    state: cython.longlong[::1],
    pc_out: cython.ulonglong[::1],
    how_out: cython.uchar[::1],
    n_out: cython.int[::1],
    end_out: cython.uchar[::1],
    module_out: cython.int[::1],
):
    """Unwinds the samples from state[SAMPLE] on, which belong to one address space that does not change.

    machine: a Machine. Of a sample: registers_at, where its registers are in d, in words of 8 bytes, register_of[i]
    being the DWARF number of the i-th, -1 for none; dump_at, dump_n: the bytes of the stack, from the stack pointer on;
    flags. mappings, modules, rules, cache: columns, see Mappings, Modules, RuleSets and Cache.

    For each sample n_out frames, innermost first, appended at state[N_FRAMES] to pc_out and how_out; end_out; and
    module_out: where it ended for want of call-frame information, -1 no module, -2 no mapping.

    Stops early at a sample when pc_out might not do (max_frames each), or when a module is met whose rows are not
    known: then state[WANTED] is the module, else -1.
    """
    n: cython.Py_ssize_t = registers_at.shape[0]
    n_register_bytes: cython.Py_ssize_t = 8 * register_of.shape[0]
    size: cython.longlong = pc_out.shape[0]
    if state.shape[0] < 3:
        raise ValueError("unwind: an array has the wrong length")
    i: cython.Py_ssize_t = int(state[SAMPLE])
    n_frames: cython.longlong = int(state[N_FRAMES])
    if (
        dump_at.shape[0] != n
        or dump_n.shape[0] != n
        or flags.shape[0] != n
        or n_out.shape[0] != n
        or end_out.shape[0] != n
        or module_out.shape[0] != n
        or how_out.shape[0] != size
        or max_frames < 1
        or i < 0
        or n_frames < 0
    ):
        raise ValueError("unwind: an array has the wrong length")
    walk: Walk = Walk(d, big, machine, Mappings(*mappings), Modules(*modules), RuleSets(*rules), Cache(*cache))
    wanted: cython.longlong = -1
    invalid: cython.bint = False
    with cython.nogil:
        while i < n and n_frames + max_frames <= size:
            if (
                registers_at[i] < 0
                or registers_at[i] > d.shape[0] - n_register_bytes
                or dump_at[i] < 0
                or dump_n[i] < 0
                or dump_n[i] > d.shape[0]
                or dump_at[i] > d.shape[0] - dump_n[i]
            ):
                invalid = True
                break
            walk.begin(register_of, registers_at[i], dump_at[i], dump_n[i], flags[i])
            depth: cython.longlong = 0
            most: cython.longlong = dump_n[i] // walk.word + FREE_FRAMES
            while walk.outcome == GOES_ON:
                if depth >= max_frames or depth >= most:
                    walk.stop(LIMIT if depth >= max_frames else BAD_CFA)
                    break
                walk.look_up()
                if walk.outcome != GOES_ON:
                    break
                pc_out[n_frames + depth] = walk.pc
                how_out[n_frames + depth] = walk.how
                depth += 1
                walk.go_up()
            if walk.outcome != ENDED:
                wanted = walk.module if walk.outcome == IS_WANTED else -1
                invalid = walk.outcome == INVALID
                break
            n_out[i] = depth
            end_out[i] = walk.end
            module_out[i] = walk.bad_module
            n_frames += depth
            i += 1
    state[SAMPLE] = i
    state[N_FRAMES] = n_frames
    state[WANTED] = wanted
    if invalid:
        raise ValueError("unwind: a sample outside the data, or a mapping, row or rule set that refers to nothing")


if not cython.compiled:
    from traceferry.kernels.interpreted import plain_integers

    unwind = plain_integers(unwind)
