"""Maps of embeddings: where concept means, objects, scenes and sums of objects lie (MDS)."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass

import altair as alt
import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy.spatial.distance import pdist, squareform
from sklearn.manifold import smacof

from binding_lib.chart_style import GREY, colour, finish, shape
from binding_lib.checks import check_embeddings
from binding_lib.decomposition import AdditiveDecomposition
from binding_lib.readings import Data
from binding_lib.scenes import SceneSet

KINDS = ("concept mean", "single object", "scene", "sum of objects")

_SIDE = 320  # pixels: both ways alike, or turning would stretch the map; it fits a phone
_TILT = 20  # degrees by which the map is seen from above


@dataclass(frozen=True)
class EmbeddingMap:
    """Embeddings laid out in three dimensions.

    Attributes
    ----------
    points : DataFrame
        Columns kind (of `KINDS`), name, x, y, z. A scene and its sum have one name.
    stress : float
        Kruskal's stress-1: 0 if distances in the map are the cosine distances, 0.2 is poor.
    """

    points: pd.DataFrame
    stress: float


def quadruple_map(
    data: Data,
    decomposition: AdditiveDecomposition,
    values: Mapping[str, tuple[str, str]],
    singles: Data | None = None,
    seed: int = 0,
) -> EmbeddingMap:
    """Lay out all that two values of each of two concepts make up.

    These are the means of the scenes that hold each value, the four objects, their twelve ordered
    pairs, and the sums that a decomposition predicts for those (paper, section 3).

    Parameters
    ----------
    data : (SceneSet, ndarray)
        Scenes of two objects with two concepts. Pairs that are not among them are left out; of
        those that stand there several times the mean is taken.
    decomposition : AdditiveDecomposition
        Fitted.
    values : mapping of str to (str, str)
        Two values of each concept.
    singles : (SceneSet, ndarray), optional
        Scenes of one object that hold the four. Without them the vectors of the decomposition
        stand for the single objects.
    seed : int
        Of the layouts that multidimensional scaling starts from.

    Returns
    -------
    EmbeddingMap

    Raises
    ------
    ValueError
        If the scenes are of other sorts, values are not two different ones of each concept, fewer
        than two pairs are among the scenes, or a single object is missing.

    Notes
    -----
    Embeddings are taken from the mean of their own kind (scenes, or scenes of one object), since
    cosine distances would else show little but that mean.
    """
    scenes, embeddings = data
    space = scenes.space
    Z = check_embeddings(embeddings, len(scenes))
    if scenes.n_slots != 2 or space.n_concepts != 2:
        raise ValueError(f"expected scenes of 2 objects with 2 concepts, got {scenes!r}")
    pairs = {tuple(values.get(name, ())) for name in space.names}
    if set(values) != set(space.names) or any(len(set(pair)) != 2 for pair in pairs):
        raise ValueError(f"expected two values of each of {', '.join(space.names)}, got {values!r}")
    Z = Z - decomposition.mean_
    objects = [space.object_id(*v) for v in itertools.product(*(values[n] for n in space.names))]
    rows: list[tuple[str, str, np.ndarray]] = []
    for concept in space.names:
        present = scenes.present(concept)
        for value in values[concept]:
            holds = present[:, space.value_index(concept, value)]
            if not holds.any():
                raise ValueError(f"no scene holds {value!r}; expected some that do")
            rows.append((KINDS[0], value, Z[holds].mean(axis=0)))
    for i, u in zip(objects, _single_vectors(objects, decomposition, singles), strict=True):
        rows.append((KINDS[1], space.object_name(i), u))
    for pair in itertools.permutations(objects, 2):
        same = (scenes.object_ids == pair).all(axis=1)
        if same.any():
            name = ", ".join(space.object_names(pair))
            predicted = decomposition.predict(SceneSet(space, [pair]))[0] - decomposition.mean_
            rows.append((KINDS[2], name, Z[same].mean(axis=0)))
            rows.append((KINDS[3], name, predicted))
    if len(rows) < 8 + 2 * 2:
        raise ValueError(
            f"{len(rows) // 2 - 4} of the 12 pairs of the four objects are among the scenes; "
            "expected at least 2"
        )
    kinds, names, vectors = zip(*rows, strict=True)
    layout, stress = _lay_out(np.stack(vectors), seed)
    points = pd.DataFrame({"kind": kinds, "name": names})
    points[["x", "y", "z"]] = layout
    return EmbeddingMap(points, stress)


def map_chart(drawn: EmbeddingMap, title: str) -> alt.LayerChart:
    """A map that a slider turns about its vertical axis, without Python.

    Parameters
    ----------
    drawn : EmbeddingMap
    title : str

    Returns
    -------
    altair.LayerChart
        Lines join each scene to the sum of its objects; nearer points are larger.
    """
    points = drawn.points.round({"x": 4, "y": 4, "z": 4})
    reach = float(np.linalg.norm(points[["x", "y", "z"]], axis=1).max()) * 1.05
    slider = alt.binding_range(min=0, max=360, step=2, name="turn (degrees) ")
    turn = alt.param(name="turn", value=30, bind=slider)
    base = (
        alt.Chart(points)
        .transform_calculate(
            across="datum.x * cos(turn * PI / 180) - datum.y * sin(turn * PI / 180)",
            depth="datum.x * sin(turn * PI / 180) + datum.y * cos(turn * PI / 180)",
        )
        .transform_calculate(
            up=f"datum.z * cos({_TILT} * PI / 180) + datum.depth * sin({_TILT} * PI / 180)"
        )
    )
    fixed = alt.Scale(domain=[-reach, reach], nice=False)
    where = {
        "x": alt.X("across:Q", axis=None, scale=fixed),
        "y": alt.Y("up:Q", axis=None, scale=fixed),
    }
    kinds = [kind for kind in KINDS if kind in set(points["kind"])]
    joined = f"datum.kind == '{KINDS[2]}' || datum.kind == '{KINDS[3]}'"
    lines = (
        base.transform_filter(joined)
        .mark_line(color=GREY, strokeWidth=1)
        .encode(**where, detail="name:N")
    )
    nearness = alt.Size(
        "depth:Q", scale=alt.Scale(domain=[reach, -reach], range=[30, 130]), legend=None
    )
    marks = base.mark_point(filled=True, opacity=0.9).encode(
        **where,
        size=nearness,
        color=colour("kind", kinds),
        shape=shape("kind", kinds),
        tooltip=["kind", "name"],
    )
    named = f"datum.kind == '{KINDS[0]}' || datum.kind == '{KINDS[1]}'"
    words = (
        base.transform_filter(named)
        .mark_text(color=GREY, fontSize=11, dy=-10)
        .encode(**where, text="name:N")
    )
    counts = points["kind"].value_counts()
    chart = alt.LayerChart(layer=[lines, marks, words]).add_params(turn)
    return finish(
        chart.properties(width=_SIDE, height=_SIDE),
        title,
        f"Map in three dimensions, turned by a slider. {title}. Points: "
        + ", ".join(f"{kind} {counts[kind]}" for kind in kinds)
        + f". A scene is {_gap(drawn.points):.2f} times as far from the sum of its objects as two "
        f"scenes are from each other. Stress {drawn.stress:.3f}.",
        subtitle=f"multidimensional scaling of cosine distances, stress {drawn.stress:.3f}",
    )


def _single_vectors(
    objects: list[int], decomposition: AdditiveDecomposition, singles: Data | None
) -> Float[np.ndarray, "4 d"]:
    if singles is None:
        by_slot = decomposition.object_embeddings_.reshape(
            -1, decomposition.space_.n_objects, len(decomposition.mean_)
        )
        return by_slot[:, objects].mean(axis=0)
    alone, embeddings = singles
    Z = check_embeddings(embeddings, len(alone))
    row_of = {ids[0]: row for row, ids in enumerate(alone.object_ids.tolist())}
    missing = [alone.space.object_name(i) for i in objects if i not in row_of]
    if alone.n_slots != 1 or missing:
        raise ValueError(
            f"singles must be scenes of one object that hold the four; missing {missing}, got "
            f"{alone!r}"
        )
    return (Z - Z.mean(axis=0))[[row_of[i] for i in objects]]


def _lay_out(
    vectors: Float[np.ndarray, "n d"], seed: int
) -> tuple[Float[np.ndarray, "n 3"], float]:
    """Metric multidimensional scaling of cosine distances, and its stress-1."""
    distances = squareform(pdist(vectors, "cosine"))
    layout, _ = smacof(
        distances, metric=True, n_components=3, n_init=8, max_iter=500, eps=1e-9, random_state=seed
    )
    in_map, wanted = pdist(layout), squareform(distances)
    stress = np.sqrt(np.square(in_map - wanted).sum() / np.square(in_map).sum())
    return layout - layout.mean(axis=0), float(stress)


def _gap(points: pd.DataFrame) -> float:
    """Mean distance of a scene to its sum, in mean distances between two scenes."""
    scenes, sums = (
        points[points["kind"] == kind][["x", "y", "z"]].to_numpy() for kind in KINDS[2:]
    )
    return float(np.linalg.norm(scenes - sums, axis=1).mean() / pdist(scenes).mean())
