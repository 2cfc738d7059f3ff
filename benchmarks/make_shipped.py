"""Train the dual encoders that come with the library: `load_dual_encoder("binding")` and others.

    python benchmarks/make_shipped.py

All have GELU layers, so that nothing multiplies by design, and are not told which tokens belong
together. It takes four minutes on two cores.
"""

from __future__ import annotations

from typing import Any

import typer

from binding_lib import ConceptSpace, train_dual_encoder
from binding_lib.trained import SHIPPED

SPACE = ConceptSpace.grid(n_concepts=2, n_values=20)
SETTINGS: dict[str, Any] = {"mlp": "gelu", "mlp_width": 192, "grow_from": 3}
MODELS: dict[str, dict[str, Any]] = {
    "binding": {"coverage": 0.8},
    "failing": {"coverage": 0.3},
    # With all values from the first step on it stays a bag of concepts.
    "bag": {"coverage": 0.8, "grow_from": None},
}


def main() -> None:
    """Train all and write them into the package."""
    for name, changes in MODELS.items():
        trained = train_dual_encoder(SPACE, preset="laptop", seed=10, **{**SETTINGS, **changes})
        trained.save(SHIPPED / name)
        print(name, trained)
        print(trained.history.tail(3).to_string(index=False))


if __name__ == "__main__":
    typer.run(main)
