"""A table of labels, one row a picture, and everything that is wrong with it at once."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

Rows = Mapping[int, Mapping[str, str]]
"""Cells by column, for each row number as a spreadsheet has it (1 is the header)."""

Slots = Sequence[Mapping[str, str]]
"""For each slot, the column of each concept."""

_SHOWN = 5  # rows of one fault that a message spells out


class Faults:
    """Collects what is wrong with a folder, and says all of it in one error.

    Parameters
    ----------
    folder : Path
        Named in the error.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._faults: dict[str, dict[int, list[str]]] = {}

    def add(self, kind: str, row: int | None = None, detail: str = "") -> None:
        """Note a fault of a kind, in a row of the file (None: of the file as a whole)."""
        rows = self._faults.setdefault(kind, {})
        if row is not None:
            rows.setdefault(row, []).append(detail)

    def check(self) -> None:
        """Raise ValueError if there was any fault."""
        if self._faults:
            lines = [_line(kind, rows) for kind, rows in self._faults.items()]
            raise ValueError(
                f"cannot use the labels in {self._folder} (rows as in a spreadsheet, where 1 is "
                "the header):" + "".join(f"\n- {line}" for line in lines)
            )


def _line(kind: str, rows: Mapping[int, Sequence[str]]) -> str:
    if not rows:
        return kind
    shown = [f"row {row} ({'; '.join(rows[row])})" for row in sorted(rows)[:_SHOWN]]
    more = f" and {len(rows) - _SHOWN} more rows" if len(rows) > _SHOWN else ""
    return f"{kind}: {', '.join(shown)}{more}"


def read_rows(path: Path, faults: Faults) -> tuple[list[str], Rows]:
    """Read a CSV file.

    Parameters
    ----------
    path : Path
    faults : Faults
        Gets what is wrong: a file that is no table or has no rows, a column named twice, rows that
        are too long or too short (which are left out).

    Returns
    -------
    columns : list of str
    rows : dict
        Without the spaces around cells; empty lines are passed over.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            lines = list(csv.reader(file, strict=True))
    except UnicodeDecodeError as error:
        faults.add(f"{path.name} is no UTF-8 text ({error.reason} at byte {error.start})")
        return [], {}
    except csv.Error as error:
        faults.add(f"{path.name} is no table ({error})")
        return [], {}
    columns = [name.strip() for name in lines[0]] if lines else []
    for name, count in Counter(columns).items():
        if count > 1:
            faults.add(f"column {name!r} stands {count} times")
    rows = {}
    for number, cells in enumerate(lines[1:], start=2):
        if len(cells) == len(columns):
            rows[number] = dict(zip(columns, map(str.strip, cells), strict=True))
        elif cells:
            faults.add(f"expected {len(columns)} cells", number, f"got {len(cells)}")
    if len(lines) < 2:
        faults.add(f"{path.name} has no rows")
    return columns, rows


def need_columns(columns: Sequence[str], needed: Sequence[str], faults: Faults) -> None:
    """Note which of the columns that are needed are missing."""
    missing = [name for name in needed if name not in columns]
    if missing:
        faults.add("missing columns: " + ", ".join(missing))


def object_slots(columns: Sequence[str], faults: Faults) -> tuple[Slots, bool]:
    """Find the columns ``object<i>_<concept>``, and whether each has an ``_idx`` beside it.

    Every slot needs the concepts that any slot has; indices stand beside all of them or none. A
    column that nearly has such a name is a fault: to pass it over would be to lose an object.
    """
    found = [match for name in columns if (match := re.fullmatch(r"object([1-9]\d?)_(.+)", name))]
    known = {match[0] for match in found}
    for name in columns:
        if name not in known and re.match(r"object[\s_-]*\d", name, re.IGNORECASE):
            faults.add(f"column {name!r} is none of object<i>_<concept>, with i counted from 1")
    concepts = dict.fromkeys(match[2].removesuffix("_idx") for match in found)
    n_slots = max((int(match[1]) for match in found), default=1)
    slots = [{c: f"object{i}_{c}" for c in concepts} for i in range(1, n_slots + 1)]
    indexed = any(match[2].endswith("_idx") for match in found)
    needed = [column for slot in slots for column in slot.values()]
    if not needed:
        faults.add("missing columns: object<i>_<concept>, such as object1_color")
    need_columns(columns, needed + [f"{name}_idx" for name in needed if indexed], faults)
    return slots, indexed


def value_order(
    rows: Rows, slots: Slots, indexed: bool, faults: Faults
) -> dict[str, dict[str, int]]:
    """The values of each concept, in order, with the indices that the labels give them.

    Parameters
    ----------
    rows, slots
    indexed : bool
        Whether there are columns of indices. Without them the values are in alphabetical order.
    faults : Faults
        Gets empty cells, indices that are no numbers, and names and indices of which one stands
        with several of the other (the more frequent pairing counts as right).
    """
    order = {}
    for concept in slots[0]:
        cells = {}  # (row, column): name, in columns that are there
        for number, row in rows.items():
            for column in (slot[concept] for slot in slots):
                if row.get(column):
                    cells[number, column] = row[column]
                elif column in row:
                    faults.add("empty cells", number, column)
        if indexed:
            order[concept] = _indexed_order(rows, cells, faults)
        else:
            order[concept] = {name: i for i, name in enumerate(sorted(set(cells.values())))}
    return order


def _indexed_order(
    rows: Rows, cells: Mapping[tuple[int, str], str], faults: Faults
) -> dict[str, int]:
    pairs = {}  # (row, column): name and index
    for (number, column), name in cells.items():
        index = rows[number].get(f"{column}_idx")
        if index is not None and re.fullmatch(r"[0-9]{1,9}", index):
            pairs[number, column] = name, int(index)
        elif index is not None:
            faults.add("indices must be whole numbers", number, f"{column}_idx {index!r}")
    index_of: dict[str, int] = {}
    name_of: dict[int, str] = {}
    for (name, i), _ in Counter(pairs.values()).most_common():
        index_of.setdefault(name, i)
        name_of.setdefault(i, name)
    for (number, column), (name, i) in pairs.items():
        if index_of[name] != i or name_of[i] != name:
            usual = f"elsewhere {name!r} has {index_of[name]} and {i} is {name_of[i]!r}"
            detail = f"{column} {name!r} has index {i}, {usual}"
            faults.add("names and indices contradict each other", number, detail)
    return dict(sorted(index_of.items(), key=lambda item: item[1]))
