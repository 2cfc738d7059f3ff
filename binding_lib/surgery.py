"""Surgery on embeddings: cut an object out, put another in; take out all that is additive.

Both operations use vectors that an additive decomposition fitted, and nothing of the encoder
(paper, section 3).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from numbers import Real
from typing import Literal

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from numpy.typing import ArrayLike

from binding_lib.checks import check_choice, check_count, check_embeddings, check_integers
from binding_lib.concepts import OBJECT, ConceptSpace, Seed
from binding_lib.cross_modal import within_outcomes
from binding_lib.decomposition import AdditiveDecomposition, Estimator
from binding_lib.probes import LinearProbe
from binding_lib.readings import Data
from binding_lib.recognition import bootstrap_interval, retrieved
from binding_lib.scenes import SceneSet

Component = Literal["concept", "object"]

COMPONENTS: tuple[Component, ...] = ("concept", "object")


def replace_object(scenes: SceneSet, slot: int, new_object: ArrayLike) -> SceneSet:
    """The same scenes with another object in one slot.

    Parameters
    ----------
    scenes : SceneSet
        N scenes.
    slot : int, from 0
    new_object : int or array-like of int, shape (N,)
        The id of the object to put in, one for all scenes or one for each.

    Raises
    ------
    ValueError
        If there is no such slot or object, or not one object for each scene.
    """
    if check_count("slot", slot, least=0) >= scenes.n_slots:
        raise ValueError(f"slot must be from 0 to {scenes.n_slots - 1}, got {slot}")
    new = check_integers(new_object, "new_object")
    if new.shape not in ((), (len(scenes),)):
        raise ValueError(f"new_object must be one id or {len(scenes)} ids, got shape {new.shape}")
    ids = scenes.object_ids.copy()
    ids[:, slot] = new
    return SceneSet(scenes.space, ids)


def edit(
    embeddings: Float[np.ndarray, "N d"],
    scenes: SceneSet,
    slot: int,
    new_object: ArrayLike,
    decomposition: AdditiveDecomposition,
    strength: float = 1.0,
) -> Float[np.ndarray, "N d"]:
    """Put another object into a slot of each embedding: z - u[old] + u[new].

    Parameters
    ----------
    embeddings : ndarray, shape (N, d)
    scenes : SceneSet
    slot : int, from 0
    new_object : int or array-like of int, shape (N,)
        The id of the object to put in, one for all scenes or one for each.
    decomposition : AdditiveDecomposition
        Fitted; its estimator decides what u is (with "avg+pos", the vectors of that slot).
    strength : float
        k in z + k (u[new] - u[old]): 0 changes nothing, 1 is the full edit.

    Returns
    -------
    ndarray of float64, shape (N, d)

    Raises
    ------
    ValueError
        As `replace_object`, and if embeddings do not match the scenes or the decomposition, the
        strength is no finite number, or the decomposition never saw an object that is taken out or
        put in.

    Examples
    --------
    >>> from binding_lib import AdditiveDecomposition, ConceptSpace, all_scenes, edit
    >>> scenes = all_scenes(ConceptSpace.grid(2, 3))
    >>> u = np.random.default_rng(0).normal(size=(9, 5))
    >>> Z = u[scenes.object_ids].sum(axis=1)
    >>> decomposition = AdditiveDecomposition().fit(scenes, Z)
    >>> edited = edit(Z[:1], scenes[:1], slot=1, new_object=4, decomposition=decomposition)
    >>> np.allclose(edited, u[0] + u[4])
    True
    """
    Z = check_embeddings(embeddings, len(scenes))
    target = replace_object(scenes, slot, new_object)
    if not isinstance(strength, Real) or not math.isfinite(strength):
        raise ValueError(f"strength must be a finite number, got {strength!r}")
    # Everything but the exchanged object cancels.
    step = decomposition.predict(target) - decomposition.predict(scenes)
    if step.shape != Z.shape:  # numpy would stretch embeddings of one dimension
        raise ValueError(f"fitted on {step.shape[1]} dimensions, got {Z.shape[1]}")
    return Z + strength * step


def remove(
    embeddings: Float[np.ndarray, "N d"],
    scenes: SceneSet,
    component: Component = "concept",
    permuted: bool = False,
    seed: Seed = 0,
) -> Float[np.ndarray, "N d"]:
    """Subtract all that an additive model of the embeddings can explain, but for their mean.

    Parameters
    ----------
    embeddings : ndarray, shape (N, d)
    scenes : SceneSet
    component : {"concept", "object"}
        - "concept": the sum of one vector for each concept value of each object (Level II). What
          tells an object from the sum of its values stays.
        - "object": the sum of one vector for each object (Level I). The vector of an object holds
          those of its values and what it has beyond them: the concept component goes with it.
    permuted : bool
        The control: the model is fitted to the same scenes shuffled among the embeddings, so that
        as many numbers are fitted and subtracted, but they say nothing about the scenes.
    seed : int or numpy Generator
        Of the shuffle.

    Returns
    -------
    ndarray of float64, shape (N, d)

    Notes
    -----
    The vectors are those of the best fit to all of `embeddings` by least squares, for each slot
    apart. An average would leave a little of every other object in each vector, and subtracting it
    would print that trace into the embeddings of all its scenes, where a probe could find it. With
    few scenes for each vector the fit takes away something whatever the scenes are: compare with
    `permuted`.
    """
    check_choice("component", component, COMPONENTS)
    Z = check_embeddings(embeddings, len(scenes))
    if permuted:
        scenes = scenes[np.random.default_rng(seed).permutation(len(scenes))]
    # Each column that is used as an object of its own, so that a scene is the list of its columns.
    used, columns = np.unique(_slot_columns(scenes, component), return_inverse=True)
    space = ConceptSpace({"column": [str(column) for column in used]})
    listed = SceneSet(space, columns.reshape(len(scenes), -1))
    fitted = AdditiveDecomposition("object", "least-squares").fit(listed, Z)
    left = Z - fitted.predict(listed)
    # Rounding errors are the same for all embeddings of a scene: probes would tell scenes by them.
    left[np.abs(left) < max(8 * np.finfo(Z.dtype).eps, 1e-10) * np.abs(Z).max()] = 0
    return fitted.mean_ + left


def edit_table(
    train: Data,
    test: Data,
    singles: Data | None = None,
    probes: Sequence[LinearProbe] = (),
    estimators: Sequence[Estimator] = ("avg", "avg+pos", "single-obj"),
    strengths: Sequence[float] = (1.0,),
    seed: Seed = 0,
) -> pd.DataFrame:
    """Does an edited embedding stand where the embedding of the edited scene stands?

    Each test scene is turned into another test scene that differs from it in one slot, chosen at
    random among those that there are; test scenes without such a neighbour are left out.

    Parameters
    ----------
    train : (SceneSet, ndarray)
        What the vectors are estimated from.
    test : (SceneSet, ndarray)
        The scenes to edit, and the bank that retrieval chooses from: the scene before the edit is
        in it, too.
    singles : (SceneSet, ndarray), optional
        Scenes of one object; without them the estimator "single-obj" is left out.
    probes : sequence of LinearProbe
        Trained on real embeddings; asked here what the edited ones hold.
    estimators : sequence of str
    strengths : sequence of float
    seed : int or numpy Generator
        Chooses the edits, which are the same for every estimator and strength.

    Returns
    -------
    DataFrame
        Columns estimator, strength, reading ("retrieval", "probe: object", ...), value, low, high
        (95 % bootstrap over edits), n_edits.

    Raises
    ------
    ValueError
        If no two test scenes differ in one slot alone, or only such that hold an object that the
        decomposition never saw.
    """
    scenes, embeddings = test
    Z = check_embeddings(embeddings, len(scenes))
    source, target, slot = _neighbours(scenes, seed)
    if not len(source):
        raise ValueError("no two test scenes differ in one slot alone; expected some that do")
    rows = []
    for estimator in estimators:
        alone = singles if estimator == "single-obj" else None
        if estimator == "single-obj" and alone is None:
            continue
        fitted = AdditiveDecomposition("object", estimator).fit(*train, singles=alone)
        known = fitted.can_predict(scenes)
        usable = known[source] & known[target]
        if not usable.any():
            raise ValueError(
                f"each of {len(source)} edits needs an object that fit never saw (estimator "
                f"{estimator!r}); expected more training scenes"
            )
        before, after, where = source[usable], target[usable], slot[usable]
        for strength in strengths:
            edited = np.empty((len(before), Z.shape[1]))
            for s in range(scenes.n_slots):
                here = where == s
                old, new = before[here], scenes.object_ids[after[here], s]
                if len(old):
                    edited[here] = edit(Z[old], scenes[old], s, new, fitted, strength)
            outcomes = {"retrieval": retrieved(edited, Z, truth=after)}
            for probe in probes:
                outcomes[f"probe: {probe.target}"] = probe.recognises(scenes[after], edited)
            for reading, outcome in outcomes.items():
                labels = {"estimator": estimator, "strength": strength, "reading": reading}
                estimate = bootstrap_interval(outcome)._asdict()
                rows.append({**labels, **estimate, "n_edits": len(before)})
    return pd.DataFrame(rows)


def removal_table(train: Data, test: Data, seed: Seed = 0) -> pd.DataFrame:
    """What fresh probes read after each component is subtracted, and after each control.

    Parameters
    ----------
    train, test : (SceneSet, ndarray)
        The component is fitted to both together; probes for every concept and for objects are
        trained on the rest of `train` and read on that of `test`.
    seed : int or numpy Generator

    Returns
    -------
    DataFrame
        Columns removed ("nothing", "concept", "object"), permuted (bool), reading ("probe: ...",
        as `binding_lib.cross_modal.within_outcomes` reads, "swap" among them), value, low, high,
        n_scenes.
    """
    scenes = SceneSet.concatenate([train[0], test[0]])
    Z = np.concatenate([train[1], test[1]])
    n = len(train[0])
    rows, targets = [], (*scenes.space.names, OBJECT)
    for removed, permuted in [("nothing", False), *itertools.product(COMPONENTS, (False, True))]:
        rest = remove(Z, scenes, removed, permuted, seed) if removed in COMPONENTS else Z
        fresh = {target: LinearProbe(target).fit(train[0], rest[:n]) for target in targets}
        for reading, right in within_outcomes(fresh, test[0], rest[n:]).items():
            labels = {"removed": removed, "permuted": permuted, "reading": f"probe: {reading}"}
            rows.append({**labels, **bootstrap_interval(right)._asdict(), "n_scenes": len(right)})
    return pd.DataFrame(rows)


def _slot_columns(scenes: SceneSet, component: str) -> Int[np.ndarray, "N k"]:
    """The columns that a scene switches on, those of each slot apart."""
    if component == OBJECT:
        columns, n = scenes.object_ids[:, :, None], scenes.space.n_objects
    else:
        offsets = np.cumsum([0, *scenes.space.sizes[:-1]])
        columns, n = scenes.values + offsets, sum(scenes.space.sizes)
    by_slot = columns + n * np.arange(scenes.n_slots)[:, None]  # (N, m, 1 or C)
    return by_slot.reshape(len(scenes), -1)


def _neighbours(scenes: SceneSet, seed: Seed) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """For each scene that has any, one scene that differs in one slot alone: rows, rows, slots."""
    rng = np.random.default_rng(seed)
    groups = []  # for each slot: the group of each scene, the scenes of each group
    for slot in range(scenes.n_slots):
        others = np.delete(scenes.object_ids, slot, axis=1)
        group = np.unique(others, axis=0, return_inverse=True)[1].reshape(-1)
        order = np.argsort(group, kind="stable")
        members = np.split(order, np.flatnonzero(np.diff(group[order])) + 1)
        groups.append((group, members))
    found = []
    for row in range(len(scenes)):
        for slot in rng.permutation(scenes.n_slots):
            group, members = groups[slot]
            alike = members[group[row]]
            objects = scenes.object_ids[:, slot]
            choices = alike[objects[alike] != objects[row]]
            if len(choices):
                found.append((row, rng.choice(choices), slot))
                break
    source, target, slots = np.array(found, dtype=np.int64).reshape(-1, 3).T
    return source, target, slots
