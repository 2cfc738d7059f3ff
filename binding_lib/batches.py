"""Training batches and their labels, drawn on the device without a loop over scenes.

A batch lives on a **sub-grid**: some values of each concept are drawn, so many that about
`n_queries` training objects are made of them alone. Scenes are drawn from those objects and all of
them serve as queries. So every binding distractor of a scene that is a training object is a query
of the same batch, wrong by its binding only; and the cost of a step does not grow with the space.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from binding_lib.concepts import ObjectSplit


@dataclass(frozen=True)
class Batch:
    """What one training step sees.

    Attributes
    ----------
    scenes : list of Tensor, each (n, m, C)
        Value indices of the scenes, one tensor for each number of objects m; N scenes in all.
    objects : Tensor, shape (K, C)
        Value indices of the object queries, all of them training objects.
    object_targets : Tensor, shape (N, K)
        For each scene the same weight on each object that is present; each row sums to 1.
    concepts : Tensor, shape (Q,)
        Ids of the concept values that are asked about.
    concept_targets : Tensor, shape (N, Q)
        The same for the values that are present.
    """

    scenes: list[Int[Tensor, "n m C"]]
    objects: Int[Tensor, "K C"]
    object_targets: Float[Tensor, "N K"]
    concepts: Int[Tensor, " Q"]
    concept_targets: Float[Tensor, "N Q"]


class BatchSampler:
    """Draws batches from the training objects of a split.

    Parameters
    ----------
    split : ObjectSplit
    n_scenes : int
        N, the scenes in a batch.
    n_queries : int
        About how many training objects a sub-grid should hold; as many as there are gives batches
        over the whole space.
    n_objects : int
        m, the number of objects in each scene.
    single_share : float
        The share of scenes that hold one object instead.
    device : torch.device

    Raises
    ------
    ValueError
        If the split has fewer training objects than a scene has places.
    """

    def __init__(
        self,
        split: ObjectSplit,
        n_scenes: int = 256,
        n_queries: int = 256,
        n_objects: int = 2,
        single_share: float = 0.0,
        device: torch.device | None = None,
    ) -> None:
        if not 0 <= single_share <= 1:
            raise ValueError(f"single_share must be in [0, 1], got {single_share}")
        if len(split.train) < n_objects:
            raise ValueError(
                f"coverage {split.coverage:.3g} of {split.space.n_objects} objects leaves "
                f"{len(split.train)} to train on; scenes of {n_objects} need at least as many"
            )
        self.sizes = split.space.sizes
        self.n_objects, self.n_queries, self.coverage = n_objects, n_queries, split.coverage
        n_single = round(single_share * n_scenes) if n_objects > 1 else 0
        self.n_scenes = (
            {n_objects: n_scenes - n_single, 1: n_single} if n_single else {n_objects: n_scenes}
        )
        is_train = torch.zeros(split.space.n_objects, dtype=torch.bool, device=device)
        is_train[torch.tensor(split.train, device=device)] = True
        self.is_train = is_train.view(self.sizes)

    def fewest_values(self, n: int) -> int:
        """Count how many first values of each concept it takes to make `n` training objects.

        Of all training objects, if there are fewer than `n`.
        """
        needed = self.is_train.nonzero().amax(dim=1).sort().values + 1  # of each training object
        return int(needed[min(n, len(needed)) - 1])

    def draw(self, generator: torch.Generator, in_play: int | None = None) -> Batch:
        """Draw one batch.

        Parameters
        ----------
        generator : torch.Generator
            On the sampler's device.
        in_play : int, optional
            Use only the first so many values of each concept; all by default.
        """
        device = self.is_train.device
        sizes = [min(size, in_play or size) for size in self.sizes]
        sides = grid_sides(sizes, self.n_queries / self.coverage)
        chosen = [
            torch.randperm(size, generator=generator, device=device)[:side]
            for size, side in zip(sizes, sides, strict=True)
        ]
        cells = self.is_train[torch.meshgrid(*chosen, indexing="ij")].nonzero()  # (K, C)
        if len(cells) < self.n_objects:
            raise ValueError(
                f"only {len(cells)} training objects among {' x '.join(map(str, sides))} values; "
                f"scenes of {self.n_objects} need more: raise the coverage, the number of queries "
                "or the number of values in play"
            )
        objects = torch.stack([c[cells[:, k]] for k, c in enumerate(chosen)], dim=1)
        picks = [
            distinct(len(objects), n, m, generator) for m, n in self.n_scenes.items()
        ]  # (n, m) each
        scenes = [objects[pick] for pick in picks]
        starts = torch.tensor((0, *self.sizes[:-1]), device=device).cumsum(0)
        columns = torch.tensor((0, *sizes[:-1]), device=device).cumsum(0)
        return Batch(
            scenes=scenes,
            objects=objects,
            object_targets=shared_targets(picks, len(objects)),
            concepts=torch.cat(
                [
                    start + torch.arange(size, device=device)
                    for start, size in zip(starts, sizes, strict=True)
                ]
            ),
            concept_targets=shared_targets([(s + columns).flatten(1) for s in scenes], sum(sizes)),
        )


def grid_sides(sizes: list[int], n_cells: float) -> list[int]:
    """How many values of each concept to take for a grid of about `n_cells` cells.

    As square as the sizes allow: what a small concept cannot give, the larger ones make up for.
    """
    sides = list(sizes)
    by_size = sorted(range(len(sizes)), key=sizes.__getitem__)
    for done, k in enumerate(by_size):
        side = math.ceil(n_cells ** (1 / (len(sizes) - done)) - 1e-9)
        sides[k] = min(sizes[k], max(1, side))
        n_cells = n_cells / sides[k]
    return sides


def distinct(n: int, rows: int, m: int, generator: torch.Generator) -> Int[Tensor, "rows m"]:
    """Draw `rows` sets of m distinct numbers below n, in random order."""
    picks = torch.empty(rows, 0, dtype=torch.long, device=generator.device)
    for slot in range(m):
        # Draw among the numbers not yet taken, then step over the taken ones in ascending order.
        draw = torch.randint(n - slot, (rows,), generator=generator, device=generator.device)
        for taken in picks.sort(dim=1).values.unbind(dim=1):
            draw = draw + (draw >= taken)
        picks = torch.cat([picks, draw[:, None]], dim=1)
    return picks


def shared_targets(present: list[Int[Tensor, "n p"]], n_columns: int) -> Float[Tensor, "N K"]:
    """Rows that share a weight of 1 equally among the columns named in `present`."""
    rows = [
        torch.zeros(len(columns), n_columns, device=columns.device).scatter_(1, columns, 1.0)
        for columns in present
    ]
    targets = torch.cat(rows)
    return targets / targets.sum(dim=1, keepdim=True)
