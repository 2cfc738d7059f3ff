"""Seconds until unseen objects are recognised, and what each ingredient of the recipe is worth.

The `laptop` recipe on two concepts of 20 values, coverage 0.8. A run stops being counted when the
exam on held-out objects first reaches 0.95; with an ingredient taken away it may never do so.
"""

from __future__ import annotations

import argparse
import time

import pandas as pd
from machine import describe

from binding_lib import ConceptSpace
from binding_lib.encoders.weights import resolve_device
from binding_lib.training import train_dual_encoder

VARIANTS: dict[str, dict[str, object]] = {
    "the recipe": {},
    "grouping handed": {"same_object_bias": 3.0},
    "all values at once": {"grow_from": None},
    "grouping handed, all at once": {"same_object_bias": 3.0, "grow_from": None},
    "marked tokens": {"layout": "marked"},
    "one token an object": {"layout": "objects"},
    "full-rank embedding": {"embedding_rank": None},
    "GELU in place of the gate": {"mlp": "gelu", "mlp_width": 192},
    "AdamW in place of Muon": {"optimizer": "adamw", "matrix_rate": 5e-3},
    "concept weight 1": {"concept_weight": 1.0},
    "mean readout": {"readout": "mean"},
    "fp32": {"precision": "fp32"},
}


def main() -> None:
    """Print one row for each variant and seed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--values", type=int, default=20)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--only", nargs="*", choices=VARIANTS, default=list(VARIANTS))
    arguments = parser.parse_args()
    space = ConceptSpace.grid(2, arguments.values)
    rows = []
    for name in arguments.only:
        for seed in range(arguments.seeds):
            cpu = time.process_time()
            trained = train_dual_encoder(
                space, 0.8, "laptop", seed, evaluate_every=50, progress=False, **VARIANTS[name]
            )
            cpu = time.process_time() - cpu
            exams = trained.history[trained.history["objects"] == "held_out"]
            bound = exams[exams["object"] >= 0.95]
            last = exams.iloc[-1]
            rows.append(
                {
                    "variant": name,
                    "seed": seed,
                    "seconds to 0.95": round(bound["seconds"].iloc[0], 1)
                    if len(bound)
                    else "never",
                    "seconds": round(last["seconds"], 1),
                    "processor s": round(cpu, 1),
                    "concept": round(last["concept"], 3),
                    "object": round(last["object"], 3),
                    "swap": round(last["swap"], 3),
                }
            )
            print(rows[-1], flush=True)
    print(describe(resolve_device()))
    print(pd.DataFrame(rows).to_string(index=False))


if __name__ == "__main__":
    main()
