"""Linear probes against scikit-learn, and what must not change their answers."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from binding_lib.concepts import ConceptSpace
from binding_lib.probes import LinearProbe, control_scenes, selectivity
from binding_lib.readings import read_probes
from binding_lib.scenes import SceneSet, all_scenes, sample_scenes

SPACE = ConceptSpace({"colour": ["red", "blue", "green"], "shape": ["cube", "ball"]})


def embed(scenes, d=8, spread=1.0, seed=0):
    """Sums of random object vectors, with noise."""
    rng = np.random.default_rng(seed)
    u = rng.normal(size=(scenes.space.n_objects, d))
    Z = u[scenes.object_ids].sum(axis=1) + spread * rng.normal(size=(len(scenes), d))
    return Z @ rng.normal(size=(d, d)) + 3


def probabilities(probe, Z):
    logits = probe.scores(Z)
    exp = np.exp(logits - logits.max(axis=1, keepdims=True))
    return exp / exp.sum(axis=1, keepdims=True)


# --- against scikit-learn


@pytest.mark.parametrize("target", ["object", "colour"])
@pytest.mark.parametrize("m", [1, 2])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_against_logistic_regression(target, m, dtype):
    scenes, l2 = sample_scenes(SPACE, 300, m), 0.01
    Z = embed(scenes).astype(dtype)
    ours = probabilities(LinearProbe(target, l2, max_iter=200).fit(scenes, Z), Z)
    # The same task for scikit-learn: a row for each thing that a scene holds, weighted by its
    # share, on inputs whitened through a singular value decomposition.
    centred = Z - Z.mean(axis=0, dtype=np.float64)
    white = np.linalg.svd(centred, full_matrices=False)[0] * np.sqrt(len(Z))
    rows, labels = np.nonzero(scenes.present(target))
    weights = 1 / scenes.present(target).sum(axis=1)[rows]
    theirs = LogisticRegression(C=1 / (l2 * len(Z)), tol=1e-8, max_iter=2000)
    theirs.fit(white[rows], labels, sample_weight=weights)
    np.testing.assert_allclose(ours, theirs.predict_proba(white), atol=2e-3)


# --- what must not change the answer


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_invertible_maps_of_the_embedding(dtype):
    scenes = sample_scenes(SPACE, 400)
    Z = embed(scenes)
    rng = np.random.default_rng(5)
    warp = np.linalg.qr(rng.normal(size=(8, 8)))[0] * np.logspace(-1, 1, 8)
    moved = (Z @ warp + 10).astype(dtype)
    one = LinearProbe("object", l2=0.01).fit(scenes, Z.astype(dtype))
    two = LinearProbe("object", l2=0.01).fit(scenes, moved)
    np.testing.assert_allclose(probabilities(one, Z), probabilities(two, moved), atol=5e-3)


def test_an_offset_far_from_zero():
    scenes = sample_scenes(SPACE, 300)
    Z = embed(scenes)
    near = LinearProbe("object", l2=0.01).fit(scenes, Z)
    far = LinearProbe("object", l2=0.01).fit(scenes, Z + 1e6)
    np.testing.assert_allclose(probabilities(near, Z), probabilities(far, Z + 1e6), atol=5e-3)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rank_deficient_embeddings(dtype):
    scenes = sample_scenes(SPACE, 300)
    Z = embed(scenes)
    repeated = np.concatenate([Z, Z @ np.ones((8, 4)), np.full((300, 2), 0.3)], axis=1)
    one = LinearProbe("object", l2=0.01).fit(scenes, Z.astype(dtype))
    two = LinearProbe("object", l2=0.01).fit(scenes, repeated.astype(dtype))
    np.testing.assert_allclose(
        probabilities(one, Z), probabilities(two, repeated.astype(dtype)), atol=5e-3
    )
    assert np.abs(two.coef_).max() < 100


def test_rounding_far_from_zero_is_not_read_as_a_signal():
    scenes = sample_scenes(SPACE, 300)
    Z = 0.02 * embed(scenes) + 1000
    repeated = np.concatenate([Z, Z @ np.full((8, 20), 1 / 8)], axis=1).astype(np.float32)
    one = LinearProbe("object", l2=0.01).fit(scenes, Z)
    two = LinearProbe("object", l2=0.01).fit(scenes, repeated)
    np.testing.assert_allclose(probabilities(one, Z), probabilities(two, repeated), atol=1e-2)


def test_fewer_scenes_than_dimensions():
    scenes = sample_scenes(SPACE, 6, 1, ids=[0, 1, 4])
    Z = np.random.default_rng(0).normal(size=(6, 40))
    probe = LinearProbe("object").fit(scenes, Z)
    assert probe.score(scenes, Z) == 1
    assert probe.scores(Z).shape == (6, 6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("value", [0.0, 0.1, -1e4])
def test_constant_embeddings_give_the_base_rates(dtype, value):
    scenes = SceneSet(SPACE, [[0, 1]] * 30 + [[2, 3]] * 10)
    Z = np.full((40, 5), value, dtype=dtype)
    probe = LinearProbe("object").fit(scenes, Z)
    np.testing.assert_array_equal(probe.coef_, 0)
    expected = [0.375, 0.375, 0.125, 0.125, 0, 0]
    np.testing.assert_allclose(probabilities(probe, Z[:1])[0], expected, atol=2e-3)


def test_one_scene():
    scenes = SceneSet(SPACE, [[0, 3]])
    Z = np.random.default_rng(0).normal(size=(1, 4))
    assert LinearProbe("object").fit(scenes, Z).score(scenes, Z) == 1


def test_concepts_of_one_value_are_always_recognised():
    space = ConceptSpace({"colour": ["red"], "shape": ["cube", "ball"]})
    scenes = sample_scenes(space, 20)
    Z = np.random.default_rng(0).normal(size=(20, 3))
    assert LinearProbe("colour").fit(scenes, Z).score(scenes, Z) == 1


def test_the_same_scenes_give_the_same_probe():
    scenes = sample_scenes(SPACE, 100)
    one, two = (LinearProbe("shape").fit(scenes, embed(scenes)) for _ in range(2))
    np.testing.assert_array_equal(one.coef_, two.coef_)


def test_score_is_strict_recognition():
    scenes = sample_scenes(SPACE, 200)
    Z = embed(scenes)
    probe = LinearProbe("object").fit(scenes, Z)
    scores = Z @ probe.coef_ + probe.intercept_
    right = [
        set(np.argsort(-s)[: len(set(ids))]) == set(ids.tolist())
        for s, ids in zip(scores, scenes.object_ids, strict=True)
    ]
    assert probe.score(scenes, Z) == pytest.approx(np.mean(right))


# --- the control task


def test_the_control_task_renames_objects_alike_everywhere():
    scenes = all_scenes(SPACE)
    control = control_scenes(scenes, seed=3)
    renamed = dict(zip(scenes.object_ids.ravel(), control.object_ids.ravel(), strict=True))
    assert sorted(renamed.values()) == list(range(6))
    assert [
        [renamed[o] for o in scene] for scene in scenes.object_ids
    ] == control.object_ids.tolist()
    assert control == control_scenes(scenes, seed=3)
    assert control != control_scenes(scenes, seed=4)


def test_selectivity_tells_reading_from_learning_by_heart():
    space = ConceptSpace.grid(2, 8)
    rng = np.random.default_rng(0)
    scenes = sample_scenes(space, 1500, 1)
    train, test = slice(0, 1200), slice(1200, None)
    concept_only = rng.normal(size=(8, 16))[scenes.values[:, 0, 0]]
    by_heart = rng.normal(size=(64, 128))[scenes.object_ids[:, 0]]
    values = {}
    for name, Z in {"concept": concept_only, "object": by_heart}.items():
        Z = Z + 0.01 * rng.normal(size=Z.shape)
        data = (scenes[train], Z[train]), (scenes[test], Z[test])
        values[name] = selectivity(LinearProbe("a").fit(*data[0]), *data)
    assert values["concept"] > 0.5
    assert abs(values["object"]) < 0.05


# --- errors


@pytest.mark.parametrize("l2", [-1, np.nan, np.inf, "1"])
def test_wrong_l2(l2):
    with pytest.raises(ValueError, match="l2 must be a number of at least 0, got"):
        LinearProbe(l2=l2)


@pytest.mark.parametrize("max_iter", [0, 1.5, True])
def test_wrong_max_iter(max_iter):
    with pytest.raises(ValueError, match="max_iter must be an integer of at least 1, got"):
        LinearProbe(max_iter=max_iter)


def test_what_does_not_match():
    scenes = sample_scenes(SPACE, 20)
    Z = embed(scenes)
    with pytest.raises(ValueError, match=r"unknown concept 'color'.*Did you mean 'colour'"):
        LinearProbe("color").fit(scenes, Z)
    with pytest.raises(ValueError, match="not fitted yet"):
        LinearProbe().scores(Z)
    with pytest.raises(ValueError, match="not fitted yet"):
        LinearProbe().score(scenes, Z)
    with pytest.raises(ValueError, match="got 19 embeddings for 20 scenes"):
        LinearProbe().fit(scenes, Z[1:])
    probe = LinearProbe().fit(scenes, Z)
    with pytest.raises(ValueError, match="got 19 embeddings for 20 scenes"):
        probe.score(scenes, Z[1:])
    with pytest.raises(ValueError, match="fitted on 8 dimensions, got 7"):
        probe.scores(Z[:, 1:])
    with pytest.raises(ValueError, match="must be finite"):
        probe.scores(np.full((2, 8), np.inf))
    with pytest.raises(ValueError, match=r"fitted on ConceptSpace.*got scenes of ConceptSpace"):
        probe.score(sample_scenes(ConceptSpace.grid(1, 6), 20), Z)
    with pytest.raises(ValueError, match=r"fitted on ConceptSpace.*got scenes of ConceptSpace"):
        read_probes((sample_scenes(ConceptSpace.grid(1, 6), 20), Z), [probe])
    with pytest.raises(ValueError, match="needs a probe for a concept, got target 'object'"):
        selectivity(probe, (scenes, Z), (scenes, Z))
