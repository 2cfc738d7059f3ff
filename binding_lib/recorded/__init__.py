"""Numbers that ship with the course: published ones, and those that earlier runs measured.

A chapter computes its numbers anew wherever it runs. Another processor rounds differently, so a
chapter compares them with the recorded table by a tolerance instead of letter by letter.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd

from binding_lib.checks import unknown_name
from binding_lib.files import atomic_path

_FOLDER = Path(__file__).parent

RECORD_VARIABLE = "BINDING_LIB_RECORD"
"""While this variable is set, `agrees_with_recorded` writes the table before it compares."""


def recorded(name: str) -> pd.DataFrame:
    """Read a table that ships with the course, such as "published_level_one".

    Raises
    ------
    ValueError
        If there is none of that name; the nearest name is given.
    """
    file = _FOLDER / f"{name}.csv"
    if not file.exists():
        raise unknown_name("recorded table", name, sorted(f.stem for f in _FOLDER.glob("*.csv")))
    return pd.read_csv(file)


def agrees_with_recorded(name: str, table: pd.DataFrame, tolerance: float = 0.03) -> str:
    """Compare the "value" column of a table made now with the recorded one.

    Parameters
    ----------
    name : str
        The recorded table's name.
    table : DataFrame
        A column "value"; the columns of text or whole numbers say which value it is.
    tolerance : float
        The largest difference that another processor or thread count may make.

    Returns
    -------
    str
        A sentence that says how many values agree.

    Raises
    ------
    ValueError
        If rows are missing, added, stand twice, or differ by more than the tolerance, which are
        then named; or if the columns are others than the recorded ones.
    """
    keys = [c for c in table.columns if c != "value" and table[c].dtype.kind != "f"]
    now = table[[*keys, "value"]].astype(dict.fromkeys(keys, str))
    if (twice := now.duplicated(keys)).any():
        raise ValueError(f"expected one value a row, got some again:\n{now[twice].to_string()}")
    if os.environ.get(RECORD_VARIABLE):
        with atomic_path(_FOLDER / f"{name}.csv") as temporary:
            now.round(4).to_csv(temporary, index=False)
    then = recorded(name)
    if set(then) != set(now):
        raise ValueError(f"expected the columns {list(then)} of {name!r}, got {list(now)}")
    # As text, since a file does not say whether "2" was a number.
    then = then.astype(dict.fromkeys(keys, str))
    both = now.merge(then, on=keys, how="outer", suffixes=("", "_recorded"))
    differs = ~(np.abs(both["value"] - both["value_recorded"]) <= tolerance)
    if differs.any():
        shown = both[differs].to_string(index=False)
        raise ValueError(
            f"{differs.sum()} of {len(both)} values differ from the recorded table {name!r} by "
            f"more than {tolerance} (a missing value is NaN):\n{shown}"
        )
    return f"All {len(now)} values agree with the recorded table within {tolerance}."
