"""Reads whole units of .debug_info in bulk: their functions with rows of lines and inlined calls, as columns.

What a unit says is what `DebugInfo` of debug_info.py says of it. A unit that is damaged, or of an unusual coding, adds
nothing and is left to that.
"""

import numpy as np

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memset

from traceferry.native.hashing cimport mix_pair
from traceferry.native.memory cimport grown, resized
from traceferry.symbolication._ranges cimport Range, Ranges
from traceferry.symbolication.dwarf._entries cimport (
    BLOCK,
    CALL_COLUMN,
    CALL_FILE,
    CALL_LINE,
    DECL_COLUMN,
    DECL_FILE,
    DECL_LINE,
    ELSEWHERE,
    INLINED,
    LINKAGE,
    MAX_INLINED,
    MAX_ORIGINS,
    MIPS_LINKAGE,
    NAME,
    NO_NAME,
    NUMBER,
    OTHER_KIND,
    SHARED_BIT,
    SPECIFICATION,
    SUBPROGRAM,
    Entries,
    Shape,
    Value,
)
from traceferry.symbolication.dwarf._line_rows cimport LineRows

cdef enum:
    # As forms.py counts the work.
    EFFORT = 8
    FUNCTION_EFFORT = 16
    ROW_EFFORT = 4
    # No source of a file is known yet.
    NOT_ASKED = -2

cdef uint64_t MAX_SIZE = <uint64_t>1 << 32
cdef uint64_t MAX_LINE = <uint64_t>1 << 32


cdef struct Described:
    # An entry, and what it and those say that it specifies or instantiates; of which entry it is an instance.
    uint64_t entry
    uint64_t instance
    uint64_t value
    uint64_t line
    uint64_t column
    uint64_t file
    # The unit that numbers the file; -1: none is said.
    int64_t file_unit
    uint8_t has_line
    # Of the name, which is not the linkage name where others may stand in front.
    uint8_t kind
    uint8_t is_linkage
    # The row of the name, alone and with what is in front of it; -1: none yet.
    int32_t alone
    int32_t qualified


cdef struct Piece:
    uint64_t begin
    uint64_t end
    uint64_t entry
    # Which entry describes it: itself, or the first to which it refers.
    uint64_t described_by
    # Where its first child is, 0 without any.
    uint64_t children
    int64_t first_call
    int64_t end_call


cdef struct UnitCall:
    uint64_t described_by
    uint64_t file
    uint64_t line
    uint64_t column
    int64_t parent
    int64_t first_range
    int64_t end_range
    int64_t description
    int32_t depth
    # Of the calls around it, and itself, those that are shown.
    int32_t shown_depth
    uint8_t is_rest


cdef struct Name:
    uint64_t value
    uint64_t target
    uint8_t kind
    uint8_t is_qualified


cdef struct OutFunction:
    uint64_t start
    uint64_t size
    int64_t end_row
    int64_t end_call
    int32_t name


cdef struct OutRow:
    uint64_t address
    int32_t source
    uint32_t line


cdef struct OutCall:
    int64_t end_range
    int32_t name
    int32_t source
    uint32_t line
    int32_t depth


