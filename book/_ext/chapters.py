"""Execute chapters: notebooks/NN_name.md, the source, into the .ipynb of the same name.

A chapter is executed when its .ipynb is missing or no longer holds the cells of its .md; with
--all, every chapter is. Whether stored outputs still are what the library gives is for the tests
to say (nbval runs every cell again and compares).
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import time
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jupytext
import nbclient
import nbformat
import pandas as pd

from binding_lib.files import atomic_path
from binding_lib.recorded import record, recorded

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"


def same_cells(source: Path, executed: Path) -> bool:
    """Tell whether an executed notebook holds the cells of its source, tags included."""

    def cells(notebook: Any) -> list[tuple[str, str, dict[str, Any]]]:
        return [(cell.cell_type, cell.source, dict(cell.metadata)) for cell in notebook.cells]

    return executed.exists() and cells(jupytext.read(source)) == cells(
        nbformat.read(executed, as_version=4)
    )


def _steady_ids(notebook: Any) -> Any:
    """Number the random ids of charts and widgets, so that equal results give equal files."""
    text = nbformat.writes(notebook)
    charts = re.findall(r"altair-viz-([0-9a-f]{32})", text)
    widgets = notebook.metadata.get("widgets", {})
    models = [model for state in widgets.values() for model in state["state"]]
    for number, name in enumerate(dict.fromkeys([*charts, *sorted(models, key=text.index)])):
        text = text.replace(name, f"{number:032x}")
    return nbformat.reads(text, as_version=4)


def execute(source: Path) -> None:
    """Run a chapter from its first cell to its last and write its .ipynb."""
    notebook = jupytext.read(source)
    for number, cell in enumerate(notebook.cells):
        cell.id = f"cell-{number}"
    client = nbclient.NotebookClient(
        notebook,
        timeout=None,
        kernel_name="python3",
        record_timing=False,
        resources={"metadata": {"path": str(source.parent)}},
    )
    start = time.perf_counter()
    client.execute()
    seconds = time.perf_counter() - start
    with atomic_path(source.with_suffix(".ipynb")) as temporary:
        nbformat.write(_steady_ids(notebook), temporary)
    _note_seconds(source.stem, seconds)
    print(f"{source.name}: {seconds:.0f} s", flush=True)


def _note_seconds(chapter: str, seconds: float) -> None:
    """Record how long a chapter took, for the book's page on its status."""
    row = {
        "chapter": chapter,
        "seconds": round(seconds),
        "date": date.today().isoformat(),
        "cores": os.cpu_count(),
        "processor": platform.machine(),
        "python": platform.python_version(),
        "torch": version("torch"),
    }
    known = recorded("execution")
    table = pd.concat([known[known["chapter"] != chapter], pd.DataFrame([row])])
    record("execution", table.sort_values("chapter"))


def main() -> None:
    """Execute what needs it, one line a chapter."""
    parser = argparse.ArgumentParser(description="Execute the chapters that need it.")
    parser.add_argument("--all", action="store_true", help="execute every chapter")
    arguments = parser.parse_args()
    for source in sorted(NOTEBOOKS.glob("*.md")):
        if arguments.all or not same_cells(source, source.with_suffix(".ipynb")):
            print(f"{source.name}: executing", flush=True)
            execute(source)


if __name__ == "__main__":
    main()
