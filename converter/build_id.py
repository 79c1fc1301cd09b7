"""Build ids as the viewers want them."""

from __future__ import annotations


def debug_id_of(build_id: str) -> str:
    """Breakpad's form of a build id in hex: its first 16 bytes as a Microsoft GUID, and an age of 0."""
    raw = bytes.fromhex(build_id)[:16].ljust(16, b"\0")
    swapped = raw[3::-1] + raw[5:3:-1] + raw[7:5:-1] + raw[8:]
    return swapped.hex().upper() + "0"
