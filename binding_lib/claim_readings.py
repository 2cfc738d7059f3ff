"""How our number for a claim is read off recorded tables.

Each function of `READINGS` takes the reader of tables first, by default the package's own
`binding_lib.recorded.recorded`, and then what an entry of ``recorded/claims.toml`` says.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import pandas as pd

from binding_lib.coverage import coverage_thresholds
from binding_lib.sweeps.analysis import rank_correlation
from binding_lib.sweeps.description import described_models

Reader: TypeAlias = Callable[[str], pd.DataFrame]


class Measured(NamedTuple):
    """Our number for a claim; the ends of its interval are NaN where none was made."""

    value: float
    low: float = math.nan
    high: float = math.nan


def cell(read: Reader, table: str, row: dict[str, Any], column: str = "value") -> Measured:
    """Read a number, and its interval if the table has one, from the only row with these keys.

    Raises
    ------
    ValueError
        If there is not just one such row.
    """
    rows = read(table)
    for key, value in row.items():
        rows = rows[rows[key] == value]
    if len(rows) != 1:
        raise ValueError(f"expected one row of {table!r} with {row}, got {len(rows)}")
    found = rows.iloc[0].to_dict()
    return Measured(float(found[column]), *(float(found.get(e, "nan")) for e in ("low", "high")))


def gap(read: Reader, table: str, higher: dict[str, Any], lower: dict[str, Any]) -> Measured:
    """How far one number of a table lies below another; negative if it lies above."""
    return Measured(cell(read, table, higher).value - cell(read, table, lower).value)


def pocket(read: Reader, pair: str, modality: str, reading: str) -> Measured:
    """A reading of the shipped pair on scenes of unseen objects with unseen swaps."""
    row = {"coverage": pair, "seed": 0, "weights": "trained", "modality": modality}
    return cell(read, "pocket", {**row, "objects": "unseen, swaps too", "reading": reading})


def fit(
    read: Reader, encoder: str, approximator: str, column: str, coverage: float | None = None
) -> Measured:
    """A reading of one recorded fit; without a coverage, at the model's own split."""
    table = read("complexity")
    table = table[(table["encoder"] == encoder) & (table["approximator"] == approximator)]
    own = table["split"] == "own"
    chosen = table[own if coverage is None else ~own & (table["coverage"] == coverage)]
    return _with_interval(chosen[chosen["seed"] == 0], column)


def best_fit(read: Reader, encoder: str, column: str) -> Measured:
    """The largest reading of all networks and trees fitted to an encoder."""
    table = read("complexity")
    families = table["approximator"].str.startswith(("mlp", "xgboost", "random-forest"))
    chosen = table[families & (table["encoder"] == encoder) & (table["split"] == "random")]
    return _with_interval(chosen.nlargest(1, column), column)


def _with_interval(rows: pd.DataFrame, column: str) -> Measured:
    if len(rows) != 1:
        raise ValueError(f"expected one recorded fit, got {len(rows)}")
    short = column.split("_")[0]
    return Measured(*(float(rows[c].item()) for c in (column, f"{short}_low", f"{short}_high")))


def threshold(read: Reader, concepts: int, values: int) -> Measured:
    """The coverage at which half of the unseen objects of a space are recognised.

    Raises
    ------
    ValueError
        If there are no models of the space, or they never cross that level.
    """
    table = read("coverage").query("training == 'recipe'")
    chosen = table[(table["concepts"] == concepts) & (table["values"] == values)]
    models = f"models of {concepts} concepts with {values} values each, trained by the recipe"
    if chosen.empty:
        raise ValueError(f"expected {models}, got none")
    found = float(coverage_thresholds(chosen)["threshold"].item())
    if math.isnan(found):
        raise ValueError(
            f"expected {models}, that recognise less than half of the unseen objects at one "
            "coverage and more at the next, got none: measure more coverages"
        )
    return Measured(found)


def thresholds_fall(read: Reader) -> Measured:
    """Of the steps to a space with more values, the share at which less coverage is needed."""
    found = [threshold(read, 2, values).value for values in (10, 20, 32)]
    return Measured(sum(a > b for a, b in pairwise(found)) / 2)


def jump_at_published_size(read: Reader) -> Measured:
    """How much held-out object recognition rises from coverage 0.3 to 0.4, means over seeds."""
    means = read("coverage_large").groupby("coverage")["held_out_object"].mean()
    return Measured(float(means[0.4] - means[0.3]))


def published_ingredients(read: Reader) -> Measured:
    """The last exam on held-out objects of the run that most resembles the published one."""
    table = read("paper_settings").query("run == 'at once' and objects == 'held_out'")
    return Measured(float(table.sort_values("step")["object"].iloc[-1]))


def correlation(read: Reader, x: str, within: Sequence[str] = ()) -> Measured:
    """Rank correlation, over the models of the sweep, of unseen objects recognised with `x`."""
    return Measured(
        *rank_correlation(described_models(read("sweep")), x, "held_out_object", within)
    )


READINGS: dict[str, Callable[..., Measured]] = {
    reading.__name__: reading
    for reading in (
        cell,
        gap,
        pocket,
        fit,
        best_fit,
        threshold,
        thresholds_fall,
        jump_at_published_size,
        published_ingredients,
        correlation,
    )
}
"""By the names that ``recorded/claims.toml`` uses."""
