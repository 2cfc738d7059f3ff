"""Record a sweep of 500 models: the table behind the chapter on products in many models.

    python benchmarks/record_sweep.py FOLDER

trains and measures the models that are missing in FOLDER, and writes the package's table of all of
them, and a table that says when and with what they were made. Stopped and started again, it goes on
where it was. It takes about two and a half hours on two cores. Models are drawn from the preset
`laptop`, by `random_configurations(500)`.
"""

from __future__ import annotations

import platform
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd
import torch
import typer

from binding_lib import run_sweep
from binding_lib.recorded import record
from binding_lib.sweeps import random_configurations
from binding_lib.sweeps.plan import run_id

MODELS = 500


def main(
    folder: Annotated[Path, typer.Argument(help="Where the rows of finished models are kept.")],
    workers: Annotated[int, typer.Option(help="Models at a time; -1 for one a core.")] = -1,
) -> None:
    """Make what is missing, then write the table, in the order in which models were drawn."""
    table = run_sweep(folder, MODELS, workers=workers).set_index("run_id")
    drawn = [run_id(configuration) for configuration in random_configurations(MODELS)]
    print(record("sweep", table.loc[drawn].reset_index(), compressed=True))
    made = {
        "command": "python benchmarks/record_sweep.py FOLDER",
        "models": len(table),
        "model_hours": round(float(table[["train_seconds", "fit_seconds"]].sum().sum()) / 3600, 2),
        "date": date.today().isoformat(),
        "processor": platform.machine(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "torch": torch.__version__,
        "binding_lib": version("binding_lib"),
    }
    print(record("sweep_made", pd.DataFrame([made])))


if __name__ == "__main__":
    typer.run(main)
