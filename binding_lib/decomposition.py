"""Answer 1: a scene's embedding as a sum of object embeddings, and those as sums of concepts.

Level I says ``z = mu + u[o_1] + ... + u[o_m]``; Level II says ``u[o] = sum_k u_k[c_k]``. Both are
the same model over different columns, one for each object or one for each concept value (paper,
section 3).
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import scipy.linalg
import scipy.sparse
from jaxtyping import Bool, Float, Int

from binding_lib.checks import check_choice, check_embeddings, check_spread
from binding_lib.concepts import ConceptSpace
from binding_lib.scenes import SceneSet

Level = Literal["object", "concept"]
Estimator = Literal["avg", "avg+pos", "single-obj", "least-squares"]

LEVELS = ("object", "concept")
ESTIMATORS = ("avg", "avg+pos", "single-obj", "least-squares")

_ROWS = 16_384  # scenes handled at a time, so that no second copy of all embeddings is ever made


class AdditiveDecomposition:
    """Additive model of scene embeddings (paper, section 3, Level I and Level II).

    Parameters
    ----------
    level : {"object", "concept"}
        Whether each object (Level I) or each concept value (Level II) has a vector of its own.
    estimator : {"avg", "avg+pos", "single-obj", "least-squares"}
        How a vector is estimated from embeddings centred by their mean:

        - "avg": the mean over the scenes that contain the object (or value); a scene that holds it
          in two slots counts twice;
        - "avg+pos": the same for each slot apart;
        - "single-obj": that of the scene with the object alone, centred by the mean of those;
        - "least-squares": the best fit of all the vectors at once (the minimum-norm one where the
          scenes leave a choice).

    Attributes
    ----------
    mean_ : ndarray, shape (d,)
        mu, the mean scene embedding seen in `fit`.
    object_embeddings_ : ndarray, shape (n_objects, d), or (m, n_objects, d) for "avg+pos"
        u, a row for each object of the space; NaN for an object that `fit` never saw.
    concept_embeddings_ : ndarray, shape (sum of sizes, d), or (m, sum of sizes, d) for "avg+pos"
        u_k, the values of the first concept first; NaN for a value that `fit` never saw. At level
        "object" these are the means of `object_embeddings_` over the objects with that value.
    space_ : ConceptSpace
        The space of the scenes seen in `fit`.
    n_slots_ : int
        m, the number of objects in each of them.

    Examples
    --------
    >>> from binding_lib import AdditiveDecomposition, all_scenes, ConceptSpace
    >>> scenes = all_scenes(ConceptSpace.grid(2, 3))
    >>> u = np.random.default_rng(0).normal(size=(9, 5))
    >>> Z = u[scenes.object_ids].sum(axis=1)
    >>> AdditiveDecomposition(estimator="avg").fit(scenes, Z).score(scenes, Z)
    1.0
    """

    def __init__(self, level: Level = "object", estimator: Estimator = "avg") -> None:
        check_choice("level", level, LEVELS)
        check_choice("estimator", estimator, ESTIMATORS)
        self.level = level
        self.estimator = estimator

    def fit(
        self,
        scenes: SceneSet,
        embeddings: Float[np.ndarray, "N d"],
        singles: tuple[SceneSet, Float[np.ndarray, "K d"]] | None = None,
    ) -> AdditiveDecomposition:
        """Estimate the mean and the vectors.

        Parameters
        ----------
        scenes : SceneSet
            N scenes.
        embeddings : ndarray, shape (N, d)
        singles : (SceneSet, ndarray), optional
            Scenes of one object each and their embeddings: what "single-obj" learns its vectors
            from, while the mean comes from `scenes`. Where `scenes` themselves hold one object
            each, they serve as both.

        Raises
        ------
        ValueError
            If the embeddings are not finite or do not match the scenes, or if "single-obj" has no
            scenes of one object.
        """
        Z = check_embeddings(embeddings, len(scenes))
        space, n_slots, mean = scenes.space, scenes.n_slots, Z.mean(axis=0, dtype=np.float64)
        if self.estimator == "single-obj":
            scenes, Z = self._check_singles(scenes, Z, singles)
        elif singles is not None:
            raise ValueError(f"singles are for estimator 'single-obj', got {self.estimator!r}")
        centre = mean if self.estimator != "single-obj" else Z.mean(axis=0, dtype=np.float64)

        columns = _columns(scenes, self.level)  # (N, m, 1 or C)
        n_columns = space.n_objects if self.level == "object" else sum(space.sizes)
        slots = range(scenes.n_slots) if self.estimator == "avg+pos" else [slice(None)]
        parts = [columns[:, slot].reshape(len(scenes), -1) for slot in slots]
        vectors = np.stack([_estimate(c, n_columns, Z, centre, self.estimator) for c in parts])
        if self.level == "concept":
            values = value_columns(space, np.arange(space.n_objects))
            objects, concepts = vectors[:, values].sum(axis=2), vectors
        else:
            objects, concepts = vectors, np.stack([_concept_means(space, u) for u in vectors])
        if self.estimator != "avg+pos":
            objects, concepts = objects[0], concepts[0]
        # Set together, so that a refit which fails leaves the fit before it whole.
        self.space_, self.n_slots_, self.mean_ = space, n_slots, mean
        self.object_embeddings_, self.concept_embeddings_ = objects, concepts
        self._vectors = vectors  # (m or 1, n_columns, d)
        return self

    def predict(self, scenes: SceneSet) -> Float[np.ndarray, "N d"]:
        """The embeddings that the sum gives.

        Returns
        -------
        ndarray of float64, shape (N, d)

        Raises
        ------
        ValueError
            If a scene holds an object (at level "concept": a value) that `fit` never saw, which is
            named; or if "avg+pos" is asked for another number of slots than it was fitted on.
        """
        seen = self._seen(scenes)
        if not seen.all():
            raise self._unseen(scenes, seen)
        columns = _columns(scenes, self.level)
        predicted = np.tile(self.mean_, (len(scenes), 1))
        for slot in range(scenes.n_slots):
            vectors = self._vectors[slot % len(self._vectors)]
            for k in range(columns.shape[2]):
                predicted += vectors[columns[:, slot, k]]
        return predicted

    def can_predict(self, scenes: SceneSet) -> Bool[np.ndarray, " N"]:
        """Which scenes are made only of what `fit` saw (errors as in `predict`)."""
        return np.asarray(self._seen(scenes).all(axis=(1, 2)))

    def score(self, scenes: SceneSet, embeddings: Float[np.ndarray, "N d"]) -> float:
        """R² = 1 − SSE / SST, both summed over all dimensions, SST around the embeddings' mean.

        Raises
        ------
        ValueError
            As in `predict`; also if all embeddings are alike, or of other dimensions than in `fit`.
        """
        self._check_fitted()
        Z = check_embeddings(embeddings, len(scenes))
        if Z.shape[1] != len(self.mean_):
            raise ValueError(f"fitted on {len(self.mean_)} dimensions, got {Z.shape[1]}")
        check_spread(Z)
        mean = Z.mean(axis=0, dtype=np.float64)
        error = total = 0.0
        for start in range(0, len(scenes), _ROWS):
            rows = slice(start, start + _ROWS)
            error += float(np.square(Z[rows] - self.predict(scenes[rows])).sum())
            total += float(np.square(Z[rows] - mean).sum())
        return 1 - error / total

    def concept_share(self) -> float:
        """How much of the object embeddings' variance sums of one vector a value can explain (R²).

        1 means that Level II holds exactly. Objects that `fit` never saw (for "avg+pos": not in
        every slot) are left out.
        """
        self._check_fitted()
        # The slots of "avg+pos" side by side: R² sums over all dimensions anyway.
        by_slot = self.object_embeddings_.reshape(-1, self.space_.n_objects, len(self.mean_))
        u = np.concatenate(by_slot, axis=1)
        seen = np.flatnonzero(np.isfinite(u).all(axis=1))
        alone = SceneSet(self.space_, seen[:, None])
        sums = AdditiveDecomposition("concept", "least-squares").fit(alone, u[seen])
        return sums.score(alone, u[seen])

    def _check_singles(
        self, scenes: SceneSet, Z: np.ndarray, singles: tuple[SceneSet, np.ndarray] | None
    ) -> tuple[SceneSet, np.ndarray]:
        if singles is None:
            singles = (scenes, Z)
        alone, embeddings = singles
        if alone.n_slots != 1:
            raise ValueError(
                "'single-obj' needs scenes of one object: fit(scenes, embeddings, singles=(scenes "
                f"of one object, their embeddings)); got scenes of {alone.n_slots}"
            )
        if alone.space != scenes.space:
            raise ValueError(f"scenes are of {scenes.space!r}, singles of {alone.space!r}")
        embeddings = check_embeddings(embeddings, len(alone))
        if embeddings.shape[1] != Z.shape[1]:
            raise ValueError(
                f"scene embeddings have {Z.shape[1]} dimensions, singles {embeddings.shape[1]}"
            )
        return alone, embeddings

    def _check_fitted(self) -> None:
        if not hasattr(self, "_vectors"):
            raise ValueError("this decomposition is not fitted yet; call fit(scenes, embeddings)")

    def _seen(self, scenes: SceneSet) -> Bool[np.ndarray, "N m k"]:
        self._check_fitted()
        if scenes.space != self.space_:
            raise ValueError(f"fitted on {self.space_!r}, got scenes of {scenes.space!r}")
        if self.estimator == "avg+pos" and scenes.n_slots != self.n_slots_:
            raise ValueError(
                f"'avg+pos' was fitted on scenes of {self.n_slots_} slots, got {scenes.n_slots}"
            )
        columns = _columns(scenes, self.level)
        known = ~np.isnan(self._vectors[:, :, 0])  # (m or 1, n_columns)
        slots = np.arange(scenes.n_slots) % len(known)
        return known[slots[:, None], columns]

    def _unseen(self, scenes: SceneSet, seen: Bool[np.ndarray, "N m k"]) -> ValueError:
        by_slot = self.estimator == "avg+pos"  # which alone tells one slot from another
        columns = _columns(scenes, self.level)[~seen]
        missing = np.unique(np.stack([np.nonzero(~seen)[1] * by_slot, columns], axis=1), axis=0)
        names = [
            repr(_column_name(self.space_, self.level, column))
            + (f" in slot {slot + 1}" if by_slot else "")
            for slot, column in missing[:5]
        ]
        more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
        return ValueError(
            f"fit never saw {', '.join(names)}{more}; expected scenes made of what fit saw"
        )


def _columns(scenes: SceneSet, level: str) -> Int[np.ndarray, "N m k"]:
    """The model's columns that are switched on, for each scene and slot."""
    if level == "object":
        return scenes.object_ids[:, :, None]
    return value_columns(scenes.space, scenes.object_ids)


