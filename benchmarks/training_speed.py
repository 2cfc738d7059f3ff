"""Training steps a second at the default shape of the published trainer.

Width 256, 6 layers, 4 heads, feed-forward 2048, batches of 512 scenes, two concepts of 20 values,
64 output numbers. All 320 training objects and all 40 values are queries of each step, so that
every swap that training may see is among them. No attention bias, full-rank embeddings, AdamW.
"""

from __future__ import annotations

import time

import pandas as pd
import torch
from machine import describe, matmul_peak

from binding_lib import ConceptSpace
from binding_lib.dual_encoder import DualEncoderConfig
from binding_lib.encoders.weights import resolve_device
from binding_lib.optimisation import TrainingConfig
from binding_lib.training_run import TrainingRun

PUBLISHED_STEPS_PER_SECOND = 0.43  # the released trainer, on two x86-64 cores with AVX-512
STEPS = 10


def main() -> None:
    """Print one row for each layout and precision."""
    device = resolve_device()
    split = ConceptSpace.grid(2, 20).split(0.8, 0)
    peak = {"fp32": matmul_peak(device, torch.float32), "bf16": matmul_peak(device, torch.bfloat16)}
    rows = []
    for layout in ("marked", "plain"):
        for precision in ("fp32", "bf16"):
            config = DualEncoderConfig(
                layout=layout,
                width=256,
                layers=6,
                heads=4,
                mlp="gelu",
                mlp_width=2048,
                output=64,
                embedding_rank=None,
                same_object_bias=None,
            )
            training = TrainingConfig(
                n_scenes=512, n_queries=400, optimizer="adamw", precision=precision
            )
            run = TrainingRun(config, split, training, 0, device)
            run.advance()
            wall, cpu, fastest = time.perf_counter(), time.process_time(), float("inf")
            for _ in range(STEPS):
                started = time.perf_counter()
                run.advance()
                run.loss.item()  # waits for the device
                fastest = min(fastest, time.perf_counter() - started)
            wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
            rows.append(
                {
                    "layout": layout,
                    "precision": precision,
                    "steps/s": round(STEPS / wall, 2),
                    "fastest": round(1 / fastest, 2),
                    "steps/processor s": round(STEPS / cpu, 2),
                    "x published": round(STEPS / wall / PUBLISHED_STEPS_PER_SECOND, 1),
                    "of matmul peak": f"{operations(run) / fastest / peak[precision]:.0%}",
                }
            )
    print(describe(device))
    print(", ".join(f"{name} peak {value / 1e9:.0f} GFLOP/s" for name, value in peak.items()))
    print(pd.DataFrame(rows).to_string(index=False))


def operations(run: TrainingRun) -> float:
    """Floating-point operations of a step: six for each weight and token it is applied to."""
    model, training = run.model, run.training
    n_objects, n_values = len(run.split.train), sum(run.split.space.sizes)
    layout, c = model.layout, model.config
    per_row = 2 * c.width**2 + 2 * c.width * c.mlp_width  # query, mix, up, down
    keys = 2 * c.width**2
    total = 0
    for length, n in [
        (layout.length(c.n_objects), training.n_scenes),
        (layout.length(1), n_objects),
        (2, n_values),
    ]:
        # The last layer computes keys and values for all tokens, the rest for the end token only.
        total += n * (length * (c.layers * keys + (c.layers - 1) * per_row) + per_row)
    return 6.0 * total


if __name__ == "__main__":
    main()
