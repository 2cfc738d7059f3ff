"""Do models that bind multiply? Rank correlations over a sweep, overall and within groups."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from binding_lib.checks import check_count
from binding_lib.concepts import Seed
from binding_lib.recognition import Estimate


def rank_correlation(
    table: pd.DataFrame,
    x: str,
    y: str,
    within: Sequence[str] = (),
    confidence: float = 0.95,
    n_resamples: int = 1000,
    seed: Seed = 0,
) -> Estimate:
    """Spearman's rank correlation of two columns, with a percentile bootstrap interval over models.

    Parameters
    ----------
    table : DataFrame
        One row a model. Rows that lack x or y are left out.
    x, y : str
        Two columns.
    within : sequence of str
        Columns that say which models are compared with each other: ranks are taken inside of each
        group, measured from the group's middle, and then correlated over all groups. What the
        groups differ in cannot produce such a correlation. Without any: all are one group.
    confidence : float
    n_resamples : int
    seed : int or numpy Generator

    Returns
    -------
    Estimate
        (value, low, high). Models are resampled inside of their group.

    Raises
    ------
    ValueError
        If a column is missing, or fewer than three models can be compared, or they are all alike;
        if confidence is not between 0 and 1, or n_resamples is no count.
    """
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be between 0 and 1, got {confidence}")
    check_count("n_resamples", n_resamples)
    for column in (x, y, *within):
        if column not in table:
            raise ValueError(f"the table lacks {column!r}; its columns are {list(table)}")
    table = table.dropna(subset=[x, y])
    rows = [np.arange(len(table))]
    if within:
        groups = table.groupby(list(within), dropna=False).indices
        # A model that is alone in its group cannot be compared.
        rows = [np.asarray(group) for group in groups.values() if len(group) > 1]
    xs, ys = table[x].to_numpy(float), table[y].to_numpy(float)
    if sum(map(len, rows)) < 3:
        raise ValueError(
            f"expected at least 3 models to compare, got {sum(map(len, rows))} (of {len(table)})"
        )
    value = _correlations(xs, ys, [group[None] for group in rows]).item()
    if np.isnan(value):
        raise ValueError(f"{x!r} or {y!r} is the same in all models that are compared")
    rng = np.random.default_rng(seed)
    drawn = _correlations(
        xs, ys, [rng.choice(group, size=(n_resamples, len(group))) for group in rows]
    )
    tail = (1 - confidence) / 2
    low, high = np.nanquantile(drawn, [tail, 1 - tail])
    return Estimate(float(value), float(low), float(high))


def correlation_table(
    table: pd.DataFrame, xs: Sequence[str], y: str, groupings: dict[str, Sequence[str]]
) -> pd.DataFrame:
    """Correlate several columns with one, overall and within groupings.

    Parameters
    ----------
    table : DataFrame
        As for `rank_correlation`.
    xs : sequence of str
    y : str
    groupings : dict
        Names of groupings and the columns that make them.

    Returns
    -------
    DataFrame
        Columns x, compared (the grouping's name), correlation, low, high.
    """
    rows = []
    for x in xs:
        for name, within in groupings.items():
            value, low, high = rank_correlation(table, x, y, within)
            rows.append({"x": x, "compared": name, "correlation": value, "low": low, "high": high})
    return pd.DataFrame(rows)


def _correlations(xs: np.ndarray, ys: np.ndarray, groups: Sequence[np.ndarray]) -> np.ndarray:
    """Pearson's correlations of centred ranks, over all groups; NaN where all ranks are tied.

    Each group holds the rows of its models, once for each of the R correlations: R x n.
    """
    a = np.concatenate([_centred_ranks(xs[group]) for group in groups], axis=1)
    b = np.concatenate([_centred_ranks(ys[group]) for group in groups], axis=1)
    with np.errstate(invalid="ignore"):
        return (a * b).sum(axis=1) / np.sqrt((a**2).sum(axis=1) * (b**2).sum(axis=1))


def _centred_ranks(values: np.ndarray) -> np.ndarray:
    # As shares of the group, so that a large group's ranks do not drown a small one's.
    n = values.shape[1]
    return (rankdata(values, axis=1) - (n + 1) / 2) / n
