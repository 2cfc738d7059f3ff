"""Compare the closed-form additive fit with gradient descent on the same model and data.

    python benchmarks/additive_fit.py

fits the sum of concept vectors to MiniLM's embeddings of scenes of training objects (coverage 0.5),
once as `ProductApproximator("additive")` does and once by 10,000 full-batch steps of AdamW, and
prints what each reaches there and on scenes of held-out objects, with the processor's seconds.
"""

from __future__ import annotations

import time
from typing import Annotated

import numpy as np
import torch
import typer
from machine import describe
from torch import nn
from torch.nn.functional import mse_loss

from binding_lib import ProductApproximator, load_encoder, sample_scenes, text_space
from binding_lib.approximators.base import Approximator
from binding_lib.decomposition import value_columns
from binding_lib.scenes import SceneSet


class DescendedSum(Approximator):
    """The additive form, fitted step by step."""

    name = "additive by AdamW"

    def __init__(self, steps: int) -> None:
        self.steps = steps

    def _fit(self, scenes: SceneSet, Z: np.ndarray) -> None:
        columns, targets = self._columns(scenes), torch.from_numpy(Z)
        # A constant and a vector for each value of each concept, as in the closed form.
        self._sums = nn.EmbeddingBag(sum(scenes.space.sizes), Z.shape[1], mode="sum")
        nn.init.zeros_(self._sums.weight)
        self._mean = nn.Parameter(targets.mean(dim=0))
        parameters = [self._mean, *self._sums.parameters()]
        optimizer = torch.optim.AdamW(parameters, lr=1e-2, weight_decay=0)
        schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1, 0, total_iters=self.steps)
        for _ in range(self.steps):
            loss = mse_loss(self._sums(columns) + self._mean, targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
        self.n_parameters_ = sum(p.numel() for p in parameters)

    def _predict(self, scenes: SceneSet) -> np.ndarray:
        with torch.inference_mode():
            return (self._sums(self._columns(scenes)) + self._mean).numpy()

    @staticmethod
    def _columns(scenes: SceneSet) -> torch.Tensor:
        columns = value_columns(scenes.space, scenes.object_ids)
        return torch.from_numpy(columns.reshape(len(scenes), -1))


def main(
    steps: Annotated[int, typer.Option(help="Steps of AdamW.")] = 10_000,
    scenes: Annotated[int, typer.Option(help="Scenes to fit on.")] = 2000,
) -> None:
    """Fit both and print a table."""
    split = text_space().split(0.5, seed=0)
    train = sample_scenes(split.space, scenes, ids=split.train, seed=0)
    test = sample_scenes(split.space, 1000, ids=split.held_out, seed=1)
    encoder = load_encoder("minilm")
    Z_train, Z_test = (encoder.encode_text(s.captions()) for s in (train, test))
    machine = describe(torch.device("cpu"))
    typer.echo(f"{machine}\n{len(train)} scenes, {Z_train.shape[1]} dimensions\n")
    typer.echo(f"{'fit':20}{'R² train':>10}{'R² test':>10}{'seconds':>10}")
    seconds = []
    for approximator in (ProductApproximator("additive"), DescendedSum(steps)):
        started = time.process_time()
        approximator.fit(train, Z_train)
        seconds.append(time.process_time() - started)
        scores = approximator.score(train, Z_train), approximator.score(test, Z_test)
        r2 = "".join(f"{score:10.5f}" for score in scores)
        typer.echo(f"{approximator.name:20}{r2}{seconds[-1]:10.3f}")
    typer.echo(f"\nthe closed form is {seconds[1] / seconds[0]:.0f} times as fast")


if __name__ == "__main__":
    typer.run(main)
