"""Captions: phrases, articles, and the vocabulary of the text set."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from binding_lib.concepts import ConceptSpace
from binding_lib.scenes import SceneSet, all_scenes, sample_scenes
from binding_lib.views.captions import captions, object_phrases, text_space


@pytest.fixture(scope="module")
def text():
    return text_space()


def test_the_text_space_is_the_published_one(text):
    assert text.names == ("attribute", "noun")
    assert text.n_objects == 400
    assert text.value_names("attribute") == (
        *("red", "blue", "green", "yellow", "purple", "orange", "pink", "brown", "gray", "black"),
        *("small", "large", "tiny", "round", "sharp", "rough", "bumpy", "smooth", "matte"),
        "glossy",
    )
    assert text.value_names("noun") == (
        *("circle", "square", "triangle", "star", "heart", "spiral", "sphere", "cylinder"),
        *("cone", "pyramid", "car", "cat", "dog", "man", "woman", "tree", "flower", "rock"),
        *("bird", "fish"),
    )


@pytest.mark.parametrize(
    ("objects", "caption"),
    [
        (["red circle"], "a red circle"),
        (["orange fish"], "an orange fish"),
        (["red circle", "orange fish"], "a red circle and an orange fish"),
        (["tiny dog", "tiny dog"], "a tiny dog and a tiny dog"),
        (["red car", "orange cat", "blue dog"], "a red car, an orange cat and a blue dog"),
    ],
)
def test_captions_read_like_english(text, objects, caption):
    scene = SceneSet(text, [[text.object_id(*name.split()) for name in objects]])
    assert captions(scene) == scene.captions() == [caption]


@pytest.mark.parametrize("value", ["apple", "Egg", "ice", "Owl", "umbrella"])
def test_an_before_a_vowel_in_either_case(value):
    space = ConceptSpace({"noun": [value, "plum"]})
    assert object_phrases(space) == [f"an {value}", "a plum"]
    assert object_phrases(space, [1, 1]) == ["a plum", "a plum"]


def test_grid_spaces_have_captions_of_any_number_of_concepts():
    scene = SceneSet(ConceptSpace.grid(3, 2), [[0, 7]])
    assert scene.captions() == ["an a0 b0 c0 and an a1 b1 c1"]
    assert SceneSet(ConceptSpace.grid(1, 3), [[2]]).captions() == ["an a2"]


@given(st.integers(1, 4), st.integers(0, 20), st.integers(0, 100))
def test_a_caption_names_its_objects_in_slot_order(m, n, seed):
    text = text_space()
    scenes = sample_scenes(text, n, m, seed=seed)
    expected = [[text.object_name(i) for i in scene] for scene in scenes.object_ids]
    read = [
        [part.split(" ", 1)[1] for part in caption.replace(" and ", ", ").split(", ")]
        for caption in scenes.captions()
    ]
    assert read == expected


def test_every_scene_of_the_text_set_has_a_caption_of_its_own(text):
    singles, pairs = all_scenes(text, 1).captions(), all_scenes(text).captions()
    assert singles == object_phrases(text)
    assert len(set(singles)) == 400
    assert len(set(pairs)) == 160_000
    assert pairs[401] == f"{singles[1]} and {singles[1]}"
    assert pairs[402] == f"{singles[1]} and {singles[2]}"
