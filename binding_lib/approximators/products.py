"""Rules: a scene's embedding as a sum, or a sum of products, of vectors of its concept values."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

from binding_lib.approximators.base import Approximator, slot_columns
from binding_lib.approximators.sums_of_products import SumOfProducts, evaluate
from binding_lib.checks import check_choice, check_count
from binding_lib.decomposition import AdditiveDecomposition, value_columns
from binding_lib.scenes import SceneSet

FORMS = ("additive", "per-object", "global")


class ProductApproximator(Approximator):
    """The paper's structured approximators (section 6), each the one before plus a summand.

    With slots i = 1..m, concepts k = 1..C and values c_ik, all vectors of length d and all products
    element by element:

    - "additive": ``sum_i sum_k u[k, c_ik]``, around the mean;
    - "per-object": additive ``+ sum_i prod_k v[i, k, c_ik]``;
    - "global": per-object ``+ prod_i prod_k w[i, k, c_ik]``.

    The sum knows no slots, so scenes that differ by a swap of values are one to it. A product has
    vectors of its own in each slot.

    Parameters
    ----------
    form : {"additive", "per-object", "global"}
    seed : int
        Of the starts.
    restarts : int
        How often the products are fitted. Dimensions share nothing, so each takes the start that
        served it best.
    l2 : float
        The loss of a dimension is its mean squared error plus l2 times the sum of its squared
        parameters, in units of its variance. Products can be scaled against each other at will,
        and values that are seldom seen leave them loose; a larger l2 holds them closer to zero, so
        that the sum has the say.
    tolerance : float
        A dimension has converged when a step lowers its loss by less than this share of it.
    max_iter : int
        Steps at most.

    Attributes
    ----------
    mean_ : ndarray, shape (d,)
        The mean embedding.
    scale_ : ndarray, shape (d,)
        The standard deviation of each dimension; the vectors below are in units of it.
    sums_ : ndarray, shape (sum of sizes, d)
        u, the values of the first concept first.
    object_products_ : ndarray, shape (m, sum of sizes, d)
        v; of shape (0, sum of sizes, d) without products.
    scene_products_ : ndarray, shape (m, sum of sizes, d)
        w; of shape (0, sum of sizes, d) unless the form is "global".
    converged_ : float
        The share of dimensions that converged.

    Notes
    -----
    The sum is solved in closed form; unseen parts of it are set by least norm. The products are
    fitted by Levenberg and Marquardt's method (`binding_lib.approximators.sums_of_products`) from
    the closed-form sum, v drawn around 0 and w around 1, each with a spread of 0.3.

    Examples
    --------
    >>> from binding_lib import ConceptSpace, ProductApproximator, sample_scenes
    >>> split = ConceptSpace.grid(2, 6).split(0.8, seed=0)
    >>> train = sample_scenes(split.space, 500, ids=split.train)
    >>> test = sample_scenes(split.space, 50, ids=split.held_out)
    >>> v = np.random.default_rng(0).normal(size=(2, 6, 3))
    >>> bind = lambda scenes: np.prod(v[[0, 1], scenes.values], axis=2).sum(axis=1)
    >>> fitted = ProductApproximator("per-object").fit(train, bind(train))
    >>> round(fitted.score(test, bind(test)), 2)
    1.0
    """

    def __init__(
        self,
        form: str = "global",
        seed: int = 0,
        *,
        restarts: int = 2,
        l2: float = 1e-4,
        tolerance: float = 1e-4,
        max_iter: int = 100,
    ) -> None:
        self.form = self.name = check_choice("form", form, FORMS)
        self.restarts = check_count("restarts", restarts)
        self.max_iter = check_count("max_iter", max_iter)
        for what, number in (("l2", l2), ("tolerance", tolerance)):
            if not isinstance(number, (int, float)) or not 0 < number < np.inf:
                raise ValueError(f"{what} must be a number above 0, got {number!r}")
        self.seed = check_count("seed", seed, least=0)
        self.l2, self.tolerance = l2, tolerance

    def _fit(self, scenes: SceneSet, Z: Float[np.ndarray, "N d"]) -> None:
        sums = AdditiveDecomposition("concept", "least-squares").fit(scenes, Z)
        spread = Z.std(axis=0, dtype=np.float64)
        spread[spread == 0] = 1.0  # a dimension in which nothing varies
        table, converged = sums.concept_embeddings_ / spread, 1.0
        if self.form != "additive":
            targets = (Z - sums.mean_) / spread
            table, converged = self._fit_products(scenes, targets, table)
        n_values, m = sum(scenes.space.sizes), scenes.n_slots
        by_table = table.reshape(-1, n_values, Z.shape[1])
        self.mean_, self.scale_, self.converged_ = sums.mean_, spread, converged
        self.sums_ = by_table[0]
        self.object_products_, self.scene_products_ = by_table[1 : 1 + m], by_table[1 + m :]
        self.n_parameters_ = self.mean_.size + table.size
        self._table = table  # (tables * n_values, d)

    def _fit_products(
        self,
        scenes: SceneSet,
        targets: Float[np.ndarray, "N d"],
        sums: Float[np.ndarray, "n_values d"],
    ) -> tuple[Float[np.ndarray, "P d"], float]:
        """Fit all vectors; also return the share of dimensions that converged."""
        per_form = scenes.n_slots * sums.shape[0]
        centre = np.repeat([0.0, 1.0], per_form)[: per_form * FORMS.index(self.form), None]
        n_parameters = len(sums) + len(centre)
        problem = SumOfProducts(
            self._terms(scenes), n_parameters, self.l2, self.tolerance, self.max_iter
        )
        rng = np.random.default_rng(self.seed)
        found = []
        for _ in range(self.restarts):
            drawn = rng.normal(centre, 0.3, size=(len(centre), targets.shape[1]))
            found.append(problem.solve(targets, np.concatenate([sums, drawn])))
        best = np.argmin([solution.loss for solution in found], axis=0)  # (d,)
        table = np.choose(best, [solution.parameters for solution in found])
        return table, float(np.choose(best, [solution.converged for solution in found]).mean())

    def _predict(self, scenes: SceneSet) -> Float[np.ndarray, "N d"]:
        return self.mean_ + self.scale_ * evaluate(self._terms(scenes), self._table)

    def _terms(self, scenes: SceneSet) -> list[Int[np.ndarray, "N factors"]]:
        """Rows of the table of all vectors: u, then v slot by slot, then w slot by slot."""
        n_values, m = sum(scenes.space.sizes), scenes.n_slots
        # One summand for each value of each object; all objects share one part of the table.
        values = value_columns(scenes.space, scenes.object_ids).reshape(len(scenes), -1)  # (N, mC)
        terms = [column[:, None] for column in values.T]
        in_slots = slot_columns(scenes)  # (N, mC)
        if self.form != "additive":
            terms += np.split(n_values + in_slots, m, axis=1)
        if self.form == "global":
            terms.append((1 + m) * n_values + in_slots)
        return terms
