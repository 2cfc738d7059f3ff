"""Questions between pictures and captions: are the words for a picture closer than others?

Everything is a comparison of cosines. Across modalities a scene's picture is compared with captions
of single values ("red", "a circle"), of single objects ("a red circle") and of whole scenes; within
a modality linear probes take the captions' place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float
from numpy.typing import ArrayLike

from binding_lib.checks import check_count, check_embeddings
from binding_lib.concepts import OBJECT, ConceptSpace
from binding_lib.encoders.base import Encoder
from binding_lib.probes import LinearProbe
from binding_lib.readings import Data
from binding_lib.recognition import bootstrap_interval, recognised
from binding_lib.scenes import SceneSet, exchanged
from binding_lib.views.captions import object_phrases, value_phrases
from binding_lib.views.images import render_images

Render = Callable[[SceneSet], np.ndarray]

IMAGE_TO_CAPTION = "swap, picture to caption"
CAPTION_TO_IMAGE = "swap, caption to picture"

OWN, SWAPPED, OTHER = "right caption", "its swap", "another caption"
CAPTION_KINDS = (OWN, SWAPPED, OTHER)


def cosines(a: Float[np.ndarray, "N d"], b: Float[np.ndarray, "K d"]) -> Float[np.ndarray, "N K"]:
    """Cosine of every embedding in `a` with every one in `b`; one of zeros has cosine 0."""
    return _unit(a) @ _unit(b).T


def prefers_own(
    asking: Float[np.ndarray, "N d"], own: Float[np.ndarray, "N d"], other: Float[np.ndarray, "N d"]
) -> Bool[np.ndarray, " N"]:
    """Whether each embedding is closer, by cosine, to its own partner than to the other one.

    Parameters
    ----------
    asking : array-like, shape (N, d)
        Pictures, or captions.
    own, other : array-like, shape (N, d)
        Embeddings of the other modality: those that belong, and their distractors. Chance is 1/2;
        a tie is no preference.

    Raises
    ------
    ValueError
        If the three shapes differ.
    """
    if not np.shape(asking) == np.shape(own) == np.shape(other):
        raise ValueError(
            "expected one own and one other embedding for each that asks, got shapes "
            f"{np.shape(asking)}, {np.shape(own)} and {np.shape(other)}"
        )
    X = _unit(asking)
    return ((X * _unit(own)).sum(axis=1)) > ((X * _unit(other)).sum(axis=1))


def queries(encoder: Encoder, space: ConceptSpace, target: str = OBJECT) -> np.ndarray:
    """Embed the caption of every candidate: each object, or each value of one concept."""
    phrases = object_phrases(space) if target == OBJECT else value_phrases(space, target)
    return encoder.encode_text(phrases)


def has_swap(scenes: SceneSet) -> Bool[np.ndarray, " N"]:
    """Whether exchanging the first concept's values makes another scene out of each scene."""
    swapped = np.sort(exchanged(scenes).object_ids, axis=1)
    return (swapped != np.sort(scenes.object_ids, axis=1)).any(axis=1)


def nearest_captions(pictures: Data, captions: Data, n: int = 5) -> pd.DataFrame:
    """Which captions stand nearest to each picture, and where its own and the swapped one stand.

    Parameters
    ----------
    pictures : (SceneSet, ndarray)
        Scenes and the embeddings of their pictures.
    captions : (SceneSet, ndarray)
        The scenes that the candidates are captions of, and the captions' embeddings. Each scene
        stands among them once, in any order of its objects.
    n : int
        How many of the nearest to list.

    Returns
    -------
    DataFrame
        For each picture its n nearest captions, and besides its own and the swapped one, wherever
        those stand. Columns ``scene`` (the picture's row), ``rank`` (1 is the nearest),
        ``caption``, ``cosine`` and ``kind`` ("right caption", "its swap", "another caption").

    Raises
    ------
    ValueError
        If a picture's own caption, or that of its swap, is not among the candidates, or a scene
        stands among them twice.
    """
    (scenes, X), (candidates, T) = pictures, captions
    check_count("n", n)
    row_of = {tuple(ids): row for row, ids in enumerate(np.sort(candidates.object_ids, axis=1))}
    if len(row_of) != len(candidates):
        twice = len(candidates) - len(row_of)
        raise ValueError(f"expected each scene once among the captions, got {twice} again")
    X, T = check_embeddings(X, len(scenes)), check_embeddings(T, len(candidates))
    rows = []
    for scene, scores in enumerate(cosines(X, T)):
        own, swap = (
            row_of.get(tuple(np.sort(s.object_ids[0])), -1)
            for s in (scenes[scene], exchanged(scenes[scene]))
        )
        if min(own, swap) < 0:
            missing = scenes[scene] if own < 0 else exchanged(scenes[scene])
            raise ValueError(f"{missing.captions()[0]!r} is not among the captions")
        order = np.argsort(-scores, kind="stable")
        rank = np.empty(len(order), dtype=int)
        rank[order] = np.arange(1, len(order) + 1)
        shown = np.union1d(order[:n], [own, swap])
        for row in shown[np.argsort(rank[shown])]:
            kind = OWN if row == own else SWAPPED if row == swap else OTHER
            (caption,) = candidates[int(row)].captions()
            found = {"rank": rank[row], "caption": caption, "cosine": scores[row], "kind": kind}
            rows.append({"scene": scene, **found})
    return pd.DataFrame(rows)


