"""What a complexity curve is drawn from: scenes, an encoder's embeddings of them, and read-outs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from binding_lib.complexity import as_split
from binding_lib.concepts import OBJECT, ConceptSpace, ObjectSplit
from binding_lib.encoders import load_encoder
from binding_lib.probes import LinearProbe
from binding_lib.readouts import Readout, query_readouts
from binding_lib.scenes import SceneSet, sample_scenes
from binding_lib.trained import load_dual_encoder
from binding_lib.views.captions import text_space


class CurveData(NamedTuple):
    """The first two and the fifth argument of `complexity_curve`."""

    scenes: SceneSet
    embeddings: Float[np.ndarray, "N d"]
    probes: list[Readout]


def curve_data(
    encoder: str,
    coverages: Sequence[float | ObjectSplit],
    seeds: Sequence[int] = (0,),
    n_scenes: int = 8000,
    n_probe_scenes: int = 12_000,
) -> CurveData:
    """Draw scenes of two objects, embed them, and make read-outs.

    Parameters
    ----------
    encoder : str
        As for `load_encoder`. One of text reads captions of the paper's 20 x 20 text space, and is
        read by linear probes. A dual encoder ("dual:...") reads scenes of its own space, and is
        read by its own queries.
    coverages, seeds : sequences
        The splits that scenes should suffice for: see `curve_scenes`.
    n_scenes : int
    n_probe_scenes : int
        Scenes of any objects that probes are trained on. They are drawn without regard to
        the others, so that a few scenes, seven in a hundred with the defaults, stand among both.
    """
    if encoder.startswith("dual:"):
        model = load_dual_encoder(encoder.removeprefix("dual:"))
        scenes = curve_scenes(model.space, n_scenes, coverages, seeds)
        return CurveData(scenes, model.encode_scenes(scenes), [*query_readouts(model)])
    loaded, space = load_encoder(encoder), text_space()
    scenes = curve_scenes(space, n_scenes, coverages, seeds)
    of_probes = sample_scenes(space, n_probe_scenes, seed=1)
    Z = loaded.encode_text(of_probes.captions())
    probes = [LinearProbe(target).fit(of_probes, Z) for target in (OBJECT, *space.names)]
    return CurveData(scenes, loaded.encode_text(scenes.captions()), [*probes])


def curve_scenes(
    space: ConceptSpace,
    n_scenes: int,
    coverages: Sequence[float | ObjectSplit],
    seeds: Sequence[int] = (0,),
    n_objects: int = 2,
    least_train: int = 1000,
    least_test: int = 300,
) -> SceneSet:
    """Draw scenes for `complexity_curve`, and more for splits that would be left with too few.

    At coverage 0.9 only one scene of two objects in a hundred holds nothing but held-out objects,
    at 0.1 as few hold nothing but training objects.

    Parameters
    ----------
    space : ConceptSpace
    n_scenes : int
        Scenes of any objects.
    coverages, seeds : sequences
        The splits.
    n_objects : int
        m, the number of objects in each scene.
    least_train, least_test : int
        How many scenes a split should have of each kind. Those that it lacks are drawn from its
        objects, and such as are there already are left out; so a split with few objects stays
        below.
    """
    drawn = sample_scenes(space, n_scenes, n_objects, seed=0)
    for coverage in coverages:
        for seed in seeds:
            split = as_split(space, coverage, seed)
            for ids, least in ((split.train, least_train), (split.held_out, least_test)):
                lacking = least - np.isin(drawn.object_ids, ids).all(axis=1).sum()
                if lacking > 0 and len(ids) >= n_objects:
                    more = sample_scenes(space, int(lacking), n_objects, ids=ids, seed=seed + 1)
                    drawn = _distinct(SceneSet.concatenate([drawn, more]))
    return _distinct(drawn)


def _distinct(scenes: SceneSet) -> SceneSet:
    """The scenes in order, without those that were there before."""
    _, first = np.unique(scenes.object_ids, axis=0, return_index=True)
    return scenes[np.sort(first)]
