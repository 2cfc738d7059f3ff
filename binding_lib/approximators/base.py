"""What every approximator does: the contract, checked inputs, and the score."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self

import numpy as np
from jaxtyping import Float, Int

from binding_lib.checks import check_embeddings, check_spread
from binding_lib.concepts import ConceptSpace
from binding_lib.decomposition import value_columns
from binding_lib.scenes import SceneSet


class Approximator(ABC):
    """A function from the concept values of a scene's objects to its embedding (paper, section 4).

    It is fitted by least squares, and can then predict the embedding of any scene of the same space
    and with as many objects: of objects too that it never met as wholes.

    Attributes
    ----------
    name : str
        What tables call it; `make_approximator` takes the same names.
    n_parameters_ : int
        How many numbers the fitted function is made of.
    space_ : ConceptSpace
        The space of the scenes seen in `fit`.
    n_slots_ : int
        m, the number of objects in each of them.
    """

    name: str
    n_parameters_: int
    space_: ConceptSpace
    n_slots_: int

    def fit(self, scenes: SceneSet, embeddings: Float[np.ndarray, "N d"]) -> Self:
        """Fit on N scenes and their embeddings, shape (N, d).

        Raises
        ------
        ValueError
            If the embeddings are not finite or do not match the scenes, if there are fewer than
            two scenes, or if a value of a concept occurs in none of them; all such values are
            named.
        """
        Z = check_embeddings(embeddings, len(scenes))
        if len(scenes) < 2:
            raise ValueError(f"expected at least 2 scenes to fit on, got {len(scenes)}")
        _check_all_values(scenes)
        self._fit(scenes, Z)
        self.space_, self.n_slots_ = scenes.space, scenes.n_slots
        self._dim = Z.shape[1]
        return self

    def predict(self, scenes: SceneSet) -> Float[np.ndarray, "N d"]:
        """Predict the embeddings of N scenes.

        Raises
        ------
        ValueError
            If nothing is fitted yet, or the scenes are of another space or number of objects.
        """
        if not hasattr(self, "space_"):
            raise ValueError("this approximator is not fitted yet; call fit(scenes, embeddings)")
        if scenes.space != self.space_:
            raise ValueError(f"fitted on {self.space_!r}, got scenes of {scenes.space!r}")
        if scenes.n_slots != self.n_slots_:
            raise ValueError(
                f"fitted on scenes of {self.n_slots_} objects, got scenes of {scenes.n_slots}"
            )
        if len(scenes) == 0:
            return np.empty((0, self._dim))
        return self._predict(scenes)

    def score(self, scenes: SceneSet, embeddings: Float[np.ndarray, "N d"]) -> float:
        """R² = 1 − SSE / SST, both summed over all dimensions, SST around the embeddings' mean.

        Raises
        ------
        ValueError
            As in `predict`; also if all embeddings are alike, or of other dimensions than in `fit`.
        """
        predicted = self.predict(scenes)
        Z = check_embeddings(embeddings, len(scenes))
        if Z.shape[1] != self._dim:
            raise ValueError(f"fitted on {self._dim} dimensions, got {Z.shape[1]}")
        check_spread(Z)
        spread = np.square(Z - Z.mean(axis=0, dtype=np.float64)).sum()
        return 1 - float(np.square(Z - predicted).sum() / spread)

    @property
    def settings(self) -> dict[str, object]:
        """All that decides what `fit` learns, fit for JSON."""
        named = {n: v for n, v in vars(self).items() if not (n.startswith("_") or n.endswith("_"))}
        return {"class": type(self).__name__, **named}

    def __repr__(self) -> str:
        given = {n: v for n, v in self.settings.items() if n not in ("class", "name")}
        return f"{type(self).__name__}({', '.join(f'{n}={v!r}' for n, v in given.items())})"

    @abstractmethod
    def _fit(self, scenes: SceneSet, Z: Float[np.ndarray, "N d"]) -> None:
        """Fit on checked inputs and set `n_parameters_`."""

    @abstractmethod
    def _predict(self, scenes: SceneSet) -> Float[np.ndarray, "N d"]:
        """Predict at least one scene that fits what was seen."""


def slot_columns(scenes: SceneSet) -> Int[np.ndarray, "N mC"]:
    """Number each scene's values by concept and slot: the ones of a one-hot code, slot by slot."""
    offsets = np.arange(scenes.n_slots)[:, None] * sum(scenes.space.sizes)
    columns = value_columns(scenes.space, scenes.object_ids) + offsets
    return columns.reshape(len(scenes), -1)


def _check_all_values(scenes: SceneSet) -> None:
    """Raise ValueError if a concept value is in no scene: nothing could be known about it."""
    missing = []
    for k, name in enumerate(scenes.space.names):
        seen = set(np.unique(scenes.values[..., k]).tolist())
        values = scenes.space.value_names(name)
        unseen = [repr(value) for index, value in enumerate(values) if index not in seen]
        if unseen:
            missing.append(f"{name} {', '.join(unseen)}")
    if missing:
        raise ValueError(
            f"the {len(scenes)} training scenes never show {'; '.join(missing)}; expected every "
            "value of every concept at least once"
        )
