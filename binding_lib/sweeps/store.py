"""The folder of a sweep: what was asked for, and one file for each row, so that nothing is lost."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd
from filelock import FileLock, Timeout

from binding_lib.files import atomic_path
from binding_lib.sweeps.plan import Configuration, run_id


class SweepStore:
    """Rows of a sweep on disk; any number of sweeps may write into one.

    A row is a file of its own, written whole or not at all, and named after its configuration. So
    a stop at any moment, or a second sweep, can neither tear a row nor double one. While a model is
    being made, its file in ``locks`` is locked; the system lets go of it when the process ends,
    however it ends.

    Parameters
    ----------
    folder : path
        Made when something is written.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)

    def ask_for(self, configurations: Iterable[Configuration]) -> None:
        """Note which models there shall be, so that others can see what is missing."""
        for configuration in configurations:
            file = self._file("asked", run_id(configuration))
            if not file.exists():
                _write(file, configuration)

    def asked(self) -> dict[str, Configuration]:
        """All models that any sweep asked for, by their id."""
        return {file.stem: _read(file) for file in self._files("asked")}

    def done(self) -> set[str]:
        """Ids of the rows there are."""
        return {file.stem for file in self._files("rows")}

    def has(self, name: str) -> bool:
        """Whether the row with this id is there."""
        return self._file("rows", name).exists()

    def add(self, row: dict[str, Any]) -> None:
        """Write a row. Numbers that are none become null: JSON has no other way to say so."""
        shown = {
            key: None if isinstance(value, float) and not math.isfinite(value) else value
            for key, value in row.items()
        }
        _write(self._file("rows", row["run_id"]), shown)

    def remove(self, name: str) -> None:
        """Remove a row, if it is there."""
        self._file("rows", name).unlink(missing_ok=True)

    def failed_for_want(self) -> list[str]:
        """Ids of the rows whose error is none of the configuration's, and may pass.

        Raises
        ------
        ValueError
            If a file is damaged; all such files are named.
        """
        table = self.table()
        if table.empty:
            return []
        errors = table.set_index("run_id")["error"].dropna()
        of_configuration = ("ValueError", "TypeError")
        return [str(name) for name, e in errors.items() if not e.startswith(of_configuration)]

    def claim(self, name: str) -> FileLock | None:
        """Take a model on, until the lock is released; None if it is being made elsewhere."""
        file = self.folder / "locks" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(file, thread_local=False)
        try:
            lock.acquire(blocking=False)
        except Timeout:
            return None
        return lock

    def table(self) -> pd.DataFrame:
        """Read all rows, in the order in which they were finished.

        Raises
        ------
        ValueError
            If a file is damaged; all such files are named.
        """
        files = sorted(self._files("rows"), key=lambda file: (file.stat().st_mtime_ns, file.name))
        rows, faults = [], []
        for file in files:
            try:
                row = _read(file)
                if row.get("run_id") != file.stem or "error" not in row:
                    raise ValueError(f"{file} is no row of this name; delete it or name it rightly")
                rows.append(row)
            except ValueError as error:
                faults.append(str(error))
        if faults:
            raise ValueError("; ".join(faults))
        return pd.DataFrame(rows)

    def _file(self, kind: str, name: str) -> Path:
        return self.folder / kind / f"{name}.json"

    def _files(self, kind: str) -> list[Path]:
        # A killed writer leaves a temporary file behind, whose name starts with a dot.
        return sorted((self.folder / kind).glob("[!.]*.json"))


def read_sweep(folder: str | os.PathLike[str]) -> pd.DataFrame:
    """Read what a sweep has measured so far, also while it runs.

    Parameters
    ----------
    folder : path
        The sweep's store.

    Returns
    -------
    DataFrame
        One row a model, with the columns of `binding_lib.sweeps.measuring.measure_model`;
        ``run_id`` is unique.

    Raises
    ------
    FileNotFoundError
        If there is no such store.
    ValueError
        If a row's file is damaged; all such files are named.
    """
    store = SweepStore(folder)
    if not store.asked() and not store.done():
        raise FileNotFoundError(f"there is no sweep in {os.fspath(folder)!r}; run_sweep makes one")
    return store.table()


def sweep_status(folder: str | os.PathLike[str]) -> dict[str, int]:
    """Count the models of a store: asked for, finished, failed (with an error), and still missing.

    Raises
    ------
    FileNotFoundError, ValueError
        As `read_sweep`.
    """
    table = read_sweep(folder)
    asked = SweepStore(folder).asked()
    failed = int(table["error"].notna().sum()) if len(table) else 0
    finished = len(table) - failed
    return {
        "asked": len(asked),
        "finished": finished,
        "failed": failed,
        "missing": len(asked.keys() - set(table.get("run_id", ()))),
    }


def _write(file: Path, content: dict[str, Any]) -> None:
    with atomic_path(file) as temporary:
        temporary.write_text(json.dumps(content, allow_nan=False) + "\n")


def _read(file: Path) -> dict[str, Any]:
    try:
        content = json.loads(file.read_text())
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ValueError(
            f"{file} is damaged ({error}); delete it, and the sweep makes it again"
        ) from error
    if not isinstance(content, dict):
        raise ValueError(
            f"{file} is damaged (no JSON object); delete it, and the sweep makes it again"
        )
    return content
