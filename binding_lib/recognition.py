"""The questions: are a scene's concepts and objects recognised, and which scene is it?

All functions give one outcome a scene or a rate; `bootstrap_interval` says how far a rate may be
off because only some scenes were tested.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float
from numpy.typing import ArrayLike

from binding_lib.checks import check_count, check_embeddings, check_integers, check_spread
from binding_lib.concepts import Seed
from binding_lib.scenes import SceneSet, swaps


class Estimate(NamedTuple):
    """A value with the ends of its confidence interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.2f} [{self.low:.2f}, {self.high:.2f}]"


def recognised(
    scores: Float[np.ndarray, "N K"], present: Bool[np.ndarray, "N K"]
) -> Bool[np.ndarray, " N"]:
    """Whether every present candidate scores above every absent one (paper, section 2).

    Parameters
    ----------
    scores : array-like, shape (N, K)
        How much each scene looks like each candidate (an object, or a value of one concept).
    present : array-like of bool, shape (N, K)
        Which candidates the scene holds: ``scenes.present(target)``.

    Returns
    -------
    ndarray of bool, shape (N,)
        Strict: a tie between a present and an absent candidate is not recognised. A scene in which
        every candidate is present is.

    Raises
    ------
    ValueError
        If the shapes differ, a score is NaN, or a scene has no present candidate.
    """
    S, P = np.asarray(scores), np.asarray(present)
    if S.ndim != 2 or S.shape != P.shape:
        raise ValueError(
            f"scores and present must share one shape (N, K), got {S.shape}, {P.shape}"
        )
    if P.dtype != bool:
        raise ValueError(f"present must be boolean, got dtype {P.dtype}")
    _check_numbers(S)
    if not P.any(axis=1).all():
        raise ValueError(f"scene {np.flatnonzero(~P.any(axis=1))[0]} has no present candidate")
    weakest_present = np.where(P, S, np.inf).min(axis=1)
    strongest_absent = np.where(P, -np.inf, S).max(axis=1)
    return P.all(axis=1) | (weakest_present > strongest_absent)


def swaps_beaten(
    scores: Float[np.ndarray, "N n_objects"], scenes: SceneSet
) -> tuple[Bool[np.ndarray, " n"], np.ndarray]:
    """Whether each scene's objects all score above its swapped objects.

    Parameters
    ----------
    scores : array-like, shape (N, n_objects)
    scenes : SceneSet
        N scenes of the same space.

    Returns
    -------
    beaten : ndarray of bool, shape (n,)
        One outcome for each scene that has a swap at all.
    rows : ndarray of int, shape (n,)
        Which scenes those are.

    Raises
    ------
    ValueError
        If the shape is another one, or a score is NaN.
    """
    S = np.asarray(scores)
    if S.shape != (len(scenes), scenes.space.n_objects):
        raise ValueError(
            f"scores must have shape {(len(scenes), scenes.space.n_objects)}, one column an "
            f"object, got {S.shape}"
        )
    _check_numbers(S)
    distractors = swaps(scenes)
    rows = np.flatnonzero((distractors >= 0).any(axis=1))
    distractors = distractors[rows]
    present = np.take_along_axis(S[rows], scenes.object_ids[rows], axis=1).min(axis=1)
    absent = np.take_along_axis(S[rows], np.maximum(distractors, 0), axis=1)
    absent = np.where(distractors >= 0, absent, -np.inf).max(axis=1, initial=-np.inf)
    return present > absent, rows


def swap_accuracy(scores: Float[np.ndarray, "N n_objects"], scenes: SceneSet) -> float:
    """The share of scenes whose objects all score above the swapped ones.

    Scenes without a swap (their objects share a value of every concept but one) do not count. Two
    objects that differ in two concepts have two swaps, so chance is 1/6.

    Raises
    ------
    ValueError
        If no scene has a swap.
    """
    beaten, _ = swaps_beaten(scores, scenes)
    if len(beaten) == 0:
        raise ValueError("none of the scenes has a swapped object; expected at least one that has")
    return float(beaten.mean())


