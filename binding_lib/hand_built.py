"""An encoder that binds by products alone, made by hand: what is possible without any learning.

Every value of every concept gets a vector of random signs. An object is the product of its values'
vectors, element by element, and a scene is the sum of its objects. This is the binding by
multiplication of vector symbolic architectures (Gayler 2003): Smolensky's tensor product (1990),
which keeps a number for every object, squeezed into fewer.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from binding_lib.checks import check_count
from binding_lib.concepts import ConceptSpace
from binding_lib.scenes import SceneSet


class ProductCode:
    """Encodes scenes and queries without training; `query_readouts` reads it like a trained model.

    Parameters
    ----------
    space : ConceptSpace
    dim : int
        d, the length of the embeddings. Products of random signs are nearly at right angles; the
        more dimensions, the more nearly.
    seed : int

    Attributes
    ----------
    vectors : list of ndarray, each of shape (V_k, d)
        The signs of each concept's values.

    Examples
    --------
    >>> from binding_lib import ConceptSpace, sample_scenes, swap_accuracy
    >>> from binding_lib.hand_built import ProductCode
    >>> space = ConceptSpace.grid(2, 6)
    >>> code, scenes = ProductCode(space), sample_scenes(space, 100)
    >>> scores = code.encode_scenes(scenes) @ code.encode_objects(range(36)).T
    >>> swap_accuracy(scores, scenes)
    1.0
    """

    def __init__(self, space: ConceptSpace, dim: int = 1024, seed: int = 0) -> None:
        self.space, self.dim = space, check_count("dim", dim)
        rng = np.random.default_rng(check_count("seed", seed, least=0))
        self.vectors = [rng.choice([-1.0, 1.0], size=(n, dim)) for n in space.sizes]

    def encode_objects(self, object_ids: ArrayLike) -> Float[np.ndarray, "... d"]:
        """Multiply the vectors of each object's values."""
        values = self.space.values(object_ids)  # (..., C)
        return np.prod([v[values[..., k]] for k, v in enumerate(self.vectors)], axis=0)

    def encode_scenes(self, scenes: SceneSet) -> Float[np.ndarray, "N d"]:
        """Add up the objects of each scene of this code's space."""
        if scenes.space != self.space:
            raise ValueError(f"this code is of {self.space!r}, got scenes of {scenes.space!r}")
        return self.encode_objects(scenes.object_ids).sum(axis=1)

    def encode_concepts(self) -> Float[np.ndarray, "K d"]:
        """For each value of each concept, in order, add up all objects that have it."""
        # The sum of products over a grid is the product of sums.
        totals = [v.sum(axis=0) for v in self.vectors]
        others = [np.prod([*totals[:k], *totals[k + 1 :]], axis=0) for k in range(len(totals))]
        return np.concatenate([v * o for v, o in zip(self.vectors, others, strict=True)])
