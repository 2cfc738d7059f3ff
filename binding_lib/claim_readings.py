"""How our number for a claim is read off the recorded tables."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pandas as pd

from binding_lib.claims import Measured
from binding_lib.coverage import coverage_thresholds
from binding_lib.recorded import recorded


def cell(table: str, column: str = "value", /, **keys: object) -> Callable[[], Measured]:
    """Read a number, and its interval if the table has one, from the only row with these keys."""

    def read() -> Measured:
        rows = recorded(table)
        for key, value in keys.items():
            rows = rows[rows[key] == value]
        if len(rows) != 1:
            raise ValueError(f"expected one row of {table!r} with {keys}, got {len(rows)}")
        row = rows.iloc[0].to_dict()
        return Measured(float(row[column]), *(float(row.get(e, "nan")) for e in ("low", "high")))

    return read


def of_fit(encoder: str, approximator: str, coverage: float | None, column: str) -> Measured:
    """A reading of one recorded fit; coverage None is the model's own split."""
    table = recorded("complexity")
    table = table[(table["encoder"] == encoder) & (table["approximator"] == approximator)]
    own = table["split"] == "own"
    chosen = table[own if coverage is None else ~own & (table["coverage"] == coverage)]
    return _with_interval(chosen[chosen["seed"] == 0], column)


def best_fit(encoder: str, column: str) -> Measured:
    """The largest reading of all networks and trees fitted to an encoder."""
    table = recorded("complexity")
    families = table["approximator"].str.startswith(("mlp", "xgboost", "random-forest"))
    chosen = table[families & (table["encoder"] == encoder) & (table["split"] == "random")]
    return _with_interval(chosen.nlargest(1, column), column)


def _with_interval(rows: pd.DataFrame, column: str) -> Measured:
    if len(rows) != 1:
        raise ValueError(f"expected one recorded fit, got {len(rows)}")
    short = column.split("_")[0]
    return Measured(*(float(rows[c].item()) for c in (column, f"{short}_low", f"{short}_high")))


def pocket(pair: str, modality: str, reading: str) -> Callable[[], Measured]:
    """A reading of the shipped pair on scenes of unseen objects with unseen swaps."""
    return cell(
        "pocket",
        coverage=pair,
        seed=0,
        weights="trained",
        modality=modality,
        objects="unseen, swaps too",
        reading=reading,
    )


def threshold(concepts: int, values: int) -> float:
    """The coverage at which half of the unseen objects of a space are recognised."""
    table = coverage_thresholds(recorded("coverage").query("training == 'recipe'"))
    chosen = table[(table["concepts"] == concepts) & (table["values"] == values)]
    return float(chosen["threshold"].item())


def thresholds_fall() -> Measured:
    """Of the steps to a space with more values, the share at which less coverage is needed."""
    found = [threshold(2, values) for values in (10, 20, 32)]
    return Measured(sum(a > b for a, b in pairwise(found)) / 2)


def jump_at_published_size() -> Measured:
    """How much held-out object recognition rises from coverage 0.3 to 0.4, means over seeds."""
    means = recorded("coverage_large").groupby("coverage")["held_out_object"].mean()
    return Measured(float(means[0.4] - means[0.3]))


def published_ingredients() -> Measured:
    """The last exam on held-out objects of the run that most resembles the published one."""
    table = recorded("paper_settings").query("run == 'at once' and objects == 'held_out'")
    return Measured(float(table.sort_values("step")["object"].iloc[-1]))
