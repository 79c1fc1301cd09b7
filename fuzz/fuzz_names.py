"""Fuzzes the names of code of JIT compilers. Run by `make fuzz`.

An input is the text of a perf-PID.map, of CoreCLR's perfinfo-PID.map and its maps of images, or names, a line each.
Each producer's patterns parse them; functions are shown in short form, and names of Swift and D are demangled where
the library for these is installed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from common import ROOT, fuzz, imported

sys.path.insert(0, str(ROOT / "tests"))

from test_jit_names import SEEN, SOURCES_SAY
from test_native_names import KEPT, SHOWN
from test_other_names import NAMES, SWAP
from test_perf_elsewhere import DLL, GUID, R2RMAP


def seeds() -> Iterator[tuple[str, bytes]]:
    for nth, (producer, names) in enumerate([*SEEN.items(), *SOURCES_SAY.items()]):
        yield f"{producer}-{nth}", "\n".join(names).encode()
        yield f"{producer}-map-{nth}", "".join(f"{16 * i:x} 10 {name}\n" for i, name in enumerate(names)).encode()
    yield "images", f"ImageLoad;{DLL};{GUID};0x7f0000001000\nImageLoad;/a.dll;{GUID};(nil)\n".encode()
    yield "r2rmap", R2RMAP.encode()
    for nth, name in enumerate(
        [*NAMES, *SHOWN, *KEPT, SWAP, "geo::scale(double) const (.cold) [clone .x]", "A:f (int)"]
    ):
        yield f"other-{nth}", name.encode()


def one_input(data: bytes) -> None:
    from traceferry.importers.perf.ahead import images_of, is_of_image, map_names, signature_of
    from traceferry.importers.perf.map_files import read_map_file
    from traceferry.model.categories import CATEGORY_COLORS
    from traceferry.symbolication.demangle import MAX_GROWTH, Demangler, is_harmless
    from traceferry.symbolication.jit_names import PATTERNS, Producer, producer_of
    from traceferry.symbolication.short_names import short_names

    text = data.decode("utf-8", "replace")
    listed = list(read_map_file(text))
    assert all(size > 0 and name for _, size, name in listed)
    for image in images_of(text):
        assert image.path
        assert 0 < image.address < 1 << 48
        assert all("/" not in name for name in map_names(image))
    assert len(signature_of(text)) in (0, 16)
    assert is_of_image(b"", data)
    names = [*(name for *_, name in listed), *text.split("\n")]
    assert producer_of(names).name in PATTERNS
    functions: dict[str, None] = {}
    for producer in map(Producer, PATTERNS):
        for name in names:
            parsed = producer.parse(name)
            assert parsed.function
            assert parsed.category in CATEGORY_COLORS
            assert parsed.line >= 0 <= parsed.column
            # Java's `Z` is boolean, with a comma and a blank.
            assert len(parsed.function) <= 9 * len(name) + len("(anonymous)")
            functions[parsed.function] = None
    shown = short_names(list(functions))
    assert len(set(shown)) == len(functions)
    demangler = Demangler()
    asked = [name for name in names if not name.startswith(("_Z", "__Z", "___Z")) or is_harmless(name)]
    demangler.learn(asked)
    assert all(len(demangler(name)) <= MAX_GROWTH * max(len(name), 1) for name in asked)


if __name__ == "__main__":
    imported(
        [
            "traceferry.importers.perf.map_files",
            "traceferry.symbolication.demangle",
            "traceferry.symbolication.jit_names",
            "traceferry.symbolication.short_names",
        ]
    )
    fuzz("names", seeds, one_input)
