"""The formats' numbers: versions, flags, slabs, and the categories of profiles that list none.

Sources: src/types/profile.ts, src/types/gecko-profile.ts, src/profile-logic/processed-profile-versioning.ts and
docs-developer/CHANGELOG-formats.md of the Firefox Profiler; versions 71 to 75 as @firefox-devtools/profiler-cli 0.10.0
reads them.
"""

from __future__ import annotations

from enum import IntEnum, IntFlag

NEWEST_PROCESSED = 75
NEWEST_GECKO = 36
OLDEST_GECKO = 3

JSLB_VERSION = 1
JSLB_HEADER = 20
JSLB_ENTRY = 12
JSLB_ALIGNMENT = 8
JSLB_JSON = 10
MAX_SLAB_DEPTH = 64
SLAB = "$s"
# By the number of the type.
SLAB_DTYPES = ("i1", "u1", "<i2", "<u2", "<i4", "<u4", "<f4", "<f8", "<i8", "<u8")


class FrameFlag(IntFlag):
    """The columns of a frame that count, from version 71 on."""

    INLINED = 1
    ADDRESS = 2
    CATEGORY = 4
    SYMBOL = 8
    LINE = 16
    COLUMN = 32
    LOCATION = 64


class FuncFlag(IntFlag):
    """The columns of a function that count, from version 75 on."""

    IS_JS = 1
    RELEVANT_FOR_JS = 2
    RESOURCE = 4
    SOURCE = 8
    LINE = 16
    COLUMN = 32
    LOCATION = 64


class Phase(IntEnum):
    """The meaning of a marker's times, from version 30 on."""

    INSTANT = 0
    INTERVAL = 1
    START = 2
    END = 3


# Until version 11 a profile lists no categories; these are the ones that it is given then.
DEFAULT_CATEGORIES = (
    ("Idle", "transparent"),
    ("Other", "grey"),
    ("Layout", "purple"),
    ("JavaScript", "yellow"),
    ("GC / CC", "orange"),
    ("Network", "lightblue"),
    ("Graphics", "green"),
    ("DOM", "blue"),
)
OTHER = "Other"
JAVASCRIPT = ("JavaScript", "yellow")

# Members of a profile and of a thread that the model has no place for.
UNUSED_OF_PROFILE = ("pages", "profilerOverhead", "profilingLog", "profileGatheringLog", "visualMetrics")
UNUSED_OF_THREAD = ("jsTracer", "tracedValuesBuffer", "tracedObjectShapes")
UNUSED_OF_SAMPLES = ("eventDelay", "responsiveness", "argumentValues", "rss", "uss", "frameNumber")
