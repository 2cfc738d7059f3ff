"""Do models that bind multiply? Rank correlations over a sweep, overall and within groups."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy.stats import norm, rankdata

from binding_lib.recognition import Estimate


def rank_correlation(
    table: pd.DataFrame,
    x: str,
    y: str,
    within: Sequence[str] = (),
    confidence: float = 0.95,
) -> Estimate:
    """Spearman's rank correlation of two columns, with a jackknife interval over models.

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

    Returns
    -------
    Estimate
        (value, low, high). The interval comes from leaving out one model after the other, on
        Fisher's scale (the inverse hyperbolic tangent), on which correlations spread evenly.

    Raises
    ------
    ValueError
        If a column is missing, or fewer than three models can be compared, or they are all alike;
        or if confidence is not between 0 and 1.
    """
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be between 0 and 1, got {confidence}")
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
    sums = np.concatenate([_products(xs[group][None], ys[group][None]) for group in rows])
    total = sums.sum(axis=0)
    value = _correlation(total).item()
    if np.isnan(value):
        raise ValueError(f"{x!r} or {y!r} is the same in all models that are compared")
    # Bootstrap samples hold models twice, and so ties: small groups then agree less than they do.
    variance = 0.0
    for group, own in zip(rows, sums, strict=True):
        without = np.array([np.delete(group, place) for place in range(len(group))])
        left = _correlation(total - own + _products(xs[without], ys[without]))
        # Where all that is left is tied, nothing goes along with anything.
        variance += (len(group) - 1) * _fisher(np.nan_to_num(left)).var()
    reach = norm.ppf((1 + confidence) / 2) * np.sqrt(variance)
    low, high = np.tanh(_fisher(value) + np.array([-reach, reach]))
    return Estimate(value, min(float(low), value), max(float(high), value))


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


def _products(xs: np.ndarray, ys: np.ndarray) -> np.ndarray:
    """Sum, over each of R groups of n models, products of centred ranks: xy, xx, yy; R x 3."""
    a, b = _centred_ranks(xs), _centred_ranks(ys)
    return np.stack([(a * b).sum(axis=1), (a**2).sum(axis=1), (b**2).sum(axis=1)], axis=1)


def _correlation(products: np.ndarray) -> np.ndarray:
    """Pearson's correlation from the sums of products xy, xx, yy; NaN where all is tied."""
    xy, xx, yy = np.moveaxis(products, -1, 0)
    with np.errstate(invalid="ignore"):
        return xy / np.sqrt(xx * yy)


def _fisher(correlation: np.ndarray | float) -> np.ndarray:
    # Perfect correlations lie at infinity, from which nothing comes back.
    return np.arctanh(np.clip(correlation, -1 + 1e-12, 1 - 1e-12))


def _centred_ranks(values: np.ndarray) -> np.ndarray:
    # As shares of the group, so that a large group's ranks do not drown a small one's.
    n = values.shape[1]
    return (rankdata(values, axis=1) - (n + 1) / 2) / n
