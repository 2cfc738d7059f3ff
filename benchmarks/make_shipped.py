"""Train the dual encoders that come with the library, `load_dual_encoder("binding")`, "failing".

    python benchmarks/make_shipped.py

Both have GELU layers, so that nothing multiplies by design, and no help with the grouping of tokens.
They differ by coverage alone. It takes two minutes on two cores.
"""

from __future__ import annotations

from typing import Any

import typer

from binding_lib import ConceptSpace, train_dual_encoder
from binding_lib.trained import SHIPPED

SPACE = ConceptSpace.grid(n_concepts=2, n_values=20)
COVERAGES = {"binding": 0.8, "failing": 0.2}
SETTINGS: dict[str, Any] = {"mlp": "gelu", "mlp_width": 192, "steps": 2000}


def main() -> None:
    """Train both and write them into the package."""
    for name, coverage in COVERAGES.items():
        trained = train_dual_encoder(SPACE, coverage, preset="laptop", seed=0, **SETTINGS)
        trained.save(SHIPPED / name)
        print(name, trained)
        print(trained.history.tail(3).to_string(index=False))


if __name__ == "__main__":
    typer.run(main)
