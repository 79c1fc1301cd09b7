"""Reads line programs of .debug_line in bulk: their rows, and where the names of their files stand.

Only undamaged programs in usual codings are read: of all others, which the reader in Python describes, there is none.
"""

cimport cython
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free, qsort
from libc.string cimport memchr

from traceferry.native.bytes cimport number
from traceferry.native.cursor cimport Cursor
from traceferry.native.memory cimport grown, resized

cdef enum:
    MAX_TEXT = 1 << 16
    MAX_FORMATS = 8

# Opcodes, DW_LNS_* and DW_LNE_*.
cdef enum:
    COPY = 1
    ADVANCE_PC = 2
    ADVANCE_LINE = 3
    SET_FILE = 4
    CONST_ADD_PC = 8
    FIXED_ADVANCE_PC = 9
    END_SEQUENCE = 1
    SET_ADDRESS = 2
    DEFINE_FILE = 3
    SET_DISCRIMINATOR = 4

# DW_LNCT_*
cdef enum:
    PATH = 1
    DIRECTORY_INDEX = 2

# The forms that names and numbers of files take, DW_FORM_*.
cdef enum:
    DATA2 = 0x05
    DATA4 = 0x06
    DATA8 = 0x07
    INLINE_STRING = 0x08
    BLOCK = 0x09
    DATA1 = 0x0B
    STRP = 0x0E
    UDATA = 0x0F
    DATA16 = 0x1E
    LINE_STRP = 0x1F

# Where a text is, as the names of entries.
cdef enum:
    IN_LINE
    IN_STR
    IN_LINE_STR


cdef int by_end(const void* one, const void* other) noexcept nogil:
    """Orders sequences by their ends, those that end together as they come."""
    cdef const Sequence* a = <const Sequence*>one
    cdef const Sequence* b = <const Sequence*>other
    if a.end != b.end:
        return 1 if a.end > b.end else -1
    return (a.first_row > b.first_row) - (a.first_row < b.first_row)


@cython.final
cdef class _Places:
    """Names, of folders or files."""

    def __dealloc__(self):
        free(self.held)

    cdef int add(self, Place place) except -1:
        if self.n == self.n_room:
            self.n_room = 2 * self.n_room + 64
            self.held = <Place*>resized(self.held, self.n_room * sizeof(Place))
        self.held[self.n] = place
        self.n += 1
        return 0


