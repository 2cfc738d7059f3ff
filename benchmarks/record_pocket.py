"""Train the pocket image-text pairs and record what they recognise.

    python benchmarks/record_pocket.py FOLDER

trains pairs at low and high coverage on three seeds, keeps each one's checkpoint in FOLDER, and
writes the table of all that is done into the package. Stopped and started again, it goes on where
it was. With --shipped it trains none and examines `pocket-clip:low` and `pocket-clip:high`, which
come with the package; with --ship the pairs of seed 0 are copied there. With --shipped or --only
the table holds a part, and goes to the folder that the environment variable BINDING_LIB_RECORD
names.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated

import pandas as pd
import torch
import typer
from parts import refuse_part

from binding_lib.encoders.pocket import WEIGHTS
from binding_lib.files import atomic_path
from binding_lib.loops import LOCK
from binding_lib.pocket import TrainedPocketClip, load_pocket_clip
from binding_lib.pocket_readings import pocket_table
from binding_lib.pocket_training import train_pocket_clip
from binding_lib.recorded import record

COVERAGES = {"low": 0.25, "high": 0.8}
SEEDS = (0, 1, 2)


def examine(name: str, trained: TrainedPocketClip) -> pd.DataFrame:
    """Tabulate what one pair recognises."""
    table = pocket_table(trained).round(4)
    keys = {"coverage": name, "seed": trained.seed, "train_objects": len(trained.split.train)}
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
    shipped: Annotated[bool, typer.Option(help="Examine the pairs of the package only.")] = False,
    ship: Annotated[bool, typer.Option(help="Copy the pairs of seed 0 into the package.")] = False,
) -> None:
    """Train what is missing, then write the table."""
    if shipped or only is not None:
        refuse_part("--shipped or --only")
    torch.set_num_threads(1)
    runs = [(name, seed) for seed in SEEDS[: 1 if shipped else None] for name in COVERAGES]
    for name, seed in runs:
        file = folder / f"{name}-{seed}.csv"
        if only in (None, name) and not file.exists():
            if shipped:
                trained = load_pocket_clip(WEIGHTS / name, device="cpu")
            else:
                trained = train_pocket_clip(COVERAGES[name], seed, folder=file.with_suffix(""))
            table = examine(name, trained)
            with atomic_path(file) as temporary:
                table.to_csv(temporary, index=False)
            print(table[table["weights"] == "trained"].to_string(index=False))
        if ship and not shipped and seed == 0 and only in (None, name):
            shutil.rmtree(WEIGHTS / name, ignore_errors=True)
            shutil.copytree(
                folder / f"{name}-0", WEIGHTS / name, ignore=shutil.ignore_patterns(LOCK)
            )
    files = [folder / f"{name}-{seed}.csv" for name, seed in runs]
    done = [pd.read_csv(file) for file in files if file.exists()]
    record("pocket", pd.concat(done))


if __name__ == "__main__":
    typer.run(main)
