"""Input checks shared by the library: each says what was got and what was expected."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Sequence
from numbers import Real

import numpy as np
from numpy.typing import ArrayLike


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
    by_lower = {name.lower(): name for name in names}
    near = difflib.get_close_matches(str(got).lower(), by_lower, n=1, cutoff=0.4)
    hint = f" Did you mean {by_lower[near[0]]!r}?" if near else ""
    shown = ", ".join(repr(name) for name in names[:12]) + (", ..." if len(names) > 12 else "")
    return ValueError(f"unknown {kind} {got!r}; expected one of {shown}.{hint}")


def check_choice(kind: str, got: str, known: Sequence[str]) -> str:
    """Return `got` if it is one of `known`; raise ValueError otherwise."""
    if got not in known:
        raise unknown_name(kind, got, known)
    return got


def check_count(name: str, got: object, least: int = 1, most: float = math.inf) -> int:
    """Return `got` as an int; ValueError unless it is a whole number from `least` to `most`."""
    if isinstance(got, bool) or not isinstance(got, (int, np.integer)) or got < least:
        raise ValueError(f"{name} must be an integer of at least {least}, got {got!r}")
    if got > most:
        raise ValueError(f"{name} must be an integer of at most {most}, got {got!r}")
    return int(got)


def check_number(name: str, got: object, most: float = math.inf) -> float:
    """Return `got` as a float; ValueError unless it is a finite number from 0 to `most`."""
    real = isinstance(got, Real) and not isinstance(got, bool) and math.isfinite(got)
    if not real or not 0 <= got <= most:  # type: ignore[operator]
        limits = "at least 0" if most == math.inf else f"from 0 to {most}"
        raise ValueError(f"{name} must be a finite number, {limits}, got {got!r}")
    return float(got)  # type: ignore[arg-type]


def check_integers(values: ArrayLike, what: str) -> np.ndarray:
    """Return `values` as an array of some integer type.

    Floats and booleans would be cut or misread in silence, so they give a ValueError. An array
    without entries may be of any type: ``[]`` is one of floats to numpy.
    """
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise ValueError(f"{what} must form an array without gaps: {error}") from error
    if array.size == 0:
        return array.astype(np.int64)
    if array.dtype.kind not in "iu":
        raise ValueError(f"{what} must be integers, got dtype {array.dtype}")
    return array


def check_embeddings(embeddings: ArrayLike, n: int | None = None) -> np.ndarray:
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
        If the array does not hold real numbers, is not 2-D, is empty, has another number of
        rows, or holds NaN or infinity.
    """
    try:
        array = np.asarray(embeddings)
    except ValueError as error:
        raise ValueError(f"embeddings must form an array without gaps: {error}") from error
    if array.dtype.kind not in "fiub":
        raise ValueError(f"embeddings must be real numbers, got dtype {array.dtype}")
    if array.dtype != np.float32:
        array = array.astype(np.float64)
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


def check_spread(embeddings: np.ndarray) -> None:
    """Raise ValueError if all rows are alike: R² would divide by a variance of zero."""
    if (embeddings == embeddings[0]).all():
        raise ValueError(
            f"R² needs at least two embeddings that differ, got {len(embeddings)} alike"
        )
