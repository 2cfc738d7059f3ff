"""Input checks shared by the library: each says what was got and what was expected."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

import numpy as np


def unknown_name(kind: str, got: object, known: Iterable[str]) -> ValueError:
    """Build the error for a name that is not known, with the nearest known one.

    Parameters
    ----------
    kind : str
        What the name stands for, as a noun ("concept", "encoder").
    got : object
        The name as it was given.
    known : iterable of str
        The names that would have been accepted.

    Returns
    -------
    ValueError
        To be raised by the caller.
    """
    names = list(known)
    near = difflib.get_close_matches(str(got), names, n=1, cutoff=0.4)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    shown = ", ".join(repr(name) for name in names[:12]) + (", ..." if len(names) > 12 else "")
    return ValueError(f"unknown {kind} {got!r}; expected one of {shown}.{hint}")


def check_choice(kind: str, got: str, known: Sequence[str]) -> str:
    """Return `got` if it is one of `known`; raise ValueError otherwise."""
    if got not in known:
        raise unknown_name(kind, got, known)
    return got


def check_embeddings(embeddings: np.ndarray, n: int | None = None) -> np.ndarray:
    """Return `embeddings` as a finite 2-D float array.

    Parameters
    ----------
    embeddings : array-like, shape (N, d)
        float32 stays float32; everything else becomes float64.
    n : int, optional
        The number of rows that is expected (the number of scenes).

    Raises
    ------
    ValueError
        If the array is not 2-D, is empty, has another number of rows, or holds NaN or infinity.
    """
    array = np.asarray(embeddings)
    if array.dtype != np.float32:
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"embeddings must be numbers, got dtype {array.dtype}") from error
    if array.ndim != 2 or array.shape[1] == 0:
        raise ValueError(f"embeddings must have shape (N, d) with d >= 1, got shape {array.shape}")
    if n is not None and len(array) != n:
        raise ValueError(f"got {len(array)} embeddings for {n} scenes; expected one for each scene")
    if len(array) == 0:
        raise ValueError("got no embeddings (0 rows); expected at least one")
    finite = np.isfinite(array).all(axis=1)
    if not finite.all():
        rows = np.flatnonzero(~finite)
        raise ValueError(
            f"embeddings must be finite; {len(rows)} of {len(array)} rows hold NaN or infinity, "
            f"the first is row {rows[0]}"
        )
    return array
