"""Pictures: the right pixels in the right places, whoever else is drawn."""

import base64
import io
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from binding_lib import ConceptSpace, SceneSet, render_images, sample_scenes
from binding_lib.pocket import pocket_space
from binding_lib.views.colours import COLOURS
from binding_lib.views.flat import BACKGROUND, SHAPES, Places, draw_mask
from binding_lib.views.images import gallery

SPACE = ConceptSpace({"colour": list(COLOURS), "shape": list(SHAPES)})


def scene(*names, space=SPACE):
    return SceneSet(space, [[space.object_id(*name.split()) for name in names]])


@pytest.mark.parametrize(
    ("n_objects", "size"), [(1, 32), (1, 64), (2, 32), (2, 97), (3, 64), (3, 97)]
)
def test_each_object_has_its_colour_at_the_middle_of_its_slot(n_objects, size):
    ids = np.arange(SPACE.n_objects)
    scenes = SceneSet(SPACE, np.stack([(ids + 101 * k) % len(ids) for k in range(n_objects)], 1))
    pictures = render_images(scenes, size=size)
    assert pictures.shape == (len(ids), size, size, 3)
    assert pictures.dtype == np.uint8
    values = list(COLOURS.values())
    for slot in range(n_objects):
        x = round(size * (slot + 0.5) / n_objects)
        colours = np.array([values[c] for c, _ in scenes.values[:, slot]])
        np.testing.assert_array_equal(pictures[:, size // 2, x], colours)
    assert (pictures[:, 0] == BACKGROUND).all()
    assert (pictures[:, :, -1] == BACKGROUND).all()


def test_a_picture_holds_the_colours_of_its_objects_and_the_ground_only():
    (picture,) = render_images(scene("red square", "blue bar"), size=64)
    inside = {tuple(pixel) for pixel in picture.reshape(-1, 3).tolist()}
    assert {COLOURS["red"], COLOURS["blue"], BACKGROUND} <= inside
    left, right = picture[:, :32].reshape(-1, 3), picture[:, 32:].reshape(-1, 3)
    assert not (left == COLOURS["blue"]).all(axis=1).any()
    assert not (right == COLOURS["red"]).all(axis=1).any()


def test_a_square_and_a_disc_cover_what_they_should():
    square = draw_mask(SHAPES["square"], 10, 24) / 255
    assert square.sum() == pytest.approx(17**2, rel=0.02)
    assert square[12, 12] == 1
    assert square[12, 2] == 0
    disc = draw_mask(SHAPES["circle"], 10, 24) / 255
    assert disc.sum() == pytest.approx(np.pi * 9.5**2, rel=0.02)
    np.testing.assert_allclose(disc, disc[:, ::-1], atol=0.1)
    np.testing.assert_allclose(disc, disc.T, atol=0.1)


def test_shapes_can_be_told_apart():
    masks = np.stack([draw_mask(outline, 6.5, 14) for outline in SHAPES.values()]) / 255
    masks = masks.reshape(len(masks), -1)
    both = np.minimum(masks[:, None], masks).sum(-1)
    either = np.maximum(masks[:, None], masks).sum(-1)
    alike = both / either - np.eye(len(masks))
    a, b = np.unravel_index(alike.argmax(), alike.shape)
    assert alike.max() < 0.85, (list(SHAPES)[a], list(SHAPES)[b])


def test_no_two_named_colours_are_alike():
    colours = np.array([*COLOURS.values(), BACKGROUND], dtype=float)
    distance = np.linalg.norm(colours[:, None] - colours, axis=-1) + 1e3 * np.eye(len(colours))
    assert distance.min() > 40


def test_the_later_slot_is_in_front():
    a, b, c = "red circle", "blue circle", "green circle"
    (picture,) = render_images(scene(a, b, c), size=90, overlap=0.4)
    places = Places(3, 90, overlap=0.4)
    row = picture[45]
    # Where two discs meet, half way between their centres, the later one shows.
    for left, right, front in [(0, 1, "blue"), (1, 2, "green")]:
        middle = round((places.centres[left] + places.centres[right]) / 2)
        assert places.centres[left] + places.radius * 0.95 > middle + 1  # the other reaches there
        assert tuple(row[middle]) == COLOURS[front]
    (other,) = render_images(scene(c, b, a), size=90, overlap=0.4)
    assert tuple(other[45, round((places.centres[1] + places.centres[2]) / 2)]) == COLOURS["red"]


@given(st.integers(0, 10), st.floats(0, 1), st.sampled_from([0.0, 0.3]))
def test_a_scene_looks_the_same_in_any_company(seed, jitter, overlap):
    scenes = sample_scenes(SPACE, 12, seed=3)
    options = {"size": 32, "seed": seed, "jitter": jitter, "overlap": overlap}
    pictures = render_images(scenes, **options)
    order = np.random.default_rng(seed).permutation(len(scenes))
    np.testing.assert_array_equal(render_images(scenes[order], **options), pictures[order])
    np.testing.assert_array_equal(render_images(scenes[5], **options), pictures[5:6])


def test_jitter_varies_with_the_seed_and_keeps_objects_whole_and_apart():
    scenes = sample_scenes(SPACE, 500, seed=0)
    still = render_images(scenes, size=32)
    np.testing.assert_array_equal(still, render_images(scenes, size=32, seed=1))
    one, two = (render_images(scenes, size=32, seed=seed, jitter=1) for seed in (0, 1))
    assert (one != two).any(axis=(1, 2, 3)).mean() > 0.95
    centres, radii = Places(2, 32, jitter=1).draw(scenes.object_ids, seed=0)
    assert (centres[:, 0, 0] + radii[:, 0] <= centres[:, 1, 0] - radii[:, 1]).all()
    assert (centres[:, 0, 0] >= radii[:, 0]).all()
    assert (centres[:, 1, 0] + radii[:, 1] <= 32).all()
    assert set(np.unique(radii)) == {4.5, 5.0, 5.5, 6.0, 6.5}
    assert centres[..., 1].min() <= 11
    assert centres[..., 1].max() >= 21


def test_two_chunks_of_scenes_equal_one(monkeypatch):
    scenes = sample_scenes(SPACE, 20, seed=0)
    whole = render_images(scenes, size=32, jitter=0.5)
    monkeypatch.setattr("binding_lib.views.flat._AT_A_TIME", 7)
    np.testing.assert_array_equal(render_images(scenes, size=32, jitter=0.5), whole)


def test_no_scenes_give_no_pictures():
    assert render_images(SceneSet(SPACE, np.empty((0, 2), int)), size=32).shape == (0, 32, 32, 3)


def test_both_spellings_and_orders_of_the_concepts_are_read():
    american = ConceptSpace({"shape": ["circle", "star"], "color": ["red", "blue"]})
    (picture,) = render_images(scene("star blue", "circle red", space=american))
    (same,) = render_images(scene("blue star", "red circle"))
    np.testing.assert_array_equal(picture, same)


@pytest.mark.parametrize(
    ("concepts", "words"),
    [
        ({"colour": ["mauve", "red"], "shape": ["circle", "star"]}, ("mauve", "magenta", "blue")),
        ({"colour": ["red"], "shape": ["circle", "cube"]}, ("cube", "square", "hourglass")),
        ({"colour": ["red"], "size": ["small"]}, ("shape", "size")),
    ],
)
def test_what_cannot_be_drawn_is_named_with_what_can(concepts, words):
    scenes = SceneSet(ConceptSpace(concepts), [[0]])
    with pytest.raises(ValueError, match=r"cannot draw|pictures show") as error:
        render_images(scenes)
    for word in words:
        assert word in str(error.value)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"style": "oil"}, "flat"),
        ({"size": 15}, "size of 16, got 15"),
        ({"size": 64.0}, "size"),
        ({"jitter": 1.1}, "jitter must be from 0 to 1"),
        ({"jitter": float("nan")}, "jitter must be"),
        ({"overlap": 0.95}, "overlap must be from 0 to 0.9"),
        ({"seed": -1}, "seed"),
        ({"seed": 2**32}, "seed must be an integer of at most 4294967295"),
        ({"size": 2049}, "size must be an integer of at most 2048"),
        ({"style": "shaded", "jitter": 0.5}, "expected jitter 0"),
    ],
)
def test_options_out_of_range_are_refused(options, match):
    with pytest.raises(ValueError, match=match):
        render_images(scene("red circle", "blue star"), **options)


def test_the_pocket_space_can_be_drawn_and_said():
    space = pocket_space()
    assert space.sizes == (16, 16)
    scenes = SceneSet(space, np.arange(256).reshape(-1, 2))
    assert len(np.unique(render_images(scenes, size=32), axis=0)) == 128


def test_the_gallery_holds_pictures_captions_and_alternatives():
    scenes = scene("red circle", "blue star")
    pictures = render_images(scenes, size=32)
    page = gallery(pictures, ["<a & b>"]).data
    assert 'alt="&lt;a &amp; b&gt;"' in page
    (url,) = re.findall(r'src="data:image/png;base64,([^"]+)"', page)
    shown = np.asarray(Image.open(io.BytesIO(base64.b64decode(url))))
    np.testing.assert_array_equal(shown, pictures[0])
    with pytest.raises(ValueError, match="2 captions for 1 pictures"):
        gallery(pictures, ["a", "b"])
