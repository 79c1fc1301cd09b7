"""Symbols for display: demangled names, tidy paths."""

from __future__ import annotations

import posixpath

from traceferry.symbolication.demangle import Demangler
from traceferry.symbolication.interface import Frames


def shown_path(path: str) -> str:
    """Returns a path without "." and "..": providers leave them in, or take them out."""
    return posixpath.normpath(path) if "/." in path else path


def shown_frames(found: Frames, demangle: Demangler) -> list[tuple[str, str, int]]:
    """Returns (name, source, line) of every frame, names demangled; "" and 0 are unknown."""
    linkage_names = {nth: found.texts[nth] for nth in set(found.name.tolist()) if nth >= 0}
    demangle.learn(linkage_names.values())
    names = {nth: demangle(name) for nth, name in linkage_names.items()}
    sources: dict[int, str] = {nth: shown_path(found.texts[nth]) for nth in set(found.source.tolist()) if nth >= 0}
    columns = zip(found.name.tolist(), found.source.tolist(), found.line.tolist(), strict=True)
    return [(names.get(name, ""), sources.get(source, ""), line) for name, source, line in columns]
