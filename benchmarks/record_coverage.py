"""Record what dual encoders recognise at each coverage: the tables behind the chapter on training.

    python benchmarks/record_coverage.py FOLDER

trains every model of the grid below with the `laptop` recipe, keeps each one's row in FOLDER, and
writes the tables of all rows there into the package. Stopped and started again, it trains only what
is missing. It takes about an hour on two cores. With --only the tables hold a part, and go to the
folder that the environment variable BINDING_LIB_RECORD names.
"""

from __future__ import annotations

import json
from fnmatch import fnmatch
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import torch
import typer
from parts import refuse_part
from tqdm import tqdm

from binding_lib import ConceptSpace, train_dual_encoder
from binding_lib.files import atomic_path
from binding_lib.optimisation import TrainingConfig
from binding_lib.presets import steps_to_take
from binding_lib.recognition import recognised
from binding_lib.recorded import record
from binding_lib.scenes import SceneSet
from binding_lib.trained import TrainedDualEncoder

ALL = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
# Spaces as (concepts, values), and how they are trained; the coverages to train at, and those near
# the transition, which get three seeds.
SERIES: dict[tuple[int, int, str], tuple[tuple[float, ...], tuple[float, ...]]] = {
    (2, 20, "recipe"): (ALL, (0.4, 0.5, 0.6)),
    (2, 10, "recipe"): (ALL, (0.5, 0.6, 0.7)),
    (2, 32, "recipe"): (ALL, (0.1, 0.2, 0.3)),
    (3, 10, "recipe"): (ALL, (0.1, 0.2, 0.3)),
    (2, 20, "grouping handed"): ((0.2, 0.4, 0.6, 0.8), ()),
    (2, 20, "all values at once"): ((0.4, 0.8), ()),
}
CHANGES: dict[str, dict[str, Any]] = {
    "recipe": {},
    "grouping handed": {"same_object_bias": 3.0},
    "all values at once": {"grow_from": None},
}
# Settings were chosen on seeds 0 to 4, but for the start of the vocabulary: seed 10 at coverage 0.9
# got stuck when it started from three values. Seeds 11 and 12 are fresh.
SEEDS = (10, 11, 12)
GRID = (2, 20, "recipe")  # the series whose objects are shown one by one


def runs() -> list[dict[str, Any]]:
    """Every model of the grid, the first seed of all before any second one."""
    wanted = []
    for seed in SEEDS:
        for (concepts, values, training), (once, thrice) in SERIES.items():
            run = {"concepts": concepts, "values": values, "training": training}
            coverages = once if seed == SEEDS[0] else thrice
            wanted += [{**run, "coverage": coverage, "seed": seed} for coverage in coverages]
    return wanted


def run_name(run: dict[str, Any]) -> str:
    """Name a run: C-V-TRAINING-COVERAGE-SEED."""
    return "-".join(str(value).replace(" ", "_") for value in run.values())


def file_name(run: dict[str, Any], steps: int) -> str:
    """Name the file of a run's row, by its steps too: a shorter training is another result."""
    return f"{run_name(run)}-{steps}.json"


def planned_steps() -> int:
    """How long a model is trained; less in a smoke run."""
    return steps_to_take(TrainingConfig().steps)


def object_accuracy(trained: TrainedDualEncoder, partners: int = 40) -> list[float]:
    """For each object, how often it beats every absent object, over random partners in a scene."""
    rng = np.random.default_rng(0)
    n = trained.space.n_objects
    ids = np.repeat(np.arange(n), partners)
    others = (ids + rng.integers(1, n, size=len(ids))) % n
    first = rng.random(len(ids)) < 0.5
    scenes = SceneSet(
        trained.space, np.stack([np.where(first, ids, others), np.where(first, others, ids)], 1)
    )
    scores = trained.encode_scenes(scenes) @ trained.encode_objects(np.arange(n)).T
    # The partner is no rival: it is there.
    scores[np.arange(len(ids)), others] = -np.inf
    present = np.zeros(scores.shape, dtype=bool)
    present[np.arange(len(ids)), ids] = True
    return recognised(scores, present).reshape(n, partners).mean(axis=1).round(3).tolist()


def train_one(run: dict[str, Any]) -> dict[str, Any]:
    """Train one model and return its row; with the accuracy of each object in the grid's space."""
    trained = train_dual_encoder(
        ConceptSpace.grid(run["concepts"], run["values"]),
        run["coverage"],
        preset="laptop",
        seed=run["seed"],
        progress=False,
        **CHANGES[run["training"]],
    )
    row: dict[str, Any] = {**run, "steps": trained.step}
    last = trained.history.groupby("objects").last()
    for objects, result in last.iterrows():
        for metric in ("concept", "object", "swap"):
            row[f"{objects}_{metric}"] = round(float(result[metric]), 4)
    row["seconds"] = round(float(trained.history["seconds"].max()), 1)
    row["threads"] = torch.get_num_threads()
    row["torch"] = str(torch.__version__)
    series = (run["concepts"], run["values"], run["training"])
    if series == GRID and run["seed"] == SEEDS[0]:
        row["by_object"] = object_accuracy(trained)
        row["train"] = trained.split.train.tolist()
    return row


def write_tables(rows: list[dict[str, Any]]) -> None:
    """Write the package's tables from the rows."""
    table = pd.DataFrame(rows).drop(columns=["by_object", "train"], errors="ignore")
    record("coverage", table)
    cells = [
        pd.DataFrame({"accuracy": row["by_object"]})
        .assign(coverage=row["coverage"], object=range(len(row["by_object"])))
        .assign(seen=lambda t, row=row: t["object"].isin(row["train"]).astype(int))
        for row in rows
        if "by_object" in row
    ]
    if cells:
        record("coverage_objects", pd.concat(cells)[["coverage", "object", "seen", "accuracy"]])


def main(
    folder: Annotated[Path, typer.Argument(help="Where finished rows are kept.")],
    part: Annotated[str, typer.Option(help="Train only this part, as K/N: 1/2, 2/2.")] = "1/1",
    only: Annotated[
        str, typer.Option(help="Which models, as C-V-TRAINING-COVERAGE-SEED with wildcards.")
    ] = "*",
) -> None:
    """Train what is missing, then write the tables of all that is wanted, once it is there."""
    if only != "*":
        refuse_part("--only")
    k, n = map(int, part.split("/"))
    wanted = [run for run in runs() if fnmatch(run_name(run), only)]
    files = [folder / file_name(run, planned_steps()) for run in wanted]
    for run, file in tqdm(list(zip(wanted, files, strict=True))[k - 1 :: n], unit="model"):
        if not file.exists():
            row = train_one(run)
            with atomic_path(folder / file_name(run, row["steps"])) as temporary:
                temporary.write_text(json.dumps(row))
    if all(file.exists() for file in files):
        write_tables([json.loads(file.read_text()) for file in files])


if __name__ == "__main__":
    typer.run(main)
