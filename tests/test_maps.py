"""Maps: distances that are kept, points that are what they say, and a chart that turns."""

import json

import altair as alt
import numpy as np
import pytest
from scipy.spatial.distance import pdist

from binding_lib import AdditiveDecomposition, ConceptSpace, SceneSet, all_scenes
from binding_lib.chart_style import COLOURS, SHAPES
from binding_lib.maps import KINDS, map_chart, quadruple_map

SPACE = ConceptSpace({"colour": ["red", "blue", "gray"], "shape": ["cube", "ball", "cone"]})
VALUES = {"colour": ("red", "gray"), "shape": ("cube", "ball")}
SCENES, ALONE = all_scenes(SPACE), all_scenes(SPACE, 1)


def embeddings(d, noise=0.0, seed=0):
    """Additive, in d dimensions; the scenes and the single objects."""
    rng = np.random.default_rng(seed)
    u = rng.normal(size=(9, d))
    Z = 5 + u[SCENES.object_ids].sum(axis=1)
    return Z + noise * rng.normal(size=Z.shape), u[ALONE.object_ids[:, 0]] - 2


@pytest.fixture(scope="module")
def drawn():
    Z, alone = embeddings(20, noise=0.3)
    fitted = AdditiveDecomposition().fit(SCENES, Z)
    return quadruple_map((SCENES, Z), fitted, VALUES, (ALONE, alone))


def test_the_points_are_all_there(drawn):
    counts = drawn.points["kind"].value_counts()
    assert dict(counts) == dict(zip(KINDS, (4, 4, 12, 12), strict=True))
    of = drawn.points.groupby("kind")["name"].agg(list)
    assert of["concept mean"] == ["red", "gray", "cube", "ball"]
    assert of["single object"] == ["red cube", "red ball", "gray cube", "gray ball"]
    assert of["scene"] == of["sum of objects"]
    assert "gray ball, red cube" in of["scene"]


def test_a_sum_lies_beside_its_scene(drawn):
    """Where embeddings are additive, and on it where they are exactly so."""
    Z, alone = embeddings(20)
    exact = quadruple_map(
        (SCENES, Z), AdditiveDecomposition().fit(SCENES, Z), VALUES, (ALONE, alone)
    )
    for one, most in [(drawn, 0.5), (exact, 0.02)]:
        scenes, sums = (
            one.points[one.points["kind"] == kind][["x", "y", "z"]].to_numpy()
            for kind in ("scene", "sum of objects")
        )
        gap = np.linalg.norm(scenes - sums, axis=1).mean() / pdist(scenes).mean()
        assert 0 <= gap < most
    # Without scenes of one object the vectors of the decomposition stand for them: the same here.
    fitted = AdditiveDecomposition().fit(SCENES, Z)
    np.testing.assert_allclose(
        quadruple_map((SCENES, Z), fitted, VALUES).stress, exact.stress, atol=0.02
    )


def test_stress_is_that_of_the_map():
    """What fits three dimensions has less stress than what does not, and seeds repeat."""
    stress = {}
    for d in (2, 20):
        Z, alone = embeddings(d)
        fitted = AdditiveDecomposition().fit(SCENES, Z)
        one = quadruple_map((SCENES, Z), fitted, VALUES, (ALONE, alone))
        again = quadruple_map((SCENES, Z), fitted, VALUES, (ALONE, alone))
        assert one.points.equals(again.points)
        stress[d] = one.stress
    assert 0 < stress[2] < stress[20] < 0.4


def test_pairs_that_are_missing_are_left_out():
    Z, _ = embeddings(5)
    fitted = AdditiveDecomposition("object", "avg+pos").fit(SCENES, Z)
    kept = (SCENES.object_ids != [0, 1]).any(axis=1)
    twice = np.concatenate([np.flatnonzero(kept), np.flatnonzero(kept)])
    points = quadruple_map((SCENES[twice], Z[twice]), fitted, VALUES).points
    assert (points["kind"] == "scene").sum() == 11
    assert "red cube, red ball" not in set(points["name"])


