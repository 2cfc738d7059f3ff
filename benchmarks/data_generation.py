"""How fast training scenes and their labels are made, without any training."""

from __future__ import annotations

import time

import pandas as pd
import torch
from machine import describe

from binding_lib import ConceptSpace
from binding_lib.batches import BatchSampler
from binding_lib.encoders.weights import resolve_device

BATCHES = 300


def main() -> None:
    """Print one row for each object space."""
    device = resolve_device()
    rows = []
    for n_concepts, n_values, coverage in [(2, 20, 0.8), (2, 32, 0.8), (3, 10, 0.8), (3, 50, 0.4)]:
        split = ConceptSpace.grid(n_concepts, n_values).split(coverage, 0)
        sampler = BatchSampler(split, n_scenes=256, n_queries=256, device=device)
        generator = torch.Generator(device).manual_seed(0)
        sampler.draw(generator)
        wall, cpu = time.perf_counter(), time.process_time()
        for _ in range(BATCHES):
            sampler.draw(generator)
        if device.type == "cuda":
            torch.cuda.synchronize()
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        rows.append(
            {
                "objects": split.space.n_objects,
                "coverage": coverage,
                "scenes/s": round(256 * BATCHES / wall),
                "milliseconds/batch": round(1000 * wall / BATCHES, 2),
                "processor ms/batch": round(1000 * cpu / BATCHES, 2),
            }
        )
    print(describe(device))
    print(pd.DataFrame(rows).to_string(index=False))


if __name__ == "__main__":
    main()
