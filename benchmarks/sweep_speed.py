"""Time the same models of a sweep with one worker and with more: speed-up, models an hour.

    python benchmarks/sweep_speed.py [--models 8] [--preset laptop] [--workers 2]

The models are the first that `random_configurations` draws. Both sweeps run one after the other in
this process, so whatever else the machine does weighs on both; the ratio is what counts.
"""

from __future__ import annotations

import tempfile
import time
from typing import Annotated

import torch
import typer
from machine import describe

from binding_lib import run_sweep


def seconds(models: int, preset: str, workers: int) -> float:
    """Run the sweep in an empty folder, and return the time of the clock."""
    with tempfile.TemporaryDirectory() as folder:
        # Workers start, and import torch, before the clock does.
        run_sweep(folder, workers, "smoke", seed=1, workers=workers, progress=False)
        started = time.perf_counter()
        run_sweep(folder, models, preset, workers=workers)
        return time.perf_counter() - started


def main(
    models: Annotated[int, typer.Option(help="Models in each sweep.")] = 8,
    preset: Annotated[str, typer.Option(help="What they vary.")] = "laptop",
    workers: Annotated[int, typer.Option(help="Workers of the second sweep.")] = 2,
) -> None:
    """Print both times and their ratio."""
    print(describe(torch.device("cpu")))
    alone, together = (seconds(models, preset, n) for n in (1, workers))
    print(
        f"{models} models of {preset}: {alone:.0f} s with 1 worker, {together:.0f} s with {workers}"
    )
    print(f"speed-up {alone / together:.2f}; {3600 * models / together:.0f} models an hour")


if __name__ == "__main__":
    typer.run(main)
