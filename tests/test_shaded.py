"""Shaded pictures: what stands where, in which colour, before what, and always the same."""

import itertools
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from binding_lib import ConceptSpace, SceneSet, all_scenes, sample_scenes
from binding_lib.encoders.weights import MissingExtraError
from binding_lib.views import shaded
from binding_lib.views.colours import COLOURS, object_looks
from binding_lib.views.shaded import SHAPES, place, render_shaded

CLEVR = ConceptSpace({"colour": list(COLOURS)[:8], "shape": SHAPES})
NAMES = CLEVR.value_names("colour")


def hue(colours):
    """Linear light of sRGB bytes, without its strength."""
    light = (np.asarray(colours) / 255) ** 2.2
    return light / np.linalg.norm(light, axis=-1, keepdims=True)


def colour_at(picture, row, column):
    """Which of CLEVR's colours the nine pixels about a point have together."""
    r, c = int(row), int(column)
    around = picture[r - 1 : r + 2, c - 1 : c + 2].reshape(-1, 3).mean(axis=0)
    return NAMES[int((hue([COLOURS[n] for n in NAMES]) @ hue(around)).argmax())]


def looks(scenes):
    of = object_looks(scenes.space, SHAPES)
    return [[of[i] for i in ids] for ids in scenes.object_ids]


def test_every_object_has_its_colour_at_its_centre():
    scenes = all_scenes(CLEVR, n_objects=1)
    pictures = render_shaded(scenes, size=32)
    assert pictures.shape == (24, 32, 32, 3)
    assert pictures.dtype == np.uint8
    for picture, objects in zip(pictures, looks(scenes), strict=True):
        (point,) = place(objects).pixels(32)
        assert colour_at(picture, *point) == objects[0][0]


def test_slots_stand_from_left_to_right():
    scenes = sample_scenes(CLEVR, 4, n_objects=3, seed=1)
    for picture, objects in zip(render_shaded(scenes, size=48), looks(scenes), strict=True):
        points = place(objects).pixels(48)
        assert (np.diff(points[:, 1]) > 0).all()
        assert [colour_at(picture, *p) for p in points] == [colour for colour, _ in objects]


def test_the_nearer_object_hides_the_farther_one():
    pair = SceneSet(CLEVR, [[CLEVR.object_id("green", "sphere"), CLEVR.object_id("red", "sphere")]])
    in_front = set()
    for seed in range(4):
        (objects,) = looks(pair)
        where = place(objects, seed, overlap=0.9)
        front = int(where.centres[:, 1].argmin())
        in_front.add(front)
        # Both spheres lie behind this point of the picture.
        between = where.pixels(48).mean(axis=0)
        (picture,) = render_shaded(pair, size=48, seed=seed, overlap=0.9)
        assert colour_at(picture, *between) == objects[front][0]
        colours = {colour_at(picture, r, c) for r in range(4, 44) for c in range(4, 44)}
        assert {"green", "red"} <= colours  # and both are seen
    assert in_front == {0, 1}


def test_the_shapes_differ_and_throw_shadows():
    scenes = SceneSet(CLEVR, [[CLEVR.object_id("red", shape)] for shape in SHAPES])
    pictures = render_shaded(scenes, size=48).astype(int)
    assert all((a != b).any() for a, b in itertools.combinations(pictures, 2))
    for picture in pictures:
        ground = np.ptp(picture, axis=2) < 12  # grey
        light = np.where(ground, picture[..., 0], 255)
        assert ground[0].all()
        assert ground[-1].all()
        assert light.min() < 0.75 * picture[-1].min()


def test_one_seed_one_picture():
    scenes = sample_scenes(CLEVR, 3, seed=2)
    first = render_shaded(scenes, size=16, seed=5)
    np.testing.assert_array_equal(
        render_shaded(scenes[[2, 0, 2]], size=16, seed=5), first[[2, 0, 2]]
    )
    assert (render_shaded(scenes, size=16, seed=6) != first).any(axis=(1, 2, 3)).all()


def test_a_scene_looks_the_same_in_a_smaller_space():
    small = ConceptSpace({"shape": ["sphere", "cube"], "color": ["red", "blue"]})
    ours = SceneSet(small, [[small.object_id("cube", "red"), small.object_id("sphere", "blue")]])
    ids = [CLEVR.object_id("red", "cube"), CLEVR.object_id("blue", "sphere")]
    theirs = render_shaded(SceneSet(CLEVR, [ids]), size=16)
    np.testing.assert_array_equal(render_shaded(ours, size=16), theirs)


@given(
    st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(SHAPES)), min_size=1, max_size=3),
    st.integers(0, 2**32),
    st.sampled_from([0.0, 0.3, 0.9]),
)
def test_solids_stand_apart_and_in_the_picture(objects, seed, overlap):
    where = place(objects, seed, overlap)
    # A cube turned by 45 degrees reaches farthest.
    reach = where.halves * [np.sqrt(2) if shape == "cube" else 1 for _, shape in objects]
    for i, j in itertools.combinations(range(len(objects)), 2):
        between = np.hypot(*(where.centres[i] - where.centres[j])[:2])
        assert between > reach[i] + reach[j]
    assert (where.pixels(100) > 8).all()
    assert (where.pixels(100) < 92).all()


def test_no_scenes_no_pictures():
    assert render_shaded(sample_scenes(CLEVR, 3)[:0], size=16).shape == (0, 16, 16, 3)


@pytest.mark.parametrize(
    ("space", "message"),
    [
        (
            ConceptSpace({"colour": ["red", "mauve"], "shape": ["cube"]}),
            "cannot draw colour 'mauve'; expected names among blue, brown, .*, white",
        ),
        (
            ConceptSpace({"color": ["red"], "shape": ["torus", "cube", "star"]}),
            "cannot draw shape 'torus', 'star'; expected names among cube, cylinder, sphere",
        ),
        (
            ConceptSpace({"colour": ["red"], "shape": ["cube"], "size": ["big"]}),
            "got 'colour', 'shape', 'size'",
        ),
        (ConceptSpace.grid(2, 3), "'colour' .* and 'shape'; got 'a', 'b'"),
    ],
)
def test_what_cannot_be_drawn_is_named(space, message):
    with pytest.raises(ValueError, match=message):
        render_shaded(SceneSet(space, [[0]]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": 4}, "size must be an integer of at least 8, got 4"),
        ({"seed": -1}, "seed must be an integer of at least 0"),
        ({"overlap": 1.0}, "overlap must be from 0 to 0.9, got 1.0"),
    ],
)
def test_wrong_options(options, message):
    with pytest.raises(ValueError, match=message):
        render_shaded(sample_scenes(CLEVR, 1), **options)


def test_the_ray_tracer_runs_before_threads_do(monkeypatch):
    shaded._start_ray_tracer.cache_clear()
    started = []

    def in_threads(do, jobs, said):
        started.append(shaded._start_ray_tracer.cache_info().currsize)
        return [do(*job) for job in jobs]

    monkeypatch.setattr(shaded, "in_threads", in_threads)
    assert render_shaded(sample_scenes(CLEVR, 2), size=16).shape == (2, 16, 16, 3)
    assert started == [1]


def test_too_many_objects():
    with pytest.raises(ValueError, match="at most 3 objects, got 4"):
        render_shaded(sample_scenes(CLEVR, 1, n_objects=4))


def test_a_missing_extra_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "mitsuba", None)
    with pytest.raises(MissingExtraError, match=r'pip install "binding_lib\[shaded\]"'):
        render_shaded(sample_scenes(CLEVR, 1))