@cython.final
cdef class Functions:
    """The functions of units, as `read` adds them. text: (begin, end) of sections with code, rising; allowed: how many
    bytes the sections have, which bound the work."""

    cdef Entries entries
    cdef const uint64_t[:, ::1] text
    # Of the unit that is read.
    cdef Piece* pieces
    cdef Py_ssize_t n_pieces
    cdef UnitCall* calls
    cdef Py_ssize_t n_calls
    cdef Ranges ranges
    cdef int64_t* levels
    cdef Py_ssize_t n_level_room
    cdef LineRows lines
    cdef int32_t* sources
    cdef Py_ssize_t n_sources
    cdef object unit
    # Of all units: what entries say, by hash.
    cdef Described* described
    cdef Py_ssize_t n_described
    cdef int64_t* slots
    cdef Py_ssize_t n_slots
    cdef Name* names
    cdef Py_ssize_t n_names
    # The columns.
    cdef OutFunction* functions
    cdef Py_ssize_t n_functions
    cdef OutRow* rows
    cdef Py_ssize_t n_rows
    cdef OutCall* out_calls
    cdef Py_ssize_t n_out_calls
    cdef Ranges out_ranges

    def __init__(self, Entries entries, const uint64_t[:, ::1] text, int64_t allowed):
        if text.shape[1] != 2:
            raise ValueError("text: pairs are needed")
        self.entries = entries
        self.text = text
        entries.allowed = entries.left = EFFORT * allowed
        self.ranges = Ranges()
        self.out_ranges = Ranges()

    def __dealloc__(self):
        free(self.pieces)
        free(self.calls)
        free(self.levels)
        free(self.sources)
        free(self.described)
        free(self.slots)
        free(self.names)
        free(self.functions)
        free(self.rows)
        free(self.out_calls)

    # ------------------------------------------------ one unit

    def find(self, Py_ssize_t nth):
        """Returns how many pieces of code a unit describes, -1 where that cannot be read."""
        cdef Entries entries = self.entries
        if not 0 <= nth < entries.n_units:
            raise IndexError
        self.n_pieces = 0
        if entries.is_of_types(nth):
            return 0
        if not entries.begin(nth, True) or not self.find_pieces():
            self.n_pieces = 0
            return -1
        return self.n_pieces

    def read(self, Py_ssize_t nth, LineRows lines, unit, bint is_qualified):
        """Adds the functions of the unit that `find` found last. Returns how many, -1 where they cannot be read: then
        nothing is added. lines: of the unit, None: it has none; unit: its source(number of a file) is the number of the
        path, -1 is none, and source_elsewhere(unit, number of a file) that of another unit's, which is in the file that
        several share where it has the bit SHARED_BIT; is_qualified: whether names have namespaces and classes in front.
        Raises what these raise, and then adds nothing, either."""
        cdef Py_ssize_t n_functions = self.n_functions
        cdef Py_ssize_t n_rows = self.n_rows
        cdef Py_ssize_t n_out_calls = self.n_out_calls
        cdef Py_ssize_t n_ranges = self.out_ranges.n
        cdef Py_ssize_t row
        cdef bint is_read = False
        if not 0 <= nth < self.entries.n_units:
            raise IndexError
        self.lines, self.unit = lines, unit
        self.n_sources = lines.files.n if lines is not None else 0
        self.sources = <int32_t*>resized(self.sources, self.n_sources * sizeof(int32_t))
        for row in range(self.n_sources):
            self.sources[row] = NOT_ASKED
        try:
            is_read = self.entries.begin(nth, True) and self.read_calls() and self.describe() and self.add_all(
                nth, is_qualified
            )
        finally:
            if not is_read:
                self.n_functions, self.n_rows, self.n_out_calls = n_functions, n_rows, n_out_calls
                self.out_ranges.n = n_ranges
        return self.n_functions - n_functions if is_read else -1

    cdef inline bint spend(self, int64_t amount) noexcept nogil:
        return self.entries.spend(amount)

    cdef bint is_code(self, uint64_t address) noexcept nogil:
        cdef Py_ssize_t low = 0
        cdef Py_ssize_t high = self.text.shape[0]
        cdef Py_ssize_t middle
        while low < high:
            middle = (low + high) >> 1
            if self.text[middle, 0] <= address:
                low = middle + 1
            else:
                high = middle
        return low > 0 and address + 1 <= self.text[low - 1, 1]

    cdef bint find_pieces(self) except -1:
        """Goes through all entries of the unit. Returns False where they are damaged."""
        cdef Entries entries = self.entries
        cdef const uint8_t* info = entries.info
        cdef int64_t at = entries.header.at
        cdef int64_t end = entries.header.end
        cdef int64_t offset
        cdef uint64_t code
        cdef Py_ssize_t depth = 0
        cdef const Shape* shape
        if not self.spend(end - at):
            return False
        while at < end:
            offset = at
            if info[at] < 0x80:
                code, at = info[at], at + 1
            else:
                code, at = entries.leb(at, False)
                if at < 0:
                    return False
            if code == 0:
                if depth == 0:
                    break
                depth -= 1
                continue
            shape = entries.table.of(code)
            if shape == NULL:
                return False
            if shape.kind == SUBPROGRAM and shape.has_code:
                at = entries.attributes(shape, at)
                if at < 0 or not self.add_pieces(offset, at if shape.has_children else 0):
                    return False
            else:
                at = entries.skipped(shape, at)
                if at < 0:
                    return False
            depth += shape.has_children
        return True

    cdef uint64_t described_by(self, uint64_t entry) noexcept nogil:
        """Returns the entry that says what one says whose attributes were read: the one to which it refers, where it
        says nothing itself."""
        cdef const Value* values = self.entries.values
        cdef int64_t origin
        if values[NAME].meaning or values[LINKAGE].meaning or values[MIPS_LINKAGE].meaning:
            return entry
        if values[DECL_LINE].meaning or values[DECL_FILE].meaning or values[SPECIFICATION].meaning:
            return entry
        origin = self.entries.origin()
        return origin if origin >= 0 else entry

    cdef bint add_pieces(self, uint64_t entry, uint64_t children) except -1:
        cdef Py_ssize_t nth
        cdef Range held
        self.ranges.n = 0
        if not self.entries.ranges_of_entry(self.ranges):
            return False
        for nth in range(self.ranges.n):
            held = self.ranges.held[nth]
            if held.begin >= held.end or held.end - held.begin >= MAX_SIZE or not self.is_code(held.begin):
                continue
            self.pieces = <Piece*>grown(self.pieces, self.n_pieces, sizeof(Piece))
            self.pieces[self.n_pieces] = Piece(held.begin, held.end, entry, self.described_by(entry), children, 0, 0)
            self.n_pieces += 1
        return True

    # ------------------------------------------------ inlined calls

    cdef bint read_calls(self) except -1:
        cdef Py_ssize_t nth
        self.n_calls = self.ranges.n = 0
        for nth in range(self.n_pieces):
            self.pieces[nth].first_call = self.n_calls
            if self.pieces[nth].children and not self.read_calls_of(nth):
                return False
            self.pieces[nth].end_call = self.n_calls
        return True

    cdef bint read_calls_of(self, Py_ssize_t nth) except -1:
        """Reads the calls that are inlined into a piece, those around others first."""
        cdef Entries entries = self.entries
        cdef const uint8_t* info = entries.info
        cdef int64_t at = self.pieces[nth].children
        cdef int64_t end = entries.header.end
        cdef int64_t begin = at
        cdef int64_t offset, next_, call
        cdef int64_t first_range = self.ranges.n
        cdef uint64_t code
        cdef Py_ssize_t depth = 0
        # Below a child that is not looked into.
        cdef Py_ssize_t ignored = 0
        cdef const Shape* shape
        self.ranges.add(self.pieces[nth].begin, self.pieces[nth].end)
        self.set_level(0, -1)
        while at < end:
            offset = at
            if info[at] < 0x80:
                code, at = info[at], at + 1
            else:
                code, at = entries.leb(at, False)
                if at < 0:
                    return False
            if code == 0:
                if ignored:
                    ignored -= 1
                elif depth == 0:
                    break
                else:
                    depth -= 1
                continue
            shape = entries.table.of(code)
            if shape == NULL:
                return False
            if ignored or (shape.kind != INLINED and not shape.has_children):
                at = entries.skipped(shape, at)
                if at < 0:
                    return False
                ignored += ignored > 0 and shape.has_children
                continue
            at = entries.attributes(shape, at)
            if at < 0:
                return False
            call = self.levels[depth]
            if shape.kind == INLINED:
                call = self.add_call(offset, call, first_range)
                if call == -2:
                    return False
            elif shape.kind != BLOCK:
                call = -3
            if not shape.has_children:
                continue
            if call == -3:
                next_ = entries.sibling(at)
                if next_ >= 0:
                    at = next_
                else:
                    ignored = 1
                continue
            depth += 1
            self.set_level(depth, call)
        return self.spend(at - begin)

    cdef int set_level(self, Py_ssize_t depth, int64_t call) except -1:
        if depth == self.n_level_room:
            self.n_level_room = 2 * depth + 64
            self.levels = <int64_t*>resized(self.levels, self.n_level_room * sizeof(int64_t))
        self.levels[depth] = call
        return 0

    cdef int64_t add_call(self, uint64_t entry, int64_t parent, int64_t of_piece) except -1000:
        """Returns the number of the call whose attributes were read; -3: none of its code is in what is around it; -2:
        it is damaged. parent: the call that it is inlined into, -1: the function, whose range is that of number
        of_piece."""
        cdef Py_ssize_t first = self.ranges.n
        cdef Py_ssize_t kept = first
        cdef Py_ssize_t row
        cdef Py_ssize_t within = self.calls[parent].first_range if parent >= 0 else of_piece
        cdef Py_ssize_t within_end = self.calls[parent].end_range if parent >= 0 else of_piece + 1
        cdef const Value* values = self.entries.values
        cdef UnitCall call
        cdef Range held
        memset(&call, 0, sizeof(UnitCall))
        call.depth = self.calls[parent].depth + 1 if parent >= 0 else 1
        call.parent = parent
        call.file = values[CALL_FILE].value if values[CALL_FILE].meaning == NUMBER else ~<uint64_t>0
        call.line = values[CALL_LINE].value if values[CALL_LINE].meaning == NUMBER else 0
        call.column = values[CALL_COLUMN].value if values[CALL_COLUMN].meaning == NUMBER else 0
        call.described_by = self.described_by(entry)
        if call.depth > MAX_INLINED:
            return -3
        if call.line >= MAX_LINE or not self.entries.ranges_of_entry(self.ranges):
            return -2
        for row in range(first, self.ranges.n):
            held = self.ranges.held[row]
            if self.is_within(within, within_end, held):
                self.ranges.held[kept] = held
                kept += 1
        self.ranges.n = kept
        self.ranges.merge_from(first)
        if self.ranges.n == first:
            return -3
        if not self.spend(FUNCTION_EFFORT):
            return -2
        call.first_range, call.end_range = first, self.ranges.n
        self.calls = <UnitCall*>grown(self.calls, self.n_calls, sizeof(UnitCall))
        self.calls[self.n_calls] = call
        self.n_calls += 1
        return self.n_calls - 1

    cdef bint is_within(self, Py_ssize_t low, Py_ssize_t high, Range held) noexcept nogil:
        """Whether one of merged ranges holds this one."""
        cdef Py_ssize_t first = low
        cdef Py_ssize_t middle
        while low < high:
            middle = (low + high) >> 1
            if self.ranges.held[middle].begin <= held.begin:
                low = middle + 1
            else:
                high = middle
        return low > first and held.end <= self.ranges.held[low - 1].end

    # ------------------------------------------------ what entries say

    cdef bint describe(self) except -1:
        """Finds what describes each piece and call, and which calls are the rest of the function around them. Other
        units may be read for it."""
        cdef Py_ssize_t nth, row
        cdef int64_t around
        cdef Piece* piece
        cdef UnitCall* call
        for nth in range(self.n_pieces):
            piece = &self.pieces[nth]
            around = self.description_of(piece.described_by)
            if around < 0:
                return False
            for row in range(piece.first_call, piece.end_call):
                call = &self.calls[row]
                call.description = self.description_of(call.described_by)
                if call.description < 0:
                    return False
                call.is_rest = self.is_rest(call, self.calls[call.parent].description if call.parent >= 0 else around)
                call.shown_depth = self.calls[call.parent].shown_depth if call.parent >= 0 else 0
                call.shown_depth += not call.is_rest
        return True

    cdef bint is_rest(self, const UnitCall* call, int64_t around) noexcept nogil:
        """As DebugInfo.is_rest_of has it."""
        cdef const Described* one = &self.described[call.description]
        if one.instance != self.described[around].instance or one.line == 0 or one.line != call.line:
            return False
        if one.column and call.column and one.column != call.column:
            return False
        return self.has_same_name(one, &self.described[around])

    cdef bint has_same_name(self, const Described* one, const Described* other) noexcept nogil:
        if one.kind == NO_NAME or other.kind == NO_NAME or one.is_linkage != other.is_linkage:
            return one.kind == other.kind
        return self.entries.are_same(one.kind, one.value, other.kind, other.value)

    cdef int64_t description_of(self, uint64_t entry) except -2:
        """Returns the number of what an entry says, -1 where it cannot be read."""
        cdef Py_ssize_t at, nth
        cdef Described found
        if 2 * self.n_described >= self.n_slots:
            self.n_slots = 4 * self.n_slots if self.n_slots else 1024
            self.slots = <int64_t*>resized(self.slots, self.n_slots * sizeof(int64_t))
            memset(self.slots, 0xFF, self.n_slots * sizeof(int64_t))
            for nth in range(self.n_described):
                self.slots[self.slot_of(self.described[nth].entry)] = nth
        at = self.slot_of(entry)
        if self.slots[at] < 0:
            if not self.read_description(entry, &found):
                return -1
            self.described = <Described*>grown(self.described, self.n_described, sizeof(Described))
            self.described[self.n_described] = found
            self.slots[at] = self.n_described
            self.n_described += 1
        return self.slots[at]

    cdef Py_ssize_t slot_of(self, uint64_t entry) noexcept nogil:
        cdef uint64_t mask = self.n_slots - 1
        cdef uint64_t at = mix_pair(<int32_t>0, entry) & mask
        while self.slots[at] >= 0 and self.described[self.slots[at]].entry != entry:
            at = (at + 1) & mask
        return at

    cdef bint read_description(self, uint64_t entry, Described* found) except -1:
        cdef Entries entries = self.entries
        cdef Entries file
        cdef int64_t next_ = entry
        cdef int step
        cdef bint is_specified = False
        memset(found, 0, sizeof(Described))
        found.entry, found.file_unit, found.alone, found.qualified = entry, -1, -1, -1
        for step in range(MAX_ORIGINS):
            file = entries.goes_to(next_)
            if file is None or file.kind == OTHER_KIND:
                return False
            if not is_specified:
                found.instance = next_
                is_specified = file.has_specification()
            if not self.add_names(file, found):
                return False
            self.add_place(file, found)
            next_ = entries.origin_in(file)
            if next_ < 0:
                break
        return next_ != -2

    cdef bint add_names(self, Entries file, Described* found) noexcept nogil:
        """Whether the names of the entry whose attributes were read can be."""
        cdef uint64_t value = 0
        cdef int kind = NO_NAME
        if not found.is_linkage:
            kind = self.entries.text_in(file, MIPS_LINKAGE, &value)
            if kind == NO_NAME:
                kind = self.entries.text_in(file, LINKAGE, &value)
            found.is_linkage = kind != NO_NAME
        if found.kind == NO_NAME and kind == NO_NAME:
            kind = self.entries.text_in(file, NAME, &value)
        if kind != NO_NAME:
            found.kind, found.value = <uint8_t>kind, value
        return kind != ELSEWHERE

    cdef void add_place(self, Entries file, Described* found) noexcept nogil:
        """Adds where the entry whose attributes were read is declared, unless that is known."""
        cdef const Value* values = file.values
        if not found.has_line and values[DECL_LINE].meaning == NUMBER:
            found.has_line = True
            found.line = values[DECL_LINE].value
            found.column = values[DECL_COLUMN].value if values[DECL_COLUMN].meaning == NUMBER else 0
        if found.file_unit < 0 and values[DECL_FILE].meaning == NUMBER:
            found.file = values[DECL_FILE].value
            found.file_unit = file.unit | (<int64_t>(file is not self.entries) << SHARED_BIT)

    cdef int32_t name_of(self, int64_t description, uint64_t target, bint is_qualified) except -2:
        """Returns the row of a name in `names`, -1: there is none. target: the entry around which other names are
        looked for."""
        cdef Described* one = &self.described[description]
        cdef bint with_others
        if one.kind == NO_NAME:
            return -1
        if one.alone >= 0 and (one.is_linkage or not is_qualified):
            return one.alone
        if one.qualified >= 0 and is_qualified and target == one.entry:
            return one.qualified
        with_others = is_qualified and not one.is_linkage and not self.entries.begins(one.kind, one.value, b"_Z")
        if not with_others:
            if one.alone < 0:
                one.alone = self.add_name(one, one.entry, False)
            return one.alone
        if target != one.entry:
            return self.add_name(one, target, True)
        if one.qualified < 0:
            one.qualified = self.add_name(one, target, True)
        return one.qualified

    cdef int32_t add_name(self, const Described* one, uint64_t target, bint is_qualified) except -2:
        self.names = <Name*>grown(self.names, self.n_names, sizeof(Name))
        self.names[self.n_names] = Name(one.value, target, one.kind, is_qualified)
        self.n_names += 1
        return <int32_t>(self.n_names - 1)

    # ------------------------------------------------ columns

    cdef bint add_all(self, Py_ssize_t nth, bint is_qualified) except -1:
        cdef Py_ssize_t row
        cdef Py_ssize_t n_rows
        cdef Piece* piece
        cdef int64_t description
        cdef int32_t name = -1
        cdef uint64_t last_entry = 0
        for row in range(self.n_pieces):
            piece = &self.pieces[row]
            description = self.description_of(piece.described_by)
            if piece.entry != last_entry:
                # The parts of a function have one name.
                name = self.name_of(description, piece.entry, is_qualified)
                last_entry = piece.entry
            n_rows = self.n_rows
            if not self.spend(FUNCTION_EFFORT) or not self.add_rows(piece.begin, piece.end):
                return False
            if self.n_rows == n_rows:
                self.add_declaration(nth, &self.described[description], piece.begin)
            self.add_calls(piece, is_qualified)
            self.functions = <OutFunction*>grown(self.functions, self.n_functions, sizeof(OutFunction))
            self.functions[self.n_functions] = OutFunction(
                piece.begin, piece.end - piece.begin, self.n_rows, self.n_out_calls, name
            )
            self.n_functions += 1
        return True

    cdef int32_t source(self, uint64_t file) except -2:
        """Returns the path of a file of the unit, -1: there is none of this number."""
        if file >= <uint64_t>self.n_sources:
            return -1
        if self.sources[file] == NOT_ASKED:
            self.sources[file] = self.unit.source(file)
        return self.sources[file]

    cdef bint add_rows(self, uint64_t begin, uint64_t end) except -1:
        """Adds the rows from `begin` on, as LineTable.rows has them; those that say the same as the one before are left
        out."""
        cdef LineRows lines = self.lines
        cdef Py_ssize_t n_before = self.n_rows
        cdef Py_ssize_t nth = 0
        cdef Py_ssize_t high, middle
        cdef int64_t first, last, row
        cdef uint64_t address
        cdef uint64_t last_address = begin
        cdef uint32_t line
        cdef int32_t source
        if lines is None:
            return True
        high = lines.n_sequences
        while nth < high:
            middle = (nth + high) >> 1
            if lines.sequences[middle].end <= begin:
                nth = middle + 1
            else:
                high = middle
        while nth < lines.n_sequences and lines.rows[lines.sequences[nth].first_row].address < end:
            if self.n_rows == n_before and lines.rows[lines.sequences[nth].first_row].address > begin:
                break
            first = max(lines.last_row(nth, begin), lines.sequences[nth].first_row)
            last = lines.last_row(nth, end - 1) + 1
            if not self.spend(ROW_EFFORT * (last - first)):
                return False
            for row in range(first, last):
                address = max(lines.rows[row].address, begin)
                if address < last_address:
                    return True
                last_address = address
                source, line = self.source(lines.rows[row].file), lines.rows[row].line
                if self.n_rows > n_before:
                    if self.rows[self.n_rows - 1].source == source and self.rows[self.n_rows - 1].line == line:
                        continue
                self.rows = <OutRow*>grown(self.rows, self.n_rows, sizeof(OutRow))
                self.rows[self.n_rows] = OutRow(address, source, line)
                self.n_rows += 1
            nth += 1
        return True

    cdef int add_declaration(self, Py_ssize_t nth, const Described* described, uint64_t begin) except -1:
        """Adds the line of the declaration of a function, as DebugInfo.declared_at has it."""
        cdef int32_t source = -1
        if described.file_unit == nth:
            source = self.source(described.file)
        elif described.file_unit >= 0:
            source = self.unit.source_elsewhere(described.file_unit, described.file)
        if source >= 0 and described.line:
            self.rows = <OutRow*>grown(self.rows, self.n_rows, sizeof(OutRow))
            self.rows[self.n_rows] = OutRow(begin, source, <uint32_t>described.line)
            self.n_rows += 1
        return 0

    cdef int add_calls(self, const Piece* piece, bint is_qualified) except -1:
        cdef Py_ssize_t row
        cdef int64_t nth
        cdef int32_t name, source
        cdef UnitCall* call
        for row in range(piece.first_call, piece.end_call):
            call = &self.calls[row]
            if call.is_rest:
                continue
            name = self.name_of(call.description, self.described[call.description].entry, is_qualified)
            source = self.source(call.file)
            for nth in range(call.first_range, call.end_range):
                self.out_ranges.add(self.ranges.held[nth].begin, self.ranges.held[nth].end)
            self.out_calls = <OutCall*>grown(self.out_calls, self.n_out_calls, sizeof(OutCall))
            self.out_calls[self.n_out_calls] = OutCall(
                self.out_ranges.n, name, source, <uint32_t>call.line, call.shown_depth
            )
            self.n_out_calls += 1
        return 0

    def names_wanted(self):
        """Returns the names: kind, value and entry, as `Entries.names` has them, uint8 and uint64; whether those of
        what is around the entry are in front: bool."""
        kinds, are_qualified = np.empty(self.n_names, np.uint8), np.empty(self.n_names, np.bool_)
        values, targets = np.empty(self.n_names, np.uint64), np.empty(self.n_names, np.uint64)
        cdef uint8_t[::1] kind = kinds
        cdef uint8_t[::1] is_qualified = are_qualified.view(np.uint8)
        cdef uint64_t[::1] value = values
        cdef uint64_t[::1] target = targets
        cdef Py_ssize_t row
        for row in range(self.n_names):
            kind[row], is_qualified[row] = self.names[row].kind, self.names[row].is_qualified
            value[row], target[row] = self.names[row].value, self.names[row].target
        return kinds, values, targets, are_qualified

    def of_functions(self):
        """Returns (name, start, size; first_row, first_call, of one more): int32, a row of names_wanted, -1 is none;
        uint64; int64."""
        cdef Py_ssize_t n = self.n_functions
        cdef Py_ssize_t row
        names, starts, sizes = np.empty(n, np.int32), np.empty(n, np.uint64), np.empty(n, np.uint64)
        first_rows, first_calls = np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64)
        cdef int32_t[::1] name = names
        cdef uint64_t[::1] start = starts
        cdef uint64_t[::1] size = sizes
        cdef int64_t[::1] first_row = first_rows
        cdef int64_t[::1] first_call = first_calls
        for row in range(n):
            name[row], start[row], size[row] = (
                self.functions[row].name, self.functions[row].start, self.functions[row].size
            )
            first_row[row + 1], first_call[row + 1] = self.functions[row].end_row, self.functions[row].end_call
        return names, starts, sizes, first_rows, first_calls

    def of_rows(self):
        """Returns (address, source, line): uint64; int32, what `source` of the unit said; uint32."""
        cdef Py_ssize_t n = self.n_rows
        cdef Py_ssize_t row
        addresses, sources, lines = np.empty(n, np.uint64), np.empty(n, np.int32), np.empty(n, np.uint32)
        cdef uint64_t[::1] address = addresses
        cdef int32_t[::1] source = sources
        cdef uint32_t[::1] line = lines
        for row in range(n):
            address[row], source[row], line[row] = self.rows[row].address, self.rows[row].source, self.rows[row].line
        return addresses, sources, lines

    def of_calls(self):
        """Returns (name, source, line, depth; first_range, of one more; begin and end of ranges): int32, a row of
        names_wanted, -1 is none; int32; uint32; int32, from 1 on; int64; uint64. A call is behind the one that it is
        inlined into."""
        cdef Py_ssize_t n = self.n_out_calls
        cdef Py_ssize_t row
        names, sources, lines, depths = (np.empty(n, kind) for kind in (np.int32, np.int32, np.uint32, np.int32))
        first_ranges = np.zeros(n + 1, np.int64)
        begins, ends = np.empty(self.out_ranges.n, np.uint64), np.empty(self.out_ranges.n, np.uint64)
        cdef int32_t[::1] name = names
        cdef int32_t[::1] source = sources
        cdef uint32_t[::1] line = lines
        cdef int32_t[::1] depth = depths
        cdef int64_t[::1] first_range = first_ranges
        cdef uint64_t[::1] begin = begins
        cdef uint64_t[::1] end = ends
        for row in range(n):
            name[row], source[row] = self.out_calls[row].name, self.out_calls[row].source
            line[row], depth[row] = self.out_calls[row].line, self.out_calls[row].depth
            first_range[row + 1] = self.out_calls[row].end_range
        for row in range(self.out_ranges.n):
            begin[row], end[row] = self.out_ranges.held[row].begin, self.out_ranges.held[row].end
        return names, sources, lines, depths, first_ranges, begins, ends
