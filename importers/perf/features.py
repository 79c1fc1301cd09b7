"""The feature sections of a file, or the HEADER_FEATURE records of a pipe."""

from __future__ import annotations

from dataclasses import dataclass, field

from traceferry.importers.perf.fields import CutError, Fields, until_nul
from traceferry.importers.perf.layout import (
    BUILD_ID_SIZE,
    MISC_BUILD_ID_SIZE,
    RECORD_HEADER_SIZE,
    SECTION_SIZE,
    AndroidFeature,
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
        fields = Fields(self.data, self.header.order, at, end)
        try:
            self._read_one(number, fields)
        except CutError as error:
            kind = "truncated" if end > len(self.data) else "bad_record"
            self.problems.append(Problem(kind, 1, at, f"{feature_name(number)}: {error}"))

    def _read_one(self, number: int, fields: Fields) -> None:
        features = self.features
        match number:
            case Feature.BUILD_ID:
                self._build_ids(fields)
            case Feature.HOSTNAME:
                features.hostname = fields.text()
            case Feature.OSRELEASE:
                features.os_release = fields.text()
            case Feature.VERSION:
                features.version = fields.text()
            case Feature.ARCH:
                features.arch = fields.text()
            case Feature.NRCPUS:
                features.n_cpus_online = fields.unpack("II")[1]
            case Feature.CPUDESC:
                features.cpudesc = fields.text()
            case Feature.TOTAL_MEM:
                features.total_mem = fields.u64() * 1024
            case Feature.CMDLINE:
                features.cmdline = tuple(fields.text() for _ in range(fields.u32()))
            case Feature.EVENT_DESC:
                self._event_desc(fields)
            case Feature.PMU_MAPPINGS:
                for _ in range(fields.u32()):
                    pmu = fields.u32()
                    features.pmus[pmu] = fields.text()
            case Feature.CPU_PMU_CAPS:
                self._pmu_caps(fields)
            case Feature.PMU_CAPS:
                for _ in range(fields.u32()):
                    self._pmu_caps(fields)
                    fields.text()  # of which unit
            case Feature.COMPRESSED:
                features.mmap_len = fields.unpack("5I")[-1]  # behind version, type, level and ratio
            case Feature.CLOCK_DATA:
                version, clockid, wall, clock = fields.unpack("IIQQ")
                # perf stat reads no clock, and writes zeros.
                if version == 1 and wall:
                    features.clock_data = (clockid, wall, clock)
            case AndroidFeature.META_INFO:
                while fields.left:
                    key = fields.line()
                    features.simpleperf[key] = fields.line()

    def _event_desc(self, fields: Fields) -> None:
        """u32 nr, attr_size; nr times attr, u32 nr_ids, name, u64 ids[]"""
        n_events, attr_size = fields.unpack("II")
        for nth in range(n_events):
            fields.take(attr_size)
            n_ids = fields.u32()
            name = fields.text()
            self.features.names_of_indexes[nth] = name
            self.features.names_of_ids.update(dict.fromkeys(fields.u64s(n_ids), name))

    def _pmu_caps(self, fields: Fields) -> None:
        """u32 nr; nr times name, value"""
        for _ in range(fields.u32()):
            name, value = fields.text(), fields.text()
            if name == "branches" and value.isdecimal() and len(value) < 9:
                self.features.max_branches = max(self.features.max_branches, int(value))

    def _build_ids(self, fields: Fields) -> None:
        """HEADER_BUILD_ID records"""
        while fields.left >= RECORD_HEADER_SIZE:
            start = fields.at
            _, misc, size = fields.unpack("IHH")
            if size < RECORD_HEADER_SIZE or start + size > fields.end:
                raise CutError(f"a build id of {size} bytes")
            read_build_id(self.features, Fields(fields.data, fields.order, fields.at, start + size), misc)
            fields.at = start + size


def read_build_id(features: Features, fields: Fields, misc: int) -> None:
    """Reads the body of a HEADER_BUILD_ID record."""
    fields.unpack("i")  # pid
    whole = fields.bytes(BUILD_ID_SIZE)
    size, *_ = fields.unpack("B3x")
    build_id = whole[: min(size, BUILD_ID_SIZE)] if misc & MISC_BUILD_ID_SIZE else whole
    features.build_ids[until_nul(fields.bytes(fields.left))] = build_id.hex()
