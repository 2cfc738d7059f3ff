"""How much of an object space must be seen: the threshold in a table of trained models."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd


def coverage_means(table: pd.DataFrame) -> pd.DataFrame:
    """Average held-out object recognition over seeds.

    Parameters
    ----------
    table : DataFrame
        One row a model, with the columns concepts, values (of each concept), coverage, seed and
        held_out_object, as the recorded table "coverage" has them.

    Returns
    -------
    DataFrame
        Columns concepts, values, n_objects, coverage, mean, low and high (of the single models) and
        seeds (the number of models); one row for each space and coverage, in that order.
    """
    by = ["concepts", "values", "coverage"]
    means = (
        table.groupby(by)["held_out_object"]
        .agg(mean="mean", low="min", high="max", seeds="count")
        .reset_index()
    )
    means.insert(2, "n_objects", means["values"] ** means["concepts"])
    return means.sort_values(["n_objects", *by], ignore_index=True)


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
        Columns concepts, values, n_objects and threshold: see `first_crossing`. One row a space.
    """
    rows = [
        {
            **dict(zip(("concepts", "values", "n_objects"), space, strict=True)),
            "threshold": first_crossing(one["coverage"].tolist(), one["mean"].tolist(), level),
        }
        for space, one in coverage_means(table).groupby(
            ["concepts", "values", "n_objects"], sort=False
        )
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
