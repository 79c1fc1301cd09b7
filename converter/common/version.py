"""The version of this project."""

from importlib import metadata


def version() -> str:
    """Returns the installed version, as "0.1.0"."""
    return metadata.version("traceferry")
