"""Python's values in lists, and members of dicts, without a step of the interpreter for each."""

from cpython.dict cimport PyDict_GetItemWithError, PyDict_Next, PyDict_Size
from cpython.object cimport PyObject, PyObject_RichCompareBool, Py_EQ
from libc.stdint cimport int64_t

import numpy as np


def member(list objects not None, key not None, default=None):
    """Returns a member of each object; default: where there is none."""
    cdef PyObject* value
    cdef Py_ssize_t i
    cdef list found = [default] * len(objects)
    for i in range(len(objects)):
        value = PyDict_GetItemWithError(<dict?> objects[i], key)
        if value is not NULL:
            found[i] = <object> value
    return found


def rows_with(list objects not None, key not None):
    """Returns the rows, int64, of the objects that have a member."""
    cdef Py_ssize_t i
    cdef list found = []
    for i in range(len(objects)):
        if PyDict_GetItemWithError(<dict?> objects[i], key) is not NULL:
            found.append(i)
    return np.array(found, np.int64)


def rows_of(list values not None, value):
    """Returns the rows, int64, of a value."""
    cdef Py_ssize_t i
    cdef list found = []
    for i in range(len(values)):
        if values[i] is value or PyObject_RichCompareBool(values[i], value, Py_EQ):
            found.append(i)
    return np.array(found, np.int64)


def are_of(list values not None, kind not None):
    """Returns whether all values are of a type, not of one that is made of it."""
    cdef Py_ssize_t i
    for i in range(len(values)):
        if type(values[i]) is not kind:
            return False
    return True


def shapes(list objects not None):
    """Returns the distinct sequences of keys, with how many objects have them: {tuple: int}."""
    cdef dict counts = {}
    cdef tuple last = ()
    cdef Py_ssize_t n_last = 0
    cdef Py_ssize_t i
    for i in range(len(objects)):
        if not has_keys(<dict?> objects[i], last):
            if n_last:
                counts[last] = counts.get(last, 0) + n_last
            last, n_last = tuple(<dict> objects[i]), 0
        n_last += 1
    if n_last:
        counts[last] = counts.get(last, 0) + n_last
    return counts


cdef bint has_keys(dict one, tuple keys):
    """Whether these very objects are the keys; others of equal texts may be, too."""
    cdef Py_ssize_t place = 0
    cdef Py_ssize_t i = 0
    cdef PyObject* key
    if PyDict_Size(one) != len(keys):
        return False
    while PyDict_Next(one, &place, &key, NULL):
        if <object> key is not keys[i]:
            return False
        i += 1
    return True


def interned(values, dict known not None):
    """Returns the number of each value, int64. known: the numbers, which grows."""
    cdef list listed = values if isinstance(values, list) else list(values)
    found = np.empty(len(listed), np.int64)
    cdef int64_t[::1] numbers = found
    cdef PyObject* number
    cdef Py_ssize_t i
    for i in range(len(listed)):
        number = PyDict_GetItemWithError(known, listed[i])
        if number is NULL:
            numbers[i] = len(known)
            known[listed[i]] = len(known)
        else:
            numbers[i] = <object> number
    return found
