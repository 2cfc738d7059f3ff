"""The tables that chapters print: one row a number, made as their parts say."""

import warnings

import numpy as np
import pytest

from binding_lib.concepts import ConceptSpace
from binding_lib.decomposition import AdditiveDecomposition
from binding_lib.encoders.base import ModelEncoder
from binding_lib.explorers import decomposition_explorer
from binding_lib.probes import LinearProbe
from binding_lib.readings import (
    decompose_captions,
    decompose_images,
    decomposition_table,
    read_decomposition,
    read_probes,
    scene_count_curve,
)
from binding_lib.recognition import recognised, retrieval_accuracy
from binding_lib.scenes import SceneSet, all_scenes, sample_scenes
from binding_lib.views.captions import text_space
from binding_lib.views.images import render_images

SPACE = ConceptSpace.grid(2, 4)
NUMBERS = ["reading", "value", "low", "high", "n_scenes"]


def embed(scenes, seed=0):
    u = np.random.default_rng(0).normal(size=(scenes.space.n_objects, 12))
    noise = np.random.default_rng(seed + 1).normal(size=(len(scenes), 12))
    return (u[scenes.object_ids].sum(axis=1) + 0.4 * noise).astype(np.float32)


def data(n, m=2, seed=0):
    scenes = sample_scenes(SPACE, n, m, seed=seed)
    return scenes, embed(scenes, seed)


SINGLES = (all_scenes(SPACE, 1), embed(all_scenes(SPACE, 1)))
TRAIN, TEST = data(300), data(60, seed=1)
PROBES = [LinearProbe(t).fit(*TRAIN) for t in ("object", "a")]


class HashEncoder(ModelEncoder):
    """Each word has a random vector; a caption is their sum."""

    name, dim, fingerprint = "hash", 16, "hash"

    def _embed_text(self, captions):
        words = sorted({word for caption in captions for word in caption.split()})
        vectors = {w: np.random.default_rng(list(w.encode())).normal(size=16) for w in words}
        return np.array([sum(vectors[w] for w in c.split()) for c in captions], dtype=np.float32)


def test_the_three_readings():
    fitted = AdditiveDecomposition().fit(*TRAIN)
    table = read_decomposition(fitted, TEST, PROBES)
    assert list(table) == NUMBERS
    assert list(table["reading"]) == ["R²", "retrieval", "probe: object", "probe: a"]
    predicted = fitted.predict(TEST[0])
    expected = [
        fitted.score(*TEST),
        retrieval_accuracy(predicted, TEST[1]),
        *(recognised(p.scores(predicted), TEST[0].present(p.target)).mean() for p in PROBES),
    ]
    np.testing.assert_allclose(table["value"], expected, atol=1e-6)
    assert (table["low"] <= table["value"]).all()
    assert (table["value"] <= table["high"]).all()
    assert (table["n_scenes"] == 60).all()


def test_scenes_with_something_unseen_are_no_queries_and_stay_in_the_bank():
    few = (TRAIN[0][:6], TRAIN[1][:6])
    fitted = AdditiveDecomposition().fit(*few)
    known = np.flatnonzero(fitted.can_predict(TEST[0]))
    assert 1 < len(known) < 60
    table = read_decomposition(fitted, TEST).set_index("reading")
    assert (table["n_scenes"] == len(known)).all()
    predicted = fitted.predict(TEST[0][known])
    assert table.loc["R²", "value"] == pytest.approx(
        fitted.score(TEST[0][known], TEST[1][known]), abs=1e-6
    )
    from_all = retrieval_accuracy(predicted, TEST[1], known)
    assert from_all != retrieval_accuracy(predicted, TEST[1][known])
    assert table.loc["retrieval", "value"] == pytest.approx(from_all)


def test_too_few_test_scenes_are_left():
    one = AdditiveDecomposition().fit(TRAIN[0][:1], TRAIN[1][:1])
    with pytest.raises(ValueError, match="0 of 60 test scenes hold nothing but what fit saw"):
        read_decomposition(one, TEST)
    fitted = AdditiveDecomposition().fit(*TRAIN)
    with pytest.raises(ValueError, match=r"1 of 1 test scenes hold nothing .* expected at least 2"):
        read_decomposition(fitted, (TEST[0][:1], TEST[1][:1]))
    with pytest.raises(ValueError, match="two embeddings that differ, got 60 alike"):
        read_decomposition(fitted, (TEST[0], np.ones_like(TEST[1])))
    with pytest.raises(ValueError, match="got 59 embeddings for 60 scenes"):
        read_decomposition(fitted, (TEST[0], TEST[1][1:]))


