"""Where the files are that an input names, and which of those that are there are the recorded ones."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from traceferry.common.report import Report
from traceferry.files.decompress import COMPRESSED_SUFFIXES, Limit
from traceferry.files.named_files import open_named
from traceferry.files.source import Source
from traceferry.libraries import vdso
from traceferry.symbolication.build_id import build_id_of, covers_code, has_code_at, is_same_build, kernel_notes_of
from traceferry.symbolication.debug_files import build_id_caches, is_elf, path_in_cache

# The file at a recorded path; why it is another one than was recorded, or "".
Local = tuple[Source | None, str]


# Behind the path of a file that is gone while it is mapped, as the kernel writes it.
DELETED = " (deleted)"
# Where an AppImage is mounted while it runs, and memory that processes share.
APP_IMAGE, SHARED_MEMORY, TEMPORARY = "/tmp/.mount_", "/dev/shm/", ("/tmp/", "/var/tmp/")
DOTNET_IMAGES = (".dll", ".exe")

# What a user can do about a file without a build id that nothing names, and why. The file at its path would be another.
RECORD_IDS = "record again with --buildid-mmap, for which the kernel reads build ids while the program runs"
IS_GONE = (
    f"give a copy of what ran: --symbols FILE, called as it was; of a container all files: --sysroot DIR, which docker "
    f"export CONTAINER | tar -xC DIR makes; or {RECORD_IDS}: then any copy is found by it"
)
# What is known of a file that is not here, and of which a build id is recorded.
OF_BUILD = (
    "give the file, or the package's debug file: --symbols FILE-OR-DIR; or a copy of the recorded machine's files: "
    "--sysroot DIR, which docker export CONTAINER | tar -xC DIR makes; or let --debuginfod download it"
)
# What build ids tell of a program that was built again, of a package that was renewed, or of a file that is given.
IS_OF_OTHER_BUILD = "the file here is of another build, give a copy of what ran or its debug file"
# Code that a program compiles or unpacks as it runs, as ECL, Ruby's MJIT, go run and PyInstaller do.
IS_TEMPORARY = (
    "its file was a temporary one, and is gone with its names: let the program keep it, or compile it before it is "
    "recorded; if there is a copy, --symbols FILE takes it"
)
IS_CHANGED = f"give a copy of what ran, and not what is there now: --symbols FILE, called as it was; or {RECORD_IDS}"
IS_WITHOUT_ID = (
    "link it with -Wl,--build-id, so that a recording tells which file ran; or give a copy of what ran, and not what "
    "is there now: --symbols FILE, called as it was"
)
IS_IN_APP_IMAGE = (
    "take it out of the AppImage (run that with --appimage-extract), and give the folder: --symbols squashfs-root"
)
IS_IN_SHARED_MEMORY = (
    f"a program that runs from there: give a copy, --symbols FILE, or {RECORD_IDS}; code of a runtime: let it write "
    "the names of its code"
)
IS_CACHED = f"record again without --buildid-mmap, or give a copy that is called {vdso.PATH}: --symbols FILE"
# Nothing tells which machine was recorded, as where perf was killed before it wrote that, or its kernel ran before.
IS_AT_ITS_PATH = "a file is at its path on this machine: if that was recorded, --sysroot / takes it"
IS_COMPILED_AHEAD = (
    ".NET code that was compiled ahead: DOTNET_ReadyToRun=0 has it compiled as it runs, and named; or crossgen2 "
    "--perfmap writes NAME.ni.r2rmap, which is read beside the recording, beside the image or in folders of --symbols "
    "if perfinfo-PID.map is there, too"
)


# Code in a file that is no program: a runtime has loaded it as it once saved it, as SBCL does.
IS_AN_IMAGE = (
    "only the runtime that saved the image knows what its functions are called: use its own profiler, as sb-sprof"
)


class Inode(NamedTuple):
    """Tells a file apart on one machine, as the kernel records it. device: its major and minor number."""

    device: tuple[int, int]
    number: int


class RecordedTimes(NamedTuple):
    """The end of a recording, which is its last record, and when its file was last written to, in seconds since 1970.
    Between the two the recorder reads build ids, and links files into its cache; a copy was written later."""

    ended: float
    written: float


class Recorded(NamedTuple):
    """A library as an input names it. path: on the recorded machine, or its name alone; build_id: in hex, "" is
    unknown; category: of its code, "" is by its path; begin, length: the bytes of the file that were mapped, 0 is
    unknown; is_jitted_object: whether a tool made the file of a JIT compiler's code; is_another: whether it is another
    file than the one at the path here; inode: the file's, None is unknown."""

    path: str
    build_id: str = ""
    category: str = ""
    begin: int = 0
    length: int = 0
    is_jitted_object: bool = False
    is_another: bool = False
    inode: Inode | None = None


