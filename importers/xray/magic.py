"""What logs and profiles begin with. Every file is asked for it: all else is imported when it is needed."""

PROFILE_MAGIC = 0x7872617970726F66  # "xrayprof"
FDR_VERSIONS = range(1, 6)
BASIC_VERSIONS = range(1, 4)
TYPE_BASIC, TYPE_FDR = 0, 1
_VERSIONS = {TYPE_BASIC: BASIC_VERSIONS, TYPE_FDR: FDR_VERSIONS}


def is_version(version: int, kind: int) -> bool:
    """Whether there are logs of this version and type."""
    return version in _VERSIONS.get(kind, range(0))


def may_be_log(head: memoryview) -> bool:
    """Whether a log may begin so, in either byte order: with a version and a type."""
    begins = ((int.from_bytes(head[at : at + 2], order) for at in (0, 2)) for order in ("little", "big"))
    return any(is_version(version, kind) for version, kind in begins)


def is_profile(head: memoryview) -> bool:
    """Whether a file that begins so is a profile of profiling mode."""
    magic = bytes(head[:8])
    return magic in (PROFILE_MAGIC.to_bytes(8, "little"), PROFILE_MAGIC.to_bytes(8, "big"))
