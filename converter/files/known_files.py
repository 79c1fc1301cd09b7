"""Files that are no recordings, by their first bytes: what they are, and what to give instead."""

from __future__ import annotations

import shlex
import struct
from typing import NamedTuple

from traceferry.files.decompress import COMPRESSED_SUFFIXES, without_compression
from traceferry.files.known_texts import known_text

# e_type of the ELF header (gABI, chapter 4): a file to be linked, a program, a library or program, a core dump.
_ELF_KINDS = {1: "an object file", 2: "a program", 3: "a program or library", 4: "a core dump"}
_AS_SYMBOLS = "it names the functions of a recording: --symbols FILE beside that"
_UNPACK = "unpack it, and give the recording in it"


class _Known(NamedTuple):
    """A kind of file. at: where its bytes stand; advice: "" where there is none."""

    magic: bytes
    what: str
    advice: str = ""
    at: int = 0


# Sources: the formats' own documents, and the list of file(1).
_KNOWN = (
    _Known(b"FLR\0", "a recording of Java Flight Recorder",
           "jfrconv -o collapsed FILE x.folded of async-profiler makes stacks that are read"),
    _Known(b"PERFILE", "a perf.data of another version than 2", "the perf that wrote it can tell more: perf script"),
    _Known(b"PK\3\4", "a zip archive", _UNPACK),
    _Known(b"7z\xbc\xaf\x27\x1c", "a 7z archive", _UNPACK),
    _Known(b"ustar", "a tar archive", _UNPACK, 257),
    _Known(b"!<arch>\n", "an archive of object files"),
    _Known(b"MZ", "a program or library of Windows", _AS_SYMBOLS),
    _Known(b"\xcf\xfa\xed\xfe", "a program or library of macOS", _AS_SYMBOLS),
    _Known(b"\xca\xfe\xba\xbe", "a Java class, or a program or library of macOS"),
    _Known(b"\0asm", "a module of WebAssembly"),
    _Known(b"MDMP", "a crash dump of Windows or Breakpad", "a debugger reads it; it is one moment, and no recording"),
    _Known(b"MODULE ", "a file of symbols, as Breakpad writes it", _AS_SYMBOLS),
    _Known(b"GSYM", "a GSYM file of symbols", _AS_SYMBOLS),
    _Known(b"MYSG", "a GSYM file of symbols", _AS_SYMBOLS),
    _Known(b"bplist00", "a property list of Apple's, as in traces of Instruments",
           "xctrace export writes XML; samply record makes a profile that is read"),
    _Known(b"SQLite format 3\0", "an SQLite database"),
    _Known(b"\xd4\xc3\xb2\xa1", "captured packets of a network (pcap)"),
    _Known(b"\xa1\xb2\xc3\xd4", "captured packets of a network (pcap)"),
    _Known(b"\x0a\x0d\x0d\x0a", "captured packets of a network (pcapng)"),
    _Known(b"%PDF", "a PDF document"),
    _Known(b"\x89PNG", "a picture"),
    _Known(b"Nettrace", "a trace of .NET's EventPipe", "dotnet-trace convert --format Speedscope makes a profile"),
    _Known(b"# sample profile", "a profile for compilers", "it has no call paths: give its recording"),
)  # fmt: skip
# The first name in its tar archive, which begins with it.
_OF_PERF_ARCHIVE = b".build-id/"
_PAGE = (b"<!doctype html", b"<html")
# Files whose first bytes tell nothing.
_BY_SUFFIX = {
    ".etl": ("a trace of Event Tracing for Windows", "PerfView and Windows Performance Analyzer read it"),
    ".nettrace": ("a trace of .NET's EventPipe", "dotnet-trace convert --format Speedscope makes a profile"),
    ".nsys-rep": ("a report of Nsight Systems", "nsys export writes other formats"),
    ".trace": ("a trace of Instruments or of Android", "samply record makes a profile that is read"),
}  # fmt: skip
# Archives tell themselves at their 257th byte.
HEAD = 512


# Bytes that text has: no control characters but tabs and ends of lines.
_OF_TEXT = bytes([*b"\t\n\r\f", *range(0x20, 0x7F), *range(0x80, 0x100)])


def kind_of_unknown(head: bytes | memoryview, name: str) -> str:
    """Returns what can be said of a file that nobody knows, to stand behind that: that it is text, that it was
    compressed; "" of others. head: its first bytes, decompressed; name: of the file."""
    is_text = len(head) > 0 and not bytes(head).translate(None, _OF_TEXT)
    packed = next((f"compressed ({suffix})" for suffix in COMPRESSED_SUFFIXES if name.endswith(suffix)), "")
    said = ", ".join(part for part in ("text" if is_text else "", packed) if part)
    return f": {said}" if said else ""


def known_file(data: memoryview, name: str) -> str:
    """Returns what a file is, and what to give instead, as words of a sentence; "" where nothing is known. data: all of
    it, decompressed; name: of the file."""
    what, advice = known_text(data)
    if not what:
        what, advice = _found(bytes(data[:HEAD]), name)
    if not what:
        return ""
    packed = next((suffix for suffix in COMPRESSED_SUFFIXES if name.endswith(suffix)), "")
    inside = f"{what}, compressed ({packed})" if packed else what
    return f"this is {inside}" + (f": {advice}" if advice else "")


def is_program(head: bytes | memoryview) -> bool:
    """Whether a file begins as programs and libraries do."""
    return bytes(head[:4]) == b"\x7fELF"


def _found(head: bytes, name: str) -> tuple[str, str]:
    if is_program(head) and len(head) >= 18:
        (kind,) = struct.unpack_from(">H" if head[5] == 2 else "<H", head, 16)
        what = f"{_ELF_KINDS.get(kind, 'a file')} (ELF)"
        return what, "a debugger reads it; it is one moment, and no recording" if kind == 4 else _AS_SYMBOLS
    if head.startswith(_OF_PERF_ARCHIVE):
        recording = without_compression(name).removesuffix(".tar")
        command = f"traceferry {shlex.quote(recording)} --symbols {shlex.quote(name)}"
        return "an archive of perf archive, the binaries of a recording", f"give both: {command}"
    if head[:64].lstrip().lower().startswith(_PAGE):
        return "a page for a browser", "traceferry view opens it; give the recording that it was made of"
    found = next((one for one in _KNOWN if head[one.at : one.at + len(one.magic)] == one.magic), None)
    if found is not None:
        return found.what, found.advice
    plain = without_compression(name)
    return next((known for suffix, known in _BY_SUFFIX.items() if plain.endswith(suffix)), ("", ""))
