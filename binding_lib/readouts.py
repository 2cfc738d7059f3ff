"""What reads concepts and objects out of an embedding: a probe, or a model's own queries."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from jaxtyping import Float

from binding_lib.checks import check_embeddings
from binding_lib.concepts import OBJECT
from binding_lib.hand_built import ProductCode
from binding_lib.trained import TrainedDualEncoder


class Readout(Protocol):
    """Scores an embedding against every candidate; `LinearProbe` and `QueryReadout` are such.

    Attributes
    ----------
    target : str
        "object" or a concept's name: what the candidates are.
    """

    target: str

    def scores(self, embeddings: Float[np.ndarray, "N d"]) -> Float[np.ndarray, "N K"]:
        """One score for each embedding and candidate; within a row the higher is the likelier."""
        ...


class QueryReadout:
    """Reads embeddings as the model that made them does: by the cosine with its queries.

    Parameters
    ----------
    target : str
        "object" or a concept's name.
    queries : array-like, shape (K, d)
        The embedding of each candidate.

    Attributes
    ----------
    target : str
    queries : ndarray, shape (K, d)
        Of length 1 each.
    """

    def __init__(self, target: str, queries: Float[np.ndarray, "K d"]) -> None:
        self.target = target
        self.queries = _unit(check_embeddings(queries))

    def scores(self, embeddings: Float[np.ndarray, "N d"]) -> Float[np.ndarray, "N K"]:
        """The cosine of each embedding with each query; 0 for an embedding of zeros."""
        Z = check_embeddings(embeddings)
        if Z.shape[1] != self.queries.shape[1]:
            raise ValueError(f"queries have {self.queries.shape[1]} dimensions, got {Z.shape[1]}")
        return _unit(Z) @ self.queries.T


def query_readouts(model: TrainedDualEncoder | ProductCode) -> list[QueryReadout]:
    """Make a dual encoder's own read-outs: of objects, and of each concept."""
    space = model.space
    objects = QueryReadout(OBJECT, model.encode_objects(np.arange(space.n_objects)))
    by_concept = np.split(model.encode_concepts(), np.cumsum(space.sizes)[:-1])
    concepts = [QueryReadout(n, q) for n, q in zip(space.names, by_concept, strict=True)]
    return [objects, *concepts]


def _unit(Z: np.ndarray) -> np.ndarray:
    return Z / np.maximum(np.linalg.norm(Z, axis=1, keepdims=True), np.finfo(Z.dtype).tiny)