def value_columns(space: ConceptSpace, ids: np.ndarray) -> Int[np.ndarray, "... C"]:
    """Each object's values, numbered through all concepts, the first concept's values first."""
    offsets = np.concatenate([[0], np.cumsum(space.sizes)[:-1]])
    return space.values(ids) + offsets


def _column_name(space: ConceptSpace, level: str, column: int) -> str:
    if level == "object":
        return space.object_name(column)
    return [value for name in space.names for value in space.value_names(name)][column]


def _estimate(
    columns: Int[np.ndarray, "N k"],
    n_columns: int,
    Z: Float[np.ndarray, "N d"],
    centre: Float[np.ndarray, " d"],
    estimator: str,
) -> Float[np.ndarray, "n_columns d"]:
    """One vector a column; NaN for a column that no scene switches on."""
    n, k = columns.shape
    design = scipy.sparse.csr_array(
        (np.ones(n * k), columns.ravel(), np.arange(0, n * k + 1, k)), shape=(n, n_columns)
    )
    counts = design.sum(axis=0)
    sums = np.zeros((n_columns, Z.shape[1]))
    for start in range(0, n, _ROWS):
        rows = slice(start, start + _ROWS)
        sums += design[rows].T @ (Z[rows] - centre)
    seen = counts > 0
    vectors = np.full(sums.shape, np.nan)
    if estimator != "least-squares":
        vectors[seen] = sums[seen] / counts[seen, None]
        return vectors
    # Normal equations of the centred design. They are singular (every row of the design has the
    # same sum), so the minimum-norm solution is taken; the mean absorbs what that leaves open.
    design, counts = design[:, seen], counts[seen]
    gram = (design.T @ design).toarray() - np.outer(counts, counts) / n
    solution = scipy.linalg.lstsq(gram, sums[seen], cond=1e-10)[0]
    vectors[seen] = solution - (counts @ solution) / n / k
    return vectors


def _concept_means(
    space: ConceptSpace, objects: Float[np.ndarray, "n_objects d"]
) -> Float[np.ndarray, "n_values d"]:
    """The mean object embedding of each concept value, over the objects that were seen."""
    seen = np.flatnonzero(np.isfinite(objects[:, 0]))
    columns, origin = value_columns(space, seen), np.zeros(objects.shape[1])
    return _estimate(columns, sum(space.sizes), objects[seen], origin, "avg")
