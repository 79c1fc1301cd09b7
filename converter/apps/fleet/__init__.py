"""Many recordings: found by patterns, converted or added up on a Dask cluster, as one data set of Parquet files."""

from __future__ import annotations

from importlib.util import find_spec

from traceferry.common.errors import UsageError

NEEDED = ("dask", "distributed", "fsspec", "pyarrow")


def check_installed() -> None:
    """Raises UsageError if a package that only many recordings need is missing."""
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise UsageError(f"many recordings need {', '.join(missing)}: pip install 'traceferry[fleet]'")
