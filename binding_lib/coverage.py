"""How much of an object space must be seen: the threshold in a table of trained models."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

SPACE = ["concepts", "values", "training"]
"""The columns of a table of models that say which models differ by coverage and seed only."""


def coverage_means(table: pd.DataFrame) -> pd.DataFrame:
    """Average held-out object recognition over seeds.

    Parameters
    ----------
    table : DataFrame
        One row a model, with the columns concepts, values (of each concept), training (how it
        differs from the recipe, in words, or "recipe"), coverage, seed and held_out_object, as the
        recorded table "coverage" has them.

    Returns
    -------
    DataFrame
        Columns n_objects, concepts, values, training, coverage, mean, low and high (of the single
        models) and seeds (the number of models); in the order of the first five.
    """
    by = ["n_objects", *SPACE, "coverage"]
    sized = table.assign(n_objects=table["values"] ** table["concepts"])
    means = sized.groupby(by)["held_out_object"]
    return means.agg(mean="mean", low="min", high="max", seeds="count").reset_index()


def coverage_thresholds(table: pd.DataFrame, level: float = 0.5) -> pd.DataFrame:
    """For each space, the coverage at which unseen objects begin to be recognised.

    Parameters
    ----------
    table : DataFrame
        As for `coverage_means`.
    level : float
        The held-out object recognition that counts as the threshold.

    Returns
    -------
    DataFrame
        Columns n_objects, concepts, values, training and threshold: see `first_crossing`. One row
        for each space and way of training.
    """
    by = ["n_objects", *SPACE]
    rows = [
        {
            **dict(zip(by, space, strict=True)),
            "threshold": first_crossing(one["coverage"].tolist(), one["mean"].tolist(), level),
        }
        for space, one in coverage_means(table).groupby(by)
    ]
    return pd.DataFrame(rows)


def first_crossing(xs: Sequence[float], ys: Sequence[float], level: float = 0.5) -> float:
    """Find where a curve, taken as straight between its points, first rises to a level.

    Parameters
    ----------
    xs : sequence of float
        In ascending order.
    ys : sequence of float
    level : float

    Returns
    -------
    float
        NaN if no two neighbouring points have the level between them: the curve never reaches it,
        or lies above it from the first point on.

    Examples
    --------
    >>> first_crossing([0.1, 0.2, 0.3], [0.0, 0.4, 0.8])
    0.225
    """
    if len(xs) != len(ys) or np.any(np.diff(xs) <= 0):
        raise ValueError(f"expected as many ascending xs as ys, got {list(xs)} and {list(ys)}")
    for i in range(1, len(xs)):
        if ys[i - 1] < level <= ys[i]:
            share = (level - ys[i - 1]) / (ys[i] - ys[i - 1])
            return float(round(xs[i - 1] + share * (xs[i] - xs[i - 1]), 9))
    return float("nan")