@cython.final
cdef class LineRows:
    """The program at `at` in .debug_line. is_read: whether it could be read; nothing else means anything where it could
    not. version: of the program; n_spent: how many bytes it has."""

    def __init__(self, const uint8_t[::1] data, uint64_t at, bint big):
        self.data = data
        self.cursor = Cursor(data, big)
        self.folders, self.files = _Places(), _Places()
        self.is_read = self.read_header(at) and self.run()
        if self.is_read and self.n_sequences > 1:
            qsort(self.sequences, self.n_sequences, sizeof(Sequence), by_end)

    def __dealloc__(self):
        free(self.rows)
        free(self.sequences)

    # ------------------------------------------------ the header

    cdef bint read_header(self, uint64_t at) except -1:
        cdef Cursor c = self.cursor
        cdef uint64_t length, header_length
        c.begin(at, self.data.shape[0])
        self.offset_size = 4
        length = c.fixed(4)
        if length == <uint64_t>0xFFFFFFFF:
            self.offset_size = 8
            length = c.fixed(8)
        if c.damage or length > c.end - c.at:
            return False
        self.end = c.at + length
        self.n_spent = length
        c.end = self.end
        self.version = <int>c.fixed(2)
        if c.damage or not 2 <= self.version <= 5:
            return False
        if self.version >= 5:
            c.skip(2)
        header_length = c.fixed(self.offset_size)
        if c.damage or header_length == 0 or header_length > c.end - c.at:
            return False
        self.begin = c.at + header_length
        self.step = c.fixed(1)
        c.skip(2 if self.version >= 4 else 1)
        self.line_base = c.fixed(1)
        if self.line_base >= 128:
            self.line_base -= 256
        self.line_range = c.fixed(1)
        self.opcode_base = c.fixed(1)
        if c.damage or self.line_range == 0 or self.opcode_base == 0:
            return False
        self.lengths_at = c.at
        c.skip(self.opcode_base - 1)
        if c.damage:
            return False
        if self.version >= 5:
            return self.read_table(self.folders) and self.read_table(self.files)
        return self.read_lists()

    cdef bint text(self, Place* place):
        """Whether there is a text at the cursor, behind which that then is."""
        cdef Cursor c = self.cursor
        cdef const void* end
        place.kind, place.at, place.folder = IN_LINE, c.at, 0
        if c.at >= c.end:
            return False
        end = memchr(&self.data[c.at], 0, min(c.end - c.at, <uint64_t>MAX_TEXT))
        if end == NULL:
            return False
        c.at = <const uint8_t*>end - &self.data[0] + 1
        return True

    cdef bint read_lists(self) except -1:
        """Reads directories and files of versions 2 to 4: both lists begin with 1; directory 0 is that of the unit."""
        cdef Cursor c = self.cursor
        cdef Place place
        place.kind, place.at, place.folder = IN_LINE, self.data.shape[0], 0
        self.folders.add(place)
        self.files.add(place)
        while True:
            if not self.text(&place):
                return False
            if self.data[place.at] == 0:
                break
            self.folders.add(place)
        while True:
            if not self.text(&place):
                return False
            if self.data[place.at] == 0:
                return True
            place.folder = c.leb(False)
            c.leb(False)
            c.leb(False)
            if c.damage:
                return False
            self.files.add(place)

    cdef bint read_table(self, _Places places) except -1:
        """Reads directories or files of version 5."""
        cdef Cursor c = self.cursor
        cdef uint64_t[MAX_FORMATS] contents
        cdef uint64_t[MAX_FORMATS] forms
        cdef uint64_t n_formats = c.fixed(1)
        cdef uint64_t n, nth, row, value, form
        cdef Place place
        cdef bint has_path
        if c.damage or n_formats > MAX_FORMATS:
            return False
        for nth in range(n_formats):
            contents[nth], forms[nth] = c.leb(False), c.leb(False)
        n = c.leb(False)
        if c.damage or n > c.end - c.at or (n and not n_formats):
            return False
        for row in range(n):
            place.kind, place.at, place.folder = IN_LINE, self.data.shape[0], 0
            has_path = False
            for nth in range(n_formats):
                form = forms[nth]
                value = 0
                if contents[nth] == PATH:
                    has_path = True
                    if form == INLINE_STRING:
                        value = place.folder
                        if not self.text(&place):
                            return False
                        place.folder = value
                    elif form == STRP or form == LINE_STRP:
                        place.kind = IN_STR if form == STRP else IN_LINE_STR
                        place.at = c.fixed(self.offset_size)
                    else:
                        return False
                    continue
                if form == UDATA:
                    value = c.leb(False)
                elif form == DATA1 or form == DATA2 or form == DATA4 or form == DATA8:
                    value = c.fixed(1 if form == DATA1 else 2 if form == DATA2 else 4 if form == DATA4 else 8)
                elif form == DATA16:
                    c.skip(16)
                elif form == BLOCK:
                    c.skip(c.leb(False))
                elif form == STRP or form == LINE_STRP:
                    c.skip(self.offset_size)
                else:
                    return False
                if contents[nth] == DIRECTORY_INDEX:
                    place.folder = value
            if c.damage or not has_path:
                return False
            places.add(place)
        return True

    def name(self, uint64_t number, bint of_folder):
        """Returns (kind, offset, number of the folder) of the name of a file, or of a folder; None where there is none
        of this number. kind: 0: in .debug_line, 1: .debug_str, 2: .debug_line_str; an offset that is the section's size
        is an empty name."""
        cdef _Places places = self.folders if of_folder else self.files
        if number >= <uint64_t>places.n:
            return None
        cdef Place* place = &places.held[number]
        return place.kind, place.at, place.folder

    # ------------------------------------------------ the program

    cdef bint run(self) except -1:
        cdef Cursor c = self.cursor
        cdef const uint8_t[::1] data = self.data
        cdef uint64_t const_add = (255 - self.opcode_base) // self.line_range * self.step
        cdef uint64_t address = 0
        cdef uint64_t file = 1
        cdef uint64_t line = 1
        # Of the next row alone.
        cdef uint64_t discriminator = 0
        cdef uint64_t opcode, length, nth, behind
        cdef int64_t first = 0
        c.begin(self.begin, self.end)
        while c.at < self.end:
            opcode = data[c.at]
            c.at += 1
            if opcode >= self.opcode_base:
                opcode -= self.opcode_base
                address += opcode // self.line_range * self.step
                line += self.line_base + opcode % self.line_range
                self.add_row(first, address, file, line, discriminator)
                discriminator = 0
            elif opcode == 0:
                length = c.leb(False)
                if c.damage or length == 0 or length > self.end - c.at:
                    return False
                behind = c.at + length
                opcode = data[c.at]
                if opcode == END_SEQUENCE:
                    if self.n_rows > first and self.rows[first].address < address:
                        self.sequences = <Sequence*>grown(self.sequences, self.n_sequences, sizeof(Sequence))
                        self.sequences[self.n_sequences] = Sequence(first, self.n_rows, address)
                        self.n_sequences += 1
                        first = self.n_rows
                    self.n_rows = first
                    address, file, line, discriminator = 0, 1, 1, 0
                elif opcode == SET_ADDRESS:
                    if length > 9:
                        return False
                    address = number(data, c.at + 1, length - 1, c.big)
                elif opcode == DEFINE_FILE:
                    return False
                elif opcode == SET_DISCRIMINATOR:
                    c.at += 1
                    discriminator = c.leb(False)
                c.at = behind
            elif opcode == COPY:
                self.add_row(first, address, file, line, discriminator)
                discriminator = 0
            elif opcode == ADVANCE_PC:
                address += c.leb(False) * self.step
            elif opcode == ADVANCE_LINE:
                line += c.leb(True)
            elif opcode == SET_FILE:
                file = c.leb(False)
            elif opcode == CONST_ADD_PC:
                address += const_add
            elif opcode == FIXED_ADVANCE_PC:
                address += c.fixed(2)
            else:
                for nth in range(data[self.lengths_at + opcode - 1]):
                    c.leb(False)
            if c.damage:
                return False
        return True

    def find(
        self, const int64_t[::1] rows, const uint64_t[::1] begins, const uint64_t[::1] ends,
        const uint64_t[::1] addresses, uint64_t[::1] files, uint64_t[::1] lines, uint64_t[::1] discriminators
    ):
        """Stores what the lines say of some of the addresses, by their rows in all columns. begins, ends: of the
        functions that hold them, an end of 0 is none. Where no sequence holds the beginning of the function, nor the
        address, nothing is stored."""
        cdef Py_ssize_t n = addresses.shape[0]
        cdef Py_ssize_t at
        cdef int64_t nth, row
        if not begins.shape[0] == ends.shape[0] == files.shape[0] == lines.shape[0] == discriminators.shape[0] == n:
            raise ValueError("columns of one length are needed")
        for at in range(rows.shape[0]):
            nth = rows[at]
            if not 0 <= nth < n:
                raise IndexError
            row = -1
            if ends[nth] > 0:
                row = self.row_at(begins[nth], ends[nth], addresses[nth])
            if row < 0:
                # Padding in front of a function's first row may be of it.
                row = self.row_at(addresses[nth], addresses[nth] + 1, addresses[nth])
            if row >= 0:
                files[nth], lines[nth] = self.rows[row].file, self.rows[row].line
                discriminators[nth] = self.rows[row].discriminator

    def number_files(self, const int64_t[::1] rows, const uint64_t[::1] files, int64_t[::1] sources, number_of):
        """Stores the number that `number_of` gives to a file of the program, for some of the rows of `files`. Nothing is
        stored where there is no such file."""
        cdef int64_t* known = <int64_t*>resized(NULL, max(self.files.n, 1) * sizeof(int64_t))
        cdef Py_ssize_t at
        cdef int64_t nth
        try:
            for at in range(self.files.n):
                known[at] = -2
            for at in range(rows.shape[0]):
                nth = rows[at]
                if not (0 <= nth < files.shape[0] and nth < sources.shape[0]):
                    raise IndexError
                if files[nth] < <uint64_t>self.files.n:
                    if known[files[nth]] == -2:
                        known[files[nth]] = number_of(files[nth])
                    sources[nth] = known[files[nth]]
        finally:
            free(known)

    cdef int64_t row_at(self, uint64_t begin, uint64_t end, uint64_t address) noexcept nogil:
        """Returns the last row that is not behind an address of a function, -1 for none. A sequence that begins in
        front of the last row is not of the function."""
        cdef Py_ssize_t low = 0
        cdef Py_ssize_t high = self.n_sequences
        cdef Py_ssize_t nth
        cdef int64_t row = -1
        cdef uint64_t last
        while low < high:
            nth = (low + high) >> 1
            if self.sequences[nth].end <= begin:
                low = nth + 1
            else:
                high = nth
        if low == self.n_sequences or self.rows[self.sequences[low].first_row].address > begin:
            return -1
        last = begin
        for nth in range(low, self.n_sequences):
            if nth > low and not last <= self.rows[self.sequences[nth].first_row].address <= address:
                break
            row = self.last_row(nth, address)
            if address < self.sequences[nth].end:
                break
            last = max(last, self.rows[self.last_row(nth, end - 1)].address)
        return row

    cdef int64_t last_row(self, Py_ssize_t sequence, uint64_t address) noexcept nogil:
        """Returns the last row of a sequence that is not behind an address."""
        cdef int64_t low = self.sequences[sequence].first_row
        cdef int64_t high = self.sequences[sequence].end_row
        cdef int64_t middle
        while low < high:
            middle = (low + high) >> 1
            if self.rows[middle].address <= address:
                low = middle + 1
            else:
                high = middle
        return low - 1
