"""Writing files so that a stop at any moment leaves either the old file or the new one."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def atomic_path(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path beside `path`, moved onto it when the block ends without an error.

    The parent folder is made if it is missing. Two writers never share a temporary file, so the
    last one to finish wins and no reader ever sees half a file.

    Examples
    --------
    >>> with atomic_path("table.csv") as temporary:  # doctest: +SKIP
    ...     table.to_csv(temporary)
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    # The suffix is kept because writers such as numpy.savez choose their format by it.
    handle, name = tempfile.mkstemp(prefix=".writing-", suffix=target.suffix, dir=target.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)
