"""Map: lines of frames become the model's."""

from __future__ import annotations

from array import array
from pathlib import PurePosixPath
from typing import NamedTuple

import numpy as np

from traceferry.common.shown_text import encodable
from traceferry.importers.perfscript.layout import INLINED, SOURCE, frame_of
from traceferry.model import Array
from traceferry.model.categories import KERNEL, OTHER, category_of_file, is_memory
from traceferry.native.distinct import distinct_with_places
from traceferry.symbolication.jit_names import Producer, producer_of
from traceferry.symbolication.symbol_table import without_version
from traceferry.timeline.stack_profiles import Place, StackProfile

UNKNOWN, OF_KERNEL = "[unknown]", "[kernel.kallsyms]"
NO_MODULES = (UNKNOWN, "[vdso]", "[vsyscall]", "[uprobes]")
KERNEL_MODULES = (".ko", ".ko.xz", ".ko.zst", ".ko.gz")
ADDRESS_DIGITS = 16
NO_SOURCE = b"??"
MAX_DEPTH = (1 << 8) - 1
# Two lines and a depth are a key.
LINE_BITS, DEPTH_BITS = 27, 8


class FrameText(NamedTuple):
    """The text of a frame. name, path: "" is unknown; line: 0 is unknown."""

    name: str
    file: str
    path: str
    line: int

    @property
    def is_jitted(self) -> bool:
        return bool(self.name) and _is_generated(self.file)


class FrameLines(dict[bytes, int]):
    """The number of each line of a frame, behind which the line of its source may stand, and the trace's frames of
    those that were met. n_nameless: how many of these have no name."""

    def __init__(self, profile: StackProfile) -> None:
        super().__init__()
        self._profile, self._trace = profile, profile.trace
        self._texts: list[FrameText] = []
        self._is_inlined = array("b")
        self._rows: dict[int, int] = {}
        self.n_nameless = 0

    def __missing__(self, line: bytes) -> int:
        text = _text_of(line)
        number = self[line] = len(self._texts)
        self._texts.append(text)
        self._is_inlined.append(text.file == INLINED)
        return number

    def rows(self, numbers: Array, ends: Array) -> Array:
        """Returns int32: the trace's frames. numbers: of the lines of stacks, the innermost of each first; ends: int64,
        of the stacks."""
        caller = self._callers(numbers, ends)
        depth = np.minimum(caller - np.arange(len(numbers)), MAX_DEPTH)
        keys, nth = distinct_with_places(numbers[caller] << LINE_BITS + DEPTH_BITS | depth << LINE_BITS | numbers)
        new = [key for key in keys.tolist() if key not in self._rows]
        producer = producer_of([text.name for key in new if (text := self._text(key)).is_jitted])
        self._rows |= {key: self._row(key, producer) for key in new}
        return np.array([self._rows[key] for key in keys.tolist()], np.int32)[nth]

    def _callers(self, numbers: Array, ends: Array) -> Array:
        """Returns int64: where in `numbers` the frame is that each is inlined into; itself, where it is not inlined."""
        is_inlined = np.frombuffer(self._is_inlined, np.int8)[numbers] > 0
        is_inlined[ends[ends > 0] - 1] = False
        place = np.where(is_inlined, len(numbers), np.arange(len(numbers)))
        callers: Array = np.minimum.accumulate(place[::-1])[::-1]
        return callers

    def _text(self, key: int) -> FrameText:
        return self._texts[key & (1 << LINE_BITS) - 1]

    def _row(self, key: int, producer: Producer) -> int:
        text, file = self._text(key), self._texts[key >> LINE_BITS + DEPTH_BITS].file
        self.n_nameless += not text.name
        if text.is_jitted:
            parsed = producer.parse(text.name)
            return self._profile.frames.row(Place(
                parsed.function, parsed.file, first_line=parsed.line, first_column=parsed.column,
                category=parsed.category, tier=parsed.tier.name if parsed.tier is not None else "",
            ))  # fmt: skip
        return self._profile.frames.row(Place(
            text.name or _unnamed(file), text.path, text.line, category=_category(file), lib=self._lib(file),
            depth=key >> LINE_BITS & MAX_DEPTH,
        ))  # fmt: skip

    def _lib(self, file: str) -> int:
        name = PurePosixPath(file).name
        has_file = file.startswith("/") and not is_memory(file) and not _is_generated(file)
        return self._trace.libs.intern(name=self._trace.strings.intern(name)) if has_file else -1


def _text_of(lines: bytes) -> FrameText:
    line, _, source = lines.partition(b"\n")
    frame, place = frame_of(line), SOURCE.fullmatch(source)
    if frame is None:
        return FrameText(_decoded(line.strip()), UNKNOWN, "", 0)
    name, file = _decoded(without_version(frame.name.strip())), _decoded(frame.file)
    # Without files, only the kernel's addresses tell where they are.
    of_kernel = len(frame.address) == ADDRESS_DIGITS and frame.address.startswith(b"f")
    file = file or (OF_KERNEL if of_kernel else UNKNOWN)
    name = "" if name == UNKNOWN else name
    if place is None or place["path"] == NO_SOURCE:
        return FrameText(name, file, "", 0)
    return FrameText(name, file, _decoded(place["path"]), int(place["line"]))


def _decoded(text: bytes) -> str:
    return encodable(text.decode("utf-8", "replace"))


def _unnamed(file: str) -> str:
    """Returns what stands for a function that is not known."""
    if is_memory(file) or _is_generated(file):
        return f"[code in {file}]"
    return file if file == UNKNOWN else f"[{PurePosixPath(file).name.strip('[]')}]"


def _is_generated(file: str) -> bool:
    """Whether it stands for code of a JIT compiler: a perf map, or an object of perf inject."""
    name = PurePosixPath(file).name
    return name.startswith("jitted-") or (name.startswith("perf-") and name.endswith(".map"))


def _category(file: str) -> str:
    if is_memory(file) or _is_generated(file):
        return "JIT"
    if file.startswith(("[kernel", "[guest.kernel")) or file.endswith(KERNEL_MODULES):
        return KERNEL
    # [nf_tables] is a module of the kernel.
    is_module = file.startswith("[") and file not in NO_MODULES
    return KERNEL if is_module else OTHER if file == UNKNOWN else category_of_file(file)