def test_what_cannot_be_mapped():
    Z, alone = embeddings(5)
    fitted = AdditiveDecomposition().fit(SCENES, Z)
    with pytest.raises(ValueError, match="expected scenes of 2 objects with 2 concepts"):
        quadruple_map((ALONE, alone), fitted, VALUES)
    for values in (
        {"colour": ("red", "gray")},
        {"colour": ("red", "red"), "shape": ("cube", "ball")},
        {"colour": ("red", "gray", "blue"), "shape": ("cube", "ball")},
        {"color": ("red", "gray"), "shape": ("cube", "ball")},
    ):
        with pytest.raises(ValueError, match="expected two values of each of colour, shape"):
            quadruple_map((SCENES, Z), fitted, values)
    with pytest.raises(ValueError, match="Did you mean 'ball'"):
        quadruple_map((SCENES, Z), fitted, {**VALUES, "shape": ("cube", "bal")})
    with pytest.raises(ValueError, match=r"missing \['gray cube', 'gray ball'\]"):
        quadruple_map((SCENES, Z), fitted, VALUES, (ALONE[:5], alone[:5]))
    few = SceneSet(SPACE, [[0, 1], [6, 5]])
    with pytest.raises(ValueError, match="1 of the 12 pairs"):
        quadruple_map((few, Z[:2]), fitted, VALUES)
    with pytest.raises(ValueError, match="no scene holds 'gray'"):
        quadruple_map((few[:1], Z[:1]), fitted, VALUES)


def test_the_chart_s_look(drawn):
    spec = map_chart(drawn, "Red and gray, cube and ball").to_dict()
    assert alt.Chart.from_dict(spec).to_dict()  # valid by the schema of Vega-Lite
    assert spec["config"]["background"] == "transparent"
    assert "http" not in json.dumps({k: v for k, v in spec.items() if k != "$schema"})
    assert len(json.dumps(spec)) < 30_000
    assert f"Stress {drawn.stress:.3f}" in spec["description"]
    assert f"stress {drawn.stress:.3f}" in spec["title"]["subtitle"]
    assert "scene 12" in spec["description"]
    marks = spec["layer"][1]["encoding"]
    assert marks["color"]["legend"] == marks["shape"]["legend"]
    assert marks["color"]["scale"] == {"domain": list(KINDS), "range": list(COLOURS[:4])}
    assert marks["shape"]["scale"]["range"] == list(SHAPES[:4])
    assert spec["width"] == spec["height"]


def test_the_slider_turns_the_map_rigidly(drawn):
    """Vega's formulas, worked out here: half a turn mirrors, a whole one comes back."""
    spec = map_chart(drawn, "A map").to_dict()
    (turn,) = spec["params"]
    assert turn["bind"] == {
        "input": "range", "min": 0, "max": 360, "step": 2, "name": "turn (degrees) ",
    }  # fmt: skip
    steps = [t for t in spec["layer"][1]["transform"] if "calculate" in t]
    points = drawn.points
    names = {"cos": np.cos, "sin": np.sin, "PI": np.pi}

    def view(degrees):
        datum = type("Datum", (), {c: points[c].to_numpy() for c in "xyz"})()
        for step in steps:
            setattr(
                datum,
                step["as"],
                eval(step["calculate"], {**names, "turn": degrees, "datum": datum}),
            )
        return datum

    start, half, quarter, whole = (view(degrees) for degrees in (0, 180, 90, 360))
    np.testing.assert_allclose(start.across, points["x"])
    np.testing.assert_allclose(half.across, -points["x"])
    np.testing.assert_allclose(quarter.across, -points["y"])
    np.testing.assert_allclose(whole.up, start.up)
    # Across, up and what is left of depth keep every distance from the centre.
    for one in (start, half, quarter):
        away = np.square(one.across) + np.square(one.depth) + np.square(points["z"])
        np.testing.assert_allclose(away, np.square(points[["x", "y", "z"]]).sum(axis=1))
    # All views fit into the frame.
    (low, high) = spec["layer"][1]["encoding"]["x"]["scale"]["domain"]
    for degrees in range(0, 360, 10):
        seen = view(degrees)
        assert np.abs([seen.across, seen.up]).max() < high == -low