def test_probes_on_real_embeddings():
    table = read_probes(TEST, PROBES)
    assert list(table) == NUMBERS
    np.testing.assert_allclose(table["value"], [p.score(*TEST) for p in PROBES])
    empty = read_probes(TEST, [])
    assert len(empty) == 0
    assert list(empty) == NUMBERS


def test_every_level_and_estimator():
    table = decomposition_table(TRAIN, TEST, SINGLES, PROBES)
    assert list(table) == ["level", "estimator", *NUMBERS]
    assert len(table) == 2 * 4 * 4
    assert not table.duplicated(["level", "estimator", "reading"]).any()
    assert not table.isna().any(axis=None)
    for (level, estimator), part in table.groupby(["level", "estimator"]):
        singles = SINGLES if estimator == "single-obj" else None
        fitted = AdditiveDecomposition(level, estimator).fit(*TRAIN, singles=singles)
        (r2,) = part[part["reading"] == "R²"]["value"]
        assert r2 == pytest.approx(fitted.score(*TEST), abs=1e-6)
    without = decomposition_table(TRAIN, TEST, levels=["concept"])
    assert set(without["estimator"]) == {"avg", "avg+pos", "least-squares"}
    assert set(without["level"]) == {"concept"}
    with pytest.raises(ValueError, match="unknown level 'objects'"):
        decomposition_table(TRAIN, TEST, levels=["objects"])


def test_the_curve_uses_the_first_scenes():
    curve = scene_count_curve(TRAIN, TEST, [100, 300], SINGLES)
    assert list(curve) == ["n_train", "level", "estimator", *NUMBERS]
    for count in (100, 300):
        part = curve[curve["n_train"] == count].drop(columns="n_train").reset_index(drop=True)
        first = (TRAIN[0][:count], TRAIN[1][:count])
        assert part.equals(decomposition_table(first, TEST, SINGLES, levels=["object"]))
    assert scene_count_curve(TRAIN, TEST, range(150, 301, 150))["n_train"].nunique() == 2


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ([100, 301], r"counts must be from 1 to 300, got \[100, 301\]"),
        ([], r"counts must be from 1 to 300, got \[\]"),
        ([0], "a count must be an integer of at least 1, got 0"),
        ([1.5], "a count must be an integer of at least 1, got 1.5"),
    ],
)
def test_wrong_counts(counts, message):
    with pytest.raises(ValueError, match=message):
        scene_count_curve(TRAIN, TEST, counts)


def test_captions_from_text_to_tables():
    result = decompose_captions(HashEncoder(), 1500, seed=2)
    assert (result.n_train, result.n_test) == (1350, 150)
    scenes = sample_scenes(text_space(), 1500, seed=2)
    assert result.train[0] == scenes[:1350]
    assert result.test[0] == scenes[1350:]
    assert result.singles[0] == all_scenes(text_space(), 1)
    for part, Z in (result.train, result.test, result.singles):
        np.testing.assert_array_equal(Z, HashEncoder().encode_text(part.captions()))
    assert [p.target for p in result.probes] == ["object", "attribute", "noun"]
    assert list(result.real["reading"]) == ["probe: object", "probe: attribute", "probe: noun"]
    assert len(result.reconstructed) == 2 * 4 * 5
    exact = result.reconstructed.query("estimator == 'least-squares' and level == 'concept'")
    # Sums of word vectors are sums of concepts, but for "a" and "an", which hang on the attribute.
    assert exact.set_index("reading").loc["R²", "value"] == pytest.approx(1, abs=1e-4)


def test_captions_without_probes():
    result = decompose_captions(HashEncoder(), 1000, n_objects=3, probes=False)
    assert result.probes == []
    assert len(result.real) == 0
    assert set(result.reconstructed["reading"]) == {"R²", "retrieval"}
    assert result.train[0].n_slots == 3