def retrieved(
    predictions: Float[np.ndarray, "N d"],
    bank: Float[np.ndarray, "B d"],
    truth: ArrayLike | None = None,
) -> Bool[np.ndarray, " N"]:
    """Whether the bank's nearest embedding by cosine is the true one.

    Parameters
    ----------
    predictions : array-like, shape (N, d)
    bank : array-like, shape (B, d)
        The real embeddings to choose from.
    truth : array-like of int, shape (N,), optional
        The bank row that belongs to each prediction; row i for prediction i by default.

    Returns
    -------
    ndarray of bool, shape (N,)
        A row of the bank equal to the true one (the same scene drawn twice) counts as true. A
        prediction of zeros points nowhere and retrieves nothing.

    Raises
    ------
    ValueError
        If the embeddings are not finite or differ in dimensions, or there is not one row of the
        bank for each prediction.
    """
    X, B = check_embeddings(predictions), check_embeddings(bank)
    if X.shape[1] != B.shape[1]:
        raise ValueError(f"predictions have {X.shape[1]} dimensions, the bank has {B.shape[1]}")
    rows = np.arange(len(X)) if truth is None else check_integers(truth, "true bank rows")
    if rows.shape != (len(X),) or rows.min() < 0 or rows.max() >= len(B):
        raise ValueError(
            f"expected one true bank row (0 to {len(B) - 1}) for each of {len(X)} predictions, got "
            + (f"{rows.min()} to {rows.max()}" if rows.shape == (len(X),) else f"{rows.shape}")
        )
    unit = B / np.maximum(np.linalg.norm(B, axis=1, keepdims=True), np.finfo(B.dtype).tiny)
    hits = np.empty(len(X), dtype=bool)
    for start in range(0, len(X), 256):
        part = slice(start, start + 256)
        best = (X[part].astype(B.dtype, copy=False) @ unit.T).argmax(axis=1)
        hits[part] = (B[best] == B[rows[part]]).all(axis=1) & X[part].any(axis=1)
    return hits


def retrieval_accuracy(
    predictions: Float[np.ndarray, "N d"],
    bank: Float[np.ndarray, "B d"],
    truth: ArrayLike | None = None,
) -> float:
    """Top-1 retrieval by cosine: the mean of `retrieved` (paper, section 3)."""
    return float(retrieved(predictions, bank, truth).mean())


def bootstrap_interval(
    outcomes: ArrayLike, confidence: float = 0.95, n_resamples: int = 1000, seed: Seed = 0
) -> Estimate:
    """A mean and its percentile bootstrap interval, resampling scenes.

    Parameters
    ----------
    outcomes : array-like, shape (N,)
        One outcome a scene (booleans give a rate).

    Notes
    -----
    The interval covers the choice of test scenes, not that of training scenes or seeds. When all
    outcomes are alike the interval has no width, although the true rate may still differ a little.
    """
    values = np.asarray(outcomes, dtype=float)
    if values.ndim != 1 or len(values) == 0:
        raise ValueError(f"outcomes must have shape (N,) with N >= 1, got {values.shape}")
    if not np.isfinite(values).all():
        row = np.flatnonzero(~np.isfinite(values))[0]
        raise ValueError(f"outcomes must be finite, got {values[row]} in row {row}")
    return _bootstrap(values, np.ones_like(values), confidence, n_resamples, seed)


def r2_interval(
    embeddings: Float[np.ndarray, "N d"],
    predictions: Float[np.ndarray, "N d"],
    confidence: float = 0.95,
    n_resamples: int = 1000,
    seed: Seed = 0,
) -> Estimate:
    """R² of predicted embeddings and its percentile bootstrap interval, resampling scenes.

    Raises
    ------
    ValueError
        If the two differ in shape, or all embeddings are alike.
    """
    Z, P = check_embeddings(embeddings), check_embeddings(predictions)
    if Z.shape != P.shape:
        raise ValueError(
            f"embeddings and predictions must share one shape, got {Z.shape}, {P.shape}"
        )
    check_spread(Z)
    errors = np.square(Z - P, dtype=np.float64).sum(axis=1)
    spread = np.square(Z - Z.mean(axis=0, dtype=np.float64)).sum(axis=1)
    lost = _bootstrap(errors, spread, confidence, n_resamples, seed)
    return Estimate(1 - lost.value, 1 - lost.high, 1 - lost.low)


def _check_numbers(scores: np.ndarray) -> None:
    nan = np.isnan(scores).any(axis=1)
    if nan.any():
        raise ValueError(f"scores must be numbers, got NaN in row {np.flatnonzero(nan)[0]}")


def _bootstrap(
    above: np.ndarray, below: np.ndarray, confidence: float, n_resamples: int, seed: Seed
) -> Estimate:
    """Sum(above) / sum(below) and its percentile interval over resampled rows."""
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be between 0 and 1, got {confidence}")
    rng = np.random.default_rng(seed)
    n = len(above)
    sums = np.empty((check_count("n_resamples", n_resamples), 2))
    for resample in sums:  # one at a time: all of them together would take gigabytes
        rows = rng.integers(n, size=n)
        resample[:] = above[rows].sum(), below[rows].sum()
    sums = sums[sums[:, 1] > 0]  # of few scenes, all that are drawn may lie on the mean
    tail = (1 - confidence) / 2
    low, high = np.quantile(sums[:, 0] / sums[:, 1], [tail, 1 - tail])
    return Estimate(float(above.sum() / below.sum()), float(low), float(high))
