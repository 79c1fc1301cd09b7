"""Map: the files that declare functions whose records do not tell: of the files in line tables, in which functions that
were inlined also stand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath
from posixpath import splitext

from traceferry.common.patterns import compiled_later
from traceferry.importers.jitdump.decode import Load
from traceferry.importers.jitdump.lines import Lines
from traceferry.symbolication.jit_names import Name

# HotSpot's agent: Lpkg/Outer$Inner;method(descriptor)result. Its files are the folder of a class's package and the name
# of the source that the class file has: pkg/Outer.java.
JAVA_METHOD = compiled_later(r"L([^;(]+);[^(]+\(")
JAVA = "Java"
# BEAM writes what breakpoints patch in front of a function as an object of its own, without lines.
ERLANG = "Erlang"


class DeclaringFiles:
    """Tells the file of a code object's function by the names of both.

    A Java class stands in the file of its name, or of that of the class around it. Where no line table of the dump has
    such a file, it is the object's first file of that package: Kotlin's MainKt is in Main.kt, and a Java class need not
    be public. A file of another package is never the class's. For other languages it is the table's first file, and for
    an object of an Erlang function that has none, that of another one.
    """

    def __init__(self, lines: Lines, loads: Sequence[Load], names: Sequence[Name]) -> None:
        """names: of the loads."""
        self._lines = lines
        self._of_function: dict[str, str] = {}
        for load, name in zip(loads, names, strict=True):
            if name.category == ERLANG and load.lines >= 0:
                self._of_function.setdefault(name.function, lines.first_files[load.lines])
        files = [file for file in lines.file_names if file]
        self._of_class = {splitext(file)[0]: file for file in reversed(files)}

    def of(self, load: Load, name: Name) -> str:
        """Returns the file of what the load's name and its line table describe; "" where it is not known."""
        record = load.lines
        method = JAVA_METHOD.match(load.name) if name.category == JAVA else None
        if method is None:
            return self._lines.first_files[record] if record >= 0 else self._of_function.get(name.function, "")
        owner = method[1]
        # The name of a class may begin with $.
        simple_at = owner.rfind("/") + 1
        outer = owner[: simple_at + 1] + owner[simple_at + 1 :].partition("$")[0]
        known = (self._of_class[one] for one in (owner, outer) if one in self._of_class)
        return next(known, "") or self._of_package(PurePosixPath(outer), record)

    def _of_package(self, outer: PurePosixPath, record: int) -> str:
        package = outer.parent.parts
        paths = [PurePosixPath(name) for name in self._files_of(record)] if record >= 0 else []
        # An agent may leave the folder out, or put the folder of the sources in front of it.
        own = [path for path in paths if path.parent.parts[-len(package) :] == package or not path.parent.parts]
        return str(next((path for path in own if path.stem == outer.name), next(iter(own), "")))

    def _files_of(self, record: int) -> list[str]:
        """Returns the files of a line table, each once, by the offset at which they come first."""
        begin, end = int(self._lines.starts[record]), int(self._lines.stops[record])
        files = dict.fromkeys(self._lines.files[begin:end].tolist())
        return [name for file in files if (name := self._lines.file_names[file])]
