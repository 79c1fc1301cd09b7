# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Sums over the tree of stacks. Cython's pure-Python mode: also runs interpreted."""

import cython


def add_to_callers(
    prefix: cython.const[cython.int][::1],
    func: cython.const[cython.int][::1],
    of_stack: cython.longlong[::1],
    child: cython.int[::1],
    sibling: cython.int[::1],
    n_open: cython.int[::1],
    of_func: cython.longlong[::1],
) -> None:
    """Adds to each stack's number those of all stacks above it, and to each func those of its outermost stacks.

    prefix: of each stack, always a smaller one; func: its leaf. of_stack: changed in place. child, sibling: room for a
    number for each stack, child for one more; n_open: for each func, all 0.
    """
    n: cython.Py_ssize_t = prefix.shape[0]
    n_funcs: cython.Py_ssize_t = of_func.shape[0]
    if (
        func.shape[0] != n
        or of_stack.shape[0] != n
        or child.shape[0] != n + 1
        or sibling.shape[0] != n
        or n_open.shape[0] != n_funcs
    ):
        raise ValueError("add_to_callers: an array has the wrong length")
    i: cython.Py_ssize_t
    node: cython.Py_ssize_t
    bad: cython.bint = False
    with cython.nogil:
        for i in range(n + 1):
            child[i] = -1
        for i in range(n - 1, -1, -1):
            if prefix[i] < -1 or prefix[i] >= i or func[i] < 0 or func[i] >= n_funcs:
                bad = True
                break
            if prefix[i] >= 0:
                of_stack[prefix[i]] += of_stack[i]
            sibling[i] = child[prefix[i] + 1]
            child[prefix[i] + 1] = i
        if not bad:
            node = child[0]
            while node >= 0:
                if n_open[func[node]] == 0:
                    of_func[func[node]] += of_stack[node]
                n_open[func[node]] += 1
                if child[node + 1] >= 0:
                    node = child[node + 1]
                    continue
                while node >= 0:
                    n_open[func[node]] -= 1
                    if sibling[node] >= 0:
                        node = sibling[node]
                        break
                    node = prefix[node]
    if bad:
        raise ValueError("add_to_callers: a stack with an invalid prefix or function")


if not cython.compiled:
    from traceferry.kernels.interpreted import plain_integers

    add_to_callers = plain_integers(add_to_callers)
