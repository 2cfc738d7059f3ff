"""Cross-modal readings against loops that spell the definitions out."""

import itertools

import numpy as np
import pytest

from binding_lib import ConceptSpace, LinearProbe, SceneSet, all_scenes, sample_scenes
from binding_lib.cross_modal import (
    CAPTION_TO_IMAGE,
    IMAGE_TO_CAPTION,
    across_outcomes,
    cosines,
    has_swap,
    modality_table,
    prefers_own,
    within_outcomes,
)
from binding_lib.scenes import exchanged
from binding_lib.views.images import render_images

SPACE = ConceptSpace({"colour": ["red", "blue", "orange"], "shape": ["square", "star"]})
SCENES = sample_scenes(SPACE, 40, seed=0)


class Noisy:
    """An image-text pair that sees some of what is there: noise that hangs on the input alone."""

    name, dim, fingerprint = "noisy", 16, "noisy"

    def __init__(self, noise):
        self.noise = noise
        rng = np.random.default_rng(1)
        words = ["red", "blue", "orange", "square", "star"]
        self.of_word = {word: rng.normal(size=16) for word in words}
        # What binds: a vector for each pair of words.
        self.of_pair = {pair: rng.normal(size=16) for pair in itertools.product(words, words)}
        self.seen = {}

    def encode_text(self, captions):
        rows = []
        for caption in captions:
            total = np.zeros(16)
            for phrase in caption.split(" and "):
                words = [word for word in phrase.split() if word not in ("a", "an")]
                total += sum(self.of_word[word] for word in words)
                if len(words) == 2:
                    total += self.of_pair[tuple(words)]
            rows.append(total + self.noise * np.random.default_rng(len(caption)).normal(size=16))
        return np.array(rows, dtype=np.float32)

    def render(self, scenes):
        pictures = render_images(scenes, size=32)
        self.seen |= {p.tobytes(): c for p, c in zip(pictures, scenes.captions(), strict=True)}
        return pictures

    def encode_images(self, images):
        clear = Noisy(0).encode_text([self.seen[image.tobytes()] for image in images])
        noise = [np.random.default_rng(int(i.sum())).normal(size=16) for i in images]
        return (clear + self.noise * np.array(noise)).astype(np.float32)


def cosine(a, b):
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


@pytest.mark.parametrize("noise", [0.3, 1.0])
def test_across_modalities_against_a_loop(noise):
    encoder = Noisy(noise)
    outcomes = across_outcomes(encoder, SCENES, encoder.render)
    names = {
        "colour": list(SPACE.value_names("colour")),
        "shape": [f"a {value}" for value in SPACE.value_names("shape")],
        "object": [
            f"{'an' if c == 'orange' else 'a'} {c} {s}"
            for c in SPACE.value_names("colour")
            for s in SPACE.value_names("shape")
        ],
    }
    expected = {key: [] for key in (*names, IMAGE_TO_CAPTION, CAPTION_TO_IMAGE)}
    for row in range(len(SCENES)):
        scene = SCENES[row]
        (caption,) = scene.captions()
        (picture,) = encoder.encode_images(encoder.render(scene))
        (text,) = encoder.encode_text([caption])
        for target, phrases in names.items():
            scores = [cosine(picture, q) for q in encoder.encode_text(phrases)]
            inside = scene.present(target)[0]
            present = [s for s, there in zip(scores, inside, strict=True) if there]
            absent = [s for s, there in zip(scores, inside, strict=True) if not there]
            expected[target].append(all(p > a for p in present for a in absent))
        (c1, s1), (c2, s2) = scene.values[0]
        if c1 == c2 or s1 == s2:
            continue
        other = SceneSet(SPACE, [[SPACE.ids([c2, s1]), SPACE.ids([c1, s2])]])
        (other_text,) = encoder.encode_text(other.captions())
        (other_picture,) = encoder.encode_images(encoder.render(other))
        own = cosine(picture, text)
        expected[IMAGE_TO_CAPTION].append(own > cosine(picture, other_text))
        expected[CAPTION_TO_IMAGE].append(own > cosine(other_picture, text))
    assert set(outcomes) == set(expected)
    for key, right in outcomes.items():
        assert right.tolist() == expected[key], key
    assert 0 < np.mean([np.mean(right) for right in expected.values()]) < 1


