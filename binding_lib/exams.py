"""Strict recognition, asked of a model on its own device while it trains.

The definitions are those of `binding_lib.recognition`: every present candidate above every absent
one. What differs is that the object space may be too large to list for each scene.
"""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from binding_lib.concepts import ConceptSpace
from binding_lib.dual_encoder import DualEncoder
from binding_lib.scenes import sample_scenes, swaps


class Exam:
    """Fixed scenes, and the objects that each is compared with.

    Parameters
    ----------
    space : ConceptSpace
    ids : ndarray of int
        The objects that scenes are made of.
    n_scenes, n_objects : int
        N scenes of m objects each.
    max_candidates : int
        Up to this many objects the whole space is compared with every scene. Of a larger space,
        so many are drawn, and all objects and all swaps of all scenes are added.
    seed : int
    device : torch.device

    Attributes
    ----------
    candidates : ndarray of int64
        Ids of the objects that every scene is compared with.
    """

    def __init__(
        self,
        space: ConceptSpace,
        ids: np.ndarray,
        n_scenes: int = 1000,
        n_objects: int = 2,
        max_candidates: int = 10_000,
        seed: int = 0,
        device: torch.device | None = None,
    ) -> None:
        rng = np.random.default_rng(seed)
        self.scenes = sample_scenes(space, n_scenes, n_objects, ids=ids, seed=rng)
        swapped = swaps(self.scenes)
        if space.n_objects <= max_candidates:
            self.candidates = np.arange(space.n_objects)
        else:
            drawn = rng.choice(space.n_objects, max_candidates, replace=False)
            met = np.concatenate([self.scenes.object_ids.ravel(), swapped[swapped >= 0]])
            self.candidates = np.union1d(drawn, met)
        # Where the scenes' objects and their swaps stand among the candidates.
        self._present = self._columns(self.scenes.object_ids, device)  # (N, m)
        self._swaps = self._columns(swapped, device)  # (N, K)
        self._is_swap = torch.tensor(swapped >= 0, device=device)  # (N, K)
        self._values = torch.tensor(self.scenes.values, device=device)  # (N, m, C)
        self._candidate_values = torch.tensor(space.values(self.candidates), device=device)

    def _columns(self, ids: np.ndarray, device: torch.device | None) -> Tensor:
        return torch.tensor(np.searchsorted(self.candidates, np.maximum(ids, 0)), device=device)

    @torch.inference_mode()
    def grade(self, model: DualEncoder) -> dict[str, float]:
        """Grade a model.

        Returns
        -------
        dict
            ``concept``: the share of scenes whose values are recognised, of every concept;
            ``object``: the share whose objects are recognised; ``swap``: the share whose objects
            all beat the scene's swaps, of the scenes that have a swap (NaN if none has).
        """
        scenes = model.scenes(self._values)  # (N, d)
        parts = [model.objects(part) for part in self._candidate_values.split(8192)]
        queries = torch.cat(parts)  # (K, d)
        objects, beaten = [], []
        for rows in torch.arange(len(scenes), device=scenes.device).split(256):
            scores = scenes[rows] @ queries.T
            present = scores.gather(1, self._present[rows]).amin(dim=1)
            rivals = scores.gather(1, self._swaps[rows])
            rivals = rivals.masked_fill(~self._is_swap[rows], -torch.inf)
            objects.append(_recognised(scores, self._present[rows]))
            beaten.append(present[:, None] > rivals)
        has_swap = self._is_swap.any(dim=1)
        return {
            "concept": self._concepts(model, scenes).float().mean().item(),
            "object": torch.cat(objects).float().mean().item(),
            "swap": torch.cat(beaten).all(dim=1)[has_swap].float().mean().item(),
        }

    def _concepts(self, model: DualEncoder, scenes: Float[Tensor, "N d"]) -> Bool[Tensor, " N"]:
        values = torch.arange(model.layout.n_values, device=scenes.device)
        scores = scenes @ model.concepts(values).T
        by_concept = scores.split(model.space.sizes, dim=1)
        outcomes = [_recognised(s, self._values[..., k]) for k, s in enumerate(by_concept)]
        return torch.stack(outcomes).all(dim=0)


def _recognised(scores: Float[Tensor, "N K"], present: Tensor) -> Bool[Tensor, " N"]:
    """Whether all columns named in `present` (N, p) score above all others."""
    weakest = scores.gather(1, present).amin(dim=1)
    strongest = scores.scatter(1, present, -torch.inf).amax(dim=1)
    return weakest > strongest
