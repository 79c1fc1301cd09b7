"""What an importer gets and gives: the user's options, and files that were decoded, on their way into a trace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

from traceferry.files.decompress import DEFAULT_LIMIT, Limit
from traceferry.files.source import Source

if TYPE_CHECKING:
    from traceferry.model import Trace
    from traceferry.symbolication.interface import FindSymbols
    from traceferry.timeline.counter import Counter


@dataclass(frozen=True)
class Options:
    """The user's options for reading inputs. symbols: files that name functions; folders: where to look for more;
    embed_sources: folders of which source files' text may go into the trace, absolute and without links; source_roots:
    the same, in which a file is also found by the end of its path; clock_offset_ns: what brings the samples onto the
    clock of the jitted code, None if it is to be determined; sysroots: folders that are the recorded machine's file
    tree, absolute and without links; keep_cut_stacks_apart: puts stacks that are not complete under a frame that says
    why; counter: how a recording converts the processor's counter, for inputs whose times are such; limit: of what is
    compressed; adds_calls: whether calls are only added up afterwards, which an importer may do while it decodes them;
    find_symbols: what is asked for symbols that no file of the user's has."""

    symbols: Sequence[Source] = ()
    folders: Sequence[str] = ()
    embed_sources: Sequence[str] = ()
    source_roots: Sequence[str] = ()
    clock_offset_ns: int | None = None
    sysroots: Sequence[str] = ()
    keep_cut_stacks_apart: bool = True
    counter: Counter | None = None
    limit: Limit = DEFAULT_LIMIT
    adds_calls: bool = False
    find_symbols: FindSymbols | None = None


class Companion(NamedTuple):
    """A file that belongs to a recording. path: as recorded; format: the only importer that may read it, by name."""

    path: str
    format: str


class Reading(Protocol):
    """Files of one format, decoded, on their way into a trace."""

    @property
    def companions(self) -> Sequence[Companion]:
        """The files of other formats that these refer to and that belong to the recording."""

    @property
    def counter(self) -> Counter | None:
        """How to convert the processor's counter into ns, where these files tell."""

    def add_to(self, trace: Trace, options: Options) -> None:
        """Maps what was decoded. Raises FormatError for symbols that belong to something else."""
