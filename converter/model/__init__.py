"""The model of a trace: the declaration (`schema`), tables in memory (`tables`), and the objects (`trace`).

What every importer promises and every exporter relies on beyond dtypes is in `laws`. What others use has its name here.
"""

from traceferry.model.schema import (
    ALLOCATIONS as ALLOCATIONS,
)
from traceferry.model.schema import (
    ARGUMENTS as ARGUMENTS,
)
from traceferry.model.schema import (
    CALLS as CALLS,
)
from traceferry.model.schema import (
    CATEGORIES as CATEGORIES,
)
from traceferry.model.schema import (
    CODE as CODE,
)
from traceferry.model.schema import (
    CODE_MAPPINGS as CODE_MAPPINGS,
)
from traceferry.model.schema import (
    COUNTER_VALUES as COUNTER_VALUES,
)
from traceferry.model.schema import (
    COVERAGE as COVERAGE,
)
from traceferry.model.schema import (
    FIELD_DTYPES as FIELD_DTYPES,
)
from traceferry.model.schema import (
    FRAMES as FRAMES,
)
from traceferry.model.schema import (
    FUNCS as FUNCS,
)
from traceferry.model.schema import (
    GLOBAL_TABLES as GLOBAL_TABLES,
)
from traceferry.model.schema import (
    HEAP_OBJECTS as HEAP_OBJECTS,
)
from traceferry.model.schema import (
    HEAP_ROOTS as HEAP_ROOTS,
)
from traceferry.model.schema import (
    HEAP_TABLES as HEAP_TABLES,
)
from traceferry.model.schema import (
    LIBS as LIBS,
)
from traceferry.model.schema import (
    MARKER_COLORS as MARKER_COLORS,
)
from traceferry.model.schema import (
    MARKER_COLUMNS as MARKER_COLUMNS,
)
from traceferry.model.schema import (
    PREEMPTED as PREEMPTED,
)
from traceferry.model.schema import (
    RUNNING as RUNNING,
)
from traceferry.model.schema import (
    SAMPLES as SAMPLES,
)
from traceferry.model.schema import (
    SCHEDULING as SCHEDULING,
)
from traceferry.model.schema import (
    SOURCES as SOURCES,
)
from traceferry.model.schema import (
    STACKS as STACKS,
)
from traceferry.model.schema import (
    STATES as STATES,
)
from traceferry.model.schema import (
    SYMBOLS as SYMBOLS,
)
from traceferry.model.schema import (
    THREAD_TABLES as THREAD_TABLES,
)
from traceferry.model.schema import (
    TIERS as TIERS,
)
from traceferry.model.schema import (
    TS as TS,
)
from traceferry.model.schema import (
    WAITING as WAITING,
)
from traceferry.model.schema import (
    Array as Array,
)
from traceferry.model.schema import (
    Column as Column,
)
from traceferry.model.schema import (
    FieldFormat as FieldFormat,
)
from traceferry.model.schema import (
    MarkerCategory as MarkerCategory,
)
from traceferry.model.schema import (
    MarkerField as MarkerField,
)
from traceferry.model.schema import (
    MarkerType as MarkerType,
)
from traceferry.model.schema import (
    TableSpec as TableSpec,
)
from traceferry.model.schema import (
    describe as describe,
)
from traceferry.model.tables import (
    GrowingTable as GrowingTable,
)
from traceferry.model.tables import (
    StreamedTable as StreamedTable,
)
from traceferry.model.tables import (
    Strings as Strings,
)
from traceferry.model.tables import (
    Table as Table,
)
from traceferry.model.tables import (
    containing_interval as containing_interval,
)
from traceferry.model.tables import (
    distinct as distinct,
)
from traceferry.model.tables import (
    index_of as index_of,
)
from traceferry.model.tables import (
    rows_by_key as rows_by_key,
)
from traceferry.model.trace import (
    Clock as Clock,
)
from traceferry.model.trace import (
    ClockKind as ClockKind,
)
from traceferry.model.trace import (
    CodeReader as CodeReader,
)
from traceferry.model.trace import (
    Counter as Counter,
)
from traceferry.model.trace import (
    HeapGraph as HeapGraph,
)
from traceferry.model.trace import (
    HeapSnapshot as HeapSnapshot,
)
from traceferry.model.trace import (
    Input as Input,
)
from traceferry.model.trace import (
    LibraryReader as LibraryReader,
)
from traceferry.model.trace import (
    NativeFunction as NativeFunction,
)
from traceferry.model.trace import (
    Process as Process,
)
from traceferry.model.trace import (
    Sampling as Sampling,
)
from traceferry.model.trace import (
    Thread as Thread,
)
from traceferry.model.trace import (
    ThreadData as ThreadData,
)
from traceferry.model.trace import (
    Trace as Trace,
)
from traceferry.model.trace import (
    TraceBuilder as TraceBuilder,
)
from traceferry.native.call_flags import (
    ENTRY_LOST as ENTRY_LOST,
)
from traceferry.native.call_flags import (
    LEAVE as LEAVE,
)
from traceferry.native.call_flags import (
    OPEN_AT_END as OPEN_AT_END,
)
from traceferry.native.call_flags import (
    OPEN_AT_START as OPEN_AT_START,
)
from traceferry.native.call_flags import (
    TAIL as TAIL,
)
from traceferry.native.call_flags import (
    UNWOUND as UNWOUND,
)
