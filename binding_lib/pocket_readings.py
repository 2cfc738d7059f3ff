"""What a pocket pair recognises: across modalities and within, seen objects and unseen ones."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
import pandas as pd

from binding_lib.concepts import Seed
from binding_lib.cross_modal import modality_table
from binding_lib.encoders.pocket import PocketEncoder
from binding_lib.encoders.weights import seeded_weights
from binding_lib.pocket import JITTER, PICTURE_SIZE, PocketClip, TrainedPocketClip
from binding_lib.pocket_batches import differing_pairs
from binding_lib.scenes import SceneSet, swaps
from binding_lib.views.images import render_images


class PocketScenes(NamedTuple):
    """Scenes to examine a pocket pair with; two objects each, which differ in colour and shape.

    Attributes
    ----------
    test : dict of str to SceneSet
        "seen": both objects were in training. "unseen": both are among the test objects. "unseen,
        swaps too": so are these, and the objects with exchanged colours were not in training
        either, which no picture or caption can then tell by its having been seen.
    probe_train : SceneSet
        For linear probes: scenes of all objects, seen and unseen, but none of the test scenes in
        either order.
    """

    test: dict[str, SceneSet]
    probe_train: SceneSet


def pocket_scenes(
    trained: TrainedPocketClip, n_test: int = 500, n_train: int = 6000, seed: Seed = 0
) -> PocketScenes:
    """Draw scenes for a pair by what its training saw.

    Parameters
    ----------
    trained : TrainedPocketClip
    n_test : int
        Scenes of each kind, or as many as there are.
    n_train : int
        Scenes for probes.
    seed : int or numpy Generator
    """
    rng = np.random.default_rng(seed)
    space, seen = trained.model.space, trained.split.train
    unseen = differing_pairs(space, trained.test, rng)
    strict = unseen[np.flatnonzero(~np.isin(swaps(unseen), seen).any(axis=1))]
    test = {
        "seen": differing_pairs(space, seen, rng)[:n_test],
        "unseen": unseen[:n_test],
        "unseen, swaps too": strict[:n_test],
    }
    everything = differing_pairs(space, np.arange(space.n_objects), rng)
    tested = np.concatenate([_keys(scenes) for scenes in test.values()])
    return PocketScenes(test, everything[~np.isin(_keys(everything), tested)][:n_train])


def pocket_table(
    trained: TrainedPocketClip, n_test: int = 500, n_train: int = 6000, seed: int = 0
) -> pd.DataFrame:
    """Tabulate what a pocket pair recognises, beside the same pair before its training.

    Parameters
    ----------
    trained : TrainedPocketClip
    n_test, n_train, seed
        As for `pocket_scenes`; the seed also decides the pictures.

    Returns
    -------
    DataFrame
        The columns of `binding_lib.cross_modal.modality_table` after a column ``weights``
        ("trained" or "untrained").
    """
    scenes = pocket_scenes(trained, n_test, n_train, seed)
    with seeded_weights(trained.seed):
        untrained = PocketClip(trained.model.config, trained.model.space)
    render = partial(render_images, size=PICTURE_SIZE, seed=seed, jitter=JITTER)
    parts = []
    for weights, model in {"trained": trained.model, "untrained": untrained}.items():
        table = modality_table(
            PocketEncoder(f"pocket pair, {weights}", model), scenes.test, scenes.probe_train, render
        )
        table.insert(0, "weights", weights)
        parts.append(table)
    return pd.concat(parts, ignore_index=True)


def _keys(scenes: SceneSet) -> np.ndarray:
    """One number for each unordered scene of two."""
    ids = np.sort(scenes.object_ids, axis=1)
    return ids[:, 0] * scenes.space.n_objects + ids[:, 1]