def test_captions_that_cannot_be_decomposed():
    class Blind(ModelEncoder):
        name, dim, fingerprint = "blind", 4, "blind"

    with pytest.raises(ValueError, match="'blind' encodes images only"):
        decompose_captions(Blind(), 100)
    with pytest.raises(ValueError, match="n_scenes must be an integer of at least 20, got 19"):
        decompose_captions(HashEncoder(), 19)
    with pytest.raises(ValueError, match="fit on more scenes"):
        decompose_captions(HashEncoder(), 20)


# --- pictures


class SquareSumEncoder(ModelEncoder):
    """The sum of two squares' colours: additive in the objects, and in the colours alone."""

    name, dim, fingerprint = "square sum", 3, "square sum"

    def _embed_images(self, images):
        return images.sum(axis=(1, 2), dtype=np.float32)


SQUARES = ConceptSpace({"colour": ["red", "blue", "yellow", "green"], "shape": ["square", "bar"]})


def drawn(scenes):
    return scenes, render_images(scenes, size=16)


def test_pictures_to_tables():
    scenes, images = drawn(all_scenes(SQUARES))
    result = decompose_images(SquareSumEncoder(), scenes, images, drawn(all_scenes(SQUARES, 1)))
    assert (result.n_train, result.n_test) == (58, 6)
    both = SceneSet.concatenate([result.train[0], result.test[0]])
    # Every scene once, each with the embedding of its own picture, in an order that was drawn.
    np.testing.assert_array_equal(np.unique(both.object_ids, axis=0), scenes.object_ids)
    assert both != scenes
    for part, Z in (result.train, result.test, result.singles):
        np.testing.assert_array_equal(Z, SquareSumEncoder().encode_images(drawn(part)[1]))
    assert [p.target for p in result.probes] == ["object", "colour", "shape"]
    assert len(result.reconstructed) == 2 * 4 * 5
    exact = result.reconstructed.query("estimator == 'least-squares' and level == 'object'")
    assert exact.set_index("reading").loc["R²", "value"] == pytest.approx(1, abs=1e-4)


def test_the_seed_chooses_the_test_pictures():
    pictures = drawn(all_scenes(SQUARES))
    first, again, other = (
        decompose_images(SquareSumEncoder(), *pictures, probes=False, seed=seed)
        for seed in (0, 0, 1)
    )
    assert first.test[0] == again.test[0]
    assert first.test[0] != other.test[0]
    assert first.singles is None
    assert set(first.reconstructed["estimator"]) == {"avg", "avg+pos", "least-squares"}


def test_pictures_that_cannot_be_decomposed():
    scenes, images = drawn(all_scenes(SQUARES))
    with pytest.raises(ValueError, match="'hash' encodes text only"):
        decompose_images(HashEncoder(), scenes, images)
    with pytest.raises(ValueError, match="got 63 embeddings for 64 scenes"):
        decompose_images(SquareSumEncoder(), scenes, images[:63])
    with pytest.raises(ValueError, match="the number of scenes must be an integer of at least 20"):
        decompose_images(SquareSumEncoder(), scenes[:19], images[:19])


# --- the widget for a live kernel


def shown(monkeypatch, train):
    """An explorer, and the list of charts that it displays."""
    charts = []
    monkeypatch.setattr("binding_lib.explorers.display", charts.append)
    return decomposition_explorer(train, TEST, SINGLES), charts


def test_the_explorer_computes_anew_at_every_move(monkeypatch):
    box, charts = shown(monkeypatch, TRAIN)
    count, level, _ = box.children
    assert (count.min, count.max, count.step, count.value) == (30, 300, 30, 150)
    count.value = 300
    level.value = "concept"
    titles = [chart.to_dict()["title"] for chart in charts]
    assert titles == [
        "Sums of objects, 150 training scenes",
        "Sums of objects, 300 training scenes",
        "Sums of concepts, 300 training scenes",
    ]
    (rows,) = charts[-1].to_dict()["datasets"].values()
    expected = decomposition_table(TRAIN, TEST, SINGLES, levels=["concept"])
    np.testing.assert_allclose([r["value"] for r in rows], expected["value"], atol=1e-4)


def test_the_explorer_says_when_there_are_too_few_scenes(monkeypatch, capsys):
    box, charts = shown(monkeypatch, (TRAIN[0][:20], TRAIN[1][:20]))
    del charts[:]
    box.children[0].value = 2
    assert charts == []
    assert "fit on more scenes" in capsys.readouterr().out


def test_nothing_warns():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        decomposition_table(TRAIN, TEST, SINGLES, PROBES)
