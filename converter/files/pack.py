"""Packs: a tar archive, compressed with zstd, of a recording and of what was found for it. FORMATS.md, "Packs", has the
layout. A pack may be anybody's: nothing of it is written to disk, and names in it are no paths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from traceferry.common.errors import FormatError
from traceferry.files.answers import Answers, Blob, Kept, checked
from traceferry.files.decompress import Limit
from traceferry.files.output import Sink
from traceferry.files.source import Source

SUFFIX = ".tfpack"
MANIFEST = "traceferry-pack.json"
VERSION = 1
BLOCK = 512
MAX_MEMBERS = 1 << 17
# Of the name that a member is called after; a tar header holds 100 bytes.
MAX_NAME = 60
LEVEL = 12


def is_pack(head: bytes | memoryview) -> bool:
    """Whether a file that begins with these bytes, decompressed, is a pack."""
    magic = MANIFEST.encode() + b"\0"
    return bytes(head[: len(magic)]) == magic


# ---------------------------------------------------------------- reading


def inputs_of(source: Source) -> list[Source]:
    """Returns the recordings of a pack; of anything else, itself. Raises FormatError for a pack that is damaged."""
    if not is_pack(source.data[: len(MANIFEST) + 1]):
        return [source]
    if source.damage or source.limited:
        raise FormatError(f"damaged pack: {source.damage or source.limited}", path=source.path)
    members = _members(source)
    try:
        manifest = orjson.loads(members.pop(MANIFEST))
        if manifest["version"] != VERSION:
            raise FormatError(f"a pack of version {manifest['version']!r}; this program reads {VERSION}", 0)
        answers = Kept(source.path, checked(manifest["answers"], dict), members)
        inputs = [unpacked_source(one, answers, source.limit) for one in answers.with_members(manifest["inputs"])]
    except FormatError as error:
        error.path = source.path
        raise
    except (KeyError, TypeError, ValueError, AttributeError):
        raise FormatError(f"damaged pack: {MANIFEST} is not as it was written", 0, path=source.path) from None
    if not inputs:
        raise FormatError("the pack holds no recording", 0, path=source.path)
    return inputs


def unpacked_source(value: Any, answers: Answers, limit: Limit) -> Source:
    """Returns what `packed_source` was given."""
    data, parts = checked(value["data"], memoryview), [checked(part, memoryview) for part in value["parts"]]
    texts = [checked(value[name], str) for name in ("path", "damage", "limited")]
    return Source(texts[0], data, texts[1], texts[2], tuple(parts), limit, answers=answers.of(texts[0]))


def _members(source: Source) -> dict[str, memoryview]:
    """Returns the archive's files. Raises FormatError for anything else in it, names twice, and sizes beyond its
    end."""
    import tarfile  # few recordings are packs

    data, at = source.data, 0
    members: dict[str, memoryview] = {}
    while at + BLOCK <= len(data):
        block = bytes(data[at : at + BLOCK])
        if not any(block):
            return members
        try:
            header = tarfile.TarInfo.frombuf(block, "utf-8", "strict")
        except (tarfile.HeaderError, ValueError, IndexError):
            raise FormatError("damaged pack: not a header of tar", at, path=source.path) from None
        begin, name = at + BLOCK, header.name
        if not header.isreg() or "/" in name or name in members or len(members) >= MAX_MEMBERS:
            raise FormatError(f"damaged pack: {name!r} is no member of one", at, path=source.path)
        if not 0 <= header.size <= len(data) - begin:
            raise FormatError(f"damaged pack: {name!r} ends beyond it", at, path=source.path)
        members[name] = data[begin : begin + header.size]
        at = begin + -(-header.size // BLOCK) * BLOCK
    raise FormatError("damaged pack: it has no end", min(at, len(data)), path=source.path)


# ---------------------------------------------------------------- writing


def packed_source(source: Source) -> Any:
    """Returns a recording as an answer holds it."""
    names = [source.name, *(f"{source.name}.{nth}" for nth, _ in enumerate(source.parts))]
    data, *parts = (Blob(name, part) for name, part in zip(names, (source.data, *source.parts), strict=True))
    return {"path": source.path, "data": data, "parts": parts, "damage": source.damage, "limited": source.limited}


def archive_of(inputs: Sequence[Source], answers: Mapping[str, Any]) -> dict[str, bytes | memoryview]:
    """Returns the members of a pack, by name. answers: by key, [notes, answer]."""
    members: dict[str, bytes | memoryview] = {MANIFEST: b""}

    def plain(value: Any) -> Any:
        if isinstance(value, Blob):
            name = f"{len(members):05}-{_shown(value.name)}"
            members[name] = value.data
            return {"member": name}
        if isinstance(value, dict):
            return {key: plain(one) for key, one in value.items()}
        return [plain(one) for one in value] if isinstance(value, (list, tuple)) else value

    manifest = {"version": VERSION, "inputs": plain([packed_source(source) for source in inputs])}
    manifest["answers"] = plain(answers)
    members[MANIFEST] = orjson.dumps(manifest, option=orjson.OPT_INDENT_2)
    return members


def write_pack(out: Sink, members: Mapping[str, bytes | memoryview]) -> None:
    """Writes an archive: the same members give the same bytes."""
    import tarfile

    import zstandard

    with zstandard.ZstdCompressor(level=LEVEL, write_checksum=True).stream_writer(out, closefd=False) as packer:  # type: ignore[arg-type]
        for name, data in members.items():
            header = tarfile.TarInfo(name)
            header.size, header.mode = len(data), 0o644
            packer.write(header.tobuf(tarfile.GNU_FORMAT))
            packer.write(data)
            packer.write(bytes(-len(data) % BLOCK))
        packer.write(bytes(2 * BLOCK))


def _shown(name: str) -> str:
    """Returns a member's name: letters, digits and what else is harmless everywhere."""
    safe = "".join(c if c.isascii() and (c.isalnum() or c in "._+-") else "_" for c in name)
    return safe[-MAX_NAME:]
