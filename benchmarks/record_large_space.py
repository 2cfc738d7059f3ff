"""Record the published headline at its own size: 125,000 objects (C = 3, V = 50).

    python benchmarks/record_large_space.py FOLDER

trains one model for each coverage and seed with a growing vocabulary, keeps checkpoints and
finished rows in FOLDER, and writes the package's table of the rows there are. Stopped and started
again, it goes on from the last checkpoint. A model takes about eight minutes on one core.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import torch
import typer

from binding_lib import ConceptSpace, train_dual_encoder
from binding_lib.exams import Exam
from binding_lib.files import atomic_path
from binding_lib.recorded import record
from binding_lib.trained import TrainedDualEncoder

SPACE = ConceptSpace.grid(n_concepts=3, n_values=50)
COVERAGES = (0.4, 0.2, 0.3, 0.5, 0.1)
SEEDS = (0, 1)
SETTINGS: dict[str, Any] = {
    "steps": 12_000,
    "width": 64,
    "output": 128,
    "embedding_rank": 6,
    "mlp_width": 172,
    "concept_weight": 0.5,
    "matrix_rate": 0.02,
    "rate": 5e-3,
    "embedding_rate": 1e-2,
    "hold": 0.7,
    # Told which tokens belong together, unlike the models of smaller spaces.
    "same_object_bias": 3.0,
    "grow_from": 8,
    "grow_until": 0.5,
    "evaluate_every": 1000,
}


def grade(trained: TrainedDualEncoder, n_scenes: int = 1000) -> dict[str, float]:
    """Grade seen and unseen objects strictly, against all 125,000."""
    result = {}
    for name, ids in {"seen": trained.split.train, "held_out": trained.split.held_out}.items():
        # The seed differs from those of the exams during training.
        exam = Exam(SPACE, ids, n_scenes, max_candidates=SPACE.n_objects, seed=12_345)
        for metric, value in exam.grade(trained.model.cpu()).items():
            result[f"{name}_{metric}"] = round(value, 4)
    return result


def main(
    folder: Annotated[Path, typer.Argument(help="Where checkpoints and rows are kept.")],
) -> None:
    """Train what is missing; write the table after every model."""
    for seed in SEEDS:
        for coverage in COVERAGES:
            name = f"{coverage}-{seed}"
            file = folder / f"{name}.json"
            if file.exists():
                continue
            trained = train_dual_encoder(
                SPACE, coverage, preset="laptop", seed=seed, folder=folder / name, **SETTINGS
            )
            row = {
                "coverage": coverage,
                "seed": seed,
                "steps": trained.step,
                **grade(trained),
                "seconds": round(float(trained.history["seconds"].max()), 1),
                "threads": torch.get_num_threads(),
                "torch": str(torch.__version__),
            }
            with atomic_path(file) as temporary:
                temporary.write_text(json.dumps(row))
            rows = [json.loads(f.read_text()) for f in sorted(folder.glob("*.json"))]
            record("coverage_large", pd.DataFrame(rows))


if __name__ == "__main__":
    typer.run(main)
