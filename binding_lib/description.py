"""Complexity as a number: how long is the shortest description that an approximator gives?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from binding_lib.complexity import REAL


def description_length(curve: pd.DataFrame) -> pd.DataFrame:
    """Add the bits that it takes to write down the training embeddings with each approximator.

    Parameters
    ----------
    curve : DataFrame
        As of `complexity_curve`.

    Returns
    -------
    DataFrame
        The rows with three more columns, in bits a training scene: parameter_bits, residual_bits
        (below 0: that much less than without an approximator) and code_bits, their sum.

    Notes
    -----
    A two-part code: first the k parameters, then what they leave unexplained. With n = n_train ·
    dim numbers to write down, the parameters take ``k / 2 · log2 n`` bits, since they need be no
    more precise than n numbers can tell (Rissanen 1978; Grünwald 2007, chapter 4), and residuals
    written by a Gaussian code take ``n / 2 · log2(1 - R²)`` bits more than the embeddings
    themselves would, their mean and variance known. This is half the Bayesian information
    criterion in bits. A residual saves 24 bits at most, the precision of a float32. A code longer
    than nothing at all (code_bits above 0) is no explanation: it had better list the embeddings.
    """
    n = curve["n_train"] * curve["dim"]
    unexplained = np.maximum(1 - curve["r2_train"], 2.0**-48)
    return curve.assign(
        parameter_bits=curve["n_parameters"] / 2 * np.log2(n) / curve["n_train"],
        residual_bits=curve["dim"] / 2 * np.log2(unexplained),
        code_bits=lambda t: t["parameter_bits"] + t["residual_bits"],
    )


def parameters_to_reach(curve: pd.DataFrame, object_recognition: float = 0.5) -> pd.DataFrame:
    """Find the smallest approximator that recognises unseen objects: complexity as one number.

    Parameters
    ----------
    curve : DataFrame
        As of `complexity_curve`.
    object_recognition : float
        The level to be reached on scenes of held-out objects.

    Returns
    -------
    DataFrame
        One row for each coverage and seed: approximator (the one with the fewest parameters of
        those that reach the level), n_parameters, code_bits (see `description_length`), and best,
        the highest object recognition of any. Where none reaches the level, the first three are
        missing.

    Raises
    ------
    ValueError
        If an approximator stands twice at a coverage and seed, as it does in a table of several
        encoders.
    """
    keys = ["approximator", "coverage", "seed"]
    if (twice := curve.duplicated(keys)).any():
        name, coverage, seed = curve.loc[twice, keys].iloc[0]
        raise ValueError(
            f"expected the curve of one encoder and one kind of split, got {name} at coverage "
            f"{coverage:g}, seed {seed} again"
        )
    fitted = description_length(curve[curve["approximator"] != REAL])
    rows = []
    for (coverage, seed), one in fitted.groupby(["coverage", "seed"]):
        reached = one[one["object_recognition"] >= object_recognition]
        row: dict[str, Any] = {"coverage": coverage, "seed": seed, "approximator": None}
        row |= {"n_parameters": np.nan, "code_bits": np.nan}
        if len(reached):
            smallest = reached.nsmallest(1, "n_parameters").to_dict("records")[0]
            row |= {k: smallest[k] for k in ("approximator", "n_parameters", "code_bits")}
        rows.append({**row, "best": one["object_recognition"].max()})
    columns = ["coverage", "seed", "approximator", "n_parameters", "code_bits", "best"]
    return pd.DataFrame(rows, columns=columns)
