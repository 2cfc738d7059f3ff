"""Writing files so that a stop at any moment leaves either the old file or the new one."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def atomic_path(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a fresh path beside `path`, moved onto it when the block ends without an error.

    The parent folder is made if it is missing. Two writers never share a temporary file, so the
    last one to finish wins and no reader ever sees half a file. The block creates the file itself,
    with the permissions that the user's umask asks for, so that results can be shared like any
    others; a block that writes nothing gives FileNotFoundError and leaves the old file alone. Where
    `path` is a link, the file that it leads to is replaced. What is no regular file, such as a
    folder or a pipe, gives FileExistsError.

    Examples
    --------
    >>> with atomic_path("table.csv") as temporary:  # doctest: +SKIP
    ...     table.to_csv(temporary)
    """
    target = Path(path).resolve()
    if target.exists() and not target.is_file():
        raise FileExistsError(f"{str(path)!r} is there, and no regular file")
    target.parent.mkdir(parents=True, exist_ok=True)
    # The suffix is kept because writers such as numpy.savez choose their format by it.
    temporary = target.with_name(f".writing-{uuid.uuid4().hex}{target.suffix}")
    try:
        yield temporary
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)