def test_a_pair_that_binds_is_right_and_a_bag_of_concepts_cannot_tell_swaps_apart():
    binds, bag = Noisy(0), Noisy(0)
    for pair in bag.of_pair:
        bag.of_pair[pair] = np.zeros(16)
    scenes = all_scenes(SPACE)
    scenes = scenes[has_swap(scenes)]
    assert across_outcomes(binds, scenes, binds.render)[IMAGE_TO_CAPTION].all()
    bag.encode_images = lambda images: bag.encode_text([bag.seen[i.tobytes()] for i in images])
    outcomes = across_outcomes(bag, scenes, bag.render)
    # Ties, up to rounding: never a clear preference for the scene's own caption.
    assert outcomes[IMAGE_TO_CAPTION].mean() < 0.7


def test_exchanging_moves_one_concept_to_the_next_slot():
    scenes = SceneSet(SPACE, [[SPACE.object_id("red", "star"), SPACE.object_id("blue", "square")]])
    (other,) = exchanged(scenes).captions()
    assert other == "a blue star and a red square"
    (other,) = exchanged(scenes, "shape").captions()
    assert other == "a red square and a blue star"
    again = exchanged(exchanged(SCENES))
    assert again == SCENES
    three = sample_scenes(SPACE, 20, 3, seed=0)
    assert exchanged(exchanged(exchanged(three))) == three
    np.testing.assert_array_equal(
        np.sort(exchanged(three).values, axis=1), np.sort(three.values, axis=1)
    )
    with pytest.raises(ValueError, match="colour"):
        exchanged(scenes, "color")


def test_which_scenes_have_a_swap():
    values = SCENES.values
    differ = (values[:, 0] != values[:, 1]).all(axis=1)
    np.testing.assert_array_equal(has_swap(SCENES), differ)
    assert 0 < differ.sum() < len(differ)


def test_preference_is_strict_and_by_angle():
    asking = np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]])
    own = np.array([[10.0, 1.0], [0.1, 1.0], [1.0, 1.0]])
    other = np.array([[1.0, 1.0], [1.0, 0.1], [2.0, 2.0]])
    assert prefers_own(asking, own, other).tolist() == [True, False, False]
    candidates = [[0.0, 2.0], [3.0, 0.0], [0.0, 0.0]]
    np.testing.assert_allclose(cosines(asking[:1], candidates), [[0, 1, 0]])
    for wrong in (own[:1], own[:, :1]):
        with pytest.raises(ValueError, match="one own and one other embedding for each"):
            prefers_own(asking, wrong, other)


def test_within_a_modality_against_a_loop():
    rng = np.random.default_rng(0)
    Z = SCENES.present("object") @ rng.normal(size=(6, 8)) + rng.normal(size=(len(SCENES), 8))
    probes = {t: LinearProbe(t, max_iter=5).fit(SCENES, Z) for t in ("colour", "shape", "object")}
    outcomes = within_outcomes(probes, SCENES, Z)
    for target, probe in probes.items():
        assert outcomes[target].mean() == pytest.approx(probe.score(SCENES, Z))
    scores, expected = probes["object"].scores(Z), []
    for row, ((c1, s1), (c2, s2)) in enumerate(SCENES.values):
        if c1 != c2 and s1 != s2:
            own = scores[row, SPACE.ids([c1, s1])] + scores[row, SPACE.ids([c2, s2])]
            other = scores[row, SPACE.ids([c2, s1])] + scores[row, SPACE.ids([c1, s2])]
            expected.append(own > other)
    assert outcomes["swap"].tolist() == expected
    assert 0 < np.mean(expected) <= 1


def test_the_table_has_a_row_for_each_question():
    encoder = Noisy(0.5)
    test = {"seen": SCENES[:15], "unseen": SCENES[15:]}
    table = modality_table(encoder, test, sample_scenes(SPACE, 100, seed=1), encoder.render)
    assert list(table) == ["modality", "objects", "reading", "value", "low", "high", "n_scenes"]
    assert len(table) == 2 * (5 + 4)
    assert not table.duplicated(["modality", "objects", "reading"]).any()
    across = across_outcomes(encoder, test["unseen"], encoder.render)
    row = table.set_index(["modality", "objects", "reading"]).loc["across", "unseen", "object"]
    assert row["value"] == across["object"].mean()
    assert row["n_scenes"] == 25
    assert (table["low"] <= table["value"]).all()
    assert (table["value"] <= table["high"]).all()
    only = modality_table(encoder, test, render=encoder.render)
    assert set(only["modality"]) == {"across"}


def test_scenes_without_a_swap_have_no_swap_rows():
    encoder = Noisy(0.5)
    same = SceneSet(SPACE, [[0, 1], [2, 3]])
    assert set(across_outcomes(encoder, same, encoder.render)) == {"colour", "shape", "object"}
