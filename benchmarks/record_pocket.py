"""Train the pocket image-text pairs and record what they recognise.

    python benchmarks/record_pocket.py FOLDER

trains pairs at low and high coverage on three seeds, keeps each one's checkpoint in FOLDER, and
writes the table of all that is done into the package. Stopped and started again, it goes on where
it was. With --ship the pairs of seed 0 are copied into the package: `pocket-clip:low` and
`pocket-clip:high`.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated

import pandas as pd
import torch
import typer

import binding_lib
from binding_lib.encoders.pocket import WEIGHTS
from binding_lib.files import atomic_path
from binding_lib.pocket_readings import pocket_table
from binding_lib.pocket_training import train_pocket_clip

TABLE = Path(binding_lib.__file__).parent / "recorded" / "pocket.csv"
COVERAGES = {"low": 0.25, "high": 0.8}
SEEDS = (0, 1, 2)


def record(name: str, coverage: float, seed: int, folder: Path) -> pd.DataFrame:
    """Train one pair, or read it, and tabulate what it recognises."""
    trained = train_pocket_clip(coverage, seed, folder=folder)
    table = pocket_table(trained).round(4)
    keys = {"coverage": name, "seed": seed, "train_objects": len(trained.split.train)}
    for place, (key, value) in enumerate(keys.items()):
        table.insert(place, key, value)
    return table.assign(
        steps=trained.step, seconds=round(float(trained.history["seconds"].max()), 1)
    )


def main(
    folder: Annotated[Path, typer.Argument(help="Where checkpoints and finished rows are kept.")],
    only: Annotated[
        str | None, typer.Option(help='Train only this coverage: "low", "high".')
    ] = None,
    ship: Annotated[bool, typer.Option(help="Copy the pairs of seed 0 into the package.")] = False,
) -> None:
    """Train what is missing, then write the table."""
    torch.set_num_threads(1)
    runs = [(name, seed) for seed in SEEDS for name in COVERAGES]
    for name, seed in runs:
        if only in (None, name) and not (folder / f"{name}-{seed}.csv").exists():
            table = record(name, COVERAGES[name], seed, folder / f"{name}-{seed}")
            with atomic_path(folder / f"{name}-{seed}.csv") as temporary:
                table.to_csv(temporary, index=False)
            print(table[table["weights"] == "trained"].to_string(index=False))
        if ship and seed == 0 and only in (None, name):
            shutil.rmtree(WEIGHTS / name, ignore_errors=True)
            shutil.copytree(folder / f"{name}-0", WEIGHTS / name)
    files = [folder / f"{name}-{seed}.csv" for name, seed in runs]
    done = [pd.read_csv(file) for file in files if file.exists()]
    with atomic_path(TABLE) as temporary:
        pd.concat(done).to_csv(temporary, index=False)


if __name__ == "__main__":
    typer.run(main)