class RecordedFiles:
    """Opens files at the paths that are recorded. sysroots: copies of the recorded machine's file tree; folders: the
    user's, which may be build-id caches of perf's; times: of the recording, None where another machine or another
    kernel was recorded."""

    def __init__(
        self,
        report: Report,
        sysroots: Sequence[str],
        folders: Sequence[str],
        limit: Limit,
        times: RecordedTimes | None,
    ) -> None:
        self._report = report
        self._sysroots = sysroots
        self._folders = folders
        self._limit = limit
        self._times = times

    def local(self, path: str, build_id: str) -> Local:
        """Returns the recorded file: in a file tree of the user's, at its path, or in perf's cache, if it is of that
        build. Where no build id is recorded, only the user's trees are taken at their word."""
        differs = ""
        for place in self._places(path, build_id):
            source, why = self._at(place, build_id)
            if source is not None:
                return source, why
            differs = differs or why
        if path == vdso.PATH and build_id:
            image = vdso.own_vdso()
            if image and is_same_build(build_id_of(memoryview(image)), build_id):
                return Source(vdso.PATH, memoryview(image)), ""
        return None, differs

    def cached_vdso32(self) -> str:
        """Returns the build id of the vdso of 32-bit processes, as perf keeps it in its caches; "" if none, or more
        than one, has the notes of the kernel that runs here."""
        wanted, found = kernel_notes_of(memoryview(vdso.own_vdso())), set()
        if not wanted:
            return ""
        for cache in build_id_caches(self._folders):
            for build_id in _names_in(cache / vdso.PATH):
                source, _ = self.local(vdso.PATH, build_id)
                is_it = source is not None and bytes(source.data[:5]) == vdso.ELF_32_BITS
                if source is not None and is_it and kernel_notes_of(source.data) == wanted:
                    found.add(build_id)
        return found.pop() if len(found) == 1 else ""

    def _places(self, path: str, build_id: str) -> Iterator[str]:
        if os.path.isabs(path):
            for root in self._sysroots:
                yield from (f"{root.rstrip(os.sep)}{path}{suffix}" for suffix in ("", *COMPRESSED_SUFFIXES))
            if build_id:
                yield path.removesuffix(DELETED)
        if len(build_id) > 2:
            name = "vdso" if path == vdso.PATH else "elf"
            yield from (path_in_cache(cache, build_id, name) for cache in build_id_caches(self._folders))

    def _at(self, path: str, build_id: str) -> Local:
        """Returns the file at a path, if it is of that build; "" is any."""
        if not build_id:
            return self._opened(path), ""
        here: list[str] = []

        def is_that_build(head: memoryview) -> bool:
            here.append(build_id_of(head))
            return is_same_build(here[0], build_id)

        source = self._opened(path, is_that_build)
        differs = here and not is_same_build(here[0], build_id)
        detail = f"recorded {build_id}, here {here[0] or 'one without a build id'}" if differs else ""
        return source, detail

    def jitted_object(self, recorded: Recorded) -> Local:
        """Returns what `perf inject` wrote, whose build id it records only if asked to. It maps the file's code, and
        nothing else: another recording's file of that name has code of another size."""
        differs = ""
        for root in (*self._sysroots, ""):
            source = self._opened(f"{root.rstrip(os.sep)}{recorded.path}")
            if source is not None and has_code_at(source.data, recorded.begin, recorded.begin + recorded.length):
                return source, ""
            if source is not None:
                differs = f"recorded {recorded.length} bytes of code at {recorded.begin:#x}, here others"
        return None, differs

    def unverified(self, recorded: Recorded) -> Source | None:
        """Returns the file that is at the recorded path now, where no build id is recorded: on the machine that was
        recorded, with its kernel, if nobody has written to the file since, and it has code where it was mapped."""
        path = recorded.path
        try:
            status = os.stat(path)
        except (OSError, ValueError):
            return None
        if not recorded.is_another and not self._is_unchanged(status, recorded.inode):
            return None
        source = self._opened(path)
        if source is None or not covers_code(source.data, recorded.begin, recorded.begin + recorded.length):
            return None
        self._report.note("file_is_another" if recorded.is_another else "files_unverified", where=path, detail=path)
        return source

    def is_another(self, path: str, build_id: str, inode: Inode) -> bool:
        """Whether another file was mapped than the one at this path, which was there already when the recorder read its
        build id, or, where none is recorded, when the recording ended: programs in containers, in mount namespaces or
        below another root have files of their own, and programs are built again while they run. inode: of the file
        that was mapped. False where that cannot be told: of another machine, and of file systems without a block
        device, as btrfs and overlayfs, of which stat(2) has other numbers than the kernel records."""
        try:
            status = os.stat(path)
        except (OSError, ValueError):
            return False
        here = _inode_of(status)
        if not self._was_there(status, build_id) or not inode.number or not here.device[0]:
            return False
        is_another = not inode.device[0] or (inode.device == here.device and inode.number != here.number)
        return is_another and self._at(path, build_id)[0] is not None

    def _was_there(self, status: os.stat_result, build_id: str) -> bool:
        """Whether a file was as it is now when the recorder read build ids of this machine's files, after the last
        record; or, without a recorded build id, at the last record."""
        if self._times is None:
            return False
        changed = max(status.st_mtime, status.st_ctime)
        return changed <= (max(self._times) if build_id else self._times.ended)

    def _is_unchanged(self, status: os.stat_result, inode: Inode | None) -> bool:
        """Whether nobody has written to a file since the recording ended, which is of this machine and kernel. inode:
        of the file that was mapped.

        What is copied over another file may keep an old time of its content, but not of its inode. That time changes,
        too, where the same file has got another link since, as perf's cache of build ids makes.
        """
        if self._times is None or status.st_mtime > self._times.ended:
            return False
        is_linked = status.st_nlink > 1 and inode is not None and inode == _inode_of(status)
        return is_linked or status.st_ctime <= self._times.ended

    def why_unnamed(self, path: str, build_id: str, inode: Inode | None) -> tuple[str, str]:
        """Returns (why nothing names the file at this path; what the user can do), "" where nothing special is known of
        it. build_id: "" where none is recorded; inode: of the file that was mapped."""
        if self._is_gone_from_temporary(path.removesuffix(DELETED)):
            return "the file was not found", IS_TEMPORARY
        return ("the file was not found", OF_BUILD) if build_id else self._why_without_id(path, inode)

    def _is_gone_from_temporary(self, path: str) -> bool:
        is_temporary = path.startswith(TEMPORARY) and not path.startswith(APP_IMAGE)
        return self._times is not None and is_temporary and not os.path.exists(path)

    def _why_without_id(self, path: str, inode: Inode | None) -> tuple[str, str]:
        if path.lower().endswith(DOTNET_IMAGES):
            return "no file lists its functions", IS_COMPILED_AHEAD
        if path.endswith(DELETED):
            return "it was deleted or replaced while it ran, and no build id is recorded", IS_GONE
        if path == vdso.PATH:
            return "the recorder keeps a copy of it without --buildid-mmap only", IS_CACHED
        if not os.path.isabs(path):
            return "", ""
        if self._times is None:
            return "", IS_AT_ITS_PATH if os.path.isfile(path) else ""
        try:
            status = os.stat(path)
        except (OSError, ValueError):
            if path.startswith(APP_IMAGE):
                return "its AppImage is no longer mounted, and no build id is recorded", IS_IN_APP_IMAGE
            advice = IS_IN_SHARED_MEMORY if path.startswith(SHARED_MEMORY) else IS_GONE
            return "no file is at its path now, and no build id is recorded", advice
        if not self._is_unchanged(status, inode):
            source = self._opened(path)
            if source is not None and is_elf(source.data) and not build_id_of(source.data):
                return "the file was changed after the recording, and it has no build id", IS_WITHOUT_ID
            return "the file was changed after the recording, and no build id is recorded", IS_CHANGED
        if self._is_image(path):
            return "it is no ELF file: a runtime's image, of which that alone knows the functions", IS_AN_IMAGE
        return "", IS_IN_SHARED_MEMORY if path.startswith(SHARED_MEMORY) else ""

    def _is_image(self, path: str) -> bool:
        """Whether the file at a path holds code in a form that no file of symbols describes."""
        source = self._opened(path)
        return source is not None and len(source.data) > 0 and not is_elf(source.data)

    def _opened(self, path: str, is_right: Callable[[memoryview], bool] | None = None) -> Source | None:
        if not os.path.isabs(path):
            return None
        source = open_named(path, self._report, is_right=is_right, limit=self._limit)
        if source is not None:
            source.note_losses(self._report)
        return source


def _inode_of(status: os.stat_result) -> Inode:
    return Inode((os.major(status.st_dev), os.minor(status.st_dev)), status.st_ino)


def _names_in(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []
