"""Does a decomposition hold? The paper's three readings of it, as tidy tables.

Each table has one row a number, with the ends of its 95 % bootstrap interval over test scenes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from jaxtyping import UInt8

from binding_lib.checks import check_count, check_embeddings
from binding_lib.concepts import OBJECT
from binding_lib.decomposition import ESTIMATORS, LEVELS, AdditiveDecomposition
from binding_lib.encoders import Encoder
from binding_lib.probes import LinearProbe
from binding_lib.recognition import (
    Estimate,
    bootstrap_interval,
    r2_interval,
    retrieved,
)
from binding_lib.scenes import SceneSet, all_scenes, sample_scenes
from binding_lib.views.captions import text_space

Data = tuple[SceneSet, np.ndarray]
"""Scenes and their embeddings, shape (N, d)."""


def read_decomposition(
    decomposition: AdditiveDecomposition, test: Data, probes: Sequence[LinearProbe] = ()
) -> pd.DataFrame:
    """R², retrieval and probing of a fitted decomposition (paper, section 3).

    Parameters
    ----------
    decomposition : AdditiveDecomposition
    test : (SceneSet, ndarray)
        Scenes that `fit` did not use. Those with an object that `fit` never saw are left out as
        queries, and stay in the bank that retrieval chooses from.
    probes : sequence of LinearProbe
        Trained on real embeddings; asked here about reconstructed ones.

    Returns
    -------
    DataFrame
        Columns reading ("R²", "retrieval", "probe: object", ...), value, low, high, n_scenes (the
        test scenes that the reading used).

    Raises
    ------
    ValueError
        If fewer than two test scenes are made of what `fit` saw, or all of them have one embedding.
    """
    scenes, embeddings = test
    Z = check_embeddings(embeddings, len(scenes))
    rows = np.flatnonzero(decomposition.can_predict(scenes))
    if len(rows) < 2:
        raise ValueError(
            f"{len(rows)} of {len(scenes)} test scenes hold nothing but what fit saw; expected at "
            "least 2 (fit on more scenes)"
        )
    predicted = decomposition.predict(scenes[rows])
    estimates = {
        "R²": r2_interval(Z[rows], predicted),
        "retrieval": bootstrap_interval(retrieved(predicted, Z, truth=rows)),
    }
    for probe in probes:
        right = probe.recognises(scenes[rows], predicted)
        estimates[f"probe: {probe.target}"] = bootstrap_interval(right)
    table = pd.DataFrame([e._asdict() for e in estimates.values()])
    table.insert(0, "reading", list(estimates))
    return table.assign(n_scenes=len(rows))


def read_probes(test: Data, probes: Iterable[LinearProbe]) -> pd.DataFrame:
    """The probes' accuracy on real embeddings: the most that a reconstruction could reach.

    Returns
    -------
    DataFrame
        Columns reading, value, low, high, n_scenes.
    """
    scenes, embeddings = test
    rows = []
    for probe in probes:
        right = probe.recognises(scenes, embeddings)
        estimate = bootstrap_interval(right)._asdict()
        rows.append({"reading": f"probe: {probe.target}", **estimate, "n_scenes": len(scenes)})
    return pd.DataFrame(rows, columns=["reading", *Estimate._fields, "n_scenes"])


def decomposition_table(
    train: Data,
    test: Data,
    singles: Data | None = None,
    probes: Sequence[LinearProbe] = (),
    levels: Sequence[str] = LEVELS,
) -> pd.DataFrame:
    """Every level and estimator, fitted on `train` and read on `test`.

    Parameters
    ----------
    train, test : (SceneSet, ndarray)
    singles : (SceneSet, ndarray), optional
        Scenes of one object; without them the estimator "single-obj" is left out.
    probes : sequence of LinearProbe
    levels : sequence of str

    Returns
    -------
    DataFrame
        Columns level, estimator, and those of `read_decomposition`.
    """
    parts = []
    for level in levels:
        for estimator in ESTIMATORS:
            alone = singles if estimator == "single-obj" else None
            if estimator == "single-obj" and alone is None:
                continue
            fitted = AdditiveDecomposition(level, estimator).fit(*train, singles=alone)  # type: ignore[arg-type]
            part = read_decomposition(fitted, test, probes)
            part.insert(0, "estimator", estimator)
            part.insert(0, "level", level)
            parts.append(part)
    return pd.concat(parts, ignore_index=True)


def scene_count_curve(
    train: Data, test: Data, counts: Sequence[int], singles: Data | None = None
) -> pd.DataFrame:
    """Level I read again and again with more training scenes: how many does an estimate need?

    Parameters
    ----------
    train, test : (SceneSet, ndarray)
    counts : sequence of int
        For each, the first so many scenes of `train` are used.
    singles : (SceneSet, ndarray), optional

    Returns
    -------
    DataFrame
        Columns n_train, and those of `decomposition_table`.

    Raises
    ------
    ValueError
        If there is no count, or one is larger than the number of training scenes.
    """
    scenes, embeddings = train
    counts = [check_count("a count", count) for count in counts]
    if not counts or max(counts) > len(scenes):
        raise ValueError(f"counts must be from 1 to {len(scenes)}, got {counts}")
    parts = []
    for count in counts:
        first = (scenes[:count], embeddings[:count])
        part = decomposition_table(first, test, singles, levels=["object"])
        part.insert(0, "n_train", count)
        parts.append(part)
    return pd.concat(parts, ignore_index=True)


@dataclass(frozen=True)
class SceneDecomposition:
    """What `decompose_captions` or `decompose_images` found, and what it takes to go on from there.

    Attributes
    ----------
    train, test : (SceneSet, ndarray)
        Scenes and embeddings: to fit on, and to read on.
    singles : (SceneSet, ndarray) or None
        Objects alone.
    probes : list of LinearProbe
        Trained on `train`; empty if there were to be none.
    real : DataFrame
        The probes on real test embeddings, as `read_probes` gives it.
    reconstructed : DataFrame
        As `decomposition_table` gives it.
    """

    train: Data
    test: Data
    singles: Data | None
    probes: list[LinearProbe]
    real: pd.DataFrame
    reconstructed: pd.DataFrame

    @property
    def n_train(self) -> int:
        """The number of scenes to fit on."""
        return len(self.train[0])

    @property
    def n_test(self) -> int:
        """The number of scenes to read on."""
        return len(self.test[0])


def decompose_captions(
    encoder: Encoder, n_scenes: int, n_objects: int = 2, probes: bool = True, seed: int = 0
) -> SceneDecomposition:
    """Encode captions of the paper's 20 x 20 text space, decompose them and read the result.

    Parameters
    ----------
    encoder : Encoder
        One that encodes text.
    n_scenes : int
        Random scenes in all, at least 20; the last tenth is for testing.
    n_objects : int
        Objects a scene.
    probes : bool
        Whether to train probes for objects and for both concepts.
    seed : int
        Chooses the scenes.

    Raises
    ------
    ValueError
        If the encoder reads no text, or there are too few scenes to fit and to test.
    """
    check_count("n_scenes", n_scenes, least=20)
    space = text_space()
    scenes = sample_scenes(space, n_scenes, n_objects, seed=seed)
    alone = all_scenes(space, n_objects=1)
    Z = encoder.encode_text(scenes.captions())
    return _decompose(scenes, Z, (alone, encoder.encode_text(alone.captions())), probes)


def decompose_images(
    encoder: Encoder,
    scenes: SceneSet,
    images: UInt8[np.ndarray, "N H W 3"],
    singles: tuple[SceneSet, UInt8[np.ndarray, "K H W 3"]] | None = None,
    probes: bool = True,
    seed: int = 0,
) -> SceneDecomposition:
    """Encode pictures of scenes, decompose them and read the result.

    Parameters
    ----------
    encoder : Encoder
        One that encodes images.
    scenes : SceneSet
        At least 20, in any order, made of few enough objects that each occurs again and again.
    images : ndarray of uint8, shape (N, H, W, 3)
        A picture of each scene: rendered, or opened by `Release.images`.
    singles : (SceneSet, ndarray of uint8), optional
        Scenes of one object and their pictures; without them the estimator "single-obj" is left
        out.
    probes : bool
        Whether to train probes for objects and for each concept.
    seed : int
        Chooses the tenth of the scenes that is for testing.

    Raises
    ------
    ValueError
        If the encoder sees no images, scenes and images differ in number, or there are too few
        scenes to fit and to test.
    """
    check_count("the number of scenes", len(scenes), least=20)
    Z = check_embeddings(encoder.encode_images(images), len(scenes))
    order = np.random.default_rng(seed).permutation(len(scenes))
    alone = None if singles is None else (singles[0], encoder.encode_images(singles[1]))
    return _decompose(scenes[order], Z[order], alone, probes)


def _decompose(
    scenes: SceneSet, Z: np.ndarray, singles: Data | None, probes: bool
) -> SceneDecomposition:
    """Fit on the first nine tenths of the scenes, which are in random order; read on the rest."""
    n_train = len(scenes) - len(scenes) // 10
    train, test = (scenes[:n_train], Z[:n_train]), (scenes[n_train:], Z[n_train:])
    targets = (OBJECT, *scenes.space.names) if probes else ()
    fitted = [LinearProbe(target).fit(*train) for target in targets]
    return SceneDecomposition(
        train=train,
        test=test,
        singles=singles,
        probes=fitted,
        real=read_probes(test, fitted),
        reconstructed=decomposition_table(train, test, singles, fitted),
    )
