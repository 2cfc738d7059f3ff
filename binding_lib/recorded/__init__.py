"""Numbers that ship with the course: published ones, and those that earlier runs measured.

A chapter computes its numbers anew wherever it runs. Another processor rounds differently, so a
chapter compares them with the recorded table by a tolerance instead of letter by letter.
"""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import numpy as np
import pandas as pd

from binding_lib.checks import unknown_name
from binding_lib.files import atomic_path
from binding_lib.presets import is_smoke_run

_FOLDER = Path(__file__).parent

RECORD_VARIABLE = "BINDING_LIB_RECORD"
"""While this variable names a folder, `agrees_with_recorded` writes its table there instead."""


def recorded(name: str, folder: str | os.PathLike[str] | None = None) -> pd.DataFrame:
    """Read a table that ships with the course, such as "published_level_one".

    Parameters
    ----------
    name : str
    folder : path, optional
        Where `record` wrote other tables; the package's own otherwise.

    Raises
    ------
    ValueError
        If there is none of that name; the nearest name is given.
    """
    tables = {f.name.partition(".")[0]: f for f in sorted(Path(folder or _FOLDER).glob("*.csv*"))}
    if name not in tables:
        raise unknown_name("recorded table", name, list(tables))
    return pd.read_csv(tables[name])


def record(name: str, table: pd.DataFrame, compressed: bool = False) -> Path:
    """Write a table into the package, or into the folder that `RECORD_VARIABLE` names.

    Parameters
    ----------
    name : str
    table : DataFrame
    compressed : bool
        By gzip, for tables of many rows.

    Returns
    -------
    Path
        Of the file.
    """
    folder = Path(os.environ.get(RECORD_VARIABLE) or _FOLDER)
    file = folder / f"{name}.csv{'.gz' if compressed else ''}"
    content = table.to_csv(index=False).encode()
    with atomic_path(file) as temporary:
        # Without a time inside, so that equal tables give equal files.
        temporary.write_bytes(gzip.compress(content, mtime=0) if compressed else content)
    return file


def agrees_with_recorded(name: str, table: pd.DataFrame, tolerance: float = 0.03) -> str:
    """Compare the "value" column of a table made now with the recorded one.

    While `RECORD_VARIABLE` names a folder, the table is recorded there and compared with nothing.
    In a smoke run (see `binding_lib.presets`) it is compared with nothing, too.

    Parameters
    ----------
    name : str
        The recorded table's name.
    table : DataFrame
        A column "value"; the columns of text or whole numbers say which value it is. The ends of
        intervals, "low" and "high", are recorded too, and not compared.
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
    ends = [end for end in ("low", "high") if end in table]
    now = table[[*keys, "value", *ends]].astype(dict.fromkeys(keys, str))
    if (twice := now.duplicated(keys)).any():
        raise ValueError(f"expected one value a row, got some again:\n{now[twice].to_string()}")
    if os.environ.get(RECORD_VARIABLE):
        return f"{len(now)} values are recorded in {record(name, now.round(4)).name}."
    if is_smoke_run():
        return f"{len(now)} values are compared with nothing: the preset smoke shortens trainings."
    now = now.drop(columns=ends)
    then = recorded(name).drop(columns=["low", "high"], errors="ignore")
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
