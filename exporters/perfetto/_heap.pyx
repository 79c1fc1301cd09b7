"""Objects of heap graphs."""

from libc.stdint cimport int32_t, int64_t, uint8_t

from traceferry.exporters.perfetto._packets cimport OutputBuffer, put_integer, size_of, put_varint
from traceferry.exporters.perfetto cimport fields as pb

cdef enum:
    # Around an object: a tag and a length.
    AROUND = 16


def write_heap_objects(
    OutputBuffer out not None, const int32_t[::1] type_id, const int64_t[::1] size, const int64_t[::1] offsets,
    const int32_t[::1] references
):
    """Writes the objects of a heap graph; the id of each is its row + 1.

    The rows that object i refers to are references[offsets[i]:offsets[i + 1]].
    """
    cdef Py_ssize_t n = type_id.shape[0]
    if size.shape[0] != n or offsets.shape[0] != n + 1:
        raise ValueError("write_heap_objects: an array has the wrong length")
    cdef uint8_t* o
    cdef Py_ssize_t i, r, p, packed, body, id_size
    with nogil:
        for i in range(n):
            packed = size_of_references(offsets, references, i, n)
            if type_id[i] < 0 or size[i] < 0 or packed < 0:
                with gil:
                    raise ValueError("write_heap_objects: an object with an invalid type, size or reference")
            body = 1 + size_of(type_id[i]) + 1 + size_of(size[i])
            if packed:
                body += 1 + size_of(packed) + packed
            # A packet's first object has its id, the others have their difference to the one before, which is 1.
            out.reserve(AROUND + 2 + body)
            id_size = 2 if out.n else 1 + size_of(i + 1)
            out.reserve(AROUND + id_size + body)
            o = out.data + out.n
            o[0] = pb.HeapGraph_objects
            p = put_varint(o, 1, id_size + body)
            if out.n:
                p = put_integer(o, p, pb.HeapGraphObject_id_delta, 1)
            else:
                p = put_integer(o, p, pb.HeapGraphObject_id, i + 1)
            p = put_integer(o, p, pb.HeapGraphObject_type_id, type_id[i])
            p = put_integer(o, p, pb.HeapGraphObject_self_size, size[i])
            if packed:
                p = put_integer(o, p, pb.HeapGraphObject_reference_object_id, packed)
                for r in range(offsets[i], offsets[i + 1]):
                    p = put_varint(o, p, <int64_t>references[r] + 1)
            out.n += p
    out.flush()


cdef inline Py_ssize_t size_of_references(
    const int64_t[::1] offsets, const int32_t[::1] references, Py_ssize_t i, Py_ssize_t n
) noexcept nogil:
    """Returns how many bytes the ids take that object i of n refers to; -1: an invalid one is among them."""
    cdef Py_ssize_t r
    cdef Py_ssize_t size = 0
    if offsets[i] < 0 or offsets[i + 1] > references.shape[0]:
        return -1
    for r in range(offsets[i], offsets[i + 1]):
        if not 0 <= references[r] < n:
            return -1
        size += size_of(<int64_t>references[r] + 1)
    return size
