"""Linear probes: can one matrix read a scene's objects, or its values of one concept?"""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Bool, Float

from binding_lib.checks import check_count, check_embeddings
from binding_lib.concepts import OBJECT, Seed
from binding_lib.progress import progress_bar
from binding_lib.recognition import recognised
from binding_lib.scenes import SceneSet


class LinearProbe:
    """A linear classifier trained on the soft multi-label cross-entropy (paper, section 3).

    Each scene's target is the uniform distribution over what it holds; the probe's softmax is
    fitted to it by L-BFGS on all scenes at once, so the fit is convex and needs no seed.

    Parameters
    ----------
    target : str
        "object", or the name of a concept of the scenes' space.
    l2 : float
        Weight of half the squared norm of the coefficients, which are taken over the whitened
        embeddings: in the raw ones the few directions of largest variance would be cheap and the
        many small ones, which tell objects apart, would be dear. Directions whose spread is less
        than 1e-4 of the largest are left out.
    max_iter : int
        L-BFGS iterations at most.

    Attributes
    ----------
    coef_ : ndarray of float32, shape (d, K)
        K is the number of objects of the space, or of values of the concept.
    intercept_ : ndarray of float64, shape (K,)
    space_ : ConceptSpace
        The space of the scenes seen in `fit`.

    Examples
    --------
    >>> from binding_lib import ConceptSpace, LinearProbe, sample_scenes
    >>> scenes = sample_scenes(ConceptSpace.grid(2, 3), 200)
    >>> Z = scenes.present("object").astype(float)
    >>> LinearProbe("object").fit(scenes, Z).score(scenes, Z)
    1.0
    """

    def __init__(self, target: str = OBJECT, l2: float = 1e-4, max_iter: int = 60) -> None:
        if not isinstance(l2, (int, float, np.number)) or not 0 <= l2 < np.inf:
            raise ValueError(f"l2 must be a number of at least 0, got {l2!r}")
        self.target = target
        self.l2 = l2
        self.max_iter = check_count("max_iter", max_iter)

    def fit(self, scenes: SceneSet, embeddings: Float[np.ndarray, "N d"]) -> LinearProbe:
        """Train on N scenes and their embeddings, shape (N, d).

        Raises
        ------
        ValueError
            If the embeddings do not match the scenes or are not finite, or the target is unknown.
        """
        Z = check_embeddings(embeddings, len(scenes))
        present = torch.from_numpy(scenes.present(self.target))
        target = present / present.sum(dim=1, keepdim=True)  # (N, K)
        white, centre, whiten = _whiten(Z)
        X = torch.from_numpy(white)  # (N, rank)
        weight = torch.zeros(X.shape[1], target.shape[1], requires_grad=True)
        bias = torch.zeros(target.shape[1], requires_grad=True)
        optimiser = torch.optim.LBFGS(
            [weight, bias],
            max_iter=self.max_iter,
            history_size=20,
            line_search_fn="strong_wolfe",
            tolerance_grad=1e-6,
        )
        with progress_bar(
            desc=f"probe for {self.target}", unit=" steps", delay=2, leave=False
        ) as bar:

            def closure() -> torch.Tensor:
                optimiser.zero_grad()
                logits = torch.addmm(bias, X, weight)
                loss = torch.nn.functional.cross_entropy(logits, target)
                loss = loss + 0.5 * self.l2 * weight.square().sum()
                loss.backward()
                bar.update()
                return loss

            optimiser.step(closure)
        # The whitening is folded in, so that the probe is one matrix on the raw embeddings.
        self.space_ = scenes.space
        self.coef_: np.ndarray = whiten @ weight.detach().numpy()
        self.intercept_: np.ndarray = bias.detach().numpy() - centre @ self.coef_
        return self

    def scores(self, embeddings: Float[np.ndarray, "N d"]) -> Float[np.ndarray, "N K"]:
        """One logit for each embedding and candidate."""
        if not hasattr(self, "coef_"):
            raise ValueError("this probe is not fitted yet; call fit(scenes, embeddings)")
        Z = check_embeddings(embeddings)
        if Z.shape[1] != len(self.coef_):
            raise ValueError(f"fitted on {len(self.coef_)} dimensions, got {Z.shape[1]}")
        return Z @ self.coef_ + self.intercept_

    def score(self, scenes: SceneSet, embeddings: Float[np.ndarray, "N d"]) -> float:
        """The share of scenes whose target is strictly recognised (see `recognised`)."""
        return float(self.recognises(scenes, embeddings).mean())

    def recognises(
        self, scenes: SceneSet, embeddings: Float[np.ndarray, "N d"]
    ) -> Bool[np.ndarray, " N"]:
        """Whether the target of each scene is strictly recognised (see `recognised`).

        Raises
        ------
        ValueError
            If the scenes are of another space than those of `fit`.
        """
        scores = self.scores(check_embeddings(embeddings, len(scenes)))
        if scenes.space != self.space_:
            raise ValueError(f"fitted on {self.space_!r}, got scenes of {scenes.space!r}")
        return recognised(scores, scenes.present(self.target))


def control_scenes(scenes: SceneSet, seed: Seed = 0) -> SceneSet:
    """The control task of Hewitt & Liang (2019): every object renamed at random.

    The ids are permuted over the whole space, the same way in every scene, so that each object
    keeps one label but that label says nothing about its concepts. A probe for a concept that does
    as well on these scenes has learned the objects by heart; the difference in accuracy is its
    selectivity.
    """
    permutation = np.random.default_rng(seed).permutation(scenes.space.n_objects)
    return SceneSet(scenes.space, permutation[scenes.object_ids])


def selectivity(
    probe: LinearProbe,
    train: tuple[SceneSet, Float[np.ndarray, "N d"]],
    test: tuple[SceneSet, Float[np.ndarray, "M d"]],
    seed: Seed = 0,
) -> float:
    """A concept probe's accuracy on test scenes less that of its twin on the control task.

    Parameters
    ----------
    probe : LinearProbe
        Fitted on `train`; its target is a concept (renaming objects does not change the task for
        a probe of whole objects).
    train, test : (SceneSet, ndarray)
        Scenes and their embeddings.

    Raises
    ------
    ValueError
        If the probe's target is "object".
    """
    if probe.target == OBJECT:
        raise ValueError(f"selectivity needs a probe for a concept, got target {OBJECT!r}")
    both = control_scenes(SceneSet.concatenate([train[0], test[0]]), seed)
    n = len(train[0])
    control = LinearProbe(probe.target, probe.l2, probe.max_iter).fit(both[:n], train[1])
    return probe.score(*test) - control.score(both[n:], test[1])


def _whiten(Z: Float[np.ndarray, "N d"]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Whitened embeddings (N, rank), the centre (d,) and the matrix (d, rank) that make them."""
    # Counted from the first row, a direction in which nothing varies has a spread of exactly 0.
    centred = Z - Z[0].astype(np.float64)
    offset = centred.mean(axis=0)
    centred -= offset
    centre = Z[0] + offset
    variances, axes = np.linalg.eigh(centred.T @ centred / len(Z))
    # Directions that hold nothing but rounding errors must not be blown up: neither those of the
    # product above, nor those that the embeddings' own precision makes far from zero.
    rounding = np.square(np.finfo(Z.dtype).eps * np.abs(centre).max())
    kept = variances > max(1e-8 * variances[-1], rounding)
    whiten = (axes[:, kept] / np.sqrt(variances[kept])).astype(np.float32)
    return centred.astype(np.float32) @ whiten, centre, whiten
