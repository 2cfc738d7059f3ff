"""Record how well rules and lists of cases give an encoder's embeddings: `recorded/complexity.csv`.

    python benchmarks/record_complexity.py FOLDER [--encoder NAME] [--approximator NAME]

fits every approximator below to every encoder, or only those named, keeps each fit's row in FOLDER,
and writes the table into the package; a part of it, into the folder that the environment variable
BINDING_LIB_RECORD names. Stopped and started again, it fits only what is missing.

About 8,000 scenes an encoder keep it at about 80 minutes of one core. Cheap approximators are
fitted at more coverages than costly ones, and the widest networks at fewest: see `PLAN`. Seed 0
draws one split a coverage; the cheap ones are fitted again, with seed 1, to other splits and from
other starts. Splits are drawn at random (column `split`: "random"); dual encoders are
also read at the split they were trained on ("own"), where the test scenes hold nothing but objects
that the encoder itself never saw. Seconds are the processor's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

import pandas as pd
import typer
from parts import refuse_part
from tqdm import tqdm

from binding_lib.approximators import make_approximator
from binding_lib.complexity import COLUMNS, complexity_curve, real_curve
from binding_lib.concepts import ObjectSplit
from binding_lib.curve_data import CurveData, curve_data
from binding_lib.files import atomic_path
from binding_lib.recorded import record
from binding_lib.trained import load_dual_encoder

CHEAP = (
    "additive",
    "per-object",
    "mlp-64",
    "mlp-256",
    "product-units-64",
    "product-units-256",
)
COSTLY = ("global", "mlp-1024", "xgboost", "random-forest")
WIDEST = ("product-units-1024", "mlp-4096")

ALL = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
ODD = ALL[::2]
AGAIN = (0.1, 0.5, 0.9)


class Coverages(NamedTuple):
    """At which coverages an encoder's approximators are fitted."""

    cheap: tuple[float, ...]
    costly: tuple[float, ...]
    widest: tuple[float, ...]


PLAN = {
    "minilm": Coverages(ALL, ODD, ODD),
    "clip:ViT-B-32/random": Coverages(ODD, (0.1, 0.5, 0.9), (0.9,)),
    "dual:binding": Coverages(ALL, ODD, (0.1, 0.5, 0.9)),
    "dual:failing": Coverages(ODD, (0.1, 0.5, 0.9), ()),
    "dual:bag": Coverages(ODD, (0.1, 0.5, 0.9), ()),
}


def fit_split(
    data: CurveData, names: Sequence[str], split: float | ObjectSplit, seed: int, rows: Path
) -> pd.DataFrame:
    """Fit approximators by name at one split, and read the real embeddings there."""
    scenes, Z, probes = data
    real = real_curve(scenes, Z, [split], probes, [seed])
    chosen = [make_approximator(name, seed) for name in names]
    curve = complexity_curve(scenes, Z, chosen, [split], probes, [seed], folder=rows, n_jobs=1)
    kind = "own" if isinstance(split, ObjectSplit) else "random"
    return pd.concat([real.dropna(axis=1), curve]).assign(split=kind)


def record_encoder(encoder: str, folder: Path, only: str | None) -> None:
    """Make the table of one encoder, and add to its file and the package's after each split."""
    plan = PLAN[encoder]
    # What is compared most comes first: every approximator, many training objects.
    splits: list[float | ObjectSplit] = sorted(plan.cheap, key=lambda c: (c not in plan.costly, -c))
    if encoder.startswith("dual:"):
        splits.insert(0, load_dual_encoder(encoder.removeprefix("dual:")).split)
    parts = []
    for seed, drawn in enumerate((splits, AGAIN)):
        data = curve_data(encoder, drawn, [seed])
        for split in tqdm(drawn, desc=f"{encoder}, seed {seed}", unit="split"):
            names = CHEAP if seed else names_at(split, plan)
            names = [name for name in names if only in (None, name)]
            parts.append(fit_split(data, names, split, seed, folder / "rows"))
            table = pd.concat(parts).sort_values(["split", "seed", "coverage"], kind="stable")
            table = table.assign(encoder=encoder)[["encoder", "split", *COLUMNS]]
            table = rounded(table)
            with atomic_path(folder / f"{encoder.replace('/', '-')}.csv") as temporary:
                table.to_csv(temporary, index=False)
            files = [folder / f"{name.replace('/', '-')}.csv" for name in PLAN]
            tables = [pd.read_csv(file) for file in files if file.exists()]
            record("complexity", rounded(pd.concat(tables)))


def names_at(split: float | ObjectSplit, plan: Coverages) -> list[str]:
    """Which approximators are fitted at a split: all at a model's own."""
    groups = zip((CHEAP, COSTLY, WIDEST), plan, strict=True)
    own = isinstance(split, ObjectSplit)
    return [name for group, at in groups if own or split in at for name in group]


def rounded(table: pd.DataFrame) -> pd.DataFrame:
    """Round a table; whole numbers stay whole."""
    return table.round(4).astype({"n_parameters": "Int64"})


def main(
    folder: Annotated[Path, typer.Argument(help="Where finished rows are kept.")],
    encoder: Annotated[str | None, typer.Option(help="Only this one.")] = None,
    approximator: Annotated[str | None, typer.Option(help="Only this one.")] = None,
) -> None:
    """Fit what is missing, and write the table."""
    if encoder is not None or approximator is not None:
        refuse_part("--encoder or --approximator")
    for name in PLAN if encoder is None else [encoder]:
        record_encoder(name, folder, approximator)


if __name__ == "__main__":
    typer.run(main)
