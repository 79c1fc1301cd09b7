"""The feature sections of a file, or the HEADER_FEATURE records of a pipe."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from traceferry.importers.perf.fields import CutError, Fields, until_nul
from traceferry.importers.perf.layout import (
    BUILD_ID_SIZE,
    MISC_BUILD_ID_SIZE,
    RECORD_HEADER_SIZE,
    SECTION_SIZE,
    Feature,
    Header,
    Section,
    feature_name,
)
from traceferry.importers.perf.recording import Features, Problem


@dataclass
class FeatureReader:
    """Fills in `features`; tracing_data: where that section lies, to be read when the events are known. data: what all
    offsets refer to."""

    data: memoryview
    header: Header
    features: Features = field(default_factory=Features)
    tracing_data: list[tuple[int, int]] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    def read_sections(self) -> None:
        """Reads the sections, whose table stands after the data."""
        table = Fields(self.data, self.header.order, self.header.data.end, len(self.data))
        for number in self.header.features:
            if table.left < SECTION_SIZE:
                self.problems.append(Problem("truncated", 1, table.at, "the table of features"))
                return
            section = Section(*table.unpack("QQ"))
            self.read(number, section.offset, section.end)

    def read(self, number: int, at: int, end: int) -> None:
        """Reads what lies between at and end; a section that is cut is read as far as it goes."""
        if number == Feature.TRACING_DATA:
            self.tracing_data.append((at, end))
        reader = READERS.get(number)
        if reader is None:
            return
        fields = Fields(self.data, self.header.order, at, end)
        try:
            reader(self.features, fields, self.header)
        except CutError as error:
            kind = "truncated" if end > len(self.data) else "bad_record"
            self.problems.append(Problem(kind, 1, at, f"{feature_name(number)}: {error}"))


def _text(name: str) -> Callable[[Features, Fields, Header], None]:
    def read(features: Features, fields: Fields, _: Header) -> None:
        setattr(features, name, fields.text())

    return read


def _nr_cpus(features: Features, fields: Fields, _: Header) -> None:
    features.n_cpus_online = fields.unpack("II")[1]


def _total_mem(features: Features, fields: Fields, _: Header) -> None:
    features.total_mem = fields.u64() * 1024


def _cmdline(features: Features, fields: Fields, _: Header) -> None:
    words: list[str] = []
    for _nth in range(fields.u32()):
        words.append(fields.text())
    features.cmdline = tuple(words)


def _event_desc(features: Features, fields: Fields, _: Header) -> None:
    """u32 nr, attr_size; nr times attr, u32 nr_ids, name, u64 ids[]"""
    n_events, attr_size = fields.unpack("II")
    for nth in range(n_events):
        fields.take(attr_size)
        n_ids = fields.u32()
        name = fields.text()
        features.names_of_indexes[nth] = name
        features.names_of_ids.update(dict.fromkeys(fields.u64s(n_ids), name))


def _build_ids(features: Features, fields: Fields, header: Header) -> None:
    """HEADER_BUILD_ID records"""
    while fields.left >= RECORD_HEADER_SIZE:
        start = fields.at
        _, misc, size = fields.unpack("IHH")
        if size < RECORD_HEADER_SIZE or start + size > fields.end:
            raise CutError(f"a build id of {size} bytes")
        read_build_id(features, Fields(fields.data, header.order, fields.at, start + size), misc)
        fields.at = start + size


def read_build_id(features: Features, fields: Fields, misc: int) -> None:
    """Reads the body of a HEADER_BUILD_ID record."""
    (pid,) = fields.unpack("i")
    whole = fields.bytes(BUILD_ID_SIZE)
    size, *_ = fields.unpack("B3x")
    build_id = whole[: min(size, BUILD_ID_SIZE)] if misc & MISC_BUILD_ID_SIZE else whole
    features.build_ids[until_nul(fields.bytes(fields.left))] = (build_id.hex(), pid, misc)


def _pmu_mappings(features: Features, fields: Fields, _: Header) -> None:
    for _nth in range(fields.u32()):
        number = fields.u32()
        features.pmus[number] = fields.text()


def _clock_data(features: Features, fields: Fields, _: Header) -> None:
    version, clockid, wall, clock = fields.unpack("IIQQ")
    if version == 1:
        features.clock_data = (clockid, wall, clock)


def _compressed(features: Features, fields: Fields, _: Header) -> None:
    version, kind, level, ratio, mmap_len = fields.unpack("IIIII")
    features.compressed = (version, kind, level, ratio, mmap_len)


READERS: dict[int, Callable[[Features, Fields, Header], None]] = {
    Feature.BUILD_ID: _build_ids,
    Feature.HOSTNAME: _text("hostname"),
    Feature.OSRELEASE: _text("os_release"),
    Feature.VERSION: _text("version"),
    Feature.ARCH: _text("arch"),
    Feature.NRCPUS: _nr_cpus,
    Feature.CPUDESC: _text("cpudesc"),
    Feature.TOTAL_MEM: _total_mem,
    Feature.CMDLINE: _cmdline,
    Feature.EVENT_DESC: _event_desc,
    Feature.PMU_MAPPINGS: _pmu_mappings,
    Feature.COMPRESSED: _compressed,
    Feature.CLOCK_DATA: _clock_data,
}
