"""Additive decompositions against plain loops, an explicit least-squares design, and algebra."""

import json
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from binding_lib.concepts import ConceptSpace
from binding_lib.decomposition import ESTIMATORS, LEVELS, AdditiveDecomposition
from binding_lib.scenes import SceneSet, all_scenes, sample_scenes

UNEQUAL = ConceptSpace({"colour": ["red", "blue"], "shape": ["cube", "ball", "cone"]})
THREE = ConceptSpace.grid(3, 2)


def noise(n, d=4, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def dummies(scenes, level):
    """How often each column stands in each scene, by a plain loop."""
    space = scenes.space
    X = np.zeros((len(scenes), space.n_objects if level == "object" else sum(space.sizes)))
    for row, (scene, values) in enumerate(zip(scenes.object_ids, scenes.values, strict=True)):
        for o, indices in zip(scene, values, strict=True):
            if level == "object":
                X[row, o] += 1
            else:
                for k, v in enumerate(indices):
                    X[row, sum(space.sizes[:k]) + v] += 1
    return X


@st.composite
def problems(draw):
    """Scenes of two or three objects, and embeddings with no structure at all."""
    space = draw(
        st.sampled_from([UNEQUAL, THREE, ConceptSpace.grid(2, 3), ConceptSpace.grid(1, 5)])
    )
    m, seed = draw(st.integers(1, 3)), draw(st.integers(0, 2**16))
    rng = np.random.default_rng(seed)
    ids = rng.integers(space.n_objects, size=(draw(st.integers(2, 40)), m))
    scenes = SceneSet(space, ids)
    return scenes, rng.normal(size=(len(scenes), 3)) + 1, draw(st.sampled_from(LEVELS))


# --- the estimators against independent computations


@given(problems())
def test_least_squares_against_an_explicit_design(problem):
    scenes, Z, level = problem
    fitted = AdditiveDecomposition(level, "least-squares").fit(scenes, Z)
    X = np.column_stack([np.ones(len(scenes)), dummies(scenes, level)])
    expected = X @ np.linalg.lstsq(X, Z, rcond=None)[0]
    predicted = fitted.predict(scenes)
    np.testing.assert_allclose(predicted, expected, atol=1e-8)
    np.testing.assert_allclose(predicted.mean(axis=0), fitted.mean_, atol=1e-10)
    r2 = 1 - np.sum((Z - expected) ** 2) / np.sum((Z - Z.mean(axis=0)) ** 2)
    assert fitted.score(scenes, Z) == pytest.approx(r2, abs=1e-9)


@given(problems())
def test_avg_against_a_loop(problem):
    scenes, Z, level = problem
    fitted = AdditiveDecomposition(level, "avg").fit(scenes, Z)
    vectors = fitted.object_embeddings_ if level == "object" else fitted.concept_embeddings_
    centred = Z - Z.mean(axis=0)
    for column, times in enumerate(dummies(scenes, level).astype(int).T):
        if times.any():
            rows = [z for z, t in zip(centred, times, strict=True) for _ in range(t)]
            np.testing.assert_allclose(vectors[column], np.mean(rows, axis=0), atol=1e-12)
        else:
            assert np.isnan(vectors[column]).all()


@given(problems())
def test_avg_pos_is_avg_of_each_slot(problem):
    scenes, Z, level = problem
    fitted = AdditiveDecomposition(level, "avg+pos").fit(scenes, Z)
    vectors = fitted.object_embeddings_ if level == "object" else fitted.concept_embeddings_
    assert len(vectors) == scenes.n_slots
    expected = np.tile(Z.mean(axis=0), (len(scenes), 1))
    for slot in range(scenes.n_slots):
        inside = dummies(SceneSet(scenes.space, scenes.object_ids[:, [slot]]), level) == 1
        for column, rows in enumerate(inside.T):
            if rows.any():
                mean = (Z - Z.mean(axis=0))[rows].mean(axis=0)
                np.testing.assert_allclose(vectors[slot, column], mean, atol=1e-12)
                expected[rows] += mean
            else:
                assert np.isnan(vectors[slot, column]).all()
    np.testing.assert_allclose(fitted.predict(scenes), expected, atol=1e-10)


@pytest.mark.parametrize("level", LEVELS)
def test_single_obj_against_a_loop(level):
    scenes, alone = sample_scenes(UNEQUAL, 30, 3), all_scenes(UNEQUAL, 1)
    Z, A = noise(30), noise(6, seed=1)
    fitted = AdditiveDecomposition(level, "single-obj").fit(scenes, Z, singles=(alone, A))
    centred = A - A.mean(axis=0)
    if level == "object":
        u = centred
    else:  # rows of A: red cube, red ball, red cone, blue cube, ...
        v = np.array(
            [
                centred[:3].mean(0),
                centred[3:].mean(0),
                *(centred[[i, i + 3]].mean(0) for i in range(3)),
            ]
        )
        np.testing.assert_allclose(fitted.concept_embeddings_, v)
        u = np.array([v[o // 3] + v[2 + o % 3] for o in range(6)])
    np.testing.assert_allclose(fitted.object_embeddings_, u)
    expected = [Z.mean(axis=0) + u[list(s)].sum(axis=0) for s in scenes.object_ids]
    np.testing.assert_allclose(fitted.predict(scenes), expected)


def test_concept_vectors_and_object_vectors_belong_together():
    scenes = sample_scenes(UNEQUAL, 40)
    for estimator in ("avg", "least-squares"):
        two = AdditiveDecomposition("concept", estimator).fit(scenes, noise(40))
        v = two.concept_embeddings_
        sums = [v[o // 3] + v[2 + o % 3] for o in range(6)]
        np.testing.assert_allclose(two.object_embeddings_, sums)
        one = AdditiveDecomposition("object", estimator).fit(scenes, noise(40))
        u = one.object_embeddings_
        means = [u[:3].mean(0), u[3:].mean(0), *(u[[i, i + 3]].mean(0) for i in range(3))]
        np.testing.assert_allclose(one.concept_embeddings_, means)


# --- exactly additive embeddings


@given(
    st.integers(0, 2**16), st.sampled_from(LEVELS), st.sampled_from(ESTIMATORS), st.integers(1, 3)
)
def test_exact_recovery_from_all_scenes(seed, level, estimator, m):
    rng = np.random.default_rng(seed)
    v = rng.normal(size=(5, 4))
    u = v[[0, 0, 0, 1, 1, 1]] + v[[2, 3, 4] * 2] if level == "concept" else rng.normal(size=(6, 4))
    shift = rng.normal(size=4)
    scenes, alone = all_scenes(UNEQUAL, m), all_scenes(UNEQUAL, 1)
    Z = shift + u[scenes.object_ids].sum(axis=1)
    singles = (alone, 7 + u) if estimator == "single-obj" else None
    fitted = AdditiveDecomposition(level, estimator).fit(scenes, Z, singles=singles)
    np.testing.assert_allclose(fitted.predict(scenes), Z, atol=1e-10)
    centred = np.broadcast_to(u - u.mean(axis=0), fitted.object_embeddings_.shape)
    np.testing.assert_allclose(fitted.object_embeddings_, centred, atol=1e-10)
    assert fitted.score(scenes, Z) == pytest.approx(1, abs=1e-12)
    if level == "concept":
        assert fitted.concept_share() == pytest.approx(1, abs=1e-12)


@given(st.integers(0, 2**16))
def test_least_squares_needs_few_scenes(seed):
    rng = np.random.default_rng(seed)
    space = ConceptSpace.grid(2, 5)
    u = rng.normal(size=(25, 6))
    scenes = SceneSet(space, np.stack([np.arange(25), (np.arange(25) + 1) % 25], axis=1))
    other = sample_scenes(space, 50, seed=seed)
    Z = 3 + u[scenes.object_ids].sum(axis=1)
    fitted = AdditiveDecomposition("object", "least-squares").fit(scenes, Z)
    np.testing.assert_allclose(
        fitted.predict(other), 3 + u[other.object_ids].sum(axis=1), atol=1e-8
    )


# --- what must not change the answer


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_translation_rotation_and_order_of_scenes(level, estimator):
    scenes, alone, Z = sample_scenes(UNEQUAL, 60), all_scenes(UNEQUAL, 1), noise(60)
    A = noise(6, seed=1)
    rotation = np.linalg.qr(noise(4, seed=2))[0]
    order = np.random.default_rng(3).permutation(60)

    def predict(scenes, Z, A):
        singles = (alone, A) if estimator == "single-obj" else None
        return (
            AdditiveDecomposition(level, estimator).fit(scenes, Z, singles=singles).predict(scenes)
        )

    plain = predict(scenes, Z, A)
    np.testing.assert_allclose(predict(scenes, Z + 5, A - 2), plain + 5, atol=1e-10)
    np.testing.assert_allclose(
        predict(scenes, Z @ rotation, A @ rotation), plain @ rotation, atol=1e-10
    )
    np.testing.assert_allclose(predict(scenes[order], Z[order], A), plain[order], atol=1e-10)
    swapped = predict(SceneSet(UNEQUAL, scenes.object_ids[:, ::-1]), Z, A)
    # The slots carry names for "avg+pos", but they may be renamed together.
    np.testing.assert_allclose(swapped, plain, atol=1e-10)


def test_only_avg_pos_minds_the_slot():
    scenes, Z = sample_scenes(UNEQUAL, 60), noise(60)
    half = np.arange(60) < 30
    mixed = SceneSet(
        UNEQUAL, np.where(half[:, None], scenes.object_ids, scenes.object_ids[:, ::-1])
    )
    for estimator in ("avg", "least-squares", "avg+pos"):
        one = AdditiveDecomposition(estimator=estimator).fit(scenes, Z).predict(scenes)
        two = AdditiveDecomposition(estimator=estimator).fit(mixed, Z).predict(mixed)
        assert np.allclose(one, two) == (estimator != "avg+pos")


@pytest.mark.parametrize("estimator", ["avg", "avg+pos", "least-squares"])
def test_float32_gives_what_float64_gives(estimator):
    scenes = sample_scenes(UNEQUAL, 500)
    Z = (noise(500) + 100).astype(np.float32)
    single = AdditiveDecomposition(estimator=estimator).fit(scenes, Z)
    double = AdditiveDecomposition(estimator=estimator).fit(scenes, Z.astype(np.float64))
    assert single.predict(scenes).dtype == np.float64
    np.testing.assert_allclose(single.predict(scenes), double.predict(scenes), rtol=1e-12)
    assert single.score(scenes, Z) == pytest.approx(double.score(scenes, Z), abs=1e-9)


def test_results_do_not_depend_on_how_scenes_are_cut(monkeypatch):
    scenes, Z = sample_scenes(UNEQUAL, 50), noise(50)
    whole = AdditiveDecomposition().fit(scenes, Z)
    monkeypatch.setattr("binding_lib.decomposition._ROWS", 7)
    cut = AdditiveDecomposition().fit(scenes, Z)
    np.testing.assert_allclose(cut.object_embeddings_, whole.object_embeddings_)
    assert cut.score(scenes, Z) == pytest.approx(whole.score(scenes, Z))


def test_fit_leaves_the_callers_embeddings_alone():
    scenes, Z = sample_scenes(UNEQUAL, 50), noise(50)
    before = Z.copy()
    AdditiveDecomposition(estimator="least-squares").fit(scenes, Z).predict(scenes)[:] = 0
    np.testing.assert_array_equal(Z, before)


# --- how much of Level I is Level II


def test_concept_share_against_an_explicit_regression():
    scenes = all_scenes(UNEQUAL)
    u = noise(6)
    Z = u[scenes.object_ids].sum(axis=1)
    X = np.column_stack([np.ones(6), dummies(all_scenes(UNEQUAL, 1), "concept")])
    rest = u - X @ np.linalg.lstsq(X, u, rcond=None)[0]
    expected = 1 - np.sum(rest**2) / np.sum((u - u.mean(axis=0)) ** 2)
    for estimator in ("avg", "avg+pos", "least-squares"):
        share = AdditiveDecomposition(estimator=estimator).fit(scenes, Z).concept_share()
        assert share == pytest.approx(expected, abs=1e-10)


def test_concept_share_is_one_for_exact_sums_of_which_some_were_not_seen():
    v = noise(5)
    u = v[[0, 0, 0, 1, 1, 1]] + v[[2, 3, 4] * 2]
    seen = [0, 1, 3, 5]  # an unbalanced half of the grid
    scenes = SceneSet(UNEQUAL, [[a, b] for a in seen for b in seen])
    for estimator in ("avg", "avg+pos", "least-squares"):
        fitted = AdditiveDecomposition(estimator=estimator).fit(scenes, u[scenes.object_ids].sum(1))
        assert np.isnan(fitted.object_embeddings_[..., 2, :]).all()
        assert fitted.concept_share() == pytest.approx(1, abs=1e-10)


# --- what fit never saw


def test_unseen_objects_are_named():
    fitted = AdditiveDecomposition().fit(SceneSet(UNEQUAL, [[0, 1], [1, 3]]), noise(2))
    scenes = SceneSet(UNEQUAL, [[0, 1], [2, 1], [3, 5]])
    np.testing.assert_array_equal(fitted.can_predict(scenes), [True, False, False])
    with pytest.raises(
        ValueError, match=r"never saw 'red cone', 'blue cone'; expected scenes made"
    ):
        fitted.predict(scenes)
    with pytest.raises(ValueError, match="'red cone'"):
        fitted.score(scenes, noise(3))


def test_unseen_values_are_named():
    fitted = AdditiveDecomposition("concept").fit(SceneSet(UNEQUAL, [[0, 1], [1, 3]]), noise(2))
    fitted.predict(SceneSet(UNEQUAL, [[4, 0]]))  # a blue ball is new, blue and ball are not
    with pytest.raises(ValueError, match=r"never saw 'cone'; expected"):
        fitted.predict(SceneSet(UNEQUAL, [[2, 0], [5, 2]]))


@pytest.mark.parametrize(("level", "name"), [("object", "red cube"), ("concept", "cube")])
def test_avg_pos_says_which_slot(level, name):
    fitted = AdditiveDecomposition(level, "avg+pos").fit(
        SceneSet(UNEQUAL, [[0, 1], [3, 4]]), noise(2)
    )
    with pytest.raises(ValueError, match=f"never saw '{name}' in slot 2; expected"):
        fitted.predict(SceneSet(UNEQUAL, [[0, 0]]))


def test_many_unseen_objects_are_counted():
    fitted = AdditiveDecomposition().fit(SceneSet(THREE, [[0, 0], [1, 0]]), noise(2))
    with pytest.raises(ValueError, match=r"'a1 b0 c0', 'a1 b0 c1', 'a1 b1 c0' and 1 more;"):
        fitted.predict(all_scenes(THREE))


# --- singles


def test_single_obj_needs_singles():
    scenes, alone = sample_scenes(UNEQUAL, 5), all_scenes(UNEQUAL, 1)
    new = AdditiveDecomposition(estimator="single-obj")
    with pytest.raises(ValueError, match=r"needs scenes of one object.*got scenes of 2"):
        new.fit(scenes, noise(5))
    with pytest.raises(ValueError, match="got scenes of 2"):
        new.fit(scenes, noise(5), singles=(scenes, noise(5)))
    with pytest.raises(ValueError, match="singles of ConceptSpace"):
        new.fit(scenes, noise(5), singles=(all_scenes(THREE, 1), noise(8)))
    with pytest.raises(ValueError, match="have 4 dimensions, singles 3"):
        new.fit(scenes, noise(5), singles=(alone, noise(6, 3)))
    with pytest.raises(ValueError, match="got 5 embeddings for 6 scenes"):
        new.fit(scenes, noise(5), singles=(alone, noise(5)))
    with pytest.raises(ValueError, match="singles are for estimator 'single-obj', got 'avg'"):
        AdditiveDecomposition().fit(scenes, noise(5), singles=(alone, noise(6)))


def test_scenes_of_one_object_serve_as_both():
    alone, A = all_scenes(UNEQUAL, 1), noise(6)
    fitted = AdditiveDecomposition(estimator="single-obj").fit(alone, A)
    np.testing.assert_allclose(fitted.predict(alone), A)


# --- errors


def test_a_refit_that_fails_leaves_the_fit_before_it():
    scenes, alone, Z = sample_scenes(UNEQUAL, 40), all_scenes(UNEQUAL, 1), noise(40)
    fitted = AdditiveDecomposition(estimator="single-obj").fit(scenes, Z, singles=(alone, noise(6)))
    before = fitted.predict(scenes)
    with pytest.raises(ValueError, match="needs scenes of one object"):
        fitted.fit(sample_scenes(THREE, 5), noise(5) + 9)
    np.testing.assert_array_equal(fitted.predict(scenes), before)


def test_choices():
    with pytest.raises(ValueError, match=r"unknown level 'objects'.*Did you mean 'object'"):
        AdditiveDecomposition("objects")
    with pytest.raises(ValueError, match=r"unknown estimator 'avg-pos'.*Did you mean 'avg\+pos'"):
        AdditiveDecomposition(estimator="avg-pos")


@pytest.mark.parametrize("call", ["predict", "can_predict", "score", "concept_share"])
def test_not_fitted(call):
    scenes = sample_scenes(UNEQUAL, 3)
    arguments = {"score": (scenes, noise(3)), "concept_share": ()}.get(call, (scenes,))
    with pytest.raises(ValueError, match="not fitted yet; call fit"):
        getattr(AdditiveDecomposition(), call)(*arguments)


def test_what_does_not_match():
    scenes, Z = sample_scenes(UNEQUAL, 40), noise(40)
    with pytest.raises(ValueError, match="got 39 embeddings for 40 scenes"):
        AdditiveDecomposition().fit(scenes, Z[1:])
    with pytest.raises(ValueError, match="must be finite; 1 of 40"):
        AdditiveDecomposition().fit(scenes, np.where(np.arange(40)[:, None] == 7, np.nan, Z))
    with pytest.raises(ValueError, match="got no embeddings"):
        AdditiveDecomposition().fit(scenes[:0], Z[:0])
    fitted = AdditiveDecomposition(estimator="avg+pos").fit(scenes, Z)
    with pytest.raises(ValueError, match="fitted on 4 dimensions, got 1"):
        fitted.score(scenes, Z[:, :1])  # numpy would broadcast it
    with pytest.raises(ValueError, match="fitted on scenes of 2 slots, got 3"):
        fitted.predict(sample_scenes(UNEQUAL, 3, 3))
    with pytest.raises(ValueError, match="got scenes of ConceptSpace"):
        fitted.predict(sample_scenes(THREE, 3))
    assert fitted.predict(scenes[:0]).shape == (0, 4)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_r2_of_constant_embeddings_is_refused(dtype):
    scenes = sample_scenes(UNEQUAL, 30)
    Z = np.full((30, 4), 0.1, dtype=dtype)  # a mean of tenths is a tenth but for rounding
    fitted = AdditiveDecomposition().fit(scenes, Z)
    np.testing.assert_allclose(fitted.predict(scenes), Z, rtol=1e-6)
    with pytest.raises(ValueError, match="at least two embeddings that differ, got 30 alike"):
        fitted.score(scenes, Z)


# --- the full text set


FULL_SET = """
import json, resource, sys, time
import numpy as np
from binding_lib import AdditiveDecomposition, all_scenes, text_space

def peak():
    unit = 1 if sys.platform == "darwin" else 1024  # bytes on macOS, KiB on Linux
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit

scenes = all_scenes(text_space())
rng = np.random.default_rng(0)
u = rng.standard_normal((400, 512), dtype=np.float32)
Z = rng.standard_normal((len(scenes), 512), dtype=np.float32)
for slot in range(2):
    for start in range(0, len(Z), 1000):
        Z[start:start + 1000] += u[scenes.object_ids[start:start + 1000, slot]]
report = {"shape": Z.shape, "start": peak()}
began = time.perf_counter()
fitted = AdditiveDecomposition(estimator=sys.argv[1]).fit(scenes, Z)
report |= {"fit": peak(), "fit_seconds": time.perf_counter() - began}
began = time.perf_counter()
report["r2"] = fitted.score(scenes, Z)
report |= {"score": peak(), "score_seconds": time.perf_counter() - began}
print(json.dumps(report))
"""


@pytest.mark.slow
@pytest.mark.parametrize("estimator", ["avg", "avg+pos", "least-squares"])
def test_time_and_memory_of_the_full_text_set(estimator):
    done = subprocess.run(
        [sys.executable, "-c", FULL_SET, estimator], capture_output=True, text=True, check=True
    )
    report = json.loads(done.stdout)
    print(report)
    assert report["shape"] == [160_000, 512]
    assert report["score"] < 3e9
    # Seconds on one idle core; the limit leaves room for a busy machine.
    assert report["fit_seconds"] < 60
    assert report["r2"] == pytest.approx(2 / 3, abs=0.01)
