"""Lists of cases: trees that ask for one value after another."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestRegressor

from binding_lib.approximators.base import Approximator, slot_columns
from binding_lib.checks import check_choice, check_count
from binding_lib.encoders.weights import require
from binding_lib.scenes import SceneSet

KINDS = ("xgboost", "random-forest")


class TreeApproximator(Approximator):
    """Boosted trees or a random forest (paper, section 4).

    Trees read the values of all objects as one-hot codes, slot by slot, and every leaf holds a
    whole embedding: for XGBoost the strategy ``multi_output_tree``.

    Parameters
    ----------
    kind : {"xgboost", "random-forest"}
        "xgboost" needs the extra ``trees`` of this package.
    seed : int
        Of the forest's samples.
    n_components : int
        Leaves hold at most so many principal components of the training embeddings (fewer where
        there are fewer scenes or dimensions): a forest that has a leaf for each scene would
        otherwise hold every embedding many times over.
    n_trees : int, optional
        300 boosted trees or a forest of 100 by default.

    Attributes
    ----------
    n_parameters_ : int
        A split counts as 2 numbers (which value is asked for, and what else follows), a leaf as one
        for each component; the components and the mean embedding are added.

    Raises
    ------
    MissingExtraError
        In `fit`, if XGBoost is not installed.

    Notes
    -----
    XGBoost: depth 6, learning rate 0.3. The forest: full trees, a third of the codes for each
    split. Both use one thread: `complexity_curve` fits several at a time.
    """

    def __init__(
        self,
        kind: str = "xgboost",
        seed: int = 0,
        *,
        n_components: int = 64,
        n_trees: int | None = None,
    ) -> None:
        self.kind = self.name = check_choice("kind of trees", kind, KINDS)
        self.seed = check_count("seed", seed, least=0)
        self.n_components = check_count("n_components", n_components)
        default = 300 if kind == "xgboost" else 100
        self.n_trees = default if n_trees is None else check_count("n_trees", n_trees)

    def _fit(self, scenes: SceneSet, Z: Float[np.ndarray, "N d"]) -> None:
        n_components = min(self.n_components, *Z.shape)
        pca = PCA(n_components, svd_solver="covariance_eigh").fit(Z)
        trees, n_numbers = self._grow(_one_hot(scenes), pca.transform(Z))
        self._pca, self._trees = pca, trees
        self.n_parameters_ = n_numbers + pca.components_.size + pca.mean_.size

    def _grow(self, codes: np.ndarray, targets: np.ndarray) -> tuple[Any, int]:
        """Fit the trees; also return how many numbers they hold."""
        if self.kind == "xgboost":
            model = require("xgboost", "trees").XGBRegressor(
                n_estimators=self.n_trees,
                max_depth=6,
                learning_rate=0.3,
                multi_strategy="multi_output_tree",
                tree_method="hist",
                n_jobs=1,
                random_state=self.seed,
            )
            model.fit(codes, targets)
            dumped = model.get_booster().get_dump(dump_format="json")
            leaves = sum(tree.count('"leaf"') for tree in dumped)
        else:
            model = RandomForestRegressor(
                self.n_trees, max_features=1 / 3, n_jobs=1, random_state=self.seed
            )
            model.fit(codes, targets)
            leaves = sum(int(tree.get_n_leaves()) for tree in model.estimators_)
        splits = leaves - self.n_trees  # each makes one leaf more
        return model, 2 * splits + leaves * targets.shape[1]

    def _predict(self, scenes: SceneSet) -> Float[np.ndarray, "N d"]:
        components = self._trees.predict(_one_hot(scenes)).reshape(len(scenes), -1)
        return np.asarray(self._pca.inverse_transform(components))


def _one_hot(scenes: SceneSet) -> Float[np.ndarray, "N n_codes"]:
    codes = np.zeros((len(scenes), scenes.n_slots * sum(scenes.space.sizes)), dtype=np.float32)
    np.put_along_axis(codes, slot_columns(scenes), 1, axis=1)
    return codes
