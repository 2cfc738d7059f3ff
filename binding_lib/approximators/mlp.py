"""A network with one hidden layer from a scene's values to its embedding."""

from __future__ import annotations

import math

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import gelu, mse_loss

from binding_lib.approximators.base import Approximator, slot_columns
from binding_lib.checks import check_count
from binding_lib.encoders.weights import seeded_weights
from binding_lib.scenes import SceneSet

_BATCH = 128
_RATE = 3e-3
_WEIGHT_DECAY = 0.3
_PATIENCE = 8  # epochs without a gain before the learning rate falls to a third
_FALLS = 4  # how often it may fall


class _Network(nn.Module):
    """One-hot values of every slot -> hidden GELU units -> embedding."""

    def __init__(self, n_inputs: int, n_active: int, width: int, dim: int) -> None:
        super().__init__()
        # A one-hot input times a matrix is a sum of rows.
        self.rows = nn.EmbeddingBag(n_inputs, width, mode="sum")
        nn.init.normal_(self.rows.weight, std=math.sqrt(1 / n_active))
        self.bias = nn.Parameter(torch.zeros(width))
        self.out = nn.Linear(width, dim)

    def forward(self, columns: Int[Tensor, "N mC"]) -> Float[Tensor, "N d"]:
        return self.out(gelu(self.rows(columns) + self.bias))


class MLPApproximator(Approximator):
    """A network with one hidden layer (paper, section 4).

    It reads the values of all objects as one-hot codes, slot by slot, so it can tell the first
    object from the second.

    Parameters
    ----------
    width : int
        Hidden units.
    seed : int
        Of the first weights, the batches and the validation scenes.
    max_epochs : int
        Passes over the training scenes at most.

    Attributes
    ----------
    n_epochs_ : int
        Passes taken.

    Notes
    -----
    AdamW (weight decay 0.3, batches of 128) minimises the squared error, each embedding centred and
    all of them scaled by one number. A tenth of the training scenes, drawn at random, are kept for
    validation: after 8 epochs without a gain of a thousandth on them the learning rate, 0.003 at
    first, falls to a third; the fifth time training ends. The weights of the best epoch are kept.

    Examples
    --------
    >>> from binding_lib import ConceptSpace, MLPApproximator, sample_scenes
    >>> scenes = sample_scenes(ConceptSpace.grid(2, 3), 300)
    >>> Z = scenes.present("a").astype(float)
    >>> MLPApproximator(width=32).fit(scenes, Z).score(scenes, Z) > 0.95
    True
    """

    def __init__(self, width: int = 256, seed: int = 0, *, max_epochs: int = 200) -> None:
        self.width = check_count("width", width)
        self.seed = check_count("seed", seed, least=0)
        self.max_epochs = check_count("max_epochs", max_epochs)
        self.name = f"mlp-{width}"

    def _fit(self, scenes: SceneSet, Z: Float[np.ndarray, "N d"]) -> None:
        columns = torch.from_numpy(slot_columns(scenes))
        mean = Z.mean(axis=0, dtype=np.float64)
        scale = float((Z - mean).std()) or 1.0
        targets = torch.from_numpy(((Z - mean) / scale).astype(np.float32))
        n_inputs = scenes.n_slots * sum(scenes.space.sizes)
        with seeded_weights(self.seed):
            network = self._network_of(n_inputs, columns.shape[1], Z.shape[1])
        self._train(network, columns, targets)
        self._network, self._mean, self._scale = network, mean, scale
        self.n_parameters_ = mean.size + sum(p.numel() for p in network.parameters())

    def _network_of(self, n_inputs: int, n_active: int, dim: int) -> nn.Module:
        """Make the network, its first weights drawn."""
        return _Network(n_inputs, n_active, self.width, dim)

    def _train(self, network: nn.Module, columns: Tensor, targets: Tensor) -> None:
        """Train until the validation scenes gain no more."""
        generator = torch.Generator().manual_seed(self.seed)
        order = torch.randperm(len(columns), generator=generator)
        n_validation = math.ceil(len(columns) / 10)
        validation, train = order[:n_validation], order[n_validation:]
        optimizer = torch.optim.AdamW(network.parameters(), lr=_RATE, weight_decay=_WEIGHT_DECAY)
        best, waited, falls = math.inf, 0, 0
        for epoch in range(1, self.max_epochs + 1):
            self.n_epochs_ = epoch
            for rows in train[torch.randperm(len(train), generator=generator)].split(_BATCH):
                loss = mse_loss(network(columns[rows]), targets[rows])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            with torch.no_grad():
                on_validation = mse_loss(network(columns[validation]), targets[validation]).item()
            waited += 1
            if on_validation < 0.999 * best:
                best, waited = on_validation, 0
                kept = {name: tensor.clone() for name, tensor in network.state_dict().items()}
            elif waited == _PATIENCE:
                waited, falls = 0, falls + 1
                if falls > _FALLS:
                    break
                for group in optimizer.param_groups:
                    group["lr"] /= 3
        network.load_state_dict(kept)

    def _predict(self, scenes: SceneSet) -> Float[np.ndarray, "N d"]:
        with torch.inference_mode():
            predicted = self._network(torch.from_numpy(slot_columns(scenes)))
        return predicted.numpy() * self._scale + self._mean
