"""Record the history of models trained as the published ones are: the table behind chapter 5.

    python benchmarks/record_paper_settings.py FOLDER

trains with the preset `paper` (marked tokens, full-rank embeddings, GELU, AdamW, scenes of one
object mixed in, equal weights, nothing that hands over the grouping) at a size that two cores can
manage, keeps checkpoints in FOLDER, and writes the package's table. Stopped and started again, it
goes on from the last checkpoint. It takes an hour on one core.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import typer

from binding_lib import ConceptSpace, train_dual_encoder
from binding_lib.recorded import record

SIZE: dict[str, Any] = {
    "width": 64,
    "layers": 2,
    "heads": 4,
    "mlp_width": 256,
    "output": 64,
    "n_scenes": 256,
    "n_queries": 256,
    "hold": 0.6,
    "matrix_rate": 1e-3,
    "rate": 1e-3,
    "embedding_rate": 1e-3,
    "evaluate_every": 500,
    "exam_scenes": 300,
}
GROWING = {"grow_from": 3, "grow_until": 0.6}
# Values of each of the two concepts, and what differs from the preset and the size.
RUNS: dict[str, tuple[int, dict[str, Any]]] = {
    "growing": (10, {**GROWING, "steps": 20_000}),
    "at once": (10, {"steps": 20_000}),
    "growing, 20 values": (20, {**GROWING, "steps": 40_000}),
}


def train(name: str, folder: Path) -> pd.DataFrame:
    """Go on with one run and return its history."""
    values, changes = RUNS[name]
    trained = train_dual_encoder(
        ConceptSpace.grid(2, values),
        coverage=0.8,
        preset="paper",
        seed=0,
        folder=folder / name.replace(" ", "_"),
        **SIZE,
        **changes,
    )
    history = trained.history.drop(columns=["candidates", "scale"])
    return history.assign(run=name, values=values)


def main(
    folder: Annotated[Path, typer.Argument(help="Where checkpoints are kept.")],
    only: Annotated[str | None, typer.Option(help="Train this run, and write no table.")] = None,
) -> None:
    """Go on with each run, then write the table of all."""
    if only is not None:
        train(only, folder)
        return
    table = pd.concat([train(name, folder) for name in RUNS])
    record("paper_settings", table.round(4))


if __name__ == "__main__":
    typer.run(main)