def across_outcomes(
    encoder: Encoder, scenes: SceneSet, render: Render = render_images
) -> dict[str, Bool[np.ndarray, " n"]]:
    """Ask an image-text pair what it sees, across modalities, one outcome a scene.

    Parameters
    ----------
    encoder : Encoder
        Of text and images.
    scenes : SceneSet
    render : callable
        Turns scenes into pictures.

    Returns
    -------
    dict of str to ndarray of bool
        For each concept, and for "object": whether the captions of all that is there are closer to
        the picture than the captions of all that is not (strict, N outcomes). For "swap, picture to
        caption": whether a picture is closer to its own caption than to that of the scene with the
        first concept's values exchanged; for "swap, caption to picture": whether a caption is
        closer to its own picture than to that of the exchanged scene (one outcome for each scene
        that such an exchange alters).
    """
    pictures = encoder.encode_images(render(scenes))
    outcomes = {
        target: recognised(
            cosines(pictures, queries(encoder, scenes.space, target)), scenes.present(target)
        )
        for target in (*scenes.space.names, OBJECT)
    }
    rows = has_swap(scenes)
    if rows.any():
        own, swapped = scenes[rows], exchanged(scenes[rows])
        texts = encoder.encode_text([*own.captions(), *swapped.captions()])
        text, other_text = texts[: len(own)], texts[len(own) :]
        outcomes[IMAGE_TO_CAPTION] = prefers_own(pictures[rows], text, other_text)
        other_pictures = encoder.encode_images(render(swapped))
        outcomes[CAPTION_TO_IMAGE] = prefers_own(text, pictures[rows], other_pictures)
    return outcomes


def within_outcomes(
    probes: Mapping[str, LinearProbe], scenes: SceneSet, embeddings: Float[np.ndarray, "N d"]
) -> dict[str, Bool[np.ndarray, " n"]]:
    """Ask probes what one modality's embeddings hold, one outcome a scene.

    Parameters
    ----------
    probes : mapping of str to LinearProbe
        Fitted, by target; "object" among them.
    scenes : SceneSet
    embeddings : array-like, shape (N, d)

    Returns
    -------
    dict of str to ndarray of bool
        Strict recognition for each target, and for "swap": whether the scene's own objects have a
        larger sum of logits than those of the exchanged scene (chance 1/2, as across modalities).
    """
    logits = {target: probe.scores(embeddings) for target, probe in probes.items()}
    outcomes = {
        target: recognised(scores, scenes.present(target)) for target, scores in logits.items()
    }
    rows = has_swap(scenes)
    if rows.any():
        scores, own = logits[OBJECT][rows], scenes[rows]
        total, other = (
            np.take_along_axis(scores, objects, axis=1).sum(axis=1)
            for objects in (own.object_ids, exchanged(own).object_ids)
        )
        outcomes["swap"] = total > other
    return outcomes


def modality_table(
    encoder: Encoder,
    test: Mapping[str, SceneSet],
    train: SceneSet | None = None,
    render: Render = render_images,
) -> pd.DataFrame:
    """Tabulate what an image-text pair recognises across modalities, and probes within images.

    Parameters
    ----------
    encoder : Encoder
        Of text and images.
    test : mapping of str to SceneSet
        Scenes by the kind of their objects, such as "seen" and "unseen".
    train : SceneSet, optional
        Scenes that linear probes are trained on, of one space with the test scenes and none of
        them; every object should occur, for a probe cannot name what it never met. Without them
        there are no rows "within".
    render : callable
        Turns scenes into pictures; the seed of its pictures is its own affair.

    Returns
    -------
    DataFrame
        Columns ``modality`` ("across", "within"), ``objects`` (the key of `test`), ``reading`` (a
        concept, "object", or a swap), ``value``, ``low``, ``high`` (95 % bootstrap interval) and
        ``n_scenes``.
    """
    probes = {}
    if train is not None:
        seen = encoder.encode_images(render(train))
        probes = {t: LinearProbe(t).fit(train, seen) for t in (*train.space.names, OBJECT)}
    rows = []
    for objects, scenes in test.items():
        outcomes = {"across": across_outcomes(encoder, scenes, render)}
        if probes:
            pictures = encoder.encode_images(render(scenes))
            outcomes["within"] = within_outcomes(probes, scenes, pictures)
        for modality, readings in outcomes.items():
            for reading, right in readings.items():
                row = {"modality": modality, "objects": objects, "reading": reading}
                estimate = bootstrap_interval(right)._asdict()
                rows.append({**row, **estimate, "n_scenes": len(right)})
    return pd.DataFrame(rows)


def _unit(embeddings: ArrayLike) -> np.ndarray:
    Z = check_embeddings(embeddings)
    return Z / np.maximum(np.linalg.norm(Z, axis=1, keepdims=True), np.finfo(Z.dtype).tiny)
